"""Adds to the site the documents that lie next to the code, and makes their links and fences work in both places."""

import re
import tempfile
from pathlib import Path

from mkdocs.structure.files import File

from kcrf.export import export_model
from kcrf.taggers.open_model import built_in_segmenter

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
HOME = {"README.md": "index.md"}  # by its path in the site
BOOST = {  # of the pages in the search
    **{"index.md": 4, "getting_started.md": 4, "README.zh.md": 2},
    **dict.fromkeys(
        ["CHANGELOG.md", "benchmarks/README.md", "experiments/README.md", "experiments/measured/README.md"], 0.2
    ),
    **dict.fromkeys(["results.md", "PORTING.md", "PORTING.zh.md", "ARCHITECTURE.md", "CONTRIBUTING.md"], 0.5),
}
PICTURES = "experiments/measured/*.png"
SEGMENTER = "segmenter.html"  # the ready segmenter, which computes in the browser
PICTURE = re.compile(r"!\[[^\]]*\]\(docs/page\.png\)")
EXAMPLE = "研究生命的起源。"
FRAME = (
    f'<iframe class="segmenter" src="{SEGMENTER}#{EXAMPLE}" title="Segments the Chinese text that you type"></iframe>'
)
TITLES = {"tensorflow": "TensorFlow", "torch": "PyTorch", "jax": "JAX"}

# Links to what the site lacks.
OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:examples(?:/[\w.]+)?|kcrf/corpora/data/README\.md|\.\./claims/\w+\.py)\)")
LINK = re.compile(rf"\]\(\.\./({'|'.join(map(re.escape, BESIDE))}|experiments/measured/)")
TO_GUIDE = re.compile(r"\]\((\.\./)?docs/")
FENCE = re.compile(r"^```python (tensorflow|torch|jax)$", re.MULTILINE)


def on_files(files, config):
    """Adds the documents and pictures under their paths from the root, and the page of the ready segmenter."""
    pictures = [path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob(PICTURES))]
    for name in [*HOME, *BESIDE, *pictures]:
        files.append(File.generated(config, HOME.get(name, name), abs_src_path=str(ROOT / name)))
    with tempfile.TemporaryDirectory() as folder:
        export_model(built_in_segmenter(), f"{folder}/{SEGMENTER}")
        content = Path(folder, SEGMENTER).read_text(encoding="utf-8")
    files.append(File.generated(config, SEGMENTER, content=content))
    return files


def on_page_markdown(markdown, page, **kwargs):
    """In the repository a guide links to `../PORTING.md`, and that to `docs/...`; in the site they lie side by side.

    A fence such as "```python jax" becomes a block with the title JAX.
    """
    page.meta.setdefault("search", {})["boost"] = BOOST.get(page.file.src_uri, 1)
    markdown = PICTURE.sub(FRAME, markdown) if page.file.src_uri == "index.md" else markdown
    markdown = OUTSIDE.sub(r"\1", LINK.sub(r"](\1", markdown))
    markdown = FENCE.sub(lambda found: f'```python title="{TITLES[found[1]]}"', markdown)
    return TO_GUIDE.sub(r"](\1", markdown).replace("](README.md)", "](index.md)")
