"""Tests of kcrf.layers.

Files of models with a CRF: those that Keras could not load are refused, and keys of torch do not change.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kcrf.backend import backend_name, keras, ops
from kcrf.layers import ConditionalRandomField, ViterbiTags

WORDS = np.array([[1, 2, 3, 0], [4, 3, 2, 1]], "int32")


def model_and_layer(mask_zero=True):
    inputs = keras.Input((None,), dtype="int32")
    layer = ConditionalRandomField(lr_multiplier=10, use_boundary=True)
    x = keras.layers.Embedding(20, 4, mask_zero=mask_zero)(inputs)
    return keras.Model(inputs, layer(keras.layers.Dense(4)(x))), layer


def test_hdf5_is_refused_where_keras_could_not_load_the_mask(tmp_path):
    pytest.importorskip("h5py")
    model, _ = model_and_layer()
    with pytest.raises(ValueError, match=r"needs the file format .keras.*`model.save\('model.keras'\)"):
        model.save(tmp_path / "model.h5")
    model.save(tmp_path / "model.keras")
    assert_array_equal(
        keras.saving.load_model(tmp_path / "model.keras").predict(WORDS, verbose=0), model.predict(WORDS, verbose=0)
    )


def test_hdf5_of_a_model_without_a_mask_loads(tmp_path):
    pytest.importorskip("h5py")
    model, _ = model_and_layer(mask_zero=False)
    model.save(tmp_path / "model.h5")
    loaded = keras.saving.load_model(tmp_path / "model.h5", compile=False)
    assert_array_equal(loaded.predict(WORDS, verbose=0), model.predict(WORDS, verbose=0))


@pytest.mark.skipif(backend_name() != "torch", reason="only torch has a state_dict")
class TestStateDict:
    def module(self):
        import torch

        class Tagger(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.head = torch.nn.Linear(3, 4)
                self.crf = ConditionalRandomField(use_boundary=True)
                self.crf.build((None, None, 4))

        return Tagger()

    def test_a_second_instance_loads_the_weights_of_the_first(self):
        first, second = self.module(), self.module()
        keys = ["crf.end", "crf.start", "crf.trans", "head.bias", "head.weight"]
        assert sorted(first.state_dict()) == sorted(second.state_dict()) == keys
        assert not np.array_equal(*(ops.convert_to_numpy(x.crf.trans) for x in (first, second)))
        second.load_state_dict(first.state_dict())
        assert_array_equal(*(ops.convert_to_numpy(x.crf.trans) for x in (first, second)))

    def test_keys_as_keras_names_them_load_too(self):
        first, second = self.module(), self.module()
        state = dict(first.state_dict())
        for name in ("trans", "start", "end"):
            state[f"crf._torch_params.conditional_random_field_7/{name}"] = state.pop(f"crf.{name}")
        second.load_state_dict(state)
        assert_array_equal(*(ops.convert_to_numpy(x.crf.trans) for x in (first, second)))

    def test_a_key_that_is_missing_or_unknown_is_named(self):
        state = dict(self.module().state_dict())
        state["crf.other"] = state.pop("crf.trans")
        with pytest.raises(RuntimeError, match=r"(?s)Missing key.*trans.*Unexpected key.*crf.other"):
            self.module().load_state_dict(state)


@pytest.mark.skipif(backend_name() != "torch", reason="other backends write loops of any length")
@pytest.mark.filterwarnings("ignore")  # of the exporter that Keras uses
def test_decoding_is_not_exported_from_torch(tmp_path):
    pytest.importorskip("onnx")
    model, layer = model_and_layer()
    tagger = keras.Model(model.input, ViterbiTags(layer)(model.output))
    tagger.predict(WORDS, verbose=0)
    with pytest.raises(ValueError, match="`kcrf export`"):
        tagger.export(tmp_path / "tagger.onnx", format="onnx", verbose=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(backend_name() != "jax", reason="JAX alone has programs to look into")
def test_decoding_has_no_operation_that_jax2onnx_cannot_convert():
    """jax2onnx 0.17 refuses loops that read backward, and writes a bit cast that onnxruntime refuses."""
    import jax

    program = str(jax.make_jaxpr(model_and_layer()[1].decode)(np.zeros((2, 5, 4), "float32")))
    assert "scan[" in program
    assert "reverse=True" not in program
    assert "bitcast" not in program


@pytest.mark.skipif(backend_name() != "jax", reason="Keras uses jax2onnx on JAX alone")
@pytest.mark.filterwarnings("ignore")  # of jax2onnx
@pytest.mark.parametrize("scale", [1, 1000])  # in probability space, in log space
def test_an_onnx_file_from_jax_has_the_tags_and_confidences_of_the_model(tmp_path, scale):
    pytest.importorskip("jax2onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    model, layer = model_and_layer()
    layer.set_weights([scale * x for x in layer.get_weights()])
    tagger = keras.Model(model.input, ViterbiTags(layer, confidences=True)(model.output))
    tagger(WORDS)  # Keras counts a call outside of `predict` alone
    tagger.export(str(tmp_path / "tagger.onnx"), format="onnx", verbose=False)
    session = onnxruntime.InferenceSession(tmp_path / "tagger.onnx")
    for words in (WORDS, WORDS[:1, :3]):
        tags, confidences = session.run(None, {session.get_inputs()[0].name: np.asarray(words, "int32")})
        expected_tags, expected_confidences = tagger.predict(words, verbose=0)
        assert_array_equal(tags, expected_tags)
        assert_allclose(confidences, expected_confidences, atol=1e-5)
