"""Defaults by the size of the data: the values of the table in the docs, the steps they lead to, what the user set."""

import pytest

from kcrf.runs import Settings
from kcrf.runs.defaults import CHOSEN, choose_defaults, describe_defaults

SIZES = [1, 15, 16, 40, 500, 1350, 1999, 3199, 3200, 3821, 4999, 5000, 6399, 6400, 8000, 17536, 20864, 10**6]


@pytest.mark.parametrize(
    "sentences, epochs, batch_size, width",
    [
        (100, 40, 16, 128),
        (500, 31, 16, 128),
        (1350, 12, 16, 128),
        (3821, 8, 32, 256),
        (8000, 8, 64, 256),
        (20864, 5, 64, 256),
    ],
)
def test_the_choice_for_a_size(sentences, epochs, batch_size, width):
    chosen = choose_defaults(sentences)
    assert (chosen["epochs"], chosen["batch_size"], chosen["width"]) == (epochs, batch_size, width)
    assert chosen["constraints"] is True and chosen["crf_lr_multiplier"] == "auto"


@pytest.mark.parametrize("sentences", SIZES)
def test_updates_are_about_a_thousand_unless_epochs_are_at_their_limits(sentences):
    chosen = choose_defaults(sentences)
    steps = chosen["epochs"] * -(-sentences // chosen["batch_size"])
    if 5 < chosen["epochs"] < 40:
        assert steps == pytest.approx(1000, rel=0.1)
    else:
        assert (steps >= 900) if chosen["epochs"] == 5 else (steps <= 1000)


def test_a_large_corpus_has_the_settings_of_earlier_versions_but_for_the_constraints():
    chosen = choose_defaults(20_000)
    before = {"epochs": 5, "batch_size": 64, "width": 256, "depth": 3}
    assert {name: chosen[name] for name in before} == before


@pytest.mark.parametrize("sentences", SIZES)
def test_more_data_never_takes_smaller_batches_or_a_narrower_encoder(sentences):
    smaller, larger = choose_defaults(sentences), choose_defaults(2 * sentences)
    assert smaller["batch_size"] <= larger["batch_size"] and smaller["width"] <= larger["width"]


@pytest.mark.parametrize("name, value", [("epochs", 3), ("width", 64), ("depth", 1), ("crf_lr_multiplier", 1.0)])
def test_what_the_user_set_is_kept_and_changes_nothing_else(name, value):
    assert choose_defaults(500, {name: value}) == {**choose_defaults(500), name: value}


def test_a_given_batch_size_changes_the_number_of_epochs():
    assert choose_defaults(3000, {"batch_size": 60})["epochs"] == 20  # 50 steps an epoch
    assert choose_defaults(3000, {"batch_size": 30})["epochs"] == 10


@pytest.mark.parametrize("sentences, patience", [(100, 29), (500, 7), (1350, 5), (20_000, 5)])
def test_patience_covers_the_updates_before_the_first_entity_is_found(sentences, patience):
    assert choose_defaults(sentences)["patience"] == patience


def test_not_set_is_none_and_false_is_set():
    assert choose_defaults(500, dict.fromkeys(CHOSEN)) == choose_defaults(500)
    assert choose_defaults(500, {"constraints": False})["constraints"] is False


def test_a_softmax_gets_no_constraints():
    assert choose_defaults(500, {"head": "softmax"})["constraints"] is False


@pytest.mark.parametrize("given", [{}, {"head": "softmax"}, {"task": "ner", "types": ("PER",)}])
@pytest.mark.parametrize("sentences", SIZES)
def test_every_choice_is_valid_settings(sentences, given):
    settings = Settings(**choose_defaults(sentences, given))
    assert settings.epochs == choose_defaults(sentences, given)["epochs"]


def test_no_sentences_are_refused():
    with pytest.raises(ValueError, match="`sentences` must be positive. Received: 0"):
        choose_defaults(0)


def test_the_line_for_the_user():
    line = describe_defaults(500, 7, choose_defaults(500, {"constraints": False}))
    assert line == (
        "500 sentences, 7 tags: up to 31 epochs of about 32 steps, batch size 16, width 128, depth 3, no constraints"
    )
