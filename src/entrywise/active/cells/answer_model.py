"""What a purchase takes its answers for: numbers or yes/no, within bounds or in units of lines, of lines with features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from entrywise.answers import Range, levels_of, range_of
from entrywise.exceptions import ParameterError
from entrywise.observations import Observations
from entrywise.passive.low_rank import low_rank
from entrywise.results import Features, LowRank
from entrywise.results.kept_features import open_features
from entrywise.results.units import Units
from entrywise.types import Array

LIKELIHOODS = ("gaussian", "binary", "auto")
UNITS = ("one", "columns", "rows")
# what plans call the parts of a model
MODEL = ("likelihood", "bounds", "row_features", "col_features", "units")


@dataclass(frozen=True, eq=False)
class AnswerModel:
    """How answers are fitted; features are coded once a step."""

    likelihood: str = "gaussian"
    bounds: Range | None = None
    row_features: tuple[Features, Any] | None = None
    col_features: tuple[Features, Any] | None = None
    units: str = "one"

    @classmethod
    def of(
        cls,
        shape: tuple[int, int],
        likelihood: str = "gaussian",
        bounds: Any = None,
        row_features: Any = None,
        col_features: Any = None,
        units: str = "one",
    ) -> AnswerModel:
        """Return the model of a plan with these parameters, or refuse them."""
        if likelihood not in LIKELIHOODS:
            raise ParameterError(
                f"likelihood of a plan must be one of {', '.join(LIKELIHOODS)}, got {likelihood!r}"
            )
        if units not in UNITS:
            raise ParameterError(
                f"units of a plan must be one of {', '.join(UNITS)}, got {units!r}"
            )
        if units != "one" and (likelihood != "gaussian" or bounds is not None):
            raise ParameterError(
                f"units={units!r} is for plain numbers, got likelihood={likelihood!r} and bounds={bounds}; "
                "leave out one or the other"
            )
        return cls(
            likelihood,
            range_of(np.zeros(0), bounds),
            _coded(row_features, shape[0], "row"),
            _coded(col_features, shape[1], "column"),
            units,
        )

    @classmethod
    def of_plan(cls, shape: tuple[int, int], params: Mapping[str, Any]) -> AnswerModel:
        """Return the model of a plan with these among its parameters."""
        return cls.of(shape, **{name: params[name] for name in MODEL if name in params})

    def fit(self, seen: Observations, rank: int | None, **how: Any) -> LowRank:
        """Return the fit of what was answered; in units of lines, its factors are in their standard deviations."""
        if self.units != "one":
            own = Units.of(seen, self.units == "rows")
            found = replace(self, units="one").fit(own.strip(seen), rank, **how)
            return replace(found, units=own)
        bounds = range_of(seen.values, self.bounds)
        binary = self._is_binary(seen.values)
        found = low_rank(
            seen,
            rank,
            likelihood="binary" if binary else "gaussian",
            row_features=self.row_features,
            col_features=self.col_features,
            **how,
        )
        if self.bounds is None and self.likelihood != "auto":
            return found  # answers are plain numbers, or yes/no, which bound themselves
        return replace(found, bounds=bounds)

    def _is_binary(self, values: Array) -> bool:
        """Tell whether answers are yes/no: as told, once both have come, or as they look."""
        if self.likelihood == "binary":
            found = np.unique(values)
            return len(found) > 1 or bool(np.isin(found, (0.0, 1.0)).all())
        if self.likelihood == "gaussian":
            return False
        levels = levels_of(values)
        return levels is not None and len(levels) == 2


def _coded(given: Any, lines: int, side: str) -> tuple[Features, Any] | None:
    """Return the features of the lines, in order, as a study keeps them or as people have them, coded."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        given = open_features(given)
    return Features.of(given, None, lines, side)
