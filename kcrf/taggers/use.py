"""Uses trained models: text in, words or entities out, with their probabilities and the next best alternatives."""

import re
from dataclasses import dataclass

from kcrf.taggers.decoding import ignore, load_tagger

__all__ = ["Entity", "EntityRecognizer", "WordSegmenter"]


def _load_for(task, path):
    tagger = load_tagger(path)
    if bool(tagger.scheme.types) != (task == "ner"):
        raise ValueError(f"{path}: needs a run of --task {task}. Received: one with the tags {tagger.scheme.labels}")
    return tagger


class WordSegmenter:
    """Cuts text into words with the model of a run folder.

    Nothing is lost: the words are the text without its white space, to the character, whatever the text.

    Args:
        run_dir: A folder that `kcrf train --task cws` wrote.

    Raises:
        FileNotFoundError: It is no run folder, or misses a file.
        ValueError: It was written by a newer version or for another task, or a file in it is damaged.

    Example:

        >>> segmenter = WordSegmenter("runs/pku")                   # doctest: +SKIP
        >>> segmenter.segment("北京大学生前来应聘")                  # doctest: +SKIP
        ['北京', '大学生', '前来', '应聘']
    """

    def __init__(self, run_dir):
        self._tagger = _load_for("cws", run_dir)

    def segment(self, text, confidence=False):
        """The words of a text, a list of strings. White space ends a word and is left out.

        Args:
            text: A string.
            confidence: Whether to return `(word, probability)` instead: the posterior that this word stands there.
                Defaults to False.
        """
        return self.segment_batch([text], confidence=confidence)[0]

    def segment_batch(self, texts, batch_size=64, on_batch=ignore, confidence=False):
        """The words of several texts, one list each.

        Args:
            texts: Iterable of strings of any length.
            batch_size: Windows of up to 128 characters at a time. Defaults to 64.
            on_batch: Called after each batch with the number of characters it settled.
            confidence: As for `segment`.
        """
        rows = [re.findall(r"\S+", text) for text in texts]
        pieces = [piece for row in rows for piece in row]
        found = self._tagger.spans(pieces, batch_size, on_batch, confidence)
        words = iter(
            [(piece[start:end], *sure) if sure else piece[start:end] for start, end, *sure in spans]
            for piece, spans in zip(pieces, found, strict=True)
        )
        return [[word for _ in row for word in next(words)] for row in rows]

    def top_k(self, text, k=5):
        """The k most probable segmentations of a text, best first, each `(probability, words)`.

        >>> segmenter.top_k("研究生命的起源", k=2)                  # doctest: +SKIP
        [(0.81, ['研究', '生命', '的', '起源']), (0.13, ['研究生', '命', '的', '起源'])]
        """
        return self.top_k_batch([text], k)[0]

    def top_k_batch(self, texts, k=5, batch_size=64, on_batch=ignore):
        """`top_k` of several texts, one list each; arguments as for `segment_batch`."""
        rows = [re.findall(r"\S+", text) for text in texts]
        found = iter(self._tagger.top_k([piece for row in rows for piece in row], k, batch_size, on_batch))
        return [_best_rows(row, found, k) for row in rows]


def _best_rows(pieces, found, k):
    """The k best `(probability, words)` of a text out of those of its pieces, which come one after the other."""
    best = [(1.0, [])]
    for piece in pieces:
        ways = [(q, [piece[start:end] for start, end in spans]) for q, spans in next(found)]
        longer = [(p * q, words + more) for p, words in best for q, more in ways]
        best = sorted(longer, key=lambda item: -item[0])[:k]
    return best


@dataclass(frozen=True)
class Entity:
    """An entity in a text.

    Attributes:
        start, end: Its extent `[start, end)` in characters.
        label: Its type.
        text: `text[start:end]`.
        confidence: The posterior probability that exactly this span is an entity of this type; None where alternatives
            are listed, whose probability is that of all their entities together.
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
            overlap the surest; less finds more. Defaults to None: as the run was trained, which is those of the best
            path where nothing was said.

    Raises:
        FileNotFoundError: It is no run folder, or misses a file.
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
        self._tagger = _load_for("ner", run_dir)
        if min_confidence is not None:
            self._tagger.min_confidence = min_confidence

    def recognize(self, text):
        """The entities of a text, a list of `Entity` from left to right."""
        return self.recognize_batch([text])[0]

    def recognize_batch(self, texts, batch_size=64, on_batch=ignore):
        """The entities of several texts, one list each.

        Args:
            texts: Iterable of strings of any length.
            batch_size: Windows of up to 128 positions at a time. Defaults to 64.
            on_batch: Called after each batch with the number of characters it settled.
        """
        texts = list(texts)
        found = self._tagger.spans(texts, batch_size, on_batch, confidence=True)
        return [_entities(text, spans) for text, spans in zip(texts, found, strict=True)]

    def top_k(self, text, k=5):
        """The k most probable analyses of a text, best first, each `(probability, entities)`."""
        return self.top_k_batch([text], k)[0]

    def top_k_batch(self, texts, k=5, batch_size=64, on_batch=ignore):
        """`top_k` of several texts, one list each; arguments as for `recognize_batch`."""
        texts = list(texts)
        found = self._tagger.top_k(texts, k, batch_size, on_batch)
        return [[(p, _entities(text, spans)) for p, spans in best] for text, best in zip(texts, found, strict=True)]


def _entities(text, spans):
    return [Entity(start, end, label, text[start:end], *sure) for start, end, label, *sure in spans]
