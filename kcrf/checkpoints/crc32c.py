"""CRC-32C in NumPy, at a speed near that of memory.

A checksum is the remainder of the data, read as a polynomial over GF(2), after division by a fixed polynomial. The data
is first divided by a multiple of that polynomial with few terms, X^6777 + X^484 + X^100 + 1, where X = x^64 is a word
of 8 bytes: a step of the division is three XORs of whole blocks of words. The remainder is short; tables fold it.
"""

from functools import cache

import numpy as np

__all__ = ["Crc32c"]

DEGREE, *LOWER = 6777, 484, 100
BLOCK = DEGREE - LOWER[0]
BLOCKS = 24  # in the buffer, which then fits the second-level cache


class Crc32c:
    """Computes the CRC-32C of data given in parts. Fastest if all parts but the last are multiples of 8 bytes."""

    def __init__(self):
        self._buffer = np.zeros(DEGREE + BLOCKS * BLOCK, np.uint64)
        self._buffer[DEGREE - 1] = 0x641F6454 << 32  # these four bytes turn a register of zeros into one of ones
        self._words, self._tail = 1, b""

    def update(self, data):
        """Appends bytes."""
        data = np.frombuffer(self._tail + bytes(data) if self._tail else data, np.uint8)
        words = data[: len(data) // 8 * 8].view(np.uint64)
        for start in range(0, len(words), BLOCKS * BLOCK):
            self._reduce(words[start : start + BLOCKS * BLOCK])
        self._words, self._tail = self._words + len(words), data[len(words) * 8 :].tobytes()

    def _reduce(self, words):
        """Appends words to the remainder, and divides: as many words at its top become 0."""
        for start in range(0, len(words), BLOCK):
            end = min(start + BLOCK, len(words))
            top = self._buffer[start:end]
            np.bitwise_xor(words[start:end], top, out=self._buffer[start + DEGREE : end + DEGREE])
            for power in LOWER:
                lower = self._buffer[start + DEGREE - power : end + DEGREE - power]
                np.bitwise_xor(lower, top, out=lower)
        self._buffer[:DEGREE] = self._buffer[len(words) : len(words) + DEGREE].copy()

    def value(self):
        """The checksum of all bytes so far, an int."""
        words = self._buffer[max(DEGREE - self._words, 0) : DEGREE].view(np.uint32)
        level = 0
        while len(words) > 1:
            words = np.concatenate([np.zeros(-len(words) % 8, np.uint32), words])
            places = words.view(np.uint8).reshape(-1, 32) + np.arange(32) * 256
            words = np.bitwise_xor.reduce(_fold_table(level).take(places), axis=1)
            level += 1
        register = int(_mapped(_shift_table(0), words)[0])
        for byte in self._tail:
            register = int(_zero_bits(np.uint32(register ^ byte), 8))
        return register ^ 0xFFFFFFFF


def _zero_bits(registers, count):
    """The registers after `count` further zero bits."""
    for _ in range(count):
        registers = (registers >> 1) ^ (np.uint32(0x82F63B78) * (registers & 1))
    return registers


# A byte of each value at each of the four positions in a register; shape (4, 256).
BYTES = np.arange(256, dtype=np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)[:, None]


def _mapped(table, registers):
    """Applies a linear map to registers. The table has its values at BYTES."""
    return np.bitwise_xor.reduce([table[place][(registers >> 8 * place) & 255] for place in range(4)])


@cache
def _shift_table(level):
    """The map that 4 * 8^level further zero bytes apply to a register, as a table."""
    table = BYTES if level else _zero_bits(BYTES, 32)
    for _ in range(8 if level else 0):
        table = _mapped(_shift_table(level - 1), table)
    return table


@cache
def _fold_table(level):
    """Tables that fold eight neighbouring registers into one, for each of their 32 bytes; shape (32 * 256,)."""
    rows = [BYTES]
    for _ in range(7):
        rows.append(_mapped(_shift_table(level), rows[-1]))
    return np.concatenate(rows[::-1]).ravel()
