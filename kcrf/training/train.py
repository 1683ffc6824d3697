"""Trains taggers and classifiers, and resumes training after an interruption."""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from kcrf.progress_bars import print_note
from kcrf.runs import RunWriter, Settings
from kcrf.runs.resolve import describe_run
from kcrf.runs.setup import load_setup, save_setup
from kcrf.training.data import learns_all, note_training_texts, read_data
from kcrf.training.fit import fit_network
from kcrf.training.folds import fit_linear
from kcrf.training.plan import RunPlan, load_plan, plan_run
from kcrf.training.progress import progress_of
from kcrf.training.stages import STAGES


def train_tagger(
    settings: Settings,
    train: Any,
    valid: Any = None,
    test: Any = None,
    out: str | PathLike[str] = "runs/tagger",
    progress: Any = None,
    sources: dict[str, Any] | None = None,
    overwrite: bool = False,
    unlabeled: Iterable[str] = (),
) -> tuple[Any, dict[str, Any]]:
    """Trains a tagger and writes everything needed to use it into a run folder.

    The weights of the epoch with the best score on `valid` are kept. Each epoch writes its state for `resume_tagger`.

    Args:
        settings: `Settings`. What is left at None is decided by the data.
        train: The training set: a list of `kcrf.corpora.Sentence`s; for entities also of `(text, spans)` or
            `(words, tags)`, for segmentation of lists of words or `(text, "BMES")`. Or a dataset of Hugging Face with
            tokens and ner_tags; or a DataFrame with them, or with a row for each token and a column sentence_id.
        valid: The validation set. Defaults to None: a tenth of `train`, by the seed, also of each segmentation standard
            that `valid` lacks. With up to 1,000 sentences, a network from scratch is then trained again on all of them,
            for as many epochs as were best, and the scores are those of the first one; a linear model with entities
            learns all of them, and is validated by 4-fold cross-validation. Neither if `epochs` or `steps` is set.
        test: The test set, scored once at the end. Out-of-vocabulary words are those that `train` lacks. Defaults to
            None: there is no test set.
        out: The run folder. It is created if it does not exist.
        progress: A Keras callback that shows progress, with a method `report(row)` that is called after each epoch.
            False shows nothing. Defaults to None: a bar in a terminal, a bar with curves in a notebook.
        sources: Plain values that describe the origin of the data, saved in `config.json`.
        overwrite: Whether a complete run in `out` is replaced, once the new one is complete. Else it is an error.
        unlabeled: Unlabeled texts, which the `teacher` of the settings labels.

    Returns:
        `(tagger, scores)`: a `Tagger` with the best weights, whose `advice` comes from `kcrf.monitor.CRFMonitor` after
        the last epoch; and a dict with the keys "valid" and, if there is a test set, "test".

    Raises:
        FileExistsError: `out` is a file, a folder with other files, or a folder with a complete run.
        FileNotFoundError: The folder of the BERT lacks a file.
        BlockingIOError: Another process trains into `out`.
        ValueError: A part has no text, or `train` has no entity; or the teacher has another task, other labels or other
            units; or the loss is no longer finite.
    """
    if not isinstance(settings, Settings):
        raise TypeError(f"`settings` must be a `Settings`, before the data. Received: {type(settings).__name__}")
    for stage in settings.stages:
        settings = STAGES[type(stage)].begun(settings)
    data, progress = read_data(settings, train, valid, test, unlabeled), progress_of(progress)
    note_training_texts(data)
    data = data.rejoined(settings) if learns_all(settings, data) else data
    with RunWriter.create(out, overwrite) as folder:
        plan = plan_run(settings, data, folder, sources, STAGES)
        if progress:
            print_note(describe_run(plan.config, len(data.parts["train"]), sum(map(len, plan.data.copies or []))))
        save_setup(folder, plan.run, plan.reader)
        return _train(plan, folder, progress, out)


def resume_tagger(
    out: str | PathLike[str],
    train: Any,
    valid: Any = None,
    test: Any = None,
    progress: Any = None,
    unlabeled: Iterable[str] = (),
) -> tuple[Any, dict[str, Any]]:
    """Resumes an interrupted run of `train_tagger` after its last complete epoch.

    The weights become the same as without the interruption: on a CPU to the last bit, if the backend is deterministic.

    Args:
        out: The run folder.
        train, valid, test, progress, unlabeled: As for `train_tagger`, with the same sentences.

    Returns:
        As `train_tagger`.

    Raises:
        FileNotFoundError: `out` contains no interrupted run.
        BlockingIOError: The process of the run is still training.
        ValueError: The sentences or the Keras backend have changed, a file is damaged, or the loss is no longer finite.
    """
    with RunWriter.resume(out) as folder:
        setup = load_setup(folder)
        data, progress = read_data(setup.run.user, train, valid, test, unlabeled), progress_of(progress)
        if (setup.run.data or {}).get("learns_all"):
            data = data.rejoined(setup.run.user)
        return _train(load_plan(folder, setup, data, STAGES), folder, progress, out)


def train_segmenter(
    settings: Settings,
    train: Any,
    valid: Any = None,
    test: Any = None,
    out: str | PathLike[str] = "runs/segmenter",
    progress: Any = None,
    overwrite: bool = False,
    unlabeled: Iterable[str] = (),
) -> tuple[Any, dict[str, Any]]:
    """`train_tagger` for word segmentation, with sentences as lists of words."""
    _check_task(settings, "cws")
    return train_tagger(settings, train, valid, test, out, progress, overwrite=overwrite, unlabeled=unlabeled)


def train_classifier(
    settings: Settings,
    train: Any,
    valid: Any = None,
    test: Any = None,
    out: str | PathLike[str] = "runs/classifier",
    progress: Any = None,
    overwrite: bool = False,
    unlabeled: Iterable[str] = (),
) -> tuple[Any, dict[str, Any]]:
    """`train_tagger` for `Settings(task="classify")`: a label, a list of labels, or a number for each text or pair of
    texts. The parts are lists of `kcrf.corpora.Example`s, or of `(text, label)` or `(text, text_b, label)`. If `metric`
    of the settings is None and the labels are numbers with decimals, the model is trained for regression."""
    _check_task(settings, "classify")
    return train_tagger(settings, train, valid, test, out, progress, overwrite=overwrite, unlabeled=unlabeled)


def _check_task(settings: Settings, task: str) -> None:
    if settings.task != task:
        raise ValueError(f"`settings` must have task={task!r}. Received: task={settings.task!r}")


def _train(plan: RunPlan, folder: RunWriter, progress: Any, out: str | PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """Trains the model of a planned run: a linear one, or a network."""
    fit = fit_linear if plan.config.model.encoder == "linear" else fit_network
    tagger, scores = fit(plan, folder, progress)
    tagger.run = Path(out)
    return tagger, scores
