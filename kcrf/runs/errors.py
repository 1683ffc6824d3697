"""What can go wrong while training. Needs no Keras."""

__all__ = ["DivergedError"]


class DivergedError(ValueError):
    """The loss is not finite any more."""
