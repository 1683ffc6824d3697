"""config.json: the user's settings and the configuration of the run, in all formats; damaged files are refused."""

import json
from pathlib import Path

import pytest

from kcrf.runs import DataFacts, Settings, resolve
from kcrf.runs.config_file import StoredRun, read_stored_run

BACKENDS = ["torch"]

RUNS = sorted((Path(__file__).parents[1] / "fixtures" / "0.1.0").glob("*/config.json"))
OLD = {  # as 0.2 wrote it: what ran, in one dict, and the names of what the run chose
    "format": 2,
    "backend": "jax",
    "settings": {
        **{
            "task": "ner",
            "types": ["LOC", "PER"],
            "units": "words",
            "encoder": "cnn",
            "head": "crf",
            "scheme": "bioes",
        },
        **{"epochs": 12, "steps": 100, "batch_size": 32, "batch_tokens": 900, "crf_lr_multiplier": 10.0, "width": 64},
        **{"patience": 5, "temperature": 1.4, "layers": "last", "vectors": "v.txt", "vectors_most": 7, "seed": 3},
    },
    "data": {"sources": None, "chosen": ["types", "units", "epochs", "crf_lr_multiplier", "patience"]},
}


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.parent.name)
def test_settings_of_older_runs_are_read_as_they_were_written(path):
    content = json.loads(path.read_text())
    values = read_stored_run(path, content).config.flat()
    assert {name: values[name] for name in content["settings"]} == content["settings"]
    # Later settings have the value of such runs: their units were characters or pieces.
    assert values["units"] is None and values["temperature"] == 1.0 and values["pairs"] is False


def test_a_config_of_format_2_gives_what_ran_and_what_its_user_said():
    stored = read_stored_run("config.json", OLD)
    config = stored.config
    assert config.data.types == ("LOC", "PER") and config.data.units == "words" and config.temperature == 1.4
    assert (config.training.epochs, config.training.batch_size, config.model.crf_lr_multiplier) == (12, 32, 10.0)
    assert config.model.max_vectors == 7 and config.model.read_layers == "last" and stored.backend == "jax"
    said = {"task": "ner", "scheme": "bioes", "steps": 100, "batch_tokens": 900, "width": 64, "seed": 3}
    assert stored.user.said() == {**said, "vectors": "v.txt", "max_vectors": 7}
    assert read_stored_run("config.json", json.loads(json.dumps(stored.to_json()))) == stored


def test_a_file_of_an_older_run_has_its_new_name():
    data = {"sources": {"train": "a", "unlabelled": "b", "sha256": {"unlabelled": "c"}}, "sha256": {"unlabelled": "d"}}
    stored = read_stored_run("config.json", {**OLD, "data": data})
    assert stored.data == {
        "sources": {"train": "a", "unlabeled": "b", "sha256": {"unlabeled": "c"}},
        "sha256": {"unlabeled": "d"},
    }


def test_a_softmax_run_of_format_2_has_a_multiplier_that_its_user_cannot_have_said():
    settings = {"task": "classify", "head": "softmax", "labels": ["a", "b"], "crf_lr_multiplier": 30.0, "pool": "max"}
    stored = read_stored_run("config.json", {"format": 2, "settings": settings, "data": None})
    assert stored.user.said() == {"task": "classify", "labels": ("a", "b")}
    assert stored.config.model.crf_lr_multiplier == 30.0


def test_what_the_data_decided_is_told_apart_from_what_the_user_said():
    user = Settings(task="ner", width=64)
    stored = StoredRun(user, resolve(user, DataFacts(types=("A",), units="words", windows=100)), None, "torch")
    assert set(stored.chosen()) == {
        "types",
        "units",
        "augment",
        "epochs",
        "patience",
        "batch_size",
        "crf_lr_multiplier",
        "linear_weight",
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 4}, "needs run format 3 or older"),
        ({"format": "3"}, "needs a number as its format"),
        ({"settings": []}, "needs the settings of a run"),
        ({"settings": {"magic": 1}}, "Settings have no magic"),
        ({"run": {}}, "needs the settings of a run. Received: no 'facts'"),
        ({"model_type": "bert"}, "the configuration of a 'bert' without a task"),
    ],
)
def test_a_damaged_config_is_refused(change, message):
    user = Settings(task="ner")
    written = StoredRun(user, resolve(user, DataFacts(types=("A",))), None, "torch").to_json()
    assert read_stored_run("config.json", written).user == user
    with pytest.raises(ValueError, match=f"^config.json: .*{message}"):
        read_stored_run("config.json", {**written, **change})


@pytest.mark.parametrize("name, value", [("width", "16"), ("magic", 1), ("depth", 0)])
def test_a_damaged_part_of_a_config_is_refused(name, value):
    written = StoredRun(Settings(), resolve(Settings(), DataFacts()), None, "torch").to_json()
    written["run"]["model"][name] = value
    with pytest.raises(ValueError, match=f"^config.json: needs the settings of a run. Received: .*{name}"):
        read_stored_run("config.json", written)
