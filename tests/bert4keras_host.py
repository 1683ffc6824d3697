"""The real bert4keras 0.11.5 on tf_keras, in an environment of its own: `run(script, **inputs)` gives its numbers.

The environment is the folder .venv-bert4keras beside tests/: Python 3.11, tensorflow-cpu==2.21.0, tf_keras==2.21.0 and
`pip install --no-deps bert4keras==0.11.5` (it pins keras<=2.3.1, which it does not need). Without it, tests skip.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

PYTHON = Path(__file__).parents[1] / ".venv-bert4keras" / "bin" / "python"

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
        # a clean environment: the backend and the paths of the tests' own Python mean nothing there
        kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "KERAS_BACKEND")}
        hosts = {"TF_KERAS": "1", "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        command = [str(PYTHON), "-W", "ignore", "-c", FRAME, str(folder)]
        done = subprocess.run(command, env={**kept, **hosts}, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the script failed under bert4keras:\n{done.stderr[-4000:]}")
        with np.load(folder / "outputs.npz") as arrays:
            return {**json.loads((folder / "outputs.json").read_text(encoding="utf-8")), **arrays}


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
