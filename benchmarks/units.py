"""Tables whose columns are in units of their own, half of them known: ours beside one matrix, means and imputers.

make bench NAME=units [ARGS="--first 500"]

Errors are of hidden cells, in standard deviations of their column. Imputers of scikit-learn get standardised columns.
Then cells are bought, three in ten: in units of the columns, as one matrix, and at random with the fit in units.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer

import entrywise as ew
from _shared import Bars, show
from entrywise.active import most_informative
from entrywise.estimators import LowRankImputer

TABLES = {"breast cancer": load_breast_cancer, "wine": load_wine}


def standardised(imputer):
    """Return what completes a table with an imputer, its columns on one scale."""

    def fill(X):
        center, scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        return imputer().fit_transform((X - center) / scale) * scale + center

    return fill


METHODS = {
    "complete": lambda X: ew.complete(X).to_dense(),
    "complete, the table turned": lambda X: ew.complete(X.T.copy()).to_dense().T,
    "complete, as one matrix": lambda X: ew.complete(X, units="one").to_dense(),
    "means of columns": lambda X: np.broadcast_to(np.nanmean(X, axis=0), X.shape),
    "LowRankImputer": lambda X: LowRankImputer().fit_transform(X),
    "KNNImputer": standardised(KNNImputer),
    "IterativeImputer": standardised(lambda: IterativeImputer(random_state=0, max_iter=20)),
}


PURCHASES = {
    "in units": {"units": "columns"},
    "as one matrix": {},
    "at random, fitted in units": {"units": "columns", "rule": "random"},
}


def purchases(bars, first):
    """Buy three cells in ten of each table; errors of the cells that nobody bought."""
    rows = []
    for name, load in TABLES.items():
        A = load().data.astype(np.float64)
        off = {how: [] for how in PURCHASES}
        for seed in range(first, first + 10):
            for how, params in PURCHASES.items():
                plan = most_informative(
                    A.shape, budget=float(int(0.3 * A.size)), rng=seed, **params
                )
                run = ew.Run(plan)
                hidden = np.ones(A.shape, bool)
                while (batch := run.ask()) is not None:
                    hidden[batch.rows, batch.cols] = False
                    run.tell(A[batch.rows, batch.cols])
                errors = ((run.result.to_dense() - A) / A.std(axis=0))[hidden]
                off[how].append(float(np.sqrt(np.mean(errors**2))))
        mean = {how: float(np.mean(errors)) for how, errors in off.items()}
        rows += [(name, how, mean[how], np.std(off[how])) for how in PURCHASES]
        ours = mean["in units"]
        bars.at_most(f"{name}, bought in units / as one matrix", ours / mean["as one matrix"], 0.6)
        random = mean["at random, fitted in units"]
        bars.at_most(f"{name}, bought in units / at random, same fit", ours / random, 1.0)
    columns = ("table", "bought", "error of the others, s.d.", "spread")
    show("three cells in ten bought, ten purchases", columns, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=500, help="first of ten seeds")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    bars, rows = Bars(), []
    for name, load in TABLES.items():
        A = load().data.astype(np.float64)
        found = {method: [] for method in METHODS}
        held = []
        for seed in range(asked.first, asked.first + 10):
            hidden = np.random.default_rng(seed).random(A.shape) < 0.5
            X = np.where(hidden, np.nan, A)
            for method, fill in METHODS.items():
                off = (fill(X) - A)[hidden] / np.broadcast_to(A.std(axis=0), A.shape)[hidden]
                found[method].append(float(np.sqrt(np.mean(off**2))))
            i, j = np.nonzero(hidden)
            low, high = ew.complete(X).interval(i, j, 0.9)
            held.append(float(np.mean((low <= A[i, j]) & (A[i, j] <= high))))
        mean = {method: float(np.mean(errors)) for method, errors in found.items()}
        rows += [(name, method, mean[method], np.std(found[method])) for method in METHODS]
        ours = mean["complete"]
        bars.at_most(f"{name}: error / the means'", ours / mean["means of columns"], 0.9)
        bars.at_most(
            f"{name}: error / the best imputer's",
            ours / min(mean["KNNImputer"], mean["IterativeImputer"]),
            1.1,
        )
        bars.at_most(f"{name}: turned / not", mean["complete, the table turned"] / ours, 1.05)
        bars.at_least(f"{name}: 90 % intervals hold", float(np.mean(held)), 0.88)
        bars.at_most(f"{name}: 90 % intervals hold", float(np.mean(held)), 0.93)
    show("half of a table hidden, ten splits", ("table", "method", "error, s.d.", "spread"), rows)
    purchases(bars, asked.first)
    bars.end()


if __name__ == "__main__":
    main()
