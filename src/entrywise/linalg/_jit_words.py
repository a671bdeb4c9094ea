"""Compiled sets of cells: which of a block lie below their chances, and cells in order.

Words of chance are scrambled as in SplitMix64.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

import numpy as np

from entrywise.linalg._jit import njit
from entrywise.linalg._jit_lanes import bit_count, lowest_bit


@njit(cache=True, nogil=True)
def below(words, chance, n):
    """Return the places (row by row, n cells each) whose numbers in 0..1 lie below their chances.

    words : (r,), one a row, scrambled; chance : broadcasts to (r, n). A cell's word is its row's, crossed with its column
    and scrambled once more; the upper 53 bits are its number.
    """
    r, wide, tall = len(words), int(chance.shape[1] > 1), int(chance.shape[0] > 1)
    found, count = np.empty(r * n, np.int64), 0
    numbers = np.empty(n, np.int64)  # times 2^53
    for i in range(r):
        for j in range(n):
            z = (words[i] ^ np.uint64(j)) + np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            numbers[j] = np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(11))
        if wide:
            for j in range(n):
                if numbers[j] < chance[i * tall, j] * 2.0**53:
                    found[count] = i * n + j
                    count += 1
            continue
        limit = np.int64(np.ceil(chance[i * tall, 0] * 2.0**53))  # whole numbers compare faster
        for j in range(n):
            if numbers[j] < limit:
                found[count] = i * n + j
                count += 1
    return found[:count].copy()


@njit(cache=True, nogil=True)
def _marked(cells, size):
    """Return a bit for each of `size` cells, in words of 64: one for those listed."""
    words = np.zeros((size >> 6) + 1, np.uint64)
    for cell in cells:
        words[cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)
    return words


@njit(cache=True, nogil=True)
def first_without(taken, cells, size):
    """Return the places of cells, below `size`, that were not taken, of each the first."""
    words, found, count = _marked(taken, size), np.empty(len(cells), np.int64), 0
    for t in range(len(cells)):
        k, bit = cells[t] >> 6, np.uint64(1) << np.uint64(cells[t] & 63)
        if words[k] & bit == 0:
            words[k] |= bit
            found[count] = t
            count += 1
    return found[:count].copy()


@njit(cache=True, nogil=True)
def in_order(cells, size):
    """Return cells below `size` in order, each once."""
    words, count, at = _marked(cells, size), 0, 0
    for word in words:
        count += bit_count(word)
    found = np.empty(count, np.int64)
    for k in range(len(words)):
        word = words[k]
        while word:
            found[at] = 64 * k + lowest_bit(word)
            at += 1
            word &= word - np.uint64(1)
    return found


@njit(cache=True, nogil=True)
def open_bits(taken, others, m, n):
    """Return a bit for each cell, (m, n / 8), as ``np.packbits`` lays them: one where it is not listed; taken are in order."""
    width = -(-n // 8)
    bits, i = np.full((m, width), np.uint8(255)), 0
    bits[:, width - 1] = np.uint8((0xFF00 >> (n - 8 * (width - 1))) & 255)
    for cell in taken:
        while cell >= (i + 1) * n:
            i += 1
        j = cell - i * n
        bits[i, j >> 3] &= ~(np.uint8(128) >> np.uint8(j & 7))
    for cell in others:
        i, j = cell // n, cell % n
        bits[i, j >> 3] &= ~(np.uint8(128) >> np.uint8(j & 7))
    return bits
