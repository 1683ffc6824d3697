"""The real bert4keras 0.11.5 on tf_keras, in an environment of its own: `run(script, **inputs)` gives its numbers.

The environment is the folder .venv-bert4keras beside tests/: Python 3.11, tensorflow-cpu==2.21.0, tf_keras==2.21.0 and
`pip install --no-deps bert4keras==0.11.5` (it pins keras<=2.3.1, which it does not need). Without it, tests skip.

Answers are kept in .pytest_cache/bert4keras: three backends ask the same.
"""

import hashlib
import json
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from forks import fork, fork_server

PYTHON = Path(__file__).parents[1] / ".venv-bert4keras" / "bin" / "python"
ANSWERS = Path(__file__).parents[1] / ".pytest_cache" / "bert4keras"

# What runs around the script: `inputs` (a dict) comes in, `outputs` (a dict that the script fills) goes out.
FRAME = """
import json, sys
import numpy as np
from pathlib import Path
folder = Path(sys.argv[1])
inputs = json.loads((folder / "inputs.json").read_text())
inputs.update(np.load(folder / "inputs.npz"))
outputs = {}
exec(compile((folder / "script.py").read_text(), "script.py", "exec"))
arrays = {name: value for name, value in outputs.items() if isinstance(value, np.ndarray)}
np.savez(folder / "outputs.npz", **arrays)
(folder / "outputs.json").write_text(json.dumps({k: v for k, v in outputs.items() if k not in arrays}))
"""


def run(script, **inputs):
    """Runs a script under bert4keras and returns what it put into `outputs`.

    Args:
        script: Python text. It finds the arguments in the dict `inputs` and fills the dict `outputs`.
        **inputs: NumPy arrays and values that JSON can hold.

    Returns:
        A dict of NumPy arrays and plain values.

    >>> run("outputs['twice'] = inputs['x'] * 2", x=3)  # doctest: +SKIP
    {'twice': 6}
    """
    if not PYTHON.exists():
        pytest.skip(f"needs bert4keras in {PYTHON.parents[1].name}, which is not here")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _put(folder, inputs)
        (folder / "script.py").write_text(script, encoding="utf-8")
        kept = _kept_answer(script, inputs)
        if kept is not None and kept.is_dir():
            return _answer(kept)
        done = fork(_server(), FRAME, str(folder), cwd=folder)
        if done.returncode:
            raise RuntimeError(f"the script failed under bert4keras:\n{done.stderr[-4000:]}")
        if kept is not None:
            _keep(folder, kept)
        return _answer(folder)


@cache
def _server():
    # a clean environment: the backend and the paths of the tests' own Python mean nothing there
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "KERAS_BACKEND")}
    hosts = {"TF_KERAS": "1", "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    hosts["PYTHONWARNINGS"] = "ignore"
    imports = "from bert4keras import layers, models, optimizers, snippets, tokenizers"
    return fork_server(imports, str(PYTHON), env={**clean, **hosts}, cwd=PYTHON.parent)


def _answer(folder):
    with np.load(folder / "outputs.npz") as arrays:
        return {**json.loads((folder / "outputs.json").read_text(encoding="utf-8")), **arrays}


def _kept_answer(script, inputs):
    """The folder of the answer to this question and these versions; None where it reads or writes files of its own."""
    if any(isinstance(value, str) and os.path.isabs(value) for value in inputs.values()):
        return None
    packages = sorted(path.name for path in PYTHON.parents[1].glob("lib/python*/site-packages/*.dist-info"))
    digest = hashlib.sha256(json.dumps([FRAME, script, packages]).encode())
    for name in sorted(inputs):
        value = inputs[name]
        is_array = isinstance(value, np.ndarray)
        about = [name, str(value.dtype), value.shape] if is_array else [name, value]
        digest.update(json.dumps(about).encode() + (value.tobytes() if is_array else b""))
    return ANSWERS / digest.hexdigest()


def _keep(folder, kept):
    """Copies an answer into place, whole or not at all: another process may do the same."""
    aside = kept.with_suffix(f".{os.getpid()}")
    shutil.copytree(folder, aside)
    try:
        os.rename(aside, kept)
    except OSError:  # the other process was faster
        shutil.rmtree(aside)


def _put(folder, inputs):
    arrays = {name: value for name, value in inputs.items() if isinstance(value, np.ndarray)}
    np.savez(folder / "inputs.npz", **arrays)
    plain = {name: value for name, value in inputs.items() if name not in arrays}
    (folder / "inputs.json").write_text(json.dumps(plain), encoding="utf-8")


@pytest.fixture(scope="session")
def bert4keras_python():
    """The function `run`; the test skips where bert4keras' environment is absent."""
    if not PYTHON.exists():
        pytest.skip(f"needs bert4keras in {PYTHON.parents[1].name}, which is not here")
    return run
