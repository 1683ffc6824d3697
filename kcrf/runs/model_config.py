"""The part of the settings that describes the model. Needs no Keras."""

from dataclasses import dataclass
from os import PathLike

from kcrf.runs.options import FRACTION, LAYERS, NONNEGATIVE, POSITIVE, POSITIVE_OR_AUTO, PROBABILITY, documented, option

BY_SIZE = "by the size of the data"


@documented("model")
@dataclass(frozen=True)
class ModelConfig:
    """The model: everything from which its layers and its reader are built, except the labels.

    Attributes:
        encoder: The encoder of the text. From scratch, cnn is the most accurate up to a few million characters. linear
            has no neural network, n-gram features and a CRF alone: it trains in seconds, segments millions of
            characters a second with NumPy alone, and is nearly as accurate. On top of a BERT: none, or bilstm for small
            datasets.
        ngrams: Add the scores of n-gram features to the output of the encoder. Helps most on small datasets and with
            words that the training set lacks. With --units words, only the linear model of --linear-weight learns these
            scores, unless its weight is 0.
        head: The output layer: crf scores whole tag sequences; softmax scores each tag independently, for comparison.
        constraints: Forbid tag sequences that the scheme does not allow, in training and in use. If no, the CRF has to
            learn what is allowed.
        crf_lr_multiplier: Learning-rate multiplier of the CRF transitions. auto sets their learning rate to about 1e-2,
            or higher for short runs. If 1, the transitions barely move at a BERT's learning rate.
        lexicon: Add lexicon features: how often the string at each position is a word (or entity) in the rest of the
            training set, or to the teacher in unlabeled texts. Helps from a few hundred sentences on. No effect if
            words are the tokens.
        min_probability: Return every entity with at least this posterior probability, instead of the entities on the
            best path. Lower values (0.2 to 0.4) favor recall and often raise a low F1; higher values favor precision.
        pool: The text vector that is classified: the vector of the first token, [CLS] (first); the output of BERT's
            pooler, the dense layer on [CLS] that it was pretrained with; the mean or the maximum over the text; or
            (cnn) convolutions over the first token of all layers. mean or max without --bert.
        width: Size of the encoder's hidden vectors. Use 128 for small datasets, 256 from 2,500 sentences on. On a BERT,
            it has an effect with --encoder bilstm alone.
        depth: Layers of the encoder. On a BERT, it has an effect with --encoder bilstm alone.
        dropout: Fraction of hidden values set to 0 in training. Use a larger value for smaller datasets.
        character_width: Size of a character embedding.
        bigram_width: Size of the embedding of a pair of adjacent characters.
        bigram_dropout: Fraction of these pairs hidden in training.
        min_bigrams: How often a pair must occur in the training set to have its own embedding.
        word_dropout: Fraction of the word embeddings hidden in training, so that the other features are used too.
        bert: Folder of a pretrained BERT, in Google's or Hugging Face's format, to fine-tune; or of a run of `kcrf
            train`, whose BERT is fine-tuned further. The most accurate and the slowest to train.
        bert_layers: Use only this many layers of the BERT, from the lowest up. Faster and slightly less accurate.
        read_layers: The layers of the BERT whose outputs are read: last, all, or numbers such as 8,11, from 0 for the
            lowest, or, as in --read-layers=-2,-1, from -1 for the top. For small datasets; often no better than last.
        layer_pooling: How the outputs of several layers are combined: concatenated (concat), by a mean with learned
            weights (weighted), by their mean, or by their maximum (max).
        skip_top_layers: Re-initialize this many top layers of the BERT instead of loading them. Use 1 or 2 of 12 if
            results on a small dataset vary a lot from seed to seed.
        skip_pooler: Re-initialize the BERT's pooler, if it is read; --skip-top-layers does so too. For small datasets,
            or checkpoints without a pooler.
        lower_case: Whether the tokenizer lower-cases the text.
        word_case: Add features of the capitalization of each word. For names, if the tokenizer lower-cases the text.
        mixout: Probability with which a weight takes its pretrained value in a step, instead of dropout. 0.1 to 0.9 for
            fewer than 1,000 sentences.
        vectors: Pretrained word vectors as input features, in the formats of word2vec, GloVe or fastText. English: the
            vector of the token. Chinese: the vectors of the words that begin or end at a character or contain it.
        vectors_at: Where the vectors enter the model: with the embeddings, below the encoder or the BERT's layers; or
            at the top, alongside their output. Classifiers use the mean over the text at the top.
        train_vectors: Train the vectors with the model. Slower; for large datasets, or vectors of text of another kind.
        max_vectors: Keep the vectors of the first N words of the file (the most frequent ones), plus those of all words
            in the training set. With more vectors the model knows more words of new text.
    """

    encoder: str | None = option(
        {"scratch": "cnn", "bert": "none"},
        choices={"scratch": ("cnn", "bilstm", "transformer", "linear"), "bert": ("none", "bilstm")},
    )
    ngrams: bool | None = option({"scratch": True, "bert": False})
    head: str | None = option({"scratch": "crf", "bert": "crf"}, choices=("crf", "softmax"))
    constraints: bool | None = option({"crf": True, "softmax": False})
    crf_lr_multiplier: float | str = option("auto", group="training", range=POSITIVE_OR_AUTO)
    lexicon: bool | None = option({"scratch": True, "bert": False})
    min_probability: float | None = option(None, range=PROBABILITY, none="the best path")
    pool: str | None = option(
        {"scratch": "max", "bert": "first"},
        choices={"scratch": ("mean", "max"), "bert": ("first", "pooler", "mean", "max", "cnn")},
    )
    width: int | None = option({"scratch": None, "bert": 256}, range=POSITIVE, none=BY_SIZE)
    depth: int | None = option({"scratch": 3, "bert": 1}, range=POSITIVE)
    dropout: float | None = option({"scratch": 0.4, "bert": 0.1}, range=FRACTION)
    character_width: int = option(128, group=None, range=POSITIVE)
    bigram_width: int = option(64, group=None, range=POSITIVE)
    bigram_dropout: float = option(0.3, group=None, range=FRACTION)
    min_bigrams: int = option(3, group=None, range=POSITIVE)
    word_dropout: float = option(0.3, group=None, range=FRACTION)
    bert: str | PathLike[str] | None = option(
        None, group="BERT", none="training from scratch", metavar="FOLDER", is_path=True
    )
    bert_layers: int | None = option(None, group="BERT", range=POSITIVE, none="all")
    read_layers: str = option("last", group="BERT", range=LAYERS, metavar="last|all|N,N,...")
    layer_pooling: str = option("concat", group="BERT", choices=("concat", "weighted", "mean", "max"))
    skip_top_layers: int = option(0, group="BERT", range=NONNEGATIVE)
    skip_pooler: bool = option(False, group="BERT")
    lower_case: bool | None = option(None, group="BERT", none="as the folder says, else inferred from its vocabulary")
    word_case: bool = option(False, group="BERT")
    mixout: float = option(0.0, group="BERT", range=FRACTION)
    vectors: str | PathLike[str] | None = option(
        None, group="word vectors", none="no vectors", metavar="FILE", is_path=True
    )
    vectors_at: str | None = option(
        {"scratch": "embeddings", "bert": "top"}, group="word vectors", choices=("embeddings", "top")
    )
    train_vectors: bool = option(False, group="word vectors")
    max_vectors: int = option(50_000, group="word vectors", range=NONNEGATIVE)
