"""Users in groups who take items or leave them: the simulators of the best-pair problem."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from entrywise.exceptions import ParameterError
from entrywise.oracles import CountingOracle
from entrywise.queries import Batch
from entrywise.results import PSDFactor
from entrywise.types import Array, Seed


class Population:
    """Users in groups: the simulator of Section 5.

    Parameters
    ----------
    shares : ndarray of shape (r,)
        Probability p_k of each group.
    tastes : ndarray of shape (r, n_items)
        Chance u_k(i) that a user of group k takes item i.

    Examples
    --------
    >>> Population([1.0], [[0.5, 1.0]]).losses.to_dense()
    array([[0.25, 0.  ],
           [0.  , 0.  ]])
    """

    def __init__(self, shares: ArrayLike, tastes: ArrayLike) -> None:
        self.shares = np.asarray(shares, dtype=np.float64)
        self.tastes = np.atleast_2d(np.asarray(tastes, dtype=np.float64))
        if self.shares.ndim != 1 or len(self.shares) != len(self.tastes):
            raise ParameterError(
                f"there must be one share a group, got shares {self.shares.shape} and tastes {self.tastes.shape}"
            )
        if np.any(self.shares < 0) or not np.isclose(self.shares.sum(), 1.0):
            raise ParameterError(
                f"shares must not be negative and add up to 1, they add up to {self.shares.sum():g}"
            )
        if np.any((self.tastes < 0) | (self.tastes > 1)):
            raise ParameterError("tastes are chances and must lie in 0..1")

    @property
    def losses(self) -> PSDFactor:
        """The matrix L in factors, shape (n_items, n_items)."""
        return PSDFactor(
            np.ascontiguousarray(((1.0 - self.tastes) * np.sqrt(self.shares)[:, None]).T)
        )


class PopulationOracle(CountingOracle):
    """Answers 1 when a random user takes neither item (equation 9), or the mean of that with ``exact=True`` (equation 8).

    A pair (i, i) is two independent draws of the same user.
    """

    def __init__(self, users: Population, *, exact: bool = False, rng: Seed = None) -> None:
        super().__init__()
        self.users, self.exact = users, exact
        self._rng = np.random.default_rng(rng)

    def answer(self, batch: Batch) -> Array:
        """Return one user's answer a position."""
        if self.exact:
            return self.users.losses.entries(batch.rows, batch.cols)
        group = self._rng.choice(len(self.users.shares), size=len(batch), p=self.users.shares)
        first = self._rng.random(len(batch)) < self.users.tastes[group, batch.rows]
        second = self._rng.random(len(batch)) < self.users.tastes[group, batch.cols]
        return (~(first | second)).astype(np.float64)


def population(n_items: int, groups: int, rng: Seed = None) -> Population:
    """Return a random population: shares from a flat Dirichlet law, tastes uniform."""
    generator = np.random.default_rng(rng)
    return Population(generator.dirichlet(np.ones(groups)), generator.random((groups, n_items)))


def regret(losses: Any, pair: tuple[int, int], allow_same: bool = False) -> float:
    """Return L_ij minus the smallest entry: the error of a chosen pair.

    >>> regret(np.array([[0.2, 0.5], [0.5, 0.3]]), (0, 1))
    0.0
    """
    L = np.asarray(losses, dtype=np.float64)
    i, j = np.triu_indices(len(L), 0 if allow_same else 1)
    return float(L[pair] - L[i, j].min())
