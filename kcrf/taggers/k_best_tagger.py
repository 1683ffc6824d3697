"""`KBestTagger`: the base of the classes that return the k best results of a text, with probabilities."""

import warnings
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


class KBestTagger(Generic[Result]):
    """Base of `WordSegmenter` and `EntityRecognizer`.

    All classes that use a trained model name their methods by one pattern. No argument changes the type of a result,
    and a probability comes after the item that it belongs to:

    - `segment(text)` returns the result of a text, and `segment_batch(texts, batch_size, on_batch)` a list with the
      result of each text. The verb is that of the task: `recognize`, `classify`, `tag`.
    - `segment_with_confidence(text)` and `segment_batch_with_confidence(texts, ...)` return `(item, probability)` for
      each item of the result. A class whose items have an attribute for the probability, such as `Entity.confidence`,
      needs no such methods.
    - `k_best(text, k)` and `k_best_batch(texts, k, batch_size, on_batch)` return at most k `(result, probability)`,
      best first.
    """

    def k_best_batch(self, texts: Iterable[Any], k: int = 5, *args: Any, **kwargs: Any) -> list[Any]:
        """A list with at most k `(result, probability)` for each text, best first."""
        raise NotImplementedError

    def top_k(self, text: Any, k: int = 5, spans: Iterable[Any] = ()) -> list[tuple[float, Result]]:
        """Deprecated: `k_best` returns `(result, probability)`; this method returns `(probability, result)`."""
        results = self.k_best_batch([text], k, spans=[spans])
        return probability_first(f"{type(self).__name__}.top_k", "k_best", results)[0]

    def top_k_batch(self, texts: Iterable[Any], k: int = 5, *args: Any, **kwargs: Any) -> list[Any]:
        """Deprecated: `k_best_batch` returns `(result, probability)`; this method returns `(probability, result)`."""
        results = self.k_best_batch(texts, k, *args, **kwargs)
        return probability_first(f"{type(self).__name__}.top_k_batch", "k_best_batch", results)


def probability_first(old, new, results):
    """The `(probability, result)` of each text that a deprecated method returned, with a warning for its caller.

    Args:
        old, new: The names of the deprecated method and of the method to use.
        results: For each text a list of `(result, probability)`.
    """
    _warn(f"{old} is now {new}, which returns (result, probability)")
    return [[(probability, result) for result, probability in best] for best in results]


def warn_of_confidence(method):
    """Warns the caller of a method that its argument `confidence=True` is deprecated."""
    _warn(f"{method} with confidence=True is now {method}_with_confidence")


def _warn(message):
    warnings.warn(message, DeprecationWarning, stacklevel=4)
