"""The verdicts, tables and plots of the experiments follow from the stored results, and the guides quote them."""

import itertools
import re
import statistics
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # `python -m pytest` does so, `pytest` does not

from experiments import plots, table  # noqa: E402
from experiments.claim import Claim, Grid, Run, load_claims  # noqa: E402
from experiments.claims.c01_learning_rate_of_transitions import DEEPEST  # noqa: E402
from experiments.verdicts import (  # noqa: E402
    Comparison,
    Outcome,
    Spread,
    epochs_to_loss,
    epochs_to_score,
    paired_interval,
)

BACKENDS = ["torch"]
CLAIMS = load_claims()


def test_mean_deviation_and_interval_follow_from_the_results():
    first, second = [0.93, 0.95, 0.91, 0.94], [0.90, 0.93, 0.90, 0.90]
    results = {f"cell, a, seed {i}": {"score": score} for i, score in enumerate(first)}
    results |= {f"cell, b, seed {i}": {"score": score} for i, score in enumerate(second)}
    results["cell, a, seed 4"] = {"score": 0.0}  # without its pair
    comparison = Comparison("a", "b", "higher", 0.1, ("cell",), "F1")
    outcome = comparison.outcome(results, 8)
    differences = [one - other for one, other in zip(first, second)]
    difference, low, high = outcome.interval()
    assert difference == pytest.approx(statistics.mean(differences))
    assert table.in_words(comparison, outcome) == f"cell, F1: a − b +0.025 [{low:+.3f}, {high:+.3f}], n = 4"


@pytest.mark.parametrize("n", [2, 5, 8, 20])
def test_the_interval_is_that_of_a_paired_t_test(n):
    stats = pytest.importorskip("scipy.stats")
    differences = np.random.default_rng(n).normal(0.01, 0.02, n)
    expected = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert paired_interval(differences) == pytest.approx((differences.mean(), expected.low, expected.high), abs=1e-5)


def test_one_pair_decides_nothing():
    assert paired_interval([0.5]) == (0.5, -np.inf, np.inf)


def test_of_several_arms_the_best_one_counts_and_cells_are_averaged():
    scores = {"x, a": 0.4, "y, a": 0.6, "x, b": 0.1, "y, b": 0.9, "x, c": 0.7, "y, c": 0.7}
    results = {f"{key}, seed 0": {"score": score} for key, score in scores.items()}
    outcome = Comparison("a", ("b", "c"), "same", 0.1, ("x", "y")).outcome(results, 1)
    assert (outcome.arm, outcome.first, outcome.second) == ("c", (0.5,), pytest.approx((0.7,)))


def test_the_best_of_several_arms_is_the_best_over_common_seeds():
    results = {f"a, seed {seed}": {"score": 0.6} for seed in range(2)}
    results |= {f"b, seed {seed}": {"score": 0.5} for seed in range(2)}
    results["c, seed 1"] = {"score": 0.4}
    results["b, seed 0"] = {"score": 0.1}  # on average, b is worse than c: but c has not been measured there
    outcome = Comparison("a", ("b", "c"), "same", 0.1).outcome(results, 2)
    assert (outcome.arm, outcome.first, outcome.second) == ("b", (0.6,), (0.5,))


def test_the_spread_is_the_distance_from_the_median_of_the_seeds():
    results = {f"a, seed {seed}": {"score": score} for seed, score in enumerate((0.5, 0.6, 0.9))}
    results |= {f"b, seed {seed}": {"score": score} for seed, score in enumerate((0.1, 0.2, 0.2))}
    outcome = Spread("a", "b", "lower", 0.01).outcome(results, 3)
    assert outcome.first == pytest.approx((0.1, 0.0, 0.3)) and outcome.second == pytest.approx((0.1, 0.0, 0.0))


def test_epochs_to_the_loss_of_another_run():
    slow = {"losses": [8.0, 6.0, 5.0, 4.0]}
    assert epochs_to_loss({"losses": [6.0, 3.5, 3.0, 2.0]}, slow) == (0.5, 1.0)
    assert epochs_to_loss({"losses": [9.0, 8.0, 7.0, 6.0]}, slow) == (1.25, 1.0)


def test_epochs_to_the_best_score_of_another_run():
    slow = {"valid": [0.1, 0.4, 0.6, 0.5]}  # the best after 3 epochs
    assert epochs_to_score({"valid": [0.6, 0.5]}, slow) == (pytest.approx(1 / 3), 1.0)
    assert epochs_to_score({"valid": [0.5, 0.5]}, slow) == (1.0, 1.0)  # never: an epoch late


def test_the_plot_of_the_runs_has_their_scores_and_curves():
    made = Claim(
        "A is better", "source", "literature", (Grid({"cell": {}}, {"a": {}, "b": {}}),), (), seeds=3, name="t1"
    )
    runs = {f"cell, a, seed {seed}": {"score": seed, "valid": [seed, 2.0], "losses": [3.0, seed]} for seed in range(3)}
    runs["cell, b, seed 0"] = {"score": 5.0, "valid": [7.0, 8.0, 9.0], "losses": [4.0], "diverged": 0}
    runs["cell, b, seed 1"] = {"score": 0.0, "valid": [0.0], "losses": [1e9], "diverged": 1}
    boxes, valid, losses = plots.plot_runs(made, runs).axes
    assert [label.get_text() for label in boxes.get_xticklabels()] == ["a", "b"]
    medians = [line.get_ydata()[0] for line in boxes.lines if len(set(line.get_ydata())) == 1]
    assert {1.0, 2.5} <= set(medians)
    curves = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in valid.lines}
    assert curves == {"a": ([1, 2], [1.0, 2.0]), "b": ([1, 2, 3], [7.0, 8.0, 9.0])}
    assert [list(line.get_ydata()) for line in losses.lines] == [[1.0, pytest.approx(1 / 3)], [1.0]]


def test_curves_that_no_run_has_are_not_drawn():
    made = Claim("A is better", "source", "", (Grid({"cell": {}}, {"a": {}}),), (), seeds=1, name="t1")
    axes = plots.plot_runs(made, {"cell, a, seed 0": {"score": 1.0, "losses": [4.0, 1.0], "diverged": 0}}).axes
    assert [one.get_visible() for one in axes] == [True, False, True]


def test_one_or_two_seeds_have_no_interval_in_the_figure():
    comparison = Comparison("CRF with constraints", "softmax", "same", 0.01, ("PKU, 4 layers, 160 sentences",), "F1")
    other = Comparison("CRF with constraints", "CRF", "", 0.01, comparison.cells, "F1")  # not a gain over softmax
    outcomes = [
        (one, Outcome((0.5,) * n, (0.25,) * n, "softmax"), "")
        for one, n in ((comparison, 2), (comparison, 3), (other, 4))
    ]
    ((_, few), (_, more)) = plots._gains(outcomes, "PKU", "F1")[4, ""]
    assert np.isnan(few[1:]).all() and more == (0.25, 0.25, 0.25)


@pytest.mark.parametrize(
    ("n", "ticks"), [(0, ["1", "4"]), (1, ["1", "4", "12, at 2e-5"]), (4, ["1", "4", "12, at 2e-5"])]
)
def test_the_figure_of_the_multiplier_has_12_layers_as_soon_as_they_have_runs(n, ticks):
    cells = [("PKU, 1e-4", "auto", 0.5, 3), ("PKU, 4 layers, 1e-4", "auto", 0.375, 3), (DEEPEST, "x1000", 0.3125, n)]
    outcomes = [
        (Comparison(arm, "x1", "", 0.01, (cell,), what), Outcome((score,) * n, (0.25,) * n, "x1") if n else None, "")
        for cell, arm, score, n in [*cells, (DEEPEST, "x100", 0.9, n), ("PKU, 1e-3", "auto", 0.9, 3)]
        for what in ("F1", plots.MASKED)
    ]
    (axes,) = plots.plot_gain_of_multiplier(outcomes).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ticks
    points = [(1, 0.25), (4, 0.125), (12, 0.0625)][: len(ticks)]
    drawn = [list(zip(*one[0].get_data())) for one in axes.containers]
    assert drawn == [points, points]


def test_the_table_of_intervals_has_the_verdicts_that_depend_on_them(tmp_path, monkeypatch):
    comparisons = tuple(Comparison(arm, "c", "higher", 0.01, what="F1") for arm in ("a", "b"))
    made = Claim("A is better", "source", "", (), comparisons, seeds=5, name="t1")
    scores = {"a": [0.50, 0.55, 0.61, 0.51, 0.51], "b": [0.60, 0.61, 0.59, 0.60, 0.60], "c": [0.5] * 5}
    records = {
        f"{arm}, seed {seed}": {"measures": {"score": score}}
        for arm, values in scores.items()
        for seed, score in enumerate(values)
    }
    monkeypatch.setattr(table.Results, "read", lambda self: records)
    means = sorted(np.mean(draw) - 0.5 for draw in itertools.product(scores["a"], repeat=5))  # all 3,125 samples
    low, high = means[round(0.025 * len(means))], means[round(0.975 * len(means))]
    *_, (_, words, interval, by_t, by_bootstrap) = (line[2:-2].split(" | ") for line in table.intervals({"t1": made}))
    assert words.startswith("F1: a") and (by_t, by_bootstrap) == ("undecided", "holds")
    assert [float(end) for end in interval[1:-1].split(",")] == pytest.approx([low, high], abs=0.0025)
    assert len(table.intervals({"t1": made})) == 3  # without b, which is higher by both


def test_the_time_of_a_missing_run_is_that_of_runs_with_the_same_encoder():
    records = {"a": {"settings": {}, "processor_seconds": 10.0}}
    records["b"] = {"settings": {"bert": "deep"}, "processor_seconds": None}
    assert table._seconds_of(Run("cell", "a", 1, {}), records) == 10
    assert table._seconds_of(Run("cell", "a", 1, {"bert": "deep"}), records) is None


QUOTING = ["README.md", "README.zh.md", "docs/recipes.md", "docs/monitor.md"]
CLAIM_NAME = re.compile(r"experiments/measured/README\.md#([co]\d+b?)\)")
LINK = re.compile(r"\]\([^)]*\)")  # with the number of a paper
DECIMAL = re.compile(r"(?<![\w.])[+-]?\d*\.\d+(?![\w.])")


def quotes(document):
    """The decimal numbers of each list item or table row that cites claims, with the names of these claims."""
    text = (ROOT / document).read_text(encoding="utf-8")
    for block in re.split(r"\n(?=[-|#]|\n)", text):
        if names := CLAIM_NAME.findall(block):
            yield names, DECIMAL.findall(LINK.sub("]", block))


def rows_of(name):
    """The rows of a claim, and the figures of its sources."""
    return [*table.lines_of(CLAIMS[name]), CLAIMS[name].source, CLAIMS[name].literature]


def is_in(number, text):
    """Whether a number is one of a text's, rounded."""
    half = 0.5 / 10 ** len(number.partition(".")[2]) + 1e-4  # the text's numbers are rounded, too
    return any(abs(abs(float(other)) - abs(float(number))) < half for other in DECIMAL.findall(text))


@pytest.mark.parametrize("document", QUOTING)
def test_a_figure_beside_a_claim_is_one_of_the_claim(document):
    quoted = list(quotes(document))
    assert quoted
    for names, numbers in quoted:
        rows = " ".join(line for name in names for line in rows_of(name))
        assert [number for number in numbers if not is_in(number, rows)] == []


def test_only_what_was_claimed_is_listed_as_the_opposite_or_no_effect():
    lines = [line for line in table.readme(CLAIMS).splitlines() if ". Claimed:" in line]
    assert lines and [line for line in lines if line.endswith("Claimed: ")] == []


@pytest.mark.parametrize(("path", "text"), [(table.README, table.readme), (table.DETAILS, table.details)])
def test_the_tables_are_what_the_results_say(path, text):
    assert path.read_text(encoding="utf-8") == text(CLAIMS), "run `python -m experiments table` and commit its files"
