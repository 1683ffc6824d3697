"""Augmentation of sentences with entities that keeps the labels correct (Dai and Adel 2020)."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from numpy.random import Generator

from kcrf.augmentation.pieces import Piece, apart, choose, group_words, pick, pieces_of, with_texts
from kcrf.augmentation.synonyms import Synonyms
from kcrf.corpora import Sentence
from kcrf.readers.word_tokens import token_spans

_CHARACTERS = 0.9  # fraction of the tokens that are one character, where tokens are characters


class Segment(NamedTuple):
    """The tokens of an entity, or with the label None, of the text between two entities."""

    label: str | None
    pieces: list


Segments = list[Segment]


class EntityPools:
    """The entities by type, and the tokens by tag such as "B-PER", which can replace each other."""

    def __init__(self, sentences: Iterable[Sentence]) -> None:
        mentions, self.tokens = defaultdict(dict), defaultdict(list)
        for sentence in sentences:
            for segment in _segments(sentence)[0]:
                for tag, piece in zip(_tags(segment), segment.pieces):
                    self.tokens[tag].append(piece.text)
                if segment.label is not None:
                    texts = tuple(piece.text for piece in segment.pieces)
                    mentions[segment.label].setdefault(texts, segment.pieces)
        tokens = [end - start for sentence in sentences for start, end in sentence.tokens]
        self.are_characters = bool(tokens) and tokens.count(1) >= _CHARACTERS * len(tokens)
        self.mentions = {label: list(by_texts.values()) for label, by_texts in mentions.items()}


def alter_sentence(
    sentence: Sentence, name: str, share: float, synonyms: Synonyms, random: Generator, pools: EntityPools
) -> Sentence:
    """A copy of a `Sentence` with altered tokens, and with its entities at their new positions."""
    before, tail = _segments(sentence)
    if name == "synonyms":
        segments = _replace_by_synonyms(before, share, random, synonyms, pools.are_characters)
    else:
        segments = _OPERATIONS[name](before, share, random, pools)
    if not sentence.tokens:  # words are found in the text again
        altered, original = ([piece for segment in part for piece in segment.pieces] for part in (segments, before))
        pieces = iter(apart(altered, original))
        segments = [Segment(label, [next(pieces) for _ in inner]) for label, inner in segments]
    return _sentence(segments, tail, bool(sentence.tokens))


def _segments(sentence: Sentence) -> tuple[Segments, str]:
    """The `Segment`s of a sentence, and the text after the last one."""
    labeled_spans, edge = [], 0
    tokens = list(sentence.tokens) or token_spans(sentence.text).tolist()
    for start, end, label in [*sentence.spans, (len(sentence.text), len(sentence.text), None)]:
        outside = _clipped(tokens, edge, start)
        inside = _clipped(tokens, start, end)
        if label is not None:  # it begins and ends with a token
            inside = inside or [(start, end)]
            inside[0] = (start, inside[0][1])
            inside[-1] = (inside[-1][0], end)
        labeled_spans += [(None, outside)] * bool(outside) + [(label, inside)] * bool(inside)
        edge = end
    found, tail = pieces_of(sentence.text, [span for _, spans in labeled_spans for span in spans])
    pieces = iter(found)
    return [Segment(label, [next(pieces) for _ in spans]) for label, spans in labeled_spans], tail


def _clipped(tokens: Iterable[Any], start: int, end: int) -> list[Any]:
    """The parts of tokens that are in `[start, end)`."""
    return [(max(start, a), min(end, b)) for a, b in tokens if a < end and start < b]


def _sentence(segments: Segments, tail: str, with_tokens: bool) -> Sentence:
    """The `Sentence` of segments."""
    text, spans, tokens = "", [], []
    for label, pieces in segments:
        start = len(text) + len(pieces[0].gap)
        for gap, word in pieces:
            tokens.append((len(text) + len(gap), len(text) + len(gap) + len(word)))
            text += gap + word
        if label is not None:
            spans.append((start, len(text), label))
    return Sentence(text + tail, spans, tokens if with_tokens else [])


def _tags(segment: Segment) -> list[str]:
    """The BIO tag of each token of a segment."""
    if segment.label is None:
        return ["O"] * len(segment.pieces)
    return [f"{'I' if i else 'B'}-{segment.label}" for i in range(len(segment.pieces))]


def _exchange_mentions(segments: Segments, share: float, random: Generator, pools: EntityPools) -> Segments:
    segments = list(segments)
    entities = [i for i, segment in enumerate(segments) if segment.label is not None]
    for i in (entities[n] for n in choose(random, len(entities), share)):
        label, pieces = segments[i]
        texts = [piece.text for piece in pieces]
        candidates = [other for other in pools.mentions[label] if [piece.text for piece in other] != texts]
        if candidates:
            first, *followers = pick(random, candidates)
            segments[i] = Segment(label, [Piece(pieces[0].gap, first.text), *followers])
    return segments


def _exchange_tokens(segments: Segments, share: float, random: Generator, pools: EntityPools) -> Segments:
    tags = [tag for segment in segments for tag in _tags(segment)]
    texts = [piece.text for segment in segments for piece in segment.pieces]
    for i in choose(random, len(tags), share):
        texts[i] = pick(random, pools.tokens[tags[i]])
    remaining = iter(texts)
    return [Segment(label, with_texts(pieces, [next(remaining) for _ in pieces])) for label, pieces in segments]


def _replace_by_synonyms(
    segments: Segments, share: float, random: Generator, synonyms: Synonyms, as_characters: bool
) -> Segments:
    """Replaces words outside of entities by synonyms. `as_characters`: each character of a synonym is a token."""
    places = [
        (i, group)
        for i, (label, pieces) in enumerate(segments)
        for group in group_words(pieces, synonyms.__contains__, synonyms.longest)
        if label is None and synonyms.of(_joined(pieces, group))
    ]
    segments = list(segments)
    for i, (start, stop) in reversed([places[n] for n in choose(random, len(places), share)]):
        pieces = segments[i].pieces
        new = pick(random, synonyms.of(_joined(pieces, (start, stop))))
        first, *followers = [Piece("", character) for character in new] if as_characters else pieces_of(new)[0]
        replaced = [Piece(pieces[start].gap, first.text), *followers]
        segments[i] = Segment(None, [*pieces[:start], *replaced, *pieces[stop:]])
    return segments


def _joined(pieces: list[Piece], group: tuple[int, int]) -> str:
    return "".join(piece.text for piece in pieces[slice(*group)])


def _shuffle(segments: Segments, share: float, random: Generator, pools: EntityPools) -> Segments:
    segments = list(segments)
    long = [i for i, segment in enumerate(segments) if len(segment.pieces) > 1]
    for i in (long[n] for n in choose(random, len(long), share)):
        label, pieces = segments[i]
        texts = [pieces[n].text for n in random.permutation(len(pieces)).tolist()]
        segments[i] = Segment(label, with_texts(pieces, texts))
    return segments


_OPERATIONS = {"mentions": _exchange_mentions, "tokens": _exchange_tokens, "shuffle": _shuffle}
