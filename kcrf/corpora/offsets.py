"""Offsets of entities: whether they count characters, and which unit fits where they do not."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from kcrf.progress_bars import print_note

Row = tuple[int, str, list[Any]]  # line number, text, spans
Cut = Callable[[str, int, int], str | None]  # (text, start, end) to the part of the text, or None if there is none


def check_offsets(path: object, rows: Sequence[Row]) -> None:
    """Refuses entities whose own text is not the text at their offsets."""
    wrong = misplaced(rows)
    if not wrong:
        return
    number, text, (start, end, _, entity) = wrong[0]
    named = [(text, [span for span in spans if span[3] is not None]) for _, text, spans in rows]
    units = fitting_units(named)
    hint = f"; they fit as {' or '.join(units)}" if units else ""
    raise ValueError(
        f"{path}:{number}: start and end of an entity must count characters of the text. Received: {text[start:end]!r} "
        f"at {start}, {end} for {entity!r}, the first of {len(wrong)} such entities{hint}"
    )


def misplaced(rows: Iterable[Row]) -> list[tuple[int, str, Any]]:
    """The entities whose own text is not the text at their offsets, a list of `(line number, text, span)`."""
    return [
        (number, text, span)
        for number, text, spans in rows
        for span in spans
        if span[3] is not None and not _is_at(_by_characters, text, *span)
    ]


def fitting_units(rows: Iterable[tuple[str, Sequence[Any]]]) -> list[str]:
    """The units in which all offsets of entities are within their texts and, where they have a text, fit it."""
    spans = [(text, *span) for text, entities in rows for span in entities]
    return [unit for unit, cut in _UNITS.items() if all(_is_at(cut, *span) for span in spans)]


def _is_at(cut: Cut, text: str, start: int, end: int, label: str, entity: str | None = None) -> bool:
    """Whether an entity is within a text and, white space at the edges aside, is its part there."""
    part = cut(text, start, end)
    return part is not None and (entity is None or part.strip() == entity.strip())


def _by_characters(text: str, start: int, end: int) -> str | None:
    return text[start:end] if 0 <= start < end <= len(text) else None


def _by_units(text: str, start: int, end: int, encoding: str, size: int) -> str | None:
    """The part of a text by offsets in units of `size` bytes in an encoding."""
    first, last = (from_units(text, place, encoding, size) for place in (start, end))
    return None if first is None or last is None else _by_characters(text, first, last)


_UNITS: dict[str, Cut] = {
    "characters with the end included": lambda text, start, end: _by_characters(text, start, end + 1),
    "UTF-16 code units": partial(_by_units, encoding="utf-16-le", size=2),
    "bytes of UTF-8": partial(_by_units, encoding="utf-8", size=1),
}


def to_utf16(text: str, place: int) -> int:
    """A place in a text in UTF-16 code units, in which JavaScript counts: an emoji is two."""
    return len(text[:place].encode("utf-16-le", "surrogatepass")) // 2


def from_units(text: str, place: int, encoding: str = "utf-16-le", size: int = 2) -> int | None:
    """The place in characters of one in code units, or None if it is within a character or not in the text."""
    units = text.encode(encoding, "surrogatepass")
    try:
        return len(units[: size * place].decode(encoding)) if 0 <= place <= len(units) // size else None
    except UnicodeDecodeError:
        return None


def trimmed(path: object, rows: Iterable[Row]) -> list[Row]:
    """Rows without white space at the edges of entities; a note on standard error counts those that had some."""
    changed, trimmed_rows = 0, list[Row]()
    for number, text, spans in rows:
        blank = next((span for span in spans if text[slice(*span[:2])].isspace()), None)
        if blank:
            raise ValueError(f"{path}:{number}: an entity must not be white space alone. Received: {blank}")
        trimmed_rows.append((number, text, [trimmed_span(text, span) for span in spans]))
        changed += sum(before != after for before, after in zip(spans, trimmed_rows[-1][2], strict=True))
    if changed:
        print_note(f"{path}: removed white space at the edges of {changed:,} entities")
    return trimmed_rows


def trimmed_span(text: str, span: tuple[Any, ...]) -> tuple[Any, ...]:
    """A span `(start, end, ...)` without white space at its edges, if it is in the text and not white space alone."""
    start, end, *rest = span
    inner = _by_characters(text, start, end) or ""
    if not inner.strip():
        return span
    return (start + len(inner) - len(inner.lstrip()), end - len(inner) + len(inner.rstrip()), *rest)
