"""Completion of a PSD matrix from repeated noisy answers, within a budget: S-MCANS that ends.

Columns are chosen where the diagonal is least explained; they and their crossings are measured more often than
the rest; part of the money is spread over all entries; and a last part goes where a D-optimal design on the
fitted rows wants it. Every answer is kept, and one weighted low-rank fit of all of them is the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.active.pairs.tally import Tally, pull, pulls_for, share_out, spread
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.linalg.psdfit import design, fit_psd, spectral_start
from entrywise.queries import Asking, Checkpoint, History, Prices, plan
from entrywise.results import PSDFactor
from entrywise.types import Array, Indices, Seed, generator

SHARES = (0.15, 0.20, 0.45, 0.20)  # selection, columns, spread, design
BLIND = (0.40, 0.20, 0.20, 0.20)  # without the diagonal: spread first, choose columns from its fit
EXTRA = 3.0  # crossings of chosen columns (W) are measured so many times more than the rest of them
HALVINGS = 6  # at most, in the choice of a column: later ones would measure a handful again
CROSSING = 10  # the share of a column's choice that goes to W is one in so many
DROPPED = 1.5  # eigenvalues of W below so many standard deviations of its noise are dropped
FAINT = 1e-3  # rows of the design with less than this share of the largest weight are not measured


@plan(symmetric=True, fresh=True, tolerates_failed=True, history=True)
def stochastic_nystrom(
    n: int,
    prices: Prices | None = None,
    *,
    rank: int = 4,
    budget: float | None = None,
    noise: float | None = None,
    ask_diagonal: bool = True,
    rng: Seed = None,
    resume: Checkpoint | None = None,
    history: History | None = None,
) -> Asking[PSDFactor]:
    r"""Complete an unknown PSD matrix :math:`L` from noisy answers, each asked as often as it is worth.

    .. math:: y \sim \mathrm{Bern}(L_{ij}) \quad\text{or}\quad y = L_{ij} + \text{noise}, \qquad
              \hat L = F F^\top

    Parameters
    ----------
    n : int
        Side of the matrix.
    prices : Prices, optional
        Price of an entry, one number.
    rank : int
        Its rank, or the largest worth fitting.
    budget : float
        Money to spend; every measurement that it pays for is made, none more.
    noise : float, optional
        Standard deviation of an answer. None: answers are coins, or lie in 0..1.
    ask_diagonal : bool
        Whether (i, i) can be measured. If not, its values follow from the fit.
    rng : int or Generator

    Yields
    ------
    Batch
        Up to 2^20 measurements; an entry that is listed k times is to be measured k times, independently.
        Failed answers (NaN) are left out. Checkpoints stand between the phases.

    Returns
    -------
    PSDFactor
        ``factor`` of shape (n, rank) and the chosen columns as ``pivots``.

    Notes
    -----
    The paper's own algorithm is :func:`~entrywise.active.literal_stochastic_nystrom`; its successive elimination drops
    no column within a million coin flips at n = 200. Here 15% of the
    budget selects columns (halving on the residual of the diagonal, eigenvalues of W below the noise dropped), 20% measures
    them, W three times as often, 45% is spread over all entries and 20% follows a D-optimal design; (i, j) and
    (j, i) are pooled. The Nyström extension :math:`C W^{-1} C^\top` of these is replaced by a weighted fit to all
    answers, which equals it when only C and W were measured without noise.

    References
    ----------
    .. [BGN17] Bhargava, Ganti, Nowak, *Active Positive Semidefinite Matrix Completion*, AISTATS 2017,
       Algorithms 4.1 and 4.2, Theorem 4.3.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.gallery import pair_losses
    >>> from entrywise.oracles import BernoulliOracle
    >>> L = pair_losses("synthetic", 60, 2, seed=0)
    >>> found = ew.play(stochastic_nystrom(60, rank=2, budget=50_000, rng=0), BernoulliOracle(L, rng=1))
    >>> found.cost, bool(abs(found.to_dense() - L).max() < 0.15)
    (50000.0, True)
    """
    refuse(n, rank, noise, "stochastic_nystrom")
    draws = generator(rng) if resume is None else resume.generator()
    state = State(n, rank, noise, ask_diagonal, draws, history)
    if resume is not None:
        state.restore(resume.arrays)
    total = pulls_for(n, prices, budget, True, "stochastic_nystrom")
    status = "finished"
    try:
        yield from explore(state, total)
    except Exhausted:
        status = "exhausted"
    F = state.fit()
    report = {"measurements": state.tally.asked, "entries_measured": len(state.tally.keys)}
    return PSDFactor(F, state.pivots, status=status, report=report)


class State:
    """Where a search stands: what was answered, the columns chosen, the phase."""

    def __init__(
        self,
        n: int,
        rank: int,
        noise: float | None,
        diagonal: bool,
        rng: np.random.Generator,
        history: History | None = None,
        success: bool = False,
    ) -> None:
        self.n, self.rank = n, min(rank, n)
        self.noise, self.diagonal, self.rng = noise, diagonal, rng
        self.tally = Tally(n, bounded=noise is None, history=history, success=success)
        self.phase = 0
        self.pivots = np.zeros(0, np.int64)

    @property
    def sd(self) -> float:
        """Standard deviation of an answer, at most."""
        return 0.5 if self.noise is None else self.noise

    def checkpoint(self, **more: NDArray[Any]) -> Checkpoint:
        """Return everything that is needed to go on from here."""
        arrays = self.tally.arrays() | {"phase": np.array(self.phase), "pivots": self.pivots} | more
        return Checkpoint(arrays, self.rng)

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take what :meth:`checkpoint` kept."""
        self.tally.restore(arrays)
        self.phase, self.pivots = int(arrays["phase"]), np.array(arrays["pivots"], np.int64)

    def fit(self) -> Array:
        """Return the factor that fits all answers so far, shape (n, rank)."""
        t = self.tally
        if not len(t.keys):
            return np.zeros((self.n, self.rank))
        start = spectral_start(self.n, t.rows, t.cols, t.sums, t.counts, self.rank)
        return fit_psd(t.rows, t.cols, t.sums, t.counts, start, noise=self.noise)


def explore(state: State, total: int) -> Asking[None]:
    """Spend `total` measurements in four phases; a checkpoint before each."""
    shares = SHARES if state.diagonal else BLIND
    ends = [round(total * sum(shares[: k + 1])) for k in range(3)] + [total]
    while state.phase < 4:
        yield state.checkpoint()
        left = max(0, ends[state.phase] - state.tally.asked)
        if state.phase == 0 and state.diagonal:
            state.pivots = yield from _select(state, left)
        elif state.phase == 0:
            yield from spread(state.tally, left, False, state.rng)
            state.pivots = _least_explained(state.fit(), state.rank)
        elif state.phase == 1:
            yield from _columns(state, state.pivots, np.ones(len(state.pivots)), left)
        elif state.phase == 2:
            yield from spread(state.tally, left, state.diagonal, state.rng)
        else:
            weights = design(state.fit())
            wanted = np.flatnonzero(weights > FAINT * weights.max())
            yield from _columns(state, wanted, weights[wanted], left)
            yield from spread(state.tally, total - state.tally.asked, state.diagonal, state.rng)
        state.phase += 1


def _columns(state: State, columns: Indices, weights: Array, total: int) -> Asking[None]:
    """Measure columns in proportion to their weights, their crossings ``EXTRA`` times as often."""
    n, m = state.n, len(columns)
    rows, cols = np.repeat(np.arange(n), m), np.tile(columns, n)
    much = np.tile(weights, n) * np.where(np.isin(rows, columns), EXTRA, 1.0)
    order = state.rng.permutation(len(rows))  # where money does not suffice for all, chance decides
    if not state.diagonal:
        order = order[rows[order] != cols[order]]
    if len(order):
        yield from pull(state.tally, rows[order], cols[order], share_out(total, much[order]))


def _select(state: State, total: int) -> Asking[Indices]:
    """Choose `rank` columns one after the other: halving on how much of the diagonal they leave unexplained."""
    tally, begun, chosen = state.tally, state.tally.asked, np.zeros(0, np.int64)
    for step in range(state.rank):
        left = (total - (tally.asked - begun)) // (state.rank - step)
        candidates = np.setdiff1d(np.arange(state.n), chosen)
        width = len(chosen) + 1
        if step:  # W is shared by all candidates
            a, b = np.triu_indices(step)
            times = max(1, left // CROSSING // len(a))
            if times * len(a) <= left:
                yield from pull(tally, chosen[a], chosen[b], np.full(len(a), times))
                left -= times * len(a)
        rounds = min(HALVINGS, max(1, int(np.ceil(np.log2(len(candidates))))))
        for _ in range(rounds):
            times = left // rounds // (len(candidates) * width)
            if times == 0 and step == 0 and left // rounds > 0:  # too little for each: some of them
                some = state.rng.permutation(candidates)[: left // rounds]
                yield from pull(tally, some, some, np.ones(len(some), np.int64))
            elif times > 0:
                rows = np.repeat(candidates, width)
                cols = np.column_stack([candidates, np.tile(chosen, (len(candidates), 1))]).ravel()
                yield from pull(tally, rows, cols, np.full(len(rows), times))
            d = _unexplained(tally, chosen, candidates, state.sd)
            best = np.lexsort((state.rng.random(len(d)), -d))
            keep = max(1, len(candidates) // 2) if times > 0 else len(candidates)
            candidates = candidates[best[:keep]]
        chosen = np.append(chosen, candidates[0])
    return chosen


def _unexplained(tally: Tally, chosen: Indices, candidates: Indices, sd: float) -> Array:
    """Return the residual diagonal of the Nyström extension, eigenvalues of W below the noise dropped."""
    count, total = tally.look(candidates, candidates)
    d = total / np.maximum(count, 1.0)
    if not len(chosen):
        return np.asarray(d)
    count, total = tally.look(chosen[:, None], chosen[None, :])
    values, vectors = np.linalg.eigh(total / np.maximum(count, 1.0))
    noise = DROPPED * sd * np.sqrt(len(chosen) / max(float(count.min()), 1.0))
    keep = values > min(noise, 0.999 * float(values[-1]))
    if values[-1] <= 0.0:
        return np.asarray(d)
    count, total = tally.look(candidates[:, None], chosen[None, :])
    X = (total / np.maximum(count, 1.0)) @ vectors[:, keep]
    return np.asarray(d - (X**2 / values[keep]).sum(axis=1))


def _least_explained(F: Array, count: int) -> Indices:
    """Return the rows that greedy elimination on F F' picks, largest residual first."""
    R = F.copy()
    chosen: list[int] = []
    for _ in range(min(count, len(F))):
        d = np.einsum("ir,ir->i", R, R)
        d[chosen] = -1.0
        p = int(np.argmax(d))
        chosen.append(p)
        if d[p] > 0:
            v = R[p] / np.sqrt(d[p])
            R = R - np.outer(R @ v, v)
    return np.array(chosen, np.int64)


def refuse(n: int, rank: int, noise: float | None, who: str) -> None:
    """Refuse parameters outside their domain."""
    if n < 1:
        raise ParameterError(f"n of {who} must be at least 1, got {n}")
    if not rank >= 1:
        raise ParameterError(f"rank of {who} must be at least 1, got {rank}")
    if noise is not None and not (np.isfinite(noise) and noise >= 0):
        raise ParameterError(
            f"noise of {who} is a standard deviation, finite and not below 0, got {noise}"
        )
