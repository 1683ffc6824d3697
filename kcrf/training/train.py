"""Trains a tagger: reads the sentences, builds and compiles the model, fits it, scores it; resumes interrupted runs."""

import hashlib
import sys
from collections import Counter
from dataclasses import replace

import numpy as np

from kcrf.backend import backend_name, keras, set_random_seed
from kcrf.corpora import Sentence, entity_types
from kcrf.layers import suggest_lr_multiplier
from kcrf.monitor import CRFMonitor
from kcrf.optimizers import AdamWeightDecay, WarmupLinearDecay, layerwise_decay
from kcrf.readers import CharacterReader, Lexicon, PieceReader, Vocabulary, WordReader
from kcrf.readers.unit_choice import choose_units, entities_that_cut_tokens, splits_of
from kcrf.runs import RunFolder
from kcrf.runs.defaults import choose_defaults, describe_settings
from kcrf.runs.records import last_advice
from kcrf.taggers import Tagger
from kcrf.taggers.networks import HEAD, build_network, crf_of
from kcrf.taggers.setup import load_setup, save_setup
from kcrf.training.batches import Batches, held_out_batch, tagged_windows
from kcrf.training.callbacks import Averages, EpochBatches, EpochScores, Interruption
from kcrf.training.history import TrainingHistory
from kcrf.training.state import RunSaver

__all__ = ["resume_tagger", "train_segmenter", "train_tagger"]

_WINDOWS_FOR_TEMPERATURE = 512


def train_tagger(settings, train, valid, test=None, out="runs/tagger", progress=None, sources=None, overwrite=False):
    """Trains a tagger and writes all that is needed to use it into a run folder.

    The weights that are kept are those of the epoch with the best F on `valid`. The state of training is written after
    each epoch too, so that `resume_tagger` can resume a run that was interrupted.

    Args:
        settings: `Settings`. Without `types`, the entity types are those of `train`. What depends on the size of the
            data is chosen by `kcrf.runs.defaults.choose_defaults`.
        train, valid: Lists of sentences: `kcrf.corpora.Sentence`s, or for segmentation lists of words.
        test: As `valid`, scored once at the end. Out-of-vocabulary words are those that `train` lacks. Defaults to
            None.
        out: The run folder. Made if it does not exist. Defaults to "runs/tagger".
        progress: A Keras callback that shows progress and whose `report(row)` is called after each epoch. With one, a
            line on the data and the settings is printed to standard error first. Defaults to None.
        sources: Plain values that say where the data came from, kept in `config.json`. Defaults to None.
        overwrite: Whether a complete run in `out` is replaced. It is replaced when the new one is complete, and can be
            used until then. Defaults to False: it is refused.

    Returns:
        `(tagger, scores)`: a `Tagger` with the best weights, whose `advice` is what a `kcrf.monitor.CRFMonitor` says
        after the last epoch; a dict with the keys "valid" and, with a test part, "test".

    Raises:
        FileExistsError: `out` is a file, a folder with other files and no run, or one with a complete run.
        FileNotFoundError: The folder of the BERT lacks a file.
        BlockingIOError: Another process trains into `out`.
        ValueError: A part has no text, or `train` no entity; or the loss is not finite any more.
    """
    parts = _parts(train, valid, test)
    data = {"sources": sources, "sha256": _fingerprints(parts)}
    with RunFolder.create(out, overwrite) as folder:
        set_random_seed(settings.seed)
        settings = _with_units(_with_types(settings, parts), parts)
        reader = _make_reader(settings, parts["train"])
        windows = _windows(settings, reader, parts["train"])
        settings = choose_defaults(settings, len(windows))
        batches = _batches(settings, windows)
        settings = _with_lr_multiplier(settings, len(batches) * settings.epochs)
        if progress:
            print(describe_settings(settings, len(parts["train"]), len(batches)), file=sys.stderr)
        save_setup(folder, settings, reader, data)
        return _train(folder, settings, reader, batches, parts, progress)


def resume_tagger(out, train, valid, test=None, progress=None):
    """Resumes an interrupted run of `train_tagger` after its last complete epoch.

    It ends with the weights that the run would have had without the interruption: on a CPU to the last bit, where the
    backend computes the same twice.

    Args:
        out: The run folder.
        train, valid, test, progress: As for `train_tagger`, with the same sentences.

    Returns:
        As `train_tagger`.

    Raises:
        FileNotFoundError: `out` holds no interrupted run.
        BlockingIOError: The process of the run is still training.
        ValueError: The sentences or the Keras backend are not the same, a file in the folder is damaged, or the loss
            is not finite any more.
    """
    parts = _parts(train, valid, test)
    with RunFolder.resume(out) as folder:
        setup = load_setup(folder)
        _check_same_run(folder, setup, parts)
        set_random_seed(setup.settings.seed)
        batches = _batches(setup.settings, _windows(setup.settings, setup.reader, parts["train"]))
        return _train(folder, setup.settings, setup.reader, batches, parts, progress)


def train_segmenter(settings, train, valid, test=None, out="runs/segmenter", progress=None, overwrite=False):
    """`train_tagger` for word segmentation, with sentences as lists of words."""
    return train_tagger(settings, train, valid, test, out, progress, overwrite=overwrite)


def _parts(train, valid, test):
    """The parts that are given, by name, as lists of `Sentence`s."""
    parts = {"train": train, "valid": valid, "test": test}
    parts = {name: [_as_sentence(item) for item in part] for name, part in parts.items() if part is not None}
    for name, part in parts.items():
        if not any(sentence.text for sentence in part):
            raise ValueError(f"`{name}` needs at least one sentence with words. Received: {len(part)} empty sentences")
    return parts


def _as_sentence(item):
    """A `Sentence`, made out of a list of words if it is none."""
    if isinstance(item, Sentence):
        return item
    ends = np.cumsum([0, *map(len, item)]).tolist()
    return Sentence("".join(item), list(zip(ends, ends[1:])))


def _fingerprints(parts):
    """A hash of the texts and spans of each part."""
    content = {name: repr([(s.text, s.spans) for s in part]) for name, part in parts.items()}
    return {name: hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for name, text in content.items()}


def _check_same_run(folder, setup, parts):
    """Raises ValueError if the backend or the data are not those that the run was begun with."""
    if setup.backend not in (None, backend_name()):
        raise ValueError(
            f"{folder.path}: needs the backend that the run began with, for the same weights: KERAS_BACKEND="
            f"{setup.backend}. Received: {backend_name()}"
        )
    known = (setup.data or {}).get("sha256") or {}
    changed = [name for name, sha256 in _fingerprints(parts).items() if known.get(name) != sha256]
    if changed or len(parts) != len(known):
        raise ValueError(
            f"{folder.path}: needs the data that the run began with. Received: {', '.join(changed or parts)} "
            "with other sentences"
        )


def _with_types(settings, parts):
    """The settings, for entities with the types of the training part; warns of what the other parts cannot show."""
    if settings.task != "ner":
        return settings
    if not settings.types:
        settings = replace(settings, types=entity_types(parts["train"]))
        if not settings.types:
            raise ValueError("`train` needs at least one entity. Received: sentences without any")
    for name, part in parts.items():
        unseen = Counter(label for sentence in part for *_, label in sentence.spans if label not in settings.types)
        if unseen:
            counts = ", ".join(f"{label} ({count})" for label, count in sorted(unseen.items()))
            print(f"{name}: entities of types that the training part lacks count as missed: {counts}", file=sys.stderr)
    if not any(sentence.spans for sentence in parts["valid"]):
        print("valid: no entity, so no epoch is better than another: the last one is kept", file=sys.stderr)
    return settings


def _with_units(settings, parts):
    """The settings, for entities from scratch with what carries the tags."""
    if settings.task != "ner" or settings.bert is not None:
        return settings
    settings = replace(settings, units=settings.units or choose_units(parts["train"]))
    if settings.units == "words":
        splits = splits_of(parts["train"])
        for name, part in parts.items():
            _warn_of_cut_words(name, part, splits)
    return settings


def _warn_of_cut_words(name, sentences, splits):
    cut = entities_that_cut_tokens(sentences, splits)
    if cut:
        what = "the tags there are taken as unknown" if name == "train" else "they cannot be found, and count as missed"
        count = sum(len(sentence.spans) for sentence in sentences)
        print(
            f"{name}: {len(cut)} of {count} entities begin or end inside a word, such as {cut[0]!r}: {what}; "
            "--units characters can find them",
            file=sys.stderr,
        )


def _make_reader(settings, sentences):
    """The reader of the BERT of the settings, or one for the characters and words of the training part."""
    if settings.bert is not None:
        return PieceReader.of_bert(settings.bert, settings.bert_layers, settings.lower_case, settings.word_case)
    if settings.units == "words":
        return WordReader.of(sentences)
    lexicon = Lexicon.of(sentences) if settings.lexicon else None
    vocabulary = Vocabulary.of((sentence.text for sentence in sentences), min_bigrams=settings.min_bigrams)
    return CharacterReader(vocabulary, lexicon)


def _windows(settings, reader, sentences):
    """The windows of the training part with their tags."""
    readings = reader.read_training(sentences)
    return tagged_windows(sentences, readings, settings.tag_scheme(), whole_spans=settings.constraints)


def _batches(settings, windows):
    return Batches(windows, settings.batch_size, settings.seed, settings.batch_tokens)


def _with_lr_multiplier(settings, steps):
    """The settings with a number as the multiplier of the CRF's learning rate, also for "auto"."""
    if settings.crf_lr_multiplier != "auto":
        return settings
    return replace(settings, crf_lr_multiplier=suggest_lr_multiplier(settings.learning_rate, steps))


def _train(folder, settings, reader, batches, parts, progress):
    """Trains the model of a run; returns its tagger with the best weights, and the scores."""
    with Interruption() as interruption:
        tagger = _fit(folder, settings, reader, batches, parts["valid"], progress, interruption)
    folder.load_weights(tagger.model)
    tagger.fit_temperature(*held_out_batch(tagger.reader, parts["valid"], tagger.scheme, _WINDOWS_FOR_TEMPERATURE))
    folder.save_config(replace(settings, temperature=tagger.temperature), folder.read_config()["data"], backend_name())
    scores = _score(folder, tagger, parts)
    folder.save_scores(scores)
    return tagger, scores


def _fit(folder, settings, reader, batches, valid, progress, interruption):
    """The tagger after its last epoch. The best weights are in the folder."""
    model = build_network(settings, reader, pretrained=True)
    _compile(model, settings, len(batches) * settings.epochs)
    tagger = Tagger(model, reader, settings.tag_scheme(), settings.min_confidence)
    history = TrainingHistory(settings.epochs, settings.patience)
    saver = RunSaver(folder, tagger, model, history)
    monitor = _monitors(tagger, model, valid)  # before a state is restored: it measures changes from the initial values
    is_resumed = folder.has_state()
    random = saver.restore() if is_resumed else None

    def on_epoch(row, is_best):
        saver.save(is_best)
        if progress:
            progress.report(row)

    callbacks = [
        *([Averages(is_resumed)] if settings.bert is None else []),  # first, so that the others see averaged weights
        *monitor,
        EpochBatches(batches, random),
        EpochScores(tagger, valid, history, on_epoch),
        *([progress] if progress else []),
        interruption,
    ]
    if not history.is_done():
        _run_epochs(model, batches, settings.epochs, len(history.rows), callbacks, progress)
    tagger.advice = last_advice(history.rows, tagger.scheme.allowed_transitions, history.transitions)
    return tagger


def _monitors(tagger, model, valid):
    """A list with a `CRFMonitor`, or an empty one without a CRF."""
    if tagger.crf is None:
        return []
    batch = held_out_batch(tagger.reader, valid, tagger.scheme)
    monitor = CRFMonitor(tagger.crf, batch, tagger.scheme, verbose=0)
    monitor.set_model(model)
    monitor.on_train_begin()
    return [monitor]


def _run_epochs(model, batches, epochs, done, callbacks, progress):
    try:
        model.fit(batches, epochs=epochs, initial_epoch=done, callbacks=callbacks, verbose=0, shuffle=False)
    except BaseException:
        if progress:
            progress.on_train_end()  # Keras calls it only without an error; a progress bar must restore the cursor
        raise


def _score(folder, tagger, parts):
    """The scores of the held-out parts; also writes what was found in the last of them into the folder."""
    scores, known, last = {}, _words(parts["train"]), list(parts)[-1]
    for name in list(parts)[1:]:
        sentences = parts[name]
        found = tagger.spans_of(sentences, confidence=name == last)
        if name == last:
            folder.save_predictions(sentences, found)
            found = [[span[:-1] for span in spans] for spans in found]
        scores[name] = tagger.score(sentences, found, known)
    return scores


def _words(sentences):
    """The set of words, or of the texts of entities."""
    return {sentence.text[start:end] for sentence in sentences for start, end, *_ in sentence.spans}


def _compile(model, settings, steps):
    """From scratch: Adam with a cosine schedule and averaged weights. With a BERT: AdamW with a linear schedule."""
    layer = crf_of(model)
    loss = layer.sparse_loss if layer else keras.losses.SparseCategoricalCrossentropy(True, ignore_class=-1)
    optimizer = (_optimizer_from_scratch if settings.bert is None else _optimizer_of_bert)(model, settings, steps)
    model.compile(optimizer, loss=loss)


def _optimizer_from_scratch(model, settings, steps):
    warmup = max(1, int(steps * settings.warmup))
    rate = keras.optimizers.schedules.CosineDecay(
        0.0, max(1, steps - warmup), warmup_target=settings.learning_rate, warmup_steps=warmup
    )
    momentum = min(0.998, 1 - 10 / steps) if steps > 20 else 0.5  # averages over 500 steps, or a tenth of a short run
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
