"""Mistakes: where gold and prediction differ, grouped by what was taken for what. Plain Python."""

from collections import defaultdict
from dataclasses import dataclass

__all__ = ["KINDS", "Mistake", "frequent_mistakes", "kinds_of_mistakes"]

KINDS = (  # the first three of words, the others of entities
    *("split", "joined", "cut elsewhere"),
    *("missed", "invented", "wrong type", "wrong ends", "wrong ends and type"),
)


@dataclass(frozen=True)
class Mistake:
    """A mistake that occurs once or more often.

    Attributes:
        kind: One of `KINDS`.
        gold: A tuple of `(text, label)`, one for each span of gold.
        found: The same of the prediction.
        count: Number of occurrences.
        confidence: Mean confidence of the spans found; `None` if there are none.
        text: The sentence of the occurrence with the largest confidence.
        start, end: The characters of that occurrence in its sentence.
    """

    kind: str
    gold: tuple
    found: tuple
    count: int
    confidence: float | None
    text: str
    start: int
    end: int


def frequent_mistakes(sentences):
    """Collects mistakes, the most frequent first; of equally frequent ones, that with the largest confidence first.

    Spans of gold and prediction that differ and overlap, directly or through others, are one mistake.

    Args:
        sentences: Dicts of `text`, `gold` with spans `(start, end, label)` and `found` with spans `(start, end, label,
            confidence)`; labels are "" for words.

    Returns:
        A list of `Mistake`.

    >>> gold, found = [(0, 2, ""), (2, 4, "")], [(0, 4, "", 0.75)]
    >>> mistake, = frequent_mistakes([{"text": "北京大学", "gold": gold, "found": found}])
    >>> mistake.kind, mistake.gold, mistake.found, mistake.confidence
    ('joined', (('北京', ''), ('大学', '')), (('北京大学', ''),), 0.75)
    """
    occurrences = defaultdict(list)  # (kind, gold, found) -> [(confidence, text, start, end)]
    for sentence in sentences:
        for gold, found in _differing(sentence["gold"], sentence["found"]):
            ends = [end for span in gold + found for end in span[:2]]
            pieces = [
                tuple((sentence["text"][span[0] : span[1]], span[2]) for span in spans) for spans in (gold, found)
            ]
            confidence = sum(span[3] for span in found) / len(found) if found else None
            place = (confidence, sentence["text"], min(ends), max(ends))
            occurrences[_kind(gold, found), *pieces].append(place)
    mistakes = []
    for (kind, gold, found), places in occurrences.items():
        surest = max(places, key=lambda place: place[0] or 0.0)
        confidence = sum(place[0] for place in places) / len(places) if found else None
        mistakes.append(Mistake(kind, gold, found, len(places), confidence, *surest[1:]))
    return sorted(mistakes, key=lambda mistake: (-mistake.count, -(mistake.confidence or 0.0)))


def kinds_of_mistakes(sentence):
    """The kinds of mistakes in a sentence, a set; see `frequent_mistakes` for the sentence."""
    return {_kind(gold, found) for gold, found in _differing(sentence["gold"], sentence["found"])}


def _differing(gold, found):
    """Yields groups of overlapping spans that differ: a list of gold spans and a list of found spans."""
    right = {tuple(span[:3]) for span in gold} & {tuple(span[:3]) for span in found}
    rest = [(span, side) for side, spans in enumerate((gold, found)) for span in spans if tuple(span[:3]) not in right]
    group, end = ([], []), 0
    for span, side in sorted(rest, key=lambda item: (item[0][0], item[0][1], item[1])):
        if span[0] >= end and any(group):
            yield group
            group = ([], [])
        group[side].append(span)
        end = max(end, span[1])
    if any(group):
        yield group


def _kind(gold, found):
    labels = [{span[2] for span in spans} for spans in (gold, found)]
    if labels[0] | labels[1] == {""}:
        if len(gold) == 1 < len(found):
            return "split"
        return "joined" if len(found) == 1 < len(gold) else "cut elsewhere"
    if not found or not gold:
        return "missed" if gold else "invented"
    if [(span[0], span[1]) for span in gold] == [(span[0], span[1]) for span in found]:
        return "wrong type"
    return "wrong ends" if labels[0] == labels[1] else "wrong ends and type"
