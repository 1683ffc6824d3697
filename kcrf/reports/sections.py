"""The sections of a report page: from run records, by name, to HTML. All text that comes from files is escaped."""

from collections import Counter
from html import escape

import numpy as np

from kcrf.metrics import calibration, is_forbidden
from kcrf.reports.charts import heat_map, is_narrow, line_chart, reliability_diagram, run_color
from kcrf.reports.mistakes import frequent_mistakes

__all__ = ["SECTIONS", "anchor", "cards", "figure"]

MOST_MISTAKES = 20
MOST_HEAT_MAPS = 6
CONTEXT = 20  # characters on either side of a mistake

# What the log may have of an epoch, and what it means; the first are of training, the others of a CRFMonitor.
CURVES = {
    "loss": ("Training loss", "per sentence"),
    "valid_f": ("F1 on the held-out part", ""),
    "transition_size": ("Size of the transitions", "standard deviation; should come near the emission gap"),
    "emission_gap": ("Emission gap", "median distance of a token's best two scores"),
    "illegal_above_legal": ("Illegal transitions above a legal one", "0 where the CRF has learnt the scheme"),
    "viterbi_differs": ("Tokens where Viterbi differs from argmax", "share; 0 means that the CRF decides nothing"),
}
FIGURES = {
    "f": "F1",
    "precision": "precision",
    "recall": "recall",
    "oov_rate": "OOV rate",
    "oov_recall": "OOV recall",
    "iv_recall": "IV recall",
    "true_words": "words in gold",
    "test_words": "words found",
    "true_entities": "entities in gold",
    "found_entities": "entities found",
    "correct": "entities right",
}
NEITHER_GOOD_NOR_BAD = {"OOV rate", "words in gold", "words found", "entities in gold", "entities found"}


def figure(value):
    """A value as tables show it: floats with four digits, None as a dash."""
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def cards(runs):
    """A card for each run: its best figure, and how long it took."""
    return f'<div class="runs">{"".join(_card(number, *item) for number, item in enumerate(runs.items()))}</div>'


def _card(number, name, run):
    f = run.scores[run.part].get("f") if run.part else None
    about = [f"F1 on the {run.part} part" if run.part else "not scored yet"]
    if run.log:
        about.append(f"{len(run.log)} epoch{'s' * (len(run.log) > 1)}")
        seconds = run.log[-1].get("seconds")
        about += [f"{seconds / 60:.1f} min"] if seconds is not None else []
    return (
        f'<div class="run"><span class="name">{_chip(number)}{escape(name)}</span>'
        f'<b>{figure(f)}</b><span class="soft">{" · ".join(about)}</span></div>'
    )


def _chip(number):
    return f'<span class="chip" style="background:{run_color(number)}"></span>'


def _missing(name, what):
    return f'<p class="soft">No {what}: <code>{name}</code> is not in the run folder.</p>'


def _of_each_run(runs, show):
    """What `show(run)` says, under the name of the run where there are several."""
    if len(runs) == 1:
        return show(*runs.values())
    return "".join(f"<h3>{_chip(n)}{escape(name)}</h3>{show(run)}" for n, (name, run) in enumerate(runs.items()))


def _table(head, rows, kind=""):
    """Head and cells are HTML; a row is (class, cells); all columns but the first hold numbers."""
    head = "".join(f'<th class="{"number" if i else "first"}">{cell}</th>' for i, cell in enumerate(head))
    body = "".join(f'<tr class="{name}">{"".join(cells)}</tr>' for name, cells in rows)
    return f'<div class="wide"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _scores(runs):
    parts = [part for part in ("test", "valid") if any(part in (run.scores or {}) for run in runs.values())]
    if not parts:
        return _missing("scores.json", "scores yet")
    rows = []
    for part in parts:
        columns = [_flat((run.scores or {}).get(part, {})) for run in runs.values()]
        rows.append(("part", [f'<td colspan="{len(runs) + 1}">{part} part</td>']))
        titles = dict.fromkeys(title for column in columns for title in column)
        rows += [_score_row(title, [column.get(title) for column in columns]) for title in titles]
    return _table(_heading(runs), rows) + '<p class="soft">The best of several runs is bold.</p>' * (len(runs) > 1)


def _flat(scores):
    """The figures of a part by what they are called; those of entities also over and for the types."""
    flat = {title: scores.get(key) for key, title in FIGURES.items()}
    flat["F1, mean over types"] = scores.get("macro", {}).get("f")
    flat.update({f"F1 of {label}": figures.get("f") for label, figures in scores.get("types", {}).items()})
    return {title: value for title, value in flat.items() if value is not None}


def _heading(runs):
    return ["", *(_chip(number) + escape(name) for number, name in enumerate(runs))]


def _score_row(title, values):
    numbers = [value for value in values if value is not None]
    best = max(numbers) if len(numbers) > 1 and title not in NEITHER_GOOD_NOR_BAD else None
    cells = (_number(value, "best" if value is not None and value == best else "") for value in values)
    return "", [f"<td>{escape(title)}</td>", *cells]


def _number(value, kind=""):
    return f'<td class="number {kind}">{escape(figure(value))}</td>'


def _curves(runs):
    if not any(run.log for run in runs.values()):
        return _missing("log.csv", "learning curves")
    charts = []
    for key, (title, note) in CURVES.items():
        lines = {
            number: [(int(row["epoch"]), row[key]) for row in run.log or () if key in row]
            for number, run in enumerate(runs.values())
        }
        lines = {number: line for number, line in lines.items() if line}
        if lines:
            note = f'<div class="soft">{note}</div>' if note else ""
            charts.append(f"<figure><h4>{title}</h4>{line_chart(title, lines)}{note}</figure>")
    return f'{_legend(runs)}<div class="grid">{"".join(charts)}</div>'


def _legend(runs):
    if len(runs) == 1:
        return ""
    names = (f'<span class="name">{_chip(number)}{escape(name)}</span>' for number, name in enumerate(runs))
    return f'<div class="legend">{"".join(names)}</div>'


def _transitions(runs):
    note = (
        '<p class="soft">From row to column: warm raises a score, cold lowers it, one scale for all epochs of a run. '
        "Crossed out is what the scheme calls illegal; a frame marks an illegal transition that scores above a legal "
        "one out of the same tag.</p>"
    )
    return note + _of_each_run(runs, _heat_maps)


def _heat_maps(run):
    if not run.transitions:
        return _diagnosis(run) + _missing("transitions.json", "transitions")
    limit = max(np.abs(matrix[~is_forbidden(matrix)]).max(initial=0.0) for _, matrix in run.transitions)
    last = len(run.transitions) - 1
    shown = sorted({round(i * last / (MOST_HEAT_MAPS - 1)) for i in range(MOST_HEAT_MAPS)})
    maps = []
    for epoch, matrix in (run.transitions[i] for i in shown):
        picture = heat_map(f"Transitions after epoch {epoch}", matrix, run.labels, run.allowed, limit)
        maps.append(f"<figure><h4>epoch {epoch}</h4>{picture}</figure>")
    grid = "grid small" if is_narrow(run.labels) else "grid"
    return _diagnosis(run) + f'<div class="{grid}">{"".join(maps)}</div>'


def _diagnosis(run):
    return f'<p class="advice">{run.advice[0].upper()}{run.advice[1:]}.</p>' if run.advice else ""


def _mistakes(runs):
    return _of_each_run(runs, lambda run: _mistakes_of(run, "open" if len(runs) == 1 else ""))


def _mistakes_of(run, is_open):
    if run.predictions is None:
        return _missing("predictions.jsonl", "predictions")
    mistakes = frequent_mistakes(run.predictions)
    where = f"{len(run.predictions)} sentences{_of_part(run)}"
    if not mistakes:
        return f"<p>No mistakes in {where}.</p>"
    kinds = Counter()
    for mistake in mistakes:
        kinds[mistake.kind] += mistake.count
    bars = "".join(
        f'<li><span>{kind}</span><i style="width:{count / max(kinds.values()):.0%}"></i><span>{count}</span></li>'
        for kind, count in kinds.most_common()
    )
    shown = mistakes[:MOST_MISTAKES]
    table = _table(["gold", "found", "times", "confidence", "the surest one"], map(_mistake_row, shown), "mistakes")
    total = f"{kinds.total()} mistakes of {len(mistakes)} sorts in {where}"
    return (
        f'<p class="soft">{total}.</p><ul class="kinds">{bars}</ul>'
        f"<details {is_open}><summary>The most frequent {len(shown)}</summary>{table}</details>"
    )


def _of_part(run):
    return f" of the {run.part} part" if run.part else ""


def _mistake_row(mistake):
    text, start, end = mistake.text, mistake.start, mistake.end
    before, after = text[max(0, start - CONTEXT) : start], text[end : end + CONTEXT]
    dots = ("…" * (start > CONTEXT), "…" * (end + CONTEXT < len(text)))
    context = f"{dots[0]}{escape(before)}<mark>{escape(text[start:end])}</mark>{escape(after)}{dots[1]}"
    return "", [
        f'<td data-name="gold"><span>{_pieces(mistake.gold)}</span></td>',
        f'<td data-name="found" class="found"><span>{_pieces(mistake.found)}</span></td>',
        f'<td data-name="times" class="number">{mistake.count}</td>',
        f'<td data-name="confidence" class="number">{_two_digits(mistake.confidence)}</td>',
        f'<td data-name="in"><span class="context">{context}</span></td>',
    ]


def _two_digits(value):
    return "-" if value is None else f"{value:.2f}"


def _pieces(spans):
    pieces = (
        f'<span class="piece">{escape(text)}{f"<small>{escape(label)}</small>" if label else ""}</span>'
        for text, label in spans
    )
    return "".join(pieces) or '<span class="soft">nothing</span>'


def _calibration(runs):
    return _of_each_run(runs, _calibration_of)


def _calibration_of(run):
    found = []
    for sentence in run.predictions or ():
        gold = set(map(tuple, sentence["gold"]))
        found += [(span[3], tuple(span[:3]) in gold) for span in sentence["found"]]
    if not found:
        return _missing("predictions.jsonl", "confidences")
    rows, error = calibration(*zip(*found, strict=True))
    told = [
        ("", [f"<td>{low:.1f} to {high:.1f}</td>", *(_number(value) for value in (count, mean, share))])
        for low, high, count, mean, share in rows
        if count
    ]
    head = ["confidence", "found", "mean", "right"]
    return (
        f'<p>Expected calibration error <b>{error:.4f}</b> <span class="soft">over {len(found)} spans'
        f"{_of_part(run)}: the mean distance of confidence and share right, 0 where confidence tells the truth."
        "</span></p>"
        f'<div class="pair">{reliability_diagram("Share right by confidence", rows)}{_table(head, told)}</div>'
    )


def _settings(runs):
    names = list(dict.fromkeys(name for run in runs.values() for name in run.settings))
    rows = []
    for name in names:
        values = [run.settings.get(name) for run in runs.values()]
        differs = any(value != values[0] for value in values)
        cells = (f'<td class="number">{escape(str(value))}</td>' for value in values)
        rows.append(("differs" if differs else "", [f"<td>{escape(name)}</td>", *cells]))
    rows.sort(key=lambda row: row[0] == "")  # what differs first
    return _table(_heading(runs), rows, "settings")


def anchor(title):
    """The id of a section."""
    return title.lower().replace(" ", "-")


SECTIONS = {
    "Scores": _scores,
    "Learning curves": _curves,
    "Transitions": _transitions,
    "Mistakes": _mistakes,
    "Calibration": _calibration,
    "Settings": _settings,
}
