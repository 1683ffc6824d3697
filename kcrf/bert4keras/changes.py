"""Applies the changes to Keras that the docstring of `kcrf.bert4keras` lists, and takes them back."""

from typing import Any

_ABSENT = object()
_originals: list[tuple[Any, str, Any]] = []  # (owner, name, value before or _ABSENT)


def change_keras() -> None:
    """Applies the changes, and registers the classes of this folder. Does nothing the second time, or on tf_keras."""
    from kcrf.backend import OLD_HOST

    if _originals or OLD_HOST:
        return
    from kcrf.bert4keras import calls, extensions, keras2, memm, pointers  # noqa: F401 (registers)

    for owner, name, value in calls.changes():
        attributes = owner if isinstance(owner, dict) else vars(owner)
        _originals.append((owner, name, attributes.get(name, _ABSENT)))
        _set(owner, name, value)


def restore_keras() -> None:
    """Takes the changes back: Keras is as it was before a page of `kcrf.bert4keras` was imported."""
    while _originals:
        _set(*_originals.pop())


def _set(owner: Any, name: str, value: Any) -> None:
    is_dict = isinstance(owner, dict)
    if value is _ABSENT:
        owner.pop(name) if is_dict else delattr(owner, name)
    else:
        owner.update({name: value}) if is_dict else setattr(owner, name, value)
