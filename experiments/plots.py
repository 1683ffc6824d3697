"""A plot for each claim: the measure by arm, a line for each cell, a point for each run."""

import io

import numpy as np

from kcrf.files import write_aside

__all__ = ["plot_claim"]

MOST_CELLS = 10  # in the legend


def plot_claim(claim, measures, path):
    """Writes the plot of a claim as a PNG file.

    Args:
        claim: The `Claim`.
        measures: The measures of its runs by key.
        path: The file.
    """
    from matplotlib.figure import Figure

    values = _values(claim, measures)
    arms = list(dict.fromkeys(arm for _, arm in values))
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for cell in dict.fromkeys(cell for cell, _ in values):
        columns = [i for i, arm in enumerate(arms) if (cell, arm) in values]
        of_cell = [values[cell, arms[i]] for i in columns]
        deviations = [np.std(scores, ddof=1) if len(scores) > 1 else 0.0 for scores in of_cell]
        bars = axes.errorbar(columns, list(map(np.mean, of_cell)), deviations, label=cell, capsize=3)
        for column, scores in zip(columns, of_cell):
            axes.plot([column] * len(scores), scores, ".", color=bars[0].get_color(), alpha=0.4)
    axes.set_xticks(range(len(arms)), arms, rotation=20 if len(arms) > 4 else 0)
    axes.set(xlabel=claim.axis, ylabel=claim.shown.replace("_", " "), title=f"{claim.name} ({_counts(values)})")
    axes.legend(fontsize="small", ncols=1 if len({cell for cell, _ in values}) < MOST_CELLS else 3)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=80, metadata={"Software": None})
    write_aside(path, lambda aside: aside.write_bytes(picture.getvalue()))


def _values(claim, measures):
    """The shown measure of the measured runs, a list by cell and arm."""
    values = {}
    for run in claim.runs():
        if claim.shown in measures.get(run.key, {}):
            values.setdefault((run.cell, run.arm), []).append(measures[run.key][claim.shown])
    return values


def _counts(values):
    counts = {len(scores) for scores in values.values()}
    return f"n = {min(counts)}" if len(counts) == 1 else f"n = {min(counts)} to {max(counts)}"
