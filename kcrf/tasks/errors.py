"""Errors about settings, worded for Python or the command line, and about texts that differ. Needs no Keras."""

from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any


@dataclass(frozen=True)
class Wording:
    """How a message writes settings."""

    name: Callable[[str], str]  # the name of a setting to text
    value: Callable[[str, Any], str]  # the name of a setting and its value to text


_SHOWN = 40  # characters of a text in a message
_PYTHON = Wording(lambda name: f"`{name}`", lambda name, value: f"{name}={value!r}")


class SettingError(ValueError):
    """A setting is not what it must be.

    In the requirement, another setting stands in braces, `{bert}`, or with a value as Python writes it, `{task:'ner'}`.
    `received` is the value, or a dict from names to values if other settings have a part in it.

    >>> print(SettingError("scheme", "needs {task:'ner'}", {"scheme": "bio", "task": "cws"}))
    `scheme` needs task='ner'. Received: scheme='bio' and task='cws'
    """

    def __init__(self, name: str, requirement: str, received: Any) -> None:
        super().__init__(name, requirement, received)
        self.name, self.requirement, self.received = name, requirement, received

    def __str__(self) -> str:
        return self.worded(_PYTHON)

    def worded(self, wording: Wording) -> str:
        """The message with settings written in another way, such as by their flags on the command line."""
        text = []
        for words, name, value, _ in Formatter().parse(f"{{{self.name}}} {self.requirement}. Received: "):
            text.append(words)
            if name:
                text.append(wording.value(name, literal_eval(value)) if value else wording.name(name))
        if isinstance(self.received, Mapping):
            text.append(" and ".join(wording.value(name, value) for name, value in self.received.items()))
        else:
            text.append(repr(self.received))
        return "".join(text)


class MismatchError(ValueError):
    """The texts of predictions differ from the gold texts. For a file, `line` is counted from 1."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def check_same_texts(kind: str, gold: Sequence[Any], predicted: Sequence[Any]) -> None:
    """Raises MismatchError unless the texts of gold and prediction are the same."""
    for number, (gold_text, predicted_text) in enumerate(zip(gold, predicted), 1):
        if gold_text != predicted_text:
            raise MismatchError(
                f"gold and prediction must have the same {kind}s. Received: {kind} {number} "
                f"{_shortened(predicted_text)!r}, in the gold {_shortened(gold_text)!r}"
            )
    if len(gold) != len(predicted):
        received = f"{len(predicted)} {kind}s, in the gold {len(gold)}"
        raise MismatchError(f"gold and prediction must have the same {kind}s. Received: {received}")


def _shortened(text: Any) -> str:
    texts = [text] if isinstance(text, str) else text
    return " | ".join(part[:_SHOWN] for part in texts if part is not None)
