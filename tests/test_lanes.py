"""Several numbers at once in compiled loops: what each operation gives, beside numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numba.core.errors import NumbaError

from entrywise.linalg._jit_gain import _take
from entrywise.linalg._jit_lanes import (
    count_of,
    every,
    larger,
    largest,
    load,
    place_of,
    prefetch,
    repeated,
    store,
    total,
    without,
)


@njit
def arithmetic(X, at, number, found):
    x, y = load(X, at), every(number)
    prefetch(X, at)
    z = x * y - repeated(X, at)
    z += y - x
    store(found, 1, z)
    return total(z)


@njit
def search(X, at, other, number):
    x = larger(load(X, at), load(X, other))
    return largest(x), place_of(x, number), count_of(x, number), largest(without(x, number))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32))
def test_four_numbers_as_one_by_one(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((3, 5)) * 10.0 ** rng.integers(-30, 30)
    at, number, found = int(rng.integers(12)), float(rng.standard_normal()), np.zeros(6)
    got = arithmetic(X, at, number, found)
    some = X.ravel()[at : at + 4]
    z = (some * number - some[0]) + (number - some)
    np.testing.assert_array_equal(found, np.r_[0.0, z, 0.0])
    assert got == (z[0] + z[2]) + (z[1] + z[3])


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 2**31 - 1))
def test_eight_whole_numbers_as_one_by_one(seed, size):
    rng = np.random.default_rng(seed)
    X = rng.integers(-size, size, 24, dtype=np.int32)
    at, other = (int(x) for x in rng.integers(17, size=2))
    both = np.maximum(X[at : at + 8], X[other : other + 8])
    for number in (int(both.max()), int(both[rng.integers(8)]), int(rng.integers(-size, size))):
        top, place, count, rest = search(X, at, other, np.int32(number))
        assert top == both.max()
        assert place == np.append(np.flatnonzero(both == number), 8)[0]
        assert count == np.count_nonzero(both == number)
        assert rest == np.where(both == number, 0, both).max()


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 12))
def test_the_largest_are_taken_one_after_the_other(seed, size, eights):
    rng = np.random.default_rng(seed)
    bits = rng.integers(1, size + 1, 8 * eights, dtype=np.int32)  # few numbers: many are equal
    expected = np.argsort(-bits, kind="stable")
    top, places = bits.max(), []
    for _ in range(len(bits)):
        place, top = _take(bits, 0, len(bits), np.int32(top))
        bits[place] = 0
        places.append(place)
        assert top == bits.max()
    np.testing.assert_array_equal(places, expected)


def test_an_array_out_of_order_is_refused():
    with pytest.raises(NumbaError, match="in order"):
        arithmetic(np.zeros((4, 4)).T[:, :3], 0, 1.0, np.zeros(6))
