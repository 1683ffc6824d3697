"""The sections of text classifiers: confusion matrix or scatter plot, most confident mistakes, calibration."""

from html import escape

import numpy as np

from kcrf.metrics import calibration
from kcrf.reports.charts import scatter_plot
from kcrf.reports.html import calibration_table, in_language, missing, number_cell, of_part, table
from kcrf.tasks import task_of

MOST_MISTAKES = 50
MOST_LABELS = 30  # of a confusion matrix
LONGEST_TEXT = 300  # characters shown of a text


def is_classifier(run):
    """Whether a run predicts one label, or one number, for each text."""
    return _task_of(run).output == "label"


def has_classes(run):
    """Whether a run predicts one class for each text or for each token."""
    return is_classifier(run) or _task_of(run).needs_tokens


def _task_of(run):
    return task_of(run.settings.get("task", "cws"))


def has_confusion(run):
    """Whether classes can be confused: those of texts or tokens, or those of words that were found."""
    return has_classes(run) or _task_of(run).has_word_classes


def _has_numbers(run):
    return isinstance(run.predictions[0]["gold"], (int, float))


def confusion(number, run):
    """The confusion matrix; for regression, predictions plotted against gold."""
    if not run.predictions:
        return missing("predictions.jsonl", "predictions")
    if _has_numbers(run):
        points = [(row["gold"], row["found"]) for row in run.predictions]
        return f"<figure>{scatter_plot('Predicted number by gold number', points)}</figure>"
    labels, pairs = _labels_and_pairs(run)
    places = {label: place for place, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), int)
    for gold, predicted in pairs:
        counts[places[gold], places[predicted]] += 1
    shown = np.sort(np.argsort(-counts.sum(1), kind="stable")[:MOST_LABELS])  # the most frequent, in their order
    note = f"The {len(shown)} most frequent of {len(labels)} labels. " if len(shown) < len(labels) else ""
    rows = [_confusion_row(labels[i], counts[i], i, shown) for i in shown]
    head = ["gold \\ predicted", *(f"<span{in_language(labels[i])}>{escape(labels[i])}</span>" for i in shown)]
    note = f"{note}Rows are gold labels, columns are predicted labels{of_part(run)}."
    note += " Words that were not found count as ?." if _task_of(run).has_word_classes else ""
    return f'<p class="soft">{note}</p>{table(head, rows)}'


def _labels_and_pairs(run):
    """All labels, and a pair of gold and predicted label for each text or token."""
    if is_classifier(run):
        pairs = [(row["gold"], row["found"]) for row in run.predictions]
        return list(run.predictions[0]["probabilities"]), pairs
    pairs = []
    for row in run.predictions:
        predicted = {(start, end): label for start, end, label, _ in row["found"]}
        pairs += [(label, predicted.get((start, end), "?")) for start, end, label in row["gold"]]
    return sorted({label for pair in pairs for label in pair}), pairs


def _confusion_row(label, counts, own, shown):
    """A row of the confusion matrix; the shade of a cell is its fraction of the row."""
    total = max(1, counts.sum())
    cells = (
        f'<td class="number" style="background:color-mix(in oklab, var(--{"run" if i == own else "warm"}) '
        f'{60 * counts[i] / total:.0f}%, transparent)" title="{counts[i] / total:.1%}">{counts[i]}</td>'
        for i in shown
    )
    return "", [f"<td{in_language(label)}>{escape(label)}</td>", *cells]


def mistakes_of_classes(number, run):
    """The most confident mistakes; for regression, the largest errors."""
    if not run.predictions:
        return missing("predictions.jsonl", "predictions")
    if _has_numbers(run):
        wrong = sorted(run.predictions, key=lambda row: -abs(row["gold"] - row["found"]))[:MOST_MISTAKES]
        intro, head = f"The {len(wrong)} texts with the largest errors{of_part(run)}.", "error"
    else:
        wrong = [row for row in run.predictions if row["gold"] != row["found"]]
        count = len(wrong)
        wrong = sorted(wrong, key=lambda row: -row["probabilities"][row["found"]])[:MOST_MISTAKES]
        intro = f"{count} of {len(run.predictions)} texts{of_part(run)} are wrong. The {len(wrong)} most confident:"
        head = "confidence"
    if not wrong:
        return f"<p>No mistakes in {len(run.predictions)} texts{of_part(run)}.</p>"
    return f'<p class="soft">{intro}</p>{table(["text", "gold", "predicted", head], map(_mistake_row, wrong))}'


def _mistake_row(row):
    is_number = isinstance(row["gold"], (int, float))
    number = row["found"] - row["gold"] if is_number else row["probabilities"][row["found"]]
    texts = "<br>".join(_shortened(text) for text in (row["text"], row["text_b"]) if text is not None)
    labels = (f"{value:.5g}" if is_number else escape(value) for value in (row["gold"], row["found"]))
    cells = (f'<td class="number"{in_language(label)}>{label}</td>' for label in labels)
    return "", [f"<td{in_language(row['text'])}>{texts}</td>", *cells, number_cell(float(number))]


def _shortened(text):
    return escape(text[:LONGEST_TEXT]) + "…" * (len(text) > LONGEST_TEXT)


def calibration_of_classes(number, run):
    """Whether the probability of a predicted label is the fraction of texts for which it is correct."""
    if not run.predictions:
        return missing("predictions.jsonl", "probabilities")
    if _has_numbers(run):
        return "<p>Numbers have no probabilities.</p>"
    predictions = [(row["probabilities"][row["found"]], row["found"] == row["gold"]) for row in run.predictions]
    return calibration_table(*calibration(*zip(*predictions, strict=True)), f"{len(predictions)} texts{of_part(run)}")
