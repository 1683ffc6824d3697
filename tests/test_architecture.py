"""The house keeps its floors: imports go down only, and the lower ones need no Keras."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kcrf

PACKAGE = Path(kcrf.__file__).parent

FLOORS = [
    {
        "tags",
        "metrics",
        "pictures",
        "charts",
        "diagnosis",
        "mistakes",
        "run_records",
        "corpora",
        "downloads",
        "features",
        "lexicon",
        "runs",
        "files",
        "readers",
        "settings",
        "entity_files",
        "tokenizers",
        "characters",
        "vocabularies",
        "word_pieces",
        "checkpoints",
        "checkpoint_names",
        "array_files",
        "bert4keras_names",
    },
    {"backend", "keras_host", "tf_keras_host", "keras2", "bert4keras_backend", "configs"},
    {"crf", "learning_rates"},
    {"layers", "crf_losses", "memm", "crf_weights", "encoders", "embeddings", "transformer"}
    | {"optimizers", "schedules", "extensions", "variables"},
    {"models", "bert4keras_models", "pretrained", "monitor", "keras2_weights"},
    {"training", "batches", "callbacks", "networks", "tagging", "taggers", "snippets", "progress"},
    {"reports", "report_sections", "demo", "cli", "training_options", "__main__"},
    {"__init__"},  # registers with Keras what a saved model may hold
]
FLOOR = {module: number for number, floor in enumerate(FLOORS) for module in floor}
HOSTS = {"keras_host": {"keras"}, "tf_keras_host": {"tensorflow", "tf_keras"}}  # and what each stands for
NEEDED_EVERYWHERE = {"keras", "numpy", "rich", "kcrf"}
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py"))


def imports(module, only_top_level=False):
    """Names of modules that the source of a module imports."""
    tree = ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))
    nodes = tree.body if only_top_level else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if node.module == "kcrf":
                yield from (f"kcrf.{alias.name}" for alias in node.names)
            else:
                yield node.module


@pytest.mark.parametrize("module", MODULES)
def test_every_module_stands_on_a_floor_and_imports_downwards(module):
    assert module in FLOOR, f"{module}.py is on no floor"
    for name in imports(module):
        if name.startswith("kcrf.") and name != "kcrf.__version__":
            imported = name.split(".")[1]
            assert FLOOR[imported] <= FLOOR[module], f"{module}.py imports kcrf.{imported}, which is above it"


@pytest.mark.parametrize("module", MODULES)
def test_keras_comes_through_the_backend_module_alone(module):
    found = [name for name in imports(module) if name.split(".")[0] in ("keras", "tf_keras")]
    assert module in HOSTS or not found
    assert module == "backend" or not HOSTS.keys() & {name.removeprefix("kcrf.") for name in imports(module)}


@pytest.mark.parametrize("module", MODULES)
def test_extras_are_imported_where_they_are_used(module):
    top = {name.split(".")[0] for name in imports(module, only_top_level=True)}
    assert top <= NEEDED_EVERYWHERE | HOSTS.get(module, set()) | set(sys.stdlib_module_names)


def test_the_ground_floor_runs_without_keras():
    ground = sorted(FLOORS[0] - {"__init__"})
    present = [name for name in ground if name in MODULES]
    code = f"import sys; sys.modules['keras'] = None\nfor name in {present}: __import__('kcrf.' + name)"
    subprocess.run([sys.executable, "-c", code], check=True)
