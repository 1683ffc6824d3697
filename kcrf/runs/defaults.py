"""Defaults of training from scratch that follow from the data. Imports no Keras."""

import math

__all__ = ["CHOSEN", "choose_defaults", "describe_defaults"]

STEPS = 1000  # updates that a corpus of any size gets, unless that is fewer than 5 or more than 40 epochs
FEWEST_EPOCHS, MOST_EPOCHS = 5, 40
STEPS_OF_AN_EPOCH = 100  # at least so many, where the batch size can be chosen so
BATCH_SIZES = (16, 32, 64)
PATIENCE = 5  # epochs without a better one
PATIENCE_STEPS = 200  # but at least so many updates: at the start, a run may find no entity for 100 of them
NARROW, WIDE = 128, 256
WIDE_FROM = 2500  # sentences
CHOSEN = ("epochs", "patience", "batch_size", "width", "depth", "constraints", "crf_lr_multiplier")


def choose_defaults(sentences, given=None):
    """Settings for training from scratch, by the size of the data.

    A small corpus trains for more epochs, with smaller batches and a narrower encoder: every size gets about as many
    updates, and training stops early where the held-out part no longer improves. What the user has set is kept, and the
    rest is chosen to go with it: a given batch size changes the number of epochs. See `experiments/defaults.py`.

    Args:
        sentences: How many sentences the training part has.
        given: A dict of the settings that the user has set; None for a name counts as not set. Defaults to None.

    Returns:
        A dict with a value for each name of `CHOSEN`, and what else was given.

    Raises:
        ValueError: `sentences` is not positive.

    >>> choose_defaults(500)["epochs"], choose_defaults(20_000)["epochs"]
    (31, 5)
    >>> choose_defaults(4000, {"epochs": 3})["epochs"]
    3
    """
    if sentences < 1:
        raise ValueError(f"`sentences` must be positive. Received: {sentences}")
    given = {name: value for name, value in (given or {}).items() if value is not None}
    batch_size = given.get("batch_size", _batch_size(sentences))
    steps = math.ceil(sentences / batch_size)
    return {
        "epochs": min(max(FEWEST_EPOCHS, round(STEPS / steps)), MOST_EPOCHS),
        "patience": max(PATIENCE, math.ceil(PATIENCE_STEPS / steps)),
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


def describe_defaults(sentences, tags, settings):
    """One line about the data and what was chosen for it.

    Args:
        sentences: How many sentences the training part has.
        tags: How many tags the scheme has.
        settings: A dict with the names of `CHOSEN`.

    >>> describe_defaults(3821, 28, choose_defaults(3821))
    '3,821 sentences, 28 tags: up to 8 epochs of about 120 steps, batch size 32, width 256, depth 3, constraints'
    """
    steps = math.ceil(sentences / settings["batch_size"])
    chosen = [
        f"up to {settings['epochs']} epochs of about {steps:,} steps",
        f"batch size {settings['batch_size']}",
        f"width {settings['width']}",
        f"depth {settings['depth']}",
        "constraints" if settings["constraints"] else "no constraints",
    ]
    return f"{sentences:,} sentences, {tags} tags: {', '.join(chosen)}"
