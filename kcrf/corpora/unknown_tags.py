"""Tags of a file that are not known, written `?` or `-1`: what remains of the entities around them. Plain Python."""

UNKNOWN = ("?", "-1")
_BEGINS, _CLOSED = "OBSU", "OESLU"  # first letters of the tags that begin, and that end, outside or a whole entity


def known_runs(sentences):
    """The stretches of known tags of the sentences of a file, without pieces of entities that unknown tags cut off.

    Args:
        sentences: Lists of (line number, token, tag).

    Returns:
        For each sentence a list of `(number of the first token, rows)`.

    >>> rows = [(1, "Kim", "B-PER"), (2, "Smith", "?"), (3, "Jones", "I-PER"), (4, "slept", "O")]
    >>> known_runs([rows])
    [[(0, [(1, 'Kim', 'B-PER')]), (3, [(4, 'slept', 'O')])]]
    """
    marks_ends = any(tag[0] in "ESLUM" for rows in sentences for *_, tag in rows)
    return [_runs(rows, marks_ends) for rows in sentences]


def _runs(rows, marks_ends):
    borders = [-1, *(i for i, (*_, tag) in enumerate(rows) if tag in UNKNOWN), len(rows)]
    runs = []
    for before, after in zip(borders, borders[1:]):
        first, stop = before + 1, after
        while before >= 0 and first < stop and rows[first][2][0] not in _BEGINS:
            first += 1
        if marks_ends and after < len(rows) and first < stop and rows[stop - 1][2][0] not in _CLOSED:
            while first < stop and rows[stop - 1][2][0] not in _BEGINS:
                stop -= 1
            stop = max(first, stop - 1)
        runs += [(first, rows[first:stop])] if first < stop else []
    return runs


def unknown_parts(rows, runs):
    """The `(start, end)`, in tokens, of a sentence outside of its known runs."""
    return outside_spans([(first, first + len(run)) for first, run in runs], [(0, len(rows))])


def outside_spans(spans, parts):
    """The parts without what spans cover.

    Args:
        spans: `(start, end, ...)` in order, without overlaps.
        parts: A sorted list of `(start, end)` without overlaps.

    >>> outside_spans([(2, 4), (6, 9)], [(0, 7), (8, 10)])
    [(0, 2), (4, 6), (9, 10)]
    """
    pieces = []
    for start, end in parts:
        for begin, stop, *_ in spans:
            if stop > start and begin < end:
                pieces += [(start, begin)] if start < begin else []
                start = stop
        pieces += [(start, end)] if start < end else []
    return pieces
