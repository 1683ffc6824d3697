"""Writes the model of a run in a format that runs without Keras and without kcrf."""

import json
import os
from pathlib import Path

import tensorflow as tf

from kcrf.backend import backend_name
from kcrf.export.onnx_file import onnx_file
from kcrf.export.tensorflow_function import classifier_function, tagger_function
from kcrf.files import folder_aside, write_aside
from kcrf.runs.names import BERT_CONFIG, CONFIG, VOCABULARY
from kcrf.taggers.open_model import open_model

FORMATS = ("onnx", "saved_model")
_NO_LITERT = (
    "LiteRT is not supported: its converter, as of TensorFlow 2.21, refuses the operation TensorListReserve of loops "
    "over any number of characters, and its interpreter those that TensorFlow would lend it"
)


def export_model(
    run_dir: str | os.PathLike[str],
    path: str | os.PathLike[str],
    format: str = "onnx",
    int8: bool = False,
    standard: str | None = None,
) -> None:
    """Exports the model of a run, including decoding, confidences and the vocabulary.

    `kcrf.taggers` and the commands accept an ONNX file instead of the run folder. They then need onnxruntime, but no
    Keras. docs/production.md describes the formats for other programs.

    Args:
        run_dir: A folder that `kcrf train` wrote, on any backend.
        path: The file, which ends in `.onnx` and is replaced if it exists; or the folder of a SavedModel, which must
            not exist.
        format: "onnx" or "saved_model". Defaults to "onnx".
        int8: For ONNX: whether to quantize matrices and embeddings to 8-bit integers. The file has a quarter of the
            size, is one and a half times as fast, and its scores differ slightly. Defaults to False.
        standard: The segmentation standard whose model is exported, for a run of several. Defaults to None: the run has
            one.

    Raises:
        FileExistsError: The folder of a SavedModel exists.
        FileNotFoundError: `run_dir` is not a run folder, or a file is missing.
        RuntimeError: The backend of Keras is not TensorFlow, which writes all formats.
        ValueError: `format` is unknown, `path` has a different extension, `int8` is used without ONNX, or the run is
            damaged.

    >>> export_model("runs/pku", "pku.onnx", int8=True)              # doctest: +SKIP
    """
    _check(path, format, int8)
    network, setup = open_model(run_dir, standard=standard)
    texts = _texts_of(setup)
    if format == "onnx":
        content = onnx_file(network, setup.config, texts, int8).SerializeToString()
        write_aside(Path(path), lambda aside: aside.write_bytes(content))
        return
    is_classifier = setup.config.task.output == "label"
    module = classifier_function(network, setup.config) if is_classifier else tagger_function(network)
    _write_saved_model(module, Path(path), texts)


def _check(path, format, int8):
    if backend_name() != "tensorflow":
        raise RuntimeError(f"needs KERAS_BACKEND=tensorflow, set before Keras is imported. Received: {backend_name()}")
    if format not in FORMATS:
        reason = f"; {_NO_LITERT}" if format == "litert" else ""
        raise ValueError(f"`format` must be one of {list(FORMATS)}. Received: {format!r}{reason}")
    if int8 and format != "onnx":
        raise ValueError(f"`int8` needs the format onnx. Received: {format!r}")
    if format == "onnx" and Path(path).suffix != ".onnx":
        raise ValueError(f"`path` must end in .onnx. Received: {str(path)!r}")
    if format == "saved_model" and Path(path).exists():
        raise FileExistsError(f"{path}: needs a folder that does not exist. Received: one that does")


def _texts_of(setup):
    """The texts that `kcrf.runs.exported` reads, a dict of JSON by name."""
    config = setup.config
    texts = {CONFIG: setup.run.published().to_json(), "labels": config.task.outputs(config.data)}
    texts[VOCABULARY if config.model.bert is None else BERT_CONFIG] = setup.reader.get_config()
    if config.model.bert is not None:
        texts["vocab.json"] = setup.reader.vocabulary
    if setup.reader.vectors is not None:
        texts["vectors.json"] = {"words": setup.reader.vectors.words, "longest": setup.reader.vectors.longest}
    return {name: json.dumps(value) for name, value in texts.items()}


def _write_saved_model(module, path, texts):
    """Writes a SavedModel, with the texts in its folder `assets.extra`."""
    with folder_aside(path) as folder:
        aside = folder / path.name
        tf.saved_model.save(module, str(aside), signatures={"serving_default": module.serve})
        (aside / "assets.extra").mkdir()
        for name, text in texts.items():
            (aside / "assets.extra" / name).write_text(text, encoding="utf-8")
        os.replace(aside, path)
