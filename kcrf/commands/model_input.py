"""The input of the commands that use a model: their options on the model and the text, and the checks of both."""

import sys
from argparse import Namespace
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from kcrf.commands.parsers import CommandParser, declare
from kcrf.commands.streams import Lines, add_stream_options, is_same_file

_LONG_TEXT = 8  # letters of another script than ASCII: more than a token has

STANDARD = """
--standard NAME  The segmentation standard, for a model of several. [the only one]
"""
_WINDOWS = "Windows, of up to 128 positions each,"


def add_input_options(parser: CommandParser, items: str = _WINDOWS, default: str | None = None) -> None:
    """Adds the options of a command that uses a model and writes a result for each text."""
    add_model_options(parser, items, default)
    add_stream_options(parser)


def add_model_options(parser: CommandParser, items: str = _WINDOWS, default: str | None = None) -> None:
    """Adds the options on the model, its input and its batches; the arguments are as for `add_input_options`."""
    run, usual = ("RUN", f" [{default}]") if default else ("RUN!", "")
    declare(
        parser,
        f"--model {run}  A folder that `kcrf train` wrote, or a file of `kcrf export`.{usual}\n"
        "[FILE]  UTF-8 text. [standard input]\n"
        f"--batch-size N:64  {items} that are computed at once. Fewer need less memory. [%(default)s]",
    )


@contextmanager
def checked_input(options: Namespace, tasks: Collection[str] | None = None) -> Iterator[Lines]:
    """A context with the `Lines` of the input. Checks the options and the run folder first: loading takes much longer.
    Sets `options.opened`, the open run folder or exported file, and `options.model_task`, the name of its task."""
    from kcrf.corpora.lines import check_is_file
    from kcrf.taggers.open_model import check_standard, open_run
    from kcrf.tasks import TASKS

    for name in ("k_best", "batch_size"):
        value = getattr(options, name, None)
        if value is not None and value < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1. Received: {value}")
    if not options.file and sys.stdin is None:
        raise ValueError("needs FILE, or text on standard input. Received: neither")
    options.opened = open_run(options.model)
    data = options.opened.read_config().config.data
    options.model_task = data.task
    tasks = tasks or [task.name for task in TASKS.values() if task.command == options.command]
    if options.model_task not in tasks:
        needed = " or ".join(tasks)
        raise ValueError(f"{options.model}: needs a run of --task {needed}. Received: a run of --task {data.task}")
    check_standard(options.model, data.standards, getattr(options, "standard", None))
    if options.file:
        check_is_file(options.file)
    if not options.file and sys.stdin.isatty():
        print(f"kcrf {options.command}: reading from the terminal; Ctrl-D ends the text", file=sys.stderr)
    with open(options.file, "rb") if options.file else sys.stdin.buffer as source:
        if options.out is not None and is_same_file(source, options.out):
            raise ValueError(f"--out needs another file than the input. Received: {options.out}")
        yield Lines(source, options.file or "<stdin>")


def checked_texts(lines: Iterator[str], name: str, of_tokens: bool = False) -> Iterator[str]:
    """Yields the lines. Refuses a first line that is JSON, a token with its tag, or a whole file with other line ends.
    With `of_tokens`, also refuses a first line that is not split into tokens."""
    from kcrf.corpora.columns import begin_columns
    from kcrf.corpora.lines import refuse_records
    from kcrf.tags.scheme import ENTITY_TAG

    begin: list[str] = []
    for line in lines:
        begin.append(line)
        if (are_columns := begin_columns(begin)) is not None:
            break
    if begin and are_columns:
        raise ValueError(f"{name}:1: needs a text. Received: a token and its tag; --input conll of `kcrf tag` reads it")
    for first in begin[:1]:
        refuse_records(f"{name}:1", first)
        if "\t" in first and ENTITY_TAG.fullmatch(first.split("\t")[-1]):
            raise ValueError(f"{name}:1: needs a text. Received: a token and its tag; --input conll of `kcrf tag`")
        if "\r" in first:
            raise ValueError(f"{name}:1: needs lines that end in \\n or \\r\\n. Received: a \\r inside the line")
        if of_tokens:
            _check_tokens(name, first)
    yield from begin
    yield from lines


def read_texts(path: str) -> list[str]:
    """The lines of a file that are not blank."""
    from kcrf.corpora.lines import check_is_file

    check_is_file(path)
    with open(path, "rb") as file:
        texts = [line for line in checked_texts(Lines(file, path), path) if line.strip()]
    if not texts:
        raise ValueError(f"{path}: needs one text per line. Received: a file without any")
    return texts


def text_and_partner(text: Any) -> tuple[str, str | None]:
    """A text and None, or a pair of texts."""
    return text if isinstance(text, tuple) else (text, None)


def _check_tokens(name: str, line: str) -> None:
    """Raises ValueError for a token with its tag, or a long text without spaces: the line has no tokens."""
    received = None
    if line.count("\t") == 1 and " " not in line.strip():
        received = "what looks like a token and its tag; --input conll reads columns"
    elif len(line.split()) == 1 and sum(x.isalpha() and not x.isascii() for x in line) >= _LONG_TEXT:
        received = f"text that is not segmented, {line.strip()[:20]!r}; `kcrf segment` segments it"
    if received:
        raise ValueError(f"{name}:1: needs tokens with spaces between them. Received: {received}")
