"""The parts of the settings that describe the data and the training. Needs no Keras."""

from dataclasses import dataclass

from kcrf.metrics.classes import CLASSIFICATION_METRICS, REGRESSION_METRICS
from kcrf.runs.model_config import BY_SIZE
from kcrf.runs.options import FRACTION, FRACTION_OR_AUTO, LENGTH, NONNEGATIVE, POSITIVE, UP_TO_1, documented, option
from kcrf.tags import TagScheme
from kcrf.tasks import TASKS


@documented("data")
@dataclass(frozen=True)
class DataConfig:
    """The task, and how texts and their labels are read.

    Attributes:
        task: What is learned: the words of a text (cws), the words with their classes, such as parts of speech
            (cws-pos), the named entities (ner), a class for each token of a tokenized text (pos), or one label for the
            whole text (classify).
        types: The entity types, or the classes of words or tokens, in the order of their tags.
        labels: The labels of texts in their order.
        standards: The segmentation standards of one model with a CRF for each, in their order.
        units: The tokens that are tagged as entities: words, for English and other languages with spaces between words,
            or characters.
        scheme: The tag scheme. For entities also bioes, which marks last and single tokens, too. `kcrf train` takes
            bioes if the tags of the training file mark where entities end.
        max_length: How many positions of a text, or of both texts of a pair, are read, up to 512 and the positions of
            the BERT. Longer texts are truncated, of a pair the longer text.
        limit: Train on this many sentences or texts, drawn by the seed, with labels in their proportions. To see how
            much more data would help.
    """

    task: str = option("cws", choices=tuple(TASKS))
    types: tuple[str, ...] = option((), group=None, none="those of the data")
    labels: tuple[str, ...] = option((), group=None, none="those of the data")
    standards: tuple[str, ...] = option((), group=None, none="those of the data")
    units: str | None = option(None, none="inferred from the training data")
    scheme: str | None = option(None, group="model")
    max_length: int = option(128, group="model", range=LENGTH)
    limit: int | None = option(None, group="training", range=POSITIVE, none="all")

    def tag_scheme(self) -> TagScheme:
        """The `TagScheme`, with the types."""
        return TagScheme.from_config({"name": self.scheme, "types": self.types})


@documented("training")
@dataclass(frozen=True)
class OptimizerConfig:
    """The optimizer and its learning rates.

    Attributes:
        learning_rate: Peak learning rate. Use 2e-5 to 1e-4 for a BERT, more for small models.
        warmup: Fraction of the steps in which the learning rate rises from 0 to its peak. Use more if training
            diverges.
        schedule: How the learning rate falls after its peak: linearly or along a cosine to 0, exponentially to a
            hundredth, or not at all (constant).
        solver: How the scores of a linear model are trained: with L-BFGS until they converge, as CRFsuite does (lbfgs),
            or in steps, which is faster for large datasets (adagrad).
        l1: L1 penalty of a linear model: the weight of the sum of the sizes of its scores, beside the loss of the whole
            training set (lbfgs, as CRFsuite's c1) or of a batch (adagrad). Larger values make smaller files.
        l2: L2 penalty of a linear model: the weight of the sum of the squares of its scores, as CRFsuite's c2.
        head_lr_multiplier: Learning-rate multiplier of the layers on top of the BERT. For a bilstm on a few hundred
            sentences, use 1e-2 divided by the learning rate.
        layerwise_decay: Factor on the learning rate from each layer to the one below it. Use 0.8 to 0.95 for small
            datasets; 1 gives all layers the same learning rate, and 0 freezes the BERT, with its skipped layers.
        weight_decay: Weight decay of AdamW: the fraction of a weight that a step removes, before multiplying by the
            learning rate.
        bias_correction: Adam's bias correction. If no, as in the original BERT code, fine-tuning on small datasets is
            unstable.
        prior_decay: Like the weight decay, but towards the pretrained weights. Use 0.01 to 1 for small datasets.
    """

    learning_rate: float | None = option(
        {"scratch": 1e-3, "extended": 3e-4, "bert": 5e-5, "linear": None},
        range=POSITIVE,
        none="0.1, 0.3 for ner and --solver adagrad,",
    )
    warmup: float | None = option({"scratch": 0.05, "bert": 0.1}, range=FRACTION)
    schedule: str | None = option(
        {"scratch": "cosine", "bert": "linear"}, choices=("linear", "cosine", "exponential", "constant")
    )
    solver: str | None = option(
        None,
        choices=("lbfgs", "adagrad"),
        none="lbfgs if sentences times tags are at most 25,000, and no learning rate or batch size is given",
    )
    l1: float | None = option(
        None, range=NONNEGATIVE, none="0.03, 0.3 for words; with --solver adagrad 0.01, 0.001 for ner"
    )
    l2: float | None = option(None, range=NONNEGATIVE, none="0.03, 0.01 for words; adagrad has none")
    head_lr_multiplier: float = option(10.0, group="BERT", range=POSITIVE)
    layerwise_decay: float = option(1.0, group="BERT", range=UP_TO_1)
    weight_decay: float = option(0.01, group="BERT", range=NONNEGATIVE)
    bias_correction: bool = option(True, group="BERT")
    prior_decay: float = option(0.0, group="BERT", range=NONNEGATIVE)


@documented("training")
@dataclass(frozen=True)
class TrainingConfig:
    """Epochs, batches, and the choice of the best epoch.

    Attributes:
        epochs: Number of epochs. Linear models have 1 with --solver lbfgs, 20 with adagrad. When extending networks
            from scratch, the default is chosen so that training takes about 3,000 steps: between 5 and 20 epochs. When
            training networks from scratch, about 1,000 steps (4,000 if words are the tokens): between 5 and 40 epochs.
            With --bert, about 300 steps: between 5 and 20 epochs.
        steps: Number of updates, rounded up to whole epochs. For small datasets: a few hundred examples often need more
            steps than a few epochs make.
        metric: The score on the validation set by which the best epoch is chosen. For classify, f is F1 of the second
            of two labels, in their order, or of all labels if a text can have several; pearson and spearman treat the
            labels as numbers. For cws-pos, f is F1 of words, and joint_f is F1 of words with their classes.
        patience: Stop after this many epochs without a better score on the validation set. Epochs up to the last one
            that found nothing do not count. lbfgs has one epoch, so it never stops early.
        batch_size: Windows of up to 128 positions in a batch. Use 16 for small datasets, 64 from 6,400 sentences on.
            Linear models have 16 with --solver adagrad; lbfgs has no batches.
        batch_tokens: Positions in a batch, instead of a fixed number of windows. For sentences of very different
            lengths.
        linear_weight: Also train a linear model (as --encoder linear), and return the average of its scores and those
            of the network, as one network: the weight of the linear model. 0 trains the network alone. auto takes 0 or
            0.5, whichever the validation set scores higher after an epoch, and 1 if the linear model alone scores
            higher than the best epoch by more than 0.02.
        precision: Arithmetic of the layers of a BERT in training. float16 and bfloat16 are faster on GPUs that have
            them, bfloat16 on some CPUs too. The trained model computes in float32.
        seed: Seed of the initial weights, the batches and the held-out tenth. To see how much scores vary, train with
            several seeds and compare the runs with `kcrf report`.
    """

    epochs: int | None = option(None, range=POSITIVE, none=BY_SIZE)
    steps: int | None = option(None, range=POSITIVE, none="as many as the epochs make", instead_of="epochs")
    metric: str | None = option(
        None,
        choices=(*CLASSIFICATION_METRICS, *REGRESSION_METRICS),
        none="accuracy; f if a text has several labels; pearson if labels have decimals; joint_f for cws-pos",
    )
    patience: int | None = option(
        None,
        range=POSITIVE,
        none="never; if the epochs are chosen by the size of the data: 5 epochs and 200 steps, at most 10 epochs; 4 "
        "with --solver adagrad, if the epochs are not given",
    )
    batch_size: int | None = option({"scratch": None, "bert": 32}, range=POSITIVE, none=BY_SIZE)
    batch_tokens: int | None = option(None, range=POSITIVE, none="a fixed number of windows", instead_of="batch_size")
    linear_weight: float | str | None = option(
        None,
        range=FRACTION_OR_AUTO,
        none="with a CRF, n-grams and no teacher temperature: 0.5 for cws, auto for ner; else 0",
    )
    precision: str | None = option(
        None, choices=("float32", "float16", "bfloat16"), none="bfloat16 on a GPU that has it, else float32"
    )
    seed: int = option(0, range=NONNEGATIVE)
