"""The symmetric variant: the exponentiated gradient of Hazan, Kale and Shalev-Shwartz without its projection."""

from __future__ import annotations

from dataclasses import dataclass

from entrywise.linalg.lanczos import GrowingExponential
from entrywise.online._graph import Graph
from entrywise.online._learner import positive
from entrywise.online.winnow import GraphLearner


@dataclass(frozen=True, eq=False)
class SymmetricWinnow(GraphLearner):
    r"""Predict entries of a binary matrix with the weights of both signs alike; usually the best single learner.

    .. math:: \hat y = \mathrm{sign}\, f, \quad f = \frac{2 E_{ij}}{E_{ii} + E_{jj}}, \quad
              E = \exp\begin{pmatrix} 0 & B \\ B^\top & 0\end{pmatrix}, \qquad
              B_{ij} \leftarrow B_{ij} + \gamma\, y \text{ when } y f < d.

    Parameters
    ----------
    gamma : float
        Learning rate.
    slack : float
        d above, in [0, 1): entries right by less than this are learnt too.

    Notes
    -----
    This is the algorithm of [HKS12] for +-1 matrices with its Bregman projection onto bounded diagonals replaced by a
    division by the diagonal. No mistake bound is known for it. Flipping the sign of the columns turns E into its
    inverse, so f comes from one Lanczos run, as the ratio of a sinh and a cosh, and
    ``(1 - d) e^t - (1 + d) e^-t`` has positive odd derivatives: the same certified brackets decide ``f < d``.

    References
    ----------
    .. [HKS12] Hazan, Kale, Shalev-Shwartz, *Near-optimal algorithms for online matrix prediction*, COLT 2012.

    Examples
    --------
    >>> learner = SymmetricWinnow().learn_many([0, 0, 1], [0, 1, 0], [1, -1, -1])
    >>> learner.predict(1, 1), learner.predict(5, 5)
    (1, 1)
    """

    gamma: float = 1.0
    slack: float = 0.2

    def _refuse(self) -> None:
        positive(self.gamma, "gamma", 0.0, 8.0)
        positive(self.slack, "slack", 0.0, 0.99, closed=True)

    def _empty(self) -> Graph:
        return Graph(
            GrowingExponential(float(self.gamma), symmetric=True, margin=float(self.slack))
        )
