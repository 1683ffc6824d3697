"""The functions of a chain with torch, as operators that `torch.compile` and `torch.export` know.

An operator computes the value and its gradient, on CUDA by one kernel in Triton. The functions have the arguments and
results of their namesakes in `kcrf.crf`. A chain is a `Chain` or a `Trellis`. Python takes longer to start a kernel
than a GPU for a small batch: nothing is copied here, and `torch.library.register_autograd`, which is slow, is not used.
"""

import os
import warnings
from functools import partial
from typing import Any, TypeAlias

import torch

from kcrf.backend import Tensor
from kcrf.crf import numpy_kernels

_LARGEST_TABLE = 128  # tags whose table of transitions fits into registers
Counts: TypeAlias = tuple[Tensor, Tensor, Tensor]
_OPTIONS = {"CHUNK": 512, "enable_fp_fusion": False}
_STARTS: dict[torch.device, bool] = {}  # whether kernels start on a device


def start_on(device: Any, in_triton: bool) -> bool:
    """Whether operators run on a device. A small kernel tries it once: Triton needs a C compiler, also on CUDA."""
    if torch._C._are_functorch_transforms_active():  # those of `torch.func` do not take `_Value`
        return False
    if not in_triton:
        return True
    if device not in _STARTS and not torch.compiler.is_compiling():
        from kcrf.crf.triton_kernels import fill

        row, _STARTS[device] = torch.empty(4, device=device), True
        try:
            with torch.cuda.device_of(row):
                fill[(1,)](row, 0.0, 4, CHUNK=4)
        except Exception as error:  # of any part of Triton
            _STARTS[device] = False
            needed = "A CRF is slow without kernels, which need Triton, a C compiler and Python's headers"
            warnings.warn(f"{needed}. Received: {type(error).__name__}: {error}".splitlines()[0], stacklevel=2)
    return _STARTS.get(device, True)


def log_likelihood(chain: Any, tags: Any = None) -> Tensor:
    return _Value.apply(*_arrays(chain), tags)


log_partition = log_likelihood  # without labels


def forward_backward(chain: Any) -> Counts:
    value, tags, steps = torch.ops.kcrf.chain_counts(*_arrays(chain), None)
    return value, tags, steps[:, :-2]


def viterbi(chain: Any) -> Tensor:
    return torch.ops.kcrf.viterbi(*_arrays(chain))


def _arrays(chain: Any) -> tuple[Tensor | None, ...]:
    """The emissions, the mask, the transitions, the starts and the ends of a chain, as the operators take them."""
    emissions, mask = chain.emissions, chain.mask
    mask = emissions.new_ones(emissions.shape[:2], dtype=torch.bool) if mask is None else mask.bool()
    return emissions, mask, chain.transitions, chain.start, chain.end


def _on_contiguous(run: Any, *arrays: Any) -> Any:
    """Calls an operator with arrays as kernels take them. Under `torch.compile`, others may have laid them out."""
    return run(*(None if x is None else x.contiguous() for x in arrays))


class _Value(torch.autograd.Function):
    """log Z, or the log likelihood of labels, `(batch,)`, with the gradient that the kernel counts."""

    @staticmethod
    def forward(ctx: Any, *arrays: Any) -> Tensor:
        value, *counts = torch.ops.kcrf.chain_counts(*arrays)
        ctx.save_for_backward(*counts)
        ctx.types = [None if x is None else x.dtype for x in arrays]
        return value

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        (weights,), (counts, steps) = gradients, ctx.saved_tensors
        # A product of matrices would be one in 16 bits within `torch.autocast`.
        moved = (weights[:, None, None] * steps).sum(0)  # (tags + 2, tags)
        rows = [lambda: weights[:, None, None] * counts, None, lambda: moved[:-2], lambda: moved[-2], lambda: moved[-1]]
        needed = zip([*rows, None], ctx.types, ctx.needs_input_grad, strict=True)
        return tuple(row().to(kind) if row and is_needed else None for row, kind, is_needed in needed)


def _chain_counts(
    emissions: Tensor, mask: Tensor, transitions: Tensor, start: Any, end: Any, labels: Tensor | None
) -> Counts:
    """log Z, or the log likelihood of labels, `(batch,)`, and its gradient for each sentence.

    The gradients are `(batch, time, tags)` for the emissions and `(batch, tags + 2, tags)` for the other scores.
    """
    from kcrf.crf.triton_kernels import chain_counts  # which are for CUDA, or for the interpreter, from then on

    value, counts, steps = _empty_counts(emissions)
    batch, time, size = counts.shape
    memory = counts.new_empty(batch * (3 * time + size) * size)
    with torch.cuda.device_of(emissions):  # Triton launches on the current device
        chain_counts[(batch,)](
            emissions, mask.view(torch.uint8), mask if labels is None else labels, transitions, start, end, value,
            counts, steps, memory, time, size, LABELED=labels is not None, **_blocks(size),
        )  # fmt: skip
    return value, counts, steps


def _empty_counts(emissions: Tensor, *_: Any) -> Counts:
    batch, time, size = emissions.shape
    shapes = (batch,), (batch, time, size), (batch, size + 2, size)
    value, counts, steps = (emissions.new_empty(shape, dtype=torch.float32) for shape in shapes)
    return value, counts, steps


def _viterbi(emissions: Tensor, mask: Tensor, transitions: Tensor, start: Any, end: Any) -> Tensor:
    """The tags of the best path, `(batch, time)` int32, -1 where masked."""
    from kcrf.crf.triton_kernels import best_path

    batch, time, size = emissions.shape
    path, pointers = _empty_path(emissions), emissions.new_empty(emissions.shape, dtype=torch.uint8)
    memory = emissions.new_empty((batch, size), dtype=torch.float32)
    bits = mask.view(torch.uint8)
    with torch.cuda.device_of(emissions):
        best_path[(batch,)](
            emissions, bits, transitions, start, end, path, pointers, memory, time, size, **_blocks(size)
        )
    return path


def _empty_path(emissions: Tensor, *_: Any) -> Tensor:
    return emissions.new_empty(emissions.shape[:2], dtype=torch.int32)


def _blocks(size: int) -> dict[str, Any]:
    """The sizes of the kernels' arrays and the number of warps for a number of tags."""
    block = max(4, 1 << (size - 1).bit_length())
    tile = block if block <= _LARGEST_TABLE else 64
    return {"BLOCK": block, "TILE": tile, "num_warps": min(max(block * tile // 1024, 1), 16), **_OPTIONS}


def _on_cpu(interpreted: Any, run: Any, *arrays: Any) -> Any:
    """Calls an operator on a CPU: in NumPy, or in Triton's interpreter if `TRITON_INTERPRET=1`."""
    return _on_contiguous(interpreted, *arrays) if os.environ.get("TRITON_INTERPRET") == "1" else run(*arrays)


_CHAIN = "Tensor emissions, Tensor mask, Tensor transitions, Tensor? start, Tensor? end"
for name, schema, run, host, shapes in (
    (
        "kcrf::chain_counts",
        f"({_CHAIN}, Tensor? labels) -> (Tensor, Tensor, Tensor)",
        _chain_counts,
        numpy_kernels.chain_counts,
        _empty_counts,
    ),
    ("kcrf::viterbi", f"({_CHAIN}) -> Tensor", _viterbi, numpy_kernels.viterbi, _empty_path),
):
    torch.library.define(name, schema)
    torch.library.impl(name, "cuda")(partial(_on_contiguous, run))
    torch.library.impl(name, "cpu")(partial(_on_cpu, run, host))
    torch.library.register_fake(name, shapes)
