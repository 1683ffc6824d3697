"""Chooses the kernels for a device. Without any, the functions of `kcrf.crf` are loops of operations of Keras."""

import os
from importlib import util
from types import ModuleType

from kcrf.backend import TensorLike, backend_name
from kcrf.chains import has_compiler

_MOST_TAGS = 256  # of the kernels in Triton
_HAS_TRITON = backend_name() == "torch" and util.find_spec("triton") is not None
_HAS_NUMBA = backend_name() == "torch" and has_compiler()


def kernels_for(emissions: TensorLike) -> ModuleType | None:
    """The module with functions of `kcrf.crf` as kernels that take these emissions `(batch, time, tags)`, or None.

    With torch, it is for tensors on CUDA if Triton is installed, and for tensors on a CPU if numba is installed or if
    `TRITON_INTERPRET=1`.
    """
    if not (_HAS_TRITON or _HAS_NUMBA):
        return None
    device, fits = emissions.device.type, _HAS_TRITON and emissions.shape[-1] <= _MOST_TAGS
    is_interpreted = fits and os.environ.get("TRITON_INTERPRET") == "1"
    if device == "cuda" and fits or device == "cpu" and (_HAS_NUMBA or is_interpreted):
        from kcrf.crf import torch_kernels

        return torch_kernels
    return None
