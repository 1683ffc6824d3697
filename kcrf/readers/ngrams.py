"""N-gram features of a window: each a bucket of one hash, computed for a whole batch of texts. Needs NumPy only.

Feature hashing (Weinberger et al., 2009, "Feature Hashing for Large Scale Multitask Learning") needs no list of
features. A template is a string such as "c-1 c0": the values of some columns at some places around a position. Columns
of characters are "c", the folded character, "t", its type, and, with a lexicon, "b" and "e", the longest word of the
lexicon that may begin and end there, and "ob" and "oe", that of the lexicon of other segmentation standards. Columns of
words are "w", the lower-cased word, "p1" to "p4" and "s1" to "s4", its prefixes and suffixes, "x", its shape, and "k",
its case, digits and hyphens. The hash is
integer arithmetic modulo 2^32, so that every machine, in training and in use, computes the same buckets.
"""

import re
from typing import NamedTuple
from zlib import crc32

import numpy as np

from kcrf.readers.code_points import BOUNDARY, code_points, folded_characters, types_of_characters
from kcrf.readers.spelling import AFFIXES, word_features
from kcrf.readers.vocabulary import fold_text

__all__ = [
    "CHARACTER_TEMPLATES",
    "LEXICON_TEMPLATES",
    "OTHER_LEXICON_TEMPLATES",
    "REACH",
    "WORD_TEMPLATES",
    "CharacterNGrams",
    "WordNGrams",
    "buckets_of",
    "columns_of_text",
    "hashed",
]

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
REACH = 2  # the farthest place of a template
_PLACE = re.compile(r"([a-z_]+\d*?)([+-]?\d)")
_FACTORS = np.array([0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F], "uint32")  # odd, of xxHash
_SEED, _MIX = np.uint32(0x165667B1), np.uint32(0x85EBCA6B)


class Place(NamedTuple):
    """A column at some distance from a position."""

    column: str
    offset: int


def places_of(template):
    """The `Place`s of a template.

    >>> places_of("c-1 t+2")
    [Place(column='c', offset=-1), Place(column='t', offset=2)]
    """
    matches = [_PLACE.fullmatch(part) for part in template.split()]
    places = [Place(match[1], int(match[2])) for match in matches if match]
    in_reach = all(abs(place.offset) <= REACH for place in places)
    if not matches or None in matches or len(matches) > len(_FACTORS) or not in_reach:
        raise ValueError(
            f"a template needs 1 to {len(_FACTORS)} columns with places from -{REACH} to {REACH}, such as 'c-1 c0'. "
            f"Received: {template!r}"
        )
    return places


def hashed(columns, templates, buckets):
    """Yields for each template the bucket of every position, `(positions,)` uint32 from 1 to `buckets - 1`.

    Args:
        columns: A dict from names to uint32 arrays `(positions + 2 * REACH,)`. A value of 0 says that there is nothing:
            features with such a value are 0.
        templates: Strings.
        buckets: A power of two.
    """
    shift = np.uint32(33 - int(buckets).bit_length())
    length = len(next(iter(columns.values()))) - 2 * REACH
    sparse = {name for name, column in columns.items() if not column.all()}
    for number, template in enumerate(templates):
        places = places_of(template)
        values = [columns[place.column][REACH + place.offset :][:length] for place in places]
        ids = values[0] * _FACTORS[0]
        for value, factor in zip(values[1:], _FACTORS[1:]):
            ids += value * factor
        ids += np.array(number, "uint32") * _SEED
        ids ^= ids >> np.uint32(15)
        ids *= _MIX
        ids >>= shift
        np.maximum(ids, 1, out=ids)
        for place, value in zip(places, values, strict=True):
            if place.column in sparse:
                ids[value == 0] = 0
        yield ids


def columns_of_text(text, lexicon=None):
    """The columns of the characters of a text; its first and last `REACH` characters are not positions."""
    codes = code_points(text)
    characters = folded_characters(codes)
    columns = {"c": characters, "t": types_of_characters(codes).astype("uint32")}
    if lexicon is not None:
        columns.update(zip(lexicon.columns, (1 + numbers for numbers in lexicon.longest(characters)), strict=True))
    return columns


def buckets_of(characters, least=1 << 16, most=1 << 19):
    """How many buckets the n-grams of a text need: about four for each character, a power of two from 2^16 to 2^19.

    2^20 buckets gain nothing on 1.7 million characters.

    >>> buckets_of(20_000), buckets_of(10_000_000)
    (131072, 524288)
    """
    return min(most, max(least, 1 << (4 * characters - 1).bit_length()))


class NGrams:
    """What n-gram features of characters and of words share.

    Args:
        buckets: How many numbers there are for features, a power of two; 0 is for no feature.
        templates: Strings.

    Raises:
        ValueError: `buckets` is not a power of two, or a template is not valid.
    """

    def __init__(self, buckets, templates):
        if not isinstance(buckets, int) or buckets < 2 or buckets & (buckets - 1):
            raise ValueError(f"`buckets` must be a power of two. Received: {buckets!r}")
        self.buckets, self.templates = buckets, tuple(templates)
        unknown = {place.column for template in self.templates for place in places_of(template)} - {*self.columns}
        if unknown:
            raise ValueError(f"templates have the columns {', '.join(self.columns)}. Received: {sorted(unknown)}")

    @property
    def width(self):
        """How many features a position has."""
        return len(self.templates)

    def rows(self, columns):
        """The features of all positions, `(positions, width)` int32; the columns are as `hashed` takes them."""
        return np.stack(list(hashed(columns, self.templates, self.buckets)), axis=1).view("int32")

    def get_config(self):
        """A dict of plain values from which `from_config` makes the same."""
        return {"buckets": self.buckets, "templates": list(self.templates)}

    @classmethod
    def from_config(cls, config):
        """The features that `get_config` described."""
        templates = config.get("templates") if isinstance(config, dict) else None
        if not isinstance(templates, list) or not all(isinstance(template, str) for template in templates):
            raise ValueError(f"needs n-grams with buckets and a list of templates. Received: {str(config)[:80]}")
        return cls(config.get("buckets"), templates)


class CharacterNGrams(NGrams):
    """The n-gram features of the characters of texts.

    Args:
        buckets: How many numbers there are for features, a power of two; 0 is for no feature.
        templates: Strings; see `kcrf.readers.ngrams`. Defaults to the characters at -2 to 2, their pairs, and the types
            of the characters around.

    >>> ngrams = CharacterNGrams(2**14)
    >>> first, second = ngrams.encode(["天地", "天"])
    >>> first.shape, second.shape, bool((first[0, 2] == second[0, 2]).all())
    ((2, 14), (1, 14), True)
    """

    columns = ("c", "t", "b", "e", "ob", "oe")

    def __init__(self, buckets, templates=CHARACTER_TEMPLATES):
        super().__init__(buckets, templates)

    def encode(self, texts, lexicon=None):
        """The features of each text, a list of int32 arrays `(characters, width)`.

        Args:
            texts: List of strings.
            lexicon: The `Lexicon` of the columns "b" and "e", or the `StandardLexicon` of these and "ob" and "oe", if
                templates have these. Defaults to None.
        """
        between = BOUNDARY * REACH
        columns = columns_of_text(between + between.join(texts) + between, lexicon)
        return _without_gaps(self.rows(columns), map(len, texts))


class WordNGrams(NGrams):
    """The n-gram features of the words of texts: the usual ones of CRFsuite.

    Args:
        buckets: How many numbers there are for features, a power of two; 0 is for no feature.
        templates: Strings; see `kcrf.readers.ngrams`. Defaults to the words at -2 to 2 and their pairs, prefixes and
            suffixes of 1 to 4 characters, and the shapes, case, digits and hyphens of the words around.

    >>> (rows,) = WordNGrams(2**14).encode([["In", "Leeds"]])
    >>> rows.shape, bool(rows[0, 8] == 0)  # "in" has no prefix of two characters: it is one
    ((2, 24), True)
    """

    columns = WORD_COLUMNS

    def __init__(self, buckets, templates=WORD_TEMPLATES):
        super().__init__(buckets, templates)

    def encode(self, sentences):
        """The features of each list of words, a list of int32 arrays `(words, width)`."""
        numbers = {None: 0}  # of the different words; None is what is before and after a sentence
        gap = [0] * REACH
        places = gap.copy()
        for words in sentences:
            places += [numbers.setdefault(word, len(numbers)) for word in words] + gap
        table = np.array([_word_columns(word) for word in numbers], "uint32")  # (different words, columns)
        columns = dict(zip(self.columns, table[places].T, strict=True))
        return _without_gaps(self.rows(columns), map(len, sentences))


def _without_gaps(rows, lengths):
    """The rows of each text, out of rows that have `REACH` others after those of each."""
    lengths = list(lengths)
    ends = np.cumsum([length + REACH for length in lengths]).tolist()
    return [rows[end - REACH - length : end - REACH] for length, end in zip(lengths, ends, strict=True)]


def _word_columns(word):
    """The values of `WORD_COLUMNS` of a word, 0 where it is too short for a prefix or suffix."""
    if word is None:
        return [1, 1, 1] + [0] * (len(WORD_COLUMNS) - 3)
    shape, *affixes = word_features(word)
    kinds = (str.isupper, str.istitle, str.isdecimal, str.isalnum)
    flags = [*(is_kind(word) for is_kind in kinds), any(map(str.isdecimal, word)), "-" in word]
    texts = (fold_text(word), "".join("01"[flag] for flag in flags), shape, *affixes)
    return [crc32(text.encode("utf-8", "surrogatepass")) | 1 if text else 0 for text in texts]
