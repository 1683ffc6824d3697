"""Keeps what TensorFlow logs when it is imported off standard error."""

import os
import re
import sys
import tempfile
from contextlib import contextmanager

__all__ = ["quiet_import"]

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
