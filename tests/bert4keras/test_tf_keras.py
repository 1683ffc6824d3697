"""kcrf.bert4keras.tf_keras: the CRF, the optimizers and the loading of checkpoints inside bert4keras, on tf_keras."""

import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import tensorflow as tf
from conftest import few
from numpy.testing import assert_allclose, assert_array_equal
from optimizer_oracles import adam, draw, google_bert, make_variables
from seeds import set_seeds

from kcrf import checkpoints
from kcrf.backend import keras, ops
from kcrf.bert4keras.crf_weights import load_crf_weights
from kcrf.bert4keras.models import (
    build_transformer_model,
    reinitialize,
    save_pretrained,
)
from kcrf.layers import ConditionalRandomField
from kcrf.optimizers import Adam, AdamWeightDecay, WarmupLinearDecay, layerwise_decay, variable_table

BACKENDS = ["tf_keras"]

WORDS = np.random.default_rng(1).integers(1, 20, (64, 9))
WORDS[np.arange(9) >= np.random.default_rng(2).integers(1, 10, (64, 1))] = 0  # right padding
TAGS = WORDS % 4
SIZES = {"vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 16}
SIZES |= {"hidden_act": "gelu", "max_position_embeddings": 16, "type_vocab_size": 2}


@pytest.fixture(scope="module")
def bert4keras():
    """The modules of bert4keras, whose imports use names that Python 3.11 deprecates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from bert4keras import layers, models, optimizers, snippets, tokenizers
    return type("Bert4keras", (), dict(layers=layers, models=models, optimizers=optimizers, snippets=snippets,
                                       tokenizers=tokenizers))  # fmt: skip


def tagger(layer):
    set_seeds(3)
    inputs = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(20, 8, mask_zero=True)(inputs)
    model = keras.Model(inputs, layer(keras.layers.Dense(4)(x)))
    layer.set_weights([np.random.default_rng(0).normal(size=(4, 4)) * 0.1])
    return model


def train(model, layer, epochs=13):
    model.compile(keras.optimizers.Adam(0.01, epsilon=1e-10), loss=layer.sparse_loss, metrics=[layer.sparse_accuracy])
    losses = []
    each = keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: losses.append(logs["loss"]))
    model.fit(WORDS, TAGS, batch_size=16, epochs=epochs, shuffle=False, verbose=0, callbacks=[each])
    return np.array(losses)


# The CRF


@pytest.mark.parametrize("k", few(100, 1, rest="slow"))
def test_a_run_is_that_of_bert4keras_loss_by_loss_and_its_tags_are_the_same(bert4keras, k):
    theirs, ours = bert4keras.layers.ConditionalRandomField(k), ConditionalRandomField(k)
    their_model, our_model = tagger(theirs), tagger(ours)
    expected, found = train(their_model, theirs), train(our_model, ours)
    assert len(found) == 52 and found[-1] < 0.5 * found[0]
    assert_allclose(found, expected, rtol=2e-4)
    assert_allclose(ops.convert_to_numpy(ours.trans), ops.convert_to_numpy(theirs.trans), rtol=1e-3, atol=1e-4)
    assert_allclose(*(model.evaluate(WORDS, TAGS, verbose=0) for model in (our_model, their_model)), rtol=1e-4)
    y_pred = their_model.predict(WORDS, verbose=0)
    decoder = bert4keras.snippets.ViterbiDecoder(trans=ops.convert_to_numpy(theirs.trans))
    tags = ops.convert_to_numpy(ours.decode(our_model.predict(WORDS, verbose=0)))
    for row, scores, words in zip(tags, y_pred, WORDS, strict=True):
        length = np.count_nonzero(words)
        assert row[:length].tolist() == list(decoder.decode(np.array(scores[:length])))


@pytest.mark.parametrize("file", few("best_model.weights", "best_model.h5", "best_model.weights.h5", rest="slow"))
def test_weights_that_a_bert4keras_script_saved_load_and_predict_the_same(bert4keras, tmp_path, file):
    theirs, ours, other = (
        bert4keras.layers.ConditionalRandomField(100, name="CRF"),
        *(ConditionalRandomField(k, name="CRF") for k in (100, 10)),
    )
    their_model, our_model = tagger(theirs), tagger(ours)
    train(their_model, theirs, epochs=3)
    their_model.save_weights(str(tmp_path / file))
    our_model.load_weights(str(tmp_path / file))
    assert_allclose(ops.convert_to_numpy(ours.trans), ops.convert_to_numpy(theirs.trans), rtol=1e-6)
    assert_array_equal(our_model.predict(WORDS, verbose=0), their_model.predict(WORDS, verbose=0))
    tagger(other)
    load_crf_weights(other, tmp_path / file, "bert4keras", lr_multiplier=100)  # the file does not tell the number
    assert_allclose(ops.convert_to_numpy(other.trans), ops.convert_to_numpy(theirs.trans), rtol=1e-5)
    with pytest.raises(ValueError, match="must say what bert4keras' layer was made with"):
        load_crf_weights(other, tmp_path / file, "bert4keras")


FIRST_IMPORTS = {  # what a script imports before anything of Keras; then `from keras...` must give tf_keras
    "kcrf.backend": "from kcrf.backend import keras, K",
    "kcrf.bert4keras.tokenizers": "from kcrf.bert4keras.tokenizers import Tokenizer",
    "bert4keras": "from bert4keras.backend import keras",
}
SWAPPED = """
from keras.layers import Dense, Input
from keras.models import Model
from kcrf.layers import ConditionalRandomField
crf = ConditionalRandomField()
model = Model(x := Input((None, 4)), crf(Dense(3)(x)))
print(type(model).__module__)
"""


@pytest.mark.slow
@pytest.mark.parametrize("first", FIRST_IMPORTS)
def test_after_the_first_import_keras_is_tf_keras(first):
    run = subprocess.run(
        [sys.executable, "-c", f"{FIRST_IMPORTS[first]}\n{SWAPPED}"], capture_output=True, text=True, env=os.environ
    )
    assert run.stdout.startswith("tf_keras."), run.stderr


@pytest.mark.slow
def test_keras_3_that_was_imported_before_is_named():
    run = subprocess.run([sys.executable, "-c", SWAPPED], capture_output=True, text=True, env=os.environ)
    assert "UserWarning: keras was imported before kcrf, and is Keras 3" in run.stderr


# The optimizers


def test_without_correction_it_is_google_berts_optimizer_and_an_embedding_has_the_norm_of_its_dense_gradient():
    start, gradients = draw(60)
    variables = make_variables(keras, start)
    optimizer = AdamWeightDecay(
        WarmupLinearDecay(1e-2, warmup=20, total=60, bert_jump=True), bias_correction=False, global_clipnorm=1.0
    )
    for batch in gradients:
        sliced = tf.IndexedSlices(np.repeat(batch[0] / 2, 2, axis=0), np.repeat(range(5), 2), (5, 3))
        optimizer.apply_gradients(zip([sliced, *map(tf.constant, batch[1:])], variables, strict=True))
    wanted = google_bert(start, gradients, lambda step: 1e-2 * (step / 20 if step < 20 else 1 - step / 60))
    for variable, path in zip(variables, start, strict=True):
        assert_allclose(variable.numpy(), wanted[path], rtol=1e-5, atol=1e-5, err_msg=path)


def test_adam_follows_the_formula_and_what_needs_keras_3_is_refused():
    start, gradients = draw(6)
    variables, optimizer = make_variables(keras, start), Adam(1e-3, lr_multipliers={"CRF|Norm": 100})
    for batch in gradients:
        optimizer.apply_gradients(zip(map(tf.constant, batch), variables, strict=True))
    factors = {path: 100 if "CRF" in path or "Norm" in path else 1 for path in start}
    wanted = adam(start, gradients, lambda step: 1e-3, factors=factors)[-1]
    for variable, path in zip(variables, start, strict=True):
        assert_allclose(variable.numpy(), wanted[path], rtol=1e-5, atol=1e-5, err_msg=path)
    for option in ({"use_ema": True}, {"gradient_accumulation_steps": 2}):
        with pytest.raises(ValueError, match="need Keras 3"):
            Adam(1e-3, **option)


# Models


def weights_of(transformer):
    return {f"{name}/{n}": value for name, layer in transformer.layers.items() if isinstance(layer, keras.layers.Layer)
            for n, value in enumerate(layer.get_weights())}  # fmt: skip


@pytest.fixture(scope="module")
def bert(bert4keras, tmp_path_factory):
    """A folder with a small BERT in three formats, and its hidden states by bert4keras' own loading."""
    folder = tmp_path_factory.mktemp("bert")
    (folder / "bert_config.json").write_text(json.dumps(SIZES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        transformer = bert4keras.models.build_transformer_model(with_pool=True, return_keras_model=False, **SIZES)
        rng, arrays = np.random.default_rng(5), {}
        for layer, names in transformer.variable_mapping().items():
            for name, variable in zip(names, transformer.layers[layer].trainable_weights if layer in transformer.layers
                                      else ()):  # fmt: skip
                arrays[name] = rng.normal(size=variable.shape).astype("float32") * 0.5
        checkpoints.write_tf_checkpoint(folder / "bert_model.ckpt", arrays)
        checkpoints.write_safetensors(folder / "google.safetensors", arrays)
        checkpoints.write_safetensors(folder / "hf.safetensors", checkpoints.huggingface_names(arrays, "bert"))
        transformer.load_weights_from_checkpoint(str(folder / "bert_model.ckpt"))
    tokens = WORDS[:4]
    return folder, weights_of(transformer), (tokens, transformer.model.predict([tokens, tokens * 0], verbose=0))


@pytest.mark.parametrize("file", ["bert_model.ckpt", "google.safetensors", "hf.safetensors"])
def test_every_format_gives_what_bert4keras_loads_itself(bert, file, capsys):
    folder, _, (tokens, expected) = bert
    model = build_transformer_model(folder / "bert_config.json", folder / file, with_pool=True)
    assert_allclose(model.predict([tokens, tokens * 0], verbose=0), expected, rtol=1e-5, atol=1e-6)
    assert len(model.kcrf_load_report.loaded) == len(model.trainable_weights) and not model.kcrf_load_report.unused
    assert f"{len(model.trainable_weights)} loaded, 0 reinitialized" in capsys.readouterr().out


@pytest.mark.slow
def test_an_encoder_of_bert4keras_is_written_for_hugging_face_and_read_again(bert, tmp_path):
    folder, _, (tokens, expected) = bert
    model = build_transformer_model(folder / "bert_config.json", folder / "bert_model.ckpt", with_pool=True)
    save_pretrained(model, tmp_path, vocab=["[PAD]"])
    assert json.loads((tmp_path / "config.json").read_text())["num_hidden_layers"] == 3
    again = build_transformer_model(tmp_path, tmp_path / "model.safetensors", with_pool=True)
    assert_allclose(again.predict([tokens, tokens * 0], verbose=0), expected, rtol=1e-5, atol=1e-6)
    changed = reinitialize(again, top_layers=1)
    assert all(path.startswith(("Transformer-2-", "Pooler-Dense/")) for path in changed) and len(changed) == 18
    assert np.abs(again.predict([tokens, tokens * 0], verbose=0) - expected).max() > 0.01


def test_skipped_layers_are_fresh_and_each_kernel_is_its_own(bert):
    folder, stored, _ = bert
    transformer = build_transformer_model(
        folder / "bert_config.json", folder / "bert_model.ckpt", with_pool=True, return_keras_model=False,
        skip_top_layers=1, skip="word_embeddings",
    )  # fmt: skip
    fresh = {name for name, value in weights_of(transformer).items() if not np.array_equal(value, stored[name])}
    assert {name.split("/")[0] for name in fresh} == {
        "Transformer-2-MultiHeadSelfAttention", "Transformer-2-MultiHeadSelfAttention-Norm", "Pooler-Dense",
        "Transformer-2-FeedForward", "Transformer-2-FeedForward-Norm", "Embedding-Token",
    }  # fmt: skip
    query, query_bias, key, *_ = transformer.layers["Transformer-2-MultiHeadSelfAttention"].get_weights()
    assert np.abs(query - key).max() > 0.01 and np.abs(query).max() <= 0.04 and not query_bias.any()
    report = transformer.model.kcrf_load_report
    assert len(report.reinitialized) == len(fresh) and "bert/pooler/dense/kernel" in report.skipped
    origins = {row["path"]: row["origin"] for row in variable_table(transformer.model, Adam())}
    assert origins["Embedding-Token/embeddings"] == "re-initialized" and origins["Embedding-Norm/gamma"] == "loaded"


def test_a_model_without_checkpoint_has_kernels_of_its_own_too(bert):
    transformer = build_transformer_model(bert[0] / "bert_config.json", return_keras_model=False)
    query, _, key, *_ = transformer.layers["Transformer-0-MultiHeadSelfAttention"].get_weights()
    assert np.abs(query - key).max() > 0.01


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mixout": 0.5}, "mixout need Keras 3: bert4keras builds the model here"),
        ({"skip_top_layers": 4}, "The encoder has 3 layers. Received: 4 top layers"),
        ({"model": "gpt", "skip_top_layers": 1}, "`skip` and its like need a model of .*bert.* Received: model='gpt'"),
        ({"checkpoint_path": None, "skip": "Norm"}, "need a checkpoint"),
        ({"skip": "LayerNorm_9"}, "`skip` must match something"),
        ({"layer_norm_eps": 1e-5}, "layer_norm_eps=1e-12 alone. Received: 1e-05"),
        ({"model": "distilbert"}, "bert4keras has no distilbert"),
    ],
)
def test_what_cannot_work_is_refused(bert, arguments, message):
    with pytest.raises(ValueError, match=message):
        given = {"checkpoint_path": bert[0] / "bert_model.ckpt", **arguments}
        build_transformer_model(bert[0] / "bert_config.json", **given)


@pytest.mark.slow
def test_a_whole_script_of_both_packages_learns(bert4keras, bert):
    set_seeds(3)
    folder = bert[0]
    numerals = list("一二三四五六七八九十")
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *numerals]
    tokenizer = bert4keras.tokenizers.Tokenizer(dict(zip(tokens, range(len(tokens)))))
    texts = ["".join(np.random.default_rng(i).choice(numerals, 3 + i % 4)) for i in range(32)]

    class Generator(bert4keras.snippets.DataGenerator):
        def __iter__(self, random=False):
            ids, tags = [], []
            for is_end, text in self.sample(random):
                token_ids, _ = tokenizer.encode(text)
                ids.append(token_ids)
                tags.append([token % 4 for token in token_ids])
                if len(ids) == self.batch_size or is_end:
                    ids, tags = (bert4keras.snippets.sequence_padding(x) for x in (ids, tags))
                    yield [ids, np.zeros_like(ids)], tags
                    ids, tags = [], []

    encoder = build_transformer_model(folder / "bert_config.json", folder / "bert_model.ckpt", skip_top_layers=1)
    layer = ConditionalRandomField(lr_multiplier=10, name="CRF")
    model = keras.Model(encoder.input, layer(keras.layers.Dense(4, name="Tags")(encoder.output)))
    rates = {**layerwise_decay(model, 0.9), "Tags": 3}
    model.compile(AdamWeightDecay(0.01, lr_multipliers=rates, prior_weight_decay_rate=0.01, prior_variables=model,
                                  global_clipnorm=1.0), layer.sparse_loss, [layer.sparse_accuracy])  # fmt: skip
    data = Generator(texts, 8)
    losses = model.fit(data.forfit(), steps_per_epoch=len(data), epochs=25, verbose=0).history["loss"]
    assert losses[-1] < 0.6 * losses[0]


def test_bert4keras_own_optimizers_fail_where_ours_train(bert4keras):
    with pytest.raises(Exception, match="_set_hyper"):
        bert4keras.optimizers.extend_with_weight_decay(bert4keras.optimizers.Adam)(learning_rate=1e-3)


# Imports

SCRIPT = """
import sys
first, second = sys.argv[1:]
__import__(first, fromlist=["x"]), __import__(second, fromlist=["x"])
from bert4keras.backend import K, keras
from kcrf.backend import K as ours, ops
from kcrf.layers import ConditionalRandomField
import keras as by_name
assert ours is K and by_name.layers.Dense is keras.layers.Dense
print(float(ops.sum([1.0, 2.0])), K.eval(K.ones(()) + 1), issubclass(ConditionalRandomField, by_name.layers.Layer))
"""


@pytest.mark.parametrize(
    "switch",
    few({"TF_KERAS": "1", "TF_USE_LEGACY_KERAS": "1"}, {"TF_KERAS": "1"}, rest="slow"),
)
@pytest.mark.parametrize(
    "order",
    [
        pytest.param(("kcrf.bert4keras", "bert4keras.layers"), marks=pytest.mark.slow),
        ("bert4keras.layers", "kcrf.bert4keras"),
    ],
)
def test_any_order_of_imports_gives_one_keras_and_no_warnings(order, switch):
    if order[0] == "bert4keras.layers" and len(switch) == 1:
        pytest.skip("without TF_USE_LEGACY_KERAS bert4keras itself fails, unless kcrf is imported first")
    clean = {k: v for k, v in os.environ.items() if k not in ("TF_KERAS", "TF_USE_LEGACY_KERAS", "KERAS_BACKEND")}
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning:bert4keras", "-c", SCRIPT, *order]
    done = subprocess.run(command, env=clean | switch, capture_output=True, text=True)
    assert done.stdout.split() == ["3.0", "2.0", "True"], done.stderr[-2000:]
    assert "Warning" not in done.stderr
