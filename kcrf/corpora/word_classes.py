"""Word classes written after words: 充满/v, 第六_OD, 今天_t, 天气#n, 天氣(Na). Recognizes and removes them."""

import re
from collections import Counter

_SIGNS = r"/_#|\\:^@／＿｜＃"
_CLASS = r"[A-Za-z][A-Za-z0-9]*(?:[-.][A-Za-z0-9]+)*"
# PKU brackets compounds and gives them a class, too: [中国/ns 人民/n]nt. `kcrf segment --confidence` writes 天气/0.987.
_WORD_WITH_CLASS = re.compile(
    rf"(?:\[(?=[^{_SIGNS}\]][^\]]*[{_SIGNS}(（]))?(?P<word>.+)"
    rf"(?:(?P<sign>[{_SIGNS}])(?:{_CLASS}(?:\]/?[A-Za-z]+)?|[01]\.[0-9]+)|(?P<bracket>[(（]){_CLASS}[)）])"
)
_PROBABILITY = re.compile(r"[01]\.[0-9]+")
_FEW_WORDS = 0.05  # fraction of words that may look as if they had a second class, such as km/h
_MOST_WORDS = 0.9  # fraction of words with a class from which on the signs are taken for those of word classes


def class_sign(words):
    """The sign between words and their classes, and how many of the words have one; `(None, 0)` if most have none.

    Args:
        words: A list of strings.

    >>> class_sign(["今天_t", "天气_n", "好_a"])
    ('_', 3)
    >>> class_sign(["snake_case", "is", "a", "name"])
    (None, 0)
    """
    signs = Counter(match["sign"] or match["bracket"] for match in map(_WORD_WITH_CLASS.fullmatch, words) if match)
    sign, count = signs.most_common(1)[0] if signs else (None, 0)
    return (sign, count) if count and count >= _MOST_WORDS * len(words) else (None, 0)


def without_class(word):
    """A word without its class.

    >>> without_class("充满/v"), without_class("[中国/ns"), without_class("人民/n]nt"), without_class("好")
    ('充满', '中国', '人民', '好')
    """
    match = _WORD_WITH_CLASS.fullmatch(word)
    return match["word"] if match else word


def check_word_classes(path, words, classes):
    """Refuses probabilities in place of classes, and words with two classes, the first of which would be of the word.

    Args:
        path: The file, for the message.
        words, classes: Lists of strings: the words without their last classes, and these classes.
    """
    if classes and all(map(_PROBABILITY.fullmatch, classes)):
        raise ValueError(f"{path}: needs words with their classes. Received: probabilities, as {words[0]}/{classes[0]}")
    double = [i for i, word in enumerate(words) if (match := _WORD_WITH_CLASS.fullmatch(word)) and match["sign"]]
    if len(double) > max(2, _FEW_WORDS * len(words)):
        raise ValueError(
            f"{path}: needs one class for each word. Received: two, {words[double[0]]!r} with {classes[double[0]]!r}, "
            f"and so {len(double)} of {len(words)} words"
        )
