"""A layer that adds a loss of its own to the model and returns what it was given, as bert4keras' `Loss`."""

from typing import Any

from kcrf.backend import keras


class Loss(keras.layers.Layer):
    """Adds a loss to the model, for losses that need more than one output and one label each.

    Labels are inputs of the model. A subclass says what the loss is; a model with it is compiled without a loss, and
    its batches are `(inputs, None)` or `(inputs,)`. A subclass that is saved with a model must be registered with
    Keras, like any layer.

    Args:
        output_axis: Which of the inputs are returned: an index for one of them, a list of indices for a list. Defaults
            to `None`: all.

    Example:

    >>> from kcrf.backend import K
    >>> class Distance(Loss):
    ...     def compute_loss(self, inputs, mask=None):
    ...         true, predicted = inputs
    ...         return K.mean(K.square(true - predicted))
    >>> labels, features = keras.Input((1,)), keras.Input((3,))
    >>> predicted = Distance(output_axis=1)([labels, keras.layers.Dense(1)(features)])
    >>> model = keras.Model([labels, features], predicted)
    >>> model.compile("adam")
    """

    def __init__(self, output_axis: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.output_axis = list(output_axis) if isinstance(output_axis, (list, tuple)) else output_axis
        self.supports_masking = True

    def compute_loss(self, inputs, mask=None):
        """The loss, a scalar tensor.

        Args:
            inputs: What the layer was called with: a tensor or a list of tensors.
            mask: Its mask, or a list of masks, None for tensors without one.
        """
        raise NotImplementedError("A subclass of `Loss` says in `compute_loss(self, inputs, mask=None)` what it is")

    def call(self, inputs, mask=None):
        loss = self.compute_loss(inputs, mask)
        if len(getattr(loss, "shape", ())):
            raise ValueError(
                f"`compute_loss` must return a scalar, such as `K.mean(loss)`. Received: shape={tuple(loss.shape)}"
            )
        self.add_loss(loss)
        return self._chosen(inputs)

    def compute_output_shape(self, input_shape):
        return self._chosen(input_shape)

    def compute_mask(self, inputs, mask=None):
        return None if mask is None else self._chosen(mask)

    def _chosen(self, values):
        """Of a list with something for each input, that which is returned."""
        if self.output_axis is None:
            return values
        if isinstance(self.output_axis, list):
            return [values[index] for index in self.output_axis]
        return values[self.output_axis]

    def get_config(self):
        return {**super().get_config(), "output_axis": self.output_axis}
