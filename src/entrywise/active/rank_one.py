r"""Which entries of a rank-one matrix to ask for next.

First the cheapest entries that link all rows and columns, so that everything is determined. Then, one after
the other, the entry with the largest leverage :math:`\hat A_{ij}^2 R_{ij}`: large, so that noise matters little in
it, and far from what is known, so that it says something new. The farthest entry alone, whatever its size,
does worse than asking at random.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from entrywise.bounds.rank_one import Sensitivity
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.observations import Observations
from entrywise.passive.connecting_entries import connecting_entries
from entrywise.passive.log_least_squares import Fit
from entrywise.passive.rank_one import RankOne
from entrywise.queries import Asking, Batch, Checkpoint, Prices, plan
from entrywise.types import Array, Indices, Seed

DENSE = 1500  # lines up to which every resistance is exact; above, they are sketched
SKETCH = 32


@plan(tolerates_failed=True)
def rank_one(
    shape: tuple[int, int],
    *,
    budget: float | None = None,
    prices: Prices | None = None,
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
    budget : float, optional
        Money to plan with; the plan asks until it is spent.
    prices : Prices, optional
        What entries cost; all alike when not given.
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
    step = batch or max(1, (m + n) // 100)
    if resume is not None:
        rows, cols, values = (resume.arrays[name] for name in ("rows", "cols", "values"))
        generator = resume.generator()
    else:
        rows, cols, values = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        generator = cast(np.random.Generator, rng)
    most = (m + n if budget is None and max_error is None else m * n) if extra is None else extra
    status = "finished"
    asked = np.zeros((m, n), bool)
    asked[rows, cols] = True
    kept = len(rows)
    linked_at = int(resume.arrays["linked"]) if resume is not None else -1
    try:
        while True:
            wanted = (
                _link(m, n, rows, cols, values, asked, prices, generator) if linked_at < 0 else None
            )
            if wanted is None:
                if linked_at < 0:
                    linked_at = len(rows)
                size = min(step, most - (len(rows) - linked_at))
                seen = _known(m, n, rows, cols, values, noise)
                wanted = next_entries(seen, size, prices=prices, asked=asked, max_error=max_error)
            if wanted is None or not len(wanted[0]):
                break
            wanted = _affordable(wanted, rows, cols, prices or Prices(), budget)
            arm = np.full(len(wanted[0]), "link" if linked_at < 0 else "leverage")
            answers = yield Batch(wanted[0], wanted[1], arm=arm)
            rows, cols = np.r_[rows, wanted[0]], np.r_[cols, wanted[1]]
            values = np.r_[values, np.array(answers)]
            asked[wanted] = True
            if len(rows) >= kept + max(64, m + n):
                kept = len(rows)
                state = {
                    "rows": rows,
                    "cols": cols,
                    "values": values,
                    "linked": np.array(linked_at),
                }
                yield Checkpoint(state, generator)
    except Exhausted:
        status = "exhausted"
    found = _fit(_known(m, n, rows, cols, values, noise)).result(
        "rank one, by leverage", linked=max(linked_at, 0)
    )
    return replace(found, status=status)


def _affordable(
    wanted: tuple[Indices, Indices],
    rows: Indices,
    cols: Indices,
    prices: Prices,
    budget: float | None,
) -> tuple[Indices, Indices]:
    """Return as much of a batch as the budget still pays, at least one entry: the ledger has the last word."""
    if budget is None:
        return wanted
    left = budget - float(prices.of("entry", rows, cols).sum())
    count = int(np.sum(np.cumsum(prices.of("entry", *wanted)) <= left * (1 + 1e-12)))
    return wanted[0][: max(count, 1)], wanted[1][: max(count, 1)]


def _known(
    m: int, n: int, rows: Indices, cols: Indices, values: Array, noise: float | None
) -> Observations:
    good = np.isfinite(values)
    return Observations.from_triplets(
        rows[good], cols[good], values[good], (m, n), noise=noise, duplicates="last"
    )


def _fit(seen: Observations, refinements: int = 10) -> Fit:
    fit = Fit(seen)
    fit.start()
    fit.refine(refinements)
    return fit


def _link(
    m: int, n: int, rows: Indices, cols: Indices, values: Array, asked: NDArray[np.bool_],
    prices: Prices | None, rng: np.random.Generator,
) -> tuple[Indices, Indices] | None:  # fmt: skip
    """Return entries that link what is apart, None when all is linked or nothing is left to try."""
    if prices is None and not len(rows):  # a glance along one row: where are the large columns?
        glance = np.sort(rng.permutation(n)[: max(1, round(np.sqrt(n)))])
        return np.full(len(glance), int(rng.integers(m))), glance
    seen = _known(m, n, rows, cols, values, None)
    if prices is None and np.any(seen.values):
        top = int(np.argmax(np.abs(seen.values)))
        if np.all(rows == rows[0]):  # the largest column whole
            left = np.flatnonzero(~asked[:, seen.cols[top]])
            if len(left):
                return left, np.full(len(left), seen.cols[top])
        elif len(rows) < m + n - 1 and np.all(
            asked.any(axis=1)
        ):  # then the largest row, where columns are missing
            left = np.flatnonzero(~asked.any(axis=0))
            if len(left):
                return np.full(len(left), seen.rows[top]), left
    i, j = connecting_entries(seen, prices, asked if len(rows) else None)
    new = ~asked[i, j]
    return (i[new], j[new]) if new.any() else None


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
    fit = _fit(seen, 2)  # enough to choose by
    live = np.isfinite(fit.fitted()) & (fit.fitted() != 0)
    x, y = np.nan_to_num(fit.x), np.nan_to_num(fit.y)
    sensitivity = Sensitivity(fit.i[live], fit.j[live], x, y, fit.precision[live])
    if max_error is not None:
        sigma = fit.result("", certify=False).sigma
        if sigma * np.sqrt(sensitivity.trace()) <= max_error:
            return None
    Z = _embedding(sensitivity)  # (m + n, k): R_ij = |Z_i - Z_j|^2
    square = np.where(fit.row_of[:, None] == fit.col_of[None, :], np.multiply.outer(x, y) ** 2, 0.0)
    square /= (
        1.0
        if prices is None
        else prices.of("entry", *np.indices((m, n)).reshape(2, -1)).reshape(m, n)
    )
    precision = float(np.median(fit.precision))
    rows, cols = [], []
    taken = asked.copy()
    for _ in range(min(count, int((~asked).sum()))):
        R = (
            (Z[:m] ** 2).sum(axis=1)[:, None]
            + (Z[m:] ** 2).sum(axis=1)[None, :]
            - 2.0 * Z[:m] @ Z[m:].T
        )
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
    shape: tuple[int, int], budget: float | None, extra: int | None, max_error: float | None,
    noise: float | None, batch: int | None,
) -> tuple[int, int]:  # fmt: skip
    if len(tuple(shape)) != 2 or min(shape) < 1:
        raise ParameterError(f"shape of rank_one must be two numbers above 0, got {shape}")
    for name, value in (("budget", budget), ("noise", noise)):
        if value is not None and not (np.isfinite(value) and value > 0):
            raise ParameterError(f"{name} of rank_one must be finite and above 0, got {value}")
    if max_error is not None and not max_error >= 0:
        raise ParameterError(f"max_error of rank_one must not be below 0, got {max_error}")
    for name, count in (("extra", extra), ("batch", batch)):
        if count is not None and count < (name == "batch"):
            raise ParameterError(
                f"{name} of rank_one must be at least {int(name == 'batch')}, got {count}"
            )
    return int(shape[0]), int(shape[1])
