"""Settings that follow from the size of the training data. Imports no Keras."""

import math
from dataclasses import replace

__all__ = ["choose_defaults", "describe_settings"]

STEPS = 1000  # updates that data of any size get, unless that is fewer than 5 or more than 40 epochs
STEPS_OF_WORDS = 4000  # in place of `STEPS` where words are the units: sentences are short, and each has its own words
FEWEST_EPOCHS, MOST_EPOCHS = 5, 40
STEPS_OF_AN_EPOCH = 100  # at least this many, where the batch size can be chosen so
BATCH_SIZES = (16, 32, 64)
PATIENCE = 5  # epochs without a better one
PATIENCE_STEPS = 200  # but at least this many updates: at the start, a run may find no entity for 100 of them
NARROW, WIDE = 128, 256
WIDE_FROM = 2500  # windows


def choose_defaults(settings, windows):
    """Fills in the settings that depend on the size of the training data: epochs, patience, batch size, width.

    Small data train for more epochs, with smaller batches and a narrower encoder: data of every size get about as many
    updates, and training stops early where the held-out part no longer improves. What the user has set is kept, and the
    rest is chosen to go with it: a given batch size changes the number of epochs, and a given number of epochs is not
    cut short. See `experiments/defaults.py`.

    Args:
        settings: `Settings`.
        windows: How many windows of up to 128 positions the training data have. Most sentences are one window.

    Returns:
        `Settings` in which `epochs`, `batch_size` and `width` are numbers; `epochs` remains None where `steps` are set.

    Raises:
        ValueError: `windows` is not positive.

    >>> from kcrf.runs import Settings
    >>> choose_defaults(Settings(), 500).epochs, choose_defaults(Settings(), 20_000).epochs
    (31, 5)
    >>> choose_defaults(Settings(epochs=3), 4000).epochs
    3
    """
    if windows < 1:
        raise ValueError(f"`windows` must be positive. Received: {windows}")
    batch_size = settings.batch_size or _batch_size(windows)
    steps = math.ceil(windows / batch_size)
    chosen = {"batch_size": batch_size, "width": settings.width or (WIDE if windows >= WIDE_FROM else NARROW)}
    if settings.epochs is None and settings.steps is None:
        updates = STEPS_OF_WORDS if settings.units == "words" else STEPS
        chosen["epochs"] = min(max(FEWEST_EPOCHS, round(updates / steps)), MOST_EPOCHS)
        chosen["patience"] = settings.patience or max(PATIENCE, math.ceil(PATIENCE_STEPS / steps))
    return replace(settings, **chosen)


def _batch_size(windows):
    """The largest batch that leaves an epoch enough steps, or the smallest there is."""
    return max((size for size in BATCH_SIZES if windows >= size * STEPS_OF_AN_EPOCH), default=BATCH_SIZES[0])


def describe_settings(settings, sentences, steps, copies=0):
    """One line about the data and the settings that matter most.

    Args:
        settings: `Settings` as `choose_defaults` returns them.
        sentences: How many sentences the training part has.
        steps: How many steps an epoch has.
        copies: How many altered copies of them it has. Defaults to 0.

    >>> from kcrf.runs import Settings
    >>> settings = choose_defaults(Settings(task="ner", types=("LOC", "ORG", "PER")), 3821)
    >>> describe_settings(settings, 3821, 120)
    '3,821 sentences, 7 tags: up to 8 epochs of 120 steps, batch size 32, width 256, depth 3, crf with constraints'
    """
    beside = f" and {copies:,} altered copies" if copies else ""
    parts = [
        f"{'up to ' if settings.patience else ''}{settings.epochs} epochs of {steps:,} steps",
        f"{settings.batch_tokens:,} positions a step" if settings.batch_tokens else f"batch size {settings.batch_size}",
    ]
    if settings.encoder != "none":
        parts += [f"width {settings.width}", f"depth {settings.depth}"]
    if settings.task == "classify":
        what = f"{len(settings.labels)} labels" if settings.labels else "with numbers"
        return f"{sentences:,} texts{beside}, {what}: {', '.join(parts)}, pool {settings.pool}"
    constraints = f" {'with' if settings.constraints else 'without'} constraints" if settings.head == "crf" else ""
    parts.append(settings.head + constraints)
    units = f" of {settings.units}" if settings.units else ""
    return f"{sentences:,} sentences{units}{beside}, {len(settings.tag_scheme().labels)} tags: {', '.join(parts)}"
