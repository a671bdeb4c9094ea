"""What a plan with two instruments holds: the answers it paid for, by instrument, and the money that is left."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from entrywise.active.two_cost.constants import TINY
from entrywise.active.two_cost.setting import TwoCost, filled
from entrywise.exceptions import AnswerError
from entrywise.linalg.units import LARGEST, SMALLEST, in_unit, unit_of
from entrywise.observations import SQUARED, Observations
from entrywise.queries import Batch, History
from entrywise.types import Array, Indices

NOISELESS = 1e-14  # variance over the mean square of the answers that even exact ones are given


def _by_instrument() -> dict[str, list[Indices]]:
    return {"column": [], "entry": []}


def _values_by_instrument() -> dict[str, list[Array]]:
    return {"column": [], "entry": []}


@dataclass
class Holdings:
    """What a plan with two instruments has bought so far; an entry may have been bought several times.

    Values, and the noises of the setting, are in a ``unit`` (a power of two, nearly always 1): that of the noises that were
    told, or of the first answers where these are none (None until they came).
    """

    setting: TwoCost
    unit: float | None = None
    rows: dict[str, list[Indices]] = field(default_factory=_by_instrument)
    cols: dict[str, list[Indices]] = field(default_factory=_by_instrument)
    values: dict[str, list[Array]] = field(default_factory=_values_by_instrument)
    columns: list[int] = field(default_factory=list)
    bought: int = 0  # columns paid for, repeats included
    money: float = 0.0

    def take(self, batch: Batch, answers: Array) -> None:
        """Keep the answers to a batch, those that failed left out."""
        good = ~np.isnan(answers)
        rows, cols = batch.rows[good], batch.cols[good]
        values = self._ordinary(rows, cols, np.array(answers[good]))
        self.rows[batch.mode].append(rows)
        self.cols[batch.mode].append(cols)
        self.values[batch.mode].append(values)
        if batch.mode == "column":
            self.bought += len(batch) // self.setting.m
            self.columns += [j for j in dict.fromkeys(batch.cols.tolist()) if j not in self.columns]

    def recall(self, history: History) -> None:
        """Keep what was known or told before: entries, and columns whole, where cells are missing as failed ones."""
        good = history[~history.failed]
        cells = good[good.mode == "entry"]
        if len(cells):
            self.take(Batch(cells.rows, cells.cols), cells.values)
        columns = good[good.mode == "column"]
        for j in dict.fromkeys(columns.cols.tolist()):
            here = columns[columns.cols == j]
            answers = np.full(self.setting.m, np.nan)
            answers[here.rows] = here.values
            self.take(Batch.whole_columns([j], self.setting.m), answers)

    def _ordinary(self, rows: Indices, cols: Indices, values: Array) -> Array:
        """Return the answers in the unit, or refuse those whose variance would leave floating point.

        Beside a noise that was given, answers below 1e-100 units are nothing.
        """
        sizes = np.abs(values)
        worst = int(sizes.argmax()) if len(sizes) else 0
        largest = float(sizes.max(initial=0.0))
        if largest == 0.0:
            return values
        if self.unit is None and largest >= SQUARED[0]:
            self.unit = unit_of(values)
        unit = self.unit or 1.0
        if largest > SQUARED[1] or largest / unit > LARGEST:
            most = min(SQUARED[1], LARGEST * unit)
            raise AnswerError(
                f"answers of noisy_cur must be at most {most:.3g} in size beside the noise and the first ones, entry "
                f"({rows[worst]}, {cols[worst]}) is {values[worst]:g}; correct it, or count in another unit"
            )
        if largest / unit >= SMALLEST:
            return in_unit(values, unit)
        if self.setting.column_noise or self.setting.entry_noise:
            return np.zeros_like(values)
        least, beside, mend = SQUARED[0], "", "count in another unit"
        if self.unit is not None:
            least, beside = SMALLEST * unit, " beside those before"
            mend = "correct the larger ones, or count in another unit"
        raise AnswerError(
            f"answers of noisy_cur must be 0 or reach {least:.3g} in size{beside}, the largest of {len(values)} is "
            f"{largest:g}; {mend}"
        )

    def latest(self, mode: str) -> tuple[Indices, Indices, Array]:
        """Return rows, columns and values of the last batch of an instrument."""
        return self.rows[mode][-1], self.cols[mode][-1], self.values[mode][-1]

    def seen(self, mode: str) -> tuple[Indices, Indices, Array]:
        """Return rows, columns and values that an instrument gave."""
        none = np.zeros(0, np.int64)
        rows = np.concatenate([*self.rows[mode], none])
        cols = np.concatenate([*self.cols[mode], none])
        values = np.concatenate(self.values[mode] or [np.zeros(0)])
        return rows, cols, values

    def table(self) -> Array:
        """Return the noisy columns held, in the order bought, repeats averaged, failed answers filled, (m, d)."""
        m, n = self.setting.m, self.setting.n
        rows, cols, values = self.seen("column")
        J = np.array(self.columns, np.int64)
        place = np.zeros(n, np.int64)
        place[J] = np.arange(len(J))
        at = rows * len(J) + place[cols]
        count = np.bincount(at, minlength=m * len(J)).astype(np.float64)
        total = np.bincount(at, values, minlength=m * len(J))
        if count.min(initial=1.0) > 0:
            return (total / count).reshape(m, len(J))
        with np.errstate(invalid="ignore"):
            mean = total / np.where(count > 0, count, np.nan)
        return filled(mean.reshape(m, len(J)))

    def repeats(self, mode: str) -> tuple[float, int]:
        """Return the noise variance that repeated measurements show, and from how many differences."""
        rows, cols, values = self.seen(mode)
        key = rows * self.setting.n + cols
        order = np.argsort(key, kind="stable")
        same = key[order][1:] == key[order][:-1]
        differences = np.diff(values[order])[same]
        if not len(differences):
            return 0.0, 0
        return float(np.mean(differences**2)) / 2, len(differences)

    def fused(self, column_variance: float, entry_variance: float) -> Observations:
        """Return one value an entry, each instrument weighted by its precision, with its noise."""
        m, n = self.setting.m, self.setting.n
        parts = [self.seen("column"), self.seen("entry")]
        scale = max((float(np.mean(v**2)) for _, _, v in parts if len(v)), default=0.0)
        floor = NOISELESS * scale + TINY
        weight, total = np.zeros(m * n), np.zeros(m * n)
        variances = (column_variance, entry_variance)
        for (rows, cols, values), variance in zip(parts, variances, strict=True):
            at = rows * n + cols
            weight += np.bincount(at, minlength=m * n) / max(variance, floor)
            total += np.bincount(at, values, minlength=m * n) / max(variance, floor)
        at = np.flatnonzero(weight)
        i, j = np.divmod(at, n)
        noise = 1.0 / np.sqrt(weight[at])
        return Observations.from_triplets(i, j, total[at] / weight[at], (m, n), noise=noise)
