"""kcrf.backend: `scan` on torch, where Keras asks for shapes before it computes."""

import pytest

from kcrf.backend import scan

BACKENDS = ["torch"]


@pytest.mark.parametrize("reverse", [False, True])
def test_shapes_alone_are_those_of_the_result(reverse):
    import torch

    def step(state, row):
        return state + row[0], (state * row[0], row[1].sum())

    def shapes(device):
        rows = torch.arange(15.0, device=device).reshape(5, 3), torch.ones(5, 2, device=device)
        state, outputs = scan(step, torch.zeros(3, device=device), rows, reverse=reverse)
        return [tuple(x.shape) for x in (state, *outputs)]

    assert shapes("meta") == shapes("cpu") == [(3,), (5, 3), (5,)]
