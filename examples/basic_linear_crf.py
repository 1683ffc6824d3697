"""CRFsuite's model in Keras: n-gram features of each character, one score for each feature and tag, and a CRF.

    KERAS_BACKEND=torch python examples/basic_linear_crf.py [EPOCHS]

Add `scores` to the output of an encoder, under the same CRF, for a wide and deep model. The sentences are the made-up
ones that come with kcrf.
"""

import os
import sys

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

from kcrf.corpora import load_mini
from kcrf.layers import ConditionalRandomField, NGramScores
from kcrf.metrics import segmentation_scores
from kcrf.readers import CharacterNGrams
from kcrf.tags import bmes, tags_to_words, words_to_tags

corpus = load_mini()
train, test = corpus.train, corpus.test
ngrams = CharacterNGrams(buckets=2**14)
length = max(sum(map(len, words)) for words in train + test)


def arrays(sentences):
    """Features `(sentences, length, features)` and tags `(sentences, length)`, padded with 0 and -1."""
    features = np.zeros((len(sentences), length, ngrams.width), "int32")
    tags = np.full((len(sentences), length), -1)
    for i, (words, rows) in enumerate(zip(sentences, ngrams.encode(["".join(words) for words in sentences]))):
        features[i, : len(rows)] = rows
        tags[i, : len(rows)] = words_to_tags(words)
    return features, tags


keras.utils.set_random_seed(0)
inputs = keras.Input((None, ngrams.width), dtype="int32")
scores = NGramScores(tags=4, buckets=ngrams.buckets)(inputs)  # (batch, time, tags)
crf = ConditionalRandomField(lr_multiplier=10, constraints=bmes())
model = keras.Model(inputs, crf(scores, mask=keras.ops.not_equal(inputs[:, :, 0], 0)))
model.compile(keras.optimizers.Adam(0.01), loss=crf.sparse_loss)
model.fit(*arrays(train), batch_size=16, epochs=int(sys.argv[1]) if len(sys.argv) > 1 else 5, verbose=2)

paths = keras.ops.convert_to_numpy(crf.decode(model.predict(arrays(test)[0], verbose=0)))
found = [tags_to_words("".join(words), path[: sum(map(len, words))]) for words, path in zip(test, paths)]
print(" ".join(found[0]))
print(f"F1 on the test set: {segmentation_scores(test, found)['f']:.3f}")
