"""The folder of a pretraining run: the model, and a folder with the state from which the run can be resumed."""

import shutil
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from kcrf.files import read_json
from kcrf.readers.pieces import SPLITTING, EncoderReader, PieceReader, SubwordReader
from kcrf.runs import RunWriter
from kcrf.runs.lock import LOCK
from kcrf.runs.names import STATE
from kcrf.tokenizers.subwords import SubwordTokenizer
from kcrf.tokenizers.vocabularies import SETTINGS, VOCAB, WHOLE, load_vocab, vocab_text

WORK = "pretraining"
ABOUT, TOKENS = "about.json", "tokens.bin"
WEIGHTS = "model.safetensors"
TOKENIZER = (VOCAB, WHOLE, SETTINGS)


class PretrainingFolder:
    """The folder of a pretraining run."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self.work = RunWriter(self.path / WORK)  # the log, the state of training, and the tokens of the text
        self.tokens = self.work.file(TOKENS)

    def check_is_free(self) -> None:
        """Raises FileExistsError if the folder has files, unless a process was killed there before training began."""
        if self.path.exists() and not self.path.is_dir():
            raise FileExistsError(f"{self.path}: needs a folder to write the model into. Received: a file")
        names = {path.name for path in self.path.iterdir()} if self.path.is_dir() else set()
        begun = {LOCK, WORK}
        if WORK in names:
            begun |= {prefix + name for name in TOKENIZER for prefix in ("", "new.")}
        if names - begun or self.has_begun():
            raise FileExistsError(
                f"{self.path}: needs a new or an empty folder, or --resume to resume an interrupted pretraining. "
                f"Received: a folder with {', '.join(sorted(names))}"
            )

    def has_begun(self) -> bool:
        """Whether the tokens, the tokenizer and the settings exist, from which training can start again."""
        return self.work.file(ABOUT).is_file()

    def is_complete(self) -> bool:
        """Whether the pretraining has ended."""
        return self.has_begun() and self.read_about()["is_complete"]

    def has_weights(self) -> bool:
        """Whether a model has been written."""
        return (self.path / WEIGHTS).is_file()

    def read_about(self) -> dict[str, Any]:
        """The dict that `save_about` wrote."""
        return read_json(self.work.file(ABOUT))

    def save_about(self, about: dict[str, Any]) -> None:
        """Writes the settings of the pretraining, the configuration of the model, and whether it is complete."""
        self.work.save_json(ABOUT, about)

    def read_tokenizer(self, config: dict[str, Any]) -> EncoderReader:
        """The reader with the tokenizer that `save_tokenizer` wrote."""
        if (self.path / WHOLE).is_file():
            return SubwordReader(config, SubwordTokenizer.of_folder(self.path))
        settings = read_json(self.path / SETTINGS)
        splitting = {name: settings[name] for name in SPLITTING if name in settings}
        return PieceReader(config, load_vocab(self.path / VOCAB), settings["do_lower_case"], **splitting)

    def save_tokenizer(self, reader: EncoderReader) -> None:
        """Writes the tokenizer where `transformers` and the readers of encoders read it."""
        folder = RunWriter(self.path)
        if isinstance(reader, SubwordReader):
            folder.save_text(WHOLE, reader.tokenizer.definition)
            settings: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", **reader.tokenizer.entries()}
        elif isinstance(reader, PieceReader):
            folder.save_text(VOCAB, vocab_text(reader.vocabulary))
            settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": reader.lower_case, **reader.splitting}
        folder.save_json(SETTINGS, settings)

    def clear(self) -> None:
        """Removes the files that only an interrupted run needs, and incomplete files of killed processes."""
        half_written = [*self.work.path.glob("new.*"), *self.work.path.glob(".new.*"), *self.path.glob("new.*")]
        for path in (self.work.file(STATE), self.tokens, *half_written):
            path.unlink(missing_ok=True)
        for path in self.path.glob(".writing-*"):
            shutil.rmtree(path)

    def remove(self) -> None:
        """Removes the files of a run that failed before it saved weights, so that the run can start again."""
        self.clear()
        for path in (self.work.file(ABOUT), *(self.path / name for name in TOKENIZER)):
            path.unlink(missing_ok=True)
        with suppress(OSError):  # it has other files
            self.work.path.rmdir()
