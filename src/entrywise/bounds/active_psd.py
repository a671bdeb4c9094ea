r"""Active PSD completion: what its theorems promise, as numbers.

Functions follow Bhargava, Ganti and Nowak, *Active Positive Semidefinite Matrix Completion*, AISTATS 2017. Where the
paper writes O(...), the constants of its proofs are kept, so that a forecast is a number and not an order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from entrywise.exceptions import ParameterError
from entrywise.types import Array

LEAST = 1e-100  # of epsilon: its square is still a number


class Constants(NamedTuple):
    """C1 and C2 of equations (5) and (6)."""

    c1: float
    c2: float


class Repetitions(NamedTuple):
    """How often to measure each entry of C (equation 3) and of W (equation 4)."""

    columns: int
    block: int


def exact_queries(n: int, rank: int, *, known_rank: bool = False) -> int:
    """Return the entries that recover a PSD matrix of this rank exactly (Theorem 3.2).

    The sum n + (n - 1) + ... + (n - r) of the theorem, at most n (r + 1). With ``known_rank`` the last
    diagonal need not be finished: n r - r (r - 1) / 2 for columns in general position.

    >>> exact_queries(1000, 10), exact_queries(1000, 10, known_rank=True)
    (10945, 9955)
    """
    _check(n, rank)
    if rank == 0:
        return 0 if known_rank else n
    return (
        n * rank - rank * (rank - 1) // 2 if known_rank else n * (rank + 1) - rank * (rank + 1) // 2
    )


def spectral_deviation(counts: ArrayLike, delta: float, *, tight: bool = False) -> float:
    r"""Return how far a matrix of coin averages is from its mean in spectral norm (Lemma 4.1).

    .. math:: \Delta = \frac{2 \log(2p/\delta)}{3 \min n_{ij}} + \sqrt{2 \nu \log(2p/\delta)}

    With probability 1 - `delta`, :math:`\|\hat P - P\|_2 \le \Delta` and so for every singular value.

    Parameters
    ----------
    counts : ndarray of shape (p, p)
        How often each entry was measured.
    tight : bool
        The lemma bounds the variance by :math:`\nu = \sum_{ij} 1/(4 n_{ij})`. Matrix Bernstein needs only the
        larger of the row and column sums of :math:`1/(4 n_{ij})`, up to p times less; that is ``tight``. It
        holds as well when (i, j) and (j, i) are measured together.

    >>> round(spectral_deviation(np.full((2, 2), 1000), 0.05), 4)
    0.0965
    """
    n = np.asarray(counts, dtype=np.float64)
    if n.ndim != 2 or n.shape[0] != n.shape[1] or not np.all(n > 0):
        raise ParameterError(
            f"counts must be a square array of numbers above 0, got shape {n.shape}"
        )
    _probability(delta)
    log = math.log(2 * len(n) / delta)
    inverse = 0.25 / n
    variance = max(inverse.sum(axis=0).max(), inverse.sum(axis=1).max()) if tight else inverse.sum()
    return float(2.0 * log / (3.0 * n.min()) + math.sqrt(2.0 * variance * log))


def elimination_rounds(gap: float, size: int, arms: int, delta: float) -> int:
    r"""Return after how many rounds an arm that is `gap` worse is surely dropped (equation 11).

    The first t with :math:`2 \alpha_t \le \Delta_{k,p} / 2` for size-p matrices measured t times everywhere and
    :math:`\delta_t = 6 \delta / (\pi^2 m t^2)`.
    """
    _probability(delta)
    if not gap > 0:
        raise ParameterError(f"gap must be above 0, got {gap}; equal arms are never told apart")

    def radius(t: float) -> float:
        log = math.log(2 * size * math.pi**2 * arms * t * t / (6 * delta))
        return 2 * log / (3 * t) + math.sqrt(size**2 * log / (2 * t))

    low, high = 1, 2
    while 4.0 * radius(high) > gap:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if 4.0 * radius(middle) > gap else (low, middle)
    return high


def elimination_queries(gaps: Sequence[float], size: int, delta: float) -> int:
    """Return the measurements of one call of successive elimination (Lemma 4.2), constants kept.

    Parameters
    ----------
    gaps : sequence of float
        By how much each of the other arms' smallest singular value lies below the best.
    size : int
        Side p of the principal submatrices.

    >>> elimination_queries([0.5, 0.5], 2, 0.05) > 10_000
    True
    """
    rounds = [elimination_rounds(gap, size, len(gaps) + 1, delta) for gap in gaps]
    return size * sum(rounds) + size**2 * max(rounds, default=0)


def constants(columns: ArrayLike, block: ArrayLike, *, printed: bool = True) -> Constants:
    r"""Return C1(W, C) and C2(W, C) of equations (5) and (6) for C of shape (n, r) and W of shape (r, r).

    As printed, :math:`\|C W^{-1}\|_1` is the largest column sum and grows with n; the proof (Lemma 5.5) uses the
    largest row sum, which ``printed=False`` takes.
    """
    C, W = np.asarray(columns, dtype=np.float64), np.asarray(block, dtype=np.float64)
    if C.ndim != 2 or W.shape != (C.shape[1],) * 2:
        raise ParameterError(
            f"columns must be (n, r) and block (r, r), got {C.shape} and {W.shape}"
        )
    try:
        inverse = np.linalg.inv(W)
    except np.linalg.LinAlgError:
        raise ParameterError("W must be invertible; choose independent columns") from None
    spectral, largest = float(np.linalg.norm(inverse, 2)), float(np.abs(inverse).max())
    X = C @ inverse  # (n, r)
    weight = float(np.abs(X).max())
    total = float(np.abs(X).sum(axis=0 if printed else 1).max())
    c1 = max(weight, weight**2, largest, total**2, spectral * largest)
    c2 = max((spectral * largest) ** 2, spectral * largest, spectral, spectral**2)
    return Constants(c1, c2)


def repetitions(
    n: int,
    rank: int,
    epsilon: float,
    delta: float,
    *,
    theta: float | None = None,
    of: Constants | None = None,
) -> Repetitions:
    """Return m1 and m2 of equations (3) and (4).

    Parameters
    ----------
    theta : float, optional
        One number in place of both constants (the paper's universal bound).
    of : Constants, optional
        What :func:`constants` gave. Without either, 1 is used: a lower bound.

    >>> repetitions(200, 2, 0.1, 0.05, theta=1.0)
    Repetitions(columns=387214, block=2804498)
    """
    _check(n, rank)
    _probability(delta)
    if not epsilon >= LEAST:
        raise ParameterError(f"epsilon must be at least {LEAST:g}, got {epsilon}")
    c1, c2 = of if of is not None else (theta or 1.0, theta or 1.0)
    r = float(rank)
    m1 = 100 * c1 * math.log(2 * n * r / delta) * max(r**2.5 / epsilon, r**2 / epsilon**2)
    m2 = 200 * c2 * math.log(2 * r / delta) * max(r**3 / epsilon, r**5 / epsilon**2)
    if not m1 + m2 < math.inf:
        raise ParameterError(
            f"theta must leave a finite number of repetitions, got {max(c1, c2):g} with epsilon={epsilon:g}"
        )
    return Repetitions(math.ceil(m1), math.ceil(m2))


def nystrom_queries(n: int, rank: int, times: Repetitions) -> int:
    """Return n r m1 + r^2 m2, the measurements of Theorem 4.3."""
    return n * rank * times.columns + rank**2 * times.block


def forecast(
    n: int,
    rank: int,
    epsilon: float,
    delta: float,
    *,
    theta: float = 1.0,
    gaps: Sequence[Sequence[float]] = (),
) -> int:
    """Return the measurements that literal S-MCANS needs (Corollary 4.4), constants of the proofs kept.

    Parameters
    ----------
    gaps : for each selection (submatrices of side 2, 3, ..., rank), the gaps of the other candidates. Without
        them selection is left out, and the number is a lower bound.

    >>> forecast(200, 2, 0.1, 0.05) > 1e8
    True
    """
    total = nystrom_queries(n, rank, repetitions(n, rank, epsilon, delta, theta=theta))
    for p, given in enumerate(gaps, start=2):
        total += elimination_queries(given, p, delta / (2 * rank))
    return total


def coin_upper(successes: ArrayLike, trials: ArrayLike, delta: float) -> Array:
    """Return upper ends for the chance of coins, right with probability 1 - `delta` each (Clopper-Pearson)."""
    from scipy.special import betaincinv

    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    high = betaincinv(k + 1.0, np.maximum(n - k, 1e-9), 1.0 - delta)
    return np.asarray(np.where((n <= 0) | (k >= n), 1.0, high), dtype=np.float64)


def coin_difference(
    one: tuple[float, float], two: tuple[float, float], level: float
) -> tuple[float, float]:
    """Return an interval for the chance of one coin less that of another, each given as (successes, trials).

    The score intervals of both put together (Newcombe 1998, method 10), which covers with about `level`.

    >>> low, high = coin_difference((30, 100), (10, 100), 0.95)
    >>> round(low, 3), round(high, 3)
    (0.09, 0.306)
    """
    from scipy.special import ndtri

    z = float(ndtri(0.5 + level / 2))
    p, low, high = zip(*(_score_interval(k, n, z) for k, n in (one, two)), strict=True)
    middle = p[0] - p[1]
    down = math.hypot(p[0] - low[0], high[1] - p[1])
    up = math.hypot(high[0] - p[0], p[1] - low[1])
    return max(-1.0, middle - down), min(1.0, middle + up)


def _score_interval(successes: float, trials: float, z: float) -> tuple[float, float, float]:
    """Return the share, and Wilson's interval for the chance."""
    p = successes / trials
    centre = (p + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(p * (1 - p) / trials + (z / (2 * trials)) ** 2)
    return p, centre - half, centre + half


def _check(n: int, rank: int) -> None:
    if n < 1 or not 0 <= rank <= n:
        raise ParameterError(f"rank must be in 0..n, got n={n}, rank={rank}")


def _probability(delta: float) -> None:
    if not 0 < delta < 1:
        raise ParameterError(f"delta must be between 0 and 1, got {delta}")
