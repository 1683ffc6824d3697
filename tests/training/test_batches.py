"""Batches whose windows move on to longer buckets: each is in an epoch once, few are repeated, all by the seed."""

from collections import Counter

import numpy as np
import pytest

from kcrf.training.batches import Batches

LENGTHS = [3] * 21 + [12] * 9 + [30] * 2 + [200] * 7  # in the buckets 8, 16, 32 and 256
WINDOWS = [({"rows": [number + 1] * length}, number) for number, length in enumerate(LENGTHS)]
pytestmark = pytest.mark.once("torch")


def epoch(batches, number):
    batches.draw(number)
    return [batches[i] for i in range(len(batches))]


@pytest.mark.parametrize("size", [1, 4, 10, 64])
def test_left_over_windows_go_into_the_next_longer_bucket(size):
    drawn = epoch(Batches(WINDOWS, size, seed=1, carry=True), 0)
    assert len(drawn) == -(-len(WINDOWS) // size)
    counts = Counter(np.concatenate([targets for _, targets in drawn]).tolist())
    assert set(counts) == set(range(len(WINDOWS)))
    assert counts.total() - len(WINDOWS) < size  # only the last batch is filled up
    for inputs, targets in drawn:
        assert inputs["rows"].shape[0] == targets.shape[0] == size and inputs["rows"].shape[1] in (8, 16, 32, 256)
        for row, target in zip(inputs["rows"], targets):
            assert row[row > 0].tolist() == WINDOWS[target][0]["rows"]


def test_an_epoch_is_drawn_anew_and_the_same_again():
    one, other = Batches(WINDOWS, 4, seed=1, carry=True), Batches(WINDOWS, 4, seed=1, carry=True)
    targets = [[batch[1].tolist() for batch in epoch(batches, n)] for batches, n in ((one, 3), (one, 4), (other, 3))]
    assert targets[0] == targets[2] != targets[1]
