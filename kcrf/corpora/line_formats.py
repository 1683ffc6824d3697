"""The formats of lines: for each, a function that reads a file, below a line that recognizes it."""

import html
import itertools
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from kcrf.corpora.brat import is_standoff, read_standoff
from kcrf.corpora.columns import check_one_tag, name_sentences
from kcrf.corpora.conll import join_tokens
from kcrf.corpora.formats import Annotated, Format, Item, Read, Source, Span, Tagged, note, span
from kcrf.corpora.json_formats import of_json_min
from kcrf.corpora.tables import separator_of, table_cells, usual_columns
from kcrf.corpora.word_classes import class_sign, words_in
from kcrf.tags.scheme import ENTITY_TAG

LINE_FORMATS: list[Format] = []  # the first one that recognizes a file reads it


def line_format(name: str, tasks: Sequence[str], find: Callable[[Source], Any]) -> Callable[[Read], Read]:
    """Adds the format of the files that a function reads."""

    def add(read: Read) -> Read:
        LINE_FORMATS.append(Format(name, tasks, find, read))
        return read

    return add


def _span(source: Source, number: int, *values: Any) -> Span:
    """A span that a line has."""
    try:
        return span(*values)
    except TypeError as error:
        raise ValueError(f"{source.path}:{number}: {error}. Received: {values}") from None


# -- entities in texts


@line_format("entities of brat", ("ner",), lambda source: is_standoff(source.path, source.lines))
def _read_brat(source: Source, _: object) -> list[Item]:
    rows = read_standoff(source.path, source.lines)
    return [Annotated(number, text, [_span(source, number, *each) for each in spans]) for number, text, spans in rows]


_PUBTATOR = re.compile(r"(\d+)\|([ta])\|(.*)")


@line_format("entities of PubTator", ("ner",), lambda source: re.match(r"\d+\|t\|", source.first_line))
def _read_pubtator(source: Source, _: object) -> list[Item]:
    texts: dict[str, Annotated] = {}
    for number, line in enumerate(source.lines, 1):
        cells = line.split("\t")
        if match := _PUBTATOR.fullmatch(line):
            before = texts.get(match[1])
            text = f"{before.text} {match[3]}" if before else match[3]
            texts[match[1]] = before._replace(text=text) if before else Annotated(number, text, [])
        elif len(cells) >= 5 and cells[0] in texts and cells[1].isdecimal() and cells[2].isdecimal():
            texts[cells[0]].spans.append(_span(source, number, int(cells[1]), int(cells[2]), cells[4], cells[3]))
        elif line.strip() and len(cells) < 4:  # relations have four cells
            raise ValueError(f"{source.path}:{number}: needs a line of PubTator. Received: {line[:80]!r}")
    return list(texts.values())


_MARKED = re.compile(r"\{\{([^\s:{}]+):([^{}]+)\}\}")


@line_format("entities of BosonNLP", ("ner",), lambda source: any(map(_MARKED.search, source.lines)))
def _read_boson(source: Source, _: object) -> list[Item]:
    """Entities with their type in braces, as in {{location:上海}}."""
    items: list[Item] = []
    for number, line in enumerate(source.lines, 1):
        text, spans, end = "", [], 0
        for match in _MARKED.finditer(line):
            text += line[end : match.start()]
            spans.append(_span(source, number, len(text), len(text) + len(match[2]), match[1], match[2]))
            text, end = text + match[2], match.end()
        items += [Annotated(number, text + line[end:], spans)] if line.strip() else []
    return items


_FASTTEXT = re.compile(r"((?:__label__\S+\s+)+)(.*\S.*)")


@line_format("texts with labels of fastText", ("classify",), lambda source: _FASTTEXT.fullmatch(source.first_line))
def _read_fasttext(source: Source, _: object) -> list[Item]:
    items: list[Item] = []
    for number, line in enumerate(source.lines, 1):
        match = _FASTTEXT.fullmatch(line)
        if line.strip() and not match:
            raise ValueError(f"{source.path}:{number}: needs __label__NAME and a text. Received: {line[:60]!r}")
        labels = match[1].replace("__label__", "").split() if match else []
        items += [Annotated(number, match[2].strip(), [], labels)] if match else []
    return items


# -- tables


def _cells_of_table(source: Source) -> list[tuple[int, list[str]]]:
    rows = table_cells(source.path, source.lines, separator_of(source.first_line))
    return [(number, [cell.strip() for cell in cells]) for number, cells in rows]


def _is_label_studio_table(source: Source) -> bool:
    return "annotation_id" in re.split("[\t,;]", source.first_line) and not source.lines[0].startswith("{")


@line_format("a table of Label Studio", ("ner", "classify"), _is_label_studio_table)
def _read_label_studio_table(source: Source, _: object) -> list[Item]:
    (_, head), *rows = _cells_of_table(source)
    items: list[Item] = []
    for number, cells in rows:
        try:
            values = [json.loads(cell) if cell.startswith("[{") else cell for cell in cells]
            item = {name: value for name, value in zip(head, values, strict=True) if name not in _ABOUT}
            items.append(of_json_min(number, item))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{source.path}:{number}: needs a row of Label Studio. Received: {error}") from None
    return items


_ABOUT = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time")  # in a table of Label Studio
_NAMES = (("sentence #", "sentence_idx", "sentence_id", "sent_id", "sentence"), ("word", "token"))
_NUMBERED = re.compile(r"(?:sentence:? ?)?\d+|", re.IGNORECASE)


def _tokens_of_table(source: Source) -> list[tuple[int, list[str]]]:
    """The rows of a table whose last column has tags: Kaggle's `Sentence #,Word,POS,Tag`, doccano's."""
    sign = separator_of(source.first_line)
    if sign not in source.first_line or sign == "\t" and not source.first_line.lower().startswith("sentence"):
        return []
    try:
        rows = _cells_of_table(source)
    except ValueError:  # a line with a quote
        return []
    if len(rows) > 1 and not ENTITY_TAG.fullmatch(rows[0][1][-1]):
        head, rows = rows[0][1], rows[1:]  # the names of the columns
        places = [place for place in usual_columns(head, _NAMES) if place is not None]
        if len(places) == len(_NAMES) and all(len(cells) == len(head) for _, cells in rows):
            rows = [(number, [*(cells[place] for place in places), cells[-1]]) for number, cells in rows]
    rows = _without_counts(rows)
    are_tags = all(len(cells) >= 2 and ENTITY_TAG.fullmatch(cells[-1]) for _, cells in rows)
    return rows if are_tags and any(cells[-1] != "O" for _, cells in rows) else []


def _without_counts(rows: list[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Rows without numbers of the rows, as of pandas. Numbers of tokens become those of their sentences."""
    counts = [int(cells[0]) if cells[0].isdecimal() and len(cells[0]) < 9 else -2 for _, cells in rows]
    steps = list(itertools.pairwise(counts))
    if not steps or not all(0 <= a == b - 1 or b in (0, 1) and b < a for a, b in steps):
        return rows
    sentences = itertools.accumulate((b < a for a, b in steps), initial=0)
    begin = 1 if all(a < b for a, b in steps) else 0
    return [(n, [str(i), *cells[1:]][begin:]) for (n, cells), i in zip(rows, sentences, strict=True)]


@line_format("a table of tokens with entity tags", ("ner",), _tokens_of_table)
def _read_tokens_of_table(source: Source, rows: list[tuple[int, list[str]]]) -> list[Item]:
    """A sentence ends at an empty line, and where the number in the first of three columns or more changes."""
    wide = [cells for _, cells in rows if len(cells) > 2]
    is_numbered = all(_NUMBERED.fullmatch(cells[0]) for cells in wide) or name_sentences(wide)
    has_numbers = len(wide) == len(rows) and is_numbered
    items, last, current = list[Tagged](), 0, None
    for number, cells in rows:
        is_next = has_numbers and cells[0] not in ("", current)
        if not items or is_next or not all(source.lines[n - 1].strip() for n in range(last + 1, number)):
            items.append(Tagged(number, [], []))
        check_one_tag(source.path, number, cells[has_numbers], cells[-1])
        items[-1].tokens.append(cells[has_numbers])
        items[-1].tags.append(cells[-1])
        last, current = number, cells[0] or current
    return list(items)


# -- columns whose tags are not in the form B-PER

_WEBANNO_TOKEN = re.compile(r"\d+-\d+\t")


@line_format("entities of WebAnno", ("ner",), lambda source: source.first_line.startswith("#FORMAT=WebAnno TSV 3"))
def _read_webanno(source: Source, _: object) -> list[Item]:
    """Labels are PER[1], with a number for each entity of several tokens; PER alone is an entity of one token."""
    column, place = 3, 3
    for line in itertools.takewhile(lambda line: not _WEBANNO_TOKEN.match(line), source.lines):
        layer = re.match(r"#T_(?:SP|CH|RL)=([^|]*)\|?(.*?) *$", line)
        if layer and layer[1].endswith("NamedEntity") and "value" in layer[2].split("|"):
            column = place + layer[2].split("|").index("value")
        place += len(layer[2].split("|")) if layer else 0
    items: list[Tagged] = []
    several, last, is_open = 0, "_", False
    for number, line in enumerate(source.lines, 1):
        cells = line.rstrip(" ").split("\t")
        if not _WEBANNO_TOKEN.match(line):
            is_open = is_open and bool(line.strip())
            continue
        if not is_open:
            items.append(Tagged(number, [], []))
            is_open, last = True, "_"
        value, *others = (cells[column] if len(cells) > column else "_").replace("\\", "").split("|")
        several += bool(others)
        label = re.sub(r"\[\d+\]$", "", value)
        if len(cells) < 3:
            raise ValueError(f"{source.path}:{number}: needs the columns of WebAnno TSV 3. Received: {line[:60]!r}")
        items[-1].tokens.append(cells[2])
        begins = "I" if value == last and value != label else "B"
        items[-1].tags.append("O" if label in ("_", "*", "") else f"{begins}-{label}")
        last = value
    note(source.path, f"{several:,} tokens have several labels: read the first", several)
    return list(items)


# -- treebanks

_LEAF = re.compile(r"\(([^\s()]+)\s+([^\s()]+)\)")


def _are_trees(source: Source) -> bool:
    text = " ".join(line for line in source.lines if not line.startswith("<"))
    return text.lstrip().startswith("(") and text.count("(") == text.count(")") and bool(_LEAF.search(text))


@line_format("trees in brackets", ("pos", "cws"), _are_trees)
def _read_trees(source: Source, _: object) -> list[Item]:
    """The leaves of trees in brackets, without empty elements. A tree is a sentence."""
    items: list[Item] = []
    depth, first, text = 0, 1, ""
    for number, line in enumerate(source.lines, 1):
        line = "" if line.startswith("<") else line
        first = first if depth else number
        depth, text = depth + line.count("(") - line.count(")"), f"{text} {line}"
        if not depth and text.strip():
            leaves = [(tag, word) for tag, word in _LEAF.findall(text) if tag != "-NONE-"]
            items += [Tagged(first, [word for _, word in leaves], [tag for tag, _ in leaves])] if leaves else []
            text = ""
    return items


def _are_chunks(source: Source) -> bool:
    """Whether words with tags stand between lone brackets, as in [ Pierre/NNP Vinken/NNP ]."""
    words = {word for line in source.lines for word in line.split() if word.strip("=")}
    return {"[", "]"} <= words and all("/" in word[1:-1] for word in words - {"[", "]"})


@line_format("words with tags in chunks of the Penn Treebank", ("pos", "cws"), _are_chunks)
def _read_chunks(source: Source, _: object) -> list[Item]:
    """A sentence ends at a blank line, at a line of =====, and after the tag `.` with the quotes that follow it."""
    items: list[Tagged] = []
    last = ""
    for number, line in enumerate(source.lines, 1):
        words = [word.rpartition("/") for word in line.split() if word.strip("=[]")]
        last = last if words else ""
        for token, _, tag in words:
            is_after = last == "." and tag in ("''", ")", "-RRB-")
            if last in ("", ".") and not is_after:
                items.append(Tagged(number, [], []))
            items[-1].tokens.append(token.replace("\\/", "/"))
            items[-1].tags.append(tag)
            last = "." if is_after else tag
    return list(items)


# -- entities within the text

_XML_ENTITY = re.compile(r"<([A-Za-z]\w*)((?: [^<>]*)?)>([^<>]+)</\1>")
_XML_TYPE = re.compile(r"""(?:type|label|class|cat)=["']?([^"'\s]+)""", re.IGNORECASE)
_XML_BLOCK, _XML_STYLE, _XML_TITLE = (  # markup of documents: a title is none where other lines have it, too
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"<[?!].*?>|</?(?:s|p|sent|sentence|text|doc|document|body|xml|html|head|div|h[1-6]|[ou]l|li|table|t[rdh]|[bh]r"
        r"|img)(?: [^<>]*)?/?>",
        r"<(a|b|i|u|em|strong|font|su[bp]|span)(?: (?![^<>]*(?:type|label|class|cat)=)[^<>]*)?>([^<>]*)</\1>",
        r"\s*<(title|subtitle|headline|header|caption|abstract)>(.*)</\1>\s*",
    )
)
_XML_DEPTH = 3  # of styles within each other


def _lines_of_xml(source: Source) -> list[str] | None:
    """The lines without the markup of a document, if all other elements are entities."""
    if source.task == "classify" or "</" not in "".join(source.lines):
        return None
    lines = [_XML_BLOCK.sub("", line) for line in source.lines]
    for _ in range(_XML_DEPTH):
        lines = [_XML_STYLE.sub(r"\2", line) for line in lines]
    titles = list(map(_XML_TITLE.fullmatch, lines))
    within = {match[1] for line, title in zip(lines, titles) if not title for match in _XML_ENTITY.finditer(line)}
    lines = [title[2] if title and title[1] not in within else line for line, title in zip(lines, titles)]
    are_entities = any(map(_XML_ENTITY.search, lines)) and not any("</" in _XML_ENTITY.sub("", x) for x in lines)
    return lines if are_entities else None


@line_format("entities in XML", ("ner",), _lines_of_xml)
def _read_xml(source: Source, lines: list[str]) -> list[Item]:
    items: list[Item] = []
    for number, line in enumerate(lines, 1):
        text, spans, end = "", [], 0
        for match in _XML_ENTITY.finditer(line):
            text += html.unescape(line[end : match.start()])
            kind = _XML_TYPE.search(match[2])
            start, text, end = len(text), text + html.unescape(match[3]), match.end()
            spans.append(_span(source, number, start, len(text), kind[1] if kind else match[1]))
        text += html.unescape(line[end:])
        items += [Annotated(number, text, spans)] if text.strip() else []
    return items


_Pairs = list[tuple[int, list[tuple[str, str]]]]  # the number of a line, its words with their classes


def _pairs_of_words(source: Source) -> _Pairs:
    """The words and their classes of each line, as in 李雷/nr 在/o."""
    first = source.first_line.split()
    if "\t" in source.first_line or class_sign(first)[1] < len(first):
        return []
    lines = [(number, words) for number, words in enumerate(words_in(source.lines), 1) if words]
    words = [word for _, line in lines for word in line]
    sign, count = class_sign(words)
    if sign is None or sign in "(（" or count < len(words):
        return []
    pairs = [(number, [word.rpartition(sign)[::2] for word in line]) for number, line in lines]  # 1/2 and m of 1/2/m
    if class_sign(words := [word for _, line in pairs for word, _ in line]) != (sign, len(words)):
        return pairs
    return [
        (number, [(word.rpartition(sign)[0], tag) for word, tag in line]) for number, line in pairs
    ]  # Kim|NNP|B-PER


def _classes_of_entities(source: Source) -> _Pairs:
    """The words with the class o and others, or with tags, as in 李雷/nr 在/o and 李/B-PER 雷/I-PER 在/O."""
    rows = _pairs_of_words(source) if source.task != "classify" else []
    classes = {label for _, pairs in rows for _, label in pairs}
    has_outside = {"o", "O"} & classes and not {"v", "n", "V", "N", "VV", "NN", "VERB", "NOUN"} & classes
    are_types = source.task == "ner" and has_outside or all(map(ENTITY_TAG.fullmatch, classes))
    return rows if classes - {"o", "O"} and are_types else []


@line_format("words with the types of entities", ("ner",), _classes_of_entities)
def _read_classes_of_entities(source: Source, rows: _Pairs) -> list[Item]:
    are_tags = all(ENTITY_TAG.fullmatch(label) for _, pairs in rows for _, label in pairs)
    items: list[Item] = []
    for number, pairs in rows:
        words, labels = [word for word, _ in pairs], [label for _, label in pairs]
        text, extents = join_tokens(words)
        marked = [pair for pair in zip(extents, labels, strict=True) if pair[1] not in ("o", "O")]
        spans = [_span(source, number, *extent, label) for extent, label in marked]
        items.append(Tagged(number, words, list(labels)) if are_tags else Annotated(number, text, spans))
    return items
