"""CoNLL columns: one token per line, its tag in one of the columns, a blank line after each sentence."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from os import PathLike

from kcrf.corpora.lines import read_corpus_lines
from kcrf.corpora.segmented import ENTITY_TAG
from kcrf.corpora.sentences import Sentence
from kcrf.tags import bio, bioes, violation_in_words

__all__ = ["conll_lines", "join_tokens", "read_conll", "read_conll_tokens"]

_SCHEMES = {"BIO": set("BI"), "BIOES": set("BIES"), "BILOU": set("BILU"), "BMES": set("BMES")}
_AS_BIOES = str.maketrans("MLU", "IES")
_NUMBERED_TOKEN = re.compile(r"(.+?)([0-9]+)")  # 科0, 技1: a character and its position in the word
_CJK = re.compile(  # Chinese and Japanese, their punctuation and full-width forms
    "[\u2e80-\u30ff\u3105-\u312f\u31f0-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)


def read_conll(
    path: str | PathLike[str], column: int = -1, repair: bool = False, lines: Iterable[str] | None = None
) -> list[Sentence]:
    """Reads entities from CoNLL columns.

    Columns are separated by tabs in lines that have a tab, else by blanks. The token is the first column; it may be any
    text, blanks included where tabs separate. Lines that begin with `-DOCSTART-` end a sentence. A line that begins
    with `# ` before the first token of a sentence is a comment, unless it has as many columns as the rest and a tag.

    The scheme is recognised from all tags of the file: BIO (IOB2), IOB1, BIOES, BILOU or BMES; O is outside.

    The text is made of the tokens. They are joined without blanks where each is one character, and next to a Chinese or
    Japanese character; otherwise by one blank. Where every token ends in its position in the word (科0 技1, as in Weibo
    NER), the numbers are removed.

    Args:
        path: A UTF-8 file.
        column: Index of the column with the tags. Negative indices count from the last. Defaults to -1.
        repair: Whether to read tags that break the rules as conlleval does, instead of refusing them: an entity begins
            at an I- that continues none, and ends where its tags end. A tag that is unknown or missing is read as O.
            Defaults to `False`.
        lines: The lines of the file, where they were read before. Defaults to `None`.

    Returns:
        A list of `Sentence`s, none of them empty. Their spans are in characters of the text, `tokens` as in the file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not UTF-8, has no sentence or is segmented text; or, without `repair`, a line lacks
            columns or has an unknown tag, or a tag breaks the scheme. Names the line.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".conll", encoding="utf-8") as file:
    ...     _ = file.write("李\\tB-PER\\n雷\\tI-PER\\n在\\tO\\n")
    ...     file.flush()
    ...     read_conll(file.name)
    [Sentence(text='李雷在', spans=[(0, 2, 'PER')], tokens=[(0, 1), (1, 2), (2, 3)])]
    """
    lines = read_corpus_lines(path, lines)
    sentences = _read_rows(path, lines, column, repair)
    return _sentences(sentences, _entities(path, sentences, repair))


def _read_rows(path, lines, column, repair):
    """The sentences of a CoNLL file, each a list of (line number, token, tag)."""
    rows = [_columns(line) for line in lines]
    _check_not_segmented(path, rows)
    widths = Counter(map(len, rows))
    width = max(2, max(widths, key=lambda width: widths[width] if width else 0, default=2))
    if column not in range(-width, width) or column % width == 0:
        raise ValueError(f"{path}: `column` must name one of {width} columns, not the first. Received: {column}")
    sentences = [[]]
    for number, (line, columns) in enumerate(zip(lines, rows), 1):
        if not columns or columns[0].startswith("-DOCSTART-"):
            sentences.append([])
            continue
        complete = len(columns) == width and columns[0] != ""
        tag = columns[column] if -len(columns) < column < len(columns) else ""
        known = ENTITY_TAG.fullmatch(tag) is not None
        if line.startswith("# ") and not sentences[-1] and not (complete and known):
            continue
        if not complete and not repair:
            raise ValueError(f"{path}:{number}: needs {width} columns, the first a token. Received: {line!r}")
        if not known and not repair:
            raise ValueError(f"{path}:{number}: needs O or a tag like B-PER, with one of BIESMLU. Received: {tag!r}")
        if columns[0]:
            sentences[-1].append((number, columns[0], tag if known else "O"))
    sentences = [rows for rows in sentences if rows]
    if not sentences:
        raise ValueError(f"{path}: needs at least one sentence of tokens with tags. Received: a file without any")
    return sentences


def _check_not_segmented(path, rows):
    """Refuses sentences of words: lines of many lengths in which no word is a tag."""
    rows = [columns for columns in rows if columns and columns[0] != "#"]
    most_common = max(Counter(map(len, rows)).values(), default=0)
    if most_common > len(rows) / 2 and len(rows) > 1 or max(map(len, rows), default=0) < 3:
        return
    if not any(ENTITY_TAG.fullmatch(word) for columns in rows for word in columns[1:]):
        raise ValueError(
            f"{path}: needs a token and its tag on a line. Received: what looks like sentences of words, which "
            "--task cws and `kcrf.corpora.read_segmented` read"
        )


def _columns(line):
    """The columns of a line; none of a blank line. A blank before the only other column is a token."""
    line = line.rstrip(" \t")
    if "\t" in line:
        return line.split("\t")
    columns = [column for column in line.split(" ") if column]
    return [" ", *columns] if len(columns) == 1 and line[0] == " " else columns


def _without_numbers(sentences):
    """Removes the positions at the ends of all tokens, if all have one.

    Returns:
        The sentences, and whether the tokens had positions.
    """
    bare = []
    for rows in sentences:
        matches = [_NUMBERED_TOKEN.fullmatch(token) for _, token, _ in rows]
        if not all(matches) or matches[0][2] != "0":
            return sentences, False
        bare.append([(number, match[1], tag) for (number, _, tag), match in zip(rows, matches)])
    return bare, True


def _entities(path, sentences, repair):
    """The entities of each sentence, `(start, end, label)` in tokens."""
    prefixes = _prefixes(path, sentences, repair)
    types = sorted({tag[2:] for rows in sentences for _, _, tag in rows if tag != "O"})
    if not types:
        return [[] for _ in sentences]
    scheme = bio(types) if prefixes <= _SCHEMES["BIO"] else bioes(types)
    index = {label: i for i, label in enumerate(scheme.labels)}
    tags = [[index[tag[0].translate(_AS_BIOES) + tag[1:]] for _, _, tag in rows] for rows in sentences]
    if not repair and not (scheme.name == "bio" and _is_iob1(sentences)):
        _check_order(path, sentences, tags, scheme)
    return [scheme.decode(numbers) for numbers in tags]


def _prefixes(path, sentences, repair):
    """The first letters of all tags but O. Without `repair` they must be those of one scheme."""
    prefixes = set()
    for rows in sentences:
        for number, _, tag in rows:
            if tag == "O" or tag[0] in prefixes:
                continue
            prefixes.add(tag[0])
            if not repair and not any(prefixes <= scheme for scheme in _SCHEMES.values()):
                raise ValueError(
                    f"{path}:{number}: tags must be of one scheme: {', '.join(_SCHEMES)}. "
                    f"Received: {tag} in a file with {', '.join(sorted(prefixes - {tag[0]}))}"
                )
    return prefixes


def _is_iob1(sentences):
    """Whether B- occurs only right after an entity of the same type, as in IOB1."""
    pairs = ((before, tag) for rows in sentences for (*_, before), (*_, tag) in zip([(0, "", "O"), *rows], rows))
    return all(before[2:] == tag[2:] for before, tag in pairs if tag[0] == "B")


def _check_order(path, sentences, tags, scheme):
    """Refuses tags that may not follow each other in their scheme."""
    broken = [(rows, *found) for rows, numbers in zip(sentences, tags) for found in scheme.violations(numbers)]
    if not broken:
        return
    rows, position, _, label = broken[0]
    number, _, tag = rows[position]
    if label is None:  # the tag may not end the sentence
        what = violation_in_words(tag, None)
    else:
        what = violation_in_words(rows[position - 1][2] if position else None, tag)
    raise ValueError(
        f"{path}:{number}: tags must follow their scheme; `repair=True`, --repair, reads them as conlleval does. "
        f"Received: {what}, the first of {len(broken)}"
    )


def _sentences(sentences, entities):
    """A `Sentence` for each list of (line number, token, tag), with its entities, which come in tokens."""
    sentences, numbered = _without_numbers(sentences)
    join_all = numbered or all(len(token) == 1 for rows in sentences for _, token, _ in rows)
    return [_sentence([token for _, token, _ in rows], spans, join_all) for rows, spans in zip(sentences, entities)]


def _sentence(tokens, spans, join_all):
    """Joins tokens to a `Sentence`; spans come in tokens."""
    text, extents = join_tokens(tokens, join_all)
    return Sentence(text, [(extents[first][0], extents[last - 1][1], label) for first, last, label in spans], extents)


def join_tokens(tokens: Sequence[str], join_all: bool = False) -> tuple[str, list[tuple[int, int]]]:
    """Makes a text of tokens, as `read_conll` does.

    Args:
        tokens: List of strings.
        join_all: Whether to put no blank between any two of them. Defaults to `False`: there is none next to Chinese
            and Japanese characters.

    Returns:
        The text, and the `(start, end)` of each token in it.

    >>> join_tokens(["Kim", "in", "上", "海"])
    ('Kim in上海', [(0, 3), (4, 6), (6, 7), (7, 8)])
    """
    parts, extents, end, last = [], [], 0, ""
    for token in tokens:
        if last and not join_all and not _CJK.match(last) and not _CJK.match(token):
            parts.append(" ")
            end += 1
        extents.append((end, end + len(token)))
        parts.append(token)
        end, last = end + len(token), token[-1:] or last
    return "".join(parts), extents


def read_conll_tokens(lines: Iterable[str]) -> list[Sentence]:
    """The sentences of CoNLL columns without their tags, to be tagged.

    Args:
        lines: Iterable of strings, without line ends. The token is the first column, as for `read_conll`; there need
            not be another.

    Returns:
        A list of `Sentence`s without spans, none of them empty.

    >>> [sentence.text for sentence in read_conll_tokens(["Kim NNP", "slept VBD", "", "Yes"])]
    ['Kim slept', 'Yes']
    """
    sentences = [[]]
    for number, columns in enumerate(map(_columns, lines), 1):
        if not columns or columns[0].startswith("-DOCSTART-"):
            sentences.append([])
        elif columns[0]:
            sentences[-1].append((number, columns[0], "O"))
    return _sentences([rows for rows in sentences if rows], itertools.repeat([]))


def conll_lines(sentence: Sentence) -> list[str]:
    """The lines, without their ends, of a `Sentence` as CoNLL columns: a token, a tab, its BIO tag; a blank line last.

    Args:
        sentence: A `Sentence` with tokens.

    >>> conll_lines(Sentence("Kim slept", [(0, 3, "PER")], [(0, 3), (4, 9)]))
    ['Kim\\tB-PER', 'slept\\tO', '']
    """
    tags = ["O"] * len(sentence.tokens)
    for start, end, label in sentence.spans:
        inside = [i for i, (a, b) in enumerate(sentence.tokens) if start <= a and b <= end]
        for prefix, i in zip("B" + "I" * len(inside), inside):
            tags[i] = f"{prefix}-{label}"
    texts = (sentence.text[start:end] for start, end in sentence.tokens)
    return [*(f"{text}\t{tag}" for text, tag in zip(texts, tags, strict=True)), ""]
