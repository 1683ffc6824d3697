"""Vocabularies of BERT: files of one token per line, and dicts from token to id."""

import codecs
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from kcrf.files import write_aside
from kcrf.tokenizers.characters import ALONE, character_classes


def load_vocab(
    dict_path: str | PathLike[str],
    encoding: str = "utf-8",
    simplified: bool = False,
    startswith: list[str] | None = None,
) -> Any:
    """Reads a vocabulary file, one token per line.

    Args:
        dict_path: The file.
        encoding: The encoding of the file. Bytes that are invalid in it are ignored, and so is a byte order mark of
            UTF-8. Defaults to "utf-8".
        simplified: Whether to drop tokens that Chinese text never produces: those of several characters, one of them
            Chinese or punctuation, and the "##" forms of such characters. Defaults to `False`.
        startswith: With `simplified`, the tokens that come first, such as ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].
            Defaults to none.

    Returns:
        A dict from token to id, which is the number of its line from 0. With `simplified` a pair: a dict with new ids,
        and the list of the old id of each token, for `build_transformer_model(keep_tokens=...)`.

    Raises:
        ValueError: A token of `startswith` is not in the file.
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
    kept = first + [token for token in others if _occurs_in_chinese(token)]
    return {token: place for place, token in enumerate(kept)}, [token_dict[token] for token in kept]


def _occurs_in_chinese(token):
    return len(token) <= 1 or not any(character_classes().of(char) == ALONE for char in stem(token))


def save_vocab(dict_path: str | PathLike[str], token_dict: Mapping[str, int], encoding: str = "utf-8") -> None:
    """Writes a vocabulary file, a line for each id, empty for an id without a token."""
    write_aside(Path(dict_path), lambda aside: aside.write_text(vocab_text(token_dict), encoding=encoding))


def vocab_text(token_dict):
    """The content of a vocabulary file, in which the id of a token is the number of its line.

    Ids without a token, as those of a token that a file has twice, are empty lines.

    >>> vocab_text({"a": 0, "b": 2})
    'a\\n\\nb\\n'
    """
    lines = [""] * (max(token_dict.values(), default=-1) + 1)
    for token, number in token_dict.items():
        lines[number] = token
    return "".join(f"{line}\n" for line in lines)


def continues_word(vocabulary):
    """Whether each token continues the word before it, as `##ing` does: `(ids,)` bool.

    >>> continues_word({"go": 0, "##ing": 2})
    array([False, False,  True])
    """
    continues = np.zeros(max(vocabulary.values()) + 1, bool)
    continues[[number for token, number in vocabulary.items() if token.startswith("##")]] = True
    return continues


def stem(token):
    """A token without its leading "##"."""
    return token.removeprefix("##")
