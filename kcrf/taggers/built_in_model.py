"""The segmenter that comes with kcrf. Needs NumPy only."""

from importlib.util import find_spec
from pathlib import Path

__all__ = ["built_in_segmenter"]

_FOLDER = Path(__file__).parent / "data" / "zh_gsd"


def built_in_segmenter():
    """The path of the segmenter in the package: its exported file if onnxruntime is installed, else its run folder.

    Raises:
        ImportError: Neither onnxruntime nor a backend of Keras is installed.
    """
    if find_spec("onnxruntime"):
        return _FOLDER / "model.onnx"
    if not any(map(find_spec, ("tensorflow", "jax", "torch"))):
        raise ImportError("the ready segmenter needs onnxruntime, as in: pip install 'kcrf[onnx]'")
    return _FOLDER
