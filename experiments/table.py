"""The tables of README.md, and its list of contradicted claims, made from the results. Needs no Keras."""

import json
from pathlib import Path

from experiments.store import MEASURED, Results
from experiments.verdicts import DECIDED, spread
from kcrf.files import write_lines

__all__ = ["list_claims", "readme", "write_table"]

HERE = Path(__file__).parent
README = HERE / "README.md"
BEGIN, END = "<!-- begin: written by `python -m experiments table` -->", "<!-- end -->"
OURS = "ours: mean ± deviation (n), 95 % interval of the difference"
HEAD = [f"| | claim | source | literature | {OURS} | verdict |"]
RULE = ["|---|---|---|---|---|---|"]


def write_table(claims):
    """Writes the tables into README.md, and the plots of each claim with results."""
    from experiments.plots import plot_differences, plot_runs, write_picture

    write_lines(README, readme(claims).splitlines())
    for claim in claims.values():
        rows = [
            (f"{_what(comparison)}\n{comparison.first} − {outcome.arm}", comparison, outcome, verdict)
            for comparison, outcome, verdict in _outcomes(claim)
            if outcome
        ]
        if rows:
            write_picture(plot_differences(claim, rows), MEASURED / f"{claim.name}.png")
        if rows and claim.grids:
            write_picture(plot_runs(claim, Results.of(claim).measures()), MEASURED / f"{claim.name}-runs.png")


def readme(claims):
    """README.md with the present tables."""
    text = README.read_text(encoding="utf-8")
    before, _, behind = text.partition(BEGIN)
    _, _, after = behind.partition(END)
    written = ["", *contradicted(claims), "", *claims_table(claims), "", *stored_table(claims), ""]
    return "\n".join([before + BEGIN, *written, END + after])


def contradicted(claims):
    """The lines that say what does not hold here, and how many comparisons are decided."""
    outcomes = [(claim, *one) for claim in claims.values() for one in _outcomes(claim) + _stored_outcomes(claim)]
    decided = [verdict for *_, verdict in outcomes if verdict in DECIDED[:2]]
    lines = [
        f"- {claim.name}: {claim.title}. Claimed: {comparison.claimed}. Here: {describe(comparison, outcome)}"
        for claim, comparison, outcome, verdict in outcomes
        if verdict == DECIDED[1]
    ]
    count = f"Of {len(outcomes)} comparisons, {len(decided)} are decided. These do not hold here:"
    return [count, "", *(lines or ["- none yet"])]


def _outcomes(claim):
    """The comparisons of a claim with their outcomes and verdicts."""
    measures = Results.of(claim).measures()
    outcomes = [(comparison, comparison.outcome(measures, claim.seeds)) for comparison in claim.comparisons]
    return [(comparison, outcome, comparison.verdict(outcome, claim.seeds)) for comparison, outcome in outcomes]


def _stored_outcomes(claim):
    """The same for the comparisons in results of earlier experiments."""
    outcomes = []
    for stored in claim.stored:
        results = json.loads((HERE / stored.file).read_text(encoding="utf-8"))
        outcome = stored.comparison.outcome(results, claim.seeds)
        outcomes.append((stored.comparison, outcome, stored.comparison.verdict(outcome, claim.seeds)))
    return outcomes


def claims_table(claims):
    """The lines of the table of claims: one for each comparison that has results."""
    return [*HEAD, *RULE, *(line for claim in claims.values() for line in lines_of(claim))]


def lines_of(claim):
    """The lines of a claim in the table."""
    outcomes = _outcomes(claim)
    measured = [(describe(comparison, outcome), verdict) for comparison, outcome, verdict in outcomes if outcome]
    if missing := len(outcomes) - len(measured):
        which = f"{missing} more comparison{'s' * (missing > 1)}" if measured else "not measured yet"
        measured.append((f"{which}: `{command(claim)}`", "not measured yet"))
    about = [_with_plots(claim) if any(outcome for _, outcome, _ in outcomes) else claim.name]
    about += [claim.title, claim.source, claim.literature]
    return [_row(*(about if number == 0 else [""] * 4), *cells) for number, cells in enumerate(measured)]


def _with_plots(claim):
    """The name of a claim with links to its plots."""
    runs_of = claim.runs_of or claim.name
    return f"{claim.name}: [differences](measured/{claim.name}.png), [runs](measured/{runs_of}-runs.png)"


def stored_table(claims):
    """The lines of the table of comparisons in results of earlier experiments."""
    lines = [f"| | results | {OURS} | verdict |", "|---|---|---|---|"]
    for claim in claims.values():
        for stored, (comparison, outcome, verdict) in zip(claim.stored, _stored_outcomes(claim), strict=True):
            lines.append(_row(claim.name, f"`{stored.file}`", describe(comparison, outcome), verdict))
    return lines


def describe(comparison, outcome):
    """An outcome in words and numbers."""
    difference, low, high = outcome.interval()
    interval = f" [{low:+.4f}, {high:+.4f}]" if outcome.n > 1 else ""
    arms = f"{comparison.first} {spread(outcome.first)}, {outcome.arm} {spread(outcome.second)}"
    return f"{_what(comparison)}: {arms}; difference {difference:+.4f}{interval}"


def _what(comparison):
    cells = [cell for cell in comparison.cells if cell]
    return ", ".join([*cells, comparison.what] if len(cells) < 3 else [f"mean of {len(cells)} cells", comparison.what])


def command(claim):
    """The command that measures a claim."""
    name = claim.runs_of or claim.name
    english = " --english all-MiniLM-L6-v2" if any(is_english(run) for run in claim.runs()) else ""
    return f"python -m experiments {name} --data FOLDER{english}"


def is_english(run):
    """Whether a run fine-tunes the English BERT."""
    return run.settings.get("bert") == "english"


def list_claims(claims):
    """A line for each claim: its runs, those that are stored, and the processor minutes of the rest."""
    lines = []
    for claim in claims.values():
        runs, records = claim.runs(), Results.of(claim).read()
        timed = (record["processor_seconds"] for record in records.values())
        seconds = [one for one in timed if one is not None]
        missing = [run for run in runs if run.key not in records]
        minutes = len(missing) * sum(seconds) / max(1, len(seconds)) / 60
        left = f"about {minutes:.0f} processor minutes left" if seconds else "not timed yet"
        counts = f"{len(runs) - len(missing)} of {len(runs)} runs" if runs else f"the runs of {claim.runs_of}"
        lines.append(f"{claim.name}  {counts}, {left}: {claim.title}")
    return "\n".join(lines)


def _row(*cells):
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
