"""Maps of partly evaluated kernels: t-SNE from n (r + 1) entries against the full kernel and a converged soft-impute.

Ours twice: distances of the completed kernel alone, and distances to the landmarks (the kernel is known to be radial),
which the bars look at. So that knowing as much is not what makes the difference, soft-impute is also given the
logarithms, on the first subsets of each data set.
"""

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
FIRST = 500  # seeds; 100-104 were looked at before landmarks came, 300-305 while they did
WITH_LOGS = 2  # subsets on which soft-impute completes the logarithms as well


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


def completed(seen, name):
    """Return a converged soft-impute.

    On the first subset of each data set its penalty is the best of a warm-started path on held-out entries; the
    other subsets, which have the same size and scale, are fitted with that one.
    """
    if name not in PENALTY:
        PENALTY[name] = soft_impute(seen, center="none", max_rank=40, tol=1e-4).report["penalty"]
    return soft_impute(seen, PENALTY[name], center="none", max_rank=40, tol=1e-6, max_sweeps=1500)


def logarithms(seen, name, labels):
    """Return the accuracy of the map from soft-impute's completion of -log K, squared distances."""
    logs = ew.Observations.from_triplets(seen.rows, seen.cols, -np.log(seen.values), seen.shape)
    D = np.maximum(completed(logs, f"{name}, logs").to_dense(), 0.0)
    np.fill_diagonal(D, 0.0)
    return neighbour_accuracy(
        kernel_tsne(-0.5 * D, rng=0), labels
    )  # inner products up to what distances do not see


def one(X, labels, seed, rows, name, logs):
    K = kernel_of(X)
    n = len(K)
    budget = n * (RANK + 1)
    greedy = ew.play(adaptive_nystrom(n, rank=RANK), MatrixOracle(K), budget=budget)
    seen = sampled(K, budget, np.random.default_rng(seed))
    soft = completed(seen, name)
    maps = ((K, False), (greedy, True), (greedy, False), (soft, False))
    scores = [
        neighbour_accuracy(kernel_tsne(kernel, rng=0, radial=radial), labels)
        for kernel, radial in maps
    ]
    scores.append(logarithms(seen, name, labels) if logs else float("nan"))
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
        for seed in range(FIRST, FIRST + count):
            pick = np.random.default_rng(seed).permutation(len(X))[:800]
            found.append(one(X[pick], labels[pick], seed, rows, name, seed < FIRST + WITH_LOGS))
        full, ours, plain, soft, _ = np.median(found, axis=0)
        bars.at_most(f"{name}: full minus ours, t-SNE kNN", full - ours, 0.05)
        bars.at_least(f"{name}: ours minus soft-impute, t-SNE kNN", ours - soft, 0.08)
        print(
            f"{name}, medians: full minus the completed kernel alone {full - plain:.4f}, that minus soft-impute {plain - soft:.4f}"
        )
        part = np.array(found)[:WITH_LOGS]
        print(f"{name}, first {WITH_LOGS}: ours minus soft-impute of logarithms {np.median(part[:, 1] - part[:, 4]):.4f}, "
              f"the full kernel's {np.median(part[:, 0] - part[:, 4]):.4f}")  # fmt: skip
    columns = (
        "data", "seed", "t-SNE full", "ours", "ours, kernel", "soft", "soft, logs", "PCA-10 full", "ours", "soft", "error",
        "soft", "penalty",
    )  # fmt: skip
    show("kNN accuracy on maps of 800 points from 21 n entries", columns, rows)
    bars.end()
