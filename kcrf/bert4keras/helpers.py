"""bert4keras' snippets under their names: padding, batches, Viterbi decoding with NumPy, small functions on text."""

import builtins
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import groupby
from typing import Any

import numpy as np

from kcrf.backend import batch_stream
from kcrf.chains import Packing, best_paths, softmax

__all__ = [
    "DataGenerator",
    "ViterbiDecoder",
    "convert_to_str",
    "convert_to_unicode",
    "groupby",
    "is_one_of",
    "is_string",
    "lowercase_and_normalize",
    "open",
    "sequence_padding",
    "softmax",
    "strQ2B",
    "string_matching",
    "text_segmentate",
    "to_array",
    "truncate_sequences",
    "uniout",
]

is_py2 = False
uniout = None  # scripts import it to print Unicode on Python 2


def to_array(*args: Any) -> Any:
    """Converts the arguments to NumPy arrays: returns an array for one argument, a list for several."""
    arrays = [np.array(arg) for arg in args]
    return arrays[0] if len(arrays) == 1 else arrays


def is_string(s: Any) -> bool:
    """Whether an object is a str."""
    return isinstance(s, str)


def is_one_of(x: Any, ys: Iterable[Any]) -> bool:
    """Whether `x` is one of the objects in `ys`; compares by identity."""
    return any(x is y for y in ys)


def string_matching(s: str, keywords: Iterable[str]) -> bool:
    """Whether one of the regular expressions occurs in the string.

    >>> string_matching("Transformer-1-Norm", ["bias", "Norm$"])
    True
    """
    return any(re.search(keyword, s) for keyword in keywords)


def convert_to_unicode(text: str | bytes, encoding: str = "utf-8", errors: str = "ignore") -> str:
    """Decodes bytes to a str; returns a str unchanged."""
    return text.decode(encoding, errors) if isinstance(text, bytes) else text


convert_to_str = convert_to_unicode


def lowercase_and_normalize(text: str) -> str:
    """The text in lower case and without accents.

    >>> lowercase_and_normalize("Café")
    'cafe'
    """
    decomposed = unicodedata.normalize("NFD", text.lower())
    return "".join(char for char in decomposed if unicodedata.category(char) != "Mn")


def strQ2B(ustring: str) -> str:  # noqa: N802 (bert4keras' name)
    """The text with full-width letters, digits and signs as the usual ones.

    >>> strQ2B("ＡＢ，１")
    'AB,1'
    """
    return ustring.translate({0x3000: " ", **{code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}})


def open(
    name: Any, mode: str = "r", encoding: str | None = None, errors: str = "strict", indexable: bool = False
) -> Any:
    """Python's `open`; without `encoding`, text is UTF-8. bert4keras' access to lines by number is not supported."""
    if indexable:
        raise ValueError(f"`indexable` is not here: read the lines into a list. Received: indexable={indexable!r}")
    if "b" in mode:
        return builtins.open(name, mode)
    return builtins.open(name, mode, encoding=encoding or "utf-8", errors=errors)


def sequence_padding(
    inputs: Sequence[Any],
    length: int | Sequence[int] | None = None,
    value: float = 0,
    seq_dims: int = 1,
    mode: str = "post",
    padding: float | None = None,
) -> np.ndarray:
    """Pads sequences of different lengths into one array.

    Args:
        inputs: A list of sequences, `(time, ...)` each, or `(time_1, time_2, ...)` with `seq_dims=2`.
        length: The length, or a length for each sequence axis. Longer sequences are truncated at the end. Defaults to
            the length of the longest sequence.
        value: The padding value. Defaults to 0.
        seq_dims: The number of leading axes whose lengths differ. Defaults to 1.
        mode: "post" pads after the sequence, "pre" before it. Defaults to "post".
        padding: The name of `value` in older releases of bert4keras. Defaults to `value`.

    Returns:
        An array `(len(inputs), length, ...)` of the common dtype.

    >>> sequence_padding([[1, 2, 3], [4]]).tolist()
    [[1, 2, 3], [4, 0, 0]]
    """
    if mode not in ("post", "pre"):
        raise ValueError(f"`mode` must be 'post' or 'pre'. Received: mode={mode!r}")
    arrays = [np.asarray(array) for array in inputs]
    if not arrays:
        raise ValueError("`sequence_padding` needs at least one sequence. Received: inputs=[]")
    if length is None:
        length = np.max([array.shape[:seq_dims] for array in arrays], axis=0)
    length = [int(n) for n in np.atleast_1d(length)[:seq_dims]]
    shape = (len(arrays), *length, *arrays[0].shape[seq_dims:])
    padded = np.full(shape, value if padding is None else padding, dtype=np.result_type(*arrays))
    for target, array in zip(padded, arrays):
        array = array[tuple(slice(n) for n in length)]
        place = (slice(n) if mode == "post" else slice(size - n, None) for n, size in zip(array.shape, length))
        target[tuple(place)] = array
    return padded


def truncate_sequences(maxlen: int, indices: int | Sequence[int], *sequences: Any) -> list[Any]:
    """Removes entries from the longest of several lists, in place, until at most `maxlen` entries are left in total.

    `indices` is the index of the entry to remove, for all lists or for each list that is not empty.
    """
    lists = [x for x in sequences if x]
    places = [indices] * len(lists) if isinstance(indices, int) else indices
    while sum(map(len, lists)) > maxlen:
        longest = int(np.argmax([len(x) for x in lists]))
        lists[longest].pop(places[longest])
    return lists


def text_segmentate(text: str, maxlen: int, seps: str = "\n", strips: str | None = None) -> list[str]:
    """Splits a text into parts of at most `maxlen` characters at separators, tried in their order, if possible.

    >>> text_segmentate("一二三。四五，六七。", maxlen=5, seps="。，")
    ['一二三。', '四五，', '六七。']
    """
    text = text.strip().strip(strips)
    if not seps or len(text) <= maxlen:
        return [text]
    groups, pieces = [""], text.split(seps[0])
    for number, piece in enumerate(pieces):
        if groups[-1] and piece and len(groups[-1]) + len(piece) > maxlen - 1:
            groups.append("")
        groups[-1] += piece + (seps[0] if number + 1 < len(pieces) else "")
    return [part for group in groups if group for part in text_segmentate(group, maxlen, seps[1:], strips)]


class DataGenerator:
    """Base class of generators of batches. A subclass yields batches in `__iter__(self, random=False)`.

    Args:
        data: A list, or another iterable that can be iterated several times.
        batch_size: The number of items per batch. Defaults to 32.
        buffer_size: How many items of data without a length are shuffled at a time. Defaults to 1,000 batches.

    >>> class Batches(DataGenerator):
    ...     def __iter__(self, random=False):
    ...         rows = []
    ...         for is_end, row in self.sample(random):
    ...             rows.append(row)
    ...             if len(rows) == self.batch_size or is_end:
    ...                 yield [sequence_padding(rows)], np.zeros(len(rows))
    ...                 rows = []
    >>> batches = Batches([[1, 2], [3], [4, 5, 6]], batch_size=2)
    >>> len(batches), [inputs[0].shape for inputs, _ in batches]
    (2, [(2, 2), (1, 3)])
    """

    def __init__(self, data: Iterable[Any], batch_size: int = 32, buffer_size: int | None = None) -> None:
        self.data = data
        self.batch_size = batch_size
        self.steps = -(-len(data) // batch_size) if isinstance(data, Sized) else None
        self.buffer_size = buffer_size or batch_size * 1000

    def __len__(self) -> Any:
        if self.steps is None:
            raise TypeError("The data has no length, so give `fit` its `steps_per_epoch`.")
        return self.steps

    def __iter__(self, random: bool = False) -> Iterator[Any]:
        raise NotImplementedError("A subclass says what a batch is, in `__iter__(self, random=False)`.")

    def sample(self, random: bool = False) -> Iterator[tuple[bool, Any]]:
        """Yields `(is_end, item)` for every item, in order or shuffled by NumPy's global generator."""
        items = self._shuffled() if random else iter(self.data)
        nothing = current = object()
        for following in items:
            if current is not nothing:
                yield False, current
            current = following
        if current is not nothing:
            yield True, current

    def _shuffled(self) -> Iterator[Any]:
        if self.steps is not None:
            data: Any = self.data
            yield from (data[i] for i in np.random.permutation(len(data)))
            return
        buffer = []
        for item in self.data:
            buffer.append(item)
            if len(buffer) > self.buffer_size:
                yield buffer.pop(np.random.randint(len(buffer)))
        while buffer:
            yield buffer.pop(np.random.randint(len(buffer)))

    def forfit(self, random: bool = True) -> Iterator[Any]:
        """Yields batches infinitely, for `model.fit(batches.forfit(), steps_per_epoch=len(batches), ...)`."""
        return batch_stream(self._endless(random))

    def fortest(self, random: bool = False) -> Iterator[Any]:
        """Yields the inputs of batches infinitely, for `model.predict(..., steps=len(batches))`."""
        return batch_stream(batch[0] for batch in self._endless(random))

    def _endless(self, random: Any) -> Iterator[Any]:
        while True:
            batch = None
            for batch in self.__iter__(random):
                yield batch
            if batch is None:
                raise ValueError("`forfit` and `fortest` need data for one batch at least. Received: none")

    def to_dataset(self, types: Any, shapes: Any, names: Any = None, padded_batch: bool = False) -> Any:
        """An infinite `tf.data.Dataset` of the single items that `__iter__` yields; arguments as in bert4keras."""
        import tensorflow as tf

        def named(item: Any) -> Any:
            if names is None:
                return item
            if is_string(names):
                return {names: item}
            if is_string(names[0]):
                return dict(zip(names, item))
            inputs, *labels = (dict(zip(some, part)) for some, part in zip(names, item))
            return (inputs, *(part if len(part) > 1 else next(iter(part.values())) for part in labels))

        items = lambda: map(named, self._endless(True))  # noqa: E731
        types, shapes = named(types), named(shapes)
        if padded_batch:
            return tf.data.Dataset.from_generator(items, types).padded_batch(self.batch_size, shapes)
        return tf.data.Dataset.from_generator(items, types, shapes).batch(self.batch_size)


class ViterbiDecoder:
    """Finds the best path through the scores of a sentence, with NumPy; scores of -inf alone are padding, tag -1.

    Args:
        trans: The transitions `(tags, tags)` from row to column, such as `K.eval(crf.trans)`; may be changed later.
        starts, ends: The tags with which a sentence may begin and end. Default to None: all tags.

    >>> decoder = ViterbiDecoder(trans=np.zeros((2, 2)), starts=[0])
    >>> decoder.decode(np.array([[1.0, 9.0], [1.0, 9.0]])).tolist()
    [0, 1]
    """

    def __init__(
        self, trans: np.ndarray, starts: Sequence[int] | None = None, ends: Sequence[int] | None = None
    ) -> None:
        self.trans = trans
        self.num_labels = len(trans)
        self.non_starts = [] if starts is None else [i for i in range(self.num_labels) if i not in starts]
        self.non_ends = [] if ends is None else [i for i in range(self.num_labels) if i not in ends]

    def decode(self, nodes: Any) -> np.ndarray:
        """The tags `(time,)` of scores `(time, tags)`. Raises ValueError if no path is allowed."""
        nodes = np.asarray(nodes)
        if nodes.ndim != 2 or nodes.shape[1] != self.num_labels:
            raise ValueError(f"`nodes` must have the shape (time, {self.num_labels}). Received: shape={nodes.shape}")
        real = np.flatnonzero((nodes > -np.inf).any(axis=1))
        tags = np.full(len(nodes), -1)
        if len(real):
            scores = nodes[real]
            scores[0, self.non_starts] = scores[-1, self.non_ends] = -np.inf
            path = best_paths(scores, self.trans, Packing([0], [len(real)]))
            steps = np.asarray(self.trans)[path[:-1], path[1:]]
            if -np.inf in (*scores[np.arange(len(path)), path], *steps):
                raise ValueError("Needs a path that `starts`, `ends` and scores allow. Received: scores allow none")
            tags[real] = path
        return tags
