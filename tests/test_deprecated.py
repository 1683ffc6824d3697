"""Public names in their old place: they are the same objects, and a warning names the new place."""

from importlib import import_module

import pytest

BACKENDS = ["torch"]
ROOMS = ["augmentation", "checkpoints", "distillation", "metrics", "pretraining", "taggers", "training"]
OLD = {
    "kcrf.augmentation.copies_wanted": "kcrf.augmentation.copies",
    "kcrf.checkpoints.layer_owner": "kcrf.checkpoints.names",
    "kcrf.distillation.soften": "kcrf.distillation.teachers",
    "kcrf.metrics.TextMismatch": "kcrf.metrics.scores",
    "kcrf.metrics.bootstrap_difference": "kcrf.metrics.bootstrap",
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


@pytest.mark.parametrize("room", ROOMS)
def test_every_name_of_a_page_is_there_and_others_are_not(room):
    module = import_module(f"kcrf.{room}")
    assert all(hasattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = module.nothing
