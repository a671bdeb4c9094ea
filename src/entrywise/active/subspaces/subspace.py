r"""Which attributes of the next sample to look at, to learn a subspace.

The estimate of a product x_i x_j errs like sqrt(E[x_i^2 x_j^2] / how often i and j were seen together). Looking
at attribute i with a chance in proportion to its root mean square over the root of its price makes the
total error smallest for the money (Neyman's allocation). The sizes are learnt on the way, in a few rounds,
over a floor of uniform looking that finds what was missed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from entrywise.active.subspaces.looks import SLACK, cost_of_looks, refuse_long_rounds
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.linalg.pairs import PairSums
from entrywise.passive.partial_pca import Repair, covariance, from_covariance
from entrywise.queries import Asking, Batch, Checkpoint, Prices, plan
from entrywise.results import Subspace
from entrywise.types import Array, Indices, Seed, generator

CHUNK = 2**21  # random numbers drawn at once
SURPLUS, SPARE = (
    1.2,
    50,
)  # samples drawn beyond the mean that the last money buys, where prices differ


@plan(fresh=True, tolerates_failed=True)
def subspace(
    d: int,
    prices: Prices | None = None,
    *,
    rank: int,
    per_sample: int = 4,
    samples: int | None = None,
    budget: float | None = None,
    center: bool = False,
    floor: float = 0.2,
    rounds: int = 8,
    repair: Repair = "soft",
    rng: Seed = None,
    resume: Checkpoint | None = None,
) -> Asking[Subspace]:
    r"""Learn the k-dimensional subspace near which samples lie by looking at a few attributes of each.

    .. math:: \Pr(\text{look at } i) \propto (1 - f)\, \frac{\sqrt{E x_i^2 / c_i}}{\sum_j \sqrt{E x_j^2 / c_j}} + \frac f d

    Parameters
    ----------
    d : int
        Attributes of a sample.
    prices : Prices, optional
        Of an attribute: one number, or ``Prices(entry=array of shape (1, d))``.
    rank : int
        Dimension k of the subspace, 1 <= k < d.
    per_sample : int
        Attributes r looked at in each sample, 2 <= r <= d. One is never enough.
    samples : int, optional
        Samples to look at; give it, or `budget`, or both (whichever ends first).
    budget : float, optional
        Money to spend on attributes.
    center : bool
        Learn the subspace through the mean instead of the origin.
    floor : float
        Share f of uniform looking; 1 is uniform looking throughout.
    rounds : int
        How often the chances are renewed; the first round looks uniformly.
    repair : {"soft", "clip", "none"}
        Of eigenvalues below zero, see :func:`entrywise.passive.partial_pca`.
    rng : int or Generator

    Yields
    ------
    Batch
        A round of samples: rows are running numbers of fresh samples, columns their attributes.

    Returns
    -------
    Subspace
        From the pairwise-complete estimate over everything seen; ``report`` tells how often each attribute was.

    Notes
    -----
    The chances depend on earlier samples alone, so products are averaged over masks that do not look at
    their own values. Squares of single attributes drive the chances: on the law x = e_j, on which MBEG sees only
    zero products for d^2 / r samples (the open question of [GRES16], section 4), attribute j is found after about
    d / r. No bound is proved for this allocation.

    References
    ----------
    .. [GRES16] Gonen, Rosenbaum, Eldar, Shalev-Shwartz, *Subspace Learning with Partial Information*, JMLR 17, 2016.
    .. [N34] Neyman, *On the two different aspects of the representative method*, 1934.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.oracles import StreamOracle
    >>> stream = np.random.default_rng(0).standard_normal((2000, 1)) * np.r_[3.0, 4.0, np.zeros(18)]
    >>> found = ew.play(subspace(20, rank=1, per_sample=2, budget=2000, rng=0), StreamOracle(stream))
    >>> found.components[0, :2].round(1).tolist(), found.cost
    ([0.6, 0.8], 2000.0)
    """
    cost = cost_of_looks(d, prices, rank, per_sample, samples, budget, "subspace")
    _refuse(d, per_sample, floor, rounds)
    most = np.inf if samples is None else float(samples) * per_sample
    looks = most if budget is None else min(most, budget / float(cost.min()))
    refuse_long_rounds(looks / rounds, "rounds")
    draws = generator(rng)
    sums, spent, done = PairSums(d, center), 0.0, 0
    if resume is not None:
        sums, draws = PairSums.from_arrays(resume.arrays), resume.generator()
        spent, done = float(resume.arrays["spent"]), int(resume.arrays["round"])
    status = "finished"
    try:
        while done < rounds:
            weights = _weights(sums, cost, floor)
            left = None if samples is None else samples - sums.rows
            money = None if budget is None else budget - spent
            mean = float(weights @ cost) * per_sample
            size = _round_size(rounds - done, left, money, mean, bool(cost.min() < cost.max()))
            seen = _draw(size, weights, per_sample, draws)
            price = np.cumsum(cost[seen].sum(axis=1))
            if money is not None:
                seen = seen[price <= money * SLACK]
            done += 1
            if not len(seen):
                continue
            new = sums.rows + np.repeat(np.arange(len(seen)), per_sample)
            answers = yield Batch.entries(new, seen.ravel())
            _take(sums, seen, np.array(answers))
            spent += float(price[len(seen) - 1])
            now = {"spent": np.array(spent), "round": np.array(done)}
            yield Checkpoint(sums.arrays() | now, draws)
    except Exhausted:
        status = "exhausted"
    return _result(sums, rank, center, repair, status)


def _weights(sums: PairSums, cost: Array, floor: float) -> Array:
    """Return the weight of each attribute: root mean square over root price, above a uniform floor."""
    d = sums.d
    seen = np.diagonal(sums.counts())
    squares = np.diagonal(sums.about(sums.means()) if sums.centered else sums.products())
    total = float(squares.sum())
    size = np.ones(d)
    if total > 0:
        average = total / max(seen.sum(), 1.0)
        size = np.sqrt((squares + average) / (seen + 1.0))  # one look at the average, as prior
    size = size / np.sqrt(cost)
    return np.asarray((1.0 - floor) * size / size.sum() + floor / d)


def _round_size(
    rounds: int, samples: int | None, money: float | None, mean: float, uneven: bool
) -> int:
    """Return the samples of the next of so many rounds: an equal part of what is left, money or samples."""
    sizes = []
    if samples is not None:
        sizes.append(-(-samples // rounds))
    if money is not None:
        size = money / rounds * SLACK / mean
        if rounds == 1 and uneven:  # draw more than can be paid, and pay what can
            size = SURPLUS * size + SPARE
        sizes.append(max(1, int(size)))
    return max(0, min(sizes))


def _draw(n: int, weights: Array, r: int, rng: np.random.Generator) -> Indices:
    """Return r different attributes for each of n samples, drawn one after the other by weight, shape (n, r)."""
    d = len(weights)
    seen = np.empty((n, r), np.int64)
    step = max(1, CHUNK // d)
    for a in range(0, n, step):
        size = min(step, n - a)
        # the r clocks that ring first: sampling without replacement
        clock = rng.standard_exponential((size, d)) / weights
        seen[a : a + size] = np.sort(np.argpartition(clock, r - 1, axis=1)[:, :r], axis=1)
    return seen


def _take(sums: PairSums, seen: Indices, answers: Array) -> None:
    from scipy.sparse import csr_array

    good = ~np.isnan(answers)
    ptr = np.concatenate([[0], np.cumsum(good.reshape(seen.shape).sum(axis=1))])
    sums.add(csr_array((answers[good], seen.ravel()[good], ptr), shape=(len(seen), sums.d)))


def _result(sums: PairSums, rank: int, center: bool, repair: Repair, status: str) -> Subspace:
    N = sums.counts()
    mean = sums.means() if center else np.zeros(sums.d)
    found = from_covariance(covariance(sums, center=center), rank, mean, repair)
    report = {
        "samples": sums.rows,
        "attributes_seen": int(np.trace(N)),
        "pairs_never_seen_together": int(np.sum(np.triu(N == 0, 1))),
        "looks": np.diagonal(N).astype(int).tolist(),
    }
    return replace(found, status=status, report=report)


def _refuse(d: int, per_sample: int, floor: float, rounds: int) -> None:
    if not 2 <= per_sample <= d:
        raise ParameterError(
            f"per_sample must be in 2..{d}, got {per_sample}; one attribute a sample cannot tell directions apart"
        )
    if not 0 <= floor <= 1:
        raise ParameterError(f"floor must be in 0..1, got {floor}")
    if rounds < 1:
        raise ParameterError(f"rounds must be at least 1, got {rounds}")
