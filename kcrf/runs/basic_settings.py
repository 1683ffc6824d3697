"""The settings of a training run on what to find, the model, its training and its BERT. Needs no Keras."""

from dataclasses import dataclass

from kcrf.metrics.classes import CLASSIFICATION_METRICS, REGRESSION_METRICS
from kcrf.runs.options import (
    FACTOR,
    FOR_CLASSES,
    FOR_ENTITIES,
    FOR_TAGS,
    FRACTION,
    FROM_SCRATCH,
    LAYERS,
    LENGTH,
    NOT_NEGATIVE,
    OF_LAYERS,
    POSITIVE,
    POSITIVE_OR_AUTO,
    PROBABILITY,
    WITH_BERT,
    WITH_CRF,
    option,
)

__all__ = ["BasicSettings"]

BY_SIZE = "by the size of the data"


@dataclass(frozen=True)
class BasicSettings:
    """The fields of `kcrf.runs.settings.Settings` on what to find, the model, its training and its BERT."""

    task: str = option(
        "cws",
        "What to find: words (cws) or named entities (ner) in a text, or one label for all of it (classify).",
        "data",
        choices=("cws", "ner", "classify"),
    )
    types: tuple = option((), "The entity types in the order of their tags. `train_tagger` finds them in the data.")
    units: str | None = option(
        None,
        "What carries the tags of entities: words, for English and other languages with blanks between them, or "
        "characters.",
        "data",
        choices={"cws": ("characters",), "ner": ("words", "characters"), "classify": ("characters",)},
        only=FROM_SCRATCH,
        none="as the training data has it",
    )
    labels: tuple = option((), "The labels of texts in their order, none for numbers. Found in the data likewise.")
    pairs: bool = option(False, "Whether texts come in pairs. Found in the data likewise.")
    mean: float = option(0.0, "The mean of the labels that are numbers. Found in the data likewise.")
    deviation: float = option(1.0, "Their standard deviation.", range=POSITIVE)

    encoder: str | None = option(
        {"scratch": "cnn", "bert": "none"},
        "What reads the text. From scratch, cnn is the fastest and, on a few million characters, the best. On a BERT: "
        "none, or bilstm for few sentences.",
        "model",
        choices={"scratch": ("cnn", "bilstm", "transformer"), "bert": ("none", "bilstm")},
    )
    head: str | None = option(
        {"scratch": "crf", "bert": "crf", "classify": "softmax"},
        "What scores the tags: crf scores whole sequences, softmax each tag by itself, for comparison.",
        "model",
        choices={"scratch": ("crf", "softmax"), "bert": ("crf", "softmax"), "classify": ("softmax",)},
    )
    scheme: str | None = option(
        {"cws": "bmes", "ner": "bio"},
        "The tag scheme. For entities also bioes, which marks last and single characters too and needs more data.",
        "model",
        choices={"cws": ("bmes",), "ner": ("bio", "bioes")},
        only=FOR_TAGS,
    )
    constraints: bool | None = option(
        {"crf": True, "softmax": False},
        "Forbid tag sequences that the scheme does not allow, in training and in use. Without them a CRF has to learn "
        "what is allowed.",
        "model",
        only=WITH_CRF,
    )
    lexicon: bool | None = option(
        {"scratch": True, "bert": False, "classify": False},
        "Let the model see how often the string at a position is a word, or an entity, elsewhere in the training data. "
        "Better from a few hundred sentences on. No effect on units of words.",
        "model",
        choices={"classify": (False,)},
        only=FROM_SCRATCH,
    )
    min_confidence: float | None = option(
        None,
        "Take all entities whose posterior probability is at least this, instead of those of the best path. 0.2 to 0.4 "
        "often raises a low F1, 0.5 a high one; more favours precision.",
        "model",
        range=PROBABILITY,
        only=FOR_ENTITIES,
        none="the best path",
    )
    temperature: float = option(
        1.0,
        "All scores are divided by it before probabilities are computed. `train_tagger` fits it on the held-out part.",
        range=POSITIVE,
    )
    pool: str | None = option(
        None,
        "What of the text is classified: the vector of its first token, [CLS]; the output of BERT's pooler, the dense "
        "layer on [CLS] that it was pretrained with; the mean or the maximum over the text; or (cnn) convolutions over "
        "the first token of all layers. mean or max without --bert.",
        "model",
        choices={"scratch": ("mean", "max"), "bert": ("first", "pooler", "mean", "max", "cnn")},
        only=FOR_CLASSES,
        none="first, max without --bert",
    )
    max_length: int = option(
        128,
        "How many positions of a text, or of both texts of a pair, are read, up to 512 and those of a BERT. The rest "
        "is cut off, of a pair from the longer text.",
        "model",
        range=LENGTH,
        only=FOR_CLASSES,
    )
    width: int | None = option(
        {"scratch": None, "bert": 256},
        "Size of the encoder's hidden vectors. No effect on a BERT. 128 for small data, 256 from 2,500 sentences on.",
        "model",
        range=POSITIVE,
        none=BY_SIZE,
    )
    depth: int | None = option({"scratch": 3, "bert": 1}, "Layers of the encoder.", "model", range=POSITIVE)
    dropout: float | None = option(
        {"scratch": 0.4, "bert": 0.1},
        "Fraction of hidden values set to 0 in training. More for less data.",
        "model",
        range=FRACTION,
    )
    character_width: int = option(128, "Size of the vector of a character.", range=POSITIVE)
    bigram_width: int = option(64, "Size of the vector of a pair of adjacent characters.", range=POSITIVE)
    bigram_dropout: float = option(0.3, "Fraction of these pairs hidden in training.", range=FRACTION)
    min_bigrams: int = option(
        3, "How often a pair must occur in the training data to have its own vector.", range=POSITIVE
    )
    word_dropout: float = option(
        0.3, "Fraction of the vectors of words hidden in training, so that others are read too.", range=FRACTION
    )

    learning_rate: float | None = option(
        {"scratch": 1e-3, "bert": 5e-5},
        "Learning rate at its peak. For a BERT 2e-5 to 1e-4; small models need more.",
        "training",
        range=POSITIVE,
    )
    crf_lr_multiplier: float | str = option(
        "auto",
        "How many times faster the CRF's transitions learn than the other weights. auto gives them a rate of about "
        "1e-2, more in short runs. With 1, at a BERT's learning rate, they hardly leave their initial values.",
        "training",
        range=POSITIVE_OR_AUTO,
    )
    warmup: float | None = option(
        {"scratch": 0.05, "bert": 0.1},
        "Fraction of the steps in which the learning rate rises from 0 to its peak. More if training diverges.",
        "training",
        range=FRACTION,
    )
    schedule: str | None = option(
        {"scratch": "cosine", "bert": "linear"},
        "How the learning rate falls after its peak: along a line or a cosine to 0, by the same factor in each step to "
        "a hundredth (exponential), or not at all (constant).",
        "training",
        choices=("linear", "cosine", "exponential", "constant"),
    )
    epochs: int | None = option(
        {"scratch": None, "bert": 5},
        "Passes over the training data. From scratch 5 to 40 by default: as many as make about 1,000 steps, 4,000 "
        "where words are the units.",
        "training",
        range=POSITIVE,
        none=BY_SIZE,
    )
    steps: int | None = option(
        None,
        "Updates of the weights, rounded up to whole passes over the training data, instead of epochs. For small data: "
        "a few hundred samples often need more steps than a few epochs make.",
        "training",
        range=POSITIVE,
        none="as many as the epochs make",
    )
    metric: str | None = option(
        None,
        "The score on the held-out data by which the best epoch is chosen: f is F1 of the second of two labels, in "
        "their order. pearson and spearman treat the labels as numbers.",
        "training",
        choices=(*CLASSIFICATION_METRICS, *REGRESSION_METRICS),
        only=FOR_CLASSES,
        none="accuracy, or pearson where the labels are numbers with decimals",
    )
    patience: int | None = option(
        None,
        "Stop after this many epochs without a better score on the held-out data.",
        "training",
        range=POSITIVE,
        none="never; where the epochs are chosen by the size of the data: 5 epochs and 200 steps",
    )
    batch_size: int | None = option(
        {"scratch": None, "bert": 32},
        "Windows, of up to 128 positions each, in a step. 16 for small data, 64 from 6,400 sentences on.",
        "training",
        range=POSITIVE,
        none=BY_SIZE,
    )
    batch_tokens: int | None = option(
        None,
        "Positions in a step, instead of a fixed number of windows. For sentences of very different lengths.",
        "training",
        range=POSITIVE,
        none="a fixed number of windows",
    )
    precision: str = option(
        "float32",
        "Arithmetic of the layers in training. float16 and bfloat16 are faster on GPUs that have them, bfloat16 on "
        "some CPUs too. The trained model computes in float32.",
        "training",
        choices=("float32", "float16", "bfloat16"),
        only=WITH_BERT,
    )
    limit: int | None = option(
        None,
        "Train on this many sentences or texts, drawn by the seed, with labels in their proportions. To see what more "
        "data would bring.",
        "training",
        range=POSITIVE,
        none="all",
    )
    seed: int = option(
        0, "Seed of the initial weights, the batches and the held-out tenth.", "training", range=NOT_NEGATIVE
    )

    bert: str | None = option(
        None,
        "Folder of a pretrained BERT, in Google's or Hugging Face's format, to fine-tune; or of a run of `kcrf train`, "
        "whose BERT is fine-tuned further. The best results and the slowest training.",
        "BERT",
        none="training from scratch",
        metavar="FOLDER",
    )
    bert_layers: int | None = option(
        None,
        "Use only this many of its layers, from the lowest up. Faster and a little less accurate.",
        "BERT",
        range=POSITIVE,
        only=WITH_BERT,
        none="all",
    )
    layers: str = option(
        "last",
        "Which of its layers are read: last, all, or numbers such as 8,11, from 0 for the lowest, or, as in "
        "--layers=-2,-1, from -1 for the top. For small data; often no better than the last.",
        "BERT",
        range=LAYERS,
        only=WITH_BERT,
        metavar="last|all|N,N,...",
    )
    layer_pooling: str = option(
        "concat",
        "How several layers are combined: side by side (concat), by a mean with learnt weights (weighted), by their "
        "mean, or by their maximum (max).",
        "BERT",
        choices=("concat", "weighted", "mean", "max"),
        only=OF_LAYERS,
    )
    skip_top_layers: int = option(
        0,
        "Re-initialise this many of its top layers instead of loading them. 1 or 2 of 12, where few sentences make "
        "results differ much from seed to seed.",
        "BERT",
        range=NOT_NEGATIVE,
        only=WITH_BERT,
    )
    skip_pooler: bool = option(
        False,
        "Re-initialise its pooler, where it is read; skip_top_layers does so too. For few samples, or where the "
        "checkpoint has no pooler.",
        "BERT",
        only=WITH_BERT,
    )
    lower_case: bool | None = option(
        None,
        "Whether the tokenizer lower-cases the text.",
        "BERT",
        only=WITH_BERT,
        none="as the folder says, else as its vocabulary shows",
    )
    word_case: bool = option(
        False,
        "Let the head see which words have capital letters. For names, where the tokenizer lower-cases the text.",
        "BERT",
        choices={"classify": (False,)},
        only=WITH_BERT,
    )
    head_lr_multiplier: float = option(
        10.0,
        "How many times faster the layers on top of the BERT learn than the BERT. 10 to 100 for a bilstm.",
        "BERT",
        range=POSITIVE,
        only=WITH_BERT,
    )
    layerwise_decay: float = option(
        1.0,
        "Factor on the learning rate from each layer to the one below it. 0.8 to 0.95 for small data; 1 leaves all "
        "layers the same rate.",
        "BERT",
        range=FACTOR,
        only=WITH_BERT,
    )
    weight_decay: float = option(
        0.01,
        "AdamW's weight decay: the fraction of a weight that a step removes, before multiplying by the learning rate.",
        "BERT",
        range=NOT_NEGATIVE,
        only=WITH_BERT,
    )
    bias_correction: bool = option(
        True,
        "Adam's bias correction. Without it, as in the original BERT code, short runs fail more often.",
        "BERT",
        only=WITH_BERT,
    )
    mixout: float = option(
        0.0,
        "Probability with which a weight takes its pretrained value in a step, instead of dropout. 0.1 to 0.9 for "
        "fewer than 1,000 sentences.",
        "BERT",
        range=FRACTION,
        only=WITH_BERT,
    )
    prior_decay: float = option(
        0.0,
        "Like the weight decay, but towards the pretrained weights. 0.01 to 1 for small data.",
        "BERT",
        range=NOT_NEGATIVE,
        only=WITH_BERT,
    )
