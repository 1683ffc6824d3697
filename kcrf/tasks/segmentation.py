"""Word segmentation. Needs NumPy only."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kcrf.corpora import Sentence, read_lines, read_segmented
from kcrf.metrics import segmentation_scores
from kcrf.metrics.scores import TextMismatch
from kcrf.tasks.mismatch import MismatchError
from kcrf.tasks.tagging import TaggingTask

__all__ = ["Segmentation"]


class Segmentation(TaggingTask):
    """The words of texts without spaces between them, as in Chinese."""

    name = "cws"
    command = "segment"
    settings = frozenset({"scheme"})
    defaults: Mapping[str, Any] = {"scheme": "bmes"}
    choices: Mapping[str, tuple[Any, ...]] = {"scheme": ("bmes",), "units": ("characters",)}
    file_options = frozenset({"strip_tags", "words"})

    def read_file(self, path: str, reading: Mapping[str, Any]) -> list[Any]:
        """The words of the sentences of a file."""
        return [words for words in read_segmented(path, reading.get("strip_tags", False)) if words]

    def file_lines(self, items: list[Any]) -> list[str]:
        """A line for each list of words."""
        return [" ".join(words) for words in items]

    def unlabeled_items(self, texts: Sequence[Any], pairs: bool) -> list[Any]:
        """The texts without their white space, as `Sentence`s."""
        return [Sentence("".join(text.split()), []) for text in texts]

    def read_scored(self, path: str, reading: Mapping[str, Any], is_gold: bool) -> list[Any]:
        """The words of each line."""
        if is_gold:
            return read_segmented(path, reading.get("strip_tags", False))
        return [line.split() for line in read_lines(path)]

    def predicted_items(self, predictions: list[dict[str, Any]], member: str) -> list[Any]:
        """The words of each text."""
        return [[row["text"][start:end] for start, end, *_ in sorted(row[member])] for row in predictions]

    def scores(
        self,
        gold: list[Any],
        predicted: list[Any],
        training_words: Collection[str] | None = None,
        labels: Sequence[str] = (),
    ) -> dict[str, Any]:
        """As `kcrf.metrics.segmentation_scores`."""
        if len(gold) != len(predicted):
            raise MismatchError(
                f"needs a line for each line of the gold. Received: {len(predicted)} lines, in the gold {len(gold)}"
            )
        try:
            return segmentation_scores(gold, predicted, training_words)
        except TextMismatch as error:
            raise MismatchError(str(error), error.line) from None
