"""Imports Keras without TensorFlow's log messages, and without packages that using a model does not need."""

import os
import re
import sys
import tempfile
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

__all__ = ["quick_import", "quiet_import"]

_DYNAMO = "torch._dynamo"

# TF_CPP_MIN_LOG_LEVEL does not hold for messages before absl::InitializeLog, as of TensorFlow 2.21.
_NOTE = re.compile(rb"I\d{4} |WARNING: All log messages before absl::InitializeLog")


@contextmanager
def quiet_import():
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


class _DynamoLater(ModuleType):
    """In place of `torch._dynamo`: Keras imports torch's compiler for one decorator, which only `torch.compile` reads.

    Any other use, also of a submodule, imports the compiler itself.
    """

    @staticmethod
    def disable():
        return lambda function: function

    def __getattr__(self, name):
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def quick_import():
    """As `quiet_import`, for a command that only uses a model: half the time until it begins.

    Keras imports Matplotlib and JAX where they are installed, for pictures and for another backend. In this context
    they cannot be imported for the first time. The compiler of torch, as of Keras 3.15, is imported when it is used.
    """
    unused = ["matplotlib", *(["jax"] if os.environ.get("KERAS_BACKEND") in ("torch", "tensorflow") else [])]
    instead = dict.fromkeys(unused) | {_DYNAMO: _DynamoLater(_DYNAMO)}  # None: `import` raises ModuleNotFoundError
    instead = {name: module for name, module in instead.items() if name not in sys.modules}
    sys.modules.update(instead)
    try:
        with quiet_import():
            yield
    finally:
        for name, module in instead.items():
            if sys.modules.get(name) is module:
                sys.modules.pop(name, None)
