r"""What a rank-one completion can be worth: the theorems of [HOS20] as numbers for the entries at hand.

The known entries are the edges of a bipartite graph between rows and columns. With :math:`L` its Laplacian,
weighted by :math:`A_{ij}^2`, and :math:`K` that of the complete bipartite graph with the same weights,
:math:`\lambda_{\max}(K L^+)` is the largest squared error per squared disturbance, and no method does better.

References
----------
.. [HOS20] Hendrickx, Olshevsky, Saligrama, *Minimax rank-1 matrix factorization*, AISTATS 2020. Its K must have
   weights :math:`A_{ij}^2` (the text says :math:`A_{ij}`, which breaks Theorem 1 on star masks), its
   :math:`\rho` is :math:`\sqrt{\bar\alpha / \underline\alpha}`, and norms of Delta are taken with their root.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from entrywise.exceptions import ParameterError
from entrywise.linalg.laplacian import Laplacian
from entrywise.observations import Observations
from entrywise.types import Array, Indices

EXACT = 600  # lines up to which traces and largest resistances are exact
FEWEST_PROBES, AGREE = (
    4,
    0.02,
)  # so many probes are enough where they differ by no more than this share
LOOSE = 1e-4  # residual of a solve that enters a mean over random disturbances


class Sensitivity:
    r"""How disturbances of the known entries of :math:`A = x y^\top` reach all entries.

    Parameters
    ----------
    rows, cols : ndarray of int64 of shape (t,)
        Where entries are known.
    x, y : ndarray of shape (m,) and (n,)
        The factors, true or estimated.
    precision : float or ndarray of shape (t,)
        Inverse noise variance of each known entry; disturbances are then counted in noise units.

    Notes
    -----
    Only entries whose row and column lie in one connected component count: no method can say anything
    about the others.

    Examples
    --------
    One known row and column determine everything; entries far from them pay for three disturbances.

    >>> star = Sensitivity([0, 0, 1], [0, 1, 0], [1.0, 1.0], [1.0, 1.0])
    >>> round(star.worst()[0], 6), round(star.trace(), 6)
    (4.0, 6.0)
    """

    def __init__(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        x: ArrayLike,
        y: ArrayLike,
        precision: ArrayLike = 1.0,
    ) -> None:
        x, y = np.asarray(x, np.float64).ravel(), np.asarray(y, np.float64).ravel()
        i, j = np.asarray(rows, np.int64), np.asarray(cols, np.int64)
        p = np.broadcast_to(np.asarray(precision, np.float64), i.shape)
        self.m, self.n = len(x), len(y)
        weights = (x[i] * y[j]) ** 2 * p
        live = weights > 0
        self.laplacian = Laplacian(self.m + self.n, i[live], self.m + j[live], weights[live])
        count, part = self.laplacian.components
        self._part, self._square = part, np.nan_to_num(np.r_[x, y] ** 2)
        self._of_rows = np.bincount(part[: self.m], self._square[: self.m], count)
        self._of_cols = np.bincount(part[self.m :], self._square[self.m :], count)

    def spread(self, v: Array) -> Array:
        """Return K v in O(m + n): K is a diagonal less a matrix of rank two, in each component."""
        m, part, s = self.m, self._part, self._square
        count = len(self._of_rows)
        rows = np.bincount(part[:m], s[:m] * v[:m], count)
        cols = np.bincount(part[m:], s[m:] * v[m:], count)
        found = np.empty_like(v)
        found[:m] = s[:m] * (self._of_cols[part[:m]] * v[:m] - cols[part[:m]])
        found[m:] = s[m:] * (self._of_rows[part[m:]] * v[m:] - rows[part[m:]])
        return found

    def worst(self, rtol: float = 1e-4, most: int = 60) -> tuple[float, Array]:
        r"""Return :math:`\lambda_{\max}(K L^+)` and the direction, in logarithms, that attains it.

        Lanczos on :math:`L^+ K` in the inner product of L, one solve a step. The value is a Ritz value: never
        above the true one, and below it by a relative `rtol` or so. Solves are as exact as that asks: what they miss turns
        the next direction, not the value along it.
        """
        L = self.laplacian
        inner = max(0.01 * rtol, 1e-9)
        q = L.center(np.random.default_rng(0).standard_normal(self.m + self.n))
        basis: list[Array] = []
        T = np.zeros((most, most))
        value, top = 0.0, np.zeros(0)
        q = (
            L.solve(self.spread(q), inner) if len(L.i) else 0.0 * q
        )  # a power step: into the range that matters
        norm = math.sqrt(max(float(q @ (L @ q)), 0.0))
        while norm > 1e-7 * value and len(basis) < min(most, self.m + self.n - 1):
            q = q / norm
            basis.append(q)
            Q, k = np.column_stack(basis), len(basis)
            Kq = self.spread(q)
            T[:k, k - 1] = T[k - 1, :k] = (
                Kq @ Q
            )  # L (L^+ K q) = K q: coefficients without a product with L
            q = L.solve(Kq, inner)
            q -= Q @ T[:k, k - 1]
            q -= Q @ ((L @ q) @ Q)  # once more, against round-off
            values, vectors = np.linalg.eigh(T[:k, :k])
            norm = math.sqrt(max(float(q @ (L @ q)), 0.0))
            last, value, top = value, float(values[-1]), vectors[:, -1]
            if norm * abs(top[-1]) <= rtol * value and value - last <= 0.1 * rtol * value:
                break
        return value, np.column_stack(basis) @ top if basis else np.zeros(self.m + self.n)

    @cached_property
    def _dense(self) -> Array:
        """All resistances between rows and columns, NaN across components; shape (m, n)."""
        G, m = self.laplacian.inverse(), self.m
        d = G.diagonal()
        R = d[:m, None] + d[None, m:] - 2.0 * G[:m, m:]
        R[self._part[:m, None] != self._part[None, m:]] = np.nan
        return np.asarray(R)

    def resistances(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the effective resistance between row and column: the variance of log A_ij per noise variance."""
        i, j = np.broadcast_arrays(np.asarray(rows, np.int64), np.asarray(cols, np.int64))
        R = self.laplacian.resistances(i, self.m + j)
        return np.where(np.isfinite(R), R, np.nan)

    def trace(self, probes: int = 16) -> float:
        r"""Return :math:`\mathrm{tr}(K L^+) = \sum_{ij} A_{ij}^2 R_{ij}`: expected squared error per noise variance.

        Exact up to 600 lines; else the mean over at most `probes` random disturbances, with a relative error of
        :math:`\sqrt{2 / \mathrm{probes}}` at most; where many directions share in the trace a few probes agree, and no more
        are taken.
        """
        L, m = self.laplacian, self.m
        if m + self.n <= EXACT:
            return float(np.nansum(self._square[:m, None] * self._square[None, m:] * self._dense))
        rng = np.random.default_rng(0)
        found: list[float] = []
        for _ in range(probes):
            flow = np.sqrt(L.weights) * rng.standard_normal(len(L.i))
            u = L.solve(L.divergence(flow), LOOSE)
            found.append(float(u @ self.spread(u)))
            if len(found) >= FEWEST_PROBES and np.std(found) <= AGREE * np.mean(found):
                break
        return float(np.mean(found))

    def largest_resistance(self, sweeps: int = 3) -> float:
        """Return the largest resistance between two lines: exact up to 600 lines, else by sweeps, a lower bound."""
        L = self.laplacian
        count, part = L.components
        if L.n <= EXACT:
            G = L.inverse()
            R = G.diagonal()[:, None] + G.diagonal()[None, :] - 2.0 * G
            return float(np.max(R, where=part[:, None] == part[None, :], initial=0.0))
        found = 0.0
        big = int(np.argmax(np.bincount(part, minlength=count)))
        here = int(np.flatnonzero(part == big)[0])
        for _ in range(sweeps):
            x = L.solve(np.where(np.arange(L.n) == here, 1.0, 0.0))
            there = int(np.argmin(np.where(part == big, x, np.inf)))  # the least reached
            found = max(found, float(L.resistances([here], [there])[0]))
            here = there
        return found


def smallest_gap(laplacian: Laplacian) -> float:
    """Return the second smallest eigenvalue of a connected graph's Laplacian, 0 when it is not connected."""
    if laplacian.components[0] > 1:
        return 0.0
    if laplacian.n <= 300:
        L = laplacian @ np.eye(laplacian.n)
        return float(np.linalg.eigvalsh((L + L.T) / 2)[1])
    from scipy.sparse.linalg import LinearOperator, eigsh

    pseudo = LinearOperator(
        (laplacian.n,) * 2, matvec=lambda b: laplacian.solve(np.ravel(b), 1e-10), dtype=np.float64
    )
    start = laplacian.center(np.random.default_rng(0).standard_normal(laplacian.n))
    return float(
        1.0 / eigsh(pseudo, k=1, which="LA", v0=start, return_eigenvectors=False, tol=1e-6)[0]
    )


def theorem_1(constant: float, resistance: float, disturbance: float, c: float = 1.0) -> float:
    r"""Return the bound on :math:`\|\hat A - A\|_F^2` of weighted log least squares, Theorem 1.

    `constant` is :math:`\lambda_{\max}(K L^+)`, `resistance` the largest one, `disturbance` is
    :math:`\|\Delta\|_F`, and no known entry may exceed `c` times the true one.
    """
    _at_least("c", c, 1.0)
    return float(
        c**2 * constant * disturbance**2 * _exp(2.0 * c * math.sqrt(resistance) * disturbance)
    )


def corollary_1(
    shape: tuple[int, int],
    gap: float,
    resistance: float,
    disturbance: float,
    *,
    high: float,
    low_seen: float,
    c: float = 1.0,
) -> float:
    r"""Return Corollary 1's bound on :math:`\|\hat A - A\|_F^2`, in terms of the unweighted graph alone.

    `gap` and `resistance` are of the unweighted graph, `high` bounds the entries of A and `low_seen` the
    known ones from below. Thousands of times looser than :func:`theorem_1`: a scaling law, no certificate.
    """
    _at_least("c", c, 1.0)
    growth = _exp(2.0 * c * math.sqrt(resistance) * disturbance / low_seen)
    return float(c**2 * (high / low_seen) ** 2 * sum(shape) / gap * disturbance**2 * growth)


def corollary_1_by_size(
    shape: tuple[int, int], disturbance: float, *, high: float, low_seen: float, c: float = 1.0
) -> float:
    r"""Return the second line of Corollary 1: its bound for any connected mask, by the size of the table alone.

    .. math:: \|\hat A - A\|_F^2 \le \frac{c^2}{4} \Big(\frac{\bar\alpha}{\underline\alpha^R}\Big)^2 (m+n)^3
              \|\Delta\|_F^2\, e^{2 c \sqrt{m + n} \|\Delta\|_F / \underline\alpha^R}

    It follows from the first by :math:`\lambda_2 \ge 4 / (m + n)^2` and :math:`R_{\max} \le m + n` of connected graphs.
    """
    _at_least("c", c, 1.0)
    size = sum(shape)
    growth = _exp(2.0 * c * math.sqrt(size) * disturbance / low_seen)
    return float(c**2 / 4.0 * (high / low_seen) ** 2 * size**3 * disturbance**2 * growth)


def theorem_4(shape: tuple[int, int], rho: float, gap: float, total: float) -> float:
    r"""Return Theorem 4's bound on :math:`\sum_{ij} |\hat A - A|_{ij}` of the projected eigenvector method.

    `gap` is the chain's second smallest eigenvalue (:func:`chain_gap`), `total` is :math:`\|\Delta\|_1`, and
    ``rho = sqrt(high / low)``.
    """
    _at_least("rho", rho, 1.0)
    size = sum(shape)
    return float(3.0 * size**2 * rho**4 * math.log(rho * math.sqrt(size)) / gap * total)


def corollary_2(shape: tuple[int, int], rho: float, gap: float, disturbance: float) -> float:
    r"""Return Corollary 2's bound on :math:`\sum_{ij} |\hat A - A|_{ij}`: polynomial, whatever the disturbance.

    `gap` is that of the unweighted graph, `disturbance` is :math:`\|\Delta\|_F`. A scaling law, no certificate.
    """
    _at_least("rho", rho, 1.0)
    size = sum(shape)
    return float(6.0 * size**2.5 * rho**7 * math.log(rho * math.sqrt(size)) / gap * disturbance)


def chain_gap(rows: Indices, cols: Indices, x: Array, y: Array, mu: float) -> float:
    r"""Return the second smallest eigenvalue of the chain that :math:`A = x y^\top` defines; it is real.

    The chain is reversible, so that its symmetrised form has the same eigenvalues; dense, for small problems.
    """
    m, n = len(x), len(y)
    a = x[rows] * y[cols]
    M = np.zeros((m + n, m + n))
    M[rows, m + cols] = M[m + cols, rows] = np.sqrt(mu * a) / (mu + a)  # sqrt(M_ij M_ji)
    out = np.bincount(np.r_[rows, m + cols], np.r_[mu / (mu + a), a / (mu + a)], m + n)
    return float(np.linalg.eigvalsh(np.diag(out) - M)[1])


def worst_matrix(
    rows: ArrayLike, cols: ArrayLike, x: ArrayLike, y: ArrayLike, size: float
) -> tuple[Array, Array]:
    r"""Return the factors of Theorem 2's matrix: what hurts most the method that sees :math:`x y^\top` at the known places.

    It differs from :math:`x y^\top` along the worst direction, by a disturbance of the known entries with
    :math:`\|\Delta\|_F` about `size`; every method that answers :math:`x y^\top` errs by
    :math:`\sqrt{\lambda_{\max}(K L^+)}` times that.
    """
    x, y = np.asarray(x, np.float64).ravel(), np.asarray(y, np.float64).ravel()
    _, v = Sensitivity(rows, cols, x, y).worst(
        rtol=1e-8
    )  # v' L v = 1: ||Delta||_F is the step, to first order
    return x * np.exp(size * v[: len(x)]), y * np.exp(-size * v[len(x) :])


def path_family(n: int, c: float) -> tuple[Observations, Array]:
    r"""Return Theorem 3 (a)'s known entries and true matrix: errors :math:`e^{c \sqrt{R}}` though :math:`\|\Delta\|_F \le c`.

    A is all ones, known along a staircase from one corner to the other; the disturbances add up along it.
    """
    if n < 2 or not 0 < c < math.sqrt(2 * n - 1):
        raise ParameterError(
            f"the path family needs n >= 2 and c in (0, sqrt(2 n - 1)), got n={n}, c={c}"
        )
    rows, cols = np.r_[np.arange(n), np.arange(1, n)], np.r_[np.arange(n), np.arange(n - 1)]
    step = c / math.sqrt(2 * n - 1)
    values = np.r_[np.full(n, 1.0 + step), np.full(n - 1, 1.0 - step)]
    return Observations.from_triplets(rows, cols, values, (n, n)), np.ones((n, n))


def block_family(n: int, low: float) -> tuple[Observations, Array]:
    """Return Theorem 3 (b)'s known entries and true matrix: one disturbed entry costs n^2 / (9 low^2).

    A is all ones; two diagonal blocks are known, and one entry between them that reads `low` instead of 1.
    """
    if n < 2 or n % 2 or not 0 < low <= 1 / 3:
        raise ParameterError(
            f"the block family needs an even n and low in (0, 1/3], got n={n}, low={low}"
        )
    seen = np.full((n, n), np.nan)
    seen[: n // 2, : n // 2] = seen[n // 2 :, n // 2 :] = 1.0
    seen[n // 2, 0] = low
    return Observations.from_dense(seen), np.ones((n, n))


def _exp(value: float) -> float:
    return math.exp(value) if value < 709.0 else math.inf


def _at_least(name: str, value: float, least: float) -> None:
    if not value >= least:
        raise ParameterError(f"{name} must be at least {least:g}, got {value}")
