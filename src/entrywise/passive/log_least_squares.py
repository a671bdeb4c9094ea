r"""Log least squares: a rank-one matrix from any entries that link its rows and columns.

The logarithm of :math:`A = x y^\top` is a difference of potentials along each known entry, so that the fit is a
graph-Laplacian system, solved in near-linear time. Weighting each equation by its entry makes it minimax
for small disturbances. A Gauss-Newton refinement in the original space, the same kind of system, then
minimises the squared error itself and lets zeros and wrong signs have their say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from entrywise.exceptions import NotIdentifiable, ParameterError
from entrywise.linalg.laplacian import Laplacian
from entrywise.observations import Observations
from entrywise.passive.connecting_entries import connecting_entries
from entrywise.passive.rank_one import RankOne
from entrywise.results import Certificate
from entrywise.types import Array, Indices

SHOWN = 100  # entries listed in a report


def log_least_squares(
    observations: Observations, *, weighted: bool = True, refine: bool = True, certify: bool = True
) -> RankOne:
    r"""Complete a rank-one matrix by least squares in log space, refined in the original space.

    .. math:: \min_{p} \sum_{(i,j) \in \Omega} a_{ij}^2 \, (p_i - p_j - \log |a_{ij}|)^2,
        \qquad \hat A_{ij} = s_i s_j e^{p_i - p_j}

    Parameters
    ----------
    observations : Observations
        Known entries, of any sign. Their noise, where given, divides the weights.
    weighted : bool
        Weights :math:`a_{ij}^2` (minimax for small disturbances) or all alike.
    refine : bool
        Go on to the minimum of :math:`\sum (a_{ij} - x_i y_j)^2` by Gauss-Newton steps, a few Laplacian solves.
        Exact zeros count there; the logarithms must leave them out.
    certify : bool
        Compute the minimax constant and the expected error.

    Returns
    -------
    RankOne
        ``entries`` and ``interval`` are NaN where no chain of known entries links row and column. The first
        certificate is the minimax constant: largest error per disturbance, which no method improves. The report
        counts zeros, entries whose sign contradicts the fit, and components, with the ``connect`` entries
        that would link them.

    Notes
    -----
    Signs are propagated along the spanning tree of the largest entries, the least likely to be flipped by noise, and
    not in the breadth-first order that propagation suggests. A row or column that is known to be zero wherever it is
    known is estimated as zero.

    References
    ----------
    .. [HOS20] Hendrickx, Olshevsky, Saligrama, *Minimax rank-1 matrix factorization*, AISTATS 2020, Algorithm 1;
       the refinement is ours.

    Examples
    --------
    >>> nan = float("nan")
    >>> table = Observations.from_dense([[2.0, nan, 4.0], [nan, 9.0, 6.0], [1.0, 3.0, nan]])
    >>> found = log_least_squares(table)
    >>> found.to_dense().round(9)
    array([[2., 6., 4.],
           [3., 9., 6.],
           [1., 3., 2.]])
    >>> round(found.certificate.value, 3)  # how much noise can grow on these very entries
    2.286
    """
    if not len(observations):
        raise ParameterError(
            "log_least_squares needs at least one observation, got none; observe some entries"
        )
    if not np.any(observations.values):
        raise NotIdentifiable(
            f"all {len(observations)} known entries are zero: a rank-one matrix is determined by its nonzero ones; "
            "observe some"
        )
    fit = Fit(observations)
    fit.start(weighted)
    if refine:
        fit.refine()
    return fit.result("log least squares" + (", refined" if refine else ""), certify=certify)


class Fit:
    """A rank-one fit under way: factors x (m,) and y (n,), NaN on lines of which nothing is known.

    Inside, entries are divided by the largest one, so that their scale does not matter.
    """

    def __init__(self, observations: Observations) -> None:
        self.seen = observations
        self.i, self.j = observations.rows, observations.cols
        self.scale = float(np.abs(observations.values).max(initial=0.0)) or 1.0
        self.a = observations.values / self.scale  # everything inside is in these units
        noise = observations.noise_array(1.0)
        floor = float(np.max(noise, initial=0.0)) * 1e-8
        if observations.noise is not None and floor == 0.0:
            noise, floor = np.ones(len(noise)), 1.0  # told to be exact: all alike
        self.known_noise = observations.noise is not None and bool(
            np.any(observations.noise_array() > 0)
        )
        self.unit = self.scale if self.known_noise else 1.0
        self.precision = (np.maximum(noise, floor) / self.unit) ** -2.0
        self.x, self.y = (
            np.full(observations.shape[0], np.nan),
            np.full(observations.shape[1], np.nan),
        )
        self.row_of, self.col_of = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.iterations = 0
        self.steps = 0

    def start(self, weighted: bool = True) -> None:
        """Solve in log space, propagate signs, and give every component its gauge."""
        m, n = self.seen.shape
        live = self.a != 0
        i, j = self.i[live], self.j[live]
        size = np.abs(self.a[live])
        heavy = (
            np.maximum(size, 1e-140) ** 2 * self.precision[live] / self.precision.max(initial=1.0)
        )
        by_size = Laplacian(m + n, i, m + j, heavy)
        graph = by_size if weighted else Laplacian(m + n, i, m + j, self.precision[live])
        p = graph.potentials(np.log(size))
        self.iterations = graph.iterations
        negative = (self.a[live] < 0).astype(np.float64)
        sign = (
            1.0 - 2.0 * (np.rint(by_size.walk(negative)) % 2) if negative.any() else np.ones(m + n)
        )
        with np.errstate(over="ignore"):
            z = sign * np.exp(np.r_[p[:m], -p[m:]])
        part = by_size.components[1]
        self.row_of, self.col_of = part[:m].copy(), part[m:].copy()
        linked = np.zeros(m + n, bool)
        linked[i] = linked[m + j] = True
        self.x, self.y = np.where(linked[:m], z[:m], np.nan), np.where(linked[m:], z[m:], np.nan)

    def fitted(self) -> Array:
        """The fit at the known entries, NaN where their line is not determined."""
        return np.where(
            self.row_of[self.i] == self.col_of[self.j], self.x[self.i] * self.y[self.j], np.nan
        )

    def objective(self, x: Array, y: Array, used: Any) -> float:
        """Weighted sum of squared residuals over the entries used."""
        return float(
            np.sum(self.precision[used] * (self.a[used] - x[self.i[used]] * y[self.j[used]]) ** 2)
        )

    def refine(self, most: int = 10, rtol: float = 1e-8) -> None:
        """Minimise the squared error itself: Gauss-Newton steps, each polished by one alternating sweep."""
        self.adopt_zero_lines()
        used = np.flatnonzero(np.isfinite(self.fitted()))
        m, n = self.seen.shape
        i, j, a, w = self.i[used], self.j[used], self.a[used], self.precision[used]
        now = self.objective(self.x, self.y, used)
        least = 1e-28 * float(np.sum(w * a**2))  # round-off
        for _ in range(most):
            if now <= least:
                break
            before = now
            A = self.x[i] * self.y[j]
            weights = w * A**2
            live = weights > 1e-200 * weights.max(initial=0.0)
            graph = Laplacian(m + n, i[live], m + j[live], weights[live])
            p = graph.solve(graph.divergence((w * A * (a - A))[live]))
            for step in (1.0, 0.5, 0.25, 0.1):
                x, y = self.x * (1.0 + step * p[:m]), self.y * (1.0 - step * p[m:])
                new = self.objective(x, y, used)
                if new < now:
                    self.x, self.y, now = x, y, new
                    break
            x, y = self.sweep(used)
            new = self.objective(x, y, used)
            if new < now:
                self.x, self.y, now = x, y, new
            self.steps += 1
            if before - now <= rtol * before:
                break

    def sweep(self, used: Indices) -> tuple[Array, Array]:
        """One alternating sweep: the best x for this y, then the best y for that x."""
        i, j, a, w = self.i[used], self.j[used], self.a[used], self.precision[used]
        x = _best(i, w * a, w, self.y[j], self.x)
        return x, _best(j, w * a, w, x[i], self.y)

    def adopt_zero_lines(self) -> None:
        """Let lines that are known to be zero join the component of an entry that says so."""
        for here, there, of_here, of_there, own, other in (
            (self.i, self.j, self.row_of, self.col_of, self.x, self.y),
            (self.j, self.i, self.col_of, self.row_of, self.y, self.x),
        ):
            lonely = np.isnan(own[here]) & np.isfinite(
                other[there]
            )  # only zeros are known of it, so far
            own[here[lonely]] = 0.0
            of_here[here[lonely]] = of_there[there[lonely]]

    def gauge(self) -> None:
        """Balance the two factors in each component and make its first row positive."""
        count = int(max(self.row_of.max(initial=0), self.col_of.max(initial=0))) + 1
        of_rows = np.sqrt(np.bincount(self.row_of, np.nan_to_num(self.x) ** 2, count))
        of_cols = np.sqrt(np.bincount(self.col_of, np.nan_to_num(self.y) ** 2, count))
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.sqrt(of_cols / of_rows)
        factor[~np.isfinite(factor) | (factor == 0)] = 1.0
        first = np.full(count, -1, np.int64)
        rows = np.flatnonzero(np.nan_to_num(self.x))[::-1]
        first[self.row_of[rows]] = rows
        factor[first >= 0] *= np.sign(self.x[first[first >= 0]])
        self.x, self.y = self.x * factor[self.row_of], self.y / factor[self.col_of]

    def result(self, method: str, certify: bool = True, **report: Any) -> RankOne:
        """Return the fit with its noise, certificates and report."""
        self.gauge()
        A = self.fitted()
        used = np.isfinite(A)
        lines = len(np.unique(self.i[used])) + len(np.unique(self.j[used]))
        parts = len(np.unique(self.row_of[self.i[used]]))
        degrees = float(used.sum() - (lines - parts))
        squares = float(np.sum(self.precision[used] * (self.a - A)[used] ** 2))
        spread = np.sqrt(squares / degrees) if degrees > 0 else np.nan
        sigma = 1.0 if self.known_noise else spread * self.scale
        root = np.sqrt(self.scale)
        against = np.flatnonzero(used & (self.a * A < 0))
        found = RankOne(
            root * self.x[:, None], root * self.y[:, None],
            row_labels=self.seen.row_labels, col_labels=self.seen.col_labels,
            row_component=self.row_of, col_component=self.col_of,
            seen_rows=self.i[used], seen_cols=self.j[used], precision=self.precision[used] / self.unit**2,
            sigma=float(sigma), degrees=np.inf if self.known_noise else degrees,
        )  # fmt: skip
        count = found.components
        report = {
            "method": method, "entries": len(self.a), "zeros": int(np.sum(self.a == 0)),
            "unused": int(np.sum(~used)), "components": count, "degrees of freedom": int(degrees),
            "noise": float(spread * self.scale / np.sqrt(np.median(self.precision[used]))) if degrees > 0 else None,
            "contradicted": len(against), "contradicted entries": _list(self.i[against], self.j[against]),
            "iterations": self.iterations, "refinements": self.steps, **report,
        }  # fmt: skip
        if sigma >= 0:
            report["interval"] = "from effective resistances and " + (
                "the noise given"
                if self.known_noise
                else f"noise told by {int(degrees)} degrees of freedom"
            )
        else:
            report["interval"] = (
                "none: the known entries form a tree, none is left to tell the noise by; observe one more, or give noise="
            )
        if count > 1:
            rows, cols = connecting_entries(self.seen)
            apart = self.row_of[rows] != self.col_of[cols]  # lines of zeros are settled
            rows, cols = rows[apart], cols[apart]
            report["connect"] = _list(rows, cols)
            report["to connect"] = len(rows)
            share = _determined(self.row_of, self.col_of)
            report["determined"] = share
        return replace(
            found, certificates=self._certificates(found) if certify else (), report=report
        )

    def _certificates(self, found: RankOne) -> tuple[Certificate, ...]:
        if not (np.all(np.isfinite(found.left) | np.isnan(found.left)) and len(found.seen_rows)):
            return ()
        unit = "noise units" if self.known_noise else "the entries' units"
        value = np.sqrt(found.sensitivity.worst(rtol=1e-3)[0])
        checked = (
            () if np.all(self.a > 0) else ("signs agree along the tree of the largest entries",)
        )
        worst = Certificate(
            "minimax constant: largest Frobenius error for each unit of disturbance of these entries",
            float(value), ("the matrix has rank one", f"disturbances are small, counted in {unit}"), checked,
        )  # fmt: skip
        if not found.sigma >= 0:
            return (worst,)
        error = float(found.sigma * np.sqrt(found.sensitivity.trace()))
        size = _norm(found)
        expected = Certificate(
            "expected Frobenius error over the determined entries",
            error, ("the matrix has rank one", "noise is independent, with one variance" if not self.known_noise
                    else "noise is independent, of the size given"),
            ("residuals gave the noise",) if not self.known_noise else (), vacuous=bool(error >= size > 0),
        )  # fmt: skip
        return worst, expected


def _best(
    line: Indices, wa: Array, w: Array, other: Array, old: Array, ridge: float = 0.0
) -> Array:
    """Return the least-squares value of each line given the other factor; lines without data keep theirs."""
    top = np.bincount(line, wa * other, len(old))
    below = np.bincount(line, w * other**2, len(old)) + ridge
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((below > 0) & np.isfinite(old), top / below, old)


def _norm(found: RankOne) -> float:
    """Frobenius norm over the determined entries."""
    count = int(max(found.row_component.max(), found.col_component.max())) + 1
    rows = np.bincount(found.row_component, np.nan_to_num(found.left[:, 0]) ** 2, count)
    cols = np.bincount(found.col_component, np.nan_to_num(found.right[:, 0]) ** 2, count)
    return float(np.sqrt(rows @ cols))


def _determined(row_of: Indices, col_of: Indices) -> float:
    """Share of the entries whose row and column lie in one component."""
    count = int(max(row_of.max(), col_of.max())) + 1
    both = np.bincount(row_of, minlength=count) @ np.bincount(col_of, minlength=count)
    return float(both / (len(row_of) * len(col_of)))


def _list(rows: Indices, cols: Indices) -> list[list[int]]:
    return [[int(i), int(j)] for i, j in zip(rows[:SHOWN], cols[:SHOWN], strict=True)]
