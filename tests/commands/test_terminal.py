"""kcrf.commands.tag, kcrf.commands.completion: what a terminal shows: texts with marks, and completed words."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_runs import RUNS

from kcrf.commands.main import main
from kcrf.taggers import EntityRecognizer

BACKENDS = ["torch"]
ROOT = Path(__file__).parents[2]
TEXT = "中国队在上海战胜了日本队"


@pytest.mark.usefixtures("small_runs")
def test_a_terminal_shows_marks_and_a_pipe_gets_json(tmp_path, capsys):
    (tmp_path / "text.txt").write_text(f"{TEXT}\n", encoding="utf-8")
    command = ["tag", "--model", str(RUNS / "entities"), str(tmp_path / "text.txt")]
    spans = EntityRecognizer(RUNS / "entities").recognize(TEXT)
    marked = TEXT
    for span in reversed(spans):
        marked = f"{marked[: span.start]}[{span.text} {span.label}]{marked[span.end :]}"
    terminal, end = os.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-m", "kcrf", *command], stdout=end, stderr=subprocess.PIPE, env=environment)
    assert done.returncode == 0, done.stderr
    assert os.read(terminal, 10_000).decode().strip() == marked
    assert main([*command, "--output", "marks"]) == 0 and capsys.readouterr().out == f"{marked}\n"
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["text"] == TEXT


@pytest.mark.parametrize(
    ("words", "completed"), [(["tr"], "train"), (["help", "inf"], "info"), (["train", "--ep"], "--epochs")]
)
def test_the_script_completes_commands_and_options(tmp_path, capsys, words, completed):
    assert main(["completion"]) == 0
    script = capsys.readouterr().out
    script += f'\nCOMP_WORDS=(kcrf {" ".join(words)}); COMP_CWORD={len(words)}; _kcrf; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == (f"{completed}\n", "", 0)
