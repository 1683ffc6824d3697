"""kcrf.files: a file is written completely or stays as it was; damaged and hostile files are refused by name."""

import errno
import os
import zipfile

import numpy as np
import pytest

from kcrf.files import parse_json, read_arrays, read_json, write_aside

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


@pytest.mark.parametrize(
    "text", ["{", "[1]", "3", '{"a":' * 100_000, "[" * 100_000, "1" * 5000, '{"a": ' + "9" * 5000 + "}", ""]
)
def test_what_is_no_json_object_is_refused_by_name(text, tmp_path):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError, match="x.json: needs a JSON object. Received: "):
        read_json(tmp_path / "x.json")
    with pytest.raises(ValueError, match="x:3: needs a JSON object. Received: "):
        parse_json("x:3", text)


def test_json_that_is_no_text_is_refused_by_name(tmp_path):
    (tmp_path / "x.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ValueError, match="x.json: needs a JSON object. Received: .*0xff"):
        read_json(tmp_path / "x.json")


ARRAYS = {"a": np.arange(6, dtype="int16").reshape(2, 3), "b": np.asfortranarray(np.eye(3)), "c": np.array(2.5)}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_are_read_as_numpy_reads_them(save, tmp_path):
    save(tmp_path / "x.npz", **ARRAYS)
    arrays = read_arrays(tmp_path / "x.npz")
    assert arrays.keys() == ARRAYS.keys() and all(np.array_equal(arrays[n], a) for n, a in ARRAYS.items())
    assert all(arrays[n].dtype == a.dtype and arrays[n].flags.writeable for n, a in ARRAYS.items())


def npy(header):
    """The bytes of a `.npy` file with this header and 8 bytes of data."""
    text = f"{header}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(8)


HOSTILE = {
    "an array larger than the file": npy({"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)}),
    "a negative size": npy({"descr": "<f8", "fortran_order": False, "shape": (-1,)}),
    "a Python object": npy({"descr": "|O", "fortran_order": False, "shape": (1,)}),
    "no header": b"\x93NUMPY\x01\x00",
    "a deep header": npy("[" * 9000),
    "no array": b"hello",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_arrays_are_refused_by_name(kind, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("a.npy", HOSTILE[kind])
    with pytest.raises(ValueError, match="x.npz: cannot be read as a file of arrays"):
        read_arrays(tmp_path / "x.npz")


def test_a_small_file_of_arrays_cannot_fill_memory(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.npy", "w") as file:
        for _ in range(80):
            file.write(bytes(1 << 20))
    assert (tmp_path / "x.npz").stat().st_size < 1 << 18
    with pytest.raises(ValueError, match="x.npz: cannot be read as a file of arrays .unpacks to more than"):
        read_arrays(tmp_path / "x.npz")
