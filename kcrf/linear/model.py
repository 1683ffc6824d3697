"""A linear model: scores of features, and a CRF with the rules of a tag scheme. Needs NumPy only."""

from functools import cached_property

import numpy as np

from kcrf.linear.chain import best_paths, expected_counts
from kcrf.linear.packing import Packing

FORBIDDEN = -1e9  # the score of forbidden tags and transitions
_LARGEST = 127  # of 8-bit integers


class LinearModel:
    """Scores of n-gram features for each tag, and the transitions between tags.

    Args:
        scheme: The `TagScheme`.
        scores: `(buckets, tags)` float32. Bucket 0 stands for no feature, and its scores are 0. Or quantized scores, a
            pair: int8 `(buckets, tags)` and the float by which they are multiplied.
        transitions: `(tags, tags)` float64, without the rules of the scheme.
        constraints: Whether paths must follow the rules of the scheme. Defaults to True.

    >>> from kcrf.tags import bmes
    >>> model = LinearModel.new(bmes(), buckets=8)
    >>> bool(model.constrained_transitions()[0, 2] == FORBIDDEN)  # no m after s
    True
    """

    def __init__(self, scheme, scores, transitions, constraints=True):
        self.scheme, self.transitions, self.constraints = scheme, transitions, constraints
        self._integers = scores if isinstance(scores, tuple) else None
        if self._integers is None:
            self.scores = scores

    @classmethod
    def new(cls, scheme, buckets, constraints=True):
        """A model whose scores are all 0."""
        size = len(scheme)
        return cls(scheme, np.zeros((buckets, size), "float32"), np.zeros((size, size)), constraints)

    @cached_property
    def scores(self):
        """The scores, `(buckets, tags)` float32."""
        integers, scale = self._integers
        return integers.astype("float32") * np.float32(scale)

    def averaged(self, other, weight):
        """The weighted average of this model and another one of the same scheme and buckets, a new `LinearModel`.

        Args:
            other: The other `LinearModel`.
            weight: Its weight, from 0 to 1. That of this model is the rest.
        """
        scores = (1 - weight) * self.scores + weight * other.scores
        transitions = (1 - weight) * self.transitions + weight * other.transitions
        return LinearModel(self.scheme, scores.astype("float32"), transitions, self.constraints)

    def integers(self):
        """The quantized scores: int8 `(buckets, tags)`, and the float by which they are multiplied."""
        if self._integers is not None:
            return self._integers
        scale = float(np.abs(self.scores).max(initial=0)) / _LARGEST or 1.0
        return np.round(self.scores / scale).astype("int8"), scale

    def arrays(self):
        """A dict of arrays, which `from_arrays` reads. The scores are quantized."""
        scores, scale = self.integers()
        return {"scores": scores, "scale": np.array(scale), "transitions": self.transitions}

    @classmethod
    def from_arrays(cls, arrays, scheme, constraints=True):
        """The model with the arrays that `arrays` returned.

        Args:
            arrays: A mapping from names to arrays.
            scheme: The `TagScheme`.
            constraints: As for `LinearModel`. Defaults to True.

        Raises:
            ValueError: An array is missing or does not fit the scheme.
        """
        size = len(scheme)
        shapes = {name: np.shape(arrays.get(name)) for name in ("scores", "scale", "transitions")}
        if shapes["transitions"] != (size, size) or shapes["scores"][1:] != (size,) or shapes["scale"] != ():
            raise ValueError(f"needs the scores and transitions of {size} tags. Received: arrays of shapes {shapes}")
        scores = (arrays["scores"].astype("int8", copy=False), float(arrays["scale"]))
        return cls(scheme, scores, arrays["transitions"].astype("float64"), constraints)

    def constrained_transitions(self, constraints=None):
        """The transitions `(tags, tags)`, `FORBIDDEN` where the scheme does not allow them.

        Args:
            constraints: Whether the rules of the scheme apply. Defaults to None: as for the model.
        """
        constraints = self.constraints if constraints is None else constraints
        return np.where(self.scheme.allowed_transitions | (not constraints), self.transitions, FORBIDDEN)

    def forbid(self, emissions, packing, constraints=None):
        """Adds `FORBIDDEN` to emissions `(tags, positions)` where a sequence may not begin or end with a tag."""
        if self.constraints if constraints is None else constraints:
            for positions, allowed in (
                (packing.first, self.scheme.allowed_starts),
                (packing.last, self.scheme.allowed_ends),
            ):
                emissions[np.ix_(~allowed, positions)] += FORBIDDEN

    def emissions(self, features):
        """The emission scores `(positions, tags)` float32 of features `(positions, width)`."""
        total = np.zeros((len(features), self.scores.shape[1]), "float32")
        for column in features.T:
            total += self.scores[column]
        return total

    def best_tags(self, emissions, starts, lengths, constraints=None):
        """The tags of the best path of each sequence, `(positions,)`.

        Args:
            emissions: `(positions, tags)`.
            starts, lengths: Where the sequences are; see `Packing`.
            constraints: Whether the path must follow the rules of the scheme. Defaults to None: as for the model.
        """
        packing = Packing(starts, lengths)
        packed = np.ascontiguousarray(emissions[packing.index].T)  # (tags, positions)
        self.forbid(packed, packing, constraints)
        tags = np.empty(len(emissions), "int64")
        tags[packing.index] = best_paths(packed, self.constrained_transitions(constraints), packing.steps)
        return tags

    def posterior(self, emissions, starts, lengths, temperature=1.0):
        """The arrays of a `kcrf.chains.posterior.Posterior`.

        Args:
            emissions, starts, lengths: As for `best_tags`.
            temperature: All scores are divided by it. Defaults to 1.

        Returns:
            `(marginals, onward)`, two arrays `(positions, tags)`: the posterior probabilities, and the logarithms of
            `Counts.onward`.
        """
        packing = Packing(starts, lengths)
        packed = np.ascontiguousarray(emissions[packing.index].T, "float64") / temperature
        self.forbid(packed, packing)
        counts = expected_counts(packed, self.constrained_transitions() / temperature, packing.steps)
        marginals, onward = np.empty((2, *emissions.shape), "float64")
        marginals[packing.index] = counts.marginals.T
        with np.errstate(divide="ignore"):
            onward[packing.index] = np.log(counts.onward.T)
        return marginals, np.maximum(onward, FORBIDDEN)
