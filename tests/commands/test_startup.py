"""kcrf.commands.quiet: What a command imports: nothing of Keras unless it computes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_runs import RUNS

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("small_runs")

CHILD = """
import contextlib, io, json, sys
from kcrf.commands import main

found = []
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(arguments)
        except SystemExit as stopped:
            status = stopped.code
    heavy = sorted({"keras", "tf_keras", "tensorflow", "torch", "jax"} & sys.modules.keys())
    found.append([status, out.getvalue() + err.getvalue(), heavy, "numpy" in sys.modules])
print(json.dumps(found))
"""


def run(folder, *commands, **environment):
    """Runs commands one after the other in one interpreter: `(status, output, heavy modules, numpy or not)` of each."""
    command = [sys.executable, "-c", CHILD, json.dumps([list(map(str, arguments)) for arguments in commands])]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "words.txt").write_text("今天 好\n明天 好\n", encoding="utf-8")
    (tmp_path / "tags.conll").write_text("李 B-PER\n雷 I-PER\n来 O\n", encoding="utf-8")
    (tmp_path / "text.txt").write_text("今天 天气 真 好\n明天 也 好\n", encoding="utf-8")
    (tmp_path / "empty.txt").write_text("")
    return tmp_path


def test_help_and_version_import_nothing_beside_python(folder):
    commands = ["--help"], ["--version"], ["demo", "--help"], ["segment", "--help"], ["score", "--help"]
    for status, output, heavy, numpy in run(folder, *commands):
        assert (status, heavy, numpy) == (0, [], False) and output


def test_what_does_not_compute_imports_no_keras(folder):
    words, tags, run_dir = folder / "words.txt", folder / "tags.conll", RUNS / "words"
    commands = [
        ["train", "--help"],
        ["download", "--help"],
        ["score", "--gold", words, "--pred", words],
        ["score", "--task", "ner", "--gold", tags, "--pred", tags, "--json"],
        ["score", "--pred", RUNS / "entities" / "predictions.jsonl"],
        ["augment", words, "--out", folder / "more.txt", "--copies", "2"],
        ["report", run_dir, "--out", folder / "report.html"],
    ]
    for arguments, (status, output, heavy, _) in zip(commands, run(folder, *commands), strict=True):
        assert (status, heavy) == (0, []) and output, arguments


REFUSED = [
    ("nonsense", "needs one of demo, download"),
    ("train", "needs --train and --out, or --resume RUN_DIR"),
    ("train --epochs x", "argument --epochs: invalid int value: 'x'"),
    ("train --train words.txt --out x --nonsense 3", "unrecognized arguments: --nonsense\n"),
    ("train --learnig-rate 3", "unrecognized arguments: --learnig-rate. Did you mean --learning-rate?"),
    ("train --lr 3", "unrecognized arguments: --lr. Did you mean --learning-rate?"),
    ("train --train_batch_size 3", "Did you mean --batch-size?"),
    ("pretrain --max_seq_length 3", "Did you mean --length?"),
    ("segment --lr 3", "unrecognized arguments: --lr\n"),
    ("train --gpu 0", "The backend chooses the device, a GPU if it finds one; the environment variable CUDA_VISIBLE_"),
    ("tag --modle x text.txt", "kcrf tag: error: unrecognized arguments: --modle. Did you mean --model?"),
    ("tag text.txt -- --modle", "kcrf tag: error: the following arguments are required: --model"),
    ("segment --modl=x words.txt", "kcrf segment: error: unrecognized arguments: --modl=x. Did you mean --model?"),
    ("train --train words.txt --out x --epochs 0", "--epochs must be positive. Received: 0"),
    ("train --train words.txt --out x --mixout 0.5", "--mixout needs --bert"),
    ("train --train words.txt --out x --task ner --encoder none", "--encoder is one of"),
    ("train --train words.txt --out x --crf-lr-multiplier fast", "needs a number or auto. Received: fast"),
    ("train --train missing.txt --out x", "missing.txt: no such file"),
    ("train --train . --out x", "needs a file. Received: a folder"),
    ("train --train empty.txt --out x", "empty.txt: needs at least one line of words"),
    ("train --train words.txt --valid missing.txt --out x", "missing.txt: no such file"),
    ("train --train tags.conll --out x", "which --task ner and `kcrf.corpora.read_entities` read"),
    ("train --task ner --train text.txt --out x", "text.txt: needs a token and its tag on a line"),
    ("train --task ner --train text.txt --out x", "which --task cws and `kcrf.corpora.read_segmented` read"),
    ("train --train words.txt --out {words}", "needs --overwrite to replace a finished run"),
    ("train --resume {words}", "needs a run that was interrupted. Received: one that is complete"),
    ("train --resume {words} --epochs 3", "Received: also --epochs"),
    (
        "train --train words.txt --out x --augment 2 --augment-by mentions",
        "are synonyms, join, cut. Received: mentions",
    ),
    ("train --train words.txt --out x --augment 2 --synonyms missing.txt", "missing.txt: no such file"),
    ("train --train words.txt --out x --augment-share 0.5", "--augment-share needs --augment"),
    ("train --train words.txt --out x --teacher missing", "config.json: no such file"),
    ("train --train words.txt --out x --teacher-temperature 2", "--teacher-temperature needs --teacher"),
    (
        "train --train words.txt --out x --teacher {words} --teacher-temperature 1e-300",
        "--teacher-temperature must be at least 0.0001. Received: 1e-300",
    ),
    ("train --train words.txt --out x --unlabeled words.txt", "--unlabeled needs --teacher RUN_DIR"),
    ("train --train words.txt --out x --teacher {words} --unlabeled empty.txt", "empty.txt: needs one text per line"),
    ("augment words.txt", "the following arguments are required: --out"),
    ("augment words.txt --out x --copies 0", "--copies must be at least 1. Received: 0"),
    ("augment words.txt --out x --by synonyms", "--synonyms or --synonym-vectors are needed by the operation synonyms"),
    (
        "augment words.txt --out x --translate cat",
        "--translate needs --task classify: a translation does not keep words",
    ),
    ("pretrain --text words.txt --out x --lenght 3", "Did you mean --length?"),
    ("tag words.txt", "the following arguments are required: --model"),
    ("segment --model missing words.txt", "config.json: no such file"),
    ("segment --model {words} missing.txt", "missing.txt: no such file"),
    ("segment --model {words} .", ".: needs a file. Received: a folder"),
    ("segment --model {words} --k-best 0 words.txt", "--k-best must be at least 1. Received: 0"),
    ("segment --model {words} --batch-size 0 words.txt", "--batch-size must be at least 1. Received: 0"),
    ("segment --model {entities} words.txt", "needs a run of --task cws or cws-pos. Received: a run of --task ner"),
    ("tag --model {words} words.txt", "needs a run of --task ner or pos. Received: a run of --task cws"),
    ("tag --model {entities} --min-probability 1.5 words.txt", "--min-probability must be above 0 and below 1"),
    ("segment --model {words} --workers 0 words.txt", "--workers must be at least 1. Received: 0"),
    ("segment --model {words} --resume words.txt", "--resume needs --out FILE"),
    ("segment --model {words} https://example.org/a.txt", "https://example.org/a.txt: needs a file on this machine"),
    ("segment --model {words} --resume --overwrite --out x words.txt", "not allowed with argument --resume"),
    ("serve missing", "config.json: no such file"),
    ("serve {words} {words}", "Each model needs its own name, as in NAME=RUN. Received: 'words' twice"),
    ("serve a/b={words}", "A name needs 1 to 64 letters"),
    ("serve {words} --port 70000", "--port must be from 0 to 65535"),
    ("serve {words} --max-texts 0", "--max-texts must be at least 1"),
    ("score --pred words.txt", "needs --gold GOLD"),
    ("score --gold words.txt --pred missing.txt", "missing.txt: no such file"),
    ("score --task ner --pred {words}/predictions.jsonl", "Received: {words}/predictions.jsonl of --task cws"),
    ("report missing", "config.json: no such file"),
    ("download nonsense x", "Received: nonsense"),
]


@pytest.mark.once
def test_every_mistake_is_a_sentence_and_imports_no_keras(folder):
    runs = {"words": RUNS / "words", "entities": RUNS / "entities"}
    refused = [(text.format(**runs).split(), message.format(**runs)) for text, message in REFUSED]
    found = run(folder, *(arguments for arguments, _ in refused))
    for (arguments, message), (status, output, heavy, _) in zip(refused, found, strict=True):
        assert (status, heavy) == (2, []), arguments
        assert message in output and "Traceback" not in output, output
        assert output.splitlines()[-1].startswith("kcrf") and "[Errno" not in output
    assert {path.name for path in folder.iterdir()} == {"words.txt", "tags.conll", "text.txt", "empty.txt"}


def test_an_import_of_keras_shows_what_is_not_a_note_of_tensorflow(capfd):
    from kcrf.commands.quiet import quiet_import

    with quiet_import():
        os.write(2, b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n")
        os.write(2, b"I0000 00:00:1795382480.811179    5014 port.cc:153] oneDNN custom operations are on.\n")
        print("a warning of Python", file=sys.stderr)
    with pytest.raises(ImportError), quiet_import():
        os.write(2, b"E0000 an error\n")
        raise ImportError
    assert capfd.readouterr().err == "a warning of Python\nE0000 an error\n"


@pytest.mark.slow
def test_a_command_that_computes_prints_its_result_and_nothing_of_its_libraries(folder):
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    command = [sys.executable, "-m", "kcrf", "segment", "--model", str(RUNS / "words"), "text.txt"]
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.replace(" ", "") for line in done.stdout.splitlines()] == ["今天天气真好", "明天也好"]


USE = """
import os, sys
from kcrf.commands import main
status = main(sys.argv[1:])
late = sorted({"matplotlib", "jax"} & sys.modules.keys() - {os.environ["KERAS_BACKEND"]})
import matplotlib.figure
sys.exit(f"status {status}, imported {late}" if status or late else 0)
"""


@pytest.mark.slow
@pytest.mark.once
def test_using_a_model_imports_no_packages_of_other_backends_and_of_pictures(tmp_path):
    (tmp_path / "text.txt").write_text("今天\n", encoding="utf-8")
    command = [sys.executable, "-c", USE, "segment", "--model", str(RUNS / "words"), "text.txt"]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
