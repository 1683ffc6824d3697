"""Reads arrays that a file stores as raw bytes, with NumPy alone.

A header may be damaged or malicious, so its offsets, sizes and checksums are checked before any array is returned.
"""

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

ALIGNMENT = 64  # bytes; JAX and TensorFlow create a tensor without a copy only from memory with this alignment
CHUNK = 1 << 20  # bytes read at once
MOST_DIMENSIONS = 64  # NumPy's limit
MOST_BYTES = 2**63 - 1  # NumPy's limit, too


@dataclass
class RawArray:
    """An array that a file stores as little-endian bytes.

    Attributes:
        file: The path of the file.
        offset: The position of the first byte.
        nbytes: The number of bytes.
        dtype: The type: a NumPy name, or "bfloat16".
        shape: A tuple of ints.
        checksum: The CRC-32C of the bytes. Defaults to None: the file has no checksum.
    """

    file: Path
    offset: int
    nbytes: int
    dtype: str
    shape: tuple
    checksum: int | None = None

    def read(self):
        """Reads the array into new, aligned memory. bfloat16 is converted to float32.

        Raises:
            FileNotFoundError: The file no longer exists.
            ValueError: The file is too short, or its checksum is wrong.
        """
        end = self.offset + self.nbytes
        if existing_file(self.file).stat().st_size < end:
            raise ValueError(f"{self.file}: truncated, expected at least {end} bytes")
        buffer = np.empty(self.nbytes + ALIGNMENT, np.uint8)
        buffer = buffer[-buffer.ctypes.data % ALIGNMENT :][: self.nbytes]
        self._fill(buffer)
        stored = np.dtype("uint16" if self.dtype == "bfloat16" else self.dtype).newbyteorder("<")
        array = buffer.view(stored).reshape(self.shape)
        return _bfloat16_to_float32(array) if self.dtype == "bfloat16" else array

    def _fill(self, buffer):
        """Reads the bytes in chunks, and computes the checksum of each while it is in the processor's cache."""
        end, checksum = self.offset + self.nbytes, 0
        with open(self.file, "rb", buffering=0) as file:
            file.seek(self.offset)
            for start in range(0, self.nbytes, CHUNK):
                chunk = buffer[start : start + CHUNK]
                if file.readinto(chunk) != len(chunk):
                    raise ValueError(f"{self.file}: truncated, expected at least {end} bytes")
                if self.checksum is not None:
                    checksum = crc32c(chunk, checksum)
        if self.checksum is not None and checksum != self.checksum:
            raise ValueError(f"{self.file}: corrupt between bytes {self.offset} and {end}, the checksum differs")


def crc32c(data, checksum=0):
    """The CRC-32C of a bytes-like object. `checksum` is that of the bytes before it, 0 if there are none."""
    try:
        from google_crc32c import extend
    except ImportError:
        raise ImportError("A TensorFlow checkpoint needs google-crc32c: pip install kcrf[transformers]") from None
    return extend(checksum, data)


def _bfloat16_to_float32(array):
    return (array.astype(np.uint32) << 16).view(np.float32)


def existing_file(path):
    """Returns the path if the file exists, else raises FileNotFoundError."""
    try:
        exists = path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        exists = False
    if not exists:
        raise FileNotFoundError(f"{path}: no such file, expected a part of the checkpoint")
    return path


def check_entries(entries):
    """Checks that the size of each `RawArray` of a dict fits its shape, and that it lies within its file.

    Files may be missing: an array can be described before its file exists.

    Raises:
        ValueError: A size is wrong. Names the file and the array.
    """
    sizes = {file: file.stat().st_size for file in {entry.file for entry in entries.values()} if file.is_file()}
    for name, entry in entries.items():
        _check_shape(name, entry)
        end, size = entry.offset + entry.nbytes, sizes.get(entry.file)
        if entry.offset < 0 or (size is not None and end > size):
            raise ValueError(
                f"{entry.file}: truncated, expected at least {end} bytes for {name!r}. Received: {size} bytes"
            )


def _check_shape(name, entry):
    shape, itemsize = entry.shape, 2 if entry.dtype == "bfloat16" else np.dtype(entry.dtype).itemsize
    if len(shape) > MOST_DIMENSIONS or prod(max(1, size) for size in shape) * itemsize > MOST_BYTES:
        raise ValueError(
            f"{entry.file}: {name!r} is too large for an array, expected at most {MOST_DIMENSIONS} dimensions and "
            f"2**63 - 1 bytes. Received: {len(shape)} dimensions, shape={shape[:4]}{'...' * (len(shape) > 4)}"
        )
    if min(shape, default=0) < 0 or prod(shape) * itemsize != entry.nbytes:
        raise ValueError(
            f"{entry.file}: {name!r} has {entry.nbytes} bytes, expected {entry.dtype} of shape {entry.shape}"
        )


def parse_json_object(path, text):
    """Parses the JSON object of a file, or of the header of a file.

    Raises:
        ValueError: The text is not a JSON object. Names the file.
    """
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{path}: corrupt header, expected JSON") from None
    if not isinstance(parsed, dict):
        raise ValueError(f"{path}: corrupt header, expected a JSON object")
    return parsed


def read_weight_map(path):
    """Reads the `weight_map` of an index file (`model.safetensors.index.json`): a dict from array to file name.

    Raises:
        ValueError: There is no `weight_map`, or a value is not the name of a file next to the index.
    """
    parts = parse_json_object(path, path.read_bytes()).get("weight_map")
    if not isinstance(parts, dict):
        raise ValueError(f"{path}: no 'weight_map', expected one from names of arrays to names of files")
    for name, part in parts.items():
        if not isinstance(part, str) or not part or part != Path(part).name:
            raise ValueError(
                f"{path}: 'weight_map' needs the name of a file next to it for {name!r}. Received: {part!r}"
            )
    return parts
