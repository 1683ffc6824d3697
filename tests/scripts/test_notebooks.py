"""The notebooks in examples/ run from top to bottom, and their saved outputs are of the kinds that they have now."""

from pathlib import Path

import pytest

BACKENDS = ["torch"]
pytestmark = pytest.mark.slow

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_runs(path, tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient, which runs notebooks")
    pytest.importorskip("ipykernel", reason="needs ipykernel, in which notebooks run")
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat, which reads notebooks")
    saved, ran = (nbformat.read(path, as_version=4) for _ in range(2))
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(ran, timeout=600, kernel_name="python3", resources=resources).execute()
    for before, after in zip(saved.cells, ran.cells, strict=True):
        assert _kinds(after) == _kinds(before), after.source


def _kinds(cell):
    """The kinds of the outputs of a cell: without duplicates, since how a stream is divided is chance."""
    return list(dict.fromkeys((item.output_type, item.get("name")) for item in cell.get("outputs", [])))
