"""Text that is not segmented by spaces: raw lines, or another sign between the words."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from kcrf.corpora.characters import CJK

_MOST = 0.9  # fraction of the lines
_LONG_LINE = 4  # letters: a shorter line may be one word
_LONG_WORD = 6  # characters: in segmented text, few characters stand in words that are longer
_LONGEST_MEAN = 4.0  # characters of the words that a sign separates
_MANY_WORDS, _FEW_LONG = 100, 0.005  # in this many words, more than this fraction has two characters
_SIGN = r"[^\w\s]|_"
Line = tuple[int, Sequence[str]]  # its number and its words


def check_segmented(path: object, lines: Sequence[Sequence[str]]) -> None:
    """Refuses text whose words are not separated by spaces."""
    numbered = [(number, words) for number, words in enumerate(lines, 1) if words]
    _check_not_characters(path, numbered)
    sign = _sign_at_words([words for _, words in numbered])
    unsegmented = [] if sign else _unsegmented(numbered)
    if not sign and not unsegmented:
        return
    number, words = unsegmented[0] if unsegmented else numbered[0]
    sign = sign or _sign_in_words([words for _, words in unsegmented])
    if sign:
        raise ValueError(
            f"{path}:{number}: needs words separated by spaces. Received: words separated by {sign!r}, as in "
            f"{' '.join(words)[:20]!r}; replace it by a space"
        )
    single = [words[0] for _, words in numbered if len(words) == 1]
    if len(single) >= _MOST * len(numbered) and sum(map(len, single)) <= _LONGEST_MEAN * len(single):
        raise ValueError(f"{path}: needs a sentence of words per line. Received: one word on nearly every line")
    raise ValueError(
        f"{path}:{number}: needs words separated by spaces. Received: text that is not segmented in "
        f"{len(unsegmented):,} of {len(numbered):,} lines, as {max(words, key=len)[:20]!r}; `kcrf segment` segments it"
    )


def _check_not_characters(path: object, lines: Sequence[Line]) -> None:
    """Refuses Chinese text with a space between all characters, as tokenizers write it: each would be a word."""
    words = [word for _, words in lines for word in words if CJK.match(word)]
    if len(words) >= _MANY_WORDS and sum(len(word) > 1 for word in words) <= _FEW_LONG * len(words):
        number, longest = max(lines, key=lambda line: len(line[1]))
        raise ValueError(
            f"{path}:{number}: needs words separated by spaces. Received: characters separated by spaces, as in "
            f"{' '.join(longest)[:20]!r}"
        )


def _sign_at_words(lines: Iterable[Sequence[str]]) -> str | None:
    """The sign that is every second word of nearly all lines, or ends all words but the last; None without one."""
    signs, count = Counter(), 0
    for words in lines:
        separators = {word[-1] for word in words[:-1]} if len(words) < 3 or len(words[1]) > 1 else {*words[1::2]}
        count += len(words) > 1
        signs.update(separators if len(separators) == 1 and re.fullmatch(_SIGN, min(separators)) else ())
    sign, lines_with_it = signs.most_common(1)[0] if signs else (None, 0)
    return sign if lines_with_it >= _MOST * count and lines_with_it > 1 else None


def _unsegmented(lines: Sequence[Line]) -> list[Line]:
    """The lines without words, if they are nearly all lines of some length or hold most characters; else none."""
    count, shorts = len(lines), sum(len(words) == 1 for _, words in lines)
    lines = [(number, words) for number, words in lines if sum(map(str.isalpha, "".join(words))) >= _LONG_LINE]
    single = [(number, words) for number, words in lines if len(words) == 1]
    if lines and len(single) >= _MOST * len(lines) and 2 * shorts > count:
        return single
    words = [word for _, words in lines for word in words if not word.isascii()]
    long = [(number, words) for number, words in lines if max(map(len, words)) > _LONG_WORD]
    in_long_words = sum(len(word) for word in words if sum(map(str.isalpha, word)) > _LONG_WORD)
    return long if 2 * in_long_words > sum(map(len, words)) else []


def _sign_in_words(lines: Sequence[Sequence[str]]) -> str | None:
    """The sign that cuts nearly all lines into short words; None without one."""
    for sign, _ in Counter(sign for words in lines for sign in set(re.findall(_SIGN, words[0]))).most_common(3):
        cut = [[word for word in " ".join(words).split(sign) if word] for words in lines]
        parts = [word for words in cut for word in words]
        short = parts and sum(map(len, parts)) <= _LONGEST_MEAN * len(parts)
        if short and sum(len(words) > 1 for words in cut) >= _MOST * len(cut):
            return sign
    return None
