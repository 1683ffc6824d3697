"""One word segmenter of two segmentation standards: a shared encoder, and a head with a CRF for each standard.

    KERAS_BACKEND=torch python examples/task_segmentation_standards.py

The built-in corpus follows one standard. For the other one, half of its sentences have words of at most two characters.
With real corpora: `kcrf train --standard pku=pku.txt --standard gsd=gsd.txt --out runs/both`.
"""

import os
import tempfile

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from kcrf.corpora import load_mini
from kcrf.taggers import WordSegmenter
from kcrf.training import Settings, train_segmenter


def in_pairs(words):
    """The words of the other standard."""
    return [word[start : start + 2] for word in words for start in range(0, len(word), 2)]


def by_standard(sentences):
    """A dict of sentences, lists of words: the even ones by the standard of the corpus, the odd ones by the other."""
    return {"corpus": sentences[::2], "pairs": [in_pairs(words) for words in sentences[1::2]]}


corpus = load_mini()
settings = Settings(epochs=4, batch_size=16, width=32, depth=1, ngrams=False, learning_rate=0.005)
with tempfile.TemporaryDirectory() as folder:
    parts = (by_standard(part) for part in (corpus.train, corpus.valid, corpus.test))
    _, scores = train_segmenter(settings, *parts, out=folder)
    for standard in ("corpus", "pairs"):
        segmenter = WordSegmenter(folder, standard=standard)
        print(f"{standard}: {' '.join(segmenter.segment('图书馆的管理员在阅览室里。'))}")
for standard, own in scores["test"]["standards"].items():
    print(f"F1 of {standard}: {own['f']:.3f}")
print(f"mean F1 on the test set: {scores['test']['f']:.3f}")
