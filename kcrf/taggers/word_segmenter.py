"""`WordSegmenter`: segments texts into words, with probabilities and the k best segmentations."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

from kcrf.networks.linear_networks import LinearTaggingNetwork
from kcrf.taggers.decoder import OnBatch, ignore
from kcrf.taggers.line_segmenter import LineSegmenter
from kcrf.taggers.open_model import RunPath, built_in_segmenter
from kcrf.taggers.spans import Part, Span, check_is_one, checked_list
from kcrf.taggers.tagger import SpanTagger
from kcrf.taggers.user_dictionary import TextSplitter, Words, forced_words, reader_with_words, words_of_user


class WordSegmenter(SpanTagger):
    """Segments text into words, with the built-in model or with a model that you trained.

    No character is lost: the concatenated words are the text without its white space.

    Args:
        run_dir: A folder that `kcrf train --task cws` or `--task cws-pos` wrote, or a file that `kcrf export` wrote.
            Defaults to None: small linear models for modern Chinese, which need only NumPy: one of words, and for
            `with_labels=True` another one with universal parts of speech (UPOS). They were trained on the 3,997
            sentences of UD Chinese GSD; kcrf/taggers/data/zh_gsd/README.md lists their scores.
        words: A user dictionary: strings, or a mapping from strings to counts, classes, `(count, class)` or None. A
            count says how often the word counts as having occurred in the training data; by default 5. A model with a
            lexicon adds words of 2 to 5 characters to its features and warns about others. Defaults to no words.
        force_words: Whether `words`, of any length, are always segmented as words: from left to right, the longest
            match at each position. With a model of classes, they have the class that `words` gives. Defaults to False.
        keep_latin: Whether runs of Latin letters and digits, as Python3, and emoji are never split. Defaults to True.
        standard: The segmentation standard, for a run of several. Defaults to None: the run has one.
        with_labels: Whether words have classes, such as parts of speech. Defaults to None: if the model has classes.
            False for a model with classes gives words without them, whose probabilities are sums over all classes.

    Attributes:
        labels: The classes of words, a tuple; empty for words without classes.

    >>> segmenter = WordSegmenter("runs/pku")                   # doctest: +SKIP
    >>> segmenter.segment("北京大学生前来应聘")                  # doctest: +SKIP
    ['北京', '大学生', '前来', '应聘']
    >>> segmenter.segment("北京大学生前来应聘", spans=[(0, 4)])  # doctest: +SKIP
    ['北京大学', '生', '前来', '应聘']
    >>> segmenter(["今天天气"])                                  # doctest: +SKIP
    [[Span(start=0, end=2, text='今天', label='', probability=0.998), ...]]
    """

    tasks = ("cws", "cws-pos")
    _verb = "segment"

    def __init__(
        self,
        run_dir: RunPath | None = None,
        words: Words = (),
        force_words: bool = False,
        keep_latin: bool = True,
        standard: str | None = None,
        with_labels: bool | None = None,
    ) -> None:
        own = words_of_user(words)
        self._load(built_in_segmenter(bool(with_labels)) if run_dir is None else run_dir, standard)
        if with_labels and not self.labels:
            raise ValueError(f"`with_labels` needs a model of `kcrf train --task cws-pos`. Received: {run_dir}")
        forced = forced_words(own, self.labels) if force_words else {}
        if own and not force_words:
            counts = {word: count for word, (count, _) in own.items()}
            self.reader = self.decoder.reader = reader_with_words(self.reader, counts)
        self._split_at(forced, keep_latin)
        if with_labels is False:
            self.labels, self._with_labels = (), False

    def _begin(self, network: Any, reader: Any, config: Any) -> None:
        super()._begin(network, reader, config)
        self._split_at({}, True)

    def _split_at(self, forced: dict[str, str | None], keep_latin: bool) -> None:
        """Sets how texts are split, and the fast way of linear models if it can be taken."""
        self._splitter = TextSplitter(forced, keep_latin, self.labels)
        is_linear = isinstance(self.network, LinearTaggingNetwork) and self.network.model.constraints
        is_fast = is_linear and not forced and not self.labels
        self._lines = LineSegmenter(self.network, self.reader, keep_latin) if is_fast else None

    def segment(self, text: str, spans: Iterable[Any] | None = ()) -> list[str]:
        """Segments a text. White space ends a word and is omitted.

        Args:
            text: A string of any length.
            spans: Words that you already know, as `(start, end)` or `Span`, in characters of the text. A model with
                classes also takes `(start, end, class)`. The other words, and classes that are not given, are predicted
                given these words. Defaults to no words.

        Returns:
            A list of strings. `predict` also returns places, classes and probabilities. If the tokenizer of a BERT
            removes a whole word, such as a control character, the word has the class "?".
        """
        given = [] if spans is None else list(spans)
        return self.segment_batch([text], spans=[given] if given else None)[0]

    def segment_batch(
        self,
        texts: Iterable[str],
        batch_size: int = 64,
        on_batch: OnBatch = ignore,
        spans: Iterable[Iterable[Any]] | None = None,
    ) -> list[list[str]]:
        """A list with the result of `segment` for each text; the arguments are as for `predict`."""
        if self._lines is not None and spans is None:
            lines = self.segment_lines(texts, batch_size, on_batch)
            return [line.split(" ") if line else [] for line in lines]
        return [[span.text for span in of_text] for of_text in self._words(texts, batch_size, on_batch, spans)]

    def _words(
        self, texts: Iterable[str], batch_size: int, on_batch: OnBatch, spans: Iterable[Iterable[Any]] | None = None
    ) -> list[list[Span]]:
        """The words of each text without their probabilities and places."""
        parts_of_texts = self._parts(texts, spans, batch_size)
        found = iter(self.decoder.spans(list(chain(*parts_of_texts)), batch_size, on_batch, with_probabilities=False))
        return [[span for _ in parts for span in next(found)] for parts in parts_of_texts]

    def segment_lines(self, texts: Iterable[str], batch_size: int = 64, on_batch: OnBatch = ignore) -> list[str]:
        """Segments several texts into strings with spaces between the words. With a linear model, this is fastest.

        Args:
            texts, batch_size, on_batch: As for `predict`.

        Returns:
            A list of strings. If words have classes, a slash and its class follow each word, as in 天气/NOUN.
        """
        if self._lines is not None:
            return self._lines.segment(_strings(checked_list(texts, self._verb, batch_size)), on_batch)
        if not self.labels:
            return [" ".join(words) for words in self.segment_batch(texts, batch_size, on_batch)]
        words_of_texts = self._words(texts, batch_size, on_batch)
        return [" ".join(f"{word.text}/{word.label}" for word in words) for words in words_of_texts]

    def _parts_of_text(self, text: Any, spans: Iterable[Any]) -> list[Part]:
        (checked,) = _strings([text])
        return self._splitter.split(checked, spans)

    def _plain_text(self, text: Any) -> str:
        return text if isinstance(text, str) else "".join(text)  # words of the training set


def _strings(texts: list[Any]) -> list[str]:
    """The texts, all of them strings."""
    for text in texts:
        if not isinstance(text, str):
            check_is_one(text)
            raise TypeError(f"texts must be strings. Received: {text!r}"[:200])
    return texts
