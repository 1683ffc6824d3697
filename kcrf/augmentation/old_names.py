"""Names that have left the page of the folder, in their old place."""

from kcrf.deprecated import moved_names

__all__ = ["__getattr__"]

__getattr__ = moved_names(
    "kcrf.augmentation",
    {
        "OPERATIONS": "kcrf.augmentation.copies",
        "copies_wanted": "kcrf.augmentation.copies",
        "back_translate": "kcrf.augmentation.translation",
        "read_synonym_vectors": "kcrf.augmentation.synonyms",
    },
)
