"""Reads and writes safetensors files with the library `safetensors`, and reads files of `torch.save` with torch."""

import os
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kcrf.extras import needs_extra
from kcrf.files import existing_file, folder_aside, read_json

TYPES = {  # safetensors' names of types, and NumPy's
    **{f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{"F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16", "BOOL": "bool"},
}
MOST_DIMENSIONS = 64  # NumPy's limit
CHUNK = 1 << 20  # bytes read at once


class LazyArray(NamedTuple):
    """An array that is read when it is needed."""

    read: Callable[[], np.ndarray]
    nbytes: int
    shape: tuple[int, ...]


def open_safetensors(path: Path) -> dict[str, LazyArray]:
    """Opens a safetensors file, or the files that a "model.safetensors.index.json" lists."""
    if path.suffix != ".json":
        return _open_file(path)
    parts = _read_weight_map(path)
    files = {part: _open_file(existing_file(path.parent / part)) for part in set(parts.values())}
    for name, part in parts.items():
        if name not in files[part]:
            raise ValueError(f"{path}: {name!r} is not in {part}, expected all that the index lists")
    return {name: files[part][name] for name, part in parts.items()}


def _open_file(path: Path) -> dict[str, LazyArray]:
    import ml_dtypes  # noqa: F401  # bfloat16 for NumPy
    from safetensors import SafetensorError, safe_open

    try:
        file = safe_open(path, framework="numpy")
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  # not a dict
        about = {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in slices.items()}
    except SafetensorError as error:
        raise ValueError(f"{path}: truncated or corrupt, expected a safetensors file. Received: {error}") from None
    for name, (dtype, shape) in about.items():
        if dtype not in TYPES:
            raise ValueError(f"{path}: {name!r} is {dtype}, expected one of {', '.join(TYPES)}")
        if len(shape) > MOST_DIMENSIONS or prod(max(1, size) for size in shape) > 2**60:
            raise ValueError(f"{path}: {name!r} is too large for an array. Received: {len(shape)} dimensions")

    def read(name: str) -> np.ndarray:
        array = file.get_tensor(name)
        return array.astype("float32") if array.dtype.name == "bfloat16" else array

    sizes = {name: prod(shape) * np.dtype(TYPES[dtype]).itemsize for name, (dtype, shape) in about.items()}
    return {name: LazyArray(partial(read, name), sizes[name], shape) for name, (_, shape) in about.items()}


def _read_weight_map(path: Path) -> dict[str, str]:
    """Reads the `weight_map` of an index file (`model.safetensors.index.json`): a dict from array to file name."""
    parts = read_json(path).get("weight_map")
    if not isinstance(parts, dict):
        raise ValueError(f"{path}: no 'weight_map', expected one from names of arrays to names of files")
    for name, part in parts.items():
        if not isinstance(part, str) or not part or part != Path(part).name:
            raise ValueError(f"{path}: 'weight_map' needs a file next to it for {name!r}. Received: {part!r}")
    return parts


def write_safetensors(
    path: str | PathLike[str], arrays: Mapping[str, np.ndarray], metadata: dict[str, str] | None = None
) -> None:
    """Writes arrays as a safetensors file. The file is written completely or not at all.

    Args:
        path: The file.
        arrays: A mapping from names to arrays.
        metadata: A dict of strings. Defaults to `{"format": "pt"}`, which Hugging Face's loaders require.

    Raises:
        ValueError: The format does not support the type of an array.

    >>> write_safetensors("model.safetensors", {"bias": np.zeros(4, "float32")})  # doctest: +SKIP
    """
    from safetensors.numpy import save_file

    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    names = [name for name in TYPES.values() if name != "bfloat16"]
    for name, array in arrays.items():
        if array.dtype.name not in names:
            raise ValueError(f"{path}: safetensors holds {', '.join(names)}. Received: {name}: {array.dtype}")
    with folder_aside(path) as folder:
        save_file(arrays, folder / "file", metadata or {"format": "pt"})
        os.replace(folder / "file", path)


def open_torch(path: Path) -> dict[str, LazyArray]:
    """Opens a file of `torch.save`, or the files that a "pytorch_model.bin.index.json" lists."""
    if path.suffix == ".json":
        files = [existing_file(path.parent / part) for part in sorted(set(_read_weight_map(path).values()))]
        return {name: entry for file in files for name, entry in open_torch(file).items()}
    with needs_extra("torch", f"{path}: a .bin file"):
        import torch
    try:
        stored = torch.load(path, map_location="cpu", weights_only=True, mmap=_is_intact_archive(path))
        tensors = _dense_tensors(torch, stored)
    except Exception as error:  # torch raises anything from RuntimeError to KeyError on a broken file
        raise ValueError(
            f"{path}: not readable as weights, expected a file of torch.save, tensors only. "
            f"Received: {str(error).partition(chr(10))[0]}"
        ) from error
    if not tensors:
        raise ValueError(f"{path}: no tensors, expected a dict from names to tensors")

    def read(tensor: Any) -> np.ndarray:
        return np.array((tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy())

    return {name: LazyArray(partial(read, x), x.nbytes, tuple(x.shape)) for name, x in tensors.items()}


def _dense_tensors(torch: Any, stored: Any) -> dict[str, Any]:
    """The detached tensors, by name, of a state dict, or of a dict that contains a state dict."""
    stored = stored.get("state_dict", stored) if isinstance(stored, dict) else {}
    items = stored.items() if isinstance(stored, dict) else ()
    tensors = {str(name): tensor.detach() for name, tensor in items if isinstance(tensor, torch.Tensor)}
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
            raise ValueError(f"{name!r} is {tensor.layout} of {tensor.dtype}, expected dense arrays of numbers")
        if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
            raise ValueError(f"{name!r} repeats its numbers, expected as many in the file as its shape has")
        if tensor.dtype != torch.bfloat16:
            tensor.new_empty(0).numpy()  # raises for types that NumPy lacks
    return tensors


def _is_intact_archive(path: Path) -> bool:
    """Whether a file is a zip archive with correct checksums, which torch does not check.

    `torch.save` has written zip archives since 1.6, and never compresses. Compressed records are refused: their content
    can be 1,000 times larger than the file.
    """
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            return False
    with zipfile.ZipFile(path) as archive:
        for record in archive.infolist():
            if record.compress_type != zipfile.ZIP_STORED or record.compress_size != record.file_size:
                raise ValueError(f"the record {record.filename} is compressed, which torch.save never does")
        for record in archive.infolist():
            if record.CRC:  # 0: written after torch.serialization.set_crc32_options(False)
                with archive.open(record) as content:  # zipfile raises an error if the checksum is wrong
                    while content.read(CHUNK):
                        pass
    return True
