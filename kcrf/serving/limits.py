"""What a server accepts at most."""

from dataclasses import dataclass

__all__ = ["Limits", "pieces"]

PIECE = 128  # characters, as many as a window of a tagger has


@dataclass(frozen=True)
class Limits:
    """What a server accepts at most.

    Attributes:
        body: Bytes of a request's body.
        texts: Texts in a request.
        length: Characters of a text.
        waiting: Texts that may wait for a model, those of one request excepted. A text counts once for each 128
            characters that it has or begins.
        batch: Texts that a model computes at once, counted likewise.
        top_k: The alternatives that may be asked for.
        seconds: How long a client may take to send a body.
    """

    body: int = 1_000_000
    texts: int = 256
    length: int = 10_000
    waiting: int = 2_000
    batch: int = 64
    top_k: int = 20
    seconds: float = 30.0

    def __post_init__(self):
        for name, value in vars(self).items():
            if value <= 0:
                raise ValueError(f"`{name}` must be positive. Received: {value}")


def pieces(texts):
    """How many pieces of at most 128 characters some texts, or pairs of texts, have: at least one each.

    >>> pieces(["", "好" * 128, "好" * 129]), pieces([("好" * 100, "的" * 100)])
    (4, 2)
    """
    return sum(max(1, -(-len("".join(text)) // PIECE)) for text in texts)
