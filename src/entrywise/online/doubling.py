"""Matrix Winnow without a learning rate to choose: start anew at a smaller one after too many mistakes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from entrywise.bounds.binary import doubling_bound
from entrywise.linalg.lanczos import GrowingExponential
from entrywise.online._graph import Graph
from entrywise.online.winnow import GraphLearner


@dataclass(frozen=True, eq=False)
class Doubling(GraphLearner):
    r"""Run Matrix Winnow at rates 1/sqrt 2, 1/2, ..., each until it has made too many mistakes.

    Rate :math:`1/\kappa` gives way to :math:`1/(\sqrt2 \kappa)` after
    :math:`\lceil 2 c N \log N\, \kappa^2 \rceil` mistakes, :math:`c = 1/(3 - e)`.

    Notes
    -----
    N is the number of rows and columns seen so far, so that sizes need not be declared. With N = 200 the first
    restart needs 15,044 mistakes: in practice it rarely restarts, and :func:`entrywise.online.auto` is the better
    way not to choose a rate.

    References
    ----------
    .. [HPP16] Herbster, Pasteris, Pontil, *Mistake Bounds for Binary Matrix Completion*, NIPS 2016, Corollary 3.2.

    Examples
    --------
    >>> learner = Doubling().learn_many([0, 1, 0], [0, 0, 1], [-1, -1, 1])
    >>> learner.mistakes, round(learner.gamma, 3), learner.restarts
    (2, 0.707, 0)
    """

    def _empty(self) -> Graph:
        return Graph(GrowingExponential(math.sqrt(0.5), doubling=True))

    @property
    def gamma(self) -> float:
        """Learning rate now."""
        return float(self._current().exponential.gamma)

    @property
    def restarts(self) -> int:
        """How often it started anew."""
        return int(self._current().exponential.restarts)

    def bound(self, gamma: float | None = None, violations: int = 0) -> float:
        """Return the most mistakes it can make when some embedding has margin `gamma` on all but `violations` trials."""
        return doubling_bound(
            self.n_rows + self.n_cols, self.gamma if gamma is None else gamma, violations
        )

    @property
    def report(self) -> dict[str, Any]:
        """Mistakes so far, restarts, the bound, and whether the bound says nothing yet."""
        bound = self.bound()
        assumes = f"some embedding separates all labels with margin {min(1.0, self.gamma):.3g}"
        told = {"bound": bound, "bound_is_vacuous": bound >= self.trials, "bound_assumes": assumes}
        return super().report | {"restarts": self.restarts} | told
