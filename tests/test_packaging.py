"""What is installed: metadata, files, pinned versions, and what the package does in an empty environment."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from small_runs import RUNS, train_small_runs

import kcrf

ROOT = Path(__file__).parents[1]
BACKENDS = ["jax"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pins():
    """The versions in constraints.txt by names."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of what git knows and does not ignore, to build in."""
    folder = tmp_path_factory.mktemp("copy")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True)
    if listed.returncode:
        pytest.skip("needs a git checkout")
    for name in filter(lambda name: (ROOT / name).is_file(), listed.stdout.decode().split("\0")):
        if name.split("/")[0] in ("kcrf", "tests") or "/" not in name:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    return folder


def build(copy, out, what):
    """The path of the wheel or sdist that setuptools builds of the copy."""
    code = f"import setuptools.build_meta as backend; print(backend.build_{what}({str(out)!r}))"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(copy, tmp_path_factory):
    return build(copy, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def sdist(copy, tmp_path_factory):
    return build(copy, tmp_path_factory.mktemp("sdist"), "sdist")


def test_a_wheel_contains_every_file_that_the_package_reads_and_no_other(wheel):
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "kcrf"]
    known = set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split())
    known = {name for name in known if (ROOT / name).is_file() and not name.endswith(".onnx")}
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == known and {"kcrf/py.typed", "kcrf/serving/page.js"} < names
    assert Path(wheel).stat().st_size < 4_000_000


def test_the_metadata_is_complete(wheel):
    archive = zipfile.ZipFile(wheel)
    data = BytesParser().parsebytes(archive.read(next(n for n in archive.namelist() if n.endswith("/METADATA"))))
    assert (data["Name"], data["Version"], data["Author"]) == ("kcrf", kcrf.__version__, "kcrf contributors")
    assert data["Summary"] and data["License-Expression"] == "Apache-2.0" and "keras" in data["Keywords"]
    assert "Typing :: Typed" in data.get_all("Classifier") and data["License-File"] == "LICENSE"
    assert data["Description-Content-Type"].startswith("text/markdown")
    assert "conditional random field" in data.get_payload()
    options = {Requirement(line).name for line in data.get_all("Requires-Dist") if 'extra == "all"' in line}
    assert options == {"kcrf"}  # the other extras


def test_an_sdist_has_no_tests(sdist):
    with tarfile.open(sdist) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"kcrf", "pyproject.toml", "LICENSE"} < tops and not tops & {"tests", "docs", "experiments"}


def test_an_sdist_builds_the_same_wheel(sdist, wheel, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    again = build(next(tmp_path.iterdir()), tmp_path, "wheel")
    first, second = ({n: archive.read(n) for n in archive.namelist() if not n.endswith("RECORD")}
                     for archive in map(zipfile.ZipFile, (wheel, again)))  # fmt: skip
    assert first == second


def requirements():
    """The requirements in pyproject.toml, with all extras."""
    extras = PROJECT["optional-dependencies"]
    lines = [*PROJECT["dependencies"], *(line for name, lines in extras.items() if name != "all" for line in lines)]
    return [Requirement(line) for line in lines]


def test_the_extra_all_contains_every_feature():
    listed = set(re.findall(r"[\w-]+", PROJECT["optional-dependencies"]["all"][0])) - {"kcrf"}
    assert listed == PROJECT["optional-dependencies"].keys() - {"all", "docs", "jax", "test", "torch"}


def test_every_requirement_has_a_pin_that_satisfies_it():
    locked = pins()
    assert len(requirements()) > 20
    for requirement in requirements():
        assert locked[canonicalize_name(requirement.name)] in requirement.specifier, requirement
    for name, version in re.findall(r" ([\w-]+)==([\d.]+)", (ROOT / "Makefile").read_text(encoding="utf-8")):
        assert locked[canonicalize_name(name)] == version


def test_the_versions_agree():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == kcrf.__version__
    assert f"## {kcrf.__version__}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


ALONE = """
import json, sys
from kcrf.corpora import load_mini
from kcrf.metrics import segmentation_scores
from kcrf.tags import bmes, words_to_tags
from kcrf.tokenizers import Tokenizer

sentences = load_mini().test
assert segmentation_scores(sentences, sentences)["f"] == 1
try:
    Tokenizer({"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "好": 3})
except ImportError as error:
    assert "kcrf[transformers]" in str(error)
assert words_to_tags(["今天", "好"]) == [1, 3, 0]
print(json.dumps(sorted({"tensorflow", "torch", "jax"} & sys.modules.keys())))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_alone_it_reads_scores_and_says_which_backend_to_add(kind, request, tmp_path):
    package = request.getfixturevalue(kind)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "empty"], check=True)
    python = tmp_path / "empty" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", package]
    done = subprocess.run(install, capture_output=True, text=True)
    if "No matching distribution" in done.stderr or "Could not find a version" in done.stderr:
        pytest.skip("needs a package index")
    assert done.returncode == 0, done.stderr

    def run(*arguments, **environment):
        command = [python, *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, input="好\n")

    alone = run("-c", ALONE)
    assert (alone.returncode, alone.stdout) == (0, "[]\n"), alone.stderr
    assert run("-m", "kcrf", "--help").returncode == 0
    words = tmp_path / "words.txt"
    words.write_text("今天 好\n", encoding="utf-8")
    score = run("-m", "kcrf", "score", "--gold", words, "--pred", words, "--json")
    assert score.returncode == 0 and '"f": 1.0' in score.stdout
    train_small_runs()
    model = RUNS / "words"
    for backend in ("tensorflow", "torch", "jax"):
        refused = run("-m", "kcrf", "segment", "--model", model, KERAS_BACKEND=backend)
        assert refused.returncode == 2 and f"'kcrf[{backend}]'" in refused.stderr, refused.stderr
        assert refused.stderr.endswith(f"Received: no package {backend}\n")
        assert "Traceback" not in refused.stderr
    served = run("-m", "kcrf", "serve", model)
    assert served.returncode == 2 and "pip install 'kcrf[serve]'" in served.stderr


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.stem)
def test_a_workflow_names_folders_and_extras_that_exist(path):
    text = path.read_text(encoding="utf-8")
    assert [name for name in re.findall(r"\btests/\w+", text) if not (ROOT / name).exists()] == []
    extras = {name for found in re.findall(r'"\.\[([^"]*)\]"', text) for name in re.findall(r"\w+", found)}
    assert extras - {"matrix", "backend"} <= PROJECT["optional-dependencies"].keys()
    pythons = re.findall(r'python: \["([^]]*)"\]', text)
    listed = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if ":: Python :: 3." in line}
    assert all(set(found.split('", "')) == listed for found in pythons)
