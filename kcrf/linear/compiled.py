"""The segmentation of lines and the sums of linear training as compiled code. Needs numba."""

# mypy: disallow-untyped-defs=False, check-untyped-defs=False

import numpy as np
from numba import njit

from kcrf.readers.code_points import TYPES, code_points, folded_characters, types_of_characters
from kcrf.readers.lexicon import FACTOR, KINDS
from kcrf.readers.ngrams import FACTORS, MIX, REACH, SEED, buckets_of_values, places_of
from kcrf.readers.padding import BUCKETS
from kcrf.readers.windows import OVERLAP, PAUSES, SENTENCE_ENDS

_FILTER_BITS = 18  # of the keys of a lexicon: 32 kB
_FILTER_SHIFT = np.uint64(64 - _FILTER_BITS)
_VALUES = {"t": len(TYPES) + 1, "b": 2 + 4 * KINDS, "e": 2 + 8 * KINDS}  # of the columns, from 0
_MARKS = code_points(SENTENCE_ENDS), code_points(PAUSES)
_EVEN = np.uint64(0x00FF00FF)
_BLOCK = 2048  # positions whose arrays stay in the cache of a processor


class CompiledModel:
    """Marks the beginnings of words with a `LinearModel` of four tags and its n-grams of characters.

    Templates of few possible values have tables of their own, which need no hashes: those of the columns of types and
    of lexicons, and those of single characters, whose rows are made when a character first occurs.
    """

    def __init__(self, model, ngrams, lexicon):
        scores, self._scale = model.integers()
        self._scheme, self._transitions = model.scheme, model.constrained_transitions().astype("float32")
        self._names, self._buckets = sorted(ngrams.used), ngrams.buckets
        self._lexicons = [] if lexicon is None else list(zip(map(_hash_table, lexicon.indices()), ("be", ("ob", "oe"))))
        self._bias = np.int32(128 * ngrams.width)
        self._table = (scores.view("uint8") ^ np.uint8(128)).view("uint32")[:, 0]  # scores plus 128
        templates = [(number, places_of(template)) for number, template in enumerate(ngrams.templates)]
        small = [t for t in templates if all(place.column != "c" for place in t[1]) and len(t[1]) <= 3]
        self._single = [t for t in templates if [place.column for place in t[1]] == ["c"]]
        large = [t for t in templates if t not in small and t not in self._single]
        self._hashed = self._places([places for _, places in large]), np.array([n for n, _ in large], "uint32") * SEED
        self._dense = self._tables(sorted(small, key=lambda template: -len(template[1])))
        self._offsets = np.array([places[0].offset for _, places in self._single], "int64")
        self._ids, self._rows = np.zeros(1 << 21, "uint16"), np.zeros((1, len(self._single)), "uint64")

    def _places(self, templates):
        """A column and an offset for each place of each template, `(templates, 4, 2)`, column -1 for none."""
        rows = np.full((len(templates), len(FACTORS), 2), -1)
        for row, places in zip(rows, templates):
            row[: len(places)] = [(self._names.index(place.column), place.offset) for place in places]
        return rows

    def _tables(self, templates):
        """Tables of templates, each with all that look at no other places: places, strides, starts and the tables."""
        groups: dict = {}
        for number, places in templates:
            group = next((group for group in groups if set(places) <= set(group)), tuple(places))
            groups.setdefault(group, []).append((number, places))
        strides, starts, tables = np.zeros((len(groups), len(FACTORS)), "uint32"), [], [np.zeros(0, "uint64")]
        for row, (group, members) in zip(strides, groups.items()):
            sizes = [_VALUES[place.column[-1]] for place in group]
            row[: len(group)] = np.cumprod([1, *sizes[:0:-1]])[::-1]
            grids = np.meshgrid(*(np.arange(size, dtype="uint32") for size in sizes), indexing="ij")
            values = dict(zip(group, (grid.ravel() for grid in grids)))
            starts.append(sum(map(len, tables)))
            tables.append(sum(self._scores_of([values[place] for place in places], n) for n, places in members))
        return self._places(groups), strides, np.array(starts, "uint32"), np.concatenate(tables)

    def _scores_of(self, values, number):
        """The scores of the features of a template with these values, packed as in the totals."""
        rows = self._table[buckets_of_values(values, number, self._buckets)].astype("uint64")
        return (rows & _EVEN) | (rows >> np.uint64(8) & _EVEN) << np.uint64(32)

    def _ids_of(self, characters):
        """The row of each character, `(characters,)`; new characters get rows."""
        ids = self._ids[characters]
        if not ids.all():
            new = np.unique(characters[ids == 0])
            if len(self._rows) + len(new) > np.iinfo("uint16").max:
                self._ids[:], self._rows, new = 0, self._rows[:1], np.unique(characters)
            self._ids[new] = len(self._rows) + np.arange(len(new))
            rows = [self._scores_of([new], number) for number, _ in self._single]
            self._rows = np.concatenate([self._rows, np.reshape(rows, (len(self._single), len(new))).T])
            ids = self._ids[characters]
        return ids

    def word_starts(self, joined, firsts, lengths, inside):
        """Whether a word begins at each character of a text, `(characters,)` bool.

        Its parts begin at `firsts` and have `lengths`. `inside` says of each position whether no word may begin there.
        """
        codes = code_points(joined)
        columns = {"c": folded_characters(codes), "t": types_of_characters(codes)}
        for tables, names in self._lexicons:
            begins, ends = np.ones((2, len(codes)), "uint32")
            longest_words(columns["c"], *tables, begins, ends)
            columns.update(zip(names, (begins, ends)))
        ids, columns = self._ids_of(columns["c"]), np.stack([columns[name].astype("uint32") for name in self._names])
        totals, is_start = np.zeros(len(codes) - 2 * REACH, "uint64"), np.zeros(len(codes), bool)
        shift = np.uint32(33 - int(self._buckets).bit_length())
        add_scores(columns, *self._hashed, self._table, shift, *self._dense, ids, self._offsets, self._rows, totals)
        rules = self._scheme.allowed_starts, self._scheme.allowed_ends
        scale = np.float32(self._scale)
        bounds = cut_windows(codes, firsts, lengths, BUCKETS[-1], *_MARKS)
        mark_starts(totals, self._bias, scale, self._transitions, *rules, bounds, inside, is_start)
        return is_start


def _hash_table(index):
    """A hash table of the words of a lexicon: bits of the keys that occur, keys (0: none), and kinds."""
    keys, kinds = index
    bits = np.zeros(1 << _FILTER_BITS, bool)
    bits[keys >> np.uint64(64 - _FILTER_BITS)] = True
    size = 1 << int(2 * len(keys) + 1).bit_length()
    slots, kinds_of_slots = np.zeros(size, "uint64"), np.zeros(size, "uint32")
    for key, kind in zip(keys.tolist(), kinds.tolist()):
        place = key & (size - 1)
        while slots[place]:
            place = (place + 1) & (size - 1)
        slots[place], kinds_of_slots[place] = key, kind
    return np.packbits(bits, bitorder="little"), slots, kinds_of_slots


@njit(cache=True)
def longest_words(characters, bits, keys, kinds, begins, ends):
    """As `Lexicon.longest` plus 1, with a `_hash_table`."""
    last = np.uint64(len(keys) - 1)
    for place in range(len(characters)):
        key = np.uint64(characters[place]) * FACTOR
        for length in range(2, min(5, len(characters) - place) + 1):
            key = (key + np.uint64(characters[place + length - 1])) * FACTOR
            bit = key >> _FILTER_SHIFT
            if not bits[bit >> np.uint64(3)] >> (bit & np.uint64(7)) & np.uint64(1):
                continue
            slot = key & last
            while keys[slot] != 0 and keys[slot] != key:
                slot = (slot + np.uint64(1)) & last
            if keys[slot] == key:
                begins[place] = 1 + (length - 2) * KINDS + kinds[slot]
                end = 1 + (length + 2) * KINDS + kinds[slot]
                ends[place + length - 1] = max(ends[place + length - 1], np.uint32(end))


@njit(cache=True)
def add_scores(columns, places, seeds, table, shift, dense, strides, starts, tables, ids, offsets, rows, totals):
    """Adds the table's row of each template's bucket to the totals `(positions,)`; see `kcrf.readers.ngrams.hashed`.

    A row of the table is four numbers of 8 bits, not negative. The other rows and the totals have 16 bits for each, in
    the order of the tags 0, 2, 1 and 3.
    """
    one, fifteen, eight, half, even = np.uint32(1), np.uint32(15), np.uint32(8), np.uint64(32), np.uint32(_EVEN)
    buffer = np.empty(_BLOCK, np.uint32)
    for start in range(0, len(totals), _BLOCK):
        count = min(_BLOCK, len(totals) - start)
        total, indices = totals[start : start + count], buffer[:count]
        for number in range(len(offsets)):
            here = ids[start + REACH + offsets[number] :][:count]
            for i in range(count):
                total[i] += rows[here[i], number]
        for template in range(len(dense)):
            indices[:] = starts[template]
            for place in range(3):
                column, offset = dense[template, place]
                if column >= 0:
                    values, stride = columns[column, start + REACH + offset :][:count], strides[template, place]
                    for i in range(count):
                        indices[i] += values[i] * stride
            for i in range(count):
                total[i] += tables[indices[i]]
        for template in range(len(places)):
            indices[:] = seeds[template]
            for place in range(4):
                column, offset = places[template, place]
                if column >= 0:
                    values, factor = columns[column, start + REACH + offset :][:count], FACTORS[place]
                    for i in range(count):
                        indices[i] += values[i] * factor
            for i in range(count):
                mixed = np.uint32(np.uint32(indices[i] ^ (indices[i] >> fifteen)) * MIX)
                indices[i] = max(np.uint32(mixed >> shift), one)
            for i in range(count):
                row = table[indices[i]]
                total[i] += np.uint64(row & even) | np.uint64((row >> eight) & even) << half


@njit(cache=True)
def cut_windows(codes, firsts, lengths, limit, ends, pauses):
    """As `kcrf.readers.windows.windows` for each part of a text: `(windows, 4)` positions in the text."""
    most = len(firsts)
    for length in lengths:
        most += 2 * length // limit
    bounds, count = np.empty((most, 4), np.int64), 0
    for first, length in zip(firsts, lengths):
        start, keep = 0, 0
        while length - start > limit:
            end, cut = start + limit, 0
            for marks in (ends, pauses):
                place = end - 1
                while cut == 0 and place > (start + end) // 2:
                    for mark in marks:
                        if codes[first + place] == mark:
                            cut = place + 1
                    place -= 1
            stop, following, kept = (cut, cut, cut) if cut else (end, end - OVERLAP, end - OVERLAP // 2)
            bounds[count] = first + start, first + stop, first + keep, first + kept
            count, start, keep = count + 1, following, kept
        bounds[count] = first + start, first + length, first + keep, first + length
        count += 1
    return bounds[:count]


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
            for tag in range(4):
                total = (totals[here - REACH] >> np.uint64(8 * (tag & 2) + 32 * (tag & 1))) & mask
                score = np.float32(np.int32(total) - bias) * scale
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
def add_rows_to(totals, table, features):
    """Adds the table's rows of the features `(positions, width)` to the totals `(positions, tags)`."""
    for position in range(len(features)):
        for feature in features[position]:
            for tag in range(table.shape[1]):
                totals[position, tag] += table[feature, tag]


@njit(cache=True)
def add_to_rows(table, rows, features):
    """Adds a row of each position `(positions, tags)` to the table's rows of its features."""
    for position in range(len(features)):
        for feature in features[position]:
            for tag in range(table.shape[1]):
                table[feature, tag] += rows[position, tag]
