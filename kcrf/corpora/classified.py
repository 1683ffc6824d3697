"""Reads texts, or pairs of texts, with a label: tables with tabs or commas, and JSON lines."""

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from kcrf.corpora import tables
from kcrf.corpora.formats import Annotated
from kcrf.corpora.json_objects import begins_json, json_objects
from kcrf.corpora.lines import TEXT_NAMES, FilePath, read_corpus_lines
from kcrf.corpora.recognize import read_items
from kcrf.corpora.tables import LABEL_NAMES, TEXT_B_NAMES, Fields
from kcrf.files import json_line
from kcrf.progress_bars import print_note
from kcrf.tags.scheme import ENTITY_TAG

Rows = Iterator[tuple[Any, ...]]  # (line number, text[, second text], label)
_ENOUGH_LABELS = 10  # in this many lines, the label of the first is expected to occur again


@dataclass(frozen=True)
class Example:
    """A text, or a pair of texts, with its label or labels. Neither may be blank.

    Attributes:
        text: A string.
        label: The label, a string, or for regression a number or a string with a number. Or a list of strings, if texts
            can have several labels or none: it becomes a sorted tuple, or a string if it has one.
        text_b: The second text of a pair, or None. Defaults to None.
        source: The origin for error messages, such as "path:line". Defaults to "".
    """

    text: str
    label: Any
    text_b: str | None = None
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        where = f"{self.source}: " if self.source else ""
        for name in ("text", "text_b"):
            value = getattr(self, name)
            if not isinstance(value, str) and (value is not None or name == "text"):
                raise ValueError(f"{where}`{name}` must be a string. Received: {value!r}")
            if value is not None and not value.strip():
                raise ValueError(f"{where}`{name}` must not be empty. Received: {value!r}")
        if isinstance(self.label, str):
            object.__setattr__(self, "label", self.label.strip())
        elif isinstance(self.label, Collection):
            object.__setattr__(self, "label", _one_or_several(where, self.label))
        for label in self.labels:
            is_missing = label is None or label != label  # NaN, pandas' missing value, differs from itself
            if is_missing or not str(label) or not str(label).isprintable():
                received = f"Received: {str(label)!r}"
                raise ValueError(f"{where}`label` must be text that can be printed, and not empty. {received}")

    @property
    def labels(self) -> tuple[Any, ...]:
        """The label, or all labels, of the text, a tuple."""
        return self.label if isinstance(self.label, tuple) else (self.label,)

    @property
    def texts(self) -> tuple[str, str | None]:
        """`(text, text_b)`."""
        return self.text, self.text_b


def _one_or_several(where: str, labels: Collection[Any]) -> Any:
    """The label of a list with one label, a sorted tuple of several or none."""
    are_strings = not isinstance(labels, Mapping) and all(isinstance(label, str) for label in labels)
    if not are_strings or len({*labels}) < len(labels):
        raise ValueError(f"{where}several labels must be different strings. Received: {str(labels)[:60]}")
    names = sorted(label.strip() for label in labels)
    return names[0] if len(names) == 1 else tuple(names)


def classified_line(text: str, text_b: str | None, **members: Any) -> str:
    """The JSON line, without its end, for a text or a pair of texts with more members."""
    return json_line({"text": text, **({} if text_b is None else {"text_b": text_b}), **members})


def read_classified(path: str | PathLike[str], fields: Sequence[str | int] | None = None) -> list[Example]:
    """Reads texts, or pairs of texts, with a label.

    The format is recognized: JSON, exports of annotation tools, columns between tabs, where quotes have no meaning (as
    in GLUE), or comma-separated values. Blank lines are skipped.

    Args:
        path: A UTF-8 file.
        fields: The columns of the text, of the second text of a pair, and of the label: two or three column names from
            the first line of a table; numbers of columns counted from 0, for a table without a line of names; or names
            of JSON members. Defaults to None: `text`, `text_b` and `label`, or other usual names such as `sentence1`
            and `sentence2`; for a table without names, its only two or three columns, the last one for the label.

    Returns:
        A list of `Example`s with labels as strings. If the other labels are words, examples with the label "-", on
        which annotators did not agree (SNLI), are skipped, and a note on standard error counts them.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: A column is missing, a text or a label is empty, or there is no example. Names the line.
    """
    examples = read_all_classified(path, fields)
    labels = {label for example in examples for label in example.labels}
    if any(label.startswith("B-") for label in labels) and all(map(ENTITY_TAG.fullmatch, labels)):
        raise ValueError(
            f"{path}: needs texts with a label each. Received: what looks like tokens with entity tags, which "
            "--task ner and `kcrf.corpora.read_entities` read"
        )
    undecided = undecided_examples(examples)
    if undecided:
        print_note(f"{path}: skipped {len(undecided):,} texts with the label '-', on which annotators did not agree")
    return [example for number, example in enumerate(examples) if number not in undecided]


def undecided_examples(examples: Sequence[Example]) -> set[int]:
    """The numbers of the examples with the label "-" where the other labels are words, a set."""
    others = {label for example in examples for label in example.labels} - {"-"}
    if len(others) < 2 or not all(label.isalpha() and len(label) > 1 for label in others):
        return set()
    return {number for number, example in enumerate(examples) if example.label == "-"}


def read_all_classified(path: FilePath, fields: Sequence[str | int] | None = None) -> list[Example]:
    """As `read_classified`, with the examples on which annotators did not agree."""
    names = _checked_fields(fields)
    lines = read_corpus_lines(path)
    items = None if names else read_items(path, lines, "classify")
    first = next((line for line in lines if line.strip()), "")
    if items is not None:
        rows = _rows_of_export(path, [item for item in items if isinstance(item, Annotated)])
    elif begins_json(lines):
        rows = _rows_of_json(path, json_objects(path, lines), names)
    else:
        rows = _rows_of_table(path, tables.table_cells(path, lines, tables.separator_of(first)), names)
    examples = []
    for number, *texts, label in rows:
        examples.append(Example(texts[0], label, texts[1] if len(texts) > 1 else None, f"{path}:{number}"))
    if not examples:
        raise ValueError(f"{path}: needs at least one text with its label. Received: a file without any")
    labels = {label for example in examples for label in example.labels}
    for example in examples:
        parts = re.split(r"\s*[,;|]\s*", example.label) if isinstance(example.label, str) else ()
        if len(parts) > 1 and labels.issuperset(parts):
            raise ValueError(
                f"{example.source}: needs one label, or JSON with a list of several. Received: {example.label!r}, "
                "which joins several"
            )
    return examples


def _checked_fields(fields: Sequence[str | int] | None) -> list[str] | None:
    if fields is None:
        return None
    names = [str(name).strip() for name in fields]
    if len(names) not in (2, 3) or not all(names) or len(set(names)) < len(names):
        raise ValueError(
            "`fields` must be two or three different names or numbers of columns: of the text, of the second text of "
            f"a pair, of the label. Received: {','.join(names)}"
        )
    return names


def _rows_of_table(path: object, rows: Iterable[tuple[int, list[str]]], fields: Fields) -> Rows:
    """The rows of a table."""
    rows = iter(rows)
    first = next(rows, None)
    if first is None:
        return
    number, head = first
    head = [cell.strip() for cell in head]
    columns, width, has_names = _columns(path, number, head, fields)
    rows = list(rows)
    if not has_names and not _has_names_after_all(path, number, head, rows, columns[-1]):
        rows.insert(0, first)
    if not has_names and fields is None:
        _check_order(path, [cells for _, cells in rows if len(cells) == width])
    for number, cells in rows:
        tables.check_width(path, number, cells, columns, width)
        if not has_names or [cell.strip() for cell in cells] != head:  # of another table that was joined
            yield number, *(cells[column] for column in columns)


def _has_names_after_all(
    path: object, number: int, head: Sequence[str], rows: Sequence[tuple[int, list[str]]], column: int
) -> bool:
    """Whether the first line, of a file read by numbers of columns, calls the label "label", as no other line does."""
    labels = {cells[column].strip() for _, cells in rows if len(cells) > column}
    if not labels or len(head) <= column or head[column] in labels:
        return False
    if head[column].lower() in LABEL_NAMES:
        return True
    are_numbers = all(as_number(label) is not None for label in labels)
    if (are_numbers or len(rows) >= _ENOUGH_LABELS) and as_number(head[column]) is None:
        print_note(
            f"{path}:{number}: the label {head[column]!r} is in this line alone; if it has the names of the columns, "
            "give them as --fields"
        )
    return False


def _check_order(path: object, rows: Sequence[Sequence[str]]) -> None:
    """Refuses columns without names whose first one has the labels, or numbers the lines of three."""
    columns = [{cell.strip() for cell in column} for column in zip(*rows, strict=True)]
    if len(rows) < _ENOUGH_LABELS:
        return
    others = ",".join(map(str, range(1, len(columns))))
    if len(columns[-1]) > len(rows) / 2 and 1 < len(columns[0]) <= len(rows) / 3 and not have_decimals(columns[-1]):
        received, advice = f"{len(columns[-1]):,} different ones in {len(rows):,} lines", f"{others},0"
    elif len(columns) == 3 and len(columns[0]) == len(rows) and all(map(str.isdecimal, columns[0])):
        received, advice = "a different number in the first column of each line", others
    else:
        return
    raise ValueError(
        f"{path}: needs a text, maybe a second text, and a label in this order, or `fields` to say where they are. "
        f"Received: {'labels, ' * (advice != others)}{received}; `fields` {advice} may be right"
    )


def _columns(path: object, number: int, head: Sequence[str], fields: Fields) -> tuple[list[int], int | None, bool]:
    """The numbers of the columns, how many each line has or None for any number, whether the first has their names."""
    if fields is not None and all(field.isdecimal() for field in fields):
        return [int(field) for field in fields], None, False
    if fields is not None:
        return tables.named_columns(path, number, head, fields), len(head), True
    usual = tables.usual_columns(head, (TEXT_NAMES, TEXT_B_NAMES, LABEL_NAMES))
    if usual[0] is not None and usual[2] is not None:
        columns = [column for column in usual if column is not None]
        tables.check_once(path, number, [name.lower() for name in head], [head[column].lower() for column in columns])
        return columns, len(head), True
    if usual[0] is not None or len(head) not in (2, 3):
        raise ValueError(
            f"{path}:{number}: needs the columns text and label, or `fields`, which says where they are, as "
            f"in review,stars or 3,1. Received: {len(head)} columns: {', '.join(cell[:20] for cell in head)}"
        )
    return list(range(len(head))), len(head), False


def _rows_of_json(path: FilePath, objects: Sequence[tuple[int, dict[str, Any]]], fields: Fields) -> Rows:
    """The same of JSON objects; a second text that is null is none."""
    for number, item in objects:
        members = [x for x, value in item.items() if fields or value is not None or x.lower() not in TEXT_B_NAMES]
        is_pair = tables.usual_columns(members, (TEXT_NAMES, TEXT_B_NAMES))[1] is not None
        kinds = (TEXT_NAMES, TEXT_B_NAMES, LABEL_NAMES) if is_pair else (TEXT_NAMES, LABEL_NAMES)
        *texts, label = (item[name] for name in tables.members_of(path, number, members, fields, kinds))
        is_label = isinstance(label, (str, int, list)) or isinstance(label, float) and math.isfinite(label)
        if not is_label or not all(isinstance(text, str) for text in texts):
            raise ValueError(
                f"{path}:{number}: texts must be strings, a label a string, a number, or a list of strings. "
                f"Received: {json_line(item)[:200]}"
            )
        yield number, *texts, label if isinstance(label, (str, list)) else json.dumps(label)


def _rows_of_export(path: object, texts: Sequence[Annotated]) -> Rows:
    """The same of the texts of an annotation tool. Texts without a label are skipped, unless others have several."""
    labeled = [text for text in texts if text.labels]
    if not labeled:
        raise ValueError(f"{path}: needs texts with a label each. Received: {len(texts):,} texts without one")
    has_several = any(len(text.labels) > 1 for text in texts)
    if len(labeled) < len(texts):
        count = f"{len(texts) - len(labeled):,} texts without a label"
        print_note(f"{path}: {count} count as labeled, with none" if has_several else f"{path}: skipped {count}")
    for text in texts if has_several else labeled:
        second = [] if text.text_b is None else [text.text_b]
        yield text.number, text.text, *second, list(text.labels)


# -- labels: whether they are numbers, and their order


def as_number(label: Any) -> float | None:
    """The finite number that a label stands for, or None."""
    if "_" in str(label):  # Python takes 1_1 for 11
        return None
    try:
        number = float(label)
    except (TypeError, ValueError):  # several labels are no number
        return None
    return number if math.isfinite(number) else None


def have_decimals(labels: Iterable[Any]) -> bool:
    """Whether all labels are numbers, and some of them not whole: then they are no names of classes."""
    numbers = list(map(as_number, labels))
    return None not in numbers and any(number != round(number) for number in numbers if number is not None)


def check_spellings(examples: Iterable[Example]) -> None:
    """Raises ValueError if labels that are names are the same number in two spellings, as 1 and 1.0 are."""
    spellings = {}
    for source, label in [(example.source, label) for example in examples for label in example.labels]:
        number = as_number(label)
        if number is not None and spellings.setdefault(number, label) != label:
            received = f"{label!r}, and {spellings[number]!r} elsewhere"
            raise ValueError(f"{source}: needs one spelling of a label. Received: {received}")


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels in their order: numbers by their value, as 9, 10; else as strings, as 10, 9, b."""
    are_numbers = all(as_number(label) is not None for label in labels)
    return tuple(sorted(labels, key=float if are_numbers else str))


def recurring(examples: Sequence[Example]) -> list[Any] | None:
    """The labels for `sample`, of several the rarest. None for numbers that hardly recur: they have no proportions."""
    counts = Counter(label for example in examples for label in example.labels)
    labels = [min(example.labels, key=lambda label: counts[label], default="") for example in examples]
    are_numbers = all(as_number(label) is not None for label in labels)
    return None if are_numbers and len(set(labels)) > len(labels) / 2 else labels
