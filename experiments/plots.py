"""Two plots for each claim: the differences of its comparisons, and the scores and curves of its runs."""

import io
from itertools import zip_longest

import numpy as np

from kcrf.files import write_aside

__all__ = ["mean_by_epoch", "plot_differences", "plot_runs", "write_picture"]

COLORS = {"holds": "tab:green", "does not hold here": "tab:red"}
CURVES = {"valid": "validation score", "losses": "training loss"}  # lists with a number for each epoch


def plot_differences(claim, rows):
    """A row for each comparison: the mean difference, its interval, and a point for each seed.

    Args:
        claim: The `Claim`.
        rows: A tuple for each measured comparison: its name, the `Comparison`, the `Outcome` and the verdict.

    Returns:
        The figure.
    """
    figure = _figure(claim, 1.3 + 0.5 * len(rows))
    axes = figure.subplots()
    for place, (_, comparison, outcome, verdict) in enumerate(rows):
        _draw(axes, place, comparison, outcome, COLORS.get(verdict, "tab:gray"))
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [name for name, *_ in rows], fontsize="small")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("difference: mean, 95 % interval, and each seed; gray: the margin")
    return figure


def plot_runs(claim, measures):
    """A row for each cell: box plots of the test scores of its arms, and curves over the epochs, means of the seeds.

    Args:
        claim: The `Claim`, with runs of its own.
        measures: The measures of its runs by key.

    Returns:
        The figure.
    """
    cells = _by_cell_and_arm(claim, measures)
    figure = _figure(claim, 1 + 2.6 * len(cells))
    for (cell, arms), row in zip(cells.items(), figure.subplots(len(cells), 3, squeeze=False), strict=True):
        scores, *curves = row
        scores.boxplot([[run["score"] for run in runs] for runs in arms.values()], tick_labels=list(arms))
        scores.tick_params(axis="x", rotation=60, labelsize="x-small")
        scores.set_title(f"{cell}\ntest score", fontsize="small")
        for axes, (name, what) in zip(curves, CURVES.items(), strict=True):
            for arm, runs in arms.items():
                means = mean_by_epoch([run[name] for run in runs if "diverged" not in run])
                axes.plot(range(1, len(means) + 1), means, marker=".", label=arm)
            axes.set_title(f"{what} by epoch", fontsize="small")
            axes.xaxis.get_major_locator().set_params(integer=True)
        curves[0].legend(fontsize="xx-small")
    return figure


def mean_by_epoch(curves):
    """The mean of lists with a number for each epoch, over those that are so long.

    >>> mean_by_epoch([[1.0, 3.0], [2.0]])
    [1.5, 3.0]
    """
    return [float(np.mean([value for value in values if value is not None])) for values in zip_longest(*curves)]


def write_picture(figure, path):
    """Writes a figure as a PNG file, the same bytes for the same figure."""
    picture = io.BytesIO()
    figure.savefig(picture, dpi=80, metadata={"Software": None})
    write_aside(path, lambda aside: aside.write_bytes(picture.getvalue()))


def _figure(claim, height):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, height), layout="constrained")
    figure.suptitle(f"{claim.name}: {claim.title}", fontsize="small", wrap=True)
    return figure


def _by_cell_and_arm(claim, measures):
    """The measures of the runs that are stored, a dict of dicts of lists."""
    cells = {}
    for run in claim.runs():
        if run.key in measures:
            cells.setdefault(run.cell, {}).setdefault(run.arm, []).append(measures[run.key])
    return cells


def _draw(axes, place, comparison, outcome, color):
    """Draws one row: the band of the margin, a point for each seed, the mean and its interval."""
    axes.barh(place, 2 * comparison.margin, left=-comparison.margin, height=0.8, color="lightgray")
    seeds = np.subtract(outcome.first, outcome.second)
    axes.plot(seeds, [place + 0.2] * len(seeds), ".", color=color, alpha=0.4)
    mean, low, high = outcome.interval()
    axes.errorbar([mean], [place], xerr=[[mean - low], [high - mean]], fmt="o", color=color, capsize=3)
