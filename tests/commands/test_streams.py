"""kcrf.commands: Long input: order, workers, resuming after kill -9, memory, progress."""

import io
import json
import os
import pickle
import pty
import signal
import subprocess
import sys
import time
from argparse import Namespace
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from configs import config_of, stored
from conftest import few
from kills import heed_interruptions
from small_runs import RUNS

from kcrf import commands
from kcrf.commands import outputs, streams
from kcrf.corpora import load_mini
from kcrf.runs import RunWriter, Settings
from kcrf.taggers import WordSegmenter
from kcrf.taggers.open_model import built_in_segmenter

BACKENDS = ["torch"]
ROOT = Path(__file__).parents[2]
WORDS = RUNS / "words"
pytestmark = pytest.mark.usefixtures("small_runs")

# A command that turns letters into capitals, as slowly as its option says, and no model.
SLOW = """
import os, sys, time
from argparse import Namespace
from kcrf.commands import outputs, streams

def capitals(options):
    def process(texts, on_batch):
        time.sleep(float(os.environ["PAUSE"]))
        on_batch(sum(map(len, texts)))
        return [text.upper() for text in texts]
    return process

if __name__ == "__main__":
    name, out, workers, *more = sys.argv[1:]
    options = Namespace(
        command="capitals", model=__file__, opened=None, file=name, out=out if out != "-" else None,
        resume="resume" in more,
        overwrite="overwrite" in more,
        workers=int(workers), seed=more.count("other"),
    )
    streams._ITEMS, streams._SECONDS = 100, 0.0
    with open(name, "rb") as file:
        lines = streams.Lines(file, name)
        streams.write_results(lines, lines, capitals, options)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW, encoding="utf-8")
    (tmp_path / "text.txt").write_text("".join(f"line {i} 好\n" for i in range(3000)), encoding="utf-8")
    return tmp_path


def start(folder, name, out, pause, *arguments):
    """The process of a command that pauses so many seconds for each 100 lines."""
    command = [sys.executable, "slow.py", name, out, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PAUSE": str(pause)}
    options = {"stderr": subprocess.PIPE, "text": True, "preexec_fn": heed_interruptions}
    return subprocess.Popen(command, cwd=folder, env=environment, **options)


def end(process):
    """Kills a process."""
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()  # workers hold it too: its end may never come


def run(folder, *arguments):
    process = start(folder, *arguments)
    return process.communicate()[1], process.returncode


EXPECTED = "".join(f"LINE {i} 好\n" for i in range(3000))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_results_keep_their_order_and_go_on_after_kill_9(folder, workers):
    process = start(folder, "text.txt", "out.txt", 0.5, workers)
    out, note = folder / "out.txt.part", folder / "out.txt.part.json"
    children = lambda: Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()  # noqa: E731
    wait_until(lambda: out.exists() and out.stat().st_size > 3000)
    workers_of_it = children() if workers > 1 else []
    end(process)
    before = out.read_text(encoding="utf-8")
    assert EXPECTED.startswith(before) and 0 < len(before) < len(EXPECTED) and note.exists()
    wait_until(lambda: not any(Path(f"/proc/{child}").exists() for child in workers_of_it))  # none goes on for ever
    out.write_bytes(out.read_bytes() + b"LINE 99")  # a kill may cut a line
    error, status = run(folder, "text.txt", "out.txt", 0, workers)
    assert status == 1 and "--resume continues it" in error and out.read_text(encoding="utf-8").startswith(before)
    error, status = run(folder, "text.txt", "out.txt", 0, workers, "resume")
    assert status == 0, error
    assert (folder / "out.txt").read_text(encoding="utf-8") == EXPECTED and not note.exists() and not out.exists()
    first = float(error.split("%")[0].split()[-1])
    assert first > 100 * before.count("\n") / 3000 - 1  # what was done is not done again


def wait_until(holds, seconds=30):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_was_interrupted_goes_on_with_the_same_options_alone(folder):
    process, part = start(folder, "text.txt", "out.txt", 0.5, 1), folder / "out.txt.part"
    wait_until(lambda: part.exists() and part.stat().st_size > 0)
    end(process)
    before = part.read_bytes()
    (folder / "short.txt").write_text("line\n", encoding="utf-8")
    (folder / "changed.txt").write_text("".join(f"line {i + 1} 好\n" for i in range(3000)), encoding="utf-8")
    for arguments, reason in (
        (
            ("text.txt", "out.txt", 0, 1, "resume", "other"),
            "options, input and model as before. Received: another seed",
        ),
        (
            ("short.txt", "out.txt", 0, 1, "resume"),
            "options, input and model as before. Received: another file",
        ),
        (
            ("changed.txt", "out.txt", 0, 1, "resume"),
            "options, input and model as before. Received: another file",
        ),
        (
            ("text.txt", "short.txt", 0, 1, "resume"),
            "short.txt: the file exists: it is complete, without short",
        ),
    ):
        error, status = run(folder, *arguments)
        assert status == 1 and reason in error
    assert part.read_bytes() == before and not (folder / "out.txt").exists()
    (folder / "text.txt").write_text("line\n", encoding="utf-8")
    error, status = run(folder, "text.txt", "out.txt", 0, 1, "resume")
    assert status == 1 and "the same options, input and model as before. Received: another input" in error


@pytest.mark.slow
def test_two_commands_do_not_write_to_one_file(folder):
    process = start(folder, "text.txt", "out.txt", 0.2, 1)
    wait_until(lambda: (folder / "out.txt.part").exists() and (folder / "out.txt.part").stat().st_size > 0)
    error, status = run(folder, "text.txt", "out.txt", 0, 1, "resume")
    assert status == 1 and "BlockingIOError: out.txt.part: another process writes to this file" in error
    assert process.communicate() and process.returncode == 0
    assert (folder / "out.txt").read_text(encoding="utf-8") == EXPECTED
    assert not (folder / "out.txt.part").exists()


def test_ctrl_c_names_the_option_that_continues(folder):
    process = start(folder, "text.txt", "out.txt", 0.5, 1)
    wait_until(lambda: (folder / "out.txt.part").exists() and (folder / "out.txt.part").stat().st_size > 0)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt: continue with the same command and --resume" in process.communicate()[1]
    assert run(folder, "text.txt", "out.txt", 0, 1, "resume")[1] == 0
    assert (folder / "out.txt").read_text(encoding="utf-8") == EXPECTED


@pytest.mark.slow
def test_a_worker_that_is_killed_ends_the_command_with_a_reason(folder):
    process = start(folder, "text.txt", "out.txt", 0.3, 2)
    wait_until(lambda: (folder / "out.txt.part").exists() and (folder / "out.txt.part").stat().st_size > 0)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    worker = next(c for c in children if b"spawn_main" in Path(f"/proc/{c}/cmdline").read_bytes())
    os.kill(int(worker), signal.SIGKILL)
    error = process.communicate(timeout=30)[1]
    assert process.returncode == 1 and "a worker was ended from outside" in error and "--resume continues" in error
    assert EXPECTED.startswith((folder / "out.txt.part").read_text(encoding="utf-8"))
    assert run(folder, "text.txt", "out.txt", 0, 2, "resume")[1] == 0
    assert (folder / "out.txt").read_text(encoding="utf-8") == EXPECTED


# Not `resource.getrusage`: it counts what the process that started this one uses.
MEMORY = """
import re, runpy, sys
sys.argv[1:] = ["large.txt", "/dev/null", "1"]
runpy.run_path("slow.py", run_name="__main__")
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux' /proc")
def test_memory_does_not_grow_with_the_input(folder):
    used = []
    for lines in (2_000, 800_000):
        with open(folder / "large.txt", "w", encoding="utf-8") as file:
            file.writelines(f"a line with some text, number {i}\n" for i in range(lines))
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PAUSE": "0"}
        done = subprocess.run(
            [sys.executable, "-c", MEMORY], cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
        used.append(int(done.stdout))
    assert (folder / "large.txt").stat().st_size > 27_000_000
    assert 5 < used[0] and used[1] < used[0] + 8  # MiB


def test_progress_is_a_line_with_share_rate_and_time_left(folder):
    error, status = run(folder, "text.txt", "out.txt", 0.01, 1)
    rows = error.splitlines()
    assert status == 0 and len(rows) == 30
    assert rows[-1].startswith("kcrf capitals: 100.0%, ") and rows[-1].endswith(" 0:00:00 left")
    assert "characters/s" in rows[0] and float(rows[0].split()[2].rstrip("%,")) == pytest.approx(100 / 30, abs=1)


def test_progress_is_a_bar_on_a_terminal(folder):
    ours, theirs = pty.openpty()
    command = [sys.executable, "slow.py", "text.txt", "out.txt", "1"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PAUSE": "0.01", "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(command, cwd=folder, env=environment, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while more := os.read(ours, 1 << 16):
            shown += more
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    assert process.wait() == 0
    assert b"capitals" in shown and b"100%" in shown and b"characters/s" in shown


def test_results_in_a_terminal_have_lines_of_their_own(tmp_path):
    (tmp_path / "text.txt").write_text("今天天气真好\n" * 3, encoding="utf-8")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "kcrf", "segment", "text.txt"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # the end of a terminal
        while data := os.read(ours, 4096):
            shown += data
    os.close(ours)
    assert process.wait() == 0 and shown.decode() == "今天 天气 真好\r\n" * 3


def test_long_texts_make_short_chunks():
    lines = streams.Lines(io.BytesIO(), "none")
    assert [len(chunk) for chunk, _ in streams._chunks(["x" * 150_000] * 5, lines)] == [2, 2, 1]
    assert [len(chunk) for chunk, _ in streams._chunks("abc" * 700, lines)] == [1000, 1000, 100]


# -- the commands


def segment(capfdbinary, *arguments):
    assert commands.main(["segment", "--model", str(WORDS), *map(str, arguments)]) == 0
    return capfdbinary.readouterr().out.decode()


def test_segment_writes_json(tmp_path, capfdbinary):
    texts = ["今天 天气真好", "", "\u2028好"]
    (tmp_path / "text.txt").write_text("\n".join(texts), encoding="utf-8")
    segmenter = WordSegmenter(WORDS)
    rows = [json.loads(line) for line in segment(capfdbinary, "--json", tmp_path / "text.txt").split("\n")[:-1]]
    assert rows == [{"text": text, "words": segmenter.segment(text)} for text in texts]
    rows = segment(capfdbinary, "--json", "--probabilities", tmp_path / "text.txt").split("\n")[:-1]
    for row, text in zip(map(json.loads, rows), texts, strict=True):
        (found,) = segmenter([text])
        assert row["words"] == [span.text for span in found]
        assert row["probabilities"] == pytest.approx([span.probability for span in found], abs=1e-4)
    rows = segment(capfdbinary, "--json", "--k-best", 2, tmp_path / "text.txt").split("\n")[:-1]
    for row, text in zip(map(json.loads, rows), texts, strict=True):
        expected = [[span.text for span in spans] for spans, _ in segmenter.k_best(text, 2)]
        assert [way["words"] for way in row["alternatives"]] == expected


@pytest.mark.parametrize("options", few([], ["--k-best", "2"], rest="slow"), ids=["words", "blocks"])
def test_segment_continues_what_it_wrote(options, tmp_path, capfdbinary):
    text = "".join("".join(words) + "\n" for words in load_mini().test[:30]) + "\n\n好\n"
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    whole, out = segment(capfdbinary, *options, tmp_path / "text.txt"), tmp_path / "out.txt"
    assert segment(capfdbinary, *options, tmp_path / "text.txt", "--out", out) == ""
    assert out.read_bytes().decode() == whole
    arguments = ["segment", "--model", str(WORDS), *options, str(tmp_path / "text.txt"), "--out", str(out)]
    parsed = commands.main.__globals__["_parser"]().parse_args(arguments)
    parsed.words = {}
    for size in (0, 1, 100, 1000, len(whole.encode()) - 1, len(whole.encode())):
        out.rename(tmp_path / "out.txt.part")
        (tmp_path / "out.txt.part").write_bytes(whole.encode()[:size])
        (tmp_path / "out.txt.part.json").write_text(json.dumps(outputs._about(parsed)), encoding="utf-8")
        assert commands.main([*arguments, "--resume"]) == 0
        assert out.read_bytes().decode() == whole


def interrupt(progress, count, position=None):
    if position is not None:  # a chunk is written
        raise KeyboardInterrupt


def test_segment_with_a_user_dictionary_continues_with_the_same_one_alone(tmp_path, monkeypatch, capsys):
    (tmp_path / "text.txt").write_text("今天天气真好\n今天天气好\n", encoding="utf-8")
    (tmp_path / "words").write_text("今天 3 t\n天气\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(streams, "_ITEMS", 1)
    command = ["segment", "--model", str(WORDS), "--words", "words", "text.txt", "--out"]
    assert commands.main([*command, "whole"]) == 0
    with monkeypatch.context() as patch:
        patch.setattr(streams.Progress, "update", interrupt)
        assert commands.main([*command, "out", "--resume"]) == 130
    (tmp_path / "other").write_text("天气\n", encoding="utf-8")
    assert commands.main([*command, "out", "--resume", "--words", "other"]) == 2
    assert "Received: another words" in capsys.readouterr().err
    assert (tmp_path / "out.part").read_text(encoding="utf-8").count("\n") == 1
    assert commands.main([*command, "out", "--resume"]) == 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.slow
def test_workers_of_a_command_write_what_it_writes_alone(tmp_path, capfdbinary):
    text = "".join("".join(words) + "\n" for words in load_mini().test) * 10
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    alone = segment(capfdbinary, tmp_path / "text.txt")
    command = [sys.executable, "-m", "kcrf", "segment", "--model", WORDS, "text.txt", "--workers", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(list(map(str, command)), cwd=tmp_path, env=environment, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"") and done.stdout.decode() == alone


@pytest.mark.parametrize("command", ["segment", "tag", "classify"])
def test_what_a_worker_is_given_can_be_sent_to_it(command, monkeypatch):
    given = []
    of_task = {"segment": "cws", "tag": "ner", "classify": "classify"}

    @contextmanager
    def checked_input(options):
        options.model_task, options.opened = of_task[command], Namespace(read_config=lambda: config)
        yield streams.Lines(io.BytesIO(), "texts")

    config = Namespace(config=config_of(Settings()))
    monkeypatch.setattr(f"kcrf.commands.{command}.checked_input", checked_input)
    monkeypatch.setattr(f"kcrf.commands.{command}.write_results", lambda *arguments, **more: given.append(arguments))
    assert commands.main([command, "--model", "run", "--workers", "2", os.devnull]) == 0
    _, _, make, options, *_ = given[0]
    options.opened = None  # as `write_results` does
    assert pickle.loads(pickle.dumps((make, options))) == (make, options)


@pytest.mark.parametrize("given", ["file", "link", "standard input"])
def test_the_input_is_not_overwritten(given, tmp_path, monkeypatch, capsys):
    path, link = tmp_path / "text.txt", tmp_path / "link.txt"
    path.write_text("今天天气真好\n", encoding="utf-8")
    link.symlink_to(path)
    out = link if given == "link" else path
    with open(path, encoding="utf-8") as standard_input:
        monkeypatch.setattr(sys, "stdin", standard_input)
        arguments = [] if given == "standard input" else [str(path)]
        assert commands.main(["segment", "--model", str(WORDS), "--out", str(out), *arguments]) == 2
    assert f"--out needs another file than the input. Received: {out}" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == "今天天气真好\n"
    assert list(tmp_path.iterdir()) == [path, link] or list(tmp_path.iterdir()) == [link, path]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has it")
def test_a_full_disk_is_reported_with_the_name_of_the_output(tmp_path, capsys):
    (tmp_path / "text.txt").write_text("今天\n", encoding="utf-8")
    command = ["segment", "--model", str(built_in_segmenter()), "--out", "/dev/full", str(tmp_path / "text.txt")]
    assert commands.main(command) == 2
    assert capsys.readouterr().err == "kcrf segment: /dev/full: no space left on device\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has it")
def test_a_full_disk_behind_standard_output_is_named(tmp_path):
    (tmp_path / "text.txt").write_text("北京", encoding="utf-8")
    (tmp_path / "names.tsv").write_text("北京\tLOC", encoding="utf-8")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kcrf", "label", "--dictionary", "names.tsv", "text.txt"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (done.returncode, done.stderr) == (2, "kcrf label: standard output: no space left on device\n")


def test_a_missing_folder_and_a_closed_output_are_reported_by_name(tmp_path, monkeypatch, capsys):
    (tmp_path / "text.txt").write_text("今天\n", encoding="utf-8")
    command = ["segment", "--model", str(WORDS), str(tmp_path / "text.txt")]
    assert commands.main([*command, "--out", str(tmp_path / "none" / "words.txt")]) == 2
    assert "none/words.txt: needs a folder that exists" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdout", None)
    assert commands.main(command) == 2
    assert "needs --out FILE, or standard output. Received: neither" in capsys.readouterr().err


def test_an_export_into_a_missing_folder_is_refused_before_tensorflow_is_imported(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "kcrf.export", None)
    out = tmp_path / "none" / "words.onnx"
    with RunWriter.create(tmp_path / "run") as folder:
        folder.save_config(stored(Settings(), "torch"))
        folder.save_scores({})
    assert commands.main(["export", str(tmp_path / "run"), "--out", str(out)]) == 2
    assert capsys.readouterr().err == f"kcrf export: {out}: needs a folder that exists\n"
