"""Recognizes and removes word classes after words (充满/v, 第六_OD, 天氣(Na)), and identifiers that begin lines."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from kcrf.progress_bars import print_note
from kcrf.tags.scheme import BEGIN, END, MIDDLE, SINGLE, tags_to_words

_SIGNS = r"/_#|\\:^@／＿｜＃"
_CLASS = r"[A-Za-z][A-Za-z0-9]*(?:[-.][A-Za-z0-9]+)*"
# PKU brackets compounds and gives them a class, too: [中国/ns 人民/n]nt. `kcrf segment` may write 天气/0.987.
_WORD_WITH_CLASS = re.compile(
    rf"(?:\[(?=[^{_SIGNS}\]][^\]]*[{_SIGNS}(（]))?(?P<word>.+)"
    rf"(?:(?P<sign>[{_SIGNS}])(?:{_CLASS}(?:\]/?[A-Za-z]+)?|[01]\.[0-9]+)|(?P<bracket>[(（]){_CLASS}[)）])"
)
_PROBABILITY = re.compile(r"[01]\.[0-9]+")
_FEW_WORDS = 0.05  # fraction of words that may look as if they had a second class, such as km/h
_MOST_WORDS = 0.9  # if this fraction of words has a sign, the signs separate words from their classes
_IDENTIFIER = re.compile(r"(?=[^/]*\d)[A-Za-z0-9][A-Za-z0-9_.:-]*(/[A-Za-z]+)?", re.ASCII)
_MARKUP = re.compile(r"\s*(?:</?[A-Za-z][^<>]*>|<([A-Za-z]\w*)[^<>]*>[^<>]*</\1>|={5,})\s*")
_MANY = 10  # lines, from which on a different number at the begin of each is an identifier


def class_sign(words: Sequence[str]) -> tuple[str | None, int]:
    """The sign between words and their classes, and how many of the words have one; `(None, 0)` if most have none."""
    signs = Counter(match["sign"] or match["bracket"] for match in map(_WORD_WITH_CLASS.fullmatch, words) if match)
    sign, count = signs.most_common(1)[0] if signs else (None, 0)
    while sign and all(word.rpartition(sign)[0].endswith(sign[0]) for word in words):
        sign += sign[0]  # as in Kim###B-PER
    return (sign, count) if count and count >= _MOST_WORDS * len(words) else (None, 0)


def words_in(lines: Sequence[str]) -> list[list[str]]:
    """The words of each line, or of stretches of lines, at their first, if no line has two words."""
    words = [line.split() for line in lines]
    for place in range(len(words) - 1, 0, -1) if max(map(len, words), default=0) == 1 else ():
        if words[place] and words[place - 1]:
            words[place - 1], words[place] = words[place - 1] + words[place], []
    return words


def without_class(word: str) -> str:
    """A word without its class: 充满 of 充满/v, 中国 of [中国/ns, 人民 of 人民/n]nt."""
    match = _WORD_WITH_CLASS.fullmatch(word)
    return match["word"] if match else word


def check_word_classes(path: object, words: Sequence[str], classes: Sequence[str]) -> None:
    """Refuses probabilities in place of classes, and words that have two classes each."""
    if classes and all(map(_PROBABILITY.fullmatch, classes)):
        raise ValueError(f"{path}: needs words with their classes. Received: probabilities, as {words[0]}/{classes[0]}")
    double = [i for i, word in enumerate(words) if (match := _WORD_WITH_CLASS.fullmatch(word)) and match["sign"]]
    if len(double) > max(2, _FEW_WORDS * len(words)):
        raise ValueError(
            f"{path}: needs one class for each word. Received: two, {words[double[0]]!r} with {classes[double[0]]!r}, "
            f"and so {len(double)} of {len(words)} words"
        )


def without_identifiers(path: object, lines: list[list[str]]) -> list[list[str]]:
    """Lines of words without identifiers, such as 19980101-01-001-001/m. A note says that they were removed."""
    firsts = [words[0] for words in lines if words]
    are_identifiers = len(set(firsts)) == len(firsts) >= _MANY and all(map(_IDENTIFIER.fullmatch, firsts))
    if not are_identifiers:
        return lines
    print_note(f"{path}: removed the identifiers that begin all lines, such as {firsts[0]}")
    return [words[1:] for words in lines]


def without_markup(path: object, lines: Sequence[str]) -> list[str]:
    """Lines of a treebank, blank in place of lines of SGML, such as `<S ID=1>` and `<DOCNO> 1 </DOCNO>`, and of ===.
    A tab before all lines, as in the Brown corpus, is removed."""
    if all(line.startswith("\t") for line in lines if line.strip()):
        lines = [line.strip() for line in lines]
    is_markup = [_MARKUP.fullmatch(line) is not None for line in lines]
    if sum(is_markup) < 2:
        return list(lines)
    first = lines[is_markup.index(True)].strip()
    print_note(f"{path}: skipped {sum(is_markup):,} lines of markup, such as {first[:40]}")
    return ["" if skipped else line for line, skipped in zip(lines, is_markup, strict=True)]


_WORD_TAGS = {"S": SINGLE, "B": BEGIN, "M": MIDDLE, "I": MIDDLE, "E": END}


def are_word_tags(tags: Any) -> bool:
    """Whether these are tags BMES of characters, in a string or a list."""
    are_some = isinstance(tags, (str, list, tuple)) and len(tags) > 0
    return are_some and all(isinstance(tag, str) and tag and {*tag} <= {*_WORD_TAGS} for tag in tags)


def words_by_tags(where: object, characters: Sequence[str], tags: Sequence[str]) -> list[str]:
    """The words of characters with tags BMES."""
    if len(characters) != len(tags) or any(len(part) != 1 for part in (*characters, *tags)):
        received = f"{len(characters)} characters and {len(tags)} tags in {characters!r:.40}"
        raise ValueError(f"{where}: needs a tag BMES for each character. Received: {received}")
    return tags_to_words("".join(characters), [_WORD_TAGS[tag] for tag in tags])
