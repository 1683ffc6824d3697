"""Loads a BERT without its top layer, prints the load report, re-initializes more layers, combines several layers.

    python examples/basic_skip_top_layers.py

The top layers of a pretrained model are specialized to the pretraining task. On small datasets, re-initialized layers
can learn better (Zhang et al. 2021, https://arxiv.org/abs/2006.05987). This script writes a tiny checkpoint with random
weights. Replace it by your own folder (see pretrained/README.md).
"""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tempfile

import keras
import numpy as np

from kcrf.layers import LayerPooling
from kcrf.models import build_transformer_model, reinitialize, save_pretrained

sizes = {
    "vocab_size": 30,
    "hidden_size": 16,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
tokens = np.array([[2, 7, 8, 9, 3, 0, 0], [2, 10, 11, 12, 13, 14, 3]])  # token 0 is padding
segments = np.zeros_like(tokens)

with tempfile.TemporaryDirectory() as folder:
    pretrained = build_transformer_model(**sizes, with_pool=True)
    save_pretrained(pretrained, folder)

    # The top layer and the pooler are not read. The report lists which weights were loaded or re-initialized.
    model = build_transformer_model(folder, folder, with_pool=True, skip_top_layers=1)
    report = model.kcrf_load_report
    print("re-initialized:", *sorted({path.split("/")[0] for path in report.reinitialized}))
    print("not read:", len(report.skipped), "arrays, such as", report.skipped[0])

    # A tagger with 3 tags reads the hidden states of all layers, averaged with learned weights.
    encoder = build_transformer_model(folder, folder, output_layers=[0, 1, 2, 3])

mixed = LayerPooling("weighted")(encoder.outputs)
tags = keras.layers.Dense(3, activation="softmax")(mixed)
tagger = keras.Model(encoder.inputs, tags)

# Re-initialize the top two layers of the encoder in a model that is already loaded.
changed = reinitialize(tagger, top_layers=2)
print("re-initialized:", len(changed), "weights of", sorted({path[: len("Transformer-0")] for path in changed}))

tagger.compile(keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy")
losses = [float(tagger.train_on_batch([tokens, segments], tokens % 3)) for _ in range(20)]
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
