"""kcrf.models.saving: LoRA of Keras on the encoders trains few weights, is loaded again, and is merged when saved."""

import numpy as np
import pytest
from tiny_encoders import SEGMENTS, SIZES, TOKENS, assert_close, numbers

from kcrf.backend import keras
from kcrf.layers import ConditionalRandomField, MultiHeadAttention
from kcrf.models import build_transformer_model, save_pretrained
from kcrf.optimizers import AdamWeightDecay


@pytest.mark.filterwarnings("ignore")
def test_lora_trains_its_own_weights_alone_is_loaded_again_and_is_merged_on_export(tmp_path):
    encoder, inputs = build_transformer_model(**SIZES), [TOKENS, SEGMENTS]
    (before,) = numbers(encoder(inputs))
    for variable in encoder.variables:
        variable.trainable = False
    for layer in encoder.layers:
        if isinstance(layer, MultiHeadAttention):
            layer.query.enable_lora(2)
            layer.value.enable_lora(2, lora_alpha=4)
    frozen = [(v, keras.ops.convert_to_numpy(v).copy()) for v in encoder.variables if not v.trainable]
    assert len(frozen) == len(encoder.variables) - 2 * 2 * SIZES["num_hidden_layers"]
    assert_close(numbers(encoder(inputs))[0], before)
    crf = ConditionalRandomField(name="CRF")
    model = keras.Model(encoder.input, crf(keras.layers.Dense(3, name="Emissions")(encoder.output)))
    model.compile(AdamWeightDecay(0.03, exclude_from_weight_decay=("bias",)), loss=crf.sparse_loss)
    losses = model.fit(inputs, TOKENS % 3, epochs=6, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert all(np.array_equal(keras.ops.convert_to_numpy(variable), old) for variable, old in frozen)
    (after,) = numbers(encoder(inputs))
    assert np.abs(after - before).max() > 0.01

    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_close(*numbers([loaded.predict(inputs, verbose=0), model.predict(inputs, verbose=0)]))
    save_pretrained(model, tmp_path / "merged")
    assert_close(numbers(build_transformer_model(tmp_path / "merged")(inputs))[0], after)
