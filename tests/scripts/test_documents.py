"""The documents mention only what exists: names, linked files, commands and their options."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from kcrf.commands import main

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.once
FOLDERS = ["docs", "pretrained", "benchmarks", "examples", "experiments"]
FILES = sorted([*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.[mp][dy]"))])
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in FILES}
DOCUMENTS = [name for name in TEXTS if name.endswith(".md")]
NAME = re.compile(r"(?<![\w./-])kcrf(?:\.[A-Za-z_]\w*)+")
LINK = re.compile(r"\]\((?!https?://)([^)#]+)[^)]*\)")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)  # its language, "" of a command line; its text
COMMAND = re.compile(r"^kcrf (\w+)(.*)$", re.MULTILINE)


def exists(name):
    """Whether a dotted name can be imported: a module, or an attribute of one, and so on."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        try:
            for part in parts[length:]:
                found = getattr(found, part)
        except (AttributeError, ImportError):
            return False
        return True
    return False


@pytest.mark.parametrize("document", TEXTS)
def test_the_names_in_a_document_exist(document):
    assert [name for name in sorted(set(NAME.findall(TEXTS[document]))) if not exists(name)] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_a_document_links_to_exists(document):
    for target in LINK.findall(TEXTS[document]):
        assert (ROOT / document).parent.joinpath(target).exists(), target


def commands(document):
    """The command lines in a document, as pairs of a command and the rest of its line."""
    blocks = [text for language, text in BLOCK.findall(TEXTS[document]) if not language]
    return [found for block in blocks for found in COMMAND.findall(block)]


@pytest.mark.parametrize("document", list(filter(commands, DOCUMENTS)))
def test_the_commands_in_a_document_have_these_options(document, capsys):
    for command, arguments in commands(document):
        with pytest.raises(SystemExit) as end:
            main([command, "--help", *["all"] * (command == "train")])
        known = set(re.findall(r"--[\w-]+", capsys.readouterr().out))
        used = set(re.findall(r"--[\w-]+", arguments.partition("#")[0]))
        assert end.value.code == 0 and used <= known, (command, used - known)


def test_every_public_module_has_a_page_in_the_site():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {path.stem for path in (ROOT / "docs/api").glob("*.md")} - {"index"}
    assert pages == set(re.findall(r"- kcrf\.\w+: api/(\w+)\.md", navigation))
    assert all(f"# `kcrf.{page}`" in TEXTS[f"docs/api/{page}.md"] for page in pages)


def test_the_forty_names_are_public_and_link_to_their_page():
    rows = re.findall(r"^\| \[`([\w.]+)`\]\((\w+)\.md\) \| (.*?) \|", TEXTS["docs/api/index.md"], re.MULTILINE)
    names = [(module, name) for module, page, text in rows for name in re.findall(r"`(\w+)`", text)]
    assert len(names) == len(set(names)) == 40
    assert all(module.split(".")[1] == page for module, page, text in rows)
    assert [
        row for row in names if row[1] not in getattr(module := import_module(row[0]), "__all__", dir(module))
    ] == []
