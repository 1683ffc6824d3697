"""Imports Keras without TensorFlow's log messages, and without packages that using a model does not need."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

# TF_CPP_MIN_LOG_LEVEL does not hold for messages before absl::InitializeLog, as of TensorFlow 2.21.
_NOTE = re.compile(rb"I\d{4} |WARNING: All log messages before absl::InitializeLog")


@contextmanager
def quiet_import() -> Iterator[None]:
    """A context in which Keras is imported: leaves out absl's notes, shows all else on standard error at its end."""
    try:
        stderr = os.dup(2)
    except OSError:  # there is none
        yield
        return
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            if sys.stderr is not None:
                sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            file.seek(0)
            for line in file:
                if not _NOTE.match(line):
                    os.write(2, line)


@contextmanager
def quick_import() -> Iterator[None]:
    """As `quiet_import`, for a command that only uses a model: a second less until it begins. Keras imports Matplotlib
    and JAX where they are installed, for pictures and for another backend. In this context their first import fails."""
    unused = ["matplotlib", *(["jax"] if os.environ.get("KERAS_BACKEND") in ("torch", "tensorflow") else [])]
    blocked = [name for name in unused if name not in sys.modules]
    sys.modules.update(dict.fromkeys(blocked))  # type: ignore[arg-type]  # None: `import` raises ModuleNotFoundError
    try:
        with quiet_import():
            yield
    finally:
        for name in blocked:
            sys.modules.pop(name, None)
