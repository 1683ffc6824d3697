"""Pretrains a small BERT on unlabeled text, then fine-tunes it as a segmenter.

    KERAS_BACKEND=torch python examples/basic_pretraining.py [folder [steps]]

The text is the built-in corpus, which is far too small. A useful model needs millions of characters and hours of
training. On the command line: `kcrf pretrain --text FILE --out FOLDER`, then `kcrf train --bert FOLDER`.
"""

import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

from kcrf.corpora import load_mini
from kcrf.pretraining import PretrainingSettings, pretrain
from kcrf.taggers import WordSegmenter
from kcrf.training import Settings, train_segmenter

folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 400
corpus = load_mini("cws")
folder.mkdir(parents=True, exist_ok=True)
text = folder / "text.txt"
text.write_text("\n".join("".join(words) for words in corpus.train), encoding="utf-8")

settings = PretrainingSettings(layers=2, width=64, vocab_size=3000, length=64, steps=steps, every=steps // 4)
log = pretrain(settings, [text], folder / "bert")
for row in log:
    print("step {step}: validation loss {valid_loss:.3f}, accuracy {valid_accuracy:.3f}".format(**row))

settings = Settings(bert=str(folder / "bert"), epochs=2, learning_rate=1e-3)
_, scores = train_segmenter(settings, corpus.train, corpus.valid, corpus.test, out=folder / "run")
print(f"F1 on the test set: {scores['test']['f']:.3f}")
print(" ".join(WordSegmenter(folder / "run").segment("昨天晚上下了一场大雨。")))
