"""Segments texts into words and finds entities, with their probabilities and the next best alternatives."""

import re
from dataclasses import dataclass
from itertools import chain, islice
from math import exp, inf, log

from kcrf.taggers.decoding import ignore, load_tagger
from kcrf.taggers.k_best import join_windows

__all__ = ["Entity", "EntityRecognizer", "WordSegmenter"]


def _load(path, task):
    """The `Tagger` of a run folder, which must be one of the task."""
    tagger = load_tagger(path)
    if bool(tagger.scheme.types) != (task == "ner"):
        raise ValueError(f"{path}: needs a run of --task {task}. Received: one with the tags {tagger.scheme.labels}")
    return tagger


class WordSegmenter:
    """Cuts text into words with the model of a run folder.

    No character is lost: joined, the words are the text without its white space, whatever the text.

    Args:
        run_dir: A folder that `kcrf train --task cws` wrote.

    Raises:
        FileNotFoundError: It is no run folder, or a file is missing.
        ValueError: It was written by a newer version or for another task, or a file in it is damaged.

    Example:

        >>> segmenter = WordSegmenter("runs/pku")                   # doctest: +SKIP
        >>> segmenter.segment("北京大学生前来应聘")                  # doctest: +SKIP
        ['北京', '大学生', '前来', '应聘']
    """

    def __init__(self, run_dir):
        self._tagger = _load(run_dir, "cws")

    def segment(self, text, confidence=False):
        """The words of a text. White space ends a word and is left out.

        Args:
            text: A string of any length.
            confidence: Whether to return with each word the posterior probability that exactly this word stands there.
                Defaults to False.

        Returns:
            A list of strings, or of `(word, probability)`.
        """
        return self.segment_batch([text], confidence=confidence)[0]

    def segment_batch(self, texts, batch_size=64, on_batch=ignore, confidence=False):
        """The words of several texts.

        Args:
            texts: Iterable of strings of any length.
            batch_size: Windows of up to 128 characters in a batch. Defaults to 64.
            on_batch: Called after each batch with the number of characters whose tags it decided.
            confidence: As for `segment`.

        Returns:
            A list with what `segment` returns for each text.
        """
        rows = [re.findall(r"\S+", text) for text in _as_list(texts, "segment")]  # what white space separates
        parts = list(chain.from_iterable(rows))
        found = self._tagger.spans(parts, batch_size, on_batch, confidence)
        words = iter(
            [(part[start:end], *sure) if sure else part[start:end] for start, end, *sure in spans]
            for part, spans in zip(parts, found, strict=True)
        )
        return [list(chain.from_iterable(islice(words, len(row)))) for row in rows]

    def top_k(self, text, k=5):
        """The k most probable segmentations of a text.

        Args:
            text: A string of any length.
            k: How many. Defaults to 5.

        Returns:
            A list of at most k `(probability, words)`, best first.

        >>> segmenter.top_k("研究生命的起源", k=2)                  # doctest: +SKIP
        [(0.81, ['研究', '生命', '的', '起源']), (0.13, ['研究生', '命', '的', '起源'])]
        """
        return self.top_k_batch([text], k)[0]

    def top_k_batch(self, texts, k=5, batch_size=64, on_batch=ignore):
        """A list with what `top_k` returns for each text; other arguments as for `segment_batch`."""
        rows = [re.findall(r"\S+", text) for text in _as_list(texts, "top_k")]
        found = iter(self._tagger.top_k(list(chain.from_iterable(rows)), k, batch_size, on_batch))
        return [_join_parts(row, islice(found, len(row)), k) for row in rows]


def _as_list(texts, method):
    """The texts as a list. A string is refused: its characters would each be taken for a text."""
    if isinstance(texts, str):
        raise TypeError(f"`texts` must be a list of strings; for one text call `{method}`. Received: {texts[:40]!r}")
    return list(texts)


def _join_parts(parts, found, k):
    """The k best `(probability, words)` of a text, out of those of its parts, which are independent of each other."""
    ways = [
        {tuple(part[start:end] for start, end in spans): log(p) if p else -inf for p, spans in analyses}
        for part, analyses in zip(parts, found, strict=True)
    ]
    return [(exp(score), words) for words, score in join_windows(ways, k)]


@dataclass(frozen=True)
class Entity:
    """An entity in a text.

    Attributes:
        start, end: Where it is in the text: `[start, end)`, in characters.
        label: Its type.
        text: Its characters.
        confidence: The posterior probability that exactly this span is an entity of this type. None in the results of
            `top_k`, which have one probability for all of their entities together.
    """

    start: int
    end: int
    label: str
    text: str
    confidence: float | None = None


class EntityRecognizer:
    """Finds entities with the model of a run folder, in texts of any length.

    Args:
        run_dir: A folder that `kcrf train --task ner` wrote.
        min_confidence: Above 0 and below 1: find all entities whose posterior is at least that, and of those that
            overlap the surest; a lower one finds more. Defaults to None: as the run was trained, or if it was trained
            without, the entities of the best path.

    Raises:
        FileNotFoundError: It is no run folder, or a file is missing.
        ValueError: It was written by a newer version or for another task, or a file in it is damaged; or
            `min_confidence` is out of its range.

    Example:

        >>> recognizer = EntityRecognizer("runs/people")            # doctest: +SKIP
        >>> recognizer.recognize("李雷住在上海。")                   # doctest: +SKIP
        [Entity(start=0, end=2, label='PER', text='李雷', confidence=0.98), ...]
    """

    def __init__(self, run_dir, min_confidence=None):
        if min_confidence is not None and not 0 < min_confidence < 1:
            raise ValueError(f"`min_confidence` must be above 0 and below 1. Received: {min_confidence!r}")
        self._tagger = _load(run_dir, "ner")
        if min_confidence is not None:
            self._tagger.min_confidence = min_confidence

    def recognize(self, text):
        """The entities of a text, a list of `Entity` from left to right."""
        return self.recognize_batch([text])[0]

    def recognize_batch(self, texts, batch_size=64, on_batch=ignore):
        """The entities of several texts.

        Args:
            texts: Iterable of strings of any length.
            batch_size: Windows of up to 128 positions in a batch. Defaults to 64.
            on_batch: Called after each batch with the number of characters whose tags it decided.

        Returns:
            A list with what `recognize` returns for each text.
        """
        texts = _as_list(texts, "recognize")
        found = self._tagger.spans(texts, batch_size, on_batch, confidence=True)
        return [_entities(text, spans) for text, spans in zip(texts, found, strict=True)]

    def top_k(self, text, k=5):
        """The k most probable analyses of a text: a list of at most k `(probability, entities)`, best first."""
        return self.top_k_batch([text], k)[0]

    def top_k_batch(self, texts, k=5, batch_size=64, on_batch=ignore):
        """A list with what `top_k` returns for each text; other arguments as for `recognize_batch`."""
        texts = _as_list(texts, "top_k")
        found = self._tagger.top_k(texts, k, batch_size, on_batch)
        return [[(p, _entities(text, spans)) for p, spans in best] for text, best in zip(texts, found, strict=True)]


def _entities(text, spans):
    return [Entity(start, end, label, text[start:end], *sure) for start, end, label, *sure in spans]
