"""Linear models: n-gram features and a CRF, trained and used by NumPy alone."""

from kcrf.linear.chain import best_paths, expected_counts
from kcrf.linear.packing import Packing

__all__ = ["Packing", "best_paths", "expected_counts"]
