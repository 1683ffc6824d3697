"""Texts with entities as JSON lines, what `kcrf tag` writes and `kcrf train` and `kcrf score` read beside CoNLL.

One object a line: {"text": "李雷在上海", "entities": [{"start": 0, "end": 2, "label": "PER"}, ...]}. Entities may have
more members, such as their text and confidence.
"""

import json
import re

from kcrf.corpora.read import Sentence, read_conll, read_lines
from kcrf.files import json_line

__all__ = ["entity_line", "read_entities"]

_OBJECT = re.compile(r'\s*\{\s*["}]')  # CoNLL may begin with a brace as well


def entity_line(text, entities, **more):
    """The line, without its end, for a text and its entities, a list of dicts."""
    return json_line({"text": text, "entities": entities, **more})


def read_entities(path, column=-1, repair=False):
    """Reads sentences from JSON lines, or from CoNLL where the first line does not begin as a JSON object does.

    Args:
        path: A UTF-8 file.
        column, repair: As for `kcrf.corpora.read_conll`.

    Returns:
        A list of `Sentence`s. Blank lines among JSON lines count for nothing.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line is no such object, or has entities that overlap or leave the text; or as for `read_conll`.
            Names the line.
    """
    lines = read_lines(path)
    first = next((line for line in lines if line.strip()), "")
    if _OBJECT.match(first) is None:
        return read_conll(path, column, repair, lines)
    return [_sentence(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _sentence(path, number, line):
    try:
        item = json.loads(line)
        if not isinstance(item["text"], str):
            raise TypeError("text must be a string")
        return Sentence(item["text"], sorted(map(_span, item["entities"])))
    except (KeyError, TypeError) as error:
        raise ValueError(
            f'{path}:{number}: needs {{"text": ..., "entities": [{{"start": ..., "end": ..., "label": ...}}]}}. '
            f"Received: {line[:80]!r} ({type(error).__name__} {error})"
        ) from None
    except (ValueError, RecursionError) as error:  # no JSON, too deep, or what `Sentence` refuses
        raise ValueError(f"{path}:{number}: {error}") from None


def _span(entity):
    start, end, label = entity["start"], entity["end"], entity["label"]
    if type(start) is not int or type(end) is not int:  # no bool
        raise TypeError("start and end must be ints")
    if not isinstance(label, str) or not label.isprintable() or not label:
        raise TypeError("label must be a string that can be printed, and not empty")
    return start, end, label
