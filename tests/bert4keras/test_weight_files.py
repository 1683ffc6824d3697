"""Tests of kcrf.bert4keras.crf_weights, kcrf.bert4keras.models.

Weight files of Keras 2, read without TensorFlow. test_crf_weights.py and test_porting.py have real ones.
"""

import sys

import numpy as np
import pytest
from bundle_writer import bundle_parts, write_bundle, write_index

from kcrf.backend import keras, ops, path_of
from kcrf.bert4keras.crf_weights import load_crf_weights
from kcrf.bert4keras.models import load_bert4keras_weights
from kcrf.bert4keras.weights import read_arrays, read_layers
from kcrf.layers import ConditionalRandomField, SetLearningRate
from kcrf.layers.dense import MixoutDense

SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
TRANSITIONS = np.arange(16, dtype="float32").reshape(4, 4)
ARRAYS = {
    f"layer_with_weights-10/_trans{SUFFIX}": TRANSITIONS,
    f"layer_with_weights-2/v_dense/kernel{SUFFIX}": np.full(2, 3, "float32"),
    f"layer_with_weights-2/q_dense/kernel{SUFFIX}": np.full(2, 1, "float32"),
    f"layer_with_weights-2/k_dense/kernel{SUFFIX}": np.full(2, 2, "float32"),
    f"layer_with_weights-10/_trans/.OPTIMIZER_SLOT/optimizer/m{SUFFIX}": TRANSITIONS * 0,
    f"save_counter{SUFFIX}": np.array(1, "int64"),
}


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """The prefix of a TensorFlow checkpoint of Python objects, on a machine without TensorFlow's reader."""
    write_bundle(tmp_path / "best_model.weights", ARRAYS)
    monkeypatch.setitem(sys.modules, "tensorflow.train", None)
    return tmp_path / "best_model.weights"


def test_layers_come_in_the_order_of_their_numbers_and_parts(weights):
    layers = read_layers(weights)
    assert [[(name, array.flat[0]) for name, array in arrays] for _, arrays in layers] == [
        [("q_dense/kernel", 1), ("k_dense/kernel", 2), ("v_dense/kernel", 3)],
        [("_trans", 0)],
    ]
    assert all(name is None for name, _ in layers)


def test_arrays_are_chosen_by_name_and_those_of_optimizers_left_out(weights):
    arrays = read_arrays(weights, lambda name: "_trans" in name)
    assert list(arrays) == [f"layer_with_weights-10/_trans{SUFFIX}"]
    np.testing.assert_array_equal(arrays[f"layer_with_weights-10/_trans{SUFFIX}"], TRANSITIONS)
    layer = ConditionalRandomField(lr_multiplier=2)
    layer.build((None, None, 4))
    load_crf_weights(layer, weights, "bert4keras", lr_multiplier=10)
    np.testing.assert_allclose(ops.convert_to_numpy(layer._trans), TRANSITIONS * 5)


def test_a_malformed_index_is_refused_by_name(tmp_path):
    """TensorFlow's reader would end the process."""
    pairs, _ = bundle_parts(ARRAYS)
    write_index(tmp_path / "x", [*pairs, (b"z", bytes.fromhex("08631205"))])
    for read in (read_layers, lambda path: read_arrays(path, lambda name: True)):
        with pytest.raises(ValueError, match="x.index: corrupt, expected a table"):
            read(tmp_path / "x")


def test_files_of_other_kinds_are_told_apart(tmp_path):
    (tmp_path / "x.h5").write_bytes(b"no HDF5")
    assert read_arrays(tmp_path / "x.h5", lambda name: True) is None
    with pytest.raises(ValueError, match="x.h5: needs an HDF5 file"):
        read_layers(tmp_path / "x.h5")
    with pytest.raises(FileNotFoundError, match="y.h5: no such file, nor y.h5.index"):
        read_layers(tmp_path / "y.h5")


def test_mixout_goes_back_to_the_weights_of_the_file(tmp_path):
    arrays = {"kernel": np.arange(6, dtype="float32").reshape(3, 2), "bias": np.ones(2, "float32")}
    write_bundle(tmp_path / "w", {f"layer_with_weights-0/{name}{SUFFIX}": array for name, array in arrays.items()})
    model = keras.Sequential([keras.Input((3,)), MixoutDense(2, mixout=0.5)])
    load_bert4keras_weights(model, tmp_path / "w")
    assert len(model.weights) == 3
    for variable in model.weights:
        np.testing.assert_array_equal(
            ops.convert_to_numpy(variable), arrays["bias" if "bias" in path_of(variable) else "kernel"]
        )


def test_weights_are_loaded_before_layers_are_wrapped(tmp_path):
    def model(head):
        inputs = keras.Input((3,))
        return keras.Model(inputs, head(keras.layers.Dense(3, name="Hidden", use_bias=False)(inputs)))

    kernels = {name: np.full((3, 3), value, "float32") for name, value in (("Hidden", 1), ("Head", 2))}
    names = enumerate(kernels.items())
    write_bundle(tmp_path / "w", {f"layer_with_weights-{i}/{n}/kernel{SUFFIX}": array for i, (n, array) in names})
    head = keras.layers.Dense(3, name="Head", use_bias=False)
    loaded = model(head)
    load_bert4keras_weights(loaded, tmp_path / "w")
    wrapped = SetLearningRate(head, 10, name="Faster")
    faster = keras.Model(loaded.input, wrapped(head.input))
    np.testing.assert_allclose(ops.convert_to_numpy(faster(np.ones((1, 3), "float32"))), np.full((1, 3), 18), rtol=1e-6)
    inner = keras.layers.Dense(3, use_bias=False)
    for other in (faster, model(keras.Sequential([SetLearningRate(inner, 10, name="Faster")]))):
        before = [ops.convert_to_numpy(weight) for weight in other.weights]
        with pytest.raises(ValueError, match="needs a model without `SetLearningRate`, .* Received: `Faster`"):
            load_bert4keras_weights(other, tmp_path / "w")
        for variable, array in zip(other.weights, before, strict=True):
            np.testing.assert_array_equal(ops.convert_to_numpy(variable), array)


def test_layers_of_one_name_in_two_models_get_their_own_weights(tmp_path):
    def part(name):
        inputs = keras.Input((2,))
        return keras.Model(inputs, keras.layers.Dense(2, use_bias=False, name="Head")(inputs), name=name)

    inputs = keras.Input((2,))
    model = keras.Model(inputs, part("second")(part("first")(inputs)))
    arrays = {f"layer_with_weights-{i}/Head/kernel{SUFFIX}": np.full((2, 2), i, "float32") for i in range(2)}
    write_bundle(tmp_path / "w", arrays)
    load_bert4keras_weights(model, tmp_path / "w")
    for variable, array in zip(model.weights, arrays.values(), strict=True):
        np.testing.assert_array_equal(ops.convert_to_numpy(variable), array)
