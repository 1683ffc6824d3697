"""Tests of kcrf.metrics.learning_curves: against curves that are known, and polynomials fitted by NumPy."""

import numpy as np
import pytest

from kcrf.metrics.learning_curves import SPREAD, USUAL, PowerLaw

BACKENDS = ["torch"]
SIZES = [50, 100, 200, 400]


def known(size, scale=15.0, power=0.5):
    """A score whose odds of an error are a power of the size."""
    return 1 / (1 + scale * size**-power)


def test_an_exact_curve_is_found_and_has_no_interval():
    law = PowerLaw(SIZES, [[known(size) for size in SIZES]] * 3)
    for size in (50, 400, 5000):
        assert np.allclose(law.score(size), known(size))
    needed = law.size(0.9)
    exact = (15 * 9) ** (1 / 0.5)  # the odds of an error are 1 / 9
    assert np.allclose(needed, exact, rtol=0.01)
    assert law.size(known(400) - 0.01).value == 400  # reached already
    assert law.size(known(400 * 1001)) is None
    assert PowerLaw(SIZES, [[0.9, 0.9, 0.9, 0.9]]).size(0.95) is None  # more sentences bring nothing


def test_the_line_is_the_weighted_one_of_numpy_with_the_usual_power_as_one_more_point():
    random = np.random.default_rng(3)
    scores = np.clip([[known(n) + random.normal(0, 0.02) for n in SIZES] for _ in range(3)], 0.01, 0.99)
    law, means = PowerLaw(SIZES, scores), scores.mean(axis=0)
    chance = np.mean(scores.var(axis=0, ddof=1) / (means * (1 - means)))
    deviations = np.append(np.sqrt(chance / (means * (1 - means))), SPREAD)  # of the log odds, and of the power
    rows = np.vstack([np.stack([np.ones(4), np.log(SIZES)], axis=1), [0, 1]]) / deviations[:, None]
    targets = np.append(np.log(1 / means - 1), -USUAL) / deviations
    line, *_ = np.linalg.lstsq(rows, targets, rcond=None)
    assert law.score(800).value == pytest.approx(1 / (1 + np.exp(line @ [1, np.log(800)])))
    few = PowerLaw(SIZES, [[0.1, 0.5, 0.2, 0.4], [0.5, 0.2, 0.6, 0.1]])  # chance alone: the usual power remains
    odds = [1 / few.score(size).value - 1 for size in (400, 800)]
    assert np.log2(odds[0] / odds[1]) == pytest.approx(USUAL, abs=0.1)


def test_the_interval_contains_the_real_score_in_nine_of_ten_draws():
    random, inside = np.random.default_rng(5), 0
    for _ in range(200):
        scores = [[known(n) + random.normal(0, 0.02) for n in SIZES] for _ in range(3)]
        low, high = PowerLaw(SIZES, scores).score(800)[1:]
        inside += low <= known(800) <= high
    assert 180 <= inside <= 200
