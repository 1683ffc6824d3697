"""Posterior probabilities of spans, and the k best tag sequences, from the windows of texts. Spans are in units."""

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import chain, compress
from math import exp, inf, log
from operator import itemgetter
from typing import Any

import numpy as np

from kcrf.networks.network import TaggingNetwork
from kcrf.readers.units import Window
from kcrf.tags import TagScheme

_MOST_BLANKS = 4  # units of white space on either side that count as part of an entity
_WHITE_SPACE = re.compile(r"\s")

Scored = Sequence[tuple[list[Any], Any]]  # a list of (number of the text, Window), and the scores of the network
UnitSpan = tuple[Any, ...]  # (start, end) or (start, end, label)
Spans = Sequence[Sequence[UnitSpan]]  # of each text


def probabilities_of_spans(network: TaggingNetwork, spans: Spans, batches: Scored) -> list[list[float]]:
    """The posterior probabilities of spans.

    The window that keeps the first unit of a span gives its probability. If the span ends after that window, this is
    the probability of the part inside the window.
    """
    probabilities = [[1.0] * len(spans_inside) for spans_inside in spans]
    for windows, scores in batches:
        inside = [_spans_in_window(window, spans[number]) for number, window in windows]
        values = network.span_probabilities(scores, [[span for _, span in spans_inside] for spans_inside in inside])
        for (number, _), spans_inside, of_spans in zip(windows, inside, values, strict=True):
            for (index, _), probability in zip(spans_inside, of_spans.tolist(), strict=True):
                probabilities[number][index] = probability
    return probabilities


def probabilities_of_entities(
    network: TaggingNetwork, spans: Spans, blanks: Sequence[np.ndarray], batches: Scored
) -> list[list[float]]:
    """The posterior probabilities of entities, whichever blank units around them belong to them.

    Entities have no white space at their edges, but the tag sequences of a model may: "Ann" and "Ann " are one entity,
    whose probability is the sum of both.
    """
    variants = [[_with_blanks(span, blank) for span in row] for row, blank in zip(spans, blanks, strict=True)]
    distinct = [sorted(set(chain.from_iterable(row))) for row in variants]
    probabilities = probabilities_of_spans(network, distinct, batches)
    tables = [dict(zip(row, ps, strict=True)) for row, ps in zip(distinct, probabilities, strict=True)]
    return [
        [min(1.0, sum(table[span] for span in same)) for same in row]
        for row, table in zip(variants, tables, strict=True)
    ]


def blank_units(text: str, units: np.ndarray) -> np.ndarray:
    """Whether each unit of a text is white space, `(units,)` bool."""
    if not _WHITE_SPACE.search(text):
        return np.zeros(len(units), bool)
    return np.array([text[start:end].isspace() for start, end in units], bool)


def without_blanks(span: UnitSpan, blank: np.ndarray) -> UnitSpan:
    """A span `(start, end, label)` without blank units at its edges, unless all of its units are blank."""
    start, end, label = span
    real = np.flatnonzero(~blank[start:end])
    return (start + int(real[0]), start + int(real[-1]) + 1, label) if len(real) else span


def most_variants(blank: np.ndarray) -> int:
    """The number of spans, at most, that are the same entity with more or fewer of the blank units around it."""
    runs = "".join("x" if unit else " " for unit in blank).split()
    return (1 + min(max(map(len, runs), default=0), _MOST_BLANKS)) ** 2


def _with_blanks(span: UnitSpan, blank: np.ndarray) -> list[UnitSpan]:
    """The spans that are the same entity: with none, some or all of up to 4 blank units on either side."""
    start, end, label = inner = without_blanks(span, blank)
    if blank[start]:
        return [inner]
    first, last = start, end
    while first and blank[first - 1] and start - first < _MOST_BLANKS:
        first -= 1
    while last < len(blank) and blank[last] and last - end < _MOST_BLANKS:
        last += 1
    return [(left, right, label) for left in range(first, start + 1) for right in range(end, last + 1)]


def probabilities_of_words(network: TaggingNetwork, words: Spans, batches: Scored) -> list[list[float]]:
    """The posterior probabilities of words whatever their classes: for each word, the sum over all classes."""
    types = network.scheme.types
    spans = [[(start, end, name) for start, end, _ in row for name in types] for row in words]
    return [
        np.reshape(row, (-1, len(types))).sum(axis=1).clip(max=1.0).tolist()
        for row in probabilities_of_spans(network, spans, batches)
    ]


def _spans_in_window(window: Window, spans: Sequence[UnitSpan]) -> list[tuple[int, UnitSpan]]:
    """The spans that begin in the kept part of a window: `(index, span in positions of the window)`."""
    (start, stop), first, positions = window.keep, window.first, window.positions
    low, high = (bisect_left(spans, unit, key=itemgetter(0)) for unit in (start, stop))
    return [
        (index, (int(positions[begin - first]), int(positions[min(end - first, len(positions)) - 1]) + 1, *label))
        for index, (begin, end, *label) in enumerate(spans[low:high], low)
    ]


def possible_spans(scheme: TagScheme, likely: np.ndarray) -> list[UnitSpan]:
    """The entities whose tags are all likely. An entity is at most as probable as its least likely tag."""
    candidates: list[UnitSpan] = []
    for label in scheme.types:
        (single,), (first, inside, last) = (scheme.encode([(0, length, label)], length) for length in (1, 3))
        candidates += [(start, start + 1, label) for start in np.flatnonzero(likely[:, single]).tolist()]
        for start in np.flatnonzero(likely[:, first]).tolist():
            for end in range(start + 1, len(likely)):
                if likely[end, last]:
                    candidates.append((start, end + 1, label))
                if not likely[end, inside]:
                    break
    return sorted(candidates)


def at_least(
    spans: Sequence[UnitSpan], probabilities: Sequence[float], min_probability: float
) -> tuple[list[UnitSpan], list[float]]:
    """The spans with at least `min_probability`, which may overlap."""
    kept = [probability >= min_probability for probability in probabilities]
    return list(compress(spans, kept)), list(compress(probabilities, kept))


def without_overlaps(
    spans: Sequence[UnitSpan], probabilities: Sequence[float], min_probability: float
) -> tuple[list[UnitSpan], list[float]]:
    """The spans with at least `min_probability`; among overlapping spans, the most probable one, or else the longest.

    Spans that begin together and end after their window have one probability, of the part inside the window.
    """
    chosen, taken = [], np.zeros(max((end for _, end, *_ in spans), default=0), bool)
    pairs = sorted(zip(probabilities, spans, strict=True), key=lambda pair: (-pair[0], pair[1][0] - pair[1][1]))
    for probability, span in pairs:
        if probability >= min_probability and not taken[span[0] : span[1]].any():
            taken[span[0] : span[1]] = True
            chosen.append((span, probability))
    chosen.sort(key=itemgetter(0))
    return [span for span, _ in chosen], [probability for _, probability in chosen]


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
    beams: list[tuple[float, Any]] = [(0.0, None)]  # log probability, and tags as a linked list from the last window
    for ways in windows:
        longer = [(score + addend, (before, tags)) for score, before in beams for tags, addend in ways.items()]
        beams = sorted(longer, key=lambda beam: -beam[0])[:k]
    return [(_tags_of(link), score) for score, link in beams]


def join_analyses(analyses_of_parts: Sequence[Any], k: int) -> list[tuple[list[Any], float]]:
    """Joins the analyses of the parts of a text, which are independent, to the k best analyses of the text."""
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
