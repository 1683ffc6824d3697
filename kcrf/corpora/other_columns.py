"""Recognizes files whose columns are not tokens and tags: tags in another column, or sentences of words."""

import re
from collections import Counter

from kcrf.corpora.segmented import ENTITY_TAG

_CLASS = re.compile(r"[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*[$]?|[^\w\s()]+|-[LR]RB-")  # NN, n, PRP$, v-aux, ``
_BMESO = set("BMESIO")
_JSON_ARRAY = re.compile(r'\s*\[\s*[\["]')
_MOST_EXCHANGED, _MOST_CLASSES = 20, 100  # different tags from which on a column may be that of tokens, or of lemmas
_TOKEN_NAMES = {"token", "tokens", "word", "words", "form"}
_TAG_NAMES = {"tag", "tags", "pos", "upos", "xpos", "label", "labels", "class"}


def other_column(rows, column):
    """The end of an error message that names the column with the tags of entities, if another column has them.

    Args:
        rows: A list of columns for each line.
        column: The index of the column.
    """
    rows = [columns for columns in rows if columns and columns[0] != "#"]
    if all("," in "".join(columns) for columns in rows):
        return "; tabs or spaces must separate the columns, not commas"
    width = min(map(len, rows))
    values = {i: {columns[i] for columns in rows} for i in range(width)}
    other = next((i for i in values if i != column and values[i] != {"O"} and _are_of_entities(values[i])), None)
    if other is None:
        tags = values.get(column, set())
        is_classes = (
            all(map(_CLASS.fullmatch, tags)) and not any(map(ENTITY_TAG.fullmatch, tags)) and not tags <= _BMESO
        )
        return "; --task pos and `kcrf.corpora.read_tagged` read classes of tokens" if is_classes else ""
    return (
        "; the tags are in the first column, where the tokens must be" if not other else f"; `column={other}` has tags"
    )


def _are_of_entities(values):
    return all(map(ENTITY_TAG.fullmatch, values))


def note_fuller_column(path, rows, column):
    """Prints a note if another column has more entities of the same types, as that of the outer entities of GermEval.

    Args:
        path: The file, for the note.
        rows: A list of columns for each line.
        column: The index of the column that is read.
    """
    rows = [columns for columns in rows if len(columns) > column and columns[0] not in ("#", "-DOCSTART-")]
    tags = {i: [columns[i] for columns in rows] for i in range(1, min(map(len, rows), default=0))}
    tagged = {i: [tag[2:] for tag in tags[i] if tag != "O"] for i in tags if _are_of_entities(set(tags[i]))}
    types = set(tagged.get(column, ()))
    fuller = [i for i in tagged if types and types <= {*tagged[i]} and len(tagged[i]) > len(tagged[column])]
    if fuller:
        from kcrf.progress_bars import print_note

        print_note(
            f"{path}: read column {column}, in which {len(tagged[column]):,} tokens are in entities; of the same "
            f"types, {len(tagged[fuller[0]]):,} are in column {fuller[0]}, which --column {fuller[0]} reads"
        )


def check_not_segmented(path, rows):
    """Refuses sentences of words: lines of many lengths in which no word is a tag of entities."""
    rows = [columns for columns in rows if columns and columns[0] != "#"]
    most_common = max(Counter(map(len, rows)).values(), default=0)
    if most_common > len(rows) / 2 and len(rows) > 1 or max(map(len, rows), default=0) < 3:
        return
    if _JSON_ARRAY.match(" ".join(rows[0])):
        raise ValueError(f"{path}: needs columns, or JSON objects. Received: JSON arrays")
    if not any(ENTITY_TAG.fullmatch(word) for columns in rows for word in columns[1:]):
        raise ValueError(
            f"{path}: needs a token and its tag on a line. Received: what looks like sentences of words, which "
            "--task cws and `kcrf.corpora.read_segmented` read"
        )


def check_one_tag(path, number, token, tag):
    """Refuses the tags of a whole sentence in place of the tag of a token.

    Args:
        path, number: The file and the line, for the message.
        token, tag: The columns of the line, strings.
    """
    tags = tag.split()
    if len(tags) > 1 and (_are_of_entities(tags) or len(tags) == len(token.split())):
        raise ValueError(
            f"{path}:{number}: needs one token and its tag on a line. Received: {len(tags)} tags, {tag[:40]!r}, for "
            f"{token[:20]!r}"
        )


def check_classes(path, tokens, tags, first_is_tag):
    """Refuses a column of tokens, or of lemmas, in place of classes: nearly as many different ones as tokens.

    Args:
        path: The file, for the message.
        tokens, tags: Lists of strings.
        first_is_tag: Whether the tags may be in the column of the tokens, because there is no third one.
    """
    words, classes = len(set(tokens)), len(set(tags))
    if classes > max(words, _MOST_EXCHANGED) and first_is_tag:
        advice = "the tags are in the first column, where the tokens must be"
    elif classes > max(words / 2, _MOST_CLASSES):
        advice = "`column` chooses the column of the tags"
    else:
        return
    raise ValueError(
        f"{path}: needs tags of few classes, such as parts of speech. Received: {classes:,} different tags for "
        f"{words:,} different tokens; {advice}"
    )


def check_no_trees(path, rows):
    """Refuses trees in brackets, as the Penn Treebank has them: lines that all begin with a bracket."""
    firsts = [columns[0] for columns in rows if columns]
    if len(firsts) > 1 and all(first.startswith("(") for first in firsts) and len(set(firsts)) <= len(firsts) / 2:
        raise ValueError(f"{path}: needs a token and its tag on a line. Received: what looks like trees in brackets")


def head_of_columns(path, rows, token, column):
    """The number of the first line if it has the names of the columns, else None; a note says that it is skipped.

    Args:
        path: The file, for the note.
        rows: A list of columns for each line.
        token, column: The columns of tokens and of tags.
    """
    number, first = next(((number, row) for number, row in enumerate(rows, 1) if row), (None, []))
    if len(first) < 2 or first[token].lower() not in _TOKEN_NAMES or first[column].lower() not in _TAG_NAMES:
        return None
    if sum(row[column:][:1] == first[column:][:1] for row in rows if row) > 1:  # it is a tag as well
        return None
    from kcrf.progress_bars import print_note

    print_note(f"{path}:{number}: skipped, the names of the columns: {', '.join(first)}")
    return number
