"""Imports go down as `docs/where_is_what.md` has it, and what is marked there needs no Keras."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import kcrf

PACKAGE = Path(kcrf.__file__).parent
TABLE = PACKAGE.parent / "docs" / "where_is_what.md"
ROW = re.compile(r"^\| (\d+) \| `(\w+)`( °)? \| ([\w ]*)\|", re.MULTILINE)

PLACE = {}  # module: (floor, place in its folder, counted from the bottom)
WITHOUT_KERAS = []
for _floor, _room, _mark, _files in ROW.findall(TABLE.read_text(encoding="utf-8")):
    _modules = [f"kcrf.{_room}.{file}" for file in _files.split()] or [f"kcrf.{_room}"]
    PLACE.update({module: (int(_floor), place) for place, module in enumerate(reversed(_modules))})
    WITHOUT_KERAS += _modules if _mark else []

ALIASES = {"kcrf.crf_weights": "kcrf.models.crf_weights"}  # a page for users
HOSTS = {"kcrf.backend.keras3": {"keras"}, "kcrf.backend.tf_keras": {"tensorflow", "tf_keras"}}
EXTRAS = {  # modules that an extra is for, and what it installs
    "kcrf.export.chain_graph": {"onnx"},
    "kcrf.export.network_graph": {"onnx", "tensorflow", "tf2onnx"},
    "kcrf.export.onnx_file": {"onnx"},
    "kcrf.export.tensorflow_function": {"tensorflow"},
    "kcrf.export.write": {"tensorflow"},
    "kcrf.serving.answers": {"pydantic"},
    "kcrf.serving.app": {"fastapi", "starlette"},
    "kcrf.serving.requests": {"pydantic"},
    "kcrf.serving.server": {"uvicorn"},
}
NEEDED_EVERYWHERE = {"keras", "numpy", "rich", "kcrf"}


def name_of(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


TREES = {name_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
PAGES = {name_of(path) for path in PACKAGE.rglob("__init__.py")} | ALIASES.keys()
MODULES = sorted(TREES.keys() - PAGES - {"kcrf.__main__"})


def imports(tree, only_top_level=False):
    """The full names that a source imports, in functions too; so do strings that name a module, for `import_module`."""
    for node in tree.body if only_top_level else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in TREES:
            yield node.value


def modules_behind(name):
    """The modules that an imported name of ours comes from: itself, or where its page has it from."""
    while name not in TREES and "." in name:
        page, _, own = name.rpartition(".")
        if page in PAGES - {"kcrf"}:
            origins = [origin for origin in imports(TREES[page]) if origin.endswith(f".{own}")]
            return [module for origin in origins for module in modules_behind(origin)]
        name = page
    if name in PAGES:
        return (
            [module for origin in imports(TREES[name]) for module in modules_behind(origin)] if name != "kcrf" else []
        )
    return [name] if name in TREES else []


def used_by(module):
    """Our modules that a module imports."""
    names = [name for name in imports(TREES[module]) if name.split(".")[0] == "kcrf"]
    return {used for name in names for used in modules_behind(name)} - {module}


def test_the_table_lists_every_module_once():
    assert sorted(PLACE) == MODULES


@pytest.mark.parametrize("page", sorted(PAGES - {"kcrf"}))
def test_a_page_holds_imports_and_nothing_else(page):
    docstring, *statements, names = TREES[page].body
    assert isinstance(docstring, ast.Expr) and all(isinstance(node, ast.ImportFrom) for node in statements)
    assert isinstance(names, ast.Assign) and names.targets[0].id == "__all__"


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_down(module):
    floor, place = PLACE[module]
    room = module.split(".")[1]
    for used in sorted(used_by(module)):
        other, below = PLACE[used]
        same_room = used.split(".")[1] == room
        assert (below < place) if same_room else (other < floor), f"{module} imports {used}, which is not below it"


def all_below(module):
    """Our modules that a module imports, and those that they import."""
    found, waiting = set(), [module]
    while waiting:
        more = used_by(waiting.pop()) - found
        found |= more
        waiting += more
    return found


def private_attributes():
    """Which modules define a private attribute: a method, a class attribute, or `self._name = ...`."""
    found = defaultdict(set)
    for module in set(MODULES) - HOSTS.keys():  # these have the names that Keras gives its own
        for node in ast.walk(TREES[module]):
            if isinstance(node, ast.ClassDef):
                names = [item.name for item in node.body if isinstance(item, ast.FunctionDef)]
                names += [
                    t.id for item in node.body if isinstance(item, ast.Assign) for t in item.targets if hasattr(t, "id")
                ]
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
                names = [node.attr]
            else:
                continue
            for name in names:
                if name.startswith("_") and not name.startswith("__"):
                    found[name].add(module)
    return found


def is_self(node):
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


DEFINED = private_attributes()


@pytest.mark.parametrize("module", MODULES)
def test_private_attributes_are_used_by_those_alone_that_import_their_class(module):
    """A circle may go through attributes of a class that is never imported."""
    below = all_below(module)
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Attribute) and not is_self(node.value) and node.attr in DEFINED:
            where = DEFINED[node.attr]
            assert module in where or where & below, f"{module}:{node.lineno} uses `{node.attr}` of {sorted(where)}"


@pytest.mark.parametrize("module", MODULES)
def test_keras_comes_through_the_backend_alone(module):
    found = [name for name in imports(TREES[module]) if name.split(".")[0] in ("keras", "tf_keras")]
    assert module in HOSTS or not found
    assert module.startswith("kcrf.backend.") or not HOSTS.keys() & used_by(module)


@pytest.mark.parametrize("module", MODULES)
def test_extras_are_imported_where_they_are_used(module):
    top = {name.split(".")[0] for name in imports(TREES[module], only_top_level=True)}
    allowed = NEEDED_EVERYWHERE | HOSTS.get(module, set()) | EXTRAS.get(module, set())
    assert top <= allowed | set(sys.stdlib_module_names)


def test_what_is_marked_runs_without_keras():
    code = f"import sys; sys.modules['keras'] = None\nfor name in {WITHOUT_KERAS}: __import__(name)"
    subprocess.run([sys.executable, "-c", code], check=True)
