"""bert4keras' `tokenizers` by their names."""

from typing import Any

from kcrf import tokenizers
from kcrf.bert4keras.absent_names import page
from kcrf.tokenizers import load_vocab, save_vocab

__getattr__ = page("tokenizers")
__all__ = ["Tokenizer", "load_vocab", "save_vocab"]


class Tokenizer(tokenizers.Tokenizer):
    """`kcrf.tokenizers.Tokenizer`, which also takes `max_length`, the name of `maxlen` in older releases."""

    def encode(
        self,
        first_text: Any,
        second_text: Any = None,
        maxlen: int | None = None,
        *args: Any,
        max_length: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """`kcrf.tokenizers.Tokenizer.encode`; `max_length` is the name of `maxlen` in older releases."""
        return super().encode(first_text, second_text, maxlen if max_length is None else max_length, *args, **kwargs)

    def tokenize(self, text: Any, maxlen: int | None = None, max_length: int | None = None) -> Any:
        """`kcrf.tokenizers.Tokenizer.tokenize`; `max_length` is the name of `maxlen` in older releases."""
        return super().tokenize(text, maxlen if max_length is None else max_length)
