"""The parts of the settings that describe the data and the training. Needs no Keras."""

from dataclasses import dataclass
from os import PathLike

from kcrf.metrics.classes import CLASSIFICATION_METRICS, REGRESSION_METRICS
from kcrf.runs.model_config import BY_SIZE
from kcrf.runs.options import (
    AUGMENTED,
    EXTENDED,
    FACTOR,
    FRACTION,
    FRACTION_OR_AUTO,
    FROM_SCRATCH,
    LENGTH,
    LINEAR,
    NEURAL,
    NOT_NEGATIVE,
    POSITIVE,
    PROBABILITY,
    TAUGHT,
    WITH_BERT,
    option,
)
from kcrf.tags import TagScheme
from kcrf.tasks import TASKS


@dataclass(frozen=True)
class DataConfig:
    """The task, and how texts and their labels are read."""

    task: str = option(
        "cws",
        "What is learned: the words of a text (cws), the words with their classes, such as parts of speech (cws-pos), "
        "the named entities (ner), a class for each token of a tokenized text (pos), or one label for the whole text "
        "(classify).",
        "data",
        choices=tuple(TASKS),
    )
    types: tuple[str, ...] = option(
        (), "The entity types, or the classes of words or tokens, in the order of their tags.", none="those of the data"
    )
    labels: tuple[str, ...] = option((), "The labels of texts in their order.", none="those of the data")
    standards: tuple[str, ...] = option(
        (),
        "The segmentation standards of one model with a CRF for each, in their order.",
        none="those of the data",
        by_task=True,
    )
    units: str | None = option(
        None,
        "The tokens that are tagged as entities: words, for English and other languages with spaces between words, or "
        "characters.",
        "data",
        only=FROM_SCRATCH,
        none="inferred from the training data",
    )
    scheme: str | None = option(
        None,
        "The tag scheme. For entities also bioes, which marks last and single tokens too and needs more data.",
        "model",
        by_task=True,
    )
    max_length: int = option(
        128,
        "How many positions of a text, or of both texts of a pair, are read, up to 512 and the positions of the BERT. "
        "Longer texts are truncated, of a pair the longer text.",
        "model",
        range=LENGTH,
        by_task=True,
    )
    incomplete: bool = option(
        False,
        "Only some of the entities of the training data are marked. Other text is then not taken as outside of "
        "entities: its labels are estimated by linear models of other sentences. If the data have tags ?, only those "
        "are estimated. All entities of --valid must be marked: they tell how many there are.",
        "data",
        by_task=True,
    )
    limit: int | None = option(
        None,
        "Train on this many sentences or texts, drawn by the seed, with labels in their proportions. To see how much "
        "more data would help.",
        "training",
        range=POSITIVE,
        none="all",
    )

    def tag_scheme(self) -> TagScheme:
        """The `TagScheme`, with the types."""
        return TagScheme.from_config({"name": self.scheme, "types": self.types})


@dataclass(frozen=True)
class OptimizerConfig:
    """The optimizer and its learning rates."""

    learning_rate: float | None = option(
        {"scratch": 1e-3, "extended": 3e-4, "bert": 5e-5, "linear": 0.1},
        "Peak learning rate. Use 2e-5 to 1e-4 for a BERT, more for small models. Linear models have one with --solver "
        "adagrad alone, for ner 0.3.",
        "training",
        range=POSITIVE,
    )
    warmup: float | None = option(
        {"scratch": 0.05, "bert": 0.1},
        "Fraction of the steps in which the learning rate rises from 0 to its peak. Use more if training diverges.",
        "training",
        range=FRACTION,
        only=NEURAL,
    )
    schedule: str | None = option(
        {"scratch": "cosine", "bert": "linear"},
        "How the learning rate falls after its peak: linearly or along a cosine to 0, exponentially to a hundredth, or "
        "not at all (constant).",
        "training",
        choices=("linear", "cosine", "exponential", "constant"),
        only=NEURAL,
    )
    solver: str | None = option(
        None,
        "How the scores of a linear model are trained: with L-BFGS until they converge, as CRFsuite does (lbfgs), or "
        "in steps, which is faster for large datasets (adagrad).",
        "training",
        choices=("lbfgs", "adagrad"),
        none="lbfgs if sentences times tags are at most 25,000, and no learning rate or batch size is given",
        only=LINEAR,
    )
    l1: float | None = option(
        None,
        "L1 penalty of a linear model: the weight of the sum of the sizes of its scores, beside the loss of the whole "
        "training set (lbfgs, as CRFsuite's c1) or of a batch (adagrad). Larger values make smaller files.",
        "training",
        range=NOT_NEGATIVE,
        none="0.03, 0.3 for words; with --solver adagrad 0.01, 0.001 for ner",
        only=LINEAR,
    )
    l2: float | None = option(
        None,
        "L2 penalty of a linear model: the weight of the sum of the squares of its scores, as CRFsuite's c2.",
        "training",
        range=NOT_NEGATIVE,
        none="0.03, 0.01 for words; adagrad has none",
        only=LINEAR,
    )
    head_lr_multiplier: float = option(
        10.0,
        "Learning-rate multiplier of the layers on top of the BERT. For a bilstm on a few hundred sentences, use 1e-2 "
        "divided by the learning rate.",
        "BERT",
        range=POSITIVE,
        only=WITH_BERT,
    )
    layerwise_decay: float = option(
        1.0,
        "Factor on the learning rate from each layer to the one below it. Use 0.8 to 0.95 for small datasets; 1 gives "
        "all layers the same learning rate.",
        "BERT",
        range=FACTOR,
        only=WITH_BERT,
    )
    weight_decay: float = option(
        0.01,
        "Weight decay of AdamW: the fraction of a weight that a step removes, before multiplying by the learning rate.",
        "BERT",
        range=NOT_NEGATIVE,
        only=WITH_BERT,
    )
    bias_correction: bool = option(
        True,
        "Adam's bias correction. If no, as in the original BERT code, fine-tuning on small datasets is unstable.",
        "BERT",
        only=WITH_BERT,
    )
    prior_decay: float = option(
        0.0,
        "Like the weight decay, but towards the pretrained weights. Use 0.01 to 1 for small datasets.",
        "BERT",
        range=NOT_NEGATIVE,
        only=WITH_BERT,
    )


@dataclass(frozen=True)
class TrainingConfig:
    """Epochs, batches, and the choice of the best epoch."""

    epochs: int | None = option(
        None,
        "Number of epochs. Linear models have 1 with --solver lbfgs, 20 with adagrad. When extending networks from "
        "scratch, the default is chosen so that training takes about 3,000 steps: between 5 and 20 epochs. When "
        "training networks from scratch, about 1,000 steps (4,000 if words are the tokens): between 5 and 40 epochs. "
        "With --bert, about 300 steps: between 5 and 20 epochs.",
        "training",
        range=POSITIVE,
        none=BY_SIZE,
    )
    steps: int | None = option(
        None,
        "Number of updates, rounded up to whole epochs. For small datasets: a few hundred examples often need more "
        "steps than a few epochs make.",
        "training",
        range=POSITIVE,
        none="as many as the epochs make",
        instead_of="epochs",
    )
    metric: str | None = option(
        None,
        "The score on the validation set by which the best epoch is chosen. For classify, f is F1 of the second of two "
        "labels, in their order; pearson and spearman treat the labels as numbers. For cws-pos, f is F1 of words, and "
        "joint_f is F1 of words with their classes.",
        "training",
        choices=(*CLASSIFICATION_METRICS, *REGRESSION_METRICS),
        by_task=True,
        none="accuracy, or pearson if the labels are numbers with decimals; joint_f for cws-pos",
    )
    patience: int | None = option(
        None,
        "Stop after this many epochs without a better score on the validation set. Epochs up to the last one that "
        "found nothing do not count. lbfgs has one epoch, so it never stops early.",
        "training",
        range=POSITIVE,
        none="never; if the epochs are chosen by the size of the data: 5 epochs and 200 steps, at most 10 epochs; 4 "
        "with --solver adagrad, if the epochs are not given",
    )
    batch_size: int | None = option(
        {"scratch": None, "bert": 32},
        "Windows of up to 128 positions in a batch. Use 16 for small datasets, 64 from 6,400 sentences on. Linear "
        "models have 16 with --solver adagrad; lbfgs has no batches.",
        "training",
        range=POSITIVE,
        none=BY_SIZE,
    )
    batch_tokens: int | None = option(
        None,
        "Positions in a batch, instead of a fixed number of windows. For sentences of very different lengths.",
        "training",
        range=POSITIVE,
        only=NEURAL,
        none="a fixed number of windows",
        instead_of="batch_size",
    )
    linear_weight: float | str | None = option(
        None,
        "Also train a linear model (as --encoder linear), and return the average of its scores and those of the "
        "network, as one network: the weight of the linear model. 0 trains the network alone. auto takes 0 or 0.5, "
        "whichever the validation set scores higher after an epoch, and 1 if the linear model alone scores higher than "
        "the best epoch by more than 0.02.",
        "training",
        range=FRACTION_OR_AUTO,
        only=FROM_SCRATCH,
        none="with a CRF, n-grams and no teacher temperature: 0.5 for cws, auto for ner; else 0",
    )
    precision: str = option(
        "float32",
        "Arithmetic of the layers in training. float16 and bfloat16 are faster on GPUs that have them, bfloat16 on "
        "some CPUs too. The trained model computes in float32.",
        "training",
        choices=("float32", "float16", "bfloat16"),
        only=WITH_BERT,
    )
    seed: int = option(
        0, "Seed of the initial weights, the batches and the held-out tenth.", "training", range=NOT_NEGATIVE
    )


@dataclass(frozen=True)
class AugmentationConfig:
    """Augmented examples that are added to the training set."""

    augment: int | None = option(
        None,
        "Augmented copies of each sentence or text, added to the training set only. Use 1 to 4 for a few thousand "
        "sentences or fewer; more for smaller datasets.",
        "augmentation",
        range=NOT_NEGATIVE,
        by_task=True,
        none="3 by mentions, when training from scratch on up to 1,000 sentences with entities, in characters, if "
        "neither epochs nor steps are given; else 0",
    )
    augment_by: str | None = option(
        None,
        "How copies are augmented, names separated by commas. For classify: synonyms, insertion, swap, deletion of "
        "words. For ner: mentions, exchanged for others of their type; tokens, for others with the same tag; synonyms; "
        "shuffle, of entities and of the text between them. For cws: join, with the next sentence; cut; synonyms.",
        "augmentation",
        only=AUGMENTED,
        none="all, without a dictionary those that need none",
        metavar="NAME,...",
    )
    augment_share: float | None = option(
        None,
        "The fraction of the words, tokens or entities of a copy that are changed.",
        "augmentation",
        range=PROBABILITY,
        only=AUGMENTED,
        none="0.1 for classify, else 0.3",
    )
    synonyms: str | PathLike[str] | None = option(
        None,
        "A dictionary of synonyms for augmentation, one group of words per line.",
        "augmentation",
        only=AUGMENTED,
        none="no synonyms",
        metavar="FILE",
        is_path=True,
    )
    synonym_vectors: str | PathLike[str] | None = option(
        None,
        "Word vectors, in the text format of word2vec and GloVe, whose nearest words serve as synonyms.",
        "augmentation",
        only=AUGMENTED,
        none="no synonyms",
        metavar="FILE",
        is_path=True,
        instead_of="synonyms",
    )


@dataclass(frozen=True)
class TeacherConfig:
    """Learning from the model of another run: by distillation, or by adding types to it."""

    teacher: str | PathLike[str] | None = option(
        None,
        "Learn from the predictions of a run of `kcrf train` of the same task and labels. A teacher with the same "
        "settings is self-distillation; a large teacher makes a small student more accurate.",
        "distillation",
        none="no teacher",
        metavar="RUN_DIR",
        is_path=True,
    )
    teacher_weight: float = option(
        0.9,
        "The weight of the teacher's predictions in the loss; the labels have the weight 1 - N. If 1, the labels are "
        "ignored.",
        "distillation",
        range=FACTOR,
        only=TAUGHT,
    )
    teacher_temperature: float | None = option(
        {"scratch": 1.0, "bert": 1.0},
        "The scores of teacher and student are divided by it. Above 1, predictions that the teacher finds unlikely "
        "weigh more.",
        "distillation",
        range=POSITIVE,
        only=TAUGHT,
        old_flag="--temperature",
    )
    extend: str | PathLike[str] | None = option(
        None,
        "Add entity types to the model of a finished run of `kcrf train --task ner`. The training data mark the new "
        "types alone. Elsewhere they are O or a type of this run, and its predictions say which: it does not forget. "
        "The model keeps its encoder and its vocabulary.",
        "more types",
        none="a new model",
        metavar="RUN_DIR",
        is_path=True,
        instead_of="teacher",
    )
    marked: str | None = option(
        None,
        "The types that the training data mark wherever they occur, names separated by commas. All other types of the "
        "run are predicted by it where nothing is marked. Needed if the data mark a few entities of its types, too.",
        "more types",
        only=EXTENDED,
        none="those found in the training data",
        metavar="TYPE,...",
    )

    @property
    def soft_targets(self) -> tuple[float, float] | None:
        """The weight of soft targets in the loss, and their temperature; None without a model to learn from."""
        if self.extend is not None:
            return 1.0, 1.0
        return None if self.teacher is None else (self.teacher_weight, self.teacher_temperature or 1.0)
