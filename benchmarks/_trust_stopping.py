"""What races state when they stop: over pairs (elimination, halving, the best pair) and over rows (UCB-E)."""

from __future__ import annotations

import numpy as np

from _trust import Claims
from entrywise.active import median_elimination, sequential_halving, successive_elimination, ucb_e
from entrywise.apply.pairs import best_pair, regret
from entrywise.gallery import pair_losses, random_low_rank
from entrywise.oracles import BernoulliOracle, MatrixOracle
from entrywise.play import play

DELTA = 0.05  # chance of error that the races over pairs are given


def pairs(claims: Claims) -> None:
    """Statements at 95 %, counted where they are made; halving makes none, and its regret is told beside them."""
    near, loss, between, silent = [], [], [], []
    for k in range(claims.problems(120, 8)):
        rng = np.random.default_rng([claims.seed, 11, k])
        n = int(rng.integers(5, 9))
        L = losses(k, n, rng)
        budget = int(10 ** rng.uniform(3.5, 4.5))
        found = race(median_elimination, L, k, budget=budget, delta=DELTA)
        if found.certificates:
            near.append(regret(L, found.pair) > found.certificate.value)
        found = race(sequential_halving, L, k, budget=budget)
        silent.append(regret(L, found.pair))
        found = race(best_pair, L, k, budget=budget, delta=DELTA)
        if found.certificates:
            loss.append(L[found.pair] > found.certificate.value)
        if "difference" in found.report:
            low, high = found.report["difference"]
            between.append(low <= L[found.report["runner_up"]] - L[found.pair] <= high)
    claims.share("races", "median elimination is farther than it says", near, high=DELTA)
    claims.share("races", "best pair: loss above its upper end", loss, high=DELTA)
    claims.share("races", "best pair: difference of finalists inside its 95 % interval", between, low=0.93)  # fmt: skip
    claims.share("races", "halving states nothing; its mean regret", silent)


def losses(k, n, rng):
    """Return the k-th problem: the families of losses in turn."""
    family = ("synthetic", "bandit", "coherent")[k % 3]
    return pair_losses(family, n, 2, int(rng.integers(2**31)))


def race(plan, L, k, **given):
    return play(plan(len(L), rng=k, **given), BernoulliOracle(L, rng=k))


def proofs(claims: Claims) -> None:
    """Successive elimination says that a pair is the best only where one is left: it gets the money for that."""
    said, wrong = [], []
    for k in range(claims.problems(200, 10)):
        rng = np.random.default_rng([claims.seed, 13, k])
        L = losses(k, int(rng.integers(4, 7)), rng)
        found = race(successive_elimination, L, k, budget=1_000_000, delta=DELTA)
        said.append(bool(found.certificates))
        if found.certificates:
            wrong.append(regret(L, found.pair) > 0)
    claims.share("races", "successive elimination says best within 1e6 answers", said)
    claims.share("races", "successive elimination says best, and it is not", wrong, high=DELTA)


class Noting(MatrixOracle):
    """Answers from a matrix, and keeps which cells were not asked."""

    def __init__(self, A):
        super().__init__(A)
        self.unasked = np.ones(A.shape, bool)

    def answer(self, batch):
        self.unasked[batch.rows, batch.cols] = False
        return super().answer(batch)


def rows(claims: Claims) -> None:
    """UCB-E names a row and gives intervals for cells, which nothing has tested: it says so."""
    right, covered, told = [], [], []
    for k in range(claims.problems(60, 4)):
        rng = np.random.default_rng([claims.seed, 12, k])
        m, n = int(rng.integers(10, 25)), int(rng.integers(40, 90))
        A = random_low_rank(m, n, 2, int(rng.integers(2**31))) + 0.3 * rng.standard_normal((m, n))
        oracle = Noting(A)
        found = play(ucb_e(A.shape, budget=0.4 * A.size, rng=k), oracle)
        right.append(found.report["best"] == A.mean(axis=1).argmax())
        told.append(found.certificate.vacuous and "nothing has tested" in found.certificate.statement)  # fmt: skip
        i, j = np.nonzero(oracle.unasked)
        low, high = found.interval(i, j, 0.9)
        covered.append(np.mean((low <= A[i, j]) & (high >= A[i, j])))
    claims.share("races", "UCB-E names the best row", right)
    claims.share("races", "UCB-E says that its intervals are not tested", told, low=1)
    claims.share("races", "UCB-E: 90 % intervals of cells not bought cover", covered)


def races(claims: Claims) -> None:
    pairs(claims)
    proofs(claims)
    rows(claims)
