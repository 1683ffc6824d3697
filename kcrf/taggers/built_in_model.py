"""The built-in word segmenters. They need NumPy only."""

from pathlib import Path

_FOLDER = Path(__file__).parent / "data" / "zh_gsd"


def built_in_segmenter(tags=False):
    """The path of the built-in segmenter, the file of a linear model; with `tags` of the one that has classes."""
    return _FOLDER / ("tagged.npz" if tags else "model.npz")
