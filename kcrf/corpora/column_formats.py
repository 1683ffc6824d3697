"""The formats of lines, continued: columns whose tags are not in the form B-PER, recognized after all others."""

import re
from collections.abc import Callable

from kcrf.corpora.columns import Columns, is_conllu, split_columns
from kcrf.corpora.formats import Item, Source, Tagged, note
from kcrf.corpora.line_formats import LINE_FORMATS as LINE_FORMATS  # with those of this file
from kcrf.corpora.line_formats import line_format
from kcrf.tags.scheme import ENTITY_TAG

_ONTONOTES = {  # entity types, which tell the column of entities from columns of trees and arguments
    *("PERSON", "NORP", "FAC", "ORG", "GPE", "LOC", "PRODUCT", "DATE", "TIME", "PERCENT", "MONEY", "QUANTITY"),
    *("ORDINAL", "CARDINAL", "EVENT", "WORK_OF_ART", "LAW", "LANGUAGE"),
}
_BRACKET = re.compile(r"(?:\(([A-Z_]+))?(\*?\)?)")


def _ontonotes(source: Source) -> tuple[Columns, int] | None:
    """The columns, and the number of the column with entities in brackets."""
    lines = ["" if line.startswith(("#begin document", "#end document")) else line for line in source.lines]
    if source.task != "ner" or not {"(", "*"} <= {*"".join(lines)}:
        return None
    columns = split_columns(source.path, lines)
    is_table = all(len(cells) == columns.width for cells in columns.rows)
    for place in range(1, columns.width) if is_table else ():
        matches = [_BRACKET.fullmatch(cells[place]) for cells in columns.rows]
        types = {match[1] for match in matches if match and match[1]}
        if types and types <= _ONTONOTES and all(match and match[0] for match in matches):
            return columns, place
    return None


@line_format("columns of OntoNotes", ("ner",), _ontonotes)
def _read_ontonotes(source: Source, found: tuple[Columns, int]) -> list[Item]:
    columns, place = found
    token = 3 if columns.width > 4 and all(cells[2].isdecimal() for cells in columns.rows) else 0
    items: list[Item] = []
    for rows in columns.sentences:
        tags: list[str | None] = []
        label = ""
        for _, cells in rows:
            begin, rest = re.fullmatch(_BRACKET, cells[place]).groups()  # type: ignore[union-attr]  # as found before
            label = begin or label
            tags.append(f"{'B' if begin else 'I'}-{label}" if label else "O")
            label = "" if rest.endswith(")") else label
        items.append(Tagged(rows[0].number, [row.cells[token] for row in rows], tags))
    return items


_TYPE, _TAG, _MOST_TYPES = re.compile(r"[A-Za-z][\w./-]*"), re.compile("[BIESMLU][-_:/.].*"), 100


def _types_alone(source: Source) -> Columns | None:
    """Two columns whose tags are O, most of them, and types without B- and I-, as in Few-NERD."""
    if source.task != "ner" or is_conllu(source.lines):
        return None
    last = {line.rsplit(None, 1)[-1] for line in source.lines if line.strip() and not line.startswith("#")}
    if "O" not in last or any(map(ENTITY_TAG.fullmatch, last - {"O"})):  # most files need not be split for this
        return None
    columns = split_columns(source.path, source.lines)
    tags = [cells[-1] for cells in columns.rows]
    types = {*tags} - {"O"}
    are_types = all(_TYPE.fullmatch(tag) and not _TAG.fullmatch(tag) for tag in types) and not types <= {*"BIESMLU"}
    is_table = columns.width == columns.token + 2 and all(len(cells) == columns.width for cells in columns.rows)
    are_few = 0 < len(types) <= _MOST_TYPES and tags.count("O") * 2 >= len(tags)
    return columns if is_table and are_types and are_few else None


@line_format("columns of types", ("ner",), _types_alone)
def _read_types(source: Source, columns: Columns) -> list[Item]:
    note(source.path, "tags without B- and I-: tokens of one type in a row are one entity", 1)
    return _of_columns(columns, lambda cells: "O" if cells[-1] == "O" else f"I-{cells[-1]}")


_MISC = re.compile(r"(?:^|[|\t])(?:NER|NE|ner|Entity|BIO)=(O|[BIESMLU]-[^|]+)")


@line_format("CoNLL-U", ("ner",), lambda x: x.task == "ner" and is_conllu(x.lines) and any(map(_MISC.search, x.lines)))
def _read_misc(source: Source, _: object) -> list[Item]:
    columns = split_columns(source.path, source.lines)
    return _of_columns(columns, lambda cells: match[1] if (match := _MISC.search(cells[9])) else "O")


def _of_columns(columns: Columns, tag_of: Callable[[list[str]], str]) -> list[Item]:
    """The tokens of columns, with the tag that a function computes from each row."""
    rows = [(each[0].number, [row.cells for row in each]) for each in columns.sentences]
    return [Tagged(number, [x[columns.token] for x in cells], list(map(tag_of, cells))) for number, cells in rows]
