"""A setting is one field: its default, its range, its option of `kcrf train` and its help come from there."""

import re
from argparse import ArgumentParser
from pathlib import Path

import pytest

from kcrf.commands import main
from kcrf.commands.training_options import add_training_options, in_flags, settings_and_sources
from kcrf.runs import SettingError, Settings
from kcrf.runs.options import (
    AUGMENTED,
    EXTENDED,
    LINEAR,
    OF_LAYERS,
    TAUGHT,
    WITH_VECTORS,
    option_of,
    options_of,
    types_of,
)

pytestmark = pytest.mark.once
RUNS = sorted((Path(__file__).parents[1] / "fixtures" / "0.1.0").glob("*/config.json"))


def parse(*arguments):
    parser = ArgumentParser(exit_on_error=False)
    add_training_options(parser)
    return settings_and_sources(parser.parse_args(["--train", "x", "--out", "y", *arguments]))[0]


# A value for each option that is not its default.
GIVEN = {bool: lambda default: not default, int: lambda default: 7, float: lambda default: 0.25}
TEACHER = str(RUNS[0].parent)
ENTITIES = next(str(path.parent) for path in RUNS if path.parent.name == "entities")
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
    "synonyms": "/folder",
    "synonym_vectors": "/folder",
    "teacher": TEACHER,
    "extend": ENTITIES,
    "marked": "ORG",
    "vectors": "/folder",
    "vectors_at": "top",
}


@pytest.mark.parametrize("setting", [s for s in options_of(Settings) if option_of(s).group], ids=lambda s: s.name)
def test_every_option_becomes_its_setting(setting):
    name, needed = setting.name, []
    condition = option_of(setting).only
    without_bert = ("lexicon", "ngrams", "linear_weight", "units")
    if condition is not None and condition.name == "bert" and name not in without_bert:
        needed = ["--bert", "/folder"]
    if name in ("scheme", "min_probability", "units", "incomplete"):
        needed = ["--task", "ner"]
    if name in ("pool", "max_length", "metric"):
        needed += ["--task", "classify"]
    if condition is OF_LAYERS:
        needed = ["--bert", "/folder", "--read-layers", "all"]
    if condition is AUGMENTED:
        needed = ["--augment", "2"]
    if condition is TAUGHT:
        needed = ["--teacher", TEACHER]
    if condition is LINEAR:
        needed = ["--encoder", "linear"]
    if condition is EXTENDED:
        needed = ["--extend", ENTITIES]
    if condition is WITH_VECTORS:
        needed = ["--vectors", "/folder"]
    default = parse(*needed).values()[name]
    kinds = [kind for kind in GIVEN if kind in types_of(setting)]
    value = TEXTS.get(name, "/folder" if name == "bert" else None)
    value = GIVEN[kinds[0]](default) if value is None else value
    flag = name.replace("_", "-")
    given = [f"--{flag}" if value else f"--no-{flag}"] if isinstance(value, bool) else [f"--{flag}", str(value)]
    found = getattr(parse(*needed, *given), name)
    assert found == value != default and type(found) is type(value)


def test_the_help_and_the_docstring_have_every_option_with_its_default(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    help = capsys.readouterr().out
    for line in (
        "(4,000 if words are the tokens): between 5 and 40 epochs. With --bert, about 300 steps: between 5 and 20 "
        "epochs. [by the size of the data]",
        "the CRF has to learn what is allowed. [yes, no for pos; only with --head crf]",
        "--depth N Layers of the encoder. On a BERT, it has an effect with --encoder bilstm alone. "
        "[3, 1 with --bert; only with a neural --encoder]",
        "[bmes for cws, bio for ner; only with --task cws or ner]",
        "[crf, softmax for classify]",
        "No effect if words are the tokens. [yes, no for classify; only without --bert]",
        "[the best path; only with --task ner]",
        "the transitions barely move at a BERT's learning rate. [auto; only with --head crf]",
        "[all; only with --bert]",
        "[embeddings, top with --bert; only with --vectors]",
        "[1, 2 for classify; only with --teacher]",
        "[max, first with --bert; only with --task classify]",
    ):
        assert line in " ".join(help.split()), line
    for setting in options_of(Settings):
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


@pytest.mark.parametrize(
    ("old", "new", "needed"),
    [
        ("--layers", "--read-layers all", ["--bert", "/folder"]),
        ("--vectors-most", "--max-vectors 9", ["--vectors", "/folder"]),
        ("--temperature", "--teacher-temperature 3.0", ["--teacher", TEACHER]),
        ("--unlabelled", "--unlabeled /texts", ["--teacher", TEACHER]),
    ],
)
def test_old_flags_work_and_say_the_new_ones(old, new, needed):
    flag, value = new.split()
    with pytest.warns(UserWarning, match=f"^{old} is now {flag}$"):
        settings = parse(*needed, old, value)
    assert settings == parse(*needed, *new.split())


def test_unlabeled_text_is_read_under_the_old_name_of_its_option():
    parser = ArgumentParser(exit_on_error=False)
    add_training_options(parser)
    arguments = ["--train", "x", "--out", "y", "--teacher", TEACHER, "--unlabelled", "/texts"]
    with pytest.warns(UserWarning, match="^--unlabelled is now --unlabeled$"):
        options = parser.parse_args(arguments)
    assert settings_and_sources(options)[1]["unlabeled"] == "/texts"


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
