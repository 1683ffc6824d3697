"""Posterior probabilities of spans, from the windows of texts. In this file, spans are in units."""

from bisect import bisect_left
from itertools import chain
from operator import itemgetter

import numpy as np

_MOST_BLANKS = 4  # units of white space on either side that count as part of an entity


def span_confidences(network, spans, batches):
    """The posterior probabilities of spans.

    The window that keeps the first unit of a span gives its probability. If the span ends after that window, the
    probability is that of the part inside the window.

    Args:
        network: The network of a `Tagger`.
        spans: For each text a sorted list of `(start, end)` or `(start, end, label)`.
        batches: Pairs of a list of `(number of the text, Window)` and the scores of the network.

    Returns:
        For each text a list of floats; 1 for a span that begins in no window.
    """
    probabilities = [[1.0] * len(spans_inside) for spans_inside in spans]
    for windows, scores in batches:
        inside = [_spans_in_window(window, spans[number]) for number, window in windows]
        values = network.span_confidences(scores, [[span for _, span in spans_inside] for spans_inside in inside])
        for (number, _), spans_inside, confidences in zip(windows, inside, values, strict=True):
            for (index, _), confidence in zip(spans_inside, confidences.tolist(), strict=True):
                probabilities[number][index] = confidence
    return probabilities


def entity_confidences(network, spans, blanks, batches):
    """The posterior probabilities of entities, whichever blank units around them belong to them.

    Entities have no white space at their edges, but the tag sequences of a model may: "Ann" and "Ann " are one entity,
    whose probability is the sum of both.

    Args:
        network, batches: As for `span_confidences`.
        spans: For each text a list of `(start, end, label)`.
        blanks: For each text whether each unit is white space, `(units,)` bool.
    """
    variants = [[_with_blanks(span, blank) for span in row] for row, blank in zip(spans, blanks, strict=True)]
    distinct = [sorted(set(chain.from_iterable(row))) for row in variants]
    confidences = span_confidences(network, distinct, batches)
    tables = [dict(zip(row, ps, strict=True)) for row, ps in zip(distinct, confidences, strict=True)]
    return [
        [min(1.0, sum(table[span] for span in same)) for same in row]
        for row, table in zip(variants, tables, strict=True)
    ]


def without_blanks(span, blank):
    """A span `(start, end, label)` without blank units at its edges, unless all of its units are blank."""
    start, end, label = span
    real = np.flatnonzero(~blank[start:end])
    return (start + int(real[0]), start + int(real[-1]) + 1, label) if len(real) else span


def most_variants(blank):
    """The number of spans, at most, that are the same entity with more or fewer of the blank units around it."""
    runs = "".join("x" if unit else " " for unit in blank).split()
    return (1 + min(max(map(len, runs), default=0), _MOST_BLANKS)) ** 2


def _with_blanks(span, blank):
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


def word_confidences(network, words, batches):
    """The posterior probabilities of words whatever their classes: for each word, the sum over all classes.

    Args:
        network, batches: As for `span_confidences`.
        words: For each text a sorted list of `(start, end, class)`.
    """
    types = network.scheme.types
    spans = [[(start, end, name) for start, end, _ in row for name in types] for row in words]
    return [
        np.reshape(row, (-1, len(types))).sum(axis=1).clip(max=1.0).tolist()
        for row in span_confidences(network, spans, batches)
    ]


def _spans_in_window(window, spans):
    """The spans that begin in the kept part of a window: `(index, span in positions of the window)`."""
    (start, stop), first, positions = window.keep, window.first, window.positions
    low, high = (bisect_left(spans, unit, key=itemgetter(0)) for unit in (start, stop))
    return [
        (index, (int(positions[begin - first]), int(positions[min(end - first, len(positions)) - 1]) + 1, *label))
        for index, (begin, end, *label) in enumerate(spans[low:high], low)
    ]


def possible_spans(scheme, likely):
    """The entities whose tags are all likely. The probability of an entity is at most that of its least likely tag.

    Args:
        scheme: A `TagScheme` with types.
        likely: `(units, tags)` bool.

    Returns:
        A sorted list of `(start, end, label)`.
    """
    candidates = []
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


def without_overlaps(spans, confidences, min_probability):
    """The spans with at least `min_probability`; among overlapping spans, the most confident one, or else the longest.

    All spans that begin in a window and end after it have the same probability, that of their part inside the window.

    Args:
        spans: List of `(start, end, label)`.
        confidences: The probability of each.
        min_probability: The lowest probability.

    Returns:
        `(spans, confidences)`: two lists, from left to right.
    """
    chosen, taken = [], np.zeros(max((end for _, end, *_ in spans), default=0), bool)
    pairs = sorted(zip(confidences, spans, strict=True), key=lambda pair: (-pair[0], pair[1][0] - pair[1][1]))
    for confidence, span in pairs:
        if confidence >= min_probability and not taken[span[0] : span[1]].any():
            taken[span[0] : span[1]] = True
            chosen.append((span, confidence))
    chosen.sort(key=itemgetter(0))
    return [span for span, _ in chosen], [confidence for _, confidence in chosen]
