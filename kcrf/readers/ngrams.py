"""N-gram features: each feature is hashed to a bucket, for a whole batch of texts at once. Needs NumPy only.

Feature hashing (Weinberger et al., 2009, "Feature Hashing for Large Scale Multitask Learning") needs no list of
features. The hash uses integer arithmetic modulo 2^32, so that all machines compute the same buckets.

A template is a string such as "c-1 c0": the values of columns at offsets from a position. The columns of characters are
c, the folded character; t, its type; b and e, with a lexicon, the length and the kind of its longest word that begins,
or ends, there; ob and oe, the same for the lexicon of the other segmentation standards. The columns of words are w, the
lower-cased word; p1 to p4 and s1 to s4, its prefixes and suffixes; x, its shape; k, its case, digits and hyphens.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self
from zlib import crc32

import numpy as np

from kcrf.readers.code_points import BOUNDARY, code_points, folded_characters, types_of_characters
from kcrf.readers.lexicon import AnyLexicon
from kcrf.readers.vocabulary import fold_text
from kcrf.readers.word_tokens import AFFIXES, word_features

CHARACTER_TEMPLATES = (
    *("c-2", "c-1", "c0", "c1", "c2"),
    *("c-2 c-1", "c-1 c0", "c0 c1", "c1 c2", "c-1 c1"),
    *("t-1", "t0", "t1", "t-1 t0 t1"),
)
WORD_COLUMNS = ("w", "k", "x", *(f"p{length}" for length in AFFIXES), *(f"s{length}" for length in AFFIXES))
WORD_TEMPLATES = (
    *("w-2", "w-1", "w0", "w1", "w2", "w-1 w0", "w0 w1"),
    *(f"{column}0" for column in WORD_COLUMNS[3:]),
    *("x-1", "x0", "x1", "x-1 x0", "x0 x1", "x-1 x0 x1", "k-1", "k0", "k1"),
)
LEXICON_TEMPLATES = (
    *("b-1", "b0", "b1", "e-1", "e0", "e1", "b0 e0", "e-1 b0", "e0 b1"),
    *("b0 c0", "b0 c-1", "e0 c0", "e0 c1"),
)
OTHER_LEXICON_TEMPLATES = tuple(re.sub("([be])", r"o\1", template) for template in LEXICON_TEMPLATES)
LEXICON_COLUMNS = {"b", "e", "ob", "oe"}
REACH = 2  # the largest offset in a template
_PLACE = re.compile(r"([a-z_]+\d*?)([+-]?\d)")
FACTORS = np.array([0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F], "uint32")  # odd, of xxHash
SEED, MIX = np.uint32(0x165667B1), np.uint32(0x85EBCA6B)

Columns = Mapping[str, np.ndarray]


class Place(NamedTuple):
    """A column at an offset from a position."""

    column: str
    offset: int


def places_of(template: str) -> list[Place]:
    """The `Place`s of a template, such as c-1 t+2. Raises ValueError if the template is not valid."""
    matches = [_PLACE.fullmatch(part) for part in template.split()]
    places = [Place(match[1], int(match[2])) for match in matches if match]
    in_reach = all(abs(place.offset) <= REACH for place in places)
    if not matches or None in matches or len(matches) > len(FACTORS) or not in_reach:
        raise ValueError(
            f"a template needs 1 to {len(FACTORS)} columns with places from -{REACH} to {REACH}, such as 'c-1 c0'. "
            f"Received: {template!r}"
        )
    return places


def hashed(columns: Columns, templates: Iterable[str], buckets: int) -> Iterator[np.ndarray]:
    """Yields for each template the bucket of every position, `(positions,)` uint32 from 1 to `buckets - 1`.

    Columns are uint32 arrays `(positions + 2 * REACH,)`, and 0 in a column means "no value": the bucket is 0.
    """
    length = len(next(iter(columns.values()))) - 2 * REACH
    sparse = {name for name, column in columns.items() if not column.all()}
    for number, template in enumerate(templates):
        places = places_of(template)
        values = [columns[place.column][REACH + place.offset :][:length] for place in places]
        ids = values[0] * FACTORS[0]
        for value, factor in zip(values[1:], FACTORS[1:]):
            ids += value * factor
        ids += np.array(number, "uint32") * SEED
        ids ^= ids >> np.uint32(15)
        ids *= MIX
        ids >>= np.uint32(33 - int(buckets).bit_length())
        np.maximum(ids, 1, out=ids)
        for place, value in zip(places, values, strict=True):
            if place.column in sparse:
                ids[value == 0] = 0
        yield ids


def columns_of_text(text: str, lexicon: AnyLexicon | None = None) -> dict[str, np.ndarray]:
    """The columns of a text, as `hashed` takes them. The first and the last `REACH` characters are context only."""
    codes = code_points(text)
    characters = folded_characters(codes)
    columns = {"c": characters, "t": types_of_characters(codes).astype("uint32")}
    if lexicon is not None:
        columns.update(zip(lexicon.columns, (1 + numbers for numbers in lexicon.longest(characters)), strict=True))
    return columns


def buckets_of(characters: int, least: int = 1 << 16, most: int = 1 << 19) -> int:
    """The number of buckets for n-grams: a power of two, about four for each character of the training set."""
    return min(most, max(least, 1 << (4 * characters - 1).bit_length()))


class NGrams:
    """Base of the n-gram features of characters and of words. `buckets` is a power of two; bucket 0 is no feature."""

    columns: tuple[str, ...]
    usual_templates: tuple[str, ...]

    def __init__(self, buckets: int, templates: Iterable[str] | None = None) -> None:
        if not isinstance(buckets, int) or buckets < 2 or buckets & (buckets - 1):
            raise ValueError(f"`buckets` must be a power of two. Received: {buckets!r}")
        self.buckets, self.templates = buckets, tuple(self.usual_templates if templates is None else templates)
        self._columns = [{place.column for place in places_of(template)} for template in self.templates]
        self.used = set[str]().union(*self._columns)
        if unknown := self.used - {*self.columns}:
            raise ValueError(f"templates have the columns {', '.join(self.columns)}. Received: {sorted(unknown)}")

    @property
    def width(self) -> int:
        """The number of features of a position."""
        return len(self.templates)

    def without_lexicon(self) -> list[int]:
        """The columns of the features whose templates need no lexicon, a list of ints."""
        return [number for number, columns in enumerate(self._columns) if not columns & LEXICON_COLUMNS]

    def features(self, columns: Columns) -> np.ndarray:
        """The buckets of all positions, `(positions, width)` int32. The columns are as `hashed` takes them."""
        return np.stack(list(hashed(columns, self.templates, self.buckets)), axis=1).view("int32")

    def get_config(self) -> dict[str, Any]:
        """A dict of plain values, which `from_config` reads."""
        return {"buckets": self.buckets, "templates": list(self.templates)}

    @classmethod
    def from_config(cls, config: Any) -> Self:
        """The object with the values that `get_config` returned. Raises ValueError if they are not valid."""
        templates = config.get("templates") if isinstance(config, dict) else None
        if not isinstance(templates, list) or not all(isinstance(template, str) for template in templates):
            raise ValueError(f"needs n-grams with buckets and a list of templates. Received: {str(config)[:80]}")
        return cls(config["buckets"] if "buckets" in config else 0, templates)


class CharacterNGrams(NGrams):
    """The n-gram features of the characters of texts.

    >>> ngrams = CharacterNGrams(2**14)
    >>> first, second = ngrams.encode(["天地", "天"])
    >>> first.shape, second.shape, bool((first[0, 2] == second[0, 2]).all())
    ((2, 14), (1, 14), True)
    """

    columns, usual_templates = ("c", "t", "b", "e", "ob", "oe"), CHARACTER_TEMPLATES

    def encode(self, texts: Sequence[str], lexicon: AnyLexicon | None = None) -> list[np.ndarray]:
        """The buckets of each text, a list of int32 arrays `(characters, width)`."""
        between = BOUNDARY * REACH
        columns = columns_of_text(between + between.join(texts) + between, lexicon)
        return _split(self.features(columns), map(len, texts))


class WordNGrams(NGrams):
    """The n-gram features of the words of sentences, as in the tutorials of CRFsuite.

    >>> (features,) = WordNGrams(2**14).encode([["In", "Leeds"]])
    >>> features.shape, bool(features[0, 8] == 0)  # a word of two characters has no prefix of two
    ((2, 24), True)
    """

    columns, usual_templates = WORD_COLUMNS, WORD_TEMPLATES

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """The buckets of each list of words, a list of int32 arrays `(words, width)`."""
        # From each different word to its row in the table; None is the context of a sentence.
        numbers: dict[str | None, int] = {None: 0}
        gap = [0] * REACH
        rows = gap.copy()
        for words in sentences:
            rows += [numbers.setdefault(word, len(numbers)) for word in words] + gap
        table = np.array([_word_columns(word) for word in numbers], "uint32")  # (different words, columns)
        columns = dict(zip(self.columns, table[rows].T, strict=True))
        return _split(self.features(columns), map(len, sentences))


def _split(features: np.ndarray, lengths: Iterable[int]) -> list[np.ndarray]:
    """Splits the features of all texts, which have `REACH` boundaries after each text, into the features of each."""
    lengths = list(lengths)
    ends = np.cumsum([length + REACH for length in lengths]).tolist()
    return [features[end - REACH - length : end - REACH] for length, end in zip(lengths, ends, strict=True)]


def _word_columns(word: str | None) -> list[int]:
    """The values of `WORD_COLUMNS` of a word: 0 for affixes as long as the word. None stands for the context."""
    if word is None:
        return [1, 1, 1] + [0] * (len(WORD_COLUMNS) - 3)
    shape, *affixes = word_features(word)
    kinds = (str.isupper, str.istitle, str.isdecimal, str.isalnum)
    flags = [*(is_kind(word) for is_kind in kinds), any(map(str.isdecimal, word)), "-" in word]
    texts = (fold_text(word), "".join("01"[flag] for flag in flags), shape, *affixes)
    return [crc32(text.encode("utf-8", "surrogatepass")) | 1 if text else 0 for text in texts]
