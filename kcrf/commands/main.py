"""The command line: `kcrf COMMAND`, one of demo, train, segment and the others that `kcrf --help` lists."""

import errno
import logging
import os
import re
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kcrf.commands.parsers import CommandParser
from kcrf.progress_bars import quiet
from kcrf.version import __version__

_COMMANDS = {  # each a module of this folder
    "demo": "Train segmenters with three heads (softmax, CRF x1, CRF x100) on a built-in corpus and compare them.",
    "download": "Download a public corpus and verify its checksums.",
    "augment": "Write a training file with augmented copies of its sentences or texts, which have correct labels.",
    "label": "Label the entities of unlabeled text with a dictionary of names, as training data for `kcrf train`.",
    "pretrain": "Pretrain a BERT on unlabeled text, from scratch, or continue from an existing BERT.",
    "train": "Train a tagger of words (cws), words with their classes (cws-pos), named entities (ner) or tokens (pos), "
    "or a text classifier (classify).",
    "segment": "Segment text into words: one line out for each line, words separated by one space.",
    "tag": "Recognize entities (ner), or predict a class for each token (pos): JSON lines or CoNLL columns out.",
    "classify": "Classify texts: a JSON object out for each line, with its label and the probability of every label.",
    "curve": "Show how scores grow with the number of labeled sentences, and how many more a score needs.",
    "estimate": "Estimate how good a model is on your own unlabeled texts: expected precision, recall and F1.",
    "suggest": "Suggest which texts to label next: those from whose labels a model would learn most, without "
    "duplicates.",
    "serve": "Serve trained models over HTTP, with a web page to try them.",
    "score": "Score words as SIGHAN (cws), words with their classes (cws-pos), entities as conlleval (ner), tokens "
    "(pos), labels as GLUE (classify).",
    "info": "Show the task, the labels, the settings and the scores of a run.",
    "report": "Write one HTML page that compares training runs.",
    "export": "Write a trained model as a file that runs without Keras.",
    "completion": "Print a script by which bash and zsh complete commands and options.",
}
_FLAGS = {
    "repair=True": "--repair",
    "strip_tags=True": "--strip-tags",
    "fields": "--fields",
    "standard": "--standard",
    "kind='json'": "--input json",
    "kind='table'": "--input table",
    "path": "--out",
    "format": "--format",
    "int8": "--int8",
    "words": "--words",
    "coverage": "--coverage",
    "force_words=True": "--force-words",
}
_FULL_DISK = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)  # errors that do not tell the file
_ARGUMENT = re.compile(rf"`({'|'.join(_FLAGS)}|column)(=-?\d+)?`")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command. Without arguments, and for `help`, shows the help."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # no log messages from TensorFlow, which reads it at its import
    logging.getLogger("tensorflow").setLevel(logging.ERROR)  # no warnings of a trace for each shape: there are few
    options = _parser().parse_args(_with_help(sys.argv[1:] if arguments is None else list(arguments)))
    try:
        with _plain_warnings(options.command), quiet(options.quiet):
            options.run(options)
    except BrokenPipeError:  # the reader of the output has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, ImportError) as error:
        print(f"kcrf {options.command}: {_message(error, options)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interruption:
        print(f"kcrf {options.command}: stopped", *filter(None, interruption.args), sep="; ", file=sys.stderr)
        return 130
    return 0


def _with_help(arguments: list[str]) -> list[str]:
    """The arguments: `kcrf help train all` is `kcrf train --help all`, and `kcrf` alone is `kcrf --help`."""
    if arguments[:1] in ([], ["help"]):
        return [*arguments[1:2], "--help", *arguments[2:]]
    return arguments


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="kcrf",
        description="Sequence labeling and text classification with Keras: train a model, use it, score it.",
        epilog="`kcrf help COMMAND` shows the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"kcrf {__version__}")
    _add_commands(parser)
    return parser


def _add_commands(parser: CommandParser) -> dict[str, CommandParser]:
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=CommandParser)
    parsers = {name: commands.add_parser(name, help=text, description=text) for name, text in _COMMANDS.items()}
    for name, command in parsers.items():
        command.module = f"kcrf.commands.{name}"
    return parsers


def command_parsers() -> dict[str, CommandParser]:
    """The parsers of the commands by name."""
    return _add_commands(CommandParser(prog="kcrf"))


@contextmanager
def _plain_warnings(command: str) -> Iterator[None]:
    """A context in which warnings are shown as errors are, with options, without a line of source code."""
    usual = warnings.formatwarning

    def plain(message: Any, category: Any, *where: Any, **more: Any) -> str:
        if category is UserWarning:
            return f"kcrf {command}: {_ARGUMENT.sub(_flag, str(message))}\n"
        return usual(message, category, *where, **more)

    warnings.formatwarning = plain
    try:
        yield
    finally:
        warnings.formatwarning = usual


def _message(error: Exception, options: Namespace) -> str:
    """The message of an error, with options in place of Python arguments."""
    if isinstance(error, OSError) and error.errno in _FULL_DISK and error.filename is None:
        places = (getattr(options, name, None) for name in ("out", "resume"))
        error.filename = next((place for place in places if isinstance(place, str)), "standard output")
    return _ARGUMENT.sub(_flag, _text(error, options.command))


def _flag(match: re.Match[str]) -> str:
    """The option for an argument: `repair=True` is --repair, `column=2` is --column 2."""
    return f"{_FLAGS.get(match[1], '--column')}{(match[2] or '').replace('=', ' ')}"


def _text(error: Exception, command: str) -> str:
    variable = "set the environment variable KERAS_BACKEND to tensorflow, jax or torch"
    if "Unable to import backend" in str(error) or getattr(error, "name", None) == "openvino":
        return f"{variable}. Received: KERAS_BACKEND={os.environ.get('KERAS_BACKEND')}"
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror[0].lower()}{error.strerror[1:]}"  # without "[Errno 13]"
    if command in ("augment", "curve", "pretrain", "train"):
        from kcrf.commands.training_options import in_flags
        from kcrf.runs import SettingError

        return in_flags(error) if isinstance(error, SettingError) else str(error)
    return str(error)
