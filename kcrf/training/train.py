"""Trains taggers and classifiers: reads the texts, builds and compiles the model, fits and scores it; resumes runs."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from os import PathLike
from typing import Any

from kcrf.backend import backend_name, keras, set_random_seed
from kcrf.corpora import sample
from kcrf.layers import suggest_lr_multiplier
from kcrf.optimizers import AdamWeightDecay, layerwise_decay
from kcrf.progress_bars import print_note
from kcrf.readers import CharacterReader, Lexicon, Vocabulary, WordReader, WordVectors
from kcrf.readers.units import with_copies
from kcrf.runs import RunWriter, Settings
from kcrf.runs.defaults import choose_defaults, describe_settings
from kcrf.runs.records import last_advice
from kcrf.taggers.encoder_of_run import open_bert, reader_of
from kcrf.taggers.networks import HEAD, crf_of
from kcrf.taggers.setup import load_setup, save_setup
from kcrf.training.augmented import copies_of
from kcrf.training.callbacks import Averages, EpochBatches, EpochScores, Interruption
from kcrf.training.history import TrainingHistory
from kcrf.training.precision import precision
from kcrf.training.progress import fit_with_progress
from kcrf.training.rates import learning_rate
from kcrf.training.state import RunSaver
from kcrf.training.tasks import task_of
from kcrf.training.taught import check_teacher, taught_windows, texts_of, unlabelled_items, unlabelled_windows

__all__ = ["resume_tagger", "train_classifier", "train_segmenter", "train_tagger"]


def train_tagger(
    settings: Settings,
    train: Sequence[Any],
    valid: Sequence[Any],
    test: Sequence[Any] | None = None,
    out: str | PathLike[str] = "runs/tagger",
    progress: Any = None,
    sources: dict[str, Any] | None = None,
    overwrite: bool = False,
    unlabelled: Iterable[str] = (),
) -> tuple[Any, dict[str, Any]]:
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
        unlabelled: Texts without labels that the `teacher` of the settings labels, strings. Defaults to none.

    Returns:
        `(tagger, scores)`: a `Tagger` with the best weights, whose `advice` is what a `kcrf.monitor.CRFMonitor` says
        after the last epoch; a dict with the keys "valid" and, with a test part, "test".

    Raises:
        FileExistsError: `out` is a file, a folder with other files and no run, or one with a complete run.
        FileNotFoundError: The folder of the BERT lacks a file.
        BlockingIOError: Another process trains into `out`.
        ValueError: A part has no text, or `train` no entity; or the teacher has another task, other labels or other
            units; or the loss is not finite any more.
    """
    task, whole = task_of(settings), _parts(settings, train, valid, test)
    parts = _limited(settings, whole)
    copies, texts = copies_of(settings, parts["train"]), list(unlabelled)
    data = {"sources": sources, "sha256": _fingerprints(task, parts, copies, texts)}
    with RunWriter.create(out, overwrite) as folder:
        given = settings
        set_random_seed(settings.seed)
        settings = task.with_data(settings, whole)
        if settings.limit is not None and settings.limit < len(settings.labels):
            needed = f"{len(settings.labels)}, a text of each label"
            raise ValueError(f"`limit` must be at least {needed}. Received: {settings.limit}")
        if settings.teacher is not None:
            check_teacher(settings)
        items = unlabelled_items(settings, texts)
        reader = _make_reader(settings, parts["train"], items)
        if settings.vectors is not None:
            reader.vectors = _read_vectors(settings, reader, with_copies(parts["train"], copies))
        windows = _windows(settings, reader, parts["train"], copies, items)
        settings = choose_defaults(settings, len(windows))
        batches = task.batches(settings, windows)
        if settings.steps is not None:
            settings = replace(settings, epochs=math.ceil(settings.steps / len(batches)))
        settings = _with_lr_multiplier(settings, len(batches) * (settings.epochs or 0))
        if progress:
            print_note(describe_settings(settings, len(parts["train"]), len(batches), sum(map(len, copies or []))))
        data["chosen"] = [name for name, value in asdict(settings).items() if value != getattr(given, name)]
        save_setup(folder, settings, reader, data, backend_name())
        batches = _taught_batches(folder, settings, windows, with_copies(parts["train"], copies), items)
        return _train(folder, settings, reader, batches, parts, progress)


def resume_tagger(
    out: str | PathLike[str],
    train: Sequence[Any],
    valid: Sequence[Any],
    test: Sequence[Any] | None = None,
    progress: Any = None,
    unlabelled: Iterable[str] = (),
) -> tuple[Any, dict[str, Any]]:
    """Resumes an interrupted run of `train_tagger` after its last complete epoch.

    It ends with the weights that the run would have had without the interruption: on a CPU to the last bit, where the
    backend computes the same twice.

    Args:
        out: The run folder.
        train, valid, test, progress, unlabelled: As for `train_tagger`, with the same sentences.

    Returns:
        As `train_tagger`.

    Raises:
        FileNotFoundError: `out` holds no interrupted run.
        BlockingIOError: The process of the run is still training.
        ValueError: The sentences or the Keras backend are not the same, a file in the folder is damaged, or the loss
            is not finite any more.
    """
    with RunWriter.resume(out) as folder:
        setup = load_setup(folder)
        settings, reader = setup.settings, setup.reader
        parts = _limited(settings, _parts(settings, train, valid, test))
        copies, texts = copies_of(settings, parts["train"]), list(unlabelled)
        _check_same_run(folder, setup, _fingerprints(task_of(settings), parts, copies, texts))
        set_random_seed(settings.seed)
        items = unlabelled_items(settings, texts)
        windows = _windows(settings, reader, parts["train"], copies, items)
        batches = _taught_batches(folder, settings, windows, with_copies(parts["train"], copies), items)
        return _train(folder, settings, reader, batches, parts, progress)


def train_segmenter(
    settings: Settings,
    train: Sequence[Any],
    valid: Sequence[Any],
    test: Sequence[Any] | None = None,
    out: str | PathLike[str] = "runs/segmenter",
    progress: Any = None,
    overwrite: bool = False,
    unlabelled: Iterable[str] = (),
) -> tuple[Any, dict[str, Any]]:
    """`train_tagger` for word segmentation, with sentences as lists of words."""
    _check_task(settings, "cws")
    return train_tagger(settings, train, valid, test, out, progress, overwrite=overwrite, unlabelled=unlabelled)


def train_classifier(
    settings: Settings,
    train: Sequence[Any],
    valid: Sequence[Any],
    test: Sequence[Any] | None = None,
    out: str | PathLike[str] = "runs/classifier",
    progress: Any = None,
    overwrite: bool = False,
    unlabelled: Iterable[str] = (),
) -> tuple[Any, dict[str, Any]]:
    """`train_tagger` for `Settings(task="classify")`: one label, or one number, for each text or pair of texts.

    Args:
        settings: `Settings`. Without `labels`, they are those of `train`; without a `metric`, labels that are numbers
            with decimals are learnt as numbers (regression).
        train, valid, test: Lists of `kcrf.corpora.Example`s, or of `(text, label)` or `(text, text_b, label)`.
        out, progress, overwrite: As for `train_tagger`.
        unlabelled: As for `train_tagger`; for pairs, tuples of two strings.

    Returns:
        `(classifier, scores)`: the `Classifier` with the best weights, and a dict with the keys "valid" and, with a
        test part, "test", as `kcrf.metrics.classification_scores` or `regression_scores` return them.

    Raises:
        ValueError: A label of `valid` or `test` does not occur in `train`, a text is empty, there is only one label, or
            single texts and pairs are mixed. Names the text, by file and line if it was read from one.
    """
    _check_task(settings, "classify")
    return train_tagger(settings, train, valid, test, out, progress, overwrite=overwrite, unlabelled=unlabelled)


def _check_task(settings, task):
    if settings.task != task:
        raise ValueError(f"`settings` must have task={task!r}. Received: task={settings.task!r}")


def _parts(settings, train, valid, test):
    """The parts that are given, by name, as lists of `Sentence`s or `Example`s."""
    task, parts = task_of(settings), {"train": train, "valid": valid, "test": test}
    return {name: task.check(name, list(part)) for name, part in parts.items() if part is not None}


def _limited(settings, parts):
    """The parts, of `train` a sample of `settings.limit`. What is found and how is decided by the whole of it."""
    if settings.limit is None:
        return parts
    task = task_of(settings)
    train, _ = sample(parts["train"], settings.limit, settings.seed, task.labels(parts["train"]))
    return {**parts, "train": task.check("train", train)}  # a sample of sentences may be empty


def _fingerprints(task, parts, copies, texts):
    """A hash of the content of each part, and of altered copies and of texts without labels if there are any."""
    content = {name: task.content(part) for name, part in parts.items()}
    if copies is not None:
        content["copies"] = task.content([copy for more in copies for copy in more])
    if texts:
        content["unlabelled"] = texts
    return {name: hashlib.sha256(repr(x).encode("utf-8", "surrogatepass")).hexdigest() for name, x in content.items()}


def _check_same_run(folder, setup, found):
    """Raises ValueError if the backend or the data are not those that the run was begun with."""
    if setup.backend not in (None, backend_name()):
        raise ValueError(
            f"{folder.path}: needs the backend that the run began with, for the same weights: KERAS_BACKEND="
            f"{setup.backend}. Received: {backend_name()}"
        )
    known = (setup.data or {}).get("sha256") or {}
    changed = [name for name, sha256 in found.items() if known.get(name) != sha256]
    if changed or len(found) != len(known):
        raise ValueError(
            f"{folder.path}: needs the data that the run began with. Received: {', '.join(changed or found)} "
            "with other sentences"
        )


def _windows(settings, reader, train, copies, unlabelled):
    """The windows of the training part with its copies, then those of the texts without labels."""
    labelled = task_of(settings).windows(settings, reader, train, copies)
    return [*labelled, *unlabelled_windows(settings, reader, unlabelled)]


def _taught_batches(folder, settings, windows, items, unlabelled):
    """The `Batches` of windows; with a teacher, they are taught by it."""
    if settings.teacher is not None:
        windows = taught_windows(folder, settings, windows, items, unlabelled)
        set_random_seed(settings.seed)  # the teacher may have drawn numbers
    return task_of(settings).batches(settings, windows)


def _make_reader(settings, sentences, unlabelled):
    """The reader of the BERT of the settings, or one for the characters and words of the training part.

    The characters of texts without labels get vectors, too.
    """
    if settings.bert is not None:
        reader = reader_of(settings.bert, settings.bert_layers, settings.lower_case, settings.word_case)
        is_default = settings.max_length == Settings.max_length
        if settings.task == "classify" and settings.max_length > reader.longest and not is_default:
            raise ValueError(
                f"`max_length` must be at most {reader.longest}, as many positions as {settings.bert} can use. "
                f"Received: {settings.max_length}"
            )
        return reader
    if settings.units == "words":
        return WordReader.of(sentences)
    lexicon = Lexicon.of(sentences) if settings.lexicon else None
    texts = [*map(task_of(settings).text, sentences), *texts_of(settings, unlabelled)]
    vocabulary = Vocabulary.of(texts, min_bigrams=settings.min_bigrams)
    return CharacterReader(vocabulary, lexicon)


def _read_vectors(settings, reader, items):
    """The `WordVectors` of a training part with its copies: those of its words, and the most frequent of the file."""
    texts, tokens = task_of(settings).texts(items)
    units = [reading.units for reading in reader.read(texts, tokens)]
    vectors = WordVectors.of_file(settings.vectors, texts, units, settings.vectors_most)
    print_note(
        f"{len(vectors.words):,} vectors of {vectors.table.shape[1]} features are kept; "
        f"{vectors.share_known(texts, units):.1%} of the units of the training part have one"
    )
    return vectors


def _with_lr_multiplier(settings, steps):
    """The settings with a number as the multiplier of the CRF's learning rate, also for "auto"."""
    if settings.crf_lr_multiplier != "auto":
        return settings
    return replace(settings, crf_lr_multiplier=suggest_lr_multiplier(settings.learning_rate, steps))


def _train(folder, settings, reader, batches, parts, progress):
    """Trains the model of a run; returns its tagger with the best weights, and the scores."""
    task = task_of(settings)
    with Interruption() as interruption:
        tagger = _fit(folder, settings, reader, batches, parts["valid"], progress, interruption)
    if settings.precision != "float32":  # scored as it computes whenever it is loaded
        advice = tagger.advice
        tagger = task.wrap(settings, task.build(settings, reader), reader)
        tagger.advice = advice
    folder.load_weights(tagger.model)
    task.calibrate(folder, settings, tagger, parts["valid"])
    scores = task.score(folder, tagger, parts)
    folder.save_scores(scores)
    return tagger, scores


def _fit(folder, settings, reader, batches, valid, progress, interruption):
    """The tagger after its last epoch. The best weights are in the folder."""
    task = task_of(settings)
    with open_bert(settings.bert) as checkpoint, precision(settings.precision):
        model = task.build(settings, reader, checkpoint)
    _compile(model, settings, len(batches) * settings.epochs)
    tagger = task.wrap(settings, model, reader)
    history = TrainingHistory(settings.epochs, settings.patience, f"valid_{tagger.metric}")
    saver = RunSaver(folder, tagger, model, history)
    # Before a state is restored: monitors measure changes from the initial values.
    monitors = task.monitors(tagger, model, valid)
    is_resumed = folder.has_state()
    random = saver.restore() if is_resumed else None

    def on_epoch(row, is_best):
        saver.save(is_best)
        if progress:
            progress.report(row)

    callbacks = [
        *([Averages(is_resumed)] if settings.bert is None else []),  # first, so that the others see averaged weights
        *monitors,
        EpochBatches(batches, random),
        EpochScores(tagger, valid, history, on_epoch),
        *([progress] if progress else []),
        interruption,
    ]
    if not history.is_done():
        fit_with_progress(model, batches, settings.epochs, len(history.rows), callbacks, progress)
    if tagger.crf is not None:
        tagger.advice = last_advice(history.rows, tagger.scheme.allowed_transitions, history.transitions)
    return tagger


def _compile(model, settings, steps):
    """From scratch: Adam, with averaged weights. With a BERT: AdamW."""
    optimizer = (_optimizer_from_scratch if settings.bert is None else _optimizer_of_bert)(model, settings, steps)
    model.compile(optimizer, loss=task_of(settings).loss(settings, model))


def _optimizer_from_scratch(model, settings, steps):
    momentum = min(0.998, 1 - 10 / steps) if steps > 20 else 0.5  # averages over 500 steps, or a tenth of a short run
    rate = learning_rate(settings, steps)
    return keras.optimizers.Adam(rate, global_clipnorm=5.0, use_ema=True, ema_momentum=momentum)


def _optimizer_of_bert(model, settings, steps):
    by_depth = layerwise_decay(model, settings.layerwise_decay) if settings.layerwise_decay < 1 else {}
    return AdamWeightDecay(
        learning_rate(settings, steps),
        bias_correction=settings.bias_correction,
        lr_multipliers={**by_depth, HEAD: settings.head_lr_multiplier},
        weight_decay_rate=settings.weight_decay,
        exclude_from_weight_decay=("Norm", "bias", *(["^CRF/"] if crf_of(model) else [])),
        prior_weight_decay_rate=settings.prior_decay,
        prior_variables=model if settings.prior_decay else None,
        global_clipnorm=1.0,
    )
