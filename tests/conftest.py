"""What all tests share: seeds, the backend's name in the header, and tolerances, which stand here alone."""

import os
import random

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from pathlib import Path

import hypothesis
import numpy as np
import pytest

# The same examples at each run (of the same source: hypothesis reads constants in it), and time for a busy machine.
_SLOW = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile("kcrf", derandomize=True, deadline=None, suppress_health_check=_SLOW)
hypothesis.settings.load_profile("kcrf")

TOLERANCE = {"float32": {"rtol": 2e-5, "atol": 2e-5}}


def pytest_report_header():
    from kcrf.backend import OLD_HOST

    return "tf_keras, the old host" if OLD_HOST else f"keras backend: {os.environ['KERAS_BACKEND']}"


def pytest_configure(config):
    config.addinivalue_line("markers", "keras_3(reason): what the old host has not, and why")
    config.addinivalue_line("markers", "old_host(reason): what only the old host has, and why")
    config.addinivalue_line("markers", "long: runs in `make test-all` only")


def pytest_runtest_setup(item):
    from kcrf.backend import OLD_HOST

    for marker in item.iter_markers("keras_3" if OLD_HOST else "old_host"):
        pytest.skip(marker.args[0])


def pytest_fixture_setup():
    _seed()


def pytest_runtest_call(item):
    _seed()
    if isinstance(getattr(item.module, "random", None), np.random.Generator):
        item.module.random = np.random.default_rng(0)


def _seed():
    """Every fixture and every test draws the same numbers, whatever ran before it in the same process.

    Keras 3 takes its seeds from Python's generator. TensorFlow's own seed is left alone: setting it throws away all
    kernels of the process, and once a process that did so before each test was aborted. tf_keras' initializers have a
    generator of their own once any test has set that seed.
    """
    from kcrf.backend import OLD_HOST

    random.seed(0)
    np.random.seed(0)
    if OLD_HOST:
        from tf_keras.src import backend

        backend._SEED_GENERATOR.generator = random.Random(0)


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real corpora beside the checkout; the test skips where it is absent."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the corpora of ../shared/data, which are not here")
    return folder
