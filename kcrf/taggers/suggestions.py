"""Suggests which texts to label next: those from whose labels a model would learn most. Needs NumPy only."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

from kcrf.corpora import Example, Sentence
from kcrf.corpora.splits import NearDuplicates
from kcrf.taggers.decoding import ignore
from kcrf.taggers.text_input import as_list
from kcrf.taggers.uncertainty import DEFAULT_STRATEGY, measure_of

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


class Suggester(Generic[Result]):
    """Base of the classes that use a trained model: suggests which texts to label next."""

    def uncertainties(
        self,
        texts: Iterable[Any],
        strategy: str = DEFAULT_STRATEGY,
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
    ) -> np.ndarray:
        """How uncertain the model is about each text, an array.

        Args:
            texts: Iterable of texts, as the other methods of the class take them.
            strategy, batch_size, on_batch: As for `suggest`.
        """
        raise NotImplementedError

    def suggest(
        self,
        texts: Iterable[Any],
        count: int = 100,
        strategy: str = DEFAULT_STRATEGY,
        labeled: Iterable[Any] = (),
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
    ) -> list[Suggestion[Result]]:
        """Suggests which of the texts to label next, the most useful text first.

        These are the texts about which the model is most uncertain. A text is omitted if it is empty, or nearly the
        same as a text that was chosen before it or that is already labeled (see
        `kcrf.corpora.splits.NearDuplicates`).

        Args:
            texts: Iterable of unlabeled texts, as the other methods of the class take them. A sequence may read its
                texts when they are needed: it is iterated once, and then indexed.
            count: How many texts to suggest. Defaults to 100.
            strategy: The measure of uncertainty (Settles and Craven, 2008, "An Analysis of Active Learning Strategies
                for Sequence Labeling Tasks"). "mean-entropy": the entropy of the tag sequences, divided by the number
                of tokens. "token-entropy": the mean entropy of the tags, without regard to their neighbors.
                "sequence-entropy": the entropy of the tag sequences, which prefers long texts. "least-confidence":
                minus the log probability of the best tag sequence, which prefers long texts as well. Defaults to
                "mean-entropy".
            labeled: Iterable of the texts that are labeled, such as those of the training set: strings, `Sentence`s,
                lists of words or of pairs of a word and its tag. Defaults to no texts.
            batch_size: Number of windows of up to 128 positions per batch. Defaults to 64.
            on_batch: Called after each batch with the number of characters that have been read.

        Returns:
            A list of at most `count` `Suggestion`s.

        Raises:
            ValueError: `count` is not positive, the strategy is unknown, or the model has no probabilities.
        """
        measure_of(strategy)
        if not isinstance(count, int | np.integer) or count < 1:
            raise ValueError(f"`count` must be a positive integer. Received: {count!r}")
        is_sequence = isinstance(texts, Sequence) and not isinstance(texts, str)
        sequence: Any = texts if is_sequence else as_list(texts, "suggest")
        parts = (self.uncertainties(part, strategy, batch_size, on_batch) for part in _parts(sequence))
        scores = np.concatenate([np.zeros(0), *parts])
        seen = NearDuplicates(map(self._labeled_text, as_list(labeled, "suggest")))
        chosen = list(distinct(most_uncertain(scores), lambda index: self._plain_text(sequence[index]), count, seen))
        suggestions = []
        for part in _parts(chosen):
            items = [sequence[index] for index in part]
            rows = zip(part, items, self._predictions(items, batch_size), strict=True)
            suggestions += [
                Suggestion(index, item, float(scores[index]), prediction) for index, item, prediction in rows
            ]
        return suggestions

    def _predictions(self, texts: list[Any], batch_size: int) -> list[Result]:
        """The prediction of the model for each text."""
        raise NotImplementedError

    def _plain_text(self, text: Any) -> str:
        """The text as a string, by which near-duplicates are found."""
        return text

    def _labeled_text(self, item: Any) -> str:
        """The text of an item of the training set."""
        if isinstance(item, (str, Sentence)):
            return item if isinstance(item, str) else item.text
        if isinstance(item, Example):
            item = [text for text in item.texts if text is not None]
        elif isinstance(item, list) and all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in item):
            item = [word for word, _ in item]
        return self._plain_text(item)


def _parts(items: Iterable[Any]) -> Iterator[list[Any]]:
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
