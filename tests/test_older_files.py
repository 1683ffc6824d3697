"""Files written by earlier versions still load and answer as they did: `tests/fixtures/<version>` holds both.

A fixture is never written anew. A change that breaks one breaks the files of users.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import few
from numpy.testing import assert_allclose

import kcrf.layers  # noqa: F401 (registers what the models hold)
from kcrf.backend import backend_name, keras
from kcrf.corpora import load_mini
from kcrf.taggers import EntityRecognizer, WordSegmenter
from kcrf.training import resume_tagger

FOLDER = Path(__file__).parent / "fixtures" / "0.1.0"
TOLD = json.loads((FOLDER / "answers.json").read_text(encoding="utf-8"))
on_torch = pytest.mark.skipif(backend_name() != "torch", reason="the run was begun on torch")


@pytest.fixture(scope="module")
def answers():
    with np.load(FOLDER / "answers.npz") as arrays:
        return dict(arrays)


@pytest.mark.parametrize("name", few("crf", "auto", "memm", "bert", "nezha"))
def test_a_saved_model_predicts_and_trains_on_as_it_did(answers, name):
    model = keras.saving.load_model(FOLDER / f"{name}.keras")
    x, y = answers["x"], answers["y"]
    x = [x] if isinstance(model.input, list) else x
    assert_allclose(model.predict(x, verbose=0), answers[f"{name}_0"], rtol=1e-4, atol=1e-5)
    assert_allclose(model.evaluate(x, y, verbose=0, return_dict=True)["loss"], answers[f"{name}_loss"], rtol=1e-4)
    if name in ("bert", "nezha"):  # mixout draws other numbers on each backend
        return
    assert_allclose(model.train_on_batch(x, y, return_dict=True)["loss"], answers[f"{name}_next"], rtol=1e-4)
    assert_allclose(model.evaluate(x, y, verbose=0, return_dict=True)["loss"], answers[f"{name}_after"], rtol=1e-4)


def test_a_saved_decoder_gives_the_same_tags_and_confidences(answers):
    tags, confidences = keras.saving.load_model(FOLDER / "viterbi.keras").predict(answers["x"], verbose=0)
    np.testing.assert_array_equal(tags, answers["viterbi_0"])
    assert_allclose(confidences, answers["viterbi_1"], rtol=1e-4, atol=1e-5)


@pytest.mark.once
def test_a_run_of_words_segments_as_it_did():
    told = TOLD["words"]
    segmenter = WordSegmenter(FOLDER / "words", keep_latin=False)  # which 0.1.0 could not keep
    found = segmenter.segment_batch_with_confidence(told["texts"])
    assert [[word for word, _ in row] for row in found] == [[word for word, _ in row] for row in told["words"]]
    for ours, theirs in zip(found, told["words"], strict=True):
        assert_allclose([p for _, p in ours], [p for _, p in theirs], atol=1e-4)


@pytest.mark.once
@pytest.mark.parametrize("run, options", [("entities", {}), ("bert", {"min_confidence": 0.01})])
def test_a_run_of_entities_recognizes_as_it_did(run, options):
    told = TOLD[run]
    assert any(told["entities"])
    found = EntityRecognizer(FOLDER / run, **options).recognize_batch(told["texts"])
    for ours, theirs in zip(found, told["entities"], strict=True):
        assert [[e.start, e.end, e.label] for e in ours] == [entity[:3] for entity in theirs]
        assert_allclose([e.confidence for e in ours], [entity[3] for entity in theirs], atol=1e-4)


@on_torch
def test_an_interrupted_run_goes_on_as_it_would_have(tmp_path):
    shutil.copytree(FOLDER / "interrupted", tmp_path / "run")
    corpus = load_mini()
    resume_tagger(tmp_path / "run", corpus.train[:40], corpus.valid[:8])
    rows = (tmp_path / "run" / "log.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert_allclose([float(row.split(",")[1]) for row in rows], TOLD["interrupted"]["loss"], rtol=1e-5)
