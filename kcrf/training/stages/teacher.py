"""Distillation: a teacher labels the texts of its student, and finds words for its lexicon in unlabeled texts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from kcrf.metrics.classes import REGRESSION_METRICS
from kcrf.progress_bars import bar, print_note
from kcrf.readers import Reader, WordReader
from kcrf.runs import RunConfig, RunFolder, RunWriter, SettingError
from kcrf.runs.names import SCORES, TEACHER, TEACHER_WORDS
from kcrf.taggers import TextClassifier, load_tagger
from kcrf.taggers.decoder import parts_of_sentences
from kcrf.tasks import task_of
from kcrf.training.data import RunData
from kcrf.training.stage import Stage
from kcrf.training.stages import soft_targets


class Teacher(Stage):
    """Labels all texts of the training set, and unlabeled texts, by the model of another run."""

    def check(self) -> None:
        """Raises ValueError if the teacher is incomplete, or has another task, other labels or other units. Also raises
        ValueError if a temperature is set for a regression teacher, which has no probabilities."""
        settings, defaults = self.settings, task_of(self.config.data.task).defaults
        temperature = settings.teacher_temperature
        if self.config.facts.metric in REGRESSION_METRICS and temperature != defaults["teacher_temperature"]:
            raise SettingError("teacher_temperature", "needs labels that are names; here they are numbers", temperature)
        folder = RunFolder(settings.teacher)
        teacher = folder.read_config().config
        folder.existing(SCORES)  # written last: the run is complete
        for name, of in _COMPARED.items():
            of_teacher, of_student = of(teacher), of(self.config)
            if of_teacher != of_student:
                raise ValueError(
                    f"{settings.teacher}: a teacher needs the {name} of its student, {_in_words(of_student)}. "
                    f"Received: {_in_words(of_teacher)}"
                )

    def prepare(self, data: RunData, folder: RunWriter | None) -> RunData:
        """The data with unlabeled items. If the student has a lexicon, they have the spans that the teacher finds."""
        items = data.task.unlabeled_items(data.texts, self.config.facts.pairs)
        if items and folder is not None and self.config.model.lexicon and self.config.data.units != "words":
            items = _new_texts(items, data.parts["train"])
            if not folder.file(TEACHER_WORDS).is_file():
                folder.save_arrays(TEACHER_WORDS, self._words(items))
            items = _with_words(items, folder)
        return replace(data, unlabeled=items)

    def _words(self, sentences: list[Any]) -> dict[str, np.ndarray]:
        """The spans that the teacher finds in sentences."""
        texts = [sentence.text for sentence in sentences]
        print_note(f"{len(texts):,} unlabeled texts: what the teacher finds in them goes into the lexicon")
        with _shown(sum(map(len, texts))) as on_batch:
            teacher: Any = load_tagger(self.settings.teacher)
            parts = parts_of_sentences(sentences)
            spans_of_texts = teacher.decoder.spans(parts, on_batch=on_batch, with_probabilities=False)
        spans = [(span.start, span.end) for spans in spans_of_texts for span in spans]
        return {"counts": np.array(list(map(len, spans_of_texts)), int), "spans": np.array(spans, int).reshape(-1, 2)}

    def targets(self, windows: list[Any], reader: Reader, data: RunData, folder: RunWriter) -> list[Any]:
        """The windows with the predictions of the teacher, which are read from the run folder, or written into it."""
        if data.task.output == "label":
            return self._label_targets(windows, data, folder)
        return tag_targets(self.settings.teacher, windows, reader, data, folder, self._counts)

    def _counts(self, tagger: Any, sentences: list[Any], readings: list[Any], on_batch: Any) -> Any:
        """The expected counts of the teacher for each sentence, under the constraints of the student."""
        print_note(f"{len(sentences):,} texts are labeled by the teacher, {self.settings.teacher}")
        constraints = tagger.scheme if self.config.model.constraints else None
        temperature = self.settings.teacher_temperature or 1.0
        return tagger.decoder.expected_counts(parts_of_sentences(sentences), constraints, temperature, on_batch)

    def _label_targets(self, windows: list[Any], data: RunData, folder: RunWriter) -> list[Any]:
        if not folder.file(TEACHER).is_file():
            texts = [*(item.texts for item in data.training_items()), *data.unlabeled]
            folder.save_arrays(TEACHER, {"answers": self._answers(texts).astype("float32")})
        return soft_targets.label_targets(windows, folder.read_arrays(TEACHER)["answers"])

    def _answers(self, texts: list[Any]) -> np.ndarray:
        """The softened probabilities of a classifier, `(texts, labels)`; or standardized numbers, `(texts, 1)`."""
        teacher, facts = TextClassifier(self.settings.teacher), self.config.facts
        print_note(f"{len(texts):,} texts are labeled by the teacher, {self.settings.teacher}")
        with _shown(len(texts)) as on_batch:
            predictions = teacher.predict(texts, on_batch=on_batch)
        if not self.config.data.labels:
            return (np.array([[item.label] for item in predictions]) - facts.mean) / facts.deviation
        probabilities = np.array([list(item.probabilities.values()) for item in predictions])
        return soft_targets.soften(probabilities, self.settings.teacher_temperature)


def tag_targets(
    path: Any, windows: list[Any], reader: Reader, data: RunData, folder: RunWriter, counts: Callable[..., list[Any]]
) -> list[Any]:
    """The windows of a student with the expected counts of its teacher, from the run folder or computed by `counts`.

    `counts` takes the teacher, the sentences of the training set with its copies and the unlabeled ones, their readings
    by the teacher, and a function that shows progress.
    """
    sentences = [*data.training_items(), *data.unlabeled]
    texts, tokens = [sentence.text for sentence in sentences], [sentence.tokens for sentence in sentences]
    if not folder.file(TEACHER).is_file():
        tagger: Any = load_tagger(path)
        readings = tagger.reader.read(texts, tokens)
        soft_targets.check_units(texts, [[len(w.positions) for w in reading.windows] for reading in readings], windows)
        if isinstance(reader, WordReader):
            of_student = map(reader.units_of, texts, tokens)
            soft_targets.check_words(texts, [reading.units for reading in readings], of_student)
        with _shown(sum(map(len, texts))) as on_batch:
            folder.save_arrays(TEACHER, soft_targets.join_counts(counts(tagger, sentences, readings, on_batch)))
    return soft_targets.expected_targets(texts, soft_targets.split_counts(folder.read_arrays(TEACHER)), windows)


_COMPARED: dict[str, Callable[[RunConfig], Any]] = {
    "task": lambda config: config.data.task,
    "tags": lambda config: config.data.tag_scheme().labels if config.data.scheme else (),
    "labels": lambda config: config.data.labels,
    "number of labels": lambda config: "several for a text" if config.facts.multilabel else "one for a text",
    "standards": lambda config: config.data.standards,
    "kind of texts": lambda config: "pairs" if config.facts.pairs else "single texts",
    "units": lambda config: "words" if config.data.units == "words" else "characters or the words of a BERT",
}


def _in_words(value: Any) -> str:
    return value if isinstance(value, str) else ", ".join(value) or "none"


def _new_texts(unlabeled: list[Any], train: list[Any]) -> list[Any]:
    """The unlabeled sentences whose texts are not in the training set, each once. A lexicon that counts a text twice
    still has its words when the lexicon is computed without the text."""
    known = {sentence.text for sentence in train}
    found = {sentence.text: sentence for sentence in unlabeled if sentence.text not in known}
    if len(found) < len(unlabeled):
        print_note(f"{len(unlabeled) - len(found):,} unlabeled texts are left out: repeated, or in the training set")
    return list(found.values())


def _with_words(sentences: list[Any], folder: RunWriter) -> list[Any]:
    """Unlabeled sentences with the spans of the teacher, which are in the run folder."""
    arrays = folder.read_arrays(TEACHER_WORDS)
    if {*arrays} != {"counts", "spans"} or len(arrays["counts"]) != len(sentences):
        shapes = {name: array.shape for name, array in arrays.items()}
        raise ValueError(
            f"{folder.file(TEACHER_WORDS)}: needs the words of {len(sentences):,} texts. Received: arrays of {shapes}"
        )
    spans = np.split(arrays["spans"], np.cumsum(arrays["counts"])[:-1])
    return [replace(s, spans=list(map(tuple, own.tolist()))) for s, own in zip(sentences, spans, strict=True)]


@contextmanager
def _shown(total: int) -> Iterator[Any]:
    """A context with a progress bar for the teacher. Its value is a function that advances the bar."""
    with bar() as shown:
        task = shown.add_task("teacher", total=total)
        yield partial(shown.advance, task)
