r"""A rank-one matrix from products: the result that knows what it cannot know, and the fit that all methods share.

Known entries link rows and columns. Where no chain of known entries links a row to a column, their entry is
not determined by the data, and is NaN here. Where one does, the effective resistance between the two says how
far noise reaches it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.bounds.rank_one import FAIR, Sensitivity
from entrywise.exceptions import DataError, NotIdentifiable, ParameterError
from entrywise.linalg import small_products
from entrywise.linalg.laplacian import Laplacian, in_blocks
from entrywise.linalg.small import is_small_graph
from entrywise.observations import Observations
from entrywise.passive.connecting_entries import connecting_entries
from entrywise.results import Certificate, Interval, LowRank
from entrywise.results.result import refuse_level
from entrywise.types import Array, Indices

SHOWN = 100  # entries listed in a report
SHARPEST = 1e-8  # least noise of an entry, relative to the largest: more would drown the others
TINY = 1e-140  # least size of an entry in a weight: its square is still a normal number
FLAT = 1e-200  # share of the largest weight below which an entry no longer steers a step
ROUND_OFF = 1e-28  # share of the sum of squares that counts as nothing: (100 eps)^2, or so
MINIMAX = "minimax constant: largest Frobenius error for each unit of disturbance of these entries"
STEPS = (1.0, 0.5, 0.25, 0.1)  # lengths that a Gauss-Newton step tries
INEXACT = 1e-2  # relative error of a step: the objective sees its square
SETTLED = 1e-6  # gain of a step, at ten million entries or more, after which none follows
MANY = 100_000  # entries beyond which steps end before they gain nothing
SWEEPS = 6  # after each step, at most
ORDINARY = (1e-100, 1e100)  # sizes whose squares need no care
FAR = 345.0  # logarithm of a factor whose square is still a number, with room for sums
SPAN = 1e100  # how far apart entries, and noise, may lie: their squares stand in one system


def _none() -> Indices:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class RankOne(LowRank):
    r"""A completed matrix :math:`\hat A = x y^\top` with one gauge in each connected component.

    Parameters
    ----------
    row_component, col_component : ndarray of int64 of shape (m,) and (n,)
        Entry (i, j) is determined where they agree, and NaN elsewhere.
    seen_rows, seen_cols : ndarray of int64 of shape (t,)
        The entries that the fit used.
    precision : ndarray of shape (t,)
        Inverse noise variance of each, up to the factor ``sigma**2``.
    sigma : float
        Noise: estimated from the residuals; where the observations came with theirs 1, or a power of two where entries
        lie beyond 1e-100..1e100; NaN when neither can be had.
    degrees : float
        Degrees of freedom of `sigma`, infinite when it is known; 0 when there are none left.
    growth, at : float
        The noise of an entry A is ``sigma * |A / at| ** growth``: 0 of one size, 1/2 of counts, 1 proportional.
    multiplicative : bool
        Noise is that of the logarithms (``growth`` is 1), and intervals are symmetric there.

    Examples
    --------
    >>> from entrywise.passive import rank_one
    >>> nan = float("nan")
    >>> found = rank_one(Observations.from_dense([[1, 2, nan], [3, nan, nan], [nan, nan, 5]]))
    >>> found.to_dense().round(12)
    array([[ 1.,  2., nan],
           [ 3.,  6., nan],
           [nan, nan,  5.]])
    """

    row_component: Indices = field(default_factory=_none)
    col_component: Indices = field(default_factory=_none)
    seen_rows: Indices = field(default_factory=_none)
    seen_cols: Indices = field(default_factory=_none)
    precision: Array = field(default_factory=lambda: np.zeros(0))
    sigma: float = np.nan
    degrees: float = 0.0
    growth: float = 0.0
    at: float = 1.0
    multiplicative: bool = False

    def __post_init__(self) -> None:
        if not len(self.row_component):
            object.__setattr__(self, "row_component", np.zeros(self.shape[0], np.int64))
            object.__setattr__(self, "col_component", np.zeros(self.shape[1], np.int64))

    @property
    def interval_of(self) -> Literal["truth"]:
        """The truth: that it has rank one is assumed, and what is left is noise."""
        return "truth"

    @property
    def components(self) -> int:
        """How many parts the lines fall into that cannot be compared with each other."""
        return int(np.count_nonzero(np.bincount(np.r_[self.row_component, self.col_component])))

    def identifiable(self, rows: ArrayLike, cols: ArrayLike) -> NDArray[np.bool_]:
        """Tell which entries the known ones determine."""
        i, j = self._where(rows, cols)
        return np.asarray(self.row_component[i] == self.col_component[j])

    def entries(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the completed entries at (rows, cols), NaN where nothing determines them."""
        i, j = self._where(rows, cols)
        with np.errstate(over="ignore"):  # across components, where it does not matter
            found = self.left[i, 0] * self.right[j, 0]
        return np.where(self.row_component[i] == self.col_component[j], found, np.nan)

    def to_dense(self) -> Array:
        """Return the whole matrix as an array of shape (m, n), NaN where nothing determines it."""
        m, n = self.shape
        return self.entries(np.arange(m)[:, None], np.arange(n)[None, :])

    def scaled(self, unit: float) -> LowRank:
        """Return the matrix times `unit`, its noise with it; see :meth:`LowRank.scaled`."""
        return replace(super().scaled(unit), sigma=self.sigma * unit, at=self.at * unit)  # type: ignore[call-arg]

    def __matmul__(self, x: ArrayLike) -> Array:
        """Return A x; NaN in rows that would need an undetermined entry."""
        X = np.asarray(x, np.float64)
        flat = X.reshape(len(X), -1)
        count = _parts(self.row_component, self.col_component)
        sums = np.zeros((count, flat.shape[1]))
        used = np.zeros((count, flat.shape[1]))
        live = np.isfinite(self.right[:, 0])
        np.add.at(sums, self.col_component[live], self.right[live] * flat[live])
        np.add.at(used, self.col_component, flat != 0)
        found = self.left * sums[self.row_component]
        found[used[self.row_component] < used.sum(axis=0)] = np.nan
        return np.asarray(found.reshape(len(self.left), *X.shape[1:]))

    @cached_property
    def _scaled(self) -> tuple[Array, Array]:
        """The factors, divided by a power of two where squares of entries would not be numbers."""
        root = np.sqrt(unit_of(_largest(self.left) * _largest(self.right)))
        return self.left[:, 0] / root, self.right[:, 0] / root

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """How disturbances of the known entries reach the others; the scale of the factors does not matter."""
        return self.sensitive(None, self.precision)

    def sensitive(self, graph: Laplacian | None, precision: ArrayLike = 1.0) -> Sensitivity:
        """Return how disturbances reach the other entries, counted in the noise that belongs to `precision`."""
        where = self.seen_rows, self.seen_cols
        return Sensitivity(*where, *self._scaled, precision, graph=graph)

    def variance(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        r"""Return the variance of the estimate, :math:`\sigma^2 \hat A_{ij}^2 R_{ij}`, NaN where nothing determines it.

        Entries of lines that are zero have that of the line's own least-squares fit.
        """
        return np.asarray(self.sigma**2 * self._spread(rows, cols))

    def _spread(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the variance of the estimate for each unit of noise variance."""
        i, j = self._where(rows, cols)
        x, y = self._scaled
        A = np.where(self.identifiable(i, j), x[i] * y[j], np.nan)
        found = np.full(A.shape, np.nan)
        usual = np.isfinite(A) & (A != 0)
        if usual.any():
            found[usual] = A[usual] ** 2 * self.sensitivity.resistances(i[usual], j[usual])
        zero = A == 0
        if zero.any():
            found[zero] = self._of_zero_lines(i[zero], j[zero])
        return found

    def _of_zero_lines(self, i: Indices, j: Indices) -> Array:
        x, y = self._scaled
        s, t, p = self.seen_rows, self.seen_cols, self.precision
        of_row = np.bincount(s, p * y[t] ** 2, len(x))[i]
        of_col = np.bincount(t, p * x[s] ** 2, len(y))[j]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(x[i] == 0, y[j] ** 2 / of_row, x[i] ** 2 / of_col)

    def interval(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        level: float = 0.9,
        of: Literal["answer", "truth"] = "answer",
        noise: ArrayLike | None = None,
    ) -> Interval:
        r"""Return intervals that cover with probability `level`: a new measurement (``answer``) or the entry (``truth``).

        .. math:: \hat A_{ij} \pm t \, \sigma \sqrt{\hat A_{ij}^2 R_{ij}\ [+\,1]}

        with t from Student's law, :math:`R` the effective resistance between row i and column j, and 1 replaced by the
        noise of the entry where it grows with it; on the logarithms where noise is multiplicative. NaN where the
        known entries determine nothing, and everywhere when they leave no degree of freedom to tell the noise by (the
        report says so). Intervals are clipped to ``bounds``. `noise` is the standard deviation of the new measurement,
        that of the known entries when not given.
        """
        refuse_level(level, "level of an interval")
        if of not in ("answer", "truth"):
            raise ParameterError(f"of must be 'answer' or 'truth', got {of!r}")
        from scipy.stats import norm, t

        unit = unit_of(self.sigma)
        sigma = self.sigma / unit
        variance = np.asarray(sigma**2 * self._spread(rows, cols))
        A = self.entries(rows, cols)
        if of == "answer":
            variance = variance + self._of_answers(A, noise, unit)
        tail = 0.5 + level / 2
        if np.isinf(self.degrees):
            factor = norm.ppf(tail)
        else:
            factor = t.ppf(tail, max(self.degrees, 1.0))
        half = factor * unit * np.sqrt(variance)
        if self.multiplicative:
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                times = np.exp(half / np.abs(A))
            ends = np.sort([A / times, A * times], axis=0)
        else:
            ends = np.array([A - half, A + half])
        low, high = self.bounds or (-np.inf, np.inf)
        return Interval(*np.clip(ends, low, high))

    def _of_answers(self, A: Array, noise: ArrayLike | None, unit: float) -> Array:
        """Return the noise variance of new measurements at entries A, in squares of `unit`."""
        if noise is not None:
            deviation = np.asarray(noise, np.float64)
        elif self.growth:
            deviation = self.sigma * np.abs(A / self.at) ** self.growth
        else:
            typical = float(np.median(self.precision)) if len(self.precision) else 1.0
            deviation = np.asarray(self.sigma / np.sqrt(typical))
        return np.asarray((deviation / unit) ** 2)


def unit_of(size: float) -> float:
    """Return 1 for sizes whose squares need no care, else an even power of two near `size`.

    >>> unit_of(3.0), unit_of(1.5 * 2.0**401) == 2.0**400
    (1.0, True)
    """
    if not np.isfinite(size) or size == 0 or ORDINARY[0] <= size <= ORDINARY[1]:
        return 1.0
    exponent = int(np.frexp(size)[1]) - 1
    return float(np.ldexp(1.0, exponent - exponent % 2))


def refuse_empty(observations: Observations, who: str) -> None:
    """Refuse observations from which no rank-one matrix can be told."""
    if not len(observations):
        raise ParameterError(
            f"{who} needs at least one observation, got none; observe some entries"
        )
    if not np.any(observations.values):
        raise NotIdentifiable(
            f"all {len(observations)} known entries are zero: a rank-one matrix is determined by its nonzero ones; "
            "observe some"
        )


def _ordinary(observations: Observations) -> tuple[Observations, float]:
    """Return the observations divided by a power of two, which is 1 for all but extreme ones, and that power."""
    size = np.abs(observations.values)
    largest = float(size.max(initial=0.0))
    unit = unit_of(largest)
    if largest == 0:
        return observations, 1.0
    least = float(size.min(where=size > 0, initial=largest))
    if least / unit < largest / unit / SPAN:
        a, b = int(np.argmax(size == least)), int(np.argmax(size))
        raise DataError(
            f"entries of a rank-one table must lie within a factor of {SPAN:g} of each other, got {least:g} at "
            f"{_place(observations, a)} and {largest:g} at {_place(observations, b)}; correct them or leave them out"
        )
    noise = float(observations.noise_array(0.0).max(initial=0.0))
    if noise > 0 and not largest / unit / SPAN <= noise / unit <= largest / unit * SPAN:
        raise DataError(
            f"the noise of a rank-one table must lie within a factor of {SPAN:g} of its largest entry, got {noise:g} "
            f"for {largest:g}; give it in the entries' units"
        )
    if unit == 1.0:
        return observations, 1.0
    told = None if observations.noise is None else observations.noise / unit
    return replace(observations, values=observations.values / unit, noise=told), unit


def _place(observations: Observations, t: int) -> str:
    return f"({observations.rows[t]}, {observations.cols[t]})"


class MultiplicativeFit:
    """A rank-one fit under way: factors x (m,) and y (n,), NaN on lines of which nothing is known.

    Inside, entries are divided by the largest one, so that their scale does not matter. ``seen`` are the
    observations, divided by ``power``, a power of two, where their squares would not be numbers, and in an order that
    suits the cache where there are more lines than it holds.
    """

    def __init__(self, observations: Observations) -> None:
        m, n = observations.shape
        seen, self.power = _ordinary(observations)
        order = in_blocks(m, n, seen.rows, seen.cols)
        self.seen = observations = seen if order is None else seen.take(order)
        self.i, self.j = observations.rows, observations.cols
        self.scale = float(np.abs(observations.values).max(initial=0.0)) or 1.0
        self.a = observations.values / self.scale  # everything inside is in these units
        noise = observations.noise_array(1.0)
        self.known_noise = observations.noise is not None and bool(np.any(noise > 0))
        if observations.noise is not None and not self.known_noise:
            noise = np.ones(len(noise))  # told to be exact: all alike
        least = SHARPEST * float(np.max(noise, initial=0.0))
        self.unit = self.scale if self.known_noise else 1.0
        self.precision = (np.maximum(noise, least) / self.unit) ** -2.0
        self.x, self.y = np.full(m, np.nan), np.full(n, np.nan)
        self.row_of, self.col_of = _none(), _none()
        self.parts: tuple[int, Indices, Indices] | None = None  # before lines of zeros were adopted
        self.law, self.growth, self.multiplicative = "of one size", 0.0, False
        self.iterations = 0
        self.steps = 0
        self.far = 0  # lines whose factors are beyond what numbers hold
        self.graph: Laplacian | None = None  # of the last step: its pattern serves the next

    @cached_property
    def second(self) -> Indices:
        """The node of each entry's column: columns come after the rows."""
        return np.asarray(self.seen.shape[0] + self.j)

    @cached_property
    def passes(self) -> Any:
        """The passes over the entries: compiled, or in numpy where they are few."""
        if is_small_graph(sum(self.seen.shape), len(self.a)):
            return small_products
        from entrywise.linalg import _jit_products

        return _jit_products

    def start(self, weighted: bool = True, rough: bool = False) -> None:
        """Solve in log space, propagate signs, and give every component its gauge ([HOS20], Algorithm 1).

        A `rough` solution is enough where a refinement follows.
        """
        m, n = self.seen.shape
        live = which(self.a != 0)
        i, j, a, precision = self.i[live], self.j[live], self.a[live], self.precision[live]
        size = np.abs(a)
        heavy = np.maximum(size, TINY) ** 2 * precision / self.precision.max(initial=1.0)
        by_size = Laplacian.like(self.graph, m + n, i, self.second[live], heavy)
        graph = by_size if weighted else by_size.reweighted(precision)
        rtol, rounds = (INEXACT, 1) if rough else (1e-8, 4)
        p = graph.potentials(np.log(size), rtol, rounds=rounds)  # 2  L p = div(w log |a|)
        self.iterations, self.graph = graph.iterations, by_size
        sign = np.ones(m + n)
        if (
            a < 0
        ).any():  #    signs, along the tree of the largest entries; the paper's are positive
            flips = by_size.walk((a < 0).astype(np.float64))
            sign = 1.0 - 2.0 * (np.rint(flips) % 2)
        z = self.from_logarithms(p, sign)  # 3
        count, part = by_size.components
        self.parts = count, part[:m], part[m:]
        self.place(z, i, j, part[:m], part[m:])

    def from_logarithms(self, p: Array, sign: Array) -> Array:
        """Return the factors (m + n,) that potentials p belong to, NaN where they lie too far from the middle ones."""
        m = self.seen.shape[0]
        logarithm = np.r_[p[:m], -p[m:]]
        far = np.abs(logarithm) > FAR
        self.far = int(np.sum(far))
        return np.asarray(sign * np.exp(np.where(far, np.nan, logarithm)))

    def place(self, z: Array, i: Indices, j: Indices, row_of: Indices, col_of: Indices) -> None:
        """Take x and y from z (m + n,), NaN on lines without one of the entries (i, j)."""
        m, n = self.seen.shape
        linked = np.zeros(m + n, bool)
        linked[i] = linked[m + j] = True
        z = np.where(linked, z, np.nan)
        self.x, self.y = z[:m], z[m:]
        self.row_of, self.col_of = row_of.copy(), col_of.copy()

    def fitted(self) -> Array:
        """The fit at the known entries, NaN where their line is not determined."""
        return np.asarray(
            self.passes.fitted(self.i, self.j, self.x, self.y, self.row_of, self.col_of)
        )

    def used(self) -> Indices | slice:
        """Return which known entries the fit reaches."""
        where = self.i, self.j, self.x, self.y, self.row_of, self.col_of
        if self.passes.reaches_all(*where):
            return slice(None)
        return np.flatnonzero(np.isfinite(self.passes.fitted(*where)))

    def objective(self, x: Array, y: Array, used: Indices | slice) -> float:
        """Weighted sum of squared residuals over the entries used."""
        return float(self.passes.squares(*self._entries(used), x, y))

    def _entries(self, used: Indices | slice) -> tuple[Indices, Indices, Array, Array]:
        return self.i[used], self.j[used], self.a[used], self.precision[used]

    def refine(self, max_steps: int = 10, tol: float = 1e-8) -> None:
        """Minimise the squared error itself: Gauss-Newton steps, each polished by a few alternating sweeps.

        They end when they gain a share of `tol`; in large tables earlier, where only single lines still move.
        """
        self.adopt_zero_lines()
        used = self.used()
        now = self.objective(self.x, self.y, used)
        least = ROUND_OFF * float(np.sum(self.precision[used] * self.a[used] ** 2))
        settled = max(tol, min(SETTLED, 1e-13 * len(self.a)))
        for _ in range(max_steps):
            if now <= least:
                return
            before = now
            now = self._step(used, now)
            gain = before - now
            now = self._sweeps(used, now, tol)
            self.steps += 1
            if before - now <= tol * before or (len(self.a) > MANY and gain <= settled * before):
                return

    def _sweeps(self, used: Indices | slice, now: float, tol: float) -> float:
        """Sweep while it helps, a few times: what single lines gain, a step would have to be taken anew for."""
        for _ in range(SWEEPS):
            before, now = now, self.sweep(used, now)
            if before - now <= tol * before:
                break
        return now

    def _step(self, used: Indices | slice, now: float) -> float:
        """Take one Gauss-Newton step, a Laplacian system, as long as it helps; return the objective."""
        m = self.seen.shape[0]
        i, j, a, w = self._entries(used)
        weights, right = self.passes.newton(i, j, a, w, self.x, self.y)
        live = which(weights > FLAT * weights.max(initial=0.0))
        ends = i[live], self.second[used][live]
        self.graph = Laplacian.like(self.graph, sum(self.seen.shape), *ends, weights[live])
        p = self.graph.solve(right, INEXACT)
        for step in STEPS:
            x, y = self.x * (1.0 + step * p[:m]), self.y * (1.0 - step * p[m:])
            new = self.objective(x, y, used)
            if new < now:
                self.x, self.y = x, y
                return new
        return now

    def sweep(self, used: Indices | slice, now: float) -> float:
        """Take the best x for this y, then the best y for that x, where that helps; return the objective."""
        i, j, a, w = self._entries(used)
        x = self.best_lines(i, j, a, w, self.y, self.x)
        y = self.best_lines(j, i, a, w, x, self.y)
        new = self.objective(x, y, used)
        if new < now:
            self.x, self.y, now = x, y, new
        return now

    def best_lines(
        self,
        line: Indices,
        across: Indices,
        a: Array,
        w: Array,
        other: Array,
        old: Array,
        ridge: float = 0.0,
    ) -> Array:
        """Return the least-squares value of each line given the other factor; lines without data keep theirs."""
        top, below = self.passes.line_sums(line, across, a, w, other, len(old))
        below = below + ridge
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((below > 0) & np.isfinite(old), top / below, old)

    def adopt_zero_lines(self) -> None:
        """Let lines that are known to be zero join the component of an entry that says so."""
        if np.all(self.a):
            return
        for here, there, of_here, of_there, own, other in (
            (self.i, self.j, self.row_of, self.col_of, self.x, self.y),
            (self.j, self.i, self.col_of, self.row_of, self.y, self.x),
        ):
            # only zeros are known of it, so far
            lonely = np.isnan(own[here]) & np.isfinite(other[there]) & (self.a == 0)
            own[here[lonely]] = 0.0
            of_here[here[lonely]] = of_there[there[lonely]]

    def gauge(self) -> None:
        """Balance the two factors in each component and make its first row positive."""
        count = _parts(self.row_of, self.col_of)
        of_rows = np.sqrt(np.bincount(self.row_of, np.nan_to_num(self.x) ** 2, count))
        of_cols = np.sqrt(np.bincount(self.col_of, np.nan_to_num(self.y) ** 2, count))
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.sqrt(of_cols / of_rows)
        factor[~np.isfinite(factor) | (factor == 0)] = 1.0
        first = np.full(count, -1, np.int64)
        rows = np.flatnonzero(np.nan_to_num(self.x))[::-1]
        first[self.row_of[rows]] = rows
        factor[first >= 0] *= np.sign(self.x[first[first >= 0]])
        self.x, self.y = self.x * factor[self.row_of], self.y / factor[self.col_of]

    def result(self, method: str, certify: bool = True, **more: Any) -> RankOne:
        """Return the fit with its noise, certificates and report."""
        self.gauge()
        A = self.fitted()
        used = which(np.isfinite(A))
        degrees, spread = self.noise(used)
        sigma = 1.0 if self.known_noise else spread * self.scale
        root = np.sqrt(self.scale)
        found = RankOne(
            root * self.x[:, None],
            root * self.y[:, None],
            row_labels=self.seen.row_labels,
            col_labels=self.seen.col_labels,
            row_component=self.row_of,
            col_component=self.col_of,
            seen_rows=self.i[used],
            seen_cols=self.j[used],
            precision=self.precision[used] / self.unit**2,
            sigma=float(sigma),
            degrees=np.inf if self.known_noise else degrees,
            growth=self.growth,
            at=self.scale,
            multiplicative=self.multiplicative,
        )
        against = np.flatnonzero(self.a * A < 0)
        noise = None
        if degrees > 0:
            noise = float(spread * self.scale / np.sqrt(np.median(self.precision[used])))
            noise *= self.power
        report = {
            "method": method,
            "entries": len(self.a),
            "zeros": int(np.sum(self.a == 0)),
            "unused": len(self.a) - len(found.seen_rows),
            "components": found.components,
            "degrees_of_freedom": int(degrees),
            "noise": noise,
            "noise_law": "given" if self.known_noise else self.law,
            "contradicted": len(against),
            "contradicted_entries": _list(self.i[against], self.j[against]),
            "iterations": self.iterations,
            "refinements": self.steps,
            **more,
            "interval": self._why_interval(sigma, int(degrees)),
        }
        if found.components > 1:
            report |= self._apart()
        if self.far:
            report["too_far"] = self.far
        certificates = self._certificates(found) if certify else ()
        return replace(
            found,
            left=np.sqrt(self.power) * found.left,
            right=np.sqrt(self.power) * found.right,
            sigma=self.power * found.sigma,
            at=self.power * found.at,
            certificates=certificates,
            report=report,
        )

    def noise(self, used: Indices | slice) -> tuple[float, float]:
        """Return the degrees of freedom that the fit leaves, and the noise that its residuals show."""
        lines = np.isfinite(self.x).sum() + np.isfinite(self.y).sum()
        parts = np.count_nonzero(np.bincount(self.row_of[np.isfinite(self.x)]))
        a = self.a[used]
        degrees = float(len(a) - (lines - parts))
        if self.multiplicative:
            A = self.fitted()[used]
            squares = float(np.sum(self.precision[used] * (np.log(np.abs(a / A)) * A) ** 2))
        else:
            squares = self.objective(self.x, self.y, used)
        return degrees, float(np.sqrt(squares / degrees)) if degrees > 0 else np.nan

    def _why_interval(self, sigma: float, degrees: int) -> str:
        if not sigma >= 0:
            return "none: the known entries form a tree, none is left to tell the noise by; observe one more, or give noise="
        told = "the noise given"
        if not self.known_noise:
            told = f"noise {self.law}, told by {degrees} degrees of freedom"
        return f"from effective resistances and {told}"

    def _apart(self) -> dict[str, Any]:
        """Say which entries would link the components, and how much is determined without them."""
        rows, cols = connecting_entries(self.seen, parts=self.parts)
        apart = self.row_of[rows] != self.col_of[cols]  # lines of zeros are settled
        rows, cols = rows[apart], cols[apart]
        return {
            "connect": _list(rows, cols),
            "to_connect": len(rows),
            "determined": _determined(self.row_of, self.col_of),
        }

    def _certificates(self, found: RankOne) -> tuple[Certificate, ...]:
        if not len(found.seen_rows):
            return ()
        unit = "noise units" if self.known_noise else "the entries' units"
        per = self.power if self.known_noise else 1.0
        checked = ("signs agree along the tree of the largest entries",)
        if _largest(self.x) * _largest(self.y) > SPAN:  # squares of errors beyond what numbers hold
            return (Certificate(MINIMAX, np.inf, ("the matrix has rank one",), vacuous=True),)
        own = found.sensitive(self.graph, found.precision)
        of_entries = own
        if self.growth:  # the constant belongs to the entries, whatever their noise
            of_entries = found.sensitive(own.laplacian)
        worst = Certificate(
            MINIMAX,
            float(np.sqrt(of_entries.worst(FAIR)[0])) * per,
            ("the matrix has rank one", f"disturbances are small, counted in {unit}"),
            () if np.all(self.a > 0) else checked,
        )
        if not found.sigma >= 0:
            return (worst,)
        error = float(found.sigma * np.sqrt(own.trace()))
        how = "of the size given" if self.known_noise else self.law
        expected = Certificate(
            "expected Frobenius error over the determined entries",
            error * self.power,
            ("the matrix has rank one", f"noise is independent, {how}"),
            () if self.known_noise else ("residuals gave the noise",),
            vacuous=bool(error >= _norm(found) > 0),
        )
        return worst, expected


def which(of: NDArray[np.bool_]) -> Indices | slice:
    """Return where a mask holds; a slice where that is everywhere, which copies nothing."""
    return slice(None) if of.all() else np.flatnonzero(of)


def _parts(row_of: Indices, col_of: Indices) -> int:
    """Return one more than the largest number of a component."""
    return int(max(row_of.max(initial=0), col_of.max(initial=0))) + 1


def _largest(v: Array) -> float:
    return float(np.max(np.abs(v), initial=0.0, where=np.isfinite(v)))


def _norm(found: RankOne) -> float:
    """Frobenius norm over the determined entries."""
    count = _parts(found.row_component, found.col_component)
    rows = np.bincount(found.row_component, np.nan_to_num(found.left[:, 0]) ** 2, count)
    cols = np.bincount(found.col_component, np.nan_to_num(found.right[:, 0]) ** 2, count)
    return float(np.sqrt(rows @ cols))


def _determined(row_of: Indices, col_of: Indices) -> float:
    """Share of the entries whose row and column lie in one component."""
    count = _parts(row_of, col_of)
    both = np.bincount(row_of, minlength=count) @ np.bincount(col_of, minlength=count)
    return float(both / (len(row_of) * len(col_of)))


def _list(rows: Indices, cols: Indices) -> list[list[int]]:
    return [[int(i), int(j)] for i, j in zip(rows[:SHOWN], cols[:SHOWN], strict=True)]
