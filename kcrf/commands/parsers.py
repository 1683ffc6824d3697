"""Functions for the parsers of several commands."""

import argparse
import csv
import re
import shlex
from argparse import SUPPRESS, Namespace
from difflib import get_close_matches
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any

# Names of options in other programs, without hyphens, and their names here. A command has one of these.
_OTHER_NAMES = {
    "lr": ["--learning-rate"],
    "numepochs numtrainepochs nepochs": ["--epochs"],
    "maxsteps trainsteps": ["--steps"],
    "batch bs perdevicetrainbatchsize trainbatchsize": ["--batch-size"],
    "maxlen maxseqlen maxseqlength seqlen seqlength": ["--max-length", "--length"],
    "output outputdir outputfile outdir savedir savepath o": ["--out"],
    "input inputfile trainfile traindata data trainpath": ["--train", "--text"],
    "dev devfile eval evalfile validation validationfile val valfile": ["--valid"],
    "testfile testdata": ["--test"],
    "pretrained modelname modelnameorpath bertpath checkpoint": ["--bert", "--model"],
    "modelpath modeldir rundir run": ["--model"],
    "fp16 bf16 amp mixedprecision halfprecision": ["--precision"],
    "randomseed": ["--seed"],
    "userdict userdictionary dict dictionary lexicon": ["--words"],
    "threads jobs numworkers nproc numprocesses": ["--workers"],
    "force overwriteoutputdir": ["--overwrite"],
    "nbest k topk": ["--k-best"],
    "threshold minconfidence": ["--min-probability"],
    "pos posseg withpos postags withtags flag tag tags": ["--labels"],
    "confidence confidences probability": ["--probabilities"],
    "pred predictions hyp hypothesis": ["--pred"],
    "ref reference truth": ["--gold"],
}
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_DEVICES = "gpu gpus gpuid gpuids usegpu nogpu device devices deviceids cuda nocuda usecuda cpu usecpu ngpu"


class CommandParser(argparse.ArgumentParser):
    """A parser that imports its command when it is first used: no command waits for what another one imports. An
    unknown option is an error of its command, with that command's usage and the option whose name is closest."""

    module: str | None = None  # of the command: it has `run`, and maybe `EPILOG`, `OPTIONS` and `add_options`
    common: frozenset[str] = frozenset()  # the options that --help shows; --help all shows all

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "add_help": False, "allow_abbrev": False})
        self.add_argument("-h", "--help", nargs="?", choices=["all"], action=_Help, help=SUPPRESS)

    def options(self) -> list[str]:
        """The names of the options, which are added first if the parser has not been used."""
        if self.module is not None:
            command, self.module = import_module(self.module), None
            self.formatter_class = argparse.RawDescriptionHelpFormatter
            self.epilog = getattr(command, "EPILOG", None)
            declare(self, "-q,--quiet  Show no progress and no notes on standard error. [no]\n")
            declare(self, getattr(command, "OPTIONS", ""))
            if hasattr(command, "add_options"):
                command.add_options(self)
            self.set_defaults(run=command.run)
        return list(self._option_string_actions)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.options()
        given = takewhile("--".__ne__, args if args and "run" in self._defaults else ())  # not of `kcrf`
        wrong = next((x for x in given if x[:2] == "--" and x.partition("=")[0] not in self._option_string_actions), "")
        if wrong:  # argparse would first miss the option that was meant
            self.error(f"unrecognized arguments: {wrong}{self._advice(wrong.partition('=')[0])}")
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._advice(unknown[0].partition('=')[0])}")
        return options, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raises the error for a value, or a command, that is not among the choices, with the one that was meant."""
        if action.choices is not None and value not in action.choices:
            choices = list(map(str, action.choices))
            near = get_close_matches(str(value), choices, n=1)
            meant = f". Did you mean {near[0]}?" if near else ""
            raise argparse.ArgumentError(action, f"needs one of {', '.join(choices)}. Received: {value}{meant}")

    def _advice(self, name: str) -> str:
        """The end of the error message for an unknown option: the similar option, or where else it is set."""
        if name[0] in _DASHES:  # typed by a word processor
            name = f"--{name.lstrip(_DASHES)}"
            return f". Did you mean {name}?" if name in self._option_string_actions else ""
        if not name.startswith("-"):
            is_train = "--train" in self._option_string_actions
            return f". Did you mean --train {name}?" if is_train else ". One FILE at a time; `cat` joins several"
        bare = name.lower().lstrip("-").replace("-", "").replace("_", "")
        if bare in _DEVICES.split():
            return (
                ". The backend chooses the device, a GPU if it finds one; the environment variable "
                "CUDA_VISIBLE_DEVICES chooses among several, and -1 means none"
            )
        others = next((options for names, options in _OTHER_NAMES.items() if bare in names.split()), [])
        meant = [option for option in others if option in self._option_string_actions]
        meant = meant or get_close_matches(name, self._option_string_actions, n=1, cutoff=0.8)
        return f". Did you mean {meant[0]}?" if meant else ""


class _Help(argparse.Action):
    """Prints the help with the most common options, or with all options, and exits."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        for action in parser._actions if values is None and parser.common else ():
            if not parser.common.intersection(action.option_strings):
                action.help = SUPPRESS
        parser.print_help()
        parser.exit()


_OPTION = re.compile(r"^(\S+)(?: (\S+))?  +(\S.*(?:\n .*)*)", re.M)
_TYPES: dict[str, type] = {"N": int, "K": int, "X": float}


def declare(parser: argparse._ActionsContainer, options: str, off: bool | None = False) -> None:
    """Adds the options that a text declares: a name, its value, and after two spaces its help, on one or more lines.

    A value N or K is an integer, X a number, {a,b} a choice; `:` and a default may follow it, `!` if it is required,
    `*` if it may be repeated, `+` if there may be several. An option without a value is a flag, with the value `off` if
    it is left out. A name without hyphens is an argument, one in [] may be left out.
    """
    for name, value, help in _OPTION.findall(options):
        more: dict[str, Any] = {"help": " ".join(help.split())}
        metavar, _, default = value.rstrip("!*+").partition(":")
        if metavar.startswith("{"):
            more |= {"choices": metavar[1:-1].split(","), "default": default or None}
        elif metavar:
            of_type = _TYPES.get(metavar, str)
            more |= {"metavar": metavar, "type": of_type, "default": of_type(default) if default else None}
        elif name.startswith("-"):
            more |= {"action": "store_true", "default": off}
        else:
            more |= {"metavar": name.strip("[]"), "nargs": "?" if "[" in name else None}
            name = name.strip("[]").lower()
        more |= {"required": True} if value.endswith("!") else {}
        more |= {"action": "append"} if value.endswith("*") else {"nargs": "+"} if value.endswith("+") else {}
        parser.add_argument(*name.split(","), **more)


_CONLL = """
--repair      Read tag sequences that break their scheme as conlleval does, and the longer of overlapping entities,
              instead of refusing the file. [no]
--strip-tags  Remove word classes from the words of segmented text, as in 充满/v or 今天_t. Only for cws. [no]
"""
_COLUMN = "CoNLL column of the tags, counted from 0; for CoNLL-U also UPOS or XPOS. [-1, the last column; UPOS]"
_FIELDS = """
--fields TEXT,LABEL  Where text and label are, or TEXT,TEXT_B,LABEL for pairs of texts: names of columns in the first
                     line of the file or of JSON members, or numbers of columns from 0, for a file without names. Only
                     for classify. [text and label, or the only two or three columns]
"""
OVERWRITE = """
--overwrite  Replace the file in --out if it exists. [no]
"""


def add_reading_options(parser: argparse._ActionsContainer) -> None:
    """Adds the options on how to read labeled data. An option left out is None."""
    declare(parser, _FIELDS)
    parser.add_argument("--column", type=_column, metavar="N", help=_COLUMN)
    declare(parser, _CONLL, off=None)


def _column(text: str) -> int | str:
    """The number of a column, or the name of one of CoNLL-U."""
    if text.upper() in ("UPOS", "XPOS"):
        return text.upper()
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, UPOS or XPOS. Received: {text}") from None


def check_out(path: str, source: str | None = None, overwrite: bool = False) -> None:
    """Raises an error if no file can be written at a path, before the work."""
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path}: needs a file to write. Received: a folder")
    if not Path(path).absolute().parent.is_dir():
        raise FileNotFoundError(f"{path}: needs a folder that exists")
    if source is not None and Path(path).is_file() and Path(source).exists() and Path(path).samefile(source):
        raise ValueError(f"--out needs another file than the input. Received: {path}")
    check_is_new(path, overwrite)


def check_is_new(path: str, overwrite: bool) -> None:
    """Raises FileExistsError if there is a file at a path which is not to be replaced."""
    if Path(path).is_file() and not overwrite:
        raise FileExistsError(f"{path}: the file exists; --overwrite replaces it")


def reading_arguments(options: Namespace) -> dict[str, Any]:
    """How the files of any task are read, from parsed options: what `read_part` takes."""
    flags = {"repair": bool(options.repair), "strip_tags": bool(options.strip_tags)}
    return {"column": -1 if options.column is None else options.column, **flags, "fields": fields_argument(options)}


def fields_argument(options: Namespace) -> list[str] | None:
    """The `fields` of `kcrf.corpora.read_classified`, from parsed options."""
    return None if options.fields is None else next(csv.reader([options.fields]), [])


def refuse_data_options(options: Namespace, task: str) -> None:
    """Raises ValueError if there is an option that says how to read the data of another task."""
    from kcrf.tasks import TASKS

    for other in TASKS.values():
        for name in sorted(other.file_options - TASKS[task].file_options):
            if getattr(options, name, None) is not None:
                raise ValueError(f"--{name.replace('_', '-')} needs --task {other.name}. Received: --task {task}")


def command_to_use(path: Any, config: Any) -> str:
    """The command line that uses a model, with the first of its segmentation standards if it has several."""
    standards = config.data.standards
    standard = f"--standard {shlex.quote(standards[0])} " if len(standards) > 1 else ""
    return f"kcrf {config.task.command} --model {shlex.quote(str(path))} {standard}FILE"


def print_scores(title: str, parts: dict[str, Any]) -> None:
    """Prints the scores of parts as a table."""
    from rich.console import Console

    from kcrf.reports import table_of_parts

    Console().print(table_of_parts(title, parts))
