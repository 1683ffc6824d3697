"""The scripts in examples/ run as a user would run them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
ARGUMENTS = {"basic_segment": ["run", "1"]}  # one epoch
EXPECTED = {"basic_segment": "F1 on the test part: 0.", "basic_optimizer": "CRF"}


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_an_example_runs_and_says_what_it_promises(name, tmp_path):
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *ARGUMENTS.get(name, [])]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "COLUMNS": "120"})
    assert run.returncode == 0, run.stderr
    assert EXPECTED.get(name, "").lower() in run.stdout.lower()
