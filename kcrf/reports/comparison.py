"""Which runs can be compared, and whether their scores differ by more than chance."""

from kcrf.metrics import bootstrap_difference, span_counts

__all__ = ["differences_from_the_best", "why_not_comparable"]


def why_not_comparable(runs, part):
    """Says why the scores of a part cannot be compared: a sentence, or `None` if they can.

    Args:
        runs: A list of `RunRecord`s.
        part: "valid" or "test".
    """
    runs = [run for run in runs if part in (run.scores or {})]
    tasks = sorted({str(run.settings.get("task")) for run in runs})
    if len(tasks) > 1:
        return f"the runs have different tasks ({', '.join(tasks)})"
    sizes = {_gold_count(run.scores[part]) for run in runs}
    texts = {_gold(run) for run in runs if run.part == part and run.predictions is not None}
    if len(sizes) > 1 or len(texts) > 1:
        return f"the runs have different {part} texts"
    return None


def _gold_count(scores):
    return scores.get("true_words", scores.get("true_entities"))


def _gold(run):
    return hash(tuple((sentence["text"], tuple(map(tuple, sentence["gold"]))) for sentence in run.predictions))


def differences_from_the_best(runs, part):
    """Compares the run with the largest F1 with each of the others, by the sentences of their predictions.

    Args:
        runs: A dict of `RunRecord`s by name, which can be compared.
        part: "valid" or "test".

    Returns:
        A list of `(best name, name, sentences, (difference, low, high))`; see `kcrf.metrics.bootstrap_difference`.
        Empty if fewer than two runs have predictions of this part.
    """
    counts = {
        name: span_counts(*zip(*((sentence["gold"], sentence["found"]) for sentence in run.predictions)))
        for name, run in runs.items()
        if run.part == part and run.predictions
    }
    if len(counts) < 2:
        return []
    best = max(counts, key=lambda name: _f1(counts[name]))
    return [
        (best, name, len(own), bootstrap_difference(counts[best], own)) for name, own in counts.items() if name != best
    ]


def _f1(counts):
    right, gold, found = counts.sum(axis=0)
    return 2 * right / max(1, gold + found)
