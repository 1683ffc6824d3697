"""Splits texts of any length into windows for a model, or reads whole texts in one window."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from kcrf.readers.padding import BUCKETS
from kcrf.readers.units import Reading, Window

SEPARATOR = "\n"  # between the characters of two texts
SENTENCE_ENDS, PAUSES = "。！？；!?;…", "，、：,:"
OVERLAP = 16  # characters
_FULL_STOP = re.compile(r"\.(?=\s)")


def windows(
    text: str | Sequence[str], limit: int = BUCKETS[-1], overlap: int = OVERLAP
) -> list[tuple[int, int, int, int]]:
    """Splits a text into windows of at most `limit` characters: at sentence ends, else at pauses, else with overlap.

    A window `(start, end, keep_start, keep_end)` decides the tags of `text[keep_start:keep_end]`; these parts are
    consecutive. Windows that overlap each decide the half of the overlap that is farther from their edge.
    """
    text = with_stops(text) if isinstance(text, str) else "".join(text)  # of units, their last characters
    bounds, start, keep = [], 0, 0
    while len(text) - start > limit:
        end = start + limit
        cut = _cut_after(SENTENCE_ENDS, text, start, end) or _cut_after(PAUSES, text, start, end)
        end, next_start, next_keep = (cut, cut, cut) if cut else (end, end - overlap, end - overlap // 2)
        bounds.append((start, end, keep, next_keep))
        start, keep = next_start, next_keep
    return [*bounds, (start, len(text), keep, len(text))] if text else []


def with_stops(text: str) -> str:
    """Replaces each full stop before white space by 。, a sentence end for `windows`; others may be decimal points."""
    return _FULL_STOP.sub("。", text)


def last_characters(text: str, ends: np.ndarray) -> list[str]:
    """The last character of each unit of a text, as `windows` takes them."""
    marked = with_stops(text)
    return [marked[end - 1] for end in ends.tolist()]


def _cut_after(marks: str, text: str, start: int, end: int) -> int:
    """The position after the last of `marks` in the second half of `text[start:end]`, or 0."""
    return max(text.rfind(mark, (start + end) // 2 + 1, end) for mark in marks) + 1


def windows_of_rows(rows: dict[str, Any], bounds: list[tuple[int, int, int, int]], first: int = 0) -> list[Window]:
    """The `Window`s of a text with one position for each unit. The rows of the text begin at the row `first`."""
    parts = []
    for start, end, keep, stop in bounds:
        inputs = {name: values[first + start : first + end] for name, values in rows.items()}
        parts.append(Window(inputs, np.arange(end - start), start, (keep, stop)))
    return parts


def bounds_of_parts(text: str | Sequence[str], limit: int, whole: bool) -> list[tuple[int, int]]:
    """The bounds of the first `limit` items of a text. If `whole`, the bounds of windows over the others follow."""
    overlap = min(OVERLAP, limit // 4)
    rest = limit - overlap  # where the windows over the others begin
    parts = windows(text[rest:], limit, overlap) if whole and len(text) > limit else []
    return [(0, min(len(text), limit)), *((rest + start, rest + end) for start, end, *_ in parts)]


def whole_reading(parts: Iterable[dict[str, Any]], is_cut: bool) -> Reading:
    """The `Reading` of a text that is classified. Each part of it is the inputs of a window, a dict of rows."""
    empty = np.zeros((0, 2), np.int64)
    return Reading(empty, [Window(part, empty[:, 0], 0, (0, 0)) for part in parts], is_cut)


def cut_pair(first: Any, second: Any, room: int) -> tuple[Any, Any]:
    """Truncates two sequences at their ends to at most `room` items in total, the longer sequence first."""
    of_second = min(len(second), max(room // 2, room - len(first)))
    return first[: room - of_second], second[:of_second]
