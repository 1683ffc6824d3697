"""Finds texts that are nearly the same, by the character trigrams that they share. Needs the standard library only."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import chain

_OVERLAP = 0.5


class NearDuplicates:
    """Texts, and whether another text is nearly one of them.

    Two texts are near-duplicates if at least half of the character trigrams that occur in either of them occur in both
    (their Jaccard similarity is at least 0.5). White space and case do not count.

    Args:
        texts: The first texts, strings. Defaults to no texts.

    >>> seen = NearDuplicates(["The weather will be fine on Monday."])
    >>> "the weather will be fine on Tuesday." in seen, "It will rain on Monday." in seen
    (True, False)
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
    """The different character trigrams of a text without white space, in lower case; of a shorter text, the text.

    >>> sorted(trigrams("A b Ab"))
    ['aba', 'bab']
    """
    text = "".join(text.split()).lower()
    return {text[start : start + 3] for start in range(max(1, len(text) - 2))}
