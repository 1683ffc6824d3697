"""Tests of kcrf.reports.charts.

The report page of text classifiers: confusion, surest mistakes, calibration, curves; numbers; beside a tagger.
"""

import json
import re

import pytest
from configs import stored
from test_reports import Page

from kcrf.metrics import calibration, classification_scores, regression_scores
from kcrf.reports import write_report
from kcrf.reports.charts import box_plot
from kcrf.runs import Settings, read_run

BACKENDS = ["torch"]

ROWS = [  # gold, probability of "no"
    ("no", 0.9),
    ("no", 0.2),
    ("yes", 0.05),
    ("yes", 0.7),
    ("yes", 0.4),
]


def run_dir(folder, rows, scores, temperature=1.0, **settings):
    folder.mkdir()
    settings = {"task": "classify", "metric": "accuracy", **settings}
    (folder / "config.json").write_text(json.dumps(stored(Settings(**settings), temperature=temperature).to_json()))
    (folder / "log.csv").write_text(f"epoch,loss,valid_{settings['metric']},seconds\n1,0.7,0.5,2\n2,0.4,0.6,4\n")
    (folder / "scores.json").write_text(json.dumps({"valid": scores}))
    (folder / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def of_labels(folder, rows=ROWS, **settings):
    rows = [
        {
            "text": f"<i>text {i}",
            "gold": gold,
            "found": "no" if p > 0.5 else "yes",
            "probabilities": {"no": p, "yes": 1 - p},
        }
        for i, (gold, p) in enumerate(rows)
    ]
    scores = classification_scores([row["gold"] for row in rows], [row["found"] for row in rows], ["no", "yes"])
    return run_dir(folder, rows, scores, **settings)


def page_of(tmp_path, *runs):
    write_report(runs, tmp_path / "report.html")
    return Page(tmp_path / "report.html")


def test_the_page_of_a_classifier(tmp_path):
    page = page_of(tmp_path, of_labels(tmp_path / "run"))
    rows = [[cell.strip() for cell in row] for row in page.rows]
    assert ["no", "1", "1"] in rows and ["yes", "1", "2"] in rows  # the confusion matrix
    assert ["<i>text 1", "no", "yes", "0.8000"] in rows and ["<i>text 3", "yes", "no", "0.7000"] in rows
    assert rows.index(["<i>text 1", "no", "yes", "0.8000"]) < rows.index(["<i>text 3", "yes", "no", "0.7000"])
    assert not any("text 0" in cell for row in rows for cell in row)  # it is right
    assert ["accuracy", "0.6000"] in rows and ["F1 of yes", "0.6667"] in rows
    sure, right = zip((0.9, True), (0.8, False), (0.95, True), (0.7, False), (0.6, True))
    assert f"{calibration(sure, right)[1]:.4f}" in page.texts
    assert "accuracy on the validation set" in page.texts and "accuracy on the validation set · 2 epochs" in page.source
    assert "Transitions" not in page.texts and "Sentences" not in page.texts and "<i>" not in page.source


def test_two_classifiers_are_compared_by_their_accuracy(tmp_path):
    runs = of_labels(tmp_path / "one", ROWS * 40), of_labels(tmp_path / "two", [(g, 1 - p) for g, p in ROWS] * 40)
    page = page_of(tmp_path, *runs)
    assert "Accuracy on the validation set: one is 0.2000 above two; 95 % of bootstrap draws of the 200" in page.source


def test_the_report_of_a_regression(tmp_path):
    pairs = [(1.0, 1.5), (2.0, 2.25), (5000.0, 1.0)]
    rows = [{"text": f"a{i}", "text_b": "b", "gold": g, "found": f} for i, (g, f) in enumerate(pairs)]
    scores = regression_scores(*map(list, zip(*pairs)))
    page = page_of(tmp_path, run_dir(tmp_path / "run", rows, scores, metric="pearson"))
    found = [[cell.strip() for cell in row] for row in page.rows]
    assert ["Pearson", f"{scores['pearson']:.4f}"] in found
    differences = [row for row in found if row[0].startswith("a")]
    assert [row[1:] for row in differences] == [
        ["5000", "1", "-4999.0000"],
        ["1", "1.5", "0.5000"],
        ["2", "2.25", "0.2500"],
    ]
    assert page.source.count('<circle class="point"') == 3 and "Numbers have no probabilities." in page.texts


BAD = {
    '{"text": "a", "gold": "x", "found": "y", "probabilities": {"x": 1.0}}': "the probabilities of all labels",
    '{"text": "a", "gold": "x", "found": "x", "probabilities": {"x": 1.5}}': "the probabilities of all labels",
    '{"text": 1, "gold": 1.0, "found": 2.0}': "needs text, gold, found",
    '{"text": "a", "gold": 1.0}': "needs text, gold, found",
}


@pytest.mark.parametrize("line", BAD)
def test_damaged_predictions_are_refused_by_line(line, tmp_path):
    folder = of_labels(tmp_path / "run")
    with open(folder / "predictions.jsonl", "a") as file:
        file.write(line + "\n")
    with pytest.raises(ValueError, match=f"predictions.jsonl:6: .*{BAD[line]}"):
        read_run(folder)


def test_the_spread_over_seeds_is_drawn_for_each_setting(tmp_path):
    """Accuracies 0.6 and 0.4 of one setting, 0.6 and 0.8 of another; one run alone has no spread."""
    right = [(gold, 0.9 if gold == "no" else 0.1) for gold, _ in ROWS]
    swapped, better = [(g, 1 - p) for g, p in ROWS], [*right[:4], ROWS[3]]
    parts = [("a", ROWS, 1, 0), ("b", swapped, 2, 0), ("c", ROWS, 1, 1), ("d", better, 2, 1), ("e", ROWS, 1, 2)]
    runs = [  # a temperature is fitted by each tagger for itself
        of_labels(tmp_path / n, rows, seed=seed, bert="BERT", skip_top_layers=skip, temperature=1 + seed / 10)
        for n, rows, seed, skip in parts
    ]
    page = page_of(tmp_path, *runs)
    found = [[cell.strip() for cell in row] for row in page.rows]
    assert ["skip_top_layers=0", "2", "0.5000", "0.1414"] in found
    assert ["skip_top_layers=1", "2", "0.7000", "0.1414"] in found
    assert not any(row[0] == "skip_top_layers=2" and len(row) == 4 for row in found)
    assert "skip_top_layers=1: median 0.7000" in page.source
    assert "Seeds" not in page_of(tmp_path, *runs[1:3]).texts
    page = page_of(tmp_path, *runs[:2])
    rows = [[cell.strip() for cell in row] for row in page.rows]
    assert ["accuracy", "0.6000", "0.4000", "0.5000", "0.1414"] in rows and "all runs: median 0.5000" in page.source


def test_curves_of_seeds_are_their_mean_in_a_band_from_the_lowest_to_the_highest(tmp_path):
    """Of setting 1 one run has a third epoch, of setting 2 there is one run alone: its line has no band."""
    losses = {"a": ([0.7, 0.4], 1), "b": ([0.9, 0.8, 0.3], 1), "c": ([0.5, 0.2], 2)}
    for name, (values, skip) in losses.items():
        folder = of_labels(tmp_path / name, seed=ord(name), bert="BERT", skip_top_layers=skip)
        rows = "".join(f"{epoch},{value}\n" for epoch, value in enumerate(values, 1))
        (folder / "log.csv").write_text("epoch,loss\n" + rows)
    source = page_of(tmp_path, *(tmp_path / name for name in losses)).source
    points = re.findall(r"<title>epoch (\d): ([\d.]+)</title>", source)
    assert points == [("1", "0.8"), ("2", "0.6"), ("3", "0.3"), ("1", "0.5"), ("2", "0.2")]
    (band,) = re.findall(r'<polygon [^>]*points="([^"]+)"', source)
    heights = [float(corner.split(",")[1]) for corner in band.split()]  # low of each epoch, then high backwards
    places = [float(y) for y in re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)"', source)]
    per_unit = (places[0] - places[1]) / (0.8 - 0.6)  # pixels
    expected = [places[0] + (value - 0.8) * per_unit for value in (0.7, 0.4, 0.3, 0.3, 0.8, 0.9)]
    assert heights == pytest.approx(expected, abs=0.3)
    assert source.count('class="name">') == 3 + 2 and "skip_top_layers=2</span>" in source


def test_a_box_is_from_quartile_to_quartile():
    picture = box_plot("F1", {"one": [0.0, 1.0, 2.0, 3.0, 4.0], "two": [4.0, 4.0]})
    points = [float(x) for x in re.findall(r'<circle class="point" cx="([\d.]+)"', picture)]
    boxes = [
        tuple(map(float, box))
        for box in re.findall(r'<rect class="bar" x="([\d.]+)" y="\d+" width="([\d.]+)"', picture)
    ]
    assert boxes[0] == pytest.approx((points[1], points[3] - points[1]), abs=0.11)
    assert boxes[1] == pytest.approx((points[4], 1.0), abs=0.11) and len(points) == 7
    middles = [float(x) for x in re.findall(r'<line class="line"[^>]* x1="([\d.]+)"', picture)]
    assert middles == [points[2], points[5]]
