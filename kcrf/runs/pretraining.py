"""The settings of pretraining. Needs no Keras."""

from dataclasses import dataclass, fields
from os import PathLike

from kcrf.runs.options import (
    FRACTION,
    LENGTH,
    NONNEGATIVE,
    POSITIVE,
    PROBABILITY,
    Kind,
    Range,
    Rule,
    check_settings,
    documented,
    option,
    with_defaults,
)
from kcrf.tasks import SettingError

MASKS = ("tokens", "words", "spans")

DEFAULT_STEPS = 10_000
AT_LEAST_100 = Range("at least 100", lambda x: x >= 100)
PRETRAINING_RULES = (Rule("layers width vocab_size positions", "bert", None),)


@documented("training")
@dataclass(frozen=True)
class PretrainingSettings:
    """The settings of pretraining a masked language model, checked.

    Attributes:
        bert: Continue pretraining from this BERT, in Google's or Hugging Face's format, or from a run of `kcrf train`,
            to adapt it to the text of your domain.
        layers: Layers of a new model.
        width: Size of the hidden vectors of a new model, a multiple of 64.
        vocab_size: Vocabulary size of a new model. The vocabulary is learned from the text.
        positions: Maximum number of tokens that a new model can read. Use more than --length if you will continue
            pretraining with longer windows.
        lower_case: Whether the tokenizer lower-cases the text and removes accents.
        mask: What is masked: single tokens; whole words, with jieba for Chinese text; or spans of several words. words
            and spans are harder to predict and usually give a better model.
        rate: Fraction of the tokens that are masked.
        static: Mask the same tokens of a window in every epoch, as the original BERT. Less accurate on small datasets.
        length: Tokens per window. The text is split into full windows.
        steps: Number of updates; above --every, rounded up to a multiple of --every. To continue from a BERT, 100,000
            steps were best in the literature; use fewer for small datasets. Watch the validation loss, or set
            --patience.
        batch_size: Windows per batch.
        accumulate: Number of batches whose gradients are averaged for an update. Use it for larger batches in the same
            memory.
        learning_rate: Peak learning rate.
        warmup: Fraction of the steps in which the learning rate rises from 0 to its peak.
        schedule: How the learning rate falls after its peak: linearly or along a cosine to 0, exponentially to a
            hundredth, or not at all (constant).
        dropout: Dropout in pretraining: the fraction of hidden values set to 0. 0 is faster, and more accurate for a
            small model, which does not overfit. The written model keeps its own dropout for fine-tuning.
        weight_decay: Weight decay of AdamW.
        every: Evaluate on the validation set, keep the best weights and save the state after this many steps.
        patience: Stop after this many evaluations without a lower validation loss.
        precision: Arithmetic of the layers. float16 and bfloat16 are faster on GPUs that have them, bfloat16 on some
            CPUs too.
        google_checkpoint: At the end, also write the model in Google's format: bert_model.ckpt and bert_config.json.
            Needs TensorFlow.
        seed: Seed of weights, windows and masks.

    Raises:
        ValueError: A value has the wrong type or is out of range, or has no effect with the other settings.

    >>> PretrainingSettings().completed().learning_rate, PretrainingSettings(bert="folder").completed().learning_rate
    (0.0005, 5e-05)
    """

    bert: str | PathLike[str] | None = option(None, group="model", none="a new model", metavar="FOLDER", is_path=True)
    layers: int = option(4, group="model", range=POSITIVE)
    width: int = option(256, group="model", range=POSITIVE)
    vocab_size: int = option(8000, group="model", range=AT_LEAST_100)
    positions: int | None = option(None, group="model", range=LENGTH, none="--length")
    lower_case: bool | None = option({"scratch": True, "bert": None}, group="model", none="as in the folder of BERT")
    mask: str = option("tokens", group="masks", choices=MASKS)
    rate: float = option(0.15, group="masks", range=PROBABILITY)
    static: bool = option(False, group="masks")
    length: int = option(128, group="masks", range=LENGTH)
    steps: int | None = option(None, range=POSITIVE, none=f"{DEFAULT_STEPS:,}")
    batch_size: int = option(32, range=POSITIVE)
    accumulate: int = option(1, range=POSITIVE)
    learning_rate: float | None = option({"scratch": 5e-4, "bert": 5e-5}, range=POSITIVE)
    warmup: float = option(0.1, range=FRACTION)
    schedule: str = option("linear", choices=("linear", "cosine", "exponential", "constant"))
    dropout: float | None = option(None, range=FRACTION, none="that of the model; 0.1 for a new model")
    weight_decay: float = option(0.01, range=NONNEGATIVE)
    every: int = option(500, range=POSITIVE)
    patience: int | None = option(None, range=POSITIVE, none="never")
    precision: str = option("float32", choices=("float32", "float16", "bfloat16"))
    google_checkpoint: bool = option(False)
    seed: int = option(0, range=NONNEGATIVE)

    @property
    def kind(self) -> Kind:
        """The kind of run, on which defaults depend."""
        return Kind(("scratch" if self.bert is None else "bert",))

    def completed(self) -> "PretrainingSettings":
        """The settings with all defaults, and with paths as strings."""
        values = with_defaults(fields(self), vars(self), self.kind)
        return PretrainingSettings(**{**values, "steps": self.steps or DEFAULT_STEPS})

    def __post_init__(self) -> None:
        check_settings(fields(self), vars(self), self.kind, PRETRAINING_RULES)
        if self.positions is not None and self.positions < self.length:
            received = {"positions": self.positions, "length": self.length}
            raise SettingError("positions", "must be at least {length}", received)
        if self.width % 64:
            raise SettingError("width", "must be a multiple of 64, the size of a head", self.width)


PRETRAINING_FIELDS = {setting.name: setting for setting in fields(PretrainingSettings)}
