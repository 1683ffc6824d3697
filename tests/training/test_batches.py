"""Tests of kcrf.training.batches.

Batches with bucketed lengths: each window is in an epoch once, few are repeated, and the seed decides all.
"""

from collections import Counter

import numpy as np
import pytest

from kcrf.training.batches import Batches

LENGTHS = [3] * 21 + [12] * 9 + [30] * 2 + [200] * 7  # in the buckets 8, 16, 32 and 256
WINDOWS = [({"rows": [number + 1] * length}, number) for number, length in enumerate(LENGTHS)]
BACKENDS = ["torch"]


def epoch(batches, number):
    batches.draw(number)
    return [batches[i] for i in range(len(batches))]


@pytest.mark.parametrize("any_length", [False, True])
@pytest.mark.parametrize("size", [1, 4, 10, 64])
def test_left_over_windows_go_into_the_next_longer_bucket(size, any_length):
    drawn = epoch(Batches(WINDOWS, size, seed=1, carry=True, any_length=any_length), 0)
    assert len(drawn) == -(-len(WINDOWS) // size)
    counts = Counter(np.concatenate([targets for _, targets in drawn]).tolist())
    assert set(counts) == set(range(len(WINDOWS)))
    assert counts.total() - len(WINDOWS) < size  # only the last batch is filled up
    for inputs, targets in drawn:
        rows, length = inputs["rows"].shape
        assert rows == targets.shape[0] == min(size, len(WINDOWS))
        assert length in ((3, 12, 30, 200) if any_length else (8, 16, 32, 256))
        for row, target in zip(inputs["rows"], targets):
            assert row[row > 0].tolist() == WINDOWS[target][0]["rows"]


def test_an_epoch_is_drawn_anew_and_the_same_again():
    one, other = Batches(WINDOWS, 4, seed=1, carry=True), Batches(WINDOWS, 4, seed=1, carry=True)
    targets = [[batch[1].tolist() for batch in epoch(batches, n)] for batches, n in ((one, 3), (one, 4), (other, 3))]
    assert targets[0] == targets[2] != targets[1]


def test_windows_of_similar_lengths_go_together_where_any_length_will_do():
    """33 to 64 positions, all of which would be padded to 64; and each epoch has other batches."""
    lengths = np.random.default_rng(0).integers(33, 65, 400)
    windows = [({"rows": [number + 1] * length}, number) for number, length in enumerate(lengths)]
    batches = Batches(windows, 20, seed=1, any_length=True)
    drawn = [epoch(batches, number) for number in (0, 1)]
    for batch in drawn[0]:
        longest = lengths[batch[1]].max()
        assert batch[0]["rows"].shape == (20, longest)
    padded = sum(inputs["rows"].size for inputs, _ in drawn[0])
    assert lengths.sum() < padded < 1.1 * lengths.sum() < 64 * 400
    sets = [{frozenset(targets.tolist()) for _, targets in batches} for batches in drawn]
    assert not sets[0] & sets[1]
    assert sorted(number for chosen in sets[0] for number in chosen) == list(range(400))


@pytest.mark.parametrize("options", [{}, {"carry": True}, {"any_length": True}, {"batch_tokens": 10**5}])
def test_a_batch_larger_than_the_data_repeats_none(options):
    windows = [({"rows": [1] * 5}, number) for number in range(7)]
    (targets,) = (batch[1] for batch in epoch(Batches(windows, 10**4, seed=1, **options), 0))
    assert sorted(targets.tolist()) == list(range(7))
