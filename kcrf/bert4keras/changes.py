"""Applies the changes to Keras that the docstring of `kcrf.bert4keras` lists, and takes them back."""

from kcrf.backend import OLD_HOST
from kcrf.bert4keras.calls import changes_of_calls
from kcrf.bert4keras.file_names import changes_of_file_names
from kcrf.bert4keras.fitting import changes_of_fitting
from kcrf.bert4keras.loaded_names import changes_of_loaded_names
from kcrf.bert4keras.stored_multipliers import changes_of_weight_files

__all__ = ["change_keras", "restore_keras"]

_ON_KERAS_2 = (changes_of_fitting, changes_of_weight_files, changes_of_loaded_names)
_ON_KERAS_3 = (changes_of_fitting, changes_of_calls, changes_of_file_names)
_ABSENT = object()
_originals = []  # (owner, name, value before or _ABSENT)


def change_keras():
    """Applies the changes. Importing `kcrf.bert4keras` calls it; a second call has no effect."""
    if _originals:
        return
    for changes in _ON_KERAS_2 if OLD_HOST else _ON_KERAS_3:
        for owner, name, value in changes():
            attributes = owner if isinstance(owner, dict) else vars(owner)
            _originals.append((owner, name, attributes.get(name, _ABSENT)))
            _set(owner, name, value)


def restore_keras():
    """Takes the changes back: Keras is as it was before `kcrf.bert4keras` was imported."""
    while _originals:
        _set(*_originals.pop())


def _set(owner, name, value):
    is_dict = isinstance(owner, dict)
    if value is _ABSENT:
        owner.pop(name) if is_dict else delattr(owner, name)
    else:
        owner.update({name: value}) if is_dict else setattr(owner, name, value)


change_keras()
