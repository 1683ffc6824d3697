"""kcrf.files: a file is written completely, or stays as it was."""

import errno
import os

import pytest

from kcrf.files import write_aside

BACKENDS = ["torch"]


def half_written(error):
    def write(path):
        path.write_bytes(b"ha")
        raise error

    return write


@pytest.mark.parametrize("arguments", [(errno.ENOSPC, "No space left on device"), ()])
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_write_that_fails_half_way_leaves_the_old_file_and_nothing_else(arguments, old, tmp_path):
    path, error = tmp_path / "file", OSError(*arguments) if arguments else KeyboardInterrupt()
    if old is not None:
        path.write_bytes(old)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(type(error)) as caught:
        write_aside(path, half_written(error), room=3)
    assert caught.value is error and getattr(error, "filename", str(path)) == str(path)  # which the message names
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_files_with_other_names_are_not_touched_and_what_a_killed_process_left_is_replaced(tmp_path):
    (tmp_path / "new.file").write_text("mine")
    (tmp_path / ".new.file").write_text("half of it, and longer than the whole")
    write_aside(tmp_path / "file", lambda path: path.write_text("all"))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"new.file": "mine", "file": "all"}
    with pytest.raises(FileNotFoundError) as caught:
        write_aside(tmp_path / "none" / "file", lambda path: path.write_text("all"))
    assert caught.value.filename == str(tmp_path / "none" / "file")


def test_a_file_written_aside_keeps_links_and_pipes_as_they_are(tmp_path):
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    (tmp_path / "file").write_text("old")
    link.symlink_to(tmp_path / "file")
    write_aside(link, lambda path: path.write_text("new"))
    assert link.is_symlink() and (tmp_path / "file").read_text() == "new"
    os.mkfifo(pipe)
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as end:
        write_aside(pipe, lambda path: path.write_text("new"))
        assert end.read() == "new" and pipe.is_fifo()
