"""`fit` and `train_on_batch` for scripts of Keras 2: mistakes that Keras 3 accepts in silence are refused or named."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import signature
from typing import Any

from kcrf.backend import backend_name, keras
from kcrf.bert4keras.file_names import has_layer_of_kcrf
from kcrf.layers.checks import check_fit

_running: ContextVar[tuple[Any, ...]] = ContextVar(
    "running", default=()
)  # the models that are being fitted, the innermost last


def changes() -> Iterator[Any]:
    """The changes to `keras.Model`, as `(owner, name, value)`."""
    yield keras.Model, "fit", _checked(keras.Model.fit, _refuse_nothing_to_train)
    yield keras.Model, "train_on_batch", _checked(keras.Model.train_on_batch, _sync_shared_weights)


def _checked(method: Any, prepare: Any) -> Any:
    """The method, for models with a layer of kcrf after `prepare(model)` and the checks of `check_fit`."""
    parameters = signature(method)

    @wraps(method)
    def call(self, *args: Any, **kwargs: Any) -> Any:
        if not has_layer_of_kcrf(self):
            return method(self, *args, **kwargs)
        prepare(self)
        arguments = parameters.bind(self, *args, **kwargs).arguments
        check_fit(self, arguments.get("x"), arguments.get("y"), arguments.get("class_weight"))
        with _fitting(self):
            return method(self, *args, **kwargs)

    return call


@contextmanager
def _fitting(model: Any) -> Iterator[Any]:
    token = _running.set((*_running.get(), model))
    try:
        yield
    finally:
        _running.reset(token)


def _refuse_nothing_to_train(model: Any) -> None:
    if model.weights and not model.trainable_weights:
        raise ValueError(
            "`fit` needs a layer that is trainable. Keras 3 looks for it now, not at `compile` as Keras 2; models "
            "by `from kcrf.bert4keras.models import Keras2Model as Model` train what was trainable when they were "
            "compiled. Received: a model whose layers are all frozen, perhaps for another model that shares them"
        )


def _sync_shared_weights(model: Any) -> None:
    """For `train_on_batch` in a callback: on JAX the model that is being fitted has the values of shared weights."""
    fitted = _running.get()[-1:]
    if backend_name() == "jax" and fitted and fitted[0] is not model:
        fitted[0].jax_state_sync()
