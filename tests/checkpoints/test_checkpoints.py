"""Tests of kcrf.checkpoints.names, kcrf.checkpoints.tensor_bundle.

Checkpoints against TensorFlow, safetensors, torch and Hugging Face's layout, and against damage of every kind.
"""

import json
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from bundle_writer import ARRAYS, bundle_parts, field, same, table_crc32c, write_bundle, write_index

from kcrf.checkpoints import google_names, open_checkpoint, write_safetensors, write_tf_checkpoint
from kcrf.checkpoints.configs import encoder_settings
from kcrf.checkpoints.names import NAME_MAPS, huggingface_names, layer_owner
from kcrf.checkpoints.tensor_bundle import RawArray

BACKENDS = ["torch"]

# ---- TensorFlow's format


@pytest.mark.parametrize("blocks", [1, 2, 5])
@pytest.mark.parametrize("ending", ["", ".index", ".data-00000-of-00001", "folder"])
def test_a_bundle_gives_its_arrays_without_tensorflow(tmp_path, blocks, ending):
    write_bundle(tmp_path / "bert_model.ckpt", ARRAYS, blocks)
    path = tmp_path if ending == "folder" else f"{tmp_path}/bert_model.ckpt{ending}"
    same(open_checkpoint(path), ARRAYS)


def test_arrays_longer_than_one_part_are_read_and_checked_while_they_come(tmp_path):
    big = np.random.default_rng(0).integers(0, 2**31, 700_001).astype("int32")
    write_safetensors(tmp_path / "model.safetensors", {"big": big})
    file = tmp_path / "model.safetensors"
    entry = RawArray(
        file, file.stat().st_size - big.nbytes, big.nbytes, "int32", big.shape, table_crc32c(big.tobytes())
    )
    assert np.array_equal(entry.read(), big)
    damaged = bytearray(file.read_bytes())
    damaged[-1_500_000] ^= 1
    file.write_bytes(damaged)
    with pytest.raises(ValueError, match="model.safetensors: corrupt between bytes"):
        entry.read()


def test_arrays_come_in_memory_that_a_backend_can_take_over(tmp_path):
    write_bundle(tmp_path / "x", {f"{size}": np.arange(size, dtype="float32") for size in range(1, 40)})
    checkpoint = open_checkpoint(tmp_path / "x")
    arrays = [checkpoint[name] for name in checkpoint]
    assert all(array.ctypes.data % 64 == 0 and array.flags.writeable and array.flags.c_contiguous for array in arrays)


def test_moments_and_counters_of_the_optimizer_are_left_out(tmp_path):
    slots = ("a/kernel/adam_m", "a/kernel/adam_v", "a/kernel/lamb_m", "a/kernel/Adam", "a/kernel/Adam_1", "global_step")
    slots += ("beta1_power", "a/kernel/AdamWeightDecayOptimizer_1", "a/kernel/shadow", "loss_scale", "good_steps")
    kept = ("a/kernel", "adam_model/kernel", "bert/Adam/kernel", "a/shadow_kernel")
    write_bundle(tmp_path / "x", {name: np.zeros(2, "float32") for name in slots + kept})
    assert sorted(open_checkpoint(tmp_path / "x")) == sorted(kept)


def test_bytes_are_read_when_an_array_is_asked_for_and_not_before(tmp_path):
    write_bundle(tmp_path / "x", ARRAYS)
    checkpoint = open_checkpoint(tmp_path / "x")
    assert checkpoint.shape("bert/embeddings/word_embeddings") == (7, 4)
    assert "bert/pooler/dense/bias" in checkpoint and checkpoint.get("none") is None and checkpoint.bytes_read == 0
    checkpoint["bert/pooler/dense/bias"]
    assert checkpoint.bytes_read == 6
    google = google_names(checkpoint)
    assert google.shape("bert/embeddings/word_embeddings") == (7, 4) and "none" not in google
    assert checkpoint.bytes_read == 6
    google["bert/embeddings/word_embeddings"]
    assert checkpoint.bytes_read == 6 + 7 * 4 * 4


def test_an_index_without_its_data_tells_names_and_shapes_and_which_file_is_missing(tmp_path):
    write_bundle(tmp_path / "x", ARRAYS)
    (tmp_path / "x.data-00000-of-00001").unlink()
    checkpoint = open_checkpoint(tmp_path / "x")
    assert checkpoint.shape("bert/pooler/dense/bias") == (3,)
    with pytest.raises(
        FileNotFoundError, match=r"x.data-00000-of-00001: no such file, expected a part of the checkpoint"
    ):
        checkpoint["bert/pooler/dense/bias"]
    with pytest.raises(KeyError, match="x: no array 'y' among the 6 there"):
        checkpoint["y"]


def test_the_tiny_google_checkpoint_equals_what_tensorflow_reads(shared_data):
    tensorflow = pytest.importorskip("tensorflow")
    folder = shared_data / "checkpoints/tiny_google_bert"
    reader = tensorflow.train.load_checkpoint(str(folder / "bert_model.ckpt"))
    names = [n for n in reader.get_variable_to_shape_map() if not n.endswith(("adam_m", "adam_v", "global_step"))]
    assert len(names) == 46
    same(open_checkpoint(folder), {name: reader.get_tensor(name) for name in names})


def expected_shapes(config, vocabulary, layers, hidden):
    wide = config["intermediate_size"]
    shapes = {"bert/embeddings/word_embeddings": (vocabulary, hidden), "bert/embeddings/LayerNorm/beta": (hidden,)}
    shapes["bert/embeddings/position_embeddings"] = (config["max_position_embeddings"], hidden)
    shapes |= {"bert/embeddings/token_type_embeddings": (2, hidden), "bert/embeddings/LayerNorm/gamma": (hidden,)}
    for i in range(layers):
        layer = f"bert/encoder/layer_{i}"
        for part in ("attention/self/query", "attention/self/key", "attention/self/value", "attention/output/dense"):
            shapes |= {f"{layer}/{part}/kernel": (hidden, hidden), f"{layer}/{part}/bias": (hidden,)}
        shapes |= {f"{layer}/intermediate/dense/kernel": (hidden, wide), f"{layer}/intermediate/dense/bias": (wide,)}
        shapes |= {f"{layer}/output/dense/kernel": (wide, hidden), f"{layer}/output/dense/bias": (hidden,)}
        for norm in ("attention/output", "output"):
            shapes |= {f"{layer}/{norm}/LayerNorm/{part}": (hidden,) for part in ("beta", "gamma")}
    shapes |= {"bert/pooler/dense/kernel": (hidden, hidden), "bert/pooler/dense/bias": (hidden,)}
    shapes |= {f"cls/predictions/transform/LayerNorm/{part}": (hidden,) for part in ("beta", "gamma")}
    shapes |= {
        "cls/predictions/transform/dense/kernel": (hidden, hidden),
        "cls/predictions/transform/dense/bias": (hidden,),
    }
    shapes |= {"cls/predictions/output_bias": (vocabulary,), "cls/seq_relationship/output_weights": (2, hidden)}
    return shapes | {"cls/seq_relationship/output_bias": (2,)}


@pytest.mark.parametrize("folder", ["chinese_wwm_L-12_H-768_A-12", "uncased_L-8_H-512_A-8"])
def test_real_indexes_have_every_name_of_the_map_in_the_shape_of_their_config(shared_data, folder):
    folder = shared_data / "checkpoints/index_only" / folder
    config = json.loads((folder / "bert_config.json").read_text())
    checkpoint = google_names(open_checkpoint(folder), "bert")
    layers = config["num_hidden_layers"]
    shapes = expected_shapes(config, config["vocab_size"], layers, config["hidden_size"])
    assert {name: checkpoint.shape(name) for name in checkpoint} == shapes
    mapped = {google.format(i) for google, _, _ in NAME_MAPS["bert"] for i in range(layers)}
    assert mapped == set(shapes)


def test_the_index_of_an_early_albert_has_every_name_of_the_map_but_one_bias(shared_data):
    folder = shared_data / "checkpoints/index_only/albert_tiny_zh"
    checkpoint = google_names(open_checkpoint(folder), "albert")
    mapped = {google for google, _, _ in NAME_MAPS["albert"]}
    assert mapped - set(checkpoint) == {"bert/encoder/embedding_hidden_mapping_in/bias"}
    assert set(checkpoint) <= mapped
    block = "bert/encoder/transformer/group_0/inner_group_0"
    assert checkpoint.shape(f"{block}/attention_1/self/query/kernel") == (312, 312)
    assert checkpoint.shape(f"{block}/ffn_1/intermediate/dense/kernel") == (312, 1248)
    assert checkpoint.shape(f"{block}/ffn_1/intermediate/output/dense/kernel") == (1248, 312)
    assert checkpoint.shape("bert/encoder/embedding_hidden_mapping_in/kernel") == (128, 312)
    assert checkpoint.source(f"{block}/LayerNorm_1/beta") == "bert/encoder/layer_shared/output/LayerNorm/beta"


def test_what_tensorflow_writes_is_read_and_what_is_written_tensorflow_reads(tmp_path):
    tensorflow = pytest.importorskip("tensorflow")
    arrays = {**ARRAYS, **{f"many/{i}": np.full((i % 3, 2), i, "float32") for i in range(300)}}
    write_tf_checkpoint(tmp_path / "new" / "bert_model.ckpt", arrays)
    assert sorted(file.name for file in (tmp_path / "new").iterdir()) == [
        "bert_model.ckpt.data-00000-of-00001",
        "bert_model.ckpt.index",
    ]
    same(open_checkpoint(tmp_path / "new"), arrays)
    write_bundle(tmp_path / "mine", ARRAYS)
    reader = tensorflow.train.load_checkpoint(str(tmp_path / "mine"))
    assert all(np.array_equal(reader.get_tensor(name), array) for name, array in ARRAYS.items())
    brain = tensorflow.constant([1.5, -3.0], "bfloat16")
    tensorflow.raw_ops.SaveV2(prefix=f"{tmp_path}/b", tensor_names=["x"], shape_and_slices=[""], tensors=[brain])
    assert open_checkpoint(tmp_path / "b")["x"].tolist() == [1.5, -3.0]


@pytest.mark.parametrize(
    ("options", "received"),
    [
        ({"extra": {"empty": field(7, field(1, b"") * 2)}}, "'empty', which is partitioned"),
        ({"header": field(2, 1)}, "big-endian numbers"),
    ],
)
def test_what_only_tensorflow_reads_is_refused_with_the_way_out(tmp_path, options, received):
    write_bundle(tmp_path / "x", ARRAYS, **options)
    with pytest.raises(ValueError, match=f"x.index: needs whole arrays .* save it again. Received: {received}"):
        open_checkpoint(tmp_path / "x")


def test_strings_are_left_out_and_compressed_indexes_and_unknown_types_refused(tmp_path):
    pairs, data = bundle_parts(ARRAYS)
    (tmp_path / "x.data-00000-of-00001").write_bytes(data)
    write_index(tmp_path / "x", [*pairs, (b"words", field(1, 7) + field(2, field(2, field(1, 3))) + field(5, 9))])
    same(open_checkpoint(tmp_path / "x"), ARRAYS)
    write_index(tmp_path / "x", [*pairs, (b"words", field(1, 12))])
    with pytest.raises(ValueError, match="x.index: corrupt, .* Received: data type 12, expected a number type"):
        open_checkpoint(tmp_path / "x")
    write_index(tmp_path / "x", pairs, kind=b"\1")
    with pytest.raises(ValueError, match="x.index: a compressed index, expected .* Load the checkpoint in TensorFlow"):
        open_checkpoint(tmp_path / "x")


def test_object_based_checkpoints_are_refused_with_the_way_out(tmp_path):
    write_bundle(
        tmp_path / "x", {"model/layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE": np.zeros(2, "float32")}
    )
    with pytest.raises(
        ValueError, match=r"x.index: an object-based checkpoint of TensorFlow 2, .*write_safetensors under"
    ):
        open_checkpoint(tmp_path / "x")


# ---- safetensors and torch


def test_safetensors_are_written_for_the_library_and_read_from_it(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    write_safetensors(tmp_path / "model.safetensors", ARRAYS)
    same(open_checkpoint(tmp_path), ARRAYS)
    loaded = library.load_file(tmp_path / "model.safetensors")
    assert all(
        np.array_equal(loaded[name], array) and loaded[name].dtype == array.dtype for name, array in ARRAYS.items()
    )
    library.save_file(ARRAYS, tmp_path / "other.safetensors", {"note": "x"})
    same(open_checkpoint(tmp_path / "other.safetensors"), ARRAYS)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.safetensors", "other.safetensors"]


def test_safetensors_in_shards_and_in_bfloat16(tmp_path):
    names = list(ARRAYS)
    write_safetensors(tmp_path / "model-1.safetensors", {name: ARRAYS[name] for name in names[:2]})
    write_safetensors(tmp_path / "model-2.safetensors", {name: ARRAYS[name] for name in names[2:]})
    parts = {name: f"model-{1 + (place > 1)}.safetensors" for place, name in enumerate(names)}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": parts}))
    same(open_checkpoint(tmp_path), ARRAYS)
    parts["lost"] = "model-1.safetensors"
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": parts}))
    with pytest.raises(
        ValueError, match="index.json: 'lost' is not in model-1.safetensors, expected all that the index"
    ):
        open_checkpoint(tmp_path)
    (tmp_path / "model-2.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="model-2.safetensors: no such file"):
        open_checkpoint(tmp_path)
    raw_safetensors(tmp_path / "b.safetensors", {"x": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}, 6)
    data = (tmp_path / "b.safetensors").read_bytes()[:-6] + bytes.fromhex("c03f 40c0 807f".replace(" ", ""))
    (tmp_path / "b.safetensors").write_bytes(data)
    assert open_checkpoint(tmp_path / "b.safetensors")["x"].tolist() == [1.5, -3.0, float("inf")]


def raw_safetensors(path, header, size):
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(size))


OF_TWO = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("header", "size"),
    [
        ({"x": OF_TWO}, 7),
        ({"x": OF_TWO}, 9),
        ({"x": {**OF_TWO, "shape": [3]}}, 8),
        ({"x": {**OF_TWO, "shape": [-2]}}, 8),
        ({"x": {**OF_TWO, "data_offsets": [4, 12]}}, 12),
        ({"x": OF_TWO, "y": OF_TWO}, 8),
        ({"x": {"dtype": "F32", "shape": [2]}}, 8),
        ({"x": 3}, 8),
        ("[1]", 0),
        ("{", 0),
    ],
)
def test_safetensors_that_contradict_themselves_are_refused(tmp_path, header, size):
    raw_safetensors(tmp_path / "m.safetensors", header, size)
    with pytest.raises(ValueError, match="m.safetensors: truncated or corrupt, expected a safetensors file. Received"):
        open_checkpoint(tmp_path / "m.safetensors")


def test_safetensors_of_a_type_that_numpy_lacks_are_refused(tmp_path):
    raw_safetensors(tmp_path / "m.safetensors", {"x": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}, 2)
    with pytest.raises(ValueError, match="m.safetensors: 'x' is F8_E4M3, expected one of"):
        open_checkpoint(tmp_path / "m.safetensors")


@pytest.mark.parametrize("old", [False, True])
def test_torch_files_are_read_weights_only(tmp_path, old):
    torch = pytest.importorskip("torch")
    weights = {"bert.pooler.dense.weight": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1.5, -3.0]).bfloat16()}
    weights["c"] = weights["bert.pooler.dense.weight"][1:]  # shares its storage
    file = tmp_path / "pytorch_model.bin"
    torch.save(weights, file, _use_new_zipfile_serialization=not old)
    checkpoint = open_checkpoint(tmp_path)
    assert checkpoint["b"].tolist() == [1.5, -3.0] and checkpoint["b"].dtype == "float32"
    assert checkpoint["c"].tolist() == [[3, 4, 5]] and checkpoint.bytes_read == 4 + 4 + 12
    assert google_names(checkpoint)["bert/pooler/dense/kernel"].tolist() == [[0, 3], [1, 4], [2, 5]]
    torch.save({"state_dict": weights}, file)
    assert set(open_checkpoint(file)) == set(weights)
    torch.save({"x": 3}, file)
    with pytest.raises(ValueError, match="pytorch_model.bin: no tensors, expected a dict from names to tensors"):
        open_checkpoint(file)
    torch.save({"x": Path("x")}, file)
    with pytest.raises(ValueError, match="pytorch_model.bin: not readable as weights, expected a file of torch.save"):
        open_checkpoint(file)


def test_torch_files_in_shards_are_one_checkpoint(tmp_path):
    torch = pytest.importorskip("torch")
    for part in "ab":
        torch.save({part: torch.ones(2)}, tmp_path / f"{part}.bin")
    index = {"weight_map": {"a": "a.bin", "b": "b.bin"}}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    assert (
        sorted(open_checkpoint(tmp_path))
        == sorted(open_checkpoint(tmp_path / "pytorch_model.bin.index.json"))
        == ["a", "b"]
    )


def test_without_torch_the_error_names_it(tmp_path, monkeypatch):
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"a .bin file needs the package torch, .*pip install 'kcrf\[torch\]'"):
        open_checkpoint(tmp_path)


def test_without_tensorflow_writing_its_format_names_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(
        ImportError, match=r"write_tf_checkpoint needs the package tensorflow, .*pip install 'kcrf\[tensorflow\]'"
    ):
        write_tf_checkpoint(tmp_path / "x", ARRAYS)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    write_safetensors(tmp_path / "m.safetensors", {"x": np.ones(2)})
    with pytest.raises(ValueError, match=r"m.safetensors: safetensors holds .*float32.*. Received: x: complex128"):
        write_safetensors(tmp_path / "m.safetensors", {"y": np.ones(2), "x": np.ones(2, complex)})
    with pytest.raises(TypeError):
        write_safetensors(tmp_path / "m.safetensors", {"y": np.ones(2)}, metadata={"x": object()})
    same(open_checkpoint(tmp_path / "m.safetensors"), {"x": np.ones(2)})
    assert [file.name for file in tmp_path.iterdir()] == ["m.safetensors"]


@pytest.mark.parametrize(
    ("files", "path", "error", "message"),
    [
        ([], "none", FileNotFoundError, "none: no checkpoint here, expected a file, a folder or a prefix of .index"),
        (["a.txt"], "", FileNotFoundError, r"no checkpoint in this folder, expected \*.safetensors.*: a.txt"),
        (["a.index", "b.index"], "", ValueError, "several checkpoints, name one of them. Received: a.index, b.index"),
        (
            ["a.h5"],
            "a.h5",
            ValueError,
            "a.h5: not a checkpoint, expected .safetensors, .bin, .pt or a TensorFlow prefix",
        ),
        (["a.index"], "a", ValueError, "a.index: truncated or no TensorFlow checkpoint, expected 0xdb4775248b80fb57"),
        (["a.safetensors"], "", ValueError, "a.safetensors: truncated or corrupt, expected a safetensors"),
    ],
)
def test_what_is_no_checkpoint_says_so(tmp_path, files, path, error, message):
    for file in files:
        (tmp_path / file).write_bytes(b"")
    with pytest.raises(error, match=message):
        open_checkpoint(tmp_path / path)


# ---- Names


@pytest.mark.parametrize("model", list(NAME_MAPS))
def test_names_go_to_hugging_face_and_back_with_their_values(model):
    rng = np.random.default_rng(0)
    googles = dict.fromkeys(google.format(layer) for google, _, _ in NAME_MAPS[model] for layer in (1, 10))
    arrays = {name: rng.normal(size=(2, 3) if name.endswith("kernel") else 2) for name in googles}
    theirs = huggingface_names(arrays, model)
    assert len(theirs) == len(arrays) and not any("/" in name for name in theirs)
    back = google_names(theirs, model)
    assert set(back) == set(arrays)
    assert all(np.array_equal(back[name], array) for name, array in arrays.items())
    assert all(back.shape(name) == array.shape for name, array in arrays.items())
    kernels = [name for name in theirs if theirs[name].shape == (3, 2)]
    assert kernels and all(name.endswith(".weight") for name in kernels)


@pytest.mark.parametrize(
    ("model", "theirs", "google"),
    [
        (
            "bert",
            "bert.encoder.layer.10.attention.self.query.weight",
            "bert/encoder/layer_10/attention/self/query/kernel",
        ),
        ("bert", "encoder.layer.1.output.LayerNorm.weight", "bert/encoder/layer_1/output/LayerNorm/gamma"),
        ("bert", "bert.embeddings.LayerNorm.gamma", "bert/embeddings/LayerNorm/gamma"),
        ("bert", "bert.embeddings.LayerNorm.beta", "bert/embeddings/LayerNorm/beta"),
        ("bert", "module.bert.pooler.dense.bias", "bert/pooler/dense/bias"),
        ("bert", "cls.predictions.bias", "cls/predictions/output_bias"),
        ("bert", "cls.seq_relationship.weight", "cls/seq_relationship/output_weights"),
        ("roberta", "bert.embeddings.word_embeddings.weight", "bert/embeddings/word_embeddings"),
        ("nezha", "nezha.encoder.layer.0.output.dense.bias", "bert/encoder/layer_0/output/dense/bias"),
        ("electra", "electra.embeddings_project.weight", "electra/embeddings_project/kernel"),
        ("electra", "discriminator_predictions.dense_prediction.bias", "discriminator_predictions/dense_1/bias"),
        ("albert", "albert.pooler.weight", "bert/pooler/dense/kernel"),
        ("albert", "predictions.bias", "cls/predictions/output_bias"),
        (
            "albert",
            "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn_output.weight",
            "bert/encoder/transformer/group_0/inner_group_0/ffn_1/intermediate/output/dense/kernel",
        ),
        (
            "albert",
            "encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm.bias",
            "bert/encoder/transformer/group_0/inner_group_0/LayerNorm_1/beta",
        ),
        ("bert", "classifier.weight", "classifier.weight"),
        ("bert", "bert/encoder/layer_3/output/dense/kernel", "bert/encoder/layer_3/output/dense/kernel"),
    ],
)
def test_names_of_hugging_face_have_these_names_of_google(model, theirs, google):
    assert list(google_names({theirs: np.zeros(2)}, model)) == [google]


def test_tied_copies_and_buffers_are_left_out():
    tied = ("embeddings.position_ids", "cls.predictions.decoder.weight", "predictions.decoder.bias")
    assert list(google_names(dict.fromkeys((*tied, "pooler.dense.bias"), np.zeros(2)))) == ["bert/pooler/dense/bias"]
    with pytest.raises(ValueError, match=r"`model` is one of bert, roberta, ernie, .* Received: model='brt'"):
        google_names({}, "brt")


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("bert/encoder/layer_1/output/dense/kernel", 1),
        ("bert/encoder/layer_10/output/dense/kernel", 10),
        ("encoder.layer.11.attention.self.key.bias", 11),
        ("bert/encoder/transformer/group_0/inner_group_0/LayerNorm/beta", "shared"),
        ("albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.weight", "shared"),
        ("bert/encoder/layer_shared/output/dense/bias", "shared"),
        ("bert/embeddings/LayerNorm/beta", "embeddings"),
        ("embeddings.word_embeddings.weight", "embeddings"),
        ("electra/embeddings_project/kernel", "embeddings"),
        ("bert/encoder/embedding_hidden_mapping_in/kernel", "embeddings"),
        ("bert/pooler/dense/kernel", "pooler"),
        ("albert.pooler.weight", "pooler"),
        ("cls/predictions/transform/dense/kernel", "head"),
        ("classifier.weight", "head"),
    ],
)
def test_every_name_has_an_owner(name, owner):
    assert layer_owner(name) == owner


@pytest.mark.parametrize(
    "name, size", [("vocab_size", 2 * 10**9), ("hidden_size", 1 << 20), ("num_hidden_layers", 10**6)]
)
def test_sizes_that_no_model_has_are_refused_before_memory_is_allocated(name, size):
    config = {
        "vocab_size": 9,
        "hidden_size": 4,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8,
    }
    with pytest.raises(ValueError, match=f"the configuration: {name} must be at most .* Received: {size:,}"):
        encoder_settings({**config, name: size}, "bert", {})
