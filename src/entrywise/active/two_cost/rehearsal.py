r"""What noisy_cur will miss, rehearsed on matrices like the one to come.

A closed form takes the rank as exact, and real spectra have tails: on power-law spectra, and on a board of drugs and their
targets, its forecasts were two to four times too low. A pilot (entries measured before, here or on a board like this one)
tells the leading components and how much lies beyond them. What is beyond is taken in three ways: as a few components as
strong as the last that was seen, as a tail that falls off like the leading ones, and as a flatter tail. The plan is run on
matrices drawn in each way, and the range of its errors is the forecast.
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

RUNS = 2  # matrices drawn in each way
HIGHER = 1.25  # times the largest error of the runs: factors of real boards are not Gaussian
FLATTEST, STEEPEST = 0.25, 2.0  # exponents of singular values that a tail may have
FEW = 3  # components from which an exponent is read
USUAL = 1.0  # exponent where they are fewer


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

    def ways(self, most: int) -> list[Array]:
        """Return component variances, at most so many, for each way in which what is beyond may be structured."""
        if self.beyond <= 0 or len(self.leading) >= most:
            return [self.leading]
        slope = self._slope()
        return [
            self._as_strong_components(most),
            self._tail(most, slope),
            self._tail(most, max(FLATTEST, slope / 2)),
        ]

    def _as_strong_components(self, most: int) -> Array:
        """Return what is beyond as components like the last of the leading ones, or one when there is none."""
        each = float(self.leading[-1]) if len(self.leading) else self.beyond
        count = int(np.clip(round(self.beyond / each), 1, most - len(self.leading)))
        return np.asarray(np.r_[self.leading, np.full(count, self.beyond / count)])

    def _tail(self, most: int, exponent: float) -> Array:
        k = np.arange(len(self.leading) + 1, most + 1, dtype=np.float64)
        weights = k ** (-2.0 * exponent)
        return np.asarray(np.r_[self.leading, self.beyond * weights / weights.sum()])

    def _slope(self) -> float:
        """Return the exponent with which the leading singular values fall off."""
        if len(self.leading) < FEW:
            return USUAL
        k = np.arange(1.0, len(self.leading) + 1)
        slope = -0.5 * float(np.polyfit(np.log(k), np.log(self.leading), 1)[0])
        return float(np.clip(slope, FLATTEST, STEEPEST))

    def draw(self, shape: tuple[int, int], variances: Array, rng: np.random.Generator) -> Array:
        """Return a matrix with Gaussian factors, its components of these variances."""
        m, n = shape
        left = rng.standard_normal((m, len(variances))) * np.sqrt(variances)
        A = left @ rng.standard_normal((n, len(variances))).T
        A += np.sqrt(self.rows) * rng.standard_normal((m, 1))
        A += np.sqrt(self.cols) * rng.standard_normal((1, n))
        return np.asarray(A)


def rehearsed(
    make: Callable[[np.random.Generator], Plan],
    spectrum: Spectrum,
    shape: tuple[int, int],
    noise: dict[str, float],
    rng: np.random.Generator,
    runs: int = RUNS,
) -> Range:
    """Return the range of errors of the plans that `make` makes, on matrices drawn from the spectrum."""
    errors = []
    for variances in spectrum.ways(min(shape)):
        for _ in range(runs):
            A = spectrum.draw(shape, variances, rng)
            found = _played(make(rng), A, noise, rng)
            errors.append(float(np.sqrt(np.mean((found.to_dense() - A) ** 2))))
    middle = float(np.exp(np.mean(np.log(np.maximum(errors, np.finfo(float).tiny)))))
    return Range(min(errors), middle, max(errors) * HIGHER)


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
