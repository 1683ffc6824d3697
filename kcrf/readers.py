"""Readers: a text as the inputs of a model, cut into windows, and which of their positions carry tags. Needs no Keras.

What carries a tag is a *unit* of the text: a character, or under BERT what its tokenizer takes for a word.
"""

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kcrf.checkpoint_names import CONFIG_FILES, NAME_MAPS
from kcrf.features import BUCKETS, Vocabulary, windows, with_stops
from kcrf.files import read_json
from kcrf.lexicon import Lexicon, cross_fitted
from kcrf.tokenizers import Tokenizer, load_vocab

__all__ = [
    "BERT_CONFIG",
    "CASES",
    "CharacterReader",
    "PieceReader",
    "Reading",
    "Window",
    "case_of",
    "spans_of_units",
    "tags_of_units",
]

BERT_CONFIG, _VOCAB, _VOCABULARY = "bert_config.json", "vocab.txt", "vocabulary.json"
CASES = ("lower", "Capitalised", "CAPITALS", "miXed")  # of words, numbered from 1; 0 is a word without any


class Window(NamedTuple):
    """A stretch of a text as a model reads it.

    Attributes:
        inputs: A dict of rows of ints or of vectors of ints, all of one length.
        positions: The place in the inputs of each of its units, ascending.
        first: The number of its first unit in the text.
        keep: The numbers `(start, stop)` of the units for which this window decides.
    """

    inputs: dict
    positions: np.ndarray
    first: int
    keep: tuple


class Reading(NamedTuple):
    """A text as a reader sees it.

    Attributes:
        units: `(units, 2)`, the half-open extents of the units in the text.
        windows: The `Window`s; what they keep follows each other and covers the units.
    """

    units: np.ndarray
    windows: list


class CharacterReader:
    """Every character is a unit, read as its number, that of the pair it forms with the next, and the words around it.

    Args:
        vocabulary: A `kcrf.features.Vocabulary`.
        lexicon: A `kcrf.lexicon.Lexicon` for the input "words", or None for none. Defaults to None.

    >>> reading = CharacterReader(Vocabulary.of(["天大"], min_bigrams=1)).read(["天大"])[0]
    >>> reading.units.tolist(), reading.windows[0].inputs
    ([[0, 1], [1, 2]], {'characters': [2, 3], 'bigrams': [2, 3]})
    """

    def __init__(self, vocabulary, lexicon=None):
        self.vocabulary, self.lexicon = vocabulary, lexicon

    def read(self, texts):
        """A `Reading` of each text."""
        return [self._reading(text, self.lexicon) for text in texts]

    def read_training(self, sentences):
        """A `Reading` of each `Sentence` of the text that the lexicon was counted in: with the words of the others."""
        if self.lexicon is None:
            return self.read([sentence.text for sentence in sentences])
        return [self._reading(sentence.text, others) for sentence, others in cross_fitted(self.lexicon, sentences)]

    def _reading(self, text, lexicon):
        rows = dict(zip(("characters", "bigrams"), self.vocabulary.encode(text), strict=True))
        if lexicon is not None:
            rows["words"] = lexicon.encode(text)
        found = [
            Window({name: row[start:end] for name, row in rows.items()}, np.arange(end - start), start, (keep, stop))
            for start, end, keep, stop in windows(text)
        ]
        places = np.arange(len(text))
        return Reading(np.stack([places, places + 1], axis=1), found)

    def save(self, write):
        """Hands the files from which `load` makes the reader to `write(name, text)`."""
        content = {"characters": self.vocabulary.characters, "bigrams": self.vocabulary.bigrams}
        if self.lexicon is not None:
            content["words"], content["strings"] = self.lexicon.words, self.lexicon.strings
        write(_VOCABULARY, json.dumps(content, ensure_ascii=False, indent=1))

    @classmethod
    def load(cls, folder):
        """The reader of a run folder."""
        path = folder.existing(_VOCABULARY)
        content = read_json(path)
        lists = [content.get(name) for name in ("characters", "bigrams")]
        if not all(isinstance(items, list) and all(isinstance(item, str) for item in items) for items in lists):
            raise ValueError(f"{path}: needs lists of strings, characters and bigrams. Received: {str(content)[:80]}")
        return cls(Vocabulary(*lists), _lexicon(path, content) if "words" in content else None)


def _lexicon(path, content):
    """The `Lexicon` in the content of a vocabulary file."""
    words, strings = content["words"], content.get("strings")
    counts = [words, strings]
    if not all(isinstance(c, dict) and all(type(n) is int for n in c.values()) for c in counts) or not all(
        0 < count <= strings.get(word, 0) for word, count in words.items()
    ):
        raise ValueError(f"{path}: needs words and strings with their counts. Received: {str(counts)[:80]}")
    return Lexicon(words, strings)


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


def tags_of_units(scheme, units, spans):
    """One tag for each unit of a text.

    Args:
        scheme: A `TagScheme`.
        units: `(units, 2)`, their extents.
        spans: As `scheme.encode` takes them, in characters. A span without any unit leaves no trace.

    Returns:
        A list of ints, -1 (unknown) where a span begins or ends inside a unit.

    >>> from kcrf.tags import bmes
    >>> tags_of_units(bmes(), np.array([[0, 4], [4, 5], [5, 6]]), [(0, 2), (2, 5), (5, 6)])
    [-1, 3, 0]
    """
    tags, unknown = [0] * len(units), []
    firsts = np.searchsorted(units[:, 1], [span[0] for span in spans], side="right").tolist()
    stops = np.searchsorted(units[:, 0], [span[1] for span in spans], side="left").tolist()
    inside = cache(lambda length, *label: scheme.encode([(0, length, *label)], length))
    for (start, end, *label), first, stop in zip(spans, firsts, stops, strict=True):
        if first < stop:
            tags[first:stop] = inside(stop - first, *label)
            unknown += [first] if units[first, 0] < start else []
            unknown += [stop - 1] if units[stop - 1, 1] > end else []
    for unit in unknown:
        tags[unit] = -1
    return tags


def spans_of_units(scheme, units, spans, length):
    """Spans of units as spans of characters.

    Words cover the text: what lies between two units belongs to the word before it. An entity ends with its last unit.

    Args:
        scheme: A `TagScheme`.
        units: `(units, 2)`, their extents.
        spans: What `scheme.decode` gives, in units.
        length: Characters of the text.
    """
    if scheme.types:
        return [(int(units[start, 0]), int(units[end - 1, 1]), label) for start, end, label in spans]
    if not spans:
        return [(0, length)] if length else []
    starts = [0, *units[[start for start, _ in spans[1:]], 0].tolist(), length]
    return list(zip(starts, starts[1:], strict=False))
