"""Named problems for examples, tests and benchmarks; every one is made from a seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrywise.oracles import MatrixOracle
from entrywise.queries import Array, Seed


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
    return np.asarray(rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n)) / np.sqrt(max(rank, 1)))


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
    """Return a -1/+1 matrix of k x l blocks, rows and columns shuffled, each entry flipped with probability `noise`."""
    rng = np.random.default_rng(seed)
    blocks = rng.choice([-1.0, 1.0], size=(k, l))
    U = blocks[rng.integers(k, size=m)][:, rng.integers(l, size=n)]
    return np.where(rng.random((m, n)) < noise, -U, U)


def bicluster_trials(m: int, n: int, k: int, l: int, noise: float = 0.0, seed: Seed = 0) -> list[tuple[int, int, int]]:
    """Return every entry of a :func:`biclusters` matrix once, as (i, j, y), in random order."""
    rng = np.random.default_rng(seed)
    U = biclusters(m, n, k, l, noise, rng)
    return [(int(t) // n, int(t) % n, int(U[t // n, t % n])) for t in rng.permutation(m * n)]


def binary_trials(seed: Seed = 0) -> list[tuple[int, int, int]]:
    """Return 60 trials of a noisy 8 x 9 matrix of 3 x 3 biclusters: the problem of small learners."""
    return bicluster_trials(8, 9, 3, 3, 0.05, seed)[:60]
