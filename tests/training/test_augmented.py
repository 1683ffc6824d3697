"""Tests of kcrf.training.

Training with augmented copies: of the training set only, in the settings of the run, and the same after resuming.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from kcrf.augmentation import altered_copies
from kcrf.commands import main
from kcrf.corpora import load_mini
from kcrf.runs import DataFacts, RunFolder, Settings, resolve
from kcrf.runs.names import LINEAR
from kcrf.runs.stages import AugmentationConfig
from kcrf.taggers import load_tagger
from kcrf.training import resume_tagger, train_classifier, train_tagger

TINY = Settings(
    task="ner",
    width=8,
    depth=1,
    batch_size=16,
    epochs=2,
    augment=1,
    augment_by="mentions,shuffle",
    seed=3,
    linear_weight=0.0,
)
CORPUS = load_mini("ner")
PARTS = {name: [s for s in getattr(CORPUS, name) if 8 < len(s.text) <= 16][:24] for name in ("train", "valid", "test")}
BACKENDS = ["torch"]


def progress(report):
    """A progress callback that shows nothing and calls `report(row)` after each epoch."""
    from kcrf.backend import keras

    callback = keras.callbacks.Callback()
    callback.report = report
    return callback


def interrupt(row):
    raise KeyboardInterrupt


def texts_trained_on(monkeypatch):
    """A list of the texts that the next run is trained on."""
    from kcrf.tasks import task as tagging

    found, tagged_windows = [], tagging.tagged_windows

    def note(sentences, *args, **kwargs):
        found.extend(sentences)
        return tagged_windows(sentences, *args, **kwargs)

    monkeypatch.setattr(tagging, "tagged_windows", note)
    return found


def test_copies_of_the_training_part_alone_are_trained_on_and_nothing_else_is_read_from_them(tmp_path, monkeypatch):
    found = texts_trained_on(monkeypatch)
    train_tagger(TINY, **PARTS, out=tmp_path / "run")
    assert [s for s in found if s in PARTS["train"]] == PARTS["train"]
    copies = [s for s in found if s not in PARTS["train"]]
    assert 12 < len(copies) <= 24
    known = {s.text[a:b] for s in PARTS["train"] for a, b, _ in s.spans}
    mentions = {s.text[a:b] for s in copies for a, b, _ in s.spans}
    assert len(mentions & known) > 5 and {frozenset(m) for m in mentions} <= {frozenset(m) for m in known}
    lines = (tmp_path / "run" / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == [s.text for s in PARTS["test"]]
    monkeypatch.undo()
    train_tagger(replace(TINY, augment=0, augment_by=None), **PARTS, out=tmp_path / "plain")
    vocabularies = [(tmp_path / run / "vocabulary.json").read_bytes() for run in ("run", "plain")]
    assert vocabularies[0] == vocabularies[1]  # it says what a new text will have, so copies do not count


@pytest.mark.slow
def test_a_run_with_copies_goes_on_to_the_same_weights_and_only_with_the_same_copies(tmp_path):
    synonyms = tmp_path / "synonyms.txt"
    synonyms.write_text("在 于\n来到 到达\n", encoding="utf-8")
    settings = replace(TINY, augment_by=None, synonyms=str(synonyms))
    train_tagger(settings, **PARTS, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train_tagger(settings, **PARTS, out=tmp_path / "run", progress=progress(interrupt))
    assert RunFolder(tmp_path / "run").read_settings().augment == 1
    synonyms.write_text("在 从\n来到 抵达\n", encoding="utf-8")
    with pytest.raises(ValueError, match="needs the data that the run began with. Received: copies with other"):
        resume_tagger(tmp_path / "run", **PARTS)
    synonyms.write_text("在 于\n来到 到达\n", encoding="utf-8")
    resume_tagger(tmp_path / "run", **PARTS)
    one, other = (load_tagger(tmp_path / name).model.get_weights() for name in ("run", "whole"))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_few_sentences_with_entities_get_copies_by_default(tmp_path, capsys):
    for name, copies in (
        ("default", {}),
        ("spelled", {"augment": 3, "augment_by": "mentions"}),
        ("none", {"augment": 0}),
    ):
        train_tagger(
            Settings(task="ner", encoder="linear", **copies), **PARTS, out=tmp_path / name, progress=progress(print)
        )
    copies = sum(map(len, altered_copies(PARTS["train"], "ner", 3, ["mentions"])))
    assert copies > 24 and f"24 sentences and {copies} augmented copies" in capsys.readouterr().err
    runs = [RunFolder(tmp_path / name) for name in ("default", "spelled", "none")]
    default, spelled, none = (run.read_arrays(LINEAR)["scores"] for run in runs)
    np.testing.assert_array_equal(default, spelled)
    assert np.any(default != none)
    assert runs[0].read_settings().augment is None and {"augment", "augment_by"} <= {*runs[0].read_config().chosen()}


@pytest.mark.parametrize(
    ("settings", "units", "items", "copies"),
    [
        ({}, "characters", 1000, 3),
        ({"encoder": "linear", "learning_rate": 0.1}, "characters", 1, 3),
        ({}, "characters", 1001, 0),
        ({}, "words", 100, 0),
        ({"epochs": 40}, "characters", 100, 0),
        ({"steps": 1000}, "characters", 100, 0),
        ({"incomplete": True}, "characters", 100, 0),
        ({"bert": "bert"}, "characters", 100, 0),
        ({"extend": "run"}, "characters", 100, 0),
        ({"augment": 0}, "characters", 100, 0),
        ({"task": "cws"}, "characters", 100, 0),
        ({"task": "classify"}, None, 100, 0),
    ],
)
def test_which_runs_get_copies_by_default(settings, units, items, copies):
    stages = resolve(
        Settings(**{"task": "ner", **settings}), DataFacts(units=units, items=items, types=("PER",))
    ).stages
    augmentation = [stage for stage in stages if isinstance(stage, AugmentationConfig)]
    assert [(stage.augment, stage.augment_by) for stage in augmentation] == [(copies, "mentions")] * bool(copies)


def test_a_run_that_began_without_copies_goes_on_without_them(tmp_path):
    settings = replace(TINY, epochs=None, batch_size=64, augment=0, augment_by=None, patience=1)
    with pytest.raises(KeyboardInterrupt):
        train_tagger(settings, **PARTS, out=tmp_path / "run", progress=progress(interrupt))
    config = tmp_path / "run" / "config.json"
    stored = json.loads(config.read_text(encoding="utf-8"))
    del stored["settings"]["augment"]  # as if 0 had been the default
    config.write_text(json.dumps(stored), encoding="utf-8")
    resume_tagger(tmp_path / "run", **PARTS)
    assert RunFolder(tmp_path / "run").read_config().config.stages == ()


def test_texts_with_labels_and_words_are_copied_as_well(tmp_path, capsys):
    texts = [(f"{a} {b}", a) for a in ("good", "bad") for b in ("film", "book", "song", "play")]
    settings = Settings(task="classify", width=8, depth=1, epochs=1, batch_size=8, augment=2)
    train_classifier(settings, texts, texts, out=tmp_path / "classes")
    path = tmp_path / "words.txt"
    path.write_text("今天 天气 好\n明天 也 好\n" * 6, encoding="utf-8")
    options = ["--width", "8", "--depth", "1", "--epochs", "1", "--augment", "2", "--augment-by", "cut, join"]
    assert main(["train", "--train", str(path), "--out", str(tmp_path / "words"), *options]) == 0
    # Of 11 sentences each can be joined but the last, and each can be cut.
    assert "11 sentences and 2" in capsys.readouterr().err
    assert RunFolder(tmp_path / "words").read_settings().augment_by == "cut, join"
