"""Tests of kcrf.metrics.learning_curves: against curves that are known, and polynomials fitted by NumPy."""

import numpy as np
import pytest

from kcrf.metrics.learning_curves import PowerLaw

BACKENDS = ["torch"]
SIZES = [50, 100, 200, 400]


def known(size, scale=30.0, power=0.7):
    """A score whose odds of an error are a power of the size."""
    return 1 / (1 + scale * size**-power)


def test_an_exact_curve_is_found_and_has_no_interval():
    law = PowerLaw(SIZES, [[known(size) for size in SIZES]] * 3)
    for size in (50, 400, 5000):
        assert np.allclose(law.score(size), known(size))
    needed = law.size(0.9)
    exact = (30 * 9) ** (1 / 0.7)  # the odds of an error are 1 / 9
    assert np.allclose(needed, exact, rtol=0.01)
    assert law.size(known(400) - 0.01).value == 400  # reached already
    assert law.size(known(400 * 1001)) is None
    assert PowerLaw(SIZES, [[0.9, 0.9, 0.9, 0.9]]).size(0.95) is None  # more sentences bring nothing


def test_the_line_is_the_weighted_one_of_numpy():
    random = np.random.default_rng(3)
    scores = np.clip([[known(n) + random.normal(0, 0.02) for n in SIZES] for _ in range(3)], 0.01, 0.99)
    law, weights = PowerLaw(SIZES, scores), np.sqrt(scores.mean(axis=0) * (1 - scores.mean(axis=0)))
    lines = [np.polyfit(np.log(SIZES), np.log(1 / row - 1), 1, w=weights) for row in scores]
    odds = np.mean([np.polyval(line, np.log(800)) for line in lines])
    assert law.score(800).value == pytest.approx(1 / (1 + np.exp(odds)))


def test_the_interval_contains_the_real_score_in_nine_of_ten_draws():
    random, inside = np.random.default_rng(5), 0
    for _ in range(200):
        scores = [[known(n) + random.normal(0, 0.02) for n in SIZES] for _ in range(3)]
        low, high = PowerLaw(SIZES, scores).score(800)[1:]
        inside += low <= known(800) <= high
    assert 180 <= inside <= 200


def test_one_size_or_other_shapes_are_refused():
    for sizes, scores in (([50, 50], [[0.5, 0.6]]), ([50, 100], [[0.5]]), ([50, 100], [0.5, 0.6])):
        with pytest.raises(ValueError, match="two sizes or more"):
            PowerLaw(sizes, scores)
