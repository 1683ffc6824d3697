"""Kills training before a change of a file."""

import signal

from forks import run_python

TRAINING = """
import os, signal, sys
from test_resume import PARTS, TINY
from kcrf.training import resume_tagger, train_tagger

folder, change, command = sys.argv[1:]
left, ending = (int(change), "") if change.isdigit() else (1, change)

def count(event, arguments):
    global left
    path = str(arguments[0]) if event in ("os.rename", "os.remove") else ""
    if path.startswith(folder) and path.endswith(ending) and os.path.exists(path):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
if command == "resume":
    resume_tagger(folder, **PARTS)
else:
    train_tagger(TINY, **PARTS, out=folder, overwrite=True)
"""


def killed(run, change, command):
    """Trains, or resumes, in a process that kills itself before a change in the folder; whether it came to that.

    The change is the n-th of all, or the first of a file whose path ends so. On torch alone: others cannot fork.
    """
    done = run_python(TRAINING, run, change, command, cwd=run.parent)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0
