"""Identifiers that begin the lines of segmented text, as in the People's Daily corpus: 19980101-01-001-001/m."""

import re

_IDENTIFIER = re.compile(r"(?=[^/]*\d)[A-Za-z0-9][A-Za-z0-9_.:-]*(/[A-Za-z]+)?", re.ASCII)
_MANY = 10  # lines, from which on a different number at the begin of each is an identifier


def without_identifiers(path, lines):
    """Lines of words without identifiers. A note on standard error says that they were removed.

    Args:
        path: The file, for the note.
        lines: A list of words for each line, with their classes or without; empty lists are blank lines.

    >>> lines = [[f"19980101-01-001-{n:03}/m", "迈向/v", "充满/v"] for n in range(1, 11)]
    >>> without_identifiers("pfr.txt", lines)[0]
    ['迈向/v', '充满/v']
    """
    firsts = [words[0] for words in lines if words]
    are_identifiers = len(set(firsts)) == len(firsts) >= _MANY and all(map(_IDENTIFIER.fullmatch, firsts))
    if not are_identifiers:
        return lines
    from kcrf.progress_bars import print_note

    print_note(f"{path}: removed the identifiers that begin all lines, such as {firsts[0]}")
    return [words[1:] for words in lines]
