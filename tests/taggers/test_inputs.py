"""Tests of kcrf.taggers: tables, dicts and single texts are refused, whose items are not the texts a user means."""

import numpy as np
import pytest

from kcrf.corpora import load_mini
from kcrf.taggers import WordSegmenter
from kcrf.taggers.spans import part_of
from kcrf.tasks import task_of

BACKENDS = ["torch"]
ROWS = {"id": [1, 2], "text": ["今天天气真好", "我们去公园"]}


@pytest.fixture(scope="module")
def segmenter():
    return WordSegmenter()


def tables():
    """A table of each library that is installed, and its column of texts."""
    for name, make in (
        ("pandas", lambda library: library.DataFrame(ROWS)),
        ("polars", lambda library: library.DataFrame(ROWS)),
        ("datasets", lambda library: library.Dataset.from_dict(ROWS)),
        ("pyarrow", lambda library: library.table(ROWS)),
    ):
        try:
            library = __import__(name)
        except ImportError:
            continue
        yield pytest.param(make(library), id=name)


@pytest.mark.parametrize("table", list(tables()))
def test_a_table_is_refused_with_the_line_to_write(segmenter, table):
    message = r"list of texts, as table\['text'\] is. Received: a \w+ with the columns id, text"
    for method in (segmenter.predict, segmenter.segment_batch, segmenter.k_best_batch, segmenter.suggest):
        with pytest.raises(TypeError, match=message):
            method(table)
    with pytest.raises(TypeError, match="needs one text; `predict` takes a column of texts. Received: a "):
        part_of(table)
    column = table["text"]
    with pytest.raises(TypeError, match="needs one text; `predict` takes a column of texts. Received: a "):
        part_of(column)
    if not hasattr(column, "to_pylist"):  # the texts of pyarrow are no strings
        assert segmenter.segment_batch(column) == segmenter.segment_batch(ROWS["text"])


@pytest.mark.parametrize(
    "texts", [ROWS, set(ROWS["text"]), "今天", None, 3], ids=["dict", "set", "text", "none", "int"]
)
def test_what_is_no_list_of_texts_is_refused(segmenter, texts):
    with pytest.raises(TypeError, match="`texts` must be a list of "):
        segmenter.predict(texts)
    with pytest.raises(TypeError, match="needs a string, a list of tokens or a Sentence. Received: {'text'"):
        part_of({"text": "今天"})


def test_one_text_is_no_column_of_texts(segmenter):
    texts = np.array(ROWS["text"], object)  # as frame["text"].values
    for one in (segmenter.segment, part_of):
        with pytest.raises(TypeError, match="needs one text; `predict` takes a column of texts. Received: a ndarray"):
            one(texts)
    pandas = pytest.importorskip("pandas", reason="needs pandas, whose columns are passed")
    with pytest.raises(TypeError, match="needs one text; `predict` takes a column of texts. Received: a Series"):
        segmenter.segment(pandas.Series(ROWS["text"]))
    assert segmenter.segment_batch(texts) == segmenter.segment_batch(ROWS["text"])


def test_scores_take_labeled_data_in_all_forms_of_training(segmenter):
    words = load_mini().test[:20]
    scores = segmenter.scores(task_of("cws").check("test", words))
    assert segmenter.scores(words) == scores and 0 < scores["f"] < 1
    assert segmenter.scores([{"words": row} for row in words]) == scores
    with pytest.raises(TypeError, match="`items` must be labeled data; for a file, call kcrf.corpora.read_segmented"):
        segmenter.scores("test.txt")
