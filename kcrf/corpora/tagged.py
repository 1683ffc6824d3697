"""Sentences with a class for each token: CoNLL columns, CoNLL-U, lines of word/tag, and JSON lines."""

import re
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

from kcrf.corpora.columns import CONLLU_WIDTH, Columns, check_classes, check_not_segmented, check_one_tag, split_columns
from kcrf.corpora.conll import join_tokens
from kcrf.corpora.formats import Annotated, Tagged
from kcrf.corpora.lines import read_corpus_lines
from kcrf.corpora.recognize import read_items, tokens_of
from kcrf.corpora.sentences import UNKNOWN, Sentence
from kcrf.corpora.word_classes import check_word_classes, class_sign, without_identifiers, without_markup, words_in
from kcrf.files import json_line

CONLLU_COLUMNS = {"UPOS": 3, "XPOS": 4}
_UNKNOWN = {*UNKNOWN, "_"}  # _ as CoNLL-U has it
_END_OF_COMPOUND = re.compile(r"\]/?[A-Za-z]*$")  # [中国/ns 人民/n]nt
_BRACKETED = re.compile(r"(.+)[(（]([^()（）]+)[)）]")  # 天氣(Na)


def tagged_sentence(tokens: Sequence[str], tags: Sequence[str | None]) -> Sentence:
    """The `Sentence` of tokens and their classes, one span for each token.

    Args:
        tokens: Strings, none of them empty.
        tags: The class of each token; None, "?", "-1" and "_" say that it is not known.

    Raises:
        ValueError: There are more tokens than tags or fewer, or one of either is empty.

    >>> tagged_sentence(["Kim", "slept"], ["PROPN", "?"]).spans
    [(0, 3, 'PROPN')]
    """
    return joined_sentence(tokens, tags)


def joined_sentence(
    tokens: Sequence[str], tags: Sequence[str | None], join_all: bool = False, where: str = ""
) -> Sentence:
    """As `tagged_sentence`. With `join_all`, the text has no spaces between tokens. `where` begins the message."""
    if len(tokens) != len(tags) or not all(tokens) or "" in tags:
        received = f"{tokens} with the tags {tags}"
        raise ValueError(f"{where}needs a tag for each token, none of them empty. Received: {received}")
    text, extents = join_tokens(tokens, join_all)
    pairs = list(zip(extents, tags, strict=True))
    spans = [(*extent, tag) for extent, tag in pairs if not _is_unknown(tag)]
    return Sentence(text, spans, extents, [extent for extent, tag in pairs if _is_unknown(tag)])


def _is_unknown(tag: str | None) -> bool:
    return tag is None or tag in _UNKNOWN


def tags_of_tokens(sentence: Sentence) -> list[str]:
    """The class of each token of a `Sentence`, "?" where it is not known."""
    tags = {(start, end): label for start, end, label in sentence.spans}
    return [tags.get(tuple(extent), "?") for extent in sentence.tokens]


def words_and_tags(sentence: Sentence) -> list[tuple[str, str]]:
    """The tokens of a `Sentence` with their classes."""
    return list(zip(sentence.texts_of(sentence.tokens), tags_of_tokens(sentence), strict=True))


def tagged_lines(tokens: Iterable[str], tags: Iterable[str]) -> list[str]:
    """The lines of a sentence as CoNLL columns: a token, a tab, its tag; a blank line last."""
    return [*(f"{token}\t{tag}" for token, tag in zip(tokens, tags, strict=True)), ""]


def tagged_line(tokens: Sequence[str], tags: Sequence[str], **members: object) -> str:
    """The JSON line, without its end, for the tokens of a sentence and their classes."""
    return json_line({"tokens": list(tokens), "tags": list(tags), **members})


def read_tagged(path: str | PathLike[str], column: int | str = -1) -> list[Sentence]:
    """Reads sentences with a class for each token, such as parts of speech.

    The format is recognized; docs/tokens.md describes the formats: CoNLL columns as for `read_conll`, CoNLL-U, lines of
    words as in 充满/v, 今天_t or 天氣(Na), bracketed trees, and JSON lines as `kcrf tag` and Hugging Face write them.

    Args:
        path: A UTF-8 file.
        column: The index of the column with the tags, or "UPOS" or "XPOS" for CoNLL-U. Defaults to -1, the last column;
            for CoNLL-U, UPOS. For other formats it is not used.

    Returns:
        A list of `Sentence`s with one span per token. The classes "?", "-1" and "_" are unknown.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: The file is not UTF-8, a token has no tag, there is no sentence, or no such column.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".conll", encoding="utf-8") as file:
    ...     _ = file.write("Kim PROPN\\nslept VERB\\n")
    ...     file.flush()
    ...     read_tagged(file.name)
    [Sentence(text='Kim slept', spans=[(0, 3, 'PROPN'), (4, 9, 'VERB')], tokens=[(0, 3), (4, 9)])]
    """
    lines = without_markup(path, read_corpus_lines(path))
    items = read_items(path, lines, "pos")
    if items is not None:
        found = [tokens_of(path, item) if isinstance(item, Annotated) else item for item in items]
        rows = [item for item in found if item.tokens]
    else:
        words = [word for line in lines for word in line.split()]
        first = next((line for line in lines if line.strip()), "")
        sign = None if "\t" in first else _sign(words)
        if sign is None:
            rows = _column_rows(path, split_columns(path, lines, column), column)
        else:
            rows = _word_rows(path, lines, sign)
    if not rows:
        raise ValueError(f"{path}: needs at least one sentence of tokens with tags. Received: a file without any")
    return [joined_sentence(tokens, tags, where=f"{path}:{number}: ") for number, tokens, tags in rows]


def _column_rows(path: Any, columns: Columns, column: int | str) -> list[Tagged]:
    """The tokens and tags of the sentences of a file of columns."""
    rows, token, width = columns.rows, columns.token, columns.width
    if columns.is_conllu:
        place = _conllu_column(path, column)
    elif isinstance(column, str):
        raise ValueError(f"{path}: `column` must be a number for files other than CoNLL-U. Received: {column}")
    elif column == -1 and token and width == CONLLU_WIDTH:  # the last one is no class of a token
        raise ValueError(f"{path}: CoNLL-U needs tabs between its columns. Received: spaces")
    else:
        check_not_segmented(path, rows)
        if width < 2 or column not in range(-width, width) or column % width in (0, token):
            raise ValueError(
                f"{path}: needs a token and its tag on a line, or words as in 今天/t, and `column` must be the tags'. "
                f"Received: lines of {width} column{'s' * (width != 1)}, column={column}"
            )
        place = column
    for number, cells in (row for sentence in columns.sentences for row in sentence):
        if len(cells) != width:
            raise ValueError(f"{path}:{number}: needs {width} columns, as most lines have. Received: {cells}")
        if not columns.is_conllu:
            check_one_tag(path, number, cells[token], cells[place])
    if not columns.is_conllu:
        check_classes(path, [cells[token] for cells in rows], [cells[place] for cells in rows], width - token == 2)
    return [
        Tagged(sentence[0].number, [row.cells[token] for row in sentence], [row.cells[place] for row in sentence])
        for sentence in columns.sentences
    ]


def _conllu_column(path: Any, column: int | str) -> int:
    if isinstance(column, str):
        place = CONLLU_COLUMNS.get(column.upper())
    else:
        place = CONLLU_COLUMNS["UPOS"] if column == -1 else column % 10 if -10 <= column < 10 else None
    if place is None or place < 2:
        raise ValueError(f"{path}: `column` must be UPOS, XPOS or 2 to 9 for CoNLL-U. Received: {column}")
    return place


def _sign(words: Sequence[str]) -> str | None:
    """The sign between words and their classes, such as /; None if there is none."""
    sign, _ = class_sign(words)
    if sign is None and words:  # classes need not be letters, as in ,/,
        sign = next((sign for sign in "/_" if all(sign in word[1:-1] for word in words)), None)
    return sign


def _word_rows(path: object, lines: Sequence[str], sign: str) -> list[Tagged]:
    rows: list[Tagged] = []
    for number, words in enumerate(without_identifiers(path, words_in(lines)), 1):
        pairs = []
        for word in words:
            pair = _word_and_class(word, sign)
            if pair is None:
                raise ValueError(f"{path}:{number}: needs a tag for each word, as most words have. Received: {word!r}")
            pairs.append(pair)
        rows += [Tagged(number, [word for word, _ in pairs], [tag for _, tag in pairs])] if pairs else []
    words = [word for row in rows for word in row.tokens]
    check_word_classes(path, words, [tag or "" for row in rows for tag in row.tags])
    return rows


def _word_and_class(word: str, sign: str) -> tuple[str, ...] | None:
    """The word and its class, or None without one."""
    if sign in ("(", "（"):
        match = _BRACKETED.fullmatch(word)
        return match and match.groups()
    end = _END_OF_COMPOUND.search(word)  # of 人民/n]nt and 人民/n]/nt; ]/w is a bracket in the text
    word, _, tag = (word[: end.start()] if end and sign in word[: end.start()] else word).rpartition(sign)
    is_begin = word[:1] == "[" and len(word) > 1 and "]" not in word  # [中国/ns begins a compound, [笑哭]/e is a word
    return (word[is_begin:], tag) if word and tag else None
