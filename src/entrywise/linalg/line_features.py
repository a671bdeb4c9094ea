r"""Features of lines in the low-rank fit: what a line looks like before anything of it is known follows from them.

The prior of a line is :math:`x_i \sim N(\mu + W^\top f_i, S)`. With :math:`S = L L^\top`, the whitened weights
:math:`W L^{-\top}` are normal with variance :math:`1/\alpha`, one :math:`\alpha` for all components of a side, learned from
the data as MacKay did; features of pure noise then get weights of nearly zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from entrywise.types import Array

FIRST_ALPHA = 1.0  # lines' worth of features before any sweep; learned from then on
LARGEST_ALPHA = 1e8  # beyond it the features say nothing
TINY = np.finfo(float).tiny


@dataclass
class LineFeatures:
    """The features of the lines of one side and their weights; `learn` changes it in place.

    Parameters
    ----------
    values : ndarray of shape (m, d)
    times : ndarray of shape (m,)
        Lines that each one stands for; 0 for one of which nothing is known: it teaches nothing.
    """

    values: Array
    times: Array
    weights: Array = field(default_factory=lambda: np.zeros((0, 0)))  # (d, q)
    alpha: float = FIRST_ALPHA
    loss: float = 0.0  # of the evidence, by the weights

    def __post_init__(self) -> None:
        total = max(float(self.times.sum()), 1.0)
        self._mean = self.times @ self.values / total
        self._centred = (self.values - self._mean) * np.sqrt(self.times)[:, None]
        sizes, self._turn = np.linalg.eigh(self._centred.T @ self._centred)
        self._sizes = np.maximum(sizes, 0.0)
        self.weights = np.zeros((self.values.shape[1], 1))

    def means(self, prior_mean: Array) -> Array:
        """Return the prior mean of every line, shape (m, q)."""
        return np.asarray(prior_mean + self.values @ self.weights)

    def learn(self, x: Array, prior_cov: Array) -> tuple[Array, Array]:
        """Set the weights by the lines' means `x`; return the prior mean at features of zero, and what S gains.

        The gain is :math:`\\sum d d^\\top + L\\,\\mathrm{diag}(\\gamma) L^\\top`, d what the features leave of the lines.
        """
        root = np.linalg.cholesky(prior_cov)
        total = max(float(self.times.sum()), 1.0)
        center = self.times @ x / total
        weighted = np.sqrt(self.times)[:, None] * (x - center)
        T = np.linalg.solve(root, weighted.T).T  # whitened
        B = self._turn.T @ (self._centred.T @ T)
        q = x.shape[1]
        w = B / (self._sizes + self.alpha)[:, None]
        gamma = float(np.sum(self._sizes / (self._sizes + self.alpha)))
        self.alpha = min(q * gamma / max(float(np.sum(w**2)), TINY), LARGEST_ALPHA)
        w = B / (self._sizes + self.alpha)[:, None]
        gamma = float(np.sum(self._sizes / (self._sizes + self.alpha)))
        self.loss = 0.5 * q * float(np.log1p(self._sizes / self.alpha).sum())
        self.weights = self._turn @ w @ root.T
        rest = weighted - self._centred @ self.weights
        return center - self._mean @ self.weights, rest.T @ rest + gamma * prior_cov

    def grow(self, count: int) -> None:
        """Add `count` components before the bias, of which the features say nothing yet.

        Features that say nothing of the biases may tell these: the penalty is learned anew.
        """
        self.alpha = FIRST_ALPHA
        new = np.zeros((len(self.weights), count))
        self.weights = np.hstack([self.weights[:, :-1], new, self.weights[:, -1:]])
