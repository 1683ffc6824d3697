"""Trains a tagger: settings, batches by length, the model, the loop over epochs."""

import time
from dataclasses import dataclass

import numpy as np

from kcrf.backend import JIT_PAYS_FOR_INFERENCE, keras, ops
from kcrf.encoders import ENCODERS, embed, encode
from kcrf.features import BUCKETS, Vocabulary, bucket, pad, windows
from kcrf.layers import ConditionalRandomField, ViterbiTags
from kcrf.metrics import segmentation_scores
from kcrf.runs import RunFolder
from kcrf.tags import tags_to_words, words_to_tags

__all__ = ["Settings", "Tagger", "build_tagger", "load_tagger", "train_segmenter"]

TAGS = 4


@dataclass(frozen=True)
class Settings:
    """What a training run is made of; the command line's options of the same names explain them."""

    task: str = "cws"
    encoder: str = "cnn"
    head: str = "crf"
    crf_lr_multiplier: float = 10.0
    learning_rate: float = 1e-3
    epochs: int = 8
    batch_size: int = 64
    seed: int = 0
    width: int = 256
    depth: int = 4
    character_width: int = 128
    bigram_width: int = 64
    dropout: float = 0.4
    bigram_dropout: float = 0.3
    min_bigrams: int = 3

    def __post_init__(self):
        choices = {"task": ("cws",), "encoder": tuple(ENCODERS), "head": ("crf", "softmax")}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"`{name}` is one of {allowed}. Received: {getattr(self, name)!r}")
        for name in ("crf_lr_multiplier", "learning_rate", "epochs", "batch_size", "width", "depth"):
            if not getattr(self, name) > 0:
                raise ValueError(f"`{name}` must be positive. Received: {getattr(self, name)}")
        for name in ("dropout", "bigram_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 0 and below 1. Received: {getattr(self, name)}")


class Batches(keras.utils.PyDataset):
    """Training batches: windows of one length bucket together, drawn anew every epoch, always `batch_size` rows.

    Args:
        rows: List of `(characters, bigrams, tags)`, three lists of ints of one length each.
        batch_size: Rows of a batch; a bucket's last batch is filled up with other rows of the bucket.
        seed: Draws the order.
    """

    def __init__(self, rows, batch_size, seed):
        super().__init__()
        self._buckets = {}
        for row in rows:
            self._buckets.setdefault(bucket(len(row[0])), []).append(row)
        self._batch_size, self._random = batch_size, np.random.default_rng(seed)
        self.on_epoch_end()

    def __len__(self):
        return len(self._batches)

    def __getitem__(self, index):
        length, rows = self._batches[index]
        characters, bigrams, tags = zip(*rows, strict=True)
        inputs = {"characters": pad(characters, length), "bigrams": pad(bigrams, length)}
        return inputs, pad(tags, length, value=-1)

    def on_epoch_end(self):
        """Draws the batches of the next epoch."""
        self._batches = []
        for length, rows in self._buckets.items():
            order = self._random.permutation(len(rows))
            order = np.resize(order, -(-len(order) // self._batch_size) * self._batch_size)
            for chosen in order.reshape(-1, self._batch_size):
                self._batches.append((length, [rows[i] for i in chosen]))
        self._random.shuffle(self._batches)
        # Keras takes the lengths of the first two batches for those of all, on TensorFlow, unless they differ.
        lengths = [length for length, _ in self._batches]
        other = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
        if other is not None:
            self._batches[1], self._batches[other] = self._batches[other], self._batches[1]


def build_tagger(settings, sizes):
    """The model: features in, emission scores `(batch, time, tags)` out, masked positions at -inf.

    Args:
        settings: `Settings`.
        sizes: How many characters and bigrams the vocabulary numbers.
    """
    characters = keras.Input((None,), dtype="int32", name="characters")
    bigrams = keras.Input((None,), dtype="int32", name="bigrams")
    mask = ops.not_equal(characters, 0)
    widths = (settings.character_width, settings.bigram_width)
    vectors = embed(characters, bigrams, sizes, widths, settings.dropout, settings.bigram_dropout)
    hidden = encode(settings.encoder, vectors, mask, settings.width, settings.depth, settings.dropout)
    emissions = keras.layers.Dense(TAGS, name="Emissions")(hidden)
    if settings.head == "crf":
        emissions = ConditionalRandomField(settings.crf_lr_multiplier, name="CRF")(emissions, mask=mask)
    return keras.Model({"characters": characters, "bigrams": bigrams}, emissions)


def crf_of(model):
    """The model's ConditionalRandomField, or None."""
    return next((layer for layer in model.layers if isinstance(layer, ConditionalRandomField)), None)


def compile_tagger(model, settings, steps):
    """Adam, a warmup over the first twentieth of the steps, then down to 0 along a cosine; weights are averaged."""
    warmup = max(1, steps // 20)
    rate = keras.optimizers.schedules.CosineDecay(
        0.0, max(1, steps - warmup), warmup_target=settings.learning_rate, warmup_steps=warmup
    )
    layer = crf_of(model)
    loss = layer.sparse_loss if layer else keras.losses.SparseCategoricalCrossentropy(True, ignore_class=-1)
    momentum = min(0.998, 1 - 10 / steps) if steps > 20 else 0.5  # over the last few hundred steps, or a tenth of few
    model.compile(keras.optimizers.Adam(rate, global_clipnorm=5.0, use_ema=True, ema_momentum=momentum), loss=loss)


def training_rows(sentences, vocabulary):
    """`(characters, bigrams, tags)` of every window of every sentence."""
    rows = []
    for words in sentences:
        text, tags = "".join(words), words_to_tags(words)
        characters, bigrams = vocabulary.encode(text)
        for start, end, _, _ in windows(text):
            rows.append((characters[start:end], bigrams[start:end], tags[start:end]))
    return rows


class Tagger:
    """A model with its vocabulary: from texts to tags, in few shapes.

    Args:
        model: What `build_tagger` returns.
        vocabulary: A `Vocabulary`.
    """

    def __init__(self, model, vocabulary):
        self.vocabulary, self.crf = vocabulary, crf_of(model)
        self.model = keras.Model(model.input, model.output)  # the same layers without an optimizer, to be saved
        tags = ops.argmax(model.output, axis=-1) if self.crf is None else ViterbiTags(self.crf)(model.output)
        self._decoder = keras.Model(model.input, tags)
        self._decoder.compile(jit_compile=JIT_PAYS_FOR_INFERENCE)

    def tags(self, texts, batch_size=64, on_batch=lambda characters: None):
        """The BMES tags of each text, a list of ints each.

        Args:
            texts: List of strings of any length.
            batch_size: Windows at a time. Defaults to 64.
            on_batch: Called after each batch with the number of characters it settled.
        """
        features = [self.vocabulary.encode(text) for text in texts]
        jobs = [(number, *window) for number, text in enumerate(texts) for window in windows(text)]
        jobs.sort(key=lambda job: job[2] - job[1])
        tags = [[0] * len(text) for text in texts]
        for first in range(0, len(jobs), batch_size):
            chosen = jobs[first : first + batch_size]
            rows = [[part[start:end] for part in features[number]] for number, start, end, _, _ in chosen]
            found = self._decoder.predict_on_batch(_inference_batch(rows, batch_size))
            for (number, start, _, keep, end), row in zip(chosen, found, strict=False):
                tags[number][keep:end] = row[keep - start : end - start].tolist()
            on_batch(sum(end - keep for _, _, _, keep, end in chosen))
        return tags

    def segment(self, texts, batch_size=64, on_batch=lambda characters: None):
        """The words of each text. The texts must have no white space."""
        tags = self.tags(texts, batch_size, on_batch)
        return [tags_to_words(text, row) for text, row in zip(texts, tags, strict=True)]

    def emissions(self, texts):
        """The emission scores of the first window of each text, `(characters of all, tags)`, of 64 texts at most."""
        rows = [[part[: BUCKETS[-1]] for part in self.vocabulary.encode(text)] for text in texts[:64]]
        scores = self.model.predict_on_batch(_inference_batch(rows, len(rows)))
        return np.concatenate([row[: len(characters)] for row, (characters, _) in zip(scores, rows, strict=False)])

    def scores(self, sentences, training_words=None):
        """SIGHAN's figures for the words this tagger finds in the text of these sentences."""
        return segmentation_scores(sentences, self.segment(["".join(words) for words in sentences]), training_words)


def _inference_batch(rows, batch_size):
    """Padded features; the number of rows is filled up to 1, 8 or `batch_size`, so that few shapes occur."""
    length = bucket(max(len(characters) for characters, _ in rows))
    count = next(size for size in (1, 8, max(batch_size, len(rows))) if size >= len(rows))
    characters, bigrams = zip(*rows, *[([], [])] * (count - len(rows)), strict=True)
    return {"characters": pad(characters, length), "bigrams": pad(bigrams, length)}


class _KeepBest(keras.callbacks.Callback):
    """After each epoch: scores the held-out part, keeps the best weights in the run folder, writes the log."""

    def __init__(self, tagger, valid, folder, report):
        super().__init__()
        self._tagger, self._valid, self._folder, self._report = tagger, valid, folder, report
        self.best = -1.0
        self._began = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        valid = self._tagger.scores(self._valid)["f"]
        seconds = time.perf_counter() - self._began
        row = {"epoch": epoch + 1, "loss": float(logs["loss"]), "valid_f": valid, "seconds": round(seconds, 1)}
        self._folder.log(row)
        if valid > self.best:
            self.best = valid
            self._folder.save_weights(self._tagger.model)
        self._report(row)


def train_segmenter(settings, train, valid, test=None, out="runs/segmenter", progress=None):
    """Trains a word segmenter and leaves all that using it takes in a run folder.

    The weights kept are those of the epoch with the best F on `valid`.

    Args:
        settings: `Settings`.
        train, valid: Lists of sentences, each a list of words.
        test: As `valid`, scored once at the end, or None. Its OOV counts against `train` and `valid`.
        out: The run folder; made, or replaced when training is done if it is one already.
        progress: A Keras callback that shows progress and whose `report(row)` is called after each epoch, or None.

    Returns:
        `(tagger, scores)`: a `Tagger` with the best weights; a dict with the keys "valid" and, with a test, "test".

    Raises:
        FileExistsError: `out` exists and is not a run folder.
        ValueError: A part has no words.
    """
    for name, part in (("train", train), ("valid", valid), ("test", test)):
        if part is not None and not any(part):
            raise ValueError(f"`{name}` needs at least one sentence with words. Received: {len(part)} empty sentences")
    with RunFolder.create(out) as folder:
        keras.utils.set_random_seed(settings.seed)
        vocabulary = Vocabulary.of(("".join(words) for words in train), min_bigrams=settings.min_bigrams)
        folder.save_setup(settings, vocabulary)
        batches = Batches(training_rows(train, vocabulary), settings.batch_size, settings.seed)
        model = build_tagger(settings, vocabulary.sizes)
        compile_tagger(model, settings, len(batches) * settings.epochs)
        tagger = Tagger(model, vocabulary)
        keep_best = _KeepBest(tagger, valid, folder, progress.report if progress else lambda row: None)
        averaged = keras.callbacks.SwapEMAWeights(swap_on_epoch=True)  # first, so that the others see averaged weights
        callbacks = [averaged, keep_best, *([progress] if progress else [])]
        model.fit(batches, epochs=settings.epochs, verbose=0, shuffle=False, callbacks=callbacks)
        folder.load_weights(tagger.model)
        words = {word for sentence in train for word in sentence}
        scores = {"valid": tagger.scores(valid, words)}
        if test is not None:
            scores["test"] = tagger.scores(test, words.union(*valid))
        folder.save_scores(scores)
    return tagger, scores


def load_tagger(path):
    """The `Tagger` of a run folder, ready to use.

    Raises:
        FileNotFoundError: `path` is no run folder, or misses a file.
        ValueError: It was written by a newer version, or a file in it is damaged.
    """
    folder = RunFolder(path)
    setup = folder.read_setup()
    settings = Settings(**setup["settings"])
    vocabulary = Vocabulary(**setup["vocabulary"])
    model = build_tagger(settings, vocabulary.sizes)
    folder.load_weights(model)
    return Tagger(model, vocabulary)
