"""Writes files completely or not at all, and reads JSON and arrays from files that may be damaged or hostile."""

import hashlib
import io
import json
import math
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:  # `kcrf --help` imports this file, and needs no NumPy
    import numpy as np

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

HAS_LOCKS = fcntl is not None  # of files
_MOST_GROWTH, _ROOM = 64, 1 << 26  # a file of arrays may unpack to so many times its size, and so many bytes more
_SURROGATE = re.compile("[\ud800-\udfff]")


def sha256_of(path: Path) -> str:
    """Hashes a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def try_lock(file: IO[Any]) -> bool:
    """Locks an open file until it is closed, or its process ends. Returns whether it is free for this process.

    Without `HAS_LOCKS`, locks nothing and returns True.
    """
    if HAS_LOCKS:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def write_aside(path: Path, write: Callable[[Path], object], room: int = 0, aside: Path | None = None) -> None:
    """Writes a file in another place and renames it when it is complete. After an error, `path` is as it was."""
    if path.exists() and not path.is_file():
        write(path)  # a device or a pipe, as /dev/stdout
        return
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


def _fill(path: Path, size: int, chunk: int = 1 << 20) -> None:
    with open(path, "wb") as file:
        for start in range(0, size, chunk):
            file.write(bytes(min(chunk, size - start)))


def write_lines(path: str | os.PathLike[str], lines: Iterable[str]) -> None:
    """Writes strings as the lines of a UTF-8 file, with `write_aside`. Lone surrogates are kept."""
    text = "".join(f"{line}\n" for line in lines)
    write_aside(Path(path), lambda aside: aside.write_bytes(text.encode("utf-8", "surrogatepass")))


def shortened(items: Iterable[Any], most: int = 10, sign: str = ", ") -> str:
    """Items for a message, such as 3, 5 and 1 more."""
    names = list(map(str, items))
    return sign.join(names[:most]) + f" and {len(names) - most} more" * (len(names) > most)


def json_line(value: Any) -> str:
    """A value as JSON on one line. Only lone surrogates, which UTF-8 cannot encode, force it to escape characters."""
    line = json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if _SURROGATE.search(line) else line


@contextmanager
def folder_aside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A context with a temporary folder next to a path, for files that another library writes and that are renamed."""
    folder = Path(path).absolute().parent
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".writing-") as name:
        yield Path(name)


def existing_file(path: Path) -> Path:
    """Returns the path if the file exists, else raises FileNotFoundError."""
    try:
        exists = path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        exists = False
    if not exists:
        raise FileNotFoundError(f"{path}: no such file, expected a part of the checkpoint")
    return path


def parse_json(where: object, text: str, kind: type = dict, line: int | None = None) -> Any:
    """Parses JSON, which begins in this line of a file."""
    needed = "JSON" if kind is object else f"a JSON {'object' if kind is dict else kind.__name__}"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = where if line is None else f"{where}:{line + getattr(error, 'lineno', 1) - 1}"
        raise ValueError(f"{where}: needs {needed}. Received: {error}") from None
    if not isinstance(value, kind):
        raise ValueError(f"{where}{'' if line is None else f':{line}'}: needs {needed}. Received: {text[:80]}")
    return value


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The object in a JSON file, a dict. Lone surrogates, which vocabularies may hold, are accepted."""
    try:
        text = Path(path).read_bytes().decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: needs a JSON object. Received: {error}") from None
    return parse_json(path, text)


def finite_number(where: object, name: str, value: Any, above: float | None = None) -> float:
    """Checks a number that was read from the file of a model."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or above is not None and value <= above:
        needed = "a finite number" + ("" if above is None else f" above {above:g}")
        raise ValueError(f"{where}: needs {needed} as {name}. Received: {value!r:.40}")
    return float(value)


def read_arrays(path: str | os.PathLike[str]) -> "dict[str, np.ndarray]":
    """The arrays of a file of `numpy.savez`, by name. Sizes are checked before memory is allocated."""
    most = _MOST_GROWTH * Path(path).stat().st_size + _ROOM
    try:
        with zipfile.ZipFile(path) as archive:
            records = archive.infolist()
            if sum(record.file_size for record in records) > most:
                raise ValueError(f"unpacks to more than {most:,} bytes")
            return {record.filename.removesuffix(".npy"): _parse_array(archive.read(record)) for record in records}
    except Exception as error:  # errors of zipfile, zlib, NumPy and the parser of its headers
        raise ValueError(f"{path}: cannot be read as a file of arrays ({error})") from None


def _parse_array(data: bytes) -> "np.ndarray":
    """The array in the bytes of a `.npy` file."""
    import numpy as np

    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, is_fortran, dtype = read_header(file)
    start = file.tell()
    if dtype.hasobject or min(shape, default=0) < 0 or prod(shape) * dtype.itemsize != len(data) - start:
        raise ValueError(f"{len(data) - start} bytes for an array of {dtype} with the shape {shape}")
    return np.frombuffer(data, dtype, offset=start).reshape(shape, order="F" if is_fortran else "C").copy()
