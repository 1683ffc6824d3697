"""The tables of both README.md, made from the results. Needs no Keras."""

import json
from collections import Counter
from pathlib import Path

import numpy as np

from experiments.store import MEASURED, Results
from experiments.verdicts import NO_EFFECT, OPPOSITE, VERDICTS, bootstrap_interval, spread
from kcrf.files import write_lines

HERE = Path(__file__).parent
README, DETAILS = HERE / "README.md", MEASURED / "README.md"
BEGIN, END = "<!-- begin: written by `python -m experiments table` -->", "<!-- end -->"
ABOUT_DETAILS = """# The comparisons of each claim

Written by `python -m experiments table` from the JSON files of this folder; [Experiments](../README.md) explains the
verdicts. Each row compares two arms, paired by seed: their means with standard deviations, and the mean difference with
its 95 % t interval.
"""
ABOUT_INTERVALS = """## intervals

These comparisons would have another verdict by the percentile bootstrap (10,000 draws), which was used at first: with
few seeds its intervals are too narrow. `python -m experiments intervals` prints them.
"""
HEAD = ["| where | measure | arms | difference | n | claimed | verdict |", "|---|---|---|---|---|---|---|"]


def write_table(claims, names=None):
    """Writes the tables into both README.md, the plots of all or the named claims, and the figures of the guides."""
    from experiments.plots import write_plots

    write_plots(claims, names or list(claims))
    write_lines(README, readme(claims).splitlines())
    write_lines(DETAILS, details(claims).splitlines())


def readme(claims):
    """README.md with the present summary of all claims."""
    text = README.read_text(encoding="utf-8")
    before, _, behind = text.partition(BEGIN)
    _, _, after = behind.partition(END)
    return "\n".join([before + BEGIN, "", *_summary(claims), "", END + after])


def _summary(claims):
    """The counts of all verdicts, a row for each claim, and the comparisons that contradict one."""
    found = [(claim, *one) for claim in claims.values() for one in outcomes_of(claim)]
    counts = Counter(verdict.split(" (")[0] for _, comparison, _, verdict in found if comparison.claimed)
    lines = [
        f"Of {counts.total()} comparisons with a claim, {counts['holds']} hold, {counts[OPPOSITE]} show the opposite, "
        f"{counts[NO_EFFECT]} show no effect, {counts['undecided'] + counts['undecided yet']} are undecided, and",
        f"{counts['not measured yet']} are not measured yet. {len(found) - counts.total()} more compare what no source "
        "speaks of.",
        "",
        "| | claim | its first comparison | verdict | all comparisons |",
        "|---|---|---|---|---|",
    ]
    lines += [_row_of_claim(claim) for claim in claims.values()]
    for wanted, heading in ((OPPOSITE, "The opposite of the claim"), (NO_EFFECT, "No effect, where one was claimed")):
        lines += ["", f"### {heading}", ""]
        lines += [
            f"- {_link(claim)}: {in_words(comparison, outcome)}. Claimed: {comparison.claimed}"
            for claim, comparison, outcome, verdict in found
            if verdict == wanted and comparison.claimed
        ]
    return lines


def _row_of_claim(claim):
    """The row of a claim in the summary: its first measured comparison, and how often each verdict occurs."""
    found = outcomes_of(claim)
    counts = Counter(verdict.split(" (")[0] for comparison, _, verdict in found if comparison.claimed)
    order = [verdict for verdict in (*VERDICTS, "undecided yet", "not measured yet") if counts[verdict]]
    measured = [one for one in found if one[1]]
    first = in_words(*measured[0][:2]) if measured else ""
    verdict = measured[0][2] if measured else "not measured yet"
    return _row(_link(claim), claim.title, first, verdict, ", ".join(f"{counts[name]} {name}" for name in order))


def _link(claim):
    return f"[{claim.name}](measured/README.md#{claim.name})"


def outcomes_of(claim):
    """The comparisons of a claim with their outcomes and verdicts, in its own results and in earlier ones."""
    measures = Results.of(claim).measures()
    results = [(comparison, measures) for comparison in claim.comparisons]
    results += [(stored.comparison, _earlier(stored.file)) for stored in claim.stored]
    outcomes = [(comparison, comparison.outcome(numbers, claim.seeds)) for comparison, numbers in results]
    return [(comparison, outcome, comparison.verdict(outcome, claim.seeds)) for comparison, outcome in outcomes]


def _earlier(file):
    """The results of an earlier experiment."""
    return json.loads((HERE / file).read_text(encoding="utf-8"))


def details(claims):
    """The text of measured/README.md: a section for each claim, and the verdicts that depend on the interval."""
    sections = [line for claim in claims.values() for line in _section(claim)]
    return "\n".join([ABOUT_DETAILS, *sections, ABOUT_INTERVALS, *intervals(claims), ""])


def intervals(claims):
    """A table of the comparisons that have another verdict by the percentile bootstrap than by the t interval."""
    lines = ["| claim | difference and t interval | bootstrap | by t | by the bootstrap |", "|---|---|---|---|---|"]
    for claim in claims.values():
        for comparison, outcome, verdict in outcomes_of(claim):
            other = comparison.verdict(outcome, claim.seeds, bootstrap_interval)
            if other != verdict:
                _, low, high = bootstrap_interval(np.subtract(outcome.first, outcome.second))
                words = in_words(comparison, outcome)
                lines.append(_row(claim.name, words, f"[{low:+.3f}, {high:+.3f}]", verdict, other))
    return lines


def _section(claim):
    """The heading, the origin and the rows of a claim."""
    runs_of = claim.runs_of or claim.name
    literature = f" Literature: {claim.literature}." if claim.literature else ""
    links = [f"[settings and what was changed when](../claims/{claim.file})"]
    if (MEASURED / f"{claim.name}.png").exists():
        links += [f"[differences]({claim.name}.png)", f"[runs]({runs_of}-runs.png)"]
    return [
        f"## {claim.name}",
        "",
        f"**{claim.title}.** Source: {claim.source}.{literature} {' · '.join(links)} · `{command(claim)}`",
        "",
        *HEAD,
        *lines_of(claim),
        "",
    ]


def lines_of(claim):
    """The rows of a claim: one for each comparison."""
    lines = []
    for comparison, outcome, verdict in outcomes_of(claim):
        arms, difference, n = _scores_alone(comparison, claim), "", ""
        if outcome:
            arms = f"{comparison.first} {spread(outcome.first)}, {outcome.arm} {spread(outcome.second)}"
            difference, n = _difference(outcome, 4), str(outcome.n)
        claimed = comparison.claimed or "nothing"
        lines.append(_row(where_of(comparison), comparison.what, arms, difference, n, claimed, verdict))
    return lines


def _scores_alone(comparison, claim):
    """The arms of a comparison without pairs, with the numbers of the runs that there are."""
    measures, (cell, *_) = Results.of(claim).measures(), comparison.cells
    arms = []
    for arm in (comparison.first, comparison.second):
        keys = [f"{cell}, {arm}, seed {seed}" for seed in range(claim.seeds)]
        scores = [comparison.numbers(measures[key], measures[key])[0] for key in keys if key in measures]
        arms.append(f"{arm} {spread(scores)}" if scores else f"{arm}")
    return ", ".join(arms)


def in_words(comparison, outcome):
    """An outcome in a line."""
    where = ", ".join(filter(None, (where_of(comparison), comparison.what)))
    return f"{where}: {comparison.first} − {outcome.arm} {_difference(outcome, 3)}, n = {outcome.n}"


def _difference(outcome, digits):
    """The mean difference with its interval, as in "+0.02 [+0.01, +0.03]"."""
    difference, low, high = outcome.interval()
    interval = f" [{low:+.{digits}f}, {high:+.{digits}f}]" if outcome.n > 1 else ""
    return f"{difference:+.{digits}f}{interval}"


def where_of(comparison):
    """The cells of a comparison in words, or how many they are."""
    cells = [cell for cell in comparison.cells if cell]
    return ", ".join(cells) if len(cells) < 3 else f"mean of {len(cells)} cells"


def command(claim):
    """The command that measures a claim."""
    return f"python -m experiments {claim.runs_of or claim.name} --data FOLDER"


def list_claims(claims):
    """A line for each claim: its runs, those that are stored, and the processor minutes of the rest."""
    lines = []
    for claim in claims.values():
        runs, records = claim.runs(), Results.of(claim).read()
        missing = [run for run in runs if run.key not in records]
        costs = [_seconds_of(run, records) for run in missing]
        left = "not timed yet" if None in costs else f"about {sum(costs) / 60:.0f} processor minutes left"
        counts = f"{len(runs) - len(missing)} of {len(runs)} runs" if runs else f"the runs of {claim.runs_of}"
        lines.append(f"{claim.name}  {counts}, {left}: {claim.title}")
    return "\n".join(lines)


def _seconds_of(run, records):
    """The mean processor time of the stored runs with the same encoder, None without any."""
    same = (one for one in records.values() if one["settings"].get("bert") == run.settings.get("bert"))
    seconds = [one["processor_seconds"] for one in same if one["processor_seconds"] is not None]
    return sum(seconds) / len(seconds) if seconds else None


def _row(*cells):
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
