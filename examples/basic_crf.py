"""The CRF layer from end to end: train it, decode, get probabilities, save and load.

    KERAS_BACKEND=jax python examples/basic_crf.py

The data is synthetic: a word has one to four letters from "abc" or "xyz". Neighboring words use different alphabets.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tempfile

import keras
import numpy as np

from kcrf.layers import ConditionalRandomField, suggest_lr_multiplier
from kcrf.tags import bmes, tags_to_words

rng, scheme, length = np.random.default_rng(0), bmes(), 12


def sentence():
    kinds, sizes = rng.integers(2), []
    while sum(sizes) < length:
        sizes.append(min(int(rng.integers(1, 5)), length - sum(sizes)))
    words = ["".join(rng.choice(list(("abc", "xyz")[(i + kinds) % 2]), size)) for i, size in enumerate(sizes)]
    ends = np.cumsum(sizes).tolist()
    return "".join(words), scheme.encode(list(zip([0, *ends], ends, strict=False)), length)


data = [sentence() for _ in range(2000)]
letters = "abcxyz"  # number 0 is padding
inputs = np.array([[letters.index(c) + 1 for c in text] for text, _ in data])
tags = np.array([row for _, row in data])

keras.utils.set_random_seed(0)
tokens = keras.Input((None,), dtype="int32")
hidden = keras.layers.Embedding(len(letters) + 1, 16, mask_zero=True)(tokens)
hidden = keras.layers.Bidirectional(keras.layers.GRU(16, return_sequences=True))(hidden)
learning_rate, batch_size, epochs = 3e-3, 32, 4
multiplier = suggest_lr_multiplier(learning_rate, steps=epochs * len(inputs) // batch_size)
crf = ConditionalRandomField(multiplier, constraints=scheme)  # the transitions learn faster than the other weights
model = keras.Model(tokens, crf(keras.layers.Dense(len(scheme))(hidden)))
model.compile(keras.optimizers.Adam(learning_rate), loss=crf.sparse_loss, metrics=[crf.viterbi_accuracy])
model.fit(inputs, tags, batch_size=batch_size, epochs=epochs, verbose=2)

y_pred = model.predict(inputs[:1], verbose=0)
text, best = data[0][0], np.array(crf.decode(y_pred))[0]
words = tags_to_words(text, best)
paths, scores = crf.top_k(y_pred, 3)
print("best path:  ", words, " correct:", tags_to_words(text, tags[0]))
print("three best: ", [tags_to_words(text, path) for path in np.array(paths)[0]], np.array(scores)[0].round(2))
print("tag probabilities:\n", np.array(crf.marginals(y_pred))[0].round(2))
print("each word:  ", words, crf.span_confidence(y_pred, [scheme.decode(best)])[0].round(3))

with tempfile.TemporaryDirectory() as folder:
    model.save(f"{folder}/model.keras")
    loaded = keras.saving.load_model(f"{folder}/model.keras")
print("loaded model, loss:", loaded.evaluate(inputs, tags, verbose=0)[0])
