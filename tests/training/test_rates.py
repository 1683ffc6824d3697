"""kcrf.training.rates: The learning rate of a run by step: each schedule beside its definition."""

import math

import numpy as np
import pytest

from kcrf.training.rates import learning_rate

pytestmark = pytest.mark.once
FALLS = {
    "linear": lambda share: 1 - share,
    "cosine": lambda share: (1 + math.cos(math.pi * share)) / 2,
    "exponential": lambda share: 0.01**share,
    "constant": lambda share: 1,
}


@pytest.mark.parametrize("schedule", FALLS)
@pytest.mark.parametrize(("steps", "warmup"), [(100, 0.1), (40, 0.5), (1000, 0.002)])
def test_a_rate_rises_to_its_peak_and_falls_as_its_schedule_says(schedule, steps, warmup):
    rate = learning_rate(0.5, schedule, warmup, steps)
    risen = round(steps * warmup)
    rising = [0.5 * step / risen for step in range(risen)]
    falling = [0.5 * FALLS[schedule]((step - risen) / (steps - risen)) for step in range(risen, steps + 1)]
    found = [float(rate(step)) for step in range(steps + 1)]
    np.testing.assert_allclose(found, rising + falling, atol=2e-6)


@pytest.mark.parametrize("schedule", FALLS)
@pytest.mark.parametrize("steps", [1, 2])
def test_the_shortest_runs_have_a_rate(schedule, steps):
    rate = learning_rate(0.5, schedule, 0.0, steps)
    assert all(0 <= float(rate(step)) <= 0.5 for step in range(steps + 1)) and float(rate(steps - 1)) >= 0
