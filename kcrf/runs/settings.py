"""The settings of a training run. Needs no Keras.

Each setting is one field of `Settings`, or of its base class, which holds all that is known of it: its default, its
range, when it may be given, its help. `Settings` checks its values by that, its docstring lists it, and
`kcrf.commands.training_options` makes the options of `kcrf train` out of it. A new option is one new field.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from kcrf.runs.basic_settings import BasicSettings
from kcrf.runs.options import (
    AUGMENTED,
    FACTOR,
    NOT_NEGATIVE,
    POSITIVE,
    PROBABILITY,
    TAUGHT,
    WITH_VECTORS,
    describe,
    fill_and_check,
    option,
    paths_as_strings,
)
from kcrf.tags import TagScheme, bio, bioes, bmes

__all__ = ["Settings"]

PATHS = ("bert", "synonyms", "synonym_vectors", "teacher", "vectors")


@dataclass(frozen=True)
class Settings(BasicSettings):
    """The settings of a training run, checked.

    None stands for the default where that depends on the task, the head or `bert`. What depends on the size of the data
    stays None until `kcrf.runs.defaults.choose_defaults` is given that.

    Raises:
        ValueError: A value has the wrong type or is out of range, or is given where it has no meaning.

    >>> Settings(task="ner").scheme, Settings().encoder, Settings(bert="folder").learning_rate
    ('bio', 'cnn', 5e-05)

    """

    augment: int = option(
        0,
        "Altered copies of each sentence or text that are added to the training part, and to no other. 1 to 4, for a "
        "few thousand sentences or fewer; more for less data.",
        "augmentation",
        range=NOT_NEGATIVE,
    )
    augment_by: str | None = option(
        None,
        "How copies are altered, names with commas between them. For classify: synonyms, insertion, swap, deletion of "
        "words. For ner: mentions, exchanged for others of their type; tokens, for others with the same tag; synonyms; "
        "shuffle, of entities and of the text between them. For cws: join, with the next sentence; cut; synonyms.",
        "augmentation",
        only=AUGMENTED,
        none="all, without a dictionary those that need none",
        metavar="NAME,...",
    )
    augment_share: float | None = option(
        None,
        "The share of the words, tokens or entities of a copy that are altered.",
        "augmentation",
        range=PROBABILITY,
        only=AUGMENTED,
        none="0.1 for classify, else 0.3",
    )
    synonyms: str | None = option(
        None,
        "A dictionary of synonyms, one group of words per line, for the copies.",
        "augmentation",
        only=AUGMENTED,
        none="no synonyms",
        metavar="FILE",
    )
    synonym_vectors: str | None = option(
        None,
        "Vectors of words, as word2vec and GloVe write them as text, whose nearest words serve as synonyms.",
        "augmentation",
        only=AUGMENTED,
        none="no synonyms",
        metavar="FILE",
    )

    vectors: str | None = option(
        None,
        "Vectors of words that the model reads too, in the formats of word2vec, GloVe or fastText: in English of the "
        "token, in Chinese of the words that begin or end at a character or pass through it.",
        "word vectors",
        none="no vectors",
        metavar="FILE",
    )
    vectors_at: str | None = option(
        {"scratch": "embeddings", "bert": "top"},
        "Where they come in: at the embeddings, below the encoder or the BERT's layers, or at the top, next to "
        "their output. Of texts with a label, the top takes the mean over the text.",
        "word vectors",
        choices=("embeddings", "top"),
        only=WITH_VECTORS,
    )
    train_vectors: bool = option(
        False,
        "Train the vectors with the model. Slower; for a lot of data, or vectors of other text.",
        "word vectors",
        only=WITH_VECTORS,
    )
    vectors_most: int = option(
        50_000,
        "Keep the vectors of this many of the file's first words, the most frequent, and of the words of the training "
        "data. With more, the model knows more words of new text.",
        "word vectors",
        range=NOT_NEGATIVE,
        only=WITH_VECTORS,
    )

    teacher: str | None = option(
        None,
        "Learn from the answers of a run of `kcrf train` of the same task and labels. A run of the same settings as "
        "teacher is self-distillation; a large one makes a small student better.",
        "distillation",
        none="no teacher",
        metavar="RUN_DIR",
    )
    teacher_weight: float = option(
        0.9,
        "The weight of the teacher's answers in the loss; that of the labels is the rest. 1: the answers alone.",
        "distillation",
        range=FACTOR,
        only=TAUGHT,
    )
    teacher_temperature: float | None = option(
        {"cws": 1.0, "ner": 1.0, "classify": 2.0},
        "The scores of teacher and student are divided by it. Above 1, what the teacher thinks unlikely weighs more.",
        "distillation",
        range=POSITIVE,
        only=TAUGHT,
        flag="--temperature",
    )

    def __post_init__(self):
        run = (self.task, "scratch" if self.bert is None else "bert")
        for setting in fields(self):
            if setting.name in ("task", "head"):  # other defaults depend on them
                known = setting.metadata["option"]
                if self.head is None and setting.name == "head":
                    object.__setattr__(self, "head", known.of_run("default", run))
                known.check(setting.name, (str,), getattr(self, setting.name), run)
        run = (*run, self.head)
        if self.synonyms is not None and self.synonym_vectors is not None:
            raise ValueError("`synonym_vectors` takes the place of `synonyms`. Received: both")
        for name in ("types", "labels"):
            if isinstance(getattr(self, name), list):  # as JSON has it
                object.__setattr__(self, name, tuple(getattr(self, name)))
        paths_as_strings(self, PATHS)
        fill_and_check(self, run)
        if self.pool == "pooler" and self.layers != "last":
            raise ValueError(f"pool='pooler' reads the last layer. Received: layers={self.layers!r}")
        if self.pool == "cnn" and self.layer_pooling != "concat":
            raise ValueError(f"pool='cnn' combines layers itself. Received: layer_pooling={self.layer_pooling!r}")
        if self.pool in ("pooler", "cnn") and self.encoder != "none":
            raise ValueError(f"pool={self.pool!r} needs encoder='none'. Received: encoder={self.encoder!r}")

    def tag_scheme(self) -> TagScheme:
        """The `TagScheme` of the task, with the types."""
        return bmes() if self.scheme == "bmes" else {"bio": bio, "bioes": bioes}[str(self.scheme)](self.types)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Settings":
        """Settings from a dict such as a run folder keeps; refuses names that it does not know."""
        unknown = sorted(set(values) - {setting.name for setting in fields(cls)})
        if unknown:
            raise ValueError(f"Settings have no {', '.join(unknown)}. Received: {sorted(values)}")
        return cls(**values)


Settings.__doc__ = (Settings.__doc__ or "") + describe(fields(Settings))  # `python -OO` drops docstrings
