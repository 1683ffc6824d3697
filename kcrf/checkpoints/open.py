"""Opens a checkpoint of any of the usual formats as a lazy, read-only mapping from names to arrays."""

import re
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.checkpoints.names import LazyMapping
from kcrf.checkpoints.tensor_bundle import read_tensor_bundle
from kcrf.checkpoints.tensor_files import open_safetensors, open_torch

# Arrays that are not weights: moments of optimizers, step counters, shadow copies, loss scales.
OPTIMIZER_SLOTS = re.compile(
    r"(^|/)(adam_[mv]|lamb_[mv]|(Adam|LAMB|Lamb|AdamWeightDecay\w*|Momentum|Adagrad|RMSProp)(_\d+)?|shadow"
    r"|global_step|beta[12]_power|(current_)?loss_scale|(good|bad)_steps)(:0)?$"
)
_READERS: dict[str, Callable[[Path], Mapping[str, Any]]] = {
    "safetensors": open_safetensors,
    "tensorflow": read_tensor_bundle,
    "torch": open_torch,
}
# Kinds of checkpoints, and the patterns of their files in a folder, in the order of preference.
FILES = (
    ("safetensors", ("model.safetensors.index.json", "model.safetensors", "*.safetensors")),
    ("tensorflow", ("*.index",)),
    ("torch", ("pytorch_model.bin.index.json", "pytorch_model.bin")),
)


def open_checkpoint(path: "str | PathLike[str] | Checkpoint") -> "Checkpoint":
    """Opens a checkpoint as a lazy, read-only mapping from names to arrays.

    Args:
        path: One of
            a prefix of Google's TensorFlow format ("bert_model.ckpt", or its ".index" file), read without TensorFlow;
            a ".safetensors" file, or the "model.safetensors.index.json" of several;
            a "pytorch_model.bin", read by torch's weights-only loader;
            a folder that contains one of these (in the order safetensors, TensorFlow, torch);
            a `Checkpoint`, which is returned unchanged.

    Returns:
        A `Checkpoint`. Its arrays have the names and shapes of the file; bfloat16 is converted to float32.
        `google_names` renames the arrays. Moments of optimizers and step counters are omitted.

    Raises:
        FileNotFoundError: There is no checkpoint at `path`.
        ValueError: The file is truncated, corrupt, or of an unsupported format. Names the file and the reason.
        ImportError: `path` is a ".bin" file and torch is not installed.

    >>> checkpoint = open_checkpoint("chinese_L-12_H-768_A-12/bert_model.ckpt")  # doctest: +SKIP
    >>> checkpoint["bert/embeddings/word_embeddings"].shape                      # doctest: +SKIP
    (21128, 768)
    """
    if isinstance(path, Checkpoint):
        return path
    kind, file = _find(Path(path))
    entries = _READERS[kind](file)
    return Checkpoint(file, {name: entry for name, entry in entries.items() if not OPTIMIZER_SLOTS.search(name)})


class Checkpoint(LazyMapping):
    """A read-only mapping from names to the arrays of a checkpoint. Each array is read when it is accessed.

    Attributes:
        path: The file, or the prefix of the files.
        bytes_read: The number of bytes of the arrays read so far.
    """

    def __init__(self, path: str | PathLike[str], entries: Mapping[str, Any]) -> None:
        self.path = path
        self.bytes_read = 0
        self._entries = entries

    def __getitem__(self, name: str) -> np.ndarray:
        array = self._entry(name).read()
        self.bytes_read += self._entries[name].nbytes
        return array

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, without reading the array."""
        return tuple(self._entry(name).shape)

    def __repr__(self) -> str:
        return f"<Checkpoint {str(self.path)!r}: {len(self)} arrays>"

    def _entry(self, name: str) -> Any:
        if name not in self._entries:
            raise KeyError(f"{self.path}: no array {name!r} among the {len(self)} there")
        return self._entries[name]


def _find(path: Path) -> tuple[str, Path]:
    """The format of the checkpoint at a path, and the path that the reader of this format needs."""
    if path.is_dir():
        return _find_in_folder(path)
    text = str(path)
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
    raise ValueError(f"{path}: not a checkpoint, expected .safetensors, .bin, .pt or a TensorFlow prefix with .index")


def has_checkpoint(folder: str | PathLike[str]) -> bool:
    """Whether a folder contains at least one checkpoint."""
    return any(any(Path(folder).glob(pattern)) for _, patterns in FILES for pattern in patterns)


def _find_in_folder(folder: Path) -> tuple[str, Path]:
    for kind, patterns in FILES:
        for pattern in patterns:
            files = sorted(folder.glob(pattern))
            if len(files) > 1:
                names = ", ".join(file.name for file in files)
                raise ValueError(f"{folder}: several checkpoints, name one of them. Received: {names}")
            if files:
                return kind, files[0].with_suffix("") if kind == "tensorflow" else files[0]
    names = ", ".join(sorted(file.name for file in folder.iterdir())[:10])
    raise FileNotFoundError(f"{folder}: no checkpoint in this folder, expected *.safetensors, *.index, *.bin: {names}")
