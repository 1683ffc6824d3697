"""The plan of a run: configuration, reader and windows, made from settings and data or from a run folder."""

import math
from dataclasses import dataclass, replace
from typing import Any

from kcrf.backend import backend_name
from kcrf.files import sha256_of
from kcrf.progress_bars import print_note
from kcrf.readers import (
    CharacterNGrams,
    CharacterReader,
    Lexicon,
    Reader,
    StandardsReader,
    Vocabulary,
    WordNGrams,
    WordReader,
    WordVectors,
)
from kcrf.readers.lexicon import StandardLexicon
from kcrf.readers.ngrams import CHARACTER_TEMPLATES, LEXICON_TEMPLATES, OTHER_LEXICON_TEMPLATES, buckets_of
from kcrf.runs import ModelConfig, RunConfig, RunFolder, RunWriter, SettingError, Settings, TrainingConfig, resolve
from kcrf.runs.config_file import StoredRun
from kcrf.runs.names import LINEAR, TEACHER_WORDS, WEIGHTS
from kcrf.runs.resolve import BATCH_SIZES, ITERATIONS, augmentation_for, batch_size_for, linear_solver, resolve_data
from kcrf.runs.setup import load_setup
from kcrf.taggers.encoder_of_run import reader_of
from kcrf.tasks import task_of
from kcrf.tasks.entities import note_cut_entities
from kcrf.training.data import RunData, augmented
from kcrf.training.distillation import check_teacher, unlabeled_items, with_words, words_of_teacher
from kcrf.training.growth import FixedReader, completed, with_all_types
from kcrf.training.trainers import trainer_of


@dataclass(frozen=True)
class RunPlan:
    """Everything that fitting a run needs.

    Attributes:
        run: The content of `config.json`: the settings of the user and the configuration.
        reader: The reader of the model.
        data: The data.
        unlabeled: The items of the unlabeled texts.
        windows: The windows of the training set with its copies, then those of the unlabeled texts, with targets.
    """

    run: StoredRun
    reader: Reader
    data: RunData
    unlabeled: list[Any]
    windows: list[Any]

    @property
    def config(self) -> RunConfig:
        """The configuration."""
        return self.run.config


def plan_run(user: Settings, data: RunData, sources: dict[str, Any] | None = None) -> RunPlan:
    """Plans a new run.

    Args:
        user: The settings.
        data: The data.
        sources: Plain values that say where the data came from.

    Raises:
        FileNotFoundError: The folder of the BERT lacks a file.
        ValueError: The parts of the data or the settings contradict each other; or the teacher has another task, other
            labels or other units.
    """
    task, model, stored = data.task, user.part(ModelConfig), user
    user = user if user.extend is None else with_all_types(user, data)
    facts = task.facts(user, data.whole)
    data_config = resolve_data(user, facts)
    check_teacher(user, data_config, facts)
    data = augmented(data, augmentation_for(user, data_config.units, len(data.parts["train"])), user.seed)
    unlabeled = unlabeled_items(user, task, data.texts, facts.pairs)
    if model.lexicon and data_config.units != "words":
        unlabeled = _new_texts(unlabeled, data.parts["train"])
    reader = _reader(model, data_config, data, unlabeled) if user.extend is None else _grown_reader(user.extend, data)
    windows = _windows(data_config, user, facts, reader, data, unlabeled)
    steps = _steps(user, data_config, windows)
    config = resolve(user, replace(facts, items=len(data.parts["train"]), windows=len(windows), steps=steps))
    about = {"sources": sources, "sha256": _fingerprints(user, data)}
    return _complete(RunPlan(StoredRun(stored, config, about, backend_name()), reader, data, unlabeled, windows))


def _complete(plan):
    """The plan with all types in its validation set."""
    return plan if plan.config.teacher.extend is None else replace(plan, data=completed(plan.config, plan.data))


def _steps(user, data_config, windows):
    """The number of steps of an epoch."""
    training = user.part(TrainingConfig)
    if user.encoder == "linear":
        if linear_solver(user, len(windows), len(data_config.tag_scheme())) == "lbfgs":
            return ITERATIONS
        return math.ceil(len(windows) / (training.batch_size or BATCH_SIZES[0]))
    training = replace(training, batch_size=batch_size_for(training, len(windows)))
    return len(trainer_of(task_of(user.task)).batches(training, windows))


def load_plan(folder: RunFolder, data: RunData) -> RunPlan:
    """Loads the plan of the run in a folder.

    Raises:
        ValueError: The data or the Keras backend differ from those of the run, or a file is damaged.
    """
    setup = load_setup(folder)
    config = setup.config
    data = augmented(data, config.augmentation, setup.run.user.seed)
    _check_same_run(folder, setup.run, _fingerprints(setup.run.user, data))
    unlabeled = unlabeled_items(setup.run.user, data.task, data.texts, config.facts.pairs)
    if folder.file(TEACHER_WORDS).is_file():
        unlabeled = _new_texts(unlabeled, data.parts["train"])
    windows = _windows(config.data, setup.run.user, config.facts, setup.reader, data, unlabeled)
    return _complete(RunPlan(setup.run, setup.reader, data, unlabeled, windows))


def with_words_of_teacher(plan: RunPlan, folder: RunWriter, is_resumed: bool = False) -> RunPlan:
    """A plan whose lexicon also has the words, or entities, that its teacher finds in the unlabeled texts.

    They are written into the run folder; those of a resumed run are read from it.

    Raises:
        FileNotFoundError: The folder of a resumed run lacks them.
        ValueError: The teacher splits a text into other tokens than the student, or the file is damaged.
    """
    reader, train, config = plan.reader, plan.data.parts["train"], plan.config
    if not plan.unlabeled or not isinstance(reader, CharacterReader) or reader.lexicon is None:
        return plan
    if not is_resumed:
        folder.save_arrays(TEACHER_WORDS, words_of_teacher(plan))
    elif not folder.file(TEACHER_WORDS).is_file() and reader.lexicon.words == Lexicon.of(train).words:
        return plan  # an older version began the run
    unlabeled = with_words(plan.unlabeled, folder)
    reader = reader.with_lexicon(Lexicon.of([*train, *unlabeled]))
    windows = _windows(config.data, plan.run.user, config.facts, reader, plan.data, unlabeled)
    return replace(plan, reader=reader, unlabeled=unlabeled, windows=windows)


def _new_texts(unlabeled, train):
    """The unlabeled sentences whose texts are not in the training set, each once.

    A lexicon that counts a text twice still has its words when the lexicon is computed without the text.
    """
    known = {sentence.text for sentence in train}
    found = {sentence.text: sentence for sentence in unlabeled if sentence.text not in known}
    if len(found) < len(unlabeled):
        print_note(f"{len(unlabeled) - len(found):,} unlabeled texts are left out: repeated, or in the training set")
    return list(found.values())


def _fingerprints(user, data):
    """The hashes of the data, and of the model that is extended."""
    if user.extend is None:
        return data.fingerprints()
    folder = RunFolder(user.extend)
    name = LINEAR if folder.read_config().config.model.encoder == "linear" else WEIGHTS
    return {**data.fingerprints(), "extend": sha256_of(folder.existing(name))}


def _check_same_run(folder, run, fingerprints):
    """Raises ValueError if the backend or the data differ from those of the run."""
    if run.backend not in (None, backend_name()):
        raise ValueError(
            f"{folder.path}: needs the backend that the run began with, for the same weights: KERAS_BACKEND="
            f"{run.backend}. Received: {backend_name()}"
        )
    recorded = (run.data or {}).get("sha256") or {}
    for name in ("extend", "tokens"):
        if name not in recorded:  # of a run that an older version began
            fingerprints.pop(name, None)
    changed = [name for name, sha256 in fingerprints.items() if recorded.get(name) != sha256]
    if changed or len(fingerprints) != len(recorded):
        needed = "the model to extend" if changed == ["extend"] else "the data"
        changed = [name for name in changed if name != "tokens"] or changed  # those of other sentences are others
        raise ValueError(
            f"{folder.path}: needs {needed} that the run began with. "
            f"Received: {', '.join(changed or fingerprints)} with other content"
        )


def _windows(data_config, user, facts, reader, data, unlabeled):
    """The windows of the training set with its copies, then those of the unlabeled texts, with their targets."""
    constraints = user.part(ModelConfig).constraints
    training_reader = reader if user.extend is None else FixedReader(reader)
    labeled = data.task.windows(data_config, facts, training_reader, data.parts["train"], data.copies, constraints)
    return [*labeled, *data.task.unlabeled_windows(data_config, reader, unlabeled)]


def _grown_reader(run, data):
    """The reader of the run that is extended, with the vocabulary of the training set unless a BERT has its own.

    Notes entities that begin or end inside its words.
    """
    setup = load_setup(RunFolder(run))
    reader, model, train = setup.reader, setup.config.model, data.parts["train"]
    if isinstance(reader, WordReader):
        note_cut_entities(data.whole, reader.splits, "taken as O or an old type", "a new model of characters")
    if model.bert is not None or model.encoder == "linear":
        return reader
    return reader.grown(train) if isinstance(reader, WordReader) else reader.grown(train, model.min_bigrams)


def _reader(model, data_config, data, unlabeled):
    """The reader of the BERT, or a new reader for the characters or words of the training set and unlabeled texts."""
    reader = _reader_without_vectors(model, data_config, data, unlabeled)
    if model.vectors is None:
        return reader
    texts, tokens = data.task.texts(data.training_items())
    units = [reading.units for reading in reader.read(texts, tokens)]
    vectors = WordVectors.of_file(model.vectors, texts, units, model.max_vectors)
    print_note(
        f"{len(vectors.words):,} vectors of {vectors.table.shape[1]} features are kept; "
        f"{vectors.coverage(texts, units):.1%} of the units of the training set have one"
    )
    return reader.with_vectors(vectors)


def _reader_without_vectors(model, data_config, data, unlabeled):
    task, train = data.task, data.parts["train"]
    if model.bert is not None:
        reader = reader_of(model.bert, model.bert_layers, model.lower_case, model.word_case)
        _check_max_length(model, data_config, task, reader)
        return reader.with_tokens() if data_config.units == "words" else reader
    texts, is_linear = [task.vocabulary_text(item) for item in (*train, *unlabeled)], model.encoder == "linear"
    buckets = buckets_of(sum(map(len, texts)))
    if data_config.units == "words":
        reader = WordReader.of(train)
        ngrams = WordNGrams(buckets) if model.ngrams else None
        return WordReader(None if is_linear else reader.vocabulary, reader.splits, ngrams)
    lexicons = _lexicons(data_config.standards, train) if model.lexicon else {}
    templates = CHARACTER_TEMPLATES + LEXICON_TEMPLATES * bool(lexicons)
    templates += OTHER_LEXICON_TEMPLATES * any(isinstance(lexicon, StandardLexicon) for lexicon in lexicons.values())
    ngrams = CharacterNGrams(buckets, templates) if model.ngrams else None
    vocabulary = None if is_linear else Vocabulary.of(texts, min_bigrams=model.min_bigrams)
    types = bool(model.ngrams) and not is_linear
    readers = {
        standard: CharacterReader(vocabulary, lexicons.get(standard), ngrams, types)
        for standard in data_config.standards or (None,)
    }
    return StandardsReader(readers) if data_config.standards else readers[None]


def _lexicons(standards, train):
    """The lexicon of each standard, with that of the others if there are any; under None that of all sentences."""
    if len(standards) < 2:
        return {standard: Lexicon.of(train) for standard in standards or (None,)}
    own, others = (
        {name: Lexicon.of([s for s in train if (s.standard == name) is is_own]) for name in standards}
        for is_own in (True, False)
    )
    return {name: StandardLexicon(own[name], others[name]) for name in standards}


def _check_max_length(model, data_config, task, reader):
    """Raises a `SettingError` if `max_length` exceeds the positions of the BERT."""
    length = data_config.max_length
    if "max_length" in task.settings and length > reader.longest and length != Settings.max_length:
        requirement = f"must be at most {reader.longest}, as many positions as {model.bert} can use"
        raise SettingError("max_length", requirement, length)
