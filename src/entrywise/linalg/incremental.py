r"""exp(S) itself, kept up to date by low-rank corrections: for up to a few thousand rows and columns.

.. math:: e^{S + w vv^\top} - e^S \approx U \left( e^{T + w e_1 e_1^\top} - e^{T} \right) U^\top

with U and T from Lanczos started at v (Beckermann, Kressner, Schweitzer 2018). About fifteen columns of U reach machine
precision: an update costs some :math:`30 n^2` operations, a prediction reads three numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.linalg.lanczos import GrowingExponential, Signs
from entrywise.types import Array, Indices

TIE = 1e-12  # values of exp(S) drift by 1e-14 or so; closer to the threshold than this is a tie
MOST = 60  # columns of U


class IncrementalExponential(GrowingExponential):
    """A :class:`GrowingExponential` (of the signed kind) that keeps exp(S) as a dense array."""

    def __init__(self, gamma: float, *, margin: float = 0.0) -> None:
        super().__init__(gamma, margin=margin)
        self._S, self._E = np.zeros((0, 0)), np.zeros((0, 0))

    def _forms(self, us: Indices, vs: Indices) -> Array:
        """Return v' exp(S) v; vertices 0 and 1 are those that nothing is known of."""
        E = np.eye(max(2, len(self._E) + 2))
        E[2:, 2:] = self._E
        return np.asarray(0.5 * (E[us, us] + E[vs, vs]) + E[us, vs])

    def signs(self, us: Indices, vs: Indices) -> Signs:
        """Return the predictions at (us, vs), -1 or +1, ties +1."""
        return np.where(self._forms(us, vs) >= 1.0 - TIE, 1, -1).astype(np.int8)

    def values(self, us: Indices, vs: Indices) -> Array:
        """Return v' exp(S) v - 1."""
        return self._forms(us, vs) - 1.0

    def follow(self, us: Indices, vs: Indices, ys: Signs, fresh: Signs) -> Signs:
        """Predict, then learn, trial by trial; return the predictions."""
        predictions = np.zeros(len(us), np.int8)
        for t, (u, v, y) in enumerate(zip(us.tolist(), vs.tolist(), ys.tolist(), strict=True)):
            self.n_vertices += int(fresh[t])
            self._widen(self.n_vertices)
            a, b = u - 2, v - 2
            q = float(0.5 * (self._E[a, a] + self._E[b, b]) + self._E[a, b])
            predictions[t] = (
                1 if q >= 1.0 - TIE else -1
            )  # Algorithm 1, "Predict": (m + n) Tr(W X) >= 1
            update = predictions[t] != y or y * (q - 1.0) < self.margin - TIE
            if update or fresh[t]:
                delta = math.expm1(self.gamma * y) * q if update else 0.0
                self._note(u, v, y if update else 0, delta)
            if update:
                self._correct(a, b, self.gamma * y)  # "Update": log W + gamma y X
        return predictions

    def replay(self, log: dict[str, NDArray[Any]]) -> None:
        """Take the events of a log into an empty object; exp(S) is made once, from S."""
        super().replay(log)
        self._widen(self.n_vertices)
        self._S = self.dense()
        eigenvalues, V = np.linalg.eigh(self._S)
        self._E = np.asarray((V * np.exp(eigenvalues)) @ V.T)

    def copy(self, length: int) -> IncrementalExponential:
        """Return a new object as this one was after its first `length` events."""
        new = IncrementalExponential(self.start_gamma, margin=self.margin)
        new.replay(self.log(length))
        return new

    def _note(self, u: int, v: int, y: int, delta: float) -> None:
        """Append one event to the log and to the graph."""
        k = self.events
        self._make_room(self.n_vertices + 2)
        self._make_log(k + 1)
        self._log_u[k], self._log_v[k], self._log_y[k] = u, v, y
        self._log_delta[k], self._log_end[k] = delta, np.nan
        self._insert_events(k, k + 1, self.n_vertices)

    def _widen(self, n: int) -> None:
        have = len(self._E)
        if n > have:
            S, E = np.zeros((n, n)), np.eye(n)
            S[:have, :have], E[:have, :have] = self._S, self._E
            self._S, self._E = S, E

    def _correct(self, a: int, b: int, w: float) -> None:
        """Add w v v' to S, v = (e_a + e_b) / sqrt 2, and the low-rank change to exp(S)."""
        n = len(self._S)
        U = np.zeros((n, min(MOST, n)))
        U[[a, b], 0] = math.sqrt(0.5)
        T = np.zeros((U.shape[1], U.shape[1]))
        for k in range(U.shape[1]):
            r = self._S @ U[:, k]
            T[k, k] = U[:, k] @ r
            r -= U[:, : k + 1] @ (U[:, : k + 1].T @ r)
            r -= U[:, : k + 1] @ (U[:, : k + 1].T @ r)  # twice is enough
            norm = float(np.linalg.norm(r))
            F = _difference(T[: k + 1, : k + 1], w)
            last = float(np.abs(F[:, -1]).max())
            settled = k > 2 and last * norm <= 1e-16 * float(np.abs(F).max())
            if k + 1 == U.shape[1] or norm <= 1e-14 or settled:
                break
            U[:, k + 1] = r / norm
            T[k, k + 1] = T[k + 1, k] = norm
        U = U[:, : len(F)]
        self._E += U @ F @ U.T
        self._S[np.ix_([a, b], [a, b])] += 0.5 * w


def _difference(T: Array, w: float) -> Array:
    """Return exp(T + w e1 e1') - exp(T)."""
    found = []
    for shift in (w, 0.0):
        M = T.copy()
        M[0, 0] += shift
        eigenvalues, V = np.linalg.eigh(M)
        found.append((V * np.exp(eigenvalues)) @ V.T)
    return np.asarray(found[0] - found[1])
