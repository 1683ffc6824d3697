"""Options: the default, range, help and flag of a setting, and the rules between settings. Needs no Keras."""

import inspect
import os
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from numbers import Integral, Real
from types import UnionType
from typing import Any, ParamSpec, TypeVar, get_args, get_origin

import numpy as np

from kcrf.tasks import TASKS, SettingError, Task


@dataclass(frozen=True)
class Range:
    """The allowed numbers of a setting: in words, and as a function from a value to a bool."""

    words: str
    holds: Callable[[Any], Any]


def _or_auto(requirement: str, numbers: Range) -> Range:
    return Range(requirement, lambda x: x == "auto" if isinstance(x, str) else numbers.holds(x))


POSITIVE = Range("positive", lambda x: 0 < x < float("inf"))
NONNEGATIVE = Range("at least 0", lambda x: 0 <= x < float("inf"))
FRACTION = Range("at least 0 and below 1", lambda x: 0 <= x < 1)
PROBABILITY = Range("above 0 and below 1", lambda x: 0 < x < 1)
FACTOR = Range("above 0 and at most 1", lambda x: 0 < x <= 1)
TEMPERATURE = Range("at least 0.0001", lambda x: 1e-4 <= x < float("inf"))
UP_TO_1 = Range("from 0 to 1", lambda x: 0 <= x <= 1)
LENGTH = Range("from 8 to 512", lambda x: 8 <= x <= 512)
LAYERS = Range(
    '"last", "all" or different numbers such as "8,11"',
    lambda x: x in ("last", "all") or re.fullmatch(r"-?\d+(,-?\d+)*", x) and len(set(x.split(","))) == x.count(",") + 1,
)
POSITIVE_OR_AUTO = _or_auto('positive or "auto"', POSITIVE)
FRACTION_OR_AUTO = _or_auto('at least 0 and below 1, or "auto"', FRACTION)

_ENTRY = re.compile(r"^    (\w+): ((?:.+\n?(?:    {4}.*\n?)*))", re.M)  # of the section Attributes of a docstring
Class = TypeVar("Class")
Arguments = ParamSpec("Arguments")
GIVEN = "given"  # the value of a `Rule` that stands for any value except None, False and 0


@dataclass(frozen=True)
class Rule:
    """Settings that may differ from their defaults only if another setting has a value."""

    names: str  # the settings, separated by spaces. `pool=cnn` stands for one value of a setting
    other: str
    value: Any  # the value that it must have: `GIVEN`, None, or a value
    is_refused: bool = False  # whether it is the value that the other setting must not have. Defaults to False

    def holds(self, value: Any) -> bool:
        """Whether the other setting has an allowed value."""
        return (bool(value) if self.value is GIVEN else value == self.value) != self.is_refused

    @property
    def requirement(self) -> str:
        """The rule in a `SettingError`."""
        other = f"{{{self.other}}}" if self.value is GIVEN else f"{{{self.other}:{self.value!r}}}"
        if not self.is_refused:
            return f"needs {other}"
        return f"cannot be used with {other}" if "=" in self.names else f"has no effect with {other}"

    @property
    def words(self) -> str:
        """The rule in `kcrf train --help`."""
        flag = f"--{self.other.replace('_', '-')}"
        if self.value in (GIVEN, None):
            return f"only with{'out' * (self.value is None)} {flag}"
        value = "" if self.value is True else f" {self.value}"
        return f"{'not' if self.is_refused else 'only'} with {flag}{value}"


@dataclass(frozen=True)
class Kind:
    """The kind of a run, on which defaults and choices depend."""

    keys: tuple[str, ...]  # such as "linear", "scratch", "crf": the first one that an option has a default for decides
    task: Task | None = None  # None for pretraining

    def pick(self, values: Any) -> Any:
        """Picks a value from a dict by the keys of the run. Returns other values unchanged."""
        if not isinstance(values, dict):
            return values
        return next((values[key] for key in self.keys if key in values), None)


@dataclass(frozen=True)
class Option:
    """The properties of a setting other than its name and type. A task may have its own default and choices."""

    default: Any  # the default; or a dict of defaults by kind of run, see `Kind`
    group: str | None = ""  # the heading in `kcrf train --help all`. None: the command line has no such option
    choices: tuple[Any, ...] | dict[str, tuple[Any, ...]] | None = None  # allowed values, or a dict by kind of run
    range: Range | None = None
    instead_of: str | None = None  # another setting that this setting replaces, or None
    is_path: bool = False  # whether the value may be a path, which is saved as a string
    none: str = "none"  # what the default None means, for the help
    metavar: str | None = None  # the name of a string value in the help
    help: str = ""  # what the setting does and when to use it: its entry in the docstring of its class

    def default_of(self, name: str, kind: Kind) -> Any:
        """The default for a kind of run. None if it depends on the kind and the task does not have the option."""
        task = kind.task
        if task is not None and isinstance(self.default, dict) and not _has(task, name):
            return None
        return task.defaults[name] if task is not None and name in task.defaults else kind.pick(self.default)

    def choices_of(self, name: str, kind: Kind) -> Any:
        """The choices for a kind of run, a tuple or None."""
        return kind.task.choices[name] if kind.task and name in kind.task.choices else kind.pick(self.choices)


def tasks_with(name: str) -> list[Task]:
    """The tasks that list a setting as one that not all tasks have; empty if all tasks have it."""
    return [task for task in TASKS.values() if name in task.settings]


def _has(task: Task, name: str) -> bool:
    return name in task.settings or not tasks_with(name)


_TYPES: dict[type, tuple[str, Callable[[Any], bool]]] = {  # NumPy's numbers, too
    bool: ("True or False", lambda x: isinstance(x, bool)),
    int: ("an int", lambda x: isinstance(x, Integral) and not isinstance(x, bool)),
    float: ("a number", lambda x: isinstance(x, Real) and not isinstance(x, bool)),
    str: ("a string", lambda x: isinstance(x, str)),
    tuple: ("a tuple of strings", lambda x: isinstance(x, tuple) and all(isinstance(item, str) for item in x)),
}


def _as_field(make: Callable[Arguments, Option]) -> Callable[Arguments, Any]:
    def option(*args: Arguments.args, **properties: Arguments.kwargs) -> Any:
        made = make(*args, **properties)
        return field(default=None if isinstance(made.default, dict) else made.default, metadata={"option": made})

    return option


option = _as_field(Option)  # makes a dataclass field; a default that depends on the run is None


def documented(group: str) -> Callable[[type[Class]], type[Class]]:
    """A decorator of a dataclass: its docstring is the help of its options, whose group is this one by default."""

    def decorate(cls: type[Class]) -> type[Class]:
        helps = dict(_ENTRY.findall(inspect.cleandoc(cls.__doc__ or "")))  # `python -OO` drops docstrings
        for setting in fields(cls):  # type: ignore[arg-type]
            made = option_of(setting)
            object.__setattr__(made, "help", " ".join(helps.get(setting.name, "").split()))
            object.__setattr__(made, "group", group if made.group == "" else made.group)
        return cls

    return decorate


def option_of(setting: "Field[Any]") -> Option:
    """The `Option` of a dataclass field."""
    option: Option = setting.metadata["option"]
    return option


def types_of(setting: "Field[Any]") -> tuple[type, ...]:
    """The types of a dataclass field except None."""
    types = get_args(setting.type) if isinstance(setting.type, UnionType) else (setting.type,)
    return tuple(kind for kind in (get_origin(kind) or kind for kind in types) if kind in _TYPES)


def plain(value: Any) -> Any:
    """Converts a value to what JSON can restore: paths to strings, lists to tuples, numbers of NumPy to Python's."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, np.generic):
        return value.item()
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


def _where(setting: "Field[Any]", kind: Kind) -> str:
    """Describes the runs that have the same choices as this one."""
    if kind.task and setting.name in kind.task.choices:
        return f" for {kind.task.name}"
    if not isinstance(option_of(setting).choices, dict):
        return ""
    return " on a BERT" if "bert" in kind.keys else " without a BERT"


def with_defaults(settings: "Iterable[Field[Any]]", said: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    """The values by name, with defaults instead of None. A setting that another setting replaces stays None."""
    settings = list(settings)
    replaced = {option_of(s).instead_of for s in settings if said[s.name] is not None}
    return {
        s.name: option_of(s).default_of(s.name, kind)
        if said[s.name] is None and s.name not in replaced
        else plain(said[s.name])
        for s in settings
    }


def check_settings(
    settings: "Iterable[Field[Any]]",
    said: Mapping[str, Any],
    kind: Kind,
    rules: Iterable[Rule],
    undecided: Collection[str] = (),
) -> None:
    """Raises a `SettingError` if a value is not allowed, contradicts another value, or does not apply to the run."""
    settings = list(settings)
    for setting in settings:
        check_value(setting, said[setting.name], kind)
    values, used = with_defaults(settings, said, kind), set()
    for setting in settings:
        name, other, value = setting.name, option_of(setting).instead_of, values[setting.name]
        if other and said[name] is not None and said[other] is not None:
            raise SettingError(name, f"takes the place of {{{other}}}", {name: said[name], other: said[other]})
        if value is None or value == option_of(setting).default_of(name, kind):
            continue
        used.add(name)
        if kind.task and not _has(kind.task, name):
            tasks = " or ".join(f"{{task:{task.name!r}}}" for task in tasks_with(name))
            raise SettingError(name, f"needs {tasks}", {name: value, "task": kind.task.name})
    for rule in rules:
        broken = _broken(rule, values, used)
        if broken and rule.other not in undecided:
            raise SettingError(broken, rule.requirement, {broken: values[broken], rule.other: values[rule.other]})


def _broken(rule: Rule, values: Mapping[str, Any], used: Collection[str]) -> str | None:
    """The setting that breaks a rule, or None."""
    for text in () if rule.holds(values[rule.other]) else rule.names.split():
        name, _, value = text.partition("=")
        if str(values[name]) == value if value else name in used:
            return name
    return None


def condition_in_words(name: str, rules: Iterable[Rule]) -> str:
    """The condition of an option for the help, such as "only with --bert"; empty if it always applies."""
    tasks = [f"only with --task {' or '.join(task.name for task in tasks_with(name))}"] if tasks_with(name) else []
    return "; ".join([*tasks, *(rule.words for rule in rules if name in rule.names.split())])


def default_in_words(setting: "Field[Any]", rules: Iterable[Rule] = (), show: Callable[[Any], str] = repr) -> str:
    """The default of an option for the help, such as "3, 1 with --bert"."""
    declared, name = option_of(setting), setting.name

    def words(value: Any) -> str:
        return declared.none if value is None else show(value)

    defaults = declared.default if isinstance(declared.default, dict) else {"": declared.default}
    if any(rule.other in ("bert", "head") and name in rule.names.split() for rule in rules):  # one of them remains
        defaults = {"": next(iter(defaults.values()))}
    first = next(iter(defaults.values()))
    tasks = tasks_with(name) or list(TASKS.values())
    differing_tasks = [task for task in tasks if task.defaults.get(name, first) != first]
    texts = [] if differing_tasks == tasks_with(name) != [] else [words(first)]
    kinds = {"extended": "with --extend", "bert": "with --bert", "linear": "with --encoder linear"}
    texts += [f"{words(defaults[key])} {kind}" for key, kind in kinds.items() if defaults.get(key, first) != first]
    return ", ".join([*texts, *(f"{words(task.defaults[name])} for {task.name}" for task in differing_tasks)])


def describe(settings: "Iterable[Field[Any]]", rules: Iterable[Rule] = ()) -> str:
    """The section "Attributes:" of a docstring, for dataclass fields with an `Option`."""
    lines, rules = ["Attributes:"], list(rules)
    for setting in settings:
        condition = condition_in_words(setting.name, rules)
        text = f"{setting.name}: {option_of(setting).help} Defaults to {default_in_words(setting, rules)}."
        text += f" {condition.capitalize()}." if condition else ""
        lines.append(textwrap.fill(text.replace("--", ""), 112, initial_indent=" " * 8, subsequent_indent=" " * 12))
    return "\n".join(lines) + "\n    "
