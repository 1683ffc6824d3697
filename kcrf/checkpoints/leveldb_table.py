"""Reads the formats of a TensorFlow checkpoint's index: a LevelDB table whose values are protocol buffer messages.

Formats: https://github.com/google/leveldb/blob/main/doc/table_format.md, tensorflow/core/lib/io/format.cc,
https://protobuf.dev/programming-guides/encoding
"""

import struct
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from kcrf.extras import needs_extra

MAGIC = 0xDB4775248B80FB57
FOOTER = 48  # bytes: two handles of blocks, padding, the magic number
VARINT_LIMIT = 1 << 64
MOST_KEYS = 16  # bytes of keys per byte of the file; keys are stored without the prefix that they share
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
SIZES = {FIXED64: 8, FIXED32: 4}
LARGEST_FIELD = (1 << 29) - 1


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
    """Reads an integer of 7 bits per byte, the lowest first. Returns the integer and the position after it.

    >>> read_varint(bytes([0xAC, 0x02]), 0)
    (300, 2)
    """
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
    """Restores a CRC-32C from a stored checksum: LevelDB rotates the CRC-32C by 15 bits and adds a constant."""
    rotated = (checksum - 0xA282EAD8) & 0xFFFFFFFF
    return ((rotated << 15) | (rotated >> 17)) & 0xFFFFFFFF


def crc32c(data: Any, checksum: int = 0) -> int:
    """The CRC-32C of a bytes-like object. `checksum` is that of the bytes before it, 0 if there are none."""
    with needs_extra("transformers", "A TensorFlow checkpoint"):
        from google_crc32c import extend
    return extend(checksum, data)


def parse_message(data: bytes, types: Mapping[int, int], repeated: Collection[int] = ()) -> dict[int, Any]:
    """Parses a message into a dict by field number.

    >>> parse_message(bytes([0x08, 0x63]), {1: VARINT})
    {1: 99}
    """
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
