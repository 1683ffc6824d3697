"""Tests of kcrf.tokenizers.characters.

The tokenizer against the real bert4keras, against a greedy tokenizer written here, and against its promises.
"""

import pickle
import re
import unicodedata
import warnings

import numpy as np
import pytest
from bert4keras_host import bert4keras_python  # noqa: F401 (a fixture)
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("tokenizers", reason="needs the package tokenizers")

from kcrf.tokenizers import Encoding, Tokenizer, load_vocab, save_vocab
from kcrf.tokenizers.characters import normalize_with_origins

BACKENDS = ["torch"]

TOKENS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "我",
    "爱",
    "北",
    "京",
    "天安门",
    "，",
    "!",
    "lo",
    "##ve",
    "##v",
]
TOKENS += ["love", "a", "##b", "##c", "e", "##e", "ab", "σ", "ς", "1", "##2", "##σ", "##ς", "i", "##京", "·"]
VOCABULARY = {token: number for number, token in enumerate(TOKENS)}
ALPHABET = "我爱北京天安门，! lovabceé1２Σσ\u0301\u0327\u3000\n\t\0\ufffd\u200d\u2028İ가[]CLSUNK#😀\ud800\x85·"

POOLS = [
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后多定行学法所民得经",
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "0123456789.,:;!?-_()[]{}<>#@$%^&*+=~`'\"/\\|",
    "ａｂｃＸＹＺ０１２３，。！？：；（）【】《》、“”‘’…—·￥",
    " \t\n\r\u3000\xa0\u2003\u2028\u2029\u1680",
    "\0\x01\x0b\x0c\x1f\x7f\x85\xad\u200b\u200d\u200e\u2060\ufeff\ufffd",
    "\u0300\u0301\u0308\u0327\u0345\u05bf\u302e\u302f\u0c56\u3099\u1161\u11a8",
    "éàüñçøßẞİıŉǰΐΣσςΆÅﬁﬃ㍿½①ⅣµſK",
    "😀👍🏽👨\u200d👩\u200d👧🇨🇳❤\ufe0f∑∞≠→★☆§©®™°",
    "한글가각힣ㄱあいアイがガｱ々〇㐀𠀀𪜀豈丽עבריתالعربيةहिन्दीไทย\uf900\ufa0e\U0002f800\U00020000\U0002b820",
    "\udfff",  # half of a surrogate pair; with its other half JSON would join the two on the way to bert4keras
]


def fuzzed_strings(count, words, seed=0):
    """Strings of mixed scripts, full-width forms, marks, emoji, control characters, any code point at all."""
    rng = np.random.default_rng(seed)
    texts = []
    for _ in range(count):
        parts = []
        for _ in range(rng.integers(0, 12)):
            pool = rng.integers(0, len(POOLS) + 3)
            if pool == len(POOLS):
                parts.append(chr(rng.choice([rng.integers(0, 0xD800), rng.integers(0xE000, 0x110000)])))
            elif pool > len(POOLS):
                parts.append(words[rng.integers(0, len(words))] + " " * int(rng.integers(0, 2)))
            else:
                parts.append("".join(rng.choice(list(POOLS[pool]), rng.integers(1, 6))))
        texts.append("".join(parts))
    return texts + ["", " ", "x" * 200, "x" * 201, "ΑΣ ΑΣΑ Σ", "[CLS] [MASK]", "##ab", "a\u0301\u0327b"]


@pytest.fixture(scope="module")
def chinese_vocab(shared_data):
    return shared_data / "checkpoints/index_only/chinese_wwm_L-12_H-768_A-12/vocab.txt"


HOOK = 'lambda text: __import__("re").findall(r"[a-z0-9]+|[\\u4e00-\\u9fff]{1,2}|.", text, 16)'  # 16 = DOTALL

BERT4KERAS = """
import numpy as np
from bert4keras.tokenizers import Tokenizer, load_vocab, save_vocab
vocab = load_vocab(inputs["vocab"])
texts = inputs["texts"]
def caught(function, *arguments, **options):
    try:
        return function(*arguments, **options)
    except Exception as error:
        return "error"
for lower in (False, True):
    tokenizer = Tokenizer(vocab, do_lower_case=lower)
    tokens = [tokenizer.tokenize(text) for text in texts]
    outputs[f"tokens {lower}"] = tokens
    outputs[f"ids {lower}"] = [tokenizer.encode(text)[0] for text in texts]
    outputs[f"rematch {lower}"] = [caught(tokenizer.rematch, text, t) for text, t in zip(texts, tokens)]
    outputs[f"decode {lower}"] = [caught(tokenizer.decode, tokenizer.encode(text)[0]) for text in texts]
    outputs[f"decode tokens {lower}"] = [caught(tokenizer.decode, None, t) for t in tokens]
    hooked = Tokenizer(vocab, do_lower_case=lower, pre_tokenize=eval(inputs["hook"]))
    outputs[f"hooked {lower}"] = [hooked.tokenize(text) for text in texts[:3000]]
outputs["pairs"] = [
    caught(tokenizer.encode, a, b, maxlen=maxlen, pattern=pattern, truncate_from=side)
    for a, b, maxlen, pattern, side in inputs["pairs"]
]
outputs["lengths"] = [caught(tokenizer.tokenize, text, maxlen=n) for text in texts[:200] for n in (2, 3, 7)]
outputs["vocab"] = vocab
outputs["simplified"] = load_vocab(inputs["vocab"], simplified=True, startswith=["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
outputs["punctuation"] = Tokenizer._cjk_punctuation()
outputs["random"] = [caught(tokenizer.decode, ids) for ids in inputs["random"]]
"""


@pytest.fixture(scope="module")
def bert4keras(chinese_vocab, bert4keras_python):  # noqa: F811
    """Inputs of the real bert4keras, and its results."""
    words = [token.removeprefix("##") for token in load_vocab(chinese_vocab) if len(token) > 1]
    texts = fuzzed_strings(10000, words)
    rng = np.random.default_rng(1)
    pairs = [
        (texts[i], None if i % 3 == 0 else texts[i + 1], int(rng.integers(3, 30)) if i % 4 else None, pattern, side)
        for i in range(600)
        for pattern, side in [(("S*E*E", "S*ES*E")[i % 2], ("right", "left", 1, -2)[i // 2 % 4])]
    ]
    random = [rng.integers(0, 21128, rng.integers(1, 20)).tolist() for _ in range(500)]
    asked = {"vocab": str(chinese_vocab), "texts": texts, "pairs": pairs, "hook": HOOK, "random": random}
    return asked, bert4keras_python(BERT4KERAS, **asked)


@pytest.mark.parametrize("lower", [False, True])
def test_tokens_and_ids_of_ten_thousand_strings_are_those_of_bert4keras(bert4keras, chinese_vocab, lower):
    asked, said = bert4keras
    tokenizer = Tokenizer(str(chinese_vocab), do_lower_case=lower)
    assert [tokenizer.tokenize(text) for text in asked["texts"]] == said[f"tokens {lower}"]
    assert [tokenizer.encode(text)[0] for text in asked["texts"]] == said[f"ids {lower}"]
    encodings = tokenizer.encode_batch(asked["texts"])
    assert [encoding.token_ids for encoding in encodings] == said[f"ids {lower}"]
    assert all(set(encoding.segment_ids) == {0} for encoding in encodings)


@pytest.mark.parametrize("lower", [False, True])
def test_pre_tokenize_gives_the_tokens_of_bert4keras(bert4keras, chinese_vocab, lower):
    asked, said = bert4keras
    tokenizer = Tokenizer(str(chinese_vocab), do_lower_case=lower, pre_tokenize=eval(HOOK))
    texts = asked["texts"][:3000]
    assert [tokenizer.tokenize(text) for text in texts] == said[f"hooked {lower}"]
    ids = [tokenizer.tokens_to_ids(tokens) for tokens in said[f"hooked {lower}"]]
    assert [encoding.token_ids for encoding in tokenizer.encode_batch(texts)] == ids


@pytest.mark.parametrize("lower", [False, True])
def test_rematch_is_that_of_bert4keras_wherever_lower_case_keeps_the_length(bert4keras, chinese_vocab, lower):
    """Elsewhere bert4keras counts in the lowered text, or fails where marks change their order; ours never does."""
    asked, said = bert4keras
    tokenizer = Tokenizer(str(chinese_vocab), do_lower_case=lower)
    compared = 0
    for text, tokens, theirs in zip(asked["texts"], said[f"tokens {lower}"], said[f"rematch {lower}"]):
        ours = tokenizer.rematch(text, tokens)
        if theirs == "error" or (lower and len(text.lower()) != len(text)):
            assert all(0 <= place < len(text) for places in ours for place in places)
        else:
            compared += 1
            assert ours == theirs, (text, tokens)
    assert compared > 9500


@pytest.mark.parametrize("lower", [False, True])
def test_decoded_text_is_that_of_bert4keras(bert4keras, chinese_vocab, lower):
    asked, said = bert4keras
    tokenizer = Tokenizer(str(chinese_vocab), do_lower_case=lower)
    for ids, tokens, text, text_of_tokens in zip(
        *(said[f"{k} {lower}"] for k in ("ids", "tokens", "decode", "decode tokens"))
    ):
        assert text in ("error", tokenizer.decode(ids))
        assert text_of_tokens in ("error", tokenizer.decode(None, tokens))
    for ids, text in zip(asked["random"], said["random"]):
        assert text in ("error", tokenizer.decode(ids))
    assert tokenizer.decode(np.array(asked["random"][0])) == tokenizer.decode(asked["random"][0])
    assert said["random"].count("error") < 25


def test_pairs_and_truncation_are_those_of_bert4keras(bert4keras, chinese_vocab):
    asked, said = bert4keras
    tokenizer = Tokenizer(str(chinese_vocab), do_lower_case=True)
    refused = 0
    for (first, second, maxlen, pattern, side), theirs in zip(asked["pairs"], said["pairs"]):
        options = {"maxlen": maxlen, "pattern": pattern, "truncate_from": side}
        if theirs == "error":
            refused += 1
            with pytest.raises(ValueError, match="must leave room"):
                tokenizer.encode(first, second, **options)
            continue
        assert [*tokenizer.encode(first, second, **options)] == theirs
        batch = tokenizer.encode_batch([first], None if second is None else [second], **options)[0]
        assert [batch.token_ids, batch.segment_ids] == theirs
        assert batch.offsets.shape == (len(batch.token_ids), 2)
    assert refused < 60
    ours = [tokenizer.tokenize(text, maxlen=n) for text in asked["texts"][:200] for n in (2, 3, 7)]
    assert ours == said["lengths"]


def test_vocabularies_are_read_as_bert4keras_reads_them(bert4keras, chinese_vocab):
    _, said = bert4keras
    assert load_vocab(chinese_vocab) == said["vocab"]
    assert [*load_vocab(chinese_vocab, simplified=True, startswith=["[PAD]", "[UNK]", "[CLS]", "[SEP]"])] == said[
        "simplified"
    ]
    assert Tokenizer._cjk_punctuation() == said["punctuation"]


# ---- Without bert4keras: a tokenizer written the long way


def greedy_tokens(text, vocabulary, lower):
    """One character after the other, longest piece first."""
    if lower:
        text = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    words = [""]
    for char in text:
        category = unicodedata.category(char)
        if category[0] == "P" or char in "$+<=>^`|~" or "\u4e00" <= char <= "\u9fff":
            words += [char, ""]
        elif category[0] == "Z" or char in "\t\n\r":
            words.append("")
        elif category not in ("Cc", "Cf") and char != "\ufffd":
            words[-1] += char
    return [token for word in words if word for token in greedy_pieces(word, vocabulary)]


def greedy_pieces(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        fits = [end for end in range(len(word), start, -1) if "##" * (start > 0) + word[start:end] in vocabulary]
        if not fits:
            return [word]
        pieces.append("##" * (start > 0) + word[start : fits[0]])
        start = fits[0]
    return pieces


texts = st.text(st.sampled_from(ALPHABET), max_size=12)


@settings(max_examples=300)
@given(texts, st.booleans())
def test_tokens_are_those_of_a_greedy_tokenizer(text, lower):
    tokenizer = Tokenizer(VOCABULARY, do_lower_case=lower, token_start=None, token_end=None)
    assert tokenizer.tokenize(text) == greedy_tokens(text, VOCABULARY, lower)


@settings(max_examples=200)
@given(st.lists(texts, max_size=6), st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_a_batch_equals_its_texts_one_by_one_and_offsets_slice_the_original(batch, lower, start, end, hooked):
    tokenizer = Tokenizer(
        VOCABULARY,
        do_lower_case=lower,
        token_start="[CLS]" if start else None,
        token_end="[SEP]" if end else None,
        pre_tokenize=(lambda text: re.findall("天安门|lo|.", text, re.DOTALL)) if hooked else None,
    )
    encodings = tokenizer.encode_batch(batch)
    assert len(encodings) == len(batch)
    for text, encoding in zip(batch, encodings):
        assert isinstance(encoding, Encoding)
        assert tokenizer.encode(text) == (encoding.token_ids, encoding.segment_ids)
        places = encoding.offsets.tolist()
        if start:
            assert places.pop(0) == [0, 0]
        if end:
            assert places.pop() == [0, 0]
        tokens = tokenizer._tokenize(text)
        assert len(tokens) == len(places)
        for token, (first, last) in zip(tokens, places):
            assert 0 <= first < last <= len(text)
            assert is_in_slice(Tokenizer.stem(token), text[first:last], lower)
        assert places == sorted(places) or lower


def is_in_slice(token, piece, lower):
    """Whether a token stands in a piece of the text, dropped characters and letters' accents aside."""
    if lower:
        piece = unicodedata.normalize("NFD", piece.lower()).replace("ς", "σ")
        piece = "".join(c for c in piece if unicodedata.category(c) != "Mn")
        token = token.replace("ς", "σ")
    return token in "".join(c for c in piece if unicodedata.category(c) not in ("Cc", "Cf") and c != "\ufffd")


@settings(max_examples=300)
@given(st.text(st.sampled_from("aÉİΣ가ﬁ\u0301\u0327\u0345\u302e\u0f71 "), max_size=8))
def test_lowered_text_is_that_of_unicode_and_every_character_knows_its_place(text):
    plain, origin = normalize_with_origins(text, lower=True, strip_accents=True)
    assert plain == unicodedata.normalize("NFD", text.lower())
    for char, place in zip(plain, range(len(plain)) if origin is None else origin):
        assert char.replace("ς", "σ") in unicodedata.normalize("NFD", text[place].lower())


def test_offsets_of_accents_ligatures_and_hangul_point_at_whole_characters_of_the_original():
    tokenizer = Tokenizer(VOCABULARY | {"가"[0]: 40, "\u1100": 41, "##\u1161": 42}, do_lower_case=True)
    text = "É a\u0301b İ 가 LOVE"
    offsets = tokenizer.encode_batch(["我", text])[1].offsets.tolist()
    assert [text[start:end] for start, end in offsets[1:-1]] == ["É", "a\u0301b", "İ", "가", "가", "LOVE"]


def test_half_a_second_batch_of_other_characters_does_not_change_the_first_ids():
    tokenizer = Tokenizer(VOCABULARY, do_lower_case=True)
    before = tokenizer.encode_batch(["我爱北京", "love，ab"])
    tokenizer.encode_batch(["".join(map(chr, range(0x4E00, 0x5200)))])
    after = tokenizer.encode_batch(["我爱北京", "love，ab"])
    assert [e.token_ids for e in before] == [e.token_ids for e in after] == [[2, 5, 6, 7, 8, 3], [2, 15, 10, 21, 3]]


def test_batches_longer_than_one_block_keep_their_order():
    tokenizer = Tokenizer(VOCABULARY)
    texts = ["我" * (i % 7) + "ab" for i in range(700)]
    assert [len(e.token_ids) for e in tokenizer.encode_batch(texts)] == [i % 7 + 3 for i in range(700)]


def test_translated_tokens_have_the_new_ids_and_still_match_the_text():
    tokenizer = Tokenizer(VOCABULARY, token_translate={"我": "a", "ab": "e"}, pre_tokenize=None)
    assert tokenizer.tokenize("我ab") == ["[CLS]", "a", "e", "[SEP]"]
    assert tokenizer.encode("我ab")[0] == tokenizer.encode_batch(["我ab"])[0].token_ids == [2, 16, 19, 3]
    assert tokenizer.rematch("我ab", ["[CLS]", "a", "e"]) == [[], [0], [1, 2]]


def test_a_translated_token_may_be_written_in_several_ways_and_as_itself():
    tokenizer = Tokenizer(VOCABULARY, token_translate={"我": "a", "爱": "a", "ab": "e"})
    text = "爱a我 ab爱"
    tokens = tokenizer.tokenize(text)
    assert tokens == ["[CLS]", "a", "a", "a", "e", "a", "[SEP]"]
    assert tokenizer.rematch(text, tokens) == [[], [0], [1], [2], [4, 5], [6], []]


def test_jieba_words_of_the_vocabulary_stay_whole():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the package itself, at its import
        jieba = pytest.importorskip("jieba", reason="needs the package jieba")
        jieba.setLogLevel("ERROR")
        jieba.initialize()
    tokenizer = Tokenizer(VOCABULARY, pre_tokenize=lambda text: jieba.lcut(text, HMM=False))
    assert tokenizer.tokenize("我爱北京天安门") == ["[CLS]", "我", "爱", "北", "京", "天安门", "[SEP]"]
    assert tokenizer.encode_batch(["我爱天安门"])[0].offsets.tolist() == [[0, 0], [0, 1], [1, 2], [2, 5], [0, 0]]


def test_a_tokenizer_survives_pickling_and_remembers_the_special_ids():
    tokenizer = pickle.loads(pickle.dumps(Tokenizer(VOCABULARY, do_lower_case=True)))
    assert tokenizer.encode_batch(["我 Love"])[0].token_ids == tokenizer.encode("我 Love")[0] == [2, 5, 15, 3]
    special = (tokenizer._token_pad_id, tokenizer._token_unk_id, tokenizer._token_mask_id)
    assert special + (tokenizer._token_start_id, tokenizer._token_end_id) == (0, 1, 4, 2, 3)
    assert tokenizer._vocab_size == len(VOCABULARY)
    assert tokenizer.ids_to_tokens([5, 13]) == ["我", "##ve"] and tokenizer.id_to_token(5) == "我"


def test_the_ids_of_a_vocabulary_file_are_its_line_numbers(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\nb \na\nb\nc\n", encoding="utf-8")
    assert load_vocab(tmp_path / "vocab.txt") == {"[PAD]": 0, "b": 3, "a": 2, "c": 4}
    save_vocab(tmp_path / "again.txt", {"z": 1, "y": 0})
    assert (tmp_path / "again.txt").read_text(encoding="utf-8") == "y\nz\n"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["again.txt", "vocab.txt"]
    save_vocab(tmp_path / "again.txt", load_vocab(tmp_path / "vocab.txt"))  # b stands twice: line 1 stays free
    assert (tmp_path / "again.txt").read_text(encoding="utf-8") == "[PAD]\n\na\nb\nc\n"


def test_a_vocabulary_without_unk_serves_texts_whose_tokens_it_has():
    tokenizer = Tokenizer({"ab": 7, "##c": 1}, token_start=None, token_end=None)
    assert tokenizer.encode("abc ab")[0] == tokenizer.encode_batch(["abc ab"])[0].token_ids == [7, 1, 7]


def test_errors_say_what_was_needed(tmp_path):
    tokenizer = Tokenizer(VOCABULARY)
    with pytest.raises(ValueError, match=r"Tokens must come from the text, in its order. Received: 'b' after 'a'"):
        tokenizer.rematch("ac", ["a", "b"])
    with pytest.raises(ValueError, match=r"`maxlen` must leave room for the special tokens. Received: maxlen=0"):
        tokenizer.encode("我爱", maxlen=0)
    with pytest.raises(ValueError, match=r"`maxlen` must leave room .* Received: maxlen=0"):
        tokenizer.encode_batch(["我爱"], maxlen=0)
    with pytest.raises(ValueError, match=r"An unknown token needs \[UNK\] in `token_dict`. Received: 'b'"):
        Tokenizer({"a": 0}, token_start=None, token_end=None).encode("b")
    with pytest.raises(ValueError, match=r"`second_texts` needs 2 texts. Received: 1 texts"):
        tokenizer.encode_batch(["a", "b"], ["a"])
    with pytest.raises(ValueError, match=r"`texts` is a list of strings. Received: '我'"):
        tokenizer.encode_batch("我")
    with pytest.raises(ValueError, match=r"`pre_tokenize` must cut the text and not change it. Received: 'x' of 'a'"):
        Tokenizer(VOCABULARY, pre_tokenize=lambda text: ["x"]).encode_batch(["a"])
    (tmp_path / "vocab.txt").write_text("a\n")
    with pytest.raises(ValueError, match=r"vocab.txt: `startswith` needs tokens of the vocabulary. Received: \[CLS\]"):
        load_vocab(tmp_path / "vocab.txt", simplified=True, startswith=["[CLS]"])


def test_without_the_tokenizers_package_the_error_names_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tokenizers.models", None)
    with pytest.raises(
        ImportError, match=r"needs the package tokenizers, which is not installed: pip install 'kcrf\[transformers\]'"
    ):
        Tokenizer(VOCABULARY)


SUBCLASSES = """
class Characters(Tokenizer):
    def _tokenize(self, text):
        return [char if char in self._token_dict else "[UNK]" for char in text if not self._is_redundant(text)]

class Letters(Tokenizer):
    def _word_piece_tokenize(self, word):
        return [word] if word in self._token_dict else list(word)

class Points(Tokenizer):
    @staticmethod
    def _is_punctuation(char):
        return char == "x"

class Plain(Tokenizer):
    pass
"""
TWINS = """
from bert4keras.tokenizers import Tokenizer
exec(inputs["classes"])
found = {}
for name in ("Characters", "Letters", "Points", "Plain"):
    tokenizer = globals()[name](dict(inputs["tokens"]), do_lower_case=True)
    found[name] = [tokenizer.encode(text) for text in inputs["texts"]]
outputs["found"] = found
outputs["redundant"] = [bool(Tokenizer._is_redundant(token)) for token in inputs["words"]]
"""


def test_subclasses_tokenize_as_those_of_bert4keras_one_by_one_and_in_batches(bert4keras_python):  # noqa: F811
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"上海下雨abcxyz.，", "##b", "##x", "abc", "a.b", "雨，"]
    tokens = {token: number for number, token in enumerate(tokens)}
    texts, words = ["上海 abx，下雨 a.b", "xyzab ABC", "", "雨，雨"], ["雨，", "ab", "##雨", "，", "a.b", ""]
    asked = {"classes": SUBCLASSES, "tokens": tokens, "texts": texts, "words": words}
    answer = bert4keras_python(TWINS, **asked)
    names = {"Tokenizer": Tokenizer}
    exec(SUBCLASSES, names)
    for name, expected in answer["found"].items():
        tokenizer = names[name](tokens, do_lower_case=True)
        encoded = [list(tokenizer.encode(text)) for text in texts]
        assert encoded == expected, name
        if name != "Characters":  # its [UNK] are special tokens
            assert [[e.token_ids, e.segment_ids] for e in tokenizer.encode_batch(texts)] == expected, name
    assert [Tokenizer._is_redundant(word) for word in words] == answer["redundant"]
    own = names["Letters"](tokens).encode_batch(["上 bax"])[0]
    assert own.offsets.tolist() == [[0, 0], [0, 1], [2, 3], [3, 4], [4, 5], [0, 0]]
    assert (
        names["Characters"](tokens).encode_batch(["上b"])[0].token_ids == names["Characters"](tokens).encode("上b")[0]
    )
