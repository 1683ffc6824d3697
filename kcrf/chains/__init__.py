"""The CRF on NumPy arrays: what linear models, exported files and taggers compute without Keras."""

from kcrf.chains.k_best import best_sequences
from kcrf.chains.packing import Packing
from kcrf.chains.posterior import Posterior, entropies_of, roles_of, span_probabilities
from kcrf.chains.recursions import (
    FORBIDDEN,
    IS_FORBIDDEN,
    Counts,
    best_paths,
    compile_kernels,
    compiled_kernels,
    expected_counts,
)

__all__ = []
