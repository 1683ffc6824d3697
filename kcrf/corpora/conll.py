"""Readers of corpora, and splits."""

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kcrf.tags import bio, bioes, violation_in_words

__all__ = ["Sentence", "entity_types", "read_conll", "read_lines", "read_segmented", "split"]

_BOM = b"\xef\xbb\xbf"
_WITH_WORD_CLASS = re.compile(r".*/[A-Za-z]+(\][A-Za-z]+)?")  # 充满/v, and 大会堂/n]ns at the end of a bracket
_TAG = re.compile(r"O|[BIESMLU]-.+")
_SCHEMES = {"BIO": set("BI"), "BIOES": set("BIES"), "BILOU": set("BILU"), "BMES": set("BMES")}
_AS_BIOES = str.maketrans("MLU", "IES")
_PLACED = re.compile(r"(.+?)([0-9]+)")  # 科0, 技1: a character and its place in the word
_CJK = re.compile(  # Chinese and Japanese, their punctuation and full-width forms
    "[\u2e80-\u30ff\u3105-\u312f\u31f0-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)


@dataclass(frozen=True)
class Sentence:
    """A text with its entities.

    Attributes:
        text: A string.
        spans: `(start, end, label)` of each entity, half-open, in characters of the text, in order, apart.
        tokens: `(start, end)` of each token that the file had, as the spans. Defaults to none.

    Raises:
        ValueError: A span or a token is empty, leaves the text or comes before the end of the one before it.

    >>> sentence = Sentence("李雷住在上海", [(0, 2, "PER"), (4, 6, "LOC")])
    >>> [sentence.text[start:end] for start, end, _ in sentence.spans]
    ['李雷', '上海']
    """

    text: str
    spans: list
    tokens: list = field(default_factory=list)

    def __post_init__(self):
        for name in ("spans", "tokens"):
            last = 0
            for start, end, *_ in getattr(self, name):
                if not last <= start < end <= len(self.text):
                    raise ValueError(
                        f"A sentence needs `{name}` in order, apart and within its {len(self.text)} characters. "
                        f"Received: ({start}, {end}) after one that ends at {last}"
                    )
                last = end


def read_lines(path):
    """The lines of a UTF-8 file without their ends: `\\n` or `\\r\\n`. Nothing else ends a line; a BOM is dropped.

    Raises:
        FileNotFoundError: There is no such file.
        IsADirectoryError: It is a folder.
        ValueError: A line is not UTF-8; the message names the line and the byte.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path}: needs a file. Received: a folder")
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    lines = path.read_bytes().split(b"\n")
    if not lines[-1]:
        lines.pop()  # what follows the last line end is no line
    return list(decode_lines(lines, path))


def decode_lines(lines, name):
    """Yields lines of bytes as strings without their ends and the first one's BOM; errors call the file `name`."""
    for number, line in enumerate(lines, 1):
        line = line.removeprefix(_BOM) if number == 1 else line
        try:
            yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{name}:{number}: needs UTF-8 text. Received: byte 0x{line[error.start]:02x} at byte "
                f"{error.start + 1} of the line ({error.reason})"
            ) from None


def _gold_lines(path, lines=None):
    """The lines of a file of gold, where a `\\r` alone (old Macintosh) would make one sentence of many."""
    lines = [line.rstrip("\r") for line in (read_lines(path) if lines is None else lines)]
    for number, line in enumerate(lines, 1):
        if "\r" in line:
            raise ValueError(f"{path}:{number}: needs lines that end in \\n or \\r\\n. Received: a \\r inside the line")
    return lines


def read_segmented(path):
    """Reads segmented text: one sentence a line, words separated by blanks, as SIGHAN and PKU have it.

    Args:
        path: A UTF-8 file.

    Returns:
        One list of words per line, an empty list for a blank line.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not UTF-8, has no word, has a lone `\\r` in a line, carries a word class on every
            word, as in 充满/v, or holds entities, as CoNLL columns or JSON lines.
    """
    sentences = [line.split() for line in _gold_lines(path)]
    if not any(sentences):
        raise ValueError(
            f"{path}: needs at least one line of words separated by blanks. Received: a file without words"
        )
    if all(_WITH_WORD_CLASS.fullmatch(word) for words in sentences for word in words):
        number, words = next((number, words) for number, words in enumerate(sentences, 1) if words)
        raise ValueError(f"{path}:{number}: needs words without their classes. Received: {' '.join(words[:3])}")
    if all(_holds_entities(words) for words in sentences if words):
        raise ValueError(
            f"{path}: needs a sentence of words a line. Received: what looks like entities, which --task ner and "
            "`kcrf.corpora.read_entities` read"
        )
    return sentences


def _holds_entities(words):
    """Whether a line is a token with its tag, or a JSON object, rather than words."""
    is_json = words[0].startswith('{"') and words[-1].endswith("}")
    return is_json or words[0] == "-DOCSTART-" or len(words) > 1 and _TAG.fullmatch(words[-1]) is not None


def read_conll(path, column=-1, repair=False, lines=None):
    """Reads entities from CoNLL columns: a token a line, its tag in one of the columns, a blank line after a sentence.

    Columns are separated by tabs, in lines that have one, or else by blanks; the token is the first one. Lines that
    begin with `-DOCSTART-` end a sentence. A line that begins with `# ` before the first token of a sentence is a
    comment, unless it has as many columns as the rest and a tag. Tokens may be any UTF-8, blanks within tabs included.

    The scheme is recognised from all tags of the file: BIO (IOB2), IOB1, BIOES, BILOU or BMES; O is outside.

    The text is made of the tokens: without anything between them where each is one character, or beside a Chinese or
    Japanese one; else with one blank. Where every token ends in its place in the word (科0 技1, as Weibo NER has it),
    the places are taken off.

    Args:
        path: A UTF-8 file.
        column: Which column has the tags, as a Python index. Defaults to -1, the last.
        repair: Whether to read what breaks the rules as conlleval reads it, instead of refusing it: an entity begins
            where I- continues none, and is closed where it ends. A tag that cannot be read, or is missing, becomes O.
            Defaults to False.
        lines: Those of the file, where they were read before. Defaults to None.

    Returns:
        A list of `Sentence`s, none of them empty; their spans are in characters of the text, `tokens` as in the file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not UTF-8 or has no sentence; or, without `repair`, a line lacks columns or has an
            unknown tag, or a tag may not stand where it does. Names the line.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".conll", encoding="utf-8") as file:
    ...     _ = file.write("李\\tB-PER\\n雷\\tI-PER\\n在\\tO\\n")
    ...     file.flush()
    ...     read_conll(file.name)
    [Sentence(text='李雷在', spans=[(0, 2, 'PER')], tokens=[(0, 1), (1, 2), (2, 3)])]
    """
    sentences, placed = _without_places(_read_rows(path, _gold_lines(path, lines), column, repair))
    together = placed or all(len(token) == 1 for rows in sentences for _, token, _ in rows)
    found = _entities(path, sentences, repair)
    return [_sentence([token for _, token, _ in rows], spans, together) for rows, spans in zip(sentences, found)]


def _read_rows(path, lines, column, repair):
    """The sentences of a CoNLL file, each a list of (line number, token, tag)."""
    widths = Counter(len(_columns(line)) for line in lines)
    width = max(2, max(widths, key=lambda width: widths[width] if width else 0, default=2))
    if column not in range(-width, width) or column % width == 0:
        raise ValueError(f"{path}: `column` must name one of {width} columns, not the first. Received: {column}")
    sentences = [[]]
    for number, line in enumerate(lines, 1):
        columns = _columns(line)
        if not columns or columns[0].startswith("-DOCSTART-"):
            sentences.append([])
            continue
        fits = len(columns) == width and columns[0] != ""
        tag = columns[column] if -len(columns) < column < len(columns) else ""
        known = _TAG.fullmatch(tag) is not None
        if line.startswith("# ") and not sentences[-1] and not (fits and known):
            continue
        if not fits and not repair:
            raise ValueError(f"{path}:{number}: needs {width} columns, the first a token. Received: {line!r}")
        if not known and not repair:
            raise ValueError(f"{path}:{number}: needs O or a tag like B-PER, with one of BIESMLU. Received: {tag!r}")
        if columns[0]:
            sentences[-1].append((number, columns[0], tag if known else "O"))
    sentences = [rows for rows in sentences if rows]
    if not sentences:
        raise ValueError(f"{path}: needs at least one sentence of tokens with tags. Received: a file without any")
    return sentences


def _columns(line):
    """The columns of a line, none of a blank one. A blank before the only other column is a token."""
    line = line.rstrip(" \t")
    if "\t" in line:
        return line.split("\t")
    columns = [column for column in line.split(" ") if column]
    return [" ", *columns] if len(columns) == 1 and line[0] == " " else columns


def _without_places(sentences):
    """The rows without the places at the ends of their tokens and True, or as they are and False if one has none."""
    bare = []
    for rows in sentences:
        matches = [_PLACED.fullmatch(token) for _, token, _ in rows]
        if not all(matches) or matches[0][2] != "0":
            return sentences, False
        bare.append([(number, match[1], tag) for (number, _, tag), match in zip(rows, matches)])
    return bare, True


def _entities(path, sentences, repair):
    """The entities of each sentence, in tokens, as its tags have them."""
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
    """The first letters of all tags but O, which must be those of one scheme."""
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
    """Whether B- is only there to part an entity from one of its type right before it."""
    pairs = ((before, tag) for rows in sentences for (*_, before), (*_, tag) in zip([(0, "", "O"), *rows], rows))
    return all(before[2:] == tag[2:] for before, tag in pairs if tag[0] == "B")


def _check_order(path, sentences, tags, scheme):
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


def _sentence(tokens, spans, together):
    """The sentence of some tokens, from entities in tokens."""
    text, extents = "", []
    for token in tokens:
        if text and not together and not _CJK.match(text[-1]) and not _CJK.match(token):
            text += " "
        extents.append((len(text), len(text) + len(token)))
        text += token
    return Sentence(text, [(extents[a][0], extents[b - 1][1], label) for a, b, label in spans], extents)


def entity_types(sentences):
    """The labels that occur in sentences, a sorted tuple, as `kcrf.tags.bio` takes them.

    >>> entity_types([Sentence("李雷住在上海", [(0, 2, "PER"), (4, 6, "LOC")])])
    ('LOC', 'PER')
    """
    return tuple(sorted({label for sentence in sentences for _, _, label in sentence.spans}))


def split(sentences, fraction=0.1, seed=0):
    """Holds out a part of the sentences, drawn by the seed.

    Args:
        sentences: A list of at least two.
        fraction: How much to hold out, above 0 and below 1. Defaults to 0.1. Both parts get one sentence at least.
        seed: An int. Defaults to 0.

    Returns:
        The rest and the part held out, both in their old order.

    >>> split(["a", "b", "c", "d"], fraction=0.25, seed=3)
    (['a', 'b', 'c'], ['d'])
    """
    if not 0 < fraction < 1 or len(sentences) < 2:
        raise ValueError(
            "`split` needs two sentences or more and 0 < fraction < 1. "
            f"Received: {len(sentences)} sentences, fraction={fraction}"
        )
    count = min(max(1, round(fraction * len(sentences))), len(sentences) - 1)
    held_out = set(np.random.default_rng(seed).permutation(len(sentences))[:count].tolist())
    return (
        [sentence for i, sentence in enumerate(sentences) if i not in held_out],
        [sentence for i, sentence in enumerate(sentences) if i in held_out],
    )
