"""Chooses the kernels for a device. Without any, the functions of `kcrf.crf` are loops of operations of Keras."""

import os
from importlib import util
from types import ModuleType

from kcrf.backend import TensorLike, backend_name

_MOST_TAGS = 256  # of the kernels in Triton
_HAS_TRITON = backend_name() == "torch" and util.find_spec("triton") is not None


def kernels_for(emissions: TensorLike) -> ModuleType | None:
    """The module with functions of `kcrf.crf` as kernels that take these emissions `(batch, time, tags)`, or None.

    With torch, it is for tensors on CUDA if Triton is installed, and for tensors on a CPU if `TRITON_INTERPRET=1`.
    """
    if not _HAS_TRITON or emissions.shape[-1] > _MOST_TAGS:
        return None
    device = emissions.device.type
    if device == "cuda" or device == "cpu" and os.environ.get("TRITON_INTERPRET") == "1":
        from kcrf.crf import torch_kernels

        return torch_kernels
    return None
