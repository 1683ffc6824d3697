"""kcrf.readers.vectors: files as gensim and as hand-written bytes have them, rows beside their definition, readers."""

import gzip
import re
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcrf.readers import CharacterReader, PieceReader, Vocabulary, WordReader, WordVectors, WordVocabulary
from kcrf.readers.vectors import read_vectors

BACKENDS = ["torch"]

WORDS = ["the", "北京", "Leeds", "café"]
TABLE = np.arange(12).reshape(4, 3).astype("float32") / 8 - 0.5


def as_text(header=True, end="\n"):
    rows = [f"{word} {' '.join(map(str, row))}{end}" for word, row in zip(WORDS, TABLE.tolist(), strict=True)]
    return (f"4 3{end}" * header + "".join(rows)).encode()


def as_binary(end=b"\n"):
    rows = [word.encode() + b" " + struct.pack("<3f", *row) + end for word, row in zip(WORDS, TABLE, strict=True)]
    return b"4 3\n" + b"".join(rows)


FORMATS = {
    "word2vec": as_text(),
    "glove": as_text(header=False),
    "lines that end in blanks": as_text(end=" \r\n"),
    "binary": as_binary(),
    "binary without line ends": as_binary(b""),
    "packed.gz": gzip.compress(as_text()),
    "binary.gz": gzip.compress(as_binary()),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_words_and_numbers(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(FORMATS[name])
    words, vectors = read_vectors(path)
    assert words == WORDS and vectors.dtype == "float32"
    np.testing.assert_array_equal(vectors, TABLE)
    words, vectors = read_vectors(path, wanted={"Leeds", "absent"}, max_words=1)
    assert words == ["the", "Leeds"]
    np.testing.assert_array_equal(vectors, TABLE[[0, 2]])


def test_files_of_gensim_are_read_as_gensim_reads_them(tmp_path):
    models = pytest.importorskip("gensim.models")
    random = np.random.default_rng(0)
    texts = [[f"词{i}" for i in random.integers(0, 40, 12)] for _ in range(30)]
    word2vec = models.Word2Vec(texts, vector_size=9, min_count=1, epochs=1, workers=1).wv
    fasttext = models.FastText(texts, vector_size=9, min_count=1, epochs=1, workers=1, bucket=50)
    word2vec.save_word2vec_format(tmp_path / "v.txt")
    word2vec.save_word2vec_format(tmp_path / "v.bin", binary=True)
    models.fasttext.save_facebook_model(fasttext, str(tmp_path / "fast.bin"))
    for name, theirs in (("v.txt", word2vec), ("v.bin", word2vec), ("fast.bin", fasttext.wv)):
        words, vectors = read_vectors(tmp_path / name)
        assert words == theirs.index_to_key
        np.testing.assert_allclose(vectors, theirs.vectors, atol=1e-6)
    whole = (tmp_path / "fast.bin").read_bytes()
    for size in (100, len(whole) // 2):
        (tmp_path / "cut.bin").write_bytes(whole[:size])
        with pytest.raises(ValueError, match="cut.bin: needs a whole binary file of fastText. Received: "):
            read_vectors(tmp_path / "cut.bin")


def test_what_is_not_needed_is_passed_over(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("the 1 2\nof 3 4\nLeeds x y\nYork 5 6\nof 7 8\n", encoding="utf-8")
    words, vectors = read_vectors(path, wanted={"York", "of"}, max_words=1)
    assert words == ["the", "of", "York"] and vectors.tolist() == [[1, 2], [3, 4], [5, 6]]
    with pytest.raises(ValueError, match="v.txt:3: needs a word and 2 numbers. Received: 'Leeds x y'"):
        read_vectors(path, wanted={"Leeds"}, max_words=1)
    path.write_text("the 1 2\n. . . 3 4\nof 5\n", encoding="utf-8")  # GloVe has words with blanks
    assert read_vectors(path, max_words=2)[0] == ["the", ". . ."]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a 1 2\nb 1\n", "bad:2: needs a word and 2 numbers. Received: 'b 1'"),
        (b"a 1 2\nb 1 2 3\n", "bad:2: needs a word and 2 numbers. Received: 'b 1 2 3'"),
        (b"2 2\na 1 2\nb 1 zwei\n", "bad:3: needs a word and 2 numbers. Received: 'b 1 zwei'"),
        (b"a 1 2\nb" + b" 0.25" * 30, "bad:2: needs a word and 2 numbers. Received: 'b 0.25 .*', a word and 30$"),
        (b"a 1 2\n\nb 1 2\n", "bad:2: needs a word and 2 numbers. Received: ''"),
        (b"a 1 nan\n", "bad:1: needs a word and 2 numbers. Received: 'a 1 nan'"),
        (b"a\n", "bad:1: needs a word and numbers. Received: 'a'"),
        (b"a\t1 2\n", r"bad:1: needs a word and 1 numbers. Received: 'a\\t1 2'"),
        (b"3 2\na 1 2\nb 1 2\n", "bad: needs 3 words, as its first line says. Received: 2"),
        (b"", "bad: needs words with their vectors. Received: a file without any"),
        (as_binary()[:-5], "bad: needs 4 words, as its first line says. Received: 3"),
        (as_binary().replace(struct.pack("<f", TABLE[2, 1]), b"\0\0\xc0\x7f"), "bad: word 3, 'Leeds', needs finite"),
    ],
)
def test_a_damaged_file_is_refused_by_line_or_word(tmp_path, content, message):
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_vectors(tmp_path / "bad")


@pytest.mark.parametrize("header", [b"", b"2 2\n"])
def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path, header):
    (tmp_path / "vectors").write_bytes(b"\xef\xbb\xbf" + header + b"a 1 2\nb 3 4\n")
    words, vectors = read_vectors(tmp_path / "vectors")
    assert words == ["a", "b"] and vectors.tolist() == [[1, 2], [3, 4]]


def test_a_packed_file_that_was_cut_off_is_refused(tmp_path):
    (tmp_path / "bad.gz").write_bytes(FORMATS["packed.gz"][:-12])
    with pytest.raises(ValueError, match="bad.gz: cannot be unpacked"):
        read_vectors(tmp_path / "bad.gz")


def by_definition(words, text):
    """For each character the rows of: itself; the words of 2 to 5 that begin, that end; those that it is inside of.

    Runs of two Latin letters or more are one word, the first row of each of their letters, and cut by no other.
    """
    rows = {word: number for number, word in enumerate(words, 1)}
    runs = [match.span() for match in re.finditer("[aA]{2,}", text)]

    def look_up(word):
        return rows.get(word, rows.get(word.lower(), 0))

    def row(start, end):
        is_cut = any(first < place < last for first, last in runs for place in (start, end))
        if is_cut or (start, end) in runs or start < 0 or end > len(text):
            return 0
        return look_up(text[start:end])

    found = []
    for i in range(len(text)):
        begin = [row(i, i + n) for n in (2, 3, 4, 5)]
        end = [row(i + 1 - n, i + 1) for n in (2, 3, 4, 5)]
        inside = [row(i - before, i - before + n) for n in (3, 4, 5) for before in range(1, n - 1)]
        whole = [look_up(text[first:last]) for first, last in runs if first <= i < last]
        found.append([*(whole or [row(i, i + 1)]), begin, end, inside])
    return found


@given(st.lists(st.text("天地aA", min_size=1, max_size=6), unique=True, max_size=12), st.text("天地aA", max_size=8))
def test_words_around_a_character_are_those_that_begin_or_end_at_it_or_pass_through_it(words, text):
    vectors = WordVectors(words, np.zeros((len(words), 1)))
    rows = vectors.encode(text, [(i, i + 1) for i in range(len(text))])
    assert rows.shape == (len(text), 15)
    for row, (single, begin, end, inside) in zip(rows, by_definition(words, text), strict=True):
        groups = [row[group].tolist() for group in vectors.groups]
        assert groups[:3] == [[single], begin, end]
        assert sorted(groups[3]) == sorted(inside)  # their order among each other does not matter


def test_a_word_does_not_reach_over_a_gap():
    vectors = WordVectors(["天地", "天", "天 地"], np.zeros((3, 1)))
    assert vectors.encode("天地 天 地", [(0, 1), (1, 2), (3, 4), (5, 6)])[:, :2].tolist() == [
        [2, 1],
        [0, 0],
        [2, 0],
        [0, 0],
    ]


def test_words_between_blanks_are_whole_where_units_are_characters(tmp_path):
    path, text = tmp_path / "v.txt", "the Children ate at 上海"
    path.write_text("children 1\nthe 2\nhe 3\nat 4\nhild 5\n上海 6\nchi 7\n", encoding="utf-8")
    units = np.array([[i, i + 1] for i, character in enumerate(text) if character != " "])
    vectors = WordVectors.of_file(path, [text], [units], max_words=0)
    assert vectors.words == ["children", "the", "at", "上海"]
    rows = vectors.encode(text, units)
    assert rows[:, 0].tolist() == [2] * 3 + [1] * 8 + [0] * 3 + [3] * 2 + [0] * 2
    assert np.flatnonzero(rows[:, 1:].any(axis=1)).tolist() == [16, 17]


def test_tokens_are_looked_up_as_written_then_in_lower_case_and_characters_with_their_words(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("of 1 1\nthe 2 2\nleeds 3 3\nLeeds 4 4\n北京 5 5\nyork 6 6\n大学 7 7\n", encoding="utf-8")
    text, units = "The Leeds LEEDS", np.array([[0, 3], [4, 9], [10, 15]])
    vectors = WordVectors.of_file(path, [text], [units], max_words=1)
    assert vectors.words == ["of", "the", "leeds", "Leeds"] and vectors.places == 1  # of 7; the first, and what is used
    assert vectors.table[vectors.encode(text, units)[:, 0], 0].tolist() == [2, 4, 3]
    assert vectors.coverage([text, "x"], [units, [(0, 1)]]) == 0.75
    characters = [np.array([[i, i + 1] for i in range(3)])]
    assert WordVectors.of_file(path, ["在北京"], characters, max_words=0).words == ["北京"]
    with pytest.raises(ValueError, match="v.txt: needs words of the training text. Received: none, but 'of' and"):
        WordVectors.of_file(path, ["在上海"], characters, max_words=2)


def test_vectors_are_the_same_after_a_round_trip_through_arrays():
    vectors = WordVectors(["北京", "\ud800"], np.eye(2), longest=1)
    back = WordVectors.from_arrays(vectors.arrays())
    assert (back.words, back.longest, back.places) == (vectors.words, 1, 1)
    np.testing.assert_array_equal(back.table, [[0, 0], [1, 0], [0, 1]])
    with pytest.raises(ValueError, match="1 vectors of 2 words"):
        WordVectors.from_arrays({**vectors.arrays(), "vectors": np.eye(1)})


def with_vectors(reader, words, longest):
    reader.vectors = WordVectors(words, np.zeros((len(words), 1)), longest)
    return reader


def test_readers_have_the_rows_of_their_units():
    characters = with_vectors(CharacterReader(Vocabulary.of(["北京"])), ["北京"], 5)
    (reading,) = characters.read(["在北京。" * 60])
    whole = characters.vectors.encode("在北京。" * 60, reading.units)
    assert len(reading.windows) > 1 and whole.any()
    for window in reading.windows:
        np.testing.assert_array_equal(window.inputs["vectors"], whole[window.first :][: window.length])
    (pair,) = characters.read_texts([("北京", "在北京")], 8)
    assert pair.windows[0].inputs["vectors"][:, 1].tolist() == [1, 0, 0, 0, 1, 0]
    words = with_vectors(WordReader(WordVocabulary.of(["in"])), ["in", "leeds"], 1)
    readings = words.read(["in Leeds", "Leeds .", ""])
    assert [r.windows[0].inputs["vectors"].tolist() for r in readings[:2]] == [[[1], [2]], [[2], [0]]]
    assert words.read([]) == []


def test_all_pieces_of_a_word_of_a_bert_have_its_row_and_marks_have_none():
    vocabulary = {
        token: i for i, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "in", "lee", "##ds", "北", "京"])
    }
    config = {"vocab_size": 9, "max_position_embeddings": 64, "num_hidden_layers": 1}
    reader = with_vectors(PieceReader(config, vocabulary, lower_case=True), ["in", "leeds", "北京"], 5)
    window = reader.read(["in Leeds 北京"])[0].windows[0]
    assert [vocabulary_token(vocabulary, i) for i in window.inputs["Input-Token"]][2:5] == ["lee", "##ds", "北"]
    assert window.inputs["vectors"][:, 0].tolist() == [0, 1, 2, 2, 0, 0, 0]
    assert window.inputs["vectors"][:, 1].tolist() == [0, 0, 0, 0, 3, 0, 0]
    assert window.inputs["vectors"][:, 5].tolist() == [0, 0, 0, 0, 0, 3, 0]
    long = reader.read(["in Leeds " * 40])[0].windows
    assert len(long) > 1 and all(
        w.inputs["vectors"][1:-1, 0].all() and not w.inputs["vectors"][[0, -1]].any() for w in long
    )
    single, pair = reader.read_texts([("in Leeds", None), ("in Leeds", "Leeds in")], 9)
    assert single.windows[0].inputs["vectors"][:, 0].tolist() == [0, 1, 2, 2, 0]
    assert pair.windows[0].inputs["vectors"][:, 0].tolist() == [0, 1, 2, 2, 0, 2, 2, 1, 0]
    (cut,) = reader.read_texts([("in Leeds", "Leeds")], 6)
    assert cut.windows[0].inputs["vectors"][:, 0].tolist() == [0, 1, 2, 0, 2, 0]


def vocabulary_token(vocabulary, number):
    return next(token for token, own in vocabulary.items() if own == number)


def test_a_small_file_cannot_fill_memory(tmp_path):
    """A line of 64 MB in a file of 64 kB; a header whose numbers would fill gigabytes, or are no machine integers."""
    (tmp_path / "line.vec.gz").write_bytes(gzip.compress(b"a" + bytes(1 << 26)))
    with pytest.raises(ValueError, match="line.vec.gz:1: needs lines of fewer than 4,194,304 bytes"):
        read_vectors(tmp_path / "line.vec.gz")
    for width in ("100000000", "9" * 30):
        (tmp_path / "a.vec").write_text(f"1 {width}\na 1 2\n")
        with pytest.raises(ValueError, match="a.vec:1: needs at most 65,536 numbers a word. Received: "):
            read_vectors(tmp_path / "a.vec")
