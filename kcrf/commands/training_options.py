"""The options of `kcrf train`, made of the fields of `Settings`. Imports no Keras.

An option that is left out is None, so that `--resume` can refuse all that are given. `Settings` has the defaults.
"""

import os
from argparse import ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field
from typing import Any

from kcrf.commands.parsers import CommandParser, add_reading_options, declare, reading_arguments, refuse_data_options
from kcrf.runs import RunFolder, SettingError, Settings
from kcrf.runs.extension import extended_settings
from kcrf.runs.options import Rule, condition_in_words, default_in_words, option_of, types_of
from kcrf.runs.settings import FIELDS, RULES
from kcrf.tasks import TASKS, Wording

Fields = Mapping[str, Field[Any]]
COMMON = frozenset(
    "--train --valid --test --task --out --overwrite --resume --bert --encoder --epochs --learning-rate --seed".split()
)

_FILES = ("train", "valid", "test", "unlabeled")
_READING = ("fields", "column", "repair", "strip_tags")
_NOT_SETTINGS = (*_FILES, *_READING, "standard", "from_run", "out", "overwrite")

_FROM = (
    "Start from the BERT of another run, instead of --bert FOLDER, without its head. For small data: train on a larger "
    "task of a similar kind first. [none]"
)
_PARTS = """
--train FILE           The training data.
--standard NAME=FILE*  The training data of one of several segmentation standards, instead of --train, once for each:
                       one model with a CRF for each standard on one encoder. Only for cws. [one standard]
--valid FILE*          Held-out data to choose the best epoch by; with --standard NAME=FILE, once for each standard that
                       has some. [a tenth of the training data, by --seed. If they are at most 1,000 sentences, a
                       network from scratch is then trained again on all of them; a linear model with entities learns
                       all, and four folds score it]
--test FILE*           Test data, scored once at the end; with --standard NAME=FILE, once for each standard that has
                       some. [none]
--unlabeled FILE       Unlabeled text that the teacher labels: one text per line, or two texts with a tab between them.
                       Only with --teacher. [none]
"""
_RUN_FOLDER = """
--out RUN_DIR     Folder for the model, its scores and the log.
--overwrite       Replace the finished run in --out once the new one is finished. [no]
--resume RUN_DIR  Continue an interrupted run after its last epoch. Takes no other option.
"""


def add_training_options(parser: CommandParser) -> None:
    """Adds the options of `kcrf train` to its parser."""
    groups = add_settings(parser, FIELDS, RULES)
    groups["BERT"].add_argument("--from", dest="from_run", metavar="RUN_DIR", help=_FROM)
    data = groups["data"]
    declare(data, _PARTS)
    add_reading_options(data)
    declare(data, _RUN_FOLDER, off=None)


def add_settings(parser: CommandParser, settings: Fields, rules: Sequence[Rule]) -> dict[str, Any]:
    """Adds an option for each dataclass field with an `Option`. Returns the groups by title."""
    groups: dict[str, Any] = {}
    for setting in settings.values():
        title = option_of(setting).group
        if title is None:
            continue
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        flag = _flag(setting.name)
        groups[title].add_argument(flag, dest=setting.name, default=None, **_arguments(setting, rules))
    return groups


def _flag(name: str) -> str:
    """The option for a setting, or for one of the other options."""
    return "--from" if name == "from_run" else f"--{name.replace('_', '-')}"


def _arguments(setting: "Field[Any]", rules: Sequence[Rule]) -> dict[str, Any]:
    """The arguments of `add_argument` for a field of `Settings`."""
    option, kinds, condition = option_of(setting), types_of(setting), condition_in_words(setting.name, rules)
    notes = [default_in_words(setting, rules, _show), *([condition] if condition else [])]
    help: dict[str, Any] = {"help": f"{option.help} [{'; '.join(notes)}]".replace("%", "%%")}
    if bool in kinds:
        return {"action": BooleanOptionalAction, **help}
    if choices := _choices(setting):
        return {"choices": choices, **help}
    if float in kinds and str in kinds:
        return {"type": _number_or_auto, "metavar": "X|auto", **help}
    if str in kinds:
        return {"metavar": option.metavar, **help}
    return {"type": int, "metavar": "N", **help} if int in kinds else {"type": float, "metavar": "X", **help}


def _choices(setting: "Field[Any]") -> list[Any]:
    """The values that an option may have in any run, a list; empty if there is no choice."""
    option = option_of(setting)
    choices_of_tasks = [task.choices[setting.name] for task in TASKS.values() if setting.name in task.choices]
    if isinstance(option.choices, dict):
        choices_of_tasks += option.choices.values()
    elif option.choices is not None:
        choices_of_tasks.append(option.choices)
    return list(dict.fromkeys(value for choices in choices_of_tasks for value in choices))


def _number_or_auto(text: str) -> float | str:
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise ArgumentTypeError(f"needs a number or auto. Received: {text}") from None


def _show(value: Any) -> str:
    """A default in the help."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def settings_and_sources(options: Namespace) -> tuple[Settings, dict[str, Any]]:
    """The `Settings` that parsed options ask for, and a dict with the files of the data and how to read them."""
    absent = [f"--{name}" for name in ("train", "out") if getattr(options, name) is None]
    absent = [name for name in absent if name != "--train" or not options.standard]
    if absent:
        raise ValueError(f"needs {' and '.join(absent)}, or --resume RUN_DIR")
    settings = extended_settings({**given_settings(options, FIELDS), **_bert_of_run(options)})
    if settings.teacher is not None:
        if os.path.isfile(settings.teacher):
            raise ValueError(f"{settings.teacher}: --teacher needs the folder of a run. Received: a file")
        RunFolder(settings.teacher).read_config()  # refuses a folder that holds no run
    if options.unlabeled is not None and settings.teacher is None:
        raise ValueError("--unlabeled needs --teacher RUN_DIR. Received: no --teacher")
    refuse_data_options(options, settings.task)
    return settings, {**files_of_parts(options, settings.task), **reading_arguments(options)}


def files_of_parts(options: Namespace, task: str) -> dict[str, Any]:
    """The absolute path of the file of each part, or None without a file. Several standards have a dict of paths."""
    unlabeled = options.unlabeled and os.path.abspath(options.unlabeled)
    if options.standard is None:
        files = {name: _one_file(name, getattr(options, name)) for name in ("valid", "test")}
        return {"train": os.path.abspath(options.train), **files, "unlabeled": unlabeled}
    if "standards" not in TASKS[task].settings:
        raise ValueError(f"--standard needs --task cws. Received: --task {task}")
    if options.train is not None:
        raise ValueError("--standard takes the place of --train. Received: both")
    train = _by_standard("standard", options.standard)
    by_part = {name: _by_standard(name, getattr(options, name) or ()) or None for name in ("valid", "test")}
    for name, by_standard in by_part.items():
        unknown = [standard for standard in by_standard or () if standard not in train]
        if unknown:
            raise ValueError(f"--{name} needs one of the standards {', '.join(train)}. Received: {unknown[0]}")
    return {"train": train, **by_part, "unlabeled": unlabeled}


def _one_file(name: str, paths: list[str] | None) -> str | None:
    """The absolute path of the only file of a part, or None."""
    if paths and len(paths) > 1:
        raise ValueError(f"--{name} needs one file without --standard. Received: {', '.join(paths)}")
    return os.path.abspath(paths[0]) if paths else None


def _by_standard(option: str, values: Iterable[str]) -> dict[str, str]:
    """The absolute paths of values such as pku=pku.txt, a dict by standard."""
    files = {}
    for value in values:
        standard, sign, path = value.partition("=")
        if not sign or not standard or not path:
            raise ValueError(f"--{option} needs NAME=FILE, the name of a standard and its file. Received: {value}")
        if standard in files:
            raise ValueError(f"--{option} needs one file for each standard. Received: {standard} twice")
        if os.path.abspath(path) in files.values():
            raise ValueError(f"--{option} needs a file of each standard. Received: {path} for two")
        files[standard] = os.path.abspath(path)
    return files


def _bert_of_run(options: Namespace) -> dict[str, str]:
    """The BERT that --from asks for, as a dict of settings."""
    if options.from_run is None:
        return {}
    if options.bert is not None:
        raise ValueError("--from takes the place of --bert. Received: both")
    RunFolder(options.from_run).read_config()  # refuses a folder that holds no run
    return {"bert": os.path.abspath(options.from_run)}


def given_settings(options: Namespace, settings: Fields) -> dict[str, Any]:
    """The settings that are among parsed options, by name; paths are absolute."""
    values = {name: getattr(options, name, None) for name in settings}
    return {
        name: os.path.abspath(value) if option_of(settings[name]).is_path else value
        for name, value in values.items()
        if value is not None
    }


def in_flags(error: SettingError) -> str:
    """The message of a `SettingError` with options of the command line instead of Python names."""
    return error.worded(Wording(_flag, _assignment))


def _assignment(name: str, value: Any) -> str:
    """A setting with its value as on the command line."""
    if value is None or value is False:
        return f"no {_flag(name)}"
    return _flag(name) if value is True else f"{_flag(name)} {value}"


def refuse_beside_resume(options: Namespace, settings: Fields = FIELDS, others: Sequence[str] = _NOT_SETTINGS) -> None:
    """Raises ValueError if there is any option besides --resume: for one of the settings, or one of the others."""
    flags = sorted(_flag(name) for name in (*others, *settings) if getattr(options, name, None) is not None)
    if flags:
        raise ValueError(f"--resume continues with the settings of the run. Received: also {', '.join(flags)}")
