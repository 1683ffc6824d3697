"""The forms in which users have labeled data in memory: tuples, dicts of Hugging Face, and DataFrames."""

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from os import PathLike
from typing import Any

from kcrf.corpora import Sentence
from kcrf.corpora.conll import sentences_of_tags
from kcrf.corpora.formats import span
from kcrf.corpora.json_formats import TAGS
from kcrf.corpora.lines import TEXT_NAMES
from kcrf.corpora.sentences import UNKNOWN
from kcrf.corpora.tables import LABEL_NAMES, TEXT_B_NAMES, usual_columns
from kcrf.corpora.word_classes import are_word_tags, words_by_tags
from kcrf.tags.scheme import ENTITY_TAG

_TOKENS = ("tokens", "words", "token", "word", "Word")
_TAGS = {"ner": (*TAGS["ner"], "Tag")}
_TAGS_OF_WORDS, _SPANS = ("POS", *TAGS["pos"], "Tag"), ("entities", "spans")
_SENTENCE = ("sentence_id", "sent_id", "sentence", "Sentence #")


def items_of(task: str, name: str, part: Any) -> list[Any]:
    """The items of a part in the form that a task checks: `Sentence`s, lists of words, pairs, or texts with labels."""
    if isinstance(part, (str, PathLike)):
        readers = {"ner": "read_entities", "cws": "read_segmented", "classify": "read_classified"}
        reader = f"kcrf.corpora.{readers.get(task, 'read_tagged')}"
        raise TypeError(f"`{name}` must be labeled data; for a file, call {reader}. Received: {str(part)[:80]!r}")
    if isinstance(part, Mapping) or not isinstance(part, Iterable):
        received = f"a dict of {', '.join(part)}" if isinstance(part, Mapping) else repr(part)
        raise ValueError(f"`{name}` must be a list for task={task!r}. Received: {received}")
    _check_rows(task, name, part)
    rows = _rows(task, part) if task in ("cws", "classify") else _with_pairs(task, name, _rows(task, part))
    pairs = [row for row in rows if isinstance(row, (list, tuple)) and len(row) == 2 and are_word_tags(row[1])]
    if task == "cws" and 0 < len(pairs) == len(rows):
        return [words_by_tags(f"`{name}`, item {number}", *row) for number, row in enumerate(rows, 1)]
    items = [_item(task, f"`{name}`, item {number}", row) for number, row in enumerate(rows, 1)]
    return _with_entities(name, items) if task == "ner" else items


def _check_rows(task: str, name: str, part: Any) -> None:
    """Refuses all texts in one list and all labels in another, as scikit-learn has them."""
    are_two = isinstance(part, list) and len(part) == 2 and task == "cws" and are_word_tags(part[1])  # texts, tags
    parts = part if are_two or isinstance(part, tuple) and len(part) > 1 else ()
    if not parts or not all(isinstance(x, list) or getattr(x, "ndim", 0) == 1 for x in parts):
        return
    values = [value for each in parts for value in each]
    are_words = task == "cws" and not are_word_tags(list(parts[1]))  # two sentences
    if are_words or len({*map(len, parts)}) > 1 or any(isinstance(value, tuple) for value in values):
        return
    is_one = task in ("ner", "pos", "cws-pos") and all(isinstance(value, str) for value in values)
    advice = f"[{name}]" if is_one or task == "cws" and max(map(len, values)) == 1 else f"list(zip(*{name}))"
    form = {"classify": "(text, label)", "cws": "words", "ner": "(text, spans)"}.get(task, "(tokens, tags)")
    received = f"a {type(part).__name__} of {len(parts)} lists of {len(parts[0])}"
    raise ValueError(f"`{name}` must be a list of {form}, as {advice} is. Received: {received}")


def _rows(task: str, part: Any) -> list[Any]:
    """The rows of a table as dicts, with the names of numbered classes; other items as they are."""
    if hasattr(part, "columns") and hasattr(part, "to_dict"):  # of pandas
        rows = part.to_dict("records")
        first = _first(rows[0], _TOKENS) if rows else None
        are_tokens = isinstance(first, str) or first is not None and not hasattr(first, "__len__")  # an empty cell, too
        return _joined_tokens(task, rows) if are_tokens else rows
    features = getattr(part, "features", None) or {}  # of Hugging Face: a `ClassLabel`, or a list of them
    kinds = {key: getattr(feature, "feature", None) or feature for key, feature in features.items()}
    names = {key: getattr(kind, "names", None) for key, kind in kinds.items()}
    return [_with_names(row, names) if names else row for row in part]


def _with_pairs(task: str, name: str, rows: list[Any]) -> list[Any]:
    """The rows; sentences of (token, tag) are lists of tuples. What two and two mean, the other sentences say."""
    readings = [_is_of_pairs(task, row) for row in rows]
    others = {x for x, row in zip(readings, rows, strict=True) if isinstance(row, (list, tuple)) and row} - {None}
    if None in readings and len(others) != 1:
        received = repr(rows[readings.index(None)])[:80]
        raise ValueError(f"`{name}` must have ([token, ...], [tag, ...]) or [(token, tag), ...]. Received: {received}")
    are_pairs = [others == {True} if is_of is None else is_of for is_of in readings]
    return [list(map(tuple, row)) if is_of else row for row, is_of in zip(rows, are_pairs, strict=True)]


def _is_of_pairs(task: str, row: Any) -> bool | None:
    """Whether a sentence is of (token, tag), not (tokens, tags). None: of two and two, in containers of one type."""
    are_two = isinstance(row, (list, tuple)) and all(isinstance(x, (list, tuple)) and len(x) == 2 for x in row)
    if not are_two or isinstance(row, tuple) and list in map(type, row):
        return False
    if task == "ner":
        return all(ENTITY_TAG.fullmatch(str(tag)) for _, tag in row)
    return True if len(row) != 2 or isinstance(row, list) and isinstance(row[0], tuple) else None


def _with_names(row: Mapping[str, Any], names: Mapping[str, list[str] | None]) -> dict[str, Any]:
    named = dict(row)
    for key, classes in names.items():
        if not classes or key not in row:
            continue
        value = row[key]
        if hasattr(value, "__index__") and not getattr(value, "ndim", 0):  # the number of one class
            named[key] = classes[value] if value >= 0 else None
        else:
            named[key] = [classes[number] if number >= 0 else UNKNOWN[0] for number in value]
    return named


def _joined_tokens(task: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each sentence, of rows for each token. An empty cell continues the sentence above it."""
    names = (_SENTENCE, _TOKENS, _TAGS.get(task, _TAGS_OF_WORDS))
    key, token, tag = (next((name for name in usual if name in rows[0]), "") for usual in names)
    cells = [[str(row.get(column, "")).split() for column in (token, tag)] for row in rows]
    if any(len(tags) > 1 for _, tags in cells) and all(len(words) == len(tags) for words, tags in cells):
        if all(column[0].startswith("[") for column in cells[0] if column):
            received = f"the string {rows[0][token]!r:.60}; use ast.literal_eval"
            raise ValueError(f"a table of sentences needs lists of tokens and tags. Received: {received}")
        return [{"tokens": words, "tags": tags} for words, tags in cells]  # a sentence in each row
    if not key or not tag and task != "cws":
        needed = " or ".join(names[2 if key else 0])
        raise ValueError(f"a table of tokens needs a column {needed}. Received: {', '.join(rows[0])}")
    groups: list[tuple[Any, list[dict[str, Any]]]] = []
    for row in rows:
        is_empty = str(row[key]) in ("None", "nan", "<NA>")
        if not groups or not is_empty and row[key] != groups[-1][0]:
            groups.append((row[key], []))
        groups[-1][1].append(row)
    if len(dict(groups)) < len(groups):
        raise ValueError(f"the rows of each sentence must follow each other. Received: {key} in another order")
    return [{"tokens": [row[token] for row in group], "tags": [row.get(tag) for row in group]} for _, group in groups]


def _first(row: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The first of the named values that a row has, or None."""
    return next((row[name] for name in names if name in row), None)


def _item(task: str, source: str, item: Any) -> Any:
    """An item in the form of its task. Items with entities may also be `(words, tags)`."""
    if not isinstance(item, Mapping):
        return _tuple(task, source, item)
    tokens, tags, text = _first(item, _TOKENS), _first(item, _TAGS.get(task, _TAGS_OF_WORDS)), item.get("text")
    if task == "classify":
        names = [name for name in map(str, item) if item.get(name) is not None or name.lower() not in TEXT_B_NAMES]
        places = usual_columns(names, (TEXT_NAMES, TEXT_B_NAMES, (*LABEL_NAMES, "labels", "tag")))
        if places[0] is not None and places[2] is not None:
            return tuple(item[names[place]] for place in places if place is not None)
    if task == "cws" and tokens is not None:
        return words_by_tags(source, tokens, tags) if are_word_tags(tags) else list(tokens)
    if task == "ner" and text is not None and (spans := _first(item, _SPANS)) is not None:
        return _tuple(task, source, (text, spans))
    if task not in ("classify", "cws") and tokens is not None and tags is not None:
        return _tuple(task, source, (list(tokens), list(tags)))
    forms = {"classify": "text and label", "cws": "words", "ner": "tokens and ner_tags, or text and entities"}
    needed = forms.get(task, "tokens and tags")
    raise ValueError(f"{source}: needs {needed}. Received: a dict of {', '.join(map(str, item))}")


def _tuple(task: str, source: str, item: Any) -> Any:
    """A text with its spans as a `Sentence`; words and their tags as such, or for other tasks as pairs."""
    if task == "ner" and isinstance(item, list) and item and _is_of_pairs(task, item):
        item = tuple(zip(*item, strict=True))
    if task == "classify" or not isinstance(item, (tuple, list)) or len(item) != 2:
        return item
    first, second = (part.tolist() if hasattr(part, "tolist") else part for part in item)  # of NumPy
    second = _first(second, _SPANS) if isinstance(second, Mapping) else second  # of spaCy
    if not isinstance(second, (list, tuple)):
        return item
    if task == "ner" and isinstance(first, str):
        return _text_with_spans(source, first, second)
    if isinstance(first, str) or isinstance(item, list) and len(first) == 2 and isinstance(first, tuple):  # or pairs
        return item
    _check_tags(source, first, second)
    if task != "ner":
        return list(zip(first, second, strict=True))
    for value in (*first, *second):
        if not isinstance(value, str) or not value:
            raise ValueError(f"{source}: needs strings that are not empty. Received: {value!r}")
    return list(first), list(second)


def _text_with_spans(source: str, text: str, spans: Sequence[Any]) -> Sentence:
    members = ("start", "end", "label")
    try:
        triples = [[each[name] for name in members] if isinstance(each, Mapping) else each for each in spans]
        return Sentence(text, sorted(span(index(start), index(end), label)[:3] for start, end, label in triples))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{source}: needs spans (start, end, label). Received: {spans!r:.80} ({error})") from None


def _check_tags(source: str, tokens: Sequence[Any], tags: Sequence[Any]) -> None:
    if len(tokens) != len(tags):
        raise ValueError(f"{source}: needs a tag for each token. Received: {len(tokens)} tokens and {len(tags)} tags")
    number = next((tag for tag in tags if hasattr(tag, "__index__")), None)
    if number is not None:
        needed = "the names of tags, as in names = dataset.features['ner_tags'].feature.names"
        raise ValueError(f"{source}: needs {needed}. Received: numbers, such as {number}")


def _with_entities(name: str, items: Sequence[Any]) -> list[Any]:
    """Converts items of words and tags to `Sentence`s. Their tag scheme is inferred from all of them together."""
    rows = {
        number: [(number, *pair) for pair in zip(*item, strict=True)]
        for number, item in enumerate(items, 1)
        if isinstance(item, tuple) and list(map(type, item)) == [list, list]
    }
    sentences = iter(sentences_of_tags(f"`{name}`", list(filter(None, rows.values()))))
    return [next(sentences) if n in rows else item for n, item in enumerate(items, 1) if rows.get(n) != []]
