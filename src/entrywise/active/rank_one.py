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
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.observations import Observations
from entrywise.passive.connecting_entries import connecting_entries
from entrywise.passive.multiplicative import MultiplicativeFit, RankOne
from entrywise.queries import Asking, Batch, Checkpoint, Prices, plan
from entrywise.types import Array, Indices, Seed, generator

Pairs: TypeAlias = tuple[Indices, Indices]

DENSE = 1500  # lines up to which every resistance is exact; above, they are sketched
SKETCH = (
    32  # random projections of the sketch: distances within a quarter or so, enough to choose by
)
STEPS = 100  # batches that m + n entries are asked in
GLIMPSE = 2  # refinements before entries are chosen; the result gets ten


@plan(tolerates_failed=True)
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
    resume: Checkpoint | None = None,
) -> Asking[RankOne]:
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

    Yields
    ------
    Batch
        A glance along one row, the column of its largest entry, and the other columns in the largest row; with
        prices, the cheapest spanning tree instead. Lines that came back zero or failed are asked elsewhere. Then
        entries by leverage.

    Returns
    -------
    RankOne
        Entries that the answers do not determine are NaN.

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
    step = batch or max(1, (m + n) // STEPS)
    most = extra
    if extra is None:
        most = m + n if budget is None and max_error is None else m * n
    purchase = _Purchase(m, n, prices, noise, generator(rng))
    if resume is not None:
        purchase.restore(resume)
    kept = len(purchase.rows)
    status = "finished"
    try:
        while True:
            wanted, arm = purchase.wanted(step, most, max_error)
            if not len(wanted[0]):
                break
            rows, cols = purchase.affordable(wanted, budget)
            answers = yield Batch(rows, cols, arm=np.full(len(rows), arm))
            purchase.take(rows, cols, np.array(answers))
            if len(purchase.rows) >= kept + max(64, m + n):
                kept = len(purchase.rows)
                yield purchase.checkpoint()
    except Exhausted:
        status = "exhausted"
    found = _fit(purchase.seen).result("rank one, by leverage", linked=max(purchase.linked_at, 0))
    return replace(found, status=status)


class _Purchase:
    """What was asked and answered so far, and since when everything is linked."""

    def __init__(
        self,
        m: int,
        n: int,
        prices: Prices | None,
        noise: float | None,
        rng: np.random.Generator,
    ) -> None:
        self.m, self.n, self.prices, self.noise, self.rng = m, n, prices, noise, rng
        self.rows, self.cols = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.values = np.zeros(0)
        self.asked = np.zeros((m, n), bool)
        self.linked_at = -1

    def restore(self, kept: Checkpoint) -> None:
        """Take what :meth:`checkpoint` kept."""
        self.rows, self.cols, self.values = (
            kept.arrays[name] for name in ("rows", "cols", "values")
        )
        self.asked[self.rows, self.cols] = True
        self.linked_at = int(kept.arrays["linked"])
        self.rng = kept.generator()

    def checkpoint(self) -> Checkpoint:
        """Return everything that is needed to go on from here."""
        arrays = {"rows": self.rows, "cols": self.cols, "values": self.values}
        return Checkpoint(arrays | {"linked": np.array(self.linked_at)}, self.rng)

    def take(self, rows: Indices, cols: Indices, answers: Array) -> None:
        """Write down answers; NaN where a measurement failed."""
        self.rows, self.cols = np.r_[self.rows, rows], np.r_[self.cols, cols]
        self.values = np.r_[self.values, answers]
        self.asked[rows, cols] = True

    @property
    def seen(self) -> Observations:
        """What was answered."""
        good = np.isfinite(self.values)
        return Observations.from_triplets(
            self.rows[good],
            self.cols[good],
            self.values[good],
            (self.m, self.n),
            noise=self.noise,
            duplicates="last",
        )

    def wanted(self, step: int, most: int, max_error: float | None) -> tuple[Pairs, str]:
        """Return the entries to ask for next and why, none at the end."""
        if self.linked_at < 0:
            links = self._links()
            if links is not None:
                return links, "link"
            self.linked_at = len(self.rows)
        size = min(step, most - (len(self.rows) - self.linked_at))
        found = next_entries(
            self.seen, size, prices=self.prices, asked=self.asked, max_error=max_error
        )
        nothing = np.zeros(0, np.int64), np.zeros(0, np.int64)
        return (nothing if found is None else found), "leverage"

    def affordable(self, wanted: Pairs, budget: float | None) -> Pairs:
        """Return as much of a batch as the budget still pays, at least one entry: the ledger has the last word."""
        if budget is None:
            return wanted
        prices = self.prices or Prices()
        left = budget - float(prices.of("entry", self.rows, self.cols).sum())
        bill = np.cumsum(prices.of("entry", *wanted))
        count = max(int(np.sum(bill <= left * (1 + 1e-12))), 1)
        return wanted[0][:count], wanted[1][:count]

    def _links(self) -> Pairs | None:
        """Return entries that link what is apart, None when all is linked or nothing is left to try."""
        if self.prices is None and not len(self.rows):
            return self._glance()
        if self.prices is None and np.any(np.nan_to_num(self.values)):
            cross = self._cross()
            if cross is not None:
                return cross
        i, j = connecting_entries(self.seen, self.prices, self.asked if len(self.rows) else None)
        new = ~self.asked[i, j]
        return (i[new], j[new]) if new.any() else None

    def _glance(self) -> Pairs:
        """Look along one row: where are the large columns?"""
        some = max(1, round(np.sqrt(self.n)))
        glance = np.sort(self.rng.permutation(self.n)[:some])
        return np.full(some, int(self.rng.integers(self.m))), glance

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
        found = fit.result("", certify=False)
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
