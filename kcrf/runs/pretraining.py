"""The settings of pretraining. Needs no Keras."""

from dataclasses import dataclass, fields
from os import PathLike

from kcrf.runs.options import (
    FRACTION,
    FROM_SCRATCH,
    LENGTH,
    NOT_NEGATIVE,
    POSITIVE,
    PROBABILITY,
    Kind,
    Range,
    check_settings,
    describe,
    option,
    with_defaults,
)
from kcrf.tasks import SettingError

__all__ = ["MASKS", "PretrainingSettings"]

MASKS = ("tokens", "words", "spans", "selected")

AT_LEAST_100 = Range("at least 100", lambda x: x >= 100)


@dataclass(frozen=True)
class PretrainingSettings:
    """The settings of pretraining a masked language model, checked.

    Raises:
        ValueError: A value has the wrong type or is out of range, or is given where it has no meaning.

    >>> PretrainingSettings().completed().learning_rate, PretrainingSettings(bert="folder").completed().learning_rate
    (0.0005, 5e-05)

    """

    bert: str | PathLike[str] | None = option(
        None,
        "Folder of a BERT, in Google's or Hugging Face's format, or of a run of `kcrf train`, to pretrain further on "
        "text of your domain.",
        "model",
        none="a new model",
        metavar="FOLDER",
        is_path=True,
    )
    layers: int = option(4, "Layers of a new model.", "model", range=POSITIVE, only=FROM_SCRATCH)
    width: int = option(
        256, "Size of the hidden vectors of a new model, a multiple of 64.", "model", range=POSITIVE, only=FROM_SCRATCH
    )
    vocab_size: int = option(
        8000, "How many tokens are learnt from the text.", "model", range=AT_LEAST_100, only=FROM_SCRATCH
    )
    positions: int | None = option(
        None,
        "Longest window that a new model can read, where it is to be pretrained on longer ones afterwards.",
        "model",
        range=LENGTH,
        only=FROM_SCRATCH,
        none="--length",
    )
    lower_case: bool | None = option(
        {"scratch": True, "bert": None},
        "Whether text is lower-cased and its accents are removed.",
        "model",
        none="as the BERT's folder says",
    )
    mask: str = option(
        "tokens",
        "What is hidden: single tokens; words as a whole, with jieba for Chinese text; spans of several "
        "words; or selected, tokens that matter to --task-model. words and spans are harder, and mostly better.",
        "masks",
        choices=MASKS,
    )
    task_model: str | PathLike[str] | None = option(
        None,
        "A run of `kcrf train` that decides which tokens are hidden, for --mask selected. The more the entropy of its "
        "answer changes when a word is hidden, the more often that word is masked; this runs the model once for each "
        "word of the text. A run trained on a file of `kcrf importance` gives the importance of all words in one pass.",
        "masks",
        metavar="RUN",
        is_path=True,
    )
    rate: float = option(0.15, "Share of the tokens that are hidden.", "masks", range=PROBABILITY)
    static: bool = option(
        False,
        "Hide the same tokens of a window in each pass over the text, as the original BERT. Worse on small data.",
        "masks",
    )
    length: int = option(128, "Tokens of a window. Text is cut into full windows.", "masks", range=LENGTH)
    steps: int = option(
        10_000,
        "Updates of the weights; more than --every are rounded up to a multiple of it. On a BERT 100,000 were best in "
        "the literature, fewer for little text; watch the held-out loss, or set --patience.",
        "training",
        range=POSITIVE,
    )
    batch_size: int = option(32, "Windows of a batch.", "training", range=POSITIVE)
    accumulate: int = option(
        1,
        "Batches whose gradients are averaged for an update: larger batches in the same memory.",
        "training",
        range=POSITIVE,
    )
    learning_rate: float | None = option(
        {"scratch": 5e-4, "bert": 5e-5}, "Learning rate at its peak.", "training", range=POSITIVE
    )
    warmup: float = option(
        0.1, "Fraction of the steps in which the learning rate rises from 0.", "training", range=FRACTION
    )
    schedule: str = option(
        "linear",
        "How the learning rate falls after its peak: along a line or a cosine to 0, by the same factor in each step to "
        "a hundredth (exponential), or not at all (constant).",
        "training",
        choices=("linear", "cosine", "exponential", "constant"),
    )
    dropout: float | None = option(
        None,
        "Fraction of hidden values set to 0 while pretraining. 0 is faster, and better for a small model that does not "
        "learn its text by heart. What is written keeps the model's own for fine-tuning.",
        "training",
        range=FRACTION,
        none="the model's, 0.1 of a new one",
    )
    weight_decay: float = option(0.01, "Weight decay of AdamW.", "training", range=NOT_NEGATIVE)
    every: int = option(
        500,
        "Score the held-out part, keep the best weights and save the state after this many steps.",
        "training",
        range=POSITIVE,
    )
    patience: int | None = option(
        None, "Stop after this many scores without a lower held-out loss.", "training", range=POSITIVE, none="never"
    )
    precision: str = option(
        "float32",
        "Arithmetic of the layers. float16 and bfloat16 are faster on GPUs that have them, bfloat16 on some CPUs too.",
        "training",
        choices=("float32", "float16", "bfloat16"),
    )
    google_checkpoint: bool = option(
        False,
        "At the end also write the model in Google's format: bert_model.ckpt and bert_config.json. Needs TensorFlow.",
        "training",
    )
    seed: int = option(0, "Seed of weights, windows and masks.", "training", range=NOT_NEGATIVE)

    @property
    def kind(self) -> Kind:
        """The kind of run, on which defaults depend."""
        return Kind(("scratch" if self.bert is None else "bert",))

    def completed(self) -> "PretrainingSettings":
        """The settings with the defaults that depend on the BERT, and with paths as strings."""
        return PretrainingSettings(**with_defaults(self, self.kind))

    def __post_init__(self) -> None:
        check_settings(self, self.kind)
        if self.mask == "selected" and self.task_model is None:
            raise SettingError("task_model", "is needed by {mask:'selected'}", self.task_model)
        if self.mask != "selected" and self.task_model is not None:
            raise SettingError("mask", "must be 'selected' with {task_model}", self.mask)
        if self.positions is not None and self.positions < self.length:
            received = {"positions": self.positions, "length": self.length}
            raise SettingError("positions", "must be at least {length}", received)
        if self.width % 64:
            raise SettingError("width", "must be a multiple of 64, the size of a head", self.width)


PretrainingSettings.__doc__ = (PretrainingSettings.__doc__ or "") + describe(fields(PretrainingSettings))
