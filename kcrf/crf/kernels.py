"""Chooses the kernels for a device. Without any, the functions of `kcrf.crf` are loops of operations of Keras."""

import os
from importlib import import_module, util
from types import ModuleType

from kcrf.backend import TensorLike, backend_name
from kcrf.chains import compile_kernels

_MOST_TAGS = 256  # of the kernels in Triton
_HAS_TRITON = backend_name() == "torch" and util.find_spec("triton") is not None


def kernels_for(emissions: TensorLike) -> ModuleType | None:
    """The module with functions of `kcrf.crf` as kernels that take these emissions `(batch, time, tags)`, or None.

    With torch, it is for tensors on CUDA if Triton is installed, and for tensors on a CPU if numba is installed or if
    `TRITON_INTERPRET=1`.
    """
    if backend_name() != "torch" or not (by_triton(emissions) or emissions.device.type == "cpu" and compile_kernels()):
        return None
    return import_module("kcrf.crf.torch_kernels")


def by_triton(emissions: TensorLike) -> bool:
    """Whether the kernels in Triton take these emissions."""
    is_on_device = emissions.device.type == "cuda" or os.environ.get("TRITON_INTERPRET") == "1"
    return _HAS_TRITON and is_on_device and emissions.shape[-1] <= _MOST_TAGS
