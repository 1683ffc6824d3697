"""A WordPiece vocabulary learnt from text, by the library `tokenizers`. Needs no Keras."""

from collections import Counter
from collections.abc import Iterable

__all__ = ["SPECIAL_TOKENS", "learn_vocabulary"]

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def learn_vocabulary(lines: Iterable[str], size: int, lower_case: bool = True) -> list[str]:
    """Learns a vocabulary.

    Args:
        lines: An iterable of strings.
        size: How many tokens it has at most, with the five special ones.
        lower_case: Whether to lower text and strip its accents first, as the tokenizer will. Defaults to True.

    Returns:
        A list of tokens, the special ones first. The characters of the text are among them, and pieces of words; where
        the characters would take more than three quarters of the room, the most frequent ones, and others only where
        there are no pieces to fill it.

    Raises:
        ImportError: The library `tokenizers` is not installed.

    >>> learn_vocabulary(["low lower lowest"] * 9, 12)[:5]
    ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
    """
    try:
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    except ImportError:
        raise ImportError("A vocabulary is learnt by the library tokenizers: pip install tokenizers") from None
    learner = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106 (no password)
    learner.normalizer = normalizers.BertNormalizer(lowercase=lower_case)
    learner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL_TOKENS),
        limit_alphabet=int(0.75 * (size - len(SPECIAL_TOKENS))),  # leaves room for pieces
        continuing_subword_prefix="##",
        show_progress=False,
    )
    characters, normalizer = Counter(), normalizers.BertNormalizer(lowercase=lower_case)  # the learner locks its own

    def counted():
        for line in lines:
            characters.update(normalizer.normalize_str(line))
            yield line

    learner.train_from_iterator(counted(), trainer)
    pieces = learner.get_vocab()
    rare_characters = [char for char, _ in characters.most_common() if char not in pieces and not char.isspace()]
    return [*sorted(pieces, key=pieces.__getitem__), *rare_characters][:size]
