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
from entrywise.exceptions import ParameterError
from entrywise.linalg.pairs import PairSums
from entrywise.passive.partial_pca import Repair, covariance, from_covariance
from entrywise.queries import Batch, History, Prices, Situation, plan
from entrywise.results import Subspace
from entrywise.types import Array, Indices, Seed, generator

CHUNK = 2**21  # random numbers drawn at once
SMALLEST = 1e-300
TINY = 1e-200  # weight of an attribute that may not be looked at: its clock rings last
SURPLUS, SPARE = (
    1.2,
    50,
)  # samples drawn beyond the mean that the last money buys, where prices differ


@plan(fresh=True, streaming=True)
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
    situation: Situation,
) -> Batch | Subspace:
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

    Returns
    -------
    Subspace
        From the pairwise-complete estimate over everything seen; ``report`` tells how often each attribute was.

    Notes
    -----
    Rows of a batch are running numbers of fresh samples, columns their attributes. It streams: a step asks for an
    equal part of the samples or the money, with chances from all that was told until then; samples known beforehand
    count in the estimate, and numbers go on after theirs.

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
    asked = situation.facts[~situation.facts.known] + situation.pending
    sums = _sums(situation.facts, d, center)
    weights = _weights(sums, cost, floor)
    left = None if samples is None else samples - len(np.unique(asked.rows))
    size = _round_size(
        _parts(rounds, left, samples, situation.left, float(np.nansum(asked.price))),
        left,
        situation.left,
        mean=float(weights @ cost) * per_sample,
        uneven=bool(cost.min() < cost.max()),
    )
    seen = _looks(size, weights, per_sample, generator(rng), situation)
    if situation.left is not None:
        seen = seen[np.cumsum(cost[seen].sum(axis=1)) <= situation.left * SLACK]
    if not len(seen):
        short = budget is None and (left is None or left > 0)
        return _result(sums, rank, center, repair, "exhausted" if short else "finished")
    first = 1 + max(asked.rows.max(initial=-1), situation.facts.rows.max(initial=-1))
    return Batch.entries(first + np.repeat(np.arange(len(seen)), per_sample), seen.ravel())


def _sums(facts: History, d: int, center: bool) -> PairSums:
    """Return the sums over all samples that were seen, or seen in part."""
    from scipy.sparse import csr_array

    sums = PairSums(d, center)
    samples, row = np.unique(facts.rows, return_inverse=True)
    good = ~facts.failed
    if len(samples):
        table = (facts.values[good], (row[good], facts.cols[good]))
        sums.add(csr_array(table, shape=(len(samples), d)))
    return sums


def _parts(
    rounds: int, left: int | None, samples: int | None, money: float | None, spent: float
) -> int:
    """Return how many of the rounds are left: as much as is left of the samples or of the money."""
    shares = []
    if left is not None and samples is not None:
        shares.append(left / samples)
    if money is not None:
        shares.append(money / max(money + spent, SMALLEST))
    return max(1, round(rounds * min(shares, default=1.0)))


def _looks(
    size: int, weights: Array, r: int, rng: np.random.Generator, situation: Situation
) -> Indices:
    """Return the attributes to look at in so many new samples, shape (n, r), as far as the step may ask for them."""
    d = len(weights)
    may = situation.allows(np.full(d, -1), np.arange(d))
    if situation.limit is not None:
        size = min(size, situation.limit // r)
    if situation.rows is not None or may.sum() < r:
        size = 0
    return _draw(max(size, 0), np.where(may, weights, TINY), r, rng)


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
