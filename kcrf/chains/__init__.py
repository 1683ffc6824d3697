"""The CRF on NumPy arrays: what linear models, exported files and taggers compute without Keras."""

from kcrf.chains.posterior import Posterior, best_sequences, entropies_of, roles_of, softmax, span_probabilities
from kcrf.chains.recursions import (
    FORBIDDEN,
    IS_FORBIDDEN,
    Counts,
    Packing,
    best_paths,
    counts_of_tags,
    expected_counts,
)

__all__ = []
