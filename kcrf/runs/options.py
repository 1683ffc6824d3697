"""Options: the default, the range, the condition, the help and the flag of a setting. Needs no Keras."""

import os
import re
import textwrap
from collections.abc import Callable, Collection, Iterable
from dataclasses import Field, dataclass, field, fields
from numbers import Integral, Real
from types import UnionType
from typing import Any, get_args, get_origin

from kcrf.tasks import TASKS, SettingError, Task


@dataclass(frozen=True)
class Range:
    """The allowed numbers of a setting: in words, and as a function from a value to a bool."""

    words: str
    holds: Callable[[Any], Any]


def _or_auto(requirement, numbers):
    """The range of the numbers of another range, and the word "auto"."""
    return Range(requirement, lambda x: x == "auto" if isinstance(x, str) else numbers.holds(x))


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
POSITIVE_OR_AUTO = _or_auto('positive or "auto"', POSITIVE)
FRACTION_OR_AUTO = _or_auto('at least 0 and below 1, or "auto"', FRACTION)


@dataclass(frozen=True)
class Condition:
    """The value that another setting must have for an option to differ from its default.

    Attributes:
        name: The other setting.
        requirement: The condition in a `SettingError`.
        flags: The condition in `kcrf train --help`.
        holds: A function from the value of the other setting to a bool.
    """

    name: str
    requirement: str
    flags: str
    holds: Callable[[Any], bool]


WITH_BERT = Condition("bert", "{bert}", "with --bert", lambda bert: bert is not None)
FROM_SCRATCH = Condition("bert", "{bert:None}", "without --bert", lambda bert: bert is None)
OF_LAYERS = Condition("read_layers", "{read_layers}", "with --read-layers", lambda layers: layers != "last")
AUGMENTED = Condition("augment", "{augment}", "with --augment", bool)
WITH_VECTORS = Condition("vectors", "{vectors}", "with --vectors", lambda vectors: vectors is not None)
TAUGHT = Condition("teacher", "{teacher}", "with --teacher", lambda teacher: teacher is not None)
EXTENDED = Condition("extend", "{extend}", "with --extend", lambda run: run is not None)
NEURAL = Condition(
    "encoder", "has no effect with {encoder:'linear'}", "with a neural --encoder", lambda name: name != "linear"
)
LINEAR = Condition("encoder", "{encoder:'linear'}", "with --encoder linear", lambda name: name == "linear")
WITH_CRF = Condition("head", "{head:'crf'}", "with --head crf", lambda head: head == "crf")


@dataclass(frozen=True)
class Kind:
    """The kind of a run, on which defaults and choices depend.

    Attributes:
        keys: "linear" for a linear model, "extended" for one from scratch that is extended, "scratch" or "bert", and
            the head. The first one that an option has a default for decides.
        task: The `kcrf.tasks.Task`, or None for pretraining.
    """

    keys: tuple[str, ...]
    task: Task | None = None

    def pick(self, values: Any) -> Any:
        """Picks a value from a dict by the keys of the run. Returns other values unchanged."""
        if not isinstance(values, dict):
            return values
        return next((values[key] for key in self.keys if key in values), None)


@dataclass(frozen=True)
class Option:
    """The properties of a setting other than its name and type.

    Attributes:
        help: Sentences on what the setting does and when to use it.
        group: The heading in `kcrf train --help`. None: the command line has no such option.
        default: The default; or a dict of defaults: by "scratch" and "bert", for training from scratch and for
            fine-tuning a BERT, or by head. A task may have its own default.
        choices: The allowed values, or a dict of them with the keys of `default`; None allows all values. A task may
            have its own choices.
        range: The allowed numbers, a `Range`, or None.
        only: The `Condition` under which the setting may differ from its default, or None.
        by_task: Whether only the tasks that list it in `Task.settings` have the setting.
        instead_of: Another setting that this setting replaces, or None.
        is_path: Whether the value may be a path, which is saved as a string.
        none: What the default None means, for the help.
        metavar: The name of a string value in the help.
        old_flag: An old name of the flag, which still works.
    """

    help: str
    group: str | None = None
    default: Any = None
    choices: tuple[Any, ...] | dict[str, tuple[Any, ...]] | None = None
    range: Range | None = None
    only: Condition | None = None
    by_task: bool = False
    instead_of: str | None = None
    is_path: bool = False
    none: str = "none"
    metavar: str | None = None
    old_flag: str | None = None

    def default_of(self, name: str, kind: Kind) -> Any:
        """The default for a kind of run. None if it depends on the kind and the task does not have the option."""
        task_defaults = kind.task.defaults if kind.task else {}
        if self.by_task and isinstance(self.default, dict) and kind.task and name not in kind.task.settings:
            return None
        return task_defaults[name] if name in task_defaults else kind.pick(self.default)

    def choices_of(self, name: str, kind: Kind) -> Any:
        """The choices for a kind of run, a tuple or None."""
        task_choices = kind.task.choices if kind.task else {}
        return task_choices[name] if name in task_choices else kind.pick(self.choices)


_TYPES: dict[type, tuple[str, Callable[[Any], bool]]] = {  # NumPy's numbers, too
    bool: ("True or False", lambda x: isinstance(x, bool)),
    int: ("an int", lambda x: isinstance(x, Integral) and not isinstance(x, bool)),
    float: ("a number", lambda x: isinstance(x, Real) and not isinstance(x, bool)),
    str: ("a string", lambda x: isinstance(x, str)),
    tuple: ("a tuple of strings", lambda x: isinstance(x, tuple) and all(isinstance(item, str) for item in x)),
}


def option(default: Any, help: str, group: str | None = None, **attributes: Any) -> Any:
    """Creates a dataclass field with an `Option` in its metadata. A default that depends on the run is None."""
    metadata = {"option": Option(help, group, default, **attributes)}
    return field(default=None if isinstance(default, dict) else default, metadata=metadata)


def option_of(setting: "Field[Any]") -> Option:
    """The `Option` of a dataclass field."""
    option: Option = setting.metadata["option"]
    return option


def options_of(settings: Any) -> "list[Field[Any]]":
    """The fields with an `Option` of a dataclass or its instance."""
    return [setting for setting in fields(settings) if "option" in setting.metadata]


def types_of(setting: "Field[Any]") -> tuple[type, ...]:
    """The types of a dataclass field except None."""
    types = get_args(setting.type) if isinstance(setting.type, UnionType) else (setting.type,)
    return tuple(kind for kind in (get_origin(kind) or kind for kind in types) if kind in _TYPES)


def plain(value: Any) -> Any:
    """Converts a value to what JSON can restore: paths to strings, lists to tuples."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return tuple(value) if isinstance(value, list) else value


def check_value(setting: "Field[Any]", value: Any, kind: Kind) -> None:
    """Raises a `SettingError` if a value has the wrong type, is not among the choices or out of range."""
    name, declared, types = setting.name, option_of(setting), types_of(setting)
    value = plain(value) if declared.is_path or tuple in types else value
    if value is None and type(None) in get_args(setting.type):
        return
    if not any(_TYPES[type_][1](value) for type_ in types):
        raise SettingError(name, f"must be {' or '.join(_TYPES[type_][0] for type_ in types)}", value)
    choices = declared.choices_of(name, kind)
    if choices is not None and value not in choices:
        words = f"one of {choices}" if len(choices) > 1 else repr(choices[0])
        raise SettingError(name, f"is {words}{_where(setting, kind)}", value)
    if declared.range is not None and not declared.range.holds(value):
        raise SettingError(name, f"must be {declared.range.words}", value)


def _where(setting, kind):
    """Describes the runs that have the same choices as this one."""
    if kind.task and setting.name in kind.task.choices:
        return f" for {kind.task.name}"
    if not isinstance(option_of(setting).choices, dict):
        return ""
    return " on a BERT" if "bert" in kind.keys else " without a BERT"


def with_defaults(settings: Any, kind: Kind) -> dict[str, Any]:
    """The values of a dataclass of settings by name, with defaults instead of None, and strings instead of paths.

    A setting that another setting replaces stays None.
    """
    said = {setting.name: plain(getattr(settings, setting.name)) for setting in options_of(settings)}
    replaced = {option_of(s).instead_of for s in options_of(settings) if said[s.name] is not None}
    return {
        setting.name: option_of(setting).default_of(setting.name, kind)
        if said[setting.name] is None and setting.name not in replaced
        else said[setting.name]
        for setting in options_of(settings)
    }


def check_settings(settings: Any, kind: Kind, undecided: Collection[str] = ()) -> None:
    """Raises a `SettingError` if a value is not allowed, contradicts another value, or does not apply to the run.

    Args:
        settings: A dataclass whose fields have an `Option` each.
        kind: The kind of run.
        undecided: The names of settings whose values are not known yet, so that no condition on them is checked.
            Defaults to none.
    """
    for setting in options_of(settings):
        check_value(setting, getattr(settings, setting.name), kind)
    values = with_defaults(settings, kind)
    for setting in options_of(settings):
        other = option_of(setting).instead_of
        if other and getattr(settings, setting.name) is not None and getattr(settings, other) is not None:
            received = {name: getattr(settings, name) for name in (setting.name, other)}
            raise SettingError(setting.name, f"takes the place of {{{other}}}", received)
        _check_conditions(setting, values, kind, undecided)


def _check_conditions(setting, values, kind, undecided):
    """Raises a `SettingError` if a value differs from the default where the option does not apply."""
    name, declared = setting.name, option_of(setting)
    if values[name] == declared.default_of(name, kind) or values[name] is None:
        return
    if declared.by_task and kind.task and name not in kind.task.settings:
        tasks = " or ".join(f"{{task:{task.name!r}}}" for task in _tasks_with(name))
        raise SettingError(name, f"needs {tasks}", {name: values[name], "task": kind.task.name})
    if declared.only and declared.only.name not in undecided and not declared.only.holds(values[declared.only.name]):
        received = {name: values[name], declared.only.name: values[declared.only.name]}
        verb = "" if declared.only is NEURAL else "needs "
        raise SettingError(name, f"{verb}{declared.only.requirement}", received)


def _tasks_with(name):
    return [task for task in TASKS.values() if name in task.settings]


def condition_in_words(setting: "Field[Any]") -> str | None:
    """The condition of an option for the help, such as "only with --bert"; None if it always applies."""
    declared = option_of(setting)
    if declared.by_task:
        return f"only with --task {' or '.join(task.name for task in _tasks_with(setting.name))}"
    return f"only {declared.only.flags}" if declared.only else None


def default_in_words(setting: "Field[Any]", show: Callable[[Any], str] = repr) -> str:
    """The default of an option for the help, such as "3, 1 with --bert".

    Args:
        setting: A dataclass field with an `Option`.
        show: A function from a value to a string. Defaults to `repr`.
    """
    declared, name = option_of(setting), setting.name

    def words(value):
        return declared.none if value is None else show(value)

    defaults = declared.default if isinstance(declared.default, dict) else {"": declared.default}
    if declared.only is not None and declared.only.name in ("bert", "head"):  # one of the defaults remains
        defaults = {"": next(iter(defaults.values()))}
    first = next(iter(defaults.values()))
    tasks = _tasks_with(name) if declared.by_task else TASKS.values()
    differing_tasks = [task for task in tasks if task.defaults.get(name, first) != first]
    texts = [] if declared.by_task and differing_tasks == _tasks_with(name) else [words(first)]
    kinds = {"extended": "with --extend", "bert": "with --bert", "linear": "with --encoder linear"}
    texts += [f"{words(defaults[key])} {kind}" for key, kind in kinds.items() if defaults.get(key, first) != first]
    return ", ".join([*texts, *(f"{words(task.defaults[name])} for {task.name}" for task in differing_tasks)])


def describe(settings: "Iterable[Field[Any]]") -> str:
    """The section "Attributes:" of a docstring, for dataclass fields with an `Option`."""
    lines = ["Attributes:"]
    for setting in settings:
        declared, condition = option_of(setting), condition_in_words(setting)
        text = f"{setting.name}: {declared.help} Defaults to {default_in_words(setting)}."
        text += f" {condition.capitalize()}." if condition else ""
        text = textwrap.fill(text.replace("--", ""), 112, initial_indent=" " * 8, subsequent_indent=" " * 12)
        lines.append(text)
    return "\n".join(lines) + "\n    "
