"""The small runs of the tests of commands."""

import pytest
from small_runs import train_small_runs


@pytest.fixture(scope="session")
def small_runs():
    train_small_runs()
