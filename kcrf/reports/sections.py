"""The sections of a report page: from run records, by name, to HTML. All text that comes from files is escaped."""

from collections import Counter
from html import escape

import numpy as np

from kcrf.metrics import calibration
from kcrf.metrics.transitions import is_forbidden
from kcrf.reports.charts import heat_map, is_narrow
from kcrf.reports.classifiers import (
    calibration_of_classes,
    confusion,
    has_classes,
    has_confusion,
    is_classifier,
    mistakes_of_classes,
)
from kcrf.reports.comparison import differences_from_the_best, why_not_comparable
from kcrf.reports.curves import curves_section
from kcrf.reports.html import (
    calibration_table,
    chip,
    each_run,
    in_language,
    missing,
    number_cell,
    of_part,
    spans,
    table,
)
from kcrf.reports.mistakes import frequent_mistakes
from kcrf.reports.seeds import differ_in_seed, seeds_section
from kcrf.reports.sentences import sentences_section
from kcrf.reports.titles import NOT_RANKED, SETS, TITLES, format_value

MOST_MISTAKES = 20
CONTEXT = 20  # characters on either side of a mistake

ONLY_CRF = ("crf_lr_multiplier", "constraints")  # settings that a softmax head does not use
UNUSED = "-"


def cards(runs):
    """A card for each run: its main score, and how long it took."""
    return f'<div class="runs">{"".join(_card(number, *item) for number, item in enumerate(runs.items()))}</div>'


def _card(number, name, run):
    about = [f"{TITLES[run.metric]} on the {SETS[run.part]}" if run.part else "not scored yet"]
    if run.log:
        about.append(f"{len(run.log)} epoch{'s' * (len(run.log) > 1)}")
        seconds = run.log[-1].get("seconds")
        about += [f"{seconds / 60:.1f} min"] if seconds is not None else []
    return (
        f'<div class="run"><span class="name">{chip(number)}{escape(name)}</span>'
        f'<b>{format_value(run.score)}</b><span class="soft">{" · ".join(about)}</span></div>'
    )


def _scores(runs):
    parts = [part for part in ("test", "valid") if any(part in (run.scores or {}) for run in runs.values())]
    if not parts:
        return missing("scores.json", "scores yet")
    tables, notes, are_seeds = [], [], differ_in_seed(runs)
    for part in parts:
        scored = [run for run in runs.values() if part in (run.scores or {})]
        obstacle = why_not_comparable(scored, part)
        columns = [_by_title((run.scores or {}).get(part, {})) for run in runs.values()]
        titles = dict.fromkeys(title for column in columns for title in column)
        rows = [_score_row(title, [column.get(title) for column in columns], obstacle, are_seeds) for title in titles]
        tables.append(table([SETS[part], *_names(runs), *(["mean", "deviation"] if are_seeds else [])], rows))
        if len(scored) > 1:
            notes += [_not_comparable(part, obstacle)] if obstacle else _notes_on_differences(runs, part)
    if len(runs) > 1:
        notes.insert(0, "The best of several runs is bold if they can be compared.")
    notes = "".join(f'<p class="soft">{note}</p>' for note in notes)
    return f'<div class="side-by-side">{"".join(tables)}</div>{notes}'


def _not_comparable(part, obstacle):
    return f"The scores on the {SETS[part]} cannot be compared: {obstacle}."


def _notes_on_differences(runs, part):
    """A sentence for each run but the best: its distance from the best, and whether the distance may be chance."""
    with_class = any("joint_f" in (run.scores or {}).get(part, {}) for run in runs.values())
    metric = "Accuracy" if any(map(has_classes, runs.values())) else TITLES["joint_f" if with_class else "f"]
    for best, name, count, (difference, low, high) in differences_from_the_best(runs, part):
        verdict = "more than noise" if low > 0 else "within the noise of so few sentences: it may be chance"
        yield (
            f"{metric} on the {SETS[part]}: {escape(best)} is {difference:.4f} above {escape(name)}; 95 % of bootstrap "
            f"draws of the {count} sentences lie between {low:+.4f} and {high:+.4f}, {verdict}."
        )


def _by_title(scores):
    """The scores of a part by their titles; also F1 of each type of entity, label or standard."""
    values = {title: scores.get(key) for key, title in TITLES.items()}
    values["F1, mean over types"] = scores.get("macro", {}).get("f")
    by_label = {**scores.get("types", {}), **scores.get("labels", {}), **scores.get("standards", {})}
    values.update({f"F1 of {label}": figures.get("f") for label, figures in by_label.items()})
    return {title: value for title, value in values.items() if value is not None}


def _names(runs):
    return [chip(number) + escape(name) for number, name in enumerate(runs)]


def _score_row(title, values, obstacle, are_seeds):
    numbers = [value for value in values if value is not None]
    is_ranked = len(numbers) > 1 and not obstacle and title not in {TITLES[key] for key in NOT_RANKED}
    best = max(numbers) if is_ranked else None
    cells = (number_cell(value, "best" if value is not None and value == best else "") for value in values)
    over_seeds = [float(np.mean(numbers)), float(np.std(numbers, ddof=1))] if len(numbers) > 1 else [None, None]
    cells = [*cells, *map(number_cell, over_seeds if are_seeds else [])]
    return "", [f"<td{in_language(title)}>{escape(title)}</td>", *cells]


def _transitions(runs):
    note = (
        '<p class="soft">Scores from the tag of the row to that of the column: warm colors are positive, cold colors '
        "negative, on one scale for all epochs of a run. Transitions that the scheme forbids are crossed out. A frame "
        "marks a forbidden transition that scores above an allowed one from the same tag.</p>"
    )
    return note + each_run(_taggers(runs), _heat_maps) if _taggers(runs) else ""


def _taggers(runs):
    return {name: run for name, run in runs.items() if not is_classifier(run)}


def _confusion(runs):
    return each_run({name: run for name, run in runs.items() if has_confusion(run)}, confusion)


def _sentences(runs):
    return sentences_section(_taggers(runs))


def _heat_maps(number, run):
    """The transitions of each CRF after the first and after the last epoch, with the advice on them."""
    if not run.transitions:
        return _advice(run) + missing("transitions.json", "transitions")
    maps = [_pair_of_maps(run, *of_crf) for of_crf in run.transitions.items()]
    grid = "grid small" if is_narrow(run.labels) else "grid"
    return _advice(run) + "".join(f'<div class="{grid}">{pair}</div>' for pair in maps)


def _pair_of_maps(run, standard, epochs):
    limit = max(np.abs(matrix[~is_forbidden(matrix)]).max(initial=0.0) for _, matrix in epochs)
    of, maps = "" if standard is None else f" of {standard}", []
    for epoch, matrix in dict(epochs[::-1][:1] + epochs[:1]).items():
        picture = heat_map(f"Transitions{of} after epoch {epoch}", matrix, run.labels, run.allowed, limit)
        maps.insert(0, f"<figure><h4>{escape(standard or '')}{', ' * bool(of)}epoch {epoch}</h4>{picture}</figure>")
    return "".join(maps)


def _advice(run):
    return f'<p class="advice">{run.advice[0].upper()}{run.advice[1:]}.</p>' if run.advice else ""


def _mistakes(runs):
    return each_run(runs, _mistakes_of)


def _mistakes_of(number, run):
    if is_classifier(run):
        return mistakes_of_classes(number, run)
    if run.predictions is None:
        return missing("predictions.jsonl", "predictions")
    mistakes = frequent_mistakes(run.predictions)
    where = f"{len(run.predictions)} sentences{of_part(run)}"
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
    rows = table(["gold", "predicted", "times", "confidence", "example"], map(_mistake_row, shown), "mistakes")
    total = f"{kinds.total()} mistakes of {len(mistakes)} sorts in {where}; the {len(shown)} most frequent"
    return f'<p class="soft">{total}.</p><div class="pair"><ul class="kinds">{bars}</ul>{rows}</div>'


def _mistake_row(mistake):
    text, start, end = mistake.text, mistake.start, mistake.end
    before, after = text[max(0, start - CONTEXT) : start], text[end : end + CONTEXT]
    dots = ("…" * (start > CONTEXT), "…" * (end + CONTEXT < len(text)))
    context = f"{dots[0]}{escape(before)}<mark>{escape(text[start:end])}</mark>{escape(after)}{dots[1]}"
    return "", [
        f'<td data-name="gold"><span>{spans(mistake.gold)}</span></td>',
        f'<td data-name="predicted" class="found"><span>{spans(mistake.predicted)}</span></td>',
        f'<td data-name="times" class="number">{mistake.count}</td>',
        f'<td data-name="confidence" class="number">{_two_digits(mistake.confidence)}</td>',
        f'<td data-name="in"><span class="context"{in_language(text)}>{context}</span></td>',
    ]


def _two_digits(value):
    return "-" if value in (None, []) else f"{value:.2f}"


def _calibration(runs):
    return each_run(runs, _calibration_of)


def _calibration_of(number, run):
    if is_classifier(run):
        return calibration_of_classes(number, run)
    confidences = []
    for sentence in run.predictions or ():
        gold = set(map(tuple, sentence["gold"]))
        confidences += [(span[3], tuple(span[:3]) in gold) for span in sentence["found"]]
    if not confidences:
        return missing("predictions.jsonl", "confidences")
    diagram = calibration_table(
        *calibration(*zip(*confidences, strict=True)), f"{len(confidences)} spans{of_part(run)}"
    )
    temperature = escape(str(run.settings.get("temperature", 1.0)))  # runs of 0.1.0 have none
    return f"{diagram}<p>Scores are divided by the temperature {temperature}, fitted on the validation set.</p>"


def _settings(runs):
    """The settings that differ between runs, and equal settings after a click. Settings without a value are omitted."""
    used = [_used_settings(run.settings) for run in runs.values()]
    names = dict.fromkeys(name for run in runs.values() for name in run.settings)
    values = {name: [settings.get(name) for settings in used] for name in names}
    values = {name: row for name, row in values.items() if any(value not in (None, []) for value in row)}
    differing = {name: row for name, row in values.items() if len({str(v) for v in row if v is not UNUSED}) > 1}
    equal = {name: row for name, row in values.items() if name not in differing}
    if len(runs) == 1:
        return _setting_table(runs, equal, "settings in-columns")
    shown = _setting_table(runs, differing) if differing else '<p class="soft">All settings are equal.</p>'
    return f"{shown}<details><summary>{len(equal)} settings are equal</summary>{_setting_table(runs, equal)}</details>"


def _setting_table(runs, values, kind="settings"):
    rows = (("", [f"<td>{escape(name)}</td>", *map(_setting_cell, row)]) for name, row in values.items())
    return table(["", *_names(runs)], rows, kind)


def _setting_cell(value):
    return f'<td class="number">{"-" if value in (None, []) else escape(str(value))}</td>'


def _used_settings(settings):
    """The settings, with `UNUSED` instead of the values that the head does not use."""
    unused = [name for name in ONLY_CRF if name in settings and settings.get("head") == "softmax"]
    return {**settings, **dict.fromkeys(unused, UNUSED)}


def anchor(title):
    """The id of a section."""
    return title.lower().replace(" ", "-")


SECTIONS = {  # a section that is "" is left out
    "Scores": _scores,
    "Seeds": seeds_section,
    "Confusion": _confusion,
    "Transitions": _transitions,
    "Learning curves": curves_section,
    "Mistakes": _mistakes,
    "Sentences": _sentences,
    "Calibration": _calibration,
    "Settings": _settings,
}
