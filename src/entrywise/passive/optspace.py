"""OptSpace: a trimmed spectral start, then descent over the two subspaces."""

from __future__ import annotations

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.observations import Observations
from entrywise.passive._choose import check_limits
from entrywise.results import LowRank
from entrywise.types import Array, Indices, Seed, generator

MOST = 100  # singular values among which the rank is chosen
EXACT = 1e-24  # share of the values' squares below which everything is explained, up to round-off
LONGEST = 1e6  # step
HALVINGS = 60  # of a step before the descent ends
ENOUGH = 1e-4  # share of the fall that the slope promises (Armijo)
BLOCK = 1 << 20  # numbers at once in the normal equations of S
SMALLEST = 1e-300


def optspace(
    observations: Observations,
    rank: int | None = None,
    *,
    rng: Seed = 0,
    tol: float = 1e-6,
    max_sweeps: int = 500,
) -> LowRank:
    r"""Return the matrix of given rank that fits the known entries best, by descent from a spectral start.

    .. math:: \min_{X, Y} \min_S \sum_{(i,j)} (y_{ij} - x_i^\top S y_j)^2, \quad X^\top X = Y^\top Y = I

    Lines with more than twice the average number of entries are trimmed for the start only; the descent follows
    conjugate directions on the product of Grassmann manifolds with a backtracking step.

    Parameters
    ----------
    observations : Observations
        Entries may be listed more than once. Noise is not used and nothing is centred.
    rank : int, optional
        1..min(m, n). None: where the ratio of successive singular values of the trimmed matrix, corrected for
        noise as the authors' code does, is smallest.
    tol, max_sweeps : float, int
        Stop when the squared error falls by less than this share in one step, or after so many.

    Returns
    -------
    LowRank

    References
    ----------
    .. [KMO10] Keshavan, Montanari, Oh, *Matrix completion from a few entries*, IEEE Trans. Inf. Theory 2010; here
       without the incoherence penalty G, and S is refitted at every step.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 30))
    >>> seen = Observations.from_dense(np.where(rng.random(A.shape) < 0.6, A, np.nan))
    >>> bool(np.abs(optspace(seen, 2, tol=1e-12).to_dense() - A).max() < 1e-3)
    True
    """
    smaller = min(observations.shape)
    if rank is not None and not 1 <= rank <= smaller:
        raise ParameterError(f"rank of optspace must be in 1..{smaller}, got {rank}")
    check_limits(tol, max_sweeps)
    if not len(observations):
        raise DataError("optspace needs at least one known entry, got none")
    size = float(np.abs(observations.values).max()) or 1.0
    X, Y, rank = _spectral(observations, rank, generator(rng))
    descent = _Descent(observations, observations.values / size, X, Y)
    done = 0
    while done < max_sweeps:
        done += 1
        before = descent.error
        if not descent.step() or before - descent.error <= tol * descent.error:
            break
    U, d, W = np.linalg.svd(size * descent.S)
    root = np.sqrt(d)
    return LowRank.of_entries(
        observations,
        left=descent.X @ U * root,
        right=descent.Y @ W.T * root,
        report={
            "method": "optspace",
            "rank": rank,
            "sweeps": done,
            "fit_rmse": size * float(np.sqrt(descent.error / len(observations))),
        },
    )


class _Descent:
    """Conjugate directions over both subspaces; S is refitted at every point."""

    def __init__(self, seen: Observations, values: Array, X: Array, Y: Array) -> None:
        self.i, self.j, self.y = seen.rows, seen.cols, values
        self.X, self.Y = X, Y
        self.S, self.residual = self._middle(X, Y)
        self.error = float(self.residual @ self.residual)
        self.nothing = EXACT * max(float(values @ values), SMALLEST)
        self.length = 1.0
        self.direction = (np.zeros_like(X), np.zeros_like(Y))
        self.gradient: tuple[Array, Array, float] | None = None  # the last one and its squared norm

    def step(self) -> bool:
        """Go down one line; False where there is nothing left or no step goes down."""
        if self.error <= self.nothing:
            return False
        X, Y = self.X, self.Y
        GX = -_scatter(self.i, self.residual, Y[self.j] @ self.S.T, len(X))
        GY = -_scatter(self.j, self.residual, X[self.i] @ self.S, len(Y))
        GX, GY = GX - X @ (X.T @ GX), GY - Y @ (Y.T @ GY)  # of half the error
        norm = _inner((GX, GY), (GX, GY))
        if norm == 0.0:
            return False
        beta = 0.0
        if self.gradient is not None:  # Polak-Ribière, restarted when it turns uphill
            AX, AY, last = self.gradient
            beta = max(0.0, (norm - _inner((GX, GY), (AX, AY))) / last)
        DX = -GX + beta * _tangent(X, self.direction[0])
        DY = -GY + beta * _tangent(Y, self.direction[1])
        slope = _inner((GX, GY), (DX, DY))
        if slope >= 0:
            DX, DY, slope = -GX, -GY, -norm
        if not self._search(DX, DY, slope):
            return False
        self.gradient, self.direction = (GX, GY, norm), (DX, DY)
        return True

    def _search(self, DX: Array, DY: Array, slope: float) -> bool:
        """Take the first step, halved from twice the last one, that goes down enough."""
        self.length = min(self.length * 2.0, LONGEST)
        for _ in range(HALVINGS):
            P = np.linalg.qr(self.X + self.length * DX)[0]
            Q = np.linalg.qr(self.Y + self.length * DY)[0]
            S, residual = self._middle(P, Q)
            error = float(residual @ residual)
            if error <= self.error + ENOUGH * self.length * slope:
                self.X, self.Y, self.S = P, Q, S
                self.residual, self.error = residual, error
                return True
            self.length /= 2.0
        return False

    def _middle(self, X: Array, Y: Array) -> tuple[Array, Array]:
        """Return the best S for the two subspaces, by least squares over r^2 numbers, and the residuals."""
        i, j, y = self.i, self.j, self.y
        k = X.shape[1]
        G, h = np.zeros((k * k, k * k)), np.zeros(k * k)
        block = max(1, BLOCK // (k * k))
        for start in range(0, len(y), block):
            at = slice(start, start + block)
            F = (X[i[at]][:, :, None] * Y[j[at]][:, None, :]).reshape(-1, k * k)
            G += F.T @ F
            h += F.T @ y[at]
        G += 1e-12 * max(float(np.trace(G)) / (k * k), SMALLEST) * np.eye(k * k)
        S = np.linalg.solve(G, h).reshape(k, k)
        return S, y - np.einsum("tk,tk->t", X[i] @ S, Y[j])


def _inner(a: tuple[Array, Array], b: tuple[Array, Array]) -> float:
    return float((a[0] * b[0]).sum() + (a[1] * b[1]).sum())


def _tangent(X: Array, D: Array) -> Array:
    """Return D without what lies in the subspace X."""
    return D - X @ (X.T @ D)


def _spectral(
    seen: Observations, rank: int | None, rng: np.random.Generator
) -> tuple[Array, Array, int]:
    """Return orthonormal subspaces of the trimmed observations, and the rank."""
    from scipy.sparse import csr_array

    from entrywise.linalg.variational import top_triplets

    m, n = seen.shape
    crowded = (seen.row_counts > 2 * max(len(seen) / m, 1))[seen.rows]
    crowded |= (seen.col_counts > 2 * max(len(seen) / n, 1))[seen.cols]
    kept = ~crowded if np.any(~crowded) else np.ones(len(seen), bool)
    trimmed = csr_array((seen.values[kept], (seen.rows[kept], seen.cols[kept])), shape=(m, n))
    if rank is None:
        s = top_triplets(trimmed, min(m, n, MOST), rng)[1]
        rank = _rank(s, len(seen) / np.sqrt(m * n))
    U, _, V = top_triplets(trimmed, rank, rng)
    return np.linalg.qr(U)[0], np.linalg.qr(V)[0], rank


def _rank(s: Array, density: float) -> int:
    """Return where the ratio of successive singular values, corrected for noise, is smallest."""
    if len(s) < 2 or s[0] <= 0:
        return 1
    k = np.arange(1, len(s))
    noise = s[0] * np.sqrt(k / density)
    ratio = (s[1:] + noise) / np.maximum(s[:-1], 1e-12 * s[0])
    return int(np.argmin(ratio)) + 1


def _scatter(index: Indices, weight: Array, vectors: Array, size: int) -> Array:
    """Return the sum of ``weight[t] vectors[t]`` over each index, shape (size, k)."""
    from scipy.sparse import csr_array

    pick = csr_array((weight, (index, np.arange(len(index)))), shape=(size, len(index)))
    return np.asarray(pick @ vectors)
