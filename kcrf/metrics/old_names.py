"""Names that have left the page of the folder, in their old place."""

from kcrf.deprecated import moved_names

__all__ = ["__getattr__"]

__getattr__ = moved_names(
    "kcrf.metrics",
    {
        "is_forbidden": "kcrf.metrics.transitions",
        "f1_of_counts": "kcrf.metrics.bootstrap",
        "span_counts": "kcrf.metrics.bootstrap",
        "bootstrap_scores": "kcrf.metrics.bootstrap",
        "bootstrap_difference": "kcrf.metrics.bootstrap",
        "TextMismatch": "kcrf.metrics.scores",
    },
)
