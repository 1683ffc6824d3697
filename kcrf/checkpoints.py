"""Checkpoints: any of the usual files as one lazy, read-only mapping from names to NumPy arrays. Needs NumPy only.

    open_checkpoint(path)              Google's TensorFlow files (without TensorFlow), safetensors, pytorch_model.bin
    google_names(mapping, model)       the same arrays under Google's names and in Google's shapes, whoever wrote them
    huggingface_names(mapping, model)  the way back, for writing
    layer_owner(name)                  the transformer layer, or the part, that an array belongs to
    write_safetensors(path, arrays), write_tf_checkpoint(prefix, arrays)

An array is read when it is asked for and not before; what was never asked for is never read.
"""

import json
import os
import re
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from kcrf.array_files import SAFETENSORS_TYPES, NotCovered, existing, parsed_json, read_safetensors, read_tensor_bundle
from kcrf.checkpoint_names import NAME_MAPS, google_names, huggingface_names, layer_owner

__all__ = [
    "NAME_MAPS",
    "Checkpoint",
    "google_names",
    "huggingface_names",
    "layer_owner",
    "open_checkpoint",
    "write_safetensors",
    "write_tf_checkpoint",
]

# What training leaves in a checkpoint beside the weights: moments of optimizers, counters, half-precision copies.
OPTIMIZER_SLOTS = re.compile(
    r"(^|/)(adam_[mv]|lamb_[mv]|(Adam|LAMB|Lamb|AdamWeightDecay\w*|Momentum|Adagrad|RMSProp)(_\d+)?|shadow"
    r"|global_step|beta[12]_power|(current_)?loss_scale|(good|bad)_steps)(:0)?$"
)


def open_checkpoint(path):
    """Opens a checkpoint as a lazy, read-only mapping from names to arrays.

    Args:
        path: One of
            a prefix of Google's TensorFlow format ("bert_model.ckpt", or its ".index" file), read without TensorFlow;
            a ".safetensors" file, or the "model.safetensors.index.json" of several;
            a "pytorch_model.bin", read by torch's weights-only loader;
            a folder that holds one of these (safetensors come first, then TensorFlow, then torch).

    Returns:
        A `Checkpoint`. Its arrays have the names and shapes of the file (bfloat16 becomes float32); `google_names`
        gives them Google's. Moments of optimizers and step counters are left out.

    Raises:
        FileNotFoundError: There is no checkpoint at `path`.
        ValueError: The file is truncated, corrupt, or of a kind that cannot be read; the text says which and where.
        ImportError: A ".bin" file without torch installed.

    >>> checkpoint = open_checkpoint("chinese_L-12_H-768_A-12/bert_model.ckpt")  # doctest: +SKIP
    >>> checkpoint["bert/embeddings/word_embeddings"].shape                      # doctest: +SKIP
    (21128, 768)
    """
    kind, path = _find(Path(path))
    entries = {"safetensors": read_safetensors, "tensorflow": _open_tensorflow, "torch": _open_torch}[kind](path)
    return Checkpoint(path, {name: entry for name, entry in entries.items() if not OPTIMIZER_SLOTS.search(name)})


class Checkpoint(Mapping):
    """The arrays of a checkpoint by name, read from disk one by one when asked for. Made by `open_checkpoint`.

    Attributes:
        path: The file, or the prefix of the files.
        bytes_read: How many bytes of arrays were read so far.
    """

    def __init__(self, path, entries):
        self.path = path
        self.bytes_read = 0
        self._entries = entries

    def __getitem__(self, name):
        array = self._entry(name).read()
        self.bytes_read += self._entries[name].nbytes
        return array

    def shape(self, name):
        """The shape of an array, without reading it."""
        return tuple(self._entry(name).shape)

    def __contains__(self, name):
        return name in self._entries

    def __iter__(self):
        return iter(self._entries)

    def __len__(self):
        return len(self._entries)

    def __repr__(self):
        return f"<Checkpoint {str(self.path)!r}: {len(self)} arrays>"

    def _entry(self, name):
        if name not in self._entries:
            raise KeyError(f"{self.path}: no array {name!r} among the {len(self)} there")
        return self._entries[name]


def _find(path):
    """The kind of the checkpoint at a path, and the path that its reader wants."""
    text = str(path)
    if path.is_dir():
        return _find_in_folder(path)
    if text.endswith(".index.json") and path.is_file():
        return ("torch" if text.endswith(".bin.index.json") else "safetensors"), path
    prefix = re.sub(r"\.(index|meta|data-\d{5}-of-\d{5})$", "", text)
    if Path(prefix + ".index").is_file():
        return "tensorflow", Path(prefix)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no checkpoint here, expected a file, a folder or a prefix of .index")
    if path.suffix == ".safetensors":
        return "safetensors", path
    if path.suffix in (".bin", ".pt", ".pth"):
        return "torch", path
    raise ValueError(
        f"{path}: not a checkpoint, expected .safetensors, .bin, .pt or a TensorFlow prefix with an .index"
    )


def _find_in_folder(folder):
    for kind, patterns in (
        ("safetensors", ("model.safetensors.index.json", "model.safetensors", "*.safetensors")),
        ("tensorflow", ("*.index",)),
        ("torch", ("pytorch_model.bin.index.json", "pytorch_model.bin")),
    ):
        for pattern in patterns:
            found = sorted(folder.glob(pattern))
            if len(found) > 1:
                names = ", ".join(file.name for file in found)
                raise ValueError(f"{folder}: several checkpoints, name one of them. Received: {names}")
            if found:
                return kind, found[0].with_suffix("") if kind == "tensorflow" else found[0]
    names = ", ".join(sorted(file.name for file in folder.iterdir())[:10])
    raise FileNotFoundError(
        f"{folder}: no checkpoint in this folder, expected *.safetensors, *.index or *.bin: {names}"
    )


# ---- TensorFlow itself, for the few bundles that `read_tensor_bundle` does not cover


def _open_tensorflow(prefix):
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


# ---- PyTorch


@dataclass
class _TorchArray:
    path: Path
    tensor: object
    checksum: int  # of the bytes of its storage; 0 = the file has none
    nbytes: int
    shape: tuple

    def read(self):
        if self.checksum:
            storage = self.tensor.untyped_storage()
            stored = self.tensor.new_empty(0).view(_torch().uint8).set_(storage).numpy()
            if zlib.crc32(stored) != self.checksum:
                raise ValueError(f"{self.path}: corrupt, the checksum of {storage.nbytes()} bytes of a tensor differs")
        tensor = self.tensor.float() if self.tensor.dtype == _torch().bfloat16 else self.tensor
        return np.array(tensor.numpy())


def _torch():
    try:
        import torch
    except ImportError:
        raise ImportError("A .bin file needs torch to be read: pip install kcrf[torch]") from None
    return torch


def _open_torch(path):
    if path.suffix == ".json":
        parts = parsed_json(path, path.read_bytes()).get("weight_map") or {}
        files = [existing(path.parent / str(part)) for part in sorted(set(parts.values()))]
        return {name: entry for file in files for name, entry in _open_torch(file).items()}
    torch = _torch()
    try:
        checksums = _zip_checksums(path)
        stored = torch.load(path, map_location="cpu", weights_only=True, mmap=checksums is not None)
    except Exception as error:  # torch raises anything from RuntimeError to KeyError on a broken file
        raise ValueError(f"{path}: not readable as weights, expected a file of torch.save, tensors only") from error
    stored = stored.get("state_dict", stored) if isinstance(stored, dict) else {}
    tensors = {name: tensor.detach() for name, tensor in stored.items() if isinstance(tensor, torch.Tensor)}
    if not tensors:
        raise ValueError(f"{path}: no tensors, expected a dict from names to tensors")
    checksums = _by_storage(tensors.values(), checksums or [])
    return {
        name: _TorchArray(path, t, checksums.get(t.data_ptr(), 0), t.numel() * t.element_size(), tuple(t.shape))
        for name, t in tensors.items()
    }


def _zip_checksums(path):
    """(size, checksum) of the records that hold tensors, in their order in the file; None for an old file, no zip."""
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            return None
    with zipfile.ZipFile(path) as archive:
        records = sorted(archive.infolist(), key=lambda record: record.header_offset)
        for record in records:
            if record.filename.endswith("data.pkl") and record.CRC:
                archive.read(record)  # compares the checksum
        return [(record.file_size, record.CRC) for record in records if "/data/" in record.filename]


def _by_storage(tensors, checksums):
    """Checksums by address: a mapped file keeps its records in order. Empty where the two lists do not match."""
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    places = sorted(storages)
    if [storages[place] for place in places] != [size for size, _ in checksums]:
        return {}
    return {place: checksum for place, (_, checksum) in zip(places, checksums)}


# ---- Writing


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
    with _aside(path) as folder:
        with open(folder / "file", "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for array in arrays.values():
                file.write(array.reshape(-1).view(np.uint8))
        os.replace(folder / "file", path)


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
    with _aside(prefix) as folder, tensorflow.device("CPU"):
        tensors = [tensorflow.constant(arrays[name]) for name in names]
        tensorflow.raw_ops.SaveV2(
            prefix=str(folder / "file"), tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors
        )
        for file in sorted(folder.iterdir()):  # the data before the index that points into it
            os.replace(file, f"{prefix}{file.name.removeprefix('file')}")


@contextmanager
def _aside(path):
    """A folder beside a path, gone in the end."""
    folder = Path(path).absolute().parent
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as name:
        yield Path(name)
