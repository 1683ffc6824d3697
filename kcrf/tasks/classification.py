"""Text classification and regression. Needs NumPy only."""

import reprlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from kcrf.corpora import Example, classified, read_classified
from kcrf.corpora.json_objects import begins_json
from kcrf.corpora.lines import read_lines
from kcrf.files import shortened
from kcrf.metrics import classification_scores, multilabel_scores, regression_scores
from kcrf.metrics.classes import CLASSIFICATION_METRICS, REGRESSION_METRICS
from kcrf.progress_bars import print_note
from kcrf.readers import Reader
from kcrf.readers.units import with_copies
from kcrf.readers.windows import SEPARATOR
from kcrf.tasks.errors import SettingError, check_same_texts
from kcrf.tasks.forms import items_of
from kcrf.tasks.task import DataFacts, FileOptions, Items, Task, Words

_FEW_LABELS = 20  # at most so many labels may occur once; more may mean that the column of labels is wrong


class Classification(Task):
    """A label, labels, or a number, for each text or pair of texts."""

    name = "classify"
    output: Literal["tags", "label"] = "label"
    items = "texts"
    command = "classify"
    settings = frozenset({"augment", "max_length", "metric", "pool"})
    defaults: Mapping[str, Any] = {"head": "softmax", "lexicon": False, "ngrams": False, "teacher_temperature": 2.0}
    adagrad: Mapping[str, float] = {}
    choices: Mapping[str, tuple[Any, ...]] = dict.fromkeys(("lexicon", "ngrams", "word_case"), (False,)) | {
        "head": ("softmax",),
        "units": ("characters",),
    }
    file_options = frozenset({"fields"})

    def read_file(self, path: str, options: FileOptions) -> Items:
        return read_classified(path, options["fields"])

    def file_lines(self, items: Items) -> list[str]:
        return [classified.classified_line(*example.texts, label=example.label) for example in items]

    def read_unlabeled_line(self, line: str) -> Any:
        return tuple(line.split("\t")) if "\t" in line else line

    def check(self, name: str, items: Any) -> Items:
        items = items_of(self.name, name, items)
        if not len(items):
            raise ValueError(f"`{name}` needs at least one text with its label. Received: none")
        return [_as_example(name, number, item) for number, item in enumerate(items, 1)]

    def copies(self, items: list[Items]) -> list[Items]:
        return items

    def content(self, items: list[Any]) -> list[Any]:
        return [(example.text, example.text_b, example.label) for example in items]

    def labels_to_balance(self, items: list[Any]) -> list[str] | None:
        return classified.recurring(items)

    def vocabulary_text(self, example: Any) -> str:
        text, text_b = example.texts if isinstance(example, Example) else example
        return text if text_b is None else f"{text}{SEPARATOR}{text_b}"

    def texts(self, items: list[Any]) -> tuple[list[str], list[Any] | None]:
        return [text for example in items for text in example.texts if text], None

    def facts(self, user: Any, parts: Mapping[str, Items]) -> DataFacts:
        train = parts["train"]
        is_pair = train[0].text_b is not None
        deviating = next((e for part in parts.values() for e in part if (e.text_b is not None) is not is_pair), None)
        if deviating is not None:
            needed = "a pair of texts, as the first has" if is_pair else "one text, as the first has"
            raise ValueError(
                f"{deviating.source}: needs {needed}. Received: {len(deviating.texts) - (deviating.text_b is None)}"
            )
        labels, decided = [example.label for example in train], user.metric or user.labels
        if user.metric in REGRESSION_METRICS or not decided and classified.have_decimals(labels):
            return replace(_numbers(user, parts), pairs=is_pair)
        if not decided:
            _check_for_numbers(train)
        return replace(_labels(user, parts), pairs=is_pair)

    def windows(
        self, data: Any, facts: DataFacts, reader: Reader, items: Items, copies: Any = None, whole_spans: bool = False
    ) -> list[Any]:
        examples = with_copies(items, copies)
        readings = reader.read_texts([example.texts for example in examples], data.max_length)
        cut = sum(reading.is_cut for reading in readings)
        if cut:
            print_note(
                f"{cut:,} of {len(readings):,} texts are longer than the positions that are learned, and are cut: a "
                f"larger --max-length than {data.max_length} learns more"
            )
        numbers = {label: number for number, label in enumerate(data.labels)}
        labels = [example.label for example in examples]
        if facts.multilabel:
            targets: list[Any] = [np.isin(data.labels, example.labels).astype("float32") for example in examples]
        elif numbers:
            targets = [numbers[label] for label in labels]
        else:
            targets = [(float(label) - facts.mean) / facts.deviation for label in labels]
        return [(r.windows[0].inputs, target) for r, target in zip(readings, targets, strict=True)]

    def unlabeled_items(self, texts: Sequence[Any], pairs: bool) -> Items:
        items = [(text, None) if isinstance(text, str) else tuple(text) for text in texts]
        deviating = next((item for item in items if len(item) != 2 or (item[1] is not None) != pairs), None)
        if deviating is not None:
            needed = "pairs of texts" if pairs else "single texts"
            raise ValueError(f"`unlabeled` needs {needed}, as the training set has them. Received: {deviating!r}")
        return items

    def unlabeled_windows(self, data: Any, reader: Reader, items: Items) -> list[Any]:
        readings = reader.read_texts(items, data.max_length)
        return [(reading.windows[0].inputs, None) for reading in readings]

    def outputs(self, data: Any) -> tuple[str, ...]:
        return data.labels

    def read_scored(self, path: str, options: FileOptions, is_gold: bool) -> Items:
        has_fixed_names = not is_gold and begins_json(read_lines(path))
        return classified.read_all_classified(path, None if has_fixed_names else options["fields"])

    def predicted_items(self, predictions: list[dict[str, Any]], member: str) -> Items:
        return [Example(item["text"], _label(item[member]), item["text_b"]) for item in predictions]

    def scores(self, gold: Items, predicted: Items, words: Words = None, labels: Sequence[str] = ()) -> dict[str, Any]:
        gold, predicted = _decided(gold, predicted)
        check_same_texts("text", *([example.texts for example in part] for part in (gold, predicted)))
        if any(isinstance(example.label, tuple) for example in (*gold, *predicted)):
            true, found = ([example.labels for example in part] for part in (gold, predicted))
            others = classified.sorted_labels({label for row in (*true, *found) for label in row} - {*labels})
            return multilabel_scores(true, found, (*labels, *others))
        gold_labels, predicted_labels = ([str(example.label) for example in part] for part in (gold, predicted))
        if not labels and classified.have_decimals(gold_labels + predicted_labels):
            return regression_scores(*(list(map(float, part)) for part in (gold_labels, predicted_labels)))
        classified.check_spellings([*gold, *predicted])
        others = classified.sorted_labels({*gold_labels, *predicted_labels} - {*labels})
        return classification_scores(gold_labels, predicted_labels, (*labels, *others))

    def describe(self, config: Any) -> tuple[str, str]:
        labels = f"{len(config.data.labels)} labels" if config.data.labels else "with numbers"
        labels += ", several for a text" * config.facts.multilabel
        return f", {labels}", f"pool {config.model.pool}"


def _as_example(name: str, number: int, item: Any) -> Example:
    """The `Example` of an item: an `Example`, `(text, label)` or `(text, text_b, label)`. Its label is a string."""
    source = f"`{name}`, text {number}"
    if not isinstance(item, Example):
        if not isinstance(item, (tuple, list, np.ndarray)) or len(item) not in (2, 3):
            raise ValueError(
                f"{source}: needs an `Example`, (text, label) or (text, text_b, label). Received: {reprlib.repr(item)}"
            )
        *texts, label = item
        item = Example(texts[0], label, texts[1] if len(texts) > 1 else None, source)
    return replace(item, label=_label(item.label), source=item.source or source)


def _label(label: Any) -> Any:
    """A label or number as a string; several labels as they are."""
    return label if isinstance(label, (tuple, list)) else str(label)


def _decided(gold: list[Example], predicted: list[Example]) -> tuple[list[Example], list[Example]]:
    """Both lists without the texts on whose label annotators did not agree."""
    undecided = classified.undecided_examples(gold)
    if len(predicted) == len(gold):
        predicted = [example for number, example in enumerate(predicted) if number not in undecided]
    return [example for number, example in enumerate(gold) if number not in undecided], predicted


def _numbers(user: Any, parts: Any) -> DataFacts:
    """The facts of regression. Raises ValueError if a label is not a number, or if all numbers are the same."""
    if user.labels:
        raise SettingError("labels", "needs a metric of classes", {"metric": user.metric})
    for part in parts.values():
        for example in part:
            if classified.as_number(example.label) is None:
                raise ValueError(f"{example.source}: needs a number. Received: {example.label!r}")
    numbers = np.array([float(example.label) for example in parts["train"]])
    if numbers.min() == numbers.max():
        raise ValueError(f"`train` needs different numbers. Received: {numbers[0]:g} for all {len(numbers)} texts")
    return DataFacts(mean=float(numbers.mean()), deviation=float(numbers.std()), metric=REGRESSION_METRICS[0])


def _check_for_numbers(examples: list[Example]) -> None:
    """Raises ValueError if nearly all labels are numbers with decimals, and a few are not: they may be mistakes."""
    not_numbers = [example for example in examples if classified.as_number(example.label) is None]
    numbers = [example.label for example in examples if classified.as_number(example.label) is not None]
    if not_numbers and len(not_numbers) <= len(examples) / 10 and classified.have_decimals(numbers):
        raise ValueError(
            f"{not_numbers[0].source}: needs a number, as {len(numbers)} of {len(examples)} labels are; "
            f"metric='accuracy' treats them as names. Received: {not_numbers[0].label!r}"
        )


def _labels(user: Any, parts: Any) -> DataFacts:
    """The facts of classification. Raises ValueError if labels contradict each other or the settings."""
    counts = Counter(label for example in parts["train"] for label in example.labels)
    is_multilabel = any(isinstance(example.label, tuple) for example in parts["train"])
    labels = tuple(user.labels or classified.sorted_labels(counts))
    if len({*labels}) < len(labels):
        raise SettingError("labels", "must be different ones", labels)
    if len(labels) < 2:
        raise ValueError(
            f"{parts['train'][0].source}: the training set needs two labels or more. "
            f"Received: {', '.join(labels)} for all {len(parts['train'])} texts"
        )
    classified.check_spellings(parts["train"])
    once = sum(count == 1 for count in counts.values())
    if once > max(_FEW_LABELS, counts.total() / 2):
        raise ValueError(
            f"`train` needs labels that recur. Received: {once} labels that occur once, as {next(iter(counts))[:40]!r} "
            f"of {parts['train'][0].source}; is that the column of the label?"
        )
    absent = [label for label in labels if not counts[label]]
    if absent:
        raise ValueError(f"`train` needs an example of each label. Received: none of {shortened(absent)}")
    for part in parts.values():
        for example in part:
            if isinstance(example.label, tuple) and not is_multilabel:
                needed = "one label, as each text of the training set has"
                raise ValueError(f"{example.source}: needs {needed}. Received: {example.label!r}")
            if not {*labels}.issuperset(example.labels):
                raise ValueError(
                    f"{example.source}: needs one of the labels of the training set, {shortened(labels)}. "
                    f"Received: {example.label!r}"
                )
    _check_metric(user, labels, is_multilabel)
    if user.limit is not None and user.limit < len(labels):
        raise SettingError("limit", f"must be at least {len(labels)}, a text of each label", user.limit)
    metric = "f" if is_multilabel else CLASSIFICATION_METRICS[0]
    return DataFacts(labels=labels, metric=metric, multilabel=is_multilabel)


def _check_metric(user: Any, labels: Sequence[str], is_multilabel: bool) -> None:
    """Raises SettingError for settings that do not fit the labels."""
    if user.metric == "f" and len(labels) != 2 and not is_multilabel:
        requirement = f"needs two labels to be 'f'; here are {shortened(labels)}; macro_f takes the mean"
        raise SettingError("metric", requirement, "f")
    if is_multilabel and user.metric == "matthews":
        raise SettingError("metric", "must be f, macro_f or accuracy if texts have several labels", "matthews")
    if is_multilabel and user.teacher is not None:
        raise SettingError("teacher", "needs texts with one label each", user.teacher)
