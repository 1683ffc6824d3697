"""Reads and writes TensorFlow checkpoints: an index of names (.index, a LevelDB table), raw bytes (.data-*), checksums.

Format: tensorflow/core/util/tensor_bundle, tensorflow/core/protobuf/tensor_bundle.proto
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from os import PathLike
from pathlib import Path
from struct import error as StructError
from typing import Any

import numpy as np

from kcrf.checkpoints.leveldb_table import BYTES, FIXED32, VARINT, crc32c, parse_message, read_table, unmask
from kcrf.checkpoints.tensor_files import CHUNK, MOST_DIMENSIONS, LazyArray
from kcrf.extras import needs_extra
from kcrf.files import existing_file, folder_aside

DTYPES = {  # by number in tensorflow/core/framework/types.proto
    **{1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 8: "complex64", 9: "int64"},
    **{10: "bool", 14: "bfloat16", 17: "uint16", 18: "complex128", 19: "float16", 22: "uint32", 23: "uint64"},
}
STRING = 7  # such as the object graph of TensorFlow 2; omitted
MOST_RANK = 254  # TensorFlow's limit: its reader ends the process if a shape has more dimensions
MOST_BYTES = 2**63 - 1  # NumPy's limit
ALIGNMENT = 64  # bytes; JAX and TensorFlow create a tensor without a copy only from memory with this alignment

# Fields of the messages and their wire types.
HEADER = {1: VARINT, 2: VARINT, 3: BYTES}  # number of data files, endianness, version
ENTRY = {1: VARINT, 2: BYTES, 3: VARINT, 4: VARINT, 5: VARINT, 6: FIXED32, 7: BYTES}
SHAPE = {2: BYTES, 3: VARINT}  # dimensions, whether the rank is unknown
DIMENSION = {1: VARINT, 2: BYTES}  # size, name
SLICE = {1: BYTES}  # an extent for each dimension
EXTENT = {1: VARINT, 2: VARINT}  # start, length


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
    shape: tuple[int, ...]
    checksum: int | None = None

    def read(self) -> np.ndarray:
        """Reads the array into new, aligned memory. bfloat16 is converted to float32."""
        end = self.offset + self.nbytes
        if existing_file(self.file).stat().st_size < end:
            raise ValueError(f"{self.file}: truncated, expected at least {end} bytes")
        buffer = np.empty(self.nbytes + ALIGNMENT, np.uint8)
        buffer = buffer[-buffer.ctypes.data % ALIGNMENT :][: self.nbytes]
        self._fill(buffer)
        stored = np.dtype("uint16" if self.dtype == "bfloat16" else self.dtype).newbyteorder("<")
        array = buffer.view(stored).reshape(self.shape)
        return _bfloat16_to_float32(array) if self.dtype == "bfloat16" else array

    def _fill(self, buffer: np.ndarray) -> None:
        """Reads the bytes in chunks, and computes the checksum of each while it is in the processor's cache."""
        end, checksum = self.offset + self.nbytes, 0
        with open(self.file, "rb", buffering=0) as file:
            file.seek(self.offset)
            for start in range(0, self.nbytes, CHUNK):
                chunk = buffer[start : start + CHUNK]
                if file.readinto(chunk.data) != len(chunk):
                    raise ValueError(f"{self.file}: truncated, expected at least {end} bytes")
                if self.checksum is not None:
                    checksum = crc32c(chunk, checksum)
        if self.checksum is not None and checksum != self.checksum:
            raise ValueError(f"{self.file}: corrupt between bytes {self.offset} and {end}, the checksum differs")


class NeedsTensorFlow(ValueError):
    """The file is valid, but only TensorFlow can read it."""


def read_tensor_bundle(prefix: str | PathLike[str], object_based: bool = False) -> dict[str, RawArray]:
    """Reads the index of a TensorFlow checkpoint, without TensorFlow.

    Every entry is checked first, because TensorFlow's own reader ends the process at a malformed entry.
    """
    index = Path(f"{prefix}.index")
    table = _parsed(index, read_table, index, existing_file(index).read_bytes())
    header = _parsed(index, parse_message, table.pop(b"", b""), HEADER)
    if not header.get(1):
        raise ValueError(f"{index}: no header, expected one of TensorFlow's checkpoint format")
    entries, partitioned = {}, []
    for key, value in table.items():
        name = key.decode(errors="replace")
        entry, slices = _parsed(index, _parse_entry, value)
        if slices:
            partitioned.append(name)
        elif entry[1] != STRING:
            entries[name] = _raw_array(prefix, header[1], name, entry)
    _check_entries(entries)
    if not object_based and any(name.endswith(".ATTRIBUTES/VARIABLE_VALUE") for name in (*entries, *partitioned)):
        raise ValueError(
            f"{index}: an object-based checkpoint of TensorFlow 2, whose names are places in a Python object, expected "
            "names such as bert/embeddings/word_embeddings. Load it into the model that wrote it and hand its arrays "
            "to kcrf.checkpoints.write_safetensors under such names, or take the model's safetensors file"
        )
    if header.get(2):
        raise NeedsTensorFlow(f"{index}: big-endian, expected little-endian")
    if partitioned:
        raise NeedsTensorFlow(f"{index}: {partitioned[0]!r} is partitioned, expected whole arrays")
    return entries


def _parsed(index: Path, parse: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a parser. Turns the errors that a damaged table causes into a ValueError with the name of the file."""
    try:
        return parse(*arguments)
    except (IndexError, ValueError, StructError) as error:
        if str(error).startswith(str(index)):
            raise
        raise ValueError(
            f"{index}: corrupt, expected a table of TensorFlow's checkpoint format. Received: {error}"
        ) from None


def _parse_entry(data: bytes) -> tuple[dict[int, Any], list[Any]]:
    """Parses a BundleEntryProto: 1 dtype, 2 shape, 3 data file, 4 offset, 5 size, 6 masked checksum, 7 slices."""
    entry = parse_message(data, ENTRY, repeated=(7,))
    if entry.get(1) not in {*DTYPES, STRING}:
        raise ValueError(f"data type {entry.get(1)}, expected a number type")
    entry[2] = shape = _parse_shape(entry.get(2, b""))
    slices = [_parse_slice(part, shape) for part in entry.get(7, [])]
    if len(set(slices)) < len(slices):
        raise ValueError("the same slice twice")
    return entry, slices


def _parse_shape(data: bytes) -> tuple[int, ...]:
    message = parse_message(data, SHAPE, repeated=(2,))
    dimensions = [parse_message(dimension, DIMENSION) for dimension in message.get(2, [])]
    shape = tuple(dimension.get(1, 0) for dimension in dimensions)
    for dimension in dimensions:
        dimension.get(2, b"").decode()
    too_large = len(shape) > MOST_RANK or prod(max(1, size) for size in shape) > MOST_BYTES
    if message.get(3) or too_large:
        raise ValueError(f"a shape of {len(shape)} dimensions, {shape[:4]}")
    return shape


def _parse_slice(data: bytes, shape: tuple[int, ...]) -> tuple[tuple[int, int | None], ...]:
    """Parses a TensorSliceProto into `(start, length)` for each dimension; the length None means all of it."""
    extents = [parse_message(extent, EXTENT) for extent in parse_message(data, SLICE, repeated=(1,)).get(1, [])]
    parts = tuple((extent.get(1, 0), extent.get(2)) for extent in extents)
    fits = [start + (length or 0) <= size for (start, length), size in zip(parts, shape, strict=True)]
    if not all(fits):
        raise ValueError(f"a slice {parts} that leaves the shape {shape}")
    return parts


def _raw_array(prefix: str | PathLike[str], shards: int, name: str, entry: dict[int, Any]) -> RawArray:
    if entry.get(3, 0) >= shards:
        raise ValueError(f"{prefix}.index: {name!r} is in data file {entry[3]}, expected one of {shards}")
    file = Path(f"{prefix}.data-{entry.get(3, 0):05d}-of-{shards:05d}")
    return RawArray(file, entry.get(4, 0), entry.get(5, 0), DTYPES[entry[1]], entry[2], unmask(entry.get(6, 0)))


def _check_entries(entries: Mapping[str, RawArray]) -> None:
    """Checks that the size of each `RawArray` of a dict fits its shape, and that it lies within its file.

    Files may be missing: an array can be described before its file exists.
    """
    sizes = {file: file.stat().st_size for file in {entry.file for entry in entries.values()} if file.is_file()}
    for name, entry in entries.items():
        _check_shape(name, entry)
        end, size = entry.offset + entry.nbytes, sizes.get(entry.file)
        if entry.offset < 0 or (size is not None and end > size):
            raise ValueError(
                f"{entry.file}: truncated, expected at least {end} bytes for {name!r}. Received: {size} bytes"
            )


def _check_shape(name: str, entry: RawArray) -> None:
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


def _bfloat16_to_float32(array: np.ndarray) -> np.ndarray:
    return (array.astype(np.uint32) << 16).view(np.float32)


def open_tensorflow(prefix: Path) -> Mapping[str, RawArray | LazyArray]:
    """Reads the index of a TensorFlow checkpoint. Uses TensorFlow for files that `read_tensor_bundle` cannot read."""
    try:
        return read_tensor_bundle(prefix)
    except NeedsTensorFlow as error:
        refusal = error
    try:
        import tensorflow

        reader = tensorflow.train.load_checkpoint(str(prefix))
        dtypes, shapes = reader.get_variable_to_dtype_map(), reader.get_variable_to_shape_map()
    except ImportError:
        raise ValueError(f"{refusal}; TensorFlow can read it: pip install 'kcrf[tensorflow]'") from None
    except Exception as error:  # TensorFlow's own errors share no base class with Python's
        raise ValueError(f"{refusal}; TensorFlow cannot read it either") from error
    return {
        name: LazyArray(
            partial(_read_with_tensorflow, prefix, reader, name), prod(shape) * dtypes[name].size, tuple(shape)
        )
        for name, shape in shapes.items()
        if dtypes[name] != tensorflow.string
    }


def _read_with_tensorflow(prefix: Path, reader: Any, name: str) -> np.ndarray:
    try:
        array = np.asarray(reader.get_tensor(name))
    except Exception as error:  # TensorFlow's errors share no base class with Python's
        raise ValueError(f"{prefix}: TensorFlow cannot read {name!r}. Received: {error}") from None
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def write_tf_checkpoint(prefix: str | PathLike[str], arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays in Google's TensorFlow format. Needs TensorFlow.

    The data file is put into place before the index, so that an index never refers to missing data.

    Args:
        prefix: The path without suffixes, such as "bert_model.ckpt".
        arrays: A mapping from names to arrays.

    >>> write_tf_checkpoint("bert_model.ckpt", {"bert/pooler/dense/bias": np.zeros(4, "float32")})  # doctest: +SKIP
    """
    with needs_extra("tensorflow", "write_tf_checkpoint"):
        import tensorflow
    names = list(arrays)
    with folder_aside(prefix) as folder, tensorflow.device("CPU"):
        tensors = [tensorflow.constant(arrays[name]) for name in names]
        tensorflow.raw_ops.SaveV2(
            prefix=str(folder / "file"), tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors
        )
        for file in sorted(folder.iterdir()):  # "file.data-..." sorts before "file.index"
            os.replace(file, f"{prefix}{file.name.removeprefix('file')}")
