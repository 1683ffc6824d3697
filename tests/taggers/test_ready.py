"""The segmenter that comes with kcrf."""

import io
import sys

import pytest

from kcrf.commands import main
from kcrf.corpora import load_mini
from kcrf.taggers import WordSegmenter, ready

FILES = {"README.md", "config.json", "model.onnx", "model.weights.h5", "vocabulary.json"}
SENTENCES = load_mini().test

pytestmark = pytest.mark.once("torch")


def test_it_is_small_and_has_its_card():
    paths = list(ready.ready_segmenter().parent.iterdir())
    assert {path.name for path in paths} == FILES
    assert sum(path.stat().st_size for path in paths) < 4 * 2**20
    card = next(path for path in paths if path.name == "README.md").read_text(encoding="utf-8")
    assert "CC BY-SA 4.0" in card and "Universal Dependencies" in card


def test_it_cuts_words_by_onnxruntime_and_by_keras(monkeypatch):
    pytest.importorskip("onnxruntime")
    texts = ["".join(words) for words in SENTENCES]
    fast = WordSegmenter().segment_batch(texts)
    assert fast[:1] == [WordSegmenter().segment(texts[0])]
    monkeypatch.setattr(ready, "find_spec", lambda name: None)
    exact = WordSegmenter().segment_batch(texts)
    ends, others = ({(i, end) for i, row in enumerate(rows) for end in ends_of(row)} for rows in (fast, exact))
    assert len(ends ^ others) < 0.01 * len(ends)
    gold = {(i, end) for i, words in enumerate(SENTENCES) for end in ends_of(words)}
    assert len(ends & gold) > 0.85 * max(len(ends), len(gold))  # of another standard


def ends_of(words):
    end = 0
    for word in words:
        end += len(word)
        yield end


def test_the_command_uses_it_without_a_model(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("今天天气真好\n".encode())))
    assert main(["segment"]) == 0
    assert capsys.readouterr().out == "今天 天气 真好\n"
