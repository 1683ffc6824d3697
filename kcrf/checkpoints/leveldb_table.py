"""Reads LevelDB tables, such as the index of a TensorFlow checkpoint: sorted keys and values, in blocks with checksums.

Format: https://github.com/google/leveldb/blob/main/doc/table_format.md, tensorflow/core/lib/io/format.cc
"""

import struct

from kcrf.checkpoints.raw_array import crc32c

MAGIC = 0xDB4775248B80FB57
FOOTER = 48  # bytes: two handles of blocks, padding, the magic number
VARINT_LIMIT = 1 << 64


def read_table(path, data):
    """Reads all keys and values of a table into a dict of bytes.

    Args:
        path: The name of the file, for error messages.
        data: The bytes of the file.

    Raises:
        ValueError: The table is truncated or corrupt, or is compressed.
    """
    if len(data) < FOOTER or struct.unpack("<Q", data[-8:])[0] != MAGIC:
        raise ValueError(f"{path}: truncated or no TensorFlow checkpoint, expected {MAGIC:#x} at the end")
    footer, place = data[-FOOTER:], 0
    for _ in range(2):  # skips the handle of the metaindex block: an offset and a size
        _, place = read_varint(footer, place)
    table = {}
    for _, handle in _read_entries(_read_block(path, data, footer[place:])):
        table.update(_read_entries(_read_block(path, data, handle)))
    return table


def _read_block(path, data, handle):
    """The content of the block at a handle (offset, size). A byte for the compression and the checksum follow."""
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
    return data[offset:end]


def _read_entries(block):
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


def read_varint(data, place):
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


def unmask(checksum):
    """Restores a CRC-32C from a stored checksum: LevelDB rotates the CRC-32C by 15 bits and adds a constant."""
    rotated = (checksum - 0xA282EAD8) & 0xFFFFFFFF
    return ((rotated << 15) | (rotated >> 17)) & 0xFFFFFFFF
