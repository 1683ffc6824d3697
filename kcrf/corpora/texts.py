"""Reads texts to classify one by one, without reading ahead: lines, rows of a table, or JSON lines."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from kcrf.corpora.classified import (
    TEXT_B_NAMES,
    TEXT_NAMES,
    check_once,
    check_width,
    json_object,
    named_columns,
    table_cells,
    usual_columns,
    usual_members,
)


def iterate_texts(
    lines: Iterable[str], name: str, kind: str = "text", fields: Sequence[str | int] | None = None, pairs: bool = False
) -> Iterator[Any]:
    """Yields the unlabeled texts of a file.

    Args:
        lines: An iterable of strings.
        name: The name of the file in error messages.
        kind: "text": a text per line, or two texts with a tab between them. "table": a text per row, with tabs between
            columns if the first line has one, else commas. "json": an object per line. Defaults to "text".
        fields: For a table, the column names of the texts, or column numbers from 0 for a table without names; for
            JSON,
            the names of members. Defaults to None: `text` and, for pairs, `text_b`, or other usual names.
        pairs: Whether to yield pairs. Defaults to False.

    Yields:
        A string, or a tuple of two strings for pairs.

    Raises:
        ValueError: A column, a member or a text of a pair is missing. Names the line.

    >>> list(iterate_texts(["id,review", '1,"Good, cheap."'], "data.csv", "table", ["review"]))
    ['Good, cheap.']
    """
    count = 2 if pairs else 1
    if fields is not None and len(fields) != count:
        needed = "two texts, for pairs" if pairs else "one text"
        raise ValueError(f"`fields` must name {needed}. Received: {','.join(map(str, fields))}")
    fields = None if fields is None else [str(field).strip() for field in fields]
    rows = {"text": _of_lines, "table": _of_table, "json": _of_json}[kind](lines, name, fields, count)
    return (tuple(row) if pairs else row[0] for row in rows)


def _of_lines(lines, name, fields, count):
    for number, line in enumerate(lines, 1):
        if line.startswith('{"text"'):
            raise ValueError(f"{name}:{number}: needs a text, or `kind='json'`. Received: a JSON object")
        texts = line.split("\t") if count == 2 else [line]
        if len(texts) != count:
            raise ValueError(
                f"{name}:{number}: needs two texts with a tab between them, for a run that was trained on pairs. "
                f"Received: {len(texts)}"
            )
        yield texts


def _of_table(lines, name, fields, count):
    lines, begin = iter(lines), [""]
    while not begin[-1].strip() and (line := next(lines, None)) is not None:
        begin.append(line)
    rows = table_cells(name, chain(begin[1:], lines), "\t" in begin[-1])
    if fields is None or not all(field.isdecimal() for field in fields):
        number, head = next(rows, (1, []))
        columns, width = _columns_by_name(number, head, name, fields, count), len(head)
    else:
        columns, width = list(map(int, fields)), None
    for number, cells in rows:
        check_width(name, number, cells, columns, width)
        yield [cells[column] for column in columns]


def _columns_by_name(number, head, name, fields, count):
    head = [cell.strip() for cell in head]
    if fields is not None:
        return named_columns(name, number, head, fields)
    columns = usual_columns(head, (TEXT_NAMES, TEXT_B_NAMES)[:count])
    if None in columns:
        needed = " and ".join(("text", "text_b")[:count])
        raise ValueError(
            f"{name}:{number}: needs the names of the columns, with {needed}, or `fields`, which says where "
            f"the text is. Received: {', '.join(cell[:20] for cell in head)}"
        )
    check_once(name, number, [cell.lower() for cell in head], [head[column].lower() for column in columns])
    return columns


def _of_json(lines, name, fields, count):
    for number, line in enumerate(lines, 1):
        if line.strip():
            item = json_object(name, number, line, fields or ())
            members = fields or usual_members(name, number, list(item), (TEXT_NAMES, TEXT_B_NAMES)[:count])
            texts = [item[member] for member in members]
            if not all(isinstance(text, str) for text in texts):
                raise ValueError(f"{name}:{number}: texts must be strings. Received: {line[:80]}")
            yield texts
