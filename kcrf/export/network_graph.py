"""The network of a model as ONNX, by tf2onnx. Needs TensorFlow as the backend of Keras."""

import numpy as np
import onnx
import tensorflow as tf
import tf2onnx

from kcrf.backend import keras, ops
from kcrf.export.tensorflow_function import signature_of

_OPSET = 18


def network_graph(model, outputs, int8=False):
    """The graph of a model.

    Args:
        model: A `keras.Model` whose inputs are a dict of ints.
        outputs: A function from the inputs, a dict, and what the model returned to a dict of outputs.
        int8: Whether matrices and embeddings become integers of 8 bits. Defaults to False.

    Returns:
        An `onnx.ModelProto` whose inputs are int32, batch and time free. Inputs and results have the names of the
        dicts; no result is declared as an output yet.
    """
    network = _without_convolutions(model) if int8 else model
    signature = list(signature_of(model).values())

    @tf.function(input_signature=signature)
    def call(*arrays):
        inputs = dict(zip(model.input, arrays, strict=True))
        return outputs(inputs, network(inputs, training=False))

    handlers = {"Erfc": (_convert_erfc, [])}
    proto, _ = tf2onnx.convert.from_function(call, signature, opset=_OPSET, custom_op_handlers=handlers)
    proto = _quantized(proto) if int8 else proto
    proto.graph.ClearField("output")
    return proto


def _without_convolutions(model):
    """The model with each convolution as a product of a matrix with the positions around each, joined.

    onnxruntime multiplies matrices of small integers several times faster than it convolves them.
    """

    def call(layer, *args, **kwargs):
        if not isinstance(layer, keras.layers.Conv1D):
            return layer(*args, **kwargs)
        size, rows = layer.kernel_size[0], ops.pad(args[0], [(0, 0), _sides(layer.kernel_size[0]), (0, 0)])
        stop = [slice(start, start - size + 1 or None) for start in range(size)]
        around = ops.concatenate([rows[:, part] for part in stop], axis=-1)  # (batch, time, size * features)
        kernel, bias = map(ops.convert_to_numpy, (layer.kernel, layer.bias))
        return layer.activation(ops.matmul(around, kernel.reshape(-1, layer.filters)) + bias)

    return keras.models.clone_model(model, clone_function=lambda layer: layer, call_function=call)


def _sides(size):
    """How many positions before and after are padded, so that a convolution keeps the length."""
    return (size - 1) // 2, size // 2


def _convert_erfc(graph, node, name, args):
    """Converts the operator Erfc, which tf2onnx does not know, to 1 - Erf."""
    inputs, outputs = node.input, node.output
    graph.remove_node(name)
    erf = graph.make_node("Erf", inputs)
    one = graph.make_const(f"{name}/one", np.float32(1))
    return graph.make_node("Sub", [one.output[0], erf.output[0]], name=name, outputs=outputs)


def _quantized(proto):
    """The graph with matrices and embeddings as integers of 8 bits; what they are multiplied with is rounded too."""
    import logging
    import tempfile
    from pathlib import Path

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
