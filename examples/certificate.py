"""
A certificate, and the error that nobody sees
=============================================

A kernel of 200 points is completed from ever more of its columns, from exact answers and from noisy ones. Each result
carries a certificate, worked out from the entries that were asked; the true error needs all of them, and only this
example knows it. Exact answers are certified to the point: the largest error of a positive semidefinite matrix stands
on its diagonal, which was asked.
"""

import numpy as np

import entrywise as ew
from entrywise import plot
from entrywise.active import adaptive_nystrom
from entrywise.oracles import KernelOracle, MatrixOracle

COLUMNS = range(2, 31, 4)


def run():
    X = np.random.default_rng(0).standard_normal((200, 2))
    everywhere = np.arange(200)
    truth = KernelOracle(X, "rbf", gamma=0.3).block(everywhere, everywhere)
    lines, entries = {}, []
    for name, noise in (("exact", 0.0), ("noise .001", 0.001)):
        promised, errors, entries = [], [], []
        for columns in COLUMNS:
            plan = adaptive_nystrom(200, rank=columns, noise=noise)
            found = ew.play(plan, MatrixOracle(truth, noise, rng=columns))
            entries.append(found.cost)
            promised.append(found.certificate.value)
            errors.append(np.abs(truth - found.to_dense()).max())
        lines[f"{name}: certified"], lines[f"{name}: true"] = promised, errors
        broken = np.sum(np.array(errors) > np.array(promised) * (1 + 1e-9))
        print(f"{name}: {len(errors)} certificates, {broken} broken")
    print(found.certificate)
    axes = plot.savings(entries, lines, error="largest error of an entry")
    for line in axes.get_lines()[1::2]:
        line.set(linestyle=":", color=plot.COLOURS["truth"])
    axes.legend(frameon=False)
    axes.set_yscale("log")
    axes.set_ylim(min(map(min, lines.values())) / 3, 3)
    axes.set_title("What is certified, and what is true", loc="left")
    axes.set_xlabel(f"entries asked, of {200 * 201 // 2:,}")
    return int(broken)


if __name__ == "__main__":
    run()
