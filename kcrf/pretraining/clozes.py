"""Classification by a masked language model, which fills a gap in a text (PET). Needs no Keras."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from kcrf.chains import softmax
from kcrf.readers.windows import cut_pair
from kcrf.tokenizers import Tokenizer

_MASK = "[MASK]"
_MOST_ROUNDING = 0.05  # of a sum of probabilities in half precision
_FIELDS = re.compile(r"(\{\w*\})")


class FilledClozes(NamedTuple):
    """Texts in a pattern, padded to the same length."""

    token_ids: np.ndarray  # (texts, time) int32, with the mask token in the gap
    segment_ids: np.ndarray  # (texts, time) int32, zeros
    gaps: np.ndarray  # (texts, tokens of a word), the positions of the gap


class Cloze:
    """A pattern with a gap, and a word for each label that fills the gap (PET).

    Source: Schick and Schütze 2021, https://arxiv.org/abs/2001.07676. Classification becomes the task of pretraining,
    so that few samples suffice. The probabilities of a word's tokens are multiplied: https://arxiv.org/abs/2009.07118.

    Args:
        tokenizer: A `kcrf.tokenizers.Tokenizer` whose vocabulary has [MASK].
        pattern: A string with the fields `{label}`, which is the gap, and `{text}`; for pairs of texts also `{text_b}`.
        words: The verbalizer: a dict from labels to words with the same number of tokens.

    Raises:
        ValueError: The pattern lacks a field, repeats a field or has an unknown field; two words have different numbers
            of tokens or the same tokens, or the vocabulary lacks a token.

    >>> from kcrf.tokenizers import Tokenizer
    >>> vocabulary = {token: i for i, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"好差评书"])}
    >>> cloze = Cloze(Tokenizer(vocabulary), "{label}评{text}", {"good": "好", "bad": "差"})
    >>> filled = cloze.encode(["书"])
    >>> filled.token_ids.tolist(), filled.gaps.tolist()
    ([[2, 4, 7, 8, 3]], [[1]])
    >>> cloze.answers(filled, ["good"]).tolist()
    [[2, 5, 7, 8, 3]]
    """

    def __init__(self, tokenizer: Tokenizer, pattern: str, words: Mapping[str, str]) -> None:
        self._parts = [part for part in _FIELDS.split(pattern) if part]
        self._tokenizer, self.labels, self.pattern = tokenizer, list(words), pattern
        fields = [part for part in self._parts if _FIELDS.fullmatch(part)]
        if sorted(fields) not in (["{label}", "{text}"], ["{label}", "{text_b}", "{text}"]):
            raise ValueError(
                f"`pattern` needs {{label}} and {{text}} once, for pairs {{text_b}}, no other. Received: {pattern!r}"
            )
        self._has_pairs = "{text_b}" in fields
        tokens = {label: self._tokens(word) for label, word in words.items()}
        for token in [_MASK, *(token for word_tokens in tokens.values() for token in word_tokens)]:
            if tokenizer.id_to_token(tokenizer.token_to_id(token)) != token:
                raise ValueError(f"`words` and [MASK] must be in the vocabulary. Received: {token!r}, which is not")
        if len(set(map(len, tokens.values()))) != 1 or len(set(map(tuple, tokens.values()))) < len(words):
            raise ValueError(f"`words` must be different ones of as many tokens. Received: {list(tokens.values())}")
        self.word_ids = np.array(list(map(tokenizer.tokens_to_ids, tokens.values())))  # (labels, tokens)

    def _tokens(self, text: str) -> list[str]:
        return self._tokenizer.tokenize(text)[1:-1]

    def encode(self, texts: Sequence[Any], maxlen: int = 128) -> FilledClozes:
        """Puts texts into the pattern.

        Args:
            texts: List of strings, or of pairs of strings if the pattern has `{text_b}`.
            maxlen: The maximum number of tokens. Texts are truncated at the end, in a pair the longer text; the pattern
                is never truncated. Defaults to 128.

        Raises:
            TypeError: `texts` is a string, or the pattern needs pairs and gets strings, or vice versa.
            ValueError: The pattern alone is longer than `maxlen`, or there is no text.
        """
        if isinstance(texts, str):
            raise TypeError(f"`texts` must be a list. Received: {texts!r}"[:200])
        texts = [self._checked(text) for text in texts]
        if not texts:
            raise ValueError("`texts` needs at least one text. Received: none")
        ids_of_texts, gaps = zip(*(self._encode_one(text, maxlen) for text in texts), strict=True)
        token_ids = np.zeros((len(ids_of_texts), max(map(len, ids_of_texts))), "int32")
        for target, ids in zip(token_ids, ids_of_texts, strict=True):
            target[: len(ids)] = ids
        return FilledClozes(token_ids, np.zeros_like(token_ids), np.array(gaps)[:, None] + np.arange(self._width))

    def _checked(self, text: Any) -> tuple[str, ...]:
        is_row = isinstance(text, Iterable) and not isinstance(text, (str, Mapping, Set))
        parts = tuple(text) if self._has_pairs and is_row else (text,)
        if len(parts) != 1 + self._has_pairs or not all(isinstance(part, str) for part in parts):
            needed = "pairs of strings" if self._has_pairs else "strings"
            raise TypeError(f"{self.pattern!r} needs {needed}. Received: {text!r}"[:200])
        return parts

    @property
    def _width(self) -> int:
        return self.word_ids.shape[1]

    def _encode_one(self, texts: tuple[str, ...], maxlen: int) -> tuple[list[int], int | None]:
        """The token ids of a text in the pattern, and the position of the gap."""
        first, second = (*map(self._tokens, texts), [])[:2]
        contents = {part: [] if _FIELDS.fullmatch(part) else self._tokens(part) for part in self._parts}
        room = maxlen - 2 - self._width - sum(len(contents[part]) for part in self._parts)
        if room < 1:
            raise ValueError(f"`maxlen` must leave room for a text in {self.pattern!r}. Received: maxlen={maxlen}")
        contents["{text}"], contents["{text_b}"] = cut_pair(first, second, room)
        contents["{label}"] = [_MASK] * self._width
        (start, end), gap = self._tokenizer.tokenize(""), None
        tokens = [start]
        for part in self._parts:
            gap = len(tokens) if part == "{label}" else gap
            tokens += contents[part]
        return self._tokenizer.tokens_to_ids([*tokens, end]), gap

    def answers(self, filled: FilledClozes, labels: Sequence[str]) -> np.ndarray:
        """The token ids of the texts with the words of their labels in the gaps, the targets of a model.

        Raises ValueError if a label has no word, or if the numbers of labels and texts differ.
        """
        if len(labels) != len(filled.gaps) or not set(labels) <= set(self.labels):
            raise ValueError(
                f"`labels` needs one of {self.labels} for each of {len(filled.gaps)} texts. Received: {labels}"[:200]
            )
        token_ids = filled.token_ids.copy()
        numbers = [self.labels.index(label) for label in labels]
        np.put_along_axis(token_ids, filled.gaps, self.word_ids[numbers].astype("int32"), axis=1)
        return token_ids

    def probabilities(self, predicted: Any, filled: FilledClozes) -> np.ndarray:
        """The probabilities of the labels, normalized over the labels, `(texts, labels)` float64.

        `predicted` are the probabilities that the model predicts, after its softmax, `(texts, time, vocabulary)`.
        Raises ValueError if they are not probabilities, such as scores before the softmax.
        """
        texts = np.arange(len(filled.gaps))
        at_gaps = np.asarray(predicted)[texts[:, None], filled.gaps].astype("float64")  # (texts, width, vocabulary)
        sums = at_gaps.sum(axis=-1)
        if not (at_gaps.min(initial=0) >= 0 and np.all(sums < 1 + _MOST_ROUNDING)):
            raise ValueError(
                "`predicted` must be probabilities, as of a model `with_mlm=True`. Received: numbers from "
                f"{at_gaps.min():.4g} to {at_gaps.max():.4g} with a sum of {sums.max():.4g}"
            )
        words = np.broadcast_to(self.word_ids.T, (len(texts), *self.word_ids.T.shape))  # (texts, width, labels)
        of_words = np.take_along_axis(at_gaps, words, axis=2)
        none = ~np.any(np.all(of_words > 0, axis=1), axis=1)  # (texts,): half precision has rounded them to 0
        of_words[none] = np.maximum(of_words[none], np.finfo("float64").tiny)
        with np.errstate(divide="ignore"):
            return softmax(np.log(of_words).sum(axis=1))  # (texts, labels)
