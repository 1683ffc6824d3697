"""kcrf.runs: the lock of a run folder, the folders that are refused, and the protection of complete runs."""

import json
import os
import subprocess
import sys

import pytest

from kcrf.runs import DataFacts, RunFolder, RunWriter, Settings, resolve
from kcrf.runs.config_file import StoredRun
from kcrf.runs.lock import LOCK, locked

BACKENDS = ["torch"]


def stored(seed):
    user = Settings(seed=seed)
    return StoredRun(user, resolve(user, DataFacts()), {}, "torch")


def complete(path, seed=0):
    """Writes a complete run without a model."""
    with RunWriter.create(path, overwrite=True) as folder:
        folder.save_config(stored(seed))
        folder.save_scores({"valid": {"f": 1.0}})


def seed_of(path):
    return RunFolder(path).read_settings().seed


def test_a_run_writes_beside_its_folder_only_where_it_replaces_another(tmp_path, monkeypatch):
    """The parent may be read-only, as that of a volume in a container is."""
    (tmp_path / "run").mkdir()
    with RunWriter.create(tmp_path / "run"):
        assert os.listdir(tmp_path) == ["run"] and os.listdir(tmp_path / "run") == [LOCK]
    complete(tmp_path / "run", seed=1)
    with RunWriter.create(tmp_path / "run", overwrite=True):
        assert sorted(os.listdir(tmp_path)) == [".run.new", "run"] and (tmp_path / "run" / LOCK).exists()
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)  # root may write anywhere
    with pytest.raises(PermissionError, match="run: the folder around a run must be writable to replace the run"):
        complete(tmp_path / "run", seed=2)
    assert seed_of(tmp_path / "run") == 1 and os.listdir(tmp_path) == ["run"]


def test_a_new_run_that_was_interrupted_does_not_outlive_the_run_that_it_was_to_replace(tmp_path):
    complete(tmp_path / "run", seed=1)
    with pytest.raises(KeyboardInterrupt), RunWriter.create(tmp_path / "run", overwrite=True) as folder:
        folder.save_config(stored(2))
        folder.save_state({}, [])
        raise KeyboardInterrupt
    for name in ("config.json", "scores.json"):
        os.remove(tmp_path / "run" / name)
    complete(tmp_path / "run", seed=3)
    with pytest.raises(FileNotFoundError, match="one that is complete"):
        RunFolder.interrupted(tmp_path / "run")
    assert os.listdir(tmp_path) == ["run"]


def test_an_empty_folder_is_removed_only_if_it_was_made_for_the_run(tmp_path):
    (tmp_path / "mine").mkdir()
    for name in ("mine", "new"):
        with pytest.raises(RuntimeError), RunWriter.create(tmp_path / name):
            raise RuntimeError
    assert os.listdir(tmp_path) == ["mine"] and os.listdir(tmp_path / "mine") == []


def test_a_lock_that_a_killed_process_left_counts_as_an_empty_folder(tmp_path):
    code = (
        f"from kcrf.runs.lock import locked\nwith locked({str(tmp_path)!r}):\n    print('locked', flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(BlockingIOError, match=f"Received: process {holder.pid}"), RunWriter.create(tmp_path):
            pass
        holder.kill()
    assert os.listdir(tmp_path) == [LOCK]
    complete(tmp_path, seed=3)
    assert seed_of(tmp_path) == 3 and sorted(os.listdir(tmp_path)) == ["config.json", "scores.json"]


def test_a_lock_waits_for_nobody_and_can_be_taken_again(tmp_path):
    for _ in range(2):
        with locked(tmp_path / "run"):
            assert (tmp_path / "run" / LOCK).read_text() == str(os.getpid())
        assert os.listdir(tmp_path) == []


def test_a_folder_with_other_files_is_refused_and_stays_as_it_was(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(FileExistsError, match="which is not a run folder; it was not touched"):
        complete(tmp_path)
    with (
        pytest.raises(FileNotFoundError, match="interrupted. Received: no such folder"),
        RunWriter.resume(tmp_path / "no"),
    ):
        pass
    assert os.listdir(tmp_path) == ["config.json"]


def test_a_complete_run_is_replaced_only_if_asked_for_and_only_by_a_complete_one(tmp_path):
    run = tmp_path / "run"
    complete(run, seed=1)
    with pytest.raises(FileExistsError, match="needs overwrite=True to replace a complete run"), RunWriter.create(run):
        pass
    with pytest.raises(RuntimeError), RunWriter.create(run, overwrite=True) as folder:
        folder.save_config(stored(2))
        raise RuntimeError
    assert seed_of(run) == 1
    complete(run, seed=2)
    assert seed_of(run) == 2


def test_an_interrupted_run_may_be_begun_anew(tmp_path):
    with pytest.raises(KeyboardInterrupt), RunWriter.create(tmp_path / "run") as folder:
        folder.save_config(stored(1))
        raise KeyboardInterrupt
    with RunWriter.create(tmp_path / "run") as folder:
        folder.save_config(stored(2))
        folder.save_scores({})
    assert seed_of(tmp_path / "run") == 2
