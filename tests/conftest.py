"""What all tests share: the backend's name in the header and tolerances, which stand here alone."""

import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from pathlib import Path

import pytest

TOLERANCE = {"float32": {"rtol": 2e-5, "atol": 2e-5}}


def pytest_report_header():
    return f"keras backend: {os.environ['KERAS_BACKEND']}"


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real corpora beside the checkout; the test skips where it is absent."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the corpora of ../shared/data, which are not here")
    return folder
