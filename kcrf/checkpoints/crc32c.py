"""CRC-32C at the speed of memory, in NumPy."""

from functools import cache

import numpy as np

__all__ = ["Crc32c"]

DEGREE, *LOWER = 6777, 484, 100
BLOCK = DEGREE - LOWER[0]
BLOCKS = 24  # of a buffer that stays in the second-level cache


class Crc32c:
    """The CRC-32C of bytes that come in parts; fastest where each part but the last has a multiple of 8 bytes."""

    def __init__(self):
        self._buffer = np.zeros(DEGREE + BLOCKS * BLOCK, np.uint64)
        self._buffer[DEGREE - 1] = 0x641F6454 << 32  # the four bytes that make a register of ones
        self._words, self._tail = 1, b""

    def update(self, data):
        data = np.frombuffer(self._tail + bytes(data) if self._tail else data, np.uint8)
        words = data[: len(data) // 8 * 8].view(np.uint64)
        for start in range(0, len(words), BLOCKS * BLOCK):
            self._reduce(words[start : start + BLOCKS * BLOCK])
        self._words, self._tail = self._words + len(words), data[len(words) * 8 :].tobytes()

    def _reduce(self, words):
        """Appends words to the remainder and takes as many off its top."""
        for start in range(0, len(words), BLOCK):
            end = min(start + BLOCK, len(words))
            top = self._buffer[start:end]
            np.bitwise_xor(words[start:end], top, out=self._buffer[start + DEGREE : end + DEGREE])
            for power in LOWER:
                lower = self._buffer[start + DEGREE - power : end + DEGREE - power]
                np.bitwise_xor(lower, top, out=lower)
        self._buffer[:DEGREE] = self._buffer[len(words) : len(words) + DEGREE].copy()

    def value(self):
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
    """What registers become when `count` zero bits follow."""
    for _ in range(count):
        registers = (registers >> 1) ^ (np.uint32(0x82F63B78) * (registers & 1))
    return registers


# The registers of one byte, at each of the four places of a register.
BYTES = np.arange(256, dtype=np.uint32) << np.arange(0, 32, 8, dtype=np.uint32)[:, None]


def _mapped(table, registers):
    """A linear map of registers, given as what it makes of BYTES."""
    return np.bitwise_xor.reduce([table[place][(registers >> 8 * place) & 255] for place in range(4)])


@cache
def _shift_table(level):
    """The map of 4 * 8^level zero bytes."""
    table = BYTES if level else _zero_bits(BYTES, 32)
    for _ in range(8 if level else 0):
        table = _mapped(_shift_table(level - 1), table)
    return table


@cache
def _fold_table(level):
    """What each byte of eight neighbouring registers adds to the one that replaces them; shape (32 * 256,)."""
    rows = [BYTES]
    for _ in range(7):
        rows.append(_mapped(_shift_table(level), rows[-1]))
    return np.concatenate(rows[::-1]).ravel()
