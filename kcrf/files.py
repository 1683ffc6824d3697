"""Writes files completely or not at all, and reads and writes JSON."""

import hashlib
import json
import os
import re
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["HAS_LOCKS", "json_line", "read_json", "sha256_of", "try_lock", "write_aside", "write_lines"]

HAS_LOCKS = fcntl is not None  # of files
# Of a folder: weights and vocabularies, and the texts and entities of brat.
_HASHED = (".safetensors", ".bin", ".h5", ".linear.npz", ".index", ".data-00000-of-00001", ".txt", ".ann")
_SURROGATE = re.compile("[\ud800-\udfff]")


def sha256_of(path):
    """The SHA-256 of a file; of a folder, that of its weights and its vocabulary, or of its texts."""
    if not path.is_dir():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    hashes = [f"{file.name} {sha256_of(file)}" for file in sorted(path.iterdir()) if file.name.endswith(_HASHED)]
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()


def try_lock(file):
    """Locks an open file until it is closed, or its process ends. Returns whether it is free for this process.

    Without `HAS_LOCKS`, locks nothing and returns True.
    """
    if HAS_LOCKS:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def write_aside(path, write, room=0, aside=None):
    """Writes a file in another place and renames it when it is complete. After an error, `path` is as it was.

    Args:
        path: A `pathlib.Path`.
        write: A function that receives a path and writes the file.
        room: The number of bytes that must be free on the disk before `write` is called, if `write` would crash on a
            full disk. Defaults to 0.
        aside: The path of the incomplete file, on the same disk; a file there is lost. Defaults to `.new.NAME` beside
            `path`.

    Raises:
        OSError: The file cannot be written. `filename` is its name.
    """
    if path.exists() and not path.is_file():
        return write(path)  # a device or a pipe, as /dev/stdout
    path = path.resolve()  # a symbolic link stays one: its target is replaced
    aside = aside or path.with_name(f".new.{path.name}")
    try:
        if room:
            _fill(aside, room)
        write(aside)
        os.replace(aside, path)
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(aside), aside):
            error.filename = str(path)
        raise
    finally:
        aside.unlink(missing_ok=True)


def _fill(path, size, chunk=1 << 20):
    with open(path, "wb") as file:
        for start in range(0, size, chunk):
            file.write(bytes(min(chunk, size - start)))


def write_lines(path, lines):
    """Writes strings as the lines of a UTF-8 file, with `write_aside`. Lone surrogates are kept."""
    text = "".join(f"{line}\n" for line in lines)
    write_aside(Path(path), lambda aside: aside.write_bytes(text.encode("utf-8", "surrogatepass")))


def json_line(value):
    """A value as JSON on one line. Only lone surrogates, which UTF-8 cannot encode, force it to escape characters."""
    line = json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if _SURROGATE.search(line) else line


def read_json(path):
    """The object in a JSON file, a dict. Lone surrogates, which vocabularies may hold, are accepted.

    Raises:
        ValueError: The file holds no JSON object; names the file.
    """
    try:
        value = json.loads(Path(path).read_bytes().decode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise ValueError(f"{path}: needs a JSON object. Received: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path}: needs a JSON object. Received: a {type(value).__name__}")
    return value
