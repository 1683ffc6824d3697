"""Tests of kcrf.corpora: data files with random damage are read, or refused with an error that names the file.

The damage is seeded, so that a failure repeats; the long suite does more.
"""

import numpy as np
import pytest
from conftest import few
from test_formats import CHINESE, ENGLISH, TREEBANKS
from test_strangers import ENTITIES, TABLES

from kcrf.corpora import read_classified, read_entities, read_names, read_segmented, read_tagged
from kcrf.corpora.conll import read_conll_tokens
from kcrf.corpora.dictionary import read_user_dictionary
from kcrf.corpora.tables import iterate_texts
from kcrf.files import read_json

BACKENDS = ["torch"]
READERS = [read_classified, read_entities, read_names, read_segmented, read_tagged, read_user_dictionary, read_json]
SEEDS = [text for texts in (ENGLISH, CHINESE, TREEBANKS, TABLES, ENTITIES) for text in texts.values()]
ODD = [
    '"',
    "[",
    "]",
    "{",
    "}",
    "\t",
    "\n",
    "\n\n",
    ",",
    ":",
    "|",
    "(",
    ")",
    "<",
    "</",
    "/",
    "#",
    "-",
    "B-",
    "\\u0000",
    "0",
]
ODD += [
    "null",
    "-1",
    "9" * 30,
    "1.5",
    "NaN",
    "true",
    "😀",
    "\r",
    "\x00",
    " ",
    "_",
    "[{}, 3]",
    "-DOCSTART-",
    "\ud800",
    "Ⅷ",
    "²",
]
FOUND = [  # files that once raised something else than ValueError
    "1²\tKim\tB-PER\n",
    "²\tKim\tB-PER\n3\tLee\tO\n",
    '[{}, "N"]',
    '[false, "N"]',
    '{"tokens": ["a"], "labels": 3}\n',
    '{"tokens": {}, "ner_tags": [[]]}\n',
    '{"text": "a", "label": {"PER": 3}}\n',
    '{"paragraphs": [3]}\n',
    '{"data": {"text": "x"}, "annotations": 3}\n',
    '{"text": "ab", "spans": [3]}\n',
    '{"text": "ab", "entities": {"a": 1}}\n',
    '{"id2label": 3}\n{"tokens": ["a"], "ner_tags": [1]}\n',
    "annotation_id,text\n",
    "#FORMAT=WebAnno TSV 3.3\n1-1\t0-3\n",
    "1|t|a\n1\t9\t99\tb\tX\n",
    "1|t|ab\n1\t0\t1\ta\t\tX\n",
    "Sentence #,Word,Tag\nSentence: 1,,B-PER\n,Lee,I-PER\n",
    '{"tokens": ["", "b"], "ner_tags": ["O", "B-PER"]}\n',
    '{"tokens": ["a"], "ner_tags": ["O", "B-PER"]}\n',
    "Kim B-O\n",
]


def damaged(text, rng):
    """The text with a few pieces put in, cut out, repeated, or taken from another file."""
    for _ in range(rng.integers(1, 5)):
        start, length = int(rng.integers(0, len(text) + 1)), int(rng.integers(0, 12))
        other = SEEDS[rng.integers(len(SEEDS))]
        pieces = ["", text[start : start + length] * 2, ODD[rng.integers(len(ODD))], other[: int(rng.integers(40))]]
        text = text[:start] + pieces[rng.integers(len(pieces))] + text[start + length * int(rng.integers(2)) :]
    return text


def check(path, text):
    """Raises an error if a file makes a reader raise another error than one that names the file."""
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    lines = text.split("\n")
    readers = [*READERS, lambda _: read_conll_tokens(lines, str(path))]
    readers += [lambda _, kind=kind: list(iterate_texts(lines, str(path), kind)) for kind in ("text", "table", "json")]
    for read in readers:
        try:
            read(path)
        except (ValueError, FileNotFoundError) as error:
            assert str(error).startswith(str(path)), error


@pytest.mark.parametrize("text", FOUND)
def test_what_crashed_once_is_read_or_refused(text, tmp_path):
    check(tmp_path / "data.txt", text)


@pytest.mark.parametrize("count", few(300, 20_000, rest="slow"))
def test_damaged_files_are_read_or_refused(count, tmp_path):
    rng = np.random.default_rng(0)
    for number in range(count):
        text = damaged(SEEDS[number % len(SEEDS)], rng)
        try:
            check(tmp_path / "data.txt", text)
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error} for {text!r}") from error
