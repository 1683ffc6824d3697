"""`load_crf_weights`: weights of other libraries' CRFs."""

from kcrf.models.crf_weights import load_crf_weights

__all__ = ["load_crf_weights"]
