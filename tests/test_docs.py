"""Every example in the documentation of a public name runs and says the truth."""

import doctest
import importlib
from pathlib import Path

import pytest

import kcrf

PACKAGE = Path(kcrf.__file__).parent
MODULES = sorted(path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__"))


def public(module):
    """The public functions and classes of a module, by name."""
    return {name: getattr(module, name) for name in getattr(module, "__all__", [])}


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(f"kcrf.{name}")
    finder, runner = (
        doctest.DocTestFinder(recurse=True),
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE),
    )
    for label, thing in public(module).items():
        if callable(thing) and getattr(thing, "__module__", None) == module.__name__:
            for test in finder.find(thing, label, module=False, globs=dict(vars(module))):
                runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_public_names_exist_and_are_documented(name):
    module = importlib.import_module(f"kcrf.{name}")
    assert module.__doc__
    for label, thing in public(module).items():
        if callable(thing):
            assert thing.__doc__, f"kcrf.{name}.{label} has no docstring"


def test_the_version_stands_in_the_changelog():
    changelog = (PACKAGE.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {kcrf.__version__}" in changelog
