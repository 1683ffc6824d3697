"""kcrf.corpora: Standoff files of brat: entities in `x.ann`, their text in `x.txt`."""

import pytest

from kcrf.corpora import Sentence, read_classified, read_entities, read_segmented, read_tagged

BACKENDS = ["torch"]
TEXT = "李雷在😀。\n\n他去过上海\n市，也去过北京。\n"
ANNOTATIONS = """T1\tPER 0 2\t李雷
T2\tLOC 10 12;13 14\t上海 市
#1\tAnnotatorNotes T1\t两个字
R1\tOrigin Arg1:T1 Arg2:T2\t
E1\tLIFE:T1
A1\tNegation E1
*\tEquiv T1 T3
T3\tLOC 18 20\t北京
"""
READ = [
    Sentence("李雷在😀。", [(0, 2, "PER")]),
    Sentence("他去过上海\n市，也去过北京。", [(3, 7, "LOC"), (11, 13, "LOC")]),
]


def write(folder, annotations=ANNOTATIONS, text=TEXT, name="x"):
    (folder / f"{name}.txt").write_bytes(text.encode())
    path = folder / f"{name}.ann"
    path.write_text(annotations, encoding="utf-8")
    return path


def test_lines_are_sentences_and_an_entity_joins_its_lines(tmp_path):
    places = [(0, 2, "李雷"), (10, 14, "上海\n市"), (18, 20, "北京")]
    assert [TEXT[start:end] for start, end, _ in places] == [entity for *_, entity in places]
    assert read_entities(write(tmp_path)) == READ


def test_offsets_count_both_characters_of_a_line_end_of_windows(tmp_path):
    text = "李雷\r\n在上海\r\n"
    sentences = read_entities(write(tmp_path, f"T1\tLOC {text.index('上')} 7\t上海\n", text))
    assert sentences == [Sentence("李雷", []), Sentence("在上海", [(1, 3, "LOC")])]


def test_a_folder_has_many_texts_some_without_entities(tmp_path):
    write(tmp_path, "", "没有。\n", "w")
    write(tmp_path)
    assert read_entities(tmp_path) == [Sentence("没有。", []), *READ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "T9\tPER 1 3\t李雷",
            "x.ann:2: start and end .* count characters .* '雷在' at 1, 3 for '李雷', the first of 1",
        ),
        (
            "T9\tPER 0 1;3 4\t李 😀",
            "x.ann:2: needs an entity in one part",
        ),
        ("T9\tPER 0 99\t李雷", f"x.ann:2: needs an entity in one part, within the {len(TEXT)} characters"),
        ("T9\tPER\t李雷", "x.ann:2: needs an annotation of brat"),
        ("李雷 PER", "x.ann:2: needs an annotation of brat"),
        ("T9\tPER 1 3\t雷在", "x.txt:1: entities must not overlap"),
    ],
)
def test_mistakes_name_the_line(line, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_entities(write(tmp_path, f"T1\tPER 0 2\t李雷\n{line}\n"))


def test_a_text_that_is_absent_or_not_utf8_is_named(tmp_path):
    path = write(tmp_path)
    (tmp_path / "x.txt").write_bytes("李雷在上海见到了他们。\n".encode("gbk"))
    with pytest.raises(ValueError, match="x.txt:1: needs UTF-8 text"):
        read_entities(path)
    (tmp_path / "x.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"x.ann: needs its text in .*x.txt. Received: no such file"):
        read_entities(path)


def test_columns_in_a_file_of_that_name_are_columns(tmp_path):
    path = tmp_path / "x.ann"
    path.write_text("李\tB-PER\n雷\tI-PER\n", encoding="utf-8")
    assert [(s.text, s.spans) for s in read_entities(path)] == [("李雷", [(0, 2, "PER")])]


@pytest.mark.parametrize("read", [read_segmented, read_tagged, read_classified])
def test_readers_of_other_tasks_refuse_them(read, tmp_path):
    with pytest.raises(ValueError, match="x.ann: needs .* Received: entities of brat, which --task ner"):
        read(write(tmp_path, "".join(f"T{number}\tPER 0 2\t李雷\n" for number in range(1, 30))))
