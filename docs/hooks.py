"""Adds to the site the documents that lie beside the code, and makes links to them work in both places."""

import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
BESIDE = ["PORTING.md", "PORTING.zh.md", "CHANGELOG.md", "benchmarks/README.md", "pretrained/README.md"]
LINK = re.compile(rf"\]\(\.\./({'|'.join(map(re.escape, BESIDE))})")


def on_files(files, config):
    """Adds the documents under their paths from the root."""
    for name in BESIDE:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown, **kwargs):
    """On the repository's pages a guide links to `../PORTING.md`; in the site it is `PORTING.md`."""
    return LINK.sub(r"](\1", markdown)
