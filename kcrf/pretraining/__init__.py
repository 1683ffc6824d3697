"""Masked language models: trained on plain text from scratch, or further from a BERT."""

from kcrf.pretraining.clozes import Cloze
from kcrf.pretraining.importance import important_words
from kcrf.pretraining.masking import choose_positions, hide
from kcrf.pretraining.train import pretrain, resume_pretraining
from kcrf.pretraining.vocabulary import learn_vocabulary
from kcrf.runs.pretraining import PretrainingSettings

__all__ = [
    "Cloze",
    "PretrainingSettings",
    "choose_positions",
    "hide",
    "important_words",
    "learn_vocabulary",
    "pretrain",
    "resume_pretraining",
]
