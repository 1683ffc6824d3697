"""Reads a text in the pieces of BERT's tokenizer."""

import json
from pathlib import Path

import numpy as np

from kcrf.checkpoints import NAME_MAPS
from kcrf.checkpoints.names import CONFIG_FILES
from kcrf.files import read_json
from kcrf.readers.padding import BUCKETS
from kcrf.readers.units import Reading, Window
from kcrf.readers.windows import windows, with_stops
from kcrf.tokenizers import Tokenizer, load_vocab

__all__ = ["BERT_CONFIG", "CASES", "PieceReader", "case_of"]

BERT_CONFIG, _VOCAB, _VOCABULARY = "bert_config.json", "vocab.txt", "vocabulary.json"
CASES = ("lower", "Capitalised", "CAPITALS", "miXed")  # of words, numbered from 1; 0 is a word without any


class PieceReader:
    """Words of BERT's tokenizer are the units, each tagged at its first piece.

    The other pieces of a word, [CLS] and [SEP] are read by the model and are no part of the chain of tags.

    Args:
        config: The configuration of the BERT, a dict.
        vocabulary: A dict from token to number.
        lower_case: Whether the text is lowered and loses its accents.
        word_case: Whether there is an input "case", the number of a word in `CASES`. Defaults to False.

    Raises:
        ValueError: A special token is not in the vocabulary, or the vocabulary is not that of the configuration.
    """

    def __init__(self, config, vocabulary, lower_case, word_case=False):
        absent = [token for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]") if token not in vocabulary]
        if absent:
            raise ValueError(f"The vocabulary of a BERT has {', '.join(absent)}. Received: {len(vocabulary)} others")
        if max(vocabulary.values()) >= config.get("vocab_size", np.inf):
            raise ValueError(
                f"The vocabulary must be that of the BERT, whose vocab_size is {config['vocab_size']}. "
                f"Received: {max(vocabulary.values()) + 1} tokens"
            )
        self.config, self._vocabulary = config, vocabulary
        self.lower_case, self.word_case = lower_case, word_case
        self._tokenizer = Tokenizer(vocabulary, lower_case, token_start=None, token_end=None)
        self._start, self._end = vocabulary["[CLS]"], vocabulary["[SEP]"]
        self._continues = np.zeros(max(vocabulary.values()) + 1, bool)
        self._continues[[number for token, number in vocabulary.items() if token.startswith("##")]] = True
        self._has_segments = config.get("type_vocab_size", 2) > 0
        positions = config.get("max_position_embeddings", BUCKETS[-1])
        if positions < BUCKETS[0]:
            raise ValueError(f"A BERT has {BUCKETS[0]} positions or more. Received: {positions}")
        self._limit = max(length for length in BUCKETS if length <= positions) - 2

    def read(self, texts):
        """A `Reading` of each text."""
        encoded = self._tokenizer.encode_batch(list(texts))
        return [self._reading(text, e.token_ids, e.offsets) for text, e in zip(texts, encoded, strict=True)]

    def read_training(self, sentences):
        """A `Reading` of each `Sentence`."""
        return self.read([sentence.text for sentence in sentences])

    def _reading(self, text, ids, offsets):
        starts, ends = offsets[:, 0], offsets[:, 1]
        covered = np.maximum.accumulate(np.append(0, ends))
        first = np.flatnonzero(~self._continues[ids] & (starts >= covered[:-1]))  # the pieces that begin a unit
        last = np.append(first[1:], len(ids))[: len(first)] - 1
        units = np.stack([starts[first], ends[last]], axis=1)
        cases = [case_of(text[start:end]) for start, end in units.tolist()] if self.word_case else []
        found = []
        marked = with_stops(text)
        last_characters = [marked[i - 1] for i in ends.tolist()]
        for start, end, keep, stop in windows(last_characters, self._limit, min(16, self._limit // 4)):
            before, behind, kept, rest = np.searchsorted(first, [start, end, keep, stop]).tolist()
            positions = first[before:behind] - start + 1  # behind [CLS]
            inputs = self._inputs(ids[start:end], positions, cases[before:behind])
            found.append(Window(inputs, positions, before, (kept, rest)))
        return Reading(units, found)

    def _inputs(self, ids, positions, cases):
        length = len(ids) + 2
        inputs = {"Input-Token": [self._start, *ids, self._end], "tagged": _at(positions, 1, length)}
        if self._has_segments:
            inputs["Input-Segment"] = [0] * length
        if self.word_case:
            inputs["case"] = _at(positions, cases, length)
        return inputs

    def save(self, write):
        """Hands the files from which `load` makes the reader to `write(name, text)`."""
        lines = [""] * len(self._continues)
        for token, number in self._vocabulary.items():
            lines[number] = token
        write(_VOCAB, "".join(f"{line}\n" for line in lines))
        about = {"lower_case": self.lower_case, "word_case": self.word_case}
        write(BERT_CONFIG, json.dumps({**self.config, **about}, indent=1))

    @classmethod
    def load(cls, folder):
        """The reader of a run folder."""
        config = read_json(folder.existing(BERT_CONFIG))
        lower_case, word_case = config.pop("lower_case", None), config.pop("word_case", False)
        if lower_case is None:
            raise ValueError(f"{folder.file(BERT_CONFIG)}: needs lower_case, as a run has it. Received: none")
        return cls(config, load_vocab(folder.existing(_VOCAB)), lower_case, word_case)

    @classmethod
    def of_bert(cls, folder, layers=None, lower_case=None, word_case=False):
        """The reader for the BERT of a folder, in Google's or in Hugging Face's format.

        Args:
            folder: Holds a configuration (`bert_config.json` or `config.json`) and `vocab.txt`.
            layers: How many transformer layers to use, from the bottom. None: all.
            lower_case: None takes it from `tokenizer_config.json`, or else from whether the vocabulary has capitals.
            word_case: As for the class.

        Raises:
            FileNotFoundError: A file is not there.
            ValueError: The model is of a family that is not supported, or has fewer layers.
        """
        config = _bert_config(Path(folder), layers)
        vocab = Path(folder) / _VOCAB
        if not vocab.is_file():
            raise FileNotFoundError(f"{vocab}: no such file; the folder of a BERT has its vocabulary there")
        vocabulary = load_vocab(vocab)
        if lower_case is None:
            lower_case = _lower_case(Path(folder), vocabulary)
        try:
            return cls(config, vocabulary, lower_case, word_case)
        except ValueError as error:
            raise ValueError(f"{vocab}: {error}") from None


def _at(positions, values, length):
    """A list of as many ints, with the values at their positions and 0 elsewhere."""
    row = np.zeros(length, int)
    row[positions] = values
    return row.tolist()


def case_of(word):
    """The number of a word in `CASES`, 0 for one without case, such as Chinese or digits.

    >>> [case_of(word) for word in ("1998", "leeds", "Leeds", "NASA", "iPhone")]
    [0, 1, 2, 3, 4]
    """
    lower, upper = word.lower(), word.upper()
    if lower == upper:
        return 0
    if word == lower:
        return 1
    if word[0] != lower[0] and word[1:] == word[1:].lower():
        return 2
    return 3 if word == upper else 4


def _bert_config(folder, layers):
    """The configuration of a BERT in a folder, with its family as `model_type` and the number of layers to use."""
    path = next((folder / name for name in CONFIG_FILES if (folder / name).is_file()), None)
    if path is None:
        raise FileNotFoundError(f"{folder}: no BERT there; its folder has one of {', '.join(CONFIG_FILES)}")
    config = read_json(path)
    shared, relative = "num_hidden_groups" in config, config.get("use_relative_position")
    config.setdefault("model_type", "albert" if shared else "nezha" if relative else "bert")
    if config["model_type"] not in NAME_MAPS:
        raise ValueError(f"{path}: model_type must be one of {tuple(NAME_MAPS)}. Received: {config['model_type']!r}")
    for name in ("num_hidden_layers", "vocab_size", "max_position_embeddings"):
        if type(config.get(name, 1)) is not int:
            raise ValueError(f"{path}: {name} must be an int. Received: {config[name]!r}")
    there = config.get("num_hidden_layers")
    if layers is not None and not (there and layers <= there):
        raise ValueError(f"{path}: has {there} layers. Received: bert_layers={layers}")
    return {**config, "num_hidden_layers": layers or there}


def _lower_case(folder, vocabulary):
    path = folder / "tokenizer_config.json"
    said = read_json(path).get("do_lower_case") if path.is_file() else None
    if said is not None:
        return bool(said)
    return not any(token != token.lower() for token in vocabulary if not token.startswith("["))
