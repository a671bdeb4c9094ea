r"""Which attributes of the next sample to look at, to learn a subspace.

The estimate of a product x_i x_j errs like sqrt(E[x_i^2 x_j^2] / how often i and j were seen together). Looking
at attribute i with a chance in proportion to its root mean square over the root of its price makes the
total error smallest for the money (Neyman's allocation). The sizes are learnt on the way, in a few epochs,
over a floor of uniform looking that finds what was missed.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from entrywise.exceptions import Exhausted, ParameterError
from entrywise.linalg.pairs import PairSums
from entrywise.passive.partial_pca import Repair, covariance, from_covariance
from entrywise.queries import Asking, Batch, Checkpoint, Prices, plan
from entrywise.results import Subspace
from entrywise.types import Array, Indices, Seed


@plan(fresh=True, tolerates_failed=True)
def subspace(
    d: int,
    k: int,
    *,
    per_sample: int = 4,
    samples: int | None = None,
    budget: float | None = None,
    prices: Prices | None = None,
    center: bool = False,
    floor: float = 0.2,
    epochs: int = 8,
    repair: Repair = "soft",
    rng: Seed = None,
    resume: Checkpoint | None = None,
) -> Asking[Subspace]:
    r"""Learn the k-dimensional subspace near which samples lie by looking at a few attributes of each.

    .. math:: \Pr(\text{look at } i) \propto (1 - f)\, \frac{\sqrt{E x_i^2 / c_i}}{\sum_j \sqrt{E x_j^2 / c_j}} + \frac f d

    Parameters
    ----------
    d, k : int
        Attributes of a sample and dimension of the subspace, 1 <= k < d.
    per_sample : int
        Attributes r looked at in each sample, 2 <= r <= d. One is never enough.
    samples : int, optional
        Samples to look at; give it, or `budget`, or both (whichever ends first).
    budget : float, optional
        Money to spend on attributes.
    prices : Prices, optional
        Of an attribute: one number, or ``Prices(entry=array of shape (1, d))``.
    center : bool
        Learn the subspace through the mean instead of the origin.
    floor : float
        Share f of uniform looking; 1 is uniform looking throughout.
    epochs : int
        How often the chances are renewed; the first epoch looks uniformly.
    repair : {"soft", "clip", "none"}
        Of eigenvalues below zero, see :func:`entrywise.passive.partial_pca`.
    rng : int or Generator

    Yields
    ------
    Batch
        An epoch of samples: rows are running numbers of fresh samples, columns their attributes.

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
    >>> found = ew.play(subspace(20, 1, per_sample=2, budget=2000, rng=0), StreamOracle(stream))
    >>> found.components[0, :2].round(1).tolist(), found.cost
    ([0.6, 0.8], 2000.0)
    """
    cost = _refuse(d, k, per_sample, samples, budget, prices, floor, epochs)
    generator = cast(np.random.Generator, rng)
    sums, spent, epoch = PairSums(d, center), 0.0, 0
    if resume is not None:
        sums, generator = PairSums.from_arrays(resume.arrays), resume.generator()
        spent, epoch = float(resume.arrays["spent"]), int(resume.arrays["epoch"])
    status = "finished"
    try:
        while epoch < epochs:
            weights = _weights(sums, cost, floor)
            seen = _draw(_epoch_size(sums.rows, spent, weights, cost, epoch, epochs, samples, budget, per_sample),
                         weights, per_sample, generator)  # fmt: skip
            price = np.cumsum(cost[seen].sum(axis=1))
            if budget is not None:
                seen = seen[price <= (budget - spent) * (1 + 1e-12)]
            epoch += 1
            if not len(seen):
                continue
            answers = yield Batch.entries(
                sums.rows + np.repeat(np.arange(len(seen)), per_sample), seen.ravel()
            )
            _take(sums, seen, np.array(answers))
            spent += float(price[len(seen) - 1])
            yield Checkpoint(
                {**sums.arrays(), "spent": np.array(spent), "epoch": np.array(epoch)}, generator
            )
    except Exhausted:
        status = "exhausted"
    return _result(sums, k, center, repair, status)


def _weights(sums: PairSums, cost: Array, floor: float) -> Array:
    """Return the weight of each attribute: root mean square over root price, above a uniform floor."""
    d = sums.d
    seen = np.diagonal(sums.counts())
    squares = np.diagonal(sums.about(sums.means()) if sums.centered else sums.products())
    total = float(squares.sum())
    if total <= 0:
        size = np.ones(d)
    else:
        size = np.sqrt(
            (squares + total / max(seen.sum(), 1.0)) / (seen + 1.0)
        )  # one look at the average, as prior
    size = size / np.sqrt(cost)
    return np.asarray((1.0 - floor) * size / size.sum() + floor / d)


def _epoch_size(
    done: int,
    spent: float,
    weights: Array,
    cost: Array,
    epoch: int,
    epochs: int,
    samples: int | None,
    budget: float | None,
    r: int,
) -> int:
    """Return the samples of the next epoch: an equal part of what is left, money or samples."""
    left = epochs - epoch
    sizes = []
    if samples is not None:
        sizes.append(-(-(samples - done) // left))
    if budget is not None:
        mean = float(weights @ cost) * r
        money = (budget - spent) / left
        size = money * (1 + 1e-12) / mean
        if left == 1 and cost.min() < cost.max():  # draw more than can be paid, and pay what can
            size = 1.2 * size + 50
        sizes.append(max(1, int(size)))
    return max(0, min(sizes))


def _draw(n: int, weights: Array, r: int, rng: np.random.Generator) -> Indices:
    """Return r different attributes for each of n samples, drawn one after the other by weight, shape (n, r)."""
    d = len(weights)
    seen = np.empty((n, r), np.int64)
    step = max(1, 2**21 // d)
    for a in range(0, n, step):
        size = min(step, n - a)
        clock = (
            rng.standard_exponential((size, d)) / weights
        )  # the r first to ring: sampling without replacement
        seen[a : a + size] = np.sort(np.argpartition(clock, r - 1, axis=1)[:, :r], axis=1)
    return seen


def _take(sums: PairSums, seen: Indices, answers: Array) -> None:
    from scipy.sparse import csr_array

    good = ~np.isnan(answers)
    ptr = np.concatenate([[0], np.cumsum(good.reshape(seen.shape).sum(axis=1))])
    sums.add(csr_array((answers[good], seen.ravel()[good], ptr), shape=(len(seen), sums.d)))


def _result(sums: PairSums, k: int, center: bool, repair: Repair, status: str) -> Subspace:
    d = sums.d
    N = sums.counts()
    found = from_covariance(
        covariance(sums, center=center), k, sums.means() if center else np.zeros(d), repair
    )
    report = {
        "samples": sums.rows,
        "attributes seen": int(np.trace(N)),
        "pairs never seen together": int(np.sum(np.triu(N == 0, 1))),
        "looks": np.diagonal(N).astype(int).tolist(),
    }
    return Subspace(
        found.components,
        found.explained_variance,
        found.mean,
        found.spectrum,
        status=status,
        report=report,
    )


def _refuse(
    d: int,
    k: int,
    r: int,
    samples: int | None,
    budget: float | None,
    prices: Prices | None,
    floor: float,
    epochs: int,
) -> Array:
    """Refuse bad parameters; return the price of each attribute, shape (d,)."""
    if d < 2 or not 1 <= k < d:
        raise ParameterError(f"k of subspace must be in 1..d-1, got k={k} and d={d}")
    if not 2 <= r <= d:
        raise ParameterError(
            f"per_sample must be in 2..{d}, got {r}; one attribute a sample cannot tell directions apart"
        )
    if samples is None and budget is None:
        raise ParameterError("subspace must know when to end; give budget or samples")
    if samples is not None and samples < 1:
        raise ParameterError(f"samples must be at least 1, got {samples}")
    if not 0 <= floor <= 1:
        raise ParameterError(f"floor must be in 0..1, got {floor}")
    if epochs < 1:
        raise ParameterError(f"epochs must be at least 1, got {epochs}")
    cost = (prices or Prices()).of("entry", np.zeros(d, np.int64), np.arange(d))
    least = float(np.sort(cost)[:r].sum())
    if budget is not None and not (np.isfinite(budget) and budget >= least):
        raise ParameterError(
            f"budget must buy at least one sample of {r} attributes, {least:g}; got {budget}"
        )
    return cost
