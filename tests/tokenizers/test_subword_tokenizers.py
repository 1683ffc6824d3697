"""kcrf.tokenizers.subwords: Unigram and BPE have the ids and offsets of Hugging Face, and units keep their borders."""

import json
import pickle
import random
from pathlib import Path

import numpy as np
import pytest
from tokenizers import normalizers, pre_tokenizers
from tokenizers_of_tests import SPECIAL, TEXTS, bpe, folder_of, unigram

from kcrf.tokenizers import SubwordTokenizer, Tokenizer
from kcrf.tokenizers.characters import words_of

BACKENDS = ["torch"]
transformers = pytest.importorskip("transformers", reason="needs Hugging Face's transformers, which is not here")
REAL = Path(__file__).parents[3] / "shared" / "data" / "checkpoints" / "e5_small_unigram"

ALPHABETS = (
    "abcdefgh XYZ éüñ 12.,!?'\"-",
    "今天气真好的中国。，！？「」　ＡＢ１２",
    "абвгд ЖЗ שלום مرحبا ไทย 한국어 かなカナ",
    "👍🏽😀👩‍👩‍👧 \u0301\u0308\u200b\ufeff\u00ad ﬁ ½ … ™ \t\n\u00a0",
)


def of_deberta():
    """Removes the spaces around a text, as the tokenizer of DeBERTa-v3 does."""
    made = unigram()
    made.normalizer = normalizers.Sequence([normalizers.Strip(), made.normalizer])
    return made


def of_xlm_roberta():
    """Splits at spaces before it puts them back, as the tokenizers of XLM-R and CamemBERT do."""
    made = unigram()
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), made.pre_tokenizer])
    return made


KINDS = {"unigram": unigram, "bpe": bpe, "bpe with a prefix": lambda: bpe(True), "first": lambda: unigram("first")}
KINDS |= {"DeBERTa": of_deberta, "XLM-R": of_xlm_roberta}


def odd_texts(count):
    drawn = random.Random(4)
    for _ in range(count):
        alphabet = "".join(drawn.sample(ALPHABETS, drawn.randint(1, 3)))
        yield "".join(drawn.choice(alphabet) for _ in range(drawn.randint(0, 24)))


COUNTS = [1000, pytest.param(10_000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", KINDS)
def test_ids_and_offsets_are_those_of_hugging_face_on_odd_texts(name, count, tmp_path):
    folder = folder_of(KINDS[name](), tmp_path)
    ours, texts = SubwordTokenizer.of_folder(folder), [*TEXTS, *odd_texts(count)]
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **SPECIAL)
    expected = theirs(texts, return_offsets_mapping=True)
    found = ours.encode_batch(texts)
    assert [e.token_ids for e in found] == expected["input_ids"]
    for one, other in zip(found, expected["offset_mapping"], strict=True):
        assert one.offsets.tolist() == list(map(list, other))
    assert ours.ids == {"pad": 1, "start": 0, "end": 2, "unk": 3, "mask": 4}
    assert ours.separators() == [2, 2]
    pair = theirs(TEXTS[0], TEXTS[1], truncation=True, max_length=9)
    assert ours.encode(TEXTS[0], TEXTS[1], maxlen=9)[0] == pair["input_ids"]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("lower", [True, False])
def test_word_pieces_have_the_ids_and_offsets_of_hugging_face_on_odd_texts(lower, count):
    texts = [*TEXTS, *odd_texts(count)]
    words = sorted({word for text in TEXTS for word in (*text.split(), *text.lower().split())})
    characters = sorted({c for text in texts for c in text if c.isprintable() and not c.isspace()})
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *characters, *(f"##{c}" for c in characters[::2])]
    vocab = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    theirs = transformers.BertTokenizerFast(vocab=vocab, do_lower_case=lower)(texts, return_offsets_mapping=True)
    found = Tokenizer(vocab, do_lower_case=lower).encode_batch(texts)
    assert [e.token_ids for e in found] == theirs["input_ids"]
    assert [e.offsets.tolist() for e in found] == [list(map(list, row)) for row in theirs["offset_mapping"]]


@pytest.mark.parametrize("name", KINDS)
def test_no_piece_crosses_the_border_of_two_units(name, tmp_path):
    tokenizer = SubwordTokenizer.of_folder(folder_of(KINDS[name](), tmp_path))
    texts = [*TEXTS, *odd_texts(300)]
    for text, pieces in zip(texts, tokenizer.encode_units(texts, list(map(words_of, texts))), strict=True):
        bounds = [*pieces.first.tolist(), len(pieces.ids)]
        for (start, end), first, stop in zip(pieces.units.tolist(), bounds, bounds[1:]):
            assert first < stop
            inside = pieces.ends[first:stop]  # the last pieces may be the space of the next unit
            assert start < inside[0] <= end and (inside[inside > end] > end).all(), text
            assert tokenizer.id_to_token(pieces.ids[first]).strip("▁Ġ")


@pytest.mark.parametrize("name", KINDS)
def test_words_between_spaces_have_the_pieces_of_the_whole_text(name, tmp_path):
    tokenizer = SubwordTokenizer.of_folder(folder_of(KINDS[name](), tmp_path))
    text = "New York saw the man , a friend of big Moscow"
    (pieces,) = tokenizer.encode_units([text], [words_of(text)])
    assert [0, *pieces.ids, 2] == tokenizer.encode(text)[0]
    (again,) = pickle.loads(pickle.dumps(tokenizer)).encode_units([text], [words_of(text)])
    assert again.ids == pieces.ids


def test_units_of_one_character_do_not_share_a_piece(tmp_path):
    tokenizer = SubwordTokenizer.of_folder(folder_of(unigram(), tmp_path))
    text = "今天 天气"
    (pieces,) = tokenizer.encode_units([text], [words_of(text)])
    assert pieces.units.tolist() == [[0, 1], [1, 2], [3, 4], [4, 5]] and len(set(pieces.first)) == 4
    assert [text[end - 1] for end in pieces.ends[pieces.first]] == list("今天天气")


@pytest.mark.skipif(not REAL.is_dir(), reason="needs the checkpoints of ../shared/data, which are not here")
def test_the_ids_of_a_real_tokenizer_are_those_of_hugging_face():
    ours, texts = SubwordTokenizer.of_folder(REAL), [*TEXTS, *odd_texts(10_000)]
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(REAL / "tokenizer.json"))
    expected = theirs(texts, return_offsets_mapping=True)
    assert [e.token_ids for e in ours.encode_batch(texts)] == expected["input_ids"]
    assert ours.ids == {"pad": 1, "start": 0, "end": 2, "mask": 17859, "unk": 3}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "needs a tokenizer.json of the library tokenizers. Received: "),
        (
            '{"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}, "added_tokens": []}',
            "pad, start, end",
        ),
        ("no", "Expecting value"),
    ],
)
def test_other_files_are_refused_by_name(content, message, tmp_path):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ValueError, match=f"tokenizer.json: .*{message}"):
        SubwordTokenizer.of_folder(tmp_path)


def test_padding_with_the_end_token_is_refused_as_the_end_would_be_masked(tmp_path):
    (folder_of(bpe(), tmp_path) / "tokenizer_config.json").write_text(json.dumps({"pad_token": "</s>"}))
    with pytest.raises(ValueError, match="tokenizer.json: needs a padding token apart from start and end"):
        SubwordTokenizer.of_folder(tmp_path)


def test_words_are_split_as_bert_splits_them():
    text = "今天 is O'Brien's\u3000day…"
    assert [text[start:end] for start, end in words_of(text)] == list("今天") + [
        "is",
        "O",
        "'",
        "Brien",
        "'",
        "s",
        "day",
        "…",
    ]
    assert words_of("").shape == words_of(" \t").shape == (0, 2) and words_of("a").dtype == np.int64


def folder_with(made, folder, **files):
    for name, content in files.items():
        (folder_of(made, folder) / f"{name}.json").write_text(json.dumps(content))
    return SubwordTokenizer.of_folder(folder), transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("wanted", [None, True, False])
@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("bpe", "RobertaTokenizer", "New York"),
        ("bpe with a prefix", "RobertaTokenizerFast", "New York"),
        ("bpe with a prefix", "PreTrainedTokenizerFast", "New York"),
        ("unigram", "XLMRobertaTokenizer", "York"),  # which splits at spaces before
        ("unigram", "PreTrainedTokenizerFast", "New York"),
    ],
)
def test_the_settings_decide_on_a_space_before_a_text_as_in_hugging_face(name, kind, text, wanted, tmp_path):
    config = {**SPECIAL, "tokenizer_class": kind, **({} if wanted is None else {"add_prefix_space": wanted})}
    ours, theirs = folder_with(KINDS[name](), tmp_path, tokenizer_config=config)
    assert ours.encode(text)[0] == theirs(text)["input_ids"]
    (units,) = ours.encode_units([text], [words_of(text)])
    assert units.ids == theirs(text, add_special_tokens=False)["input_ids"]


ADDED = ["<ent>", "</ent>"]
FLAGS = {"lstrip": False, "rstrip": False, "normalized": False, "single_word": False}


@pytest.mark.parametrize("name", ["bpe", "unigram"])
@pytest.mark.parametrize("source", ["tokenizer", "added_tokens", "decoder", "additional", "map"])
def test_added_tokens_are_those_of_hugging_face_whatever_file_has_them(source, name, tmp_path):
    made = KINDS[name]()
    size = made.get_vocab_size()
    made.add_tokens(ADDED if source == "tokenizer" else [])
    decoder = {str(size + i): {"content": token, "special": i == 0, **FLAGS} for i, token in enumerate(ADDED)}
    settings = {"decoder": {"added_tokens_decoder": decoder}, "additional": {"additional_special_tokens": ADDED}}
    more = {"map": {"special_tokens_map": {**SPECIAL, "additional_special_tokens": ADDED}}}
    more |= {"added_tokens": {"added_tokens": {token: size + i for i, token in enumerate(ADDED)}}}
    config = {**SPECIAL, "tokenizer_class": "PreTrainedTokenizerFast", **settings.get(source, {})}
    ours, theirs = folder_with(made, tmp_path, tokenizer_config=config, **more.get(source, {}))
    texts = ["the <ent> man<ent>saw</ent> <b>New</b>", "a<ent", "<ent></ent>", *TEXTS]
    expected = theirs(texts, return_offsets_mapping=True)
    for encoded, ids, offsets in zip(ours.encode_batch(texts), expected["input_ids"], expected["offset_mapping"]):
        assert (encoded.token_ids, encoded.offsets.tolist()) == (ids, list(map(list, offsets)))
    assert pickle.loads(pickle.dumps(ours)).encode_batch(texts)[0].token_ids == expected["input_ids"][0]
    units = [texts[0][start:end] for start, end in ours.units_of(texts[0])]
    assert units == ["the", "<ent>", "man", "<ent>", "saw", "</ent>", "<", "b", ">", "New", "<", "/", "b", ">"]
    (pieces,) = ours.encode_units(texts[:1], [ours.units_of(texts[0])])
    assert pieces.ids.count(size) == 2 and pieces.ids.count(size + 1) == 1
