"""The kernel demo: complete the RBF kernel of handwritten digits from 3 % of its entries."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from entrywise.cli._shared import Format, emit, say

if TYPE_CHECKING:
    from entrywise.types import Array, Indices


def kernel_demo(columns: int, seed: int, out: Path, format: Format) -> None:
    """Complete the 1797 x 1797 kernel of scikit-learn's digits, with a certificate, beside random columns."""
    from sklearn.datasets import load_digits

    from entrywise.active import adaptive_nystrom, literal_adaptive_nystrom
    from entrywise.cli.kernel import median_square
    from entrywise.oracles import KernelOracle
    from entrywise.play import play

    digits = load_digits()
    X = digits.data
    n = len(X)
    gamma = 0.1 / median_square(X, seed)
    budget = n * (columns + 1) - columns * (columns + 1) // 2
    say(
        f"An RBF kernel of {n} handwritten digits: {n * n:,} entries. We pay for {budget:,} of them ({budget / n**2:.1%})."
    )
    shuffled = np.random.default_rng(seed).permutation(n)
    rules = {
        "adaptive (greedy)": (KernelOracle(X, gamma=gamma), adaptive_nystrom(n), np.arange(n)),
        "adaptive (random pivots)": (
            KernelOracle(X, gamma=gamma),
            adaptive_nystrom(n, order="random", rng=seed),
            np.arange(n),
        ),
        "random columns": (
            KernelOracle(X[shuffled], gamma=gamma),
            literal_adaptive_nystrom(n),
            shuffled,
        ),
    }
    truth = KernelOracle(X, gamma=gamma)
    rows, curves, bought = [], {}, {}
    for name, (oracle, plan, index) in rules.items():
        say(name)
        found = play(plan, oracle, budget=budget, progress=True)
        curves[name] = _curve(found.factor)
        bought[name] = index[found.pivots]
        F = np.empty_like(found.factor)
        F[index] = found.factor
        true = max(
            float(np.abs(truth.block(part, np.arange(n)) - F[part] @ F.T).max())
            for part in np.array_split(np.arange(n), 8)
        )
        rows.append(
            (
                name,
                int(found.cost),
                f"{found.cost / n**2:.2%}",
                float(found.certificate.value),
                true,
            )
        )
    emit(
        ("rule", "entries asked", "share", "certified max error", "true max error"),
        rows,
        format,
        title="Digits kernel",
    )
    _draw(out, np.argsort(digits.target, kind="stable"), bought["adaptive (greedy)"], curves)
    say(f"picture: {out.resolve()}")


def _curve(factor: Array) -> tuple[Array, Array]:
    """Return (entries bought, certified largest error) after each column."""
    n, k = factor.shape
    left = 1.0 - np.cumsum(factor**2, axis=1)  # the diagonal of an RBF kernel is one
    count = np.arange(1, k + 1)
    return n + count * n - count * (count + 1) / 2, left.max(axis=0)


def _draw(
    path: Path, by_class: Indices, pivots: Indices, curves: dict[str, tuple[Array, Array]]
) -> None:
    """Draw which entries were bought and how the error falls for each rule."""
    from entrywise import plot

    n = len(by_class)
    figure, ((left, right),) = plot.figure(columns=2, width=5.2, height=4.6)
    place = np.empty(n, int)
    place[by_class] = np.arange(n)
    at = place[pivots]
    left.vlines(at, 0, n, color="tab:blue", lw=0.7)
    left.hlines(at, 0, n, color="tab:blue", lw=0.7, alpha=0.25)
    left.plot([0, n], [0, n], color="tab:blue", lw=0.7)
    left.set(
        xlim=(0, n),
        ylim=(n, 0),
        aspect="equal",
        xlabel="digit, sorted by class",
        ylabel="digit, sorted by class",
    )
    left.set_title("entries bought (faint: known by symmetry)", fontsize=10)
    for name, (entries, error) in curves.items():
        right.plot(100 * entries / n**2, error, label=name)
    right.set(
        yscale="log",
        xlabel="entries bought, % of the matrix",
        ylabel="certified largest error of an entry",
    )
    right.set_title("error against entries bought", fontsize=10)
    right.grid(alpha=0.3, which="both")
    right.legend(frameon=False)
    plot.save(path, figure)
