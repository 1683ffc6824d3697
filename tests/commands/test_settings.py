"""A setting is one field: its default, its range, its option of `kcrf train` and its help come from there."""

import json
from argparse import ArgumentParser
from dataclasses import FrozenInstanceError, asdict, fields
from pathlib import Path

import numpy as np
import pytest

from kcrf.commands import main
from kcrf.commands.training_options import add_training_options, settings_and_sources
from kcrf.runs import Settings
from kcrf.runs.options import AUGMENTED, FOR_CLASSES, OF_LAYERS, TAUGHT, WITH_VECTORS

# Written down once more, by hand. None: chosen by the size of the data.
FROM_SCRATCH = {
    "encoder": "cnn",
    "learning_rate": 1e-3,
    "crf_lr_multiplier": "auto",
    "constraints": True,
    "epochs": None,
    "patience": None,
    "batch_size": None,
    "width": None,
    "depth": 3,
    "dropout": 0.4,
    "lexicon": True,
    "warmup": 0.05,
}
OF_A_BERT = {
    "encoder": "none",
    "learning_rate": 5e-5,
    "crf_lr_multiplier": "auto",
    "constraints": True,
    "epochs": 5,
    "patience": None,
    "batch_size": 32,
    "width": 256,
    "depth": 1,
    "dropout": 0.1,
    "lexicon": False,
    "warmup": 0.1,
}
RUNS = sorted((Path(__file__).parents[1] / "fixtures" / "0.1.0").glob("*/config.json"))


def parse(*arguments):
    parser = ArgumentParser(exit_on_error=False)
    add_training_options(parser)
    return settings_and_sources(parser.parse_args(["--train", "x", "--out", "y", *arguments]))[0]


def test_defaults_depend_on_the_task_and_on_a_bert():
    assert asdict(Settings()).items() >= {**FROM_SCRATCH, "scheme": "bmes"}.items()
    assert asdict(Settings(bert="x", task="ner")).items() >= {**OF_A_BERT, "scheme": "bio"}.items()
    assert Settings(head="softmax").constraints is False
    given = dict.fromkeys(set(FROM_SCRATCH) - {"crf_lr_multiplier"})
    assert asdict(Settings(**given, scheme=None)) == asdict(Settings())


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.parent.name)
def test_settings_of_older_runs_are_read_as_they_were_written(path):
    values = json.loads(path.read_text())["settings"]
    read = json.loads(json.dumps(asdict(Settings.of(values))))
    assert {name: read[name] for name in values} == values
    # Later settings have the value of such runs: their units were characters or pieces.
    assert read["units"] is None and read["temperature"] == 1.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"width": "16"}, "`width` must be an int. Received: '16'"),
        ({"width": True}, "`width` must be an int. Received: True"),
        ({"seed": None}, "`seed` must be an int. Received: None"),
        ({"epochs": 2.5}, "`epochs` must be an int. Received: 2.5"),
        ({"constraints": 1}, "`constraints` must be True or False. Received: 1"),
        ({"types": ["A", 3]}, "`types` must be a tuple of strings. Received: .'A', 3."),
        ({"types": "PER"}, "`types` must be a tuple of strings. Received: 'PER'"),
        ({"crf_lr_multiplier": [1]}, "`crf_lr_multiplier` must be a number or a string. Received: .1."),
        ({"learning_rate": float("nan")}, "`learning_rate` must be positive. Received: nan"),
        ({"learning_rate": float("inf")}, "`learning_rate` must be positive. Received: inf"),
        ({"task": ["ner"]}, "`task` must be a string"),
        ({"bert": "x", "layers": "1,1"}, "`layers` must be .last., .all. or different numbers .* Received: '1,1'"),
        ({"bert": "x", "layers": "top"}, "`layers` must be"),
        (
            {"task": "classify", "bert": "x", "pool": "pooler", "layers": "all"},
            "reads the last layer. Received: layers='all'",
        ),
        ({"task": "classify", "bert": "x", "pool": "cnn", "encoder": "bilstm"}, "pool='cnn' needs encoder='none'"),
        ({"bert": "x", "layer_pooling": "mean"}, "`layer_pooling` needs `layers`. Received: .* layers='last'"),
        (
            {"task": "classify", "bert": "x", "pool": "cnn", "layers": "all", "layer_pooling": "mean"},
            "pool='cnn' combines layers itself. Received: layer_pooling='mean'",
        ),
        ({"seed": -1}, "`seed` must be at least 0. Received: -1"),
        ({"lower_case": False}, "`lower_case` needs `bert`. Received: lower_case=False and bert=None"),
    ],
)
def test_values_of_a_wrong_type_or_without_meaning_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        Settings(**values)


def test_numbers_of_numpy_paths_and_lists_are_taken():
    settings = Settings(epochs=np.int64(3), learning_rate=np.float32(0.5), types=["A"], task="ner", bert=Path("x"))
    assert (settings.epochs, settings.learning_rate, settings.types, settings.bert) == (3, 0.5, ("A",), "x")
    with pytest.raises(FrozenInstanceError):
        settings.epochs = 4


# A value for each option that is not its default.
GIVEN = {bool: lambda default: not default, int: lambda default: 7, float: lambda default: 0.25}
TEACHER = str(RUNS[0].parent)
TEXTS = {
    "task": "ner",
    "units": "words",
    "encoder": "bilstm",
    "head": "softmax",
    "scheme": "bioes",
    "pool": "mean",
    "precision": "bfloat16",
    "layers": "8,11",
    "schedule": "constant",
    "layer_pooling": "weighted",
    "metric": "matthews",
    "max_length": 64,
    "augment_by": "swap",
    "synonyms": "/folder",
    "synonym_vectors": "/folder",
    "teacher": TEACHER,
    "vectors": "/folder",
    "vectors_at": "top",
}


@pytest.mark.parametrize("setting", [s for s in fields(Settings) if s.metadata["option"].group], ids=lambda s: s.name)
def test_every_option_becomes_its_setting(setting):
    name, needed = setting.name, []
    condition = setting.metadata["option"].only
    if condition is not None and condition.name == "bert" and name not in ("lexicon", "units"):
        needed = ["--bert", "/folder"]
    if name in ("scheme", "min_confidence", "units"):
        needed = ["--task", "ner"]
    if condition is FOR_CLASSES:
        needed += ["--task", "classify"]
    if condition is OF_LAYERS:
        needed = ["--bert", "/folder", "--layers", "all"]
    if condition is AUGMENTED:
        needed = ["--augment", "2"]
    if condition is TAUGHT:
        needed = ["--teacher", TEACHER]
    if condition is WITH_VECTORS:
        needed = ["--vectors", "/folder"]
    default = getattr(parse(*needed), name)
    kinds = [kind for kind in GIVEN if kind in (setting.type, *getattr(setting.type, "__args__", ()))]
    value = TEXTS.get(name, "/folder" if name == "bert" else None)
    value = GIVEN[kinds[0]](default) if value is None else value
    flag = {"teacher_temperature": "temperature"}.get(name, name.replace("_", "-"))
    given = [f"--{flag}" if value else f"--no-{flag}"] if isinstance(value, bool) else [f"--{flag}", str(value)]
    found = getattr(parse(*needed, *given), name)
    assert found == value != default and type(found) is type(value)


def test_the_help_and_the_docstring_have_every_option_with_its_default(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    help = capsys.readouterr().out
    for line in (
        "about 1,000 steps, 4,000 where words are the units. [by the size of the data, 5 with --bert]",
        "learn what is allowed. [yes; only with --head crf]",
        "--depth N Layers of the encoder. [3, 1 with --bert]",
        "[bmes for cws, bio for ner; only with --task cws or ner]",
        "[crf, softmax for classify]",
        "Better from a few hundred sentences on. No effect on units of words. [yes; only without --bert]",
        "[the best path; only with --task ner]",
        "in short runs. With 1, at a BERT's learning rate, they hardly leave their initial values. [auto]",
        "[all; only with --bert]",
        "[embeddings, top with --bert; only with --vectors]",
        "[1 for cws, 1 for ner, 2 for classify; only with --teacher]",
    ):
        assert line in " ".join(help.split()), line
    for setting in fields(Settings):
        option = setting.metadata["option"]
        assert option.help.endswith(".") and option.help[0].isupper()
        assert (option.help in help) == (option.group is not None)
        assert f"\n        {setting.name}: " in Settings.__doc__
    assert max(map(len, Settings.__doc__.splitlines())) <= 120


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--steps 9 --epochs 2", "--steps takes the place of --epochs. Received: both"),
        ("--batch-tokens 64 --batch-size 2", "--batch-tokens takes the place of --batch-size. Received: both"),
        ("--head softmax --crf-lr-multiplier 2", "--crf-lr-multiplier needs a CRF. Received: a head without one, soft"),
        (
            "--task classify --crf-lr-multiplier 2",
            "--crf-lr-multiplier needs a CRF. Received: a head without one, soft",
        ),
        ("--task classify --column 1", "--column needs --task ner. Received: --task classify"),
        ("--repair", "--repair needs --task ner. Received: --task cws"),
        ("--fields 0,1", "--fields needs --task classify. Received: --task cws"),
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        parse(*arguments.split())


def test_score_refuses_options_of_another_task(tmp_path, capsys):
    (tmp_path / "gold").write_text("a\tx\n")
    score = ["score", "--gold", str(tmp_path / "gold"), "--pred", str(tmp_path / "gold"), "--task"]
    for arguments in ("classify --words w", "classify --column 1", "cws --repair", "ner --fields 0,1"):
        assert main([*score, *arguments.split()]) == 2
        assert f"{arguments.split()[1]} needs --task" in capsys.readouterr().err


def test_a_refused_option_is_named_by_its_flag():
    message = "^--skip-top-layers needs --bert. Received: --skip-top-layers 1 and no --bert$"
    with pytest.raises(ValueError, match=message):
        parse("--skip-top-layers", "1")
