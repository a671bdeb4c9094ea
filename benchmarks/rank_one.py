"""Rank-one completion: exactness, the rivals, certificates, intervals and the active rule.

make bench NAME=rank_one                  sizes of the paper, ten draws each
make bench NAME=rank_one ARGS=--quick     smaller sizes and fewer draws
make bench NAME=rank_one ARGS="--only growth [--family random]"    time an entry from 1e5 to 1e7 of them, a quarter of an hour
"""

from __future__ import annotations

import argparse

import numpy as np

from _shared import Bars, cpu, show
from entrywise import Observations, passive
from entrywise.active.rank_one import next_entries, rank_one
from entrywise.bounds.rank_one import Sensitivity, worst_matrix
from entrywise.gallery import random_rank_one, star_mask
from entrywise.linalg.laplacian import Laplacian
from entrywise.linalg.stationary import stationary
from entrywise.oracles import MatrixOracle
from entrywise.passive import alternating_minimization, log_least_squares
from entrywise.play import play
from entrywise.run import Run
from laplacian import FAMILIES, graph

SEEDS = range(9000, 9100)  # never used to tune anything
ACTIVE_SEEDS = range(71_000, 71_100)


def mask_of(kind, n, rng):
    if kind == "star":
        return star_mask(n, n, 3)
    k = np.arange(n)
    mask = np.zeros((n, n), bool)
    if kind == "random":
        while True:
            mask = rng.random((n, n)) < 10.0 / n
            if Observations.from_dense(np.where(mask, 1.0, np.nan)).components[0] == 1:
                return mask
    mask[k, k] = mask[k[1:], k[:-1]] = True
    if kind == "grid":
        mask[k[2:], k[:-2]] = mask[k[7:], k[:-7]] = True
    elif kind == "power law":
        p = 1.0 / np.arange(1, n + 1)
        mask |= rng.random((n, n)) < np.minimum(1.0, np.sqrt(np.multiply.outer(p, p)))
    return mask


def relative(found, A):
    return float(np.linalg.norm(found.to_dense() - A) / np.linalg.norm(A))


def draw(kind, n, delta, seed):
    rng = np.random.default_rng(seed)
    A = np.outer(*random_rank_one(n, n, rng))
    mask = mask_of(kind, n, rng)
    return A, Observations.from_dense(
        np.where(mask, A + delta * rng.uniform(-0.5, 0.5, A.shape), np.nan)
    )


def exactness(bars, n):
    worst = 0.0
    for kind in ("random", "grid", "path", "star", "power law"):
        for ratio in (10.0, 1e4):  # entries over 1e2 and 1e8
            rng = np.random.default_rng(SEEDS[0])
            x, y = random_rank_one(n, n, rng, ratio)
            A = np.outer(x * rng.choice([-1.0, 1.0], n), y * rng.choice([-1.0, 1.0], n))
            seen = Observations.from_dense(np.where(mask_of(kind, n, rng), A, np.nan))
            found = passive.rank_one(seen, certify=False)
            worst = max(worst, float(np.max(np.abs(found.to_dense() / A - 1.0))))
    bars.at_most(
        "noise-free: largest relative error of an entry, five families, entries over 1e8",
        worst,
        1e-12,
    )
    worst = 0.0
    for seed in SEEDS[:40]:
        rng = np.random.default_rng(seed)
        a = np.exp(rng.standard_normal((8, 9)))
        seen = Observations.from_dense(
            np.where((rng.random((8, 9)) < 0.5) | star_mask(8, 9, 1), a, np.nan)
        )
        B = np.zeros((len(seen), 17))
        B[np.arange(len(seen)), seen.rows] = B[np.arange(len(seen)), 8 + seen.cols] = 1.0
        z = np.linalg.lstsq(
            seen.values[:, None] * B, seen.values * np.log(seen.values), rcond=1e-14
        )[0]
        found = log_least_squares(seen, certify=False)
        worst = max(
            worst, float(np.abs(np.log(found.to_dense()) - z[:8, None] - z[None, 8:]).max())
        )
    bars.at_most("log least squares against a dense solve", worst, 1e-10)


def gth(n, i, j, forth, back):
    P = np.zeros((n, n))
    np.add.at(P, (i, j), forth)
    np.add.at(P, (j, i), back)
    for k in range(n - 1, 0, -1):
        P[:k, k] /= P[k, :k].sum()
        P[:k, :k] += np.multiply.outer(P[:k, k], P[k, :k])
    log_pi = np.zeros(n)
    for k in range(1, n):
        with np.errstate(divide="ignore"):
            terms = log_pi[:k] + np.log(P[:k, k])
        log_pi[k] = terms.max() + np.log(np.exp(terms - terms.max()).sum())
    return log_pi


def chain(bars, n):
    worst = 0.0
    for kind in ("random", "grid", "path", "star", "power law"):
        rng = np.random.default_rng(SEEDS[1])
        i, j = np.nonzero(mask_of(kind, n, rng))
        a = np.exp(1.5 * rng.standard_normal(len(i)))
        rates = 1.0 / (1.0 + a), a / (1.0 + a)
        gap = stationary(2 * n, i, n + j, *rates).log_pi - gth(2 * n, i, n + j, *rates)
        worst = max(worst, float(np.abs(gap - gap.mean()).max()))
    bars.at_most("chain against GTH elimination, max |d log pi|", worst, 1e-12)


def rivals(bars, n, draws):
    rows, worst, small = [], 0.0, 0.0
    for kind in ("random", "star"):
        for delta in (1e-4, 1e-2, 0.1, 0.3, 1.0, 3.0):
            errors = []
            for seed in SEEDS[:draws]:
                A, seen = draw(kind, n, delta, seed)
                plain = log_least_squares(seen, certify=False)
                fits = (
                    passive.rank_one(seen, certify=False),
                    plain,
                    alternating_minimization(seen),
                )
                errors.append([relative(found, A) for found in fits])
            ours, plain, alternating = np.median(errors, axis=0)
            ratio = float(ours / min(plain, alternating))
            rows.append((kind, delta, float(ours), float(plain), float(alternating), ratio))
            worst = max(worst, ratio)
            if kind == "star" and delta == 1e-4:
                small = float(plain / alternating)
    show(
        f"relative error, {n} x {n}, median of {draws}",
        (
            "mask",
            "delta",
            "refined",
            "log least squares",
            "alternating, 1000",
            "refined / best rival",
        ),
        rows,
    )
    bars.at_most("refined over the better rival, delta <= 3, random and star", worst, 1.01)
    bars.at_most("log least squares over alternating minimisation, star, delta 1e-4", small, 0.2)


def certificates(bars, draws):
    ratios, covered, expected = [], [], []
    every = np.arange(60)[:, None], np.arange(60)[None, :]
    for seed in SEEDS[:draws]:
        for kind in ("random", "star"):
            rng = np.random.default_rng(seed)
            x, y = random_rank_one(60, 60, rng)
            rows, cols = np.nonzero(mask_of(kind, 60, rng))
            truth = np.outer(*worst_matrix(rows, cols, x, y, 1e-6))
            seen = Observations.from_triplets(rows, cols, x[rows] * y[cols], (60, 60))
            error = np.linalg.norm(passive.rank_one(seen, certify=False).to_dense() - truth)
            constant = Sensitivity(rows, cols, x, y).worst(1e-8)[0]
            ratios.append(
                abs(error**2 / np.sum((seen.values - truth[rows, cols]) ** 2) / constant - 1.0)
            )
            A, seen = draw(kind, 60, 0.1, 1000 + seed)
            found = passive.rank_one(seen)
            low, high = found.interval(*every, 0.95, of="truth")
            covered.append(float(np.mean((low <= A) & (high >= A))))
            expected.append(np.linalg.norm(found.to_dense() - A) / found.certificates[1].value)
    bars.at_most("worst direction over lambda_max, |ratio - 1| at 1e-6", float(max(ratios)), 1e-3)
    bars.at_least("coverage of 95 % intervals for the truth", float(np.mean(covered)), 0.93)
    bars.at_most("coverage of 95 % intervals for the truth", float(np.mean(covered)), 0.97)
    bars.at_most(
        "root mean square of error over expected error, away from 1",
        abs(float(np.sqrt(np.mean(np.square(expected)))) - 1.0),
        0.1,
    )


def tree_mask(kind, n, rng):
    mask = np.zeros((n, n), bool)
    if kind == "star":
        return star_mask(n, n, 1)
    if kind == "path":
        k = np.arange(n)
        mask[k, k] = mask[k[1:], k[:-1]] = True
        return mask
    rows, cols = [int(rng.integers(n))], []
    lines = [(0, k) for k in range(n) if k != rows[0]] + [(1, k) for k in range(n)]
    lines = [lines[k] for k in rng.permutation(len(lines))]
    column = next(line for line in lines if line[0] == 1)
    lines.sort(key=lambda line: line != column)  # a column comes first
    for side, k in lines:
        if side:
            mask[rng.choice(rows), k] = True
            cols.append(k)
        else:
            mask[k, rng.choice(cols)] = True
            rows.append(k)
    return mask


def own_start(noisy, seed):
    """Return the entries that the plan asks for to link everything, before its rule begins."""
    mask = np.zeros(noisy.shape, bool)
    run = Run(rank_one(noisy.shape, extra=0, rng=seed))
    while (batch := run.ask()) is not None:
        mask[batch.rows, batch.cols] = True
        run.tell(noisy[batch.rows, batch.cols])
    return mask


def expected(w, A):
    """Return tr(K L^+) of the weights `w` on the entries of A, and how fast it falls with each of them."""
    m, n = A.shape
    inverse, full = (np.zeros((m + n, m + n)) for _ in range(2))
    for B, weights in ((inverse, w * A**2), (full, A**2)):
        B[:m, m:], B[m:, :m] = -weights, -weights.T
        B[range(m + n), range(m + n)] = np.r_[weights.sum(axis=1), weights.sum(axis=0)]
    inverse = np.linalg.pinv(inverse, hermitian=True)
    M = inverse @ full @ inverse
    d = np.diag(M)
    return float(np.sum(full * inverse)), A**2 * (d[:m, None] + d[None, m:] - 2.0 * M[:m, m:])


def no_rule_does_better(first, more, A, steps=300):
    """Return a lower bound on tr(K L^+) over all choices of `more` entries beyond `first`, by convex duality.

    Weights between 0 and 1 in place of yes and no make the problem convex; what Frank and Wolfe's steps leave open is
    taken off.
    """
    w, best = np.where(first, 1.0, more / (~first).sum()), 0.0
    for step in range(steps):
        value, gain = expected(w, A)
        corner = first.astype(float)
        corner.ravel()[np.argsort(np.where(first, -1.0, gain).ravel())[::-1][:more]] = 1.0
        best = max(best, value - float(np.sum(gain * (corner - w))))
        w += 2.0 / (step + 4) * (corner - w)
    return best


def active(bars, draws):
    """The rule after 80 further entries beside random revealing from the same start, and beside the best design."""
    rows, whole = [], []
    for start in ("path", "tree", "star", "own"):
        errors, designs = [], []
        for seed in ACTIVE_SEEDS[:draws]:
            rng = np.random.default_rng(seed)
            A = np.outer(*random_rank_one(40, 40, rng))
            noisy = A + 0.05 * rng.uniform(-0.5, 0.5, A.shape)
            first = own_start(noisy, seed) if start == "own" else tree_mask(start, 40, rng)
            random, ours = first.copy(), first.copy()
            random.ravel()[rng.permutation(np.flatnonzero(~first.ravel()))[:80]] = True
            while ours.sum() < random.sum():
                ours[next_entries(Observations.from_dense(np.where(ours, noisy, np.nan)))] = True
            fits = [
                passive.rank_one(
                    Observations.from_dense(np.where(mask, noisy, np.nan)), certify=False
                )
                for mask in (ours, random)
            ]
            errors.append([relative(found, A) for found in fits])
            mean = [expected(mask.astype(float), A)[0] for mask in (ours, random)]
            designs.append(np.sqrt([*mean, no_rule_does_better(first, 80, A)]))
            if start == "tree":
                found = play(rank_one((40, 40), extra=80, rng=seed), MatrixOracle(noisy))
                whole.append([relative(found, A), errors[-1][1]])
        a, b = np.median(errors, axis=0)
        ours, random, best = np.array(designs).T
        possible = float(np.median(best / random))
        rows.append(
            (
                f"from {'its own' if start == 'own' else 'a ' + start}",
                a,
                b,
                a / b,
                possible,
                np.median(ours / best),
            )
        )
        if start == "own":
            bars.at_most(
                "leverage over the best design there can be, from the plan's own start",
                np.median(ours / best),
                1.1,
            )
        else:
            bars.at_most(
                f"leverage over random revealing, 80 entries from a {start}", float(a / b), 0.6
            )
    a, b = np.median(whole, axis=0)
    rows.append(
        ("the whole plan, against a random tree and 80 random entries", a, b, a / b, "", "")
    )
    bars.at_most("the whole plan over a random tree and 80 random entries", float(a / b), 0.6)
    columns = (
        "start",
        "leverage",
        "random",
        "ratio",
        "no rule's expected ratio is below",
        "leverage / best design",
    )
    show(f"active, 40 x 40, delta 0.05, median of {draws}", columns, rows)


def products(family, edges, seed):
    """Return the known entries of a table of products whose graph is of a family; rows and columns are its two colours."""
    rng = np.random.default_rng(seed)
    n, i, j = graph(family, edges, rng)
    colour = np.rint(Laplacian(n, i, j).walk(np.ones(len(i)))).astype(np.int64) % 2
    place = np.where(colour == 1, np.cumsum(colour), np.cumsum(1 - colour)) - 1
    turned = colour[i] == 1
    rows, cols = np.where(turned, place[j], place[i]), np.where(turned, place[i], place[j])
    shape = n - int(colour.sum()), int(colour.sum())
    x, y = (np.exp(0.5 * rng.standard_normal(size)) for size in shape)
    values = x[rows] * y[cols] + 0.1 * rng.standard_normal(len(rows))
    return Observations.from_triplets(rows, cols, values, shape, duplicates="first")


def growth(bars, families, sizes):
    """Time rank_one, certificates included, an entry, as tables grow; beside it one product with the same entries.

    The product, scipy's, is what the memory allows: its entries are in order, the vector's are read where they lie.
    """
    passive.rank_one(products("grid", 30_000, 1))  # compiled, or loaded
    rows = []
    for family in families:
        each, plain = [], []
        for size in sizes:
            seen = products(family, size, 72)
            A, ones = seen.to_csr(), np.ones(seen.shape[1])
            plain.append(1e6 * cpu(lambda A=A, x=ones: A @ x, repeat=5)[0] / len(seen))
            repeat = max(2, min(5, 1_000_000 // size))
            seconds, found = cpu(lambda s=seen: passive.rank_one(s), repeat=repeat)
            each.append(1e6 * seconds / len(seen))
            steps = found.report["refinements"], found.report["iterations"]
            rows.append(
                (family, len(seen), each[-1], each[-1] / each[0], *steps, plain[-1] / plain[0])
            )
            print(*rows[-1], flush=True)
        bars.at_most(
            f"time an entry, {sizes[-1]:g} over {sizes[0]:g}: {family}", each[-1] / each[0], 2.5
        )
    columns = (
        "graph", "entries", "us an entry, CPU", "growth", "refinements", "iterations", "growth of a product",
    )  # fmt: skip
    show("rank_one, certificates included", columns, rows)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=["growth"])
    parser.add_argument("--family", choices=FAMILIES, action="append", help="of growth")
    args = parser.parse_args()
    bars = Bars()
    if args.only == "growth":
        sizes = (100_000, 1_000_000) if args.quick else (100_000, 1_000_000, 10_000_000)
        growth(bars, args.family or FAMILIES, sizes)
        bars.end()
    exactness(bars, 100 if args.quick else 400)
    chain(bars, 60 if args.quick else 200)
    rivals(bars, 300 if args.quick else 1000, 4 if args.quick else 10)
    certificates(bars, 5 if args.quick else 30)
    active(bars, 3 if args.quick else 20)
    bars.end()


if __name__ == "__main__":
    main()
