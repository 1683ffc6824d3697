"""The error of a training run that diverges. Needs no Keras."""

NOT_FINITE = (
    "What the model computes must be finite numbers; train it with a lower learning rate, or more warmup. "
    "Received: others"
)


class DivergedError(ValueError):
    """The loss, or an output of the model, is no longer finite."""
