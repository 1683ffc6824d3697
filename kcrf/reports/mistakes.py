"""Where gold and prediction part: mistakes, put together by what was confused with what. Plain Python."""

from collections import defaultdict
from dataclasses import dataclass

__all__ = ["Mistake", "frequent_mistakes"]


@dataclass(frozen=True)
class Mistake:
    """A confusion and how often it happens.

    Attributes:
        kind: For words "split", "joined" or "cut elsewhere"; for entities "missed", "invented", "wrong type", "wrong
            ends" or "wrong ends and type".
        gold, found: What stands there by gold and by the prediction, a tuple of `(text, label)` each.
        count: How often.
        confidence: The mean confidence of what was wrongly found; None where nothing was.
        text, start, end: The occurrence that the tagger was surest of: its sentence, and the characters in it.
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
    """All mistakes, the most frequent first; equally frequent ones by confidence, the surest first.

    Spans of gold and prediction that are not equal and overlap are one mistake.

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
    places = defaultdict(list)  # (kind, gold, found) -> [(confidence, text, start, end)]
    for sentence in sentences:
        for gold, found in _parting(sentence["gold"], sentence["found"]):
            ends = [end for span in gold + found for end in span[:2]]
            pieces = [tuple((sentence["text"][s[0] : s[1]], s[2]) for s in spans) for spans in (gold, found)]
            sureness = sum(span[3] for span in found) / len(found) if found else None
            places[_kind(gold, found), *pieces].append((sureness, sentence["text"], min(ends), max(ends)))
    mistakes = []
    for (kind, gold, found), those in places.items():
        surest = max(those, key=lambda place: place[0] or 0.0)
        confidence = sum(place[0] for place in those) / len(those) if found else None
        mistakes.append(Mistake(kind, gold, found, len(those), confidence, *surest[1:]))
    return sorted(mistakes, key=lambda mistake: (-mistake.count, -(mistake.confidence or 0.0)))


def _parting(gold, found):
    """Yields lists of gold spans and of found spans that differ and hang together by overlapping."""
    right = {tuple(span[:3]) for span in gold} & {tuple(span[:3]) for span in found}
    rest = [(span, side) for side, spans in enumerate((gold, found)) for span in spans if tuple(span[:3]) not in right]
    group, reach = ([], []), 0
    for span, side in sorted(rest, key=lambda item: (item[0][0], item[0][1], item[1])):
        if span[0] >= reach and any(group):
            yield group
            group = ([], [])
        group[side].append(span)
        reach = max(reach, span[1])
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
