"""kcrf.training: The end of an epoch: averages, then the score, the record, the files, the report."""

import numpy as np

from kcrf.backend import keras, ops
from kcrf.corpora import load_mini
from kcrf.runs import RunFolder, Settings
from kcrf.runs.formats import read_log
from kcrf.taggers import load_tagger
from kcrf.training import train_tagger

BACKENDS = ["torch"]
CORPUS = load_mini("ner")
PARTS = [[s for s in part if 8 < len(s.text) <= 16] for part in (CORPUS.train[:200], CORPUS.valid)]


class Reads(keras.callbacks.Callback):
    """At each report reads what is in the folder of the run, and in the model."""

    def __init__(self, run):
        super().__init__()
        self._run, self.seen = run, []

    def on_train_batch_end(self, batch, logs=None):
        self.last = [ops.convert_to_numpy(weight) for weight in self.model.trainable_variables]

    def report(self, row):
        assert read_log(self._run / "log.csv")[-1]["epoch"] == row["epoch"]
        assert RunFolder(self._run).has_state() or len(self.seen) == 2
        model = [ops.convert_to_numpy(weight) for weight in self.model.trainable_variables]
        tagger = load_tagger(self._run)
        stored = [ops.convert_to_numpy(weight) for weight in tagger.model.trainable_variables]
        self.seen.append((row, self.last, model, stored, tagger.scores(PARTS[1])["f"]))


def test_at_the_report_the_averages_are_scored_recorded_and_saved(tmp_path, recwarn):
    settings = Settings(
        task="ner", width=16, depth=1, batch_size=8, epochs=3, learning_rate=0.02, seed=3, linear_weight=0.0
    )
    reads = Reads(tmp_path / "run")
    train_tagger(settings, *PARTS, out=tmp_path / "run", progress=reads)
    assert len(reads.seen) == 3
    best = 0.0
    for row, last, model, stored, f in reads.seen:
        assert any(np.abs(a - b).max() > 1e-4 for a, b in zip(last, model, strict=True))  # averages, not the last step
        if row["valid_f"] > best:
            best = row["valid_f"]
            for a, b in zip(model, stored, strict=True):
                np.testing.assert_array_equal(a, b)
        assert f == best  # the score is that of the weights that are kept
    assert best > 0
