"""Tests of kcrf.bert4keras.extensions.

bert4keras' `extend_with_*` against its formulas, written out in NumPy float64 as changes of the Adam step.
"""

import json

import numpy as np
import pytest
from changed_keras import changed_keras  # noqa: F401 (a fixture)
from forks import run_python
from optimizer_oracles import SHAPES, draw, make_variables

from kcrf.backend import keras, ops, path_of
from kcrf.bert4keras import extensions
from kcrf.optimizers import (
    Adam,
    AdamWeightDecay,
    extend_with_exponential_moving_average,
    extend_with_gradient_accumulation,
    extend_with_layer_adaptation,
    extend_with_lazy_optimization,
    extend_with_lookahead,
    extend_with_parameter_wise_lr,
    extend_with_piecewise_linear_lr,
    extend_with_weight_decay,
)

BACKENDS = ["torch", "tensorflow", "jax"]
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept:DeprecationWarning")
RATE = 1e-2
CLOSE = {"rtol": 3e-6, "atol": 3e-6}


class Oracle:
    """Adam of bert4keras for one variable; `revise` is a list of (old, new, gradient, rate) -> new, in order."""

    def __init__(self, value, revise=(), rate=lambda step: RATE, correct=True):
        self.value = np.array(value, "float64")
        self.m, self.v, self.step = np.zeros_like(self.value), np.zeros_like(self.value), 0
        self.revise, self.rate, self.correct = revise, rate, correct

    def apply(self, gradient):
        g, eta = np.asarray(gradient, "float64"), self.rate(self.step)
        self.step += 1
        self.m = 0.9 * self.m + 0.1 * g
        self.v = 0.999 * self.v + 0.001 * g * g
        first, second = (1 - 0.9**self.step, 1 - 0.999**self.step) if self.correct else (1, 1)
        old, new = self.value, self.value - eta * self.m / first / (np.sqrt(self.v / second) + 1e-6)
        for change in self.revise:
            new = change(old, new, g, eta)
        self.value = new


def decay(rate):
    return lambda old, new, g, eta: new - eta * rate * old


def times(factor):
    return lambda old, new, g, eta: old + factor * (new - old)


def adapt(old, new, g, eta):
    weight, step = np.linalg.norm(old), np.linalg.norm((new - old) / max(eta, 1e-7))
    return old + (new - old) * (weight / step if weight > 0 and step > 0 else 1.0)


def lazy(old, new, g, eta):
    return np.where((g != 0).any(axis=-1, keepdims=True), new, old)


def check(optimizer, oracles, steps=8, seed=0):
    """Runs the optimizer and one oracle per path, `oracles(path)` being the arguments of `Oracle`."""
    start, gradients = draw(steps, seed=seed)
    variables = make_variables(keras, start)
    wanted = {path: Oracle(value, **oracles(path)) for path, value in start.items()}
    for batch in gradients:
        optimizer.apply([ops.convert_to_tensor(g) for g in batch], variables)
        for oracle, gradient in zip(wanted.values(), batch, strict=True):
            oracle.apply(gradient)
    for variable in variables:
        got, path = ops.convert_to_numpy(variable), path_of(variable)
        np.testing.assert_allclose(got, wanted[path].value, **CLOSE, err_msg=path)
    return variables, start, gradients


def excluded(path):
    return "Norm" in path or "bias" in path


def test_extended_weight_decay_is_that_of_bert4keras():
    AdamW = extend_with_weight_decay(Adam, "AdamW")
    assert AdamW.__name__ == "AdamW" and issubclass(AdamW, Adam)
    optimizer = AdamW(learning_rate=RATE, weight_decay_rate=0.3, exclude_from_weight_decay=["Norm", "bias"])
    check(optimizer, lambda path: {"revise": [] if excluded(path) else [decay(0.3)]})
    check(AdamW(RATE), lambda path: {"revise": [decay(0.01)]})  # bert4keras excludes nothing by default


def test_weight_decay_follows_the_multiplier_of_adam():
    optimizer = extend_with_weight_decay(Adam)(RATE, weight_decay_rate=0.3, lr_multipliers={"CRF": 5})
    check(optimizer, lambda path: {"revise": [decay(0.3)], "rate": lambda step: RATE * (5 if "CRF" in path else 1)})


def test_layer_adaptation_after_weight_decay_is_lamb():
    Lamb = extend_with_layer_adaptation(extend_with_weight_decay(Adam))
    optimizer = Lamb(RATE, weight_decay_rate=0.3, exclude_from_layer_adaptation=["Norm", "bias"])
    check(optimizer, lambda path: {"revise": [decay(0.3)] if excluded(path) else [decay(0.3), adapt]})


def test_a_multiplier_survives_layer_adaptation():
    optimizer = extend_with_layer_adaptation(Adam)(RATE, lr_multipliers={"CRF": 5})
    check(optimizer, lambda path: {"revise": [adapt], "rate": lambda step: RATE * (5 if "CRF" in path else 1)})


@pytest.mark.parametrize("decay_first", [True, False])
def test_the_rate_of_a_parameter_scales_what_was_extended_before(decay_first):
    first, second = extend_with_weight_decay, extend_with_parameter_wise_lr
    Made = second(first(Adam)) if decay_first else first(second(Adam))
    optimizer = Made(RATE, weight_decay_rate=0.3, paramwise_lr_schedule={"Transformer-1": 0.5, "10": 4})

    def oracle(path):
        factor = (0.5 if "Transformer-1" in path else 1) * (4 if "10" in path else 1)
        return {"revise": [decay(0.3), times(factor)] if decay_first else [times(factor), decay(0.3)]}

    check(optimizer, oracle)


def test_parameter_names_are_plain_text():
    optimizer = extend_with_parameter_wise_lr(Adam)(paramwise_lr_schedule={"CRF.": 2})
    with pytest.raises(ValueError, match="`paramwise_lr_schedule` needs patterns that occur"):
        optimizer.build(make_variables(keras, {"CRF/transitions": [1.0]}))


@pytest.mark.parametrize("decay_first", [True, False])
def test_the_piecewise_rate_holds_for_step_and_decay_in_any_order(decay_first):
    first, second = extend_with_weight_decay, extend_with_piecewise_linear_lr
    Made = second(first(Adam)) if decay_first else first(second(Adam))
    optimizer = Made(RATE, weight_decay_rate=0.3, lr_schedule={4: 1, 6: 0.1}, bias_correction=False)

    def rate(step):
        return RATE * np.interp(step, [0, 4, 6], [0, 1, 0.1])

    check(optimizer, lambda path: {"revise": [decay(0.3)], "rate": rate, "correct": False})
    assert float(optimizer.learning_rate) == pytest.approx(RATE)  # for callbacks
    check(extend_with_piecewise_linear_lr(Adam)(RATE), lambda path: {})  # {0: 1} by default


def test_lazy_optimization_moves_only_rows_with_a_gradient():
    optimizer = extend_with_lazy_optimization(Adam)(RATE, include_in_lazy_optimization=["Embedding-Token"])
    variables, start, _ = check(optimizer, lambda path: {"revise": [lazy] if "Token" in path else []})
    np.testing.assert_array_equal(ops.convert_to_numpy(variables[0])[1], start["Embedding-Token/embeddings"][1])


def test_lookahead_goes_back_every_k_steps_from_where_it_started():
    start, gradients = draw(7)
    optimizer = extend_with_lookahead(Adam)(RATE, steps_per_slow_update=3, slow_step_size=0.4)
    variables = make_variables(keras, start)
    wanted = {path: Oracle(value) for path, value in start.items()}
    slow = {path: np.array(value, "float64") for path, value in start.items()}
    for step, batch in enumerate(gradients):
        optimizer.apply([ops.convert_to_tensor(g) for g in batch], variables)
        for (path, oracle), gradient in zip(wanted.items(), batch, strict=True):
            oracle.apply(gradient)
            if step % 3 == 2:
                slow[path] = slow[path] + 0.4 * (oracle.value - slow[path])
                oracle.value = slow[path]
        for variable in variables:
            np.testing.assert_allclose(ops.convert_to_numpy(variable), wanted[path_of(variable)].value, **CLOSE)


@pytest.mark.parametrize("bias_correction", [True, False])
def test_averages_go_in_and_come_out_again(bias_correction):
    optimizer = extend_with_exponential_moving_average(Adam)(RATE, ema_momentum=0.8)
    average = {path: np.zeros(shape) for path, shape in SHAPES.items()}

    def remember(path):
        def average_in(old, new, g, eta):
            average[path] = 0.8 * average[path] + 0.2 * new
            return new

        return {"revise": [average_in]}

    variables, _, gradients = check(optimizer, remember)
    before = [ops.convert_to_numpy(v).copy() for v in variables]
    for _ in range(2):  # the second call keeps the weights from before the first
        optimizer.apply_ema_weights(bias_correction=bias_correction)
    scale = 1 - 0.8 ** len(gradients) if bias_correction else 1.0
    for variable in variables:
        np.testing.assert_allclose(ops.convert_to_numpy(variable), average[path_of(variable)] / scale, **CLOSE)
    optimizer.reset_old_weights()
    for variable, old in zip(variables, before, strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(variable), old)
    with pytest.raises(ValueError, match="`reset_old_weights` needs a call of `apply_ema_weights` before"):
        optimizer.reset_old_weights()


def test_averages_are_also_of_weights_without_a_gradient():
    optimizer = extend_with_exponential_moving_average(Adam)(RATE, ema_momentum=0.8)
    trained, frozen, unused = variables = [keras.Variable(np.full(2, k, "float32"), name=f"w{k}") for k in (1, 2, 3)]
    optimizer.build(variables)
    average, scale = np.zeros((2, 2)), 0.0
    for step in range(4):
        some = [trained, frozen] if step == 0 else [trained]
        optimizer.apply([ops.ones(2) for _ in some], some)
        average = 0.8 * average + 0.2 * np.array([ops.convert_to_numpy(v) for v in (trained, frozen)])
        scale = 0.8 * scale + 0.2
    optimizer.apply_ema_weights()
    np.testing.assert_allclose([ops.convert_to_numpy(v) for v in (trained, frozen)], average / scale, **CLOSE)
    np.testing.assert_allclose(ops.convert_to_numpy(unused), [3.0, 3.0], rtol=1e-6)


def test_weights_that_were_trained_after_averages_are_the_ones_that_come_back():
    optimizer = extend_with_exponential_moving_average(Adam)(RATE, ema_momentum=0.8)
    variable = keras.Variable(np.ones(2, "float32"), name="w")
    for _ in range(2):
        optimizer.apply([ops.ones(2)], [variable])
        trained = ops.convert_to_numpy(variable).copy()
        optimizer.apply_ema_weights()
    optimizer.reset_old_weights()
    np.testing.assert_array_equal(ops.convert_to_numpy(variable), trained)


def test_there_is_no_average_before_the_first_step():
    with pytest.raises(
        ValueError, match="`apply_ema_weights` needs at least one optimizer step. Received: 0 steps so far"
    ):
        extend_with_exponential_moving_average(Adam)().apply_ema_weights()


@pytest.mark.parametrize("every", [1, 2])
def test_gradients_accumulate_to_their_mean(every):
    AdamWG = extend_with_gradient_accumulation(extend_with_weight_decay(Adam, "AdamW"), "AdamWG")
    assert AdamWG.__name__ == "AdamWG"
    start, gradients = draw(4)
    variables = make_variables(keras, start)
    optimizer = AdamWG(learning_rate=RATE, weight_decay_rate=0.3, grad_accum_steps=every)
    for batch in gradients:
        optimizer.apply([ops.convert_to_tensor(g) for g in batch], variables)
    wanted = {path: Oracle(value, [decay(0.3)]) for path, value in start.items()}
    for first in range(0, 4, every):
        for oracle, *parts in zip(wanted.values(), *gradients[first : first + every], strict=True):
            oracle.apply(np.mean(np.array(parts, "float64"), axis=0))
    for variable in variables:
        np.testing.assert_allclose(ops.convert_to_numpy(variable), wanted[path_of(variable)].value, **CLOSE)


def test_the_piecewise_rate_counts_batches_as_bert4keras_scripts_expect():
    Made = extend_with_gradient_accumulation(extend_with_piecewise_linear_lr(Adam))
    variable = keras.Variable(np.zeros(1, "float32"))
    optimizer = Made(1.0, epsilon=1e-9, lr_schedule={10: 1}, grad_accum_steps=2)
    for _ in range(4):
        optimizer.apply([ops.ones((1,))], [variable])
    assert float(ops.convert_to_numpy(variable)[0]) == pytest.approx(-(0.1 + 0.3), rel=1e-5)


def test_any_keras_optimizer_can_be_extended():
    Made = extend_with_parameter_wise_lr(
        extend_with_piecewise_linear_lr(extend_with_weight_decay(keras.optimizers.SGD))
    )
    optimizer = Made(0.1, weight_decay_rate=0.5, lr_schedule={2: 1}, paramwise_lr_schedule={"a": 3})
    optimizer = keras.optimizers.deserialize(json.loads(json.dumps(keras.optimizers.serialize(optimizer))))
    variables = make_variables(keras, {"a/kernel": [1.0], "b/kernel": [1.0]})
    optimizer.apply([ops.ones((1,))] * 2, variables)  # at rate 0
    optimizer.apply([ops.ones((1,))] * 2, variables)  # at rate 0.05
    assert [float(ops.convert_to_numpy(v)[0]) for v in variables] == pytest.approx([1 - 3 * 0.075, 1 - 0.075])


EXTENDED = [getattr(extensions, name) for name in sorted(vars(extensions)) if name.startswith("extend_with")]
ARGUMENTS = {
    "lr_schedule": {3: 1, 50: 0.1},
    "include_in_lazy_optimization": ["Embedding"],
    "paramwise_lr_schedule": {"CRF": 3},
    "exclude_from_layer_adaptation": ["bias"],
    "exclude_from_weight_decay": ["bias", "CRF"],
    "grad_accum_steps": 2,
    "steps_per_slow_update": 2,
    "slow_step_size": 0.3,
    "ema_momentum": 0.9,
    "weight_decay_rate": 0.2,
}


def everything():
    Made = Adam
    for extend in EXTENDED:
        Made = extend(Made)
    return Made


def small_model():
    inputs = keras.Input((3,), dtype="int32")
    hidden = keras.layers.Embedding(5, 4, name="Embedding")(inputs)
    return keras.Model(inputs, keras.layers.Dense(2, name="CRF")(hidden))


@pytest.mark.once
def test_all_together_survive_saving_and_go_on_exactly(tmp_path):
    x, y = np.arange(12).reshape(4, 3) % 5, np.ones((4, 3, 2))
    model = small_model()
    model.compile(everything()(RATE, **ARGUMENTS), "mse")
    model.fit(x, y, batch_size=1, epochs=2, shuffle=False, verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert type(again.optimizer) is type(model.optimizer) is everything()
    assert again.optimizer.get_config() == model.optimizer.get_config()
    for one in (model, again):
        one.fit(x, y, batch_size=1, epochs=2, shuffle=False, verbose=0)
    states = ([*one.variables, *one.optimizer.variables] for one in (model, again))
    for one, other in zip(*states, strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(one), ops.convert_to_numpy(other))


def test_classes_made_later_do_not_change_what_is_loaded():
    first = extend_with_lookahead(Adam, "First")
    config = keras.optimizers.serialize(first(steps_per_slow_update=7))
    extend_with_weight_decay(keras.optimizers.SGD, "Second")
    again = keras.optimizers.deserialize(config)
    assert type(again) is first and again.steps_per_slow_update == 7


@pytest.mark.slow
def test_a_process_that_never_extended_anything_loads_the_model(tmp_path):
    model = small_model()
    AdamWG = extend_with_gradient_accumulation(extend_with_weight_decay(Adam, "AdamW"), "AdamWG")
    model.compile(AdamWG(RATE, grad_accum_steps=3), "mse")
    model.save(tmp_path / "model.keras")
    script = (
        "import sys, kcrf.optimizers\n"
        "from kcrf.backend import keras\n"
        "optimizer = keras.saving.load_model(sys.argv[1]).optimizer\n"
        "print(type(optimizer).__name__, optimizer.gradient_accumulation_steps, optimizer.weight_decay_rate)"
    )
    done = run_python(script, tmp_path / "model.keras", cwd=tmp_path)
    assert done.stdout.split() == ["AdamWG", "3", "0.01"], done.stderr[-2000:]


@pytest.mark.once
def test_averages_can_be_used_between_epochs():
    model, seen = small_model(), []
    x, y = np.arange(12).reshape(4, 3) % 5, np.ones((4, 3, 2))
    model.compile(extend_with_exponential_moving_average(Adam)(RATE, ema_momentum=0.5), "mse")

    def evaluate(epoch, logs):
        last = ops.convert_to_numpy(model.get_layer("CRF").kernel).copy()
        model.optimizer.apply_ema_weights()
        seen.append(np.abs(ops.convert_to_numpy(model.get_layer("CRF").kernel) - last).max())
        model.optimizer.reset_old_weights()
        np.testing.assert_array_equal(ops.convert_to_numpy(model.get_layer("CRF").kernel), last)

    callback = keras.callbacks.LambdaCallback(on_epoch_end=evaluate)
    losses = model.fit(x, y, batch_size=1, epochs=3, shuffle=False, verbose=0, callbacks=[callback]).history["loss"]
    assert min(seen) > 1e-4 and losses[2] < losses[0]


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: extend_with_lookahead(Adam()),
            "`extend_with_\\*` extends optimizer classes. Received: BaseOptimizer=",
        ),
        (
            lambda: extend_with_lookahead(extend_with_lookahead(Adam)),
            "already has this feature. Received: Lookahead over it",
        ),
        (
            lambda: extend_with_weight_decay(AdamWeightDecay),
            "AdamWeightDecay already has this feature. Received: WeightDecay",
        ),
        (
            lambda: extend_with_piecewise_linear_lr(keras.optimizers.AdamW)(),
            "would ignore the schedule.*weight_decay=0.004",
        ),
        (
            lambda: extend_with_gradient_accumulation(Adam)(grad_accum_steps=2, gradient_accumulation_steps=3),
            "are the same setting and must be equal. Received: 2 and 3",
        ),
        (lambda: extend_with_lookahead(Adam)(steps=3), r"Argument\(s\) not recognized: {'steps': 3}"),
    ],
)
def test_what_cannot_work_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_an_unregistered_base_is_named_when_loading_fails():
    class Mine(keras.optimizers.SGD):
        pass

    config = keras.optimizers.serialize(extend_with_lookahead(Mine)())
    with pytest.raises(ValueError, match="must be registered .* before loading. Received: base='Mine'"):
        keras.optimizers.deserialize(config)


def test_variables_are_excluded_from_decay_by_the_method_of_keras():
    optimizer = extend_with_weight_decay(Adam)(RATE, weight_decay_rate=0.3)
    optimizer.exclude_from_weight_decay(var_names=["Norm", "bias"])
    check(optimizer, lambda path: {"revise": [] if excluded(path) else [decay(0.3)]})
