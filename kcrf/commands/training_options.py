"""The options of `kcrf train`, made of the fields of `Settings`. Imports no Keras.

An option that is left out is None, so that `--resume` can refuse all that are given. `Settings` has the defaults.
"""

import os
import re
from argparse import ArgumentTypeError, BooleanOptionalAction
from dataclasses import fields

from kcrf.commands.parsers import (
    add_conll_options,
    add_fields_option,
    reading_arguments,
    refuse_data_options,
)
from kcrf.runs import RunFolder, Settings
from kcrf.runs.options import default_in_words, kinds_of
from kcrf.runs.settings import PATHS

__all__ = [
    "add_settings",
    "add_training_options",
    "in_flags",
    "make_settings",
    "refuse_beside_resume",
    "settings_and_sources",
]

_FILES = ("train", "valid", "test", "unlabelled")
_FLAGS = {setting.name: setting.metadata["option"].flag for setting in fields(Settings)} | {"from_run": "--from"}
_NOT_SETTINGS = (*_FILES, "from_run", "fields", "column", "repair", "strip_tags", "out", "overwrite", "seeds")


def add_training_options(parser):
    """Adds the options of `kcrf train` to its parser."""
    groups = add_settings(parser, Settings)
    groups["BERT"].add_argument(
        "--from",
        dest="from_run",
        metavar="RUN_DIR",
        help="Start from the BERT of another run, instead of --bert FOLDER, without its head. For small data: train "
        "on a larger task of a similar kind first. [none]",
    )
    _add_files(groups["data"])


def add_settings(parser, settings):
    """Adds an option for each field of a dataclass whose fields have an `Option`; returns the groups by title."""
    groups = {}
    for setting in fields(settings):
        title = setting.metadata["option"].group
        if title is None:
            continue
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        groups[title].add_argument(_flag(setting.name), dest=setting.name, default=None, **_arguments(setting))
    return groups


def _add_files(data):
    data.add_argument("--train", metavar="FILE", help="The training data.")
    data.add_argument(
        "--valid", metavar="FILE", help="Held-out data to choose the best epoch by. [a tenth of --train, by --seed]"
    )
    data.add_argument("--test", metavar="FILE", help="Test data, scored once at the end. [none]")
    data.add_argument(
        "--unlabelled",
        metavar="FILE",
        help="Texts without labels, one per line, or two with a tab between them, that the teacher alone labels. Only "
        "with --teacher. [none]",
    )
    add_fields_option(data)
    add_conll_options(data)
    data.add_argument("--out", metavar="RUN_DIR", help="Folder for the model, its scores and the log.")
    data.add_argument(
        "--overwrite",
        action="store_true",
        default=None,
        help="Replace the finished run in --out once the new one is finished. [no]",
    )
    data.add_argument(
        "--seeds",
        type=int,
        metavar="K",
        help="Train K times, with --seed and the K - 1 seeds after it, into folders of RUN_DIR; print mean and "
        "deviation of the scores, name the runs that failed, and write a report. The same command continues after an "
        "interruption, and with --overwrite replaces runs of other settings or data. Without --valid each run holds "
        "out its own tenth. [one run]",
    )
    data.add_argument(
        "--resume", metavar="RUN_DIR", help="Continue an interrupted run after its last epoch. Takes no other option."
    )


def _flag(name):
    """The option for a setting, or for one of the other options."""
    return _FLAGS.get(name) or f"--{name.replace('_', '-')}"


def _arguments(setting):
    """The arguments of `add_argument` for a field of `Settings`."""
    option, kinds = setting.metadata["option"], kinds_of(setting)
    notes = [default_in_words(option, _show), *([f"only {option.only.flags}"] if option.only else [])]
    help = {"help": f"{option.help} [{'; '.join(notes)}]".replace("%", "%%")}
    if bool in kinds:
        return {"action": BooleanOptionalAction, **help}
    if option.choices is not None:
        choices = option.choices.values() if isinstance(option.choices, dict) else [option.choices]
        return {"choices": list(dict.fromkeys(name for names in choices for name in names)), **help}
    if float in kinds and str in kinds:
        return {"type": _number_or_auto, "metavar": "X|auto", **help}
    if str in kinds:
        return {"metavar": option.metavar, **help}
    return {"type": int, "metavar": "N", **help} if int in kinds else {"type": float, "metavar": "X", **help}


def _number_or_auto(text):
    try:
        return text if text == "auto" else float(text)
    except ValueError:
        raise ArgumentTypeError(f"needs a number or auto. Received: {text}") from None


def _show(value):
    """A default in the help."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def settings_and_sources(options):
    """The `Settings` that parsed options ask for, and a dict with the files of the data and how to read them."""
    absent = [f"--{name}" for name in ("train", "out") if getattr(options, name) is None]
    if absent:
        raise ValueError(f"needs {' and '.join(absent)}, or --resume RUN_DIR")
    given = {field.name: getattr(options, field.name, None) for field in fields(Settings)}
    if options.from_run is not None:
        if given["bert"] is not None:
            raise ValueError("--from takes the place of --bert. Received: both")
        RunFolder(options.from_run).read_config()  # refuses a folder that holds no run
        given["bert"] = options.from_run
    given.update({name: os.path.abspath(given[name]) for name in PATHS if given[name] is not None})
    settings = make_settings(Settings, given)
    if settings.teacher is not None:
        if os.path.isfile(settings.teacher):
            raise ValueError(f"{settings.teacher}: --teacher needs the folder of a run. Received: a file")
        RunFolder(settings.teacher).read_config()  # refuses a folder that holds no run
    if options.unlabelled is not None and settings.teacher is None:
        raise ValueError("--unlabelled needs --teacher RUN_DIR. Received: no --teacher")
    refuse_data_options(options, settings.task)
    for one, other in (("steps", "epochs"), ("batch_tokens", "batch_size")):
        if None not in (getattr(options, one), getattr(options, other)):
            raise ValueError(f"{_flag(one)} takes the place of {_flag(other)}. Received: both")
    if options.crf_lr_multiplier is not None and settings.head != "crf":
        raise ValueError(f"--crf-lr-multiplier needs a CRF. Received: a head without one, {settings.head}")
    files = {name: getattr(options, name) for name in _FILES}
    sources = {name: path and os.path.abspath(path) for name, path in files.items()}
    return settings, {**sources, **reading_arguments(options)}


def make_settings(settings, given):
    """Makes a dataclass of settings of those that are not None; its errors name the options."""
    try:
        return settings(**{name: value for name, value in given.items() if value is not None})
    except ValueError as error:
        raise ValueError(in_flags(str(error), settings)) from None


def in_flags(message, settings=Settings):
    """A message about settings with the options of the command line in place of their Python names.

    Names within a path, as in `runs/seed=1/train.tsv`, stay.

    >>> in_flags("`max_length` must be at most 128. Received: max_length=512, bert=None")
    '--max-length must be at most 128. Received: --max-length 512, no --bert'
    """
    known = [setting.name for setting in fields(settings) if setting.metadata["option"].group]
    names = "|".join([*known, "unlabelled"])
    message = re.sub(f"`({names})`", lambda found: _flag(found[1]), message)
    message = re.sub(rf"(?<![^\s(])({names})=None\b", lambda found: f"no {_flag(found[1])}", message)
    given = rf"(?<![^\s(])({names})='?([\w.,:/-]*[\w/-])'?"
    return re.sub(given, lambda found: f"{_flag(found[1])} {found[2]}", message)


def refuse_beside_resume(options, settings=Settings, others=_NOT_SETTINGS):
    """Raises ValueError if there is any option besides --resume: for a field of the settings, or one of the others."""
    names = (*others, *(field.name for field in fields(settings)))
    given = sorted(_flag(name) for name in names if getattr(options, name, None) is not None)
    if given:
        raise ValueError(f"--resume continues with the settings of the run. Received: also {', '.join(given)}")
