"""On tf_keras, the variables of a loaded model have the names that they were saved with."""

from functools import wraps

from kcrf.backend import Layer, keras

__all__ = ["changes_of_loaded_names"]


def changes_of_loaded_names():
    """The change to the `Layer` of tf_keras, as `(owner, name, value)`.

    Patterns of optimizers look for "Embedding-Token/embeddings". Once bert4keras has registered layers of the same
    names, tf_keras builds its own `Embedding` and `LayerNormalization` outside their name scope when a model is loaded,
    and the variable is called "embeddings".
    """
    base = keras.layers.Layer
    yield base, "build_from_config", _in_name_scope(base.build_from_config)


def _in_name_scope(build_from_config):
    @wraps(build_from_config)
    def build(layer, config):
        if isinstance(layer, Layer):  # ours, which is in its name scope
            return build_from_config(layer, config)
        with keras.name_scope(layer.name):
            return build_from_config(layer, config)

    return build
