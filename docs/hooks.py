"""Adds to the site the documents that lie next to the code, and makes their links and fences work in both places."""

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
    "experiments/measured/README.md",
    "pretrained/README.md",
    "kcrf/taggers/data/zh_gsd/README.md",
]
PICTURES = "experiments/measured/*.png"
TITLES = {"tensorflow": "TensorFlow", "torch": "PyTorch", "jax": "JAX"}

# Links to what the site lacks.
OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:examples|kcrf/corpora/data/README\.md|\.\./claims/\w+\.py)\)")
LINK = re.compile(rf"\]\(\.\./({'|'.join(map(re.escape, BESIDE))}|experiments/measured/)")
TO_GUIDE = re.compile(r"\]\((\.\./)?docs/")
FENCE = re.compile(r"^```python (tensorflow|torch|jax)$", re.MULTILINE)


def on_files(files, config):
    """Adds the documents and pictures under their paths from the root."""
    for name in [*BESIDE, *(path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob(PICTURES)))]:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown, **kwargs):
    """In the repository a guide links to `../PORTING.md`, and that to `docs/...`; in the site they lie side by side.

    A fence such as "```python jax" becomes a block with the title JAX.
    """
    markdown = OUTSIDE.sub(r"\1", LINK.sub(r"](\1", markdown))
    markdown = FENCE.sub(lambda found: f'```python title="{TITLES[found[1]]}"', markdown)
    return TO_GUIDE.sub(r"](\1", markdown).replace("](README.md)", "](index.md)")
