r"""Which entries of a rank-one matrix to ask for next.

First the cheapest entries that link all rows and columns, so that everything is determined. Then, one after
the other, the entry with the largest leverage :math:`\hat A_{ij}^2 R_{ij}`: large, so that noise matters little in
it, and far from what is known, so that it says something new. The farthest entry alone, whatever its size,
does worse than asking at random.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from entrywise.bounds.rank_one import Sensitivity
from entrywise.exceptions import ParameterError
from entrywise.observations import Observations
from entrywise.passive.connecting_entries import connecting_entries
from entrywise.passive.multiplicative import MultiplicativeFit, RankOne
from entrywise.passive.noise_law import follow_residuals
from entrywise.queries import Batch, Prices, Situation, plan
from entrywise.types import Array, Indices, Seed, generator

Pairs: TypeAlias = tuple[Indices, Indices]

DENSE = 1500  # lines up to which every resistance is exact; above, they are sketched
SKETCH = (
    32  # random projections of the sketch: distances within a quarter or so, enough to choose by
)
STEPS = 100  # batches that m + n entries are asked in
GLIMPSE = 2  # refinements before entries are chosen; the result gets ten


@plan(streaming=True)
def rank_one(
    shape: tuple[int, int],
    prices: Prices | None = None,
    *,
    budget: float | None = None,
    extra: int | None = None,
    max_error: float | None = None,
    noise: float | None = None,
    batch: int | None = None,
    rng: Seed = None,
    situation: Situation,
) -> Batch | RankOne:
    r"""Complete an unknown rank-one matrix, asking for the entries that tell most.

    .. math:: (i, j) = \arg\max \hat A_{ij}^2 R_{ij} / \mathrm{price}_{ij}

    Parameters
    ----------
    shape : (m, n)
    prices : Prices, optional
        What entries cost; all alike when not given.
    budget : float, optional
        Money to plan with; the plan asks until it is spent.
    extra : int, optional
        Entries asked after everything is linked; m + n when neither it, `budget` nor `max_error` is given.
    max_error : float, optional
        Stop when the expected Frobenius error, :math:`\sigma \sqrt{\mathrm{tr}(K L^+)}`, is at most this.
    noise : float, optional
        Standard deviation of the answers; estimated from the residuals when not given.
    batch : int, optional
        Entries asked at a time after the first, (m + n) / 100 when not given. Those of a batch are chosen one after
        the other as if the earlier ones were known.
    rng : int or Generator
        Which row is asked first.

    Returns
    -------
    RankOne
        Entries that the answers do not determine are NaN.

    Notes
    -----
    A glance along one row is asked first, then the column of its largest entry, and the other columns in the largest
    row; with prices, or with entries known beforehand, the cheapest entries that link what is apart instead. Lines
    that came back zero or failed are asked elsewhere. Then entries by leverage. It streams: what is out counts as
    linked, and is not asked again.

    References
    ----------
    .. [HOS20] Hendrickx, Olshevsky, Saligrama, *Minimax rank-1 matrix factorization*, AISTATS 2020, for the
       error that is minimised; the rule is ours.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.oracles import MatrixOracle
    >>> A = np.outer([1.0, 2.0, 3.0], [4.0, -5.0, 6.0, 7.0])
    >>> found = ew.play(rank_one((3, 4), extra=2, rng=0), MatrixOracle(A))
    >>> int(found.cost), bool(np.allclose(found.to_dense(), A))
    (8, True)
    """
    m, n = _refuse(shape, budget, extra, max_error, noise, batch)
    most = extra
    if most is None:
        most = m + n if budget is None and max_error is None else m * n
    purchase = _Purchase((m, n), prices, noise, generator(rng), situation)
    wanted, arm = purchase.links(), "link"
    if wanted is None:
        size = min(batch or max(1, (m + n) // STEPS), most - purchase.levered)
        wanted, arm = purchase.leverage(size, max_error), "leverage"
    rows, cols = purchase.affordable(wanted)
    if len(rows):
        return Batch(rows, cols, arm=np.full(len(rows), arm))
    fit = _fit(purchase.seen)
    follow_residuals(fit)
    found = fit.result("rank one, by leverage", linked=purchase.linked)
    if len(wanted[0]):
        reason = "the money left does not pay the entry that is next"
        return replace(found, status="exhausted", report={**found.report, "reason": reason})
    return replace(found, report={**found.report, "reason": "nothing is left to ask"})


NOTHING = np.zeros(0, np.int64), np.zeros(0, np.int64)


class _Purchase:
    """What is known, what is out, and what a step may ask for."""

    def __init__(
        self,
        shape: tuple[int, int],
        prices: Prices | None,
        noise: float | None,
        rng: np.random.Generator,
        situation: Situation,
    ) -> None:
        (self.m, self.n), self.prices, self.noise, self.rng = shape, prices, noise, rng
        self.situation = situation
        facts, pending = situation.facts, situation.pending
        self.rows, self.cols = np.r_[facts.rows, pending.rows], np.r_[facts.cols, pending.cols]
        self.values = np.r_[facts.values, pending.values]  # NaN where it failed or is out
        self.asked = np.zeros(shape, bool)
        self.asked[self.rows, self.cols] = True
        by_leverage = (facts.arm == "leverage", pending.arm == "leverage")
        self.levered = sum(int(some.sum()) for some in by_leverage)
        self.linked = len(facts) - int(by_leverage[0].sum())

    @property
    def seen(self) -> Observations:
        """What was answered."""
        facts = self.situation.facts
        good = facts[~facts.failed]
        return Observations.from_triplets(
            good.rows,
            good.cols,
            good.values,
            (self.m, self.n),
            noise=self.noise,
            duplicates="last",
        )

    def leverage(self, size: int, max_error: float | None) -> Pairs:
        """Return the entries of largest leverage that this step may ask for, none at the end."""
        limit = self.situation.limit
        count = size if limit is None else min(size, limit)
        closed = self.asked | ~self._allowed()
        found = next_entries(
            self.seen, count, prices=self.prices, asked=closed, max_error=max_error
        )
        return NOTHING if found is None else found

    def _allowed(self) -> NDArray[np.bool_]:
        """Tell which entries this step may ask for, shape (m, n)."""
        i, j = np.indices((self.m, self.n)).reshape(2, -1)
        return self.situation.allows(i, j).reshape(self.m, self.n)

    def affordable(self, wanted: Pairs) -> Pairs:
        """Return as much of a batch as the money still pays."""
        rows, cols = wanted
        left = self.situation.left
        if left is None or not len(rows):
            return wanted
        bill = np.cumsum((self.prices or Prices()).of("entry", rows, cols))
        count = int(np.sum(bill <= left * (1 + 1e-12)))
        return rows[:count], cols[:count]

    def links(self) -> Pairs | None:
        """Return entries that link what is apart, None when all is linked or nothing is left to try.

        Of those that are left out by a filter none is returned, and leverage has its turn.
        """
        found = self._links()
        if found is None:
            return None
        rows, cols = found
        may = self.situation.allows(rows, cols)
        rows, cols = rows[may][: self.situation.limit], cols[may][: self.situation.limit]
        filtered = self.situation.filtered
        return None if filtered and not len(rows) else (rows, cols)

    def _links(self) -> Pairs | None:
        if self.prices is None:
            if not len(self.rows):
                return self._glance()
            out = len(self.situation.pending)
            if out and np.all(self.rows == self.rows[0]):  # the glance comes first
                return NOTHING
            if np.any(np.nan_to_num(self.values)):
                cross = self._cross()
                if cross is not None:
                    return cross
        i, j = connecting_entries(
            self._linking, self.prices, self.asked if len(self.rows) else None
        )
        new = ~self.asked[i, j]
        return (i[new], j[new]) if new.any() else None

    @property
    def _linking(self) -> Observations:
        """What was answered, and what is out as if it were not zero."""
        facts, pending = self.situation.facts, self.situation.pending
        good = facts[~facts.failed]
        ones = np.ones(len(pending))
        return Observations.from_triplets(
            np.r_[good.rows, pending.rows],
            np.r_[good.cols, pending.cols],
            np.r_[good.values, ones],
            (self.m, self.n),
            duplicates="last",
        )

    def _glance(self) -> Pairs:
        """Look along one row: where are the large columns?"""
        some = max(1, round(np.sqrt(self.n)))
        rows, cols = np.nonzero(self._allowed())
        if not len(rows):
            return NOTHING
        row = int(self.rng.choice(np.unique(rows)))
        glance = np.sort(self.rng.permutation(cols[rows == row])[:some])
        return np.full(len(glance), row), glance

    def _cross(self) -> Pairs | None:
        """Return what is missing of the largest column, then columns that are missing, in the largest row."""
        seen, asked = self.seen, self.asked
        top = int(np.argmax(np.abs(seen.values)))
        if np.all(self.rows == self.rows[0]):
            left = np.flatnonzero(~asked[:, seen.cols[top]])
            if len(left):
                return left, np.full(len(left), seen.cols[top])
        elif len(self.rows) < self.m + self.n - 1 and np.all(asked.any(axis=1)):
            left = np.flatnonzero(~asked.any(axis=0))
            if len(left):
                return np.full(len(left), seen.rows[top]), left
        return None


def _fit(seen: Observations, refinements: int = 10) -> MultiplicativeFit:
    fit = MultiplicativeFit(seen)
    fit.start()
    fit.refine(refinements)
    return fit


def next_entries(
    seen: Observations,
    count: int = 1,
    *,
    prices: Prices | None = None,
    asked: NDArray[np.bool_] | None = None,
    max_error: float | None = None,
) -> tuple[Indices, Indices] | None:
    """Return the `count` entries of largest leverage for their price, each chosen as if the earlier ones were known.

    The rule of :func:`rank_one` for those who arrive with data. Entries in `asked`, by default the known ones, are
    left out. None when there is nothing to ask, or when the expected error is `max_error` already.

    Examples
    --------
    >>> seen = Observations.from_dense([[1.0, 2.0, 3.0], [2.0, np.nan, np.nan], [3.0, np.nan, np.nan]])
    >>> [int(k[0]) for k in next_entries(seen)]
    [2, 2]
    """
    if asked is None:
        asked = np.zeros(seen.shape, bool)
        asked[seen.rows, seen.cols] = True
    if count < 1 or asked.all() or not np.any(seen.values):
        return None
    m, n = asked.shape
    fit = _fit(seen, GLIMPSE)
    live = np.isfinite(fit.fitted()) & (fit.fitted() != 0)
    x, y = np.nan_to_num(fit.x), np.nan_to_num(fit.y)
    sensitivity = Sensitivity(fit.i[live], fit.j[live], x, y, fit.precision[live])
    if max_error is not None:
        told = _fit(seen)
        follow_residuals(told)
        found = told.result("", certify=False)
        if found.sigma * np.sqrt(found.sensitivity.trace()) <= max_error:
            return None
    Z = _embedding(sensitivity)  # (m + n, k): R_ij = |Z_i - Z_j|^2
    together = fit.row_of[:, None] == fit.col_of[None, :]
    square = np.where(together, np.multiply.outer(x, y) ** 2, 0.0)
    if prices is not None:
        every = np.indices((m, n)).reshape(2, -1)
        square /= prices.of("entry", *every).reshape(m, n)
    precision = float(np.median(fit.precision))
    rows, cols = [], []
    taken = asked.copy()
    for _ in range(min(count, int((~asked).sum()))):
        of_rows, of_cols = (Z[:m] ** 2).sum(axis=1), (Z[m:] ** 2).sum(axis=1)
        R = of_rows[:, None] + of_cols[None, :] - 2.0 * Z[:m] @ Z[m:].T
        i, j = divmod(int(np.argmax(np.where(taken, -1.0, square * R))), n)
        rows.append(i)
        cols.append(j)
        taken[i, j] = True
        d = Z[i] - Z[m + j]  # what knowing (i, j) takes away: a rank-one change of L^+
        w = precision * (x[i] * y[j]) ** 2
        if w > 0:
            r = float(d @ d)
            shrink = (1.0 - 1.0 / np.sqrt(1.0 + w * r)) / r if r > 0 else 0.0
            Z = Z - shrink * np.multiply.outer(Z @ d, d)
    return np.array(rows, np.int64), np.array(cols, np.int64)


def _embedding(sensitivity: Sensitivity) -> Array:
    """Return points whose squared distances are the resistances, exact for small graphs and sketched for large."""
    L = sensitivity.laplacian
    if L.n <= DENSE:
        values, vectors = np.linalg.eigh(L.inverse())
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
    rng = np.random.default_rng(0)
    draws = [
        L.solve(L.divergence(np.sqrt(L.weights) * rng.standard_normal(len(L.i))))
        for _ in range(SKETCH)
    ]
    return np.asarray(np.column_stack(draws) / np.sqrt(SKETCH))


def _refuse(
    shape: tuple[int, int],
    budget: float | None,
    extra: int | None,
    max_error: float | None,
    noise: float | None,
    batch: int | None,
) -> tuple[int, int]:
    if len(tuple(shape)) != 2 or min(shape) < 1:
        raise ParameterError(f"shape of rank_one must be two numbers above 0, got {shape}")
    for name, value in (("budget", budget), ("noise", noise)):
        if value is not None and not (np.isfinite(value) and value > 0):
            raise ParameterError(f"{name} of rank_one must be finite and above 0, got {value}")
    if max_error is not None and not max_error >= 0:
        raise ParameterError(f"max_error of rank_one must not be below 0, got {max_error}")
    for name, count, least in (("extra", extra, 0), ("batch", batch, 1)):
        if count is not None and count < least:
            raise ParameterError(f"{name} of rank_one must be at least {least}, got {count}")
    return int(shape[0]), int(shape[1])
