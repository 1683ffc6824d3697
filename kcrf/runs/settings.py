"""What a training run is made of. Imports no Keras."""

from dataclasses import dataclass, fields

from kcrf.tags import bio, bioes, bmes

__all__ = ["RECIPES", "Settings"]

# What holds where nothing is said: learnt from nothing, or fine-tuned from a BERT.
RECIPES = {
    "scratch": {
        "encoder": "cnn",
        "learning_rate": 1e-3,
        "crf_lr_multiplier": 10.0,
        "epochs": 5,
        "batch_size": 64,
        "depth": 3,
        "dropout": 0.4,
        "lexicon": True,
        "warmup": 0.05,
    },
    "bert": {
        "encoder": "none",
        "learning_rate": 5e-5,
        "crf_lr_multiplier": "auto",
        "epochs": 5,
        "batch_size": 32,
        "depth": 1,
        "dropout": 0.1,
        "lexicon": False,
        "warmup": 0.1,
    },
}
SCHEMES = {"cws": ("bmes",), "ner": ("bio", "bioes")}  # the first one is the default
ENCODERS = {"scratch": ("cnn", "bilstm", "transformer"), "bert": ("none", "bilstm")}
OF_BERT = {  # what means nothing without a BERT: its value without one
    "bert_layers": None,
    "skip_top_layers": 0,
    "lower_case": None,
    "word_case": False,
    "head_lr_multiplier": 10.0,
    "layerwise_decay": 1.0,
    "weight_decay": 0.01,
    "bias_correction": True,
    "mixout": 0.0,
    "prior_decay": 0.0,
}
POSITIVE = ("learning_rate", "epochs", "batch_size", "width", "depth", "head_lr_multiplier", "min_bigrams")
POSITIVE_OR_NONE = ("patience", "batch_tokens", "bert_layers")
SHARES = ("dropout", "bigram_dropout", "warmup", "mixout")
NOT_NEGATIVE = ("skip_top_layers", "weight_decay", "prior_decay", "seed")


@dataclass(frozen=True)
class Settings:
    """What a training run is made of; the options of `kcrf train` with the same names explain them.

    None stands for the value of the recipe, `RECIPES["bert"]` with `bert` and `RECIPES["scratch"]` without.

    Attributes:
        types: The entity types, in the order of their tags; `train_tagger` takes them from the training part.
        lexicon: Whether the model sees how often what stands at a place was a word elsewhere in the training text.
        character_width, bigram_width: Sizes of the vectors of a character and of a pair of neighbours.
        bigram_dropout: Share of the pairs that are hidden in training.
        min_bigrams: How often a pair must occur in the training text to have a vector of its own.
        min_confidence: The posterior from which on an entity counts as found; None takes those of the best path.
        bert: The folder of a pretrained BERT, or None.
        lower_case: Whether BERT's tokenizer lowers the text. None: as its folder says.
        word_case: Whether the head sees which words have capitals.

    Raises:
        ValueError: A value is out of its range, or says something about a BERT where there is none.

    >>> Settings(task="ner").scheme, Settings().encoder, Settings(bert="folder").learning_rate
    ('bio', 'cnn', 5e-05)
    """

    task: str = "cws"
    encoder: str | None = None
    head: str = "crf"
    scheme: str | None = None
    types: tuple = ()
    constraints: bool = False
    crf_lr_multiplier: float | str | None = None
    learning_rate: float | None = None
    warmup: float | None = None
    epochs: int | None = None
    patience: int | None = None
    batch_size: int | None = None
    batch_tokens: int | None = None
    seed: int = 0
    width: int = 256
    depth: int | None = None
    character_width: int = 128
    bigram_width: int = 64
    dropout: float | None = None
    bigram_dropout: float = 0.3
    min_bigrams: int = 3
    lexicon: bool | None = None
    min_confidence: float | None = None
    bert: str | None = None
    bert_layers: int | None = None
    skip_top_layers: int = 0
    lower_case: bool | None = None
    word_case: bool = False
    head_lr_multiplier: float = 10.0
    layerwise_decay: float = 1.0
    weight_decay: float = 0.01
    bias_correction: bool = True
    mixout: float = 0.0
    prior_decay: float = 0.0

    def __post_init__(self):
        recipe = "scratch" if self.bert is None else "bert"
        self._choose("task", tuple(SCHEMES))
        filled = {**RECIPES[recipe], "scheme": SCHEMES[self.task][0]}
        for name, value in filled.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        object.__setattr__(self, "types", tuple(self.types))
        self._choose("encoder", ENCODERS[recipe])
        self._choose("head", ("crf", "softmax"))
        self._choose("scheme", SCHEMES[self.task])
        self._check_ranges()
        for name, value in OF_BERT.items() if self.bert is None else ():
            if getattr(self, name) != value:
                raise ValueError(f"`{name}` needs `bert`. Received: {name}={getattr(self, name)!r} and no BERT")
        if self.min_confidence is not None and self.task != "ner":
            raise ValueError(f"`min_confidence` is for ner. Received: {self.min_confidence} and task={self.task!r}")
        if self.constraints and self.head != "crf":
            raise ValueError(f"`constraints` needs head='crf'. Received: constraints=True and head={self.head!r}")
        if self.lexicon and self.bert is not None:
            raise ValueError(f"`lexicon` is for training from scratch. Received: lexicon=True and bert={self.bert!r}")

    def _choose(self, name, allowed):
        if getattr(self, name) not in allowed:
            raise ValueError(f"`{name}` is one of {allowed}. Received: {getattr(self, name)!r}")

    def _check_ranges(self):
        rules = [(name, lambda x: x > 0, "positive") for name in POSITIVE]
        rules += [(name, lambda x: x is None or x > 0, "positive") for name in POSITIVE_OR_NONE]
        rules += [(name, lambda x: 0 <= x < 1, "at least 0 and below 1") for name in SHARES]
        rules += [(name, lambda x: x >= 0, "at least 0") for name in NOT_NEGATIVE]
        rules.append(("min_confidence", lambda x: x is None or 0 < x < 1, "above 0 and below 1"))
        rules.append(("layerwise_decay", lambda x: 0 < x <= 1, "above 0 and at most 1"))
        rules.append(("crf_lr_multiplier", lambda x: x == "auto" or x > 0, 'positive or "auto"'))
        for name, holds, what in rules:
            value = getattr(self, name)
            if isinstance(value, str) and value != "auto" or not holds(value):
                raise ValueError(f"`{name}` must be {what}. Received: {value!r}")

    def tag_scheme(self):
        """The `TagScheme` of the task, with the types."""
        return bmes() if self.scheme == "bmes" else {"bio": bio, "bioes": bioes}[self.scheme](self.types)

    @classmethod
    def of(cls, values):
        """Settings from a dict such as a run folder keeps; refuses names that it does not know."""
        unknown = sorted(set(values) - {field.name for field in fields(cls)})
        if unknown:
            raise ValueError(f"Settings have no {', '.join(unknown)}. Received: {sorted(values)}")
        return cls(**values)
