"""Distillation in a run: its teacher, the unlabeled texts, and the windows with the teacher's predictions."""

from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from kcrf.distillation.teachers import (
    check_units,
    check_words,
    expected_targets,
    join_counts,
    label_targets,
    soften,
    split_counts,
)
from kcrf.metrics.classes import REGRESSION_METRICS
from kcrf.progress_bars import bar, print_note
from kcrf.readers import WordReader
from kcrf.runs import RunFolder, SettingError, TeacherConfig
from kcrf.runs.names import SCORES, TEACHER, TEACHER_WORDS
from kcrf.taggers.classifier import load_classifier
from kcrf.taggers.open_model import load_trained_tagger
from kcrf.training.growth import constraints_of_old, marked_by, spans_in_units, with_new_types


def check_teacher(user, data, facts):
    """Raises ValueError if the teacher of a run is incomplete, or has another task, other labels or other units.

    Also raises ValueError if a temperature is set for a regression teacher, which has no probabilities.

    Args:
        user: The `Settings`.
        data: The `DataConfig`, with the types or labels of the data.
        facts: The `DataFacts`.
    """
    settings = user.part(TeacherConfig)
    if settings.teacher is None:
        return
    temperature = settings.teacher_temperature
    if facts.metric in REGRESSION_METRICS and temperature != user.kind.task.defaults["teacher_temperature"]:
        raise SettingError("teacher_temperature", "needs labels that are names; here they are numbers", temperature)
    folder = RunFolder(settings.teacher)
    teacher = folder.read_config().config
    folder.existing(SCORES)  # written last: the run is complete
    for name, of in _COMPARED.items():
        of_teacher, of_student = of(teacher.data, teacher.facts), of(data, facts)
        if of_teacher != of_student:
            raise ValueError(
                f"{settings.teacher}: a teacher needs the {name} of its student, {_in_words(of_student)}. "
                f"Received: {_in_words(of_teacher)}"
            )


_COMPARED = {
    "task": lambda data, facts: data.task,
    "tags": lambda data, facts: data.tag_scheme().labels if data.scheme else (),
    "labels": lambda data, facts: data.labels,
    "standards": lambda data, facts: data.standards,
    "kind of texts": lambda data, facts: "pairs" if facts.pairs else "single texts",
    "units": lambda data, facts: "words" if data.units == "words" else "characters or the words of a BERT",
}


def _in_words(value):
    return value if isinstance(value, str) else ", ".join(value) or "none"


def unlabeled_items(user, task, texts, pairs):
    """Converts unlabeled texts to items of a task. Blank texts are omitted.

    Args:
        user: The `Settings`.
        task: The `Task`.
        texts: Iterable of strings; for pairs of texts, of tuples of two strings.
        pairs: Whether the texts of the training set come in pairs.

    Raises:
        ValueError: There are texts but no teacher; or pairs are needed and single texts come, or vice versa.
    """
    texts = [text for text in texts if (text if isinstance(text, str) else "".join(text)).strip()]
    if texts and user.teacher is None:
        raise ValueError("`unlabeled` needs a `teacher`. Received: teacher=None")
    return task.unlabeled_items(texts, pairs)


def words_of_teacher(plan):
    """The words, or entities, that the teacher of a plan finds in the unlabeled texts, as arrays for `with_words`.

    Raises:
        ValueError: The teacher splits a text into other tokens than the student.
    """
    spans_of_texts = _TagTeacher(plan).spans_of_unlabeled()
    spans = [span[:2] for spans in spans_of_texts for span in spans]
    return {"counts": np.array(list(map(len, spans_of_texts)), int), "spans": np.array(spans, int).reshape(-1, 2)}


def with_words(sentences, folder):
    """Unlabeled sentences with the spans of `words_of_teacher`, which are in the run folder."""
    arrays = folder.read_arrays(TEACHER_WORDS)
    if {*arrays} != {"counts", "spans"} or len(arrays["counts"]) != len(sentences):
        shapes = {name: array.shape for name, array in arrays.items()}
        raise ValueError(
            f"{folder.file(TEACHER_WORDS)}: needs the words of {len(sentences):,} texts. Received: arrays of {shapes}"
        )
    spans = np.split(arrays["spans"], np.cumsum(arrays["counts"])[:-1])
    return [
        replace(sentence, spans=list(map(tuple, of_sentence.tolist())))
        for sentence, of_sentence in zip(sentences, spans, strict=True)
    ]


def distillation_windows(plan, folder):
    """The windows of a plan. If the plan has a teacher, their targets contain its predictions.

    The predictions are read from the run folder, or computed and written into it.

    Raises:
        ValueError: The teacher splits a text into other tokens than the student.
    """
    if plan.config.teacher.soft_targets is None:
        return plan.windows
    teacher = (_OldModel if plan.config.teacher.extend is not None else _TEACHERS[plan.config.task.output])(plan)
    if not folder.file(TEACHER).is_file():
        folder.save_arrays(TEACHER, teacher.predictions())
    return teacher.targets(folder.read_arrays(TEACHER))


@contextmanager
def _shown(total):
    """A context with a progress bar for the teacher. Its value is a function that advances the bar."""
    with bar() as shown:
        task = shown.add_task("teacher", total=total)
        yield partial(shown.advance, task)


def _print_note(config, texts):
    if config.teacher.extend is not None:
        print_note(f"{len(texts):,} texts: the types that are not marked are predicted by {config.teacher.extend}")
    else:
        print_note(f"{len(texts):,} texts are labeled by the teacher, {config.teacher.teacher}")


class _TagTeacher:
    """A tagger as the teacher: it predicts the expected counts of tags and transitions of each window."""

    def __init__(self, plan):
        self._config, self._windows, self._reader = plan.config, plan.windows, plan.reader
        self._unlabeled, self._sentences = plan.unlabeled, [*plan.data.training_items(), *plan.unlabeled]
        self._texts = [sentence.text for sentence in self._sentences]

    def predictions(self):
        """The expected counts for `split_counts`."""
        teacher, readings = self._checked()
        _print_note(self._config, self._texts)
        with _shown(sum(map(len, self._texts))) as on_batch:
            return join_counts(self._counts(teacher, readings, on_batch))

    def spans_of_unlabeled(self):
        """The spans of each unlabeled text."""
        (teacher, _), texts = self._checked(), [sentence.text for sentence in self._unlabeled]
        print_note(f"{len(texts):,} unlabeled texts: what the teacher finds in them goes into the lexicon")
        with _shown(sum(map(len, texts))) as on_batch:
            return teacher.spans(texts, on_batch=on_batch)

    def _checked(self):
        """The teacher, and its readings of all texts. Checks the tokens, because predictions take long."""
        config, texts = self._config, self._texts
        teacher = load_trained_tagger(config.teacher.extend or config.teacher.teacher)
        tokens = [sentence.tokens for sentence in self._sentences]
        readings = teacher.reader.read(texts, tokens)
        lengths = [[len(window.positions) for window in reading.windows] for reading in readings]
        check_units(texts, lengths, self._windows)
        if isinstance(self._reader, WordReader):
            check_words(texts, [reading.units for reading in readings], map(self._reader.units_of, texts, tokens))
        return teacher, readings

    def _counts(self, teacher, readings, on_batch):
        """The expected counts of the teacher for each sentence, under the constraints of the student."""
        constraints = teacher.scheme if self._config.model.constraints else None
        _, temperature = self._config.teacher.soft_targets
        return teacher.expected_counts(self._sentences, constraints, temperature, on_batch=on_batch)

    def targets(self, arrays):
        """The windows with the expected counts in their targets."""
        return expected_targets(self._texts, split_counts(arrays), self._windows)


class _OldModel(_TagTeacher):
    """The model that a run extends: its predictions given the marked entities, into which new types are written."""

    def __init__(self, plan):
        super().__init__(plan)
        self._marked = marked_by(plan.config, plan.data.whole["train"])

    def _counts(self, teacher, readings, on_batch):
        config, new, marked = self._config, self._config.data.tag_scheme(), self._marked
        spans_of_sentences = [
            spans_in_units(new, reading.units, sentence.spans)
            for reading, sentence in zip(readings, self._sentences, strict=True)
        ]
        span_constraints = [constraints_of_old(spans, teacher.scheme, marked) for spans in spans_of_sentences]
        constraints = teacher.scheme if config.model.constraints else None
        counts_of_sentences = teacher.expected_counts(
            self._sentences, constraints, on_batch=on_batch, span_constraints=span_constraints
        )
        return [
            [
                with_new_types(*counts, spans, window.first, teacher.scheme, new)
                for window, counts in zip(reading.windows, counts_of_windows, strict=True)
            ]
            for reading, spans, counts_of_windows in zip(readings, spans_of_sentences, counts_of_sentences, strict=True)
        ]


class _LabelTeacher:
    """A classifier as the teacher: it predicts softened probabilities, or numbers standardized as the student's."""

    def __init__(self, plan):
        self._config, self._windows = plan.config, plan.windows
        self._texts = [*(item.texts for item in plan.data.training_items()), *plan.unlabeled]

    def predictions(self):
        """The predictions for all texts, a dict with one array."""
        config, texts = self._config, self._texts
        teacher = load_classifier(config.teacher.teacher)
        _print_note(config, texts)
        with _shown(len(texts)) as on_batch:
            predictions = teacher.classify(texts, on_batch=on_batch)
        if not config.data.labels:
            numbers = np.array([[item.label] for item in predictions])
            return {"answers": ((numbers - config.facts.mean) / config.facts.deviation).astype("float32")}
        probabilities = np.array([list(item.probabilities.values()) for item in predictions])
        return {"answers": soften(probabilities, config.teacher.teacher_temperature).astype("float32")}

    def targets(self, arrays):
        """The windows with the predictions in their targets."""
        return label_targets(self._windows, arrays["answers"])


_TEACHERS = {"tags": _TagTeacher, "label": _LabelTeacher}
