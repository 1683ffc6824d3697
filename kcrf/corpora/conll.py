"""Reads CoNLL columns: a token and its tag per line, an empty line after each sentence."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from kcrf.corpora.brat import is_standoff
from kcrf.corpora.columns import (
    check_are_tokens,
    check_not_segmented,
    check_one_tag,
    note_fuller_column,
    other_column,
    split_columns,
)
from kcrf.corpora.json_objects import begins_json
from kcrf.corpora.lines import CJK, FilePath, read_corpus_lines
from kcrf.corpora.sentences import UNKNOWN, Sentence, known_runs, unknown_parts
from kcrf.files import shortened
from kcrf.progress_bars import print_note
from kcrf.tags import TagScheme, bio, bioes
from kcrf.tags.scheme import ENTITY_TAG, violation_in_words

Rows = list[tuple[int, str, str]]  # line number, token, tag

_SCHEMES = {"BIO": set("BI"), "BIOES": set("BIES"), "BILOU": set("BILU"), "BMES": set("BMES")}
_AS_BIO, _AS_BIOES = str.maketrans("EMLSU", "IIIBB"), str.maketrans("MLU", "IES")
_ORDINALS = ("first", "second", "third", "fourth", "fifth")
_NEARLY_ALL = 0.99  # fraction of the tokens that end in their position
_BEGUN = 0.9  # fraction of the sentences that begin at the begin of a word
_CHARACTERS, _CHINESE = 0.9, 0.7  # fraction of the words that are one character, in a file of characters
_MOST_ODD = 0.001  # fraction of the tags that may break their scheme without `repair`
_NEEDED_TAG = "O or a tag like B-PER, with one of BIESMLU"
_HINT = "; --task pos and `kcrf.corpora.read_tagged` read classes of tokens"
_ODD_SPELLING = re.compile(r"([BIESMLUbiesmlu])[-_:/.](.+)")
_JOINED_TYPES, _JOINED_TAGS = re.compile(r"[|#,;/&+](?:[BIESMLU]-)?"), re.compile(r"[|#,;/&+][BIESMLU]-")
_LANGUAGE = re.compile(r"([a-z]{2,3}(?:-[a-z]+)*):(?=.)")
_NUMBERED_TOKEN = re.compile(r"(.+?)([0-9]+)")  # 科0, 技1: a character and its position in the word


def read_conll(
    path: str | PathLike[str], column: int = -1, repair: bool = False, lines: Iterable[str] | None = None
) -> list[Sentence]:
    """Reads entities from CoNLL columns.

    Columns are separated by tabs in lines with a tab, else by spaces. The token is the first column, or the second if
    the first counts the tokens. Lines with `-DOCSTART-`, comments and the names of columns are skipped. The scheme is
    recognized from all tags of the file: BIO (IOB2), IOB1, BIOES, BILOU or BMES. The tags `?` and `-1` are unknown.

    The tokens are joined to a text: without spaces if nearly all are one character, or next to a Chinese or Japanese
    character, else with one space. Positions after nearly all tokens (科0 技1, as in Weibo NER) are removed.

    Args:
        path: A UTF-8 file.
        column: The index of the column with the tags. Negative indices count from the last column. Defaults to -1.
        repair: Whether to read tags that break the scheme as conlleval does: an entity begins at an I- that continues
            no entity. Other spellings (`b-PER`, `B_PER`) are read as B-PER. If at most one tag in a thousand is no tag
            or missing, such tags are O. Defaults to False: only tags in a wrong order are repaired, if they are fewer
            than one in a thousand. A note on standard error names the lines.
        lines: The lines of the file, if they have been read before. Defaults to None.

    Returns:
        A list of `Sentence`s that are not empty, with the tokens of the file. Spans are in characters of the text.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: The file is not UTF-8, has no sentence, lacks columns, or breaks the scheme. Names the line.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".conll", encoding="utf-8") as file:
    ...     _ = file.write("李\\tB-PER\\n雷\\tI-PER\\n在\\tO\\n")
    ...     file.flush()
    ...     read_conll(file.name)
    [Sentence(text='李雷在', spans=[(0, 2, 'PER')], tokens=[(0, 1), (1, 2), (2, 3)])]
    """
    return sentences_of_tags(path, _read_rows(path, read_corpus_lines(path, lines), column, repair), repair)


def sentences_of_tags(path: FilePath, sentences: Sequence[Rows], repair: bool = False) -> list[Sentence]:
    """The `Sentence`s of tokens with tags of entities, `(line number, token, tag)`."""
    sentences = _checked(path, sentences, repair)
    runs = known_runs(sentences)
    labeled = iter(_entities(path, [rows for run in runs for _, rows in run], repair))
    spans = [[(first + a, first + b, label) for first, _ in run for a, b, label in next(labeled)] for run in runs]
    return _sentences(sentences, spans, list(map(unknown_parts, sentences, runs)))


def marks_ends(path: str | PathLike[str], column: int = -1) -> bool:
    """Whether the tags of a file of columns mark the last tokens of entities, as BIOES, BMES and BILOU do."""
    lines = [] if Path(path).is_dir() else read_corpus_lines(path)
    if begins_json(lines) or is_standoff(path, lines):
        return False
    columns = split_columns(path, lines, column)
    tags = {row[column] for row in columns.rows if len(row) == columns.width > 1}
    return any(_ODD_SPELLING.fullmatch(tag) and tag[0] in "EeLl" for tag in tags)


def _read_rows(path: Any, lines: Sequence[str], column: int, repair: bool) -> list[Rows]:
    """The sentences of a CoNLL file, each a list of (line number, token, tag)."""
    columns = split_columns(path, lines, column)
    rows, token, width = columns.rows, columns.token, max(2, columns.width)
    if not rows:
        raise ValueError(f"{path}: needs at least one sentence of tokens with tags. Received: a file without any")
    check_not_segmented(path, rows)
    check_are_tokens(path, columns)
    if isinstance(column, str) or column not in range(-width, width) or column % width in (0, token):
        needed = f"one of {width} columns, not the {_ORDINALS[token]}"
        raise ValueError(f"{path}: `column` must be {needed}. Received: {column}")
    sentences: list[Rows] = [[] for _ in columns.sentences]
    for read, sentence in zip(sentences, columns.sentences, strict=True):
        for number, cells in sentence:
            if not repair and (len(cells) != width or cells[token] == ""):
                needed = f"{width} columns, the {_ORDINALS[token]} a token"
                raise ValueError(f"{path}:{number}: needs {needed}. Received: {lines[number - 1]!r}")
            tag = cells[column] if -len(cells) < column < len(cells) else ""
            if not repair and not _is_tag(tag):
                hint = "; `repair=True` reads other spellings" if _is_tag(_respelled(tag)) else ""
                hint = hint or other_column(rows, column % width)
                raise ValueError(f"{path}:{number}: needs {_NEEDED_TAG}. Received: {tag!r}{hint}")
            if cells[token:] and cells[token]:
                check_one_tag(path, number, cells[token], tag)
                read.append((number, cells[token], tag))
    note_fuller_column(path, rows, column % width)
    return [rows for rows in sentences if rows]


def _is_tag(tag: str) -> bool:
    return tag in UNKNOWN or ENTITY_TAG.fullmatch(tag) is not None


def _checked(path: Any, sentences: Sequence[Rows], repair: bool) -> Sequence[Rows]:
    """The tokens with tags that can be read. With `repair`, reads other spellings, and reads others as O if few."""
    dropped = []
    checked: list[Rows] = []
    for rows in sentences:
        tags = [_respelled(tag) if repair else tag for *_, tag in rows]
        dropped += [(number, tag) for (number, *_), tag in zip(rows, tags, strict=True) if not _is_tag(tag)]
        checked.append([(n, token, tag if _is_tag(tag) else "O") for (n, token, _), tag in zip(rows, tags)])
    count = sum(map(len, sentences))
    if len(dropped) > (max(1, _MOST_ODD * count) if repair else 0):
        number, tag = dropped[0]
        advice = "; `repair=True` reads others as O if they are at most one in a thousand" if repair else _HINT
        received = f"{tag!r}, the first of {len(dropped):,} in {count:,}"
        raise ValueError(f"{path}:{number}: needs {_NEEDED_TAG}{advice}. Received: {received}")
    if dropped:
        numbers = shortened(number for number, _ in dropped)
        print_note(f"{path}: {len(dropped):,} of {count:,} tags are none and are read as O, in line {numbers}")
    return _with_one_case(checked) if repair else checked


def _respelled(tag: str) -> str:
    """A tag in the usual spelling: B-LOC for b_LOC, I-PER for I:PER, O for o."""
    match = _ODD_SPELLING.fullmatch(tag)
    return f"{match[1].upper()}-{match[2]}" if match else "O" if tag in ("o", "0") else tag


def _with_one_case(sentences: list[Rows]) -> list[Rows]:
    """The sentences with the most frequent spelling of types that differ in case alone, such as PER and per."""
    counts = Counter(tag[2:] for rows in sentences for *_, tag in rows if tag[1:2] == "-")
    spelling: dict[str, str] = {}
    for kind, _ in counts.most_common():
        spelling.setdefault(kind.lower(), kind)
    if len(spelling) == len(counts):
        return sentences
    return [
        [(n, token, tag[:2] + spelling.get(tag[2:].lower(), "") if tag[1:2] == "-" else tag) for n, token, tag in rows]
        for rows in sentences
    ]


def _without_language(sentences: Sequence[Rows]) -> Sequence[Rows]:
    """Removes the language before all tokens, as in en:Kim of WikiANN."""
    languages = {match[1] if (match := _LANGUAGE.match(token)) else "" for rows in sentences for _, token, _ in rows}
    if len(languages) != 1 or languages == {""}:
        return sentences
    return [[(number, token.partition(":")[2], tag) for number, token, tag in rows] for rows in sentences]


def _without_numbers(sentences: Sequence[Rows]) -> tuple[Sequence[Rows], bool]:
    """Removes the positions at the ends of the tokens, if nearly all have one."""
    bare, numbered, begun = [], 0, 0
    for rows in sentences:
        matches = [_NUMBERED_TOKEN.fullmatch(token) for _, token, _ in rows]
        numbered += sum(match is not None for match in matches)
        begun += matches[0] is not None and matches[0][2] == "0"
        bare.append([(n, match[1] if match else token, tag) for (n, token, tag), match in zip(rows, matches)])
    if numbered < _NEARLY_ALL * sum(map(len, sentences)) or begun < _BEGUN * len(sentences):
        return sentences, False
    return bare, True


def _entities(path: Any, sentences: Sequence[Rows], repair: bool) -> list[list[Any]]:
    """The entities of each sentence, `(start, end, label)` in tokens."""
    first_lines = {tag[2:]: number for rows in sentences[::-1] for number, _, tag in rows[::-1] if tag != "O"}
    types = sorted(first_lines)
    if not types:
        return [[] for _ in sentences]
    check_types(path, first_lines)
    readings = [_reading(sentences, types, letters) for letters in _letters(path, sentences, repair)]
    reading = min(readings, key=lambda reading: len(reading.odd))
    if not repair:
        _check_order(path, sentences, reading)
    return [reading.scheme.decode(numbers) for numbers in reading.tags]


def check_types(path: Any, types: Mapping[str, int]) -> None:
    """Refuses types, with their first lines, that are tags or join others, as in B-PER|B-LOC, or a#b beside a and b."""
    try:
        bio(sorted(types))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    for kind, number in types.items():
        parts = _JOINED_TYPES.split(kind)
        if len(parts) > 1 and ({*parts} <= {*types} or _JOINED_TAGS.search(kind)):
            raise ValueError(f"{path}:{number}: needs one type for an entity. Received: {kind!r}, which joins several")


class _Reading(NamedTuple):
    """The numbers of the tags of each sentence, by one scheme. `broken` has the violations, each after the rows of its
    sentence; `odd` the numbers of the lines whose tag belongs to another scheme or is broken."""

    scheme: TagScheme
    tags: list
    broken: list
    odd: list


def _reading(sentences: Sequence[Rows], types: Sequence[str], letters: set[str]) -> _Reading:
    """The tags read by the scheme with these first letters. Those of other schemes become tags of this one."""
    scheme, to_scheme = (bio(types), _AS_BIO) if letters == _SCHEMES["BIO"] else (bioes(types), _AS_BIOES)
    index = {label: i for i, label in enumerate(scheme.labels)}
    tags = [[index[tag[0].translate(to_scheme) + tag[1:]] for _, _, tag in rows] for rows in sentences]
    odd = {number for rows in sentences for number, _, tag in rows if tag != "O" and tag[0] not in letters}
    broken = []
    pairs = ((before, tag) for rows in sentences for (*_, before), (*_, tag) in zip([(0, "", "O"), *rows], rows))
    is_iob1 = all(before[2:] == tag[2:] for before, tag in pairs if tag[0] == "B")  # B- only right after its own type
    if odd or scheme.name != "bio" or not is_iob1:
        violations = map(scheme.violations, tags)
        broken = [(rows, *place) for rows, places in zip(sentences, violations) for place in places]
    return _Reading(scheme, tags, broken, sorted(odd.union(rows[position][0] for rows, position, *_ in broken)))


def _letters(path: Any, sentences: Sequence[Rows], repair: bool) -> list[set[str]]:
    """The first letters of the schemes that all tags but a few may be of. Without `repair`, there must be one."""
    tagged = [(number, tag) for rows in sentences for number, _, tag in rows if tag != "O"]
    counts, candidates = Counter(tag[0] for _, tag in tagged), []
    for letters in _SCHEMES.values():
        others = sum(count for letter, count in counts.items() if letter not in letters)
        if others < max(1, _MOST_ODD * sum(map(len, sentences))):
            candidates.append(letters)
        if not others:
            break
    if candidates or repair:
        return candidates or [set(counts)]
    used, place = set[str](), 0
    while any(used <= letters for letters in _SCHEMES.values()):
        used.add(tagged[place][1][0])
        place += 1
    number, tag = tagged[place - 1]
    received = f"{tag} in a file with {', '.join(sorted(used - {tag[0]}))}"
    raise ValueError(f"{path}:{number}: tags must be of one scheme: {', '.join(_SCHEMES)}. Received: {received}")


def _check_order(path: Any, sentences: Sequence[Rows], reading: _Reading) -> None:
    """Refuses tags that may not follow each other in their scheme, unless they are few: a note has their lines."""
    count = sum(map(len, sentences))
    if reading.odd and len(reading.odd) < _MOST_ODD * count:
        print_note(
            f"{path}: {len(reading.odd)} of {count:,} tags break their scheme and are read as conlleval does, "
            f"in line {shortened(reading.odd)}"
        )
    elif reading.broken:
        rows, position, _, label = reading.broken[0]
        number, _, tag = rows[position]
        before = rows[position - 1][2] if position else None
        violation = violation_in_words(*((before, tag) if label is not None else (tag, None)))
        count = len(reading.broken)
        raise ValueError(
            f"{path}:{number}: tags must follow their scheme; `repair=True` reads them as conlleval does. "
            f"Received: {violation}, the first of {count} such tag{'s' if count > 1 else ''} in the file"
        )


def _sentences(sentences: Sequence[Rows], entities: Iterable[Any], unknown: Iterable[Any]) -> list[Sentence]:
    """A `Sentence` for each list of (line number, token, tag); entities and unknown parts come in tokens."""
    sentences, numbered = _without_numbers(_without_language(sentences))
    join_all = numbered or _are_characters([token for rows in sentences for _, token, _ in rows])
    joined = []
    for rows, *parts in zip(sentences, entities, unknown):
        text, extents = join_tokens([token for _, token, _ in rows], join_all)
        spans = [[(extents[a][0], extents[b - 1][1], *label) for a, b, *label in part] for part in parts]
        joined.append(Sentence(text, spans[0], extents, spans[1]))
    return joined


def _are_characters(tokens: Sequence[str]) -> bool:
    """Whether nearly all words are one character. Beside Chinese or Japanese words, half of the others suffice.

    Punctuation does not count: in a file of characters, …… may be one token.
    """
    words = [token for token in tokens if token.isalnum()] or tokens
    chinese = [token for token in words if CJK.match(token)]
    others = [token for token in words if not CJK.match(token)]
    fractions = ((chinese, _CHINESE), (others, 0.5 if chinese else _CHARACTERS))
    return all(sum(len(token) == 1 for token in part) >= fraction * len(part) for part, fraction in fractions)


def join_tokens(tokens: Sequence[str], join_all: bool = False) -> tuple[str, list[tuple[int, int]]]:
    """Joins tokens to a text: with spaces unless next to CJK characters, or without any if `join_all` is true."""
    parts, extents, end, last = [], [], 0, ""
    for token in tokens:
        if last and not join_all and not CJK.match(last) and not CJK.match(token):
            parts.append(" ")
            end += 1
        extents.append((end, end + len(token)))
        parts.append(token)
        end, last = end + len(token), token[-1:] or last
    return "".join(parts), extents


def read_conll_tokens(lines: Iterable[str], name: str = "<stdin>") -> list[Sentence]:
    """The sentences of CoNLL columns without their tags, to be tagged."""
    columns = split_columns(name, lines)
    sentences = [
        [(number, cells[columns.token], "O") for number, cells in rows if "".join(cells[columns.token :][:1])]
        for rows in columns.sentences
    ]
    return _sentences([rows for rows in sentences if rows], itertools.repeat([]), itertools.repeat([]))


def conll_lines(sentence: Sentence) -> list[str]:
    """The CoNLL lines of a `Sentence`: a token, a tab and its BIO tag, `?` if it touches an unknown part; "" last."""
    tags = ["O"] * len(sentence.tokens)
    for start, end, label in sentence.spans:
        inside = [i for i, (a, b) in enumerate(sentence.tokens) if start <= a and b <= end]
        for prefix, i in zip("B" + "I" * len(inside), inside):
            tags[i] = f"{prefix}-{label}"
    for start, end in sentence.unknown:
        tags = ["?" if a < end and start < b else tag for (a, b), tag in zip(sentence.tokens, tags, strict=True)]
    return [*(f"{text}\t{tag}" for text, tag in zip(sentence.texts_of(sentence.tokens), tags, strict=True)), ""]
