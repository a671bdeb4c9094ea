"""Fits what two instruments saw: fused into one value an entry, completed by empirical Bayes, calibrated."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from entrywise.active.two_cost.ranks import estimate_rank
from entrywise.active.two_cost.risk import Problem
from entrywise.active.two_cost.setting import TwoCost, filled
from entrywise.linalg.jointcov import joint_cost, joint_variance
from entrywise.observations import Observations
from entrywise.passive.low_rank import low_rank
from entrywise.queries import Batch
from entrywise.results import Corrected, Lines, LowRank, Posterior
from entrywise.types import Array, Indices

JOINT_LIMIT = 6e9  # operations; beyond, rows and columns are taken as independent given the fit
MOST_COMPONENTS = 20
FEW_COLUMNS = 12  # columns from which on their own directions are taken as the rank
NEGLIGIBLE = (
    0.02  # lack of fit over noise variance below which seen entries are left to the factors
)
FEW_ENTRIES = 20_000  # entries up to which a suspect fit is started again
SUSPECT = 0.1  # lack of fit over noise variance above which a fit may be a poor optimum
# how it is started again: components more (None: one more, grown in what the fit left), and the seed by which a fifth of
# the entries is left out at the start (0: none)
AGAIN = ((None, 0), (1, 0), (-1, 0), (2, 0), (0, 1), (0, 2), (0, 3), (None, 0))


@dataclass
class Held:
    """What a plan with two instruments has bought so far; an entry may have been bought several times."""

    setting: TwoCost
    rows: dict[str, list[Indices]] = field(default_factory=lambda: {"column": [], "entry": []})
    cols: dict[str, list[Indices]] = field(default_factory=lambda: {"column": [], "entry": []})
    values: dict[str, list[Array]] = field(default_factory=lambda: {"column": [], "entry": []})
    columns: list[int] = field(default_factory=list)
    bought: int = 0  # columns paid for, repeats included
    money: float = 0.0

    def take(self, batch: Batch, answers: Array) -> None:
        """Keep the answers to a batch, those that failed left out, and note what it cost."""
        good = ~np.isnan(answers)
        self.rows[batch.mode].append(batch.rows[good])
        self.cols[batch.mode].append(batch.cols[good])
        self.values[batch.mode].append(np.array(answers[good]))
        if batch.mode == "column":
            self.bought += len(batch) // self.setting.m
            self.columns += [j for j in dict.fromkeys(batch.cols.tolist()) if j not in self.columns]

    def seen(self, mode: str) -> tuple[Indices, Indices, Array]:
        """Return rows, columns and values that an instrument gave."""
        empty: list[Array] = [np.zeros(0)]
        rows, cols = (
            np.concatenate([*parts[mode], np.zeros(0, np.int64)])
            for parts in (self.rows, self.cols)
        )
        return (
            rows.astype(np.int64),
            cols.astype(np.int64),
            np.concatenate(self.values[mode] or empty),
        )

    def table(self) -> Array:
        """Return the noisy columns held, in the order bought, repeats averaged, failed answers filled, (m, d)."""
        m, n = self.setting.m, self.setting.n
        rows, cols, values = self.seen("column")
        J = np.array(self.columns, np.int64)
        place = np.zeros(n, np.int64)
        place[J] = np.arange(len(J))
        at = rows * len(J) + place[cols]
        count = np.bincount(at, minlength=m * len(J)).astype(np.float64)
        total = np.bincount(at, values, minlength=m * len(J))
        if count.min(initial=1.0) > 0:
            return (total / count).reshape(m, len(J))
        with np.errstate(invalid="ignore"):
            return filled((total / np.where(count > 0, count, np.nan)).reshape(m, len(J)))

    def repeats(self, mode: str) -> tuple[float, int]:
        """Return the noise variance that repeated measurements show, and from how many differences."""
        rows, cols, values = self.seen(mode)
        key = rows * self.setting.n + cols
        order = np.argsort(key, kind="stable")
        same = key[order][1:] == key[order][:-1]
        differences = np.diff(values[order])[same]
        return (float(np.mean(differences**2)) / 2 if len(differences) else 0.0), len(differences)

    def fused(self, column_variance: float, entry_variance: float) -> Observations:
        """Return one value an entry, each instrument weighted by its precision, with its noise."""
        m, n = self.setting.m, self.setting.n
        parts = [self.seen("column"), self.seen("entry")]
        scale = max((float(np.mean(v**2)) for _, _, v in parts if len(v)), default=0.0)
        floor = 1e-14 * scale + 1e-300
        weight, total = np.zeros(m * n), np.zeros(m * n)
        for (rows, cols, values), variance in zip(
            parts, (column_variance, entry_variance), strict=True
        ):
            at = rows * n + cols
            weight += np.bincount(at, minlength=m * n) / max(variance, floor)
            total += np.bincount(at, values, minlength=m * n) / max(variance, floor)
        at = np.flatnonzero(weight)
        return Observations.from_triplets(
            *np.divmod(at, n), total[at] / weight[at], (m, n), noise=1.0 / np.sqrt(weight[at])
        )


def fit(held: Held, problem: Problem, rank: int | None = None) -> LowRank:
    """Return the empirical-Bayes completion of what is held, started from the span of the columns.

    `rank` defaults to two more than the columns show; a component that is not there shrinks to nothing.
    """
    m, n = problem.m, problem.n
    seen = held.fused(problem.column_variance, problem.entry_variance)
    if not len(seen):
        return LowRank(np.zeros((m, 0)), np.zeros((n, 0)))
    if float(np.ptp(seen.values)) <= 0.0:
        return low_rank(seen, 0)
    d = len(held.columns)
    C = held.table() if d else np.zeros((m, 0))
    told = rank is not None
    if rank is None:
        rank = estimate_rank(C, math.sqrt(problem.column_variance))[0] + 2 if d else 0
        # noisy columns hide weak directions: as many components as the cells could carry; those too many shrink away
        carry = len(seen) if d < FEW_COLUMNS else len(held.seen("entry")[2]) / 2
        rank = max(rank, 1 + int(carry / (m + n)))
    most = min(rank if told else MOST_COMPONENTS, min(m, n) - 1)
    if most <= 0:
        return calibrated(low_rank(seen, 0), seen)
    rank = max(1, min(rank, most))
    found = _fit(C, seen, rank, _start(C, seen, rank, problem))
    smallest = float(seen.noise_array().min()) ** 2
    if m + n <= len(seen) <= FEW_ENTRIES:
        found = _started_again(found, C, seen, problem, most)
    found = calibrated(found, seen)
    if found.lack_variance <= NEGLIGIBLE * smallest:
        return found
    return Corrected.of(found, seen)


def _started_again(
    found: LowRank, C: Array, seen: Observations, problem: Problem, most: int
) -> LowRank:
    """Return the best of several fits, tried as long as this one leaves more than noise unexplained.

    Another is better only if it explains more, and with less noise: where entries hardly suffice, evidence alone prefers
    fits that explain nothing.
    """
    rank, smallest = found.rank, float(seen.noise_array().min()) ** 2
    for more, thin in AGAIN:
        if found.lack_variance <= SUSPECT * smallest:
            break
        k = found.rank + 1 if more is None else rank + more
        if not 1 <= k <= most or (thin and C.shape[1] > k):
            continue
        start = found if more is None else _start(C, seen, k, problem, thin)
        other = _fit(C, seen, k, start)
        gain = other.report["evidence"] - found.report["evidence"]
        if gain > 2.0 and other.lack_variance < found.lack_variance:
            found = other
    return found


def _fit(C: Array, seen: Observations, rank: int, start: LowRank) -> LowRank:
    # few columns start the noise far off, and where it turns back it hardly changes: that is no convergence
    tol = 1e-4 if C.shape[1] < FEW_COLUMNS else 3e-3
    return low_rank(seen, rank, start=start, exact=True, max_sweeps=100, tol=tol)


def _start(C: Array, seen: Observations, k: int, problem: Problem, thin: int = 0) -> LowRank:
    """Return where to start the fit: left factors from the columns C (m, d), right ones by regression on them.

    Fewer columns than directions are filled in instead; with `thin` as seed, without a fifth of the entries.
    """
    m, n = seen.shape
    X = seen.to_dense()
    offset = float(seen.values.mean())
    if C.shape[1] > k:
        U = np.linalg.svd(C - offset, full_matrices=False)[0][:, :k] * math.sqrt(m)
        span = k * problem.column_variance / max(C.shape[1] - k, 1)
    else:  # fill in by iterated truncated SVD
        Z = X - offset
        if thin:
            Z[np.random.default_rng(thin).random((m, n)) < 0.2] = np.nan
        U = _imputed(Z, k)
        span = 0.0
    known = ~np.isnan(X)
    spread = np.full((m, n), np.inf)
    spread[seen.rows, seen.cols] = seen.noise_array() ** 2 + span
    top = float(np.mean((seen.values - offset) ** 2))
    spread = np.maximum(spread, 1e-8 * top)
    W = np.where(known, 1.0 / spread, 0.0)
    Y = np.where(known, X - offset, 0.0)
    full = known.mean(axis=0) > 0.5
    V = _regress(U, Y, W, np.zeros(k), np.eye(k) * top)
    if full.sum() > k + 1:
        prior = np.atleast_2d(np.cov(V[full].T)) + 1e-6 * top * np.eye(k)
        V = _regress(U, Y, W, V[full].mean(axis=0), prior)
    size = math.sqrt(
        max(float(np.linalg.norm(V) / math.sqrt(n)), 1e-300)
        / (float(np.linalg.norm(U)) / math.sqrt(m))
    )
    U, V = U * size, V / size
    # noise that starts high and falls passes by poor optima that the fit would stay in
    posterior = Posterior(_lines(U, top), _lines(V, top), lack_variance=0.3 * top)
    return LowRank(U, V, offset=offset, posterior=posterior)


def _lines(F: Array, top: float) -> Lines:
    """Return lines (u, 0) that spread as F does and are almost sure, with biases that may grow."""
    k = F.shape[1]
    cov = np.zeros((k + 1, k + 1))
    cov[:k, :k] = np.atleast_2d(np.cov(F.T)) + 1e-6 * float(np.mean(F**2)) * np.eye(k)
    cov[k, k] = 0.01 * top
    return Lines(np.r_[F.mean(axis=0), 0.0], cov, np.tile(1e-6 * cov, (len(F), 1, 1)))


def _regress(U: Array, Y: Array, W: Array, mean: Array, prior: Array) -> Array:
    """Return the coefficients of every column on U with a Gaussian prior, shape (n, k)."""
    k = U.shape[1]
    P = np.linalg.inv(prior)
    UU = (U[:, :, None] * U[:, None, :]).reshape(len(U), k * k)
    G = (W.T @ UU).reshape(-1, k, k) + P
    return np.asarray(np.linalg.solve(G, ((W * Y).T @ U + P @ mean)[..., None])[..., 0])


def _imputed(X: Array, k: int, rounds: int = 100) -> Array:
    """Return left factors (m, k) of X, its unknown entries (NaN) filled in by iterated SVD.

    Singular values are lowered by the first one left out; merely cut, they follow the noise into poor optima.
    """
    known = ~np.isnan(X)
    Y = np.where(known, X, 0.0)
    col = Y.sum(axis=0) / (known.sum(axis=0) + 2.0)
    row = np.where(known, X - col, 0.0).sum(axis=1) / (known.sum(axis=1) + 2.0)
    Z = np.where(known, Y, col + row[:, None])
    wide = X.shape[0] < X.shape[1]
    for _ in range(rounds):
        squares, W = np.linalg.eigh(
            Z @ Z.T if wide else Z.T @ Z
        )  # the smaller Gram matrix: here its digits suffice
        s, W = np.sqrt(np.maximum(squares[::-1], 0.0)), W[:, ::-1][:, :k]
        W *= np.sqrt((s[:k] - (s[k] if k < len(s) else 0.0)) / np.maximum(s[:k], 1e-300))
        before, Z = Z, np.where(known, Y, W @ (W.T @ Z) if wide else (Z @ W) @ W.T)
        if float(np.linalg.norm(Z - before)) < 1e-4 * float(np.linalg.norm(Z)):
            break
    return np.asarray(np.linalg.svd(Z, full_matrices=False)[0][:, :k] * math.sqrt(len(X)))


def calibrated(found: LowRank, seen: Observations) -> LowRank:
    """Return the fit with its column covariances widened to the joint posterior's variance, column by column."""
    (m, n), k = found.shape, found.rank
    posterior = found.posterior
    if (
        k == 0
        or posterior is None
        or not found.has_variance
        or joint_cost(m, n, k + 1) > JOINT_LIMIT
    ):
        return found
    W = np.zeros((m, n))
    W[seen.rows, seen.cols] = 1.0 / (seen.noise_array() ** 2 + found.lack_variance)
    joint = joint_variance(
        found.left, found.right, W, posterior.rows.prior_cov, posterior.cols.prior_cov
    )
    both = posterior.all_variances(found.left, found.right)
    sure = replace(posterior.cols, cov=np.zeros_like(posterior.cols.cov))
    rows_only = replace(posterior, cols=sure).all_variances(found.left, found.right)
    unknown = np.ones((m, n), dtype=bool)
    unknown[seen.rows, seen.cols] = False
    unknown[:, ~unknown.any(axis=0)] = True
    want, have = (np.where(unknown, X - rows_only, 0.0).sum(axis=0) for X in (joint, both))
    factor = np.maximum(want / np.maximum(have, 1e-300), 1.0)
    wider = posterior.cols.cov * np.minimum(factor, 100.0)[:, None, None]
    return replace(found, posterior=replace(posterior, cols=replace(posterior.cols, cov=wider)))
