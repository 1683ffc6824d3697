"""Scores as tables in the terminal."""

from rich.table import Table
from rich.text import Text

from kcrf.reports.sections import figure

__all__ = ["score_table", "table_of_parts"]

# The figures that a terminal has room for, and what they are called.
WORD_SCORES = {
    "recall": "recall",
    "precision": "precision",
    "f": "F1",
    "oov_rate": "OOV rate",
    "oov_recall": "OOV recall",
    "iv_recall": "IV recall",
}
ENTITY_SCORES = {
    "precision": "precision",
    "recall": "recall",
    "f": "F1",
    "true_entities": "gold",
    "found_entities": "found",
    "correct": "correct",
}


def score_table(title, columns, rows):
    """A rich table of figures: floats with four digits, None as a dash.

    Args:
        title: What stands above it.
        columns: The headings.
        rows: Lists of as many values.
    """
    table = Table(title=Text(title), title_justify="left")  # as text: brackets in names are no markup
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for row in rows:
        table.add_row(*(Text(figure(value)) for value in row))
    return table


def table_of_parts(title, parts):
    """A rich table of the scores of parts.

    Args:
        title: What stands above it.
        parts: A dict from name to what `segmentation_scores` or `entity_scores` returns.
    """
    has_types = any("types" in scores for scores in parts.values())
    columns, rows = ENTITY_SCORES if has_types else WORD_SCORES, []
    for name, scores in parts.items():
        rows.append([name, *(scores.get(key) for key in columns)])
        for label, figures in scores.get("types", {}).items():
            rows.append([f"  {label}", *(figures.get(key) for key in columns)])
        if has_types:
            rows.append(["  macro", *(scores["macro"].get(key) for key in columns)])
    return score_table(title, ["part", *columns.values()], rows)
