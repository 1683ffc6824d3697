"""The ids of texts and their positions: joined, cut to a greatest length, and turned back into text."""

import re
from typing import NamedTuple

import numpy as np

from kcrf.tokenizers.characters import CJK_PUNCTUATION


class Encoding(NamedTuple):
    """The ids of a text, or of a pair of texts.

    Attributes:
        token_ids: A list of ints.
        segment_ids: A list of ints, 0 for the first text and 1 for the second.
        offsets: Array `(tokens, 2)`: the half-open span of each token in its own text; (0, 0) for special tokens.
    """

    token_ids: list
    segment_ids: list
    offsets: np.ndarray


def in_original(places, origin):
    """Converts offsets in lower-cased text to offsets in the original. `origin` has the position of each character."""
    if origin is None:
        return places
    special = places[:, 1] == 0
    first, last = origin[places[:, 0] * ~special], origin[places[:, 1] - 1]
    return np.where(special[:, None], 0, np.stack([first, last + 1], axis=1))


def truncate(maxlen, index, *sequences):
    """Shortens lists in place, as `_cuts` says."""
    for cut, sequence in zip(_cuts(maxlen, index, *map(len, sequences)), sequences):
        del sequence[cut]


def _cuts(maxlen, index, *lengths):
    """The slice to remove from each sequence: one item at `index` of the longest at a time, until all fit."""
    kept = list(lengths)
    while sum(kept) > max(maxlen, 0):
        kept[kept.index(max(kept))] -= 1
    cuts = []
    for length, left in zip(lengths, kept):
        start = index if index >= 0 else left + index + 1
        if left < length and not 0 <= start <= left:
            raise ValueError(f"`maxlen` must leave room for the special tokens. Received: maxlen={maxlen}")
        cuts.append(slice(start, start + length - left) if left < length else slice(0, 0))
    return cuts


def joined(row, second_row, shared, maxlen, index):
    """The encoding of two rows of ids and places, cut to `maxlen` at `index` and joined."""
    (first, first_places), (second, second_places) = row, second_row
    if maxlen is not None and len(first) + len(second) > maxlen + shared:
        cuts = _cuts(maxlen + shared, index, len(first), len(second))
        first, second = (ids[: cut.start] + ids[cut.stop :] for ids, cut in zip((first, second), cuts))
        first_places = np.delete(first_places, cuts[0], axis=0)
        second_places = np.delete(second_places, cuts[1], axis=0)
    segments = [0] * len(first) + [1] * (len(second) - shared)
    return Encoding(first + second[shared:], segments, np.concatenate([first_places, second_places[shared:]]))


def joined_texts(texts):
    """Joins texts, each with a line end before and after it, in place of its start and its end token."""
    return "\n" + "\n\n".join(texts) + "\n"


def tidy(text):
    """A text of tokens with spaces between them, without the spaces around signs and in numbers."""
    text = re.sub("' (re|m|s|t|ve|d|ll) ", r"'\1 ", re.sub(" +", " ", text))
    text = re.sub(f"([{re.escape(CJK_PUNCTUATION)}+\\-/={{(<\\[]) ", r"\1", text)
    return re.sub(r"(\d\.) (\d)", r"\1\2", text).strip()
