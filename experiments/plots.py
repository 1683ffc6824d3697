"""Plots of each claim, the differences of its comparisons and the curves of its runs, and the figures of the guides."""

import io
import re
import textwrap
from itertools import zip_longest
from pathlib import Path

import numpy as np

from experiments.claims.c01_learning_rate_of_transitions import DEEPEST
from experiments.store import MEASURED, Results
from experiments.table import outcomes_of, where_of
from experiments.verdicts import HOLDS, NO_EFFECT, OPPOSITE
from kcrf.files import write_aside

GUIDES = Path(__file__).parents[1] / "docs"
# Colors that everybody can tell apart (Okabe and Ito, 2008); markers say the same without color.
BLUE, ORANGE, GREEN, PINK, BLACK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000"
COLORS = {HOLDS: BLUE, OPPOSITE: ORANGE, NO_EFFECT: BLACK, "higher": GREEN, "lower": PINK}
UNDECIDED_COLOR = "#999999"
LINES = ((BLUE, "o", "-"), (ORANGE, "s", "--"), (GREEN, "^", "-."), (PINK, "D", ":"), (BLACK, "v", "-"))
# Lists with a number for each epoch. The loss of a CRF is that of a sentence, the loss of a softmax that of a token.
CURVES = {"valid": "validation score by epoch", "losses": "training loss by epoch, first epoch = 1"}
DEPTH_AND_SIZE = re.compile(r"(.+), (\d+) layers?, ([\d,]+) sentences(.*)")  # and the learning rate, if there are two
MASKED = "F1, illegal paths masked"
DEPTHS = {  # cells of c01; where the suggested multiplier is not measured, the one nearest to it
    "PKU, 1e-4": (1, "auto", "1"),
    "PKU, 2 layers, 1e-4": (2, "auto", "2"),
    "PKU, 4 layers, 1e-4": (4, "auto", "4"),
    DEEPEST: (12, "x1000", "12, at 2e-5"),
}


def write_plots(claims, names):
    """Writes the plots of the named claims that have results, and the figures of the guides."""
    for claim in (claims[name] for name in names):
        rows = [one for one in outcomes_of(claim) if one[1]]
        if rows:
            _write(plot_differences(claim, rows), MEASURED / f"{claim.name}.png")
        if rows and claim.grids:
            _write(plot_runs(claim, Results.of(claim).measures()), MEASURED / f"{claim.name}-runs.png")
    _write(plot_gain_of_crf(outcomes_of(claims["c03b"])), GUIDES / "gain_of_crf.png")
    _write(plot_gain_of_multiplier(outcomes_of(claims["c01"])), GUIDES / "gain_of_multiplier.png")


def plot_differences(claim, rows):
    """A row for each comparison: the mean difference, its interval and a point for each seed. A measure has its axis.

    Args:
        claim: The `Claim`.
        rows: A tuple for each measured comparison: the `Comparison`, the `Outcome` and the verdict.

    Returns:
        The figure.
    """
    by_measure = {}
    for row in rows:
        by_measure.setdefault(row[0].what, []).append(row)
    sizes = [len(group) for group in by_measure.values()]
    figure = _figure(claim, 0.8 + sum(0.5 * size + 0.7 for size in sizes))
    columns = figure.subplots(len(sizes), 1, squeeze=False, height_ratios=[size + 1 for size in sizes])[:, 0]
    for axes, (what, group) in zip(columns, by_measure.items(), strict=True):
        for place, (comparison, outcome, verdict) in enumerate(group):
            _draw(axes, place, comparison, outcome, COLORS.get(verdict, UNDECIDED_COLOR))
        axes.axvline(0, color="black", linewidth=0.8)
        names = [f"{where_of(one)}\n{one.first} − {outcome.arm}" for one, outcome, _ in group]
        axes.set_yticks(range(len(group)), names, fontsize="small")
        axes.set_ylim(len(group) - 0.5, -0.5)
        axes.set_xlabel(f"difference: {what}", fontsize="small")
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
    figure = _figure(claim, 1 + 2.8 * len(cells))
    for (cell, arms), row in zip(cells.items(), figure.subplots(len(cells), 3, squeeze=False), strict=True):
        scores, *curves = row
        scores.boxplot([[run["score"] for run in runs] for runs in arms.values()], tick_labels=list(arms))
        scores.tick_params(axis="x", rotation=90, labelsize="x-small")
        scores.set_title(f"{cell}\ntest score", fontsize="small")
        for axes, (name, what) in zip(curves, CURVES.items(), strict=True):
            for number, (arm, runs) in enumerate(arms.items()):
                means = mean_by_epoch([run[name] for run in runs if name in run and not run.get("diverged")])
                means = [mean / means[0] for mean in means] if name == "losses" else means
                color, marker, _ = LINES[number % len(LINES)]
                style = LINES[number // len(LINES) % len(LINES)][2]
                axes.plot(range(1, len(means) + 1), means, style, color=color, marker=marker, markersize=3, label=arm)
            axes.set_title(what, fontsize="small")
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.set_visible(any(len(line.get_xdata()) for line in axes.lines))  # runs of o1 are scored at the end only
        curves[-1].legend(fontsize="xx-small")
    return figure


def plot_gain_of_crf(outcomes):
    """The gain of a CRF with constraints over softmax by the number of sentences, a line for each depth of the encoder.

    Args:
        outcomes: The comparisons of c03b with their outcomes and verdicts.

    Returns:
        The figure: words as decoded, words with illegal paths masked, and entities, which are always masked.
    """
    panels = {
        "words, softmax as decoded": ("PKU", "F1"),
        "words, illegal paths masked": ("PKU", MASKED),
        "entities": ("People's Daily", "F1"),
    }
    figure, numbers = _empty_figure(10, 3.8), {}
    for axes, (title, wanted) in zip(figure.subplots(1, 3, sharey=True), panels.items(), strict=True):
        for (depth, rate), points in sorted(_gains(outcomes, *wanted).items()):
            number = numbers.setdefault((depth, rate), len(numbers))
            beside = [(sentences * 1.06 ** (number - 1), interval) for sentences, interval in points]
            _line(axes, beside, LINES[number], f"{depth} layer{'s' * (depth > 1)}{rate}")
        axes.set_title(title)
        axes.set_xscale("log", base=2)
        axes.set_xticks([160, 640, 2560], ["160", "640", "2,560"])
        axes.set_xlim(120, 3400)
        axes.set_xlabel("training sentences")
    figure.axes[0].set_ylabel("gain of the CRF in F1")
    figure.axes[1].legend()  # where the gains are small
    return figure


def _gains(outcomes, corpus, what):
    """The gains by depth and learning rate, lists of `(sentences, (mean, low, high))`; 1 or 2 seeds: no ends."""
    gains = {}
    for comparison, outcome, _ in outcomes:
        match = DEPTH_AND_SIZE.fullmatch(comparison.cells[0])
        if outcome and match and match[1] == corpus and comparison.what == what:
            if (comparison.first, comparison.second) == ("CRF with constraints", "softmax"):
                point = (int(match[3].replace(",", "")), _ends_of_several(outcome))
                gains.setdefault((int(match[2]), match[4]), []).append(point)
    return {line: sorted(points) for line, points in gains.items()}


def _ends_of_several(outcome):
    """The mean difference and its interval; of one or two seeds, ends that are not drawn."""
    mean, *ends = outcome.interval()
    return (mean, *ends) if outcome.n > 2 else (mean, np.nan, np.nan)


def plot_gain_of_multiplier(outcomes):
    """The gain of a multiplier over 1 by the depth of the encoder, as decoded and with illegal paths masked.

    Args:
        outcomes: The comparisons of c01 with their outcomes and verdicts.

    Returns:
        The figure.
    """
    figure = _empty_figure(6, 4)
    axes, ticks = figure.subplots(), {}
    for style, (what, label) in zip(LINES, (("F1", "as decoded"), (MASKED, "illegal paths masked"))):
        points = []
        for comparison, outcome, _ in outcomes:
            depth, arm, tick = DEPTHS.get(comparison.cells[0], (None, None, None))
            if outcome and (comparison.first, comparison.what) == (arm, what):
                points.append((depth, _ends_of_several(outcome)))
                ticks[depth] = tick
        _line(axes, sorted(points), style, label)
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set_xlabel("layers of the encoder")
    axes.set_ylabel("gain of the multiplier in F1")
    axes.set_ylim(top=0.28)  # room for the legend
    axes.legend(loc="upper left")
    return figure


def _line(axes, points, style, label):
    """Draws a line of means with their intervals."""
    color, marker, line = style
    places, intervals = zip(*points)
    mean, low, high = np.transpose(intervals)
    axes.errorbar(
        places, mean, [mean - low, high - mean], color=color, marker=marker, linestyle=line, capsize=3, label=label
    )
    axes.axhline(0, color="black", linewidth=0.8)


def mean_by_epoch(curves):
    """The mean of lists with a number for each epoch, over those that are so long.

    >>> mean_by_epoch([[1.0, 3.0], [2.0]])
    [1.5, 3.0]
    """
    return [float(np.mean([value for value in values if value is not None])) for values in zip_longest(*curves)]


def _write(figure, path):
    """Writes a figure as a PNG file, the same bytes for the same figure."""
    picture = io.BytesIO()
    figure.savefig(picture, dpi=150, metadata={"Software": None})
    write_aside(path, lambda aside: aside.write_bytes(picture.getvalue()))


def _figure(claim, height):
    """A figure with the claim as its title, in as many lines as it needs."""
    figure = _empty_figure(10, height)
    figure.suptitle("\n".join(textwrap.wrap(f"{claim.name}: {claim.title}", 110)), fontsize="small")
    return figure


def _empty_figure(width, height):
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _by_cell_and_arm(claim, measures):
    """The measures of the runs that are stored, a dict of dicts of lists."""
    cells = {}
    for run in claim.runs():
        if run.key in measures:
            cells.setdefault(run.cell, {}).setdefault(run.arm, []).append(measures[run.key])
    return cells


def _draw(axes, place, comparison, outcome, color):
    """Draws one row: the band of the margin, a point for each seed, the mean and its interval."""
    axes.barh(place, 2 * comparison.margin, left=-comparison.margin, height=0.8, color="#E5E5E5")
    seeds = np.subtract(outcome.first, outcome.second)
    axes.plot(seeds, [place + 0.2] * len(seeds), ".", color=color, alpha=0.4)
    mean, low, high = outcome.interval()
    if outcome.n > 1:
        axes.errorbar([mean], [place], xerr=[[mean - low], [high - mean]], fmt="o", color=color, capsize=3)
