"""Writes the model of a run as one file that runs without Keras and without kcrf."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from kcrf.backend import backend_name, ops
from kcrf.export.chain_graph import Graph, append_chain
from kcrf.export.network_graph import network_graph
from kcrf.files import write_aside
from kcrf.runs.folder import BERT_CONFIG, CONFIG, FORMAT, VOCABULARY
from kcrf.taggers.networks import mask_of
from kcrf.taggers.open import open_model
from kcrf.version import __version__

__all__ = ["export_onnx"]

_TASKS = ("cws", "ner", "classify")


def export_onnx(run_dir, path, int8=False):
    """Writes the model of a run as an ONNX file, with decoding, confidences and vocabulary inside.

    `kcrf.taggers` and the commands take the file in place of the run folder and need onnxruntime, but no Keras. What
    the file has for others is in docs/production.md.

    Args:
        run_dir: A folder that `kcrf train` wrote, on any backend.
        path: The file, which ends in `.onnx`. One that is there is replaced.
        int8: Whether matrices and embeddings become integers of 8 bits: a quarter of the size, two to three times the
            speed, and slightly other scores. Defaults to False.

    Raises:
        FileNotFoundError: It is no run folder, or a file is missing.
        RuntimeError: The backend of Keras is not TensorFlow, from which the file is made.
        ValueError: `path` has another ending, or the run is damaged.

    >>> export_onnx("runs/pku", "pku.onnx", int8=True)              # doctest: +SKIP
    """
    if backend_name() != "tensorflow":
        raise RuntimeError(f"needs KERAS_BACKEND=tensorflow, set before Keras is imported. Received: {backend_name()}")
    if Path(path).suffix != ".onnx":
        raise ValueError(f"`path` must end in .onnx. Received: {str(path)!r}")
    network, setup = open_model(run_dir, _TASKS)
    proto, texts = (_classifier if setup.settings.task == "classify" else _tagger)(network, setup.settings, int8)
    helper.set_model_props(proto, {**_texts_of(setup), **texts})
    proto.producer_name, proto.producer_version, proto.ir_version = "kcrf", __version__, 10
    onnx.checker.check_model(proto)
    write_aside(Path(path), lambda aside: aside.write_bytes(proto.SerializeToString()))


def _texts_of(setup):
    """The metadata that `kcrf.runs.exported` reads."""
    settings = {**asdict(setup.settings), "teacher": None}
    texts = {CONFIG: {"format": FORMAT, "kcrf": __version__, "backend": setup.backend, "settings": settings}}
    texts[VOCABULARY if setup.settings.bert is None else BERT_CONFIG] = setup.reader.get_config()
    if setup.settings.bert is not None:
        texts["vocab.json"] = setup.reader.vocabulary
    return {name: json.dumps(value) for name, value in texts.items()}


def _tagger(network, settings, int8):
    """The file of a tagger, and its metadata beyond those of all."""
    scheme, size = network.scheme, len(network.scheme)
    proto = network_graph(network.model, lambda x, y: {"emissions": y, "mask": mask_of(x)}, int8)
    best, likely = (_scores(chain) for chain in network.chains(np.zeros((1, 1, size), "float32")))
    graph = Graph("crf")
    append_chain(graph, "emissions", "mask", best, likely, scheme, settings.temperature)
    _append(proto.graph, graph)
    results = {"tags": (TensorProto.INT32, []), "confidences": (TensorProto.FLOAT, [])}
    results.update(marginals=(TensorProto.FLOAT, [size]), onward=(TensorProto.FLOAT, [size]))
    for name, (kind, last) in results.items():
        proto.graph.output.append(helper.make_tensor_value_info(name, kind, ["batch", "time", *last]))
    free = [f"allowed_{dimension}" for dimension in ("batch", "time", "tags")]  # (1, 1, 1) will do
    proto.graph.input.append(helper.make_tensor_value_info("allowed", TensorProto.FLOAT, free))
    proto.graph.input.append(helper.make_tensor_value_info("with_confidences", TensorProto.BOOL, []))
    transitions = np.asarray(likely["transitions"], "float64").tolist()
    return proto, {"labels": json.dumps(scheme.labels), "transitions": json.dumps(transitions)}


def _scores(chain):
    """The transitions, starts and ends of a dict as `kcrf.crf` takes it, as arrays or None."""
    names = ("transitions", "start", "end")
    return {name: None if chain[name] is None else ops.convert_to_numpy(chain[name]) for name in names}


def _classifier(network, settings, int8):
    """As `_tagger`, of a classifier."""
    proto = network_graph(network.model, lambda x, y: {"scores": y}, int8)
    graph, labels = Graph("labels"), settings.labels
    if labels:
        graph.rename(graph.add("Softmax", "scores", axis=1), "probabilities")
    else:
        scaled = graph.add("Mul", "scores", graph.constant(settings.deviation))
        graph.rename(graph.add("Add", scaled, graph.constant(settings.mean)), "numbers")
    _append(proto.graph, graph)
    for name in ("scores", "probabilities" if labels else "numbers"):
        shape = ["batch", len(labels) or 1]
        proto.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    return proto, {"labels": json.dumps(labels)}


def _append(graph, more):
    """Appends a `Graph` to that of a file."""
    graph.node.extend(more.nodes)
    graph.initializer.extend(more.constants)
