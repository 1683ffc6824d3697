"""Tests of kcrf.runs.resolve.

Defaults by the size of the data: their values, the number of steps, and that the user's settings are kept.
"""

from dataclasses import replace

import pytest

from kcrf.runs import DataFacts, Settings, resolve
from kcrf.runs.resolve import describe_run

BACKENDS = ["torch"]

SIZES = [1, 15, 16, 40, 500, 1350, 1999, 3199, 3200, 3821, 4999, 5000, 6399, 6400, 8000, 17536, 20864, 10**6]


def run(windows, user=None, **facts):
    return resolve(user or Settings(), DataFacts(windows=windows, **facts))


@pytest.mark.parametrize(
    "windows, epochs, batch_size, width",
    [
        (100, 40, 16, 128),
        (500, 31, 16, 128),
        (1350, 12, 16, 128),
        (3821, 8, 32, 256),
        (8000, 8, 64, 256),
        (20864, 5, 64, 256),
    ],
)
def test_epochs_batch_size_and_width_for_each_size(windows, epochs, batch_size, width):
    config = run(windows)
    assert (config.training.epochs, config.training.batch_size, config.model.width) == (epochs, batch_size, width)


@pytest.mark.parametrize("windows", SIZES)
def test_updates_are_about_a_thousand_unless_epochs_are_at_their_limits(windows):
    training = run(windows).training
    steps = training.epochs * -(-windows // training.batch_size)
    if 5 < training.epochs < 40:
        assert steps == pytest.approx(1000, rel=0.1)
    else:
        assert (steps >= 900) if training.epochs == 5 else (steps <= 1000)


@pytest.mark.parametrize("windows", SIZES)
def test_more_data_never_takes_smaller_batches_or_a_narrower_encoder(windows):
    smaller, larger = run(windows), run(2 * windows)
    assert smaller.training.batch_size <= larger.training.batch_size
    assert smaller.model.width <= larger.model.width


@pytest.mark.parametrize("name, value", [("width", 64), ("depth", 1), ("crf_lr_multiplier", 1.0), ("patience", 2)])
def test_what_the_user_set_is_kept_and_changes_nothing_else(name, value):
    assert run(500, Settings(**{name: value})).flat() == {**run(500).flat(), name: value}


def test_a_given_batch_size_changes_the_number_of_epochs():
    assert run(3000, Settings(batch_size=60)).training.epochs == 20  # 50 steps an epoch
    assert run(3000, Settings(batch_size=30)).training.epochs == 10


@pytest.mark.parametrize(
    "more, windows, epochs",
    [({}, 750, 20), ({}, 3000, 16), ({}, 20_864, 9), ({"bert": "bert"}, 3000, 5), ({"units": "words"}, 3000, 20)],
)
def test_a_network_that_is_extended_makes_more_and_smaller_updates(more, windows, epochs):
    config = run(windows, Settings(task="ner", extend="run", **more))
    assert config.training.epochs == epochs
    assert (config.optimizer.learning_rate == 3e-4) == ("bert" not in more)


def test_a_given_number_of_epochs_is_not_cut_short():
    assert run(20_000, Settings(epochs=30)).training.patience is None
    assert run(20_000, Settings(epochs=30, patience=3)).training.patience == 3


@pytest.mark.parametrize("steps, epochs", [(1, 1), (100, 4), (101, 5)])
def test_steps_are_rounded_up_to_epochs_and_decide_on_the_multiplier_of_the_crf(steps, epochs):
    config = run(20_000, Settings(steps=steps, learning_rate=1e-3), steps=25)
    assert config.training.epochs == epochs and config.training.patience is None
    fast = min(max(1e-2, 2.5 / (25 * epochs)), 1e-1) / 1e-3  # as the docstring of suggest_lr_multiplier has it
    assert config.model.crf_lr_multiplier == pytest.approx(fast, rel=0.05)


@pytest.mark.parametrize("windows, patience", [(100, 10), (320, 10), (500, 7), (1350, 5), (20_000, 5)])
def test_patience_is_that_of_some_updates_and_of_no_more_than_ten_epochs(windows, patience):
    assert run(windows).training.patience == patience


@pytest.mark.parametrize(
    "windows, epochs, patience", [(10, 20, 10), (500, 19, 10), (1000, 9, 7), (1900, 5, 5), (10**6, 5, 5)]
)
def test_a_bert_makes_about_300_updates_of_few_sentences(windows, epochs, patience):
    config = run(windows, Settings(bert="folder"))
    assert (config.training.epochs, config.training.patience, config.training.batch_size) == (epochs, patience, 32)
    assert run(windows, Settings(bert="folder", extend="run")).training == config.training
    large = run(10**6, Settings(bert="folder"))
    assert replace(config, facts=large.facts, training=large.training) == large


@pytest.mark.parametrize("windows, epochs", [(100, 40), (3394, 37), (14041, 18), (10**6, 5)])
def test_words_get_more_updates_than_characters(windows, epochs):
    user = Settings(task="ner")
    for found in ({"units": "words"}, {}):  # by the data, or by the user
        config = run(windows, user if found else replace(user, units="words"), types=("A",), **found)
        assert config.training.epochs == epochs and config.data.units == "words"
    of_characters = run(windows, replace(user, units="characters"), types=("A",), units="words")
    assert of_characters.training == run(windows, user, types=("A",)).training


@pytest.mark.parametrize(
    "windows, user, solver",
    [
        (6250, {}, "lbfgs"),
        (6251, {}, "adagrad"),
        (100, {"learning_rate": 0.1}, "adagrad"),
        (100, {"batch_size": 8}, "adagrad"),
        (100, {"solver": "adagrad"}, "adagrad"),
        (10**6, {"solver": "lbfgs"}, "lbfgs"),
        (10**6, {"l2": 0.1}, "lbfgs"),
        (3571, {"task": "ner", "types": ("PER", "ORG", "LOC")}, "lbfgs"),
        (3572, {"task": "ner", "types": ("PER", "ORG", "LOC")}, "adagrad"),
    ],
)
def test_linear_models_of_small_data_are_trained_until_they_converge(windows, user, solver):
    config = run(windows, Settings(encoder="linear", **user), steps=100)
    assert config.optimizer.solver == solver
    assert config.training.epochs == (1 if solver == "lbfgs" else 20)
    assert config.training.patience == (None if solver == "lbfgs" else 4)


def test_the_penalties_of_a_linear_model_are_those_of_its_solver_and_units():
    found = {
        name: run(100, Settings(encoder="linear", **user), units=units).optimizer
        for name, user, units in [
            ("characters", {}, None),
            ("words", {"task": "ner", "types": ("PER",)}, "words"),
            ("given", {"l1": 0.5}, None),
            ("steps", {"solver": "adagrad"}, None),
        ]
    }
    penalties = {name: (optimizer.l1, optimizer.l2) for name, optimizer in found.items()}
    expected = {"characters": (0.03, 0.03), "words": (0.3, 0.01), "given": (0.5, 0.03), "steps": (0.01, 0.0)}
    assert penalties == expected
    steps = run(10**6, Settings(task="ner", encoder="linear"), types=("PER",)).optimizer
    assert (steps.learning_rate, steps.l1, found["steps"].learning_rate) == (0.3, 0.001, 0.1)
    given = run(10**6, Settings(task="ner", encoder="linear", learning_rate=0.5), types=("PER",)).optimizer
    assert (given.learning_rate, given.l1) == (0.5, 0.001)


def test_types_and_labels_of_the_user_come_before_those_of_the_data():
    facts = {"types": ("A", "B"), "labels": ("x",), "metric": "pearson"}
    assert run(1, Settings(task="ner"), **facts).data.types == ("A", "B")
    assert run(1, Settings(task="ner", types=["B"]), **facts).data.types == ("B",)
    config = run(1, Settings(task="classify", metric="f", labels=("y", "x")), **facts)
    assert config.data.labels == ("y", "x") and config.training.metric == "f"
    assert run(1, Settings(task="classify"), **facts).training.metric == "pearson"


def test_the_line_on_the_settings_names_the_units():
    line = describe_run(run(500, Settings(task="ner"), types=("PER",), units="words", steps=32), 500)
    assert line.startswith("500 sentences of words, 3 tags: up to 40 epochs of 32 steps")


def test_no_windows_are_refused():
    with pytest.raises(ValueError, match="`windows` must be positive. Received: 0"):
        run(0)


@pytest.mark.parametrize(
    "settings, windows, weight",
    [
        ({}, 100, 0.5),
        ({}, 100_000, 0.5),
        ({"linear_weight": 0.2}, 100, 0.2),
        ({"linear_weight": 0.0}, 100, 0.0),
        ({"task": "ner"}, 100, "auto"),
        ({"task": "ner"}, 100_000, "auto"),
        ({"task": "ner", "linear_weight": 0.0}, 100, 0.0),
        ({"task": "ner", "extend": "run"}, 100, 0.0),
        ({"teacher": "run"}, 100, 0.5),
        ({"teacher": "run", "teacher_temperature": 2.0}, 100, 0.0),
        ({"task": "pos"}, 100, 0.0),
        ({"task": "ner", "linear_weight": 0.3}, 100, 0.3),
        ({"ngrams": False}, 100, 0.0),
        ({"head": "softmax"}, 100, 0.0),
        ({"encoder": "linear"}, 100, 0.0),
        ({"bert": "folder"}, 100, 0.0),
        ({"task": "classify"}, 100, 0.0),
    ],
)
def test_which_networks_are_averaged_with_a_linear_model(settings, windows, weight):
    types = ("A", "B", "C") if settings.get("task") == "ner" else ()
    assert run(windows, Settings(**settings), types=types).training.linear_weight == weight


@pytest.mark.parametrize(
    "settings, line",
    [
        (
            {"constraints": False},
            "up to 31 epochs of 32 steps, batch size 16, width 128, depth 3, averaged with a linear model where that "
            "is better, crf without constraints",
        ),
        (
            {"epochs": 3, "linear_weight": 0.5},
            "3 epochs of 32 steps, batch size 16, width 128, depth 3, averaged with a linear model of weight 0.5, crf "
            "with constraints",
        ),
        ({"head": "softmax", "epochs": 1}, "1 epoch of 32 steps, batch size 16, width 128, depth 3, softmax"),
        ({"head": "softmax", "epochs": 3}, "3 epochs of 32 steps, batch size 16, width 128, depth 3, softmax"),
        (
            {"bert": "folder", "batch_tokens": 2000},
            "up to 9 epochs of 32 steps, 2,000 positions a step, crf with constraints",
        ),
    ],
)
def test_the_line_that_describes_a_run(settings, line):
    config = run(500, Settings(task="ner", **settings), types=("A", "B", "C"), steps=32)
    assert describe_run(config, 500) == f"500 sentences, 7 tags: {line}"
    copies = describe_run(run(500, Settings(task="classify"), labels=("a", "b"), steps=32), 500, 7)
    assert copies.startswith("500 texts and 7 augmented copies, 2 labels: ") and copies.endswith(", pool max")


@pytest.mark.parametrize(("said", "device", "expected"), [
    (None, "float32", "float32"), (None, "bfloat16", "bfloat16"), ("float32", "bfloat16", "float32"),
])  # fmt: skip
def test_the_precision_is_the_best_of_the_device_unless_the_user_chose_one(said, device, expected):
    config = run(500, Settings(bert="bert", precision=said), precision=device)
    assert config.training.precision == expected
    assert config.flat()["precision"] == expected
