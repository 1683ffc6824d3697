"""`K` and the functions of bert4keras' backend module, as attributes of `kcrf.backend`."""

import sys
from importlib import import_module

from kcrf.backend import activations, functions, host, k

_OF_BERT4KERAS = {
    "K": k,
    **{name: getattr(activations, name) for name in ("gelu_erf", "gelu_tanh", "set_gelu")},
    **{name: getattr(functions, name) for name in functions.__all__},
}


def __getattr__(name):
    """Returns a name that `kcrf.backend` does not define. Under tf_keras, bert4keras' own backend module has it."""
    if name.startswith("__"):
        raise AttributeError(f"module 'kcrf.backend' has no attribute {name!r}")
    if host.OLD_HOST:
        if name == "K" and "bert4keras.backend" not in sys.modules:
            from kcrf.backend.tf_keras import K

            return K
        return getattr(import_module("bert4keras.backend"), name)
    if name not in _OF_BERT4KERAS:
        raise AttributeError(
            f"module 'kcrf.backend' has no attribute {name!r}; kcrf.bert4keras.backend has the names of bert4keras"
        )
    return _OF_BERT4KERAS[name]
