"""kcrf.layers, kcrf.optimizers: a step on torch copies nothing to or from a GPU, which fake tensors stand for."""

import subprocess
import sys

BACKENDS = ["torch"]
PROGRAM = """
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

_setup_privateuseone_for_python_backend("card")  # a build of torch for CPUs does not know "cuda"
as_tensor = torch.as_tensor


def through_the_host(data, dtype=None, device=None):
    if isinstance(data, torch.Tensor):
        return data.to(device=device, dtype=dtype)
    tensor = as_tensor(data, dtype=dtype)
    tensor.constant = None  # else torch computes with its value, which the card cannot
    return tensor.to(device)


torch.as_tensor = torch.tensor = through_the_host
from kcrf import crf, layers
from kcrf.backend import keras
from kcrf.crf import chain, forward_backward, torch_kernels
from kcrf.layers import ConditionalRandomField, losses
from kcrf.layers.embeddings import padding_mask
from kcrf.optimizers import AdamWeightDecay, Warmup, WarmupLinearDecay
from kcrf.tags import bio

for module in (chain, forward_backward):
    module.kernels_for = lambda emissions: torch_kernels
losses.check_if = layers.crf.check_if = lambda condition, check: None  # asks whether a tensor is on CUDA


class Watch(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        outputs = function(*args, **(kwargs or {}))
        devices = {x.device.type for x in tree_leaves((args, kwargs, outputs)) if isinstance(x, torch.Tensor)}
        if len(devices) > 1:
            found.append(str(function))
        return outputs


def step():
    mask = padding_mask(tokens, 0)
    outputs = layer(emissions, mask=mask)
    layer.sparse_loss(tokens, outputs, None).backward()
    for accuracy in accuracies:
        accuracy.update_state(tokens, outputs), accuracy.result()
    schedule(count), Warmup(3, 0.5)(count)
    for optimizer in optimizers:  # Keras' `apply` also counts the step, after which it reads the loss
        optimizer._backend_apply_gradients([layer._trans.value.grad], [layer._trans])
    layer.decode(outputs), layer.marginals(outputs), crf.expected_counts(layer.chain(outputs))


with FakeTensorMode():
    tokens = torch.ones(2, 8, dtype=torch.int32, device="card")
    count, schedule = torch.ones((), dtype=torch.int64, device="card"), WarmupLinearDecay(1.0, 2, 9)
    emissions = torch.ones(2, 8, 3, device="card", requires_grad=True)
    layer = ConditionalRandomField(100, constraints=bio(["A"]), transition_initializer="zeros")
    layer.build((None, None, 3))
    accuracies = layer.sparse_accuracy, layer.viterbi_accuracy
    clips = {"global_clipnorm": 1.0}, {"clipnorm": 0.1}, {"bias_correction": False}
    optimizers = [AdamWeightDecay(schedule, **clip) for clip in clips]
    for optimizer in optimizers:
        optimizer.build([layer._trans])
    for copied in (True, False):  # constants are copied once
        found = []
        with Watch():
            step()
        assert bool(found) == copied, found
    try:
        emissions + torch.ones(3)
        raise SystemExit("the fake card takes tensors of the host")
    except RuntimeError:
        pass
"""


def test_only_the_first_step_copies_constants_to_the_device(monkeypatch):
    monkeypatch.setenv("KERAS_TORCH_DEVICE", "card")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
