"""What the model of a run is made of, written into its folder and read back."""

from dataclasses import dataclass
from functools import partial

from kcrf.backend import backend_name
from kcrf.files import read_json
from kcrf.readers import CharacterReader, PieceReader, WordReader
from kcrf.runs import Settings
from kcrf.runs.folder import BERT_CONFIG, VOCAB, VOCABULARY
from kcrf.tokenizers import load_vocab

__all__ = ["Setup", "load_setup", "save_setup"]


@dataclass(frozen=True)
class Setup:
    """What the model of a run is made of.

    Attributes:
        settings: `Settings`.
        reader: The `CharacterReader` or `PieceReader` of the model.
        data: A dict of plain values that describe the data, or None in runs of old versions.
        backend: The name of the Keras backend that trains, or None likewise.
    """

    settings: Settings
    reader: object
    data: dict | None
    backend: str | None


def save_setup(folder, settings, reader, data):
    """Writes into a `RunFolder` what `load_setup` reads. The configuration is written last: it makes the folder a run.

    Args:
        folder: The `RunFolder`.
        settings: `Settings`.
        reader: The `CharacterReader` or `PieceReader` of the model.
        data: A dict of plain values, kept beside the settings.
    """
    if settings.bert is None:
        folder.save_json(VOCABULARY, reader.get_config())
    else:
        folder.save_text(VOCAB, "".join(f"{token}\n" for token in _lines(reader.vocabulary)))
        folder.save_json(BERT_CONFIG, reader.get_config())
    folder.save_config(settings, data, backend_name())


def load_setup(folder):
    """The `Setup` in a `RunFolder`.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: The run was written by a newer version, or a file is damaged; names the file.
    """
    config = folder.read_config()
    settings = folder.settings_of(config)
    if settings.bert is None:
        reads = WordReader if settings.units == "words" else CharacterReader
        path, make_reader = folder.existing(VOCABULARY), reads.from_config
    else:
        vocabulary = load_vocab(folder.existing(VOCAB))
        path, make_reader = folder.existing(BERT_CONFIG), partial(PieceReader.from_config, vocabulary=vocabulary)
    try:
        reader = make_reader(read_json(path))
    except ValueError as error:
        raise ValueError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None
    return Setup(settings, reader, config["data"], config["backend"])


def _lines(vocabulary):
    """The tokens in the order of their numbers, with an empty one for each number without a token."""
    lines = [""] * (max(vocabulary.values()) + 1)
    for token, number in vocabulary.items():
        lines[number] = token
    return lines
