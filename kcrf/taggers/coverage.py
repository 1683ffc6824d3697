"""Candidate entities with a guarantee: how probable they must be so that few real ones are missing. Needs no Keras."""

import math
from collections.abc import Sequence
from copy import copy
from typing import Any

from kcrf.corpora import Sentence
from kcrf.progress_bars import print_note
from kcrf.runs import RunFolder
from kcrf.runs.formats import read_predictions
from kcrf.runs.names import PREDICTIONS
from kcrf.taggers.decoder import parts_of_sentences

LOWEST = 0.0001  # probability of a candidate
_MARGIN = 0.02  # above a promise, from which on a note says why so many candidates are returned


def conformal_threshold(probabilities: Sequence[Sequence[float]], coverage: float) -> float:
    """The highest minimum probability with which the expected fraction of missing entities is at most `1 - coverage`.

    This is conformal risk control (Angelopoulos et al., 2022, https://arxiv.org/abs/2208.02814). The loss of a sentence
    is the number of its missing entities, minus the number that may be missing. `probabilities` has a probability for
    each real entity of each held-out sentence.

    >>> conformal_threshold([[p / 100] for p in range(100)], coverage=0.9)  # at most 9 of 100, of 101 at most a tenth
    0.09
    """
    rows = sorted(p for of_sentence in probabilities for p in of_sentence)
    most, given = max(map(len, probabilities), default=0), f"a coverage of {coverage:g} needs"
    missing = math.floor((1 - coverage) * len(rows) - coverage * most + 1e-9)
    if missing < 0 or not rows:
        needed = math.ceil(coverage * max(most, 1) / (1 - coverage) - 1e-9)
        raise ValueError(f"{given} at least {needed} entities in the held-out sentences. Received: {len(rows)}")
    if rows[missing] < LOWEST:
        wanted, found = 1 - missing / len(rows), sum(p >= LOWEST for p in rows) / len(rows)
        raise ValueError(
            f"{given} a probability of {LOWEST} or more for {wanted:.1%} of held-out entities. Received: {found:.1%}"
        )
    return rows[missing]


def threshold_of_run(decoder: Any, run: Any, coverage: float) -> float:
    """The `conformal_threshold` of a model on the held-out sentences of its run folder."""
    if not 0 < coverage < 1:
        raise ValueError(f"`coverage` must be above 0 and below 1. Received: {coverage!r}")
    path = RunFolder(run).file(PREDICTIONS)
    if not path.is_file():
        raise ValueError(f"{run}: `coverage` needs a run folder with {PREDICTIONS}. Received: none there")
    rows = read_predictions(path)
    likely = [row["likely"] for row in rows if "likely" in row]  # by models that have not learned these sentences
    likely = likely or probabilities_of_gold(decoder, [Sentence(row["text"], row["gold"]) for row in rows])
    threshold = conformal_threshold(likely, coverage)
    found = sum(p >= threshold for of_sentence in likely for p in of_sentence) / sum(map(len, likely))
    if found > coverage + _MARGIN:
        most = max(map(len, likely))
        print_note(
            f"about {found:.1%} of the real entities will be found instead of {coverage:.1%}, with more candidates: "
            f"one of only {len(likely):,} held-out sentences has {most} of them, and the next one may miss as many"
        )
    return threshold


def probabilities_of_gold(decoder: Any, sentences: Sequence[Sentence]) -> list[list[float]]:
    """The probabilities of the entities of sentences, 0 for those that are no candidates."""
    decoder = copy(decoder)
    decoder.min_probability, decoder.overlaps = LOWEST, True
    tables = [{span.key: span.probability for span in row} for row in decoder.spans(parts_of_sentences(sentences))]
    return [[table.get(span, 0.0) for span in item.spans] for table, item in zip(tables, sentences, strict=True)]
