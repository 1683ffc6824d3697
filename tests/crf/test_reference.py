"""kcrf.crf.functions.reference, the definition of all results, against the enumeration of paths."""

import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose

from kcrf.crf.functions import reference

BACKENDS = ["torch"]


@pytest.mark.parametrize(("time", "tags"), [(1, 1), (1, 3), (4, 1), (5, 3)])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_the_reference_gives_the_enumerated_values(time, tags, scale):
    random = np.random.default_rng(time)
    emissions, transitions, start, end = (
        random.normal(size=shape) * scale for shape in ((time, tags), (tags, tags), tags, tags)
    )
    truth = oracles.sentence(emissions, np.ones(time), transitions, start, end)
    found = reference(emissions, transitions, start, end)
    assert_allclose(found["log_partition"], truth["log_z"])
    for name in ("marginals", "steps"):
        assert_allclose(found[name], truth[name], atol=1e-9)
    assert tuple(found["viterbi"]) == truth["paths"][0][0]
    assert_allclose(found["score"], truth["paths"][0][1])
