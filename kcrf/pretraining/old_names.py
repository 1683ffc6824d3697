"""Names that have left the page of the folder, in their old place."""

from kcrf.deprecated import moved_names

__all__ = ["__getattr__"]

__getattr__ = moved_names(
    "kcrf.pretraining",
    {
        "choose_positions": "kcrf.pretraining.masking",
        "hide": "kcrf.pretraining.masking",
        "learn_vocabulary": "kcrf.pretraining.vocabulary",
        "important_words": "kcrf.pretraining.importance",
    },
)
