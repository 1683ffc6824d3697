"""kcrf.corpora.downloads against a real server on this machine: good files, wrong ones, connections that end early."""

import hashlib
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kcrf import corpora
from kcrf.corpora import download, downloads
from kcrf.corpora.downloads import CORPORA, PublicCorpus

BACKENDS = ["torch"]

DATA = bytes(range(256)) * 800  # 204,800 bytes: several pieces
DIGEST = hashlib.sha256(DATA).hexdigest()
TRAINING = (
    "\ufeff“  人们  常  说  生活  是  一  部  教科书  \r\n１２月  ３１日  ，\r\n".encode()
)  # as pku_training.utf8 is


class Server(BaseHTTPRequestHandler):
    """/good and /training are whole, /cut ends after half of its Content-Length, /silent sends none; no others."""

    asked = []

    def do_GET(self):
        self.asked.append(self.path)
        if self.path not in ("/good", "/cut", "/silent", "/training"):
            self.send_error(404)
            return
        data = TRAINING if self.path == "/training" else DATA
        self.send_response(200)
        if self.path != "/silent":
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if self.path == "/cut" else data)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    """Of a server on this machine, which no proxy stands before."""
    with pytest.MonkeyPatch.context() as environment, ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        environment.setenv("no_proxy", "127.0.0.1")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def publish(address, monkeypatch):
    """Makes "tiny" a public corpus of files on the server, each `(place, SHA-256)`."""
    Server.asked.clear()

    def put(*files, url=address):
        lines = "\n".join(f"{place} {digest} {place}.txt" for place, digest in files)
        monkeypatch.setitem(CORPORA, "tiny", PublicCorpus("a test", url, lines))

    return put


def names(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_files_come_whole(publish, tmp_path):
    publish(("good", DIGEST), ("silent", DIGEST))
    paths = download("tiny", tmp_path / "new" / "folder")
    assert paths == [tmp_path / "new" / "folder" / name for name in ("good.txt", "silent.txt")]
    assert [path.read_bytes() for path in paths] == [DATA, DATA] and names(tmp_path / "new" / "folder") == [
        "good.txt",
        "silent.txt",
    ]


def test_a_file_that_is_there_is_kept_and_not_asked_for(publish, tmp_path):
    publish(("good", DIGEST))
    (tmp_path / "good.txt").write_bytes(DATA)
    assert download("tiny", tmp_path) == [tmp_path / "good.txt"] and Server.asked == []


def test_a_file_of_the_name_with_other_contents_is_not_touched(publish, tmp_path):
    publish(("good", DIGEST))
    (tmp_path / "good.txt").write_bytes(b"mine")
    with pytest.raises(ValueError, match=f"good.txt: needs the SHA-256 {DIGEST}. Received: "):
        download("tiny", tmp_path)
    assert (tmp_path / "good.txt").read_bytes() == b"mine" and Server.asked == []


@pytest.mark.parametrize("place", ["good", "silent"])
def test_what_hashes_otherwise_is_refused_and_leaves_nothing(publish, tmp_path, place):
    publish((place, "0" * 64))
    with pytest.raises(ValueError, match=f"/{place}: needs the SHA-256 0{{64}}. Received: {DIGEST}"):
        download("tiny", tmp_path)
    assert names(tmp_path) == []


def test_a_connection_that_ends_early_leaves_nothing_but_the_files_before(publish, tmp_path):
    publish(("good", DIGEST), ("cut", DIGEST))
    with pytest.raises(ConnectionError, match=r"/cut: could not be downloaded. Received: 102400 of 204800 bytes"):
        download("tiny", tmp_path)
    assert names(tmp_path) == ["good.txt"]


def test_a_missing_file_and_a_missing_server_are_told(publish, tmp_path):
    publish(("missing", DIGEST))
    with pytest.raises(ConnectionError, match="/missing: could not be downloaded. Received: HTTP Error 404"):
        download("tiny", tmp_path)
    publish(("good", DIGEST), url="http://127.0.0.1:9")  # the port of "discard", where nothing listens
    with pytest.raises(ConnectionError, match="127.0.0.1:9/good: could not be downloaded. Received: .*refused"):
        download("tiny", tmp_path)
    assert names(tmp_path) == []


def git_blob_id(data, folder):
    """The id that git itself gives to the contents of a file."""
    (folder / "blob").write_bytes(data)
    command = ["git", "hash-object", "--no-filters", str(folder / "blob")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_files_are_checked_by_the_id_that_git_gives_them(publish, tmp_path):
    """And a training text comes as SIGHAN published it: two blanks, a byte order mark, Windows' line ends."""
    assert git_blob_id(b"", tmp_path) == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"  # every git repository's empty file
    blob = git_blob_id(TRAINING, tmp_path)
    publish(("training", blob))
    (path,) = download("tiny", tmp_path / "folder")
    assert path.read_bytes() == TRAINING and download("tiny", tmp_path / "folder") == [path]
    words = [["“", "人们", "常", "说", "生活", "是", "一", "部", "教科书"], ["１２月", "３１日", "，"]]
    assert corpora.read_segmented(path) == words
    path.write_bytes(TRAINING.replace(b"\r", b""))
    with pytest.raises(ValueError, match=f"training.txt: needs the git blob id {blob}. Received: "):
        download("tiny", tmp_path / "folder")
    publish(("good", blob))
    with pytest.raises(
        ValueError, match=f"/good: needs the git blob id {blob}. Received: {git_blob_id(DATA, tmp_path)}"
    ):
        download("tiny", tmp_path / "folder")
    assert names(tmp_path / "folder") == ["training.txt"]


def files_of(name):
    """The files of a corpus with their digests."""
    return {file: digest for file, _, digest in CORPORA[name].each_file()}


def test_sighan_brings_the_training_texts():
    files = files_of("sighan2005")
    assert files["pku_training.utf8"] == "1f4268102eda1de03165a8807a74200f54e20063"
    assert files["msr_training.utf8"] == "4ce7619c3dbe2380cc70c5c294d4d5add695f8f6"
    assert len(files) == 8 and sorted(files_of("weibo")) == [
        "weibo_test.conll",
        "weibo_train.conll",
        "weibo_valid.conll",
    ]


def test_an_interrupted_download_leaves_nothing(publish, tmp_path, monkeypatch):
    publish(("good", DIGEST))

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(downloads, "_check_digest", stop)
    with pytest.raises(KeyboardInterrupt):
        download("tiny", tmp_path)
    assert names(tmp_path) == []


def test_an_unknown_corpus_is_refused_before_anything_is_made(tmp_path):
    with pytest.raises(ValueError, match="knows sighan2005, weibo, wnut17. Received: name='ptb'"):
        download("ptb", tmp_path / "folder")
    assert names(tmp_path) == []


def test_corpora_offers_the_download():
    assert corpora.download is downloads.download


@pytest.mark.parametrize("name", sorted(CORPORA))
def test_the_checksums_are_those_of_real_files(shared_data, name):
    """The files beside the checkout came from the same repositories, at the same commits, under the same paths."""
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in shared_data.rglob("*") if path.is_file()}
    known = {digest for digest in files_of(name).values() if len(digest) == 64}
    others = [file for file, digest in files_of(name).items() if len(digest) != 64]
    assert known <= digests and len(known) >= 3
    assert others == (["pku_training.utf8", "msr_training.utf8"] if name == "sighan2005" else [])
