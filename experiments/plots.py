"""A plot for each claim: the differences of its comparisons, a row for each, a point for each seed."""

import io

import numpy as np

from kcrf.files import write_aside

__all__ = ["plot_claim"]

COLORS = {"holds": "tab:green", "does not hold here": "tab:red"}


def plot_claim(claim, rows, path):
    """Writes the plot of a claim as a PNG file.

    Args:
        claim: The `Claim`.
        rows: A tuple for each measured comparison: its name, the `Comparison`, the `Outcome` and the verdict.
        path: The file.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 1.3 + 0.5 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for place, (_, comparison, outcome, verdict) in enumerate(rows):
        _draw(axes, place, comparison, outcome, COLORS.get(verdict, "tab:gray"))
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [name for name, *_ in rows], fontsize="small")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("difference: mean, 95 % interval, and each seed; gray: the margin")
    figure.suptitle(f"{claim.name}: {claim.title}", fontsize="small", wrap=True)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=80, metadata={"Software": None})
    write_aside(path, lambda aside: aside.write_bytes(picture.getvalue()))


def _draw(axes, place, comparison, outcome, color):
    """Draws one row: the band of the margin, a point for each seed, the mean and its interval."""
    axes.barh(place, 2 * comparison.margin, left=-comparison.margin, height=0.8, color="lightgray")
    seeds = np.subtract(outcome.first, outcome.second)
    axes.plot(seeds, [place + 0.2] * len(seeds), ".", color=color, alpha=0.4)
    mean, low, high = outcome.interval()
    axes.errorbar([mean], [place], xerr=[[mean - low], [high - mean]], fmt="o", color=color, capsize=3)
