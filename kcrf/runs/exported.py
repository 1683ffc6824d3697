"""A model that `kcrf export` wrote as one ONNX file, with all that its use needs. Imports no Keras.

The metadata of the file hold texts by these names:

    config.json         as in a run folder, and so are
    vocabulary.json     or, with a BERT, bert_config.json and vocab.json
    vectors.json        the words of the vectors of a run that has some
    labels              a JSON list of the tags, in the order of their numbers
    transitions         of a tagger: a JSON matrix, from row to column, from which probabilities are computed
"""

import json
import os
from pathlib import Path

import numpy as np

from kcrf.runs.folder import CONFIG, check_config, settings_of

__all__ = ["ExportedFile", "is_exported"]

_NEEDED = "`pip install kcrf[onnx]` brings onnxruntime, which runs exported models"


def is_exported(path):
    """Whether a path is that of an exported model, not of a run folder."""
    return Path(path).suffix == ".onnx"


class ExportedFile:
    """Reads an exported model.

    Args:
        path: The file.

    Attributes:
        session: The `onnxruntime.InferenceSession`.

    Raises:
        FileNotFoundError: There is no such file.
        ImportError: onnxruntime is not installed.
        ValueError: It is not a file that `kcrf export` wrote.
    """

    def __init__(self, path):
        self.path = Path(path)
        if not self.path.is_file():
            raise FileNotFoundError(f"{path}: no such file")
        try:
            import onnxruntime
        except ImportError:
            raise ImportError(f"{path}: {_NEEDED}") from None
        try:
            self.session = onnxruntime.InferenceSession(str(path), _options(onnxruntime), ["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's, for which it has many classes
            raise ValueError(f"{path}: cannot be read as an ONNX file ({str(error)[:200]})") from None
        self._texts = self.session.get_modelmeta().custom_metadata_map
        if CONFIG not in self._texts:
            raise ValueError(f"{path}: needs a model that `kcrf export` wrote. Received: another ONNX file")

    def file(self, name):
        """What an error calls a text in the file."""
        return f"{self.path}: {name}"

    def read_json(self, name):
        """The plain values in a text of the file."""
        if name not in self._texts:
            raise ValueError(f"{self.path}: needs {name} in its metadata. Received: {sorted(self._texts)}")
        try:
            return json.loads(self._texts[name])
        except ValueError as error:
            raise ValueError(f"{self.file(name)}: needs JSON. Received: {error}") from None

    def read_config(self):
        """As `RunFolder.read_config`."""
        return check_config(self.file(CONFIG), self.read_json(CONFIG))

    def settings_of(self, config):
        """As `RunFolder.settings_of`."""
        return settings_of(self.file(CONFIG), config)

    def read_settings(self):
        """The `Settings` of the run that was exported."""
        return self.settings_of(self.read_config())

    def read_vocab(self):
        """As `RunFolder.read_vocab`."""
        return self.read_json("vocab.json")

    def read_vectors(self):
        """As `RunFolder.read_vectors`, with empty vectors: the network has them."""
        known = self.read_json("vectors.json")
        words = "\n".join(known["words"]).encode("utf-8", "surrogatepass")
        vectors = np.zeros((len(known["words"]), 0))
        return {"words": np.frombuffer(words, np.uint8), "vectors": vectors, "longest": np.array(known["longest"])}


def _options(onnxruntime):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors alone
    options.intra_op_num_threads = _threads()
    return options


def _threads():
    """As many as OMP_NUM_THREADS says, else one for each processor that this process may use."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given):
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0  # 0: onnxruntime decides
