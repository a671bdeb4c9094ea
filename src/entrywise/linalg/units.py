"""Powers of two as units: numbers near the ends of floating point are brought to its middle and back, without round-off.

Squares of numbers beyond about 1e154 overflow and those below 1e-154 vanish. Dividing by a power of two is exact, and inside
1e-100..1e100 nothing is divided at all, so that no ordinary result changes by a bit (not even through another layout in
memory, which rounds products otherwise).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from entrywise.types import Array

SMALLEST, LARGEST = 1e-100, 1e100  # sizes whose squares, cubes and ratios are far from both ends


def unit_of(*numbers: ArrayLike) -> float:
    """Return the power of two to divide by: 1 unless the largest size among the numbers is outside 1e-100..1e100.

    NaN, which stands for a failed answer, is passed over.

    Examples
    --------
    >>> unit_of([3.0, -1e90]), unit_of(0.0), unit_of(1e300) > 1e299
    (1.0, 1.0, True)
    """
    sizes = (np.abs(np.asarray(x, dtype=np.float64)).ravel() for x in numbers)
    size = max(
        float(np.fmax.reduce(x, initial=0.0)) for x in sizes
    )  # failed answers (NaN) have none
    if size == 0.0 or SMALLEST <= size <= LARGEST:
        return 1.0
    return math.ldexp(0.5, math.frexp(size)[1])


def near(size: float, span: float = 1.0) -> float:
    """Return the power of four next to a size, which changes no digit, nor does its root; 1 within a factor `span` of 1.

    Examples
    --------
    >>> near(0.0), near(1.9), near(100.0), near(100.0, 1e3)
    (1.0, 1.0, 64.0, 1.0)
    """
    if size == 0.0 or 1.0 / span <= size <= span:
        return 1.0
    return 4.0 ** round(math.log(size, 4))


def in_unit(X: Array, unit: float) -> Array:
    """Return X divided by a unit; X itself, with its layout in memory, where that is 1."""
    return X if unit == 1.0 else X / unit


def out_of_unit(X: Array, unit: float) -> Array:
    """Return X multiplied by a unit; X itself, with its layout in memory, where that is 1."""
    return X if unit == 1.0 else X * unit


def ordinary(number: float) -> bool:
    """Tell whether a number is above 0 and can be squared and divided by without care."""
    return SMALLEST <= number <= LARGEST
