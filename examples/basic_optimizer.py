"""Optimizer settings for fine-tuning: layer-wise learning rates, weight decay, decay to initial weights, warmup.

    KERAS_BACKEND=jax python examples/basic_optimizer.py

In a real run, the encoder comes from `build_transformer_model`. Here, a few small layers have its layer names.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from kcrf.optimizers import AdamWeightDecay, WarmupLinearDecay, layerwise_decay, variable_table

# The tag of a token is 1 if the token is larger than the previous token.
rng = np.random.default_rng(0)
tokens = rng.integers(1, 50, (512, 12))
tags = (np.diff(tokens, axis=1, prepend=0) > 0).astype("int32")

keras.utils.set_random_seed(0)
inputs = keras.Input((None,), dtype="int32")
hidden = keras.layers.Embedding(50, 32, name="Embedding-Token")(inputs)
hidden = keras.layers.LayerNormalization(name="Embedding-Norm")(hidden)
for i in range(2):
    layer = keras.layers.Conv1D(32, 3, padding="same", activation="gelu", name=f"Transformer-{i}-FeedForward")
    hidden = keras.layers.LayerNormalization(name=f"Transformer-{i}-FeedForward-Norm")(layer(hidden))
model = keras.Model(inputs, keras.layers.Dense(2, name="CRF")(hidden))

epochs, batch_size = 4, 32
steps = epochs * len(tokens) // batch_size
optimizer = AdamWeightDecay(
    WarmupLinearDecay(peak=3e-3, warmup=steps // 10, total=steps),
    lr_multipliers={**layerwise_decay(model, 0.8), "CRF": 10},  # one schedule and one clipping for all variables
    weight_decay_rate=0.01,
    prior_weight_decay_rate=0.01,
    prior_variables=["Embedding-Token"],  # prior_variables=model: all variables loaded from a checkpoint
    global_clipnorm=1.0,
)
print(variable_table(model, optimizer))

schedule = optimizer.get_config()["learning_rate"]["config"]
print("learning rate:", schedule)
model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(tokens, tags, batch_size=batch_size, epochs=epochs, verbose=2)
