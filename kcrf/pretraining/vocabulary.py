"""Learns a WordPiece vocabulary from text with the library `tokenizers`. Needs no Keras."""

from collections import Counter
from collections.abc import Iterable, Iterator

from kcrf.extras import needs_extra

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def learn_vocabulary(lines: Iterable[str], size: int, lower_case: bool = True) -> list[str]:
    """Learns a WordPiece vocabulary.

    >>> learn_vocabulary(["low lower lowest"] * 9, 12)[:5]
    ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
    """
    with needs_extra("pretrain", "A new vocabulary"):
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
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

    def counted() -> Iterator[str]:
        for line in lines:
            characters.update(normalizer.normalize_str(line))
            yield line

    learner.train_from_iterator(counted(), trainer)
    pieces = learner.get_vocab()
    rare_characters = [char for char, _ in characters.most_common() if char not in pieces and not char.isspace()]
    return [*sorted(pieces, key=pieces.__getitem__), *rare_characters][:size]
