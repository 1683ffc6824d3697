"""Taggers and classifiers as ONNX files: the network by tf2onnx or by PyTorch, then decoding and probabilities."""

import json
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from kcrf.backend import backend_name, keras, ops
from kcrf.export.chain_graph import Graph, append_chain
from kcrf.networks.tagging import mask_of
from kcrf.runs import RunConfig
from kcrf.version import __version__

_IR_VERSION = 10  # onnx 1.17 writes it; newer ones need a newer onnxruntime
_OPSET = 18
File = tuple[Any, dict[str, str]]  # an `onnx.ModelProto`, and the metadata that not all files have


def onnx_file(network: Any, config: RunConfig, texts: dict[str, str], int8: bool = False) -> Any:
    """The `onnx.ModelProto` of a network with decoding and confidences; `texts` are its metadata.

    If `int8`, matrices and embeddings become integers of 8 bits.
    """
    proto, metadata = (_classifier if config.task.output == "label" else _tagger)(network, config, int8)
    helper.set_model_props(proto, {**texts, **metadata})
    proto.producer_name, proto.producer_version, proto.ir_version = "kcrf", __version__, _IR_VERSION
    onnx.checker.check_model(proto)
    return proto


def _tagger(network: Any, config: RunConfig, int8: bool) -> File:
    scheme, size = network.scheme, len(network.scheme)
    proto = _network_graph(network.model, lambda x, y: {"emissions": y, "mask": mask_of(x)}, int8)
    best, likely = (_scores(chain) for chain in network.chains(np.zeros((1, 1, size), "float32")))
    graph = Graph("crf")
    append_chain(graph, "emissions", "mask", best, likely, scheme, config.temperature)
    _append(proto.graph, graph)
    results: dict[str, Any] = {"tags": (TensorProto.INT32, []), "confidences": (TensorProto.FLOAT, [])}
    results.update(marginals=(TensorProto.FLOAT, [size]), onward=(TensorProto.FLOAT, [size]))
    for name, (kind, last) in results.items():
        proto.graph.output.append(helper.make_tensor_value_info(name, kind, ["batch", "time", *last]))
    free = [f"allowed_{dimension}" for dimension in ("batch", "time", "tags")]  # (1, 1, 1) will do
    proto.graph.input.append(helper.make_tensor_value_info("allowed", TensorProto.FLOAT, free))
    proto.graph.input.append(helper.make_tensor_value_info("with_confidences", TensorProto.BOOL, []))
    transitions = np.asarray(likely["transitions"], "float64").tolist()
    return proto, {"transitions": json.dumps(transitions)}


def _scores(chain: Any) -> dict[str, np.ndarray | None]:
    """The transitions, starts and ends of a `kcrf.crf.Chain`, as arrays or None."""
    scores = {"transitions": chain.transitions, "start": chain.start, "end": chain.end}
    return {name: None if x is None else ops.convert_to_numpy(x) for name, x in scores.items()}


def _classifier(network: Any, config: RunConfig, int8: bool) -> File:
    proto = _network_graph(network.model, lambda x, y: {"scores": y}, int8)
    graph, labels = Graph("labels"), config.data.labels
    if labels:
        several = config.facts.multilabel
        probabilities = graph.add("Sigmoid", "scores") if several else graph.add("Softmax", "scores", axis=1)
        graph.rename(probabilities, "probabilities")
    else:
        scaled = graph.add("Mul", "scores", graph.constant(config.facts.deviation))
        graph.rename(graph.add("Add", scaled, graph.constant(config.facts.mean)), "numbers")
    _append(proto.graph, graph)
    for name in ("scores", "probabilities" if labels else "numbers"):
        shape: list[Any] = ["batch", len(labels) or 1]
        proto.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
    return proto, {}


def _append(graph: Any, addition: Graph) -> None:
    graph.node.extend(addition.nodes)
    graph.initializer.extend(addition.constants)


def _network_graph(model: Any, outputs: Callable[..., dict[str, Any]], int8: bool = False) -> Any:
    """The `onnx.ModelProto` of a model; `outputs` makes a dict of results, none of them declared as an output yet."""
    if backend_name() == "torch":
        from kcrf.export.torch_graph import network_graph

        proto = network_graph(model, outputs)
    else:
        proto = _graph_of_tensorflow(_without_convolutions(model) if int8 else model, outputs)
    proto = _quantized(proto) if int8 else proto
    proto.graph.ClearField("output")
    return proto


def _graph_of_tensorflow(model: Any, outputs: Callable[..., dict[str, Any]]) -> Any:
    """The `onnx.ModelProto` by tf2onnx."""
    import tensorflow as tf
    import tf2onnx

    from kcrf.export.saved_model import signature_of

    signature = list(signature_of(model).values())

    @tf.function(input_signature=signature)
    def call(*arrays: Any) -> dict[str, Any]:
        inputs = dict(zip(model.input, arrays, strict=True))
        return outputs(inputs, model(inputs, training=False))

    handlers = {"Erfc": (_convert_erfc, [])}
    return tf2onnx.convert.from_function(call, signature, opset=_OPSET, custom_op_handlers=handlers)[0]


def _without_convolutions(model: Any) -> Any:
    """The model with convolutions as products of matrices, which onnxruntime computes faster with small integers."""

    def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(layer, keras.layers.Conv1D):
            return layer(*args, **kwargs)
        size = layer.kernel_size[0]
        rows = ops.pad(args[0], [(0, 0), ((size - 1) // 2, size // 2), (0, 0)])  # a convolution keeps the length
        stop = [slice(start, start - size + 1 or None) for start in range(size)]
        around = ops.concatenate([rows[:, part] for part in stop], axis=-1)  # (batch, time, size * features)
        kernel, bias = map(ops.convert_to_numpy, (layer.kernel, layer.bias))
        return layer.activation(ops.matmul(around, kernel.reshape(-1, layer.filters)) + bias)

    return keras.models.clone_model(model, clone_function=lambda layer: layer, call_function=call)


def _convert_erfc(graph: Any, node: Any, name: str, args: Any) -> Any:
    """Converts the operator Erfc, which tf2onnx does not know, to 1 - Erf."""
    inputs, outputs = node.input, node.output
    graph.remove_node(name)
    erf = graph.make_node("Erf", inputs)
    one = graph.make_const(f"{name}/one", np.float32(1))
    return graph.make_node("Sub", [one.output[0], erf.output[0]], name=name, outputs=outputs)


def _quantized(proto: Any) -> Any:
    """The graph with matrices and embeddings as integers of 8 bits; their other factors are rounded, too."""
    from onnxruntime.quantization import quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "int8.onnx"
        logging.disable(logging.WARNING)  # it advises a preparation that is for images
        try:
            options = {"EnableSubgraph": True}  # loops too
            quantize_dynamic(proto, path, op_types_to_quantize=["MatMul", "Gather"], extra_options=options)
        finally:
            logging.disable(logging.NOTSET)
        return onnx.load(path)
