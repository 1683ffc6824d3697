"""Scores and transitions as tables in the terminal; transitions as pictures, which need matplotlib."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from kcrf.extras import needs_extra
from kcrf.metrics.classes import CLASSIFICATION_METRICS, REGRESSION_METRICS
from kcrf.metrics.transitions import is_forbidden
from kcrf.tags import TagScheme

SETS = {"test": "test set", "valid": "validation set"}  # by key in scores.json
TITLES = {  # by key in the results of `kcrf.metrics`
    "f": "F1",
    "precision": "precision",
    "recall": "recall",
    "joint_f": "F1 with class",
    "joint_precision": "precision with class",
    "joint_recall": "recall with class",
    "oov_rate": "OOV rate",
    "oov_recall": "OOV recall",
    "iv_recall": "IV recall",
    "true_words": "gold words",
    "test_words": "predicted words",
    "true_entities": "gold entities",
    "found_entities": "predicted entities",
    "correct": "correct entities",
    "accuracy": "accuracy",
    "macro_f": "mean F1",
    "matthews": "Matthews",
    "pearson": "Pearson",
    "spearman": "Spearman",
    "mean_error": "mean absolute error",
    "examples": "texts",
    "tokens": "tokens",
    "oov_accuracy": "OOV accuracy",
    "iv_accuracy": "IV accuracy",
}
METRICS = (*CLASSIFICATION_METRICS, *REGRESSION_METRICS)
# Counts, and scores that are not better the larger they are.
NOT_RANKED = set("oov_rate true_words test_words true_entities found_entities mean_error examples tokens".split())
# The scores that a terminal has room for.
WORD_COLUMNS = ("precision", "recall", "f", "oov_rate", "oov_recall", "iv_recall")
JOINT_COLUMNS = ("precision", "recall", "f", "joint_f", "oov_recall", "iv_recall")
ENTITY_COLUMNS = ("precision", "recall", "f", "true_entities", "found_entities", "correct")
TOKEN_COLUMNS = ("accuracy", "precision", "recall", "f", "oov_rate", "oov_accuracy")
CLASS_COLUMNS = ("accuracy", "matthews", "macro_f", "precision", "recall", "f")
NUMBER_COLUMNS = ("pearson", "spearman", "mean_error", "examples")
MOST_WITH_NUMBERS = 10  # tags; cells of larger matrices are too small for numbers


def format_value(value: Any) -> str:
    """Formats a value for a table: floats with four digits, None as a dash."""
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def score_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """Makes a rich table of scores: floats with four digits, None as a dash."""
    table = Table(title=Text(title), title_justify="left")  # Text, since rich reads brackets in a string as markup
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for row in rows:
        table.add_row(*(Text(format_value(value)) for value in row))
    return table


def table_of_parts(title: str, parts: Mapping[str, dict[str, Any]]) -> Table:
    """Makes a rich table of the scores of several parts of a corpus; also of each type of entity, label or standard."""
    keys, rows = columns_of(parts), []
    for name, scores in parts.items():
        rows.append([f"{name} mean" if "standards" in scores else name, *map(scores.get, keys)])
        by_label = {**scores.get("types", {}), **scores.get("labels", {}), **scores.get("standards", {})}
        rows += [[f"  {label}", *map(figures.get, keys)] for label, figures in by_label.items()]
        if "macro" in scores:
            rows.append(["  macro", *map(scores["macro"].get, keys)])
    return score_table(title, ["part", *(TITLES[key] for key in keys)], rows)


def columns_of(parts: Mapping[str, dict[str, Any]]) -> Sequence[str]:
    """Selects the scores that a terminal has room for, by the task whose scores these are."""
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


def transition_table(title: str, transitions: np.ndarray, scheme: TagScheme) -> Table:
    """Makes a rich table of a transition matrix, from row to column; illegal cells are marked by an x."""
    table = Table(title=title, title_justify="left", caption="x: illegal")
    table.add_column("from \\ to")
    for label in scheme.labels:
        table.add_column(label, justify="right")
    transitions = np.asarray(transitions)
    for label, row, legal in zip(scheme.labels, transitions, scheme.allowed_transitions, strict=True):
        lowest = row[legal].min()
        table.add_row(label, *(_cell(score, allowed, lowest) for score, allowed in zip(row, legal, strict=True)))
    return table


def _cell(score: float, legal: bool, lowest_legal: float) -> Text:
    if legal:
        return Text(f"{score:+z.2f}  ")
    if is_forbidden(score):
        return Text("never x", style="dim")
    return Text(f"{score:+z.2f} x", style="red" if score > lowest_legal else "dim")


def transition_heat_map(matrices: Mapping[str, np.ndarray], scheme: TagScheme | None, path: Any) -> None:
    """Draws transition matrices side by side into a picture, with illegal cells crossed out."""
    with needs_extra("reports", "Drawing"):
        from matplotlib.figure import Figure
    tags = max(map(len, matrices.values()))
    labels = scheme.labels if scheme else [str(tag) for tag in range(tags)]
    side = max(3.2, 0.45 * min(tags, MOST_WITH_NUMBERS))  # inches: a cell has room for a number
    names = 0.1 * max(map(len, labels))
    upright = names * tags > side
    size = (side + names + 1.1) * len(matrices), side + (names if upright else 0.2) + 0.8
    figure = Figure(figsize=size, layout="constrained")
    places = figure.subplots(1, len(matrices), squeeze=False)[0]
    limit = max(1e-6, *(np.abs(m[~is_forbidden(m)]).max(initial=0) for m in map(np.asarray, matrices.values())))
    for axes, (title, matrix) in zip(places, matrices.items(), strict=True):
        _draw(axes, title, np.asarray(matrix), scheme, labels[: len(matrix)], upright, limit)
    figure.colorbar(places[0].images[0], ax=places, shrink=0.8)
    figure.savefig(path, dpi=150)


def _draw(
    axes: Any,
    title: str,
    matrix: np.ndarray,
    scheme: TagScheme | None,
    labels: Sequence[str],
    upright: bool,
    limit: float,
) -> None:
    shown = np.ma.masked_where(is_forbidden(matrix), matrix)
    axes.imshow(shown, cmap="RdBu_r", vmin=-limit, vmax=limit)
    ticks = range(len(labels))
    axes.set(title=title, xlabel="to", ylabel="from", xticks=ticks, yticks=ticks)
    small = len(labels) > MOST_WITH_NUMBERS
    axes.set_xticklabels(labels, rotation=90 if upright else 0, fontsize=6 if small else None)
    axes.set_yticklabels(labels, fontsize=6 if small else None)
    for i, j in np.argwhere(~scheme.allowed_transitions) if scheme else ():
        axes.plot([j - 0.4, j + 0.4], [i - 0.4, i + 0.4], [j - 0.4, j + 0.4], [i + 0.4, i - 0.4], color="0.5", lw=0.8)
    if not small:
        for (i, j), score in np.ndenumerate(matrix):
            if shown[i, j] is not np.ma.masked:
                color = "white" if abs(score) > 0.6 * limit else "black"
                axes.text(j, i, f"{score:.2f}", ha="center", va="center", fontsize=9, color=color)
