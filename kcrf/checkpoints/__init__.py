"""Reads weight files as lazy, read-only mappings from names to NumPy arrays. Needs no Keras.

    open_checkpoint(path)              TensorFlow files of Google (without TensorFlow), safetensors, pytorch_model.bin
    google_names(mapping, model)       the same arrays with the names and shapes of Google's checkpoints
    huggingface_names(mapping, model)  the same arrays with the names and shapes of Hugging Face's checkpoints
    write_safetensors(path, arrays), write_tf_checkpoint(prefix, arrays)

An array is read when it is accessed.
"""

from kcrf.checkpoints.names import google_names, huggingface_names
from kcrf.checkpoints.open import open_checkpoint
from kcrf.checkpoints.tensor_bundle import write_tf_checkpoint
from kcrf.checkpoints.tensor_files import write_safetensors

__all__ = ["open_checkpoint", "google_names", "huggingface_names", "write_safetensors", "write_tf_checkpoint"]
