"""Defaults of training from scratch that follow from the data. Imports no Keras."""

import math

__all__ = ["CHOSEN", "choose_defaults", "describe_defaults"]

STEPS = 1000  # updates that a corpus of any size gets, unless that is fewer than 5 or more than 40 epochs
FEWEST_EPOCHS, MOST_EPOCHS = 5, 40
STEPS_OF_AN_EPOCH = 100  # at least so many, where the batch size can be chosen so
BATCH_SIZES = (16, 32, 64)
NARROW, WIDE = 128, 256
WIDE_FROM = 5000  # sentences
CHOSEN = ("epochs", "batch_size", "width", "depth", "constraints", "crf_lr_multiplier")


def choose_defaults(sentences, tags, given=None):
    """Settings for training from scratch, by the size of the data.

    Small corpora train longer, in smaller batches, and a smaller encoder: all sizes get about as many updates. What the
    user has set is kept, and the rest goes with it: a given batch size changes the number of epochs.

    Args:
        sentences: How many sentences the training part has.
        tags: How many tags the scheme has. More tags do not change the choice today.
        given: A dict of the settings that the user has set; None for a name counts as not set. Defaults to None.

    Returns:
        A dict with a value for each name of `CHOSEN`, and what else was given.

    Raises:
        ValueError: `sentences` is not positive.

    >>> choose_defaults(500, 4)["epochs"], choose_defaults(20_000, 4)["epochs"]
    (31, 5)
    >>> choose_defaults(4000, 4, {"epochs": 3})["epochs"]
    3
    """
    if sentences < 1:
        raise ValueError(f"`sentences` must be positive. Received: {sentences}")
    given = {name: value for name, value in (given or {}).items() if value is not None}
    batch_size = given.get("batch_size", _batch_size(sentences))
    return {
        "epochs": _epochs(sentences, batch_size),
        "batch_size": batch_size,
        "width": WIDE if sentences >= WIDE_FROM else NARROW,
        "depth": 3,
        "constraints": given.get("head", "crf") == "crf",
        "crf_lr_multiplier": "auto",
        **given,
    }


def _batch_size(sentences):
    """The largest batch that leaves an epoch enough steps, or the smallest there is."""
    return max((size for size in BATCH_SIZES if sentences >= size * STEPS_OF_AN_EPOCH), default=BATCH_SIZES[0])


def _epochs(sentences, batch_size):
    steps = math.ceil(sentences / batch_size)
    return min(max(FEWEST_EPOCHS, round(STEPS / steps)), MOST_EPOCHS)


def describe_defaults(sentences, tags, settings):
    """One line about the data and what was chosen for it.

    Args:
        sentences, tags: As for `choose_defaults`.
        settings: A dict with the names of `CHOSEN`.

    >>> describe_defaults(3821, 28, choose_defaults(3821, 28))
    '3,821 sentences, 28 tags: 8 epochs of about 120 steps, batch size 32, width 128, depth 3, constraints'
    """
    steps = math.ceil(sentences / settings["batch_size"])
    chosen = [
        f"{settings['epochs']} epochs of about {steps:,} steps",
        f"batch size {settings['batch_size']}",
        f"width {settings['width']}",
        f"depth {settings['depth']}",
        "constraints" if settings["constraints"] else "no constraints",
    ]
    return f"{sentences:,} sentences, {tags} tags: {', '.join(chosen)}"
