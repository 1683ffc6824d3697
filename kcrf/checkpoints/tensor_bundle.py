"""Reads and writes TensorFlow checkpoints: an index of names (.index), raw bytes (.data-*), checksums.

The index is a LevelDB table whose values are protocol buffer messages. Formats: tensorflow/core/util/tensor_bundle,
tensorflow/core/protobuf/tensor_bundle.proto, tensorflow/core/lib/io/format.cc,
https://github.com/google/leveldb/blob/main/doc/table_format.md, https://protobuf.dev/programming-guides/encoding
"""

import os
import struct
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.checkpoints.tensor_files import CHUNK, MOST_DIMENSIONS
from kcrf.extras import needs_extra
from kcrf.files import existing_file, folder_aside

MAGIC = 0xDB4775248B80FB57
FOOTER = 48  # bytes: two handles of blocks, padding, the magic number
VARINT_LIMIT = 1 << 64
MOST_KEYS = 16  # bytes of keys per byte of the file; keys are stored without the prefix that they share
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
SIZES = {FIXED64: 8, FIXED32: 4}
LARGEST_FIELD = (1 << 29) - 1

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


@dataclass
class RawArray:
    """An array that a file stores as little-endian bytes."""

    file: Path
    offset: int  # of the first byte
    nbytes: int
    dtype: str  # a NumPy name, or "bfloat16"
    shape: tuple[int, ...]
    checksum: int  # the CRC-32C of the bytes

    def read(self) -> np.ndarray:
        """Reads the array into new, aligned memory. bfloat16 is converted to float32."""
        buffer = np.empty(self.nbytes + ALIGNMENT, np.uint8)
        buffer = buffer[-buffer.ctypes.data % ALIGNMENT :][: self.nbytes]
        end, checksum = self.offset + self.nbytes, 0
        with open(existing_file(self.file), "rb", buffering=0) as file:
            file.seek(self.offset)
            for start in range(0, self.nbytes, CHUNK):  # the checksum of a chunk while it is in the processor's cache
                chunk = buffer[start : start + CHUNK]
                if file.readinto(chunk.data) != len(chunk):
                    raise ValueError(f"{self.file}: truncated, expected at least {end} bytes")
                checksum = crc32c(chunk, checksum)
        if checksum != self.checksum:
            raise ValueError(f"{self.file}: corrupt between bytes {self.offset} and {end}, the checksum differs")
        stored = np.dtype("uint16" if self.dtype == "bfloat16" else self.dtype).newbyteorder("<")
        array = buffer.view(stored).reshape(self.shape)
        return (array.astype(np.uint32) << 16).view(np.float32) if self.dtype == "bfloat16" else array


def read_tensor_bundle(prefix: str | PathLike[str], object_based: bool = False) -> dict[str, RawArray]:
    """Reads the index of a TensorFlow checkpoint, without TensorFlow, whose reader ends the process at a bad entry."""
    index = Path(f"{prefix}.index")
    table = _parsed(index, read_table, index, existing_file(index).read_bytes())
    header = _parsed(index, parse_message, table.pop(b"", b""), HEADER)
    if not header.get(1):
        raise ValueError(f"{index}: no header, expected one of TensorFlow's checkpoint format")
    parsed = {key.decode(errors="replace"): _parsed(index, _parse_entry, value) for key, value in table.items()}
    partitioned = next((name for name, entry in parsed.items() if 7 in entry), None)
    if header.get(2) or partitioned is not None:
        received = "big-endian numbers" if header.get(2) else f"{partitioned!r}, which is partitioned"
        raise ValueError(
            f"{index}: needs whole arrays of little-endian numbers; load the checkpoint in TensorFlow and save it "
            f"again. Received: {received}"
        )
    numbers = {name: entry for name, entry in parsed.items() if entry[1] != STRING}
    entries = {name: _raw_array(prefix, header[1], name, entry) for name, entry in numbers.items()}
    _check_entries(entries)
    if not object_based and any(name.endswith(".ATTRIBUTES/VARIABLE_VALUE") for name in entries):
        raise ValueError(
            f"{index}: an object-based checkpoint of TensorFlow 2, whose names are places in a Python object, expected "
            "names such as bert/embeddings/word_embeddings. Load it into the model that wrote it and hand its arrays "
            "to kcrf.checkpoints.write_safetensors under such names, or take the model's safetensors file"
        )
    return entries


def _parsed(index: Path, parse: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a parser. Turns the errors that a damaged table causes into a ValueError with the name of the file."""
    try:
        return parse(*arguments)
    except (IndexError, ValueError, struct.error) as error:
        if str(error).startswith(str(index)):
            raise
        raise ValueError(
            f"{index}: corrupt, expected a table of TensorFlow's checkpoint format. Received: {error}"
        ) from None


def _parse_entry(data: bytes) -> dict[int, Any]:
    """Parses a BundleEntryProto: 1 dtype, 2 shape, 3 data file, 4 offset, 5 size, 6 masked checksum, 7 slices."""
    entry = parse_message(data, ENTRY, repeated=(7,))
    if entry.get(1) not in {*DTYPES, STRING}:
        raise ValueError(f"data type {entry.get(1)}, expected a number type")
    message = parse_message(entry.get(2, b""), SHAPE, repeated=(2,))
    dimensions = [parse_message(dimension, DIMENSION) for dimension in message.get(2, [])]
    for dimension in dimensions:
        dimension.get(2, b"").decode()
    entry[2] = shape = tuple(dimension.get(1, 0) for dimension in dimensions)
    if message.get(3) or len(shape) > MOST_RANK or prod(max(1, size) for size in shape) > MOST_BYTES:
        raise ValueError(f"a shape of {len(shape)} dimensions, {shape[:4]}")
    return entry


def _raw_array(prefix: str | PathLike[str], shards: int, name: str, entry: dict[int, Any]) -> RawArray:
    if entry.get(3, 0) >= shards:
        raise ValueError(f"{prefix}.index: {name!r} is in data file {entry[3]}, expected one of {shards}")
    file = Path(f"{prefix}.data-{entry.get(3, 0):05d}-of-{shards:05d}")
    return RawArray(file, entry.get(4, 0), entry.get(5, 0), DTYPES[entry[1]], entry[2], unmask(entry.get(6, 0)))


def _check_entries(entries: Mapping[str, RawArray]) -> None:
    """Checks every array: its byte count must match its shape, and it must end inside its file, if the file exists."""
    sizes = {file: file.stat().st_size for file in {entry.file for entry in entries.values()} if file.is_file()}
    for name, entry in entries.items():
        shape, itemsize = entry.shape, 2 if entry.dtype == "bfloat16" else np.dtype(entry.dtype).itemsize
        if len(shape) > MOST_DIMENSIONS or prod(max(1, size) for size in shape) * itemsize > MOST_BYTES:
            raise ValueError(
                f"{entry.file}: {name!r} is too large for an array, expected at most {MOST_DIMENSIONS} dimensions and "
                f"2**63 - 1 bytes. Received: {len(shape)} dimensions, shape={shape[:4]}{'...' * (len(shape) > 4)}"
            )
        if min(shape, default=0) < 0 or prod(shape) * itemsize != entry.nbytes:
            raise ValueError(f"{entry.file}: {name!r} has {entry.nbytes} bytes, not {entry.dtype} of shape {shape}")
        end, size = entry.offset + entry.nbytes, sizes.get(entry.file)
        if entry.offset < 0 or (size is not None and end > size):
            raise ValueError(
                f"{entry.file}: truncated, expected at least {end} bytes for {name!r}. Received: {size} bytes"
            )


def read_table(path: Path, data: bytes) -> dict[bytes, bytes]:
    """Reads all keys and values of a table into a dict of bytes."""
    if len(data) < FOOTER or struct.unpack("<Q", data[-8:])[0] != MAGIC:
        raise ValueError(f"{path}: truncated or no TensorFlow checkpoint, expected {MAGIC:#x} at the end")
    footer, place = data[-FOOTER:], 0
    for _ in range(2):  # skips the handle of the metaindex block: an offset and a size
        _, place = read_varint(footer, place)
    table, size, last = {}, 0, 0
    for _, handle in _read_entries(_read_block(path, data, footer[place:])[1]):
        offset, block = _read_block(path, data, handle)
        if offset < last:  # blocks do not overlap, so that the work is in proportion to the size of the file
            raise ValueError(f"{path}: corrupt, expected a block after byte {last}. Received: one at byte {offset}")
        last = offset + len(block)
        for key, value in _read_entries(block):
            size += len(key)
            if size > MOST_KEYS * len(data):
                raise ValueError(f"{path}: corrupt, expected keys of at most {MOST_KEYS} times the size of the file")
            table[key] = value
    return table


def _read_block(path: Path, data: bytes, handle: bytes) -> tuple[int, bytes]:
    """The offset and content of the block at a handle. A byte for the compression and the checksum follow it."""
    offset, place = read_varint(handle, 0)
    size, _ = read_varint(handle, place)
    end = offset + size
    if end + 5 > len(data):
        raise ValueError(f"{path}: corrupt, a block ends at byte {end + 5}. Received: {len(data)} bytes")
    if crc32c(data[offset : end + 1]) != unmask(struct.unpack("<I", data[end + 1 : end + 5])[0]):
        raise ValueError(f"{path}: corrupt in bytes {offset} to {end}, wrong checksum")
    if data[end]:
        raise ValueError(
            f"{path}: a compressed index, expected an uncompressed one, as TensorFlow writes it since 1.2. Load the "
            "checkpoint in TensorFlow and save it again"
        )
    return offset, data[offset:end]


def _read_entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yields the keys and values of a block. A key is stored without the prefix shared with the previous key."""
    restarts = struct.unpack("<I", block[-4:])[0]
    end = len(block) - 4 * (restarts + 1)
    if end < 0:
        raise ValueError("more restarts than the block has room for")
    place, key = 0, b""
    while place < end:
        shared, place = read_varint(block, place)
        unshared, place = read_varint(block, place)
        size, place = read_varint(block, place)
        if shared > len(key) or place + unshared + size > end:
            raise ValueError("an entry that leaves its block")
        key = key[:shared] + block[place : place + unshared]
        yield key, block[place + unshared : place + unshared + size]
        place += unshared + size


def read_varint(data: bytes, place: int) -> tuple[int, int]:
    """Reads an integer of 7 bits per byte, the lowest first. Returns the integer and the position after it."""
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            break
    if value >= VARINT_LIMIT or shift > 70:
        raise ValueError("a number of more than 64 bits")
    return value, place


def unmask(checksum: int) -> int:
    """Restores a CRC-32C, which LevelDB rotates by 15 bits and adds a constant to."""
    rotated = (checksum - 0xA282EAD8) & 0xFFFFFFFF
    return ((rotated << 15) | (rotated >> 17)) & 0xFFFFFFFF


def crc32c(data: Any, checksum: int = 0) -> int:
    """The CRC-32C of a bytes-like object. `checksum` is the CRC-32C of the bytes before it, or 0."""
    with needs_extra("transformers", "A TensorFlow checkpoint"):
        from google_crc32c import extend
    return extend(checksum, data)


def parse_message(data: bytes, types: Mapping[int, int], repeated: Collection[int] = ()) -> dict[int, Any]:
    """Parses a message into a dict by field number."""
    fields: dict[int, Any] = {}
    place = 0
    while place < len(data):
        tag, place = read_varint(data, place)
        number, wire_type = tag >> 3, tag & 7
        value, place = _read_value(data, place, wire_type)
        if not 0 < number <= LARGEST_FIELD:
            raise ValueError(f"no field can have the number {number}")
        if number not in types:
            continue
        if wire_type != types[number] or (number in fields and number not in repeated):
            raise ValueError(f"field {number} occurs twice, or with wire type {wire_type}")
        if number in repeated:
            fields.setdefault(number, []).append(value)
        else:
            fields[number] = value
    return fields


def _read_value(data: bytes, place: int, wire_type: int) -> tuple[int | bytes, int]:
    if wire_type == VARINT:
        return read_varint(data, place)
    if wire_type == BYTES:
        size, place = read_varint(data, place)
    elif wire_type in SIZES:
        size = SIZES[wire_type]
    else:
        raise ValueError(f"unknown wire type {wire_type}")
    value, end = data[place : place + size], place + size
    if end > len(data):
        raise ValueError(f"a field of {size} bytes that ends after its message")
    return (value if wire_type == BYTES else int.from_bytes(value, "little")), end


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
