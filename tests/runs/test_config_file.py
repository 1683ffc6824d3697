"""kcrf.runs: config.json: the user's settings and the configuration of the run, damaged files are refused."""

import json
from dataclasses import replace

import pytest

from kcrf.runs import DataFacts, Settings, resolve
from kcrf.runs.config_file import StoredRun, read_stored_run
from kcrf.runs.stages import AugmentationConfig, TeacherConfig

BACKENDS = ["torch"]


def test_a_written_configuration_is_read_as_it_was():
    user = Settings(task="ner", width=64, augment=2, teacher="run", types=["B", "A"])
    config = replace(resolve(user, DataFacts(types=("B", "A"), units="words", windows=100)), temperature=1.4)
    assert [type(stage) for stage in config.stages] == [AugmentationConfig, TeacherConfig]
    stored = StoredRun(user, config, {"sources": None, "sha256": {"train": "a"}}, "torch")
    assert read_stored_run("config.json", json.loads(json.dumps(stored.to_json()))) == stored
    published = stored.published()
    assert (published.config.stages, published.user.teacher, published.data) == ((), None, None)


def test_what_the_data_decided_is_told_apart_from_what_the_user_said():
    user = Settings(task="ner", width=64)
    stored = StoredRun(user, resolve(user, DataFacts(types=("A",), units="words", windows=100)), None, "torch")
    assert set(stored.chosen()) == {
        "types",
        "units",
        "epochs",
        "patience",
        "batch_size",
        "crf_lr_multiplier",
        "precision",
        "linear_weight",
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "needs run format 1, which .* Received: format 2"),
        ({"format": "1"}, "needs a number as its format"),
        ({"format": 9}, "needs run format 1.*please upgrade"),
        ({"settings": []}, "needs the settings of a run"),
        ({"settings": {"magic": 1}}, "Settings has no 'magic'"),
        ({"run": {}}, "needs the settings of a run. Received: no 'stages'"),
        ({"model_type": "bert"}, "the configuration of a 'bert' without a task"),
    ],
)
def test_a_damaged_config_is_refused(change, message):
    user = Settings(task="ner")
    written = StoredRun(user, resolve(user, DataFacts(types=("A",))), None, "torch").to_json()
    assert read_stored_run("config.json", written).user == user
    with pytest.raises(ValueError, match=f"^config.json: .*{message}"):
        read_stored_run("config.json", {**written, **change})


@pytest.mark.parametrize("value", [-1, 0, float("nan"), float("inf"), "a", None, True, [1], {"pku": 1.0, "gsd": -1}])
def test_a_temperature_is_a_positive_number(value):
    user = Settings(task="ner")
    written = StoredRun(user, resolve(user, DataFacts(types=("A",))), None, "torch").to_json()
    with pytest.raises(ValueError, match=r"^config.json: .*a finite number above 0 as temperature\. Received: "):
        read_stored_run("config.json", {**written, "run": {**written["run"], "temperature": value}})


@pytest.mark.parametrize("name, value", [("width", "16"), ("magic", 1), ("depth", 0)])
def test_a_damaged_part_of_a_config_is_refused(name, value):
    written = StoredRun(Settings(), resolve(Settings(), DataFacts()), None, "torch").to_json()
    written["run"]["model"][name] = value
    with pytest.raises(ValueError, match=f"^config.json: needs the settings of a run. Received: .*{name}"):
        read_stored_run("config.json", written)
