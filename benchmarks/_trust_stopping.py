"""What races state when they stop: over pairs (elimination, halving, the best pair) and over rows (UCB-E)."""

from __future__ import annotations

import numpy as np

from _trust import SEED, Claims
from entrywise.active import median_elimination, sequential_halving, successive_elimination, ucb_e
from entrywise.apply.pairs import best_pair, regret
from entrywise.gallery import pair_losses, random_low_rank
from entrywise.oracles import BernoulliOracle, MatrixOracle
from entrywise.play import play

DELTA = 0.05  # chance of error that the races over pairs are given


def pairs(claims: Claims) -> None:
    """Statements at 95 %, counted where they are made; halving makes none, and its regret is told beside them."""
    proved, near, loss, between, silent = [], [], [], [], []
    for k in range(claims.problems(120, 8)):
        rng = np.random.default_rng([SEED, 11, k])
        n = int(rng.integers(5, 9))
        L = pair_losses(("synthetic", "bandit", "coherent")[k % 3], n, 2, int(rng.integers(2**31)))
        budget = int(10 ** rng.uniform(3.5, 4.5))
        found = play(successive_elimination(n, budget=budget, delta=DELTA, rng=k), BernoulliOracle(L, rng=k))  # fmt: skip
        if found.certificates:
            proved.append(regret(L, found.pair) > 0)
        found = play(median_elimination(n, budget=budget, delta=DELTA, rng=k), BernoulliOracle(L, rng=k))  # fmt: skip
        if found.certificates:
            near.append(regret(L, found.pair) > found.certificate.value)
        found = play(sequential_halving(n, budget=budget, rng=k), BernoulliOracle(L, rng=k))
        silent.append(regret(L, found.pair))
        found = play(best_pair(n, budget=budget, delta=DELTA, rng=k), BernoulliOracle(L, rng=k))
        if found.certificates:
            loss.append(L[found.pair] > found.certificate.value)
        if "difference" in found.report:
            low, high = found.report["difference"]
            between.append(low <= L[found.report["runner_up"]] - L[found.pair] <= high)
    claims.share("races", "successive elimination says best, and it is not", proved, high=DELTA)
    claims.share("races", "median elimination is farther than it says", near, high=DELTA)
    claims.share("races", "best pair: loss above its upper end", loss, high=DELTA)
    claims.share("races", "best pair: difference of finalists inside its 95 % interval", between, low=0.93)  # fmt: skip
    claims.share("races", "halving states nothing; its mean regret", silent)


def rows(claims: Claims) -> None:
    """UCB-E names a row and gives intervals for cells, which nothing has tested: it says so."""
    right, covered, told = [], [], []
    for k in range(claims.problems(30, 4)):
        rng = np.random.default_rng([SEED, 12, k])
        m, n = int(rng.integers(10, 25)), int(rng.integers(40, 90))
        A = random_low_rank(m, n, 2, int(rng.integers(2**31))) + 0.3 * rng.standard_normal((m, n))
        found = play(ucb_e(A.shape, budget=0.4 * A.size, rng=k), MatrixOracle(A))
        right.append(found.report["best"] == A.mean(axis=1).argmax())
        told.append(found.certificate.vacuous and "nothing has tested" in found.certificate.statement)  # fmt: skip
        low, high = found.interval(*np.indices(A.shape), 0.9)
        covered.append(np.mean((low <= A) & (high >= A)))
    claims.share("races", "UCB-E names the best row", right)
    claims.share("races", "UCB-E says that its intervals are not tested", told, low=1)
    claims.share("races", "UCB-E: 90 % intervals of cells, bought ones too, cover", covered)


def races(claims: Claims) -> None:
    pairs(claims)
    rows(claims)
