"""Which runs can be compared, and whether their scores differ by more than chance."""

import numpy as np

from kcrf.metrics.bootstrap import bootstrap_difference, f1_of_counts, span_counts
from kcrf.reports.titles import SETS


def why_not_comparable(runs, part):
    """The reason why the scores of a set cannot be compared, a sentence; `None` if they can.

    Args:
        runs: A list of `RunRecord`s.
        part: "valid" or "test".
    """
    runs = [run for run in runs if part in (run.scores or {})]
    tasks = sorted({str(run.settings.get("task")) for run in runs})
    if len(tasks) > 1:
        return f"the runs have different tasks ({', '.join(tasks)})"
    sizes = {_gold_count(run.scores[part]) for run in runs}
    predicted = [run for run in runs if run.part == part and run.predictions is not None]
    texts = set(map(_gold, predicted))
    if len(sizes) > 1 or len(texts) > 1 or len(predicted) < len(runs) and _hashes_differ(runs, part):
        return f"the runs have different texts in the {SETS[part]}"
    return None


def _hashes_differ(runs, part):
    """Whether the hashes of a set differ. They contain the names of standards; older versions wrote none."""
    hashes = {run.sha256[part] for run in runs if part in run.sha256}
    return len(hashes) > 1 and len({str(run.settings.get("standards")) for run in runs}) == 1


def _gold_count(scores):
    return next((scores[key] for key in ("true_words", "true_entities", "examples", "tokens") if key in scores), None)


def _gold(run):
    return hash(tuple((row["text"], row.get("text_b"), repr(row["gold"])) for row in run.predictions))


def differences_from_the_best(runs, part):
    """Compares the run with the largest F1, or accuracy, with each of the others, by the texts of their predictions.

    Args:
        runs: A dict of `RunRecord`s by name, which can be compared.
        part: "valid" or "test".

    Returns:
        A list of `(best name, name, sentences, (difference, low, high))`; see
        `kcrf.metrics.bootstrap.bootstrap_difference`.
        Empty if fewer than two runs have predictions of this part, and for numbers.
    """
    counts = {
        name: _counts(run.predictions)
        for name, run in runs.items()
        if run.part == part and run.predictions and not isinstance(run.predictions[0]["gold"], (int, float))
    }
    if len(counts) < 2:
        return []
    if len({own.shape for own in counts.values()}) > 1:  # of one standard, and of several
        return []
    best = max(counts, key=lambda name: f1_of_counts(counts[name].sum(axis=0)).mean())
    return [
        (best, name, len(own), bootstrap_difference(counts[best], own)) for name, own in counts.items() if name != best
    ]


def _counts(predictions):
    """The `span_counts` of sentences. A label of a text counts as a span of it: F1 is the accuracy then.

    Those of several segmentation standards are `(sentences, standards, 3)`.
    """
    if isinstance(predictions[0]["gold"], str):
        return np.array([(row["gold"] == row["found"], 1, 1) for row in predictions], np.int64)
    counts = span_counts(*zip(*((row["gold"], row["found"]) for row in predictions)))
    standards, of_row = np.unique([row["standard"] or "" for row in predictions], return_inverse=True)
    if len(standards) == 1:
        return counts
    is_of = np.eye(len(standards), dtype=np.int64)[of_row]  # (sentences, standards)
    return is_of[:, :, None] * counts[:, None]
