"""Maps of partly evaluated kernels: t-SNE from n (r + 1) entries against the full kernel and a converged soft-impute."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_digits

import entrywise as ew
from _shared import Bars, show
from entrywise.active import adaptive_nystrom
from entrywise.apply.kernels import kernel_pca, kernel_tsne, neighbour_accuracy
from entrywise.oracles import MatrixOracle
from entrywise.passive import soft_impute

RANK = 20


def kernel_of(X):
    squares = pdist(X, "sqeuclidean")
    return np.exp(-squareform(squares) / np.median(squares))


def sampled(K, budget, rng):
    """Return `budget` random entries of the upper triangle, mirrored into the lower one."""
    i, j = np.triu_indices(len(K))
    pick = rng.permutation(len(i))[:budget]
    i, j = i[pick], j[pick]
    off = i != j
    rows, cols = np.r_[i, j[off]], np.r_[j, i[off]]
    return ew.Observations.from_triplets(rows, cols, K[rows, cols], K.shape)


PENALTY: dict[str, float] = {}


def completed(K, budget, rng, name):
    """Return a converged soft-impute.

    On the first subset of each data set its penalty is the best of a warm-started path on held-out entries; the
    other subsets, which have the same size and scale, are fitted with that one.
    """
    seen = sampled(K, budget, rng)
    if name not in PENALTY:
        PENALTY[name] = soft_impute(seen, center="none", max_rank=40, tol=1e-4).report["penalty"]
    return soft_impute(seen, PENALTY[name], center="none", max_rank=40, tol=1e-6, sweeps=1500)


def one(X, labels, seed, rows, name):
    K = kernel_of(X)
    n = len(K)
    budget = n * (RANK + 1)
    greedy = ew.play(adaptive_nystrom(n, rank=RANK), MatrixOracle(K), budget=budget)
    soft = completed(K, budget, np.random.default_rng(seed), name)
    scores = []
    for kernel in (K, greedy, soft):
        Y = kernel_tsne(kernel, rng=0)
        scores.append(neighbour_accuracy(Y, labels))
    tens = [neighbour_accuracy(kernel_pca(k, 10), labels) for k in (K, greedy, soft)]
    error = [np.linalg.norm(k.to_dense() - K) / np.linalg.norm(K) for k in (greedy, soft)]
    rows.append((name, seed, *scores, *tens, *error, PENALTY[name]))
    print(*(f"{x:.4g}" if isinstance(x, float) else x for x in rows[-1]), flush=True)
    return scores


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two subsets each")
    parser.add_argument("--only", choices=["digits", "MNIST2500"])
    given = parser.parse_args()
    count = 2 if given.quick else 5
    sets = {"digits": load_digits(return_X_y=True)}
    folder = os.environ.get("ENTRYWISE_DATA")
    if folder:
        with np.load(Path(folder) / "mnist2500" / "mnist2500.npz") as file:
            sets["MNIST2500"] = (file["pixels"] / 255.0, file["labels"])
    bars, rows = Bars(), []
    for name, (X, labels) in sets.items():
        if given.only not in (None, name):
            continue
        found = []
        for seed in range(100, 100 + count):
            pick = np.random.default_rng(seed).permutation(len(X))[:800]
            found.append(one(X[pick], labels[pick], seed, rows, name))
        full, ours, soft = np.median(found, axis=0)
        bars.at_most(f"{name}: full minus ours, t-SNE kNN", full - ours, 0.05)
        bars.at_least(f"{name}: ours minus soft-impute, t-SNE kNN", ours - soft, 0.08)
    columns = (
        "data",
        "seed",
        "t-SNE full",
        "ours",
        "soft",
        "PCA-10 full",
        "ours",
        "soft",
        "error",
        "soft",
        "penalty",
    )
    show("kNN accuracy on maps of 800 points from 21 n entries", columns, rows)
    bars.end()
