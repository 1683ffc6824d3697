"""Vocabularies of BERT, dicts from token to id, and the settings of its tokenizer, as Hugging Face writes them.

A folder has vocab.txt, a token per line, and tokenizer_config.json; what they lack is read from tokenizer.json.
"""

import codecs
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from kcrf.files import read_json, write_aside
from kcrf.tokenizers.characters import ALONE, character_classes


def load_vocab(
    dict_path: str | PathLike[str],
    encoding: str = "utf-8",
    simplified: bool = False,
    startswith: list[str] | None = None,
) -> Any:
    """Reads a vocabulary file, one token per line. Bytes that are invalid in its encoding are ignored.

    Args:
        dict_path: The file.
        encoding: The encoding of the file. Defaults to "utf-8".
        simplified: Whether to drop tokens that Chinese text never produces: multi-character tokens that contain a
            Chinese character or punctuation, and "##" pieces of such characters. Defaults to `False`.
        startswith: With `simplified`, the tokens that come first, such as ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].

    Returns:
        A dict from token to id, the number of its line from 0. With `simplified` a pair: a dict with new ids, and the
        list of the old id of each token, for `build_transformer_model(keep_tokens=...)`.
    """
    token_dict = {}
    if codecs.lookup(encoding).name == "utf-8":
        encoding = "utf-8-sig"
    with open(dict_path, encoding=encoding, errors="ignore") as file:
        for number, line in enumerate(file):
            token_dict[(line.split() or [line.strip()])[0]] = number
    if not simplified:
        return token_dict
    first = list(startswith or [])
    unknown = [token for token in first if token not in token_dict]
    if unknown:
        raise ValueError(f"{dict_path}: `startswith` needs tokens of the vocabulary. Received: {', '.join(unknown)}")
    others = sorted((token for token in token_dict if token not in first), key=token_dict.__getitem__)
    class_of = character_classes().of
    kept = first + [t for t in others if len(t) <= 1 or not any(class_of(char) == ALONE for char in stem(t))]
    return {token: place for place, token in enumerate(kept)}, [token_dict[token] for token in kept]


def save_vocab(dict_path: str | PathLike[str], token_dict: Mapping[str, int], encoding: str = "utf-8") -> None:
    """Writes a vocabulary file, a line for each id, empty for an id without a token."""
    write_aside(Path(dict_path), lambda aside: aside.write_text(vocab_text(token_dict), encoding=encoding))


def vocab_text(token_dict):
    """The content of a vocabulary file, in which the id of a token is the number of its line. Other lines are empty."""
    lines = [""] * (max(token_dict.values(), default=-1) + 1)
    for token, number in token_dict.items():
        lines[number] = token
    return "".join(f"{line}\n" for line in lines)


def continues_word(vocabulary):
    """Whether each token continues the word before it, as `##ing` does: `(ids,)` bool."""
    continues = np.zeros(max(vocabulary.values()) + 1, bool)
    continues[[number for token, number in vocabulary.items() if token.startswith("##")]] = True
    return continues


def stem(token):
    """A token without its leading "##"."""
    return token.removeprefix("##")


VOCAB, WHOLE, SETTINGS = "vocab.txt", "tokenizer.json", "tokenizer_config.json"
SPECIAL_MAP, ADDED = "special_tokens_map.json", "added_tokens.json"
SPECIAL = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}
PADDING = ("[PAD]", "<pad>")  # its usual names
# Settings that change tokens, with the only value that is supported. Not here: what only limits lengths or pads.
SUPPORTED = {
    **{f"{name}_token": token for name, token in SPECIAL.items()},
    **dict.fromkeys(("clean_text", "do_basic_tokenize", "do_word_tokenize", "do_subword_tokenize"), True),
    "wordpieces_prefix": "##",
    "word_tokenizer_type": "basic",  # of Japanese BERTs, also "mecab"
    "subword_tokenizer_type": "wordpiece",
}
EXTRA_TOKENS = ("added_tokens_decoder", "additional_special_tokens", "extra_special_tokens", "never_split")
# Classes that split a text as BERT's does, "Fast" left out; the last two are named where tokenizer.json says how.
FAMILIES = ("Bert", "ConvBert", "DistilBert", "Electra", "Ernie", "MobileBert", "Nezha")
CLASSES = {f"{family}Tokenizer" for family in FAMILIES}
CLASSES |= {"PreTrainedTokenizer", "TokenizersBackend"}


class TokenizerSettings(NamedTuple):
    """How a tokenizer changes a text before it splits words into pieces. `None` where the files do not say it."""

    do_lower_case: bool | None = None
    strip_accents: bool | None = None
    tokenize_chinese_chars: bool | None = None


def tokenizer_files(path: str | PathLike[str]) -> list[Path]:
    """Those files of a tokenizer that exist in a folder, or beside a configuration."""
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    return [folder / name for name in (VOCAB, WHOLE, SETTINGS, SPECIAL_MAP, ADDED) if (folder / name).is_file()]


def padding_id(path: str | PathLike[str], default: int) -> int:
    """The id of the padding token by the tokenizer's files beside a configuration. A line says if it is another."""
    folder = Path(path) if Path(path).is_dir() else Path(path).parent
    files = [read_json(folder / name) for name in (SPECIAL_MAP, SETTINGS) if (folder / name).is_file()]
    named = [text_of(file["pad_token"]) for file in reversed(files) if file.get("pad_token")]
    ids = _ids_in(folder)
    token = next((token for token in (*named[:1], *PADDING) if token in ids), PADDING[0])
    found = ids.get(token, default)
    if found != default:
        print(f"{folder}: the padding token is {token!r}, {found}, as its tokenizer says. Received: {default}")
    return found


def _ids_in(folder: Path) -> Mapping[str, int]:
    """The ids of the tokens in a folder, by token, from `tokenizer.json`, `vocab.json` or `vocab.txt`; {} without."""
    if (folder / WHOLE).is_file():
        whole = read_json(folder / WHOLE)
        vocab = whole["model"].get("vocab") or {}
        ids = dict(vocab) if isinstance(vocab, Mapping) else {token: number for number, (token, _) in enumerate(vocab)}
        return ids | {token["content"]: token["id"] for token in whole.get("added_tokens") or []}
    if (folder / "vocab.json").is_file():
        return read_json(folder / "vocab.json")
    return load_vocab(folder / VOCAB) if (folder / VOCAB).is_file() else {}


def has_subwords(folder: str | PathLike[str]) -> bool:
    """Whether the `tokenizer.json` in a folder is of Unigram or BPE, or of WordPiece with other tokens than BERT's."""
    path = Path(folder) / WHOLE
    model = (read_json(path).get("model") or {}) if path.is_file() else {}
    is_other = "vocab" in model and SPECIAL["pad"] not in model["vocab"]
    return is_other or _kind_of(model) not in (None, "WordPiece")


def _kind_of(part):
    """The kind of a part of a tokenizer, or None. Files of older models do not name it."""
    entries = {"merges": "BPE", "unk_id": "Unigram", "vocab": "WordPiece"}
    return part.get("type") or next((kind for entry, kind in entries.items() if entry in part), None)


def vocabulary_file(folder: Path) -> Path:
    """The file with the vocabulary in a folder. Raises FileNotFoundError if there is none."""
    for name in (VOCAB, WHOLE):
        if (folder / name).is_file():
            return folder / name
    raise FileNotFoundError(
        f"{folder / VOCAB}: no such file; an encoder needs {VOCAB} or {WHOLE}, which `transformers` writes: "
        f"AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
    )


def read_vocabulary(path: Path) -> dict[str, int]:
    """The vocabulary in a `vocab.txt` or a `tokenizer.json`, a dict from token to id."""
    if path.name != WHOLE:
        for number, line in enumerate(path.read_bytes().splitlines(), 1):  # `load_vocab` would omit bytes
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                raise ValueError(f"{path}:{number}: a vocabulary needs UTF-8 text. Received: {line[:40]!r}") from None
        vocabulary, others = load_vocab(path), _ids_in(path.parent)
        if any(vocabulary.get(token, number) != number for token, number in others.items()):
            raise ValueError(f"{path}: needs the ids of {WHOLE}; remove the file that is wrong. Received: other ids")
        return vocabulary
    whole = read_json(path)
    _check_whole(path, whole)
    return dict(whole["model"]["vocab"])


def read_tokenizer_settings(folder: Path) -> TokenizerSettings:
    """The settings of the tokenizer in a folder."""
    settings: dict[str, Any] = {}
    if (folder / WHOLE).is_file():
        whole = read_json(folder / WHOLE)
        _check_whole(folder / WHOLE, whole)
        members = ("lowercase", "strip_accents", "handle_chinese_chars")
        settings = dict(zip(TokenizerSettings._fields, map((whole.get("normalizer") or {}).get, members), strict=True))
    if (folder / SETTINGS).is_file():
        config = read_json(folder / SETTINGS)
        _check_config(folder / SETTINGS, config)
        settings.update({name: config[name] for name in TokenizerSettings._fields if config.get(name) is not None})
    for name, value in settings.items():
        if value is not None and not isinstance(value, bool):
            raise ValueError(f"{folder / SETTINGS}: {name} must be true, false or null. Received: {value!r}")
    return TokenizerSettings(**settings)


def _check_whole(path, whole):
    """Raises ValueError unless a `tokenizer.json` describes a tokenizer of BERT."""
    kinds = {"normalizer": "BertNormalizer", "pre_tokenizer": "BertPreTokenizer", "model": "WordPiece"}
    for part, kind in kinds.items():
        received = _kind_of(whole.get(part) or {})
        if received != kind:
            raise ValueError(f"{path}: {part} must be a {kind}, as BERT's tokenizer has it. Received: {received!r}")
    for part, name, value in (("normalizer", "clean_text", True), ("model", "continuing_subword_prefix", "##")):
        if whole[part].get(name, value) != value:
            raise ValueError(f"{path}: {name} must be {value!r}. Received: {whole[part][name]!r}")
    _check_extra_tokens(path, "added_tokens", [token.get("content") for token in whole.get("added_tokens") or []])


def _check_config(path, config):
    """Raises ValueError if a `tokenizer_config.json` has a setting that changes tokens and is not supported."""
    kind = config.get("tokenizer_class")
    if kind is not None and kind.removesuffix("Fast") not in CLASSES:
        raise ValueError(f"{path}: tokenizer_class must be one of {sorted(CLASSES)}. Received: {kind!r}")
    for name, value in SUPPORTED.items():
        received = text_of(config.get(name))
        if received is not None and received != value:
            raise ValueError(f"{path}: {name} must be {value!r}. Received: {received!r}")
    for name in EXTRA_TOKENS:
        tokens = config.get(name) or []
        tokens = tokens.values() if isinstance(tokens, Mapping) else tokens
        _check_extra_tokens(path, name, list(map(text_of, tokens)))


def text_of(token: Any) -> Any:
    """A special token, which a file may write as text or as an object with its content."""
    return token.get("content") if isinstance(token, Mapping) else token


def _check_extra_tokens(path, name, tokens):
    """Raises ValueError if there are tokens that are not split, besides those that BERT has."""
    extra = [token for token in tokens if token not in SPECIAL.values()]
    if extra:
        raise ValueError(
            f"{path}: {name} must have no tokens besides {', '.join(SPECIAL.values())}: others are split here. If no "
            f"text has them, remove them from the file. Received: {extra[:5]}"
        )
