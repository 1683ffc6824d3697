"""safetensors files: 8 bytes of header length, a JSON header, raw bytes.

Format: https://github.com/huggingface/safetensors
"""

import json
import os

import numpy as np

from kcrf.checkpoints.aside import folder_aside
from kcrf.checkpoints.raw_array import RawArray, checked_entries, existing, parsed_json

__all__ = ["read_safetensors", "write_safetensors"]

SAFETENSORS_TYPES = {
    **{
        f"{kind}{8 * size}": f"{word}{8 * size}"
        for kind, word in (("I", "int"), ("U", "uint"))
        for size in (1, 2, 4, 8)
    },
    **{"F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16", "BOOL": "bool"},
}


def read_safetensors(path):
    """The arrays of a safetensors file, or of the files that a "model.safetensors.index.json" lists.

    Returns:
        A dict from names to `RawArray`; nothing but headers is read.

    Raises:
        ValueError: The file is truncated or corrupt, or holds a type that NumPy lacks.
    """
    if path.suffix != ".json":
        return _read_safetensors_header(path)
    parts = parsed_json(path, path.read_bytes()).get("weight_map")
    if not isinstance(parts, dict):
        raise ValueError(f"{path}: no 'weight_map', expected one from names of arrays to names of files")
    headers = {part: _read_safetensors_header(existing(path.parent / str(part))) for part in set(parts.values())}
    lost = [name for name, part in parts.items() if name not in headers[part]]
    if lost:
        raise ValueError(f"{path}: {lost[0]!r} is not in {parts[lost[0]]}, expected all that the index lists")
    return {name: headers[part][name] for name, part in parts.items()}


def _read_safetensors_header(path):
    size = path.stat().st_size
    with open(path, "rb") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > size - 8:
            raise ValueError(
                f"{path}: truncated or no safetensors file, expected a header of {length} bytes in {size} bytes"
            )
        header = parsed_json(path, file.read(length))
    header.pop("__metadata__", None)
    entries = {name: _safetensors_entry(path, 8 + length, name, told) for name, told in header.items()}
    end = 8 + length
    for entry in sorted(checked_entries(entries).values(), key=lambda entry: (entry.offset, entry.nbytes)):
        if entry.offset != end:
            raise ValueError(f"{path}: corrupt header, expected an array at byte {end}. Received: byte {entry.offset}")
        end += entry.nbytes
    if end != size:
        raise ValueError(f"{path}: corrupt, expected {end} bytes by its header. Received: {size} bytes")
    return entries


def _safetensors_entry(path, base, name, told):
    try:
        begin, end = (int(offset) for offset in told["data_offsets"])
        dtype, shape = told["dtype"], tuple(int(size) for size in told["shape"])
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{path}: corrupt header, expected dtype, shape and data_offsets for {name!r}") from None
    if dtype not in SAFETENSORS_TYPES:
        raise ValueError(f"{path}: {name!r} is {dtype}, expected one of {', '.join(SAFETENSORS_TYPES)}")
    return RawArray(path, base + begin, end - begin, SAFETENSORS_TYPES[dtype], shape)


def write_safetensors(path, arrays, metadata=None):
    """Writes arrays as a safetensors file, aside first and then renamed.

    Args:
        path: The file.
        arrays: A mapping from names to arrays.
        metadata: A dict of strings. Default: {"format": "pt"}, which Hugging Face's loaders ask for.

    Raises:
        ValueError: An array has a type that the format lacks.

    >>> write_safetensors("model.safetensors", {"bias": np.zeros(4, "float32")})  # doctest: +SKIP
    """
    types = {np.dtype(word): code for code, word in SAFETENSORS_TYPES.items() if word != "bfloat16"}
    header, end = {"__metadata__": metadata or {"format": "pt"}}, 0
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    for name, array in arrays.items():
        if array.dtype not in types:
            raise ValueError(f"{path}: safetensors holds {', '.join(map(str, types))}. Received: {name}: {array.dtype}")
        start, end = end, end + array.nbytes
        header[name] = {"dtype": types[array.dtype], "shape": array.shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with folder_aside(path) as folder:
        with open(folder / "file", "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for array in arrays.values():
                file.write(array.reshape(-1).view(np.uint8))
        os.replace(folder / "file", path)
