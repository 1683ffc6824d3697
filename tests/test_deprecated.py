"""Public names in their old place: they are the same objects, and a warning names the new place."""

from importlib import import_module

import pytest

from kcrf.deprecated import _NEW_PLACES
from kcrf.runs import Settings

BACKENDS = ["torch"]
ROOMS = [room.removeprefix("kcrf.") for room in _NEW_PLACES]
OLD = {
    "kcrf.augmentation.copies_wanted": "kcrf.augmentation.copies",
    "kcrf.checkpoints.layer_owner": "kcrf.checkpoints.names",
    "kcrf.corpora.read_word_list": "kcrf.corpora.word_list",
    "kcrf.crf.log_sums_onward": "kcrf.crf.functions",
    "kcrf.distillation.soften": "kcrf.distillation.teachers",
    "kcrf.layers.MixoutDense": "kcrf.layers.dense",
    "kcrf.metrics.TextMismatch": "kcrf.metrics.scores",
    "kcrf.metrics.bootstrap_difference": "kcrf.metrics.bootstrap",
    "kcrf.optimizers.WarmupExponentialDecay": "kcrf.optimizers.schedules",
    "kcrf.pretraining.hide": "kcrf.pretraining.masking",
    "kcrf.taggers.load_tagger": "kcrf.taggers.open_model",
    "kcrf.training.load_tagger": "kcrf.taggers.open_model",
}


@pytest.mark.parametrize("old", OLD)
def test_an_old_name_is_the_new_object_and_says_where_it_is(old):
    room, _, name = old.rpartition(".")
    with pytest.warns(DeprecationWarning, match=f"^{old} is now {OLD[old]}.{name}$"):
        value = getattr(import_module(room), name)
    assert value is getattr(import_module(OLD[old]), name)
    assert name not in import_module(room).__all__


def test_every_old_name_of_the_table_is_in_its_new_place():
    for places in _NEW_PLACES.values():
        for name, place in places.items():
            assert place.startswith("kcrf.bert4keras") or hasattr(import_module(place), name), name


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_of_a_page_is_there_and_others_are_not(room):
    module = import_module(f"kcrf.{room}")
    assert all(hasattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = module.nothing


@pytest.mark.parametrize("name", ["train_tagger", "train_segmenter", "train_classifier", "resume_tagger"])
def test_an_argument_under_its_old_name_says_the_new_one(name, tmp_path):
    """The text is of no use without a teacher, which only a call that has received it can say."""
    train = getattr(import_module("kcrf.training"), name)
    settings = Settings(task="classify" if name == "train_classifier" else "cws")
    data = [("a", "0"), ("b", "1")] if name == "train_classifier" else [["a", "b"]] * 2
    first = tmp_path if name == "resume_tagger" else settings
    with pytest.warns(DeprecationWarning, match=f"^`unlabelled` of {name} is now `unlabeled`$"):
        with pytest.raises((ValueError, FileNotFoundError)) as error:
            train(first, data, data, unlabelled=["c"], **({"out": tmp_path / "run"} if first is settings else {}))
    assert name == "resume_tagger" or "`unlabeled` needs a `teacher`" in str(error.value)
    with pytest.raises(TypeError, match="unlabelled"):
        train(first, data, data, unlabelled=["c"], unlabeled=["c"])
