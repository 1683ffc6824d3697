"""`TagScheme`: the tags of a task and the rules of their order, with the functions that make one. Needs NumPy only."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kcrf.tags.words import word_starts, word_tags

Types = tuple[str, ...]
_PREFIXES = {f"{letter}-" for letter in "BIESMLU"}
_WORD_TAGS = 4  # of each class of words


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

    Example:

    >>> scheme = bio(["LOC", "PER"])
    >>> scheme.labels
    ('O', 'B-LOC', 'I-LOC', 'B-PER', 'I-PER')
    >>> scheme.encode([(1, 3, "PER")], length=4)
    [0, 3, 4, 0]
    >>> scheme.decode([0, 3, 4, 0])
    [(1, 3, 'PER')]
    """

    name: str
    types: Types
    labels: tuple[str, ...]
    allowed_starts: np.ndarray
    allowed_transitions: np.ndarray
    allowed_ends: np.ndarray
    _inside: Callable[..., list[int]]

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

    def encode(self, spans: Iterable[tuple[Any, ...]], length: int) -> list[int]:
        """Converts the spans of a sentence to tags, one per character.

        Args:
            spans: `(start, end)` for segmentation, where they must cover the sentence, or `(start, end, label)` for
                entities, where the rest is outside, and for classes of tokens or words, where the rest is unknown (-1).
                Half-open, in characters, in any order, not overlapping.
            length: The number of characters of the sentence.

        Returns:
            A list of `length` ints.

        Raises:
            ValueError: A span has another form, is empty, overlaps another, leaves the sentence or has a label that the
                scheme lacks; or segmentation spans leave a gap.
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
        """Converts tags to spans. Illegal sequences are accepted.

        A word begins at s, at b and after s or e, so words cover the sentence; but a word whose first tag is negative
        (unknown, or of padding) is left out. The class of a word is that of its first tag. An entity begins at B or S,
        and at an I or E that does not continue an entity of its own type, as in conlleval; a negative tag is outside,
        as O is. Of classes of tokens, each token is a span; one with a negative tag is left out.
        """
        if self.is_of_tokens:
            return [(i, i + 1, self.labels[tag]) for i, tag in enumerate(tags) if tag >= 0]
        if self.is_of_words:
            return self._words(tags)
        spans, open_start, open_type = [], None, None
        for position, tag in enumerate([*tags, 0]):
            prefix, _, label = self.labels[max(tag, 0)].partition("-")
            if open_type is not None and (prefix in "OBS" or label != open_type):
                spans.append((open_start, position, open_type))
                open_type = None
            if prefix != "O" and open_type is None:
                open_start, open_type = position, label
            if prefix in ("E", "S"):
                spans.append((open_start, position + 1, open_type))
                open_type = None
        return spans

    def _words(self, tags: Sequence[int] | np.ndarray) -> list[Any]:
        """The spans of words, with their classes if there are types."""
        starts = word_starts([tag % _WORD_TAGS if tag >= 0 else tag for tag in tags])
        words = [(start, end) for start, end in zip(starts, [*starts[1:], len(tags)]) if tags[start] >= 0]
        return [(a, b, self.types[tags[a] // _WORD_TAGS]) for a, b in words] if self.types else words

    def violations(self, tags: Sequence[int] | np.ndarray) -> list[tuple[int, str | None, str | None]]:
        """The positions at which a tag sequence breaks the scheme.

        Returns:
            A list of `(position, previous label, label)`. The previous label is `None` at a forbidden start, the label
            is `None` at a forbidden end. Transitions from and to negative (unknown) tags are not checked.

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
        """Converts tags to legal tags of the same spans, those of `decode`. Legal sequences do not change.

        This converts IOB1 to BIO, and adds missing begin or end tags to words and entities.

        Raises:
            ValueError: A tag is negative (unknown).

        >>> scheme = bio(["PER"])
        >>> [scheme.labels[tag] for tag in scheme.repair([2, 2, 0, 2])]  # I-PER I-PER O I-PER, as IOB1 writes it
        ['B-PER', 'I-PER', 'O', 'B-PER']
        """
        tags = [int(tag) for tag in tags]
        if min(tags, default=0) < 0:
            at = next(position for position, tag in enumerate(tags) if tag < 0)
            raise ValueError(f"`repair` needs tags >= 0. Received: the unknown tag {tags[at]} at position {at}")
        return self.encode(self.decode(tags), len(tags))


def bmes(types: Iterable[str] = ()) -> TagScheme:
    """The scheme of word segmentation: 0 = s (single), 1 = b (begin), 2 = m (middle), 3 = e (end).

    Args:
        types: The classes of words, such as parts of speech. Each class then has these four tags, in the same order,
            and a word keeps its class from its first to its last character. Defaults to no classes.

    >>> bmes().encode([(0, 3), (3, 4)], length=4)
    [1, 2, 3, 0]
    >>> scheme = bmes(["NOUN", "VERB"])
    >>> scheme.labels
    ('s-NOUN', 'b-NOUN', 'm-NOUN', 'e-NOUN', 's-VERB', 'b-VERB', 'm-VERB', 'e-VERB')
    >>> scheme.encode([(0, 3, "NOUN"), (3, 4, "VERB")], length=4)
    [1, 2, 3, 4]
    >>> scheme.decode([1, 2, 3, 4])
    [(0, 3, 'NOUN'), (3, 4, 'VERB')]
    """
    types = _checked_types(types) if types else ()
    closed = np.array([True, False, False, True])  # after s and e no word is open
    opens = np.array([True, True, False, False])
    if not types:
        transitions = closed[:, None] == opens[None, :]
        return TagScheme("bmes", (), ("s", "b", "m", "e"), opens, transitions, closed, word_tags)
    labels = tuple(f"{prefix}-{label}" for label in types for prefix in "sbme")
    opens, closed = np.tile(opens, len(types)), np.tile(closed, len(types))
    of_type = np.repeat(np.arange(len(types)), _WORD_TAGS)  # (tags,)
    inside_word = ~closed[:, None] & ~opens & (of_type[:, None] == of_type)  # (from, to)
    inside = partial(_word_tags_of_type, types)  # which can be pickled
    return TagScheme("bmes", types, labels, opens, closed[:, None] & opens | inside_word, closed, inside)


def bio(types: Iterable[str]) -> TagScheme:
    """The BIO (IOB2) scheme: 0 = O, then B-type and I-type for each type.

    >>> bio(["PER"]).allowed_transitions.astype(int).tolist()
    [[1, 1, 0], [1, 1, 1], [1, 1, 1]]
    """
    types = _entity_types(types)
    labels = ("O", *(f"{prefix}-{label}" for label in types for prefix in "BI"))
    starts = np.array([not label.startswith("I") for label in labels])
    transitions = np.array([[not b.startswith("I") or a[1:] == b[1:] for b in labels] for a in labels])
    inside = partial(_bio_tags, types)
    return TagScheme("bio", tuple(types), labels, starts, transitions, np.ones(len(labels), bool), inside)


def bioes(types: Iterable[str]) -> TagScheme:
    """The BIOES scheme: 0 = O, then B-, I-, E- and S-type for each type.

    >>> bioes(["PER"]).encode([(0, 1, "PER"), (1, 4, "PER")], length=5)
    [4, 1, 2, 3, 0]
    """
    types = _entity_types(types)
    labels = ("O", *(f"{prefix}-{label}" for label in types for prefix in "BIES"))
    opens = np.array([label[0] in "OBS" for label in labels])
    closed = np.array([label[0] in "OES" for label in labels])
    same_type = np.array([[a[1:] == b[1:] for b in labels] for a in labels])
    transitions = np.where(closed[:, None], opens[None, :], ~opens[None, :] & same_type)
    return TagScheme("bioes", tuple(types), labels, opens, transitions, closed, partial(_bioes_tags, types))


def classes(types: Iterable[str]) -> TagScheme:
    """A class for each token, such as its part of speech: tag i is the i-th class, and any tag may follow any other.

    >>> scheme = classes(["NOUN", "VERB"])
    >>> scheme.encode([(0, 1, "VERB"), (2, 3, "NOUN")], length=3)
    [1, -1, 0]
    >>> scheme.decode([1, -1, 0])
    [(0, 1, 'VERB'), (2, 3, 'NOUN')]
    """
    labels = tuple(_checked_types(types))
    free = np.ones(len(labels), bool)
    return TagScheme("classes", labels, labels, free, np.outer(free, free), free, partial(_class_tags, labels))


def _word_tags_of_type(types: Types, length: int, label: str) -> list[int]:
    first = _WORD_TAGS * _type_index(types, label)
    return [first + tag for tag in word_tags(length)]


def _bio_tags(types: Types, length: int, label: str) -> list[int]:
    begin = 1 + 2 * _type_index(types, label)
    return [begin] + [begin + 1] * (length - 1)


def _bioes_tags(types: Types, length: int, label: str) -> list[int]:
    begin = 1 + 4 * _type_index(types, label)
    return [begin + 3] if length == 1 else [begin] + [begin + 1] * (length - 2) + [begin + 2]


def _class_tags(types: Types, length: int, label: str) -> list[int]:
    return [_type_index(types, label)] * length


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
    are_tags = all(label == "O" or label[:2] in _PREFIXES and label[2:] for label in types)
    if are_tags and ("O" in types or any(f"I-{label[2:]}" in types for label in types if label[0] == "B")):
        advice = tuple(dict.fromkeys(label[2:] for label in types if label != "O"))
        raise ValueError(f"Types must be names such as PER, without B- or I-. Received: tags, {types}; use {advice}")
    return types


def _type_index(types: Types, label: str) -> int:
    if label not in types:
        raise ValueError(f"The scheme has the entity types {types}. Received: {label!r}")
    return types.index(label)
