"""Kills training, or other long work, before a change of a file; lets a process heed Ctrl-C."""

import signal

from forks import run_python

COUNTING = """
import os, signal, sys

folder, change, command = sys.argv[1:]
beside = os.path.join(os.path.dirname(folder), "." + os.path.basename(folder))  # a run that replaces another
left, ending = (int(change), "") if change.isdigit() else (1, change)

def count(event, arguments):
    global left
    path = str(arguments[0]) if event in ("os.rename", "os.remove") else ""
    if path.startswith((folder, beside)) and path.endswith(ending) and os.path.exists(path):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
"""
TRAINING = """
from test_resume import PARTS, TINY
from kcrf.training import resume_tagger, train_tagger

if command == "resume":
    resume_tagger(folder, **PARTS)
else:
    train_tagger(TINY, **PARTS, out=folder, overwrite=True)
"""


def heed_interruptions():
    """For `preexec_fn`: a process that a shell starts in the background, and its children, would ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def killed(run, change, command, code=TRAINING):
    """Trains, or resumes, in a process that kills itself before a change in the folder; whether it came to that.

    The change is the n-th of all, or the first of a file whose path ends so. On torch alone: others cannot fork. Other
    code than that of training finds `folder` and `command`, "train" or "resume".
    """
    done = run_python(COUNTING + code, run, change, command, cwd=run.parent)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0
