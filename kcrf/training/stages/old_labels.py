"""Constrains the predictions of an old model by labels, and adds new types to them. Needs NumPy only."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from kcrf.readers import tags_of_units
from kcrf.taggers.constraints import SpanConstraints
from kcrf.tags import TagScheme


def spans_in_units(scheme: TagScheme, units: np.ndarray, spans: Sequence[tuple[int, int, str]]) -> list[Any]:
    """Converts entities from characters to units. An entity that begins or ends inside a unit is cut to whole units."""
    tags = tags_of_units(scheme, units, spans)
    return scheme.decode([max(tag, 0) for tag in tags])


def constraints_of_old(spans: Sequence[Any], old: TagScheme, marked: Collection[str]) -> SpanConstraints:
    """The constraints of a sentence on the predictions of the old model. Entities of old types that the sentence marks
    are given, and there is no entity where it marks a new type. A marked old type is forbidden elsewhere."""
    of_old_types = [span for span in spans if span[2] in old.types]
    outside = [span[:2] for span in spans if span[2] not in old.types]
    return SpanConstraints(of_old_types, [], outside, tuple(label for label in old.types if label not in marked))


def with_new_types(
    counts: tuple[np.ndarray, np.ndarray], spans: Sequence[Any], first: int, old: TagScheme, new: TagScheme
) -> tuple[np.ndarray, np.ndarray]:
    """The expected counts of the old model in a window, with the entities of new types written into its tag sequences.
    All tag sequences of the old model have O at these entities. There, the tags are replaced in the expected tags, and
    the transitions from and to them in the expected transitions."""
    tags, steps = counts
    count, size = tags.shape
    padded = np.zeros((count, len(new)), tags.dtype)
    padded[:, :size] = tags
    written, is_new = padded.copy(), np.zeros(count, bool)
    for start, end, label in spans:
        start, end = max(start - first, 0), min(end - first, count)
        if label not in old.types and start < end:
            inside = new.encode([(0, end - start, label)], end - start)  # a piece of an entity counts as an entity
            written[start:end], is_new[start:end] = np.eye(len(new))[inside], True
    touched = np.flatnonzero(is_new[:-1] | is_new[1:])  # one tag is certain, so the expected transition is a product
    grown = np.zeros((len(new), len(new)), steps.dtype)
    grown[:size, :size] = steps
    grown += written[touched].T @ written[touched + 1] - padded[touched].T @ padded[touched + 1]
    return written, np.maximum(grown, 0)
