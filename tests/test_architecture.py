"""What `lint-imports` cannot see; the floors themselves are contracts in `pyproject.toml`."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import figures
import pytest

BACKENDS = ["torch"]
ROOT = Path(__file__).parents[1]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
KERAS_FREE = next(c["source_modules"] for c in CONTRACTS if c["name"].startswith("What works without Keras"))
EXTRAS = (
    "fastapi gensim google_crc32c jax jieba matplotlib onnx onnxruntime prometheus_client pydantic starlette"
    " tensorflow tf2onnx tokenizers transformers triton uvicorn"
).split()
PAGES = sorted((ROOT / "kcrf").glob("*/**/__init__.py"))
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.modules.update(dict.fromkeys({blocked}))
import kcrf
for root in {roots}:
    package = importlib.import_module(root)
    for module in pkgutil.walk_packages(getattr(package, "__path__", []), root + ".", onerror=lambda name: None):
        if not module.name.startswith({skipped}):
            importlib.import_module(module.name)
"""


def import_all(roots, blocked, skipped=()):
    """Imports every module of `roots` in a child process in which the modules of `blocked` cannot be imported."""
    code = IMPORT_ALL.format(roots=roots, blocked=blocked, skipped=skipped)
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.parametrize("page", PAGES, ids=[page.parent.name for page in PAGES])
def test_a_page_holds_imports_and_nothing_else(page):
    docstring, *imports, names = ast.parse(page.read_text(encoding="utf-8")).body
    if isinstance(imports[-1], ast.If):  # bert4keras' names, which are imported when they are asked for
        *imports, if_typed = imports
        assert ast.unparse(if_typed.test) == "TYPE_CHECKING"
        imports += if_typed.body + if_typed.orelse
    assert isinstance(docstring, ast.Expr) and all(isinstance(node, ast.ImportFrom) for node in imports)
    assert isinstance(names, ast.Assign) and names.targets[0].id == "__all__"


def test_what_works_without_keras_is_imported_without_keras():
    import_all(KERAS_FREE, blocked=["keras", "tf_keras"])


@pytest.mark.slow
def test_a_plain_installation_imports_everything_but_export_and_serving():
    skipped = ("kcrf.export", "kcrf.serving", "kcrf.__main__", "kcrf.bert4keras.tf_keras")
    import_all(["kcrf"], blocked=EXTRAS, skipped=(*skipped, "kcrf.crf.torch_kernels", "kcrf.crf.triton_kernels"))


def test_the_picture_in_the_document_shows_the_floors_of_the_contracts():
    layers = next(c["layers"] for c in CONTRACTS if c["name"].startswith("Imports go down"))[1:]  # without __main__
    picture = re.findall(r"^ {1,2}(\d+)  +(.*)$", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(floor) for floor, _ in picture] == list(range(len(layers), 0, -1))
    unnamed = {"snippets", "progress_bars", "version"}
    for layer, (floor, row) in zip(layers, picture, strict=True):
        shown, rooms = set(re.findall(r"(\w+)(?:/|\.py)", row)), set(re.findall(r"\w+", layer))
        optional = set(re.findall(r"\((\w+)\)", layer)) | unnamed
        assert rooms - optional <= shown <= rooms, f"floor {floor}"


def test_the_package_stays_small():
    """A limit is reached by a better idea, not by a split in halves; see `python tests/figures.py`."""
    package = figures.sources("kcrf")
    assert sum(len(text.splitlines()) for text in package.values()) <= 38_000
    assert figures.longest_file(package) < (401,)
    assert figures.longest_function(package) < (41,)
    assert figures.share_typed(package) >= 0.94
    assert sum(map(len, figures.public_names().values())) <= 140


TESTS = [path for path in sorted((ROOT / "tests").glob("*/test_*.py")) if (ROOT / "kcrf" / path.parent.name).is_dir()]


@pytest.mark.parametrize("path", TESTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_first_line_of_a_test_file_names_what_it_tests(path):
    line = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]
    names = re.findall(r"\bkcrf(?:\.\w+)+", line)
    assert any(name.startswith(f"kcrf.{path.parent.name}") for name in names)
    modules = [
        name.split(".")[: 2 if name.split(".")[-1][0].isupper() else 3] for name in names
    ]  # or a class of a page
    places = [ROOT.joinpath(*parts) for parts in modules]
    assert [place for place in places if not place.is_dir() and not place.with_suffix(".py").is_file()] == []
