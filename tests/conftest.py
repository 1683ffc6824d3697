"""Shared by all tests: seeds, the backend's name in the header, tolerances, and the markers that select backends."""

import ast
import gc
import importlib.util
import os
import re
import sys
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Most of the time on JAX is compiling: each program is compiled once, for all tests, children and later runs. JAX' keys
# hold its version, the flags and the processor. Programs with a callback, as the losses have one, are not kept.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

import hypothesis
import numpy as np
import pytest
from seeds import set_seeds

if os.environ["KERAS_BACKEND"] != "torch":
    sys.modules["triton"] = None  # which torch would import, and which aborts beside TensorFlow
elif importlib.util.find_spec("triton"):
    # Triton reads this when it is imported, as torch does: its functions can then be interpreted on a CPU. Without the
    # variable, only tests that set it compute with the kernels.
    os.environ["TRITON_INTERPRET"] = "1"
    import triton  # noqa: F401

    del os.environ["TRITON_INTERPRET"]

ROOT = Path(__file__).parents[1]

# The same examples at each run (of the same source: hypothesis reads constants in it), and time for a busy machine.
_SLOW = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile("kcrf", derandomize=True, deadline=None, suppress_health_check=_SLOW)
hypothesis.settings.load_profile("kcrf")

MOST_MAPPINGS = 30_000
TOLERANCE = {"float32": {"rtol": 2e-5, "atol": 2e-5}}

# Where a test runs stands in its file: `BACKENDS = [...]` at the top has some of these names. The default is the first
# three.
ALL_BACKENDS = ["torch", "tensorflow", "jax", "tf_keras"]
MARKERS = {
    "once": "`make test` runs it on the first of the file's backends alone, `make test-all` on all of them",
    "slow": "`make test-all` runs it, `make test` does not",
}


def few(*values, everywhere=1, rest="once"):
    """Values for `parametrize`: the first ones run on every backend, the rest are marked `once`, or `slow`."""
    others = [value if isinstance(value, tuple) else (value,) for value in values[everywhere:]]
    return [*values[:everywhere], *(pytest.param(*value, marks=getattr(pytest.mark, rest)) for value in others)]


def pytest_addoption(parser):
    parser.addoption(
        "--all",
        action="store_true",
        help="run the tests that are marked `slow`, and those marked `once` on all backends",
    )


def pytest_report_header():
    from kcrf.backend import OLD_HOST

    return "tf_keras, the old host" if OLD_HOST else f"keras backend: {os.environ['KERAS_BACKEND']}"


def pytest_configure(config):
    for marker, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{marker}: {meaning}")
    if os.environ["KERAS_BACKEND"] == "tensorflow" and not config.getoption("--all"):
        import tensorflow as tf

        # Most graphs of the tests run once or twice: optimizing them takes longer than it saves.
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


def running_backend():
    from kcrf.backend import OLD_HOST, backend_name

    return "tf_keras" if OLD_HOST else backend_name()


def backends_of(path):
    """The backends that the tests of a file run on, read without importing it."""
    declared = re.search(r"^BACKENDS = (\[.*\])", path.read_text(encoding="utf-8"), re.MULTILINE)
    backends = ast.literal_eval(declared[1]) if declared else ALL_BACKENDS[:3]
    if not backends or not set(backends) <= set(ALL_BACKENDS):
        raise ValueError(f"{path}: BACKENDS needs names from {ALL_BACKENDS}. Received: {backends}")
    return backends


def pytest_ignore_collect(collection_path):
    """A file is not imported on a backend that it does not name: it may need what is not installed there."""
    if collection_path.match("test_*.py") and running_backend() not in backends_of(collection_path):
        return True
    return None


def pytest_collection_modifyitems(config, items):
    items.sort(key=lambda item: "scripts" in item.path.parts)  # last: guides import other libraries, which change torch
    if config.getoption("--all"):
        return
    here = running_backend()
    omitted = [
        item
        for item in items
        if item.get_closest_marker("slow") or item.get_closest_marker("once") and backends_of(item.path)[0] != here
    ]
    if omitted:
        config.hook.pytest_deselected(items=omitted)
        items[:] = [item for item in items if item not in set(omitted)]


def pytest_fixture_setup():
    """Every fixture and every test draws the same numbers, whatever ran before it in the same process."""
    set_seeds()


def pytest_runtest_call(item):
    set_seeds()
    if isinstance(getattr(item.module, "random", None), np.random.Generator):
        item.module.random = np.random.default_rng(0)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    """Drops JAX's compiled programs in time: Linux gives a process 65,530 mappings of memory; XLA crashes beyond."""
    maps = Path("/proc/self/maps")
    if os.environ["KERAS_BACKEND"] == "jax" and maps.exists() and maps.read_bytes().count(b"\n") > MOST_MAPPINGS:
        import jax

        jax.clear_caches()
        gc.collect()


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real corpora beside the checkout; the test skips where it is absent."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("needs the corpora of ../shared/data, which are not here")
    return folder


@pytest.fixture(scope="session")
def small_runs():
    """The runs of `small_runs.RUNS`."""
    from small_runs import train_small_runs

    train_small_runs()
