"""Scores as tables in the terminal."""

from rich.table import Table
from rich.text import Text

from kcrf.reports.titles import ENTITY_COLUMNS, TITLES, WORD_COLUMNS, format_value

__all__ = ["score_table", "table_of_parts"]


def score_table(title, columns, rows):
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


def table_of_parts(title, parts):
    """Makes a rich table of the scores of several parts of a corpus; for entities also of each type.

    Args:
        title: The line above the table.
        parts: A dict from the name of a part to what `segmentation_scores` or `entity_scores` returned for it.
    """
    has_types = any("types" in scores for scores in parts.values())
    keys, rows = ENTITY_COLUMNS if has_types else WORD_COLUMNS, []
    for name, scores in parts.items():
        rows.append([name, *map(scores.get, keys)])
        rows += [[f"  {label}", *map(of_type.get, keys)] for label, of_type in scores.get("types", {}).items()]
        if has_types:
            rows.append(["  macro", *map(scores["macro"].get, keys)])
    return score_table(title, ["part", *(TITLES[key] for key in keys)], rows)
