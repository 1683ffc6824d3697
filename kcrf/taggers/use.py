"""Segments texts into words and finds entities, with their probabilities and the next best alternatives."""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from math import exp, inf, log
from os import PathLike
from typing import Any

from kcrf.readers.lexicon import LENGTHS
from kcrf.taggers.decoding import ignore
from kcrf.taggers.k_best import join_windows
from kcrf.taggers.known_spans import Known, check_spans, latin_runs, matches, overlapping
from kcrf.taggers.line_segmenter import LineSegmenter
from kcrf.taggers.linear_networks import LinearTaggingNetwork
from kcrf.taggers.open_model import load_tagger
from kcrf.taggers.ready import ready_segmenter
from kcrf.taggers.tokens import as_given

__all__ = ["Entity", "EntityRecognizer", "WordSegmenter"]


_COUNT = 5  # of a word of the user without a count: the largest that the lexicon tells apart


class WordSegmenter:
    """Cuts text into words: with the model that comes with kcrf, or with one of your own.

    No character is lost: joined, the words are the text without its white space, whatever the text.

    Args:
        run_dir: A folder that `kcrf train --task cws` wrote, or a file that `kcrf export` made of it. Defaults to None:
            a small model for modern Chinese, which needs onnxruntime or a backend of Keras. It was trained on 3,997
            sentences of UD Chinese GSD; kcrf/taggers/data/zh_gsd/README.md says how well it does.
        words: A dictionary of the user's own: strings, or a mapping from strings to how often each counts as having
            been seen in training, 5 where that is None. A model trained from scratch takes words of 2 to 5 characters
            into its lexicon and decides for itself; it warns of others. Defaults to none.
        force_words: Whether `words`, of any length, are words wherever they stand: from left to right, the longest of
            those that begin at one place. Defaults to False.
        keep_latin: Whether runs of Latin letters and digits, such as Python3 and 3.14, are never cut. Defaults to True.

    Raises:
        FileNotFoundError: It is no run folder, or a file is missing.
        ValueError: It was written by a newer version or for another task, or a file in it is damaged; or one of `words`
            is empty, has white space or a count that is not positive, or the model has no lexicon.

    Example:

        >>> segmenter = WordSegmenter("runs/pku")                   # doctest: +SKIP
        >>> segmenter.segment("北京大学生前来应聘")                  # doctest: +SKIP
        ['北京', '大学生', '前来', '应聘']
        >>> segmenter.segment("北京大学生前来应聘", spans=[(0, 4)])  # doctest: +SKIP
        ['北京大学', '生', '前来', '应聘']
    """

    def __init__(
        self,
        run_dir: str | PathLike[str] | None = None,
        words: Iterable[str] | Mapping[str, int | None] = (),
        force_words: bool = False,
        keep_latin: bool = True,
    ) -> None:
        run_dir = ready_segmenter() if run_dir is None else run_dir
        counts = _word_counts(words)
        self._tagger = load_tagger(run_dir, ["cws"])
        self._forced, self._keep_latin = set(counts if force_words else ()), keep_latin
        self._lengths = sorted(set(map(len, self._forced)), reverse=True)
        if counts and not force_words:
            self._add_to_lexicon(counts)
        network = self._tagger.network
        is_fast = isinstance(network, LinearTaggingNetwork) and network.model.constraints and not self._forced
        self._lines = LineSegmenter(network, self._tagger.reader, keep_latin) if is_fast else None

    def _add_to_lexicon(self, counts):
        if getattr(self._tagger.reader, "lexicon", None) is None:
            raise ValueError("`words` needs a model with a lexicon, or force_words=True. Received: a model without one")
        ignored = [word for word in counts if len(word) not in LENGTHS]
        if ignored:
            warnings.warn(
                f"{len(ignored)} of {len(counts)} `words` change nothing, such as {ignored[0]!r}: the model's lexicon "
                f"has words of {LENGTHS[0]} to {LENGTHS[-1]} characters. force_words=True takes words of any length",
                stacklevel=3,
            )
        self._tagger.reader = self._tagger.reader.with_words(counts)

    def segment(self, text: str, confidence: bool = False, spans: Iterable[tuple[int, int]] = ()) -> list[Any]:
        """The words of a text. White space ends a word and is left out.

        Args:
            text: A string of any length.
            confidence: Whether to return with each word the posterior probability that exactly this word stands there.
                Defaults to False.
            spans: Words that the text has, as `(start, end)` in its characters. The rest, and the probabilities, are
                what the model finds with these given. Defaults to none.

        Returns:
            A list of strings, or of `(word, probability)`.

        Raises:
            ValueError: Spans overlap, are not in the text or have white space in them.
        """
        return self.segment_batch([text], confidence=confidence, spans=[spans])[0]

    def segment_batch(
        self,
        texts: Iterable[str],
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
        confidence: bool = False,
        spans: Iterable[Iterable[tuple[int, int]]] | None = None,
    ) -> list[list[Any]]:
        """The words of several texts.

        Args:
            texts: Iterable of strings of any length.
            batch_size: Windows of up to 128 characters in a batch. Defaults to 64.
            on_batch: Called after each batch with the number of characters whose tags it decided.
            confidence: As for `segment`.
            spans: For each text what `segment` takes. Defaults to None: none.

        Returns:
            A list with what `segment` returns for each text.
        """
        texts = _checked_strings(_as_list(texts, "segment"))
        if self._lines is not None and spans is None and not confidence:
            return [line.split(" ") if line else [] for line in self._lines.segment(texts, on_batch)]
        rows, known = self._parts(texts, spans)
        parts = list(chain.from_iterable(rows))
        found = self._tagger.spans(parts, batch_size, on_batch, confidence, known)
        words = iter(
            [(part[start:end], *sure) if sure else part[start:end] for start, end, *sure in spans]
            for part, spans in zip(parts, found, strict=True)
        )
        return [list(chain.from_iterable(islice(words, len(row)))) for row in rows]

    def segment_lines(
        self, texts: Iterable[str], batch_size: int = 64, on_batch: Callable[[int], object] = ignore
    ) -> list[str]:
        """The words of several texts with a space between two, a list of strings; the fastest way with a linear model.

        Args:
            texts, batch_size, on_batch: As for `segment_batch`.
        """
        texts = _checked_strings(_as_list(texts, "segment"))
        if self._lines is not None:
            return self._lines.segment(texts, on_batch)
        return [" ".join(words) for words in self.segment_batch(texts, batch_size, on_batch)]

    def _parts(self, texts, spans):
        """What white space separates in each text, lists of strings; and of all these parts what is known."""
        rows, known = [], []
        for text, given in zip(texts, _one_each(spans, texts), strict=True):
            parts = list(re.finditer(r"\S+", text))
            rows.append([part.group() for part in parts])
            known += self._known(text, [part.span() for part in parts], check_spans(given, text))
        return rows, known

    def _known(self, text, parts, spans):
        """The `Known` of each part `(start, end)` of a text."""
        inside = [[(a - start, b - start) for a, b in overlapping(spans, start, end)] for start, end in parts]
        whole = (a >= 0 and b <= end - start for (start, end), row in zip(parts, inside, strict=True) for a, b in row)
        if sum(whole) < len(spans):
            raise ValueError(f"`spans` must be words, without white space. Received: {spans} in {text!r}")
        return [self._known_of_part(text[slice(*part)], given) for part, given in zip(parts, inside, strict=True)]

    def _known_of_part(self, part, given):
        found = matches(part, self._forced, self._lengths)
        forced = [span for span in found if not overlapping(given, *span)]
        return Known(sorted([*given, *forced]), latin_runs(part) if self._keep_latin else [])

    def top_k(self, text: str, k: int = 5, spans: Iterable[tuple[int, int]] = ()) -> list[tuple[float, list[str]]]:
        """The k most probable segmentations of a text.

        Args:
            text: A string of any length.
            k: How many. Defaults to 5.
            spans: As for `segment`.

        Returns:
            A list of at most k `(probability, words)`, best first.

        >>> segmenter.top_k("研究生命的起源", k=2)                  # doctest: +SKIP
        [(0.81, ['研究', '生命', '的', '起源']), (0.13, ['研究生', '命', '的', '起源'])]
        """
        return self.top_k_batch([text], k, spans=[spans])[0]

    def top_k_batch(
        self,
        texts: Iterable[str],
        k: int = 5,
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
        spans: Iterable[Iterable[tuple[int, int]]] | None = None,
    ) -> list[list[tuple[float, list[str]]]]:
        """A list with what `top_k` returns for each text; other arguments as for `segment_batch`."""
        rows, known = self._parts(_checked_strings(_as_list(texts, "top_k")), spans)
        found = iter(self._tagger.top_k(list(chain.from_iterable(rows)), k, batch_size, on_batch, known))
        return [_join_parts(row, islice(found, len(row)), k) for row in rows]


def _word_counts(words):
    """A dict from words to counts."""
    if isinstance(words, str):
        raise TypeError(f"`words` must be strings or a mapping from strings to counts. Received: {words!r}")
    counts = dict(words) if isinstance(words, Mapping) else dict.fromkeys(words)
    counts = {word: _COUNT if count is None else count for word, count in counts.items()}
    for word, count in counts.items():
        if not isinstance(word, str) or not re.fullmatch(r"\S+", word):
            raise ValueError(f"`words` must be strings without white space. Received: {word!r}")
        if not isinstance(count, int) or count < 1:
            raise ValueError(f"counts of `words` must be positive integers. Received: {word!r}: {count!r}")
    return counts


def _one_each(spans, texts):
    """The spans for each text."""
    spans = [()] * len(texts) if spans is None else list(spans)
    if len(spans) != len(texts):
        raise ValueError(f"`spans` needs a list for each of the {len(texts)} texts. Received: {len(spans)}")
    return spans


def _as_list(texts, method):
    """The texts as a list. A string is refused: its characters would each be taken for a text."""
    if isinstance(texts, str):
        raise TypeError(f"`texts` must be a list of strings; for one text call `{method}`. Received: {texts[:40]!r}")
    return list(texts)


def _checked_strings(texts):
    """The texts, all of them strings."""
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"texts must be strings. Received: {text!r}"[:200])
    return texts


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
        start, end: Where it is: `[start, end)`, in characters of a text, in tokens of a list of tokens.
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
        run_dir: A folder that `kcrf train --task ner` wrote, or a file that `kcrf export` made of it.
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

    A model whose units are words cuts a text into tokens by itself. Where the tokens are known, give them: a list of
    strings, or a `kcrf.corpora.Sentence` with its tokens. No entity then begins or ends inside a token.

        >>> recognizer = EntityRecognizer("runs/english")           # doctest: +SKIP
        >>> recognizer.recognize(["Kim", "lives", "in", "Leeds"])   # doctest: +SKIP
        [Entity(start=0, end=1, label='PER', text='Kim', confidence=0.97), ...]
    """

    def __init__(self, run_dir: str | PathLike[str], min_confidence: float | None = None) -> None:
        if min_confidence is not None and not 0 < min_confidence < 1:
            raise ValueError(f"`min_confidence` must be above 0 and below 1. Received: {min_confidence!r}")
        self._tagger = load_tagger(run_dir, ["ner"])
        if min_confidence is not None:
            self._tagger.min_confidence = min_confidence

    def recognize(self, text: Any, spans: Iterable[tuple[int, int, str]] = ()) -> list[Entity]:
        """The entities of a text.

        Args:
            text: A string of any length, the list of its tokens, or a `kcrf.corpora.Sentence`, whose tokens are used.
            spans: Entities that the text has, as `(start, end, label)` in its characters, or in tokens of a list. The
                rest, and the probabilities, are what the model finds with these given. Defaults to none.

        Returns:
            A list of `Entity` from left to right.

        Raises:
            ValueError: Spans overlap, are not in the text or have a label that the model does not know.
        """
        return self.recognize_batch([text], spans=[spans])[0]

    def recognize_batch(
        self,
        texts: Iterable[Any],
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
        spans: Iterable[Iterable[tuple[int, int, str]]] | None = None,
    ) -> list[list[Entity]]:
        """The entities of several texts.

        Args:
            texts: Iterable of what `recognize` takes.
            batch_size: Windows of up to 128 positions in a batch. Defaults to 64.
            on_batch: Called after each batch with the number of characters whose tags it decided.
            spans: For each text what `recognize` takes. Defaults to None: none.

        Returns:
            A list with what `recognize` returns for each text.
        """
        given = list(map(as_given, _as_list(texts, "recognize")))
        texts, tokens = [item.text for item in given], [item.tokens for item in given]
        found = self._tagger.spans(texts, batch_size, on_batch, True, self._known(given, spans), tokens)
        return list(map(_entities, given, found))

    def _known(self, given, spans):
        types, spans = self._tagger.scheme.types, _one_each(spans, given)
        return [
            Known(item.in_characters(check_spans(row, item, types)), []) for item, row in zip(given, spans, strict=True)
        ]

    def top_k(
        self, text: Any, k: int = 5, spans: Iterable[tuple[int, int, str]] = ()
    ) -> list[tuple[float, list[Entity]]]:
        """The k most probable analyses of a text.

        Args:
            text: As for `recognize`.
            k: How many. Defaults to 5.
            spans: As for `recognize`. Defaults to none.

        Returns:
            A list of at most k `(probability, entities)`, best first.
        """
        return self.top_k_batch([text], k, spans=[spans])[0]

    def top_k_batch(
        self,
        texts: Iterable[Any],
        k: int = 5,
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
        spans: Iterable[Iterable[tuple[int, int, str]]] | None = None,
    ) -> list[list[tuple[float, list[Entity]]]]:
        """A list with what `top_k` returns for each text; other arguments as for `recognize_batch`."""
        given = list(map(as_given, _as_list(texts, "top_k")))
        texts, tokens = [item.text for item in given], [item.tokens for item in given]
        found = self._tagger.top_k(texts, k, batch_size, on_batch, self._known(given, spans), tokens)
        return [[(p, _entities(item, spans)) for p, spans in best] for item, best in zip(given, found, strict=True)]


def _entities(given, spans):
    """The `Entity` of each span in characters of a `Given`; none for white space, as between two tokens."""
    spans = [span for span in spans if not given.text[slice(*span[:2])].isspace()]
    return [
        Entity(start, end, label, given.text[slice(*span[:2])], *sure)
        for span, (start, end, label, *sure) in zip(spans, given.as_counted(spans), strict=True)
    ]
