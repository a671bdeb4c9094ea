r"""What noisy_cur will miss, rehearsed on matrices whose pilots look like the one at hand.

A closed form takes the rank as exact, and real spectra have tails: on power-law spectra, and on a board of drugs and their
targets, its forecasts were two to four times too low. A pilot (entries measured before, here or on a board like this one)
shows the leading components and how much lies beyond them, through a glass: weak components hide in what is beyond. So
spectra are drawn at random, component k of r with a variance in proportion to :math:`k^{-2s}`, from one component to a flat
tail; a pilot of each is made and fitted like the real one; and the plan is run on matrices of the spectra whose pilots came
nearest (approximate Bayesian computation). The range of its errors is the forecast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from entrywise.observations import Observations
from entrywise.passive.low_rank import low_rank
from entrywise.queries import Batch, Plan
from entrywise.results import LowRank
from entrywise.types import Array, Indices

DRAWS, NEAREST = 40, 6  # spectra that are tried, and those on which the plan is rehearsed
STEEPEST = 2.0  # exponent of singular values
LOOKED_AT = 8  # components by which pilots are compared
# beyond the errors of the runs: they are few, and factors of real boards are not Gaussian
LOWER, HIGHER = 1.25, 1.3


class Range(NamedTuple):
    """Ends of the root mean squared error that is expected, and its middle."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Spectrum:
    """Variances of an entry: by leading components, by what is beyond them, by the means of rows and columns."""

    leading: Array
    beyond: float
    rows: float
    cols: float

    @classmethod
    def of(cls, pilot: Observations) -> Spectrum:
        """Return what entries measured with known noise show."""
        found = low_rank(pilot)
        means = (found.row_offset, found.col_offset)
        rows, cols = (0.0 if b is None else float(np.var(b)) for b in means)
        leading = np.sort(np.array(found.report["component_variances"], np.float64))[::-1]
        return cls(leading, found.lack_variance, rows, cols)

    @property
    def total(self) -> float:
        """Variance of an entry about the means of its row and column."""
        return float(self.leading.sum()) + self.beyond

    def explained(self) -> Array:
        """Return the shares of the variance that 1, 2, ... components explain, shape (LOOKED_AT,)."""
        each = np.zeros(LOOKED_AT)
        some = self.leading[:LOOKED_AT]
        each[: len(some)] = some
        return np.asarray(np.cumsum(each) / max(self.total, np.finfo(float).tiny))

    def draw(self, shape: tuple[int, int], variances: Array, rng: np.random.Generator) -> Array:
        """Return a matrix with Gaussian factors, its components of these variances."""
        m, n = shape
        left = rng.standard_normal((m, len(variances))) * np.sqrt(variances)
        A = left @ rng.standard_normal((n, len(variances))).T
        A += np.sqrt(self.rows) * rng.standard_normal((m, 1))
        A += np.sqrt(self.cols) * rng.standard_normal((1, n))
        return np.asarray(A)


def likely_spectra(seen: Spectrum, pilot: Observations, rng: np.random.Generator) -> list[Array]:
    """Return component variances whose pilots look most like what was `seen` of `pilot`, the nearest first."""
    most = min(pilot.shape)
    there = seen.explained()
    tried = []
    for _ in range(DRAWS):
        count = int(np.ceil(most ** rng.random()))  # few components or many: all magnitudes alike
        k = np.arange(1.0, count + 1)
        variances = k ** (-2.0 * STEEPEST * rng.random())
        variances *= seen.total / variances.sum()
        here = Spectrum.of(_pilot_of(seen.draw(pilot.shape, variances, rng), pilot, rng))
        tried.append((float(np.abs(here.explained() - there).sum()), variances))
    tried.sort(key=lambda each: each[0])
    return [variances for _, variances in tried[:NEAREST]]


def _pilot_of(A: Array, pilot: Observations, rng: np.random.Generator) -> Observations:
    """Return the entries of A that the pilot has, with errors of its size."""
    errors = rng.standard_normal(len(pilot)) * np.asarray(pilot.noise)
    return replace(pilot, values=A[pilot.rows, pilot.cols] + errors)


def rehearsed(
    make: Callable[[np.random.Generator], Plan],
    pilot: Observations,
    shape: tuple[int, int],
    noise: dict[str, float],
    rng: np.random.Generator,
) -> tuple[Range, Spectrum]:
    """Return the range of errors of the plans that `make` makes, on matrices like that of the pilot, and what it shows."""
    seen = Spectrum.of(pilot)
    errors = []
    for variances in likely_spectra(seen, pilot, rng):
        A = seen.draw(shape, variances, rng)
        found = _played(make(rng), A, noise, rng)
        errors.append(float(np.sqrt(np.mean((found.to_dense() - A) ** 2))))
    middle = float(np.exp(np.mean(np.log(np.maximum(errors, np.finfo(float).tiny)))))
    return Range(min(errors) / LOWER, middle, max(errors) * HIGHER), seen


def _played(plan: Plan, A: Array, noise: dict[str, float], rng: np.random.Generator) -> LowRank:
    """Return the result of a plan whose answers are entries of A with noise by mode."""
    asking = plan.start()
    try:
        batch = cast(Batch, next(asking))
        while True:
            rows: Indices = batch.rows
            errors = noise[batch.mode] * rng.standard_normal(len(rows))
            batch = cast(Batch, asking.send(A[rows, batch.cols] + errors))
    except StopIteration as stop:
        return cast(LowRank, stop.value)


def with_noise(pilot: Observations, noise: float) -> Observations:
    """Return the pilot with its own noise, or this one."""
    return pilot if pilot.noise is not None else replace(pilot, noise=noise)
