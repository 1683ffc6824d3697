"""Mistakes: where gold and prediction differ, grouped by gold and predicted spans, and sentence by sentence."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kcrf.reports.tables import SETS
from kcrf.runs import RunRecord

MOST_WRONG, MOST_RIGHT = 200, 50  # sentences shown, so that the page stays small

KINDS = (  # the first three of words, the others of entities
    *("split", "joined", "cut elsewhere"),
    *("missed", "invented", "wrong type", "wrong ends", "wrong ends and type"),
)

Spans = Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Mistake:
    """A mistake that occurs once or more often."""

    kind: str  # one of `KINDS`
    gold: tuple[tuple[str, str], ...]  # the text and the label of each span
    predicted: tuple[tuple[str, str], ...]
    count: int
    confidence: float | None  # the mean of the predicted spans; None if there are none
    text: str  # the sentence of the most confident occurrence, which has these characters in it
    start: int
    end: int


def frequent_mistakes(sentences: Iterable[Mapping[str, Any]]) -> list[Mistake]:
    """Collects mistakes: the most frequent first and, among equally frequent ones, the most confident first.

    Spans of gold and prediction that differ and overlap, directly or through others, are one mistake.

    >>> gold, predicted = [(0, 2, ""), (2, 4, "")], [(0, 4, "", 0.75)]
    >>> mistake, = frequent_mistakes([{"text": "北京大学", "gold": gold, "found": predicted}])
    >>> mistake.kind, mistake.gold, mistake.predicted, mistake.confidence
    ('joined', (('北京', ''), ('大学', '')), (('北京大学', ''),), 0.75)
    """
    occurrences: dict[Any, list[Any]] = defaultdict(list)  # (kind, gold, predicted) -> [(confidence, text, start, end)]
    for sentence in sentences:
        for gold, predicted in _differing(sentence["gold"], sentence["found"]):
            ends = [end for span in gold + predicted for end in span[:2]]
            text = sentence["text"]
            pieces = [tuple((text[span[0] : span[1]], span[2]) for span in spans) for spans in (gold, predicted)]
            confidence = sum(span[3] for span in predicted) / len(predicted) if predicted else None
            place = (confidence, sentence["text"], min(ends), max(ends))
            occurrences[_kind(gold, predicted), *pieces].append(place)
    mistakes = []
    for (kind, gold, predicted), places in occurrences.items():
        most_confident = max(places, key=lambda place: place[0] or 0.0)
        confidence = sum(place[0] for place in places) / len(places) if predicted else None
        mistakes.append(Mistake(kind, gold, predicted, len(places), confidence, *most_confident[1:]))
    return sorted(mistakes, key=lambda mistake: (-mistake.count, -(mistake.confidence or 0.0)))


def _differing(gold: Spans, predicted: Spans) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yields groups of overlapping spans that differ: a list of gold spans and a list of predicted ones."""
    right = {tuple(span[:3]) for span in gold} & {tuple(span[:3]) for span in predicted}
    differing = [
        (span, side) for side, spans in enumerate((gold, predicted)) for span in spans if tuple(span[:3]) not in right
    ]
    group: tuple[list[Any], list[Any]] = ([], [])
    end = 0
    for span, side in sorted(differing, key=lambda item: (item[0][0], item[0][1], item[1])):
        if span[0] >= end and any(group):
            yield group
            group = ([], [])
        group[side].append(span)
        end = max(end, span[1])
    if any(group):
        yield group


def _kind(gold: Spans, predicted: Spans) -> str:
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


def sentence_browser(run: RunRecord) -> dict[str, Any] | None:
    """The sentences of a run with gold and predicted spans, to be filtered by mistakes; None without predictions."""
    if run.predictions is None:
        return None
    kinds = [{_kind(*groups) for groups in _differing(row["gold"], row["found"])} for row in run.predictions]
    wrong = [i for i, mistakes in enumerate(kinds) if mistakes]
    right = [i for i, mistakes in enumerate(kinds) if not mistakes]
    counts = Counter(kind for mistakes in kinds for kind in mistakes)
    filters = [("all", "all", False), ("wrong", f"with mistakes ({len(wrong)})", bool(wrong))]
    filters += [(_class_of(kind), f"{kind} ({counts[kind]})", False) for kind in KINDS if counts[kind]]
    shown = wrong[:MOST_WRONG], right[:MOST_RIGHT]
    intro = (
        f"The first {len(shown[0])} of {len(wrong)} sentences with mistakes and {len(shown[1])} without, of "
        f"{len(kinds)} sentences{of_part(run)}. Red spans are wrong predictions, with their confidence; yellow spans "
        "were missed. Hover over a span for its confidence."
    )
    items = [_browsed(i, run.predictions[i], kinds[i]) for i in sorted(shown[0] + shown[1])]
    return {"filters": filters, "intro": intro, "sentences": items}


def of_part(run: RunRecord) -> str:
    """The part of the predictions of a run, for a sentence about them."""
    return f" of the {SETS[run.part]}" if run.part else ""


def _class_of(kind: str) -> str:
    return kind.replace(" ", "-")


def _browsed(index: int, sentence: dict[str, Any], kinds: set[str]) -> dict[str, Any]:
    text, gold, predicted = sentence["text"], sentence["gold"], sentence["found"]
    common = {tuple(span[:3]) for span in gold} & {tuple(span[:3]) for span in predicted}
    return {
        "number": index + 1,
        "kinds": " ".join(map(_class_of, ["wrong", *sorted(kinds)] if kinds else ["right"])),
        "text": text,
        "predicted": _pieces(text, predicted, common),
        "gold": _pieces(text, gold, common) if kinds else None,
    }


def _pieces(text: str, spans: Spans, common: set[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """The pieces of a text inside and outside of its spans. Spans that are not in `common` are marked."""
    pieces, end = [], 0
    for start, stop, label, *confidence in sorted(map(tuple, spans)):
        pieces.append({"text": text[end:start]})
        note, is_marked = label, (start, stop, label) not in common
        if confidence and is_marked:
            note = f"{note} {confidence[0]:.2f}".strip()
        title = f"{confidence[0]:.3f}" if confidence else ""
        piece = {"text": text[start:stop], "is_span": True, "is_marked": is_marked, "title": title, "note": note}
        pieces.append(piece)
        end = stop
    return [*pieces, {"text": text[end:]}]
