"""The check that predictions are those of the gold texts. Needs no Keras."""

from collections.abc import Sequence
from typing import Any

_SHOWN = 40  # characters of a text in a message


class MismatchError(ValueError):
    """Predictions are not those of the gold texts.

    Attributes:
        line: The number of the line that differs, counted from 1; None if the message names the place.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def check_same_texts(kind: str, gold: Sequence[Any], predicted: Sequence[Any]) -> None:
    """Raises MismatchError unless the texts of gold and prediction are the same.

    Args:
        kind: The name of a text in messages, such as "sentence".
        gold, predicted: Lists of strings, or of tuples of strings and None.
    """
    for number, (gold_text, predicted_text) in enumerate(zip(gold, predicted), 1):
        if gold_text != predicted_text:
            raise MismatchError(
                f"gold and prediction must have the same {kind}s. Received: {kind} {number} "
                f"{_shortened(predicted_text)!r}, in the gold {_shortened(gold_text)!r}"
            )
    if len(gold) != len(predicted):
        raise MismatchError(
            f"gold and prediction must have the same {kind}s. Received: {len(predicted)} {kind}s, in the gold "
            f"{len(gold)}"
        )


def _shortened(text: Any) -> str:
    texts = [text] if isinstance(text, str) else text
    return " | ".join(part[:_SHOWN] for part in texts if part is not None)
