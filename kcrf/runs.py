"""The run folder: what a training run leaves behind, and all that using its model takes. Imports no Keras.

    config.json         format, version of kcrf, settings
    vocabulary.json     characters and bigrams, in the order of their numbers
    model.weights.h5    the best weights
    log.csv             one row per epoch
    scores.json         of the best weights, written last

Files are written aside and renamed, so each is whole or not there. Training into a folder that is a run already works
in `<folder>.new` and takes its place when done: until then, the old model stays as it was.
"""

import csv
import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path

from kcrf import __version__

__all__ = ["RunFolder"]

FORMAT = 1
_CONFIG, _VOCABULARY, _WEIGHTS, _LOG, _SCORES = (
    "config.json",
    "vocabulary.json",
    "model.weights.h5",
    "log.csv",
    "scores.json",
)


class RunFolder:
    """Reads a run folder; `RunFolder.create` is a context in which one is written.

    Args:
        path: The folder.
    """

    def __init__(self, path):
        self.path = self._final = Path(path)

    @classmethod
    def create(cls, path):
        """The folder to write a run into.

        Raises:
            FileExistsError: Something that is not a run folder is there.
        """
        folder = cls(path)
        if folder.path.exists() and not folder.path.is_dir():
            raise FileExistsError(f"{path}: needs a folder to write the run into. Received: a file")
        if folder.path.is_dir() and any(folder.path.iterdir()):
            if not (folder.path / _CONFIG).is_file():
                raise FileExistsError(f"{path}: is there and is not a run folder (it has no {_CONFIG}); not touched")
            folder.path = folder.path.with_name(folder.path.name + ".new")
            shutil.rmtree(folder.path, ignore_errors=True)
        folder.path.mkdir(parents=True, exist_ok=True)
        return folder

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self.path == self._final:
            return
        if kind is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            return
        old = self._final.with_name(self._final.name + ".old")
        shutil.rmtree(old, ignore_errors=True)
        os.rename(self._final, old)
        os.rename(self.path, self._final)
        shutil.rmtree(old, ignore_errors=True)
        self.path = self._final

    def save_setup(self, settings, vocabulary):
        """Writes what the model is made of; `config.json`, which makes the folder a run, comes last."""
        self._save_json(_VOCABULARY, {"characters": vocabulary.characters, "bigrams": vocabulary.bigrams})
        self._save_json(_CONFIG, {"format": FORMAT, "kcrf": __version__, "settings": asdict(settings)})

    def save_weights(self, model):
        """Writes the weights of a Keras model."""
        self._write_aside(_WEIGHTS, model.save_weights)

    def save_scores(self, scores):
        """Writes the scores of the kept weights."""
        self._save_json(_SCORES, scores)

    def log(self, row):
        """Adds a row, a dict, to the log."""
        path = self.path / _LOG
        is_new = not path.exists()
        with open(path, "a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, row)
            if is_new:
                writer.writeheader()
            writer.writerow(row)

    def read_setup(self):
        """A dict of `settings` and `vocabulary`, each a dict."""
        config = self._read_json(_CONFIG)
        if config.get("format", 0) > FORMAT:
            raise ValueError(
                f"{self.path / _CONFIG}: needs run format {FORMAT} or older, which kcrf {__version__} reads. "
                f"Received: format {config['format']}, written by kcrf {config.get('kcrf')}; please upgrade"
            )
        return {"settings": config["settings"], "vocabulary": self._read_json(_VOCABULARY)}

    def load_weights(self, model):
        """Reads the weights into a Keras model of the same settings."""
        path = self._existing(_WEIGHTS)
        try:
            model.load_weights(path)
        except Exception as error:  # whatever h5py and Keras raise: the user needs the name of the file
            raise ValueError(f"{path}: cannot be read as the weights of this run ({error})") from error

    def _existing(self, name):
        path = self.path / name
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file; a run folder, as `kcrf train` writes it, has it")
        return path

    def _read_json(self, name):
        path = self._existing(name)
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path}: needs JSON as `kcrf train` writes it. Received: {error}") from None

    def _save_json(self, name, value):
        text = json.dumps(value, ensure_ascii=False, indent=1)
        self._write_aside(name, lambda path: path.write_text(text, encoding="utf-8"))

    def _write_aside(self, name, write):
        aside = self.path / f"new.{name}"
        try:
            write(aside)
            os.replace(aside, self.path / name)
        finally:
            aside.unlink(missing_ok=True)
