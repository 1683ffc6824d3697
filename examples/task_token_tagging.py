"""Parts of speech: a class for each token, from pairs of token and tag to a trained tagger.

    KERAS_BACKEND=torch python examples/task_token_tagging.py

The sentences are generated. "can" and "lights" are nouns or verbs, depending on their neighbors.
"""

import os
import random
import tempfile

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from kcrf.corpora import tagged_sentence
from kcrf.taggers import TokenTagger
from kcrf.training import Settings, train_tagger

WORDS = {
    "DET": ["the", "a", "this", "every"],
    "ADJ": ["old", "red", "small"],
    "NOUN": ["can", "lights", "lamp", "street", "dog"],
    "AUX": ["can", "must"],
    "VERB": ["lights", "sees", "opens"],
    "PUNCT": [".", "!"],
}
PATTERNS = ["DET NOUN VERB DET NOUN PUNCT", "DET ADJ NOUN AUX VERB DET NOUN PUNCT", "DET NOUN AUX VERB PUNCT"]


def corpus(count, seed):
    """Sentences as lists of tokens and lists of tags."""
    draw = random.Random(seed)
    rows = [draw.choice(PATTERNS).split() for _ in range(count)]
    return [([draw.choice(WORDS[tag]) for tag in tags], tags) for tags in rows]


train, valid, test = (corpus(count, seed) for seed, count in enumerate((160, 30, 60)))
settings = Settings(task="pos", epochs=4, batch_size=16, width=32, depth=1, learning_rate=0.01)
with tempfile.TemporaryDirectory() as folder:
    parts = ([tagged_sentence(*pair) for pair in part] for part in (train, valid, test))
    _, scores = train_tagger(settings, *parts, out=folder)
    tagger = TokenTagger(folder)
    for tokens in (["the", "can", "lights", "the", "lights", "."], ["this", "lights", "can", "opens", "!"]):
        print(" ".join(f"{token}/{tag}" for token, tag in zip(tokens, tagger.tag(tokens), strict=True)))
for gold, predicted, count in scores["test"]["confusion"][:3]:
    print(f"{count} times {predicted} instead of {gold}")
print(f"accuracy on the test set: {scores['test']['accuracy']:.3f}")
