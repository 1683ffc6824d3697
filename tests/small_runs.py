"""Two small runs for tests of the command line, trained once in a test session when a test first needs them."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from kcrf.corpora import load_mini
from kcrf.runs import Settings

RUNS = Path(tempfile.mkdtemp(prefix="kcrf-runs-"))
atexit.register(shutil.rmtree, RUNS, ignore_errors=True)
TINY = {"width": 8, "depth": 1, "character_width": 4, "bigram_width": 2, "min_bigrams": 20, "ngrams": False}


@cache
def train_small_runs():
    """Trains `RUNS / "words"` and `RUNS / "entities"`."""
    from kcrf.training import train_tagger

    for name, task in (("words", "cws"), ("entities", "ner")):
        corpus, settings = load_mini(task), Settings(task=task, epochs=2, learning_rate=0.02, batch_size=16, **TINY)
        train_tagger(settings, corpus.train, corpus.valid, corpus.test, RUNS / name)
