"""The parts of the settings that describe the model. Needs no Keras."""

from dataclasses import dataclass
from os import PathLike

from kcrf.runs.options import (
    FRACTION,
    FROM_SCRATCH,
    LAYERS,
    NEURAL,
    NOT_NEGATIVE,
    OF_LAYERS,
    POSITIVE,
    POSITIVE_OR_AUTO,
    PROBABILITY,
    WITH_BERT,
    WITH_CRF,
    WITH_VECTORS,
    option,
)

BY_SIZE = "by the size of the data"


@dataclass(frozen=True)
class EncoderConfig:
    """The encoder, and the head on top of it."""

    encoder: str | None = option(
        {"scratch": "cnn", "bert": "none"},
        "The encoder of the text. From scratch, cnn is the most accurate up to a few million characters. linear has no "
        "neural network, n-gram features and a CRF alone: it trains in seconds, segments millions of characters a "
        "second with NumPy alone, and is nearly as accurate. On top of a BERT: none, or bilstm for small datasets.",
        "model",
        choices={"scratch": ("cnn", "bilstm", "transformer", "linear"), "bert": ("none", "bilstm")},
    )
    ngrams: bool | None = option(
        {"scratch": True, "bert": False},
        "Add the scores of n-gram features to the output of the encoder. Helps most on small datasets and with words "
        "that the training set lacks. With --units words, only the linear model of --linear-weight learns these "
        "scores, unless its weight is 0.",
        "model",
        only=FROM_SCRATCH,
    )
    head: str | None = option(
        {"scratch": "crf", "bert": "crf"},
        "The output layer: crf scores whole tag sequences; softmax scores each tag independently, for comparison.",
        "model",
        choices=("crf", "softmax"),
    )
    constraints: bool | None = option(
        {"crf": True, "softmax": False},
        "Forbid tag sequences that the scheme does not allow, in training and in use. If no, the CRF has to learn "
        "what is allowed.",
        "model",
        only=WITH_CRF,
    )
    crf_lr_multiplier: float | str = option(
        "auto",
        "Learning-rate multiplier of the CRF transitions. auto sets their learning rate to about 1e-2, or higher for "
        "short runs. If 1, the transitions barely move at a BERT's learning rate.",
        "training",
        range=POSITIVE_OR_AUTO,
        only=WITH_CRF,
    )
    lexicon: bool | None = option(
        {"scratch": True, "bert": False},
        "Add lexicon features: how often the string at each position is a word (or entity) in the rest of the training "
        "set, or to the teacher in unlabeled texts. Helps from a few hundred sentences on. No effect if words are the "
        "tokens.",
        "model",
        only=FROM_SCRATCH,
    )
    min_probability: float | None = option(
        None,
        "Return every entity with at least this posterior probability, instead of the entities on the best path. "
        "Lower values (0.2 to 0.4) favor recall and often raise a low F1; higher values favor precision.",
        "model",
        range=PROBABILITY,
        by_task=True,
        none="the best path",
    )
    pool: str | None = option(
        {"scratch": "max", "bert": "first"},
        "The text vector that is classified: that of the first token, [CLS] (first); the output of BERT's pooler, the "
        "dense layer on [CLS] that it was pretrained with; the mean or the maximum over the text; or (cnn) "
        "convolutions over the first token of all layers. mean or max without --bert.",
        "model",
        choices={"scratch": ("mean", "max"), "bert": ("first", "pooler", "mean", "max", "cnn")},
        by_task=True,
    )
    width: int | None = option(
        {"scratch": None, "bert": 256},
        "Size of the encoder's hidden vectors. Use 128 for small datasets, 256 from 2,500 sentences on. On a BERT, it "
        "has an effect with --encoder bilstm alone.",
        "model",
        range=POSITIVE,
        none=BY_SIZE,
        only=NEURAL,
    )
    depth: int | None = option(
        {"scratch": 3, "bert": 1},
        "Layers of the encoder. On a BERT, it has an effect with --encoder bilstm alone.",
        "model",
        range=POSITIVE,
        only=NEURAL,
    )
    dropout: float | None = option(
        {"scratch": 0.4, "bert": 0.1},
        "Fraction of hidden values set to 0 in training. Use a larger value for smaller datasets.",
        "model",
        range=FRACTION,
        only=NEURAL,
    )
    character_width: int = option(128, "Size of a character embedding.", range=POSITIVE)
    bigram_width: int = option(64, "Size of the embedding of a pair of adjacent characters.", range=POSITIVE)
    bigram_dropout: float = option(0.3, "Fraction of these pairs hidden in training.", range=FRACTION)
    min_bigrams: int = option(
        3, "How often a pair must occur in the training set to have its own embedding.", range=POSITIVE
    )
    word_dropout: float = option(
        0.3, "Fraction of the word embeddings hidden in training, so that the other features are used too.",
        range=FRACTION,
    )  # fmt: skip


@dataclass(frozen=True)
class BertConfig:
    """The pretrained BERT, and which of its layers are loaded and read."""

    bert: str | PathLike[str] | None = option(
        None,
        "Folder of a pretrained BERT, in Google's or Hugging Face's format, to fine-tune; or of a run of `kcrf train`, "
        "whose BERT is fine-tuned further. The most accurate and the slowest to train.",
        "BERT",
        none="training from scratch",
        metavar="FOLDER",
        is_path=True,
    )
    bert_layers: int | None = option(
        None,
        "Use only this many layers of the BERT, from the lowest up. Faster and slightly less accurate.",
        "BERT",
        range=POSITIVE,
        only=WITH_BERT,
        none="all",
    )
    read_layers: str = option(
        "last",
        "The layers of the BERT whose outputs are read: last, all, or numbers such as 8,11, from 0 for the lowest, or, "
        "as in --read-layers=-2,-1, from -1 for the top. For small datasets; often no better than last.",
        "BERT",
        range=LAYERS,
        only=WITH_BERT,
        metavar="last|all|N,N,...",
        old_flag="--layers",
    )
    layer_pooling: str = option(
        "concat",
        "How the outputs of several layers are combined: concatenated (concat), by a mean with learned weights "
        "(weighted), by their mean, or by their maximum (max).",
        "BERT",
        choices=("concat", "weighted", "mean", "max"),
        only=OF_LAYERS,
    )
    skip_top_layers: int = option(
        0,
        "Re-initialize this many top layers of the BERT instead of loading them. Use 1 or 2 of 12 if results on a "
        "small dataset vary a lot from seed to seed.",
        "BERT",
        range=NOT_NEGATIVE,
        only=WITH_BERT,
    )
    skip_pooler: bool = option(
        False,
        "Re-initialize the BERT's pooler, if it is read; --skip-top-layers does so too. For small datasets, or "
        "checkpoints without a pooler.",
        "BERT",
        only=WITH_BERT,
    )
    lower_case: bool | None = option(
        None,
        "Whether the tokenizer lower-cases the text.",
        "BERT",
        only=WITH_BERT,
        none="as the folder says, else inferred from its vocabulary",
    )
    word_case: bool = option(
        False,
        "Add features of the capitalization of each word. For names, if the tokenizer lower-cases the text.",
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


@dataclass(frozen=True)
class VectorsConfig:
    """Pretrained word vectors as input features."""

    vectors: str | PathLike[str] | None = option(
        None,
        "Pretrained word vectors as input features, in the formats of word2vec, GloVe or fastText. English: the vector "
        "of the token. Chinese: the vectors of the words that begin or end at a character or contain it.",
        "word vectors",
        none="no vectors",
        metavar="FILE",
        is_path=True,
        only=NEURAL,
    )
    vectors_at: str | None = option(
        {"scratch": "embeddings", "bert": "top"},
        "Where the vectors enter the model: with the embeddings, below the encoder or the BERT's layers; or at the "
        "top, alongside their output. Classifiers use the mean over the text at the top.",
        "word vectors",
        choices=("embeddings", "top"),
        only=WITH_VECTORS,
    )
    train_vectors: bool = option(
        False,
        "Train the vectors with the model. Slower; for large datasets, or vectors of text of another kind.",
        "word vectors",
        only=WITH_VECTORS,
    )
    max_vectors: int = option(
        50_000,
        "Keep the vectors of the first N words of the file (the most frequent ones), plus those of all words in the "
        "training set. With more vectors the model knows more words of new text.",
        "word vectors",
        range=NOT_NEGATIVE,
        only=WITH_VECTORS,
        old_flag="--vectors-most",
    )


@dataclass(frozen=True)
class ModelConfig(VectorsConfig, BertConfig, EncoderConfig):
    """The model: everything from which its layers and its reader are built, except the labels."""
