"""The formats of lines: two functions for each, and a row of the table at the end."""

import html
import itertools
import json
import re
from collections.abc import Iterator, Sequence

from kcrf.corpora.brat import is_standoff, read_standoff
from kcrf.corpora.columns import ENTITY_TAG, is_conllu, split_columns
from kcrf.corpora.conll import join_tokens
from kcrf.corpora.formats import Annotated, Format, Item, Source, Tagged, in_order, note, span
from kcrf.corpora.json_formats import of_json_min
from kcrf.corpora.tables import table_cells
from kcrf.corpora.word_classes import class_sign, split_class


def _first(source: Source) -> str:
    """The first line that is not blank."""
    return next((line for line in source.lines if line.strip()), "")


def _sentence(number: int, tokens: Sequence[str], labels: Sequence[str | None]) -> Annotated:
    """Joins tokens to a text. Tokens with a label are spans."""
    text, extents = join_tokens(tokens)
    spans = [span(*extent, label) for extent, label in zip(extents, labels, strict=True) if label is not None]
    return Annotated(number, text, spans)


# -- entities in texts


def _read_brat(source: Source) -> list[Item]:
    rows = read_standoff(source.path, source.lines)
    return [Annotated(number, text, [span(*each) for each in spans]) for number, text, spans in rows]


_PUBTATOR = re.compile(r"(\d+)\|([ta])\|(.*)")


def _read_pubtator(source: Source) -> list[Item]:
    texts: dict[str, Annotated] = {}
    for number, line in enumerate(source.lines, 1):
        cells = line.split("\t")
        if match := _PUBTATOR.fullmatch(line):
            before = texts.get(match[1])
            text = f"{before.text} {match[3]}" if before else match[3]
            texts[match[1]] = before._replace(text=text) if before else Annotated(number, text, [])
        elif len(cells) >= 5 and cells[0] in texts and cells[1].isdecimal() and cells[2].isdecimal():
            texts[cells[0]].spans.append(span(int(cells[1]), int(cells[2]), cells[4], cells[3]))
        elif line.strip() and len(cells) < 4:  # relations have four cells
            raise ValueError(f"{source.path}:{number}: needs a line of PubTator. Received: {line[:80]!r}")
    return [text._replace(spans=in_order(text.spans)) for text in texts.values()]


_XML_ENTITY = re.compile(r"<([A-Za-z]\w*)((?: [^<>]*)?)>([^<>]+)</\1>")
_XML_BLOCK = re.compile(r"</?(?:s|p|sent|sentence|text|doc|document|body|xml)(?: [^<>]*)?/?>", re.IGNORECASE)
_XML_TYPE = re.compile(r"""(?:type|label|class|cat)=["']?([^"'\s]+)""", re.IGNORECASE)


def _is_xml(source: Source) -> bool:
    if source.task == "classify" or "</" not in "".join(source.lines):
        return False
    lines = [_XML_BLOCK.sub("", line) for line in source.lines]
    return any(map(_XML_ENTITY.search, lines)) and not any("</" in _XML_ENTITY.sub("", line) for line in lines)


def _read_xml(source: Source) -> list[Item]:
    items: list[Item] = []
    for number, line in enumerate(source.lines, 1):
        text, spans, end = "", [], 0
        line = _XML_BLOCK.sub("", line)
        for match in _XML_ENTITY.finditer(line):
            text += html.unescape(line[end : match.start()])
            kind = _XML_TYPE.search(match[2])
            start, text, end = len(text), text + html.unescape(match[3]), match.end()
            spans.append(span(start, len(text), kind[1] if kind else match[1]))
        text += html.unescape(line[end:])
        items += [Annotated(number, text, spans)] if text.strip() else []
    return items


_PARTS_OF_SPEECH = {"v", "n", "V", "N", "VV", "NN", "VERB", "NOUN"}


def _pairs_of_words(source: Source) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """The words and their classes of each line, as in 李雷/nr 在/o."""
    first = _first(source)
    if "\t" in first or class_sign(first.split())[1] < len(first.split()):
        return
    words = [word for line in source.lines for word in line.split()]
    sign, count = class_sign(words)
    if sign is not None and sign not in "(（" and count == len(words):
        for number, line in enumerate(source.lines, 1):
            if pairs := [split_class(word, sign) for word in line.split()]:
                yield number, pairs


def _are_classes_of_entities(source: Source) -> bool:
    """Whether words have the class o, or are tokens with tags, as in 李雷/nr 在/o and 李/B-PER 雷/I-PER 在/O."""
    classes = {label for _, pairs in _pairs_of_words(source) for _, label in pairs}
    are_types = source.task == "ner" and bool({"o", "O"} & classes) and not _PARTS_OF_SPEECH & classes
    return bool(classes - {"o", "O"}) and (are_types or all(map(ENTITY_TAG.fullmatch, classes)))


def _read_classes_of_entities(source: Source) -> list[Item]:
    rows = [
        Tagged(number, [word for word, _ in pairs], [label for _, label in pairs])
        for number, pairs in _pairs_of_words(source)
    ]
    if all(tag and ENTITY_TAG.fullmatch(tag) for row in rows for tag in row.tags):
        return list(rows)
    return [
        _sentence(row.number, row.tokens, [None if label in ("o", "O") else label for label in row.tags])
        for row in rows
    ]


# -- tables


def _cells_of_table(source: Source) -> list[tuple[int, list[str]]]:
    """The cells of a table between commas, or between tabs if the first line has one."""
    first = _first(source)
    rows = table_cells(source.path, source.lines, "\t" in first)
    return [(number, [cell.strip() for cell in cells]) for number, cells in rows]


def _is_label_studio_table(source: Source) -> bool:
    return "annotation_id" in re.split("[\t,]", _first(source)) and not source.lines[0].startswith("{")


def _read_label_studio_table(source: Source) -> list[Item]:
    (_, head), *rows = _cells_of_table(source)
    items: list[Item] = []
    for number, cells in rows:
        try:
            values = [json.loads(cell) if cell.startswith("[{") else cell for cell in cells]
            item = {name: value for name, value in zip(head, values, strict=True) if name not in _ABOUT}
            items.append(of_json_min(number, item))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{source.path}:{number}: needs a row of Label Studio's table. Received: {error}"
            ) from None
    return items


_ABOUT = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time")  # in a table of Label Studio
_NUMBERED = re.compile(r"(?:sentence:? ?)?\d+|", re.IGNORECASE)


def _tokens_of_table(source: Source) -> list[tuple[int, list[str]]]:
    """The rows of a table between commas whose last column has tags: Kaggle's `Sentence #,Word,POS,Tag`, doccano's."""
    if "\t" in _first(source) or "," not in _first(source):
        return []
    try:
        rows = _cells_of_table(source)
    except ValueError:  # a line with a quote
        return []
    if len(rows) > 1 and not ENTITY_TAG.fullmatch(rows[0][1][-1]):
        rows = rows[1:]  # the names of the columns
    are_tags = all(len(cells) >= 2 and ENTITY_TAG.fullmatch(cells[-1]) for _, cells in rows)
    return rows if are_tags and any(cells[-1] != "O" for _, cells in rows) else []


def _read_tokens_of_table(source: Source) -> list[Item]:
    """A sentence ends at an empty line, and where the number in the first of three columns or more changes."""
    rows = _tokens_of_table(source)
    has_numbers = all(len(cells) > 2 and _NUMBERED.fullmatch(cells[0]) for _, cells in rows)
    items: list[Tagged] = []
    last, current = 0, None
    for number, cells in rows:
        is_next = has_numbers and cells[0] not in ("", current)
        if not items or is_next or not all(source.lines[n - 1].strip() for n in range(last + 1, number)):
            items.append(Tagged(number, [], []))
        items[-1].tokens.append(cells[has_numbers])
        items[-1].tags.append(cells[-1])
        last, current = number, cells[0] or current
    return list(items)


# -- columns whose tags are not in the form B-PER


_WEBANNO_TOKEN = re.compile(r"\d+-\d+\t")


def _read_webanno(source: Source) -> list[Item]:
    """Labels are PER[1], with a number for each entity of several tokens; PER alone is an entity of one token."""
    column, place = 3, 3
    for line in itertools.takewhile(lambda line: not _WEBANNO_TOKEN.match(line), source.lines):
        layer = re.match(r"#T_(?:SP|CH|RL)=([^|]*)\|?(.*)", line)
        if layer and layer[1].endswith("NamedEntity") and "value" in layer[2].split("|"):
            column = place + layer[2].split("|").index("value")
        place += len(layer[2].split("|")) if layer else 0
    items: list[Tagged] = []
    several, last, is_open = 0, "_", False
    for number, line in enumerate(source.lines, 1):
        cells = line.split("\t")
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


_ONTONOTES = {  # the types of entities, which tell their column from those of trees and of arguments
    *("PERSON", "NORP", "FAC", "ORG", "GPE", "LOC", "PRODUCT", "DATE", "TIME", "PERCENT", "MONEY", "QUANTITY"),
    *("ORDINAL", "CARDINAL", "EVENT", "WORK_OF_ART", "LAW", "LANGUAGE"),
}
_BRACKET = re.compile(r"(?:\(([A-Z_]+))?(\*?\)?)")


def _ontonotes(source: Source) -> tuple[list[list[list[str]]], list[int], int | None]:
    """The cells of each sentence, their first lines, and the column with entities in brackets, or None."""
    lines = ["" if line.startswith(("#begin document", "#end document")) else line for line in source.lines]
    if "(" not in "".join(lines) or "*" not in "".join(lines):
        return [], [], None
    columns = split_columns(source.path, lines)
    rows = columns.rows
    if any(len(cells) != columns.width for cells in rows):
        return [], [], None
    for place in range(1, columns.width):
        matches = [_BRACKET.fullmatch(cells[place]) for cells in rows]
        types = {match[1] for match in matches if match and match[1]}
        if types and types <= _ONTONOTES and all(match and match[0] for match in matches):
            sentences = [[row.cells for row in sentence] for sentence in columns.sentences]
            return sentences, [sentence[0].number for sentence in columns.sentences], place
    return [], [], None


def _read_ontonotes(source: Source) -> list[Item]:
    sentences, numbers, place = _ontonotes(source)
    width = max(len(cells) for rows in sentences for cells in rows)
    token = 3 if width > 4 and all(cells[2].isdecimal() for rows in sentences for cells in rows) else 0
    items: list[Item] = []
    for number, rows in zip(numbers, sentences, strict=True):
        tags: list[str | None] = []
        label = ""
        for cells in rows:
            match = _BRACKET.fullmatch(cells[place or 0])
            begin, rest = (match[1], match[2]) if match else (None, "")
            label = begin or label
            tags.append(f"{'B' if begin else 'I'}-{label}" if label else "O")
            label = "" if rest.endswith(")") else label
        items.append(Tagged(number, [cells[token] for cells in rows], tags))
    return items


_MISC = re.compile(r"(?:^|[|\t])(?:NER|NE|ner|Entity|BIO)=(O|[BIESMLU]-[^|]+)")


def _read_misc(source: Source) -> list[Item]:
    """CoNLL-U with tags in MISC, as in NER=B-PER."""
    items: list[Item] = []
    for sentence in split_columns(source.path, source.lines).sentences:
        tags = [match[1] if (match := _MISC.search(row.cells[9])) else "O" for row in sentence]
        items.append(Tagged(sentence[0].number, [row.cells[1] for row in sentence], list(tags)))
    return items


# -- treebanks

_LEAF = re.compile(r"\(([^\s()]+)\s+([^\s()]+)\)")


def _are_trees(source: Source) -> bool:
    text = " ".join(line for line in source.lines if not line.startswith("<"))
    return text.lstrip().startswith("(") and text.count("(") == text.count(")") and bool(_LEAF.search(text))


def _read_trees(source: Source) -> list[Item]:
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


_TOKENS = ("pos", "cws")
LINE_FORMATS = (
    Format("entities of brat", ("ner",), lambda source: is_standoff(source.path, source.lines), _read_brat),
    Format(
        "entities of PubTator", ("ner",), lambda source: bool(re.match(r"\d+\|t\|", _first(source))), _read_pubtator
    ),
    Format(
        "entities of WebAnno",
        ("ner",),
        lambda source: _first(source).startswith("#FORMAT=WebAnno TSV 3"),
        _read_webanno,
    ),
    Format("a table of Label Studio", ("ner", "classify"), _is_label_studio_table, _read_label_studio_table),
    Format(
        "a table of tokens with entity tags",
        ("ner",),
        lambda source: bool(_tokens_of_table(source)),
        _read_tokens_of_table,
    ),
    Format("trees in brackets", _TOKENS, _are_trees, _read_trees),
    Format("entities in XML", ("ner",), _is_xml, _read_xml),
    Format(
        "words with the types of entities",
        ("ner",),
        lambda source: source.task != "classify" and _are_classes_of_entities(source),
        _read_classes_of_entities,
    ),
    Format(
        "columns of OntoNotes",
        ("ner",),
        lambda source: source.task == "ner" and _ontonotes(source)[2] is not None,
        _read_ontonotes,
    ),
    Format(
        "CoNLL-U with entities",
        ("ner",),
        lambda source: source.task == "ner" and is_conllu(source.lines) and any(map(_MISC.search, source.lines)),
        _read_misc,
    ),
)
