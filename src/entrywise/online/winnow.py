"""Matrix Winnow for binary matrices: the exponentiated gradient without the eigendecompositions.

The logarithm of the weights is a sparse matrix S over mistakes, a prediction is the sign of v' exp(S) v - 1,
and a few Lanczos steps with certified brackets decide it. The sizes m and n cancel: rows and columns may
appear at any time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from entrywise.bounds.binary import updates_bound
from entrywise.linalg.incremental import IncrementalExponential
from entrywise.linalg.lanczos import GrowingExponential
from entrywise.online._graph import Graph
from entrywise.online._learner import Learner, positive


@dataclass(frozen=True, eq=False)
class GraphLearner(Learner):
    """What the exponentiated-gradient learners share."""

    @property
    def n_rows(self) -> int:
        """Rows learnt so far."""
        return int(self._current().n_rows)

    @property
    def n_cols(self) -> int:
        """Columns learnt so far."""
        return int(self._current().n_cols)

    @property
    def updates(self) -> int:
        """Labels that changed the weights."""
        return int(self._current().exponential.updates)

    @property
    def burden(self) -> int:
        """Edges that a prediction may have to walk: one an update."""
        return self.updates

    @property
    def work(self) -> dict[str, float]:
        """Decisions, Lanczos steps and edges walked since this memory was made."""
        return dict(self._current().exponential.work)

    @property
    def report(self) -> dict[str, Any]:
        """What happened so far, in words and numbers."""
        known: dict[str, Any] = {
            "rows": self.n_rows,
            "columns": self.n_cols,
            "updates": self.updates,
        }
        work = self.work
        known["mean_lanczos_steps"] = work["mean_steps"]
        known["most_lanczos_steps"] = work["max_steps"]
        return super().report | known


@dataclass(frozen=True, eq=False)
class MatrixWinnow(GraphLearner):
    r"""Predict entries of a binary matrix with few mistakes: Algorithm 1 of Herbster, Pasteris and Pontil.

    .. math:: \hat y = +1 \iff v^\top e^{S} v \ge 1, \quad v = (e_i + e_j)/\sqrt2, \qquad
              S \leftarrow S + \gamma\, y\, v v^\top \text{ after a mistake.}

    Parameters
    ----------
    gamma : float
        Learning rate; the theorem wants (0, 1], larger ones are often better in practice. 1 / (margin complexity) is
        the rate of the theorem: 1 / sqrt(min(k, l)) for k x l biclusters.
    slack : float
        0 learns from mistakes alone, as in the paper. Above 0, entries that were right by less than this,
        ``y (v' exp(S) v - 1) < slack``, are learnt too: same proof, fewer mistakes on all but the simplest matrices.

    dense : bool
        Keep exp(S) as an array of side m + n instead of asking Lanczos: the same predictions, at once, but
        :math:`(m + n)^2` numbers and some :math:`30 (m + n)^2` operations a mistake. For a few thousand rows and columns
        that are predicted far more often than they are learnt.

    Attributes
    ----------
    trials, mistakes, updates, n_rows, n_cols : int

    Notes
    -----
    The paper keeps the whole of :math:`W = e^S/(m+n)` and an eigendecomposition a mistake. Here m and n cancel, a tie
    goes to +1 exactly as in the paper, and predictions are those of exact arithmetic up to brackets of relative
    width 1e-12. Memory is one edge a mistake.

    References
    ----------
    .. [HPP16] Herbster, Pasteris, Pontil, *Mistake Bounds for Binary Matrix Completion*, NIPS 2016, Algorithm 1.

    Examples
    --------
    >>> learner = MatrixWinnow(gamma=0.5)
    >>> learner.predict(0, 0)
    1
    >>> learner = learner.learn(0, 0, -1)
    >>> learner.predict(0, 0), learner.mistakes, learner.margin(0, 7) < 0
    (-1, 1, True)
    """

    gamma: float = 0.5
    slack: float = 0.0
    dense: bool = False

    def _refuse(self) -> None:
        positive(self.gamma, "gamma", 0.0, 8.0)
        positive(self.slack, "slack", 0.0, 1.0, closed=True)

    def _empty(self) -> Graph:
        if self.dense:
            return Graph(IncrementalExponential(float(self.gamma), margin=float(self.slack)))
        return Graph(GrowingExponential(float(self.gamma), margin=float(self.slack)))

    def bound(self, gamma: float | None = None, violations: int = 0) -> float:
        """Return the most mistakes it can make on the rows and columns seen so far.

        Parameters
        ----------
        gamma : float, optional
            Margin with which some embedding separates all labels but `violations`; the learning rate, or 1, unless given.
            ``inf`` is returned where this rate proves nothing.
        violations : int
            Trials on which that margin is missed.
        """
        margin = min(1.0, self.gamma) if gamma is None else gamma
        return updates_bound(self.n_rows + self.n_cols, self.gamma, margin, self.slack, violations)

    @property
    def report(self) -> dict[str, Any]:
        """Mistakes so far, the bound at the learning rate, and whether the bound says nothing yet."""
        bound = self.bound()
        assumes = f"some embedding separates all labels with margin {min(1.0, self.gamma):g}"
        return super().report | {
            "bound": bound,
            "bound_is_vacuous": bound >= self.trials,
            "bound_assumes": assumes,
        }
