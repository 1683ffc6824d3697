"""Segments lines of text with a linear model. Millions of characters a second, because a whole batch is one array."""

from itertools import chain

import numpy as np

from kcrf.chains import Packing, best_paths
from kcrf.readers.code_points import BOUNDARY, code_points
from kcrf.readers.ngrams import REACH, columns_of_text, hashed
from kcrf.readers.padding import BUCKETS
from kcrf.readers.windows import windows
from kcrf.taggers.constraints import latin_runs

_GAP = BOUNDARY * REACH
_SPACE, _LINE_END = ord(" "), ord("\n")
_CHARACTERS = 1 << 17  # of a batch: its arrays fit into the cache of a processor


class LineSegmenter:
    """Segments texts like `Decoder.spans`, with array operations on many texts at once."""

    def __init__(self, network, reader, keep_latin):
        self._reader, self._keep_latin, self._model = reader, keep_latin, network.model
        table, self._scale = network.model.integers()
        self._table = np.ascontiguousarray(table).view("uint32")[:, 0]  # four scores of 8 bits each
        self._transitions = network.model.constrained_transitions().astype("float32")

    def segment(self, texts, on_batch):
        """Segments texts. Returns a list of strings with spaces between words."""
        lines, batch, size = [], [], 0
        for text in texts:
            batch.append(text)
            size += len(text)
            if size >= _CHARACTERS:
                lines += self._segment(batch)
                on_batch(size)
                batch, size = [], 0
        if batch:
            lines += self._segment(batch)
            on_batch(size)
        return lines

    def _segment(self, texts):
        parts = [text.split() for text in texts]
        flat = list(chain.from_iterable(parts))
        if not flat:
            return [""] * len(texts)
        joined = f"{_GAP}{_GAP.join(flat)}{_GAP}"
        lengths = np.fromiter(map(len, flat), "int64", len(flat))
        firsts = np.cumsum(lengths + REACH) - lengths  # (parts,) in the joined text
        is_start = self._word_starts(joined, flat, firsts, lengths)
        counts = np.fromiter(map(len, parts), "int64", len(parts))
        first_parts = (np.cumsum(counts) - counts)[counts > 0]  # of the texts with at least one part
        lines = iter(_with_spaces(joined, is_start, firsts, lengths, firsts[first_parts]))
        return [next(lines) if count else "" for count in counts.tolist()]

    def _word_starts(self, joined, parts, firsts, lengths):
        """Whether a word begins at each character of the joined text, `(characters,)` bool."""
        inside = _inside_runs(joined) if self._keep_latin else np.zeros(len(joined) + 1, bool)
        bounds = _windows(parts, firsts, lengths)  # (windows, 4)
        starts, stops, keeps, kept = bounds.T
        packing = Packing.of_lengths(stops - starts)  # of the windows without gaps
        places = np.repeat(starts - packing.first, packing.lengths) + np.arange(packing.lengths.sum())  # (positions,)
        scores = self._emissions(joined)[places - REACH] * np.float32(self._scale)
        self._model.forbid(scores, packing)
        if inside.any():
            self._forbid_cuts(scores, packing, inside[places], inside[places + 1])
        begins = self._model.scheme.allowed_starts[best_paths(scores, self._transitions, packing)]
        is_kept = (places >= np.repeat(keeps, packing.lengths)) & (places < np.repeat(kept, packing.lengths))
        is_start = np.zeros(len(joined), bool)
        is_start[places[is_kept]] = begins[is_kept]
        return is_start

    def _emissions(self, joined):
        """The sums of the integer scores of all positions, `(positions, tags)` int16."""
        columns = columns_of_text(joined, self._reader.lexicon)
        length = len(joined) - 2 * REACH
        total, scores = np.zeros((length, 4), "int16"), np.empty(length, "uint32")
        for buckets in hashed(columns, self._reader.ngrams.templates, self._reader.ngrams.buckets):
            np.take(self._table, buckets, out=scores, mode="clip")
            total += scores.view("int8").reshape(length, 4)
        return total

    def _forbid_cuts(self, scores, packing, no_start, no_end):
        """Forbids words that begin or end inside a run of Latin letters and digits.

        The part of a run in a window is a whole run there, as in `allowed_tags`.
        """
        no_start[packing.first] = no_end[packing.last] = False
        scheme = self._model.scheme
        scores[np.ix_(no_start, scheme.allowed_starts)] = -np.inf
        scores[np.ix_(no_end, scheme.allowed_ends)] = -np.inf


def _inside_runs(joined):
    """Whether each character continues a run of Latin letters and digits, `(characters + 1,)` bool."""
    inside = np.zeros(len(joined) + 1, bool)
    for start, end in latin_runs(joined):
        inside[start + 1 : end] = True
    return inside


def _windows(parts, firsts, lengths):
    """The windows of parts, `(windows, 4)`: the start and end of each, then the start and end of what it keeps."""
    bounds = np.stack([firsts, firsts + lengths] * 2, axis=1)
    long = np.flatnonzero(lengths > BUCKETS[-1]).tolist()
    if not long:
        return bounds
    rows = [[firsts[i] + place for place in window] for i in long for window in windows(parts[i])]
    return np.concatenate([np.delete(bounds, long, axis=0), rows])


def _with_spaces(joined, is_start, firsts, lengths, text_starts):
    """A line for each text, with a space before each word except the first."""
    is_start[firsts] = True
    is_real = np.ones(len(joined), bool)
    ends = firsts + lengths
    for gap in range(REACH):
        is_real[ends + gap] = False
    is_real[:REACH] = False
    places = np.cumsum(is_start[is_real]) + np.arange(np.count_nonzero(is_real))  # of the characters in the lines
    lines = np.full(places[-1] + 1, _SPACE, "uint32")
    lines[places] = code_points(joined)[is_real]
    number = np.cumsum(is_real) - 1  # of each character among those that are not gaps
    lines[places[number[text_starts]] - 1] = _LINE_END
    return lines[1:].tobytes().decode("utf-32-le", "surrogatepass").split("\n")
