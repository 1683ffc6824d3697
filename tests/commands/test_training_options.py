"""Tests of kcrf.commands.main, kcrf.commands.training_options.

A setting is one field: its default, its range, its option of `kcrf train` and its help come from there.
"""

import re
from argparse import ArgumentParser

import pytest

from kcrf.commands import main, train
from kcrf.commands.training_options import add_training_options, in_flags, settings_and_sources
from kcrf.runs import DataFacts, RunWriter, SettingError, Settings, resolve
from kcrf.runs.config_file import StoredRun
from kcrf.runs.options import option_of, types_of
from kcrf.runs.settings import FIELDS, RULES

pytestmark = pytest.mark.once


def parse(*arguments):
    parser = ArgumentParser(exit_on_error=False)
    add_training_options(parser)
    return settings_and_sources(parser.parse_args(["--train", "x", "--out", "y", *arguments]))[0]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a complete run of entities, without weights."""
    settings = Settings(task="ner")
    with RunWriter.create(tmp_path_factory.mktemp("run")) as folder:
        config = resolve(settings, DataFacts(types=("PER",), units="characters"))
        folder.save_config(StoredRun(settings, config, {}, "torch"))
        folder.save_scores({})
    return str(folder.path)


# A value for each option that is not its default, and what it needs beside its own rules.
GIVEN = {bool: lambda default: not default, int: lambda default: 7, float: lambda default: 0.25}
TEXTS = {
    "task": "ner",
    "units": "words",
    "encoder": "bilstm",
    "head": "softmax",
    "scheme": "bioes",
    "pool": "mean",
    "solver": "lbfgs",
    "precision": "bfloat16",
    "read_layers": "8,11",
    "schedule": "constant",
    "layer_pooling": "weighted",
    "metric": "matthews",
    "max_length": 64,
    "augment_by": "swap",
    "marked": "ORG",
    "vectors_at": "top",
}
OF_TASK = {
    "ner": ("scheme", "min_probability", "units", "incomplete"),
    "classify": ("pool", "max_length", "metric"),
}


def needed_by(name, run):
    """The options that an option needs."""
    values = {"read_layers": "all", "teacher": run, "extend": run, "augment": "2", "bert": "/folder"}
    values |= {"vectors": "/folder", "encoder": "linear"}
    needed = {
        rule.other: values[rule.other]
        for rule in RULES
        if name in rule.names.split() and rule.value is not None and not rule.is_refused and rule.other in values
    }
    task = [task for task, names in OF_TASK.items() if name in names]
    needed |= {"task": task[0]} if task else {}
    needed |= {"read_layers": "all", "bert": "/folder"} if name == "layer_pooling" else {}
    return [text for other, value in needed.items() for text in (f"--{other.replace('_', '-')}", value)]


@pytest.mark.parametrize("setting", [s for s in FIELDS.values() if option_of(s).group], ids=lambda s: s.name)
def test_every_option_becomes_its_setting(setting, run):
    name, needed = setting.name, needed_by(setting.name, run)
    default = parse(*needed).values()[name]
    kinds = [kind for kind in GIVEN if kind in types_of(setting)]
    value = run if name in ("teacher", "extend") else "/folder" if option_of(setting).is_path else TEXTS.get(name)
    value = GIVEN[kinds[0]](default) if value is None else value
    flag = name.replace("_", "-")
    given = [f"--{flag}" if value else f"--no-{flag}"] if isinstance(value, bool) else [f"--{flag}", str(value)]
    found = getattr(parse(*needed, *given), name)
    assert found == value != default and type(found) is type(value)


def test_the_help_shows_twelve_options_and_names_the_way_to_the_others(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    help = capsys.readouterr().out
    assert len(re.findall("^  --", help, re.M)) == 12 and "`kcrf train --help all`" in help


def test_the_help_and_the_docstring_have_every_option_with_its_default(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit):
        main(["train", "--help", "all"])
    help = capsys.readouterr().out
    for line in (
        "(4,000 if words are the tokens): between 5 and 40 epochs. With --bert, about 300 steps: between 5 and 20 "
        "epochs. [by the size of the data]",
        "the CRF has to learn what is allowed. [yes, no for pos; only with --head crf]",
        "--depth N Layers of the encoder. On a BERT, it has an effect with --encoder bilstm alone. "
        "[3, 1 with --bert; not with --encoder linear]",
        "[bmes for cws, bio for ner; only with --task cws or ner]",
        "[crf, softmax for classify]",
        "No effect if words are the tokens. [yes, no for classify; only without --bert]",
        "[the best path; only with --task ner]",
        "a BERT's learning rate. [auto; only with --head crf; not with --encoder linear]",
        "[all; only with --bert]",
        "[embeddings, top with --bert; only with --vectors]",
        "[1, 2 for classify; only with --teacher]",
        "[max, first with --bert; only with --task classify]",
    ):
        assert line in " ".join(help.split()), line
    for setting in FIELDS.values():
        option = option_of(setting)
        assert option.help.endswith(".") and option.help[0].isupper()
        assert (option.help in help) == (option.group is not None)
        assert f"\n        {setting.name}: " in Settings.__doc__
    assert max(map(len, Settings.__doc__.splitlines())) <= 120


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--steps 9 --epochs 2", "--steps takes the place of --epochs. Received: --steps 9 and --epochs 2"),
        ("--batch-tokens 64 --batch-size 2", "--batch-tokens takes the place of --batch-size. Received: --batch-tok"),
        ("--head softmax --crf-lr-multiplier 2", "--crf-lr-multiplier needs --head crf. Received: .* --head softmax"),
        ("--task classify --crf-lr-multiplier 2", "--crf-lr-multiplier needs --head crf. Received: .* --head softmax"),
        ("--bert x --lexicon", "--lexicon needs no --bert. Received: --lexicon and --bert /"),
        ("--task classify --column 1", "--column needs --task ner. Received: --task classify"),
        ("--repair", "--repair needs --task ner. Received: --task cws"),
        ("--fields 0,1", "--fields needs --task classify. Received: --task cws"),
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(arguments, message):
    with pytest.raises(ValueError) as caught:
        parse(*arguments.split())
    error = caught.value
    assert re.match(message, in_flags(error) if isinstance(error, SettingError) else str(error))


@pytest.mark.parametrize(("end", "scheme"), [("E-PER", "bioes"), ("L-PER", "bioes"), ("I-PER", None)])
def test_the_scheme_is_bioes_if_the_training_file_marks_where_entities_end(end, scheme, tmp_path, capsys):
    (tmp_path / "train").write_text(f"李\tB-PER\n雷\t{end}\n在\tO\n", encoding="utf-8")
    sources = {"train": str(tmp_path / "train"), "column": -1}
    for given in ({}, {"scheme": "bio"}):
        settings = train.with_scheme_of_file(Settings(task="ner", **given), sources)
        assert settings.scheme == given.get("scheme", scheme)
    assert ("--scheme bioes" in capsys.readouterr().err) == (scheme is not None)


def test_score_refuses_options_of_another_task(tmp_path, capsys):
    (tmp_path / "gold").write_text("a\tx\n")
    score = ["score", "--gold", str(tmp_path / "gold"), "--pred", str(tmp_path / "gold"), "--task"]
    for arguments in ("classify --words w", "classify --column 1", "cws --repair", "ner --fields 0,1"):
        assert main([*score, *arguments.split()]) == 2
        assert f"{arguments.split()[1]} needs --task" in capsys.readouterr().err


def test_a_refused_option_is_named_by_its_flag(tmp_path, capsys):
    train = ["train", "--train", "x", "--out", str(tmp_path / "run"), "--skip-top-layers", "1"]
    assert main(train) == 2
    message = "kcrf train: --skip-top-layers needs --bert. Received: --skip-top-layers 1 and no --bert\n"
    assert capsys.readouterr().err == message
