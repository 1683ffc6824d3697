"""kcrf.corpora.offsets: Exports of annotation tools, in the forms that their documentation and their code have."""

import json

import pytest

from kcrf.corpora import Example, Sentence, read_classified, read_entities, read_segmented, read_tagged
from kcrf.corpora.offsets import from_units, to_utf16

BACKENDS = ["torch"]
LEI = Sentence("李雷在上海", [(0, 2, "PER"), (3, 5, "LOC")])
SPANS = [{"start": 3, "end": 5, "label": "LOC"}, {"start": 0, "end": 2, "label": "PER"}]


def region(start, end, label, text=None, **members):
    value = {"start": start, "end": end, "labels": [label]} | ({} if text is None else {"text": text})
    return {"id": "a1", "from_name": "label", "to_name": "text", "type": "labels", "value": value, **members}


def choice(*labels):
    return {"id": "c", "from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": labels}}


def task(text, *annotations, **members):
    """A task of Label Studio; an annotation is a list of results, or a dict."""
    annotations = [{"was_cancelled": False, "result": a} if isinstance(a, list) else a for a in annotations]
    return {"id": 1, "data": {"text": text}, "annotations": annotations, "predictions": [], **members}


REGIONS = [region(3, 5, "LOC", "上海", origin="manual"), region(0, 2, "PER", "李雷")]
EXPORTS = {
    "doccano": {"id": 7, "text": LEI.text, "label": [[3, 5, "LOC"], [0, 2, "PER"]], "Comments": []},
    "doccano, older": {"id": 7, "data": LEI.text, "label": [[0, 2, "PER"], [3, 5, "LOC"]]},
    "doccano, oldest": {"id": 7, "text": LEI.text, "labels": [[0, 2, "PER"], [3, 5, "LOC"]], "meta": {}},
    "doccano, with relations": {
        "text": LEI.text,
        "entities": [{"id": n, "label": s["label"], "start_offset": s["start"], "end_offset": s["end"]} for n, s in
                     enumerate(SPANS)],
        "relations": [],
    },
    "doccano, with intents": {"text": LEI.text, "entities": [[0, 2, "PER"], [3, 5, "LOC"]], "cats": ["a"]},
    "Label Studio": task(LEI.text, REGIONS),
    "Label Studio, completions": {"data": {"text": LEI.text}, "completions": [{"result": REGIONS}]},
    "Label Studio, another name": {"data": {"review": LEI.text, "id": 3}, "annotations": [{"result": REGIONS}]},
    "Label Studio, JSON-MIN": {
        "text": LEI.text, "id": 1, "label": [r["value"] for r in REGIONS], "annotator": 1, "annotation_id": 2,
    },
    "Prodigy": {"text": LEI.text, "spans": SPANS, "tokens": [], "answer": "accept", "_input_hash": 1},
}  # fmt: skip


def write(folder, items, as_array=False):
    path = folder / "export.json"
    text = json.dumps(items, ensure_ascii=False, indent=2) if as_array else "\n".join(map(json.dumps, items))
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.parametrize("tool", EXPORTS)
def test_exported_entities_are_read(tool, as_array, tmp_path, capsys):
    assert read_entities(write(tmp_path, [EXPORTS[tool]] * 2, as_array)) == [LEI] * 2
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({**EXPORTS["doccano"], "label": [[0, 9, "PER"]]}, "export.json:2: .* within its 5 characters"),
        ({**EXPORTS["doccano"], "label": [[0, 3, "PER"], [2, 5, "LOC"]]}, "export.json:2: entities must not overlap"),
        ({**EXPORTS["doccano"], "label": [[0, 2]]}, "export.json:2: needs an object as doccano has it"),
        ({**EXPORTS["doccano"], "label": [[0, "2", "PER"]]}, "export.json:2: needs .*start and end must be ints"),
        ({**EXPORTS["doccano"], "label": [[0, 2, ""]]}, "export.json:2: needs .*a label must be text"),
    ],
)
def test_mistakes_in_an_export_name_the_line(item, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_entities(write(tmp_path, [EXPORTS["doccano"], item]))


def test_text_of_a_region_must_be_at_its_offsets(tmp_path):
    wrong = task("😀李雷在上海", [region(2, 4, "PER", "李雷")])
    with pytest.raises(ValueError, match="export.json:1: .*count characters.* fit as UTF-16 code units"):
        read_entities(write(tmp_path, [wrong]))
    assert read_entities(write(tmp_path, [task("😀李雷", [region(1, 3, "PER", "李雷")])]))[0].spans == [(1, 3, "PER")]


def test_what_nobody_has_labeled_is_skipped_and_counted(tmp_path, capsys):
    items = [
        task("未标注"),
        task("取消", {"was_cancelled": True, "result": REGIONS}),
        task("没有", []),
        task(LEI.text, {"was_cancelled": True, "result": []}, [], {"ground_truth": True, "result": REGIONS}),
        {"data": {"text": "预测"}, "predictions": [{"result": REGIONS}]},
    ]
    assert read_entities(write(tmp_path, items)) == [Sentence("没有", []), LEI]
    notes = capsys.readouterr().err
    assert "skipped 3 texts that are not labeled" in notes
    assert "1 texts have several annotations" in notes
    with pytest.raises(
        ValueError, match="export.json: needs texts that are labeled. Received: 2 texts of Label Studio"
    ):
        read_entities(write(tmp_path, items[:2]))


def test_rejected_answers_of_prodigy_are_skipped(tmp_path, capsys):
    items = [{**EXPORTS["Prodigy"], "answer": answer} for answer in ("accept", "reject", "ignore")]
    assert read_entities(write(tmp_path, items)) == [LEI]
    assert "skipped 2 texts" in capsys.readouterr().err


def test_doccano_counts_utf16_code_units(tmp_path, capsys):
    item = {"text": "😀李雷😀在", "label": [[2, 4, "PER"], [6, 7, "X"]]}
    assert read_entities(write(tmp_path, [item]))[0].spans == [(1, 3, "PER"), (4, 5, "X")]
    assert "1 texts have labels after an emoji: read their offsets as UTF-16" in capsys.readouterr().err
    assert read_entities(write(tmp_path, [{**item, "label": [[1, 3, "PER"]]}]))[0].spans == [(1, 3, "PER")]
    assert "as characters, since they do not fit" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "李雷", "a😀b😀", "\ud800😀"])
def test_utf16_places_are_those_of_the_encoded_text(text):
    for place in range(len(text) + 1):
        units = to_utf16(text, place)
        assert units == sum(1 + (ord(c) > 0xFFFF) for c in text[:place])
        if "\ud800" not in text:
            assert from_units(text, units) == place
    assert from_units("a😀", 2) is None is from_units("a😀", -1)
    assert from_units("a😀", 4) is None


def test_triples_of_spacy_count_characters(tmp_path, capsys):
    item = {"text": "😀李雷😀在", "entities": [[1, 3, "PER"], [4, 5, "X"]]}
    assert read_entities(write(tmp_path, [item]))[0].spans == [(1, 3, "PER"), (4, 5, "X")]
    assert capsys.readouterr().err == ""
    with pytest.raises(
        ValueError, match=r"export.json:1: needs .*an entity must be an object or \[start, end, label\]"
    ):
        read_entities(write(tmp_path, [{**item, "entities": [[1, 3]]}]))


def test_columns_of_label_studio_that_are_no_tokens_are_refused(tmp_path):
    """It splits text at spaces alone: in Chinese, a sentence is one token, with the tag of its first entity."""
    path = tmp_path / "result.conll"
    path.write_text("-DOCSTART- -X- O\n李雷在上海见到了韩梅梅。 -X- _ B-PER\n\n", encoding="utf-8")
    with pytest.raises(ValueError, match="result.conll:2: needs a word or a character .* export JSON or JSON-MIN"):
        read_entities(path)
    path.write_text("-DOCSTART- -X- O\nKim -X- _ B-PER\nslept -X- _ O\n\n", encoding="utf-8")
    assert read_entities(path) == [Sentence("Kim slept", [(0, 3, "PER")], [(0, 3), (4, 9)])]


WORDS = [["我", "喜欢", "书"], ["好"]]
TAGGED = [(["Kim", "slept"], ["PROPN", "VERB"]), (["好"], ["ADJ"])]


def of_tokens(text, tokens, tags):
    spans, end = [], 0
    for token, tag in zip(tokens, tags, strict=True):
        start = text.index(token, end)
        end = start + len(token)
        spans.append([start, end, tag])
    return {"text": text, "label": spans}


def as_label_studio(item):
    return task(item["text"], [region(a, b, label, item["text"][a:b]) for a, b, label in item["label"]])


@pytest.mark.parametrize("convert", [dict, as_label_studio])
def test_words_and_tokens_are_spans(convert, tmp_path):
    words = [convert(of_tokens("".join(row), row, ["word"] * len(row))) for row in WORDS]
    assert read_segmented(write(tmp_path, words)) == WORDS
    tagged = [convert(of_tokens(" ".join(tokens), tokens, tags)) for tokens, tags in TAGGED]
    found = read_tagged(write(tmp_path, tagged))
    assert [([s.text[a:b] for a, b in s.tokens], [tag for *_, tag in s.spans]) for s in found] == TAGGED


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ([[0, 1, "word"], [1, 3, "word"]], "export.json:1: needs a labeled span for each token .* '书' without one"),
        ([[1, 3, "word"], [3, 4, "word"]], "export.json:1: .* '我' without one"),
        ([[0, 2, "word"], [1, 4, "word"]], "export.json:1: .* two that overlap"),
        ([[0, 2, "word"], [2, 5, "word"]], "export.json:1: .*"),
    ],
)
def test_each_character_is_in_one_token(label, message, tmp_path):
    for read in (read_segmented, read_tagged):
        with pytest.raises(ValueError, match=message):
            read(write(tmp_path, [{"text": "我喜欢书", "label": label}]))


@pytest.mark.parametrize("as_array", [False, True])
def test_words_of_kcrf_segment(as_array, tmp_path):
    assert read_segmented(write(tmp_path, [{"text": "", "words": words} for words in WORDS], as_array)) == WORDS
    with pytest.raises(ValueError, match="needs one sentence of words per line. Received: words that are empty"):
        read_segmented(write(tmp_path, [{"words": ["a b"]}]))


@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.parametrize(
    "items",
    [
        [{"id": 1, "text": "好", "label": ["pos"]}, {"text": "不好", "label": ["neg"]}, {"text": "吗", "label": []}],
        [task("好", [choice("pos")]), task("不好", [choice("neg")]), task("吗")],
        [{"text": "好", "id": 1, "label": "pos", "annotation_id": 1}, {"text": "不好", "label": "neg"}],
        [{"text": "好", "_input_hash": 1, "accept": ["pos"], "answer": "accept"},
         {"text": "不好", "_input_hash": 2, "accept": ["neg"], "answer": "accept"},
         {"text": "吗", "_input_hash": 3, "accept": ["neg"], "answer": "ignore"}],
    ],
)  # fmt: skip
def test_labels_of_texts_are_read(items, as_array, tmp_path):
    assert read_classified(write(tmp_path, items, as_array)) == [Example("好", "pos"), Example("不好", "neg")]


def test_several_choices_are_labels(tmp_path):
    both = {**choice("a"), "value": {"choices": ["b", "a"]}}
    assert read_classified(write(tmp_path, [task("x", [both])])) == [Example("x", ("a", "b"))]


def test_a_text_needs_a_label(tmp_path):
    with pytest.raises(ValueError, match="export.json: needs texts with a label each. Received: 1 texts without one"):
        read_classified(write(tmp_path, [{"text": "x", "label": []}]))
    with pytest.raises(ValueError, match="needs labels of spans. Received: labels of texts, which --task classify"):
        read_entities(write(tmp_path, [{"text": "x", "label": ["a"]}]))


def test_pairs_of_label_studio(tmp_path):
    pair = {"data": {"text": "x", "text_b": "y"}, "annotations": [{"result": [choice("same")]}]}
    assert read_classified(write(tmp_path, [pair])) == [Example("x", "same", "y")]
    for item in ({**pair, "data": {"text": "", "text_b": "y"}}, {"text": "", "label": ["a"]}):
        with pytest.raises(ValueError, match="export.json:1: `text` must not be empty"):
            read_classified(write(tmp_path, [item]))
