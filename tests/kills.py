"""Kills training before a change of a file; each time a fork of one process that has imported everything."""

import atexit
import json
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

FORKS = """
import json, os, signal, sys
from test_resume import PARTS, TINY
from kcrf.training import resume_tagger, train_tagger

def run(folder, change, command):
    left, ending = (int(change), "") if change.isdigit() else (1, change)

    def count(event, arguments):
        nonlocal left
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
    return 0

answers = os.dup(1)
os.dup2(2, 1)
for line in sys.stdin:
    process = os.fork()
    if process == 0:
        status = 1
        try:
            status = run(*json.loads(line))
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    os.write(answers, b"%d\\n" % status)
"""


def killed(run, change, command):
    """Trains, or resumes, in a process that kills itself before a change in the folder; whether it came to that.

    The change is the n-th of all, or the first of a file whose path ends so. On torch alone: TensorFlow cannot fork.
    """
    forks = _forks()
    forks.stdin.write(json.dumps(list(map(str, (run, change, command)))) + "\n")
    forks.stdin.flush()
    status = int(forks.stdout.readline())
    assert status in (0, -signal.SIGKILL)
    return status != 0


@cache
def _forks():
    paths = [str(Path(__file__).parent), str(Path(__file__).parent / "training"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    environment["OMP_NUM_THREADS"] = "1"  # threads of a pool do not survive a fork
    command = [sys.executable, "-c", FORKS]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    return process
