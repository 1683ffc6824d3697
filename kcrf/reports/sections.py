"""The content of the sections of a report page. `report.html` lays it out and escapes all text of files."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kcrf.chains import FORBIDDEN
from kcrf.metrics import calibration
from kcrf.metrics.transitions import is_forbidden
from kcrf.reports.charts import box_plot, heat_map, line_chart, reliability_diagram, scatter_plot, size_of
from kcrf.reports.comparison import differ_in_seed, differences_from_the_best, groups_by_settings, why_not_comparable
from kcrf.reports.mistakes import frequent_mistakes, of_part, sentence_browser
from kcrf.reports.tables import METRICS, NOT_RANKED, SETS, TITLES
from kcrf.runs import RunRecord
from kcrf.runs.formats import probabilities_of, probability_of
from kcrf.tasks import task_of

Runs = Mapping[str, RunRecord]
Content = dict[str, Any]

MOST_MISTAKES, MOST_WRONG_TEXTS = 20, 50
MOST_LABELS = 30  # of a confusion matrix
LONGEST_TEXT = 300  # characters shown of a text
CONTEXT = 20  # characters on either side of a mistake
ONLY_CRF = ("crf_lr_multiplier", "constraints")  # settings that a softmax head does not use
UNUSED = "-"
# Columns of the log that are drawn as curves, with title and explanation. A CRFMonitor writes the last four.
CURVES = {
    "loss": ("Training loss", ""),
    **{f"valid_{key}": (f"{TITLES[key]} on the validation set", "") for key in METRICS},
    "transition_size": ("Size of the transitions", "standard deviation; should approach the emission gap"),
    "emission_gap": ("Emission gap", "median difference between the two best scores of a token"),
    "illegal_above_legal": ("Forbidden transitions above an allowed one", "0 once the CRF has learned the tag scheme"),
    "viterbi_differs": (
        "Tokens where Viterbi differs from argmax",
        "fraction; 0 means that the transitions change no tag",
    ),
}


class Cell(NamedTuple):
    """A cell of a table: a number or a text, and its class, style and tooltip."""

    value: Any
    kind: str = ""
    style: str = ""
    note: str = ""


def sections(runs: Runs) -> dict[str, Any]:
    """The content of each section by its title. Sections that have nothing to show are left out."""
    taggers = {name: run for name, run in runs.items() if not _is_classifier(run)}
    confusable = {name: run for name, run in runs.items() if _has_classes(run) or _task_of(run).has_word_classes}
    numbers = {name: number for number, name in enumerate(runs)}

    def each(some: Runs, show: Callable[[RunRecord], Content | None]) -> list[tuple[int, str, Content | None]]:
        return [(numbers[name], name, show(run)) for name, run in some.items()]

    contents = {
        "Scores": _scores(runs),
        "Seeds": _seeds(runs),
        "Confusion": each(confusable, _confusion),
        "Transitions": each(taggers, partial(_transitions, limit=_largest_transition(taggers))),
        "Learning curves": _curves(runs),
        "Mistakes": each(runs, _mistakes),
        "Sentences": each(taggers, sentence_browser),
        "Calibration": each(runs, _calibration),
        "Settings": _settings(runs),
    }
    return {title: content for title, content in contents.items() if content}


def _task_of(run: RunRecord) -> Any:
    return task_of(run.settings.get("task", "cws"))


def _is_classifier(run: RunRecord) -> bool:
    """Whether a run predicts one label, or one number, for each text."""
    return _task_of(run).output == "label"


def _has_classes(run: RunRecord) -> bool:
    """Whether a run predicts one class for each text or for each token."""
    return _is_classifier(run) and not run.settings.get("multilabel") or _task_of(run).needs_tokens


def _has_numbers(run: RunRecord) -> bool:
    return isinstance(run.predictions[0]["gold"], (int, float)) if run.predictions else False


# -- scores


def _scores(runs: Runs) -> Content:
    tables, notes, are_seeds = [], [], differ_in_seed(runs)
    for part in ("test", "valid"):
        columns = [_by_title((run.scores or {}).get(part, {})) for run in runs.values()]
        if not (count := sum(map(bool, columns))):
            continue
        obstacle, rows = why_not_comparable(list(runs.values()), part), []
        for title in dict.fromkeys(title for column in columns for title in column):
            values = [column.get(title) for column in columns]
            rows.append([title, *_score_cells(title, values, obstacle, are_seeds)])
        tables.append((SETS[part], rows))
        if obstacle and count > 1:
            notes.append(f"The scores on the {SETS[part]} cannot be compared: {obstacle}.")
        elif count > 1:
            notes += _notes_on_differences(runs, part)
    if len(runs) > 1:
        notes.insert(0, "The best of several runs is bold if they can be compared.")
    return {"tables": tables, "notes": notes, "over_seeds": ["mean", "deviation"] if are_seeds else []}


def _notes_on_differences(runs: Runs, part: str) -> Iterable[str]:
    """A sentence for each run but the best: its distance from the best, and whether the distance may be chance."""
    with_class = any("joint_f" in (run.scores or {}).get(part, {}) for run in runs.values())
    metric = "Accuracy" if any(map(_has_classes, runs.values())) else TITLES["joint_f" if with_class else "f"]
    for best, name, count, (difference, low, high) in differences_from_the_best(runs, part):
        verdict = "more than noise" if low > 0 else "within the noise of so few sentences: it may be chance"
        if round(difference, 4) == 0:
            yield f"{metric} on the {SETS[part]}: {best} and {name} have the same score."
            continue
        yield (
            f"{metric} on the {SETS[part]}: {best} is {difference:.4f} above {name}; 95 % of bootstrap draws of the "
            f"{count} sentences lie between {low:+.4f} and {high:+.4f}, {verdict}."
        )


def _by_title(scores: dict[str, Any]) -> dict[str, Any]:
    """The scores of a part by their titles; also F1 of each type of entity, label or standard."""
    values = {title: scores.get(key) for key, title in TITLES.items()}
    values["F1, mean over types"] = scores.get("macro", {}).get("f")
    by_label = {**scores.get("types", {}), **scores.get("labels", {}), **scores.get("standards", {})}
    values.update({f"F1 of {label}": figures.get("f") for label, figures in by_label.items()})
    return {title: value for title, value in values.items() if value is not None}


def _score_cells(title: str, values: list[Any], obstacle: str | None, are_seeds: bool) -> list[Cell]:
    numbers = [value for value in values if value is not None]
    is_ranked = len(numbers) > 1 and not obstacle and title not in {TITLES[key] for key in NOT_RANKED}
    best = max(numbers) if is_ranked else None
    cells = [Cell(value, "best" if value is not None and value == best else "") for value in values]
    if are_seeds:
        cells += map(Cell, _mean_and_deviation(numbers) if len(numbers) > 1 else [None, None])
    return cells


def _mean_and_deviation(values: list[float]) -> list[float]:
    return [float(np.mean(values)), float(np.std(values, ddof=1))]


def _seeds(runs: Runs) -> Content | None:
    """The spread of the scores; None if no two runs have the same settings but for the seed."""
    grouped = groups_by_settings(runs).items()
    groups = {name: [run.score for run in group if run.score is not None] for name, group in grouped}
    groups = {name: values for name, values in groups.items() if len(values) > 1}
    scored = [run for run in runs.values() if run.part and run.score is not None]
    titles = {f"{TITLES[run.metric]} on the {SETS[run.part or '']}" for run in scored}
    if not groups or len(titles) != 1:
        return None
    title = f"{titles.pop()} by seed"
    rows = [[name, *map(Cell, [len(values), *_mean_and_deviation(values)])] for name, values in groups.items()]
    return {"title": title, "rows": rows, "picture": box_plot(title, groups)}


# -- what runs learned


def _confusion(run: RunRecord) -> Content | None:
    """The confusion matrix, or for regression a plot of predictions against gold."""
    if not run.predictions:
        return None
    if _has_numbers(run):
        points = [(row["gold"], row["found"]) for row in run.predictions]
        return {"picture": scatter_plot("Predicted number by gold number", points)}
    labels, pairs = _labels_and_pairs(run)
    places = {label: place for place, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), int)
    for gold, predicted in pairs:
        counts[places[gold], places[predicted]] += 1
    shown = np.sort(np.argsort(-counts.sum(1), kind="stable")[:MOST_LABELS])  # the most frequent, in their order
    note = f"The {len(shown)} most frequent of {len(labels)} labels. " if len(shown) < len(labels) else ""
    note = f"{note}Rows are gold labels, columns are predicted labels{of_part(run)}."
    note += " Words that were not found count as ?." if _task_of(run).has_word_classes else ""
    rows = [[labels[i], *_confusion_cells(counts[i], i, shown)] for i in shown]
    return {"note": note, "labels": [labels[i] for i in shown], "rows": rows}


def _labels_and_pairs(run: RunRecord) -> tuple[list[str], list[tuple[str, str]]]:
    """All labels, and a pair of gold and predicted label for each text or token."""
    predictions = run.predictions or []
    if _is_classifier(run):
        return list(predictions[0]["probabilities"]), [(row["gold"], row["found"]) for row in predictions]
    pairs = []
    for row in predictions:
        predicted = {(start, end): label for start, end, label, _ in row["found"]}
        pairs += [(label, predicted.get((start, end), "?")) for start, end, label in row["gold"]]
    return sorted({label for pair in pairs for label in pair}), pairs


def _confusion_cells(counts: np.ndarray, own: int, shown: np.ndarray) -> Iterable[Cell]:
    """A row of the confusion matrix; the shade of a cell is its fraction of the row."""
    total = max(1, counts.sum())
    for i in shown:
        color, percent = "run" if i == own else "warm", f"{60 * counts[i] / total:.0f}%"
        style = f"background:color-mix(in oklab, var(--{color}) {percent}, transparent)"
        yield Cell(int(counts[i]), style=style, note=f"{counts[i] / total:.1%}")


def _matrices(run: RunRecord) -> dict[str | None, list[tuple[int, np.ndarray]]]:
    """The transitions of each CRF by its standard, after each epoch."""
    stored = run.transitions or {}
    if not run.settings.get("constraints") or run.allowed is None:
        return stored
    allowed = run.allowed  # linear models store 0 where they forbid
    return {
        standard: [(epoch, np.where(allowed, matrix, FORBIDDEN)) for epoch, matrix in epochs]
        for standard, epochs in stored.items()
    }


def _largest_transition(runs: Runs) -> float:
    """The largest size of a transition in the heat maps, which share one scale."""
    epochs = [epochs for run in runs.values() for epochs in _matrices(run).values()]
    shown = [matrix for of_crf in epochs for _, matrix in of_crf[:1] + of_crf[-1:]]
    return max((float(np.abs(matrix[~is_forbidden(matrix)]).max(initial=0.0)) for matrix in shown), default=0.0)


def _transitions(run: RunRecord, limit: float) -> Content:
    """The transitions of each CRF after the first and after the last epoch, with the advice on them."""
    maps = [_pair_of_maps(run, *of_crf, limit) for of_crf in _matrices(run).items()]
    text = f"{run.advice[0].upper()}{run.advice[1:]}." if run.advice else ""
    has_none = run.settings.get("head") == "softmax"
    return {"advice": text, "maps": maps, "size": size_of(run.labels or []) if maps else "", "has_none": has_none}


def _pair_of_maps(
    run: RunRecord, standard: str | None, epochs: list[tuple[int, np.ndarray]], limit: float
) -> list[tuple[str, str]]:
    of, prefix = ("", "") if standard is None else (f" of {standard}", f"{standard}, ")
    maps = []
    for epoch, matrix in dict(epochs[:1] + epochs[-1:]).items():
        picture = heat_map(f"Transitions{of} after epoch {epoch}", matrix, run.labels or [], run.allowed, limit)
        maps.append((f"{prefix}epoch {epoch}", picture))
    return maps


def _curves(runs: Runs) -> Content:
    """The learning curves. Runs that differ only in their seed are drawn as their mean with a band."""
    groups = groups_by_settings(runs)
    are_means = len(groups) < len(runs)
    groups = groups if are_means else {name: [run] for name, run in runs.items()}
    numbered, charts = dict(enumerate(groups.values())), []
    for key, (title, note) in CURVES.items():
        parts = _by_loss(numbered) if key == "loss" else {"": numbered}
        charts += [_chart(key, title + of, _unit(own) if key == "loss" else note, own) for of, own in parts.items()]
    return {"charts": [chart for chart in charts if chart], "legend": list(groups), "are_means": are_means}


def _by_loss(groups: dict[int, list[RunRecord]]) -> dict[str, dict[int, list[RunRecord]]]:
    """The groups apart for softmax heads and CRFs, whose losses have different sizes."""
    apart: dict[str, dict[int, list[RunRecord]]] = {}
    for number, runs in groups.items():
        head = runs[0].settings.get("head") if not _is_classifier(runs[0]) else None
        apart.setdefault({"softmax": " of softmax heads", "crf": " of CRFs"}.get(str(head), ""), {})[number] = runs
    return apart if len(apart) > 1 else {"": groups}


def _unit(groups: Mapping[int, list[RunRecord]]) -> str:
    """What a loss is a mean over: the cross-entropy of a softmax head counts tokens."""
    tagger = next((run for (run, *_) in groups.values() if not _is_classifier(run)), None)
    return "per text" if tagger is None else "per token" if tagger.settings.get("head") == "softmax" else "per sentence"


def _chart(key: str, title: str, note: str, groups: Mapping[int, list[RunRecord]]) -> tuple[str, str, str] | None:
    """The curves of one column of the log, with title and explanation; None if no run has it."""
    lines, bands = {}, {}
    for number, runs in groups.items():
        values: dict[int, list[float]] = {}
        for row in (row for run in runs for row in run.log or () if key in row):
            values.setdefault(int(row["epoch"]), []).append(row[key])
        rows = sorted(values.items())
        if rows:
            lines[number] = [(epoch, float(np.mean(row))) for epoch, row in rows]
        if any(len(row) > 1 for _, row in rows):
            bands[number] = [(epoch, min(row), max(row)) for epoch, row in rows]
    return (title, note, line_chart(title, lines, bands)) if lines else None


# -- predictions


def _mistakes(run: RunRecord) -> Content | None:
    if _is_classifier(run):
        return _wrong_texts(run, run.predictions) if run.predictions else None
    if run.predictions is None:
        return None
    mistakes = frequent_mistakes(run.predictions)
    where = f"{len(run.predictions)} sentences{of_part(run)}"
    if not mistakes:
        return {"none": f"No mistakes in {where}."}
    kinds: Counter[str] = Counter()
    for mistake in mistakes:
        kinds[mistake.kind] += mistake.count
    most = max(kinds.values())
    shown = mistakes[:MOST_MISTAKES]
    return {
        "intro": f"{kinds.total()} mistakes in {where}, {len(mistakes)} different; the {len(shown)} most frequent.",
        "kinds": [(kind, count, f"{count / most:.0%}") for kind, count in kinds.most_common()],
        "mistakes": [(mistake, _context(mistake.text, mistake.start, mistake.end)) for mistake in shown],
    }


def _context(text: str, start: int, end: int) -> tuple[str, str, str]:
    """The text before a mistake, the mistake, and the text after it."""
    before = "…" * (start > CONTEXT) + text[max(0, start - CONTEXT) : start]
    return before, text[start:end], text[end : end + CONTEXT] + "…" * (end + CONTEXT < len(text))


def _wrong_texts(run: RunRecord, predictions: list[dict[str, Any]]) -> Content:
    """The most confident mistakes of a classifier, or the largest errors of a regression."""
    if _has_numbers(run):
        wrong = sorted(predictions, key=lambda row: -abs(row["gold"] - row["found"]))[:MOST_WRONG_TEXTS]
        intro, head = f"The {len(wrong)} texts with the largest errors{of_part(run)}.", "error"
    else:
        wrong = [row for row in predictions if row["gold"] != row["found"]]
        intro = f"{len(wrong)} of {len(predictions)} texts{of_part(run)} are wrong."
        wrong = sorted(wrong, key=lambda row: -probability_of(row["found"], row["probabilities"]))[:MOST_WRONG_TEXTS]
        intro, head = f"{intro} The {len(wrong)} most confident:", "confidence"
    if not wrong:
        return {"none": f"No mistakes in {len(predictions)} texts{of_part(run)}."}
    return {"intro": intro, "head": head, "texts": list(map(_wrong_text, wrong))}


def _wrong_text(row: dict[str, Any]) -> Content:
    is_number = isinstance(row["gold"], (int, float))
    number = row["found"] - row["gold"] if is_number else probability_of(row["found"], row["probabilities"])
    texts = [text for text in (row["text"], row["text_b"]) if text is not None]
    labels = [_label_words(value) for value in (row["gold"], row["found"])]
    shortened = [text[:LONGEST_TEXT] + "…" * (len(text) > LONGEST_TEXT) for text in texts]
    return {"texts": shortened, "labels": labels, "number": float(number)}


def _label_words(label: Any) -> str:
    if isinstance(label, list):
        return ", ".join(label) or "none"
    return label if isinstance(label, str) else f"{label:.5g}"


def _calibration(run: RunRecord) -> Content | None:
    """Whether the probability of a prediction is the fraction of predictions that are correct."""
    if _has_numbers(run):
        return {"none": "Numbers have no probabilities."}
    if not (pairs := probabilities_of(run.predictions or [])):
        return None
    confidences, right = zip(*pairs, strict=True)
    rows, error = calibration(confidences, right)
    is_of_texts = _is_classifier(run)
    counted = ("labels" if run.settings.get("multilabel") else "texts") if is_of_texts else "spans"
    return {
        "error": error,
        "counted": f"{len(pairs)} {counted}{of_part(run)}",
        "picture": reliability_diagram("Accuracy by confidence", rows),
        "rows": [[f"{low:.1f} to {high:.1f}", *map(Cell, figures)] for low, high, *figures in rows if figures[0]],
        "temperature": None if is_of_texts else str(run.settings.get("temperature", 1.0)),
    }


# -- settings


def _settings(runs: Runs) -> Content:
    """The settings that differ between runs, and the equal ones. Settings without a value are omitted."""
    used = [_used_settings(run.settings) for run in runs.values()]
    names = dict.fromkeys(name for run in runs.values() for name in run.settings)
    rows: dict[bool, list[list[Any]]] = {True: [], False: []}
    for name in names:
        values = [settings.get(name) for settings in used]
        if any(value not in (None, []) for value in values):
            differs = len({str(value) for value in values if value is not UNUSED}) > 1
            cells = [Cell("-" if value in (None, []) else str(value)) for value in values]
            rows[differs].append([name, *cells])
    return {"differing": rows[True], "equal": rows[False]}


def _used_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings, with `UNUSED` instead of the values that the head does not use."""
    unused = [name for name in ONLY_CRF if name in settings and settings.get("head") == "softmax"]
    return {**settings, **dict.fromkeys(unused, UNUSED)}
