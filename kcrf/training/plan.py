"""The plan of a run: configuration, reader and windows, made from settings and data or from a run folder."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kcrf.backend import backend_name, best_precision
from kcrf.progress_bars import print_note
from kcrf.readers import CharacterReader, Lexicon, Reader, Vocabulary, WordReader, WordVectors
from kcrf.readers.ngrams import CHARACTER_TEMPLATES, LEXICON_TEMPLATES, CharacterNGrams, WordNGrams, buckets_of
from kcrf.runs import DataConfig, RunConfig, RunWriter, SettingError, Settings, resolve
from kcrf.runs.config_file import StoredRun
from kcrf.runs.resolve import BATCH_SIZES, ITERATIONS
from kcrf.runs.setup import Setup
from kcrf.taggers.encoder_of_run import reader_of
from kcrf.training.data import RunData
from kcrf.training.stage import Stage, StageTable
from kcrf.training.trainers import trainer_of

_OF_STAGES = {"copies", "extend"}  # the fingerprints that stages add to the data


@dataclass(frozen=True)
class RunPlan:
    """Everything that fitting a run needs."""

    run: StoredRun
    reader: Reader
    data: RunData
    windows: list[Any]  # of the training set with its copies, then of the unlabeled texts, with targets
    stages: list[Stage]
    judge: Any = None  # the `FoldsTagger` that judges the validation set, if the model learns it

    @property
    def config(self) -> RunConfig:
        """The configuration."""
        return self.run.config

    def targets(self, folder: RunWriter) -> list[Any]:
        """The windows with the targets of the stages, such as the predictions of a teacher."""
        windows = self.windows
        for stage in self.stages:
            windows = stage.targets(windows, self.reader, self.data, folder)
        return windows


def plan_run(
    user: Settings,
    data: RunData,
    folder: RunWriter | None = None,
    sources: dict[str, Any] | None = None,
    table: StageTable | None = None,
) -> RunPlan:
    """Plans a new run."""
    stored, table = user, table or {}
    if data.apart and user.encoder == "linear":
        user = replace(user, solver="lbfgs")  # as `learns_all` decided, whatever the number of windows
    for stage_settings in user.stages:
        if type(stage_settings) in table:
            user = table[type(stage_settings)].completed(user, data)
    precision = "float32" if user.bert is None else best_precision()
    facts = replace(data.task.facts(user, data.whole), items=len(data.parts["train"]), precision=precision)
    config = resolve(user, facts)
    stages = _stages(config, table)
    for stage in stages:
        stage.check()
    for stage in stages:
        data = stage.prepare(data, folder)
    reader = _reader(config, data, stages)
    windows = _windows(config, reader, data, stages)
    config = resolve(user, replace(facts, windows=len(windows)))
    config = resolve(user, replace(facts, windows=len(windows), steps=_steps(config, windows)))
    about = {"sources": sources, "sha256": data.fingerprints(), **({"learns_all": True} if data.apart else {})}
    return RunPlan(StoredRun(stored, config, about, backend_name()), reader, data, windows, stages)


def load_plan(folder: RunWriter, setup: Setup, data: RunData, table: StageTable) -> RunPlan:
    """The plan of a run whose `Setup` was in a folder."""
    stages = _stages(setup.config, table)
    _check_same_run(folder, setup.run, data.fingerprints())
    for stage in stages:
        data = stage.prepare(data, folder)
    _check_same_run(folder, setup.run, data.fingerprints(), _OF_STAGES)
    return RunPlan(setup.run, setup.reader, data, _windows(setup.config, setup.reader, data, stages), stages)


def _stages(config: RunConfig, table: StageTable) -> list[Stage]:
    """The stages of a run, in their order."""
    settings: list[Any] = [*config.stages, *([config.data] if config.data.standards else [])]
    return [table[type(one)](one, config) for one in settings if type(one) in table]


def _steps(config: RunConfig, windows: list[Any]) -> int:
    """The number of steps of an epoch."""
    if config.optimizer.solver == "lbfgs":
        return ITERATIONS
    if config.model.encoder == "linear":
        return math.ceil(len(windows) / (config.training.batch_size or BATCH_SIZES[0]))
    return len(trainer_of(config.task).batches(config.training, windows))


def _check_same_run(folder: RunWriter, run: StoredRun, hashes: dict[str, str], names: set[str] | None = None) -> None:
    """Raises ValueError if the run began with another backend or other data."""
    if run.backend != backend_name():
        raise ValueError(
            f"{folder.path}: needs the backend that the run began with, for the same weights: KERAS_BACKEND="
            f"{run.backend}. Received: {backend_name()}"
        )
    recorded = (run.data or {}).get("sha256") or {}
    names = names or {*recorded, *hashes} - _OF_STAGES
    changed = [name for name in sorted(names) if recorded.get(name) != hashes.get(name)]
    if changed:
        needed = "the model to extend" if changed == ["extend"] else "the data"
        changed = [name for name in changed if name != "tokens"] or changed  # other sentences have other tokens
        raise ValueError(
            f"{folder.path}: needs {needed} that the run began with. Received: {', '.join(changed)} with other content"
        )


def _windows(config: RunConfig, reader: Reader, data: RunData, stages: list[Stage]) -> list[Any]:
    """The windows of the training set with its copies, then the windows of unlabeled texts, all with their targets."""
    training_reader: Any = reader
    for stage in stages:
        training_reader = stage.for_training(training_reader)
    train, constraints = data.parts["train"], bool(config.model.constraints)
    labeled = data.task.windows(config.data, config.facts, training_reader, train, data.copies, constraints)
    return [*labeled, *data.task.unlabeled_windows(config.data, reader, data.unlabeled)]


def _reader(config: RunConfig, data: RunData, stages: list[Stage]) -> Reader:
    """The reader of a new run: one for the texts of the training set and unlabeled texts, as the stages change it."""
    make = partial(_new_reader if config.model.bert is None else _reader_of_bert, config, data)
    if config.model.vectors is not None:
        make = partial(_with_vectors, config, make, data)
    for stage in stages:
        make = partial(stage.reader, make, data)
    return make()


def _with_vectors(config: RunConfig, make: Callable[[], Reader], data: RunData) -> Reader:
    """A new reader with the word vectors."""
    reader, (texts, tokens) = make(), data.task.texts(data.training_items())
    units = [reading.units for reading in reader.read(texts, tokens)]
    vectors = WordVectors.of_file(config.model.vectors or "", texts, units, config.model.max_vectors)
    print_note(
        f"{len(vectors.words):,} vectors of {vectors.table.shape[1]} features are kept; "
        f"{vectors.coverage(texts, units):.1%} of the units of the training set have one"
    )
    return reader.with_vectors(vectors)


def _reader_of_bert(config: RunConfig, data: RunData) -> Reader:
    """The reader of the BERT. Raises a `SettingError` if `max_length` exceeds its positions."""
    model, length = config.model, config.data.max_length
    reader = reader_of(model.bert, model.bert_layers, model.lower_case, model.word_case)
    if length > reader.longest and length != DataConfig.max_length:
        requirement = f"must be at most {reader.longest}, as many positions as {model.bert} can use"
        raise SettingError("max_length", requirement, length)
    return reader.with_tokens() if config.data.units == "words" else reader


def _new_reader(config: RunConfig, data: RunData) -> Reader:
    model, task, train = config.model, data.task, data.parts["train"]
    texts, is_linear = [task.vocabulary_text(item) for item in (*train, *data.unlabeled)], model.encoder == "linear"
    buckets = buckets_of(sum(map(len, texts)))
    if config.data.units == "words":
        reader = WordReader.of(train)
        ngrams = WordNGrams(buckets) if model.ngrams else None
        return WordReader(None if is_linear else reader.vocabulary, reader.splits, ngrams)
    lexicon = Lexicon.of([*train, *data.unlabeled]) if model.lexicon else None
    templates = CHARACTER_TEMPLATES + LEXICON_TEMPLATES * (lexicon is not None)
    vocabulary = None if is_linear else Vocabulary.of(texts, min_bigrams=model.min_bigrams)
    types = bool(model.ngrams) and not is_linear
    return CharacterReader(vocabulary, lexicon, CharacterNGrams(buckets, templates) if model.ngrams else None, types)
