"""kcrf.corpora: what is read, what is refused, and what the built-in corpus promises."""

import json
import os
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcrf.corpora import Sentence, entity_types, load_mini, read_conll, read_entities, read_segmented, split
from kcrf.corpora.entities import _without_overlaps
from kcrf.tags import bio, bioes

BACKENDS = ["torch"]


def write(tmp_path, data):
    path = tmp_path / "text.txt"
    path.write_bytes(data)
    return path


def test_lines_are_sentences_and_blanks_separate_words(tmp_path):
    path = write(tmp_path, "\ufeff我  爱 北京\r\n\n一\u2028二\u3000三\n".encode())
    assert read_segmented(path) == [["我", "爱", "北京"], [], ["一", "二", "三"]]


def test_a_pipe_is_read_as_a_file_is(tmp_path):
    for content, expected in (("李\tB-PER\n{\tO\n", "李{"), ('{"text": "李雷", "entities": []}\n', "李雷")):
        path = tmp_path / f"pipe-{expected}"
        os.mkfifo(path)
        thread = threading.Thread(target=path.write_bytes, args=(content.encode(),), daemon=True)
        thread.start()
        assert [sentence.text for sentence in read_entities(path)] == [expected]
        thread.join()


def test_columns_may_begin_with_a_brace_and_json_that_nests_too_deep_is_told_by_its_line(tmp_path):
    path = write(tmp_path, b"{ O\nab B-PER\n} O\n")
    assert [(s.text, s.spans) for s in read_entities(path)] == [("{ ab }", [(2, 4, "PER")])]
    path = write(tmp_path, b'{"text": "a", "entities": []}\n{"text": ' + b"[" * 100_000 + b"\n")
    with pytest.raises(ValueError, match="text.txt:2: needs a JSON object on one line. Received: maximum rec"):
        read_entities(path)


def test_words_of_conllu_are_read(tmp_path):
    rows = ["# text = 我爱New York", "1\t我", "2-3\t爱吧", "2\t爱", "3\t吧", "3.1\t_", "4\tNew York", "", "", "1\t好"]
    lines = [row + "\t_" * 8 if "\t" in row else row for row in rows]
    path = write(tmp_path, "\n".join(lines).encode())
    assert read_segmented(path) == [["我", "爱", "吧", "NewYork"], ["好"]]
    with pytest.raises(ValueError, match=r":11: needs the 10 columns of CoNLL-U. Received: '我 爱'"):
        read_segmented(write(tmp_path, "\n".join([*lines, "我 爱"]).encode()))


def test_a_last_line_without_an_end_is_read(tmp_path):
    assert read_segmented(write(tmp_path, b"a b\nc")) == [["a", "b"], ["c"]]


@pytest.mark.parametrize("data", [b"", b"\n\n", b" \t\n"])
def test_a_file_without_words_is_refused_by_name(tmp_path, data):
    with pytest.raises(ValueError, match="text.txt: needs at least one line of words"):
        read_segmented(write(tmp_path, data))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("我  爱\n北京\r上海\r\n", r"text.txt:2: .* Received: a \\r inside the line"),
        ("\n充满/v  希望/n\n[中国/ns  人民/n]nt\n", "text.txt:2: needs words without .* Received: 充满/v 希望/n"),
        ("-DOCSTART- O\n\n李\tB-PER\n雷\tI-PER\n\n好 O\n", "text.txt: .* what looks like entities, which --task ner"),
        ('{"text": "李雷好", "entities": []}\n', "text.txt: .* Received: texts with entities, which --task ner"),
    ],
)
def test_gold_that_would_be_misread_is_refused_by_line(tmp_path, data, message):
    with pytest.raises(ValueError, match=message):
        read_segmented(write(tmp_path, data.encode()))


def test_word_classes_are_recognized_and_taken_off_where_asked(tmp_path):
    """CTB writes 第六_OD, PKU 充满/v with brackets around compounds. A tenth of the words may lack their class."""
    path = write(tmp_path, "第六_OD 届_M 会议_NN-SHORT\n在_P 北京_NR 。_PU\n\n开幕_VV 了_AS 好 今天_NT\n".encode())
    with pytest.raises(
        ValueError, match=r"text.txt:1: .*strip_tags=True.* 第六_OD 届_M 会议_NN-SHORT, and so 9 of 10 words"
    ):
        read_segmented(path)
    words = [["第六", "届", "会议"], ["在", "北京", "。"], [], ["开幕", "了", "好", "今天"]]
    assert read_segmented(path, strip_tags=True) == words
    path = write(tmp_path, "[中国/ns  人民/n]nt 和/c [/w ]/w 1/2/m [世界/n]nt [笑哭]/e\n".encode())
    assert read_segmented(path, strip_tags=True) == [["中国", "人民", "和", "[", "]", "1/2", "世界", "[笑哭]"]]


@pytest.mark.parametrize("text", ["snake_case a_b x\n", "km/h m/s\n和 我们\n", "A_1 B_2\n"])
def test_words_with_a_bar_or_an_underscore_are_words(tmp_path, text):
    assert read_segmented(write(tmp_path, text.encode())) == [line.split() for line in text.splitlines()]


def test_a_character_and_its_tag_a_line_are_no_sentences_of_words(tmp_path):
    with pytest.raises(ValueError, match="text.txt: .* what looks like characters and their tags"):
        read_segmented(write(tmp_path, "我 S\n喜 B\n欢 E\n\n你 S\n".encode()))


@pytest.mark.parametrize("repair", [False, True])
def test_segmented_text_is_no_columns_and_the_task_for_it_is_named(tmp_path, repair):
    path = write(tmp_path, "我 喜欢 图书馆 的 书\n你 好\n共同 创造 美好 的 新 世纪\n".encode())
    for read in (read_conll, read_entities):
        with pytest.raises(
            ValueError, match="text.txt: .* sentences of words, which --task cws and `kcrf.corpora.read_seg"
        ):
            read(path, repair=repair)


OBJECTS = [{"text": "李雷在上海", "entities": [{"start": 0, "end": 2, "label": "PER"}]}, {"text": "好", "entities": []}]


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_json_is_read_from_lines_from_an_array_and_from_objects_on_several_lines(tmp_path, indent):
    expected = [Sentence("李雷在上海", [(0, 2, "PER")]), Sentence("好", [])]
    each = "\n".join(json.dumps(item, indent=indent) for item in OBJECTS)
    array = "[\n" + each.replace("}\n{", "},\n{") + "\n]\n"
    for text in (json.dumps(OBJECTS, indent=indent), each, array):
        assert read_entities(write(tmp_path, text.encode())) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[\n{"text": "a", "entities": []},\n{"text": 3}\n]', "text.txt:3: needs .*text must be a string"),
        ('[\n{"text": "a", "entities": []},\n{"text: 3}\n]', "text.txt:3: needs JSON. Received: Invalid"),
        ('[\n{"text": "a", "entities": []},\n3\n]', "text.txt:3: needs a JSON object. Received: 3"),
        ('[\n{"text": "a", "entities": []}\n', "text.txt:2: needs one JSON array, .* Received: the end of the file"),
        ('[{"text": "a", "entities": []}]\n[{}]', r"text.txt:1: needs one JSON array, .* Received: '\[\{\}\]'"),
    ],
)
def test_errors_in_an_array_name_the_line(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_entities(write(tmp_path, text.encode()))


def test_entities_that_overlap_are_refused_and_counted_or_repaired(tmp_path):
    def line(*spans):
        entities = [{"start": start, "end": end, "label": label} for start, end, label in spans]
        return json.dumps({"text": "abcdefghij", "entities": entities}) + "\n"

    lines = [
        line((5, 6, "Y"), (0, 2, "X")),
        line((0, 9, "A"), (1, 2, "B"), (3, 4, "C")),
        line((4, 6, "D"), (2, 5, "E")),
    ]
    lines.append(line((0, 2, "F"), (1, 3, "G"), (2, 4, "H"), (2, 4, "I")))
    path = write(tmp_path, "".join(lines).encode())
    with pytest.raises(
        ValueError,
        match=r"text.txt:2: .*`repair=True` keeps .* \(1, 2, 'B'\) over \(0, 9, 'A'\), the first of 6 overlaps",
    ):
        read_entities(path)
    repaired = [sentence.spans for sentence in read_entities(path, repair=True)]
    assert repaired == [[(0, 2, "X"), (5, 6, "Y")], [(0, 9, "A")], [(2, 5, "E")], [(0, 2, "F"), (2, 4, "H")]]
    for outside in ([(3, 11, "X")], [(-2, 2, "X")], [(0, 9, "A"), (7, 11, "X")], [(-2, 2, "X"), (0, 9, "A")]):
        path = write(tmp_path, (line((0, 2, "F")) + line(*outside)).encode())
        for repair in (False, True):
            with pytest.raises(ValueError, match="text.txt:2: .* within its 10 characters"):
                read_entities(path, repair=repair)


def test_a_slash_in_a_word_is_no_word_class(tmp_path):
    assert read_segmented(write(tmp_path, b"km/h 100\n")) == [["km/h", "100"]]


def test_a_letter_at_the_end_of_one_line_is_no_tag(tmp_path):
    assert read_segmented(write(tmp_path, b"vitamin O\nvitamins\n")) == [["vitamin", "O"], ["vitamins"]]


def test_a_folder_in_place_of_a_file_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError, match="needs a file. Received: a folder"):
        read_segmented(tmp_path)


def test_a_missing_file_is_named():
    with pytest.raises(FileNotFoundError, match="nowhere.txt: no such file"):
        read_segmented("nowhere.txt")


def test_a_wrong_encoding_is_told_by_line_and_byte(tmp_path):
    path = write(tmp_path, "好 的\n我 们\n".encode() + "中国 人".encode("gbk") + b"\n")
    with pytest.raises(ValueError, match=r"text.txt:3: needs UTF-8 text. Received: byte 0xd6 at byte 1 of the line"):
        read_segmented(path)


@given(st.integers(2, 60), st.floats(0.01, 0.99), st.integers(0, 5))
def test_a_split_loses_nothing_keeps_the_order_and_repeats(count, fraction, seed):
    items = list(range(count))
    rest, held_out = split(items, fraction, seed)
    assert sorted(rest + held_out) == items and rest == sorted(rest) and held_out == sorted(held_out)
    assert len(held_out) == min(max(1, round(fraction * count)), count - 1)
    assert split(items, fraction, seed) == (rest, held_out)


@given(st.integers(2, 60), st.floats(0.01, 0.99), st.integers(0, 5), st.integers(1, 12))
def test_a_split_by_stretches_holds_out_that_many_blocks_of_equal_length(count, fraction, seed, stretches):
    items = list(range(count))
    rest, held_out = split(items, fraction, seed, stretches)
    assert sorted(rest + held_out) == items and rest == sorted(rest) and held_out == sorted(held_out)
    assert len(held_out) == min(max(1, round(fraction * count)), count - 1)
    assert split(items, fraction, seed, stretches) == (rest, held_out)
    blocks = [[]]
    for item in held_out:
        if blocks[-1] and item != blocks[-1][-1] + 1:
            blocks.append([])
        blocks[-1].append(item)
    assert len(blocks) == min(stretches, len(held_out), len(rest) + 1)
    lengths = [len(block) for block in blocks]
    assert max(lengths) - min(lengths) <= 1


def test_stretches_may_be_anywhere_and_there_must_be_one():
    """Each of the 10 places of one stretch of 3 out of 12 sentences comes up."""
    found = {split(list(range(12)), 0.25, seed, stretches=1)[1][0] for seed in range(200)}
    assert found == set(range(10))
    with pytest.raises(ValueError, match="`stretches` must be at least 1. Received: stretches=0"):
        split(["a", "b"], stretches=0)


def test_seeds_draw_different_parts_and_impossible_splits_are_refused():
    assert len({tuple(split(list(range(100)), 0.1, seed)[1]) for seed in range(5)}) == 5
    with pytest.raises(ValueError, match="two sentences or more and 0 < fraction < 1. Received: 1 sentences"):
        split([["a"]])


def test_the_built_in_corpus_has_the_promised_size_and_no_repetition():
    corpus = load_mini()
    sentences = corpus.train + corpus.valid + corpus.test
    counts = [(len(part), sum(map(len, part))) for part in (corpus.train, corpus.valid, corpus.test)]
    assert counts == [(1053, 22131), (129, 2586), (129, 2764)]
    texts = Counter("".join(words) for words in sentences)
    assert max(texts.values()) == 1
    assert max(Counter(text[:5] for text in texts).values()) <= 3
    known = {word for words in corpus.train for word in words}
    test = [word for words in corpus.test for word in words]
    assert 0.15 < sum(word not in known for word in test) / len(test) < 0.25


def test_the_built_in_corpus_has_what_real_text_has():
    corpus = load_mini()
    text = "".join(word for part in (corpus.train, corpus.valid, corpus.test) for words in part for word in words)
    for characters in ("0123456789", "０１２３４５６７８９", "ABDN", "，。；：？！、（）《》“”"):
        assert set(characters) <= set(text)
    assert len(set(text)) > 2500


def test_the_figures_in_the_corpus_readme_are_true():
    readme = (Path(__file__).parents[2] / "kcrf/corpora/data/README.md").read_text(encoding="utf-8")
    corpus = load_mini()
    for name in ("train", "valid", "test"):
        part = getattr(corpus, name)
        assert f"| `mini_{name}.txt` | {len(part):,} | {sum(map(len, part)):,} |" in readme


def conll(tmp_path, text, **options):
    return read_conll(write(tmp_path, text.encode()), **options)


def rows(tokens, tags):
    return "".join(f"{token} {tag}\n" for token, tag in zip(tokens.split(), tags.split(), strict=True)) + "\n"


def found(sentences):
    """Each sentence's entities as pairs of label and text."""
    return [[(label, sentence.text[start:end]) for start, end, label in sentence.spans] for sentence in sentences]


def test_entities_and_tokens_stand_in_characters_of_the_joined_text(tmp_path):
    text = rows("李 雷 在 上 海", "B-PER I-PER O B-LOC I-LOC") + rows("好 的", "O O")
    assert conll(tmp_path, text) == [
        Sentence("李雷在上海", [(0, 2, "PER"), (3, 5, "LOC")], [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]),
        Sentence("好的", [], [(0, 1), (1, 2)]),
    ]


def test_words_are_joined_with_a_blank_unless_they_are_chinese_or_japanese(tmp_path):
    english, chinese, mixed = conll(
        tmp_path,
        rows("Mary Ann lives in New York .", "B-PER I-PER O O B-LOC I-LOC O")
        + rows("在 北京大学 读 书", "O B-ORG O O")
        + rows("买 iPhone 15 ， 東京 の Sony", "O B-MISC I-MISC O B-LOC O B-ORG"),
    )
    assert english.text == "Mary Ann lives in New York ." and english.tokens[4:6] == [(18, 21), (22, 26)]
    assert english.spans == [(0, 8, "PER"), (18, 26, "LOC")]
    assert chinese == Sentence("在北京大学读书", [(1, 5, "ORG")], [(0, 1), (1, 5), (5, 6), (6, 7)])
    assert mixed.text == "买iPhone 15，東京のSony"
    assert mixed.spans == [(1, 10, "MISC"), (11, 13, "LOC"), (14, 18, "ORG")]


def test_places_in_the_word_are_taken_off_where_all_tokens_have_them(tmp_path):
    (sentence,) = conll(tmp_path, rows("科0 技1 912 \ufffd\ufffd0 人0 X1", "O O O O B-PER.NOM I-PER.NOM"))
    assert sentence.text == "科技9\ufffd\ufffd人X" and sentence.spans == [(5, 7, "PER.NOM")]  # 9 at place 12
    assert sentence.tokens == [(0, 1), (1, 2), (2, 3), (3, 5), (5, 6), (6, 7)]
    (kept,) = conll(tmp_path, rows("A4 B5 .", "B-X O O"))
    assert kept.text == "A4 B5 ."
    (kept,) = conll(tmp_path, rows("A4 B5", "B-X O"))  # no word begins at place 4
    assert kept.text == "A4 B5"


SPANS = [(0, 3, "PER"), (3, 5, "PER"), (6, 7, "LOC"), (7, 9, "ORG.NAM")]
SCHEMES = {
    "BIO": "B-PER I-PER I-PER B-PER I-PER O B-LOC B-ORG.NAM I-ORG.NAM O",
    "IOB1": "I-PER I-PER I-PER B-PER I-PER O I-LOC I-ORG.NAM I-ORG.NAM O",
    "BIOES": "B-PER I-PER E-PER B-PER E-PER O S-LOC B-ORG.NAM E-ORG.NAM O",
    "BILOU": "B-PER I-PER L-PER B-PER L-PER O U-LOC B-ORG.NAM L-ORG.NAM O",
    "BMES": "B-PER M-PER E-PER B-PER E-PER O S-LOC B-ORG.NAM E-ORG.NAM O",
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_is_recognized_by_its_tags(tmp_path, scheme):
    text = rows("a b c d e f g h i j", SCHEMES[scheme])
    assert [sentence.spans for sentence in conll(tmp_path, text * 2)] == [SPANS, SPANS]


placed = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.sampled_from(["A", "B-C"])), max_size=6)


@given(placed, st.integers(1, 3), st.sampled_from([bio, bioes]))
def test_any_entities_come_back_from_their_file(tmp_path_factory, gaps, tail, maker):
    spans, position = [], 0
    for gap, length, label in gaps:
        spans.append((position + gap, position + gap + length, label))
        position += gap + length
    scheme = maker(["A", "B-C"])
    tags = [scheme.labels[tag] for tag in scheme.encode(spans, position + tail)]
    path = tmp_path_factory.mktemp("conll") / "any.txt"
    path.write_text("".join(f"字\t{tag}\n" for tag in tags), encoding="utf-8")
    assert read_conll(path) == [Sentence("字" * len(tags), spans, [(i, i + 1) for i in range(len(tags))])]


def test_documents_comments_columns_blanks_and_line_ends(tmp_path):
    text = (
        "\ufeff-DOCSTART- -X- -X- O\n\n-DOCSTART- -X- -X- O\r\n# sent_id = 1\n# text = EU O\n"
        "EU NNP I-NP B-ORG  \r\n# SYM O O\n\n \t\n\n-DOCSTART-\n# NN O O\nB . O B-LOC"
    )
    first, second = conll(tmp_path, text)
    assert (first.text, first.spans, second.text, second.spans) == ("EU #", [(0, 2, "ORG")], "# B", [(2, 3, "LOC")])
    by_chunk = conll(tmp_path, text.replace("EU NNP I-NP", "EU NNP B-NP"), column=2)
    assert found(by_chunk) == [[("NP", "EU")], []]


def test_any_utf8_may_be_a_token(tmp_path):
    text = "New York\tB-LOC\n\0\tO\n \tO\n\u3000\tO\n\u2028\tO\n#\tO\n"
    (sentence,) = conll(tmp_path, text)
    assert [sentence.text[a:b] for a, b in sentence.tokens] == ["New York", "\0", " ", "\u3000", "\u2028", "#"]
    assert found([sentence]) == [[("LOC", "New York")]]
    (sentence,) = conll(tmp_path, "我 O\n  O\n O\n\u3000 O\n")
    assert sentence.text == "我  \u3000"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a B-X\nb O\nc I-X\n", 3, "tags must follow their scheme; .* Received: I-X after O, the first of 1"),
        ("a B-X\nb B-X\nc O\nd I-X\n", 4, "Received: I-X after O, the first of 1"),
        ("a O\n# B_X\n", 2, "needs O or a tag .* Received: 'B_X'"),
        ("a O\n\n#b B_X\n", 3, "needs O or a tag .* Received: 'B_X'"),
        ("a B-X\nb I-Y\n\nc I-X\n", 2, "Received: I-Y after B-X, the first of 2"),
        ("a O\nb B-X\n\nc I-X\n", 4, "Received: I-X at the start, the first of 1"),
        ("a S-X\nb B-X\n\nc O\n", 2, "Received: B-X at the end, the first of 1"),
        ("a B-X\nb M-X\nc S-X\n", 3, "Received: S-X after M-X, the first of 1"),
        ("a B-X\nb M-X\nc L-X\n", 3, "one scheme: BIO, BIOES, BILOU, BMES. Received: L-X in a file with B, M"),
        ("a O\nb X-PER\n", 2, "needs O or a tag like B-PER, with one of BIESMLU. Received: 'X-PER'"),
        ("a O\nb B\n", 2, "needs O or a tag .* Received: 'B'"),
        ("a O\nb I-\n", 2, "needs O or a tag .* Received: 'I-'"),
        ("a O\nb\n", 2, "needs 2 columns, the first a token. Received: 'b'"),
        ("a O\n\tO\n", 2, "needs 2 columns, the first a token. Received: .*O'"),
        ("a x O\nb O\nc x O\n", 2, "needs 3 columns"),
        ("a\nb\n", 1, "needs 2 columns"),
        ("a O\n\nb\rc O\n", 3, r"Received: a \\r inside the line"),
    ],
)
def test_gold_that_breaks_the_rules_is_refused_by_line(tmp_path, text, line, message):
    with pytest.raises(ValueError, match=f"text.txt:{line}: .*{message}"):
        conll(tmp_path, text)


@pytest.mark.parametrize("data", [b"a O\n\xed\xa0\xbd\xed\xb8\x80 O\n", "a O\n中 O\n".encode("gbk")])
def test_lone_surrogates_and_other_encodings_are_refused_by_line(tmp_path, data):
    with pytest.raises(ValueError, match="text.txt:2: needs UTF-8 text"):
        read_conll(write(tmp_path, data))


def test_repair_reads_as_conlleval_does_and_what_is_unreadable_as_outside(tmp_path, capsys):
    text = rows("a b c d e f g h", "I-X O B-X I-Y I-Y Z-X B I-Y") + "i\nj B-X I-X\n\tO\n"
    with pytest.raises(ValueError, match="text.txt:6: needs O or a tag .* Received: 'Z-X', the first of 3 in 10"):
        conll(tmp_path, text, repair=True)
    sentences = conll(tmp_path, text + "\n" + rows("a", "O") * 3000, repair=True)
    assert "3 of 3,010 tags are none and are read as O, in line 6, 7, 10\n" in capsys.readouterr().err
    assert [sentence.spans for sentence in sentences[:2]] == [
        [(0, 1, "X"), (2, 3, "X"), (3, 5, "Y"), (7, 8, "Y")],
        [(1, 2, "X")],
    ]
    assert [sentence.text for sentence in sentences[:2]] == ["abcdefgh", "ij"]


@pytest.mark.parametrize("odd", ["B_LOC I_LOC O", "b-LOC i-LOC o", "B:Loc I:Loc O", "B-loc I-loc O"])
def test_repair_reads_other_spellings_of_tags(tmp_path, odd):
    """A whole type must not vanish, nor become two types."""
    sentences = conll(tmp_path, rows("a b c", odd) + rows("d e", "B-LOC O") * 3, repair=True)
    assert [sentence.spans for sentence in sentences] == [[(0, 2, "LOC")], *([[(0, 1, "LOC")]] * 3)]


def test_repair_does_not_drop_a_type_whose_tags_have_no_prefix(tmp_path):
    with pytest.raises(
        ValueError, match="text.txt:1: needs O or a tag like B-PER.* Received: 'PER', the first of 3 in 9"
    ):
        conll(tmp_path, rows("a b c", "PER O B-LOC") * 3, repair=True)


@pytest.mark.parametrize("text", ["a B-PER|B-LOC\nb O\n", "a B-a#b\nb B-a\nc B-b\n", "a B-PER;LOC\nb B-PER\nc B-LOC\n"])
def test_tags_of_several_types_are_refused(tmp_path, text):
    with pytest.raises(ValueError, match="text.txt:1: needs one type for an entity. Received: '"):
        conll(tmp_path, text)
    assert conll(tmp_path, "a B-R&D\n")[0].spans == [(0, 1, "R&D")]


@pytest.mark.parametrize("text", ["", "\n\n", "-DOCSTART- O\n\n", "# only this\n"])
def test_a_file_without_a_sentence_is_refused(tmp_path, text):
    with pytest.raises(ValueError, match="text.txt: needs at least one sentence of tokens with tags"):
        conll(tmp_path, text)


@pytest.mark.parametrize("column", [0, -2, 2, -3])
def test_a_column_without_tags_is_refused(tmp_path, column):
    with pytest.raises(ValueError, match=f"`column` must be one of 2 columns, not the first. Received: {column}"):
        conll(tmp_path, "a O\n", column=column)


@pytest.mark.parametrize(
    ("spans", "tokens", "message"),
    [
        ([(0, 3, "X")], [], r"`spans` .* within its 2 characters. Received: \(0, 3\) after one that ends at 0"),
        ([(0, 2, "X"), (1, 2, "X")], [], r"Received: \(1, 2\) after one that ends at 2"),
        ([(1, 1, "X")], [], r"Received: \(1, 1\)"),
        ([], [(1, 2), (0, 1)], r"`tokens` .* Received: \(0, 1\)"),
    ],
)
def test_a_sentence_refuses_spans_that_its_text_cannot_have(spans, tokens, message):
    with pytest.raises(ValueError, match=message):
        Sentence("ab", spans, tokens)


def test_entity_types_are_sorted_and_distinct(tmp_path):
    sentences = conll(tmp_path, rows("a b c", "B-X O B-A") + rows("d e", "B-X O"))
    assert entity_types(sentences) == ("A", "X") and entity_types([Sentence("a", [])]) == ()


def by_hand(path):
    """Sentences and entities of a BIO file, counted without reading either: blank lines and where an entity begins."""
    lines = [line.split() for line in path.read_text(encoding="utf-8").split("\n")]
    tags = [line[-1] if line else "O" for line in lines]
    begins = [tag != "O" and (tag[0] == "B" or tag[1:] != before[1:]) for before, tag in zip(["O", *tags], tags)]
    ends = [bool(line) and not after for line, after in zip(lines, [*lines[1:], []])]
    return sum(ends), sum(begins), sum(map(bool, lines))


@pytest.mark.parametrize(
    ("name", "sentences", "entities"),
    [
        pytest.param("people_daily/example.train", 20864, 33992, marks=pytest.mark.slow),
        ("people_daily/example.dev", 2318, 3819),
        ("people_daily/example.test", 4636, 7707),
        ("weibo/weiboNER_2nd_conll.train", 1350, 1895),
        ("weibo/weiboNER_2nd_conll.dev", 270, 389),
        ("weibo/weiboNER_2nd_conll.test", 270, 418),
        ("wnut17/train/wnut17train.conll", 3394, 1975),
        ("wnut17/dev/emerging.dev.conll", 1009, 836),
        ("wnut17/test/emerging.test.annotated", 1287, 1079),
    ],
)
def test_real_corpora_come_whole(shared_data, name, sentences, entities):
    path = shared_data / "ner" / name
    corpus = read_conll(path, repair=name.startswith("weibo"))
    counts = len(corpus), sum(len(sentence.spans) for sentence in corpus), sum(len(s.tokens) for s in corpus)
    assert counts == by_hand(path) == (sentences, entities, counts[2])
    assert " " not in corpus[0].text if "wnut" not in name else " " in corpus[0].text


@pytest.mark.parametrize(
    ("part", "line", "tags"), [("train", 1266, "I-PER.NOM after I-PER.NAM"), ("test", 4450, "I-PER.NOM after O")]
)
def test_the_illegal_tags_of_weibo_are_found(shared_data, part, line, tags, tmp_path, capsys):
    path = shared_data / "ner" / "weibo" / f"weiboNER_2nd_conll.{part}"
    assert read_conll(path) == read_conll(path, repair=True)  # there are few of them
    assert f"tags break their scheme and are read as conlleval does, in line {line}" in capsys.readouterr().err
    lines = path.read_bytes().split(b"\n")[line - 40 : line + 20]
    with pytest.raises(ValueError, match=f"text.txt:40: .*{tags}"):
        read_conll(write(tmp_path, b"\n".join(lines)))


def test_the_built_in_entities_are_as_their_readme_says():
    readme = (Path(__file__).parents[2] / "kcrf/corpora/data/README.md").read_text(encoding="utf-8")
    corpus = load_mini("ner")
    for name in ("train", "valid", "test"):
        part = getattr(corpus, name)
        counts = Counter(label for sentence in part for *_, label in sentence.spans)
        figures = [len(part), sum(len(s.text) for s in part), *(counts[label] for label in ("PER", "LOC", "ORG"))]
        assert f"| `mini_ner_{name}.txt` | " + " | ".join(f"{figure:,}" for figure in figures) + " |" in readme
    texts = [sentence.text for part in (corpus.train, corpus.valid, corpus.test) for sentence in part]
    assert len(set(texts)) == len(texts) == 520
    known = {text for entities in found(corpus.train) for _, text in entities}
    test = [text for entities in found(corpus.test) for _, text in entities]
    assert f"{100 * sum(text not in known for text in test) / len(test):.1f} %" in readme.replace("\n", " ")


def test_an_unknown_task_has_no_corpus():
    with pytest.raises(ValueError, match=r"tasks \['cws', 'ner'\]. Received: task='pos'"):
        load_mini("pos")


@pytest.mark.parametrize("odd", ["……", "——", "..."])
def test_a_long_punctuation_mark_in_a_small_file_of_characters_changes_no_spaces(tmp_path, odd):
    text = rows("C T 检 查", "B-X I-X O O")
    (sentence, last) = conll(tmp_path, text + rows(f"好 {odd}", "O O"))
    assert sentence.text == "CT检查" and last.text == f"好{odd}"
    assert conll(tmp_path, rows("Kim lives in 上海", "O O O O"))[0].text == "Kim lives in上海"


def test_many_overlapping_entities_take_no_quadratic_time(tmp_path):
    """60,000 entities of one text: seconds before, a tenth of a second now."""
    count = 60_000
    entities = [{"start": i, "end": i + 2, "label": "X"} for i in range(count)]
    text = json.dumps({"text": "a" * (count + 1), "entities": entities, "unknown": [[i, i + 1] for i in range(count)]})
    started = time.process_time()
    (sentence,) = read_entities(write(tmp_path, text.encode()), repair=True)
    assert len(sentence.spans) == count / 2 and time.process_time() - started < 10


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 6)), max_size=12))
def test_of_overlapping_entities_the_longest_are_kept(places):
    spans = sorted({(start, start + length, "X") for start, length in places})
    kept = []  # one by one, compared with all
    for span in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        if all(span[1] <= other[0] or other[1] <= span[0] for other in kept):
            kept.append(span)
    assert _without_overlaps(spans) == sorted(kept)
