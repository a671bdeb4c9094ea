r"""Features by the thousands in the low-rank fit: the same prior as :mod:`~entrywise.linalg.line_features`, nothing d x d.

With F the centred features of m lines, the ridge weights :math:`(F^\top F + \alpha)^{-1} F^\top T` are
:math:`F^\top Z`, :math:`(F F^\top + \alpha) Z = T`: conjugate gradients on Z, which has a number a line and component, from
where the last sweep left it. What :math:`\alpha` needs of the eigenvalues, sums of :math:`f(\lambda)`, is a quadrature that
does not change from sweep to sweep: exact where either side is short, else by Lanczos from random signs [UCS17]_.

.. [UCS17] Ubaru, Chen, Saad, *Fast estimation of tr(f(A)) via stochastic Lanczos quadrature*, SIAM J. Matrix Anal. 2017.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from entrywise.linalg.line_features import FIRST_ALPHA, LARGEST_ALPHA, TINY
from entrywise.types import Array

SHORT = 1000  # lines or features up to which all eigenvalues are computed, of the shorter side
PROBES, STEPS = (
    16,
    60,
)  # random starts and steps of Lanczos: sums of eigenvalues are then off by about a hundredth
CLOSE = 1e-5  # relative residual at which the conjugate gradients stop
MOST_STEPS = 200


@dataclass
class WideFeatures:
    """What :class:`~entrywise.linalg.line_features.LineFeatures` is, for sparse or many features."""

    values: Any  # (m, d), sparse or dense
    times: Array
    weights: Array = field(default_factory=lambda: np.zeros((0, 0)))  # (d, q)
    alpha: float = FIRST_ALPHA
    loss: float = 0.0
    solution: Array = field(default_factory=lambda: np.zeros((0, 0)))  # Z, (m, q)

    def __post_init__(self) -> None:
        self._total = max(float(self.times.sum()), 1.0)
        self._mean = np.asarray(self.values.T @ self.times).ravel() / self._total
        self._root = np.sqrt(self.times)[:, None]
        self._nodes, self._shares = self._quadrature()
        self.weights = np.zeros((self.values.shape[1], 1))

    def means(self, prior_mean: Array) -> Array:
        """Return the prior mean of every line, shape (m, q)."""
        return np.asarray(prior_mean + self.values @ self.weights)

    def learn(self, x: Array, prior_cov: Array) -> tuple[Array, Array]:
        """Set the weights by the lines' means `x`; return the prior mean at features of zero, and what S gains."""
        root = np.linalg.cholesky(prior_cov)
        center = self.times @ x / self._total
        T = np.linalg.solve(root, (self._root * (x - center)).T).T  # whitened
        q = x.shape[1]
        Z = self.solution if self.solution.shape == T.shape else np.zeros(T.shape)
        Z = self._solved(T, Z)
        size = float(np.sum(Z * (T - self.alpha * Z)))  # of the whitened weights, squared
        self.alpha = min(q * self._gamma() / max(size, TINY), LARGEST_ALPHA)
        Z = self.solution = self._solved(T, Z)
        self.loss = 0.5 * q * float(self._shares @ np.log1p(self._nodes / self.alpha))
        self.weights = self._across(Z) @ root.T
        rest = self.alpha * Z @ root.T  # T less what the features say of it
        gain = rest.T @ rest + self._gamma() * prior_cov
        return center - self._mean @ self.weights, gain

    def grow(self, count: int) -> None:
        """Add `count` components before the bias, of which the features say nothing yet.

        Features that say nothing of the biases may tell these: the penalty is learned anew.
        """
        self.alpha = FIRST_ALPHA
        new = np.zeros((len(self.weights), count))
        self.weights = np.hstack([self.weights[:, :-1], new, self.weights[:, -1:]])

    def _gamma(self) -> float:
        """Return how many weights the lines determine."""
        return float(self._shares @ (self._nodes / (self._nodes + self.alpha)))

    def _along(self, w: Array) -> Array:
        """Return F w for the centred, weighted features, shape (m, q)."""
        return np.asarray(self._root * (self.values @ w - self._mean @ w))

    def _across(self, z: Array) -> Array:
        """Return F' z, shape (d, q)."""
        weighted = self._root * z
        return np.asarray(self.values.T @ weighted - np.outer(self._mean, weighted.sum(axis=0)))

    def _solved(self, T: Array, Z: Array) -> Array:
        """Return the solution of (F F' + alpha) Z = T by conjugate gradients from Z, a column each."""
        rest = T - self._along(self._across(Z)) - self.alpha * Z
        step, size = rest.copy(), np.sum(rest**2, axis=0)
        limit = CLOSE**2 * np.maximum(np.sum(T**2, axis=0), TINY)
        for _ in range(MOST_STEPS):
            if np.all(size <= limit):
                break
            moved = self._along(self._across(step)) + self.alpha * step
            far = size / np.maximum(np.sum(step * moved, axis=0), TINY)
            Z, rest = Z + far * step, rest - far * moved
            before, size = size, np.sum(rest**2, axis=0)
            step = rest + size / np.maximum(before, TINY) * step
        return Z

    def _quadrature(self) -> tuple[Array, Array]:
        """Return nodes and shares by which sums over the eigenvalues of F F' are made."""
        m, d = self.values.shape
        if d <= SHORT:
            F = self._along(np.eye(d))
            sizes = np.linalg.eigvalsh(F.T @ F)
            return np.maximum(sizes, 0.0), np.ones(d)
        if m <= SHORT:
            sizes = np.linalg.eigvalsh(self._along(self._across(np.eye(m))))
            return np.maximum(sizes, 0.0), np.ones(m)
        return self._lanczos(np.random.default_rng(0))

    def _lanczos(self, rng: np.random.Generator) -> tuple[Array, Array]:
        m = self.values.shape[0]
        nodes, shares = [], []
        for _ in range(PROBES):
            start = rng.integers(2, size=(m, 1)) * 2.0 - 1.0
            Q, a, b = [start / np.sqrt(m)], list[float](), list[float]()
            while len(a) < STEPS:
                w = self._along(self._across(Q[-1]))
                a.append(float(np.sum(w * Q[-1])))
                basis = np.hstack(Q)
                for _ in range(2):  # twice is enough to stay orthogonal
                    w = w - basis @ (basis.T @ w)
                size = float(np.linalg.norm(w))
                if size <= 1e-12 * abs(a[0]):
                    break
                b.append(size)
                Q.append(w / size)
            off = b[: len(a) - 1]
            ritz, vectors = np.linalg.eigh(np.diag(a) + np.diag(off, 1) + np.diag(off, -1))
            nodes.append(np.maximum(ritz, 0.0))
            shares.append(m * vectors[0] ** 2 / PROBES)
        return np.concatenate(nodes), np.concatenate(shares)
