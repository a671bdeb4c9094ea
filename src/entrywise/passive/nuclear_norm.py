"""Nuclear-norm completion solved to a certified gap, penalised or constrained (NNa of the two-cost paper)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.observations import Observations
from entrywise.passive._choose import best_penalty, cells, check_limits
from entrywise.results import Certificate, LowRank
from entrywise.types import Array, Seed, generator

LARGEST = 4_000_000  # cells of the dense iterate
PENALTIES = (
    0.9,
    0.005,
    10,
)  # first, last and number tried, as shares of the smallest that makes M zero
ROUGH = (1e-3, 200)  # tol and max_sweeps of the fits that choose a penalty
NO_PENALTY = 1e-7  # share of that penalty which is as good as none
GAP_EVERY = 10  # the gap costs as much as a step
SMALLEST = 1e-300


def nuclear_norm(
    observations: Observations,
    *,
    penalty: float | None = None,
    max_error: float | None = None,
    weights: Array | None = None,
    rng: Seed = 0,
    tol: float = 1e-6,
    max_sweeps: int = 2000,
) -> LowRank:
    r"""Return the minimiser of the nuclear norm, penalised or under a bound on the misfit.

    .. math:: \min_M \tfrac12 \sum_{(i,j)} w_{ij} (y_{ij} - M_{ij})^2 + \lambda \|M\|_*
       \qquad\text{or}\qquad \min_M \|M\|_* \ \text{ with } \ \sum_{(i,j)} w_{ij} (y_{ij} - M_{ij})^2 \le \delta^2

    by accelerated proximal gradient with restarts, one dense SVD a step; the second by bisection on
    :math:`\lambda`. For matrices too large for that, :func:`soft_impute` minimises the same penalised problem.

    Parameters
    ----------
    observations : Observations
        An entry listed more than once adds a term each time. Noise enters only through `weights`.
    penalty : float, optional
        :math:`\lambda` above 0.
    max_error : float, optional
        :math:`\delta`, 0 or above. With neither given, :math:`\lambda` is the best of ten on a held-out tenth.
    weights : ndarray of shape (t,), optional
        One above 0 an observation; ones by default. 1 / noise^2 weighs two instruments apart.
    tol, max_sweeps : float, int
        Stop when the relative duality gap is below this, or after so many SVDs.

    Returns
    -------
    LowRank
        Its certificate is the duality gap: how far the objective can be above the minimum. Nothing is centred.

    References
    ----------
    .. [CP10] Candès, Plan, *Matrix completion with noise*, Proc. IEEE 2010: the constrained form.
    .. [TY10] Toh, Yun, *An accelerated proximal gradient algorithm for nuclear norm regularized problems*, 2010.

    Examples
    --------
    >>> A = np.outer(np.arange(1.0, 7.0), np.arange(1.0, 6.0))
    >>> A[2, 3] = np.nan
    >>> found = nuclear_norm(Observations.from_dense(A), max_error=0.0)
    >>> found.rank, round(found.entry(2, 3), 2)
    (1, 12.0)
    """
    _check(observations, penalty, max_error)
    check_limits(tol, max_sweeps)
    w = _weights(weights, len(observations))
    problem = _Penalised(observations, w)
    start: Array = np.zeros(observations.shape)
    if max_error is not None:
        penalty, start = problem.meet(max_error, tol, max_sweeps)
    elif penalty is None:
        penalty = _chosen(problem, observations, w, generator(rng))
    return _pack(problem.solve(penalty, start, tol, max_sweeps), observations, penalty)


def _check(seen: Observations, penalty: float | None, max_error: float | None) -> None:
    m, n = seen.shape
    if penalty is not None and max_error is not None:
        raise ParameterError("give penalty or max_error to nuclear_norm, not both")
    if penalty is not None and not penalty > 0:
        raise ParameterError(f"penalty of nuclear_norm must be above 0, got {penalty}")
    if max_error is not None and not max_error >= 0:
        raise ParameterError(f"max_error of nuclear_norm must be 0 or above, got {max_error}")
    if m * n > LARGEST:
        raise ParameterError(
            f"nuclear_norm works on dense matrices of at most {LARGEST} cells, got {m} x {n}; use soft_impute"
        )
    if not len(seen):
        raise DataError("nuclear_norm needs at least one known entry, got none")


def _weights(weights: Array | None, count: int) -> Array:
    w = np.ones(count) if weights is None else np.asarray(weights, np.float64)
    if w.shape != (count,) or not np.all(np.isfinite(w) & (w > 0)):
        raise ParameterError(
            f"weights of nuclear_norm must be one number above 0 for each of {count}"
        )
    return w


def _chosen(problem: _Penalised, seen: Observations, w: Array, rng: np.random.Generator) -> float:
    """Return the penalty that foretells a held-out tenth best."""
    if len(seen) < 2:
        raise DataError("a penalty cannot be chosen on one observation; give penalty or max_error")
    path = (problem.top * np.geomspace(*PENALTIES)).tolist() if problem.top > 0 else [1.0]

    def rough(kept: Observations, lam: float, before: LowRank | None) -> LowRank:
        start = np.zeros(kept.shape) if before is None else before.to_dense()
        kept_problem = _Penalised(kept, kept.noise_array() ** -2.0)
        return _pack(kept_problem.solve(lam, start, *ROUGH), kept, lam)

    carrying = replace(seen, noise=w**-0.5)  # weights that stay with their entries
    return best_penalty(carrying, path, rough, rng)[0]


class _Penalised:
    """One penalised problem: its cells, weights and the largest useful penalty."""

    def __init__(self, seen: Observations, w: Array) -> None:
        n = seen.shape[1]
        self.i, self.j, _, _ = cells(seen.rows, seen.cols, seen.values, n)
        at = np.searchsorted(self.i * n + self.j, seen.rows * n + seen.cols)
        self.w = np.bincount(at, w)
        self.y = np.bincount(at, w * seen.values) / self.w
        apart = seen.values - self.y[at]
        self.within = float(np.sum(w * apart**2))  # misfit that no matrix removes
        self.shape = seen.shape
        self.top = float(np.linalg.norm(self.spread(self.w * self.y), 2))

    def spread(self, values: Array) -> Array:
        """Return a dense matrix with these values at the cells, zero elsewhere."""
        G = np.zeros(self.shape)
        G[self.i, self.j] = values
        return G

    def residual(self, M: Array) -> Array:
        """Return what M leaves of the cells, times their weights."""
        return np.asarray(self.w * (self.y - M[self.i, self.j]))

    def gap(self, residual: Array, lam: float, objective: float) -> float:
        """Return the relative duality gap: the residual, shrunk until it is feasible, bounds the objective below."""
        norm = float(np.linalg.norm(self.spread(residual), 2))
        z = residual * min(1.0, lam / max(norm, SMALLEST))
        dual = float(np.sum(z * self.y)) - 0.5 * float(np.sum(z**2 / self.w))
        return max(objective - dual, 0.0) / max(objective, SMALLEST)

    def solve(
        self, lam: float, start: Array, tol: float, max_sweeps: int
    ) -> tuple[Array, Array, Array, float, float]:
        """Return U, d, V of the minimiser, its objective and relative duality gap."""
        step = 1.0 / float(self.w.max())
        M = Z = start
        t, objective, gap = 1.0, np.inf, np.inf
        U, d, V = np.zeros((self.shape[0], 0)), np.zeros(0), np.zeros((self.shape[1], 0))
        for k in range(max_sweeps):
            ascent = Z + step * self.spread(self.residual(Z))
            P, s, W = np.linalg.svd(ascent, full_matrices=False)
            s = np.maximum(s - step * lam, 0.0)
            r = int(np.sum(s > 0))
            U, d, V = P[:, :r], s[:r], W[:r].T
            new = (U * d) @ V.T
            residual = self.residual(new)
            before = objective
            objective = 0.5 * float(np.sum(residual**2 / self.w)) + lam * float(d.sum())
            if objective > before:  # restart the momentum
                t = 1.0
            if k % GAP_EVERY == GAP_EVERY - 1 or k == max_sweeps - 1:
                gap = self.gap(residual, lam, objective)
                if gap <= tol:
                    break
            ahead = (1.0 + np.sqrt(1.0 + 4.0 * t * t)) / 2.0
            Z = new + (t - 1.0) / ahead * (new - M)
            M, t = new, ahead
        return U, d, V, objective + 0.5 * self.within, gap

    def meet(self, error: float, tol: float, max_sweeps: int) -> tuple[float, Array]:
        """Return the penalty at which the misfit is `error`, and the solution there, by bisection."""
        total = float(np.sqrt(np.sum(self.w * self.y**2) + self.within))
        if error >= total:
            return max(self.top, SMALLEST) * 1.001, np.zeros(self.shape)
        error = max(error, float(np.sqrt(self.within)))
        low, high, M = NO_PENALTY * self.top, self.top, np.zeros(self.shape)
        for _ in range(40):
            lam = float(np.sqrt(low * high))
            U, d, V, *_ = self.solve(lam, M, min(tol, 1e-7), max_sweeps)
            M = (U * d) @ V.T
            apart = self.y - M[self.i, self.j]
            misfit = float(np.sqrt(np.sum(self.w * apart**2) + self.within))
            if abs(misfit - error) <= 1e-6 * total:
                return lam, M
            low, high = (low, lam) if misfit > error else (lam, high)
            if high / low < 1 + 1e-9:
                break
        return low, M


def _pack(
    solved: tuple[Array, Array, Array, float, float], seen: Observations, penalty: float
) -> LowRank:
    U, d, V, objective, gap = solved
    root = np.sqrt(d)
    promise = Certificate(
        "relative duality gap of the objective", gap, checked=("the dual point is feasible",)
    )
    return LowRank.of_entries(
        seen,
        left=U * root,
        right=V * root,
        certificates=(promise,),
        report={
            "method": "nuclear-norm",
            "rank": len(d),
            "penalty": penalty,
            "objective": objective,
            "gap": gap,
        },
    )
