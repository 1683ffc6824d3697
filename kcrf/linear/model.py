"""A linear model: scores of features, and a CRF with the rules of a tag scheme. Needs NumPy only."""

from collections.abc import Mapping
from functools import cached_property
from typing import Self

import numpy as np

from kcrf.chains import FORBIDDEN, Packing, best_paths, expected_counts
from kcrf.files import finite_number
from kcrf.tags import TagScheme

Flag = bool | None
Quantized = tuple[np.ndarray, float]  # int8 `(buckets, tags)`, and the float by which they are multiplied
_LARGEST = 127  # of 8-bit integers


def sums_of_rows(table: np.ndarray, features: np.ndarray, dtype: str | None = None) -> np.ndarray:
    """The sums of the table's rows of the features `(positions, width)` of each position."""
    total = np.zeros((len(features), table.shape[1]), dtype or table.dtype)
    for column in features.T:
        total += table[column]
    return total


class LinearModel:
    """Scores of n-gram features for each tag, `(buckets, tags)`, and the transitions between tags without their rules.

    Bucket 0 stands for no feature, and its scores are 0. With `constraints`, paths must follow the rules of the scheme.
    """

    def __init__(
        self, scheme: TagScheme, scores: np.ndarray | Quantized, transitions: np.ndarray, constraints: Flag = True
    ) -> None:
        self.scheme, self.transitions, self.constraints = scheme, transitions, bool(constraints)
        self._given = scores

    @classmethod
    def new(cls, scheme: TagScheme, buckets: int, constraints: Flag = True) -> "LinearModel":
        """A model whose scores are all 0."""
        size = len(scheme)
        return cls(scheme, np.zeros((buckets, size), "float32"), np.zeros((size, size)), constraints)

    @cached_property
    def scores(self) -> np.ndarray:
        """The scores, `(buckets, tags)` float32."""
        if not isinstance(self._given, tuple):
            return self._given
        integers, scale = self._given
        return integers.astype("float32") * np.float32(scale)

    def averaged(self, other: "LinearModel", weight: float) -> "LinearModel":
        """Averages this model with another one of the same scheme and buckets, whose weight is from 0 to 1."""
        scores = (1 - weight) * self.scores + weight * other.scores
        transitions = (1 - weight) * self.transitions + weight * other.transitions
        return LinearModel(self.scheme, scores.astype("float32"), transitions, self.constraints)

    def integers(self) -> Quantized:
        """The quantized scores."""
        if isinstance(self._given, tuple):
            return self._given
        scale = float(np.abs(self.scores).max(initial=0)) / _LARGEST or 1.0
        return np.round(self.scores / scale).astype("int8"), scale

    def arrays(self) -> dict[str, np.ndarray]:
        """A dict of arrays, which `from_arrays` reads. The scores are quantized."""
        scores, scale = self.integers()
        return {"scores": scores, "scale": np.array(scale), "transitions": self.transitions}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], scheme: TagScheme, constraints: Flag = True) -> Self:
        """The model with the arrays that `arrays` returned."""
        size = len(scheme)
        shapes = {name: arrays[name].shape if name in arrays else () for name in ("scores", "scale", "transitions")}
        if shapes["transitions"] != (size, size) or shapes["scores"][1:] != (size,) or shapes["scale"] != ():
            raise ValueError(f"needs the scores and transitions of {size} tags. Received: arrays of shapes {shapes}")
        if arrays["scores"].dtype != "int8" or arrays["transitions"].dtype.kind != "f":
            received = f"{arrays['scores'].dtype} and {arrays['transitions'].dtype}"
            raise ValueError(f"needs scores as int8 and transitions as floats. Received: {received}")
        if not np.isfinite(arrays["transitions"]).all():
            raise ValueError("needs finite transitions. Received: some that are not")
        scale = finite_number("arrays", "the scale of the scores", arrays["scale"].item(), above=0)
        return cls(scheme, (arrays["scores"], scale), arrays["transitions"].astype("float64"), constraints)

    def constrained_transitions(self, constraints: Flag = None) -> np.ndarray:
        """The transitions `(tags, tags)`, `FORBIDDEN` where the scheme does not allow them."""
        constraints = self.constraints if constraints is None else constraints
        return np.where(self.scheme.allowed_transitions | (not constraints), self.transitions, FORBIDDEN)

    def forbid(self, emissions: np.ndarray, packing: Packing, constraints: Flag = None) -> None:
        """Adds `FORBIDDEN` to emissions `(positions, tags)` where a sequence may not begin or end with a tag."""
        if self.constraints if constraints is None else constraints:
            emissions[np.ix_(packing.first, ~self.scheme.allowed_starts)] += FORBIDDEN
            emissions[np.ix_(packing.last, ~self.scheme.allowed_ends)] += FORBIDDEN

    def emissions(self, features: np.ndarray) -> np.ndarray:
        """The emission scores `(positions, tags)` float32 of features `(positions, width)`."""
        if not isinstance(self._given, tuple):
            return sums_of_rows(self.scores, features)
        integers, scale = self._given  # their sums do not depend on the order, so that any program can compute the same
        return sums_of_rows(integers, features, "int32").astype("float32") * np.float32(scale)

    def best_tags(self, emissions: np.ndarray, packing: Packing, constraints: Flag = None) -> np.ndarray:
        """The tags of the best path of each sequence, `(positions,)`."""
        emissions = np.array(emissions)
        self.forbid(emissions, packing, constraints)
        return best_paths(emissions, self.constrained_transitions(constraints), packing)

    def posterior(
        self, emissions: np.ndarray, packing: Packing, temperature: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """The arrays of a `kcrf.chains.Posterior`."""
        emissions = emissions.astype("float64") / temperature
        self.forbid(emissions, packing)
        transitions = self.constrained_transitions() / temperature
        _, marginals, _, onward = expected_counts(emissions, transitions, packing, with_onward=True)
        return marginals, onward
