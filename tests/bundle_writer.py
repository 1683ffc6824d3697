"""A writer of TensorFlow's checkpoint format, field by field, so that tests of reading it run without TensorFlow."""

import os
import struct
from pathlib import Path

import numpy as np


def crc32c(data):
    """Bit by bit, from the definition."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


TABLE = list(range(256))  # the same for a byte at a time, for the many files that are written
for _ in range(8):
    TABLE = [(value >> 1) ^ (0x82F63B78 if value & 1 else 0) for value in TABLE]


def table_crc32c(data):
    register = 0xFFFFFFFF
    for byte in data:
        register = TABLE[(register ^ byte) & 255] ^ (register >> 8)
    return register ^ 0xFFFFFFFF


def masked(data):
    crc = table_crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def block(pairs, interval=3):
    """A block whose keys share prefixes, with a restart every few keys."""
    out, restarts, last = b"", [], b""
    for place, (key, value) in enumerate(pairs):
        shared = len(os.path.commonprefix([key, last])) if place % interval else 0
        restarts += [] if place % interval else [len(out)]
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    return out + b"".join(struct.pack("<I", r) for r in restarts or [0]) + struct.pack("<I", len(restarts or [0]))


def bundle_parts(arrays, header=b"", extra=None):
    """The keys and values of an index, and the bytes of its data file. `extra` is appended to entries, by name."""
    codes = {"float32": 1, "float64": 2, "int32": 3, "int64": 9, "float16": 19, "bool": 10, "complex64": 8}
    data, pairs = b"", [(b"", field(1, 1) + header)]
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        raw = array.tobytes()
        shape = b"".join(field(2, field(1, size) if size else b"") for size in array.shape)
        entry = field(1, codes[array.dtype.name]) + field(2, shape) + field(4, len(data)) + field(5, len(raw))
        entry += varint(6 << 3 | 5) + struct.pack("<I", masked(raw)) + (extra or {}).get(name, b"")
        pairs.append((name.encode(), entry))
        data += raw
    return pairs, data


def write_index(prefix, pairs, blocks=2, kind=b"\0", change=bytes, repeats=1):
    """Writes keys and values as prefix.index in several data blocks, each changed by `change` before its checksum."""
    index, handles = b"", []
    for part in np.array_split(np.arange(len(pairs)), blocks):
        contents = change(block([pairs[i] for i in part]))
        handles.append((pairs[part[-1]][0] + b"\xff", varint(len(index)) + varint(len(contents))))
        index += contents + kind + struct.pack("<I", masked(contents + kind))
    places = []
    for contents in (block([]), block(handles * repeats, 1)):
        places.append(varint(len(index)) + varint(len(contents)))
        index += contents + b"\0" + struct.pack("<I", masked(contents + b"\0"))
    index += b"".join(places).ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)
    Path(f"{prefix}.index").write_bytes(index)


def write_bundle(prefix, arrays, blocks=2, header=b"", kind=b"\0", extra=None):
    """Writes `arrays` as prefix.index with several data blocks, and prefix.data-00000-of-00001."""
    pairs, data = bundle_parts(arrays, header, extra)
    write_index(prefix, pairs, blocks, kind)
    Path(f"{prefix}.data-00000-of-00001").write_bytes(data)


ARRAYS = {
    "bert/embeddings/word_embeddings": np.random.default_rng(0).normal(size=(7, 4)).astype("float32"),
    "bert/encoder/layer_0/output/dense/kernel": np.random.default_rng(1).normal(size=(8, 4)),
    "bert/encoder/layer_0/output/dense/bias": np.arange(4, dtype="int32"),
    "bert/pooler/dense/bias": np.arange(3, dtype="float16"),
    "cls/predictions/output_bias": np.array(5, "int64"),
    "empty": np.zeros((0, 4), "float32"),
}


def same(mapping, arrays):
    assert set(mapping) == set(arrays) and len(mapping) == len(arrays)
    for name, array in arrays.items():
        assert mapping[name].dtype == array.dtype and mapping[name].shape == array.shape == mapping.shape(name)
        assert np.array_equal(mapping[name], array), name
