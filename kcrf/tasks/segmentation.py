"""Word segmentation. Needs NumPy only."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kcrf.corpora import Sentence, read_segmented
from kcrf.corpora.segmented import check_not_characters, read_predicted_words
from kcrf.metrics import segmentation_scores
from kcrf.metrics.scores import TextMismatch
from kcrf.readers import Reader, TagsOfStandard
from kcrf.readers.units import with_copies
from kcrf.tasks.errors import MismatchError, SettingError
from kcrf.tasks.task import DataFacts, FileOptions, Items, Task, Words, as_sentence, tagged_windows

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Segmentation(Task):
    """The words of texts without spaces between words, as in Chinese, by one or several segmentation standards. With
    several standards, each part of the data is a mapping from their names to lists of sentences. `check` converts it to
    one list of `Sentence`s with their standards."""

    name = "cws"
    command = "segment"
    settings = frozenset({"augment", "scheme", "standards"})
    defaults: Mapping[str, Any] = {"scheme": "bmes"}
    linear_weight = 0.5
    without_lexicon = 0.3
    choices: Mapping[str, tuple[Any, ...]] = {"scheme": ("bmes",), "units": ("characters",)}
    file_options = frozenset({"strip_tags", "words"})

    def read_file(self, path: str, options: FileOptions) -> Items:
        return [words for words in read_segmented(path, options.get("strip_tags", False)) if words]

    def file_lines(self, items: Items) -> list[str]:
        return [" ".join(words) for words in items]

    def check(self, name: str, items: Any) -> Items:
        if not isinstance(items, Mapping):
            checked = super().check(name, items)
            plain = [(number, sentence) for number, sentence in enumerate(checked, 1) if sentence.standard is None]
            lines = [(number, sentence.texts_of(sentence.spans)) for number, sentence in plain]
            check_not_characters(f"`{name}`", lines)
            return checked
        sentences = []
        for standard, part in items.items():
            if not isinstance(standard, str) or not _NAME.fullmatch(standard):  # a part of names of files and layers
                raise ValueError(
                    "The name of a standard needs 1 to 64 Latin letters, digits, `_`, `.` or `-`, and begins with a "
                    f"letter or digit. Received: {standard!r}"
                )
            checked = super().check(f"{name}[{standard!r}]", part)
            sentences += [replace(sentence, standard=standard) for sentence in checked]
        return sentences

    def as_sentence(self, source: str, item: Any) -> Sentence:
        return as_sentence(item, source)

    def content(self, items: list[Any]) -> list[Any]:
        standards = [sentence.standard for sentence in items]
        content = super().content(items)
        return content if not any(standards) else list(zip(content, standards, strict=True))

    def labels_to_balance(self, items: list[Any]) -> list[Any] | None:
        standards = [item.standard if isinstance(item, Sentence) else None for item in items]
        return standards if len({*standards}) > 1 else None

    def facts(self, user: Any, parts: Mapping[str, Items]) -> DataFacts:
        counts = {name: Counter(sentence.standard for sentence in part) for name, part in parts.items()}
        standards = tuple(user.standards or (() if set(counts["train"]) == {None} else counts["train"]))
        for name, received in counts.items():
            needed = set(standards or (None,))
            if not set(received) <= needed or name != "test" and set(received) < needed:
                words = f"each of the standards {', '.join(standards)}" if standards else "no standard, as `train`"
                raise ValueError(f"`{name}` needs sentences of {words}. Received: {', '.join(map(str, received))}")
        if standards and user.teacher is not None:
            raise SettingError("teacher", "needs a student of one segmentation standard", standards)
        return DataFacts(standards=standards)

    def windows(
        self, data: Any, facts: DataFacts, reader: Reader, items: Items, copies: Any = None, whole_spans: bool = False
    ) -> list[Any]:
        if not data.standards:
            return super().windows(data, facts, reader, items, copies, whole_spans)
        readings, sentences = reader.read_training(items, copies), with_copies(items, copies)
        windows = tagged_windows(sentences, readings, data.tag_scheme(), whole_spans)
        standards = [s.standard for s, reading in zip(sentences, readings, strict=True) for _ in reading.windows]
        return [
            (inputs, TagsOfStandard(tags, standard, data.standards))
            for (inputs, tags), standard in zip(windows, standards, strict=True)
        ]

    def describe(self, config: Any) -> tuple[str, str]:
        learned, head = super().describe(config)
        standards = config.data.standards
        return (f" of the standards {', '.join(standards)}" if standards else "") + learned, head

    def read_scored(self, path: str, options: FileOptions, is_gold: bool) -> Items:
        read = read_segmented if is_gold else read_predicted_words
        return read(path, options.get("strip_tags", False))

    def predicted_items(self, predictions: list[dict[str, Any]], member: str) -> Items:
        return [[item["text"][start:end] for start, end, *_ in sorted(item[member])] for item in predictions]

    def scores(self, gold: Items, predicted: Items, words: Words = None, labels: Sequence[str] = ()) -> dict[str, Any]:
        if len(gold) != len(predicted):
            received = f"{len(predicted)} lines, in the gold {len(gold)}"
            raise MismatchError(f"needs a line for each line of the gold. Received: {received}")
        try:
            return segmentation_scores(gold, predicted, words)
        except TextMismatch as error:
            raise MismatchError(str(error), error.line) from None
