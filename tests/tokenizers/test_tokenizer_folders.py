"""Tests of kcrf.tokenizers.vocabularies.

The settings of a tokenizer in a folder give the tokens of Hugging Face's library, or are refused by name.
"""

import json
from itertools import product

import numpy as np
import pytest
from tokenizers_of_tests import bpe, folder_of, unigram, with_template

from kcrf.readers import PieceReader, encoder_reader
from kcrf.readers.padding import training_batch
from kcrf.tokenizers import Tokenizer
from kcrf.tokenizers.vocabularies import read_tokenizer_settings, read_vocabulary, vocabulary_file

BACKENDS = ["torch"]

LETTERS = [*"aeruftokyABÉÜéüñçıİßß", "u\u0308", "e\u0301", "東", "京", "天", "の", "カ", "ガ", "한", "é", "ǆ"]
SIGNS = [*" 　,.!?。，、-_[]#'\t", "\u200b", "\ufffd", "\u00ad"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def texts(count=400, seed=0):
    rng = np.random.default_rng(seed)
    signs = LETTERS * 3 + SIGNS
    yield from ("für 東京 Tokyo É", "東京都is 天 FÜR", "")
    for _ in range(count):
        yield "".join(signs[i] for i in rng.integers(0, len(signs), rng.integers(1, 25)))


def vocabulary():
    """Every sign as the start and as the inside of a word, in both cases, with and without its accents."""
    import unicodedata

    forms = {c for letter in LETTERS for form in (letter, letter.lower(), letter.upper()) for c in form}
    forms |= {part for form in forms for part in unicodedata.normalize("NFD", form)} | set("abcdefghijklmnopqrstuvwxyz")
    forms = sorted(forms | {sign for sign in SIGNS if sign.strip()})
    return [*SPECIAL, *forms, *(f"##{form}" for form in forms), "fur", "für", "fü", "東京", "##京都", "tokyo", "Tokyo"]


def write_bert(folder, entries=None):
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in vocabulary()), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "num_hidden_layers": 1, "hidden_size": 4}))
    if entries is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(entries))


def theirs_in(folder):
    transformers = pytest.importorskip("transformers", reason="needs Hugging Face's transformers, which is not here")
    return transformers.BertTokenizer.from_pretrained(folder)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("lower, strip, split", list(product([True, False], [None, True, False], [True, False])))
def test_tokens_and_offsets_are_those_of_hugging_face_under_every_setting(lower, strip, split, is_whole, tmp_path):
    entries = {"do_lower_case": lower, "strip_accents": strip, "tokenize_chinese_chars": split}
    write_bert(tmp_path, {"tokenizer_class": "BertTokenizer", **entries})
    theirs = theirs_in(tmp_path)
    if is_whole:  # what they save has tokenizer.json alone
        (tmp_path / "vocab.txt").unlink()
        (tmp_path / "tokenizer_config.json").unlink()
        theirs.save_pretrained(tmp_path)
        (tmp_path / "tokenizer_config.json").unlink()
    reader = encoder_reader(tmp_path)
    again = PieceReader.from_config(json.loads(json.dumps(reader.get_config())), reader.vocabulary)
    tokenizer = Tokenizer(again.vocabulary, again.lower_case, token_start=None, token_end=None, **again.splitting)
    for text, ours in zip(texts(), tokenizer.encode_batch(list(texts())), strict=True):
        expected = theirs(text, add_special_tokens=False, return_offsets_mapping=True)
        assert ours.token_ids == expected["input_ids"], text
        assert tokenizer.tokens_to_ids(tokenizer.tokenize(text)) == ours.token_ids, text
        assert [tuple(pair) for pair in ours.offsets.tolist()] == list(map(tuple, expected["offset_mapping"])), text


def test_the_settings_are_followed_character_by_character_too(tmp_path):
    class Own(Tokenizer):
        def _is_punctuation(self, char):
            return super()._is_punctuation(char)

    token_dict = {token: number for number, token in enumerate(vocabulary())}
    options = {"do_lower_case": True, "strip_accents": False, "tokenize_chinese_chars": False}
    for text in texts(50):
        assert Own(token_dict, **options).tokenize(text) == Tokenizer(token_dict, **options).tokenize(text)
    assert Tokenizer(token_dict, **options).tokenize("für 東京") == ["[CLS]", "für", "東京", "[SEP]"]


def test_settings_that_the_file_lacks_are_those_of_bert(tmp_path):
    write_bert(tmp_path)
    assert read_tokenizer_settings(tmp_path) == (None, None, None)
    assert encoder_reader(tmp_path).get_config().keys() & {"strip_accents", "tokenize_chinese_chars"} == set()
    entries = {
        "do_lower_case": True,
        "model_max_length": 512,
        "pad_token": "[PAD]",
        "never_split": None,
        "init_inputs": [],
    }
    entries["added_tokens_decoder"] = {"4": {"content": "[MASK]", "special": True}}
    write_bert(tmp_path, {**entries, "cls_token": {"content": "[CLS]"}, "tokenizer_class": "BertTokenizerFast"})
    assert read_tokenizer_settings(tmp_path) == (True, None, None)


@pytest.mark.parametrize(
    "entries, text",
    [
        ({"tokenizer_class": "BertJapaneseTokenizer"}, "tokenizer_class must be one of .*'BertJapaneseTokenizer'"),
        ({"unk_token": "<unk>"}, r"unk_token must be '\[UNK\]'. Received: '<unk>'"),
        ({"do_basic_tokenize": False}, "do_basic_tokenize must be True. Received: False"),
        ({"word_tokenizer_type": "mecab"}, "word_tokenizer_type must be 'basic'. Received: 'mecab'"),
        ({"subword_tokenizer_type": "character"}, "subword_tokenizer_type must be 'wordpiece'. Received: 'character'"),
        ({"clean_text": False}, "clean_text must be True. Received: False"),
        ({"never_split": ["C++"]}, r"never_split must have no tokens besides .* Received: \['C\+\+'\]"),
        ({"additional_special_tokens": ["[E]"]}, r"additional_special_tokens must .* Received: \['\[E\]'\]"),
        ({"added_tokens_decoder": {"30": {"content": "<e>"}}}, r"added_tokens_decoder must .* Received: \['<e>'\]"),
        ({"strip_accents": "no"}, "strip_accents must be true, false or null. Received: 'no'"),
    ],
)
def test_settings_that_are_not_supported_are_refused_by_name(entries, text, tmp_path):
    write_bert(tmp_path, entries)
    with pytest.raises(ValueError, match=f"tokenizer_config.json: {text}"):
        encoder_reader(tmp_path)


@pytest.mark.parametrize(
    "changes, text",
    [
        ({"model": {"type": "BPE"}}, "model must be a WordPiece, as BERT's tokenizer has it. Received: 'BPE'"),
        ({"normalizer": {"type": "NFKC"}}, "normalizer must be a BertNormalizer, .* Received: 'NFKC'"),
        ({"pre_tokenizer": None}, "pre_tokenizer must be a BertPreTokenizer, .* Received: None"),
        ({"added_tokens": [{"content": "<e>"}]}, r"added_tokens must have no tokens besides .* Received: \['<e>'\]"),
    ],
)
def test_a_tokenizer_of_another_kind_is_refused(changes, text, tmp_path):
    parts = {"normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer", "model": "WordPiece"}
    whole = {name: {"type": kind} for name, kind in parts.items()} | changes
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    with pytest.raises(ValueError, match=f"tokenizer.json: {text}"):
        read_vocabulary(vocabulary_file(tmp_path))


def test_a_vocabulary_that_is_not_utf_8_is_refused_and_a_byte_order_mark_skipped(tmp_path):
    write_bert(tmp_path)
    path = tmp_path / "vocab.txt"
    expected = read_vocabulary(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_vocabulary(path) == expected and encoder_reader(tmp_path).vocabulary == expected
    path.write_bytes("\n".join([*SPECIAL, "今", "天"]).encode("gbk"))
    with pytest.raises(ValueError, match=r"vocab.txt:6: a vocabulary needs UTF-8 text. Received: b'"):
        read_vocabulary(path)


def test_a_token_with_two_ids_in_two_files_is_refused_and_a_token_of_one_file_is_not(tmp_path):
    write_bert(tmp_path)
    kinds = {"normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer", "model": "WordPiece"}
    whole = {name: {"type": kind} for name, kind in kinds.items()}
    whole["model"]["vocab"] = {token: number for number, token in enumerate(vocabulary())}
    whole["model"]["vocab"]["[unused1]"] = whole["model"]["vocab"].pop("Tokyo")  # whose line was written anew
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    assert encoder_reader(tmp_path).vocabulary["Tokyo"] == len(vocabulary()) - 1
    whole["model"]["vocab"] |= {"tokyo": 5}
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    with pytest.raises(ValueError, match=r"vocab.txt: needs the ids of tokenizer.json; .* Received: other ids"):
        encoder_reader(tmp_path)


def of_mpnet():
    """WordPiece with the special tokens of XLM-R."""
    import tokenizers

    vocab = {token: i for i, token in enumerate(["<s>", "<pad>", "</s>", "<mask>", "[UNK]", "a", "b", "##b", "c"])}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocab, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = (
        tokenizers.normalizers.BertNormalizer(),
        tokenizers.pre_tokenizers.BertPreTokenizer(),
    )
    made.add_special_tokens(["<s>", "<pad>", "</s>", "<mask>", "[UNK]"])
    return with_template(made, "<s> $A </s> </s> $B </s>")


@pytest.mark.parametrize("has_kind", [True, False])
@pytest.mark.parametrize("make", [bpe, unigram, of_mpnet])
def test_other_special_tokens_and_old_files_that_do_not_name_the_kind_are_read(make, has_kind, tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs Hugging Face's transformers, which is not here")
    write_bert(folder_of(make(), tmp_path))
    whole = json.loads((tmp_path / "tokenizer.json").read_text())
    if not has_kind:
        del whole["model"]["type"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    reader, text = encoder_reader(tmp_path), "AB, c  aB"
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    assert reader.read_texts([(text, None)], 64)[0].windows[0].inputs["Input-Token"] == theirs(text)["input_ids"]
    (reading,) = reader.read([text])
    assert [text[start:end] for start, end in reading.units] == ["AB", ",", "c", "aB"]
    assert reader.config["masked_token_id"] == 1


def test_an_old_file_of_bert_does_not_name_the_kind(tmp_path):
    write_bert(tmp_path)
    theirs_in(tmp_path).save_pretrained(tmp_path)
    whole = json.loads((tmp_path / "tokenizer.json").read_text())
    del whole["model"]["type"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole))
    assert isinstance(encoder_reader(tmp_path), PieceReader)
    (tmp_path / "vocab.txt").unlink()
    assert encoder_reader(tmp_path).vocabulary == whole["model"]["vocab"]


def test_padding_may_be_any_token(tmp_path):
    write_bert(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL[1:], "a", SPECIAL[0]]))
    reader = encoder_reader(tmp_path)
    assert reader.config["masked_token_id"] == 5
    inputs, _ = training_batch([(r.windows[0].inputs, [0] * 9) for r in reader.read(["a", "a a a a a a a"])])
    assert inputs["Input-Token"][0].tolist() == [1, 4, 2, *[5] * 13]
