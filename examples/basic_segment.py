"""Trains a small word segmenter on the built-in corpus, loads it and segments a text.

python examples/basic_segment.py [run folder] [epochs]
"""

import sys

from kcrf.corpora import load_mini
from kcrf.taggers import WordSegmenter
from kcrf.training import Settings, train_segmenter

run_dir = sys.argv[1] if len(sys.argv) > 1 else "runs/basic_segment"
epochs = int(sys.argv[2]) if len(sys.argv) > 2 else 8

corpus = load_mini()
settings = Settings(width=128, depth=2, batch_size=16, epochs=epochs, min_bigrams=2)
_, scores = train_segmenter(settings, corpus.train, corpus.valid, corpus.test, out=run_dir, overwrite=True)
print("F1 on the test set: {f:.4f}, OOV recall: {oov_recall:.4f}".format(**scores["test"]))

segmenter = WordSegmenter(run_dir)
print(" ".join(segmenter.segment("昨天晚上下了一场大雨，河水漲了半米。")))
