"""kcrf.optimizers: The optimizers against NumPy, PyTorch and themselves after a reload."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from changed_keras import changed_keras  # noqa: F401 (a fixture)
from conftest import few
from hypothesis import given, settings
from hypothesis import strategies as st
from optimizer_oracles import SHAPES, adam, draw, google_bert, make_variables

from kcrf.backend import backend_name, keras, ops, path_of
from kcrf.optimizers import (
    Adam,
    AdamWeightDecay,
    PiecewiseLinear,
    WarmupLinearDecay,
    extend_with_gradient_accumulation,
    extend_with_weight_decay,
    layerwise_decay,
)

CLOSE = {"rtol": 1e-6, "atol": 1e-6}
FACTORS = {"CRF|Norm": 100, "Transformer-1-": 0.5, "/kernel$": 2}
FACTOR_OF = dict(zip(SHAPES, (1, 100, 1, 0.5, 2, 100), strict=True)) | {"Transformer-1-FeedForward/dense/kernel": 1.0}
DECAYED = [path for path in SHAPES if "Norm" not in path and "bias" not in path]
# Keras on PyTorch and Keras' saving trip over NumPy's copy keyword.
BACKENDS = ["torch", "tensorflow", "jax"]
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept:DeprecationWarning")


def run(optimizer, start, gradients):
    """The values after each batch, as the oracle gives them."""
    variables = make_variables(keras, start)
    optimizer.build(variables)
    step = stateless_step(optimizer, variables) if backend_name() == "jax" else optimizer.apply
    trace = []
    for batch in gradients:
        step([ops.convert_to_tensor(g) for g in batch])
        trace.append({path_of(v): ops.convert_to_numpy(v).copy() for v in variables})
    return trace


def stateless_step(optimizer, variables):
    """JAX would trace the branches of each eager step anew."""
    import jax

    compiled = jax.jit(optimizer.stateless_apply)

    def step(gradients):
        values = compiled([v.value for v in optimizer.variables], gradients, [v.value for v in variables])
        for variable, value in zip([*variables, *optimizer.variables], [*values[0], *values[1]], strict=True):
            variable.assign(value)

    return step


def assert_traces_agree(ours, wanted, **tolerance):
    for step, (got, expected) in enumerate(zip(ours, wanted, strict=True)):
        for path, value in expected.items():
            np.testing.assert_allclose(got[path], value, **(tolerance or CLOSE), err_msg=f"{path} after batch {step}")


def constant(rate):
    return lambda step: rate


# Golden trajectories


@pytest.mark.once
def test_without_correction_it_is_google_berts_optimizer_over_200_steps():
    start, gradients = draw(200)
    schedule = WarmupLinearDecay(1e-3, warmup=20, total=200, bert_jump=True)
    optimizer = AdamWeightDecay(schedule, bias_correction=False, global_clipnorm=1.0)

    def rate(step):
        return 1e-3 * (step / 20 if step < 20 else 1 - step / 200)

    wanted = google_bert(start, gradients, rate)
    ours = run(optimizer, start, gradients)[-1]
    moved = max(np.abs(wanted[path] - start[path]).max() for path in start)
    assert moved > 0.05
    for path in start:
        np.testing.assert_allclose(ours[path], wanted[path], rtol=2e-6, atol=2e-6, err_msg=path)


@pytest.mark.parametrize("correct", few(True, False))
@pytest.mark.parametrize("clip_norm", few(1.0, None))
@pytest.mark.parametrize("every", few(3, 1))
def test_everything_together_follows_the_formula(correct, clip_norm, every):
    start, gradients = draw(24, seed=1)
    optimizer = AdamWeightDecay(
        PiecewiseLinear({3: 1, 6: 0.5}, peak=1e-3),
        bias_correction=correct,
        lr_multipliers=FACTORS,
        weight_decay_rate=0.1,
        prior_weight_decay_rate=0.3,
        prior_variables=["Transformer-10", "Embedding-Token/embeddings"],
        global_clipnorm=clip_norm,
        gradient_accumulation_steps=every if every > 1 else None,
    )
    wanted = adam(
        start,
        gradients,
        rate=lambda step: 1e-3 * np.interp(step, [0, 3, 6], [0, 1, 0.5]),
        correct=correct,
        factors=FACTOR_OF,
        decay=0.1,
        decayed=DECAYED,
        pull=0.3,
        pulled=["Transformer-10-FeedForward/kernel", "Embedding-Token/embeddings"],
        clip_norm=clip_norm,
        every=every,
    )
    assert_traces_agree(run(optimizer, start, gradients), wanted, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    "arguments, oracle",
    [
        ({}, {}),
        ({"bias_correction": False}, {"correct": False}),
        ({"epsilon": 1e-2}, {"epsilon": 1e-2}),
        ({"beta_1": 0.8, "beta_2": 0.98}, {"beta_1": 0.8, "beta_2": 0.98}),
        ({"beta_1": 0.0}, {"beta_1": 0.0}),
        ({"lr_multipliers": FACTORS}, {"factors": FACTOR_OF}),
        ({"global_clipnorm": 0.5}, {"clip_norm": 0.5}),
        ({"gradient_accumulation_steps": 2}, {"every": 2}),
    ],
)
def test_adam_alone_follows_the_formula(arguments, oracle):
    start, gradients = draw(12, seed=2)
    ours = run(Adam(1e-3, **arguments), start, gradients)
    assert_traces_agree(ours, adam(start, gradients, constant(1e-3), **oracle))


@pytest.mark.parametrize(
    "arguments, oracle",
    [
        ({}, {"decay": 0.01, "decayed": DECAYED}),
        ({"weight_decay_rate": 0.5}, {"decay": 0.5, "decayed": DECAYED}),
        ({"weight_decay_rate": 0.5, "exclude_from_weight_decay": []}, {"decay": 0.5, "decayed": list(SHAPES)}),
        (
            {"weight_decay_rate": 0.5, "lr_multipliers": FACTORS},
            {"decay": 0.5, "decayed": DECAYED, "factors": FACTOR_OF},
        ),
        ({"weight_decay_rate": 0, "prior_weight_decay_rate": 0.4}, {"pull": 0.4, "pulled": DECAYED}),
        (
            {"weight_decay_rate": 0, "prior_weight_decay_rate": 0.4, "prior_variables": ["bias"]},
            {"pull": 0.4, "pulled": ["Transformer-1-FeedForward/dense/bias"]},
        ),
    ],
)
def test_decay_and_pull_follow_the_formula(arguments, oracle):
    start, gradients = draw(12, seed=3)
    ours = run(AdamWeightDecay(1e-2, **arguments), start, gradients)
    assert_traces_agree(ours, adam(start, gradients, constant(1e-2), **oracle))


@pytest.mark.once
def test_it_equals_adamw_of_pytorch_with_parameter_groups():
    torch = pytest.importorskip("torch")
    start, gradients = draw(30, seed=4)
    ours = run(AdamWeightDecay(1e-3, lr_multipliers=FACTORS, weight_decay_rate=0.1), start, gradients)[-1]
    parameters = {path: torch.nn.Parameter(torch.tensor(value)) for path, value in start.items()}
    groups = [
        {"params": [p], "lr": 1e-3 * FACTOR_OF[path], "weight_decay": 0.1 if path in DECAYED else 0.0}
        for path, p in parameters.items()
    ]
    theirs = torch.optim.AdamW(groups, eps=1e-6)
    for batch in gradients:
        for parameter, gradient in zip(parameters.values(), batch, strict=True):
            parameter.grad = torch.tensor(gradient)
        theirs.step()
    for path, parameter in parameters.items():
        np.testing.assert_allclose(ours[path], parameter.detach().numpy(), **CLOSE, err_msg=path)


@pytest.mark.parametrize("step, inflation", [(1, 3.16), (12, 6.57), (1000, 1.26)])
def test_leaving_the_correction_out_lengthens_steps_as_the_docstring_says(step, inflation):
    lengths = {}
    for correct in (True, False):
        variables = make_variables(keras, {"a/kernel": [0.0]})
        optimizer = Adam(1.0, bias_correction=correct)
        optimizer.build(variables)
        optimizer.iterations.assign(step - 1)  # the moments as after `step - 1` equal gradients
        optimizer._momentums[0].assign([1 - 0.9 ** (step - 1)])
        optimizer._velocities[0].assign([1 - 0.999 ** (step - 1)])
        optimizer.apply([ops.ones((1,))])
        lengths[correct] = -float(ops.convert_to_numpy(variables[0])[0])
    assert lengths[False] / lengths[True] == pytest.approx(inflation, abs=0.005)


# Multipliers


def test_a_multiplier_scales_the_step_and_not_the_gradient():
    start, gradients = draw(1, seed=5)
    plain, scaled = (run(Adam(1e-3, lr_multipliers=k), start, gradients)[0] for k in (None, {"CRF": 1000}))
    path = "CRF/transitions"
    np.testing.assert_allclose(scaled[path] - start[path], 1000 * (plain[path] - start[path]), rtol=1e-3)
    np.testing.assert_array_equal(scaled["Embedding-Norm/gamma"], plain["Embedding-Norm/gamma"])


@pytest.mark.once
def test_a_multiplier_leaves_the_global_clip_of_the_others_alone():
    start, gradients = draw(3, seed=6)
    plain, scaled = (
        run(Adam(1e-3, lr_multipliers=k, global_clipnorm=1.0), start, gradients)[-1] for k in (None, {"CRF": 1000})
    )
    for path in set(start) - {"CRF/transitions"}:
        np.testing.assert_array_equal(scaled[path], plain[path])


@pytest.mark.once
@settings(max_examples=10 if backend_name() == "torch" else 3)
@given(first=st.floats(0.01, 100), second=st.floats(0.01, 100), norm=st.none() | st.floats(0.1, 10))
def test_overlapping_factors_multiply(first, second, norm):
    start, gradients = draw(2, seed=7)
    split = Adam(1e-3, lr_multipliers={"CRF": first, "transitions": second}, global_clipnorm=norm)
    whole = Adam(1e-3, lr_multipliers={"CRF": first * second}, global_clipnorm=norm)
    assert_traces_agree(run(split, start, gradients), run(whole, start, gradients))


def test_a_factor_of_zero_freezes():
    start, gradients = draw(3, seed=8)
    end = run(AdamWeightDecay(1e-2, lr_multipliers={"Embedding": 0}), start, gradients)[-1]
    np.testing.assert_array_equal(end["Embedding-Token/embeddings"], start["Embedding-Token/embeddings"])
    assert np.abs(end["CRF/transitions"] - start["CRF/transitions"]).min() > 0


def test_a_variable_without_gradient_stays_and_the_others_keep_their_settings():
    start, gradients = draw(1, seed=9)
    variables = make_variables(keras, start)
    optimizer = AdamWeightDecay(1e-3, lr_multipliers=FACTORS)
    optimizer.build(variables)
    with pytest.warns(UserWarning, match="Gradients do not exist"):
        optimizer.apply([None, *(ops.convert_to_tensor(g) for g in gradients[0][1:])], variables)
    wanted = adam(start, gradients, constant(1e-3), factors=FACTOR_OF, decay=0.01, decayed=DECAYED)[0]
    wanted["Embedding-Token/embeddings"] = start["Embedding-Token/embeddings"]
    assert_traces_agree([{path_of(v): ops.convert_to_numpy(v) for v in variables}], [wanted])


# Errors and settings


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: Adam(lr_multipliers={"a": -1}),
            r"`lr_multipliers\['a'\]` must be at least 0 and below inf. Received: ",
        ),
        (lambda: Adam(lr_multipliers={"a": float("nan")}), r"`lr_multipliers\['a'\]` must be .* Received: .*=nan"),
        *(
            (
                lambda kind=kind, name=name, value=value: kind(**{name: value}),
                rf"`{name}` must be at least 0 and below .*{name}={value}",
            )
            for kind in (Adam, AdamWeightDecay)
            for name in ("learning_rate", "beta_1", "beta_2", "epsilon", "clipnorm", "clipvalue", "global_clipnorm")
            for value in (-0.5, float("nan"), float("inf"))
        ),
        (lambda: Adam(beta_1=1.0), "`beta_1` must be at least 0 and below 1. Received: beta_1=1.0"),
        (lambda: AdamWeightDecay(weight_decay_rate=float("nan")), "`weight_decay_rate` must be .*=nan"),
        (lambda: Adam(weight_decay=0.1), r"`AdamWeightDecay\(weight_decay_rate=...\)`.* Received: weight_decay=0.1"),
        (lambda: Adam(momentum=0.9), r"Argument\(s\) not recognized: {'momentum': 0.9}"),
        (lambda: AdamWeightDecay(weight_decay_rate=None), r"`weight_decay_rate` must be at least 0 .*=None"),
        (lambda: AdamWeightDecay(weight_decay_rate=-1), r"`weight_decay_rate` must be at least 0 .*=-1"),
        (lambda: AdamWeightDecay(prior_weight_decay_rate=-1), r"`prior_weight_decay_rate` must be .*=-1"),
        (lambda: AdamWeightDecay(prior_variables=3), r"`prior_variables` needs patterns, or a model .* Received: .*=3"),
    ],
)
def test_wrong_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "optimizer, message",
    [
        (Adam(lr_multipliers={"CRFF": 2}), r"`lr_multipliers` needs patterns .* 'CRFF', which occurs in none of:"),
        (Adam(lr_multipliers={"(": 2}), r"`lr_multipliers` needs regular expressions. Received: '\('"),
        (
            AdamWeightDecay(exclude_from_weight_decay=["layer_norm"]),
            r"`exclude_from_weight_decay` needs .*'layer_norm'",
        ),
        (AdamWeightDecay(prior_weight_decay_rate=1, prior_variables=["x"]), r"`prior_variables` needs .* 'x', which"),
    ],
)
def test_a_pattern_that_matches_nothing_is_an_error_that_lists_the_paths(optimizer, message):
    with pytest.raises(ValueError, match=message) as caught:
        optimizer.build(make_variables(keras, {path: np.zeros(shape) for path, shape in SHAPES.items()}))
    if "(" not in str(optimizer.lr_multipliers):
        assert all(f"\n  {path}" in str(caught.value) for path in SHAPES)
    assert not optimizer.built


def test_the_usual_exclusions_may_be_missing_from_a_model():
    AdamWeightDecay(exclude_from_weight_decay=["Norm", "bias"]).build(make_variables(keras, {"CNN/kernel": [1.0]}))


def test_keras_own_exclusion_method_works_on_paths_and_is_saved():
    variables = make_variables(keras, {path: np.ones(shape) for path, shape in SHAPES.items()})
    optimizer = AdamWeightDecay(0.1, weight_decay_rate=0.5)
    optimizer.exclude_from_weight_decay(var_list=[variables[0]], var_names=["Transformer-10"])
    optimizer = AdamWeightDecay.from_config(optimizer.get_config())
    optimizer.apply([ops.zeros(v.shape) for v in variables], variables)
    decayed = [path_of(v) for v in variables if ops.convert_to_numpy(v).max() < 1]
    assert decayed == ["Transformer-1-FeedForward/dense/kernel", "CRF/transitions"]
    with pytest.raises(ValueError, match="`exclude_from_weight_decay` must be called before the optimizer is built"):
        optimizer.exclude_from_weight_decay(var_names=["CRF"])


@pytest.mark.parametrize("rate", [1, 0.5, np.float32(0.5)])
def test_the_learning_rate_is_a_plain_number_that_can_be_set(rate):
    optimizer = AdamWeightDecay(rate, lr_multipliers={"CRF": 10})
    assert float(optimizer.learning_rate) == rate
    optimizer.learning_rate = 0.25
    assert float(optimizer.learning_rate) == 0.25


@pytest.mark.parametrize(
    "optimizer",
    [
        Adam(),
        Adam(PiecewiseLinear({10: 1, 20: 0}, 1e-3), 0.8, 0.9, 1e-5, False, {"a": 2, "b|c": 0.5}, global_clipnorm=1.0),
        AdamWeightDecay(weight_decay_rate=0.2, exclude_from_weight_decay="Norm", use_ema=True, name="mine"),
        AdamWeightDecay(WarmupLinearDecay(1e-3, 5, 50), prior_weight_decay_rate=0.1, prior_variables=["a/kernel", "b"]),
        AdamWeightDecay(prior_weight_decay_rate=0.1, prior_variables={"loaded": ["a/kernel"], "reinitialized": []}),
    ],
)
def test_the_configuration_survives_json(optimizer):
    config = keras.optimizers.serialize(optimizer)
    assert config["registered_name"] == f"kcrf>{type(optimizer).__name__}"
    again = keras.optimizers.deserialize(json.loads(json.dumps(config)))
    assert type(again) is type(optimizer)
    assert again.get_config() == optimizer.get_config()


# In a model


def tagger(frozen=False):
    """A model with the layer names of BERT, and data for it."""
    inputs = keras.Input((6,), dtype="int32")
    hidden = keras.layers.Embedding(20, 8, name="Embedding-Token")(inputs)
    hidden = keras.layers.LayerNormalization(name="Embedding-Norm")(hidden)
    hidden = keras.layers.Dense(8, activation="tanh", name="Transformer-0-FeedForward", trainable=not frozen)(hidden)
    model = keras.Model(inputs, keras.layers.Dense(3, name="CRF", dtype="float32")(hidden))
    rng = np.random.default_rng(0)
    for variable in model.variables:
        variable.assign(rng.normal(size=variable.shape) * 0.5 + ("gamma" in path_of(variable)))
    return model, rng.integers(0, 20, (16, 6)), rng.integers(0, 3, (16, 6))


LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def fit(model, x, y, epochs=2, **arguments):
    return model.fit(x, y, batch_size=8, epochs=epochs, shuffle=False, verbose=0, **arguments).history["loss"]


def full_optimizer(model, **more):
    return AdamWeightDecay(
        WarmupLinearDecay(1e-2, warmup=2, total=50),
        lr_multipliers={**layerwise_decay(model, 0.5), "CRF": 3},
        prior_weight_decay_rate=0.5,
        global_clipnorm=0.5,
        **more,
    )


ADAM_WG = extend_with_gradient_accumulation(extend_with_weight_decay(Adam, "AdamW"), "AdamWG")
MAKERS = {
    "accumulating, averaging": lambda model: full_optimizer(model, use_ema=True, gradient_accumulation_steps=2),
    "plain": full_optimizer,
    "extended": lambda model: ADAM_WG(
        1e-2, weight_decay_rate=0.1, grad_accum_steps=2, exclude_from_weight_decay=["bias"]
    ),
}


@pytest.mark.once
@pytest.mark.usefixtures("changed_keras")  # on tf_keras, bert4keras changes the names of loaded variables
@pytest.mark.parametrize("name", few(*MAKERS))
def test_a_saved_model_goes_on_exactly_where_it_stopped(name, tmp_path):
    model, x, y = tagger()
    model.compile(MAKERS[name](model), LOSS)
    fit(model, x, y)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert type(again.optimizer) is type(model.optimizer)
    assert again.optimizer.get_config() == model.optimizer.get_config()
    assert fit(again, x, y) == fit(model, x, y)
    for one, other in zip(model.variables, again.variables, strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(one), ops.convert_to_numpy(other))


@pytest.mark.once
@pytest.mark.usefixtures("changed_keras")
def test_a_resumed_run_keeps_its_prior(tmp_path):
    model, x, y = tagger()
    start = {path_of(v): ops.convert_to_numpy(v).copy() for v in model.variables}
    model.compile(full_optimizer(model), LOSS)
    fit(model, x, y)
    model.save(tmp_path / "model.keras")
    optimizer = keras.saving.load_model(tmp_path / "model.keras").optimizer
    priors = {path_of(v): p for v, p in zip(model.trainable_variables, optimizer._priors, strict=True) if p is not None}
    assert set(priors) == {path for path in start if "Norm" not in path and "bias" not in path}
    for path, prior in priors.items():
        np.testing.assert_array_equal(ops.convert_to_numpy(prior), start[path])


class Report:
    loaded = {"Embedding-Token/embeddings", "Transformer-0-FeedForward/kernel", "Transformer-0-FeedForward/bias"}
    reinitialized = {"Embedding-Norm/gamma"}


@pytest.mark.parametrize("on_model", [True, False])
def test_only_loaded_variables_are_pulled_back(on_model):
    model, x, y = tagger(frozen=True)
    model.kcrf_load_report = Report
    source = model if on_model else Report()
    optimizer = AdamWeightDecay(prior_weight_decay_rate=0.1, prior_variables=source)
    optimizer = AdamWeightDecay.from_config(optimizer.get_config())
    optimizer.build(model.trainable_variables)
    pulled = [path_of(v) for v, p in zip(model.trainable_variables, optimizer._priors, strict=True) if p is not None]
    assert pulled == ["Embedding-Token/embeddings"]  # the others are frozen, re-initialized or new


def test_a_model_without_report_cannot_name_its_loaded_variables():
    with pytest.raises(ValueError, match="`prior_variables` needs patterns, or a model whose weights"):
        AdamWeightDecay(prior_weight_decay_rate=0.1, prior_variables=tagger()[0])


def test_a_path_as_prior_means_this_variable_alone():
    optimizer = AdamWeightDecay(prior_weight_decay_rate=0.1, prior_variables=["a/kernel"])
    optimizer.build(make_variables(keras, {"a/kernel": [1.0], "aa/kernel": [1.0], "a/kernel_2": [1.0]}))
    assert [prior is not None for prior in optimizer._priors] == [True, False, False]


def test_repeated_tokens_are_clipped_by_the_norm_of_the_whole_gradient():
    inputs = keras.Input((4,), dtype="int32")
    model = keras.Model(inputs, keras.layers.Embedding(3, 2, embeddings_initializer="zeros")(inputs))
    model.compile(Adam(1.0, epsilon=1e3, bias_correction=False, global_clipnorm=1.0), lambda y, p: ops.sum(p))
    model.fit(np.array([[1, 1, 1, 2]]), np.zeros(1), verbose=0)
    step = -ops.convert_to_numpy(model.variables[0]) * 1e3 / 0.1  # epsilon leaves the gradient, times 1 - beta_1
    np.testing.assert_allclose(step, np.array([[0, 0], [3, 3], [1, 1]]) / np.sqrt(20), rtol=1e-3)


@pytest.mark.parametrize("name", ["clipnorm", "global_clipnorm"])
@pytest.mark.parametrize("limit", [1e-3, 0.01, 1e6])
def test_gradients_are_clipped_as_keras_clips_them(name, limit):
    _, (gradients, *_) = draw(1, seed=11)
    wanted = [np.float64(gradient) for gradient in gradients]
    norms = np.array([np.sqrt((gradient**2).sum()) for gradient in wanted])
    norms = norms if name == "clipnorm" else np.full(len(norms), np.sqrt((norms**2).sum()))
    assert limit != 0.01 or norms.max() > limit
    tensors = [ops.convert_to_tensor(gradient) for gradient in gradients]
    ours, stock = (kind(**{name: limit})._clip_gradients(tensors) for kind in (Adam, keras.optimizers.Adam))
    for clipped, of_keras, gradient, norm in zip(ours, stock, wanted, norms, strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(clipped), gradient * min(1, limit / norm), rtol=1e-5, atol=1e-9)
        np.testing.assert_allclose(ops.convert_to_numpy(clipped), ops.convert_to_numpy(of_keras), rtol=1e-5, atol=1e-9)
    tensors[0] = tensors[0] * np.inf
    assert np.isnan(ops.convert_to_numpy(Adam(**{name: limit})._clip_gradients(tensors)[0])).any()


@pytest.mark.skipif(backend_name() != "torch", reason="other backends compile a step")
@pytest.mark.parametrize("name", ["clipnorm", "global_clipnorm"])
def test_clipping_starts_few_operations_and_copies_no_numbers(name):
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counter(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            counted.append(function.name())
            return function(*args, **(kwargs or {}))

    optimizer, counted = Adam(**{name: 0.1}), []
    with Counter():
        optimizer._clip_gradients([torch.ones(3) for _ in range(30)])
    assert len(counted) < 30 + 12 and not any("item" in one or "copy" in one or "lift" in one for one in counted)


@pytest.mark.parametrize("frequency", [None, 3])
def test_keras_moving_average_sees_our_steps(frequency):
    start, gradients = draw(6, seed=10)
    optimizer = AdamWeightDecay(1e-2, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=frequency)
    run(optimizer, start, gradients)
    trace = adam(start, gradients, constant(1e-2), decay=0.01, decayed=DECAYED)
    average = {path: value for path, value in trace[0].items()}
    for values in trace[1:]:
        average = {path: 0.8 * average[path] + 0.2 * value for path, value in values.items()}
    got = dict(zip(SHAPES, optimizer._model_variables_moving_average, strict=True))
    if frequency is None:
        assert_traces_agree([{path: ops.convert_to_numpy(v) for path, v in got.items()}], [average])
    else:  # the last step overwrote the weights
        for variable, path in zip(optimizer._trainable_variables, SHAPES, strict=True):
            np.testing.assert_array_equal(ops.convert_to_numpy(variable), ops.convert_to_numpy(got[path]))


def test_mixed_float16_scales_the_loss_and_not_the_settings():
    keras.config.set_dtype_policy("mixed_float16")
    try:
        model, x, y = tagger()
        model.compile(full_optimizer(model), LOSS)
        assert "LossScaleOptimizer" in type(model.optimizer).__name__
        losses = fit(model, x, y, epochs=3)
        rates = model.optimizer.inner_optimizer._rates
    finally:
        keras.config.set_dtype_policy("float32")
    assert rates == [0.25, 0.25, 0.25, 0.5, 0.5, 3.0, 3.0]
    plain, x, y = tagger()
    plain.compile(full_optimizer(plain), LOSS)
    np.testing.assert_allclose(losses, fit(plain, x, y, epochs=3), rtol=5e-3)


@pytest.mark.once
def test_callbacks_set_the_one_rate_of_all():
    model, x, y = tagger()
    model.compile(AdamWeightDecay(1e-2, lr_multipliers={"CRF": 10}), LOSS)
    patience = keras.callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=1, min_delta=100)
    fit(model, x, y, epochs=3, callbacks=[patience])
    assert float(model.optimizer.learning_rate) == pytest.approx(0.0025)
    fit(model, x, y, epochs=1, callbacks=[keras.callbacks.LearningRateScheduler(lambda epoch: 0.125)])
    assert float(model.optimizer.learning_rate) == 0.125


# Two devices

TWO_DEVICES = """
import json, os, sys
import numpy as np
sys.path[:0] = [{tests!r}, {helpers!r}]
{prepare}
from test_optimizers import LOSS, tagger
from kcrf.backend import keras, ops
from kcrf.optimizers import AdamWeightDecay

def train(clip):
    model, x, y = tagger()
    model.compile(AdamWeightDecay(1e-2, lr_multipliers={{"CRF": 3}}, prior_weight_decay_rate=0.5,
        prior_variables=["kernel"], global_clipnorm=clip), LOSS)
    model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return [ops.convert_to_numpy(v).tolist() for v in model.variables]

result = {{}}
for clip in (None, 0.05):
    one = train(clip)
    {distribute}
    result[str(clip)] = max(np.abs(np.array(a) - np.array(b)).max() for a, b in zip(one, two))
print("RESULT" + json.dumps({{key: float(value) for key, value in result.items()}}))
"""
PREPARE = {
    "jax": "flags = os.environ.get('XLA_FLAGS', '')\n"
    "os.environ['XLA_FLAGS'] = f'{flags} --xla_force_host_platform_device_count=2'",
    "tensorflow": "import tensorflow as tf; tf.config.set_logical_device_configuration("
    "tf.config.list_physical_devices('CPU')[0], [tf.config.LogicalDeviceConfiguration()] * 2);"
    "tf.config.optimizer.set_experimental_options({'disable_meta_optimizer': True})",
}
DISTRIBUTE = {
    "jax": "keras.distribution.set_distribution(keras.distribution.DataParallel()); two = train(clip); "
    "keras.distribution.set_distribution(None)",
    "tensorflow": "with tf.distribute.MirroredStrategy(['CPU:0', 'CPU:1']).scope(): two = train(clip)",
}


def test_a_second_fit_goes_on_after_the_averages_became_the_weights():
    model, x, y = tagger()
    model.compile(AdamWeightDecay(1e-2, use_ema=True), LOSS)  # plain Keras fails here on JAX
    losses = [fit(model, x, y, epochs=1)[0] for _ in range(3)]
    assert losses[2] < losses[0]


@pytest.mark.slow
@pytest.mark.skipif(backend_name() == "torch", reason="Keras on PyTorch trains on one device")
def test_two_devices_train_as_one():
    name, here = backend_name(), os.path.dirname(__file__)
    script = TWO_DEVICES.format(
        tests=here, helpers=os.path.dirname(here), prepare=PREPARE[name], distribute=DISTRIBUTE[name]
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=os.getcwd(), check=False)
    assert "RESULT" in done.stdout, done.stderr[-2000:]
    difference = json.loads(done.stdout.split("RESULT")[1])
    assert difference["None"] < 1e-5
    if name == "jax":
        assert difference["0.05"] < 1e-5
    else:  # Keras on TensorFlow clips on each device, before the gradients are added up
        assert difference["0.05"] > 1e-3
