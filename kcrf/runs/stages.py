"""The settings of the stages of a run: where its labels or its texts come from. Needs no Keras.

`kcrf.training.stages` has the stage for each of them. A stage takes part if its first setting is given.
"""

from dataclasses import dataclass, fields
from os import PathLike
from typing import ClassVar

from kcrf.runs.options import FACTOR, NONNEGATIVE, PROBABILITY, TEMPERATURE, documented, option


class StageConfig:
    """The settings of a stage."""

    continues: ClassVar[bool] = False  # whether the run continues the model of another run

    @property
    def soft_targets(self) -> tuple[float, float] | None:
        """The weight of soft targets in the loss, and their temperature; None without soft targets."""
        return None

    @property
    def is_used(self) -> bool:
        """Whether the stage takes part in the run."""
        return bool(getattr(self, fields(self)[0].name))  # type: ignore[arg-type]


@documented("data")
@dataclass(frozen=True)
class IncompleteConfig(StageConfig):
    """Training data in which only some of the entities are marked.

    Attributes:
        incomplete: Only some of the entities of the training data are marked. Other text is then not taken as outside
            of entities: its labels are estimated by linear models of other sentences. If the data have tags ?, only
            those are estimated. All entities of --valid must be marked: they tell how many there are.
    """

    incomplete: bool = option(False)


@documented("augmentation")
@dataclass(frozen=True)
class AugmentationConfig(StageConfig):
    """Augmented examples that are added to the training set.

    Attributes:
        augment: Augmented copies of each sentence or text, added to the training set only. Use 1 to 4 for a few
            thousand sentences or fewer; more for smaller datasets.
        augment_by: How copies are augmented, names separated by commas. For classify: synonyms, insertion, swap,
            deletion of words. For ner: mentions, exchanged for others of their type; tokens, for others with the same
            tag; synonyms; shuffle, of entities and of the text between them. For cws: join, with the next sentence;
            cut; synonyms.
        augment_share: The fraction of the words, tokens or entities of a copy that are changed.
        synonyms: A dictionary of synonyms for augmentation, one group of words per line.
        synonym_vectors: Word vectors, in the text format of word2vec and GloVe, whose nearest words serve as synonyms.
    """

    augment: int | None = option(
        None,
        range=NONNEGATIVE,
        none="3 by mentions, when training from scratch on up to 1,000 sentences with entities, in characters, if "
        "neither epochs nor steps are given; for linear models up to 6,250 tags times sentences; else 0",
    )
    augment_by: str | None = option(None, none="all, without a dictionary those that need none", metavar="NAME,...")
    augment_share: float | None = option(None, range=PROBABILITY, none="0.1 for classify, else 0.3")
    synonyms: str | PathLike[str] | None = option(None, none="no synonyms", metavar="FILE", is_path=True)
    synonym_vectors: str | PathLike[str] | None = option(
        None, none="no synonyms", metavar="FILE", is_path=True, instead_of="synonyms"
    )


@documented("more types")
@dataclass(frozen=True)
class ExtensionConfig(StageConfig):
    """Entity types that are added to the model of another run.

    Attributes:
        extend: Train the model of a finished run of `kcrf train --task ner` further: on new sentences, or to add entity
            types. The training data may mark the new types alone. Elsewhere they are O or a type of this run, and its
            predictions say which: it does not forget. The model keeps its encoder and its vocabulary.
        marked: The types that the training data mark wherever they occur, names separated by commas. All other types of
            the run are predicted by it where nothing is marked. Needed if the data mark a few entities of its types,
            too.
    """

    continues: ClassVar[bool] = True

    extend: str | PathLike[str] | None = option(
        None, none="a new model", metavar="RUN_DIR", is_path=True, instead_of="teacher"
    )
    marked: str | None = option(None, none="those found in the training data", metavar="TYPE,...")

    @property
    def soft_targets(self) -> tuple[float, float] | None:
        return 1.0, 1.0


@documented("distillation")
@dataclass(frozen=True)
class TeacherConfig(StageConfig):
    """Distillation: the predictions of a teacher are soft labels.

    Attributes:
        teacher: Learn from the predictions of a run of `kcrf train` of the same task and labels. A teacher with the
            same settings is self-distillation; a large teacher makes a small student more accurate.
        teacher_weight: The weight of the teacher's predictions in the loss; the labels have the weight 1 - N. If 1, the
            labels are ignored.
        teacher_temperature: The scores of teacher and student are divided by it. Above 1, predictions that the teacher
            finds unlikely weigh more.
    """

    teacher: str | PathLike[str] | None = option(None, none="no teacher", metavar="RUN_DIR", is_path=True)
    teacher_weight: float = option(0.9, range=FACTOR)
    teacher_temperature: float | None = option({"scratch": 1.0, "bert": 1.0}, range=TEMPERATURE)

    @property
    def soft_targets(self) -> tuple[float, float] | None:
        return self.teacher_weight, self.teacher_temperature or 1.0


STAGES = (IncompleteConfig, AugmentationConfig, ExtensionConfig, TeacherConfig)  # in the order in which they take part
