"""Tests of kcrf.commands.main.

No command replaces a file or a run that it did not leave unfinished itself, unless --overwrite is given.
"""

import json
import sys

import pytest
from configs import stored
from small_runs import RUNS

from kcrf.commands import main
from kcrf.runs import RunWriter, Settings

BACKENDS = ["torch"]
WORDS, PEOPLE = RUNS / "words", RUNS / "entities"
pytestmark = pytest.mark.usefixtures("small_runs")
COMMANDS = {
    "segment": f"segment --model {WORDS} text.txt",
    "tag": f"tag --model {PEOPLE} text.txt",
    "augment": "augment words.txt",
    "export": f"export {WORDS}",
    "report": f"report {WORDS}",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "text.txt").write_text("今天天气真好\n", encoding="utf-8")
    (tmp_path / "words.txt").write_text("今天 天气 真好\n我们 去\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_exists_is_not_replaced(folder, monkeypatch, capsys, command):
    monkeypatch.setitem(sys.modules, "kcrf.export", None)  # refused before the work
    out = folder / "precious.onnx"
    for more in ([], ["--resume"] if command in ("segment", "tag") else []):
        out.write_text("precious")
        assert main([*COMMANDS[command].split(), "--out", "precious.onnx", *more]) == 2
        assert out.read_text() == "precious" and not (folder / "precious.onnx.part").exists()
        error = capsys.readouterr().err
        assert (
            error.startswith(f"kcrf {command}: precious.onnx: the file exists") and "--overwrite replaces it" in error
        )


@pytest.mark.parametrize("command", ["segment", "augment", "report"])
def test_overwrite_replaces_it(folder, command):
    (folder / "out").write_text("precious")
    assert main([*COMMANDS[command].split(), "--out", "out", "--overwrite"]) == 0
    (folder / "other").unlink(missing_ok=True)
    assert main([*COMMANDS[command].split(), "--out", "other"]) == 0
    assert (folder / "out").read_text(encoding="utf-8") == (folder / "other").read_text(encoding="utf-8") != "precious"


def test_an_unfinished_output_is_resumed_or_replaced_and_nothing_else(folder, capsys):
    command = [*COMMANDS["segment"].split(), "--out", "out"]
    assert main([*command, "--resume"]) == 0  # there is nothing to resume: it begins
    whole = (folder / "out").read_text(encoding="utf-8")
    assert main([*command, "--resume"]) == 0  # complete
    assert "out: complete; nothing is left to resume" in capsys.readouterr().err
    assert (folder / "out").read_text(encoding="utf-8") == whole and not [*folder.glob("out.*")]
    (folder / "out").write_text(whole.partition("\n")[2], encoding="utf-8")  # of another input
    assert main([*command, "--resume"]) == 2
    assert "out: the file exists: it is complete, without out.part, and the input has more" in capsys.readouterr().err
    (folder / "out").write_text(whole, encoding="utf-8")
    (folder / "out").rename(folder / "out.part")
    (folder / "out.part.json").write_text(json.dumps({"command": "tag"}))
    assert main(command) == 2
    assert "--resume continues it, --overwrite begins anew" in capsys.readouterr().err
    assert main([*command, "--resume"]) == 2  # of another command
    assert "needs the same options, input and model as before" in capsys.readouterr().err
    assert main([*command, "--overwrite"]) == 0
    assert (folder / "out").read_text(encoding="utf-8") == whole and not [*folder.glob("out.*")]


def test_a_command_that_wrote_no_result_leaves_no_file(folder, capsys):
    (folder / "text.txt").write_bytes("今天\n".encode("gbk"))
    for _ in range(2):
        assert main([*COMMANDS["segment"].split(), "--out", "out"]) == 2
        assert "needs UTF-8 text" in capsys.readouterr().err
    assert not [*folder.glob("out*")]


def test_a_command_that_wrote_no_result_leaves_what_it_would_have_replaced(folder, monkeypatch, capsys):
    out = folder / "out"
    out.write_text("precious")
    command = [*COMMANDS["segment"].split(), "--out", "out", "--overwrite"]

    def interrupted(options):
        assert main(command) == 2 and "another process writes to this file" in capsys.readouterr().err
        raise KeyboardInterrupt  # while the model is loaded

    monkeypatch.setattr("kcrf.commands.segment._segmenting", interrupted)
    assert main(command) == 130 and capsys.readouterr().err == "kcrf segment: stopped\n"
    assert out.read_text() == "precious" and not [*folder.glob("out.*")]
    (folder / "text.txt").write_bytes("今天\n".encode("gbk"))
    assert main(command) == 2 and "needs UTF-8 text" in capsys.readouterr().err
    assert out.read_text() == "precious" and not [*folder.glob("out.*")]
    (folder / "text.txt").write_bytes(b"")
    assert main(command) == 0
    assert out.read_bytes() == b"" and not [*folder.glob("out.*")]


def test_an_interrupted_run_is_not_replaced_in_silence(folder, monkeypatch, capsys):
    with pytest.raises(KeyboardInterrupt), RunWriter.create("run") as run:
        run.save_config(stored(Settings(), "torch"))
        raise KeyboardInterrupt
    monkeypatch.setitem(sys.modules, "kcrf.training", None)
    before = {path.name: path.read_bytes() for path in (folder / "run").iterdir()}
    assert main(["train", "--train", "words.txt", "--out", "run"]) == 2
    assert capsys.readouterr().err == (
        "kcrf train: run: has an unfinished run. `kcrf train --resume run` resumes it; --overwrite replaces it\n"
    )
    assert {path.name: path.read_bytes() for path in (folder / "run").iterdir()} == before
    assert main(["train", "--train", "words.txt", "--out", "run", "--overwrite"]) == 2  # as far as kcrf.training
    assert "kcrf.training" in capsys.readouterr().err


def test_use_of_a_run_changes_nothing_in_its_folder(folder, capsys):
    """So a read-only volume is enough. The time of a folder also tells of files that were written and removed."""
    (folder / "train.txt").write_text("今天 天气 真好 。\n我们 去 看 书 。\n" * 20, encoding="utf-8")
    assert main("train --train train.txt --encoder linear --epochs 1 --out run".split()) == 0
    before = {path: path.stat().st_mtime_ns for path in (folder / "run", *(folder / "run").iterdir())}
    for command in ("segment --model run text.txt", "report run --out a.html", "export run --out a.npz"):
        assert main(command.split()) == 0, capsys.readouterr().err
    after = {path: path.stat().st_mtime_ns for path in (folder / "run", *(folder / "run").iterdir())}
    assert after == before
