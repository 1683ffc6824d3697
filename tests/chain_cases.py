"""Drawn chains with the answers of the enumeration of their paths, for the functions and the kernels of kcrf.crf."""

import numpy as np
import oracles
from conftest import TOLERANCE
from numpy.testing import assert_allclose

from kcrf import crf
from kcrf.backend import ops

MASKS = {
    "none": lambda batch, time, random: np.ones((batch, time), bool),
    "right": lambda batch, time, random: np.arange(time) < random.integers(1, time + 1, (batch, 1)),
    "left": lambda batch, time, random: np.arange(time) >= random.integers(0, time, (batch, 1)),
    "holes": lambda batch, time, random: random.random((batch, time)) < 0.6,
    "all masked": lambda batch, time, random: np.arange(batch)[:, None] % 2 * np.ones((1, time)) > 0,
}


class Case:
    """One drawn problem: arrays, and the oracle's answer per sentence."""

    def __init__(self, seed, time, tags, mask="holes", scale=1.0, boundary=True, forbidden=0, scheme=None, batch=3):
        random = np.random.default_rng(seed)
        self.emissions = (random.normal(size=(batch, time, tags)) * scale).astype("float32")
        self.mask = MASKS[mask](batch, time, random)
        self.tags = random.integers(0, tags, (batch, time)).astype("int32")
        self.transitions = (random.normal(size=(tags, tags)) * scale).astype("float32")
        self.start, self.end = (random.normal(size=(2, tags)) * scale).astype("float32") if boundary else (None, None)
        self.transitions.flat[random.permutation(tags * tags)[:forbidden]] = crf.FORBIDDEN
        if scheme is not None:
            self.transitions[~scheme.allowed_transitions] = crf.FORBIDDEN
            self.start = np.where(scheme.allowed_starts, 0.0, crf.FORBIDDEN).astype("float32")
            self.end = np.where(scheme.allowed_ends, 0.0, crf.FORBIDDEN).astype("float32")

    @property
    def rest(self):
        return self.mask, self.transitions, self.start, self.end

    def oracle(self):
        wide = [None if x is None else x.astype("float64") for x in (self.transitions, self.start, self.end)]
        return [oracles.sentence(e, m, *wide) for e, m in zip(self.emissions, self.mask, strict=True)]

    def oracle_likelihood(self):
        wide = [None if x is None else x.astype("float64") for x in (self.transitions, self.start, self.end)]
        return [oracles.log_likelihood(*x, *wide) for x in zip(self.emissions, self.tags, self.mask, strict=True)]


def numpy(x):
    return ops.convert_to_numpy(x)


def close(actual, expected, scale=1.0):
    """To float32 rounding of sums of numbers of this scale."""
    assert_allclose(
        actual, expected, rtol=TOLERANCE["float32"]["rtol"], atol=TOLERANCE["float32"]["atol"] * max(1.0, scale)
    )


def check_sentences_without_best_path(number):
    """A model that diverged would else tag all with 0, in silence. The other sentences keep their paths."""
    case = Case(19, 5, 3, "right")
    case.emissions[~case.mask] = number
    wanted = numpy(crf.viterbi(case.emissions, *case.rest))
    assert (wanted >= 0).tolist() == case.mask.tolist()
    emissions = case.emissions.copy()
    emissions[1, 0, 2] = number
    wanted[1] = -1
    np.testing.assert_array_equal(numpy(crf.viterbi(emissions, *case.rest)), wanted)
    for name in ("transitions", "start", "end"):
        scores = {"transitions": case.transitions, "start": case.start, "end": case.end}
        scores[name] = scores[name].copy()
        scores[name].flat[1] = number
        assert (numpy(crf.viterbi(case.emissions, case.mask, **scores)) == -1).all()


def check_against_oracle(case, scale=1.0):
    log_z = numpy(crf.log_partition(case.emissions, *case.rest))
    tags, steps = map(numpy, crf.expected_counts(case.emissions, *case.rest))
    entropy = numpy(crf.entropy(case.emissions, *case.rest))
    best = numpy(crf.viterbi(case.emissions, *case.rest))
    likelihood = numpy(crf.log_likelihood(case.emissions, case.tags, *case.rest))
    close(likelihood, case.oracle_likelihood(), scale)
    for b, truth in enumerate(case.oracle()):
        close(log_z[b], truth["log_z"], scale)
        assert_allclose(tags[b], truth["marginals"], atol=1e-4)
        assert_allclose(steps[b], truth["steps"], atol=2e-4)
        assert_allclose(entropy[b], truth["entropy"], rtol=1e-3, atol=1e-3 * max(1.0, scale / 10))
        path, score = truth["paths"][0]
        found = tuple(best[b][case.mask[b]])
        close(dict(truth["paths"])[found], score, scale)
        assert (best[b][~case.mask[b]] == -1).all()
