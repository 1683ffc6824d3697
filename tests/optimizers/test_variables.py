"""kcrf.optimizers.variables: Rates by depth, and the table of what each variable gets."""

import re

import numpy as np
import pytest
import rich
from conftest import few
from hypothesis import given
from hypothesis import strategies as st

from kcrf.backend import keras, path_of
from kcrf.layers.embeddings import EncoderRecord
from kcrf.optimizers import (
    Adam,
    AdamWeightDecay,
    extend_with_parameter_wise_lr,
    extend_with_weight_decay,
    layerwise_decay,
    variable_table,
)
from kcrf.optimizers.variables import multipliers

BACKENDS = ["torch", "tensorflow", "jax"]


def model_of(*names, nested=()):
    """A chain of small layers with these names."""
    inputs = keras.Input((2,))
    hidden = inputs
    for name in names:
        hidden = keras.layers.Dense(2, name=name)(hidden)
    return keras.Model(inputs, hidden)


BERT = ["Embedding-Token", "Embedding-Norm"]
BERT += [f"Transformer-{i}-{part}" for i in range(12) for part in ("MultiHeadSelfAttention", "FeedForward-Norm")]
BERT += ["Pooler-Dense", "MLM-Dense", "CRF"]
HUB = ["token_embedding", "embeddings_layer_norm", *(f"transformer_layer_{i}" for i in range(12)), "pooled_dense"]


def rates(model, factors):
    paths = [path_of(v) for v in model.trainable_variables]
    return {path.split("/")[0]: rate for path, rate in zip(paths, multipliers(factors, paths), strict=True)}


DEBERTA = ["token_embedding", "rel_embedding", *(f"disentangled_attention_encoder_layer_{i}" for i in range(12)), "CRF"]
ELECTRA = ["token_embedding", "embeddings_projection", *(f"transformer_layer_{i}" for i in range(12)), "CRF"]


@pytest.mark.parametrize("names", few(BERT, HUB, DEBERTA, ELECTRA, everywhere=2))
@pytest.mark.parametrize("decay_top", [True, False])
def test_each_layer_gets_its_power_of_the_decay(names, decay_top):
    model = model_of(*names)
    got = rates(model, layerwise_decay(model, 0.9, decay_top=decay_top))
    top = 1 if decay_top else 0
    for name, rate in got.items():
        if "mbedding" in name:
            assert rate == pytest.approx(0.9 ** (12 + top)), name
        elif re.search(r"\d", name):
            index = int("".join(filter(str.isdigit, name)))
            assert rate == pytest.approx(0.9 ** (11 - index + top)), name
        else:
            assert rate == 1, name


@pytest.mark.once
def test_all_variables_of_backbones_of_keras_hub_are_below_the_head():
    hub = pytest.importorskip("keras_hub", reason="needs keras-hub, which is not here").models
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 8, "max_sequence_length": 8}
    for backbone in (
        hub.DebertaV3Backbone(vocabulary_size=9, bucket_size=4, **sizes),
        hub.ElectraBackbone(vocab_size=9, embedding_dim=4, **sizes),
        hub.XLMRobertaBackbone(vocabulary_size=9, **sizes),
    ):
        paths = [path_of(v) for v in backbone.trainable_variables if not path_of(v).startswith("pooled_dense")]
        assert set(multipliers(layerwise_decay(backbone, 0.5), paths)) == {0.125, 0.25, 0.5}


def test_layer_1_is_not_layer_10():
    assert list(layerwise_decay(model_of(*BERT), 0.5)).count("(^|/)Transformer-1-") == 1
    model = model_of("Transformer-1-A", "Transformer-10-A", "Transformer-11-A")
    got = rates(model, {"(^|/)Transformer-1-": 0.5})
    assert got == {"Transformer-1-A": 0.5, "Transformer-10-A": 1, "Transformer-11-A": 1}


def test_encoders_with_a_prefix_decay_each_by_its_depth():
    base = ["Embedding-Token", "Transformer-0-A"]
    prefixed = ["b-Embedding-Token", "b-Transformer-0-A", "b-Transformer-1-A"]
    model = model_of(*base, *prefixed, "CRF")
    expected = dict(zip([*base, *prefixed, "CRF"], [0.25, 0.5, 0.125, 0.25, 0.5, 1], strict=True))
    assert rates(model, layerwise_decay(model, 0.5)) == expected
    alone = model_of(*prefixed)
    assert rates(alone, layerwise_decay(alone, 0.5)) == {name: expected[name] for name in prefixed}


def test_frozen_layers_keep_their_place_in_the_depth():
    model = model_of("Embedding-Token", "Transformer-0-A", "Transformer-1-A", "Transformer-2-A")
    for layer in model.layers[:3]:
        layer.trainable = False
    factors = layerwise_decay(model, 0.5)
    assert factors == {"(^|/)Transformer-1-": 0.25, "(^|/)Transformer-2-": 0.5}
    AdamWeightDecay(lr_multipliers=factors).build(model.trainable_variables)


def test_groups_may_be_patterns_or_layers():
    model = model_of("stem", "block", "block_1", "my_block", "last")
    by_name = {layer.name: layer for layer in model.layers}
    factors = layerwise_decay(["stem", [by_name["block"]], ["last", "extra"]], 0.1)
    assert factors == pytest.approx({"stem": 1e-3, "(^|/)block/": 1e-2, "last": 0.1, "extra": 0.1})
    del factors["extra"]
    assert [rates(model, factors)[name] for name in ("block", "block_1", "my_block")] == [pytest.approx(1e-2), 1, 1]


@given(decay=st.floats(0.01, 1), count=st.integers(1, 30), decay_top=st.booleans())
def test_rates_fall_by_the_same_factor_all_the_way_down(decay, count, decay_top):
    factors = list(layerwise_decay([f"g{i}-" for i in range(count)], decay, decay_top).values())
    assert factors[-1] == (decay if decay_top else 1)
    np.testing.assert_allclose(factors[:-1], np.multiply(factors[1:], decay))


@pytest.mark.parametrize("decay", [0, -0.5, 1.1])
def test_a_decay_out_of_range_is_refused(decay):
    with pytest.raises(ValueError, match=rf"`decay` must be in \(0, 1\]. Received: decay={decay}"):
        layerwise_decay(["a"], decay)


def test_a_model_without_numbered_layers_is_refused_with_its_paths():
    with pytest.raises(
        ValueError, match=r"needs numbered layers(.|\n)*ALBERT(.|\n)*\n  Transformer-FeedForward/kernel"
    ):
        layerwise_decay(model_of("Embedding-Token", "Transformer-FeedForward"), 0.9)


# The table


class Report:
    loaded = {"Transformer-0-A/kernel", "Transformer-0-A/bias"}
    reinitialized = {"Transformer-1-A/kernel"}


def table_model():
    model = model_of("Embedding-Token", "Transformer-0-A", "Transformer-1-A", "CRF")
    model.layers[1].trainable = False
    return model


def test_the_table_tells_what_each_variable_gets():
    model = table_model()
    model.kcrf_load_report = Report
    optimizer = AdamWeightDecay(lr_multipliers={"CRF": 100}, prior_weight_decay_rate=0.1, prior_variables=model)
    rows = variable_table(model, optimizer)
    assert not optimizer.built
    assert rows[0] == {
        "path": "Embedding-Token/kernel",
        "shape": (2, 2),
        "multiplier": None,
        "decayed": False,
        "prior": False,
        "origin": "new",
    }
    assert [row["multiplier"] for row in rows] == [None, None, 1, 1, 1, 1, 100, 100]
    assert [row["decayed"] for row in rows] == [False, False, True, False, True, False, True, False]
    assert [row["prior"] for row in rows] == [False, False, True, True, False, False, False, False]
    assert [row["origin"] for row in rows][2:5] == ["loaded", "loaded", "re-initialized"]


def test_a_report_on_a_layer_speaks_for_the_models_around_it():
    model = table_model()
    model.get_layer("Transformer-0-A").encoder_record = EncoderRecord({}, report=Report)
    outer = keras.Model(model.inputs, keras.layers.Dense(1, name="Head")(model.outputs[0]))
    assert not hasattr(outer, "kcrf_load_report")
    origins = {row["path"]: row["origin"] for row in variable_table(outer, Adam())}
    assert origins["Transformer-0-A/bias"] == "loaded" and origins["Head/kernel"] == "new"


def test_the_table_takes_the_compiled_optimizer_also_behind_a_loss_scale():
    model = table_model()
    assert variable_table(model, Adam())[0]["origin"] is None
    for optimizer in (Adam(lr_multipliers={"CRF": 3}),):
        model.compile(keras.optimizers.LossScaleOptimizer(optimizer), "mse")
        assert variable_table(model)[-1]["multiplier"] == 3


def test_the_table_knows_extended_optimizers():
    AdamWP = extend_with_parameter_wise_lr(extend_with_weight_decay(Adam))
    optimizer = AdamWP(lr_multipliers={"CRF": 2}, paramwise_lr_schedule={"CRF": 3}, exclude_from_weight_decay=["bias"])
    rows = variable_table(table_model(), optimizer)[-2:]
    assert [(row["multiplier"], row["decayed"]) for row in rows] == [(6, True), (6, False)]


def test_print_and_rich_show_the_same_table(capsys):
    model = table_model()
    rows = variable_table(model, AdamWeightDecay(lr_multipliers=layerwise_decay(model, 0.5)))
    text = str(rows)
    for words in ("Embedding-Token/kernel", "frozen", "(2, 2)", "x0.25  (^|/)Transformer-0-", "yes"):
        assert words in text
    rich.print(rows)
    assert "x0.25" in capsys.readouterr().out


@pytest.mark.parametrize("optimizer", [None, keras.optimizers.AdamW()])
def test_the_table_needs_one_of_our_optimizers(optimizer):
    with pytest.raises(
        ValueError, match="`variable_table` needs an optimizer of kcrf.optimizers. Received: optimizer="
    ):
        variable_table(table_model(), optimizer)


def test_the_table_reports_a_pattern_that_matches_nothing():
    with pytest.raises(ValueError, match=r"'Embedding', which occurs in none of:\n  Transformer-0-A/kernel"):
        variable_table(table_model(), Adam(lr_multipliers={"Embedding": 2}))
