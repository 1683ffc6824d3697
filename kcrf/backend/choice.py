"""Chooses an installed backend if Keras would take one that is not installed."""

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

BACKENDS = ("tensorflow", "jax", "torch")


def choose_backend() -> None:
    """Sets KERAS_BACKEND to the only installed backend, unless the user or Keras' configuration names an installed one.

    Does nothing after `import keras`: Keras has chosen then.
    """
    if "keras" in sys.modules or os.environ.get("KERAS_BACKEND"):
        return
    found = _installed()
    if len(found) == 1 and _default() not in found:
        os.environ["KERAS_BACKEND"] = found[0]


def no_backend(error: ModuleNotFoundError) -> ImportError:
    """The error for a backend that `import keras` misses; other missing packages raise as they are."""
    package = (error.name or "").partition(".")[0]
    if package not in BACKENDS:
        raise error
    found = _installed()
    install = "pip install 'kcrf[tensorflow]', 'kcrf[jax]' or 'kcrf[torch]'"
    choose = " or ".join(f"KERAS_BACKEND={name}" for name in found)
    fix = f"set the environment variable {choose}" if found else install
    return ImportError(f"Keras needs a backend: {fix}. Received: no package {package}")


def _installed() -> list[str]:
    return [name for name in BACKENDS if name not in sys.modules and find_spec(name) or sys.modules.get(name)]


def _default() -> str:
    """The backend in Keras' configuration file, which Keras writes when it is first imported."""
    folder = os.environ.get("KERAS_HOME") or Path("~/.keras").expanduser()
    try:
        return str(json.loads((Path(folder) / "keras.json").read_text(encoding="utf-8"))["backend"])
    except (OSError, ValueError, KeyError, TypeError):
        return "tensorflow"
