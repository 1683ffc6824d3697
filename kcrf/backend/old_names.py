"""bert4keras' names that `kcrf.backend`, `kcrf.layers` and `kcrf.optimizers` have, too.

They stand in `kcrf.bert4keras`, on a floor above, which is imported when a script asks one of these rooms for such a
name. Only here a room reaches up. `kcrf.bert4keras` changes Keras only for scripts that import one of its six pages.
"""

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any

from kcrf.backend.host import OLD_HOST, _host, keras

EXTENSIONS = (  # extend_with_...
    "exponential_moving_average gradient_accumulation layer_adaptation lazy_optimization lookahead parameter_wise_lr "
    "piecewise_linear_lr weight_decay"
).split()
_IN_SAVED_MODELS = {  # registered name -> module
    "ExtendedOptimizer": "extensions",
    **dict.fromkeys(("MaximumEntropyMarkovModel", "MarkovDenseLoss", "MarkovSparseLoss"), "memm"),
    **dict.fromkeys(("EfficientGlobalPointer", "GlobalPointer"), "pointers"),
    **dict.fromkeys(("Keras2Model", "Loss"), "keras2"),
}


def _register_later(name: str, module: str) -> None:
    """Registers a class of `kcrf.bert4keras` with Keras, which imports its module when a saved model names it."""

    class Later:
        @classmethod
        def from_config(cls, config: dict[str, Any]) -> Any:
            import_module(f"kcrf.bert4keras.{module}")  # registers the class instead of this one
            return keras.saving.get_custom_objects()[f"kcrf>{name}"].from_config(config)

        def get_config(self) -> dict[str, Any]:
            raise NotImplementedError

    keras.saving.register_keras_serializable("kcrf", name)(Later)


for _name, _module in _IN_SAVED_MODELS.items():
    _register_later(_name, _module)


def _find(room: str, places: Mapping[str, str], name: str) -> Any:
    if OLD_HOST and room == "backend" and not name.startswith("_"):
        return _host.name_in_bert4keras_backend(name)
    if name not in places:
        raise AttributeError(f"module 'kcrf.{room}' has no attribute {name!r}")
    module = import_module(f"kcrf.bert4keras.{places[name]}")
    return module if name == "K" else getattr(module, name)


_FUNCTIONS = (
    "batch_gather gelu_erf gelu_tanh multilabel_categorical_crossentropy search_layer set_gelu "
    "sparse_multilabel_categorical_crossentropy"
)
# Each becomes the `__getattr__` of its room: Python calls it for names that the room lacks.
of_backend = partial(_find, "backend", {"K": "k", **dict.fromkeys(_FUNCTIONS.split(), "functions")})
_LAYERS = {"MaximumEntropyMarkovModel": "memm", "EfficientGlobalPointer": "pointers", "GlobalPointer": "pointers"}
of_layers = partial(_find, "layers", {"Loss": "keras2", **_LAYERS})
of_optimizers = partial(_find, "optimizers", {f"extend_with_{name}": "extensions" for name in EXTENSIONS})
