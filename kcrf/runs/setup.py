"""The configuration and the reader of a run: writes them into the run folder, and reads them."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from kcrf.readers import CharacterReader, PieceReader, Reader, StandardsReader, SubwordReader, WordReader, WordVectors
from kcrf.readers.standards import reader_of_standard
from kcrf.runs import RunConfig, RunWriter
from kcrf.runs.config_file import StoredRun
from kcrf.runs.model_files import ModelFiles
from kcrf.runs.names import BERT_CONFIG, TOKENIZER, VECTORS, VOCAB, VOCABULARY
from kcrf.tokenizers.vocabularies import vocab_text


@dataclass(frozen=True)
class Setup:
    """The configuration and the reader of a run."""

    run: StoredRun
    reader: Reader

    @property
    def config(self) -> RunConfig:
        """The configuration of the run."""
        return self.run.config

    def of_standard(self, standard: str) -> "Setup":
        """The setup of the model of one of the segmentation standards."""
        run = replace(self.run, user=replace(self.run.user, standards=()), config=self.config.of_standard(standard))
        return Setup(run, reader_of_standard(self.reader, standard))


def save_setup(folder: RunWriter, run: StoredRun, reader: Any) -> None:
    """Writes the files for `load_setup`. The configuration is written last, which makes the folder a run folder."""
    if run.config.model.bert is None:
        folder.save_json(VOCABULARY, reader.get_config())
    else:
        if isinstance(reader, SubwordReader):
            folder.save_json(TOKENIZER, json.loads(reader.tokenizer.definition))
        else:
            folder.save_text(VOCAB, vocab_text(reader.vocabulary))
        folder.save_json(BERT_CONFIG, reader.get_config())
    if reader.vectors is not None:
        folder.save_arrays(VECTORS, reader.vectors.arrays())
    folder.save_config(run)


def load_setup(folder: ModelFiles) -> Setup:
    """Reads the `Setup` of a `RunFolder` or an exported file."""
    run = folder.read_config()
    make_reader: Callable[[dict[str, Any]], Reader]
    if run.config.model.bert is None:
        is_of_words = run.config.data.units == "words"
        name, make_reader = VOCABULARY, WordReader.from_config if is_of_words else CharacterReader.from_config
    else:
        name, make_reader = BERT_CONFIG, partial(_encoder_reader, folder)
    if run.config.data.standards and run.config.model.bert is None:
        make_reader = partial(StandardsReader.from_config, make_reader=make_reader)
    content = folder.read_json(name)
    try:
        reader = make_reader(content)
    except ValueError as error:
        raise ValueError(f"{folder.file(name)}: {error}") from None
    if run.config.model.vectors is not None:
        reader = reader.with_vectors(_read_vectors(folder))
    folder.check_weights()
    return Setup(run, reader)


def _encoder_reader(folder: ModelFiles, config: dict[str, Any]) -> Reader:
    """Makes the reader of a BERT: by `tokenizer.json` if its configuration has special tokens, else by `vocab.txt`."""
    if "special_tokens" in config:
        return SubwordReader.from_config(config, json.dumps(folder.read_json(TOKENIZER)))
    return PieceReader.from_config(config, folder.read_vocab())


def _read_vectors(folder: ModelFiles) -> WordVectors:
    arrays = folder.read_vectors()
    try:
        return WordVectors.from_arrays(arrays)
    except (KeyError, IndexError, ValueError) as error:
        raise ValueError(f"{folder.file(VECTORS)}: needs the vectors of a run. Received: {error}") from None
