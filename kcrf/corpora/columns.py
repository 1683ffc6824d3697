"""The one reader of columns, for training, tagging and scoring: a token on a line, an empty line after each sentence.

Also recognizes files whose columns are not tokens and tags.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from kcrf.corpora.lines import CJK
from kcrf.progress_bars import print_note
from kcrf.tags.scheme import ENTITY_TAG

CONLLU_WIDTH = 10
_CONLLU_ID, _NO_TOKEN = re.compile(r"\d+([-.]\d+)?"), re.compile(r"\d+[-.]\d+")  # 3-4 is a range, 3.1 an empty node
_CLASS = re.compile(r"[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*[$]?|[^\w\s()]+|-[LR]RB-")  # NN, n, PRP$, v-aux, ``
_USUAL_TAG = re.compile(  # of entities; of Universal Dependencies and the Penn Treebank
    rf"{ENTITY_TAG.pattern}|[?]|-1|ADJ|ADP|ADV|AUX|CCONJ|DET|INTJ|NOUN|NUM|PART|PRON|PROPN|PUNCT|SCONJ|SYM|VERB|X"
    r"|NNP?S?|VB[DGNPZ]?|(?:JJ|RB)[RS]?|W?P(?:RP)?[$]?|W?DT|WRB|CC|CD|EX|FW|IN|LS|MD|PDT|POS|RP|TO|UH|[^\w\s]+"
)
_BMESO = set("BMESIO")
_JSON_ARRAY = re.compile(r'\s*\[\s*[\["]')
_MOST_EXCHANGED, _MOST_CLASSES = 20, 100  # a column with more different tags may hold tokens, or lemmas
_TOKEN_NAMES = {"token", "tokens", "word", "words", "form"}
_TAG_NAMES = {"tag", "tags", "pos", "upos", "xpos", "label", "labels", "class"}
_MOST_COMMENTS = 20  # lines at the begin of a sentence
_LONGEST_WORD = 8  # Chinese characters; a longer string is a sentence


class Row(NamedTuple):
    """A line with a token: its number and its columns."""

    number: int
    cells: list[str]


@dataclass(frozen=True)
class Columns:
    """The sentences of a file of columns, none of them empty.

    `token` is the column with the tokens: columns before it number tokens or sentences. Most rows have `width` columns.
    """

    sentences: list[list[Row]]
    token: int
    width: int
    is_conllu: bool = False

    @property
    def rows(self) -> list[list[str]]:
        """The columns of all rows."""
        return [row.cells for sentence in self.sentences for row in sentence]


def split_columns(path: object, lines: Iterable[str], column: int | str = -1) -> Columns:
    """Splits lines into sentences of columns, between tabs in lines with a tab, else between spaces.

    Some lines are no tokens: `-DOCSTART-`; names of columns; the ranges (3-4) and empty nodes (3.1) of CoNLL-U; and
    comments, which begin with `#` and white space before the first token of a sentence, unless they look like a token.
    """
    lines = list(lines)
    if is_conllu(lines):
        return _split_conllu(path, lines)
    rows = list(map(_cells, lines))
    if _are_exchanged(rows):
        print_note(f"{path}: the tags are in the first of two columns: read the second as the tokens")
        rows = [cells[::-1] for cells in rows]
    names, token = _first_columns(rows)
    rows = [[] if token and cells and _NO_TOKEN.fullmatch(cells[0]) else cells for cells in rows]
    widths = Counter(len(cells) for cells in rows if cells)
    width = max(widths, key=lambda width: widths[width], default=0)  # of most lines that are not blank
    place = column if isinstance(column, int) and -width <= column < width else -1
    head = _head(path, rows, token, place)
    tags = {cells[place] for cells in rows if len(cells) == width > 1 and cells[0] != "#"}
    sentences: list[list[Row]] = [[]]
    for number, (line, cells) in enumerate(zip(lines, rows, strict=True), 1):
        is_comment = line.startswith(("# ", "#\t")) and (len(cells) != width or cells[place] not in tags)
        is_comment = is_comment or line.startswith("###") and len(cells) == 1 < width  # GENIA's ###MEDLINE:95369245
        if not line.strip() or line.startswith("-DOCSTART-"):
            sentences.append([])
        elif cells and number != head and not (is_comment and not sentences[-1]):
            if names and sentences[-1] and sentences[-1][-1].cells[:names] != cells[:names]:
                sentences.append([])
            sentences[-1].append(Row(number, cells))
    return Columns([rows for rows in sentences if rows], token, width)


def is_conllu(lines: Sequence[str]) -> bool:
    """Whether the first line that is neither blank nor a comment is a token of CoNLL-U."""
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    return len(first.split("\t")) == CONLLU_WIDTH and _CONLLU_ID.fullmatch(first.split("\t")[0]) is not None


def begin_columns(lines: Sequence[str]) -> bool | None:
    """Whether the first lines of what should be text are columns; None if the next line must tell."""
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    if not rows:
        return None if len(lines) < _MOST_COMMENTS and any(line.startswith("# ") for line in lines) else False
    if rows[0][0].startswith("-DOCSTART-") or is_conllu(lines):
        return True
    are_rows = len(rows[0]) == len(rows[:2][-1]) and tags_at_one_end(rows[:2])
    return are_rows and (True if len(rows) > 1 else None)


def tags_at_one_end(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows of several columns all have a tag of entities as the last one, or all as the first one."""
    are_several = all(len(cells) > 1 for cells in rows)
    return are_several and any(_are_of_entities(cells[place] for cells in rows) for place in (0, -1))


def _split_conllu(path: object, lines: Sequence[str]) -> Columns:
    sentences: list[list[Row]] = [[]]
    for number, line in enumerate(lines, 1):
        cells = line.split("\t")
        if not line.strip():
            sentences.append([])
        elif not line.startswith("#"):
            if len(cells) != CONLLU_WIDTH or not _CONLLU_ID.fullmatch(cells[0]):
                raise ValueError(f"{path}:{number}: needs the 10 columns of CoNLL-U. Received: {line[:40]!r}")
            sentences[-1] += [Row(number, cells)] if cells[0].isdigit() else []
    return Columns([rows for rows in sentences if rows], 1, CONLLU_WIDTH, is_conllu=True)


def _cells(line: str) -> list[str]:
    """The columns of a line; an empty list for a blank line. A space before the only other column is a token."""
    line = line.rstrip(" \t")
    if "\t" in line:
        return line.split("\t")
    cells = [cell for cell in line.split(" ") if cell]
    return [" ", *cells] if len(cells) == 1 and line[0] == " " else cells


def _are_exchanged(rows: Sequence[Sequence[str]]) -> bool:
    """Whether all lines have a usual tag, and a second column that has other values."""
    rows = [cells for cells in rows if cells and cells[0][0:1] != "#"]
    if any(len(cells) != 2 for cells in rows):  # most files: their values need not be collected
        return False
    tags, words = ({cells[place] for cells in rows} for place in (0, 1))
    has_letters = any(map(str.isalpha, "".join(tags - {"O"})))
    return has_letters and all(map(_USUAL_TAG.fullmatch, tags)) and not all(map(_USUAL_TAG.fullmatch, words))


def _first_columns(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    """The number of columns that name sentences or documents, and the column of the tokens, which follows them."""
    rows = [cells for cells in rows if not cells or _NO_TOKEN.fullmatch(cells[0]) is None]
    first = next((number for number, cells in enumerate(rows) if cells), 0)
    has_head = bool(rows) and not _TOKEN_NAMES.isdisjoint(map(str.lower, rows[first]))
    rows = rows[first + has_head :]
    names = _identifiers(rows)
    return names, names + _token_column([cells[names:] for cells in rows])


def _identifiers(rows: Sequence[Sequence[str]]) -> int:
    """The number of columns before the tokens that have a number or a name of the sentence or the document."""
    rows = [cells for cells in rows if cells and cells[0] != "-DOCSTART-"]
    width, place = min(map(len, rows), default=0), 0
    while place < width - 2 and name_sentences([cells[place : place + 2] for cells in rows]):
        place += 1
    return place


def name_sentences(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the values of the first column stand in stretches of two rows or more on average, hardly one in several
    stretches, as where files are joined; or one in all rows, while the second column differs."""
    names = [value for value, _ in groupby(cells[0] for cells in rows)]
    is_of_all = len(names) == 1 < len({cells[1] for cells in rows})
    return is_of_all or 4 * len({*names}) >= len(names) and len(rows) >= max(4, 2 * len(names))


def _token_column(rows: Sequence[Sequence[str]]) -> int:
    """The column of the tokens: 1 if the first one counts the tokens of each sentence, else 0."""
    counted = last = 0
    if all(ENTITY_TAG.fullmatch(cells[-1]) for cells in rows if len(cells) == 2):  # numbers that are tokens
        rows = [cells if len(cells) != 2 else ["", ""] for cells in rows]
    for cells in rows:
        if not cells or cells[0] in ("#", "-DOCSTART-"):
            last = 0
        elif not cells[0].isdecimal() or len(cells) < 2 or int(cells[0]) not in (0, 1, last + 1):
            return 0
        else:
            last, counted = int(cells[0]), counted + 1
    return int(counted > 1)


def _head(path: object, rows: Sequence[Sequence[str]], token: int, column: int) -> int | None:
    """The number of the first line if it has the names of the columns, else None; a note says that it is skipped."""
    number, first = next(((number, cells) for number, cells in enumerate(rows, 1) if cells), (0, []))
    if len(first) < 2 or first[token].lower() not in _TOKEN_NAMES or first[column].lower() not in _TAG_NAMES:
        return None
    if sum(cells[column:][:1] == first[column:][:1] for cells in rows if cells) > 1:  # it is a tag as well
        return None
    print_note(f"{path}:{number}: skipped, the names of the columns: {', '.join(first)}")
    return number


# -- files whose columns are not tokens and tags


def other_column(rows: Sequence[Sequence[str]], column: int) -> str:
    """The end of an error message that names the column with the tags of entities, if another column has them."""
    if all("," in "".join(cells) for cells in rows):
        return "; tabs or spaces must separate the columns, not commas"
    width = min(map(len, rows))
    values = {i: {cells[i] for cells in rows} for i in range(width)}
    other = next((i for i in values if i != column and values[i] != {"O"} and _are_of_entities(values[i])), None)
    if other is None:
        tags = values.get(column, set())
        classes = all(map(_CLASS.fullmatch, tags)) and not any(map(ENTITY_TAG.fullmatch, tags)) and not tags <= _BMESO
        return "; --task pos and `kcrf.corpora.read_tagged` read classes of tokens" if classes else ""
    return f"; `column={other}` has tags" if other else "; the tags are in the first column, where the tokens must be"


def _are_of_entities(values: Iterable[str]) -> bool:
    return all(map(ENTITY_TAG.fullmatch, values))


def note_fuller_column(path: object, rows: Sequence[Sequence[str]], column: int) -> None:
    """Prints a note if another column has more entities of the same types: in GermEval, the outer ones."""
    rows = [cells for cells in rows if len(cells) > column]
    tags = {i: [cells[i] for cells in rows] for i in range(1, min(map(len, rows), default=0))}
    tagged = {i: [tag[2:] for tag in tags[i] if tag != "O"] for i in tags if _are_of_entities(set(tags[i]))}
    types = set(tagged.get(column, ()))
    fuller = [i for i in tagged if types and types <= {*tagged[i]} and len(tagged[i]) > len(tagged[column])]
    if fuller:
        print_note(
            f"{path}: read column {column}, in which {len(tagged[column]):,} tokens are in entities; of the same "
            f"types, {len(tagged[fuller[0]]):,} are in column {fuller[0]}, which --column {fuller[0]} reads"
        )


def check_not_segmented(path: object, rows: Sequence[Sequence[str]]) -> None:
    """Refuses sentences of words: lines of many lengths in which no word is a tag of entities; or a tag after each."""
    are_pairs = all(len(cells) > 3 and len(cells) % 2 == 0 and _are_of_entities(cells[1::2]) for cells in rows)
    if are_pairs and not all(_are_of_entities(cells[2::2]) for cells in rows):
        received = f"several, {' '.join(rows[0])[:40]!r}"
        raise ValueError(f"{path}: needs one token and its tag on a line. Received: {received}")
    most_common = max(Counter(map(len, rows)).values(), default=0)
    if most_common > len(rows) / 2 and len(rows) > 1 or max(map(len, rows), default=0) < 3:
        return
    if _JSON_ARRAY.match(" ".join(rows[0])):
        raise ValueError(f"{path}: needs columns, or JSON objects. Received: JSON arrays")
    if not any(ENTITY_TAG.fullmatch(word) for cells in rows for word in cells[1:]):
        raise ValueError(
            f"{path}: needs a token and its tag on a line. Received: what looks like sentences of words, which "
            "--task cws and `kcrf.corpora.read_segmented` read"
        )


def check_one_tag(path: object, number: int, token: str, tag: str) -> None:
    """Refuses the tags of a whole sentence in place of the tag of a token."""
    tags = re.split(r"[\s,]+", tag)
    if len(tags) > 1 and (_are_of_entities(tags) or len(tags) == len(token.split()) and "," not in tag):
        received = f"{len(tags)} tags, {tag[:40]!r}, for {token[:20]!r}"
        raise ValueError(f"{path}:{number}: needs one token and its tag on a line. Received: {received}")


def check_classes(path: object, tokens: Sequence[str], tags: Sequence[str], first_is_tag: bool) -> None:
    """Refuses a column of tokens, or of lemmas, in place of classes: nearly as many different ones as tokens."""
    words, classes = len(set(tokens)), len(set(tags))
    if classes > max(words, _MOST_EXCHANGED) and first_is_tag:
        advice = "the tags are in the first column, where the tokens must be"
    elif classes > max(words / 2, _MOST_CLASSES):
        advice = "`column` chooses the column of the tags"
    else:
        return
    received = f"{classes:,} different tags for {words:,} different tokens; {advice}"
    raise ValueError(f"{path}: needs tags of few classes, such as parts of speech. Received: {received}")


def check_are_tokens(path: object, columns: Columns) -> None:
    """Refuses Chinese sentences in the columns of Label Studio, which splits text at spaces alone."""
    for number, cells in (row for sentence in columns.sentences for row in sentence):
        if cells[1:3] == ["-X-", "_"] and len(CJK.findall(cells[0])) > _LONGEST_WORD:
            raise ValueError(
                f"{path}:{number}: needs a word or a character in the first column. Received: {cells[0][:20]!r}; "
                "Label Studio splits text at spaces alone: export JSON or JSON-MIN"
            )
