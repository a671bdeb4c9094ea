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
# of a mean over random disturbances: relative standard error, of four or more, and of two or three; the error that it
# stands for, its root, is known twice as well
SURE, SURER = 0.04, 0.002
LOOSE = 1e-3  # error of a solve that enters a mean over random disturbances
FAIR = 5e-3  # relative error of a certificate's minimax constant, at most
ROUGH = 0.1  # error of a solve that only says where to look next


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
    graph : Laplacian, optional
        Of a graph that may be that of the entries, with other weights: what does not depend on these is made once for both.

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
        graph: Laplacian | None = None,
    ) -> None:
        x, y = np.asarray(x, np.float64).ravel(), np.asarray(y, np.float64).ravel()
        i, j = np.asarray(rows, np.int64), np.asarray(cols, np.int64)
        p = np.broadcast_to(np.asarray(precision, np.float64), i.shape)
        self.m, self.n = len(x), len(y)
        weights = (x[i] * y[j]) ** 2 * p
        live = weights > 0
        if not live.all():
            i, j, weights = i[live], j[live], weights[live]
        self.laplacian = Laplacian.like(graph, self.m + self.n, i, self.m + j, weights)
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

    def loneliest(self) -> Array:
        """Return 1 at the line that moves most when it moves alone, 0 at the others: the largest K_kk / L_kk."""
        L, part = self.laplacian, self._part
        of_others = np.r_[self._of_cols[part[: self.m]], self._of_rows[part[self.m :]]]
        own = np.bincount(L.i, L.weights, L.n) + np.bincount(L.j, L.weights, L.n)
        alone = np.divide(self._square * of_others, own, out=np.zeros(L.n), where=own > 0)
        return np.asarray(np.arange(L.n) == np.argmax(alone), np.float64)

    def worst(self, rtol: float = 1e-4, most: int = 60) -> tuple[float, Array]:
        r"""Return :math:`\lambda_{\max}(K L^+)` and the direction, in logarithms, that attains it.

        The value is a Ritz value: never above the true one, and below it by a relative `rtol` or so.
        """
        basis, _, T = self._few if rtol >= FAIR else self._directions(rtol, most)
        if not len(basis):
            return 0.0, np.zeros(self.laplacian.n)
        values, vectors = np.linalg.eigh(T)
        return float(values[-1]), vectors[:, -1] @ basis

    @cached_property
    def _few(self) -> tuple[Array, Array, Array]:
        return self._directions(FAIR)

    def _directions(self, rtol: float, most: int = 60) -> tuple[Array, Array, Array]:
        """Return V' of shape (k, m + n), L V alike, and V' K V, with V' L V = 1: a space with the worst direction in it.

        Davidson's method: the residual of what is worst in it, solved for roughly, is the next direction, and L and K are
        taken as they are on all of them. With exact solves it would be Lanczos' method; with rough ones it takes a few
        directions more, each for a fifth of the time.
        """
        L = self.laplacian
        most = min(most, L.n - 1) if len(L.i) else 0
        basis, images = np.empty((most, L.n)), np.empty((most, L.n))
        T = np.zeros((most, most))
        q, value = self.loneliest(), 0.0
        for k in range(most):
            image = L @ q
            before, square = np.inf, float(q @ image)
            nothing = 1e-24 * square
            while 0.0 < square < 0.01 * before:  # orthogonal to the others, again against round-off
                along = basis[:k] @ image
                q -= along @ basis[:k]
                image -= along @ images[:k]
                before, square = square, float(q @ image)
            if not square > nothing:
                return basis[:k], images[:k], T[:k, :k]
            np.divide(q, math.sqrt(square), out=basis[k])
            np.divide(image, math.sqrt(square), out=images[k])
            T[: k + 1, k] = T[k, : k + 1] = basis[: k + 1] @ self.spread(basis[k])
            if not k:  # a power step: into the range that matters
                start = L.center(np.random.default_rng(0).standard_normal(L.n))
                q = L.solve(self.spread(start), ROUGH)
                continue
            values, vectors = np.linalg.eigh(T[: k + 1, : k + 1])
            last, value, top = value, float(values[-1]), vectors[:, -1]
            residual = self.spread(top @ basis[: k + 1]) - value * (top @ images[: k + 1])
            q = L.solve(residual, ROUGH)
            error = math.sqrt(max(float(residual @ q), 0.0))
            if error <= rtol * value and value - last <= 0.1 * rtol * value:
                return basis[: k + 1], images[: k + 1], T[: k + 1, : k + 1]
        return basis, images, T

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
        :math:`\sqrt{2 / \mathrm{probes}}` at most. Along the directions that :meth:`worst` goes through it is exact; no more
        probes are taken once the standard error is 4 % (that of the root, the expected error itself, is 2 %), or .2 % of the
        first two: on many lines one is like the other.
        """
        L, m = self.laplacian, self.m
        if m + self.n <= EXACT:
            return float(np.nansum(self._square[:m, None] * self._square[None, m:] * self._dense))
        basis, images, T = self._few
        rng = np.random.default_rng(0)
        found: list[float] = []
        root, flow = np.sqrt(L.weights), np.empty(len(L.i))
        for _ in range(probes):
            np.copyto(flow, root)
            np.negative(flow, out=flow, where=rng.integers(2, size=len(flow), dtype=np.uint8) == 1)
            u = L.solve(L.divergence(flow), LOOSE)
            u -= (images @ u) @ basis
            found.append(float(np.trace(T) + u @ self.spread(u)))
            error = np.std(found) / math.sqrt(len(found))
            enough = SURE if len(found) >= 4 else SURER
            if len(found) >= 2 and error <= enough * np.mean(found):
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
