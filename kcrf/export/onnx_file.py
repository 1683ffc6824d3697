"""Taggers and classifiers as ONNX files."""

import json

import numpy as np
import onnx
from onnx import TensorProto, helper

from kcrf.backend import ops
from kcrf.export.chain_graph import Graph, append_chain
from kcrf.export.network_graph import network_graph
from kcrf.networks.tagging import mask_of
from kcrf.version import __version__

_IR_VERSION = 10  # that of onnx 1.17; newer ones need a newer onnxruntime


def onnx_file(network, config, texts, int8=False):
    """An `onnx.ModelProto` of a network with decoding and confidences.

    Args:
        network: A `KerasTaggingNetwork` or a `KerasClassificationNetwork`.
        config: The `kcrf.runs.RunConfig` of its run.
        texts: A dict of texts for the metadata.
        int8: Whether matrices and embeddings become integers of 8 bits. Defaults to False.
    """
    proto, metadata = (_classifier if config.task.output == "label" else _tagger)(network, config, int8)
    helper.set_model_props(proto, {**texts, **metadata})
    proto.producer_name, proto.producer_version, proto.ir_version = "kcrf", __version__, _IR_VERSION
    onnx.checker.check_model(proto)
    return proto


def _tagger(network, config, int8):
    """The file of a tagger, and its metadata beyond those of all."""
    scheme, size = network.scheme, len(network.scheme)
    proto = network_graph(network.model, lambda x, y: {"emissions": y, "mask": mask_of(x)}, int8)
    best, likely = (_scores(chain) for chain in network.chains(np.zeros((1, 1, size), "float32")))
    graph = Graph("crf")
    append_chain(graph, "emissions", "mask", best, likely, scheme, config.temperature)
    _append(proto.graph, graph)
    results = {"tags": (TensorProto.INT32, []), "confidences": (TensorProto.FLOAT, [])}
    results.update(marginals=(TensorProto.FLOAT, [size]), onward=(TensorProto.FLOAT, [size]))
    for name, (kind, last) in results.items():
        proto.graph.output.append(helper.make_tensor_value_info(name, kind, ["batch", "time", *last]))
    free = [f"allowed_{dimension}" for dimension in ("batch", "time", "tags")]  # (1, 1, 1) will do
    proto.graph.input.append(helper.make_tensor_value_info("allowed", TensorProto.FLOAT, free))
    proto.graph.input.append(helper.make_tensor_value_info("with_confidences", TensorProto.BOOL, []))
    transitions = np.asarray(likely["transitions"], "float64").tolist()
    return proto, {"transitions": json.dumps(transitions)}


def _scores(chain):
    """The transitions, starts and ends of a `kcrf.crf.Chain`, as arrays or None."""
    scores = {"transitions": chain.transitions, "start": chain.start, "end": chain.end}
    return {name: None if x is None else ops.convert_to_numpy(x) for name, x in scores.items()}


def _classifier(network, config, int8):
    """As `_tagger`, of a classifier."""
    proto = network_graph(network.model, lambda x, y: {"scores": y}, int8)
    graph, labels = Graph("labels"), config.data.labels
    if labels:
        graph.rename(graph.add("Softmax", "scores", axis=1), "probabilities")
    else:
        scaled = graph.add("Mul", "scores", graph.constant(config.facts.deviation))
        graph.rename(graph.add("Add", scaled, graph.constant(config.facts.mean)), "numbers")
    _append(proto.graph, graph)
    for name in ("scores", "probabilities" if labels else "numbers"):
        shape = ["batch", len(labels) or 1]
        proto.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    return proto, {}


def _append(graph, addition):
    """Appends a `Graph` to that of a file."""
    graph.node.extend(addition.nodes)
    graph.initializer.extend(addition.constants)
