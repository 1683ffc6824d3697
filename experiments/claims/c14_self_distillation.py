"""A teacher with the same settings."""

from experiments.claim import Claim, Grid
from experiments.claims.c13_layers_read import ENTITIES, SENTIMENT
from experiments.verdicts import Comparison

TAUGHT = {"labels": {}, "teacher": {"teacher": True}, "teacher and labels": {"teacher": True, "teacher_weight": 0.5}}
SOFTMAX = {f"softmax, {name}": {**settings, "head": "softmax"} for name, settings in list(TAUGHT.items())[:2]}

CLAIM = Claim(
    title="Self-distillation gains",
    source="often gains, no figure (004)",
    literature="Furlanello 2018 agrees on images",
    grids=(Grid(ENTITIES, {**TAUGHT, **SOFTMAX}), Grid(SENTIMENT, TAUGHT)),
    comparisons=(
        Comparison("teacher", "labels", "higher", 0.005, ("People's Daily",), "F1, sequence level"),
        Comparison("softmax, teacher", "softmax, labels", "higher", 0.005, ("People's Daily",), "F1, token level"),
        Comparison("teacher", "labels", "higher", 0.005, ("ChnSentiCorp",), "accuracy"),
        Comparison("teacher and labels", "labels", "higher", 0.005, ("People's Daily",), "F1, sequence level"),
    ),
    axis="targets",
)
