"""kcrf.models.loading: What loading a checkpoint reads, reports and refuses."""

import json
import shutil

import numpy as np
import pytest
from bert4keras_host import bert4keras_python  # noqa: F401
from tiny_encoders import SEGMENTS, SIZES, TOKENS, assert_close, bert, checkpoint, numbers, random_weights, values

from kcrf.backend import keras, tensor_from_numpy
from kcrf.checkpoints import google_names, open_checkpoint, write_safetensors
from kcrf.checkpoints.open import Checkpoint
from kcrf.models import (
    build_transformer_model,
    save_weights_as_checkpoint,
    variable_mapping,
)
from kcrf.models.loading import _CheckpointArrays


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


@pytest.mark.slow
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
    for tokens, name, count, received in (
        ({"keep_tokens": [0, 23]}, "keep_tokens", 23, "23"),
        ({"keep_tokens": [0, -1]}, "keep_tokens", 23, "-1"),
        ({"compound_tokens": [[5, 99]]}, "compound_tokens", 23, "99"),
        ({"compound_tokens": [[]]}, "compound_tokens", 23, "no token"),
        ({"keep_tokens": [0, 7], "compound_tokens": [[2]]}, "compound_tokens", 2, "2"),
    ):
        message = f"`{name}` must be at least 0 and below {count}, the tokens there. Received: {received}"
        with pytest.raises(ValueError, match=message):
            build_transformer_model(None, bert[0], **tokens, **SIZES)
    for mask in ([True, False], np.arange(23) < 5):
        with pytest.raises(ValueError, match="`keep_tokens` must be ids of tokens, ints, not a mask. Received: True"):
            build_transformer_model(None, bert[0], keep_tokens=mask, **SIZES)


@pytest.mark.once
def test_quantized_weights_are_refused(bert, tmp_path):
    name = "bert/encoder/layer_0/attention/self/query/kernel"
    write_safetensors(tmp_path / "int8.safetensors", {**bert[1], name: np.ones(bert[1][name].shape, "int8")})
    with pytest.raises(ValueError, match=f"{name}: the weights .* must be floats, not quantized. Received: int8"):
        build_transformer_model(None, tmp_path / "int8.safetensors", **SIZES)


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
