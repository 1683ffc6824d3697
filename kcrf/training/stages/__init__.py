"""Stages of a run, one file for each: where its labels or its texts come from."""

from kcrf.training.stages.table import STAGES

__all__ = ["STAGES"]
