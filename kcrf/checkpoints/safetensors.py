"""Reads and writes safetensors files: 8 bytes with the length of the header, a JSON header, the bytes of the arrays.

Format: https://github.com/huggingface/safetensors
"""

import json
import os
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from kcrf.checkpoints.aside import folder_aside
from kcrf.checkpoints.raw_array import RawArray, check_entries, existing_file, parse_json_object, read_weight_map

DTYPES = {  # safetensors' names of types, and NumPy's
    **{f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{"F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16", "BOOL": "bool"},
}


def read_safetensors(path):
    """Reads the headers of a safetensors file, or of the files that a "model.safetensors.index.json" lists.

    Returns:
        A dict from names to `RawArray`.

    Raises:
        ValueError: The file is truncated or corrupt, or has a type that NumPy lacks.
    """
    if path.suffix != ".json":
        return _read_header(path)
    parts = read_weight_map(path)
    headers = {part: _read_header(existing_file(path.parent / part)) for part in set(parts.values())}
    for name, part in parts.items():
        if name not in headers[part]:
            raise ValueError(f"{path}: {name!r} is not in {part}, expected all that the index lists")
    return {name: headers[part][name] for name, part in parts.items()}


def _read_header(path):
    size = path.stat().st_size
    with open(path, "rb") as file:
        prefix = file.read(8)
        length = int.from_bytes(prefix, "little")
        if len(prefix) < 8 or length > size - 8:
            raise ValueError(
                f"{path}: truncated or no safetensors file, expected a header of {length} bytes in {size} bytes"
            )
        header = parse_json_object(path, file.read(length))
    header.pop("__metadata__", None)
    entries = {name: _parse_entry(path, 8 + length, name, entry) for name, entry in header.items()}
    check_entries(entries)
    _check_no_gaps(path, entries, 8 + length, size)
    return entries


def _parse_entry(path, data_start, name, entry):
    try:
        dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        well_formed = isinstance(dtype, str) and all(type(number) is int for number in (begin, end, *shape))
    except (KeyError, TypeError, ValueError):
        well_formed = False
    if not well_formed:
        raise ValueError(f"{path}: corrupt header, expected dtype, shape and data_offsets for {name!r}")
    if dtype not in DTYPES:
        raise ValueError(f"{path}: {name!r} is {dtype}, expected one of {', '.join(DTYPES)}")
    return RawArray(path, data_start + begin, end - begin, DTYPES[dtype], tuple(shape))


def _check_no_gaps(path, entries, data_start, size):
    """Checks that the arrays fill the file from the header to its end without gaps."""
    end = data_start
    for entry in sorted(entries.values(), key=lambda entry: (entry.offset, entry.nbytes)):
        if entry.offset != end:
            raise ValueError(f"{path}: corrupt header, expected an array at byte {end}. Received: byte {entry.offset}")
        end += entry.nbytes
    if end != size:
        raise ValueError(f"{path}: corrupt, expected {end} bytes by its header. Received: {size} bytes")


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
    codes = {np.dtype(name): code for code, name in DTYPES.items() if name != "bfloat16"}
    header: dict[str, Any] = {"__metadata__": metadata or {"format": "pt"}}
    end = 0
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    for name, array in arrays.items():
        if array.dtype not in codes:
            raise ValueError(f"{path}: safetensors holds {', '.join(map(str, codes))}. Received: {name}: {array.dtype}")
        start, end = end, end + array.nbytes
        header[name] = {"dtype": codes[array.dtype], "shape": array.shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the arrays begin at a multiple of 8 bytes
    with folder_aside(path) as folder:
        with open(folder / "file", "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for array in arrays.values():
                file.write(array.reshape(-1).view(np.uint8).data)
        os.replace(folder / "file", path)
