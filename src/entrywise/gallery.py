"""Named problems for examples, tests and benchmarks; every one is made from a seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.bounds.subspace import Law
from entrywise.exceptions import ParameterError
from entrywise.observations import Observations
from entrywise.oracles import BernoulliOracle, MatrixOracle, StreamOracle, TwoCostOracle
from entrywise.types import Array, Seed


def random_psd(n: int, rank: int, seed: Seed = 0, condition: float = 1.0) -> Array:
    """Return a random n x n PSD matrix of the given rank, its nonzero eigenvalues spread over `condition`."""
    rng = np.random.default_rng(seed)
    if rank == 0:
        return np.zeros((n, n))
    Q = np.linalg.qr(rng.standard_normal((n, rank)))[0]
    eigenvalues = np.geomspace(1.0, 1.0 / condition, rank)
    F = Q * np.sqrt(eigenvalues)
    return np.asarray(F @ F.T)


def random_low_rank(m: int, n: int, rank: int, seed: Seed = 0) -> Array:
    """Return a random m x n matrix of the given rank, entries of order one."""
    rng = np.random.default_rng(seed)
    return np.asarray(
        rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n)) / np.sqrt(max(rank, 1))
    )


def block_kernel(sizes: tuple[int, ...], seed: Seed = 0) -> Array:
    """Return a 0/1 kernel: 1 between points of the same block, rows shuffled."""
    rng = np.random.default_rng(seed)
    of = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return np.asarray(of[:, None] == of[None, :], dtype=np.float64)


def outliers(n: int, share: float = 0.1, dim: int = 20, seed: Seed = 0) -> Array:
    """Return n points of which a `share` are isolated: far from every cluster and from each other."""
    rng = np.random.default_rng(seed)
    far = round(share * n)
    centers = rng.standard_normal((10, dim)) * 2.0
    X = centers[rng.integers(10, size=n - far)] + 0.15 * rng.standard_normal((n - far, dim))
    lonely = rng.standard_normal((far, dim)) * 40.0
    return np.asarray(rng.permutation(np.vstack([X, lonely])))


def psd_oracle(seed: Seed = 0) -> Any:
    """Return an oracle over a 12 x 12 PSD matrix of rank 3: the problem of small PSD plans."""
    return MatrixOracle(random_psd(12, 3, seed))


def biclusters(m: int, n: int, k: int, l: int, noise: float = 0.0, seed: Seed = 0) -> Array:
    """Return a -1/+1 matrix of k x l blocks, rows and columns shuffled, each entry flipped with probability `noise`.

    The k kinds of rows differ from each other, and the l kinds of columns, where that is possible.
    """
    rng = np.random.default_rng(seed)
    blocks = rng.choice([-1.0, 1.0], size=(k, l))
    for _ in range(1000):
        if (
            k > 2**l
            or l > 2**k
            or (len(np.unique(blocks, axis=0)) == k and len(np.unique(blocks, axis=1).T) == l)
        ):
            break
        blocks = rng.choice([-1.0, 1.0], size=(k, l))
    U = blocks[rng.integers(k, size=m)][:, rng.integers(l, size=n)]
    return np.where(rng.random((m, n)) < noise, -U, U)


def bicluster_trials(
    m: int, n: int, k: int, l: int, noise: float = 0.0, seed: Seed = 0
) -> list[tuple[int, int, int]]:
    """Return every entry of a :func:`biclusters` matrix once, as (i, j, y), in random order."""
    rng = np.random.default_rng(seed)
    U = biclusters(m, n, k, l, noise, rng)
    return [(int(t) // n, int(t) % n, int(U[t // n, t % n])) for t in rng.permutation(m * n)]


def binary_trials(seed: Seed = 0) -> list[tuple[int, int, int]]:
    """Return 60 trials of a noisy 8 x 9 matrix of 3 x 3 biclusters: the problem of small learners."""
    return bicluster_trials(8, 9, 3, 3, 0.05, seed)[:60]


def pair_losses(family: str, n: int, rank: int, seed: Seed = 0) -> Array:
    """Return an n x n PSD matrix of chances in 0..1: how often neither item of a pair is taken.

    ``synthetic``: U U' with U uniform, scaled to a largest entry of 1 (the paper's appendix). ``bandit``: `rank` groups
    of users with random shares, each with its own uniform taste. ``coherent``: most items are much alike, and each
    direction is carried by three items alone, so that random columns miss it.
    """
    rng = np.random.default_rng(seed)
    U = rng.random((n, rank))
    if family == "bandit":
        return np.asarray((U * rng.dirichlet(np.full(rank, 5.0))) @ U.T)
    if family == "coherent":
        U = 0.45 + 0.07 * U
        for k in range(rank):
            few = slice(3 * k, 3 * k + 3)
            U[few] = rng.uniform(0.0, 0.1, U[few].shape)
            U[few, k] = rng.uniform(0.8, 1.0, len(U[few]))
        U = rng.permutation(U)
    elif family != "synthetic":
        raise ParameterError(f"family must be synthetic, bandit or coherent, got {family!r}")
    L = U @ U.T
    return np.asarray(L / L.max() if family == "synthetic" else L / max(1.0, float(L.max())))


def coin_oracle(seed: Seed = 0) -> Any:
    """Return coins over the 12 x 12 losses of pairs of items, of rank 2: the problem of small plans with repeated answers."""
    return BernoulliOracle(pair_losses("synthetic", 12, 2, seed), rng=np.random.default_rng(seed))


def crowd_oracle(seed: Seed = 0) -> Any:
    """Return labels 0 or 1 of 30 items by 6 workers of unlike skill: the problem of small plans over crowds."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, (30, 1))
    right = rng.random((30, 6)) < np.linspace(0.6, 0.95, 6)
    return MatrixOracle(np.where(right, truth, 1 - truth).astype(np.float64))


def sample_law(kind: str, d: int, k: int, seed: Seed = 0) -> Law:
    """Return a Gaussian law of samples near a k-dimensional subspace, with E|x|^2 = 1.

    `kind` says how the energy lies over the d attributes: ``few`` (3 k of them carry the signal), ``power``
    (sizes fall like 1 / rank), ``flat`` (all alike).
    """
    rng = np.random.default_rng(seed)
    size: Array = np.ones(d)
    if kind == "few":
        size = np.full(d, 0.02)
        size[rng.permutation(d)[: 3 * k]] = 1.0
    elif kind == "power":
        size = np.asarray(1.0 / (1.0 + rng.permutation(d)))
    elif kind != "flat":
        raise ParameterError(f"kind must be few, power or flat, got {kind!r}")
    B = rng.standard_normal((d, k)) * np.linspace(1.3, 0.8, k)
    if kind == "flat":
        B /= np.sqrt((B**2).sum(axis=1, keepdims=True))
    B *= size[:, None]
    noise = 0.3 * size
    scale = 1.0 / np.sqrt((B**2).sum() + (noise**2).sum())
    B, noise = B * scale, noise * scale

    def draw(m: int, rng: np.random.Generator) -> Array:
        return np.asarray(rng.standard_normal((m, k)) @ B.T + noise * rng.standard_normal((m, d)))

    return Law(draw, B @ B.T + np.diag(noise**2))


def seen_samples(seed: Seed = 0) -> Observations:
    """Return 400 samples of 10 attributes near a plane, four attributes seen of each: the problem of partial PCA."""
    rng = np.random.default_rng(seed)
    X = sample_law("flat", 10, 2, seed).draw(400, rng)
    return Observations.from_dense(np.where(np.argsort(rng.random(X.shape), axis=1) < 4, X, np.nan))


STREAM = (400, 10)  # samples and attributes of the stream below


def stream_oracle(seed: Seed = 0) -> Any:
    """Return a stream of samples with 10 attributes near a plane: the problem of small subspace plans."""
    samples, attributes = STREAM
    law = sample_law("few", attributes, 2, seed)
    return StreamOracle(law.draw(samples, np.random.default_rng(seed)))


def known_entries(seed: Seed = 0) -> Observations:
    """Return three fifths of a noisy 30 x 20 matrix of rank 2: the problem of small completers."""
    rng = np.random.default_rng(seed)
    A = random_low_rank(30, 20, 2, rng) + 0.1 * rng.standard_normal((30, 20))
    return Observations.from_dense(np.where(rng.random(A.shape) < 0.6, A, np.nan))


def random_rank_one(m: int, n: int, seed: Seed = 0, ratio: float = 10.0) -> tuple[Array, Array]:
    """Return positive factors x (m,) and y (n,), their logarithms uniform, entries within [1 / ratio, ratio]."""
    rng = np.random.default_rng(seed)
    half = np.log(ratio) / 2
    return np.exp(rng.uniform(-half, half, m)), np.exp(rng.uniform(-half, half, n))


def star_mask(m: int, n: int, k: int = 3) -> NDArray[np.bool_]:
    """Return where entries are known when the first k rows and columns are."""
    mask = np.zeros((m, n), bool)
    mask[:k] = mask[:, :k] = True
    return mask


def multiplicative_table(seed: Seed = 0) -> Observations:
    """Return a third of a noisy 30 x 20 table of rank one, one row and column whole: the problem of small rank-one fits."""
    rng = np.random.default_rng(seed)
    A = np.outer(*random_rank_one(30, 20, rng)) + 0.02 * rng.standard_normal((30, 20))
    known = (rng.random(A.shape) < 0.3) | star_mask(30, 20, 1)
    return Observations.from_dense(np.where(known, A, np.nan))


def multiplicative_oracle(seed: Seed = 0) -> Any:
    """Return an oracle over a noisy 8 x 6 table of rank one: the problem of small rank-one plans."""
    rng = np.random.default_rng(seed)
    return MatrixOracle(np.outer(*random_rank_one(8, 6, rng)) + 0.02 * rng.standard_normal((8, 6)))


def two_cost_oracle(seed: Seed = 0) -> Any:
    """Return two instruments over a 12 x 10 matrix of rank 2: the problem of small two-cost plans."""
    rng = np.random.default_rng(seed)
    return TwoCostOracle(
        random_low_rank(12, 10, 2, rng), entry_noise=0.05, column_noise=0.2, rng=rng
    )


def cells_oracle(seed: Seed = 0) -> Any:
    """Return an oracle over a 14 x 10 matrix of rank 2: the problem of small plans that buy cell by cell."""
    return MatrixOracle(random_low_rank(14, 10, 2, seed))
