"""Classes are registered with Keras in whatever order modules are imported, and nobody imports Keras for that."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kcrf.backend import OLD_HOST

BACKENDS = ["torch"]

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "tests" / "fixtures" / "0.1.0"

# A package built as kcrf is, with a Keras of two lines. Its parts note that they were executed.
HOUSE = {
    "house/registration.py": (ROOT / "kcrf" / "registration.py").read_text(encoding="utf-8"),
    "house/__init__.py": "from house.registration import register_with_keras\n"
    "def register():\n    from house import layers, optimizers\n"
    "    print('registers' if layers.done else '', end=' ')\n"
    "register_with_keras('house', register)\n",
    "house/tags.py": "",
    "house/backend.py": "import keras\n",
    "house/layers.py": "from house.backend import keras\nfrom house.optimizers import done\n",
    "house/optimizers.py": "from house.backend import keras\ndone = True\n",
    "house/use.py": "import house.layers\n",
    "keras.py": "print('keras', end=' ')\nsaving = True\n",
    "broken.py": "",
}


def run(code, path, **environment):
    """What an interpreter prints that runs `code` with `path` before ours."""
    paths = os.pathsep.join(map(str, [path, ROOT]))
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths, **environment}, capture_output=True, text=True, cwd=path
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    folder = tmp_path_factory.mktemp("house")
    for name, text in HOUSE.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    "order, printed",
    [
        ("import house", ""),
        ("import house.tags", ""),
        ("import house, keras", "keras registers"),
        ("import keras, house", "keras registers"),
        ("import house.tags, keras", "keras registers"),
        ("import house.layers", "keras registers"),
        ("import house.optimizers, keras", "keras registers"),
        ("import house.use, house.layers", "keras registers"),
        ("from house import backend", "keras registers"),
        ("import house, house.layers, keras, house.tags", "keras registers"),
    ],
)
def test_registering_waits_for_keras_and_happens_once_in_any_order(house, order, printed):
    assert run(order, house) == printed


def test_a_part_that_fails_leaves_the_hook_as_it_was(house):
    code = """
import house, sys
sys.modules["keras"] = None
try:
    import house.layers
except ModuleNotFoundError as error:
    print(error.name, end=" ")
del sys.modules["keras"]
import keras
"""
    assert run(code, house) == "keras keras registers"


def test_an_error_of_registering_is_a_warning_and_the_import_goes_on(house):
    code = """
import sys, warnings
from house.registration import register_with_keras
calls = []
def register():
    calls.append(1)
    if len(calls) == 1:
        raise ImportError("too old")
register_with_keras("house", register)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import keras
assert keras.saving
print(caught[0].category.__name__, caught[0].message, end=" ")
import house.tags  # tries again
import broken
print(len(calls))
"""
    assert run(code, house).endswith("RuntimeWarning kcrf could not register its classes with Keras: too old 2")


def test_modules_keep_their_own_loaders(house):
    code = """
import house.tags, keras, inspect, importlib.util
for module in (house.tags, keras):
    assert type(module.__loader__).__name__ == type(module.__spec__.loader).__name__ == "SourceFileLoader"
print(importlib.util.find_spec("house.use").loader.get_code("house.use").co_filename[-6:])
"""
    assert run(code, house).endswith("use.py")


LOAD = f"""
model = keras.saving.load_model({str(FIXTURES / "bert.keras")!r})
print(type(model.layers[-1]).__module__, type(model.optimizer).__module__)
"""
OLD_LOAD = """
for name in ("ConditionalRandomField", "AdamWeightDecay", "FeedForward"):
    print(keras.utils.get_registered_object(f"kcrf>{name}").__module__, end=" ")
"""


@pytest.mark.parametrize(
    "order",
    [
        "import keras, kcrf",
        pytest.param("import kcrf, keras", marks=pytest.mark.slow),
        pytest.param("import kcrf.optimizers, keras", marks=pytest.mark.slow),
    ],
)
def test_after_importing_kcrf_a_saved_model_needs_no_custom_objects(order, tmp_path):
    assert run(order + LOAD, tmp_path).endswith("kcrf.layers.crf kcrf.optimizers.adam")


@pytest.mark.skipif(not OLD_HOST, reason="Keras 2")
@pytest.mark.parametrize(
    "order",
    [
        "import kcrf, tf_keras as keras",
        "import kcrf; from bert4keras.backend import keras",
        "import kcrf.optimizers, tf_keras as keras",
    ],
)
def test_on_the_old_host_too(order, tmp_path):
    assert run(order + OLD_LOAD, tmp_path).endswith("kcrf.layers.crf kcrf.optimizers.adam kcrf.layers.attention")


@pytest.mark.skipif(OLD_HOST, reason="asks for no Keras")
def test_where_keras_is_missing_or_has_no_backend_what_needs_none_works(tmp_path):
    assert run(
        "import sys; sys.modules['keras'] = None; import kcrf, kcrf.tags; print(kcrf.tags.bmes().name)", tmp_path
    )
    code = "import kcrf.metrics\ntry:\n    import kcrf.layers\nexcept ValueError as error:\n    print(error)"
    assert run(code, tmp_path, KERAS_BACKEND="nothing") == "Unable to import backend : nothing"


def test_parts_are_attributes_of_the_package_when_they_are_used(tmp_path):
    code = "import kcrf\nprint(kcrf.tags.bmes().name, hasattr(kcrf, 'nothing'), hasattr(kcrf, '_private'))"
    assert run(code, tmp_path) == "bmes False False"
