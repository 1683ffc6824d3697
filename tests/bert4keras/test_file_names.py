"""Tests of kcrf.bert4keras.models.

File names of Keras 2: which models take them, which files are written and read, and that others are left alone.
"""

import os

import numpy as np
import pytest
from changed_keras import changed_keras  # noqa: F401 (a fixture)
from conftest import few

from kcrf.backend import keras
from kcrf.bert4keras.models import build_transformer_model
from kcrf.layers import ConditionalRandomField

BACKENDS = ["torch"]
pytestmark = pytest.mark.usefixtures("changed_keras")
SIZES = dict(vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)


def tagger():
    bert = build_transformer_model(**SIZES)
    return keras.Model(bert.input, keras.layers.Dense(2)(bert.output))


@pytest.mark.parametrize(
    "name, file",
    [
        ("best_model.weights", "best_model.weights.h5"),
        ("best", "best.weights.h5"),
        ("v1.2", "v1.2.weights.h5"),
        ("best.h5", "best.weights.h5"),
    ],
)
def test_weights_are_saved_and_loaded_by_the_names_of_scripts(name, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one, other = tagger(), tagger()
    with pytest.warns(UserWarning, match=f"^save_weights\\('{name}'\\) writes '{file}': names of Keras 3 end in"):
        one.save_weights(name)
    assert [path.name for path in tmp_path.iterdir()] == [file]
    other.load_weights(name)
    for a, b in zip(one.get_weights(), other.get_weights()):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_whole_models_are_saved_under_old_names(tmp_path):
    with pytest.warns(UserWarning, match="test.keras"):
        tagger().save(tmp_path / "test.model")
    assert keras.saving.load_model(tmp_path / "test.keras").count_params() == tagger().count_params()


def tagger_with_crf():
    bert = build_transformer_model(**SIZES)
    return keras.Model(bert.input, ConditionalRandomField()(keras.layers.Dense(2)(bert.output)))


def sequential():
    embedding = keras.layers.Embedding(9, 2, mask_zero=True)
    return keras.Sequential([keras.Input((None,), dtype="int32"), embedding, ConditionalRandomField()])


@pytest.mark.parametrize("build", few(tagger, sequential, tagger_with_crf, everywhere=2, rest="slow"))
def test_a_model_that_does_not_fit_in_hdf5_is_saved_and_loaded_by_the_name_of_the_script(build, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one, other = build(), build()
    with pytest.warns(UserWarning, match=r"^save\('best.h5'\) writes 'best.keras'"):
        one.save("best.h5")
    assert [path.name for path in tmp_path.iterdir()] == ["best.keras"]
    other.load_weights("best.h5")
    for loaded in (other, keras.models.load_model("best.h5")):
        for a, b in zip(one.get_weights(), loaded.get_weights(), strict=True):
            np.testing.assert_array_equal(a, b)


def test_hdf5_that_keras_3_wrote_is_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inputs = keras.Input((None,), dtype="int32")
    one = keras.Model(inputs, ConditionalRandomField()(keras.layers.Embedding(9, 2)(inputs)))
    one.save("best.h5")
    assert [path.name for path in tmp_path.iterdir()] == ["best.h5"]
    saved = one.get_weights()
    one.set_weights([0 * value for value in saved])
    one.load_weights("best.h5")
    for a, b in zip(one.get_weights(), saved, strict=True):
        np.testing.assert_array_equal(a, b)


def test_of_two_files_of_one_name_the_newer_one_is_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one, other = tagger(), tagger()
    with pytest.warns(UserWarning, match="writes"):
        one.save_weights("best.weights")
        os.utime("best.weights.h5", (0, 0))
        one.set_weights([value + 1 for value in one.get_weights()])
        one.save("best.h5")
    with pytest.warns(UserWarning, match=r"reads 'best.keras', the newest of \['best.weights.h5', 'best.keras'\]"):
        other.load_weights("best.h5")
    (tmp_path / "best.h5").write_bytes(b"")
    os.utime("best.h5", (0, 0))
    with pytest.warns(UserWarning, match=r"load_model\('best.h5'\) reads 'best.keras', the newest of"):
        loaded = keras.models.load_model("best.h5")
    for a, *others in zip(one.get_weights(), other.get_weights(), loaded.get_weights(), strict=True):
        for b in others:
            np.testing.assert_array_equal(a, b)


def test_names_of_keras_3_and_models_without_a_layer_of_ours_are_left_alone(tmp_path):
    model = tagger()
    model.save_weights(tmp_path / "x.weights.h5")
    model.load_weights(tmp_path / "x.weights.h5")
    model.save(tmp_path / "x.keras")
    plain = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    with pytest.raises(ValueError, match="must end in `.weights.h5`"):
        plain.save_weights(tmp_path / "best_model.weights")
    with pytest.raises(ValueError, match="Invalid filepath extension"):
        plain.save(tmp_path / "test.model")


def test_a_file_of_keras_2_is_not_loaded_by_its_order(tmp_path):
    (tmp_path / "best_model.weights.index").write_bytes(b"")
    with pytest.raises(ValueError, match=r"is a file of Keras 2: kcrf.bert4keras.models.load_bert4keras_weights\("):
        tagger().load_weights(str(tmp_path / "best_model.weights"))


def test_weights_that_nobody_saved_are_named_with_the_files_that_were_looked_for():
    with pytest.raises(FileNotFoundError, match="^No weights are saved as best.weights.h5 or best.keras. "):
        tagger().load_weights("best.weights")
