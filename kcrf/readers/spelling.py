"""Features of the spelling of a word: its shape, prefixes and suffixes."""

from kcrf.readers.vocabulary import fold_text

AFFIXES = (1, 2, 3, 4)  # lengths of prefixes and suffixes
_LONGEST_RUN = 2  # of a shape


def shape_of(word):
    """The shape of a word: X for capitals, x for other letters, d for digits. Runs are shortened to two.

    >>> [shape_of(word) for word in ("Leeds", "NASA", "McCoy", "1,998", "U.S.", "北京")]
    ['Xxx', 'XX', 'XxXxx', 'd,dd', 'X.X.', 'xx']
    """
    kinds = "".join(map(_kind, word))
    return "".join(kind for i, kind in enumerate(kinds) if kinds[i - _LONGEST_RUN : i] != kind * _LONGEST_RUN)


def _kind(character):
    if character.isdecimal():
        return "d"
    if character.isalpha():
        return "X" if character.isupper() or character.istitle() else "x"
    return character


def word_features(word):
    """The features of a word as strings: its shape, prefixes and suffixes."""
    folded = fold_text(word)
    prefixes = [f"{folded[:length]}-" if len(folded) > length else "" for length in AFFIXES]
    suffixes = [f"-{folded[-length:]}" if len(folded) > length else "" for length in AFFIXES]
    return [f"={shape_of(word)}", *prefixes, *suffixes]
