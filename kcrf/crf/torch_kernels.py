"""The functions of a chain on CUDA with torch, as operators that `torch.compile` and `torch.export` know.

Each operator is one kernel in Triton, which computes the value and its gradient. The functions have the arguments and
results of their namesakes in `kcrf.crf`. A chain is a `Chain` or a `Trellis`.
"""

from typing import Any

import torch

from kcrf.backend import Tensor
from kcrf.crf.triton_kernels import best_path, chain_counts

_LARGEST_TABLE = 128  # tags whose table of transitions fits into registers
_OPTIONS = {"CHUNK": 1024, "enable_fp_fusion": False}


def log_likelihood(chain: Any, tags: Tensor) -> Tensor:
    return _counts(chain, tags)[0]


def log_partition(chain: Any) -> Tensor:
    return _counts(chain)[0]


def forward_backward(chain: Any) -> tuple[Tensor, Tensor, Tensor]:
    value, tags, steps = _counts(chain)
    return value.detach(), tags, steps[:, :-2]


def viterbi(chain: Any) -> Tensor:
    return _viterbi(*_arrays(chain))


def _counts(chain: Any, tags: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    return _chain_counts(*_arrays(chain), None if tags is None else tags.contiguous())


def _arrays(chain: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The emissions, the mask and the scores of a chain, as the operators take them."""
    emissions, transitions, size = chain.emissions, chain.transitions.float(), chain.transitions.shape[-1]
    mask = chain.mask if chain.mask is not None else emissions.new_ones(emissions.shape[:2], dtype=torch.bool)
    if chain.start is None and chain.end is None:
        scores = torch.nn.functional.pad(transitions, (0, 0, 0, 2))
    else:
        ends = (transitions.new_zeros(size) if x is None else x.float() for x in (chain.start, chain.end))
        scores = torch.cat([transitions, *(x.view(1, size) for x in ends)])
    return emissions.contiguous(), mask.bool().contiguous(), scores


@torch.library.custom_op(
    "kcrf::chain_counts",
    mutates_args=(),
    schema="(Tensor emissions, Tensor mask, Tensor scores, Tensor? labels) -> (Tensor, Tensor, Tensor)",
)
def _chain_counts(
    emissions: Tensor, mask: Tensor, scores: Tensor, labels: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """log Z, or the log likelihood of labels, `(batch,)`, and its gradient for each sentence.

    The gradients are `(batch, time, tags)` for the emissions and `(batch, tags + 2, tags)` for the scores.
    """
    batch, time, size = emissions.shape
    value = emissions.new_empty(batch, dtype=torch.float32)
    counts = emissions.new_zeros(emissions.shape, dtype=torch.float32)
    steps = emissions.new_zeros((batch, size + 2, size), dtype=torch.float32)
    memory = emissions.new_empty((3, *emissions.shape), dtype=torch.float32)
    with torch.cuda.device_of(emissions):  # Triton launches on the current device
        chain_counts[(batch,)](
            emissions, mask.view(torch.uint8), mask if labels is None else labels, scores, value, counts, steps,
            memory, time, size, LABELED=labels is not None, **_blocks(size),
        )  # fmt: skip
    return value, counts, steps


@_chain_counts.register_fake
def _(emissions: Tensor, mask: Tensor, scores: Tensor, labels: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    shapes = emissions.shape[:1], emissions.shape, (emissions.shape[0], *scores.shape)
    value, counts, steps = (emissions.new_empty(shape, dtype=torch.float32) for shape in shapes)
    return value, counts, steps


def _save_counts(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    _, counts, steps = output
    ctx.dtype = inputs[0].dtype
    ctx.save_for_backward(counts, steps)
    ctx.mark_non_differentiable(counts, steps)
    ctx.set_materialize_grads(False)


def _gradients(ctx: Any, gradient: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    counts, steps = ctx.saved_tensors
    return (
        (gradient[:, None, None] * counts).to(ctx.dtype),
        None,
        (gradient @ steps.flatten(1)).view(steps.shape[1:]),
        None,
    )


_chain_counts.register_autograd(_gradients, setup_context=_save_counts)


@torch.library.custom_op(
    "kcrf::viterbi", mutates_args=(), schema="(Tensor emissions, Tensor mask, Tensor scores) -> Tensor"
)
def _viterbi(emissions: Tensor, mask: Tensor, scores: Tensor) -> Tensor:
    """The tags of the best path, `(batch, time)` int32, -1 where masked."""
    batch, time, size = emissions.shape
    path = torch.full((batch, time), -1, dtype=torch.int32, device=emissions.device)
    pointers = emissions.new_empty(emissions.shape, dtype=torch.uint8)
    memory = emissions.new_empty((batch, size), dtype=torch.float32)
    bits = mask.view(torch.uint8)
    with torch.cuda.device_of(emissions):
        best_path[(batch,)](emissions, bits, scores, path, pointers, memory, time, size, **_blocks(size))
    return path


@_viterbi.register_fake
def _(emissions: Tensor, mask: Tensor, scores: Tensor) -> Tensor:
    return emissions.new_empty(emissions.shape[:2], dtype=torch.int32)


def _blocks(size: int) -> dict[str, Any]:
    """The sizes of the kernels' arrays and the number of warps for a number of tags."""
    block = max(4, 1 << (size - 1).bit_length())
    tile = block if block <= _LARGEST_TABLE else 64
    return {"BLOCK": block, "TILE": tile, "num_warps": min(max(block * tile // 1024, 1), 16), **_OPTIONS}
