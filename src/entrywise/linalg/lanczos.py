r"""Certified brackets of :math:`v^\top e^S v` for a sparse symmetric S that grows by one edge at a time.

Two matrices grow here. ``signed``: :math:`S = \gamma \sum_t y_t v_t v_t^\top` with
:math:`v_t = (e_i + e_j)/\sqrt2`, the logarithm of the weights of Matrix Winnow. ``symmetric``:
:math:`S = \gamma \sum_t y_t (e_i e_j^\top + e_j e_i^\top)`, without a diagonal. Vertices are numbered from 2;
0 and 1 stand for a row and a column that nothing is known of.

All derivatives of exp are positive, so a Gauss-Radau rule of Lanczos with its free node below the spectrum is
a lower bound and one with its node above is an upper bound (Golub and Meurant, 2010, chapter 6). The spectrum is
bounded by degrees, and above by Golden-Thompson: :math:`\mathrm{Tr}\, e^{S \pm \gamma vv^\top} \le \mathrm{Tr}\, e^S +
(e^{\pm\gamma} - 1)\, v^\top e^S v`. Mostly better: :math:`\lambda_{\max}(S + \gamma vv^\top) \le t` for every t above
:math:`\lambda_{\max}(S)` with :math:`\gamma v^\top (t - S)^{-1} v \le 1`, and the same Gauss-Radau rule bounds that form; now
and then a Cholesky factorization of t - S lowers t. A handful of steps decides on which side of a threshold the value
lies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.types import Array, Indices

Signs = NDArray[np.int8]
# of an event: its vertices, its sign, what the trace and an end of the spectrum became
LOG = ("u", "v", "y", "delta", "end")


class GrowingExponential:
    """The matrix S as an append-only graph, with predictions from brackets of exp(S).

    Parameters
    ----------
    gamma : float
        Weight of an edge.
    symmetric : bool
        Which of the two matrices grows.
    margin : float
        An entry is learnt also when it was right by less than this.
    doubling : bool
        Forget everything and divide gamma by sqrt 2 after ``ceil(2 c N log N / gamma^2)`` updates, N the vertices
        seen so far and ``c = 1 / (3 - e)``.

    Attributes
    ----------
    n_vertices : int
        Vertices numbered so far (the two unknown ones not counted).
    """

    def __init__(
        self, gamma: float, *, symmetric: bool = False, margin: float = 0.0, doubling: bool = False
    ) -> None:
        self.symmetric, self.margin, self.doubling = symmetric, margin, doubling
        self.start_gamma = gamma
        self.n_vertices = 0
        self._ints = np.zeros(self._jit.N_INTS, np.int64)
        self._floats = np.zeros(self._jit.N_FLOATS)
        self._floats[0] = gamma
        self._tally = np.zeros(6, np.int64)
        self._pool, self._weight = np.zeros(256, np.int32), np.zeros(256, np.int32)
        self._start = np.zeros(0, np.int64)
        self._count, self._room, self._net, self._ups, self._downs = (
            np.zeros(0, np.int32) for _ in range(5)
        )
        self._x = np.zeros((3, 0))
        self._stamp = np.zeros(0, np.int64)
        self._touched = np.zeros(0, np.int32)
        self._small, self._out = np.zeros((7, 80)), np.zeros(6)
        self._log_u, self._log_v = np.zeros(0, np.int32), np.zeros(0, np.int32)
        self._log_y, self._log_delta, self._log_end = np.zeros(0, np.int8), np.zeros(0), np.zeros(0)
        self._make_room(2)

    @property
    def _jit(self) -> Any:
        from entrywise.linalg import _jit_winnow

        return _jit_winnow

    # what it knows

    @property
    def events(self) -> int:
        """Length of the log: updates, and first sights of a vertex."""
        return int(self._ints[self._jit.EVENTS])

    @property
    def updates(self) -> int:
        """Edges since the beginning, restarts included."""
        return int(self._ints[self._jit.UPDATES])

    @property
    def restarts(self) -> int:
        """How often everything was forgotten."""
        return int(self._ints[self._jit.RESTARTS])

    @property
    def gamma(self) -> float:
        """Weight of an edge now."""
        return float(self._floats[0])

    @property
    def trace_bound(self) -> float:
        """Golden-Thompson bound on the trace of exp(S) over the vertices that have an edge."""
        return float(self._floats[1])

    @property
    def ends(self) -> tuple[float, float]:
        """Interval that holds the spectrum of S, and 0."""
        low, high = self._jit.span(self.symmetric, self.gamma, self._ints, self._floats)
        return float(low), float(high)

    @property
    def n_active(self) -> int:
        """Vertices that have an edge."""
        return int(self._ints[self._jit.VERTICES])

    @property
    def work(self) -> dict[str, float]:
        """Decisions made, Lanczos steps (mean and most), and edges walked, since this object was made."""
        _, steps, most, edges, decisions, _ = (int(k) for k in self._tally)
        mean = steps / max(decisions, 1)
        return {"decisions": decisions, "mean_steps": mean, "max_steps": most, "edges": edges}

    def log(self, length: int | None = None) -> dict[str, NDArray[Any]]:
        """Return the first `length` events as arrays, copied: all that is needed to make this state again."""
        k = self.events if length is None else length
        return {name: getattr(self, f"_log_{name}")[:k].copy() for name in LOG}

    def dense(self, n: int | None = None) -> Array:
        """Return S as an array of shape (n, n), n the number of vertices."""
        n = self.n_vertices if n is None else n
        S = np.zeros((n, n))
        for w in range(2, self.n_vertices + 2):
            here = slice(self._start[w], self._start[w] + self._count[w])
            S[w - 2, self._pool[here] - 2] = self._weight[here]
        if self.symmetric:
            return self.gamma * S
        S[np.arange(self.n_vertices), np.arange(self.n_vertices)] += self._net[
            2 : self.n_vertices + 2
        ]
        return 0.5 * self.gamma * S

    # predicting and learning

    def signs(self, us: Indices, vs: Indices) -> Signs:
        """Return the predictions at (us, vs), -1 or +1, ties +1."""
        return self._many(us, vs, False)[0]

    def values(self, us: Indices, vs: Indices) -> Array:
        """Return v' exp(S) v - 1 (signed) or 2 E_uv / (E_uu + E_vv) (symmetric), to about twelve digits."""
        return self._many(us, vs, True)[1]

    def _many(self, us: Indices, vs: Indices, exact: bool) -> tuple[Signs, Array]:
        signs, values = np.zeros(len(us), np.int8), np.zeros(len(us))
        self._jit.many(
            us, vs, self.symmetric, exact, self._start, self._count, self._net, self._pool, self._weight, self._x, self._stamp,
            self._touched, self._small, self._out, self._ints, self._floats, self._tally, signs, values,
        )  # fmt: skip
        return signs, values

    def follow(self, us: Indices, vs: Indices, ys: Signs, fresh: Signs) -> Signs:
        """Predict, then learn, trial by trial; return the predictions.

        ``fresh`` counts the vertices that each trial shows for the first time; they are numbered on from
        ``n_vertices``, in the order of the trials.
        """
        T = len(us)
        seen = self.n_vertices
        self.n_vertices += int(fresh.sum(dtype=np.int64))
        self._make_room(self.n_vertices + 2)
        self._make_log(self.events + T)
        predictions = np.zeros(T, np.int8)

        def go(at: int, seen: int) -> tuple[int, int]:
            at, seen = self._jit.follow(
                us, vs, ys, fresh, at, seen, self.symmetric, self.doubling, self.margin,
                self._start, self._count, self._room, self._net, self._ups, self._downs, self._pool, self._weight, self._x, self._stamp,
                self._touched, self._small, self._out, self._ints, self._floats, self._tally,
                self._log_u, self._log_v, self._log_y, self._log_delta, self._log_end, predictions,
            )  # fmt: skip
            return at, seen

        self._to_the_end(go, 0, T, seen)
        return predictions

    def replay(self, log: dict[str, NDArray[Any]]) -> None:
        """Take the events of a log into an empty object."""
        k = len(log["u"])
        self.n_vertices = int(max(log["u"].max(initial=1), log["v"].max(initial=1))) - 1
        self._make_room(self.n_vertices + 2)
        self._make_log(k)
        for name in LOG:
            getattr(self, f"_log_{name}")[:k] = log.get(name, np.nan)

        self._insert_events(0, k, 0)

    def _insert_events(self, first: int, last: int, seen: int) -> None:
        def go(at: int, seen: int) -> tuple[int, int]:
            at, seen = self._jit.replay(
                self._log_u, self._log_v, self._log_y, self._log_delta, self._log_end, at, last, seen, self.symmetric, self.doubling,
                self._start, self._count, self._room, self._net, self._ups, self._downs, self._pool, self._weight,
                self._touched, self._ints, self._floats,
            )  # fmt: skip
            return at, seen

        self._to_the_end(go, first, last, seen)

    def copy(self, length: int) -> GrowingExponential:
        """Return a new object as this one was after its first `length` events."""
        new = GrowingExponential(
            self.start_gamma, symmetric=self.symmetric, margin=self.margin, doubling=self.doubling
        )
        new.replay(self.log(length))
        return new

    # memory

    def _to_the_end(
        self, go: Callable[[int, int], tuple[int, int]], at: int, end: int, seen: int
    ) -> None:
        while True:
            at, seen = go(at, seen)
            if at >= end:
                return
            self._pool, self._weight = (
                np.concatenate([x, np.zeros_like(x)]) for x in (self._pool, self._weight)
            )

    def _make_room(self, n: int) -> None:
        have = len(self._start)
        if n <= have:
            return
        more = max(n, 2 * have, 64) - have
        for name in ("_start", "_count", "_room", "_net", "_ups", "_downs", "_stamp", "_touched"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros(more, old.dtype)]))
        self._x = np.zeros((3, have + more))

    def _make_log(self, n: int) -> None:
        have = len(self._log_u)
        if n <= have:
            return
        more = max(n, 2 * have, 64) - have
        for name in LOG:
            old = getattr(self, f"_log_{name}")
            setattr(self, f"_log_{name}", np.concatenate([old, np.zeros(more, old.dtype)]))
