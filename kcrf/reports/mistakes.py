"""Mistakes: where gold and prediction differ, grouped by gold and predicted spans. Plain Python."""

from collections import defaultdict
from dataclasses import dataclass

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
        predicted: The same for the prediction.
        count: Number of occurrences.
        confidence: Mean confidence of the predicted spans; `None` if there are none.
        text: The sentence of the occurrence with the largest confidence.
        start, end: The characters of that occurrence in its sentence.
    """

    kind: str
    gold: tuple
    predicted: tuple
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

    >>> gold, predicted = [(0, 2, ""), (2, 4, "")], [(0, 4, "", 0.75)]
    >>> mistake, = frequent_mistakes([{"text": "北京大学", "gold": gold, "found": predicted}])
    >>> mistake.kind, mistake.gold, mistake.predicted, mistake.confidence
    ('joined', (('北京', ''), ('大学', '')), (('北京大学', ''),), 0.75)
    """
    occurrences = defaultdict(list)  # (kind, gold, predicted) -> [(confidence, text, start, end)]
    for sentence in sentences:
        for gold, predicted in _differing(sentence["gold"], sentence["found"]):
            ends = [end for span in gold + predicted for end in span[:2]]
            pieces = [
                tuple((sentence["text"][span[0] : span[1]], span[2]) for span in spans) for spans in (gold, predicted)
            ]
            confidence = sum(span[3] for span in predicted) / len(predicted) if predicted else None
            place = (confidence, sentence["text"], min(ends), max(ends))
            occurrences[_kind(gold, predicted), *pieces].append(place)
    mistakes = []
    for (kind, gold, predicted), places in occurrences.items():
        most_confident = max(places, key=lambda place: place[0] or 0.0)
        confidence = sum(place[0] for place in places) / len(places) if predicted else None
        mistakes.append(Mistake(kind, gold, predicted, len(places), confidence, *most_confident[1:]))
    return sorted(mistakes, key=lambda mistake: (-mistake.count, -(mistake.confidence or 0.0)))


def kinds_of_mistakes(sentence):
    """The kinds of mistakes in a sentence, a set; see `frequent_mistakes` for the sentence."""
    return {_kind(gold, predicted) for gold, predicted in _differing(sentence["gold"], sentence["found"])}


def _differing(gold, predicted):
    """Yields groups of overlapping spans that differ: a list of gold spans and a list of predicted ones."""
    right = {tuple(span[:3]) for span in gold} & {tuple(span[:3]) for span in predicted}
    differing = [
        (span, side) for side, spans in enumerate((gold, predicted)) for span in spans if tuple(span[:3]) not in right
    ]
    group, end = ([], []), 0
    for span, side in sorted(differing, key=lambda item: (item[0][0], item[0][1], item[1])):
        if span[0] >= end and any(group):
            yield group
            group = ([], [])
        group[side].append(span)
        end = max(end, span[1])
    if any(group):
        yield group


def _kind(gold, predicted):
    labels = [{span[2] for span in spans} for spans in (gold, predicted)]
    if labels[0] | labels[1] == {""}:
        if len(gold) == 1 < len(predicted):
            return "split"
        return "joined" if len(predicted) == 1 < len(gold) else "cut elsewhere"
    if not predicted or not gold:
        return "missed" if gold else "invented"
    if [(span[0], span[1]) for span in gold] == [(span[0], span[1]) for span in predicted]:
        return "wrong type"
    return "wrong ends" if labels[0] == labels[1] else "wrong ends and type"
