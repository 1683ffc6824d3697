"""Coverage-guided fuzzing of the readers of data files and of model files, with atheris.

    python tests/fuzz_readers.py FOLDER -max_total_time=3600 -rss_limit_mb=3000    # libFuzzer's options
    python tests/fuzz_readers.py --keep FOLDER          # adds its inputs, which should be few, to the corpus

The first byte of an input selects a target, and the rest is a file. Every input must give data, or a ValueError that
names the file, and needs little memory. FOLDER begins with the corpus, `fuzz_corpus.json`, and collects inputs that
reach new code. `tests/corpora/test_fuzz_corpus.py` replays the corpus without atheris.
"""

import io
import json
import sys
import tempfile
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np

CORPUS = Path(__file__).with_name("fuzz_corpus.json")
MOST_MEMORY = 200 << 20  # bytes; `kcrf.files.read_arrays` lets a small file unpack to 64 MB
WORDS = [["今天", "天气", "真", "好"], ["天气", "好"], ["我们", "今天", "好"]]


class Readers:
    """The readers of files. Parts of a small linear model, in a run folder and exported, are replaced by an input."""

    def __init__(self, folder):
        from kcrf.export import export_model
        from kcrf.files import read_arrays
        from kcrf.runs import Settings
        from kcrf.training import train_tagger

        self.folder, self.run, self.exported = folder, folder / "run", folder / "model.npz"
        train_tagger(Settings(encoder="linear", epochs=2, augment=0), WORDS, WORDS, out=self.run)
        export_model(self.run, self.exported)
        self.arrays = read_arrays(self.exported)
        self.targets = [*self._targets_of_text(), self._brat, self._archive, self._exported, self._run]

    def read(self, data):
        """Reads an input. Raises AssertionError if it is refused by another error than one that names its file."""
        if data:
            try:
                self.targets[data[0] % len(self.targets)](data[1:])
            except (ValueError, FileNotFoundError) as error:
                assert str(self.folder) in str(error), f"{type(error).__name__}: {error}"

    def _targets_of_text(self):
        from kcrf import corpora
        from kcrf.corpora.conll import marks_ends, read_conll_tokens
        from kcrf.corpora.dictionary import read_user_dictionary
        from kcrf.corpora.tables import iterate_texts

        reads = [
            corpora.read_entities,
            lambda path: corpora.read_entities(path, repair=True),
            corpora.read_tagged,
            corpora.read_segmented,
            lambda path: corpora.read_segmented(path, strip_tags=True),
            corpora.read_classified,
            lambda path: corpora.read_classified(path, ["0", "1"]),
            corpora.read_names,
            read_user_dictionary,
            marks_ends,
            lambda path: read_conll_tokens(corpora.read_lines(path), str(path)),
            lambda path: list(iterate_texts(corpora.read_lines(path), str(path), "table")),
            lambda path: list(iterate_texts(corpora.read_lines(path), str(path), "json")),
        ]
        return [lambda data, read=read: read(self._written("data.txt", data)) for read in reads]

    def _written(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path

    def _brat(self, data):
        from kcrf.corpora import read_entities

        entities, _, text = data.partition(b"\0")
        self._written("data.txt", text)
        read_entities(self._written("data.ann", entities))

    def _archive(self, data):
        self._use(self._written("archive.npz", data))

    def _exported(self, data):
        """A part of the archive replaced: a line with its name, and its content, JSON or an array."""
        name, _, content = data.partition(b"\n")
        name = name.decode("latin-1")
        if name in self.arrays:
            path = self.folder / "part.npz"
            with zipfile.ZipFile(path, "w") as archive:
                for each, array in self.arrays.items():
                    is_json = each == name and name.endswith(".json")
                    array = np.frombuffer(content, np.uint8) if is_json else array
                    archive.writestr(f"{each}.npy", content if each == name and not is_json else npy(array))
            self._use(path)

    def _run(self, data):
        """A file of the run folder replaced: a line with its name, and its content."""
        from kcrf.runs import read_run

        name, _, content = data.partition(b"\n")
        path = next(
            (file for file in self.run.iterdir() if file.is_file() and file.name == name.decode("latin-1")), None
        )
        if path is not None:
            before = path.read_bytes()
            try:
                path.write_bytes(content)
                read_run(self.run)
                self._use(self.run)
            finally:
                path.write_bytes(before)

    def _use(self, path):
        from kcrf.taggers import load_tagger

        load_tagger(path).predict(["今天天气"])


def npy(array):
    """The bytes of a file of an array."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def corpus():
    """The inputs of the corpus, a list of bytes."""
    return [text.encode("latin-1") for text in json.loads(CORPUS.read_text("utf-8"))]


def keep(folder):
    """Adds the inputs in a folder to the corpus."""
    inputs = {*corpus(), *(file.read_bytes() for file in Path(folder).iterdir())}
    lines = [json.dumps(data.decode("latin-1")) for data in sorted(inputs, key=lambda data: (len(data), data))]
    CORPUS.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")


def fuzz(arguments):
    """Runs libFuzzer, whose first argument is the folder of inputs."""
    import atheris

    with atheris.instrument_imports(include=["kcrf.corpora", "kcrf.files", "kcrf.runs", "kcrf.linear", "kcrf.readers"]):
        import kcrf.export
        import kcrf.training  # noqa: F401
    from kcrf.progress_bars import quiet

    Path(arguments[0]).mkdir(exist_ok=True)
    for number, data in enumerate(corpus()):
        (Path(arguments[0]) / f"corpus-{number}").write_bytes(data)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, quiet(True):
        readers = Readers(Path(folder))

        def test_one(data):
            tracemalloc.reset_peak()
            readers.read(data)
            assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY, "needs too much memory"

        tracemalloc.start()
        atheris.Setup([sys.argv[0], *arguments], test_one)
        atheris.Fuzz()


if __name__ == "__main__":
    keep(sys.argv[2]) if sys.argv[1] == "--keep" else fuzz(sys.argv[1:])
