"""The segmentation of lines and the sums of linear training as compiled code. Needs numba."""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np
from numba import njit

from kcrf.readers.code_points import code_points, folded_characters, types_of_characters
from kcrf.readers.lexicon import FACTOR, KINDS, SLOT_BITS
from kcrf.readers.ngrams import FACTORS, MIX, REACH, SEED, places_of

_SHIFT, _WORD = np.uint64(64 - SLOT_BITS), np.uint64(16)  # bits
_BLOCK = 2048  # positions whose arrays stay in the cache of a processor


class CompiledModel:
    """Marks the beginnings of words with a `LinearModel` of four tags and its n-grams of characters."""

    def __init__(self, model, ngrams, lexicon):
        scores, self._scale = model.integers()
        self._scheme, self._transitions = model.scheme, model.constrained_transitions().astype("float32")
        self._names = sorted(ngrams.used)
        self._lexicons = [] if lexicon is None else list(zip(lexicon.indices(), ("be", ("ob", "oe"))))
        self._places = np.full((ngrams.width, len(FACTORS), 2), -1)
        for template, row in zip(ngrams.templates, self._places):
            for number, place in enumerate(places_of(template)):
                row[number] = self._names.index(place.column), place.offset
        self._seeds = np.arange(ngrams.width, dtype="uint32") * SEED
        self._shift = np.uint32(33 - int(ngrams.buckets).bit_length())
        self._bias = np.int32(128 * ngrams.width)
        rows = (scores.astype("int64") + 128).astype("uint64") << (_WORD * np.arange(4, dtype="uint64"))
        self._table = rows.sum(axis=1, dtype="uint64")

    def word_starts(self, joined, bounds, inside):
        """Whether a word begins at each character of a text, `(characters,)` bool.

        `bounds` `(windows, 4)` has the first and last position of each window, half-open, and of what it decides.
        `inside` says of each position whether no word may begin there.
        """
        codes = code_points(joined)
        columns = {"c": folded_characters(codes), "t": types_of_characters(codes)}
        for (keys, kinds, firsts), names in self._lexicons:
            begins, ends = np.zeros((2, len(codes)), "uint32")
            longest_words(columns["c"], keys, kinds, firsts, begins, ends)
            columns.update(zip(names, (begins + 1, ends + 1)))
        columns = np.stack([columns[name].astype("uint32") for name in self._names])
        totals, is_start = np.zeros(len(codes) - 2 * REACH, "uint64"), np.zeros(len(codes), bool)
        add_scores(columns, self._places, self._seeds, self._table, self._shift, totals)
        rules = self._scheme.allowed_starts, self._scheme.allowed_ends
        scale = np.float32(self._scale)
        mark_starts(totals, self._bias, scale, self._transitions, *rules, bounds, inside, is_start)
        return is_start


@njit(cache=True)
def longest_words(characters, keys, kinds, firsts, begins, ends):
    """As `Lexicon.longest`; the arrays of its index follow the characters."""
    for place in range(len(characters)):
        key = np.uint64(characters[place]) * FACTOR
        for length in range(2, min(5, len(characters) - place) + 1):
            key = (key + np.uint64(characters[place + length - 1])) * FACTOR
            slot = key >> _SHIFT
            for number in range(firsts[slot], firsts[slot + np.uint64(1)]):
                if keys[number] == key:
                    begins[place] = (length - 2) * KINDS + kinds[number]
                    end = (length + 2) * KINDS + kinds[number]
                    ends[place + length - 1] = max(ends[place + length - 1], np.uint32(end))


@njit(cache=True)
def add_scores(columns, places, seeds, table, shift, totals):
    """Adds the table's row of each template's bucket to the totals `(positions,)`; see `kcrf.readers.ngrams.hashed`.

    A row is four numbers of 16 bits, not negative, in one integer of 64 bits. `places` `(templates, 4, 2)` has a column
    and an offset for each factor, column -1 for none.
    """
    one, fifteen = np.uint32(1), np.uint32(15)
    hashes = np.empty(_BLOCK, np.uint32)
    for start in range(0, len(totals), _BLOCK):  # a block stays in the cache of a processor
        count = min(_BLOCK, len(totals) - start)
        total = totals[start : start + count]
        for template in range(len(seeds)):
            for place in range(4):
                column, offset = places[template, place]
                if column >= 0:
                    values = columns[column, start + REACH + offset : start + REACH + offset + count]
                    for i in range(count):
                        product = np.uint32(values[i] * FACTORS[place])
                        hashes[i] = product + seeds[template] if place == 0 else hashes[i] + product
            for i in range(count):
                hashed = hashes[i]
                hashed = np.uint32(np.uint32(hashed ^ (hashed >> fifteen)) * MIX)
                total[i] += table[max(np.uint32(hashed >> shift), one)]


@njit(cache=True)
def mark_starts(totals, bias, scale, transitions, starts, ends, windows, inside, is_start):
    """Viterbi with four tags: marks where the best path begins a word; see `CompiledModel.word_starts`."""
    low, infinite = np.float32(-1e9), np.float32(-np.inf)
    longest = 0
    for window in windows:
        longest = max(longest, window[1] - window[0])
    scores, best, mask = np.empty((longest, 4), np.float32), np.empty(4, np.float32), np.uint64(0xFFFF)
    for start, stop, keep, kept in windows:
        for here in range(start, stop):
            row = totals[here - REACH]
            for tag in range(4):
                score = np.float32(np.int32((row >> (_WORD * np.uint64(tag))) & mask) - bias) * scale
                if here == start and not starts[tag]:
                    score += low
                if here == stop - 1 and not ends[tag]:
                    score += low
                if starts[tag] and here > start and inside[here]:
                    score = infinite
                if ends[tag] and here < stop - 1 and inside[here + 1]:
                    score = infinite
                scores[here - start, tag] = score
            if here > start:
                for to in range(4):
                    best[to] = scores[here - start - 1, 0] + transitions[0, to]
                for before in range(1, 4):
                    for to in range(4):
                        best[to] = max(best[to], scores[here - start - 1, before] + transitions[before, to])
                for to in range(4):
                    scores[here - start, to] += best[to]
        tag = 0
        for here in range(stop - 1, start - 1, -1):
            follows, tag, row = tag, 0, scores[here - start]
            for other in range(1, 4):
                if here == stop - 1:
                    is_better = row[other] > row[tag]
                else:
                    is_better = row[other] + transitions[other, follows] > row[tag] + transitions[tag, follows]
                tag = other if is_better else tag
            if keep <= here < kept:
                is_start[here] = starts[tag]


@njit(cache=True)
def sums_of_rows(table, features, totals):
    """Adds the rows of the features `(positions, width)` of a table to the totals `(positions, tags)`."""
    for position in range(len(features)):
        for feature in features[position]:
            for tag in range(table.shape[1]):
                totals[position, tag] += table[feature, tag]


@njit(cache=True)
def add_rows(errors, features, sums):
    """Adds the errors of each position `(positions, tags)` to the rows of its features."""
    for position in range(len(features)):
        for feature in features[position]:
            for tag in range(errors.shape[1]):
                sums[feature, tag] += errors[position, tag]
