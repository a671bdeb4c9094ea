"""Laws that every completer obeys.

A completer is a function from :class:`~entrywise.observations.Observations` to a
:class:`~entrywise.results.LowRank`; a law takes one and some observations, and raises AssertionError with a sentence
when it is broken.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from entrywise.observations import Observations
from entrywise.results import LowRank

Completer = Callable[[Observations], LowRank]
Law = Callable[[Completer, Observations], None]


def _probe(found: LowRank) -> np.ndarray:
    m, n = found.shape
    return found.entries(np.arange(m)[:, None], np.arange(n)[None, :])


def has_the_shape(completer: Completer, seen: Observations) -> None:
    """The result is a LowRank of the observations' shape, in factors, finite where rows and columns are linked."""
    found = completer(seen)
    assert isinstance(found, LowRank), (
        f"a completer must return a LowRank, got {type(found).__name__}"
    )
    assert found.shape == seen.shape, (
        f"the result has shape {found.shape}, the observations {seen.shape}"
    )
    for f in fields(found):
        value = getattr(found, f.name)
        dense = (
            isinstance(value, np.ndarray)
            and value.size >= seen.shape[0] * seen.shape[1] > 100
            and value.ndim == 2
        )
        assert not dense or value.shape[1] <= min(seen.shape), f"{f.name} is an m x n array"
    assert np.all(np.isfinite(found.entries(seen.rows, seen.cols))), (
        "an observed entry has no finite completion"
    )


def is_repeatable(completer: Completer, seen: Observations) -> None:
    """Two calls give the same numbers, whatever global randomness does."""
    first = _probe(completer(seen))
    np.random.seed(54321)  # noqa: NPY002  a law about global randomness must touch it
    assert np.array_equal(first, _probe(completer(seen)), equal_nan=True), (
        "two calls gave different numbers"
    )


def leaves_observations_alone(completer: Completer, seen: Observations) -> None:
    """The caller's arrays are as they were."""
    before = [np.array(x) for x in (seen.rows, seen.cols, seen.values, seen.noise_array())]
    completer(seen)
    for old, new in zip(
        before, (seen.rows, seen.cols, seen.values, seen.noise_array()), strict=True
    ):
        assert np.array_equal(old, new), "the completer changed the observations"


def keeps_labels(completer: Completer, seen: Observations) -> None:
    """Labels of rows and columns come back."""
    m, n = seen.shape
    named = replace(
        seen,
        row_labels=tuple(f"r{i}" for i in range(m)),
        col_labels=tuple(f"c{j}" for j in range(n)),
    )
    found = completer(named)
    assert found.row_labels == named.row_labels, "the row labels were lost"
    assert found.col_labels == named.col_labels, "the column labels were lost"


def fits_better_than_the_mean(completer: Completer, seen: Observations) -> None:
    """The known entries are fitted better than by their mean."""
    found = completer(seen)
    error = np.mean((found.entries(seen.rows, seen.cols) - seen.values) ** 2)
    assert error < np.var(seen.values), (
        f"mean squared error {error:.3g}, the mean alone has {np.var(seen.values):.3g}"
    )


def does_not_depend_on_order(completer: Completer, seen: Observations) -> None:
    """The order in which entries are listed changes nothing but round-off (and what was held out at random)."""
    order = np.random.default_rng(0).permutation(len(seen))
    first, second = _probe(completer(seen)), _probe(completer(seen.take(order)))
    scale = np.std(seen.values)
    assert np.nanmax(np.abs(first - second)) < 0.2 * scale, (
        "another order of the entries gave another matrix"
    )


def survives_saving(completer: Completer, seen: Observations) -> None:
    """A saved result comes back with the same entries."""
    found = completer(seen)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.npz"
        found.save(path)
        again = type(found).load(path)
    assert np.array_equal(_probe(found), _probe(again), equal_nan=True), (
        "the saved result has other entries"
    )


def says_how(completer: Completer, seen: Observations) -> None:
    """The report names the method; its keys are names."""
    report = completer(seen).report
    assert "method" in report, "the report does not name its method"
    assert all(key.isidentifier() for key in report), f"keys of a report are names: {[*report]}"


LAWS: tuple[Law, ...] = (
    has_the_shape,
    is_repeatable,
    leaves_observations_alone,
    keeps_labels,
    fits_better_than_the_mean,
    does_not_depend_on_order,
    survives_saving,
    says_how,
)
