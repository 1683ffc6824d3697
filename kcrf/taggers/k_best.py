"""The k best tag sequences of a text, combined from those of its windows. Needs NumPy only."""

from collections.abc import Mapping, Sequence
from itertools import chain
from math import exp, inf, log
from typing import Any

import numpy as np


def best_of_window(window: Any, paths: np.ndarray, scores: np.ndarray) -> dict[tuple[int, ...], float]:
    """The best tag sequences for the units that a window keeps.

    Several paths may differ only in the context; the best of them is used.
    """
    best: dict[tuple[int, ...], float] = {}
    for path, score in zip(paths, scores.tolist(), strict=True):
        if score > float("-inf"):
            best.setdefault(tuple(window.kept(path).tolist()), score)
    return best


def join_windows(windows: Sequence[Mapping[Any, float]], k: int) -> list[tuple[list[Any], float]]:
    """The k best tag sequences of a text. Windows are assumed to be independent: their log probabilities are added."""
    beams: list[tuple[float, Any]] = [
        (0.0, None)
    ]  # log probability, and the tags as a linked list from the last window to the first
    for ways in windows:
        longer = [(score + addend, (before, tags)) for score, before in beams for tags, addend in ways.items()]
        beams = sorted(longer, key=lambda beam: -beam[0])[:k]
    return [(_tags_of(link), score) for score, link in beams]


def join_analyses(analyses_of_parts: Sequence[Any], k: int) -> list[tuple[list[Any], float]]:
    """The k best analyses of a text from those of its parts, which are independent of each other."""
    if len(analyses_of_parts) == 1:
        return analyses_of_parts[0]
    ways = [{tuple(spans): log(p) if p else -inf for spans, p in analyses} for analyses in analyses_of_parts]
    return [(spans, exp(score)) for spans, score in join_windows(ways, k)]


def _tags_of(link: Any) -> list[Any]:
    """The tags of a linked list, in the order of the text."""
    parts = []
    while link is not None:
        link, tags = link
        parts.append(tags)
    return list(chain.from_iterable(reversed(parts)))
