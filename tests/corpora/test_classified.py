"""Tests of kcrf.corpora.classified, kcrf.corpora.tables.

Texts with labels: tables with tabs or commas, JSON lines, what is refused by file and line; samples by label.
"""

import json
from collections import Counter

import numpy as np
import pytest

from kcrf.commands import main
from kcrf.corpora import Example, read_classified, sample
from kcrf.corpora.classified import have_decimals, sorted_labels
from kcrf.corpora.tables import iterate_texts

BACKENDS = ["torch"]


def written(tmp_path, text, name="data.tsv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


READ = {
    "two columns": ("很好\tpos\n不好\tneg\n", None, [("很好", "pos"), ("不好", "neg")]),
    "three columns": ("a b\tc\tyes\n", None, [("a b", "c", "yes")]),
    "a header": ("label\tid\ttext\n1\t7\tfine\n", None, [("fine", "1")]),
    "a header of pairs": ("index\tsentence1\tsentence2\tlabel\r\n0\ta\tb\tyes\r\n", None, [("a", "b", "yes")]),
    "columns by number": ("gj04\t1\t\tIt is.\ngj04\t0\t*\tIt be.\n", [3, 1], [("It is.", "1"), ("It be.", "0")]),
    "further columns by number": (
        "x\t2.5\ta\tb\tmore\nx\t1\tc\td\n",
        ["2", "3", "1"],
        [("a", "b", "2.5"), ("c", "d", "1")],
    ),
    "columns by name": ("Quality\t#1\t#2\n1\ta\tb\n", ["#1", "#2", "Quality"], [("a", "b", "1")]),
    "quotes between tabs": ('a "b\tx\n"c" d\ty\n', None, [('a "b', "x"), ('"c" d', "y")]),
    "commas": ('text,label\n"a, ""b""",x\n"two\nlines",y\n', None, [('a, "b"', "x"), ("two\nlines", "y")]),
    "a byte order mark and blank lines": ("\ufefftext\tlabel\n\na\tx\n \n", None, [("a", "x")]),
    "JSON": ('{"text": "a", "label": "x"}\n\n{"label": 1, "text": "b"}\n', None, [("a", "x"), ("b", "1")]),
    "JSON of pairs": ('{"text": "a", "text_b": "b", "label": 2.5, "id": 7}\n', None, [("a", "b", "2.5")]),
    "JSON with blanks": ('{ "text": "a, b", "label": "x"}\n', None, [("a, b", "x")]),
    "a question and a sentence": ("index\tquestion\tsentence\tlabel\n0\ta?\tb.\tyes\n", None, [("a?", "b.", "yes")]),
    "a premise and a question": ("label,premise,question\nyes,a,b?\n", None, [("a", "b?", "yes")]),
    "a sentence alone": ("sentence\tlabel\na\tx\n", None, [("a", "x")]),
    "numbers of columns that have names": ("index\ts1\tlabel\n0\ta\tx\n1\tb\ty\n", [1, 2], [("a", "x"), ("b", "y")]),
    "names of SNLI": ("gold_label\tsentence1\tsentence2\nx\ta\tb\n", None, [("a", "b", "x")]),
    "names of QQP": ("id\tquestion1\tquestion2\tis_duplicate\n7\ta\tb\t1\n", None, [("a", "b", "1")]),
    "two columns, the second is a label": ("tweet\tlabel\na\tx\n", None, [("a", "x")]),
    "a label that is a label": ("a\tlabel\nb\tlabel\n", None, [("a", "label"), ("b", "label")]),
    "JSON without a second text": ('{"text": "a", "text_b": null, "label": "x"}\n', None, [("a", "x")]),
    "JSON by usual names": ('{"sentence1": "a", "sentence2": "b", "label": 1, "idx": 0}\n', None, [("a", "b", "1")]),
    "JSON by name": ('{"q": "a", "y": true}\n', ["q", "y"], [("a", "true")]),
}


@pytest.mark.parametrize("case", READ)
def test_tables_and_json_lines_are_read(case, tmp_path):
    text, fields, expected = READ[case]
    found = read_classified(written(tmp_path, text), fields)
    assert [(*(part for part in e.texts if part is not None), e.label) for e in found] == expected


REFUSED = {
    "no such column": (
        "text\tlabel\na\tx\n",
        ["review", "label"],
        "data.tsv:1: needs a column review. Received: text, label",
    ),
    "a column twice": ("text,label,label\na,x,y\n", None, "data.tsv:1: needs one column label. Received: 2 of that"),
    "a chosen column twice": ("q,y,q\na,x,b\n", ["q", "y"], "data.tsv:1: needs one column q. Received: 2 of that name"),
    "too few columns": ("a\tx\n\nb\n", None, "data.tsv:3: needs 2 columns, as .* Received: 1"),
    "another number than the header": (
        "text\tlabel\na\tb\tx\n",
        None,
        "data.tsv:2: needs 2 columns, as .* Received: 3",
    ),
    "many columns without names": ("a\tb\tc\td\n", None, "data.tsv:1: needs the columns text and label, or `fields`"),
    "commas of a text without quotes": ("a,x\nb, c,y\n", None, "data.tsv:2: needs 2 columns, as .* Received: 3"),
    "a header without a label": (
        "review,verdict\na,x\n",
        None,
        "data.tsv:1: needs the columns text and label, .*: review, verdict",
    ),
    "a quote that is not closed": ('text,label\n"a\n, x\nb,x\n', None, "data.tsv:2: needs .* Received: unexpected end"),
    "a quote that ends in another line": (
        'text,label\nc,x\n"a, x\n"b", x\n',
        None,
        "data.tsv:3: needs comma-separated values, quotes within quotes doubled, .* Received: ',' expected after",
    ),
    "a field that is too long": (
        f'text,label\n"{"a" * 140_000}",x\n',
        None,
        "data.tsv:2: needs .* at most 131,072 .* Received: field larger than field limit",
    ),
    "JSON with NaN": ('{"text": "a", "label": NaN}\n', None, "data.tsv:1: texts must be strings, a label"),
    "a JSON array": (
        '[{"text": "a", "label": "x"},\n',
        None,
        "data.tsv:1: needs one JSON array, which ends in ]. Received: the end",
    ),
    "a JSON array over lines": ('[\n{"text": "a", "label": "x"},\n', None, "data.tsv:2: needs one JSON array, which"),
    "an empty text": ("a\tx\n \ty\n", None, "data.tsv:2: `text` must not be empty. Received: ' '"),
    "an empty second text": ("a\t\tx\n", None, "data.tsv:1: `text_b` must not be empty"),
    "an empty label": ("a\tx\nb\t\n", None, "data.tsv:2: `label` must be text .* Received: ''"),
    "after a quoted line end": ('"a\nb",x\nc\n', None, "data.tsv:3: needs 2 columns, as .* Received: 1"),
    "nothing": ("\n", None, "data.tsv: needs at least one text with its label"),
    "only a header": ("text\tlabel\n", None, "data.tsv: needs at least one text with its label"),
    "broken JSON": ('{"text": "a", "label": "x"}\n{"text"\n', None, "data.tsv:2: needs a JSON object on one line"),
    "JSON without a label": ('{"text": "a"}\n', None, "data.tsv:1: needs label, or `fields`. Received: text"),
    "JSON of a list": ('{"text": "a", "label": 1}\n[]\n', None, "data.tsv:2: needs a JSON object"),
    "JSON with a text that is none": ('{"text": 3, "label": "x"}\n', None, "data.tsv:1: texts must be strings"),
    "labels first": (
        "".join(f"{'ab'[i % 2]}\ttext {i}\n" for i in range(12)),
        None,
        "data.tsv: needs a text, maybe a second text, and a label .* 12 different ones in 12 lines; `fields` 1,0",
    ),
    "labels before two texts": (
        "".join(f"{i % 2}\ttitle {i}\ttext {i}\n" for i in range(12)),
        None,
        "12 different ones in 12 lines; `fields` 1,2,0 may be right",
    ),
    "numbers of lines first": (
        "".join(f"{i}\ttext {i}\t{'ab'[i % 2]}\n" for i in range(12)),
        None,
        "Received: a different number in the first column of each line; `fields` 1,2 may be right",
    ),
    "one field": ("a\tx\n", ["text"], "`fields` must be two or three different"),
    "a field twice": ("a\tx\n", ["0", "0"], "`fields` must be two or three different"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_by_file_and_line(case, tmp_path):
    text, fields, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        read_classified(written(tmp_path, text), fields)


def test_columns_in_an_unusual_order_are_read_by_their_numbers(tmp_path):
    rows = [("ab"[i % 2], f"text {i}") for i in range(12)]
    found = read_classified(written(tmp_path, "".join(f"{label}\t{text}\n" for label, text in rows)), [1, 0])
    assert [(example.label, example.text) for example in found] == rows


def test_numbers_with_decimals_may_all_be_different(tmp_path):
    path = written(tmp_path, "".join(f"text {i % 3}\t{i}.5\n" for i in range(12)))
    assert [example.label for example in read_classified(path)] == [f"{i}.5" for i in range(12)]


def test_an_example_says_where_it_was_read_but_is_equal_without_that(tmp_path):
    example = read_classified(written(tmp_path, "text,label\n\na,x\n"))[0]
    assert example.source.endswith("data.tsv:3") and example == Example("a", "x")
    with pytest.raises(ValueError, match="^`label` must be text that can be printed"):
        Example("a", "x\ny")


@pytest.mark.parametrize("count", [1, 3, 10, 17, 40, 99])
def test_a_sample_has_each_label_in_proportion(count):
    labels = ["x"] * 60 + ["y"] * 30 + ["z"] * 10
    items = list(enumerate(labels))
    drawn, rest = sample(items, count, seed=count, labels=labels)
    counts = Counter(label for _, label in drawn)
    assert sorted(drawn + rest) == items and len(drawn) == count and drawn == sorted(drawn)
    assert all(abs(counts[label] - count * share) <= 1 for label, share in (("x", 0.6), ("y", 0.3), ("z", 0.1)))
    assert count < 3 or set(counts) == {"x", "y", "z"}
    assert sample(items, count, seed=count, labels=labels) == (drawn, rest)
    assert count in (1, 99) or sample(items, count, seed=count + 1, labels=labels) != (drawn, rest)


def test_what_does_not_divide_evenly_goes_to_other_labels_with_each_seed():
    """4.5 of the 5 examples of each label are to be drawn: the labels that get 4 are not the same ten for all seeds."""
    labels = [number // 5 for number in range(100)]
    rest = [{label for label in sample(labels, 90, seed, labels)[1]} for seed in range(12)]
    assert all(len(held_out) == 10 for held_out in rest) and set().union(*rest) == set(range(20))


def test_a_rare_label_is_drawn_and_more_than_all_is_all():
    labels = ["x"] * 998 + ["y", "z"]
    assert {label for label in sample(labels, 5, labels=labels)[0]} == {"x", "y", "z"}
    assert sample(["a", "b"], 9) == (["a", "b"], [])
    with pytest.raises(ValueError, match="`count` must be at least 1"):
        sample(["a"], 0)


def test_numbers_with_decimals_are_no_classes_and_labels_have_an_order():
    assert sorted_labels({"11", "1_1", "2"}) == ("11", "1_1", "2")  # codes: Python would take 1_1 for a number
    assert have_decimals(["5.000", "3.8"]) and not have_decimals(["1.0", "0.0"]) and not have_decimals(["nan", "2.5"])
    assert sorted_labels(["10", "2", "-1"]) == ("-1", "2", "10") and sorted_labels({"b", "a"}) == ("a", "b")


WITHOUT_LABELS = {
    "lines": ("text", None, False, ["a\tb", "", '"c"'], ["a\tb", "", '"c"']),
    "lines of pairs": ("text", None, True, ["a\tb", "\tc"], [("a", "b"), ("", "c")]),
    "a table between tabs": ("table", None, False, ["id\tSentence", '1\t"a', "", "2\tb"], ['"a', "b"]),
    "a table behind blank lines": ("table", None, False, ["", " ", "id\ttext", '1\t"a, b'], ['"a, b']),
    "a table between commas": (
        "table",
        None,
        False,
        ["text,id", '"a, b",1', '"two', 'lines",2'],
        ["a, b", "two\nlines"],
    ),
    "pairs by name": ("table", ["q", "p"], True, ["p,q", "a,b"], [("b", "a")]),
    "usual names of pairs": ("table", None, True, ["sentence2,id,sentence1", "b,1,a"], [("a", "b")]),
    "by number": ("table", [1], False, ["1,text", "2,b"], ["text", "b"]),
    "JSON": ("json", None, False, ['{"text": "a", "id": 1}', "", '{"text": ""}'], ["a", ""]),
    "JSON by usual names": ("json", None, True, ['{"premise": "a", "hypothesis": "b"}'], [("a", "b")]),
    "JSON of pairs, by name": ("json", ["q", "p"], True, ['{"p": "a", "q": "b"}'], [("b", "a")]),
    "no line at all": ("json", None, False, [], []),
}


@pytest.mark.parametrize("case", WITHOUT_LABELS)
def test_texts_without_labels_are_read(case):
    kind, fields, pairs, lines, expected = WITHOUT_LABELS[case]
    assert list(iterate_texts(lines, "data", kind, fields, pairs)) == expected


WITHOUT_TEXTS = {
    "one text of a pair": ("text", None, True, ["a\tb", "c"], r"data:2: needs two texts with a tab .* Received: 1"),
    "JSON among lines": ("text", None, False, ["a", '{"text": "a"}'], "data:2: needs a text, or `kind='json'`"),
    "no name of a text": ("table", None, False, ["id,words", "1,a"], "data:1: needs the names .* Received: id, words"),
    "no name of a text behind a blank line": ("table", None, False, ["", "id,words"], "data:2: needs the names "),
    "no name of a second text": ("table", None, True, ["id,text", "1,a"], "with text and text_b, or"),
    "a name twice": ("table", None, False, ["text,Text"], "data:1: needs one column text. Received: 2 of that name"),
    "an unknown name": ("table", ["words"], False, ["id,text"], "data:1: needs a column words. Received: id, text"),
    "an open quote": ("table", ["0"], False, ['"a', "b"], "data:1: needs comma-separated values"),
    "a short row": ("table", ["2"], False, ["a,b,c", "a,b"], "data:2: needs 3 columns or more. Received: 2"),
    "commas of a text": ("table", None, False, ["text,id", "a, b,1"], "data:2: needs 2 columns, as .* Received: 3"),
    "two for one": ("table", ["a", "b"], False, ["a,b"], "`fields` must name one text. Received: a,b"),
    "one for two": ("json", ["a"], True, ["{}"], "`fields` must name two texts, for pairs. Received: a"),
    "no such member": ("json", None, False, ['{"text": "a"}', '{"t": "a"}'], "data:2: needs text, or .* Received: t"),
    "no string": ("json", None, False, ['{"text": 1}'], "data:1: texts must be strings"),
    "no object": ("json", None, False, ["[1]"], "data:1: needs a JSON object"),
}


@pytest.mark.parametrize("case", WITHOUT_TEXTS)
def test_missing_texts_are_refused_by_line(case):
    kind, fields, pairs, lines, message = WITHOUT_TEXTS[case]
    with pytest.raises(ValueError, match=message):
        list(iterate_texts(lines, "data", kind, fields, pairs))


def test_texts_are_not_read_ahead():
    lines = iter(["text", "a", "b"])
    assert next(iterate_texts(lines, "data", "table")) == "a" and next(lines) == "b"


SNLI = "gold_label\tsentence1\tsentence2\n" + "".join(
    f"{label}\tA man sits.\tText {n}.\n" for n, label in enumerate(["neutral", "-", "entailment", "contradiction", "-"])
)


def test_texts_on_which_annotators_did_not_agree_are_skipped_and_counted(tmp_path, capsys):
    path = tmp_path / "snli.tsv"
    path.write_text(SNLI, encoding="utf-8")
    fields = ["sentence1", "sentence2", "gold_label"]
    assert [example.text_b for example in read_classified(path, fields)] == ["Text 0.", "Text 2.", "Text 3."]
    note = "snli.tsv: skipped 2 texts with the label '-', on which annotators did not agree\n"
    assert capsys.readouterr().err.endswith(note)
    for labels in ("+-+-", "xy-"):  # signs are classes where others are signs or letters
        path.write_text("".join(f"text {n}\t{label}\n" for n, label in enumerate(labels)), encoding="utf-8")
        assert [example.label for example in read_classified(path)] == list(labels)


@pytest.mark.parametrize("kept", [[0, 1, 2, 3, 4], [0, 2, 3]])
def test_texts_on_which_annotators_did_not_agree_are_not_scored(tmp_path, capsys, kept):
    """Predictions may have them or not."""
    gold, found = tmp_path / "gold.tsv", tmp_path / "found.jsonl"
    gold.write_text(SNLI.replace("gold_label", "label"), encoding="utf-8")
    rows = [{"text": "A man sits.", "text_b": f"Text {n}.", "label": "neutral"} for n in kept]
    found.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert main(["score", "--task", "classify", "--gold", str(gold), "--pred", str(found), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["accuracy"] == pytest.approx(1 / 3) and "-" not in scores["labels"]


def test_quotes_of_pandas_are_no_part_of_a_text(tmp_path):
    """`DataFrame.to_csv(sep="\\t")` quotes a text with quotes, and doubles them. GLUE's quotes are text."""
    path = tmp_path / "data.tsv"
    path.write_text('text\tlabel\n"he said ""good"""\tpos\n"Yes"\tneg\n"a" and "b"\tneg\n', encoding="utf-8")
    assert [example.text for example in read_classified(path)] == ['he said "good"', '"Yes"', '"a" and "b"']


@pytest.mark.parametrize("line", ["text\tlabel", "text,label", "review, id, label"])
def test_a_labeled_table_is_no_text_to_classify(line):
    if line.startswith("text"):
        message = "data:1: needs a text, or `kind='json'` or `kind='table'`. Received: the names of columns, 'text"
    else:
        message = "data:1: needs a text, or `kind='table'`. Received: columns, 'review, id, label'"
    with pytest.raises(ValueError, match=message):
        list(iterate_texts([line, line], "data"))
    assert list(iterate_texts(["text, and a label", "a\tb"], "data")) == ["text, and a label", "a\tb"]


def test_a_number_or_a_text_that_looks_like_a_list_is_one_label():
    assert [Example("a film", label).label for label in (np.int64(1), True, "['x']")] == [1, True, "['x']"]
