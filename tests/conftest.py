"""What all tests share: seeds, the backend's name in the header, tolerances, and which test runs where."""

import gc
import os
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

ROOT = Path(__file__).parents[1]

# The same examples at each run (of the same source: hypothesis reads constants in it), and time for a busy machine.
_SLOW = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile("kcrf", derandomize=True, deadline=None, suppress_health_check=_SLOW)
hypothesis.settings.load_profile("kcrf")

MOST_MAPPINGS = 30_000
TOLERANCE = {"float32": {"rtol": 2e-5, "atol": 2e-5}}

# Tests that run once, whatever the backend: of folders that work without Keras, and of the tests themselves.
KERAS_FREE = (
    "architecture augmentation checkpoints corpora files metrics mutants peers readers registration reports runs spans"
    " tags tokenizers"
).split()

MARKERS = {
    "keras_3(reason)": "what the old host lacks, and why",
    "old_host(reason)": "what only the old host has, and why",
    "once(backend)": "the same on every backend, so it runs on this one alone",
    "long(but=None)": "`make test` runs it on these alone (backends, `keras_3`, `old_host`); `make test-all` on all",
    "every_backend": "an exception to `once` or `long` of the whole file",
}


def few(*values, everywhere=1):
    """Values for `parametrize`: the first ones run on every backend, the rest in `make test` on torch alone."""
    rest = [value if isinstance(value, tuple) else (value,) for value in values[everywhere:]]
    return [*values[:everywhere], *(pytest.param(*value, marks=pytest.mark.long(but="torch")) for value in rest)]


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="run the tests that are marked `long`, too")


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


def pytest_collection_modifyitems(config, items):
    left = [item for item in items if not _runs_here(item, config.getoption("--all"))]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]


def _runs_here(item, everything):
    """By its markers, the nearest first; tests of folders without Keras run once, on torch, the fastest to start."""
    from kcrf.backend import OLD_HOST, backend_name

    here = {"old_host"} if OLD_HOST else {"keras_3", backend_name()}
    is_exception = any(marker.name == "every_backend" for marker in item.own_markers)
    for marker in item.own_markers if is_exception else item.iter_markers():
        if marker.name == "once":
            return backend_name() == marker.args[0]
        if marker.name == "long" and not everything and here.isdisjoint((marker.kwargs.get("but") or "").split()):
            return False
    if is_exception:
        return True
    room = item.path.relative_to(ROOT / "tests").parts[0].removeprefix("test_").removesuffix(".py")
    return room not in KERAS_FREE or backend_name() == "torch"


def pytest_runtest_setup(item):
    from kcrf.backend import OLD_HOST

    for marker in item.iter_markers("keras_3" if OLD_HOST else "old_host"):
        pytest.skip(marker.args[0])


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
