"""Tables and JSON lines of texts: which column is which; and texts to classify, one by one, without reading ahead."""

import csv
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from kcrf.corpora.lines import TEXT_NAMES, refuse_records
from kcrf.files import parse_json

# What the columns are called where `fields` does not say it. A label alone makes no header: a text may be that word.
TEXT_B_NAMES = ("text_b", "sentence2", "hypothesis", "question2", "question", "sentence")
LABEL_NAMES = ("label", "gold_label", "is_duplicate", "sentiment", "category", "class", "target")

Fields = Sequence[str] | None
_ENOUGH = 3  # lines that begin or end in a label beside a comma
_NUMBER = re.compile(r"-?\d+(\.\d+)?")  # in place of a label


def iterate_texts(
    lines: Iterable[str],
    name: str,
    kind: str = "text",
    fields: Sequence[str | int] | None = None,
    pairs: bool = False,
    labels: Collection[str] = (),
) -> Iterator[Any]:
    """Yields the texts of a file, and refuses texts beside one of the labels, or a number if there are no labels."""
    count = 2 if pairs else 1
    if fields is not None and len(fields) != count:
        needed = "two texts, for pairs" if pairs else "one text"
        raise ValueError(f"`fields` must name {needed}. Received: {','.join(map(str, fields))}")
    names = None if fields is None else [str(field).strip() for field in fields]
    if kind == "text":
        lines = _unlabeled(lines, name, count, labels)
    rows = {"text": _of_lines, "table": _of_table, "json": _of_json}[kind](lines, name, names, count)
    return (tuple(row) if pairs else row[0] for row in rows)


def _of_lines(lines: Iterable[str], name: str, fields: Fields, count: int) -> Iterator[list[str]]:
    for number, line in enumerate(lines, 1):
        yield pair_of(f"{name}:{number}", line) if count == 2 else [line]


def pair_of(where: str, line: str) -> list[str]:
    """The two texts in a line."""
    texts = line.split("\t")
    if len(texts) != 2:
        needed = "two texts with a tab between them, for a run that was trained on pairs"
        raise ValueError(f"{where}: needs {needed}. Received: {len(texts)}, {line[:80]!r}")
    return texts


def _unlabeled(lines: Iterable[str], name: str, count: int, labels: Collection[str]) -> Iterator[str]:
    """Refuses JSON objects, the names of columns, and texts with a label: beside a tab, or three beside commas."""
    labeled = 0
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.split(separator_of(line))]
        marked = [cell.strip('"') for cell in (cells if "\t" in line else (cells[0], cells[-1]))]
        is_label = labels.__contains__ if labels else _NUMBER.fullmatch
        is_labeled = len(cells) > 1 and any(map(is_label, marked))
        labeled += is_labeled
        if number == 1 or line.lstrip().startswith("{"):
            refuse_records(f"{name}:{number}", line, "a text, or `kind='json'` or `kind='table'`")
        is_first = number == 1 and len(cells) != count and is_head(cells)
        is_table = is_labeled and ("\t" in line or labeled == number == _ENOUGH) and len(cells) != count
        if is_first or is_table:
            raise ValueError(f"{name}:{number}: needs a text, or `kind='table'`. Received: columns, {line[:60]!r}")
        yield line


def is_head(cells: Sequence[str]) -> bool:
    """Whether cells are the names of the columns of labeled texts."""
    names = {cell.strip().lower() for cell in cells}
    return not names.isdisjoint(TEXT_NAMES) and not names.isdisjoint(LABEL_NAMES)


def _of_table(lines: Iterable[str], name: str, fields: Fields, count: int) -> Iterator[list[str]]:
    lines, begin = iter(lines), [""]
    while not begin[-1].strip() and (line := next(lines, None)) is not None:
        begin.append(line)
    rows = table_cells(name, chain(begin[1:], lines), separator_of(begin[-1]))
    if fields is None or not all(field.isdecimal() for field in fields):
        number, head = next(rows, (1, []))
        columns, width = _columns_by_name(number, [cell.strip() for cell in head], name, fields, count), len(head)
    else:
        columns, width = list(map(int, fields)), None
    for number, cells in rows:
        check_width(name, number, cells, columns, width)
        if number == len(begin) - 1 and width is None and is_head(cells):
            continue  # a line with names, although columns are chosen by numbers
        yield [cells[column] for column in columns]


def _columns_by_name(number: int, head: Sequence[str], name: str, fields: Fields, count: int) -> list[int]:
    if fields is not None:
        return named_columns(name, number, head, fields)
    columns = [column for column in usual_columns(head, (TEXT_NAMES, TEXT_B_NAMES)[:count]) if column is not None]
    if len(columns) < count:
        needed = " and ".join(("text", "text_b")[:count])
        raise ValueError(
            f"{name}:{number}: needs the names of the columns, with {needed}, or `fields`, which says where "
            f"the text is. Received: {', '.join(cell[:20] for cell in head)}"
        )
    check_once(name, number, [cell.lower() for cell in head], [head[column].lower() for column in columns])
    return columns


def _of_json(lines: Iterable[str], name: str, fields: Fields, count: int) -> Iterator[list[str]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            item = parse_json(f"{name}:{number}", line)
            members = members_of(name, number, list(item), fields, (TEXT_NAMES, TEXT_B_NAMES)[:count])
            texts = [item[member] for member in members]
            if not all(isinstance(text, str) for text in texts):
                raise ValueError(f"{name}:{number}: texts must be strings. Received: {line[:80]}")
            yield texts


def separator_of(line: str) -> str:
    """The separator of a table with this first line: a tab, a comma, or a semicolon, as Excel writes in Europe."""
    return next((sign for sign in "\t,;" if sign in line), ",")


def table_cells(path: object, lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yields the number of a line and its cells. In quotes, comma-separated values may go on on the next lines."""
    if separator == "\t":
        rows = (line.split("\t") for line in lines)
        yield from ((n, list(map(_unquoted, cells))) for n, cells in enumerate(rows, 1) if any(map(str.strip, cells)))
        return
    reader, number = csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=True), 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise ValueError(
                f"{path}:{number}: needs comma-separated values, quotes within quotes doubled, at most "
                f"{csv.field_size_limit():,} characters a field; JSON lines have no limit. Received: {error}"
            ) from None
        if cells is None:
            return
        if any(cell.strip() for cell in cells):
            yield number, cells
        number = reader.line_num + 1


def _unquoted(cell: str) -> str:
    """A cell without the quotes that pandas writes around one with quotes, which it doubles."""
    inner = cell[1:-1]
    is_quoted = cell[:1] == cell[-1:] == '"' and '""' in inner and '"' not in inner.replace('""', "")
    return inner.replace('""', '"') if is_quoted else cell


def check_width(path: object, number: int, cells: Sequence[str], columns: Sequence[int], width: int | None) -> None:
    """Raises ValueError if a row lacks one of the columns, or has not `width` cells where that is not None."""
    if len(cells) <= max(columns) or width not in (None, len(cells)):
        needed = f"{width} columns, as the first line has them" if width else f"{max(columns) + 1} columns or more"
        raise ValueError(f"{path}:{number}: needs {needed}. Received: {len(cells)}")


def usual_columns(head: Iterable[str], kinds: Iterable[Sequence[str]]) -> list[int | None]:
    """For each of some kinds of columns, a tuple of usual names in any case, the number of its column, or None."""
    names, numbers = [name.lower() for name in head], []
    for usual_names in kinds:
        columns = (names.index(name) for name in usual_names if name in names)
        numbers.append(next((column for column in columns if column not in numbers), None))
    return numbers


def check_once(path: object, number: int, head: Sequence[str], names: Iterable[str]) -> None:
    """Raises ValueError if a name of a column occurs more than once in the first line."""
    twice = next((name for name in names if head.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{path}:{number}: needs one column {twice}. Received: {head.count(twice)} of that name")


def named_columns(path: object, number: int, head: Sequence[str], names: Iterable[str]) -> list[int]:
    """The numbers of the columns with these names. The first line must have all of them."""
    absent = [name for name in names if name not in head]
    if absent:
        raise ValueError(f"{path}:{number}: needs a column {' and '.join(absent)}. Received: {', '.join(head)}")
    check_once(path, number, head, names)
    return [head.index(name) for name in names]


def members_of(path: object, number: int, names: Sequence[str], fields: Fields, kinds: Sequence[Any]) -> list[str]:
    """The names of members in a JSON object: `fields`, or one of each kind, a tuple of usual names."""
    found = [None if place is None else names[place] for place in usual_columns(names, kinds)]
    found = found if fields is None else [field if field in names else None for field in fields]
    absent = [name for name, member in zip(fields or [kind[0] for kind in kinds], found) if member is None]
    if absent:
        needed = " and ".join(absent) + ", or `fields`" * (fields is None)
        raise ValueError(f"{path}:{number}: needs {needed}. Received: {', '.join(names)}")
    return [member for member in found if member is not None]
