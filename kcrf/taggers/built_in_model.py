"""The built-in word segmenter. Needs NumPy only."""

from pathlib import Path

__all__ = ["built_in_segmenter"]

_FOLDER = Path(__file__).parent / "data" / "zh_gsd"


def built_in_segmenter():
    """The path of the built-in segmenter: the file of a linear model."""
    return _FOLDER / "model.npz"
