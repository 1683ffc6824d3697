"""The columns of a run's log as curves by epoch: of each run, or of all runs with the same settings together."""

from html import escape

import numpy as np

from kcrf.reports.charts import line_chart
from kcrf.reports.html import chip, missing
from kcrf.reports.seeds import groups_by_settings
from kcrf.reports.titles import METRICS, TITLES

# Columns of the log that are drawn as curves, with title and explanation. A CRFMonitor writes the last four.
CURVES = {
    "loss": ("Training loss", "per sentence"),
    **{f"valid_{key}": (f"{TITLES[key]} on the validation set", "") for key in METRICS},
    "transition_size": ("Size of the transitions", "standard deviation; should approach the emission gap"),
    "emission_gap": ("Emission gap", "median difference between the two best scores of a token"),
    "illegal_above_legal": ("Forbidden transitions above an allowed one", "0 once the CRF has learned the tag scheme"),
    "viterbi_differs": (
        "Tokens where Viterbi differs from argmax",
        "fraction; 0 means that the transitions change no tag",
    ),
}


def curves_section(runs):
    """The learning curves. Runs that differ in their seed alone are one line, their mean, in a band of all of them."""
    if not any(run.log for run in runs.values()):
        return missing("log.csv", "learning curves")
    groups = groups_by_settings(runs)
    are_means = len(groups) < len(runs)
    groups = groups if are_means else {name: [run] for name, run in runs.items()}
    charts = [_figure(key, title, note, groups) for key, (title, note) in CURVES.items()]
    note = "A line is the mean of runs that differ in their seed alone; the band goes from the lowest to the highest."
    note = f'<p class="soft">{note}</p>' if are_means else ""
    return f'{note}{_legend(groups)}<div class="grid">{"".join(charts)}</div>'


def _figure(key, title, note, groups):
    """The curves of one column of the log; "" if no run has it."""
    values = {number: _by_epoch(key, runs) for number, runs in enumerate(groups.values())}
    values = {number: by_epoch for number, by_epoch in values.items() if by_epoch}
    if not values:
        return ""
    lines = {number: [(epoch, float(np.mean(row))) for epoch, row in rows.items()] for number, rows in values.items()}
    bands = {
        number: [(epoch, min(row), max(row)) for epoch, row in rows.items()]
        for number, rows in values.items()
        if any(len(row) > 1 for row in rows.values())
    }
    note = f'<div class="soft">{note}</div>' if note else ""
    return f"<figure><h4>{title}</h4>{line_chart(title, lines, bands)}{note}</figure>"


def _by_epoch(key, runs):
    """A dict from the epoch to the values of the runs that reached it."""
    values = {}
    for run in runs:
        for row in run.log or ():
            if key in row:
                values.setdefault(int(row["epoch"]), []).append(row[key])
    return dict(sorted(values.items()))


def _legend(groups):
    if len(groups) == 1:
        return ""
    names = (f'<span class="name">{chip(number)}{escape(name)}</span>' for number, name in enumerate(groups))
    return f'<div class="legend">{"".join(names)}</div>'
