"""Word segmentation. Needs NumPy only."""

from collections.abc import Mapping, Sequence
from typing import Any

from kcrf.corpora import Sentence, read_segmented
from kcrf.tasks.tagging import TaggingTask

__all__ = ["Segmentation"]


class Segmentation(TaggingTask):
    """The words of texts without spaces between them, as in Chinese."""

    name = "cws"
    settings = frozenset({"scheme"})
    defaults: Mapping[str, Any] = {"scheme": "bmes"}
    choices: Mapping[str, tuple[Any, ...]] = {"scheme": ("bmes",), "units": ("characters",)}
    file_options = frozenset({"strip_tags", "words"})

    def read_file(self, path: str, reading: Mapping[str, Any]) -> list[Any]:
        """The words of the sentences of a file."""
        return [words for words in read_segmented(path, reading.get("strip_tags", False)) if words]

    def unlabeled_items(self, texts: Sequence[Any], pairs: bool) -> list[Any]:
        """The texts without their white space, as `Sentence`s."""
        return [Sentence("".join(text.split()), []) for text in texts]
