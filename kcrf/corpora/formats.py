"""The interface of the formats of data files other than columns, segmented text and tables.

A format recognizes a file, and reads texts with spans and labels, or sentences of tokens with tags. A new format is a
function in a file `*_formats.py`, below a line that adds it to the list of formats there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kcrf.corpora.lines import FilePath
from kcrf.progress_bars import print_note

Span = tuple[int, int, str, str | None]  # start, end, label, its text or None


class Annotated(NamedTuple):
    """A text with its annotations. Spans are `(start, end, label, text of the span or None)`, in characters."""

    number: int
    text: str
    spans: list[Span]
    labels: Sequence[str] = ()
    text_b: str | None = None
    unknown: Sequence[tuple[int, int]] = ()
    tokens: Sequence[tuple[int, int]] = ()


class Tagged(NamedTuple):
    """A sentence of tokens with their tags, and the number of its first line. The tag None is unknown."""

    number: int
    tokens: list[str]
    tags: list[str | None]


Item = Annotated | Tagged


@dataclass(frozen=True)
class Source:
    """A data file, its lines, and its JSON objects with the numbers of their lines. `task` reads it."""

    path: FilePath
    lines: Sequence[str]
    task: str
    objects: Sequence[tuple[int, dict[str, Any]]] = field(default=(), repr=False)

    @property
    def first_line(self) -> str:
        """The first line that is not blank."""
        return next((line for line in self.lines if line.strip()), "")

    @property
    def first(self) -> dict[str, Any]:
        """The first object that shows the format: with entities, if any has some."""
        items = [item for _, item in self.objects]
        return next((item for item in items if item.get("entities")), items[0] if items else {})


Read = Callable[[Source, Any], list[Item]]  # from a file, and what `find` found in it


@dataclass(frozen=True)
class Format:
    """A format of data files: what a file contains, for messages, and the tasks that read it.

    `find` returns what it found in a file of the format, which `read` reads on, or what is false for another file.
    """

    name: str
    tasks: Sequence[str]
    find: Callable[[Source], Any]
    read: Read


def note(path: object, text: str, count: int) -> None:
    """Prints a note if a count is not 0."""
    if count:
        print_note(f"{path}: {text}")


def string(value: Any) -> str:
    """The value, which must be a string."""
    if not isinstance(value, str):
        raise TypeError(f"text must be a string, not {value!r:.40}")
    return value


def span(start: Any, end: Any, label: Any, text: Any = None) -> Span:
    """A checked span."""
    if type(start) is not int or type(end) is not int:  # a bool is an int too
        raise TypeError("start and end must be ints")
    if not isinstance(label, str) or not label.isprintable() or not label:
        raise TypeError("a label must be text that can be printed, and not empty")
    return start, end, label, text if isinstance(text, str) else None
