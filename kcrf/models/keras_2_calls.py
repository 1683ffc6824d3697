"""Calls of Keras 2 as scripts for bert4keras make them, for models with layers of kcrf.

Keras 3 has dropped some methods of `keras.Model` and takes less in others. Where a call has one meaning it is accepted,
else the error says what to write instead. Models without a layer of kcrf are left alone: they lack these methods as
before. Only the setter of `Callback.model` is there for all callbacks.
"""

from functools import wraps
from types import MethodType

import numpy as np

from kcrf.backend import OLD_HOST, backend_name, batch_stream, keras, running_fit
from kcrf.models.file_names import has_layer_of_kcrf

__all__ = ["accept_calls_of_keras_2"]


def accept_calls_of_keras_2():
    """Adds what Keras 3 lacks to `keras.Model` and `keras.callbacks.Callback`, once. Does nothing under tf_keras."""
    if OLD_HOST or isinstance(vars(keras.Model).get("fit_generator"), _OldMethod):
        return
    for method in (fit_generator, evaluate_generator, predict_generator, _make_train_function):
        setattr(keras.Model, method.__name__, _OldMethod(method))
    for name in ("predict", "predict_on_batch"):
        setattr(keras.Model, name, _with_lists(getattr(keras.Model, name)))
    keras.Model.fit = _with_something_to_train(keras.Model.fit)
    keras.Model.train_on_batch = _within_another_fit(keras.Model.train_on_batch)
    callback = keras.callbacks.Callback
    callback.model = callback.model.setter(lambda self, model: self.set_model(model))


class _OldMethod:
    """A method that models with a layer of kcrf have, and no other model."""

    def __init__(self, function):
        self.function = function

    def __get__(self, model, owner=None):
        if model is None or not has_layer_of_kcrf(model):
            name = owner.__name__ if model is None else type(model).__name__
            raise AttributeError(f"{name!r} object has no attribute {self.function.__name__!r}")
        return MethodType(self.function, model)


def fit_generator(
    self,
    generator,
    steps_per_epoch=None,
    epochs=1,
    verbose=1,
    callbacks=None,
    validation_data=None,
    validation_steps=None,
    validation_freq=1,
    class_weight=None,
    max_queue_size=10,
    workers=1,
    use_multiprocessing=False,
    shuffle=True,
    initial_epoch=0,
):
    """`fit` with the arguments of Keras 2; those about queues and workers have no effect."""
    return self.fit(
        _stream(generator),
        steps_per_epoch=steps_per_epoch,
        epochs=epochs,
        verbose=verbose,
        callbacks=callbacks,
        validation_data=_stream(validation_data),
        validation_steps=validation_steps,
        validation_freq=validation_freq,
        class_weight=class_weight,
        initial_epoch=initial_epoch,
    )


def evaluate_generator(self, generator, steps=None, callbacks=None, *queue, verbose=0, **queue_options):
    """`evaluate` with the arguments of Keras 2."""
    return self.evaluate(_stream(generator), steps=steps, callbacks=callbacks, verbose=verbose)


def predict_generator(self, generator, steps=None, callbacks=None, *queue, verbose=0, **queue_options):
    """`predict` with the arguments of Keras 2."""
    return self.predict(_stream(generator), steps=steps, callbacks=callbacks, verbose=verbose)


def _stream(batches):
    """What Keras 3 takes for batches of lists: a stream for an iterator, anything else as it is."""
    return batch_stream(batches) if hasattr(batches, "__next__") else batches


def _make_train_function(self):
    raise NotImplementedError(
        "Keras 3 has no train function of a graph that another could replace. For adversarial training, call after "
        "`model.compile`, in place of your own function: kcrf.training.adversarial(model, 'Embedding-Token', epsilon), "
        "kcrf.training.virtual_adversarial(model, 'Embedding-Token') or kcrf.training.gradient_penalty(model, "
        "'Embedding-Token', scale). Received: model._make_train_function()"
    )


def _with_something_to_train(fit):
    @wraps(fit)
    def call(self, *args, **kwargs):
        if self.weights and not self.trainable_weights and has_layer_of_kcrf(self):
            raise ValueError(
                "`fit` needs a layer that is trainable. Keras 3 looks for it now, not at `compile` as Keras 2; models "
                "by `from kcrf.models import Keras2Model as Model` train what was trainable when they were compiled. "
                "Received: a model whose layers are all frozen, perhaps for another model that shares them"
            )
        return fit(self, *args, **kwargs)

    return call


def _within_another_fit(train_on_batch):
    """`train_on_batch` for callbacks: on JAX the model that is being fitted has the values of shared weights."""

    @wraps(train_on_batch)
    def call(self, *args, **kwargs):
        fit = running_fit() if backend_name() == "jax" else None
        if fit is not None and fit.model is not self and has_layer_of_kcrf(self):
            fit.model.jax_state_sync()
        return train_on_batch(self, *args, **kwargs)

    return call


def _with_lists(method):
    @wraps(method)
    def call(self, x, *args, **kwargs):
        return method(self, _as_arrays(self, x), *args, **kwargs)

    return call


def _as_arrays(model, x):
    """Lists of numbers as arrays, one for each input of the model."""
    if not isinstance(x, list) or not x or not isinstance(x[0], (list, int, float)) or not has_layer_of_kcrf(model):
        return x
    return [np.array(part) for part in x] if len(model.inputs) > 1 else np.array(x)
