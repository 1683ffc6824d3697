"""Pretrains masked language models on unlabeled text, from scratch or from an existing BERT."""

from kcrf.pretraining.clozes import Cloze
from kcrf.pretraining.train import pretrain, resume_pretraining
from kcrf.runs.pretraining import PretrainingSettings

__all__ = ["Cloze", "PretrainingSettings", "pretrain", "resume_pretraining"]
