"""Tests docs/ and mkdocs.yml: the site builds in strict mode, and its pages show what was meant."""

import collections
import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

BACKENDS = ["jax"]
pytestmark = pytest.mark.once
ROOT = Path(__file__).parents[2]
HIDDEN = re.compile(r"<(script|style|pre|code)\b.*?</\1>", re.DOTALL)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The HTML of each page by its path in the site."""
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-W", "ignore", "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", site]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    return {name: text for name, text in found.items() if name != "404.html"}


def test_no_page_shows_markup(pages):
    """A fence that Markdown does not understand comes out as a paragraph with backticks."""
    assert len(pages) > 40
    for name, text in pages.items():
        shown = html.unescape(re.sub(r"<[^>]+>", "", HIDDEN.sub("", text)))
        assert re.findall(r"```.*|\]\(\S+\)|^\|.*\|$", shown, re.MULTILINE) == [], name


def test_every_page_has_a_title_of_its_own(pages):
    titles = collections.Counter(re.search(r"<title>(.*?)</title>", text)[1] for text in pages.values())
    assert [title for title, count in titles.items() if count > 1] == []


def test_the_home_page_holds_the_ready_segmenter(pages):
    assert '<iframe class="segmenter" src="segmenter.html#研究生命的起源。"' in pages["index.html"]
    assert '"kind": "words"' in pages["segmenter.html"]


def test_every_picture_of_a_page_is_in_the_site(pages):
    for name, text in pages.items():
        for source in re.findall(r'<img [^>]*src="(?!https?://|data:)([^"]+)"', text):
            parts = (Path("/") / name).parent.joinpath(html.unescape(source)).resolve()
            assert (ROOT / "docs" / parts.relative_to("/")).is_file() or (ROOT / parts.relative_to("/")).is_file(), name
