"""Reads models that `kcrf export` wrote: one file with everything needed to use the model. Imports no Keras.

A linear model is a `.npz` file, any other model an ONNX file. The file, or its metadata, contains texts by name:

    config.json         as in a run folder
    vocabulary.json     as in a run folder; with a BERT, bert_config.json and vocab.json instead
    vectors.json        the words of the word vectors, if the model has any
    labels              a JSON list of the tags or labels, in the order of their numbers
    transitions         for a tagger: a JSON matrix, from row to column, from which probabilities are computed
    sha256              of an ONNX file: its own hash, see `with_hash`
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.extras import needs_extra
from kcrf.files import parse_json, read_arrays, write_aside
from kcrf.readers import WordVectors
from kcrf.runs.model_files import ModelFiles
from kcrf.runs.names import CONFIG

_LINEAR = ".npz"
_HASH, _NO_HASH = "sha256", b"kcrf" * 16  # in the metadata of an ONNX file, and in the place of the hash for hashing


def is_exported(path: str | os.PathLike[str]) -> bool:
    """Whether a path is an exported model and not a run folder."""
    return Path(path).suffix.lower() in (".onnx", _LINEAR) and not Path(path).is_dir()


def open_exported(path: str | os.PathLike[str]) -> "LinearFile | ExportedFile":
    """Opens the `LinearFile` or `ExportedFile` at a path."""
    return LinearFile(path) if Path(path).suffix.lower() == _LINEAR else ExportedFile(path)


class _FileOfTexts(ModelFiles):
    """Base of the exported files: reads from the texts in one file what `RunFolder` reads from its files."""

    _texts: Mapping[str, str]

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"{path}: no such file")

    def file(self, name: str) -> str:
        return f"{self.path}: {name}"

    def read_json(self, name: str) -> dict[str, Any]:
        return self._read(name, dict)

    def _read(self, name: str, kind: type) -> Any:
        """Parses the JSON object or list in a text of the file."""
        if name not in self._texts:
            raise ValueError(f"{self.path}: needs {name} in its metadata. Received: {sorted(self._texts)}")
        return parse_json(self.file(name), self._texts[name], kind)

    def read_vocab(self) -> dict[str, int]:
        return self.read_json("vocab.json")

    def read_vectors(self) -> dict[str, np.ndarray]:
        """As `RunFolder.read_vectors`, with vectors of size 0: the network contains the vectors."""
        entries = self.read_json("vectors.json")
        words, longest = entries.get("words"), entries.get("longest")
        if not isinstance(longest, int) or not isinstance(words, list) or not all(isinstance(w, str) for w in words):
            raise ValueError(f"{self.file('vectors.json')}: needs words and longest. Received: {str(entries)[:80]}")
        return WordVectors(words, np.zeros((len(words), 0)), longest).arrays()


class ExportedFile(_FileOfTexts):
    """Reads an exported network. Pickling saves only the path, and unpickling reads the file again."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        with needs_extra("onnx", f"{path}: an exported model"):
            import onnxruntime
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3  # only errors
        options.intra_op_num_threads = _threads()
        try:
            self.session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's errors have many classes
            text = " ".join(str(error).split())
            reason = text.rpartition("failed:")[2][-200:] or text[:200]  # without codes, paths and C++ signatures
            raise ValueError(f"{path}: cannot be read as an ONNX file ({reason})") from None
        try:
            self._texts = self.session.get_modelmeta().custom_metadata_map
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: has damaged metadata ({error})") from None
        if CONFIG not in self._texts:
            raise ValueError(f"{path}: needs a model that `kcrf export` wrote. Received: another ONNX file")

    def check_weights(self) -> None:
        expected = self._texts.get(_HASH)
        content = self.path.read_bytes() if expected else b""
        if expected and hashlib.sha256(content.replace(expected.encode(), _NO_HASH, 1)).hexdigest() != expected:
            reason = f"its SHA-256 is another than {_HASH} in its metadata: it is damaged, or was changed"
            raise ValueError(f"{self.path}: cannot be read as a file of `kcrf export` ({reason}). Export it again")

    def __reduce__(self) -> tuple[Any, ...]:
        return ExportedFile, (self.path.absolute(),)

    def read_transitions(self, size: int) -> np.ndarray:
        """The transitions of a tagger, `(size, size)` float64."""
        rows = self._read("transitions", list)
        try:
            transitions = np.array(rows, "float64")
        except (TypeError, ValueError):  # rows have different lengths or contain no numbers
            transitions = np.zeros(0)
        if transitions.shape != (size, size):
            raise ValueError(f"{self.file('transitions')}: needs a matrix of {size} x {size}. Received: {rows!s:.80}")
        return transitions


class LinearFile(_FileOfTexts):
    """Reads an exported linear model."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._arrays = read_arrays(path)
        if CONFIG not in self._arrays:
            raise ValueError(f"{path}: needs a model that `kcrf export` wrote. Received: another file of arrays")
        names = [name for name in self._arrays if name.endswith(".json")]
        try:
            self._texts = {name: self._arrays.pop(name).tobytes().decode("utf-8", "surrogatepass") for name in names}
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: has damaged texts ({error})") from None

    def check_weights(self) -> None:
        """The archive has a checksum of each array, which is checked where it is read."""

    def read_arrays(self, name: str) -> dict[str, np.ndarray]:
        """The arrays of the model, a dict; `name` is ignored."""
        return self._arrays


def with_hash(content: Callable[[dict[str, str]], bytes]) -> bytes:
    """The bytes of an ONNX file with its hash: `content` makes them with the metadata that it is given."""
    data = content({_HASH: _NO_HASH.decode()})
    return data.replace(_NO_HASH, hashlib.sha256(data).hexdigest().encode(), 1)


def write_linear_file(path: str | os.PathLike[str], texts: Mapping[str, str], arrays: Mapping[str, np.ndarray]) -> None:
    """Writes a file for `LinearFile`: texts by the names above, and the arrays of a model."""
    encoded = {name: np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8) for name, text in texts.items()}
    write_aside(Path(path), lambda aside: _save(aside, {**encoded, **arrays}))


def _save(path: Path, arrays: dict[str, Any]) -> None:
    with open(path, "wb") as file:  # np.savez would append a suffix to a path
        np.savez_compressed(file, **arrays)


def _threads() -> int:
    """The number of threads: one for each processor that this process may use, or OMP_NUM_THREADS if it is lower."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        requested = int(os.environ.get("OMP_NUM_THREADS", ""))
    except ValueError:
        return available
    return min(requested, available) if requested > 0 else available
