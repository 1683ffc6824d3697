"""Titles of scores and sets, in the terminal and on the page, and the format of numbers."""

from kcrf.metrics.classes import CLASSIFICATION_METRICS, REGRESSION_METRICS

SETS = {"test": "test set", "valid": "validation set"}  # by key in scores.json
TITLES = {  # by key in the results of `kcrf.metrics`
    "f": "F1",
    "precision": "precision",
    "recall": "recall",
    "joint_f": "F1 with class",
    "joint_precision": "precision with class",
    "joint_recall": "recall with class",
    "oov_rate": "OOV rate",
    "oov_recall": "OOV recall",
    "iv_recall": "IV recall",
    "true_words": "gold words",
    "test_words": "predicted words",
    "true_entities": "gold entities",
    "found_entities": "predicted entities",
    "correct": "correct entities",
    "accuracy": "accuracy",
    "macro_f": "mean F1",
    "matthews": "Matthews",
    "pearson": "Pearson",
    "spearman": "Spearman",
    "mean_error": "mean absolute error",
    "examples": "texts",
    "tokens": "tokens",
    "oov_accuracy": "OOV accuracy",
    "iv_accuracy": "IV accuracy",
}
METRICS = (*CLASSIFICATION_METRICS, *REGRESSION_METRICS)
NOT_RANKED = {  # counts, and scores that are not better the larger they are
    "oov_rate",
    "true_words",
    "test_words",
    "true_entities",
    "found_entities",
    "mean_error",
    "examples",
    "tokens",
}
# The scores that a terminal has room for.
WORD_COLUMNS = ("recall", "precision", "f", "oov_rate", "oov_recall", "iv_recall")
JOINT_COLUMNS = ("recall", "precision", "f", "joint_f", "oov_recall", "iv_recall")
ENTITY_COLUMNS = ("precision", "recall", "f", "true_entities", "found_entities", "correct")
TOKEN_COLUMNS = ("accuracy", "oov_rate", "oov_accuracy", "f", "precision", "recall")
CLASS_COLUMNS = ("accuracy", "matthews", "macro_f", "f", "precision", "recall")
NUMBER_COLUMNS = ("pearson", "spearman", "mean_error", "examples")


def format_value(value):
    """Formats a value for a table: floats with four digits, None as a dash."""
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
