"""kcrf.optimizers: Schedules against their definitions."""

import json

import numpy as np
import pytest
from conftest import few
from hypothesis import given, settings
from hypothesis import strategies as st

from kcrf.backend import keras, ops
from kcrf.optimizers import Adam, PiecewiseLinear, Warmup, WarmupLinearDecay

BACKENDS = ["torch", "tensorflow", "jax"]
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept:DeprecationWarning")


def values(schedule, steps):
    return [float(ops.convert_to_numpy(schedule(step))) for step in steps]


def test_the_broken_line_is_that_of_bert4keras():
    schedule = PiecewiseLinear({1000: 1, 2000: 0.1})
    steps = [0, 1, 500, 999, 1000, 1001, 1500, 2000, 2001, 10**6]
    wanted = [0, 0.001, 0.5, 0.999, 1, 0.9991, 0.55, 0.1, 0.1, 0.1]
    np.testing.assert_allclose(values(schedule, steps), wanted, rtol=1e-6, atol=1e-7)


def test_a_point_at_zero_replaces_the_rise_from_zero():
    assert values(PiecewiseLinear({0: 1}, peak=0.5), [0, 1, 100]) == [0.5] * 3
    assert values(PiecewiseLinear({0: 1, 4: 0}), [0, 1, 4, 9]) == [1.0, 0.75, 0.0, 0.0]


@settings(max_examples=30)
@given(
    points=st.dictionaries(st.integers(0, 10**5), st.floats(0, 10), min_size=1, max_size=6),
    step=st.integers(0, 2 * 10**5),
)
def test_the_broken_line_is_linear_interpolation(points, step):
    xs, ys = zip(*sorted({0: 0.0, **points}.items()), strict=True)
    wanted = np.interp(step, xs, ys)
    np.testing.assert_allclose(values(PiecewiseLinear(points), [step]), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("warmup, total", [(0, 10), (1, 10), (10, 100), (99, 100)])
@pytest.mark.parametrize("jump", [False, True])
def test_warmup_and_decay_follow_their_definitions(warmup, total, jump):
    def wanted(step):
        if step < warmup:
            return 2e-5 * step / warmup
        return 2e-5 * max(0.0, 1 - step / total if jump else (total - step) / (total - warmup))

    steps = range(total + 5)
    schedule = WarmupLinearDecay(2e-5, warmup, total, bert_jump=jump)
    np.testing.assert_allclose(values(schedule, steps), [wanted(step) for step in steps], rtol=1e-5, atol=1e-11)


def test_only_the_original_jumps_when_the_warmup_ends():
    smooth, original = (np.diff(values(WarmupLinearDecay(1.0, 50, 100, jump), range(101))) for jump in (False, True))
    assert np.abs(smooth).max() < 0.021
    assert original.min() == pytest.approx(0.5 - 0.98, abs=1e-4)


@pytest.mark.parametrize("warmup", [0, 1, 7])
def test_a_warmup_rises_to_any_schedule_and_then_is_that_schedule(warmup):
    for then in (
        keras.optimizers.schedules.ExponentialDecay(0.3, 5, 0.5),
        keras.optimizers.schedules.CosineDecay(0.3, 9),
        PiecewiseLinear({0: 0.5, 4: 1}, 0.6),
        0.3,
    ):
        after = values(then, range(12)) if callable(then) else [0.3] * 12
        expected = [0.3 * step / warmup for step in range(warmup)] + after
        np.testing.assert_allclose(values(Warmup(warmup, then), range(warmup + 12)), expected, rtol=1e-5)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: PiecewiseLinear({}), r"`points` needs at least one step, and whole steps >= 0. Received: points={}"),
        (lambda: PiecewiseLinear({0.1: 1, 1.0: 0}), r"and whole steps >= 0. Received: points={0.1: 1, 1.0: 0}"),
        (lambda: PiecewiseLinear({-1: 1}), r"and whole steps >= 0. Received: points={-1: 1}"),
        (lambda: WarmupLinearDecay(1, 10, 10), r"must end before the run. Received: warmup=10, total=10"),
        (lambda: WarmupLinearDecay(1, -1, 10), r"Received: warmup=-1, total=10"),
        (lambda: WarmupLinearDecay(1, 0, 0.5), r"Received: warmup=0, total=0.5"),
        (lambda: WarmupLinearDecay(1, 0.1, 10), r"`steps` must be a number of steps, 0 or more. Received: steps=0.1"),
        (lambda: Warmup(-1, 1.0), r"`steps` must be a number of steps, 0 or more. Received: steps=-1"),
        (lambda: WarmupLinearDecay(-1e-3, 1, 10), "`peak` must be at least 0 and below inf. Received: peak=-0.001"),
        (lambda: PiecewiseLinear({0: 1, 10: float("nan")}), r"`points\[10\]` must be at least 0 .*=nan"),
        (lambda: Warmup(0.1, 1.0), r"`steps` must be a number of steps, 0 or more. Received: steps=0.1"),
    ],
)
def test_wrong_arguments_are_refused(make, message):
    """A fraction of the run, as other libraries take it, would be 0 steps: no warmup, or no training after step 0."""
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "schedule",
    [
        PiecewiseLinear({2000: 0.1, 1000: 1}, 3e-5),
        WarmupLinearDecay(1e-4, 5, 50, True, name="mine"),
        Warmup(5, PiecewiseLinear({0: 1, 9: 0})),
        Warmup(5, 1e-4),
    ],
)
def test_the_configuration_survives_json(schedule):
    config = json.loads(json.dumps(keras.optimizers.schedules.serialize(schedule)))
    assert config["registered_name"].startswith("kcrf>")
    again = keras.optimizers.schedules.deserialize(config)
    assert again.get_config() == schedule.get_config()
    assert values(again, range(0, 60, 7)) == values(schedule, range(0, 60, 7))


@pytest.mark.parametrize(
    "schedule",
    few(
        WarmupLinearDecay(1.0, 2, 6),
        PiecewiseLinear({3: 1}),
        keras.optimizers.schedules.ExponentialDecay(1.0, decay_steps=1, decay_rate=0.5),
    ),
)
@pytest.mark.parametrize("every", few(3, None))
def test_schedules_count_optimizer_steps_and_not_batches(schedule, every):
    variable = keras.Variable(np.zeros(1, "float32"))
    optimizer = Adam(schedule, epsilon=1e-9, gradient_accumulation_steps=every)
    previous, moves = 0.0, []
    for _ in range(5 * (every or 1)):
        optimizer.apply([ops.ones((1,))], [variable])
        now = float(ops.convert_to_numpy(variable)[0])
        moves.append(previous - now)
        previous = now
    if every:
        assert all(move == 0 for batch, move in enumerate(moves) if (batch + 1) % every)
        moves = moves[every - 1 :: every]
    np.testing.assert_allclose(moves, values(schedule, range(5)), rtol=1e-4, atol=1e-6)  # equal gradients: steps of 1
