"""Trains a tagger: batches, the optimizer, the epochs, the best weights, and on again after an interruption."""

import hashlib
import sys
from collections import Counter
from dataclasses import replace

import numpy as np

from kcrf.backend import backend_name, keras
from kcrf.corpora import Sentence, entity_types
from kcrf.layers import suggest_lr_multiplier
from kcrf.optimizers import AdamWeightDecay, WarmupLinearDecay, layerwise_decay
from kcrf.readers import CharacterReader, Lexicon, PieceReader, Vocabulary
from kcrf.readers.padding import bucket, pad, padded
from kcrf.runs import RunFolder
from kcrf.taggers import Tagger
from kcrf.taggers.decoding import load_setup
from kcrf.taggers.networks import HEAD, build_network, crf_of
from kcrf.training.batches import Batches, training_rows
from kcrf.training.callbacks import Averages, Interruption, Keeper
from kcrf.training.monitor import CRFMonitor

__all__ = ["resume_tagger", "train_segmenter", "train_tagger"]

_WATCHED = 256  # held-out sentences that the monitor looks at


def train_tagger(settings, train, valid, test=None, out="runs/tagger", progress=None, sources=None):
    """Trains a tagger and leaves all that using it takes in a run folder.

    The weights kept are those of the epoch with the best F on `valid`. After each epoch the state of training is kept
    too, so that `resume_tagger` can go on with a run that was interrupted.

    Args:
        settings: `Settings`. Without `types`, the entity types are those of `train`.
        train, valid: Lists of sentences: `kcrf.corpora.Sentence`s, or for segmentation lists of words.
        test: As `valid`, scored once at the end, or None. Its OOV counts against `train` and `valid`.
        out: The run folder; made, or replaced when training is done if it is one already.
        progress: A Keras callback that shows progress and whose `report(row)` is called after each epoch, or None.
        sources: Plain values that say where the data came from, kept in `config.json`. Defaults to None.

    Returns:
        `(tagger, scores)`: a `Tagger` with the best weights; a dict with the keys "valid" and, with a test, "test".

    Raises:
        FileExistsError: `out` exists and is not a run folder.
        FileNotFoundError: The folder of the BERT misses a file.
        BlockingIOError: Another process trains into `out`.
        ValueError: A part has no text, or `train` no entity; or the loss is no number any more.
    """
    parts = _parts(train, valid, test)
    data = {"sources": sources, "sha256": _fingerprints(parts)}
    with RunFolder.create(out) as folder:
        keras.utils.set_random_seed(settings.seed)
        settings, reader = _prepared(settings, parts)
        batches = _batches(settings, reader, parts["train"])
        settings = _with_number(settings, len(batches) * settings.epochs)
        folder.save_setup(settings, reader, data, backend_name())
        return _train(folder, settings, reader, batches, parts, progress)


def resume_tagger(out, train, valid, test=None, progress=None):
    """Goes on with a run of `train_tagger` behind its last whole epoch.

    It ends with the weights that the run would have had without the interruption: on a CPU to the last bit, where the
    backend computes the same twice.

    Args:
        out: The run folder.
        train, valid, test, progress: As for `train_tagger`, with the same sentences.

    Returns:
        As `train_tagger`.

    Raises:
        FileNotFoundError: There is no run that was interrupted.
        BlockingIOError: Its process still trains.
        ValueError: The sentences or the Keras backend are not the same, a file in the folder is damaged, or the loss
            is no number.
    """
    parts = _parts(train, valid, test)
    with RunFolder.resume(out) as folder:
        settings, reader = load_setup(folder)
        config = folder.read_config()
        if config["backend"] not in (None, backend_name()):
            raise ValueError(
                f"{folder.path}: needs the backend that the run began with, for the same weights: KERAS_BACKEND="
                f"{config['backend']}. Received: {backend_name()}"
            )
        known = (config["data"] or {}).get("sha256")
        changed = [name for name, sha256 in _fingerprints(parts).items() if not known or known.get(name) != sha256]
        if changed or len(parts) != len(known):
            raise ValueError(
                f"{folder.path}: needs the data that the run began with. Received: {', '.join(changed or parts)} "
                "with other sentences"
            )
        keras.utils.set_random_seed(settings.seed)
        return _train(folder, settings, reader, _batches(settings, reader, parts["train"]), parts, progress)


def train_segmenter(settings, train, valid, test=None, out="runs/segmenter", progress=None):
    """`train_tagger` for word segmentation, with sentences as lists of words."""
    return train_tagger(settings, train, valid, test, out, progress)


def _train(folder, settings, reader, batches, parts, progress):
    with Interruption() as interruption:
        tagger = _fitted(folder, settings, reader, batches, parts, progress, interruption)
    folder.load_weights(tagger.model)
    scores = _scored(folder, tagger, parts)
    folder.save_scores(scores)
    return tagger, scores


def _fitted(folder, settings, reader, batches, parts, progress, interruption):
    """The tagger after its last epoch; the folder has the weights of the best."""
    model = build_network(settings, reader, folder, pretrained=True)
    _compile(model, settings, len(batches) * settings.epochs)
    tagger = Tagger(model, reader, settings.tag_scheme(), settings.min_confidence)
    report = progress.report if progress else lambda row: None
    keeper = Keeper(tagger, parts["valid"], folder, batches, settings, report)
    callbacks = [keeper, *([progress] if progress else []), interruption]
    if tagger.crf is not None:
        monitor = CRFMonitor(tagger.crf, _watched(tagger, parts["valid"]), tagger.scheme, verbose=0)
        monitor.set_model(model)
        monitor.on_train_begin()  # it compares with the transitions before training, not those of a run resumed
        callbacks.insert(0, monitor)
    resumed = folder.has_state()
    done = keeper.restore(model) if resumed else 0
    if settings.bert is None:
        callbacks.insert(0, Averages(resumed))  # first: the others see averaged weights
    if not keeper.is_done():
        fit = {"epochs": settings.epochs, "initial_epoch": done, "verbose": 0, "shuffle": False}
        try:
            model.fit(batches, callbacks=callbacks, **fit)
        except BaseException:
            if progress:
                progress.on_train_end()  # Keras calls it only where nothing went wrong: a bar hides the cursor
            raise
    return tagger


def _scored(folder, tagger, parts):
    """The scores of the parts held out; what was found in the last of them goes into the folder."""
    scores, known, last = {}, _words(parts["train"]), list(parts)[-1]
    for name in list(parts)[1:]:
        sentences = parts[name]
        found = tagger.spans([sentence.text for sentence in sentences], confidence=name == last)
        if name == last:
            folder.save_predictions(map(_prediction, sentences, found))
            found = [[span[:-1] for span in spans] for spans in found]
        scores[name] = tagger.score(sentences, found, known)
        known |= _words(sentences)
    return scores


def _words(sentences):
    return {sentence.text[start:end] for sentence in sentences for start, end, *_ in sentence.spans}


def _prediction(sentence, found):
    """A line of `predictions.jsonl`. Words have the label ""."""
    return {
        "text": sentence.text,
        "gold": [[start, end, *(label or [""])] for start, end, *label in sentence.spans],
        "found": [[start, end, *(label or [""]), round(sure, 6)] for start, end, *label, sure in found],
    }


def _parts(train, valid, test):
    """The parts that are there, by name, as lists of `Sentence`s."""
    parts = {"train": train, "valid": valid, "test": test}
    parts = {name: [_sentence(item) for item in part] for name, part in parts.items() if part is not None}
    for name, part in parts.items():
        if not any(sentence.text for sentence in part):
            raise ValueError(f"`{name}` needs at least one sentence with words. Received: {len(part)} empty sentences")
    return parts


def _sentence(item):
    """A `Sentence` as it is, or that of a list of words."""
    if isinstance(item, Sentence):
        return item
    ends = np.cumsum([0, *map(len, item)]).tolist()
    return Sentence("".join(item), list(zip(ends, ends[1:])))


def _fingerprints(parts):
    """A hash of texts and spans by part."""
    content = {name: repr([(s.text, s.spans) for s in part]) for name, part in parts.items()}
    return {name: hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for name, text in content.items()}


def _prepared(settings, parts):
    """The settings with the types of the training part, and a new reader."""
    if settings.task == "ner" and not settings.types:
        settings = replace(settings, types=entity_types(parts["train"]))
        if not settings.types:
            raise ValueError("`train` needs at least one entity. Received: sentences without any")
    for name, part in parts.items():
        unseen = Counter(label for s in part for *_, label in s.spans if settings.types and label not in settings.types)
        if unseen:
            told = ", ".join(f"{label} ({count})" for label, count in sorted(unseen.items()))
            print(f"{name}: entities of types that the training part lacks count as missed: {told}", file=sys.stderr)
    if settings.task == "ner" and not any(sentence.spans for sentence in parts["valid"]):
        print("valid: no entity, so no epoch is better than another: the last one is kept", file=sys.stderr)
    if settings.bert is not None:
        return settings, PieceReader.of_bert(
            settings.bert, settings.bert_layers, settings.lower_case, settings.word_case
        )
    texts = (sentence.text for sentence in parts["train"])
    lexicon = Lexicon.of(parts["train"]) if settings.lexicon else None
    return settings, CharacterReader(Vocabulary.of(texts, min_bigrams=settings.min_bigrams), lexicon)


def _batches(settings, reader, sentences):
    readings = reader.read_training(sentences)
    rows = training_rows(sentences, readings, settings.tag_scheme(), whole_spans=settings.constraints)
    return Batches(rows, settings.batch_size, settings.seed, settings.batch_tokens)


def _with_number(settings, steps):
    """The settings with a number for the multiplier "auto"."""
    if settings.crf_lr_multiplier != "auto":
        return settings
    return replace(settings, crf_lr_multiplier=suggest_lr_multiplier(settings.learning_rate, steps))


def _watched(tagger, sentences):
    """Inputs and tags of held-out windows, for the monitor."""
    types, sentences = tagger.scheme.types, [sentence for sentence in sentences if sentence.text][:_WATCHED]
    spans = [[span for span in s.spans if not types or span[2] in types] for s in sentences]
    known = [Sentence(s.text, those) for s, those in zip(sentences, spans)]
    readings = tagger.reader.read([s.text for s in known])
    rows = training_rows(known, readings, tagger.scheme)[:_WATCHED]
    inputs, tags = zip(*rows)
    length = bucket(max(map(len, tags)))
    return padded(inputs, length), pad(tags, length, value=-1)


def _compile(model, settings, steps):
    """From scratch: Adam down a cosine, with averaged weights. With a BERT: AdamW down a line."""
    layer = crf_of(model)
    loss = layer.sparse_loss if layer else keras.losses.SparseCategoricalCrossentropy(True, ignore_class=-1)
    optimizer = (_optimizer_from_scratch if settings.bert is None else _optimizer_of_bert)(model, settings, steps)
    model.compile(optimizer, loss=loss)


def _optimizer_from_scratch(model, settings, steps):
    warmup = max(1, int(steps * settings.warmup))
    rate = keras.optimizers.schedules.CosineDecay(
        0.0, max(1, steps - warmup), warmup_target=settings.learning_rate, warmup_steps=warmup
    )
    momentum = min(0.998, 1 - 10 / steps) if steps > 20 else 0.5  # over the last few hundred steps, or a tenth of few
    return keras.optimizers.Adam(rate, global_clipnorm=5.0, use_ema=True, ema_momentum=momentum)


def _optimizer_of_bert(model, settings, steps):
    by_depth = layerwise_decay(model, settings.layerwise_decay) if settings.layerwise_decay < 1 else {}
    return AdamWeightDecay(
        WarmupLinearDecay(settings.learning_rate, int(steps * settings.warmup), steps),
        bias_correction=settings.bias_correction,
        lr_multipliers={**by_depth, HEAD: settings.head_lr_multiplier},
        weight_decay_rate=settings.weight_decay,
        exclude_from_weight_decay=("Norm", "bias", *(["^CRF/"] if crf_of(model) else [])),
        prior_weight_decay_rate=settings.prior_decay,
        prior_variables=model if settings.prior_decay else None,
        global_clipnorm=1.0,
    )
