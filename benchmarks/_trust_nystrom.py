"""Certificates of adaptive Nyström completion against the true error, which the benchmark knows."""

from __future__ import annotations

import numpy as np

from _trust import Claims
from entrywise.active import adaptive_nystrom, literal_adaptive_nystrom
from entrywise.exceptions import NotPSD
from entrywise.oracles import MatrixOracle
from entrywise.play import play

SIZES, RANKS = (40, 100, 200), (3, 8, 20)


def matrix(kind, rng):
    """Return a matrix of one of the families."""
    n, r = int(rng.choice(SIZES)), int(rng.choice(RANKS))
    if kind == "low rank":
        G = rng.standard_normal((n, r))
        return G @ G.T
    if kind == "ill conditioned":
        Q = np.linalg.qr(rng.standard_normal((n, r)))[0]
        return (Q * np.geomspace(1, 10 ** -rng.uniform(4, 14), r)) @ Q.T
    if kind == "nearly equal rows":
        G = rng.standard_normal((n, r))
        G[1] = G[0] + 10 ** -rng.uniform(3, 7) * rng.standard_normal(r)
        return G @ G.T
    if kind == "polynomial":
        V = np.vander(rng.random(n), min(r, 12))
        return V @ V.T
    X = rng.standard_normal((n, int(rng.choice((1, 2, 5)))))
    square = ((X[:, None] - X[None]) ** 2).sum(axis=-1)
    K = np.exp(-rng.uniform(0.05, 1.0) * square)
    if kind == "slightly indefinite":
        K += 10 ** -rng.uniform(3, 7) * np.diag(rng.choice((-1.0, 1.0), n))
    return K


def plans(n, seed, **given):
    return {
        "greedy": adaptive_nystrom(n, rng=seed, **given),
        "given order": literal_adaptive_nystrom(n, **given),
        "random": adaptive_nystrom(n, order="random", rng=seed, **given),
    }


FAMILIES = ("low rank", "ill conditioned", "nearly equal rows", "polynomial", "kernel")


def exact(claims: Claims) -> None:
    """Exact answers: no certificate may lie below the true error, and it should not be far above."""
    wrong, loose, refused, false_alarm = [], [], 0, 0
    for k in range(claims.problems(1100, 40)):
        rng = np.random.default_rng([claims.seed, 4, k])
        A = matrix(FAMILIES[k % len(FAMILIES)], rng)
        A = 0.5 * (A + A.T)
        n = len(A)
        stop = {} if k % 2 else {"rank": int(rng.integers(1, n // 4))}
        for plan in plans(n, k, **stop).values():
            try:
                found = play(plan, MatrixOracle(A))
            except NotPSD:
                refused += 1
                continue
            error = np.abs(A - found.to_dense()).max()
            if not np.isfinite(found.certificate.value):
                continue  # the given order with a known rank leaves part of the diagonal unasked
            wrong.append(error > found.certificate.value)
            false_alarm += found.report["clipped"] > 0
            if error > found.report["margin"]:
                loose.append(found.certificate.value / error)
    claims.figure("nystrom", "exact answers: violations", int(np.sum(wrong)), len(wrong), high=0)
    claims.figure("nystrom", "certificate over error above round-off (median)", np.median(loose), len(loose), high=10)  # fmt: skip
    claims.figure("nystrom", "PSD matrices called indefinite", false_alarm, len(wrong), high=0)
    claims.figure("nystrom", "PSD matrices refused (given order, singular to round-off)", refused, len(wrong) + refused)  # fmt: skip


def noisy(claims: Claims) -> None:
    """Answers with noise, stated: the certificate is promised for 95 % of runs."""
    runs = claims.problems(400, 20)
    for name in ("greedy", "given order", "random"):
        wrong, loose = [], []
        for k in range(runs):
            rng = np.random.default_rng([claims.seed, 5, k])
            A = matrix(("low rank", "kernel")[k % 2], rng)
            noise = np.diag(A).max() * 10 ** -rng.uniform(1.5, 6)
            E = np.triu(rng.normal(0, noise, A.shape))
            seen = A + E + np.triu(E, 1).T
            try:
                found = play(plans(len(A), k, noise=noise)[name], MatrixOracle(seen))
            except NotPSD:
                continue
            error = np.abs(A - found.to_dense()).max()
            wrong.append(error > found.certificate.value)
            loose.append(found.certificate.value / error)
        claims.share("nystrom", f"noise stated, {name}: violations", wrong, high=0.05)
        claims.figure("nystrom", f"noise stated, {name}: certificate over error", np.median(loose), len(loose), high=10)  # fmt: skip


def indefinite(claims: Claims) -> None:
    """No PSD matrix: either the certificate says that it holds nothing, or 20 more entries find it out."""
    told, share = [], []
    for k in range(claims.problems(300, 20)):
        rng = np.random.default_rng([claims.seed, 6, k])
        A = matrix("slightly indefinite", rng)
        if k % 2:  # damage where the columns did not look
            i, j = rng.integers(0, len(A), (2, len(A) ** 2 // 10))
            A[i, j] += 0.1
            A = np.maximum(A, A.T)
            np.fill_diagonal(A, 1.5)
        try:
            found = play(adaptive_nystrom(len(A), rank=10, rng=k, verify=20), MatrixOracle(A))
        except NotPSD:
            continue
        error = np.abs(A - found.to_dense())
        first, last = found.certificate, found.certificates[2]
        beyond = error > first.value
        np.fill_diagonal(beyond, False)
        left = np.setdiff1d(np.arange(len(A)), found.pivots)
        part = beyond[np.ix_(left, left)]
        wrong = part.sum() / (len(left) * (len(left) - 1))
        told.append("not checked on" in first.assumes[0])
        share.append(wrong > last.value)
    claims.figure("nystrom", "indefinite: the sentence names what was not checked", np.mean(told), len(told), low=1)  # fmt: skip
    claims.share("nystrom", "verify=20: share of wrong entries above what it excludes", share, high=0.05)  # fmt: skip


def nystrom(claims: Claims) -> None:
    exact(claims)
    noisy(claims)
    indefinite(claims)
