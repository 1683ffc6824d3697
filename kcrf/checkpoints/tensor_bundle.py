"""Google's TensorFlow format: a LevelDB table of names (.index) and raw bytes (.data-*), both with checksums.

Format: tensorflow/core/util/tensor_bundle, tensorflow/core/lib/io/format.cc,
tensorflow/core/protobuf/tensor_bundle.proto.
"""

import os
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from kcrf.checkpoints.aside import folder_aside
from kcrf.checkpoints.crc32c import Crc32c
from kcrf.checkpoints.raw_array import RawArray, checked_entries, existing

__all__ = ["NotCovered", "open_tensorflow", "read_tensor_bundle", "write_tf_checkpoint"]

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
    return checked_entries({name: _tensorflow_entry(prefix, shards, name, told) for name, told in entries.items()})


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


def open_tensorflow(prefix):
    """The arrays of a TensorFlow checkpoint, by TensorFlow itself where `read_tensor_bundle` does not cover them."""
    try:
        return read_tensor_bundle(prefix)
    except NotCovered as error:
        refusal = error
    try:
        import tensorflow

        reader = tensorflow.train.load_checkpoint(str(prefix))
    except ImportError:
        raise ValueError(f"{refusal}; TensorFlow can read it: pip install kcrf[tensorflow]") from None
    except Exception as error:  # TensorFlow's own errors share no base class with Python's
        raise ValueError(f"{refusal}; TensorFlow cannot read it either") from error
    kinds = reader.get_variable_to_dtype_map()
    return {
        name: _TensorFlowArray(reader, name, prod(shape) * kinds[name].size, tuple(shape))
        for name, shape in reader.get_variable_to_shape_map().items()
        if kinds[name] != tensorflow.string
    }


@dataclass
class _TensorFlowArray:
    reader: object
    name: str
    nbytes: int
    shape: tuple

    def read(self):
        array = np.asarray(self.reader.get_tensor(self.name))
        return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def write_tf_checkpoint(prefix, arrays):
    """Writes arrays in Google's TensorFlow format, aside first and then renamed. Needs TensorFlow.

    Args:
        prefix: The path without endings, such as "bert_model.ckpt".
        arrays: A mapping from names to arrays.

    >>> write_tf_checkpoint("bert_model.ckpt", {"bert/pooler/dense/bias": np.zeros(4, "float32")})  # doctest: +SKIP
    """
    try:
        import tensorflow
    except ImportError:
        raise ImportError("write_tf_checkpoint needs tensorflow: pip install kcrf[tensorflow]") from None
    names = list(arrays)
    with folder_aside(prefix) as folder, tensorflow.device("CPU"):
        tensors = [tensorflow.constant(arrays[name]) for name in names]
        tensorflow.raw_ops.SaveV2(
            prefix=str(folder / "file"), tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors
        )
        for file in sorted(folder.iterdir()):  # the data before the index that points into it
            os.replace(file, f"{prefix}{file.name.removeprefix('file')}")
