"""The small built-in corpora."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kcrf.corpora.conll import read_conll
from kcrf.corpora.segmented import read_segmented


@dataclass(frozen=True)
class Corpus:
    """The parts of a corpus. Each is a list of sentences: lists of words, or `Sentence`s with entities."""

    train: list
    valid: list
    test: list


def load_mini(task: str = "cws") -> Corpus:
    """Reads a built-in corpus of Chinese sentences, written for this project.

    Args:
        task: "cws", 1,311 sentences segmented by the PKU conventions of 1998, or "ner", 520 sentences with people
            (PER), places (LOC) and organizations (ORG). Defaults to "cws".

    Returns:
        A `Corpus` of lists of words, or of `Sentence`s.

    >>> corpus = load_mini()
    >>> len(corpus.train), len(corpus.valid), len(corpus.test)
    (1053, 129, 129)
    >>> from kcrf.corpora import entity_types
    >>> entity_types(load_mini("ner").train)
    ('LOC', 'ORG', 'PER')
    """
    readers: dict[str, tuple[Callable[[Path], Any], str]]
    readers = {"cws": (read_segmented, "mini"), "ner": (read_conll, "mini_ner")}
    if task not in readers:
        raise ValueError(f"`load_mini` has the tasks {sorted(readers)}. Received: task={task!r}")
    read, name = readers[task]
    folder = Path(__file__).parent / "data"
    return Corpus(*(read(folder / f"{name}_{part}.txt") for part in ("train", "valid", "test")))
