"""`WordSegmenter`: segments texts into words, with probabilities and the k best segmentations."""

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice
from math import exp, inf, log
from os import PathLike

from kcrf.readers.lexicon import LENGTHS
from kcrf.readers.padding import check_batch_size
from kcrf.taggers.built_in_model import built_in_segmenter
from kcrf.taggers.decoding import ignore
from kcrf.taggers.k_best import join_windows
from kcrf.taggers.k_best_tagger import KBestTagger, warn_of_confidence
from kcrf.taggers.line_segmenter import LineSegmenter
from kcrf.taggers.linear_networks import LinearTaggingNetwork
from kcrf.taggers.open_model import load_tagger
from kcrf.taggers.span_constraints import SpanConstraints, check_spans, latin_runs, matches, overlapping
from kcrf.taggers.text_input import as_list, one_per_text

__all__ = ["WordSegmenter"]


_COUNT = 5  # of a word in the user dictionary without a count: the largest count that the lexicon distinguishes


class WordSegmenter(KBestTagger[list[str]]):
    """Segments text into words, with the built-in model or with a model that you trained.

    No character is lost: the concatenated words are the text without its white space.

    Args:
        run_dir: A folder that `kcrf train --task cws` wrote, or a file that `kcrf export` wrote. Defaults to None: a
            small linear model for modern Chinese, which needs only NumPy. It was trained on the 3,997 sentences of UD
            Chinese GSD; kcrf/taggers/data/zh_gsd/README.md lists its scores.
        words: A user dictionary: strings, or a mapping from strings to counts. A count says how often the word counts
            as having occurred in the training data; None means 5. A model with a lexicon adds words of 2 to 5
            characters to its lexicon features and warns about other words. Defaults to no words.
        force_words: Whether `words`, of any length, are always segmented as words: from left to right, the longest
            match at each position. Defaults to False.
        keep_latin: Whether runs of Latin letters and digits, such as Python3 and 3.14, are never split. Defaults to
            True.

    Raises:
        FileNotFoundError: `run_dir` is not a run folder, or a file is missing.
        ValueError: `run_dir` was written by a newer version or for another task, or a file in it is damaged; or one of
            `words` is empty, contains white space or has a count that is not positive; or the model has no lexicon.

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
        run_dir = built_in_segmenter() if run_dir is None else run_dir
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

    def segment(self, text: str, confidence: bool = False, spans: Iterable[tuple[int, int]] = ()) -> list[str]:
        """Segments a text. White space ends a word and is omitted.

        Args:
            text: A string of any length.
            confidence: Deprecated: use `segment_with_confidence`, whose result True returns. Defaults to False.
            spans: Words that you already know, as `(start, end)` in characters of the text. The other words are
                predicted given these words. Defaults to no words.

        Returns:
            A list of strings.

        Raises:
            ValueError: Spans overlap, are not in the text, or contain white space.
        """
        if confidence:
            warn_of_confidence("segment")
            return self.segment_with_confidence(text, spans)  # type: ignore[return-value]
        return self.segment_batch([text], spans=[spans])[0]

    def segment_with_confidence(self, text: str, spans: Iterable[tuple[int, int]] = ()) -> list[tuple[str, float]]:
        """Segments a text, and returns each word with its posterior probability.

        Args:
            text, spans: As for `segment`. All probabilities are conditioned on `spans`.

        Returns:
            A list of `(word, probability)`.

        Raises:
            ValueError: As for `segment`.

        >>> segmenter.segment_with_confidence("今天天气")              # doctest: +SKIP
        [('今天', 0.998), ('天气', 0.987)]
        """
        return self.segment_batch_with_confidence([text], spans=[spans])[0]

    def segment_batch(
        self,
        texts: Iterable[str],
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
        confidence: bool = False,
        spans: Iterable[Iterable[tuple[int, int]]] | None = None,
    ) -> list[list[str]]:
        """Segments several texts.

        Args:
            texts: Iterable of strings of any length.
            batch_size: Number of windows of up to 128 characters per batch. Defaults to 64.
            on_batch: Called after each batch with the number of characters that have been tagged.
            confidence: Deprecated: use `segment_batch_with_confidence`, whose result True returns. Defaults to False.
            spans: For each text, the `spans` of `segment`. Defaults to None: no spans.

        Returns:
            A list with the result of `segment` for each text.
        """
        if confidence:
            warn_of_confidence("segment_batch")
            return self.segment_batch_with_confidence(texts, batch_size, on_batch, spans)  # type: ignore[return-value]
        check_batch_size(batch_size)
        texts = _checked_strings(as_list(texts, "segment"))
        if self._lines is not None and spans is None:
            return [line.split(" ") if line else [] for line in self._lines.segment(texts, on_batch)]
        words_of_texts = self._words(texts, batch_size, on_batch, False, spans)
        return [[word for (word,) in words] for words in words_of_texts]

    def segment_batch_with_confidence(
        self,
        texts: Iterable[str],
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
        spans: Iterable[Iterable[tuple[int, int]]] | None = None,
    ) -> list[list[tuple[str, float]]]:
        """Segments several texts, and returns each word with its posterior probability.

        Args:
            texts, batch_size, on_batch, spans: As for `segment_batch`.

        Returns:
            A list with the result of `segment_with_confidence` for each text.
        """
        check_batch_size(batch_size)
        return self._words(_checked_strings(as_list(texts, "segment")), batch_size, on_batch, True, spans)

    def _words(self, texts, batch_size, on_batch, confidence, spans):
        """For each text its words as tuples: `(word, probability)` with confidence, else `(word,)`."""
        parts_of_texts, constraints = self._parts(texts, spans)
        parts = list(chain.from_iterable(parts_of_texts))
        spans_of_parts = self._tagger.spans(parts, batch_size, on_batch, confidence, constraints)
        words = iter(
            [(part[start:end], *confidences) for start, end, *confidences in spans]
            for part, spans in zip(parts, spans_of_parts, strict=True)
        )
        return [list(chain.from_iterable(islice(words, len(parts_of_text)))) for parts_of_text in parts_of_texts]

    def segment_lines(
        self, texts: Iterable[str], batch_size: int = 64, on_batch: Callable[[int], object] = ignore
    ) -> list[str]:
        """Segments several texts into strings with spaces between the words. With a linear model, this is fastest.

        Args:
            texts, batch_size, on_batch: As for `segment_batch`.
        """
        check_batch_size(batch_size)
        texts = _checked_strings(as_list(texts, "segment"))
        if self._lines is not None:
            return self._lines.segment(texts, on_batch)
        return [" ".join(words) for words in self.segment_batch(texts, batch_size, on_batch)]

    def _parts(self, texts, spans):
        """The parts of each text between white space, lists of strings; and the constraints of all these parts."""
        parts_of_texts, constraints = [], []
        for text, text_spans in zip(texts, one_per_text(spans, texts), strict=True):
            parts = list(re.finditer(r"\S+", text))
            parts_of_texts.append([part.group() for part in parts])
            constraints += self._constraints(text, [part.span() for part in parts], check_spans(text_spans, text))
        return parts_of_texts, constraints

    def _constraints(self, text, parts, spans):
        """The `SpanConstraints` of each part `(start, end)` of a text."""
        inside = [[(a - start, b - start) for a, b in overlapping(spans, start, end)] for start, end in parts]
        whole = (
            a >= 0 and b <= end - start
            for (start, end), part_spans in zip(parts, inside, strict=True)
            for a, b in part_spans
        )
        if sum(whole) < len(spans):
            raise ValueError(f"`spans` must be words without white space. Received: {spans} in {text!r}")
        return [
            self._constraints_of_part(text[slice(*part)], part_spans)
            for part, part_spans in zip(parts, inside, strict=True)
        ]

    def _constraints_of_part(self, part, spans):
        dictionary_spans = matches(part, self._forced, self._lengths)
        forced = [span for span in dictionary_spans if not overlapping(spans, *span)]
        return SpanConstraints(sorted([*spans, *forced]), latin_runs(part) if self._keep_latin else [])

    def k_best(self, text: str, k: int = 5, spans: Iterable[tuple[int, int]] = ()) -> list[tuple[list[str], float]]:
        """The k best segmentations of a text.

        Args:
            text: A string of any length.
            k: The number of segmentations. Defaults to 5.
            spans: As for `segment`.

        Returns:
            A list of at most k `(words, probability)`, best first.

        >>> segmenter.k_best("研究生命的起源", k=2)                  # doctest: +SKIP
        [(['研究', '生命', '的', '起源'], 0.81), (['研究生', '命', '的', '起源'], 0.13)]
        """
        return self.k_best_batch([text], k, spans=[spans])[0]

    def k_best_batch(
        self,
        texts: Iterable[str],
        k: int = 5,
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
        spans: Iterable[Iterable[tuple[int, int]]] | None = None,
    ) -> list[list[tuple[list[str], float]]]:
        """A list with the result of `k_best` for each text; the other arguments are as for `segment_batch`."""
        parts_of_texts, constraints = self._parts(_checked_strings(as_list(texts, "k_best")), spans)
        analyses = iter(
            self._tagger.k_best(list(chain.from_iterable(parts_of_texts)), k, batch_size, on_batch, constraints)
        )
        return [_join_parts(parts_of_text, islice(analyses, len(parts_of_text)), k) for parts_of_text in parts_of_texts]


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


def _checked_strings(texts):
    """The texts, all of them strings."""
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"texts must be strings. Received: {text!r}"[:200])
    return texts


def _join_parts(parts, analyses_of_parts, k):
    """The k best `(words, probability)` of a text, from those of its parts, which are independent of each other."""
    ways = [
        {tuple(part[start:end] for start, end in spans): log(p) if p else -inf for spans, p in analyses}
        for part, analyses in zip(parts, analyses_of_parts, strict=True)
    ]
    return [(words, exp(score)) for words, score in join_windows(ways, k)]
