"""Splits a corpus into two parts, draws samples, and finds texts that are nearly the same."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

_OVERLAP = 0.5  # of the trigrams of near-duplicates


def split(
    sentences: Sequence[Any], fraction: float = 0.1, seed: int = 0, stretches: int | None = None
) -> tuple[list[Any], list[Any]]:
    """Splits sentences at random into a larger part for training and a smaller part to hold out.

    If single sentences are held out, training sentences of the same article share names and words with them, so scores
    are higher than on new texts. Consecutive sentences are more like a new text: use `stretches`.

    Args:
        sentences: A list of at least two sentences.
        fraction: The fraction to hold out, above 0 and below 1. Both parts get at least one sentence. Defaults to 0.1.
        seed: The random seed, an int. Defaults to 0.
        stretches: The number of stretches of consecutive sentences to hold out, of about the same length; fewer if the
            corpus is too small. Defaults to None: single sentences are held out.

    Returns:
        `(remaining sentences, held-out sentences)`, each in the order of `sentences`.

    >>> split(["a", "b", "c", "d"], fraction=0.25, seed=3)
    (['a', 'b', 'c'], ['d'])
    >>> split(list(range(10)), fraction=0.4, seed=1, stretches=2)
    ([2, 3, 4, 5, 6, 9], [0, 1, 7, 8])
    """
    count = len(sentences)
    if not 0 < fraction < 1 or count < 2:
        received = f"{count} sentences, fraction={fraction}"
        raise ValueError(f"`split` needs two sentences or more and 0 < fraction < 1. Received: {received}")
    if stretches is not None and stretches < 1:
        raise ValueError(f"`stretches` must be at least 1. Received: stretches={stretches}")
    size, rng = min(max(1, round(fraction * count)), count - 1), np.random.default_rng(seed)
    if stretches is None:
        held_out = set(rng.permutation(count)[:size].tolist())
    else:
        held_out = _draw_stretches(count, size, stretches, rng)
    return (
        [sentence for i, sentence in enumerate(sentences) if i not in held_out],
        [sentence for i, sentence in enumerate(sentences) if i in held_out],
    )


def _draw_stretches(count: int, size: int, stretches: int, rng: np.random.Generator) -> set[int]:
    """The indices of `size` sentences out of `count`, in stretches with at least one other sentence between them."""
    others = count - size
    stretches = min(stretches, size, others + 1)
    # Each stretch is put before one of the other sentences, or after the last: no two at the same place.
    places = np.sort(rng.permutation(others + 1)[:stretches])
    lengths = np.full(stretches, size // stretches)
    lengths[: size % stretches] += 1
    lengths = rng.permutation(lengths)
    starts = places + np.cumsum(lengths) - lengths
    return {int(start) + i for start, length in zip(starts, lengths) for i in range(length)}


def sample(
    items: Sequence[Any], count: int, seed: int = 0, labels: Sequence[Any] | None = None
) -> tuple[list[Any], list[Any]]:
    """Draws some of the items at random.

    Args:
        items: A list.
        count: The number of items to draw, at least 1. If there are fewer items, all are drawn.
        seed: The random seed, an int. Defaults to 0.
        labels: A hashable label for each item. The sample then keeps the proportions of the labels, and has each label
            at least once if `count` allows it. Defaults to None: labels are not considered.

    Returns:
        `(drawn items, remaining items)`, each in the order of `items`.

    >>> sample(["a", "b", "c", "d", "e", "f"], 3, labels=["x", "x", "x", "x", "y", "y"])
    (['c', 'd', 'f'], ['a', 'b', 'e'])
    """
    if count < 1:
        raise ValueError(f"`count` must be at least 1. Received: count={count}")
    order = np.random.default_rng(seed).permutation(len(items)).tolist()
    if labels is not None and count < len(items):
        left, chosen = _shares(Counter(labels[i] for i in order), count), []  # in this order, ties go to any label
        for i in order:
            if left[labels[i]]:
                left[labels[i]] -= 1
                chosen.append(i)
        order = chosen
    drawn = set(order[:count])
    return [item for i, item in enumerate(items) if i in drawn], [x for i, x in enumerate(items) if i not in drawn]


def _shares(sizes: Mapping[Any, int], count: int) -> dict[Any, int]:
    """Distributes `count` items over the labels in proportion to `sizes`. The largest remainders are rounded up. A
    label that would get none takes one from the label with the most."""
    total = sum(sizes.values())
    shares = {label: count * size // total for label, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda label: -(count * sizes[label] % total))  # equal ones in order
    for label in by_remainder[: count - sum(shares.values())]:
        shares[label] += 1
    for label in shares:
        most = max(shares, key=lambda name: shares[name])
        if not shares[label] and shares[most] > 1:
            shares[label], shares[most] = 1, shares[most] - 1
    return shares


class NearDuplicates:
    """Texts, and whether another text is nearly one of them.

    Two texts are near-duplicates if at least half of the character trigrams that occur in either of them occur in both
    (their Jaccard similarity is at least 0.5). White space and case do not count.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._numbers: dict[str, list[int]] = defaultdict(list)  # of the texts that have a trigram
        self._sizes: list[int] = []
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """Adds a text."""
        grams = trigrams(text)
        for gram in grams:
            self._numbers[gram].append(len(self._sizes))
        self._sizes.append(len(grams))

    def __contains__(self, text: str) -> bool:
        """Whether the text is nearly one of those that were added."""
        grams = trigrams(text)
        shared = Counter(chain.from_iterable(self._numbers.get(gram, ()) for gram in grams))
        return any(n >= _OVERLAP * (len(grams) + self._sizes[number] - n) for number, n in shared.items())


def trigrams(text: str) -> set[str]:
    """The different character trigrams of a text without white space, in lower case. A shorter text is its only one."""
    text = "".join(text.split()).lower()
    return {text[start : start + 3] for start in range(max(1, len(text) - 2))}
