"""What `kcrf.bert4keras` changes in Keras: as its docstring lists it, and taken back completely."""

import subprocess
import sys
import warnings

import keras.layers
import pytest
from changed_keras import changed_keras  # noqa: F401 (restores Keras)

import kcrf.bert4keras
from kcrf.backend import keras
from kcrf.bert4keras import change_keras, restore_keras
from kcrf.bert4keras.calls import PARTS_OF_LAYERS

BACKENDS = ["torch"]
OWNERS = {
    "keras.Model": keras.Model,
    "functional": type(keras.Sequential([keras.Input((1,))])._functional),
    "keras.callbacks.Callback": keras.callbacks.Callback,
    "keras.layers.Layer": keras.layers.Layer,
    "keras.optimizers.Optimizer": keras.optimizers.Optimizer,
    "keras.models": keras.models,
    "keras.saving": keras.saving,
    "keras.utils": keras.utils,
}


def state():
    facts = {f"{owner}.{name}": value for owner, thing in OWNERS.items() for name, value in vars(thing).items()}
    facts |= {name: module for name, module in sys.modules.items() if name.startswith("keras.layers")}
    return facts | {"filters": list(warnings.filters), "meta_path": list(sys.meta_path)}


def test_restoring_takes_back_every_change_and_the_docstring_lists_each():
    before = state()
    change_keras()
    changed = state()
    try:
        change_keras()  # does nothing
        assert state() == changed
    finally:
        restore_keras()
    assert state() == before
    names = {name.rpartition(".")[2] for name in changed if changed[name] is not before.get(name)}
    assert len(names) > 20
    for name in names - {"filters", "meta_path", *PARTS_OF_LAYERS[1:]}:
        assert name in kcrf.bert4keras.__doc__


@pytest.mark.slow
def test_importing_a_page_makes_the_changes():
    code = "from kcrf.bert4keras.tokenizers import Tokenizer\nimport keras, kcrf.bert4keras\n"
    code += "print(hasattr(keras.layers.Layer, 'get_output_at'))\nkcrf.bert4keras.restore_keras()\n"
    code += "print(hasattr(keras.layers.Layer, 'get_output_at'))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["True", "False"], done.stderr


def test_what_scripts_import_from_other_modules_is_the_same():
    statements = [
        ("layers", "ConditionalRandomField"),
        ("models", "build_transformer_model"),
        ("optimizers", "Adam"),
        ("snippets", "DataGenerator"),
        ("backend", "K"),
        ("backend", "keras"),
    ]
    for module, name in statements:
        names = {}
        exec(f"from kcrf.{module} import {name} as one; from kcrf.bert4keras.{module} import {name} as other", names)
        assert names["one"] is names["other"]
