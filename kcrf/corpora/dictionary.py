"""Dictionaries: names that become the entities of texts in which they occur (distant supervision), and users' words."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from os import PathLike

from kcrf.corpora.lines import WITHOUT_SPACES, read_lines
from kcrf.corpora.sentences import Sentence, outside_spans
from kcrf.tags.scheme import ENTITY_TAG

# Korean separates words by spaces, but particles follow a name without one. The last ones are marks of emoji.
_NO_BORDERS = re.compile(rf"[{WITHOUT_SPACES}\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff\ufe00-\ufe0f]")
# JSON, or a sign between a word and its count
_NUMBER = re.compile(r"[-+]?[\d.,]+")  # is no class
_OTHER_SEPARATOR = re.compile(r"\s*[\[{].*[:\"]|\s*[^\s,|;，、]+\s*[,|;，、]\s*\S|\S+[/_:=]([A-Za-z]+|\d+)\s*$")


def read_names(path: str | PathLike[str]) -> dict[str, str | None]:
    """Reads a dictionary of names: a name, a tab and its entity type on each line. Blank lines are skipped.

    Returns:
        A dict from names to types; None for a name that stands there with several types.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not UTF-8 or has no name, a line is no name and type, or the type is a tag such as
            B-LOC. Names the line.
    """
    names: dict[str, str | None] = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        parts = [part.strip() for part in line.split("\t")]
        if len(parts) != 2 or not all(parts) or not parts[1].isprintable():
            raise ValueError(f"{path}:{number}: needs a name, a tab and its entity type. Received: {line!r}")
        name, label = parts
        if "-" in label and ENTITY_TAG.fullmatch(label):
            raise ValueError(f"{path}:{number}: needs an entity type, as {label[2:]}. Received: a tag, {label!r}")
        names[name] = label if names.get(name, label) == label else None
    if not names:
        raise ValueError(f"{path}: needs one name and its entity type per line. Received: a file without any")
    return names


def label_with_names(
    texts: Iterable[str], names: Mapping[str, str | None], unmarked: str = "unknown"
) -> list[Sentence]:
    """Labels texts with the names that occur in them: from left to right, the longest name at each position.

    Next to a letter, an accent or a digit of a script with spaces between words, a name neither begins nor ends: "Lee"
    is not in "Leeds". Case matters. A name with several types is no entity, and its tags are unknown.

    Args:
        texts: Strings.
        names: A mapping from names to entity types, as `read_names` returns it.
        unmarked: Whether text outside of names may have other entities: "unknown" (the default) or "outside".

    >>> label_with_names(["李雷在上海"], {"上海": "LOC"})[0].unknown
    [(0, 3)]
    """
    if unmarked not in ("unknown", "outside"):
        raise ValueError(f"`unmarked` is 'unknown' or 'outside'. Received: {unmarked!r}")
    if "" in names:
        raise ValueError("`names` must not be empty strings. Received: ''")
    lengths: dict[str, list[int]] = {}  # of the names that begin with a character, the longest first
    for name in sorted(names, key=len, reverse=True):
        of_first = lengths.setdefault(name[0], [])
        of_first += [len(name)] if len(name) not in of_first else []
    return [_labeled(text, names, lengths, unmarked) for text in texts]


def _labeled(text: str, names: Mapping[str, str | None], lengths: Mapping[str, list[int]], unmarked: str) -> Sentence:
    """The `Sentence` of a text with the longest name at each position. Tags of a name without a type are unknown."""
    names_in_text, start = [], 0
    while start < len(text):
        ends = () if _inside_word(text, start) else (start + n for n in lengths.get(text[start], ()))
        names_here = (end for end in ends if end <= len(text) and text[start:end] in names)
        end = next((end for end in names_here if not _inside_word(text, end)), None)
        names_in_text += [] if end is None else [(start, end, names[text[start:end]])]
        start = start + 1 if end is None else end
    spans = [span for span in names_in_text if span[2] is not None]
    ambiguous = [span[:2] for span in names_in_text if span[2] is None]
    whole = [(0, len(text))] if text else []
    return Sentence(text, spans, [], outside_spans(spans, whole) if unmarked == "unknown" else ambiguous)


def _inside_word(text: str, border: int) -> bool:
    """Whether a border is between two letters or digits of a script that separates words by spaces."""
    return 0 < border < len(text) and _is_of_word(text[border - 1]) and _is_of_word(text[border])


def _is_of_word(character: str) -> bool:
    category = unicodedata.category(character)
    return (category[0] == "L" or category in ("Nd", "Mn", "Mc")) and not _NO_BORDERS.match(character)


def read_user_dictionary(path: str | PathLike[str]) -> dict[str, tuple[int | None, str | None]]:
    """Reads a user dictionary as jieba has it: a word per line, which its count, its word class, or both may follow."""
    words: dict[str, tuple[int | None, str | None]] = {}
    lines = read_lines(path)
    others = [number for number, line in enumerate(lines, 1) if _OTHER_SEPARATOR.match(line)]
    if others and len(others) > sum(map(bool, lines)) / 2:
        raise ValueError(
            f"{path}:{others[0]}: needs spaces between a word, its count and its class. Received: "
            f"{lines[others[0] - 1][:60]!r}"
        )
    for number, line in enumerate(lines, 1):
        word, *columns = line.split() or [""]
        has_count = bool(columns) and columns[0].isdecimal()
        is_odd = has_count and int(columns[0]) < 1 or any(map(_NUMBER.fullmatch, columns[has_count:]))
        if len(columns) > 1 + has_count or is_odd:
            raise ValueError(f"{path}:{number}: needs a word, its count and its word class at most. Received: {line!r}")
        if word:
            words[word] = int(columns[0]) if has_count else None, next(iter(columns[has_count:]), None)
    if not words:
        raise ValueError(f"{path}: needs one word per line. Received: a file without words")
    return words
