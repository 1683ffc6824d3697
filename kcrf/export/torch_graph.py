"""Networks with an encoder of `transformers` as ONNX graphs, which PyTorch writes and onnxruntime checks."""

import logging
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import torch

from kcrf.layers import TransformersEncoder

_OPSET = 18
_LENGTHS = (1, 9, 130, 512)  # on which the graph is checked; the last one is the example
_TOLERANCE = 1e-3


class _Network(torch.nn.Module):
    """A Keras model as a module of PyTorch whose arguments are its inputs."""

    def __init__(self, model: Any, outputs: Callable[..., dict[str, Any]]) -> None:
        super().__init__()
        self.model, self.outputs, self.names = model, outputs, list(model.input)
        self.encoder = next(layer for layer in model.layers if isinstance(layer, TransformersEncoder))
        self.parameters_of_encoder = self.encoder.module  # which Keras hides from PyTorch

    def forward(self, *arrays: Any) -> Any:
        inputs = dict(zip(self.names, arrays, strict=True))
        return tuple(self.outputs(inputs, self.model(inputs, training=False)).values())


def network_graph(model: Any, outputs: Callable[..., dict[str, Any]]) -> Any:
    """The `onnx.ModelProto` of a model with an encoder of `transformers`. `onnx_file.py` makes it for other models.

    Raises ValueError if PyTorch cannot export the model, or if the graph computes other numbers than the model.
    """
    network = _Network(model, outputs).eval()
    results = list(outputs(model.input, model.output))
    kind = network.encoder.module.config.model_type
    longest = getattr(network.encoder.module.config, "max_position_embeddings", None) or _LENGTHS[-1]
    shapes = [(2, min(length, longest - 2)) for length in _LENGTHS]
    free = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                network,
                tuple(_example(network, *shapes[-1])),
                input_names=network.names,
                output_names=results,
                dynamic_shapes=((free,) * len(network.names),),
                opset_version=_OPSET,
                verbose=False,
            )
    except Exception as error:  # of many classes
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{kind!r} of transformers cannot be exported by torch {torch.__version__}: {why}") from error
    finally:
        logging.disable(logging.NOTSET)
    proto = program.model_proto  # type: ignore[union-attr]
    _check(proto, network, shapes, kind)
    return proto


def _example(network: _Network, rows: int, length: int) -> list[Any]:
    """Random inputs. The last row ends in padding."""
    random, encoder = np.random.default_rng(0), network.encoder
    arrays = {}
    for name, symbol in network.model.input.items():
        arrays[name] = random.integers(0, 2, (rows, length, *symbol.shape[2:]))
    arrays["Input-Token"] = random.integers(0, encoder.module.config.vocab_size, (rows, length))
    arrays["Input-Token"][-1, length // 2 + 1 :] = encoder.pad_token_id
    return [torch.tensor(array, dtype=torch.int32) for array in arrays.values()]


def _check(proto: Any, network: _Network, shapes: list[tuple[int, int]], kind: str) -> None:
    """Raises ValueError unless the graph computes what the network computes, for texts of several lengths."""
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for shape in shapes:
        arrays = _example(network, *shape)
        feeds = {name: array.numpy() for name, array in zip(network.names, arrays)}
        real = feeds["Input-Token"] != network.encoder.pad_token_id
        with torch.no_grad():
            expected = network(*arrays)
        for one, other in zip(expected, session.run(None, {i.name: feeds[i.name] for i in session.get_inputs()})):
            one = one.numpy()
            rows = real if one.ndim > 1 and one.shape[:2] == real.shape else slice(None)
            if not np.allclose(one[rows], other[rows], _TOLERANCE, _TOLERANCE):
                difference = np.abs(one[rows] - other[rows]).max()
                raise ValueError(
                    f"{kind!r} of transformers cannot be exported by torch {torch.__version__}: for {shape[1]} tokens, "
                    f"scores of the file differ by {difference:.2g} from the scores of the network"
                )
