"""
Filling a table, with error bars
================================

Complete a noisy table of which a third is known, look at how often the intervals cover, and fold in
a row that was not in the fit.
"""

import numpy as np

import entrywise as ew
from entrywise import metrics, plot


def run():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((301, 3)) @ rng.standard_normal((3, 120)) + rng.standard_normal(
        (301, 1)
    )
    Y = A + 0.3 * rng.standard_normal(A.shape)  # what an instrument would say
    known = rng.random(A.shape) < 0.33

    seen = ew.Observations.from_dense(np.where(known, Y, np.nan)[:300])
    found = ew.complete(seen)
    print(found.report["method"], "of rank", found.rank, "-", "; ".join(found.report["reasons"]))
    print(f"noise {found.report['noise']:.3f}, held-out error {found.report['held_out_rmse']:.3f}")

    unseen = ew.Observations.from_dense(np.where(known, np.nan, Y)[:300])
    covered = metrics.coverage(found, unseen, 0.9)
    print(f"90 % intervals cover {covered:.1%} of {len(unseen)} answers that the fit never saw")

    new = found.fold_in(ew.Observations.from_dense(np.where(known, Y, np.nan)[300:]))
    error = metrics.rmse(new.to_dense(), A[300:])
    print(
        f"a new row, from {int(new.row_counts[0])} entries: error {error:.3f} against a spread of {A[300].std():.3f}"
    )
    plot.map(found, seen)
    plot.map(found, show="doubt")
    plot.coverage(found, unseen)
    return covered, error


if __name__ == "__main__":
    run()
