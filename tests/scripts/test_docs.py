"""Every example in the documentation of a public name runs, with the printed results."""

import ast
import doctest
import importlib
import re
from pathlib import Path

import changed_keras  # noqa: F401 (takes back the changes of `kcrf.bert4keras`)
import pytest

import kcrf
from kcrf.backend import backend_name, keras

PACKAGE = Path(kcrf.__file__).parent
ROOT = PACKAGE.parent


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


CODE = re.compile(r"^```python *(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)  # perhaps of one backend, the code
ABSENT = {"kcrf", "kcrf.__main__", "kcrf.bert4keras.tf_keras"}
if backend_name() != "torch":
    ABSENT |= {"kcrf.crf.torch_kernels", "kcrf.crf.triton_kernels"}  # which aborts beside TensorFlow
FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
MODULES = sorted(FILES.keys() - ABSENT)
PAGES = [name for name in MODULES if "\n__all__ = " in FILES[name].read_text(encoding="utf-8")]


def public(module):
    """The public names of a page, or what a module defines without an underscore."""
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    things = {name: getattr(module, name) for name in names}
    if hasattr(module, "__all__"):
        return things
    return {name: thing for name, thing in things.items() if getattr(thing, "__module__", "") == module.__name__}


@pytest.mark.once
@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(name)
    finder, runner = (
        doctest.DocTestFinder(recurse=True),
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE),
    )
    for label, thing in public(module).items():
        if callable(thing) and getattr(thing, "__module__", None) == module.__name__:
            for test in finder.find(thing, label, module=False, globs=dict(vars(module))):
                runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.once
@pytest.mark.parametrize("name", PAGES)
def test_public_names_exist_and_are_documented(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for label, thing in public(module).items():
        if callable(thing) and not getattr(thing, "__module__", "").startswith(("keras.", "tf_keras.")):
            assert thing.__doc__, f"{name}.{label} has no docstring"


LONG = {"distillation.md", "entities.md", "words.md"} | ({"crf.md"} if backend_name() != "torch" else set())


def marks(name, text):
    """The marks of a guide: it runs on torch, and on the backends that have blocks of their own in it."""
    named = set(re.findall(r"^```python (tensorflow|jax)$", text, re.MULTILINE))
    return [pytest.mark.slow] * (name in LONG) + [pytest.mark.once] * (backend_name() not in named)


def shortened(blocks, text):
    """Without the sections between the first one and the first one that is about a single backend."""
    section = {block: text.count("\n## ", 0, block.start()) for block in blocks}
    first, last = section[blocks[0]], min(section[block] for block in blocks if block[1])
    return [block for block in blocks if section[block] == first or section[block] >= last]


def run(blocks, text, name, **names):
    """Runs code blocks of a document one after the other, but for those of another backend; returns their names."""
    names["__name__"] = "__main__"
    for block in blocks:
        if block[1] in ("", backend_name()):
            above = "\n" * text.count("\n", 0, block.start(2))  # so that an error tells the line of the document
            exec(compile(above + block[2], name, "exec"), names)
    return names


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(p, id=p.name, marks=marks(p.name, text))
        for p in sorted((ROOT / "docs").rglob("*.md"))
        if CODE.search(text := p.read_text(encoding="utf-8")) and not p.name.endswith(".zh.md")
    ],
)
def test_the_code_of_a_guide_runs_from_top_to_bottom(document, tmp_path, monkeypatch, pytestconfig):
    monkeypatch.chdir(tmp_path)
    text = document.read_text(encoding="utf-8")
    blocks = list(CODE.finditer(text))
    assert blocks and {block[1] for block in blocks} <= {"", "tensorflow", "jax", "torch"}
    run_all = backend_name() == "torch" or pytestconfig.getoption("--all")
    policy = keras.config.dtype_policy()
    try:
        run(blocks if run_all else shortened(blocks, text), text, str(document))
    finally:
        keras.config.set_dtype_policy(policy)  # gpu.md sets another one, which later tests must not compute with


@pytest.mark.once
@pytest.mark.parametrize("chinese", sorted((ROOT / "docs").glob("*.zh.md")), ids=lambda path: path.name)
def test_a_guide_in_chinese_has_code_of_the_english_one(chinese):
    """Which runs; comments may differ."""
    english = chinese.with_name(chinese.name.replace(".zh.md", ".md"))
    ours, theirs = ([ast.dump(ast.parse(found[2])) for found in CODE.finditer(path.read_text(encoding="utf-8"))]
                    for path in (chinese, english))  # fmt: skip
    assert ours and [code for code in ours if code not in theirs] == []
