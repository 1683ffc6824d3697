"""Checkpoints: any of the usual files as one lazy, read-only mapping from names to NumPy arrays. Needs NumPy only.

    open_checkpoint(path)              Google's TensorFlow files (without TensorFlow), safetensors, pytorch_model.bin
    google_names(mapping, model)       the same arrays under Google's names and in Google's shapes
    huggingface_names(mapping, model)  the reverse, for writing
    layer_owner(name)                  the transformer layer, or the part, that an array belongs to
    write_safetensors(path, arrays), write_tf_checkpoint(prefix, arrays)

Arrays are read lazily: each when it is asked for.
"""

from kcrf.checkpoints.names import NAME_MAPS, google_names, huggingface_names, layer_owner
from kcrf.checkpoints.open import Checkpoint, open_checkpoint
from kcrf.checkpoints.safetensors import write_safetensors
from kcrf.checkpoints.tensor_bundle import write_tf_checkpoint

__all__ = [
    "Checkpoint",
    "NAME_MAPS",
    "google_names",
    "huggingface_names",
    "layer_owner",
    "open_checkpoint",
    "write_safetensors",
    "write_tf_checkpoint",
]
