"""`WordSegmenter`: segments texts into words, with probabilities and the k best segmentations."""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain, islice
from os import PathLike
from typing import Any, Literal, overload

import numpy as np

from kcrf.networks.linear_networks import LinearTaggingNetwork
from kcrf.taggers.built_in_model import built_in_segmenter
from kcrf.taggers.decoding import ignore
from kcrf.taggers.k_best import join_parts
from kcrf.taggers.k_best_tagger import KBestTagger, warn_of_confidence
from kcrf.taggers.line_segmenter import LineSegmenter
from kcrf.taggers.open_model import load_tagger
from kcrf.taggers.suggestions import Suggester
from kcrf.taggers.text_input import checked_texts
from kcrf.taggers.text_splitter import TextSplitter
from kcrf.taggers.uncertainty import DEFAULT_STRATEGY, measure_of, score_of, sums_of
from kcrf.taggers.user_dictionary import forced_words, reader_with_words, words_of_user


class WordSegmenter(KBestTagger[list[str]], Suggester[list[Any]]):
    """Segments text into words, with the built-in model or with a model that you trained.

    No character is lost: the concatenated words are the text without its white space. With `tags=True`, methods also
    return the class of each word, such as its part of speech.

    Args:
        run_dir: A folder that `kcrf train --task cws` or `--task cws-pos` wrote, or a file that `kcrf export` wrote.
            Defaults to None: small linear models for modern Chinese, which need only NumPy: one of words, and for
            `tags=True` another one with universal parts of speech (UPOS). They were trained on the 3,997 sentences of
            UD Chinese GSD; kcrf/taggers/data/zh_gsd/README.md lists their scores.
        words: A user dictionary: strings, or a mapping from strings to counts, classes, `(count, class)` or None. A
            count says how often the word counts as having occurred in the training data; by default 5. A model with a
            lexicon adds words of 2 to 5 characters to its lexicon features and warns about other words. Defaults to no
            words.
        force_words: Whether `words`, of any length, are always segmented as words: from left to right, the longest
            match at each position. With a model of classes, they have the class that `words` gives. Defaults to False.
        keep_latin: Whether runs of Latin letters and digits, such as Python3 and 3.14, are never split. Defaults to
            True.
        standard: The segmentation standard, for a run of several. Defaults to None: the run has one.

    Attributes:
        classes: The classes of words, a tuple; empty for a model without classes, and for the built-in model of words.

    Raises:
        FileNotFoundError: `run_dir` is not a run folder, or a file is missing.
        ValueError: `run_dir` was written by a newer version or for another task, a file in it is damaged, or it has no
            such standard; one of `words` is empty, contains white space or has a count below 1; or it has no lexicon.

    Example:

        >>> segmenter = WordSegmenter("runs/pku")                   # doctest: +SKIP
        >>> segmenter.segment("北京大学生前来应聘")                  # doctest: +SKIP
        ['北京', '大学生', '前来', '应聘']
        >>> segmenter.segment("北京大学生前来应聘", spans=[(0, 4)])  # doctest: +SKIP
        ['北京大学', '生', '前来', '应聘']
        >>> WordSegmenter("runs/joint").segment("北京大学生前来应聘", tags=True)  # doctest: +SKIP
        [('北京', 'ns'), ('大学生', 'n'), ('前来', 'v'), ('应聘', 'v')]
    """

    def __init__(
        self,
        run_dir: str | PathLike[str] | None = None,
        words: Iterable[str] | Mapping[str, int | str | tuple[int | None, str | None] | None] = (),
        force_words: bool = False,
        keep_latin: bool = True,
        standard: str | None = None,
    ) -> None:
        own = words_of_user(words)
        self._built_in_options = (own, force_words, keep_latin) if run_dir is None else None
        self._built_in_with_classes: WordSegmenter | None = None
        run_dir = built_in_segmenter() if run_dir is None else run_dir
        self._tagger = load_tagger(run_dir, ["cws", "cws-pos"], standard)
        self.classes: tuple[str, ...] = self._tagger.scheme.types
        forced = forced_words(own, self.classes, stacklevel=3) if force_words else {}
        self._splitter = TextSplitter(forced, keep_latin, self.classes)
        if own and not force_words:
            counts = {word: count for word, (count, _) in own.items()}
            self._tagger.reader = reader_with_words(self._tagger.reader, counts, stacklevel=3)
        network = self._tagger.network
        is_linear = isinstance(network, LinearTaggingNetwork) and network.model.constraints
        is_fast = is_linear and not forced and not self.classes
        self._lines = LineSegmenter(network, self._tagger.reader, keep_latin) if is_fast else None

    @overload
    def segment(
        self, text: str, confidence: bool = ..., spans: Iterable[tuple[Any, ...]] = ..., tags: Literal[False] = ...
    ) -> list[str]: ...

    @overload
    def segment(
        self, text: str, confidence: bool = ..., spans: Iterable[tuple[Any, ...]] = ..., *, tags: Literal[True]
    ) -> list[tuple[str, str]]: ...

    def segment(
        self, text: str, confidence: bool = False, spans: Iterable[tuple[Any, ...]] = (), tags: bool = False
    ) -> list[Any]:
        """Segments a text. White space ends a word and is omitted.

        Args:
            text: A string of any length.
            confidence: Deprecated: use `segment_with_confidence`, whose result True returns. Defaults to False.
            spans: Words that you already know, as `(start, end)` in characters of the text. A model with classes also
                takes `(start, end, class)`. The other words, and classes that are not given, are predicted given these
                words. Defaults to no words.
            tags: Whether to return the class of each word. Needs a model of `kcrf train --task cws-pos`. Defaults to
                False.

        Returns:
            A list of strings; with `tags` a list of `(word, class)`. A word of which the tokenizer of a BERT leaves
            nothing, such as a control character, has the class "?".

        Raises:
            ValueError: Spans overlap, are not in the text, or contain white space; or a model without classes gets
                `tags=True` or a class.
        """
        if confidence:
            warn_of_confidence("segment")
            return self.segment_with_confidence(text, spans, tags)  # type: ignore[call-overload]
        return self.segment_batch([text], spans=[spans], tags=tags)[0]  # type: ignore[call-overload]

    @overload
    def segment_with_confidence(
        self, text: str, spans: Iterable[tuple[Any, ...]] = ..., tags: Literal[False] = ...
    ) -> list[tuple[str, float]]: ...

    @overload
    def segment_with_confidence(
        self, text: str, spans: Iterable[tuple[Any, ...]] = ..., *, tags: Literal[True]
    ) -> list[tuple[str, str, float]]: ...

    def segment_with_confidence(
        self, text: str, spans: Iterable[tuple[Any, ...]] = (), tags: bool = False
    ) -> list[Any]:
        """Segments a text, and returns each word with its posterior probability.

        Args:
            text, spans, tags: As for `segment`. All probabilities are conditioned on `spans`.

        Returns:
            A list of `(word, probability)`; with `tags` a list of `(word, class, probability)`, the probability that
            this is a word of this class.

        Raises:
            ValueError: As for `segment`.

        >>> segmenter.segment_with_confidence("今天天气")              # doctest: +SKIP
        [('今天', 0.998), ('天气', 0.987)]
        """
        return self.segment_batch_with_confidence([text], spans=[spans], tags=tags)[0]  # type: ignore[call-overload]

    @overload
    def segment_batch(
        self,
        texts: Iterable[str],
        batch_size: int = ...,
        on_batch: Callable[[int], object] = ...,
        confidence: bool = ...,
        spans: Iterable[Iterable[tuple[Any, ...]]] | None = ...,
        tags: Literal[False] = ...,
    ) -> list[list[str]]: ...

    @overload
    def segment_batch(
        self,
        texts: Iterable[str],
        batch_size: int = ...,
        on_batch: Callable[[int], object] = ...,
        confidence: bool = ...,
        spans: Iterable[Iterable[tuple[Any, ...]]] | None = ...,
        *,
        tags: Literal[True],
    ) -> list[list[tuple[str, str]]]: ...

    def segment_batch(
        self,
        texts: Iterable[str],
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
        confidence: bool = False,
        spans: Iterable[Iterable[tuple[Any, ...]]] | None = None,
        tags: bool = False,
    ) -> list[Any]:
        """Segments several texts.

        Args:
            texts: Iterable of strings of any length.
            batch_size: Number of windows of up to 128 characters per batch. Defaults to 64.
            on_batch: Called after each batch with the number of characters that have been tagged.
            confidence: Deprecated: use `segment_batch_with_confidence`, whose result True returns. Defaults to False.
            spans: For each text, the `spans` of `segment`. Defaults to None: no spans.
            tags: As for `segment`.

        Returns:
            A list with the result of `segment` for each text.
        """
        if confidence:
            warn_of_confidence("segment_batch")
            return self.segment_batch_with_confidence(texts, batch_size, on_batch, spans, tags)  # type: ignore[call-overload]
        segmenter, texts = self._segmenter_for(tags), checked_texts(texts, "segment", batch_size)
        if self._lines is not None and spans is None and not tags:
            return [line.split(" ") if line else [] for line in self._lines.segment(texts, on_batch)]
        words_of_texts = segmenter._words(texts, batch_size, on_batch, False, spans, tags)
        return words_of_texts if tags else [[word for (word,) in words] for words in words_of_texts]

    @overload
    def segment_batch_with_confidence(
        self,
        texts: Iterable[str],
        batch_size: int = ...,
        on_batch: Callable[[int], object] = ...,
        spans: Iterable[Iterable[tuple[Any, ...]]] | None = ...,
        tags: Literal[False] = ...,
    ) -> list[list[tuple[str, float]]]: ...

    @overload
    def segment_batch_with_confidence(
        self,
        texts: Iterable[str],
        batch_size: int = ...,
        on_batch: Callable[[int], object] = ...,
        spans: Iterable[Iterable[tuple[Any, ...]]] | None = ...,
        *,
        tags: Literal[True],
    ) -> list[list[tuple[str, str, float]]]: ...

    def segment_batch_with_confidence(
        self,
        texts: Iterable[str],
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
        spans: Iterable[Iterable[tuple[Any, ...]]] | None = None,
        tags: bool = False,
    ) -> list[Any]:
        """Segments several texts, and returns each word with its posterior probability.

        Args:
            texts, batch_size, on_batch, spans, tags: As for `segment_batch`.

        Returns:
            A list with the result of `segment_with_confidence` for each text.
        """
        segmenter, texts = self._segmenter_for(tags), checked_texts(texts, "segment", batch_size)
        return segmenter._words(texts, batch_size, on_batch, True, spans, tags)

    def _segmenter_for(self, tags):
        """This segmenter; if it is the built-in one and classes are wanted, the built-in one with classes."""
        if not tags or self.classes:
            return self
        if self._built_in_options is None:
            raise ValueError("`tags` needs a model of `kcrf train --task cws-pos`. Received: a model without classes")
        if self._built_in_with_classes is None:
            self._built_in_with_classes = WordSegmenter(built_in_segmenter(tags=True), *self._built_in_options)
        return self._built_in_with_classes

    def _words(self, texts, batch_size, on_batch, confidence, spans, tags):
        """For each text its words: tuples `(word, class, probability)`, without class or probability if not wanted."""
        parts_of_texts, constraints = self._splitter.split(texts, spans)
        parts = list(chain.from_iterable(parts_of_texts))
        predict = self._tagger.spans_with_confidence if confidence else self._tagger.spans
        spans_of_parts = predict(parts, batch_size, on_batch, constraints=constraints, classes=tags)
        words = iter(
            [(part[start:end], *class_and_probability) for start, end, *class_and_probability in spans]
            for part, spans in zip(parts, spans_of_parts, strict=True)
        )
        return [list(chain.from_iterable(islice(words, len(parts_of_text)))) for parts_of_text in parts_of_texts]

    def segment_lines(
        self,
        texts: Iterable[str],
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
        tags: bool = False,
    ) -> list[str]:
        """Segments several texts into strings with spaces between the words. With a linear model, this is fastest.

        Args:
            texts, batch_size, on_batch: As for `segment_batch`.
            tags: As for `segment`. Each word is then followed by a slash and its class, as in 天气/NOUN.
        """
        segmenter, texts = self._segmenter_for(tags), checked_texts(texts, "segment", batch_size)
        if self._lines is not None and not tags:
            return self._lines.segment(texts, on_batch)
        words_of_texts = segmenter._words(texts, batch_size, on_batch, False, None, tags)
        return [" ".join("/".join(word) for word in words) for words in words_of_texts]

    @overload
    def k_best(
        self, text: str, k: int = ..., spans: Iterable[tuple[Any, ...]] = ..., tags: Literal[False] = ...
    ) -> list[tuple[list[str], float]]: ...

    @overload
    def k_best(
        self, text: str, k: int = ..., spans: Iterable[tuple[Any, ...]] = ..., *, tags: Literal[True]
    ) -> list[tuple[list[tuple[str, str]], float]]: ...

    def k_best(
        self, text: str, k: int = 5, spans: Iterable[tuple[Any, ...]] = (), tags: bool = False
    ) -> list[tuple[list[Any], float]]:
        """The k best segmentations of a text.

        Args:
            text: A string of any length.
            k: The number of segmentations. Defaults to 5.
            spans, tags: As for `segment`.

        Returns:
            A list of at most k `(words, probability)`, best first. With `tags`, the words are `(word, class)`. A model
            with classes returns without `tags` the segmentations of the 8 k best analyses with classes; the probability
            of a segmentation is the sum over these analyses, and so at most that of the segmentation.

        >>> segmenter.k_best("研究生命的起源", k=2)                  # doctest: +SKIP
        [(['研究', '生命', '的', '起源'], 0.81), (['研究生', '命', '的', '起源'], 0.13)]
        """
        return self.k_best_batch([text], k, spans=[spans], tags=tags)[0]  # type: ignore[call-overload]

    @overload
    def k_best_batch(
        self,
        texts: Iterable[str],
        k: int = ...,
        batch_size: int = ...,
        on_batch: Callable[[int], object] = ...,
        spans: Iterable[Iterable[tuple[Any, ...]]] | None = ...,
        tags: Literal[False] = ...,
    ) -> list[list[tuple[list[str], float]]]: ...

    @overload
    def k_best_batch(
        self,
        texts: Iterable[str],
        k: int = ...,
        batch_size: int = ...,
        on_batch: Callable[[int], object] = ...,
        spans: Iterable[Iterable[tuple[Any, ...]]] | None = ...,
        *,
        tags: Literal[True],
    ) -> list[list[tuple[list[tuple[str, str]], float]]]: ...

    def k_best_batch(
        self,
        texts: Iterable[str],
        k: int = 5,
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
        spans: Iterable[Iterable[tuple[Any, ...]]] | None = None,
        tags: bool = False,
    ) -> list[list[tuple[list[Any], float]]]:
        """A list with the result of `k_best` for each text; the other arguments are as for `segment_batch`."""
        segmenter, texts = self._segmenter_for(tags), checked_texts(texts, "k_best", batch_size)
        parts_of_texts, constraints = segmenter._splitter.split(texts, spans)
        parts = list(chain.from_iterable(parts_of_texts))
        analyses = iter(segmenter._tagger.k_best(parts, k, batch_size, on_batch, constraints, classes=tags))
        return [join_parts(parts_of_text, islice(analyses, len(parts_of_text)), k) for parts_of_text in parts_of_texts]

    def uncertainties(
        self,
        texts: Iterable[str],
        strategy: str = DEFAULT_STRATEGY,
        batch_size: int = 64,
        on_batch: Callable[[int], object] = ignore,
    ) -> np.ndarray:
        """How uncertain the model is about each text, an array; the arguments are as for `suggest`."""
        parts_of_texts, constraints = self._splitter.split(checked_texts(texts, "suggest", batch_size))
        parts, counts = list(chain.from_iterable(parts_of_texts)), list(map(len, parts_of_texts))
        sums = self._tagger.uncertainties(parts, measure_of(strategy), batch_size, on_batch, constraints)
        return score_of(strategy, *(sums_of(values, counts) for values in sums))

    def _predictions(self, texts, batch_size):
        return self.segment_batch(texts, batch_size, tags=bool(self.classes))

    def _plain_text(self, text):
        return text if isinstance(text, str) else "".join(text)  # words of the training set
