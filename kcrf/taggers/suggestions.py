"""`Suggestion`, and the choice of texts to label: the most uncertain ones, without near-duplicates. Needs no Keras."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

from kcrf.corpora.splits import NearDuplicates

Result = TypeVar("Result")
_AT_ONCE = 1000  # texts


@dataclass(frozen=True)
class Suggestion(Generic[Result]):
    """A text to label.

    Attributes:
        index: Its place in the texts that were given, counted from 0.
        text: The text, as it was given.
        score: How uncertain the model is, by the strategy; the higher, the more uncertain.
        prediction: The prediction of the model, for annotators to correct.
    """

    index: int
    text: Any
    score: float
    prediction: Result


def at_once(items: Iterable[Any]) -> Iterator[list[Any]]:
    """Yields lists of at most so many items: what a model returns for them fits into memory."""
    items = iter(items)
    while part := list(islice(items, _AT_ONCE)):
        yield part


def most_uncertain(scores: np.ndarray) -> np.ndarray:
    """The indices of scores, the highest first, of equal scores the first one."""
    return np.argsort(-np.asarray(scores), kind="stable")


def distinct(indices: Iterable[Any], text_of: Callable[[int], str], count: int, seen: NearDuplicates) -> Iterator[int]:
    """Yields the first `count` indices whose texts are not empty, and are near-duplicates of no text before them.

    Args:
        indices: Iterable of ints in their order.
        text_of: A function from an index to its text.
        count: How many.
        seen: The `NearDuplicates` to which the texts are added.
    """
    for index in map(int, indices):
        if count < 1:
            return
        text = text_of(index)
        if text.strip() and text not in seen:
            seen.add(text)
            count -= 1
            yield index
