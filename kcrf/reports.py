"""Pictures and tables: transition matrices as heat maps and as text, scores as a table."""

import numpy as np
from rich.table import Table
from rich.text import Text

__all__ = ["score_table", "transition_heat_map", "transition_table"]


def transition_table(title, transitions, scheme):
    """A transition matrix as a rich table, from row to column; illegal cells carry a cross.

    Args:
        title: What stands above it.
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
    return Text(f"{score:+.2f} x", style="red" if score > lowest_legal else "dim")


def transition_heat_map(matrices, scheme, path):
    """Draws transition matrices side by side, illegal cells crossed out, into a picture.

    Args:
        matrices: A dict of titles and `(tags, tags)` arrays. Each gets its own scale, symmetric around 0.
        scheme: The `TagScheme` whose labels and rules they follow.
        path: The file; its ending tells the format, as in "matrix.png".
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("Drawing needs matplotlib: pip install 'kcrf[reports]'") from None
    figure = Figure(figsize=(1.2 + 4.0 * len(matrices), 4.4), layout="constrained")
    for axes, (title, matrix) in zip(
        figure.subplots(1, len(matrices), squeeze=False)[0], matrices.items(), strict=True
    ):
        _draw(figure, axes, title, np.asarray(matrix), scheme)
    figure.savefig(path, dpi=150)


def _draw(figure, axes, title, matrix, scheme):
    limit = max(np.abs(matrix).max(), 1e-6)
    image = axes.imshow(matrix, cmap="RdBu_r", vmin=-limit, vmax=limit)
    figure.colorbar(image, ax=axes, shrink=0.8)
    ticks = range(len(scheme.labels))
    axes.set(title=title, xlabel="to", ylabel="from", xticks=ticks, yticks=ticks)
    axes.set_xticklabels(scheme.labels)
    axes.set_yticklabels(scheme.labels)
    for i, j in np.argwhere(~scheme.allowed_transitions):
        axes.plot([j - 0.4, j + 0.4], [i - 0.4, i + 0.4], [j - 0.4, j + 0.4], [i + 0.4, i - 0.4], color="0.5", lw=0.8)
    if len(scheme.labels) <= 10:
        for (i, j), score in np.ndenumerate(matrix):
            color = "white" if abs(score) > 0.6 * limit else "black"
            axes.text(j, i, f"{score:.2f}", ha="center", va="center", fontsize=9, color=color)


def score_table(title, columns, rows):
    """A rich table of figures: floats with four digits, None as a dash.

    Args:
        title: What stands above it.
        columns: The headings.
        rows: Lists of as many values.
    """
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for row in rows:
        table.add_row(*(_figure(value) for value in row))
    return table


def _figure(value):
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
