"""Tests of kcrf.training.trainers.

Interrupted training: killed at any moment, a resumed run ends with the same weights, or an error says why not.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from conftest import few
from forks import run_python
from kills import heed_interruptions, killed

from kcrf import commands
from kcrf.backend import backend_name, keras
from kcrf.corpora import Sentence, load_mini
from kcrf.networks.tagging import build_network
from kcrf.runs import RunFolder, RunWriter, Settings
from kcrf.runs.lock import locked
from kcrf.taggers import load_tagger
from kcrf.training import resume_tagger, train_tagger, trainers

TINY = Settings(task="ner", width=8, depth=1, batch_size=16, epochs=4, learning_rate=0.02, seed=3, linear_weight=0.0)
CORPUS = load_mini("ner")
SHORT = [[s for s in part if 8 < len(s.text) <= 16] for part in (CORPUS.train, CORPUS.valid, CORPUS.test)]
PARTS = {"train": SHORT[0][:48], "valid": SHORT[1][:8], "test": SHORT[2][:4]}  # of one length: few graphs to compile


def weights(run):
    return load_tagger(run).model.get_weights()


def assert_same_weights(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    train_tagger(TINY, **PARTS, out=folder)
    return folder


class Stops(keras.callbacks.Callback):
    """Raises an error after this many steps."""

    def __init__(self, steps, error=KeyboardInterrupt):
        super().__init__()
        self._left, self._error = steps, error

    def on_train_batch_end(self, batch, logs=None):
        self._left -= 1
        if self._left == 0:
            raise self._error("stop")

    def report(self, row):
        """Does nothing."""


@pytest.mark.once
@pytest.mark.parametrize("steps", few(5, 1, 11, rest="slow"))
def test_a_run_that_was_stopped_goes_on_to_the_same_weights_log_and_scores(whole, tmp_path, steps):
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train_tagger(TINY, **PARTS, out=run, progress=Stops(steps))
    assert not (run / "scores.json").exists()
    with patch.object(RunFolder, "read_state", autospec=True, side_effect=RunFolder.read_state) as read:
        resume_tagger(run, **PARTS)
    assert read.call_count == (steps > 3)  # there is no state before the first epoch ends
    assert_same_weights(weights(run), weights(whole))
    for name in ("scores.json", "predictions.jsonl", "transitions.json", "vocabulary.json"):
        assert (run / name).read_bytes() == (whole / name).read_bytes(), name
    ours, theirs = (log_without_seconds(folder) for folder in (run, whole))
    assert ours == theirs and len(ours) == 5
    assert not (run / "state.npz").exists() and [p.name for p in tmp_path.iterdir()] == ["run"]


def log_without_seconds(run):
    rows = [line.split(",") for line in (run / "log.csv").read_text().splitlines()]
    at = rows[0].index("seconds")
    return [row[:at] + row[at + 1 :] for row in rows]


@pytest.mark.slow
def test_a_stopped_run_over_an_older_model_leaves_that_in_use_and_takes_its_place_when_resumed(whole, tmp_path):
    run = shutil.copytree(whole, tmp_path / "run")
    settings = replace(TINY, seed=4)
    with pytest.raises(KeyboardInterrupt):
        train_tagger(settings, **PARTS, out=run, progress=Stops(5), overwrite=True)
    assert_same_weights(weights(run), weights(whole))
    resume_tagger(run, **PARTS)
    assert json.loads((run / "config.json").read_text())["settings"]["seed"] == 4
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    train_tagger(settings, **PARTS, out=tmp_path / "other")
    assert_same_weights(weights(run), weights(tmp_path / "other"))


@pytest.mark.slow
def test_the_folder_may_be_a_link_and_what_else_is_in_it_or_beside_it_stays(whole, tmp_path):
    run, link = tmp_path / "big" / "run", tmp_path / "current"
    (tmp_path / "run.new").mkdir(), (tmp_path / "run.old").mkdir()
    train_tagger(replace(TINY, seed=4, epochs=1), **PARTS, out=run)
    (run / "new.corpus.txt").write_text("mine"), (run / "eval").mkdir()
    link.symlink_to(run)
    train_tagger(replace(TINY, head="softmax", constraints=None, epochs=1), **PARTS, out=link, overwrite=True)
    assert not (run / "transitions.json").exists()  # softmax has none
    train_tagger(TINY, **PARTS, out=link, overwrite=True)
    assert_same_weights(weights(run), weights(whole))
    assert link.is_symlink() and (run / "new.corpus.txt").read_text() == "mine" and (run / "eval").is_dir()
    assert {path.name for path in tmp_path.iterdir()} == {"big", "current", "run.new", "run.old"}


@pytest.mark.slow
def test_a_held_out_part_without_entities_keeps_the_last_epoch_and_says_so(tmp_path, capsys):
    class Remembers(Stops):
        def on_epoch_end(self, epoch, logs=None):
            self.weights = self.model.get_weights()

    progress, plain = Remembers(-1), [Sentence("", [])] * 300 + [Sentence(s.text, []) for s in PARTS["valid"]]
    train_tagger(TINY, PARTS["train"], plain, out=tmp_path / "run", progress=progress)
    assert_same_weights(weights(tmp_path / "run"), progress.weights)
    assert "valid: no entity, so no epoch is better than another: the last one is kept" in capsys.readouterr().err


@pytest.mark.slow
def test_training_goes_on_when_nobody_reads_its_progress(tmp_path):
    data = write_conll(tmp_path / "train.conll", PARTS["train"])
    command = [sys.executable, "-m", "kcrf", "train", "--task", "ner", "--train", data, "--out", tmp_path / "run"]
    command += ["--width", "8", "--depth", "1", "--epochs", "2"]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        process.stderr.close()
    assert process.returncode == 0 and (tmp_path / "run" / "scores.json").exists()


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.skipif(backend_name() == "tensorflow", reason="it is the backend")
def test_training_on_another_backend_does_not_import_tensorflow(tmp_path):
    code = "import sys; from test_resume import PARTS, TINY; from kcrf.training import train_tagger\n"
    code += "train_tagger(TINY, **PARTS, out='run'); print('tensorflow' in sys.modules)"
    done = run_python(code, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "False", done.stderr


@pytest.mark.once
def test_other_data_is_refused_and_so_is_a_run_that_is_complete_or_never_began(whole, tmp_path):
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train_tagger(TINY, **PARTS, out=run, progress=Stops(5))
    with pytest.raises(ValueError, match="the run began with. Received: train with other content"):
        resume_tagger(run, **{**PARTS, "train": PARTS["train"][:-1]})
    with pytest.raises(ValueError, match="needs the data that the run began with"):
        resume_tagger(run, PARTS["train"], PARTS["valid"])
    split = [replace(s, tokens=[(0, 1), (1, len(s.text))]) for s in PARTS["train"]]
    with pytest.raises(ValueError, match="the run began with. Received: tokens with other content"):
        resume_tagger(run, **{**PARTS, "train": split})
    with pytest.raises(FileNotFoundError, match="Received: one that is complete"):
        resume_tagger(whole, **PARTS)
    with pytest.raises(FileNotFoundError, match="Received: no such folder"):
        resume_tagger(tmp_path / "nowhere", **PARTS)


@pytest.mark.once
def test_a_run_of_another_backend_is_refused(tmp_path):
    run, own = tmp_path / "run", backend_name()
    other = "torch" if own == "jax" else "jax"
    with pytest.raises(KeyboardInterrupt):
        train_tagger(TINY, **PARTS, out=run, progress=Stops(5))
    config = json.loads((run / "config.json").read_text())
    assert config["backend"] == own
    (run / "config.json").write_text(json.dumps({**config, "backend": other}))
    message = f"the backend that the run began with, .*KERAS_BACKEND={other}. Received: {own}"
    with pytest.raises(ValueError, match=message):
        resume_tagger(run, **PARTS)


@pytest.mark.once
def test_an_error_before_the_first_state_leaves_nothing_and_ends_the_progress(tmp_path):
    class Watched(Stops):
        ends = 0

        def on_train_end(self, logs=None):
            self.ends += 1

    progress = Watched(2, RuntimeError)
    with pytest.raises(RuntimeError, match="stop"):
        train_tagger(TINY, **PARTS, out=tmp_path / "run", progress=progress)
    assert list(tmp_path.iterdir()) == [] and progress.ends == 1
    train_tagger(TINY, **PARTS, out=tmp_path / "run", progress=(progress := Watched(-1)))
    assert progress.ends == 1


@pytest.mark.slow
def test_a_damaged_state_is_told_and_without_it_the_run_starts_anew(whole, tmp_path):
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train_tagger(TINY, **PARTS, out=run, progress=Stops(5))
    (run / "state.npz").write_bytes((run / "state.npz").read_bytes()[:1000])
    with pytest.raises(ValueError, match="state.npz: cannot be read .* without the file, it starts again"):
        resume_tagger(run, **PARTS)
    (run / "state.npz").unlink()
    resume_tagger(run, **PARTS)
    assert_same_weights(weights(run), weights(whole))


@pytest.mark.slow
def test_early_stopping_is_remembered(tmp_path):
    settings = replace(TINY, task="cws", learning_rate=1e-9, crf_lr_multiplier=1.0, epochs=9, patience=2)
    words = load_mini()
    parts = {"train": words.train[:32], "valid": words.valid[:16], "test": words.test[:4]}
    with pytest.raises(KeyboardInterrupt):
        train_tagger(settings, **parts, out=tmp_path / "run", progress=Stops(5))
    resume_tagger(tmp_path / "run", **parts)
    assert len((tmp_path / "run" / "log.csv").read_text().splitlines()) == 4  # the first epoch is best; two more


def write_conll(path, sentences):
    lines = []
    for sentence in sentences:
        tags = ["O"] * len(sentence.text)
        for start, end, label in sentence.spans:
            tags[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
        lines += [f"{character}\t{tag}\n" for character, tag in zip(sentence.text, tags, strict=True)] + ["\n"]
    path.write_text("".join(lines), encoding="utf-8")
    return str(path)


def can_go_on(run):
    """Whether there is a run that was interrupted; one killed before it noted its settings begins anew."""
    try:
        return RunFolder.interrupted(run) is not None
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    """Another complete run, with a file of the user's in its folder."""
    folder = tmp_path_factory.mktemp("older") / "run"
    train_tagger(replace(TINY, seed=4, epochs=1), **PARTS, out=folder)
    (folder / "notes.txt").write_text("mine")
    return folder


@pytest.mark.once
@pytest.mark.parametrize(
    "first, second",
    few((1, 5), (2, 12), (9, 10), ("/state.npz", 1), rest="slow"),
)
def test_kill_9_at_any_change_of_a_file_changes_nothing(whole, tmp_path, first, second):
    """A run changes files some 20 times, the removal of its state the last; between two changes it only computes."""
    assert_killed_twice_is_as_good(whole, tmp_path, first, second)


@pytest.mark.once
@pytest.mark.parametrize(
    "first, second",
    few(
        ("/run", 2),
        (5, 9),
        ("new.scores.json", 5),
        (".run.new", 1),
        (".run.old/config.json", 2),
        (".run.old/scores.json", 3),
        rest="slow",
    ),
)
def test_kill_9_while_an_older_run_is_replaced_leaves_one_of_the_two(whole, older, tmp_path, first, second):
    """With the scores the new run is complete, and its folder takes the place of the old one."""
    run = shutil.copytree(older, tmp_path / "run")
    assert_killed_twice_is_as_good(whole, tmp_path, first, second, older)
    assert (run / "notes.txt").read_text() == "mine"


def assert_killed_twice_is_as_good(whole, tmp_path, first, second, older=None):
    """Trains, is killed, goes on (or begins anew, where nothing was begun), is killed, goes on to the end."""
    run = tmp_path / "run"
    assert killed(run, first, "train")
    if older is not None:
        assert_same_weights(weights(run), weights(older if can_go_on(run) else whole))
    if can_go_on(run) or older is None:
        killed(run, second, "resume" if can_go_on(run) else "train")
    if can_go_on(run):
        resume_tagger(run, **PARTS)
    assert_same_weights(weights(run), weights(whole))
    complete = RunFolder(run)
    for name in ("config.json", "log.csv", "scores.json", "predictions.jsonl", "transitions.json"):
        ours, theirs = complete.file(name).read_bytes(), (whole / name).read_bytes()
        assert ours == theirs or name == "log.csv", name  # which has the seconds
    with pytest.raises(FileNotFoundError, match="one that is complete"), RunWriter.resume(run):
        pass  # puts right what was left behind
    left = {path.name for path in run.iterdir()} - {"notes.txt"}
    assert left == {path.name for path in whole.iterdir()}
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of JAX; the child only starts another program
def test_an_interruption_from_the_keyboard_says_how_to_go_on(tmp_path):
    run, data = tmp_path / "run", write_conll(tmp_path / "train.conll", PARTS["train"])
    command = [sys.executable, "-m", "kcrf", "train", "--task", "ner", "--train", data, "--out", str(run)]
    command += ["--width", "8", "--depth", "1", "--epochs", "999"]

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interruptions) as process:
        while process.poll() is None and not (run / "state.npz").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        told = process.communicate()[1]
    assert process.returncode == 130, told
    assert told.splitlines()[-1] == f"kcrf train: stopped; continue with: kcrf train --resume {run}"


class Interrupts(Stops):
    """Presses Ctrl-C after so many steps, where a library swallows it, or raises something else for it."""

    def __init__(self, steps, instead):
        super().__init__(steps)
        self._instead, self.steps = instead, 0

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1
        try:
            super().on_train_batch_end(batch)
        except KeyboardInterrupt:
            self._press()

    def _press(self):
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException:
            if self._instead is not None:
                raise self._instead from None


@pytest.fixture
def handled():
    """Sets how Ctrl-C is heeded, for one test: a shell may have it ignored."""
    before = signal.getsignal(signal.SIGINT)
    yield lambda handler: signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.parametrize("steps", [5, 12], ids=["between", "last"])
@pytest.mark.parametrize("instead", [None, ValueError("structures differ")], ids=["nothing", "an error"])
def test_an_interruption_that_a_library_swallows_ends_training_all_the_same(whole, tmp_path, handled, steps, instead):
    run, interrupts = tmp_path / "run", Interrupts(steps, instead)
    handled(signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        train_tagger(TINY, **PARTS, out=run, progress=interrupts)
    assert interrupts.steps == steps and not (run / "scores.json").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    resume_tagger(run, **PARTS)
    assert_same_weights(weights(run), weights(whole))


@pytest.mark.once
def test_an_interruption_swallowed_before_the_first_step_counts_too(tmp_path, handled, monkeypatch):
    def build(*arguments, **options):
        Interrupts(0, None)._press()
        return build_network(*arguments, **options)

    handled(signal.default_int_handler)
    monkeypatch.setattr(trainers, "build_network", build)
    with pytest.raises(KeyboardInterrupt):
        train_tagger(TINY, **PARTS, out=tmp_path / "run")
    assert not (tmp_path / "run" / "log.csv").exists()


@pytest.mark.slow
def test_a_handler_of_ones_own_stays_and_training_runs_beside_the_main_thread(tmp_path, handled):
    pressed = []
    handled(lambda *_: pressed.append(True))
    train_tagger(TINY, **PARTS, out=tmp_path / "own", progress=Interrupts(5, None))
    assert pressed == [True]
    handled(signal.default_int_handler)
    thread = threading.Thread(target=train_tagger, args=(TINY, *PARTS.values(), tmp_path / "beside"))
    thread.start()
    thread.join()
    assert_same_weights(weights(tmp_path / "own"), weights(tmp_path / "beside"))


@pytest.mark.once
def test_a_second_process_is_refused_and_the_lock_of_a_dead_one_does_not_count(tmp_path):
    run = tmp_path / "run"
    code = f"from kcrf.runs.lock import locked\nwith locked({str(run)!r}):\n    print('locked', flush=True); input()"
    command = [sys.executable, "-c", f"import sys\nsys.modules['keras'] = None\n{code}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "locked\n"
        told = f"another process trains into this folder. Received: process {holder.pid}"
        with pytest.raises(BlockingIOError, match=told):
            train_tagger(TINY, **PARTS, out=run)
        with pytest.raises(BlockingIOError, match=told):
            resume_tagger(run, **PARTS)
        holder.kill()
    with locked(run):
        assert (run / ".lock").read_text() == str(os.getpid())
    assert list(run.iterdir()) == []


@pytest.mark.once
def test_resume_takes_no_other_option(tmp_path, capsys):
    assert commands.main(["train", "--resume", str(tmp_path), "--epochs", "3", "--out", "x"]) == 2
    assert "--resume continues with the settings of the run. Received: also --epochs, --out" in capsys.readouterr().err
    assert commands.main(["train", "--resume", str(tmp_path), "--column", "0", "--repair"]) == 2
    assert "Received: also --column, --repair" in capsys.readouterr().err
    assert commands.main(["train", "--epochs", "3"]) == 2
    assert "needs --train and --out, or --resume RUN_DIR" in capsys.readouterr().err


@pytest.mark.once
def test_what_the_state_keeps_is_what_it_gives_back(tmp_path):
    with RunWriter.create(tmp_path / "run") as folder:
        arrays = [np.arange(6, dtype="float32").reshape(2, 3), np.zeros(0, "uint8"), np.array(7, "int64")]
        folder.save_state({"rows": [{"epoch": 1}]}, arrays)
        progress, found = folder.read_state()
    assert progress == {"rows": [{"epoch": 1}]}
    for ours, theirs in zip(found, arrays, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
