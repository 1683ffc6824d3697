"""Transition matrices as pictures and as text. Needs NumPy and rich; drawing needs matplotlib."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from kcrf.metrics.transitions import is_forbidden
from kcrf.tags import TagScheme

MOST_WITH_NUMBERS = 10  # tags; cells of larger matrices are too small for numbers


def transition_table(title: str, transitions: np.ndarray, scheme: TagScheme) -> Table:
    """Makes a rich table of a transition matrix, from row to column; illegal cells are marked by an x.

    Args:
        title: The line above the table.
        transitions: `(tags, tags)`.
        scheme: The `TagScheme` whose labels and rules it follows.
    """
    table = Table(title=title, title_justify="left", caption="x: illegal")
    table.add_column("from \\ to")
    for label in scheme.labels:
        table.add_column(label, justify="right")
    transitions = np.asarray(transitions)
    for label, row, legal in zip(scheme.labels, transitions, scheme.allowed_transitions, strict=True):
        table.add_row(
            label, *(_cell(score, allowed, row[legal].min()) for score, allowed in zip(row, legal, strict=True))
        )
    return table


def _cell(score, legal, lowest_legal):
    if legal:
        return Text(f"{score:+.2f}  ")
    if is_forbidden(score):
        return Text("never x", style="dim")
    return Text(f"{score:+.2f} x", style="red" if score > lowest_legal else "dim")


def transition_heat_map(matrices: Mapping[str, np.ndarray], scheme: TagScheme | None, path: Any) -> None:
    """Draws transition matrices side by side into a picture, with illegal cells crossed out.

    Args:
        matrices: A dict from titles to `(tags, tags)` arrays. Each has its own scale, symmetric around 0. Forbidden
            cells stay white.
        scheme: The `TagScheme` whose labels and rules they follow. `None`: labels are numbers, nothing is crossed out.
        path: The file, whose ending determines the format ("matrix.png"); or a binary file object, which gets a PNG.

    Raises:
        ImportError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("Drawing needs matplotlib: pip install 'kcrf[reports]'") from None
    tags = max(map(len, matrices.values()))
    labels = scheme.labels if scheme else [str(tag) for tag in range(tags)]
    side = max(3.2, 0.45 * min(tags, MOST_WITH_NUMBERS))  # inches: a cell has room for a number
    names = 0.1 * max(map(len, labels))
    upright = names * tags > side
    size = (side + names + 1.1) * len(matrices), side + (names if upright else 0.2) + 0.8
    figure = Figure(figsize=size, layout="constrained")
    for axes, (title, matrix) in zip(
        figure.subplots(1, len(matrices), squeeze=False)[0], matrices.items(), strict=True
    ):
        _draw(figure, axes, title, np.asarray(matrix), scheme, labels[: len(matrix)], upright)
    figure.savefig(path, dpi=150)


def _draw(figure, axes, title, matrix, scheme, labels, upright):
    shown = np.ma.masked_where(is_forbidden(matrix), matrix)
    limit = max(np.abs(shown).max(), 1e-6) if shown.count() else 1e-6
    image = axes.imshow(shown, cmap="RdBu_r", vmin=-limit, vmax=limit)
    figure.colorbar(image, ax=axes, shrink=0.8)
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
