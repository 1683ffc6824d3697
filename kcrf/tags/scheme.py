"""`TagScheme`: the tags of a task, the rules of their order, and their checks. Needs NumPy only."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Types = tuple[str, ...]
ENTITY_TAG = re.compile(r"O|[BIESMLU]-.+")
_ANY_TAG = re.compile(r"[Oo]|[BIESMLUbiesmlu][-_:].+")  # in any spelling
_WORD_TAGS = 4  # of each class of words
_KINDS = {  # by name: the letters of a type; which of them are single, begin, middle, end; after which a span ends
    "bmes": ("sbme", (0, 1, 2, 3), "se"),
    "bio": ("BI", (0, 0, 1, 1), "OBI"),
    "bioes": ("BIES", (3, 0, 1, 2), "OES"),
    "classes": ("c", (0, 0, 0, 0), "c"),
}


@dataclass(frozen=True, eq=False)
class TagScheme:
    """The tags of a task, the rules of their order, and conversion between spans and tags.

    Made by `bmes()`, `bmes(types)`, `bio(types)`, `bioes(types)` or `classes(types)`.

    Attributes:
        name: "bmes", "bio", "bioes" or "classes".
        types: The entity types, or the classes of words or tokens; an empty tuple for segmentation without classes.
        labels: One string per tag; the tag is the index in this tuple.
        allowed_starts: `(tags,)` bool, True where a sentence may begin with the tag.
        allowed_transitions: `(tags, tags)` bool, `[i, j]` True where tag j may follow tag i.
        allowed_ends: `(tags,)` bool, True where a sentence may end with the tag.

    >>> scheme = bio(["LOC", "PER"])
    >>> scheme.labels, scheme.encode([(1, 3, "PER")], length=4)
    (('O', 'B-LOC', 'I-LOC', 'B-PER', 'I-PER'), [0, 3, 4, 0])
    >>> scheme.decode([0, 3, 4, 0])
    [(1, 3, 'PER')]
    """

    name: str
    types: Types
    labels: tuple[str, ...]
    allowed_starts: np.ndarray
    allowed_transitions: np.ndarray
    allowed_ends: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TagScheme) and self.get_config() == other.get_config()

    def __hash__(self) -> int:
        return hash((self.name, self.types))

    @property
    def is_of_tokens(self) -> bool:
        """Whether each tag is the class of its token by itself: there are no longer spans and no outside."""
        return self.name == "classes"

    @property
    def is_of_words(self) -> bool:
        """Whether spans are words, which cover the text: there is no outside. With `types`, each word has a class."""
        return self.name == "bmes"

    @property
    def outside(self) -> int:
        """The tag of what is in no span: 0, or -1 (unknown) where each token or word has a class."""
        return -1 if self.is_of_tokens or self.is_of_words and self.types else 0

    def get_config(self) -> dict[str, Any]:
        """A dict of plain values from which `TagScheme.from_config` makes the same scheme."""
        return {"name": self.name, "types": list(self.types)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "TagScheme":
        """Makes a scheme from what `get_config` returned."""
        makers = {"bmes": bmes, "bio": bio, "bioes": bioes, "classes": classes}
        if config.get("name") not in makers:
            raise ValueError(f"A tag scheme is one of {sorted(makers)}. Received: name={config.get('name')!r}")
        return makers[config["name"]](config["types"])

    def _inside(self, length: int, label: str | None = None) -> list[int]:
        """The tags of a span."""
        if label is not None and label not in self.types:
            raise ValueError(f"The scheme has the entity types {self.types}. Received: {label!r}")
        letters, (single, begin, middle, end), _ = _KINDS[self.name]
        first = len(self.labels) % len(letters) + (len(letters) * self.types.index(label) if label is not None else 0)
        return [first + single] if length == 1 else [first + begin, *[first + middle] * (length - 2), first + end]

    def encode(self, spans: Iterable[tuple[Any, ...]], length: int) -> list[int]:
        """Converts the spans of a sentence to tags, a list of `length` ints.

        Args:
            spans: `(start, end)` for segmentation, where they must cover the sentence, or `(start, end, label)` for
                entities, where the rest is outside, and for classes of tokens or words, where the rest is unknown (-1).
                Half-open, in characters, in any order, not overlapping.
            length: The number of characters of the sentence.
        """
        tags: list[int | None] = [None] * length
        for span in spans:
            if len(span) != (3 if self.types else 2):
                form = "(start, end, label)" if self.types else "(start, end)"
                raise ValueError(f"A span of this scheme needs {form}. Received: {tuple(span)}")
            start, end = span[:2]
            if not 0 <= start < end <= length:
                raise ValueError(f"A span needs 0 <= start < end <= {length}. Received: {tuple(span)}")
            if any(tag is not None for tag in tags[start:end]):
                raise ValueError(f"Spans must not overlap. Received: {tuple(span)} over another one")
            tags[start:end] = self._inside(end - start, *span[2:])
        if self.is_of_words and not self.types and None in tags:
            raise ValueError(f"Words must cover the sentence. Received: no word at position {tags.index(None)}")
        return [self.outside if tag is None else tag for tag in tags]

    def decode(self, tags: Sequence[int] | np.ndarray) -> list[Any]:
        """Converts tags to spans. Illegal sequences are accepted, as in conlleval.

        A word begins at s, at b and after s or e, so words cover the sentence. Its first tag gives its class. An
        entity begins at B or S, and at an I or E that does not continue an entity of its own type. A negative tag is
        outside; words and tokens with a negative first tag are left out.
        """
        if self.is_of_tokens:
            return [(i, i + 1, self.labels[tag]) for i, tag in enumerate(tags) if tag >= 0]
        if self.is_of_words:
            starts = word_starts([tag % _WORD_TAGS if tag >= 0 else tag for tag in tags])
            words = [(start, end) for start, end in zip(starts, [*starts[1:], len(tags)]) if tags[start] >= 0]
            return [(a, b, self.types[tags[a] // _WORD_TAGS]) for a, b in words] if self.types else words
        return spans_of_tags([self.labels[max(tag, 0)] for tag in tags])

    def violations(self, tags: Sequence[int] | np.ndarray) -> list[tuple[int, str | None, str | None]]:
        """The positions at which tags break the scheme, a list of `(position, previous label, label)`.

        The previous label is `None` at a forbidden start, the label at a forbidden end. Negative tags are not checked.

        >>> bmes().violations([0, 3, 1])
        [(1, 's', 'e'), (2, 'b', None)]
        """
        violations: list[tuple[int, str | None, str | None]] = []
        for position, tag in enumerate(tags):
            if tag < 0:
                continue
            if position == 0 and not self.allowed_starts[tag]:
                violations.append((0, None, self.labels[tag]))
            previous = tags[position - 1] if position else -1
            if previous >= 0 and not self.allowed_transitions[previous, tag]:
                violations.append((position, self.labels[previous], self.labels[tag]))
        if len(tags) and tags[-1] >= 0 and not self.allowed_ends[tags[-1]]:
            violations.append((len(tags) - 1, self.labels[tags[-1]], None))
        return violations

    def repair(self, tags: Iterable[int]) -> list[int]:
        """Converts tags to legal tags of the spans that `decode` finds. Legal sequences do not change.

        >>> scheme = bio(["PER"])
        >>> [scheme.labels[tag] for tag in scheme.repair([2, 2, 0, 2])]  # I-PER I-PER O I-PER, as IOB1 writes it
        ['B-PER', 'I-PER', 'O', 'B-PER']
        """
        tags = [int(tag) for tag in tags]
        if min(tags, default=0) < 0:
            at = next(position for position, tag in enumerate(tags) if tag < 0)
            raise ValueError(f"`repair` needs tags >= 0. Received: the unknown tag {tags[at]} at position {at}")
        return self.encode(self.decode(tags), len(tags))


def spans_of_tags(tags: Iterable[str]) -> list[tuple[int, int, str]]:
    """The entities of tags such as B-PER, with one of BIESMLU, read as conlleval does.

    >>> spans_of_tags(["I-PER", "I-LOC", "E-LOC", "I-LOC", "O"])
    [(0, 1, 'PER'), (1, 3, 'LOC'), (3, 4, 'LOC')]
    """
    spans, start, label = [], 0, ""
    for position, tag in enumerate([*tags, "O"]):
        if label and (tag[0] in "OBSU" or tag[2:] != label):
            spans.append((start, position, label))
            label = ""
        if tag != "O" and not label:
            start, label = position, tag[2:]
        if tag[0] in "ESLU":
            spans.append((start, position + 1, label))
            label = ""
    return spans


def bmes(types: Iterable[str] = ()) -> TagScheme:
    """The scheme of word segmentation: 0 = s (single), 1 = b (begin), 2 = m (middle), 3 = e (end).

    Args:
        types: The classes of words, such as parts of speech. Each class then has these four tags, in the same order,
            and a word keeps its class from its first to its last character. Defaults to no classes.

    >>> bmes().encode([(0, 3), (3, 4)], length=4)
    [1, 2, 3, 0]
    >>> scheme = bmes(["NOUN", "VERB"])
    >>> scheme.labels[:5], scheme.encode([(0, 3, "NOUN"), (3, 4, "VERB")], length=4)
    (('s-NOUN', 'b-NOUN', 'm-NOUN', 'e-NOUN', 's-VERB'), [1, 2, 3, 4])
    """
    types = _checked_types(types) if types else ()
    return _scheme("bmes", types)


def bio(types: Iterable[str]) -> TagScheme:
    """The BIO (IOB2) scheme: 0 = O, then B-type and I-type for each type.

    >>> bio(["PER"]).allowed_transitions.astype(int).tolist()
    [[1, 1, 0], [1, 1, 1], [1, 1, 1]]
    """
    return _scheme("bio", _entity_types(types), "O")


def bioes(types: Iterable[str]) -> TagScheme:
    """The BIOES scheme: 0 = O, then B-, I-, E- and S-type for each type.

    >>> bioes(["PER"]).encode([(0, 1, "PER"), (1, 4, "PER")], length=5)
    [4, 1, 2, 3, 0]
    """
    return _scheme("bioes", _entity_types(types), "O")


def classes(types: Iterable[str]) -> TagScheme:
    """A class for each token, such as its part of speech: tag i is the i-th class, and any tag may follow any other.

    >>> scheme = classes(["NOUN", "VERB"])
    >>> scheme.encode([(0, 1, "VERB"), (2, 3, "NOUN")], length=3)
    [1, -1, 0]
    """
    return _scheme("classes", _checked_types(types))


def _scheme(name: str, types: Types, outside: str = "") -> TagScheme:
    letters, _, closing = _KINDS[name]
    of_types = types if name == "classes" else [f"{letter}-{label}" for label in types for letter in letters]
    labels = (*outside, *(of_types or letters))
    letter = np.array([*outside, *letters * max(1, len(types))])  # of each tag
    of_type = np.append(np.full(len(outside), -1), np.arange(len(letter) - len(outside)) // len(letters))
    opens, closed = np.isin(letter, [*"OBSsbc"]), np.isin(letter, [*closing])
    continues = ~np.isin(letter, [*"OESsec"])[:, None] & ~opens & (of_type[:, None] == of_type)  # (from, to)
    return TagScheme(name, types, labels, opens, closed[:, None] & opens | continues, closed)


def _checked_types(types: Iterable[str]) -> Types:
    """The types as a tuple. Their order is the order of the tags, so it must be the same in each process."""
    if isinstance(types, (str, set, frozenset)):
        advice = "; use sorted(types)" if not isinstance(types, str) else f"; use [{types!r}]"
        raise ValueError(f"Types must be a list or a tuple of strings. Received: {types!r}{advice}")
    types = tuple(types)
    if not types or not all(isinstance(label, str) and label for label in types) or len(set(types)) != len(types):
        raise ValueError(f"Types must be distinct, non-empty strings. Received: types={types}")
    return types


def _entity_types(types: Iterable[str]) -> Types:
    """The types of entities, without tags among them."""
    types = _checked_types(types)
    continued = {label[1:] for label in types if label[0] in "Ii"} & {label[1:] for label in types if label[0] in "Bb"}
    if "O" in types or continued and all(map(_ANY_TAG.fullmatch, types)):
        names = (label[2:] if _ANY_TAG.fullmatch(label) else label for label in types if label not in ("O", "o"))
        advice = tuple(dict.fromkeys(names))
        raise ValueError(f"Types must be names such as PER, without B- or I-. Received: tags, {types}; use {advice}")
    return types


SINGLE, BEGIN, MIDDLE, END = range(4)  # bert4keras' numbers: 0 = s, 1 = b, 2 = m, 3 = e


def words_to_tags(words: Iterable[str]) -> list[int]:
    """The BMES tags of a sentence given as a list of words.

    >>> words_to_tags(["我", "喜欢", "图书馆"])
    [0, 1, 3, 1, 2, 3]
    """
    if isinstance(words, str):
        raise ValueError(f"`words_to_tags` needs a list of words. Received: {words[:40]!r}; use words.split()")
    words = list(words)
    wrong = next((word for word in words if not isinstance(word, str) or word.split() != [word]), None)
    if wrong is not None:
        raise ValueError(f"`words_to_tags` needs words, not empty and without white space. Received: {wrong!r}")
    return [tag for word in words for tag in word_tags(len(word))]


def tags_to_words(text: str, tags: Sequence[int] | np.ndarray) -> list[str]:
    """Splits a text into words by the BMES tags of its characters. The words, joined, are always the text.

    >>> tags_to_words("我喜欢", [0, 1, 3])
    ['我', '喜欢']
    """
    if len(text) != len(tags):
        raise ValueError(f"Needs one tag per character. Received: {len(text)} characters, {len(tags)} tags")
    wrong = next((tag for tag in tags if isinstance(tag, str) or not -1 <= tag <= END), None)
    if wrong is not None:
        raise ValueError(f"Tags must be 0 = s, 1 = b, 2 = m, 3 = e. Received: {wrong!r}")
    starts = word_starts(tags)
    return [text[start:end] for start, end in zip(starts, starts[1:] + [len(text)], strict=False)]


def word_starts(tags: Sequence[int] | np.ndarray) -> list[int]:
    """The positions at which words begin, in a BMES sequence that may be illegal."""
    before = [SINGLE, *tags]
    return [
        position
        for position, (last, tag) in enumerate(zip(before, tags, strict=False))
        if tag == SINGLE or tag == BEGIN or last == SINGLE or last == END
    ]


def word_tags(length: int) -> list[int]:
    """The tags of a word of a length."""
    return [SINGLE] if length == 1 else ([BEGIN] + [MIDDLE] * (length - 2) + [END])[:length]


_MOST_VIOLATIONS = 5  # in an error message


def check_tags(
    sentences: Iterable[Any], scheme: TagScheme, lengths: Sequence[int] | None = None, repair: bool = False
) -> list[list[int]]:
    """Checks the tags of sentences before training, since a compiled graph cannot report errors in them.

    Args:
        sentences: One sequence of ints per sentence. Negative ones are unknown: their transitions are not checked.
        scheme: The `TagScheme` that they should follow.
        lengths: The number of characters of each sentence. Defaults to `None`: not checked.
        repair: Whether to repair sentences that break the scheme, as IOB1 (`TagScheme.repair`). Defaults to `False`.

    Returns:
        A list of lists of ints that follow the scheme.

    Raises:
        ValueError: A sentence has another length or a tag that the scheme lacks, or without `repair` breaks the scheme.
            Names the first sentences, positions and labels, counted from 0.

    >>> from kcrf.tags import bmes
    >>> check_tags([[0, 1, 3], [1, 2]], bmes(), repair=True)
    [[0, 1, 3], [1, 3]]
    """
    sentences = [[int(tag) for tag in tags] for tags in sentences]
    _check_ranges(sentences, scheme, lengths)
    broken = {number: violations for number, tags in enumerate(sentences) if (violations := scheme.violations(tags))}
    if not repair and broken:
        places = [
            f"sentence {number}, position {position}: {violation_in_words(*labels)}"
            for number, violations in broken.items()
            for position, *labels in violations
        ]
        raise ValueError(
            f"Tags must follow the scheme {scheme.name}; `repair=True` repairs them. Received: {len(places)} "
            f"violations in {len(broken)} of {len(sentences)} sentences, first {'; '.join(places[:_MOST_VIOLATIONS])}"
        )
    for number in broken:
        try:
            sentences[number] = scheme.repair(sentences[number])
        except ValueError as error:
            raise ValueError(f"sentence {number}: {error}") from None
    return sentences


def _check_ranges(sentences: Sequence[Sequence[int]], scheme: TagScheme, lengths: Sequence[int] | None) -> None:
    if lengths is not None and len(lengths) != len(sentences):
        raise ValueError(f"Needs one length per sentence. Received: {len(sentences)} sentences, {len(lengths)} lengths")
    for number, tags in enumerate(sentences):
        if lengths is not None and len(tags) != lengths[number]:
            received = f"sentence {number} with {lengths[number]} characters, {len(tags)} tags"
            raise ValueError(f"Needs one tag per character. Received: {received}")
        for position, tag in enumerate(tags):
            if tag >= len(scheme):
                received = f"tag {tag} in sentence {number} at position {position}"
                raise ValueError(f"Tags must be below {len(scheme)}, the number of labels. Received: {received}")


def violation_in_words(previous: str | None, label: str | None) -> str:
    """Describes a violation in the labels that `TagScheme.violations` returns for it."""
    if label is None:
        return f"{previous} at the end"
    return f"{label} at the start" if previous is None else f"{label} after {previous}"
