"""Importing a module changes nothing outside the package; `kcrf.layers` registers all that saved models name."""

import subprocess
import sys
from pathlib import Path

import pytest

from kcrf.backend import keras
from kcrf.distillation import TagDistillationLoss
from kcrf.layers import ConditionalRandomField
from kcrf.optimizers import Adam

ROOT = Path(__file__).parents[1]
BACKENDS = ["torch"]

APART = ("kcrf.bert4keras", "kcrf.__main__")
NAMES = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sorted((ROOT / "kcrf").rglob("*.py"))]
MODULES = [name.removesuffix(".__init__") for name in NAMES if not name.startswith(APART)]
IMPORT_ALL = """
import importlib, os, sys, warnings
import keras, tensorflow, tf2onnx  # these libraries change the process themselves

objects = [keras.Model, keras.layers.Layer, keras.callbacks.Callback, keras.optimizers.Optimizer]
objects += [keras.saving, keras.models]

def state():
    facts = {"meta_path": list(sys.meta_path), "filters": list(warnings.filters), "environment": dict(os.environ)}
    for thing in objects:
        for owner in getattr(thing, "__mro__", [thing]):
            place = f"{getattr(owner, '__module__', '')}.{owner.__name__}"  # bases may share a name
            facts |= {f"{place}.{name}": id(value) for name, value in vars(owner).items()}
    return facts

registered, before = None, state()
for name in ["kcrf.layers", *sys.argv[1:]]:
    importlib.import_module(name)
    after = state()
    changed = sorted(fact for fact in before.keys() | after.keys() if before.get(fact) != after.get(fact))
    if changed:
        print(name, "changes", *changed)
    before, registered = after, registered or set(keras.saving.get_custom_objects())
for name in sorted(set(keras.saving.get_custom_objects()) - registered):
    print("kcrf.layers does not register", name)
"""
LOAD = """
import keras, sys, kcrf.layers

crf, student = map(keras.saving.load_model, sys.argv[1:])
print(type(crf.layers[-1]).__module__, type(crf.optimizer).__module__, student.loss.teacher_weight)
"""


def run(code, *arguments):
    """What an interpreter prints that runs the code."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_a_module_changes_nothing_and_the_layers_register_all_that_any_module_registers():
    assert len(MODULES) > 100
    assert run(IMPORT_ALL, *MODULES) == ""


@pytest.mark.slow
def test_a_program_that_imports_the_layers_loads_saved_models(tmp_path):
    student = keras.Sequential([keras.Input((None, 2)), keras.layers.Dense(3)])
    student.compile("sgd", TagDistillationLoss(0.5))
    student.save(tmp_path / "student.keras")
    crf = ConditionalRandomField(lr_multiplier=10)
    tagger = keras.Sequential([keras.Input((None, 2)), keras.layers.Dense(3), crf])
    tagger.compile(Adam(1e-3), crf.sparse_loss)
    tagger.save(tmp_path / "crf.keras")
    printed = run(LOAD, tmp_path / "crf.keras", tmp_path / "student.keras")
    assert printed == "kcrf.layers.crf kcrf.optimizers.adam 0.5"


def test_parts_are_attributes_of_the_package_when_they_are_used():
    code = "import kcrf, sys\nprint('keras' in sys.modules, kcrf.tags.bmes().name, hasattr(kcrf, 'nothing'))"
    assert run(f"{code}\nprint(hasattr(kcrf, '_private'))").split() == ["False", "bmes", "False", "False"]


def test_a_missing_backend_is_answered_with_its_extra():
    code = "import sys; sys.modules['torch'] = None\ntry:\n    import kcrf.layers\nexcept ImportError as error:\n    "
    assert run(f"{code}print(error)") == (
        "Keras needs a backend: set the environment variable KERAS_BACKEND=tensorflow or KERAS_BACKEND=jax. "
        "Received: no package torch"
    )
    code = code.replace("import sys; ", "import sys; sys.modules.update(dict.fromkeys(['tensorflow', 'jax'])); ")
    assert run(f"{code}print(error)") == (
        "Keras needs a backend: pip install 'kcrf[tensorflow]', 'kcrf[jax]' or 'kcrf[torch]'. "
        "Received: no package torch"
    )


def test_the_only_installed_backend_is_taken():
    """Where Keras would take TensorFlow, which is missing; a choice of the user stays."""
    code = "import os, sys; sys.modules.update(dict.fromkeys({missing}))\nos.environ.pop('KERAS_BACKEND', None)\n{more}"
    code += "\nimport kcrf.backend\nprint(kcrf.backend.backend_name())"
    assert run(code.format(missing=["tensorflow", "jax"], more="")) == "torch"
    assert run(code.format(missing=["jax"], more="")) == "tensorflow"
    assert run(code.format(missing=["jax"], more="os.environ['KERAS_BACKEND'] = 'torch'")) == "torch"
