"""Arrays that lie in a file as raw bytes, read with NumPy alone.

Nothing that a file says of itself is believed: places, sizes and checksums are compared before an array is handed out.
"""

import json
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from kcrf.checkpoints.crc32c import Crc32c

__all__ = ["RawArray", "checked_entries", "existing", "parsed_json"]

ALIGNMENT = 64  # bytes; what JAX and TensorFlow ask of memory that is to become a tensor without a copy


@dataclass
class RawArray:
    """An array that lies in a file as plain little-endian bytes.

    Attributes:
        file: Its path.
        offset: Where the first byte is.
        nbytes: How many bytes there are.
        dtype: NumPy's name of the type, or "bfloat16".
        shape: A tuple of ints.
        checksum: CRC-32C of the bytes. Default: there is none.
    """

    file: Path
    offset: int
    nbytes: int
    dtype: str
    shape: tuple
    checksum: int = None

    def read(self):
        """The array, in memory of its own that a backend can take over; bfloat16 comes as float32."""
        stored = np.dtype("uint16" if self.dtype == "bfloat16" else self.dtype).newbyteorder("<")
        raw = np.empty(self.nbytes + ALIGNMENT, np.uint8)
        raw = raw[-raw.ctypes.data % ALIGNMENT :][: self.nbytes]
        self._fill(raw)
        array = raw.view(stored).reshape(self.shape)
        return _bfloat16_to_float32(array) if self.dtype == "bfloat16" else array

    def _fill(self, raw):
        """Reads the bytes part by part, each checked while it is in the processor's cache."""
        checksum = None if self.checksum is None else Crc32c()
        with open(existing(self.file), "rb", buffering=0) as file:
            file.seek(self.offset)
            for start in range(0, self.nbytes, PART):
                part = raw[start : start + PART]
                if file.readinto(part) != len(part):
                    raise ValueError(f"{self.file}: truncated, expected at least {self.offset + self.nbytes} bytes")
                if checksum:
                    checksum.update(part)
        if checksum and checksum.value() != self.checksum:
            end = self.offset + self.nbytes
            raise ValueError(f"{self.file}: corrupt between bytes {self.offset} and {end}, the checksum differs")


def _bfloat16_to_float32(array):
    return (array.astype(np.uint32) << 16).view(np.float32)


def existing(file):
    """The path of a file that must be there."""
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such file, expected a part of the checkpoint")
    return file


def checked_entries(entries):
    """The entries, if each fits its own shape and its file; what a file says of itself is not believed."""
    sizes = {file: file.stat().st_size for file in {entry.file for entry in entries.values()} if file.is_file()}
    for name, entry in entries.items():
        itemsize = 2 if entry.dtype == "bfloat16" else np.dtype(entry.dtype).itemsize
        if min(entry.shape, default=0) < 0 or prod(entry.shape) * itemsize != entry.nbytes:
            raise ValueError(
                f"{entry.file}: {name!r} has {entry.nbytes} bytes, expected {entry.dtype} of shape {entry.shape}"
            )
        end, size = entry.offset + entry.nbytes, sizes.get(entry.file)
        if entry.offset < 0 or (size is not None and end > size):
            raise ValueError(
                f"{entry.file}: truncated, expected at least {end} bytes for {name!r}. Received: {size} bytes"
            )
    return entries


def parsed_json(path, text):
    """The JSON object that a file, or the header of a file, holds."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{path}: corrupt header, expected JSON") from None
    if not isinstance(parsed, dict):
        raise ValueError(f"{path}: corrupt header, expected a JSON object")
    return parsed


PART = 1 << 20  # bytes read at once
