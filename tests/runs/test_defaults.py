"""Defaults by the size of the data: the values, the steps they lead to, and that what the user set is kept."""

from dataclasses import asdict, replace

import pytest

from kcrf.runs import Settings
from kcrf.runs.defaults import choose_defaults, describe_settings

BACKENDS = ["torch"]

SIZES = [1, 15, 16, 40, 500, 1350, 1999, 3199, 3200, 3821, 4999, 5000, 6399, 6400, 8000, 17536, 20864, 10**6]
SCRATCH = Settings()


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
def test_the_choice_for_a_size(windows, epochs, batch_size, width):
    chosen = choose_defaults(SCRATCH, windows)
    assert (chosen.epochs, chosen.batch_size, chosen.width) == (epochs, batch_size, width)


@pytest.mark.parametrize("windows", SIZES)
def test_updates_are_about_a_thousand_unless_epochs_are_at_their_limits(windows):
    chosen = choose_defaults(SCRATCH, windows)
    steps = chosen.epochs * -(-windows // chosen.batch_size)
    if 5 < chosen.epochs < 40:
        assert steps == pytest.approx(1000, rel=0.1)
    else:
        assert (steps >= 900) if chosen.epochs == 5 else (steps <= 1000)


@pytest.mark.parametrize("windows", SIZES)
def test_more_data_never_takes_smaller_batches_or_a_narrower_encoder(windows):
    smaller, larger = choose_defaults(SCRATCH, windows), choose_defaults(SCRATCH, 2 * windows)
    assert smaller.batch_size <= larger.batch_size and smaller.width <= larger.width


@pytest.mark.parametrize("name, value", [("width", 64), ("depth", 1), ("crf_lr_multiplier", 1.0), ("patience", 2)])
def test_what_the_user_set_is_kept_and_changes_nothing_else(name, value):
    given = choose_defaults(replace(SCRATCH, **{name: value}), 500)
    assert asdict(given) == {**asdict(choose_defaults(SCRATCH, 500)), name: value}


def test_a_given_batch_size_changes_the_number_of_epochs():
    assert choose_defaults(replace(SCRATCH, batch_size=60), 3000).epochs == 20  # 50 steps an epoch
    assert choose_defaults(replace(SCRATCH, batch_size=30), 3000).epochs == 10


def test_a_given_number_of_epochs_is_not_cut_short():
    assert choose_defaults(replace(SCRATCH, epochs=30), 20_000).patience is None
    assert choose_defaults(replace(SCRATCH, epochs=30, patience=3), 20_000).patience == 3


@pytest.mark.parametrize("windows, patience", [(100, 29), (500, 7), (1350, 5), (20_000, 5)])
def test_patience_covers_the_updates_before_the_first_entity_is_found(windows, patience):
    assert choose_defaults(SCRATCH, windows).patience == patience


def test_a_bert_has_the_same_defaults_for_data_of_every_size():
    settings = Settings(bert="folder")
    assert choose_defaults(settings, 10) == choose_defaults(settings, 10**6) == settings


@pytest.mark.parametrize("windows, epochs", [(100, 40), (3394, 37), (14041, 18), (10**6, 5)])
def test_words_get_more_updates_than_characters(windows, epochs):
    assert choose_defaults(Settings(task="ner", units="words"), windows).epochs == epochs
    assert choose_defaults(Settings(task="ner", units="characters"), windows) == replace(
        choose_defaults(Settings(task="ner"), windows), units="characters"
    )


def test_the_line_on_the_settings_names_the_units():
    settings = choose_defaults(Settings(task="ner", types=("PER",), units="words"), 500)
    assert describe_settings(settings, 500, 32).startswith("500 sentences of words, 3 tags: up to 40 epochs")


def test_no_windows_are_refused():
    with pytest.raises(ValueError, match="`windows` must be positive. Received: 0"):
        choose_defaults(SCRATCH, 0)


@pytest.mark.parametrize(
    "settings, line",
    [
        (
            {"constraints": False},
            "up to 31 epochs of 32 steps, batch size 16, width 128, depth 3, crf without constraints",
        ),
        ({"head": "softmax", "epochs": 3}, "3 epochs of 32 steps, batch size 16, width 128, depth 3, softmax"),
        (
            {"bert": "folder", "batch_tokens": 2000},
            "5 epochs of 32 steps, 2,000 positions a step, crf with constraints",
        ),
    ],
)
def test_the_line_for_the_user(settings, line):
    settings = Settings(task="ner", types=("A", "B", "C"), **settings)
    assert describe_settings(choose_defaults(settings, 500), 500, 32) == f"500 sentences, 7 tags: {line}"
