"""Python code in a process of its own that need not import Keras: a fork of one that has imported everything."""

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from kcrf.backend import backend_name

# What `run_python` runs: the command line, or a script with its arguments.
KCRF = "import runpy; runpy.run_module('kcrf', run_name='__main__', alter_sys=True)"
SCRIPT = """
import os, runpy, sys
sys.argv[:] = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""

SERVER = """
import json, os, sys, tempfile, traceback
exec(sys.argv[1])

def run(code, arguments, folder, environment):
    os.chdir(folder)
    os.environ.update(environment)
    tempfile.tempdir = None  # read again
    sys.argv[1:], sys.path[0] = arguments, folder
    try:
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as stopped:
        return stopped.code or 0
    return 0

for line in sys.stdin:
    request = json.loads(line)
    process = os.fork()
    if process == 0:
        status = 1
        try:
            for number, (path, mode) in enumerate(request.pop("files")):
                os.dup2(os.open(path, mode), number)
            status = run(**request)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


def run_python(code, *arguments, cwd, stdin="", **environment):
    """Runs `python -c code *arguments`; returns a `subprocess.CompletedProcess` with its output as text."""
    arguments, environment = list(map(str, arguments)), {**os.environ, "PYTHONPATH": _paths(), **environment}
    if backend_name() == "torch":
        return fork(_torch(), code, *arguments, cwd=cwd, stdin=stdin, **environment)
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, input=stdin, capture_output=True, text=True)


def fork_server(imports, python=sys.executable, **settings):
    """Starts a process that waits for `fork`. What it imports must leave it with one thread: others die in a fork."""
    process = subprocess.Popen(
        [python, "-c", SERVER, imports],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **settings,
    )
    atexit.register(process.communicate)
    return process


def fork(server, code, *arguments, cwd, stdin="", **environment):
    """What `python -c code *arguments` does, in a fork of a server; returns a `subprocess.CompletedProcess`."""
    with tempfile.TemporaryDirectory() as name:
        paths = [Path(name) / stream for stream in ("in", "out", "err")]
        paths[0].write_bytes(stdin.encode())
        files = [(str(path), os.O_RDONLY if n == 0 else os.O_WRONLY | os.O_CREAT) for n, path in enumerate(paths)]
        request = {"code": code, "arguments": arguments, "folder": str(cwd), "environment": environment, "files": files}
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        status = int(server.stdout.readline())
        return subprocess.CompletedProcess(code, status, *(path.read_bytes().decode() for path in paths[1:]))


def _paths():
    """The folders of kcrf and of the modules of tests that the code of a child process imports, as PYTHONPATH."""
    tests = Path(__file__).parent
    folders = [tests, tests.parent, tests / "training", tests / "pretraining", os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(map(str, folders))


@cache
def _torch():
    imports = "import pytest, kcrf.commands, kcrf.training, kcrf.taggers, kcrf.models, kcrf.optimizers"
    return fork_server(imports, env={**os.environ, "PYTHONPATH": _paths(), "OMP_NUM_THREADS": "1"})
