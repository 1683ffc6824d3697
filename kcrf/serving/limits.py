"""The limits of a server."""

from dataclasses import dataclass

PIECE = 128  # characters, as many as a window of a tagger has


@dataclass(frozen=True)
class Limits:
    """The limits of a server.

    Attributes:
        body: Maximum number of bytes of a request's body.
        texts: Maximum number of texts in a request.
        length: Maximum number of characters of a text.
        waiting: Maximum number of texts that wait for a model; a single request may have more. A text counts once for
            each 128 characters that it has or begins.
        batch: Maximum number of texts in a batch, counted the same way.
        k_best: Maximum number of alternatives.
        words: Maximum number of words in the user dictionary of a request.
        seconds: Time that a client may take to send a body.
    """

    body: int = 1_000_000
    texts: int = 256
    length: int = 10_000
    waiting: int = 2_000
    batch: int = 64
    k_best: int = 20
    words: int = 1_000
    seconds: float = 30.0

    def __post_init__(self):
        for name, value in vars(self).items():
            if value <= 0:
                raise ValueError(f"`{name}` must be positive. Received: {value}")


def pieces(texts):
    """The number of pieces of at most 128 characters in texts, or pairs of texts: at least one each.

    >>> pieces(["", "好" * 128, "好" * 129]), pieces([("好" * 100, "的" * 100)])
    (4, 2)
    """
    return sum(max(1, -(-len("".join(text)) // PIECE)) for text in texts)
