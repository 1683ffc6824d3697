"""The example that segments a folder with Ray Data: what it writes, and what remains of it after SIGKILL."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from kcrf.commands import main
from kcrf.corpora import load_mini

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"process (\d+) has loaded the model")
FILES, LINES = 12, 1200

BACKENDS = ["torch"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray: pip install 'ray[data]'"),
]


@pytest.fixture
def texts(tmp_path):
    """A folder of texts, with a folder in it, and files that are easy to get wrong."""
    sentences = ["".join(words) for words in load_mini().train]
    folder = tmp_path / "texts"
    (folder / "more").mkdir(parents=True)
    for number in range(FILES):
        lines = [sentences[(number * LINES + i) % len(sentences)] for i in range(LINES)]
        path = folder / ("more" if number % 3 == 0 else ".") / f"{number}.txt"
        path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    (folder / "empty.txt").write_bytes(b"")
    (folder / "odd.txt").write_bytes("\ufeff一行\u2028还是一行\r\n\n 两  个 Python3\n没有换行".encode())
    return folder


@pytest.fixture
def start(texts):
    """A function that starts the example; returns its process, whose output is in a file `texts.log`."""
    with tempfile.TemporaryDirectory(prefix="ray") as temporary:  # Ray's paths must be short
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "HOME": str(texts.parent),  # Ray keeps a token there
            "RAY_TMPDIR": temporary,
            "RAY_DEDUP_LOGS": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
        }

        def start_example():
            command = [sys.executable, ROOT / "examples" / "segment_corpus_ray.py", texts, texts.parent / "words"]
            with open(texts.with_suffix(".log"), "wb") as log:
                return subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)

        yield start_example


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.txt")}


def plain(texts):
    """What `kcrf segment` writes for each file."""
    found = {}
    for path in texts.rglob("*.txt"):
        main(["segment", str(path), "--out", str(texts.parent / "out")])
        found[str(path.relative_to(texts))] = (texts.parent / "out").read_bytes()
    return found


def wait_for(condition, process, seconds=120):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.02)
    return found


def test_what_was_killed_is_done_again_and_what_was_done_is_not(texts, start):
    words, log = texts.parent / "words", texts.with_suffix(".log")

    def written():
        return [path for path in words.rglob("*.txt") if not path.name.startswith(".new.")]

    def whole():
        return [path for path in written() if path.name[0].isdigit()]

    # The script itself is killed.
    process = start()
    wait_for(whole, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(5)  # Ray ends its processes by itself
    before = {path: path.stat().st_mtime_ns for path in written()}
    assert 0 < len(before) < FILES

    # It goes on, and now one of its workers is killed.
    process = start()
    wait_for(lambda: len(whole()) > len(before) and len(LOADED.findall(log.read_text("utf-8"))) == 2, process)
    killed = int(LOADED.findall(log.read_text("utf-8"))[0])
    missing = FILES + 2 - len(written())
    os.kill(killed, signal.SIGKILL)
    assert process.wait(timeout=300) == 0, log.read_text("utf-8")
    assert missing >= 2  # it had something to do
    output = log.read_text("utf-8")
    assert f"{FILES + 2} files, {len(before)} of them done before" in output
    assert len(set(LOADED.findall(output))) == len(LOADED.findall(output)) == 3  # two workers, and one in its place
    assert all(path.stat().st_mtime_ns == written for path, written in before.items())
    assert contents(words) == plain(texts)

    # Nothing is left to do.
    process = start()
    assert process.wait(timeout=60) == 0
    assert f"{FILES + 2} files, {FILES + 2} of them done before" in log.read_text("utf-8")
    assert not LOADED.search(log.read_text("utf-8"))
