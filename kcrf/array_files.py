"""Files of raw arrays: safetensors and TensorFlow's tensor bundles, read with NumPy alone, array by array.

Nothing that a file says of itself is believed: places, sizes and checksums are compared before an array is handed out.
"""

import json
import struct
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path

import numpy as np

__all__ = ["Crc32c", "NotCovered", "RawArray", "existing", "parsed_json", "read_safetensors", "read_tensor_bundle"]


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


def _checked(entries):
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


# ---- safetensors: 8 bytes of header length, a JSON header, raw bytes (https://github.com/huggingface/safetensors)

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
    for entry in sorted(_checked(entries).values(), key=lambda entry: (entry.offset, entry.nbytes)):
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


def parsed_json(path, text):
    """The JSON object that a file, or the header of a file, holds."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{path}: corrupt header, expected JSON") from None
    if not isinstance(parsed, dict):
        raise ValueError(f"{path}: corrupt header, expected a JSON object")
    return parsed


# ---- Google's TensorFlow format: a LevelDB table of names (.index) and raw bytes (.data-*), both with checksums
# (tensorflow/core/util/tensor_bundle, tensorflow/core/lib/io/format.cc, tensorflow/core/protobuf/tensor_bundle.proto)

TABLE_MAGIC = 0xDB4775248B80FB57
OBJECT_GRAPH = b"_CHECKPOINTABLE_OBJECT_GRAPH"
TENSORFLOW_TYPES = {
    **{1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 9: "int64", 10: "bool"},
    **{14: "bfloat16", 17: "uint16", 19: "float16", 22: "uint32", 23: "uint64"},
}


class NotCovered(ValueError):
    """A sound file that only TensorFlow itself can read."""


def read_tensor_bundle(prefix):
    """The arrays of a TensorFlow checkpoint, read without TensorFlow.

    Args:
        prefix: The path without ".index".

    Returns:
        A dict from names to `RawArray`; only the index is read. Files of data may be missing until an array is.

    Raises:
        NotCovered: Partitioned or non-numeric arrays, a compressed index, big-endian numbers.
        ValueError: The index is truncated or corrupt, or belongs to an object-based checkpoint.
    """
    index = Path(f"{prefix}.index")
    try:
        table = _read_table(index, existing(index).read_bytes())
        header = _message(table.pop(b"", b""))
        entries = {key.decode(errors="replace"): _message(value) for key, value in table.items() if key != OBJECT_GRAPH}
    except (IndexError, KeyError, TypeError, struct.error):
        raise ValueError(f"{index}: corrupt, expected a table of TensorFlow's checkpoint format") from None
    shards = header.get(1, 0)
    if not shards:
        raise ValueError(f"{index}: no header, expected one of TensorFlow's checkpoint format")
    if header.get(2):
        raise NotCovered(f"{index}: big-endian, expected little-endian")
    if any(name.endswith(".ATTRIBUTES/VARIABLE_VALUE") for name in entries):
        raise ValueError(
            f"{index}: an object-based checkpoint of TensorFlow 2, whose names are places in a Python object, expected "
            "names such as bert/embeddings/word_embeddings. Load it into the model that wrote it and hand its arrays "
            "to kcrf.checkpoints.write_safetensors under such names, or take the model's safetensors file"
        )
    return _checked({name: _tensorflow_entry(prefix, shards, name, told) for name, told in entries.items()})


def _tensorflow_entry(prefix, shards, name, told):
    """A BundleEntryProto: 1 dtype, 2 shape, 3 shard, 4 offset, 5 size, 6 masked checksum, 7 slices."""
    if 7 in told:
        raise NotCovered(f"{prefix}.index: {name!r} is partitioned, expected whole arrays")
    if told.get(1) not in TENSORFLOW_TYPES:
        raise NotCovered(f"{prefix}.index: {name!r} has data type {told.get(1)}, expected a number type")
    file = Path(f"{prefix}.data-{told.get(3, 0):05d}-of-{shards:05d}")
    sizes = [_message(size).get(1, 0) for size in _message(told.get(2, b""), repeated=2).get(2, [])]
    checksum = _unmasked(told.get(6, 0))
    return RawArray(file, told.get(4, 0), told.get(5, 0), TENSORFLOW_TYPES[told[1]], tuple(sizes), checksum)


def _read_table(path, data):
    """All keys and values of a LevelDB table: data blocks, a block that lists them, a footer of 48 bytes."""
    if len(data) < 48 or struct.unpack("<Q", data[-8:])[0] != TABLE_MAGIC:
        raise ValueError(f"{path}: truncated or no TensorFlow checkpoint, expected {TABLE_MAGIC:#x} at the end")
    footer, place = data[-48:], 0
    for _ in range(2):  # skip the handle of the block of statistics: an offset and a size
        place = _varint(footer, place)[1]
    table = {}
    for _, handle in _block_entries(_block(path, data, footer[place:])):
        table.update(_block_entries(_block(path, data, handle)))
    return table


def _block(path, data, handle):
    """The contents of the block at a handle (offset, size); behind it stand its compression and its checksum."""
    offset, place = _varint(handle, 0)
    size, _ = _varint(handle, place)
    end = offset + size
    if end + 5 > len(data):
        raise ValueError(f"{path}: corrupt, a block ends at byte {end + 5}. Received: {len(data)} bytes")
    checksum = Crc32c()
    checksum.update(data[offset : end + 1])
    if checksum.value() != _unmasked(struct.unpack("<I", data[end + 1 : end + 5])[0]):
        raise ValueError(f"{path}: corrupt in bytes {offset} to {end}, wrong checksum")
    if data[end]:
        raise NotCovered(f"{path}: a compressed index, expected an uncompressed one")
    return data[offset:end]


def _block_entries(block):
    """Keys and values of a block. A key shares its first bytes with the one before it."""
    restarts = struct.unpack("<I", block[-4:])[0]
    place, key = 0, b""
    while place < len(block) - 4 * (restarts + 1):
        shared, place = _varint(block, place)
        unshared, place = _varint(block, place)
        size, place = _varint(block, place)
        key = key[:shared] + block[place : place + unshared]
        yield key, block[place + unshared : place + unshared + size]
        place += unshared + size


def _message(data, repeated=None):
    """The fields of a protobuf message: numbers and bytes by field number, a list for the field `repeated`."""
    fields, place = {}, 0
    while place < len(data):
        tag, place = _varint(data, place)
        kind = tag & 7
        if kind == 0:
            value, place = _varint(data, place)
        else:
            size, place = _varint(data, place) if kind == 2 else ({1: 8, 5: 4}[kind], place)
            value, place = data[place : place + size], place + size
            value = value if kind == 2 else int.from_bytes(value, "little")
        if tag >> 3 == repeated:
            fields.setdefault(repeated, []).append(value)
        else:
            fields[tag >> 3] = value
    return fields


def _varint(data, place):
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def _unmasked(checksum):
    """LevelDB stores checksums rotated by 15 bits and shifted by a constant."""
    turned = (checksum - 0xA282EAD8) & 0xFFFFFFFF
    return ((turned << 15) | (turned >> 17)) & 0xFFFFFFFF


# ---- CRC-32C at the speed of memory, in NumPy
# A message is a polynomial over GF(2), its first bit the highest power; the register is the message modulo P. P divides
# Q(x) = x^6777 + x^484 + x^100 + 1, so it divides Q(x)^64 = Q(x^64) too: reducing modulo Q(x^64) moves whole 64-bit
# words, three exclusive ors for each, on 6293 neighbours at once. The 6777 words left are folded eight by eight.

DEGREE, *LOWER = 6777, 484, 100
BLOCK = DEGREE - LOWER[0]
BLOCKS = 24  # of a buffer that stays in the second-level cache
PART = 1 << 20  # bytes read at once


class Crc32c:
    """The CRC-32C of bytes that come in parts; fastest where each part but the last has a multiple of 8 bytes."""

    def __init__(self):
        self._buffer = np.zeros(DEGREE + BLOCKS * BLOCK, np.uint64)
        self._buffer[DEGREE - 1] = 0x641F6454 << 32  # the four bytes that make a register of ones
        self._words, self._tail = 1, b""

    def update(self, data):
        data = np.frombuffer(self._tail + bytes(data) if self._tail else data, np.uint8)
        words = data[: len(data) // 8 * 8].view(np.uint64)
        for start in range(0, len(words), BLOCKS * BLOCK):
            self._reduce(words[start : start + BLOCKS * BLOCK])
        self._words, self._tail = self._words + len(words), data[len(words) * 8 :].tobytes()

    def _reduce(self, words):
        """Appends words to the remainder and takes as many off its top."""
        for start in range(0, len(words), BLOCK):
            end = min(start + BLOCK, len(words))
            top = self._buffer[start:end]
            np.bitwise_xor(words[start:end], top, out=self._buffer[start + DEGREE : end + DEGREE])
            for power in LOWER:
                lower = self._buffer[start + DEGREE - power : end + DEGREE - power]
                np.bitwise_xor(lower, top, out=lower)
        self._buffer[:DEGREE] = self._buffer[len(words) : len(words) + DEGREE].copy()

    def value(self):
        words = self._buffer[max(DEGREE - self._words, 0) : DEGREE].view(np.uint32)
        level = 0
        while len(words) > 1:
            words = np.concatenate([np.zeros(-len(words) % 8, np.uint32), words])
            places = words.view(np.uint8).reshape(-1, 32) + np.arange(32) * 256
            words = np.bitwise_xor.reduce(_fold_table(level).take(places), axis=1)
            level += 1
        register = int(_mapped(_shift_table(0), words)[0])
        for byte in self._tail:
            register = int(_zero_bits(np.uint32(register ^ byte), 8))
        return register ^ 0xFFFFFFFF


def _zero_bits(registers, count):
    """What registers become when `count` zero bits follow."""
    for _ in range(count):
        registers = (registers >> 1) ^ (np.uint32(0x82F63B78) * (registers & 1))
    return registers


# The registers of one byte, at each of the four places of a register.
BYTES = np.arange(256, dtype=np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)[:, None]


def _mapped(table, registers):
    """A linear map of registers, given as what it makes of BYTES."""
    return np.bitwise_xor.reduce([table[place][(registers >> 8 * place) & 255] for place in range(4)])


@cache
def _shift_table(level):
    """The map of 4 * 8^level zero bytes."""
    table = BYTES if level else _zero_bits(BYTES, 32)
    for _ in range(8 if level else 0):
        table = _mapped(_shift_table(level - 1), table)
    return table


@cache
def _fold_table(level):
    """What each byte of eight neighbouring registers adds to the one that replaces them; shape (32 * 256,)."""
    rows = [BYTES]
    for _ in range(7):
        rows.append(_mapped(_shift_table(level), rows[-1]))
    return np.concatenate(rows[::-1]).ravel()
