"""Checks and repairs the tags of sentences before training. Needs NumPy only."""

from collections.abc import Iterable, Sequence
from typing import Any

from kcrf.tags.scheme import TagScheme

_MOST_VIOLATIONS = 5  # in an error message


def check_tags(
    sentences: Iterable[Any], scheme: TagScheme, lengths: Sequence[int] | None = None, repair: bool = False
) -> list[list[int]]:
    """Checks the tags of sentences before training, since a compiled graph cannot report errors in them.

    Args:
        sentences: One sequence of ints per sentence; negative ones are unknown, and transitions from and to them are
            not checked.
        scheme: The `TagScheme` that they should follow.
        lengths: The number of characters of each sentence. Defaults to `None`: not checked.
        repair: Whether to repair sentences that break the scheme with `TagScheme.repair`, such as those of IOB1 files,
            instead of raising an error. Defaults to `False`.

    Returns:
        A list of lists of ints that follow the scheme.

    Raises:
        ValueError: A sentence has another length or a tag that the scheme lacks, or without `repair` breaks the scheme;
            names the first sentences, positions and labels, counted from 0, and the number of all.

    >>> from kcrf.tags import bmes
    >>> check_tags([[0, 1, 3], [1, 2]], bmes(), repair=True)
    [[0, 1, 3], [1, 3]]
    """
    sentences = [[int(tag) for tag in tags] for tags in sentences]
    _check_ranges(sentences, scheme, lengths)
    broken = {number: violations for number, tags in enumerate(sentences) if (violations := scheme.violations(tags))}
    if not repair and broken:
        total = sum(map(len, broken.values()))
        places = [(number, *violation) for number, violations in broken.items() for violation in violations]
        raise ValueError(
            f"Tags must follow the scheme {scheme.name}; `repair=True` repairs them. Received: {total} violations in "
            f"{len(broken)} of {len(sentences)} sentences, "
            f"first {'; '.join(_describe(*place) for place in places[:_MOST_VIOLATIONS])}"
        )
    for number in broken:
        try:
            sentences[number] = scheme.repair(sentences[number])
        except ValueError as error:
            raise ValueError(f"sentence {number}: {error}") from None
    return sentences


def _check_ranges(sentences: Sequence[Sequence[int]], scheme: TagScheme, lengths: Sequence[int] | None) -> None:
    if lengths is not None and len(lengths) != len(sentences):
        raise ValueError(f"Needs one length per sentence. Received: {len(sentences)} sentences, {len(lengths)} lengths")
    for number, tags in enumerate(sentences):
        if lengths is not None and len(tags) != lengths[number]:
            raise ValueError(
                f"Needs one tag per character. Received: sentence {number} with {lengths[number]} characters, "
                f"{len(tags)} tags"
            )
        for position, tag in enumerate(tags):
            if tag >= len(scheme):
                raise ValueError(
                    f"Tags must be below {len(scheme)}, the number of labels. Received: tag {tag} in sentence {number} "
                    f"at position {position}"
                )


def _describe(number: int, position: int, previous: str | None, label: str | None) -> str:
    return f"sentence {number}, position {position}: {violation_in_words(previous, label)}"


def violation_in_words(previous: str | None, label: str | None) -> str:
    """Describes a violation in the labels that `TagScheme.violations` returns for it.

    >>> violation_in_words(None, "m"), violation_in_words("b", "b"), violation_in_words("b", None)
    ('m at the start', 'b after b', 'b at the end')
    """
    if label is None:
        return f"{previous} at the end"
    return f"{label} at the start" if previous is None else f"{label} after {previous}"
