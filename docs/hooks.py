"""Adds to the site the documents that lie next to the code, and makes links to them work in both places."""

import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
BESIDE = [
    "PORTING.md",
    "PORTING.zh.md",
    "README.zh.md",
    "CHANGELOG.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    "experiments/README.md",
    "pretrained/README.md",
    "kcrf/taggers/data/zh_gsd/README.md",
]
OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:examples|kcrf/corpora/data/README\.md)\)")  # links to what the site lacks
LINK = re.compile(rf"\]\(\.\./({'|'.join(map(re.escape, BESIDE))})")


def on_files(files, config):
    """Adds the documents under their paths from the root."""
    for name in BESIDE:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown, **kwargs):
    """In the repository a guide links to `../PORTING.md`, and that to `docs/...`; in the site they lie side by side."""
    markdown = OUTSIDE.sub(r"\1", LINK.sub(r"](\1", markdown))
    return markdown.replace("](docs/", "](").replace("](README.md)", "](index.md)")
