"""Fixed points reached sooner: steps that jump ahead where the last two say the sequence still goes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from entrywise.types import Array

LONGER = 4.0  # a jump is at most so many times as long as the longest before


def climb(
    step: Callable[[Array], tuple[Array, float]],
    x: Array,
    valid: Callable[[Array], Array],
    *,
    tol: float,
    most: int,
    reach: float = 1.0,
) -> tuple[Array, int]:
    """Repeat ``x, change = step(x)`` until the change is below `tol`, jumping ahead after every two steps.

    The squared extrapolation of Varadhan and Roland (2008), SqS3; the first jump is at most `reach`: 1 is none.
    Returns the last x, and the number of steps.
    """
    steps = 0
    while True:
        one, change = step(x)
        steps += 1
        if change < tol or steps >= most:
            return one, steps
        two, change = step(one)
        steps += 1
        if change < tol or steps >= most:
            return two, steps
        r = one - x
        v = two - one - r
        bend = float((v * v).sum())  # not v @ v, for which a library may wake its threads
        far = max(1.0, float(np.sqrt((r * r).sum() / bend))) if bend > 0 else 1.0
        if far >= reach:
            far, reach = reach, LONGER * reach
        x = two if far == 1.0 else valid(x + 2.0 * far * r + far**2 * v)
