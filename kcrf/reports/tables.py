"""Scores as tables in the terminal."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from kcrf.reports.titles import (
    CLASS_COLUMNS,
    ENTITY_COLUMNS,
    JOINT_COLUMNS,
    NUMBER_COLUMNS,
    TITLES,
    TOKEN_COLUMNS,
    WORD_COLUMNS,
    format_value,
)


def score_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """Makes a rich table of scores: floats with four digits, None as a dash.

    Args:
        title: The line above the table.
        columns: A list of headings.
        rows: A list of rows, each a list of as many values; the first is the name of the row.
    """
    table = Table(title=Text(title), title_justify="left")  # Text, since rich reads brackets in a string as markup
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for row in rows:
        table.add_row(*(Text(format_value(value)) for value in row))
    return table


def table_of_parts(title: str, parts: Mapping[str, dict[str, Any]]) -> Table:
    """Makes a rich table of the scores of several parts of a corpus; also of each type of entity, label or standard.

    Args:
        title: The line above the table.
        parts: A dict from the name of a set to its scores, as a function of `kcrf.metrics` such as `entity_scores`
            returns them.
    """
    keys, rows = columns_of(parts), []
    for name, scores in parts.items():
        rows.append([f"{name} mean" if "standards" in scores else name, *map(scores.get, keys)])
        by_label = {**scores.get("types", {}), **scores.get("labels", {}), **scores.get("standards", {})}
        rows += [[f"  {label}", *map(figures.get, keys)] for label, figures in by_label.items()]
        if "macro" in scores:
            rows.append(["  macro", *map(scores["macro"].get, keys)])
    return score_table(title, ["part", *(TITLES[key] for key in keys)], rows)


def columns_of(parts):
    """The keys of the scores that a terminal has room for: those of entities, tokens, classes, numbers or words."""
    keys = {
        "joint_f": JOINT_COLUMNS,
        "types": ENTITY_COLUMNS,
        "tokens": TOKEN_COLUMNS,
        "labels": CLASS_COLUMNS,
        "pearson": NUMBER_COLUMNS,
    }
    for key, columns in keys.items():
        if any(key in scores for scores in parts.values()):
            return columns
    return WORD_COLUMNS
