"""Unigram and byte-level BPE tokenizers, as XLM-R, e5 and RoBERTa have them in `tokenizer.json`. Needs no Keras."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kcrf.extras import needs_extra
from kcrf.files import read_json
from kcrf.tokenizers.characters import CJK_PUNCTUATION, words_of
from kcrf.tokenizers.vocabularies import ADDED, PADDING, SETTINGS, SPECIAL_MAP, WHOLE, text_of


class Encoding(NamedTuple):
    """The ids of a text or a pair; 0 and 1 for the first and the second text; and an array `(tokens, 2)`, the half-open
    span of each token in its own text, (0, 0) for special tokens."""

    token_ids: list
    segment_ids: list
    offsets: np.ndarray


def in_original(places, origin):
    """Converts offsets in lower-cased text to offsets in the original. `origin` has the position of each character."""
    if origin is None:
        return places
    special = places[:, 1] == 0
    first, last = origin[places[:, 0] * ~special], origin[places[:, 1] - 1]
    return np.where(special[:, None], 0, np.stack([first, last + 1], axis=1))


def truncate(maxlen, index, *sequences):
    """Shortens lists in place, as `_cuts` says."""
    for cut, sequence in zip(_cuts(maxlen, index, *map(len, sequences)), sequences):
        del sequence[cut]


def _cuts(maxlen, index, *lengths):
    """The slice to remove from each sequence: one item at `index` of the longest at a time, until all fit."""
    kept = list(lengths)
    while sum(kept) > max(maxlen, 0):
        kept[kept.index(max(kept))] -= 1
    cuts = []
    for length, left in zip(lengths, kept):
        start = index if index >= 0 else left + index + 1
        if left < length and not 0 <= start <= left:
            raise ValueError(f"`maxlen` must leave room for the special tokens. Received: maxlen={maxlen}")
        cuts.append(slice(start, start + length - left) if left < length else slice(0, 0))
    return cuts


def joined(row, second_row, shared, maxlen, index):
    """The encoding of two rows of ids and places, cut to `maxlen` at `index` and joined."""
    (first, first_places), (second, second_places) = row, second_row
    if maxlen is not None and len(first) + len(second) > maxlen + shared:
        cuts = _cuts(maxlen + shared, index, len(first), len(second))
        first, second = (ids[: cut.start] + ids[cut.stop :] for ids, cut in zip((first, second), cuts))
        first_places = np.delete(first_places, cuts[0], axis=0)
        second_places = np.delete(second_places, cuts[1], axis=0)
    segments = [0] * len(first) + [1] * (len(second) - shared)
    return Encoding(first + second[shared:], segments, np.concatenate([first_places, second_places[shared:]]))


def joined_texts(texts):
    """Joins texts, each with a line end before and after it, in place of its start and its end token."""
    return "\n" + "\n\n".join(texts) + "\n"


def tidy(text):
    """A text of tokens with spaces between them, without the spaces around signs and in numbers."""
    text = re.sub("' (re|m|s|t|ve|d|ll) ", r"'\1 ", re.sub(" +", " ", text))
    text = re.sub(f"([{re.escape(CJK_PUNCTUATION)}+\\-/={{(<\\[]) ", r"\1", text)
    return re.sub(r"(\d\.) (\d)", r"\1\2", text).strip()


CACHED_UNITS = 1 << 18
_SPACES = "▁Ġ "  # how Unigram and BPE write a space in a token
# Roles of special tokens: the entries of tokenizer_config.json that name them, and usual names without such entries.
_ROLES = {
    "pad": (("pad_token",), PADDING),
    "start": (("cls_token", "bos_token"), ("<s>", "[CLS]")),
    "end": (("sep_token", "eos_token"), ("</s>", "[SEP]")),
    "mask": (("mask_token",), ("<mask>", "[MASK]")),
    "unk": (("unk_token",), ("<unk>", "[UNK]")),
}
_PREFIXING = ("Metaspace", "ByteLevel", "Prepend")
_PREFIXES = {  # of classes of `transformers` that put `add_prefix_space` before tokenizer.json: its part, the default
    **dict.fromkeys(("roberta", "bart", "longformer", "deberta", "gpt2"), ("ByteLevel", False)),
    **dict.fromkeys(("xlmroberta", "camembert"), ("Metaspace", True)),
}


class UnitPieces(NamedTuple):
    """The pieces of the units of a text: the ids and ends of all pieces, the `(start, end)` of the units that have one,
    and the number of the first piece of each of these units."""

    ids: list[int]
    ends: np.ndarray
    units: np.ndarray
    first: np.ndarray


class SubwordTokenizer:
    """A tokenizer of the library `tokenizers`, with ids and offsets as `transformers`' fast tokenizers have them.

    Args:
        definition: The content of a `tokenizer.json`, a string.
        special: The special tokens by role: "pad", "start", "end", "mask", "unk". Defaults to the usual names.

    Raises:
        ImportError: The library `tokenizers` is not installed.
        ValueError: The definition is not one of the library, or has no padding, start or end token, or pads with one.
    """

    def __init__(self, definition: str, special: Mapping[str, str] | None = None) -> None:
        with needs_extra("transformers", "SubwordTokenizer"):
            from tokenizers import Tokenizer
        try:
            # For units after a space: Metaspace puts it back where it was removed, as in DeBERTa-v3 and XLM-R.
            glued, spaced = _with_prefix(definition, False), _with_prefix(definition, False, ("ByteLevel", "Prepend"))
            made = {text: Tokenizer.from_str(text) for text in {definition, glued, spaced}}
        except Exception as error:  # the library raises plain exceptions
            raise ValueError(f"needs a tokenizer.json of the library tokenizers. Received: {error}") from None
        self._tokenizer, *self._of_units = (made[text] for text in (definition, glued, spaced))
        for tokenizer in made.values():
            tokenizer.no_padding()
            tokenizer.no_truncation()
        self.definition = definition
        self.special = {}
        for role, (_, usual) in _ROLES.items():
            names = [special[role]] if special and role in special else usual
            known = [name for name in names if self._tokenizer.token_to_id(name) is not None]
            if known:
                self.special[role] = known[0]
        self.ids: dict[str, Any] = {role: self._tokenizer.token_to_id(name) for role, name in self.special.items()}
        absent = [role for role in ("pad", "start", "end") if role not in self.ids]
        if absent:
            raise ValueError(f"needs special tokens for {', '.join(absent)}. Received: {self.special}")
        if self.ids["pad"] in (self.ids["start"], self.ids["end"]):
            raise ValueError(f"needs a padding token apart from start and end: it is masked. Received: {self.special}")
        self._prefix = " " if _has_prefix(definition) else ""
        added = sorted(self._tokenizer.get_added_tokens_decoder().values(), key=lambda token: -len(token.content))
        self._added = re.compile("|".join(re.escape(token.content) for token in added))
        self._pieces: dict[str, tuple[list[int], np.ndarray, int]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.definition, self.special)

    @classmethod
    def of_folder(cls, folder: str | PathLike[str]) -> "SubwordTokenizer":
        """Reads `tokenizer.json`, and what the other files in the folder say of special and added tokens."""
        folder = Path(folder)
        names = (SPECIAL_MAP, SETTINGS, ADDED, "config.json")
        files = [read_json(folder / name) if (folder / name).is_file() else {} for name in names]
        named = {entry: token for file in files[:2] for entry, token in file.items() if token}
        entries = [(role, entry) for role, (names, _) in _ROLES.items() for entry in reversed(names)]
        special = {role: text_of(named[entry]) for role, entry in entries if entry in named}
        try:
            definition = (folder / WHOLE).read_text(encoding="utf-8")
            return cls(_by_folder(definition, *files), special)
        except ValueError as error:
            raise ValueError(f"{folder / WHOLE}: {error}") from None

    def units_of(self, text: str) -> np.ndarray:
        """The words of a text, `(words, 2)`, in which the words of an added token, such as <ent>, are one."""
        units = words_of(text)
        for match in self._added.finditer(text) if self._added.pattern else ():
            before, after = units[units[:, 1] <= match.start()], units[units[:, 0] >= match.end()]
            inside = units[len(before) : len(units) - len(after)]
            if len(inside):
                units = np.concatenate([before, [[inside[0, 0], inside[-1, 1]]], after])
        return units

    @property
    def vocabulary(self) -> dict[str, int]:
        """The ids of all tokens, a dict by token."""
        return self._tokenizer.get_vocab()

    def entries(self) -> dict[str, str]:
        """The special tokens as tokenizer_config.json names them."""
        roles = [(names, self.special[role]) for role, (names, _) in _ROLES.items() if role in self.special]
        return {name: token for names, token in roles for name in names}

    @property
    def vocab_size(self) -> int:
        """The number of ids: the largest one plus 1."""
        return max(self.vocabulary.values()) + 1

    def token_to_id(self, token: str) -> int:
        """The id of a token, or of the unknown token if the vocabulary lacks it."""
        number = self._tokenizer.token_to_id(token)
        if number is not None:
            return number
        if "unk" not in self.ids:
            raise ValueError(f"An unknown token needs one in the vocabulary. Received: {token!r}")
        return self.ids["unk"]

    def id_to_token(self, i: int) -> str:
        """The token with an id."""
        token: Any = self._tokenizer.id_to_token(i)
        if token is None:
            raise KeyError(i)
        return token

    def tokenize(self, text: str) -> list[str]:
        """The tokens of a text, with the start and end tokens."""
        return self._tokenizer.encode(text).tokens

    def encode(
        self, first_text: str, second_text: str | None = None, maxlen: int | None = None
    ) -> tuple[list[int], list[int]]:
        """Token ids and segment ids of a text or of a pair, at most `maxlen` of them.

        Tokens beyond `maxlen` are removed at the end of the longer text.
        """
        (encoded,) = self.encode_batch([first_text], None if second_text is None else [second_text], maxlen)
        return encoded.token_ids, encoded.segment_ids

    def encode_batch(
        self,
        texts: Sequence[str],
        second_texts: Sequence[str] | None = None,
        maxlen: int | None = None,
        add_special_tokens: bool = True,
    ) -> list[Encoding]:
        """`encode` for many texts at once, with the offsets of every token in characters of its text."""
        if isinstance(texts, str):
            raise ValueError(f"`texts` is a list of strings. Received: {texts!r}")
        if second_texts is not None and len(second_texts) != len(texts):
            raise ValueError(f"`second_texts` needs {len(texts)} texts. Received: {len(second_texts)} texts")
        pairs = list(texts) if second_texts is None else list(zip(texts, second_texts))
        if maxlen is not None:
            self._tokenizer.enable_truncation(maxlen)
        try:
            found = self._tokenizer.encode_batch(pairs, add_special_tokens=add_special_tokens)
        finally:
            self._tokenizer.no_truncation()
        return [Encoding(e.ids, e.type_ids, np.array(e.offsets, np.int64).reshape(-1, 2)) for e in found]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids, without special tokens."""
        return self._tokenizer.decode(list(ids))

    def separators(self) -> list[int]:
        """The ids between the texts of a pair: XLM-R has two end tokens there."""
        encoded = self._tokenizer.encode("a", "a")
        numbers = encoded.sequence_ids
        return [i for place, i in enumerate(encoded.ids) if numbers[place] is None and 0 in numbers[:place]][:-1]

    def encode_units(self, texts: Sequence[str], units: Sequence[np.ndarray]) -> list[UnitPieces]:
        """Encodes texts unit by unit, so that no piece crosses the border of two units.

        A unit after white space is encoded with a space before it. Each text has an ascending array `(units, 2)`.
        """
        keys = [self._keys(text, places.tolist()) for text, places in zip(texts, units, strict=True)]
        self._encode_new({key for row in keys for key in row})
        return [self._joined(places, row) for places, row in zip(units, keys, strict=True)]

    def _keys(self, text, places):
        """The units of a text as strings, with a space before those that have one in the text."""
        keys, before = [], None
        for start, end in places:
            space = self._prefix if before is None else " " * text[before:start].endswith(tuple(" \t\n\r\u3000\u00a0"))
            keys.append(space + text[start:end])
            before = end
        return keys

    def _encode_new(self, keys):
        new = sorted(keys - self._pieces.keys())
        if len(self._pieces) + len(new) > CACHED_UNITS:
            self._pieces, new = {}, sorted(keys)
        parts = [[key for key in new if key.startswith(" ") is spaced] for spaced in (False, True)]
        found = [t.encode_batch(part, add_special_tokens=False) for t, part in zip(self._of_units, parts)]
        for key, e in zip(parts[0] + parts[1], found[0] + found[1], strict=True):
            has_text = [bool(token.strip(_SPACES)) for token in e.tokens]
            first = has_text.index(True) if True in has_text else 0  # a space alone is not the piece of a unit
            ends = np.array([end for _, end in e.offsets], np.int64) - key.startswith(" ")
            self._pieces[key] = (e.ids, np.maximum(ends, 0), first)

    def _joined(self, places, keys):
        ids, ends, first, kept = [], [np.zeros(0, np.int64)], [], []
        for index, (start, key) in enumerate(zip(places[:, 0].tolist(), keys, strict=True)):
            numbers, lengths, own = self._pieces[key]
            if numbers:
                kept.append(index)
                first.append(len(ids) + own)
                ids += numbers
                ends.append(lengths + start)
        return UnitPieces(ids, np.concatenate(ends), places[kept], np.array(first, np.int64))


def _prefixing(whole, kinds=_PREFIXING):
    """Yields the parts of a tokenizer.json that put a space before a text, or before each word."""
    for kind, parts in (("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers")):
        part = whole.get(kind) or {}
        yield from (x for x in part.get(parts, [part]) if x.get("type") in kinds)


def _has_prefix(definition):
    """Whether a text is encoded with a space before it."""
    for part in _prefixing(json.loads(definition)):
        always = part["type"] == "Prepend" or part.get("add_prefix_space", False)
        if part.get("prepend_scheme", "always" if always else "never") != "never":
            return True
    return False


def _with_prefix(definition, has_prefix, kinds=_PREFIXING):
    """The same definition of a tokenizer, which puts a space before a text, or none; as it is for None."""
    whole = json.loads(definition)
    parts = list(_prefixing(whole, kinds))
    if not parts or has_prefix in (None, _has_prefix(definition)):
        return definition
    changes = dict.fromkeys(kinds, {"add_prefix_space": has_prefix}) | {"Prepend": {"prepend": "▁" * has_prefix}}
    for part in parts:
        part |= changes[part["type"]]
        if part["type"] == "Metaspace":
            part["prepend_scheme"] = "always" if has_prefix else "never"
    return json.dumps(whole)


def _by_folder(definition, special_map, settings, added, config):
    """The definition, changed by the other files of the folder as in `transformers`: the space before a text, which
    some classes have, and added tokens."""
    kind = str(settings.get("tokenizer_class") or config.get("model_type")).lower().replace("-", "")
    part, default = _PREFIXES.get(kind.removesuffix("fast").removesuffix("tokenizer"), ("", None))
    whole = json.loads(definition)
    if any(found["type"] == part for found in _prefixing(whole)):
        definition = _with_prefix(definition, settings.get("add_prefix_space", default))
    known = {token["content"] for token in whole.get("added_tokens") or ()}
    new = [token for token in _added_tokens(special_map, settings, added) if token["content"] not in known]
    if not new:
        return definition
    from tokenizers import AddedToken, Tokenizer

    tokenizer = Tokenizer.from_str(definition)
    tokenizer.add_tokens([AddedToken(**token) for token in new])
    return tokenizer.to_str()


def _added_tokens(special_map, settings, added):
    """The tokens that the files of a folder add, as dicts, those with ids first."""
    ids = {int(number): token for number, token in (settings.get("added_tokens_decoder") or {}).items()}
    ids |= {number: token for token, number in added.items()}
    tokens = [ids[number] for number in sorted(ids)]
    for name in ("additional_special_tokens", "extra_special_tokens"):
        more = settings.get(name) or special_map.get(name) or ()
        tokens += more.values() if isinstance(more, Mapping) else more
    flags = [token if isinstance(token, Mapping) else {"content": token, "special": True} for token in tokens]
    return [{key: value for key, value in token.items() if key != "__type"} for token in flags]
