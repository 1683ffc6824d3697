"""Reads segmented text: a sentence per line, with spaces between words, as in SIGHAN and PKU; or CoNLL-U."""

import re
from collections.abc import Sequence
from os import PathLike

from kcrf.corpora.columns import ENTITY_TAG, is_conllu, split_columns
from kcrf.corpora.formats import Annotated, Item
from kcrf.corpora.lines import FilePath, read_corpus_lines, read_lines
from kcrf.corpora.recognize import read_items, tokens_of
from kcrf.corpora.unsegmented import check_segmented
from kcrf.corpora.word_classes import class_sign, without_class, without_identifiers, without_markup
from kcrf.progress_bars import print_note

_MANY = 10  # lines in columns from which on the last one may be taken for labels
_LINES_OF_TAG, _MOST_LATIN = 5, 0.7  # a tag has this many lines or more, and so many of them have Latin letters


def read_segmented(path: str | PathLike[str], strip_tags: bool = False) -> list[list[str]]:
    """Reads segmented text: a sentence per line, with spaces between words.

    Also reads the words of CoNLL-U, the format of Universal Dependencies: the lines of ten columns whose first column
    is
    an integer. White space inside a word is removed.

    JSON lines, as `kcrf segment --json` writes them, and exports of doccano, Label Studio and Prodigy, in which each
    word is a labeled span, are read as well.

    Args:
        path: A UTF-8 file.
        strip_tags: Whether to remove word classes from the words: 充满/v, 第六_OD and 今天_t become 充满, 第六 and
            今天. Defaults to False: a file with word classes is an error.

    Returns:
        A list of words for each line, empty for a blank line; for CoNLL-U a list for each sentence. Identifiers that
        begin all lines, as in the People's Daily corpus, are removed, and a note on standard error says so.

    Raises:
        FileNotFoundError: The file does not exist.
        ValueError: The file is not UTF-8, has no word, has a `\\r` within a line, has words with word classes (nine
            of ten words or more), or is not segmented text but raw lines, words with another separator, CoNLL columns
            or JSON lines.
    """
    lines = without_markup(path, read_corpus_lines(path))
    if is_conllu(lines):
        return _read_conllu(path, lines)
    if (items := read_items(path, lines, "cws")) is not None:
        return _words_of(path, items)
    split = without_identifiers(path, [line.split() for line in lines])
    sentences = [words for words in split if words]
    if not sentences:
        raise ValueError(
            f"{path}: needs at least one line of words separated by spaces. Received: a file without words"
        )
    if all(_is_entity_line(words) for words in sentences):
        raise _entities_error(path)
    if len(sentences) > 1 and all(len(words) == 2 and words[1] in "BMESIO" for words in sentences):
        raise ValueError(
            f"{path}: needs one sentence of words per line. Received: what looks like a character and its tag per line"
        )
    _check_not_labels(path, [line.split("\t") for line in lines if line.strip()], not all(split[:-1]))
    _check_not_columns(path, lines)
    if strip_tags:
        return [[without_class(word) for word in words] for words in split]
    _check_no_classes(path, split, [word for words in sentences for word in words])
    check_segmented(path, split)
    return split


def _read_conllu(path: FilePath, lines: Sequence[str]) -> list[list[str]]:
    sentences = split_columns(path, lines).sentences
    words = [["".join(row.cells[1].split()) for row in sentence] for sentence in sentences]
    return [list(filter(None, sentence)) for sentence in words if any(sentence)]


def read_predicted_words(path: str | PathLike[str], strip_tags: bool = False) -> list[list[str]]:
    """Reads the words that a segmenter found: segmented text, or JSON lines as `kcrf segment --json` writes them.

    A segmenter may be a bad one: text that is not segmented is a note on standard error, not an error.
    """
    lines = read_lines(path)
    if (items := read_items(path, lines, "cws")) is not None:
        return _words_of(path, items)
    sentences = [line.split() for line in lines]
    all_words = [word for words in sentences for word in words]
    if strip_tags and class_sign(all_words)[0] is not None:
        return [[without_class(word) for word in words] for words in sentences]
    _check_no_classes(path, sentences, all_words)
    try:
        check_segmented(path, sentences)
    except ValueError as error:
        print_note(str(error))
    return sentences


def _entities_error(path: object) -> ValueError:
    return ValueError(
        f"{path}: needs one sentence of words per line. Received: what looks like entities, which --task ner and "
        "`kcrf.corpora.read_entities` read"
    )


def _words_of(path: FilePath, items: Sequence[Item]) -> list[list[str]]:
    """The words of JSON objects, or of texts in which each word is a span."""
    sentences = [tokens_of(path, item) if isinstance(item, Annotated) else item for item in items]
    for number, words, _ in sentences:
        if not all(word and not re.search(r"\s", word) for word in words):
            raise ValueError(
                f"{path}:{number}: needs one sentence of words per line. Received: words that are empty or contain "
                f"white space, {words}"
            )
    return [sentence.tokens for sentence in sentences]


def _check_not_labels(path: object, rows: Sequence[Sequence[str]], has_empty_lines: bool) -> None:
    """Refuses texts with labels, and tokens with tags, in columns between tabs."""
    labels = {cells[-1] for cells in rows}
    if all(len(cells) in (2, 3) for cells in rows) and len(rows) >= _MANY and len(labels) <= len(rows) / 5:
        content, task, reader = (
            ("a token and its tag per line", "pos", "tagged")
            if has_empty_lines
            else ("texts with a label each", "classify", "classified")
        )
        raise ValueError(
            f"{path}: needs one sentence of words per line. Received: what looks like {content} "
            f"({', '.join(sorted(labels)[:3])}), which --task {task} and `kcrf.corpora.read_{reader}` read"
        )


def _check_not_columns(path: object, lines: Sequence[str]) -> None:
    """Refuses tokens in columns: lines of one width with empty lines between, and a column of few Latin values."""
    rows = [line.split("\t") if "\t" in line else line.split() for line in lines if not line.startswith("#")]
    tokens = [cells for cells in rows if cells and cells[0].strip()]
    columns = list(zip(*tokens, strict=False))[1:]
    width = max(map(len, tokens), default=0)
    if len(tokens) < _MANY or len(tokens) in (len(rows), 0) or min(map(len, tokens)) < max(2, width):
        return
    tags = next((column for column in columns if _are_tags(column)), None)
    if tags is not None:
        raise ValueError(
            f"{path}: needs one sentence of words per line. Received: what looks like {width} columns, a token on each "
            f"line ({', '.join(sorted(set(tags))[:3])}), which --task ner and --task pos read"
        )


def _are_tags(column: Sequence[str]) -> bool:
    """Whether the values of a column are few and most have Latin letters, as tags do."""
    values = set(column)
    latin = sum(re.search("[A-Za-z]", value) is not None and value.isascii() for value in column)
    return 1 < len(values) <= len(column) / _LINES_OF_TAG and latin >= _MOST_LATIN * len(column)


def _is_entity_line(words: Sequence[str]) -> bool:
    """Whether a line is a token with its tag, or a JSON object, rather than words."""
    is_json = words[0].startswith('{"') and words[-1].endswith("}")
    return is_json or words[0] == "-DOCSTART-" or len(words) > 1 and ENTITY_TAG.fullmatch(words[-1]) is not None


def _check_no_classes(path: object, lines: Sequence[Sequence[str]], words: Sequence[str]) -> None:
    sign, count = class_sign(words)
    if sign is None:
        return
    number, first = next((number, line) for number, line in enumerate(lines, 1) if line)
    raise ValueError(
        f"{path}:{number}: needs words without their classes; `strip_tags=True` removes them, and "
        f"--task cws-pos learns them. Received: {' '.join(first[:3])}, and so {count} of {len(words)} words"
    )
