"""What a student is trained on: the windows of its texts with the answers of its teacher."""

from contextlib import contextmanager
from functools import partial

import numpy as np

from kcrf.corpora import Sentence
from kcrf.distillation.teachers import check_units, expected_targets, join_counts, label_targets, soften, split_counts
from kcrf.metrics.classes import REGRESSION_METRICS
from kcrf.progress_bars import bar, print_note
from kcrf.readers.whole import SEPARATOR
from kcrf.runs import RunFolder, Settings
from kcrf.runs.names import SCORES, TEACHER
from kcrf.taggers import load_tagger
from kcrf.taggers.classifier import load_classifier

__all__ = ["check_teacher", "taught_windows", "texts_of", "unlabelled_items", "unlabelled_windows"]


def check_teacher(settings):
    """Raises ValueError if the teacher of a run has another task, other labels or other units, or is not complete.

    Also if the teacher's numbers should be softened: they have no probabilities. And if `temperature` is given, which
    calibrates the student after training, where `teacher_temperature` must be meant.

    Args:
        settings: `Settings` with what follows from the data.
    """
    if settings.temperature != 1:
        raise ValueError(
            "`temperature` is fitted on the held-out part; that of the teacher is `teacher_temperature`. "
            f"Received: temperature={settings.temperature}"
        )
    temperature = settings.teacher_temperature
    if settings.metric in REGRESSION_METRICS and temperature != Settings(task="classify").teacher_temperature:
        raise ValueError(
            f"`teacher_temperature` needs labels that are names. Received: {temperature} and labels that are numbers"
        )
    folder = RunFolder(settings.teacher)
    teacher = folder.read_settings()
    folder.existing(SCORES)  # written last: the run is complete
    for name, of in _COMPARED.items():
        if of(teacher) != of(settings):
            raise ValueError(
                f"{settings.teacher}: a teacher needs the {name} of its student, {_in_words(of(settings))}. "
                f"Received: {_in_words(of(teacher))}"
            )


_COMPARED = {
    "task": lambda settings: settings.task,
    "tags": lambda settings: settings.tag_scheme().labels if settings.scheme else (),
    "labels": lambda settings: settings.labels,
    "kind of texts": lambda settings: "pairs" if settings.pairs else "single texts",
    "units": lambda settings: "words" if settings.units == "words" else "characters or the words of a BERT",
}


def _in_words(value):
    return value if isinstance(value, str) else ", ".join(value) or "none"


def unlabelled_items(settings, texts):
    """Texts without labels as items of a task: `Sentence`s without spans, or pairs of texts; blank ones are left out.

    Args:
        settings: `Settings`.
        texts: Iterable of strings, for pairs of texts of tuples of two.

    Raises:
        ValueError: There are texts, but no teacher.
    """
    texts = [text for text in texts if (text if isinstance(text, str) else "".join(text)).strip()]
    if texts and settings.teacher is None:
        raise ValueError("`unlabelled` needs a `teacher`. Received: teacher=None")
    if settings.task == "cws":
        return [Sentence("".join(text.split()), []) for text in texts]
    if settings.task == "ner":
        return [Sentence(text, []) for text in texts]
    pairs = [(text, None) if isinstance(text, str) else tuple(text) for text in texts]
    odd = next((pair for pair in pairs if len(pair) != 2 or (pair[1] is not None) != settings.pairs), None)
    if odd is not None:
        needed = "pairs of texts" if settings.pairs else "single texts"
        raise ValueError(f"`unlabelled` needs {needed}, as the training part has them. Received: {odd!r}")
    return pairs


def texts_of(settings, items):
    """The texts of what `unlabelled_items` returned, whose characters get vectors."""
    if settings.task == "classify":
        return [a if b is None else f"{a}{SEPARATOR}{b}" for a, b in items]
    return [sentence.text for sentence in items]


def unlabelled_windows(settings, reader, items):
    """The windows of texts without labels: all tags unknown, or None as the label."""
    if settings.task == "classify":
        return [(reading.windows[0].inputs, None) for reading in reader.read_texts(items, settings.max_length)]
    readings = reader.read([sentence.text for sentence in items])
    return [(window.inputs, [-1] * window.length) for reading in readings for window in reading.windows]


def taught_windows(folder, settings, windows, items, unlabelled):
    """Windows with the answers of the teacher in their targets. The answers are in the run folder, or written there.

    Args:
        folder: The `RunWriter` of the student.
        settings: Its `Settings`.
        windows: The windows of all texts, with what is known of them.
        items: The `Sentence`s or `Example`s of the training part, with their copies.
        unlabelled: What `unlabelled_items` returned.

    Raises:
        ValueError: The teacher cuts a text into other units than the student.
    """
    is_classifier = settings.task == "classify"
    items = [*([item.texts for item in items] if is_classifier else items), *unlabelled]
    if not folder.file(TEACHER).is_file():
        answers = _probabilities(settings, items) if is_classifier else _counts(settings, items, windows)
        folder.save_arrays(TEACHER, answers)
    arrays = folder.read_arrays(TEACHER)
    if is_classifier:
        return label_targets(windows, arrays["answers"])
    return expected_targets([sentence.text for sentence in items], split_counts(arrays), windows)


@contextmanager
def _shown(total):
    """A context in which a bar shows how much of the total the teacher has done; gives the function to tell it."""
    with bar() as shown:
        task = shown.add_task("teacher", total=total)
        yield partial(shown.advance, task)


def _print_note(settings, texts):
    print_note(f"{len(texts):,} texts are labelled by the teacher, {settings.teacher}")


def _counts(settings, sentences, windows):
    """The expected counts of sentences, as `split_counts` takes them; units are checked first, for this takes long."""
    teacher = load_tagger(settings.teacher)
    texts = [sentence.text for sentence in sentences]
    readings = teacher.reader.read(texts, [sentence.tokens for sentence in sentences])
    check_units(texts, [[len(window.positions) for window in reading.windows] for reading in readings], windows)
    _print_note(settings, texts)
    constraints = settings.tag_scheme() if settings.constraints else None
    with _shown(sum(map(len, texts))) as on_batch:
        counts = teacher.expected_counts(sentences, constraints, settings.teacher_temperature, on_batch=on_batch)
    return join_counts(counts)


def _probabilities(settings, texts):
    """The softened probabilities of texts, for regression the numbers as the student learns them; as a dict."""
    teacher = load_classifier(settings.teacher)
    _print_note(settings, texts)
    with _shown(len(texts)) as on_batch:
        found = teacher.classify(texts, on_batch=on_batch)
    if not settings.labels:
        numbers = np.array([[item.label] for item in found])
        return {"answers": ((numbers - settings.mean) / settings.deviation).astype("float32")}
    rows = np.array([list(item.probabilities.values()) for item in found])
    return {"answers": soften(rows, settings.teacher_temperature).astype("float32")}
