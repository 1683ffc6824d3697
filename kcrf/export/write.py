"""Writes the model of a run in a format that runs without Keras and without kcrf."""

import json
import os
from pathlib import Path
from typing import Any

from kcrf.export.html_page import html_page
from kcrf.files import write_aside
from kcrf.readers import SubwordReader
from kcrf.runs.exported import with_hash, write_linear_file
from kcrf.runs.names import BERT_CONFIG, CONFIG, TOKENIZER, VOCABULARY
from kcrf.runs.setup import Setup
from kcrf.taggers.open_model import is_linear, is_of_transformers, open_model, open_run

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
    """Exports the model of a run, including decoding, probabilities and the vocabulary.

    `kcrf.taggers` and the commands accept an ONNX file instead of the run folder. They then need onnxruntime, but no
    Keras. A linear model is exported as an `.npz` file, which needs NumPy only, or as an `.html` file: a page without
    a server, in which a browser segments or tags what is typed. docs/production.md describes the formats.

    Args:
        run_dir: A folder that `kcrf train` wrote, on any backend; or a linear model as an `.npz` file.
        path: The file, which ends in `.onnx`, or for a linear model in `.npz` or `.html`, and is replaced if it exists;
            or the folder of a SavedModel, which must not exist.
        format: "onnx" or "saved_model"; ignored for a linear model. Defaults to "onnx".
        int8: For ONNX: whether to quantize matrices and embeddings to 8-bit integers. The file has a quarter of the
            size, is one and a half times as fast, and its scores differ slightly. Defaults to False.
        standard: The segmentation standard to export, for a run of several. Defaults to None: the run has one.

    Raises:
        FileExistsError: The folder of a SavedModel exists.
        FileNotFoundError: `run_dir` is not a run folder, or a file is missing.
        RuntimeError: The backend of Keras is not TensorFlow, which writes all formats of Keras models; or, for a run
            with an encoder of `transformers`, not PyTorch.
        ValueError: `format` is unknown, `path` has a different extension, `int8` is used without ONNX, the run is
            damaged, or PyTorch cannot export its encoder of `transformers`.

    >>> export_model("runs/pku", "pku.onnx", int8=True)              # doctest: +SKIP
    """
    if is_linear(open_run(run_dir)):
        _export_linear(run_dir, Path(path), format, int8, standard)
        return
    _check(path, format, int8, "torch" if is_of_transformers(open_run(run_dir)) else "tensorflow")
    network, setup = open_model(run_dir, standard=standard)
    if format == "onnx":
        from kcrf.export.onnx_file import onnx_file

        texts = _texts_of(setup)
        content = with_hash(lambda more: onnx_file(network, setup.config, texts | more, int8).SerializeToString())
        write_aside(Path(path), lambda aside: aside.write_bytes(content))
        return
    from kcrf.export.saved_model import classifier_function, tagger_function, write_saved_model

    is_classifier = setup.config.task.output == "label"
    module = classifier_function(network, setup.config) if is_classifier else tagger_function(network)
    write_saved_model(module, Path(path), _texts_of(setup))


def _export_linear(run_dir: str | os.PathLike[str], path: Path, format: str, int8: bool, standard: str | None) -> None:
    if format != "onnx" or int8:
        raise ValueError("a linear model is exported as one file, of integers of 8 bits: omit `format` and `int8`")
    if path.suffix not in (".npz", ".html"):
        raise ValueError(f"`path` must end in .npz or .html for a linear model. Received: {str(path)!r}")
    network, setup = open_model(run_dir, standard=standard)
    if path.suffix == ".html":
        page = html_page(network.model, setup)
        write_aside(path, lambda aside: aside.write_text(page, encoding="utf-8"))
        return
    texts = _texts_of(setup)
    texts["labels.json"] = texts.pop("labels")  # in a file of arrays, the endings of names distinguish texts
    write_linear_file(path, texts, network.model.arrays())


def _check(path: str | os.PathLike[str], format: str, int8: bool, backend: str) -> None:
    from kcrf.backend import backend_name

    if format == "onnx" and Path(path).suffix != ".onnx":
        raise ValueError(f"`path` must end in .onnx; .npz and .html need a linear model. Received: {str(path)!r}")
    if backend_name() != backend:
        raise RuntimeError(f"needs KERAS_BACKEND={backend}, set before Keras is imported. Received: {backend_name()}")
    if backend == "torch" and format == "saved_model":
        raise ValueError("an encoder of transformers is exported as ONNX. Received: format='saved_model'")
    if format not in FORMATS:
        reason = f"; {_NO_LITERT}" if format == "litert" else ""
        raise ValueError(f"`format` must be one of {list(FORMATS)}. Received: {format!r}{reason}")
    if int8 and format != "onnx":
        raise ValueError(f"`int8` needs the format onnx. Received: {format!r}")
    if format == "saved_model" and Path(path).exists():
        raise FileExistsError(f"{path}: needs a folder that does not exist. Received: one that does")


def _texts_of(setup: Setup) -> dict[str, str]:
    """The texts that `kcrf.runs.exported` reads, JSON by name."""
    config = setup.config
    reader: Any = setup.reader
    texts: dict[str, Any] = {CONFIG: setup.run.published().to_json(), "labels": config.task.outputs(config.data)}
    texts[VOCABULARY if config.model.bert is None else BERT_CONFIG] = reader.get_config()
    if config.model.bert is not None:
        if isinstance(reader, SubwordReader):
            texts[TOKENIZER] = json.loads(reader.tokenizer.definition)
        else:
            texts["vocab.json"] = reader.vocabulary
    if reader.vectors is not None:
        texts["vectors.json"] = {"words": reader.vectors.words, "longest": reader.vectors.longest}
    return {name: json.dumps(value) for name, value in texts.items()}
