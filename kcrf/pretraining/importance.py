"""The importance of words to a task model, for selective masking."""

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.corpora import Example, Sentence
from kcrf.progress_bars import bar
from kcrf.readers.windows import windows
from kcrf.runs import RunFolder
from kcrf.runs.exported import is_exported
from kcrf.taggers import TextClassifier, load_tagger
from kcrf.taggers.spans import Part
from kcrf.tokenizers.vocabularies import continues_word

IMPORTANT = "important"  # the label of the words that `important_words` finds
_HIDDEN = "█"  # replaces hidden characters; no model knows it
_WORD = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]|[^\W\u3400-\u9fff\uf900-\ufaff]+|[^\w\s]")
_LINES_AT_A_TIME, _TEXTS_AT_A_TIME = 32, 2000


class TaskModel:
    """Measures the importance of words to a task model: the change of its entropy when the word is hidden.

    If a model recognizes entities of the single type "important", as trained on the result of `important_words`, it is
    the probability that the word is part of such an entity.
    """

    def __init__(self, run_dir: str | PathLike[str]) -> None:
        if is_exported(run_dir):
            raise ValueError(f"{run_dir}: needs a folder that `kcrf train` wrote. Received: an exported file")
        config = RunFolder(run_dir).read_config().config
        self._finds_important = config.data.types == (IMPORTANT,)
        if config.task.output == "label":
            if config.facts.pairs or not config.data.labels:
                received = "pairs" if config.facts.pairs else "numbers"
                raise ValueError(
                    f"{run_dir}: needs a model that gives labels to single texts. Received: one of {received}"
                )
        self._model: Any = load_tagger(run_dir)

    def importance(self, lines: Sequence[str], words: Sequence[Any]) -> list[np.ndarray]:
        """The importance of each word."""
        if self._finds_important:
            return [
                np.array([probabilities[start:end].max(initial=0.0) for start, end in spans])
                for probabilities, spans in zip(self._probabilities(lines), words, strict=True)
            ]
        places = [place for line, spans in zip(lines, words, strict=True) for place in _in_windows(line, spans)]
        texts = [text for text, _, _ in places]
        distinct = list(dict.fromkeys(texts))
        whole = dict(zip(distinct, self._entropies(distinct), strict=True))
        before = np.array([whole[text] for text in texts])
        after = self._entropies([text[:start] + _HIDDEN * (end - start) + text[end:] for text, start, end in places])
        return np.split(np.abs(after - before), np.cumsum([len(spans) for spans in words])[:-1])

    def _probabilities(self, lines: Sequence[str]) -> list[np.ndarray]:
        probabilities = []
        for line, (units, marginals) in zip(lines, self._model.decoder.marginals(_parts(lines)), strict=True):
            of_line = np.zeros(len(line))
            for (start, end), outside in zip(units, marginals[:, 0]):
                of_line[start:end] = 1 - outside
            probabilities.append(of_line)
        return probabilities

    def _entropies(self, texts: Sequence[str]) -> np.ndarray:
        entropies = [np.zeros(0)]
        for first in range(0, len(texts), _TEXTS_AT_A_TIME):
            part = texts[first : first + _TEXTS_AT_A_TIME]
            if isinstance(self._model, TextClassifier):
                entropies.append(self._model.uncertainties(part))
            else:
                entropies.append(self._model.decoder.uncertainties(_parts(part))[0])
        return np.concatenate(entropies)


def _parts(texts: Sequence[str]) -> list[Part]:
    return [Part(text, []) for text in texts]


def _in_windows(line: str, words: Any) -> Iterator[tuple[str, int, int]]:
    """Yields for each word the text of at most 128 characters around it, and its `(start, end)` there."""
    line_windows = windows(line)
    keeps = [keep for _, _, keep, _ in line_windows]
    for start, end in words:
        first, stop, _, _ = line_windows[bisect(keeps, start) - 1]
        yield line[first:stop], start - first, min(end, stop) - first


def important_words(
    classifier: TextClassifier, examples: Sequence[Example], threshold: float = 0.05, batch_size: int = 64
) -> list[Sentence]:
    """Marks the words from which a classifier can tell the labels of texts.

    Words are appended to an empty text one by one. If the label becomes almost as probable as for the whole text, the
    last word is important. It is removed again before the next word is appended. Source: Gu et al., 2020, "Train No
    Evil: Selective Masking for Task-Guided Pre-Training", https://arxiv.org/abs/2004.09733, section 2.2. Each Chinese
    character is a word.
    """
    if classifier.pairs or not classifier.labels:
        received = "pairs" if classifier.pairs else "numbers"
        raise ValueError(f"`classifier` must give labels to single texts. Received: one of {received}")
    pair = next((example for example in examples if example.text_b is not None), None)
    if pair is not None:
        raise ValueError(f"{pair.source or '`examples`'}: needs single texts. Received: a pair, {pair.texts!r}")
    unknown = next((example for example in examples if example.label not in classifier.labels), None)
    if unknown is not None:
        raise ValueError(
            f"{unknown.source or '`examples`'}: needs a label of the classifier, one of "
            f"{', '.join(classifier.labels)}. Received: {unknown.label!r}"
        )
    words = [[match.span() for match in _WORD.finditer(example.text)] for example in examples]
    whole = _probabilities_of_labels(classifier, examples, [example.text for example in examples], batch_size)
    shortened, important = [""] * len(examples), [[] for _ in examples]
    with bar() as shown:
        for step in shown.track(range(max(map(len, words), default=0)), description="words"):
            open_ones = [number for number, spans in enumerate(words) if step < len(spans)]
            begins = [words[i][step - 1][1] if step else 0 for i in open_ones]  # of the white space before the word
            longer = [
                shortened[i] + examples[i].text[begin : words[i][step][1]]
                for i, begin in zip(open_ones, begins, strict=True)
            ]
            shares = _probabilities_of_labels(classifier, [examples[i] for i in open_ones], longer, batch_size)
            for i, text, share in zip(open_ones, longer, shares, strict=True):
                if whole[i] - share < threshold:
                    important[i].append((*words[i][step], IMPORTANT))
                else:
                    shortened[i] = text
    return [Sentence(example.text, spans) for example, spans in zip(examples, important, strict=True)]


def _probabilities_of_labels(
    classifier: TextClassifier, examples: Sequence[Example], texts: Sequence[str], batch_size: int
) -> list[float]:
    """The probabilities of the labels of examples, for other texts."""
    predictions = classifier.predict(texts, batch_size)
    return [prediction.probabilities[example.label] for prediction, example in zip(predictions, examples, strict=True)]


@contextmanager
def importance_writer(path: Path, vocabulary: dict[str, int], task_model: TaskModel) -> Iterator[Any]:
    """A context with a function for `write_tokens(on_batch=...)`, which writes the importance of each token's word."""
    is_inside = continues_word(vocabulary)
    with open(path, "wb") as file, bar() as shown:
        task = shown.add_task("importance of words", total=None)

        def write(lines: Any, encodings: Any) -> None:
            for first in range(0, len(lines), _LINES_AT_A_TIME):
                part = slice(first, first + _LINES_AT_A_TIME)
                for importance in _importance_of_tokens(task_model, lines[part], encodings[part], is_inside):
                    importance.tofile(file)
                shown.advance(task, len(lines[part]))

        yield write


def _importance_of_tokens(
    task_model: TaskModel, lines: Any, encodings: Any, is_inside: np.ndarray
) -> Iterator[np.ndarray]:
    begins = [np.flatnonzero(~is_inside[np.array(e.token_ids)])[:-1] for e in encodings]  # without [SEP]
    words = [_word_spans(e.offsets, first) for e, first in zip(encodings, begins, strict=True)]
    importance_of_words = task_model.importance(lines, words)
    for encoding, first, of_words in zip(encodings, begins, importance_of_words, strict=True):
        importance = np.zeros(len(encoding.token_ids), np.float32)
        importance[:-1] = np.repeat(of_words, np.diff([*first, len(importance) - 1]))
        yield importance


def _word_spans(offsets: Any, first: Any) -> list[tuple[int, int]]:
    """The `(start, end)` of each word in characters, from the numbers of first tokens; the last token is `[SEP]`."""
    stops = [*first[1:], len(offsets) - 1]
    return [(int(offsets[a][0]), int(offsets[b - 1][1])) for a, b in zip(first, stops)]
