"""kcrf.taggers: The segmenter that comes with kcrf."""

import copy
import io
import pickle
import sys

import numpy as np
import pytest

from kcrf.commands import main
from kcrf.corpora import load_mini
from kcrf.taggers import Span, WordSegmenter
from kcrf.taggers.open_model import built_in_segmenter

FILES = {"README.md", "model.npz", "tagged.npz"}
SENTENCES = load_mini().test

BACKENDS = ["torch"]


def test_it_is_small_and_has_its_card():
    paths = list(built_in_segmenter().parent.iterdir())
    assert {path.name for path in paths} == FILES
    assert sum(path.stat().st_size for path in paths) < 3 * 2**20
    card = next(path for path in paths if path.name == "README.md").read_text(encoding="utf-8")
    assert "CC BY-SA 4.0" in card and "Universal Dependencies" in card


def test_the_built_in_model_finds_most_words():
    found = WordSegmenter().segment_batch(["".join(words) for words in SENTENCES])
    ends, gold = ({(i, end) for i, words in enumerate(rows) for end in ends_of(words)} for rows in (found, SENTENCES))
    assert len(ends & gold) > 0.85 * max(len(ends), len(gold))  # of another standard


@pytest.mark.parametrize("sign", "。．.，,、：:∶；;？?！!“”（(）)《》…·～")
def test_signs_are_words_wherever_they_stand(sign):
    """Also punctuation that is not in the training set, such as the full stop 。, for which it has a period."""
    texts = [f"他看着前方{sign}今天天气真好", f"今天天气真好{sign}", f"{sign}北京的天气", f"我们去上海{sign}{sign}"]
    rows = WordSegmenter().segment_batch(texts)
    assert sum(sign not in row for row in rows) <= 1, rows
    assert all(len(word) == 1 for word in rows[1][-1:]), rows[1]


def test_the_built_in_model_has_parts_of_speech(segmenter, monkeypatch, capsys):
    tagger = WordSegmenter(with_labels=True)
    assert "PRON" in tagger.labels and segmenter.labels == ()
    (spans,) = tagger(["我们昨天在北京大学学习汉语。"])
    assert [(span.text, span.label) for span in spans[:3]] == [("我们", "PRON"), ("昨天", "NOUN"), ("在", "VERB")]
    assert spans[-1].label == "PUNCT" and tagger.segment("我们昨天") == ["我们", "昨天"]
    assert tagger.k_best("我们", 1)[0][0] == [Span(0, 2, "我们", "PRON")]
    assert tagger.segment_lines(["我们", ""]) == ["我们/PRON", ""]
    assert tagger.predict(["我们"], spans=[[(0, 2, "NOUN")]]) == [[Span(0, 2, "我们", "NOUN", 1.0)]]
    own = WordSegmenter(words=["真好"], force_words=True, keep_latin=False, with_labels=True)
    assert "真好" in own.segment("今天天气真好。")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("我们\n".encode())))
    assert main(["segment", "--labels"]) == 0 and capsys.readouterr().out == "我们/PRON\n"


def ends_of(words):
    end = 0
    for word in words:
        end += len(word)
        yield end


def test_the_command_uses_it_without_a_model(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("今天天气真好\n".encode())))
    assert main(["segment"]) == 0
    assert capsys.readouterr().out == "今天 天气 真好\n"


@pytest.fixture(scope="module")
def segmenter():
    return WordSegmenter()


@pytest.mark.parametrize("texts", [None, 3, "今天".encode(), ["今天"]])
def test_texts_that_are_no_strings_are_refused_by_name(texts, segmenter):
    for call in (segmenter.segment, segmenter.k_best):
        with pytest.raises(TypeError, match="texts must be strings. Received: "):
            call(texts)


@pytest.mark.parametrize("number", [0, -1, 2.5, None])
def test_numbers_that_are_not_positive_are_refused(number, segmenter):
    with pytest.raises(ValueError, match="`batch_size` must be a positive integer. Received: "):
        segmenter.segment_batch(["今天天气"], batch_size=number)
    with pytest.raises(ValueError, match="`k` must be a positive integer. Received: "):
        segmenter.k_best("今天天气", k=number)


def test_spans_of_another_form_are_refused_and_none_are_none(segmenter):
    for spans in ([1, 2], (0, 2), [None]):
        with pytest.raises(ValueError, match=r"`spans` needs \(start, end\). Received: "):
            segmenter.segment("今天天气真好", spans=spans)
    assert segmenter.segment("今天天气真好", spans=None) == ["今天", "天气", "真好"]
    assert segmenter.segment("今天天气真好", spans=np.array([[4, 5], [0, 1]])) == ["今", "天", "天气", "真", "好"]


def test_it_can_be_pickled_and_copied(segmenter):
    for other in (pickle.loads(pickle.dumps(segmenter)), copy.deepcopy(segmenter)):
        assert other.segment_batch(["今天天气真好"]) == segmenter.segment_batch(["今天天气真好"])


def test_decomposed_letters_and_those_of_vietnamese_are_not_cut(segmenter):
    for word in ("cafe\u0301s", "u\u0308ber", "Nguyễn", "Việt"):
        assert word in segmenter.segment(f"今天{word}天气")
