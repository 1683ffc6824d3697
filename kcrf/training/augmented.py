"""The altered copies that a run is trained on in addition to its training part."""

from kcrf.augmentation import altered_copies, copies_wanted
from kcrf.training.tasks import as_sentence

__all__ = ["copies_of"]


def copies_of(settings, items):
    """For each item of the training part a list of its altered copies; None if the settings want none.

    Args:
        settings: `Settings`.
        items: The `Sentence`s or `Example`s.
    """
    if not settings.augment:
        return None
    copies = altered_copies(items, **copies_wanted(settings))
    return copies if settings.task == "classify" else [[as_sentence(copy) for copy in more] for more in copies]
