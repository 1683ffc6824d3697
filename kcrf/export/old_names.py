"""Names that have left the page of the folder, in their old place."""

from kcrf.deprecated import moved_names

__all__ = ["__getattr__"]

__getattr__ = moved_names("kcrf.export", {"FORMATS": "kcrf.export.write"})
