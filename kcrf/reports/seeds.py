"""Runs that differ in their seed alone: the spread of their scores, for each setting."""

import json
from html import escape

import numpy as np

from kcrf.reports.charts import box_plot
from kcrf.reports.html import number_cell, table
from kcrf.reports.titles import SETS, TITLES

IGNORED = ("seed", "mean", "deviation", "temperature")  # but for the seed, they follow from the data and the weights


def groups_by_settings(runs):
    """The runs with equal settings but for the seed: a dict from the settings that differ to a list of runs.

    Settings that a run chose itself, such as the number of epochs by the size of its data, do not count.
    """
    groups = {}
    for run in runs.values():
        ignored = {*IGNORED, *(["epochs"] if run.settings.get("steps") else [])}
        settings = {name: value for name, value in run.settings.items() if name not in ignored}
        settings |= {name: "auto" for name in run.chosen if name in settings} | {"train": run.train}
        groups.setdefault(json.dumps(settings, sort_keys=True), (settings, []))[1].append(run)
    every = [settings for settings, _ in groups.values()]
    names = [name for name in every[0] if any(settings.get(name) != every[0][name] for settings in every)]
    return {
        ", ".join(f"{name}={settings.get(name)}" for name in names) or "all runs": group
        for settings, group in groups.values()
    }


def differ_in_seed(runs):
    """Whether there are several runs and their settings differ only in the seed, or as a consequence of the data."""
    return len(runs) > 1 and len(groups_by_settings(runs)) == 1


def seeds_section(runs):
    """The section with the spread of the scores; "" if no two runs have the same settings but for the seed."""
    groups = {
        name: [run.score for run in group if run.score is not None] for name, group in groups_by_settings(runs).items()
    }
    groups = {name: values for name, values in groups.items() if len(values) > 1}
    titles = {f"{TITLES[run.metric]} on the {SETS[run.part]}" for run in runs.values() if run.score is not None}
    if not groups or len(titles) > 1:
        return ""
    title = f"{titles.pop()} by seed"
    rows = [
        (
            "",
            [
                f"<td>{escape(name)}</td>",
                *map(number_cell, (len(values), float(np.mean(values)), float(np.std(values, ddof=1)))),
            ],
        )
        for name, values in groups.items()
    ]
    figures = table([title, "runs", "mean", "deviation"], rows)
    return (
        '<p class="soft">A box spans the quartiles, its line is the median, points are runs.</p>'
        f'<div class="halves"><figure>{box_plot(title, groups)}</figure>{figures}</div>'
    )
