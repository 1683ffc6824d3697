"""What is known of a setting besides its name and its type, as data: default, range, help. Needs no Keras."""

import os
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, get_args

__all__ = [
    "Condition",
    "Option",
    "Range",
    "default_in_words",
    "describe",
    "fill_and_check",
    "kinds_of",
    "option",
    "paths_as_strings",
]


@dataclass(frozen=True)
class Range:
    """The numbers that a setting may have: in words, and as a function from a value to a bool."""

    words: str
    holds: Callable


POSITIVE = Range("positive", lambda x: 0 < x < float("inf"))
NOT_NEGATIVE = Range("at least 0", lambda x: 0 <= x < float("inf"))
FRACTION = Range("at least 0 and below 1", lambda x: 0 <= x < 1)
PROBABILITY = Range("above 0 and below 1", lambda x: 0 < x < 1)
FACTOR = Range("above 0 and at most 1", lambda x: 0 < x <= 1)
LENGTH = Range("from 8 to 512", lambda x: 8 <= x <= 512)
LAYERS = Range(
    '"last", "all" or different numbers such as "8,11"',
    lambda x: x in ("last", "all") or re.fullmatch(r"-?\d+(,-?\d+)*", x) and len(set(x.split(","))) == x.count(",") + 1,
)
POSITIVE_OR_AUTO = Range('positive or "auto"', lambda x: x == "auto" if isinstance(x, str) else POSITIVE.holds(x))


@dataclass(frozen=True)
class Condition:
    """What another setting must be for an option to differ from its default.

    Attributes:
        name: The other setting.
        words: The condition in an error message.
        flags: The condition in `kcrf train --help`.
        holds: A function from the value of the other setting to a bool.
    """

    name: str
    words: str
    flags: str
    holds: Callable


WITH_BERT = Condition("bert", "`bert`", "with --bert", lambda bert: bert is not None)
OF_LAYERS = Condition("layers", "`layers`", "with --layers", lambda layers: layers != "last")
FROM_SCRATCH = Condition("bert", "training from scratch, bert=None", "without --bert", lambda bert: bert is None)
FOR_ENTITIES = Condition("task", "task='ner'", "with --task ner", lambda task: task == "ner")
FOR_TAGS = Condition("task", "task='cws' or task='ner'", "with --task cws or ner", lambda task: task != "classify")
FOR_CLASSES = Condition("task", "task='classify'", "with --task classify", lambda task: task == "classify")
AUGMENTED = Condition("augment", "`augment`", "with --augment", lambda copies: copies > 0)
WITH_VECTORS = Condition("vectors", "`vectors`", "with --vectors", lambda vectors: vectors is not None)
TAUGHT = Condition("teacher", "`teacher`", "with --teacher", lambda teacher: teacher is not None)
WITH_CRF = Condition("head", "head='crf'", "with --head crf", lambda head: head == "crf")


def _key_of(values, run):
    """The first of the keys of a run that a dict by run has; None where all runs have the same."""
    return next((key for key in run if key in values), None) if isinstance(values, dict) else None


@dataclass(frozen=True)
class Option:
    """What is known of a setting besides its name and its type.

    Attributes:
        help: What it does and when to use it, in sentences.
        group: Its heading in `kcrf train --help`; None keeps it out of the command line.
        default: The default. A dict where it depends on the run: by the keys "scratch" and "bert", for training from
            scratch and for fine-tuning a BERT, by task or by head. The first is that of a run that meets `only`.
        choices: The allowed values, a tuple or a dict of tuples as for `default`; None allows all.
        range: The allowed numbers, a `Range`, or None.
        only: The `Condition` under which it may differ from its default, or None.
        none: What the default None stands for.
        metavar: What the help calls the value of an option that is a string.
        flag: Its name on the command line; None makes it of the name of the setting.
    """

    help: str
    group: str | None = None
    default: Any = None
    choices: tuple | dict | None = None
    range: Range | None = None
    only: Condition | None = None
    none: str | None = None
    metavar: str | None = None
    flag: str | None = None

    def of_run(self, name, run):
        """`default` or `choices` for a run.

        Args:
            name: "default" or "choices".
            run: What the keys of a dict may be: the task, "scratch" or "bert", and the head.
        """
        value = getattr(self, name)
        return value.get(_key_of(value, run)) if isinstance(value, dict) else value

    def check(self, name, kinds, value, run):
        """Raises ValueError if a value is not one of `kinds`, not among the choices or out of range."""
        if not any(_KINDS[kind][1](value) for kind in kinds):
            what = " or ".join(_KINDS[kind][0] for kind in kinds)
            raise ValueError(f"`{name}` must be {what}. Received: {value!r}")
        choices = self.of_run("choices", run)
        if choices is not None and value not in choices:
            words = f"one of {choices}" if len(choices) > 1 else repr(choices[0])
            raise ValueError(f"`{name}` is {words}{self._where(run)}. Received: {value!r}")
        if self.range is not None and not self.range.holds(value):
            raise ValueError(f"`{name}` must be {self.range.words}. Received: {value!r}")

    def _where(self, run):
        """For which runs the choices are those of this one, in an error message."""
        key = _key_of(self.choices, run)
        return {None: "", "scratch": " without a BERT", "bert": " on a BERT"}.get(key, f" for {key}")

    def check_condition(self, name, value, other, run):
        """Raises ValueError if a value differs from the default although the `Condition` does not hold for `other`."""
        if self.only and value != self.of_run("default", run) and not self.only.holds(other):
            raise ValueError(
                f"`{name}` needs {self.only.words}. Received: {name}={value!r} and {self.only.name}={other!r}"
            )


_KINDS = {  # by type: what messages call it, and whether a value is one; NumPy's numbers are numbers too
    bool: ("True or False", lambda x: isinstance(x, bool)),
    int: ("an int", lambda x: isinstance(x, Integral) and not isinstance(x, bool)),
    float: ("a number", lambda x: isinstance(x, Real) and not isinstance(x, bool)),
    str: ("a string", lambda x: isinstance(x, str)),
    tuple: ("a tuple of strings", lambda x: isinstance(x, tuple) and all(isinstance(item, str) for item in x)),
}


def option(default, help, group=None, **more):
    """A dataclass field with an `Option` in its metadata; a default that depends on the run is None at first."""
    known = Option(help, group, default, **more)
    return field(default=None if isinstance(default, dict) else default, metadata={"option": known})


def kinds_of(setting):
    """The types that a dataclass field may have besides None, a tuple."""
    return tuple(kind for kind in get_args(setting.type) or (setting.type,) if kind is not type(None))


def may_be_none(setting):
    """Whether a dataclass field may be None."""
    return type(None) in get_args(setting.type)


def paths_as_strings(settings, names):
    """Turns paths among the fields of a frozen dataclass into strings, which JSON can hold."""
    for name in names:
        if isinstance(getattr(settings, name), os.PathLike):
            object.__setattr__(settings, name, os.fspath(getattr(settings, name)))


def fill_and_check(settings, run):
    """Fills in the defaults of a frozen dataclass that depend on the run, and checks all values.

    Args:
        settings: An instance of a dataclass whose fields have an `Option`.
        run: What the keys of a dict of defaults or choices may be; see `Option.of_run`.

    Raises:
        ValueError: A value has the wrong type or is out of range, or is given where it has no meaning.
    """
    for setting in fields(settings):
        known, name = setting.metadata["option"], setting.name
        if getattr(settings, name) is None and may_be_none(setting):
            object.__setattr__(settings, name, known.of_run("default", run))
        if getattr(settings, name) is not None or not may_be_none(setting):
            known.check(name, kinds_of(setting), getattr(settings, name), run)
    for setting in fields(settings):
        known = setting.metadata["option"]
        other = known.only and getattr(settings, known.only.name)
        known.check_condition(setting.name, getattr(settings, setting.name), other, run)


def default_in_words(option, show=repr):
    """The default of an `Option` as the help has it: "3, 1 with --bert".

    Args:
        option: An `Option`.
        show: A function from a value to a string. Defaults to `repr`.
    """

    def words(value):
        return option.none if value is None else show(value)

    if not isinstance(option.default, dict):
        return words(option.default)
    if option.only is not None and option.only.name in ("bert", "head"):  # one key of the default is left
        return words(next(iter(option.default.values())))
    default = dict(sorted(option.default.items(), key=lambda item: item[0] not in ("scratch", "bert")))  # tasks last
    if "scratch" in default and default["scratch"] == default["bert"]:
        del default["bert"]
    when = {"scratch": "", "bert": " with --bert"}
    return ", ".join(words(value) + when.get(key, f" for {key}") for key, value in default.items())


def describe(settings):
    """The "Attributes:" part of a docstring for dataclass fields with an `Option` each."""
    lines = ["Attributes:"]
    for setting in settings:
        known = setting.metadata["option"]
        text = f"{setting.name}: {known.help} Defaults to {default_in_words(known)}."
        text += f" Only {known.only.flags}." if known.only else ""
        indents = {"initial_indent": " " * 8, "subsequent_indent": " " * 12}
        lines.append(textwrap.fill(text.replace("--", ""), 112, **indents))
    return "\n".join(lines) + "\n    "
