"""kcrf.crf.chain: `torch.compile` does not unroll the loops of the CRF, and `torch.func` differentiates it."""

import numpy as np
import pytest
import torch
from chain_cases import Case
from numpy.testing import assert_allclose

from kcrf import crf

BACKENDS = ["torch"]


@pytest.mark.filterwarnings("ignore")  # the compiler raises its own
@pytest.mark.parametrize("time", [4, 40])
def test_a_compiled_loss_has_few_operations_at_any_length_and_the_eager_gradient(time):
    case, captured = Case(time, time, 3, "right"), []
    tags, *rest = map(torch.tensor, (case.tags, *case.rest))

    def backend(module, inputs):
        captured.extend(module.graph.nodes)
        return module

    def loss(emissions):
        return -crf.log_likelihood(2 * emissions, tags, *rest).mean()

    found = []
    for function in (loss, torch.compile(loss, backend=backend)):
        emissions = torch.tensor(case.emissions, requires_grad=True)
        value = function(emissions)
        value.backward()
        found.append((value.item(), emissions.grad))
    assert 0 < len(captured) < 60
    assert_allclose(found[1][0], found[0][0], rtol=1e-6)
    assert_allclose(found[1][1], found[0][1], rtol=1e-6)
    assert np.abs(found[0][1].numpy()).max() > 0


def test_torch_func_has_the_gradient_of_backward_and_labels_in_16_bits_are_labels():
    case = Case(3, 5, 4)
    tags, *rest = map(torch.tensor, (case.tags, *case.rest))
    emissions = torch.tensor(case.emissions, requires_grad=True)
    crf.log_likelihood(emissions, tags, *rest).sum().backward()
    found = torch.func.grad(lambda x: crf.log_likelihood(x, tags.bfloat16(), *rest).sum())(emissions.detach())
    assert_allclose(found, emissions.grad, rtol=1e-6)
    assert np.abs(found.numpy()).max() > 0
