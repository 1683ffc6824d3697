"""kcrf.models.loading: Layers that are skipped in a checkpoint, or re-initialized, have new weights."""

import re

import numpy as np
import pytest
from conftest import few
from seeds import set_seeds
from tiny_encoders import (
    SEGMENTS,
    SIZES,
    TOKENS,
    assert_close,
    bert,
    checkpoint,
    google_shapes,
    numbers,
    random_weights,
    values,
)

from kcrf.backend import keras
from kcrf.checkpoints import open_checkpoint, write_safetensors
from kcrf.layers.dense import MixoutDense
from kcrf.models import (
    build_transformer_model,
    reinitialize,
    variable_mapping,
)
from kcrf.models.loading import _paths_on_top, load_checkpoint


@pytest.mark.once
@pytest.mark.parametrize("top", [1, 2, 3])
def test_skipped_top_layers_stay_fresh_and_the_rest_is_the_checkpoint(top, bert):
    model = build_transformer_model(None, bert[0], with_pool=True, skip_top_layers=top, **SIZES)
    mapping = variable_mapping({"model": "bert", "num_hidden_layers": 3, "prefix": ""})
    report = model.kcrf_load_report
    fresh = tuple(f"Transformer-{index}-" for index in range(3 - top, 3)) + ("Pooler-Dense/",)
    for path, value in values(model).items():
        if path.startswith(fresh):
            assert path in report.reinitialized and path not in report.loaded and mapping[path] in report.skipped
            assert not np.array_equal(value, bert[1][mapping[path]])
        else:
            assert path in report.loaded
            np.testing.assert_array_equal(value, bert[1][mapping[path]])


@pytest.mark.once
def test_fresh_layers_differ_from_each_other_and_query_from_key_from_value(bert):
    model = build_transformer_model(None, bert[0], with_pool=True, skip_top_layers=3, **SIZES)
    kernels = {path: v for path, v in values(model).items() if path.endswith("kernel") and v.shape == (12, 12)}
    assert len(kernels) == 13
    for path, kernel in kernels.items():
        for other in kernels:
            assert path == other or np.abs(kernel - kernels[other]).max() > 1e-3, (path, other)


@pytest.mark.once
@pytest.mark.parametrize("way", ["skipped", "reinitialized"])
def test_fresh_weights_have_the_statistics_of_the_paper(way, tmp_path):
    """TruncatedNormal(0.02) is cut at two sigma: nothing beyond 0.04, a standard deviation of 0.8796 * 0.02."""
    sizes = {**SIZES, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128}
    write_safetensors(tmp_path / "w.safetensors", random_weights(google_shapes(**sizes)))
    skip = 2 if way == "skipped" else 0
    model = build_transformer_model(None, tmp_path / "w.safetensors", with_pool=True, skip_top_layers=skip, **sizes)
    if way == "reinitialized":
        reinitialize(model, top_layers=2)
    fresh = {path: value for path, value in values(model).items() if re.match("Transformer-[12]|Pooler", path)}
    assert len(fresh) == 34
    for path, value in fresh.items():
        if path.endswith("kernel"):
            assert np.abs(value).max() <= 0.04 + 1e-6
            assert abs(value.std() - 0.8796 * 0.02) < 0.04 * 0.02 and abs(value.mean()) < 0.1 * 0.02
        else:
            np.testing.assert_array_equal(value, 1.0 if path.endswith("gamma") else 0.0)


def test_two_builds_draw_different_fresh_layers_and_one_seed_the_same(bert):
    def top(seed):
        set_seeds(seed)
        return values(build_transformer_model(None, bert[0], skip_top_layers=1, **SIZES))

    path = "Transformer-2-FeedForward/output/kernel"
    np.testing.assert_array_equal(top(1)[path], top(1)[path])
    assert np.abs(top(1)[path] - top(2)[path]).max() > 1e-3


@pytest.mark.once
def test_skipped_bytes_are_not_read(bert, monkeypatch):
    opened = []
    monkeypatch.setattr(
        "kcrf.checkpoints.open_checkpoint", lambda path: opened.append(open_checkpoint(path)) or opened[0]
    )
    build_transformer_model(None, bert[0], with_pool=True, skip_top_layers=1, **SIZES)
    left = ("bert/encoder/layer_2/", "bert/pooler", "cls/")
    assert opened[0].bytes_read == sum(v.nbytes for name, v in bert[1].items() if not name.startswith(left))


@pytest.mark.once
def test_layer_1_is_not_taken_for_layer_10():
    config = {"model": "bert", "num_hidden_layers": 11, "prefix": ""}
    for top in (1, 10):
        numbered = {
            int(path.split("-")[1]) for path in _paths_on_top(variable_mapping(config), config, top, pooler=False)
        }
        assert numbered == set(range(11 - top, 11))


@pytest.mark.once
def test_the_pooler_goes_with_the_top_layers_unless_told_otherwise(bert):
    def fresh(**options):
        model = build_transformer_model(None, bert[0], with_pool=True, **options, **SIZES)
        return "Pooler-Dense/kernel" in model.kcrf_load_report.reinitialized

    assert fresh(skip_top_layers=1) and fresh(skip_pooler=True)
    assert not fresh() and not fresh(skip_top_layers=1, skip_pooler=False)


@pytest.mark.once
def test_patterns_skip_by_path_or_by_name(bert):
    model = build_transformer_model(None, bert[0], skip=["position_embeddings", "0-FeedForward/output/bias"], **SIZES)
    expected = {"Embedding-Position/embeddings", "Transformer-0-FeedForward/output/bias"}
    assert model.kcrf_load_report.reinitialized == expected
    with pytest.raises(ValueError, match=r"`skip` needs regular expressions. Received: '\(' \(missing"):
        build_transformer_model(None, bert[0], skip=["("], **SIZES)
    with pytest.raises(ValueError, match="`skip` must match something, of: Embedding-Token/embeddings, .*'nonsense'"):
        build_transformer_model(None, bert[0], skip="nonsense", **SIZES)


@pytest.mark.once
@pytest.mark.parametrize(
    "model, top, text",
    [
        ("bert", 4, "The encoder has 3 layers. Received: 4 top layers"),
        ("bert", -1, "The encoder has 3 layers. Received: -1 top layers"),
        ("albert", 1, "ALBERT's layers are one and the same: none is on top. Received: 1 top layers"),
    ],
)
def test_layers_that_are_not_there_cannot_be_skipped_or_drawn_anew(model, top, text, checkpoint):
    path, _ = checkpoint(model)
    with pytest.raises(ValueError, match=text):
        build_transformer_model(None, path, model, skip_top_layers=top, **SIZES)
    built = build_transformer_model(None, path, model, **SIZES)
    with pytest.raises(ValueError, match=text):
        reinitialize(built, top_layers=top)


@pytest.mark.once
@pytest.mark.parametrize("top", [1.5, 1.0, True, False, "1", None, np.True_])
def test_the_number_of_top_layers_must_be_an_int(top, bert):
    for call in (
        lambda: build_transformer_model(None, bert[0], skip_top_layers=top, **SIZES),
        lambda: reinitialize(build_transformer_model(None, bert[0], **SIZES), top_layers=top),
    ):
        with pytest.raises(ValueError, match=f"number of top layers must be an int. Received: {re.escape(repr(top))}"):
            call()


@pytest.mark.once
def test_the_number_of_top_layers_may_be_an_int_of_numpy(bert):
    model = build_transformer_model(None, bert[0], skip_top_layers=np.int64(1), **SIZES)
    assert all(path.startswith("Transformer-2-") for path in model.kcrf_load_report.reinitialized)


def test_reinitialize_draws_top_layers_and_pooler_of_a_model_with_something_on_top(bert):
    encoder = build_transformer_model(None, bert[0], with_pool=True, **SIZES)
    model = keras.Model(encoder.inputs, keras.layers.Dense(2, name="classifier")(encoder.output))
    before = values(model)
    changed = reinitialize(model, top_layers=1, pooler=True)
    after = values(model)
    assert changed == sorted(path for path in before if not np.array_equal(before[path], after[path]))
    assert {re.sub("(-Norm)?/.*", "", path) for path in changed} == {
        "Transformer-2-MultiHeadSelfAttention",
        "Transformer-2-FeedForward",
        "Pooler-Dense",
    }
    assert encoder.kcrf_load_report.reinitialized == set(changed)
    assert not encoder.kcrf_load_report.loaded & set(changed)
    assert reinitialize(model, pooler=True) == ["Pooler-Dense/bias", "Pooler-Dense/kernel"]
    with pytest.raises(ValueError, match="There must be a layer to re-initialize. Received: top_layers=0, pooler=None"):
        reinitialize(model)
    with pytest.raises(ValueError, match="Needs a model of `build_transformer_model`. Received: none with prefix=''"):
        reinitialize(keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]), top_layers=1)


def test_mixout_takes_the_loaded_kernels_as_prior_and_is_off_at_inference(bert):
    mixed = build_transformer_model(None, bert[0], with_pool=True, mixout=0.9, skip_top_layers=1, **SIZES)
    plain = build_transformer_model(None, bert[0], with_pool=True, skip_top_layers=1, **SIZES)
    layers = [layer for layer in mixed._flatten_layers() if isinstance(layer, MixoutDense)]
    assert len(layers) == 3 * 6 + 1
    for layer in layers:
        np.testing.assert_array_equal(*numbers([layer.prior, layer.kernel]))
    plain.set_weights([value for path, value in values(mixed).items() if not path.endswith(("prior", "state"))])
    expected, fresh = numbers(plain([TOKENS, SEGMENTS]))[0], numbers(mixed([TOKENS, SEGMENTS]))[0]
    assert_close(fresh, expected)
    assert_close(numbers(mixed([TOKENS, SEGMENTS], training=True))[0], expected)  # the prior is the kernel still
    for layer in layers:
        layer.kernel.assign(layer.kernel + 0.1)
    assert (
        np.abs(numbers(mixed([TOKENS, SEGMENTS], training=True))[0] - numbers(mixed([TOKENS, SEGMENTS]))[0]).max()
        > 0.01
    )


@pytest.mark.once
def test_mixout_stands_in_for_dropout_unless_both_are_asked_for():
    config = dict(return_keras_model=False, **SIZES)
    assert build_transformer_model(mixout=0.1, **config).config["dropout_rate"] == 0.0
    both = build_transformer_model(mixout=0.1, dropout_rate=0.2, **config).config
    assert both["dropout_rate"] == 0.2 and both["attention_dropout_rate"] == 0.0


@pytest.mark.once
def test_reinitialize_renews_the_prior_too(bert):
    model = build_transformer_model(None, bert[0], mixout=0.5, **SIZES)
    reinitialize(model, top_layers=1)
    after = values(model)
    path = "Transformer-2-FeedForward/output/"
    np.testing.assert_array_equal(after[path + "prior"], after[path + "kernel"])


@pytest.mark.once
@pytest.mark.parametrize("way", few("loaded", "reinitialized"))
def test_kernel_and_prior_have_memory_of_their_own(way, bert):
    """JAX hands the memory of every variable to a training step, which fails if two share it."""
    model = build_transformer_model(None, bert[0], mixout=0.5, **SIZES)
    before = values(model)
    if way == "reinitialized":
        reinitialize(model, top_layers=1)
        before = values(model)
    tagger = keras.Model(model.inputs, keras.layers.Dense(3, activation="softmax")(model.output))
    tagger.compile(keras.optimizers.Adam(1e-2), "sparse_categorical_crossentropy")
    for _ in range(2):
        tagger.train_on_batch([TOKENS, SEGMENTS], TOKENS % 3)
    after = values(model)
    path = "Transformer-2-FeedForward/output/"
    np.testing.assert_array_equal(after[path + "prior"], before[path + "prior"])
    assert np.abs(after[path + "kernel"] - before[path + "kernel"]).max() > 1e-3


@pytest.mark.once
def test_layers_that_are_skipped_in_a_second_checkpoint_are_drawn_anew(bert):
    model = build_transformer_model(None, bert[0], **SIZES)
    before = values(model)
    report = load_checkpoint(model, bert[0], skip_top_layers=1)
    after = values(model)
    kernels = [path for path in report.reinitialized if path.endswith("kernel")]
    assert kernels and not any(np.any(after[path] == before[path]) for path in kernels)
    for path in report.loaded:
        np.testing.assert_array_equal(after[path], before[path])
