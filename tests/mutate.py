"""Applies the breakages of mutants.toml one by one to a copy of the repository and tells which ones no test notices.

    make mutants                                        all of them
    .venv/bin/python tests/mutate.py --only ID [ID ...]  some of them, with the output of the tests

Exits with 1 if one survives. Keras and torch are imported once: each mutant runs in a fork of this process, which has
not imported kcrf.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MUTANTS = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))["mutant"]
LIMIT = 600  # seconds; a mutant that runs for ever is noticed


def mutated(mutant, text):
    """The text of a file with the breakage in it."""
    if text.count(mutant["old"]) != 1:
        raise ValueError(
            f"mutants.toml: {mutant['id']} needs `old` exactly once in kcrf/{mutant['file']}. "
            f"Received: {text.count(mutant['old'])} times {mutant['old']!r}"
        )
    return text.replace(mutant["old"], mutant["new"])


def verdict(mutant, folder, shown):
    """Runs the tests of a mutant on the copy in `folder`: "killed", "survived" or why neither can be said."""
    process = os.fork()
    if process == 0:
        try:
            os._exit((_run_anew if "backend" in mutant else _run)(mutant, folder, shown))
        finally:  # an error must not unwind into the parent's code
            traceback.print_exc()
            os._exit(3)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return {0: "survived", 1: "killed", -signal.SIGALRM: "killed"}.get(status, f"broken: pytest exits with {status}")


def _run(mutant, folder, shown):
    """Runs pytest in the copy; its exit code."""
    import pytest

    signal.alarm(LIMIT)
    os.chdir(folder)
    sys.path[:] = [str(folder), *(path for path in sys.path if Path(path or ".").resolve() != ROOT / "tests")]
    os.environ["PYTHONPATH"] = str(folder)
    if not shown:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1), os.dup2(null, 2)
    code = pytest.main(_arguments(mutant))
    sys.stdout.flush()
    return code


def _run_anew(mutant, folder, shown):
    """Runs pytest with another backend of Keras, which a fork cannot change; its exit code."""
    signal.alarm(LIMIT)
    environment = {**os.environ, "KERAS_BACKEND": mutant["backend"], "PYTHONPATH": str(folder)}
    output = None if shown else subprocess.DEVNULL
    command = [sys.executable, "-m", "pytest", *_arguments(mutant)]
    return subprocess.run(command, cwd=folder, env=environment, stdout=output, stderr=output).returncode


def _arguments(mutant):
    """The arguments of pytest."""
    options = ["-q", "-x", "--all", "-p", "no:cacheprovider", *(["-k", mutant["match"]] if "match" in mutant else [])]
    return [*options, *(f"tests/{path}" for path in mutant["tests"])]


def copy_of_repository(folder):
    """Copies what git knows, and new files that it does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.decode().split("\0")
    for name in filter(lambda name: (ROOT / name).is_file(), names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="ID", choices=[mutant["id"] for mutant in MUTANTS])
    only = parser.parse_args().only
    os.environ.update(KERAS_BACKEND="torch", OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    sys.dont_write_bytecode = True  # a file may change twice within a second
    import keras  # noqa: F401
    import pytest  # noqa: F401

    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        copy_of_repository(folder)
        for mutant in MUTANTS:
            if only and mutant["id"] not in only:
                continue
            path, began = folder / "kcrf" / mutant["file"], time.monotonic()
            text = path.read_text(encoding="utf-8")
            path.write_text(mutated(mutant, text), encoding="utf-8")
            found[mutant["id"]] = verdict(mutant, folder, shown=bool(only))
            path.write_text(text, encoding="utf-8")
            print(f"{mutant['id']}: {found[mutant['id']]} in {time.monotonic() - began:.0f} s", flush=True)
    alive = [name for name, said in found.items() if said != "killed"]
    print(f"{len(found) - len(alive)} of {len(found)} mutants killed", *(f"  not: {name}" for name in alive), sep="\n")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
