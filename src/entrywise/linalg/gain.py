r"""How much the total posterior variance falls when a cell is bought, for all cells, block by block.

With row posteriors :math:`C^u_i`, column posteriors :math:`C^v_j`, designs :math:`\tilde u = (u, 1)`,
:math:`\tilde v = (v, 1)` and answers of variance :math:`\sigma^2`, buying (i, j) lowers the variance of the
other open cells of row i and of column j by

.. math:: \frac{\tilde v_j^\top C^u_i M_i C^u_i \tilde v_j + \tilde u_i^\top C^v_j N_j C^v_j \tilde u_i}
   {\sigma^2 + \mathrm{var}_{ij}}, \qquad M_i = \sum_{j' \text{ open}} \tilde v_{j'} \tilde v_{j'}^\top, \quad
   N_j = \sum_{i' \text{ open}} \tilde u_{i'} \tilde u_{i'}^\top.

For the row means instead of the cells, :math:`M_i` is the outer square of :math:`\sum \tilde v_{j'}`. Both the gain
and the variance are bilinear in features of the row and of the column, so a block of cells is two matrix products.

**Yes/no answers.** The factors give logits; with :math:`w_{ij}` the mean slope of the logistic function there, an answer
says as much of its logit as a measurement with noise variance :math:`1/w_{ij}`, and an error of the logit is
:math:`w_{ij}` times as large in the probability. So :math:`\sigma^2` is :math:`1/w_{ij}`, and the sums
:math:`M_i` and :math:`N_j` weigh every cell by :math:`w_{ij}^2`: what falls is the variance of probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entrywise.exceptions import ParameterError
from entrywise.linalg import small
from entrywise.linalg.variational import one_blas_thread
from entrywise.results import LowRank
from entrywise.results.levels import logistic_slope
from entrywise.results.posterior import (
    col_features,
    design,
    packed,
    row_features,
    squares,
    unpacked,
)
from entrywise.types import Array, Indices

BLOCK = 1 << 20  # cells scored at once
CACHED = 1 << 17  # in single precision: they stay in the processor's cache
NOISELESS = 1e-12  # answers count as at least this noisy, relative to the rows' variances: gains stay finite
SMALLEST = 1e-300
EVERY = slice(None)
SLACK = 0.3  # the level of a pass is at least seven tenths of the one before
FEW = 32  # cells known of a column, up to which a pass takes one more; of others half of what they have beyond
SHARE = 1 / 64  # of what is left of the money, that a pass is to cost
STEPS = 16  # of slack, down which a pass goes at most to find so much
TRUST = 0.2  # of the cells that rows seem to want, what the first pass is expected to buy; later ones by what they did
LEAST = 8  # cells of a row that are looked at
DEPTH = 6  # and beside these, so many times what the row is expected to buy
REFUSING = 8  # of the columns, one in so many may refuse cells, and passes still go down

IsOpen = Callable[[Indices], NDArray[np.bool_]]
LinePrice = Callable[[Indices], Array]


@dataclass(frozen=True, eq=False)
class Logits:
    """What yes/no answers are: the parts of their logits beside the factors, and how far the two answers are apart."""

    row: Array  # (m,) offsets, that of the matrix included
    col: Array  # (n,)
    span: float

    @classmethod
    def of(cls, fit: LowRank) -> Logits | None:
        """Return those of a fit of yes/no answers; None for any other."""
        if fit.answers is None or not fit.is_binary:
            return None
        m, n = fit.shape
        row = np.zeros(m) if fit.row_offset is None else fit.row_offset
        col = np.zeros(n) if fit.col_offset is None else fit.col_offset
        return cls(row + fit.offset, col, float(np.ptp(fit.answers.values)))


@dataclass
class Gains:
    """Everything that scoring needs; :meth:`pick` changes the covariances in place.

    Symmetric q x q matrices, one a line, are packed as upper triangles: (m, p) and (n, p) with p = q (q + 1) / 2.
    """

    U: Array  # (m, q)
    V: Array  # (n, q)
    Cu: Array  # (m, p)
    Cv: Array  # (n, p)
    M: Array  # (m, p)
    N: Array  # (n, p)
    known: tuple[Indices, Indices]  # (m,) and (n,), cells of each line that are no longer open
    s2: float
    by_sum: bool
    logits: Logits | None = None

    @classmethod
    def of(cls, fit: LowRank, rows: Indices, cols: Indices, by_sum: bool = False) -> Gains:
        """Return the state of a fit of :func:`~entrywise.passive.low_rank`; (rows, cols) are no longer open."""
        if fit.posterior is None or fit.posterior.is_point:
            raise ParameterError("gains need a posterior with covariances; fit with low_rank")
        posterior = fit.posterior
        U, V = design(fit.left), design(fit.right)
        scale = float(np.mean(np.einsum("iaa->i", posterior.rows.cov))) if len(U) else 1.0
        p = U.shape[1] * (U.shape[1] + 1) // 2
        found = cls(
            U,
            V,
            Cu=packed(posterior.rows.cov),
            Cv=packed(posterior.cols.cov),
            M=np.zeros((len(U), p)),
            N=np.zeros((len(V), p)),
            known=(np.bincount(rows, minlength=len(U)), np.bincount(cols, minlength=len(V))),
            s2=max(posterior.answer_variance, NOISELESS * max(scale, SMALLEST)),
            by_sum=by_sum,
            logits=Logits.of(fit),
        )
        if found.logits is None:
            found._count_alike(rows, cols)
        else:
            found._count_by_slope(rows, cols)
        return found

    def _count_alike(self, rows: Indices, cols: Indices) -> None:
        """Set the sums over open cells, all cells but the listed ones, each counted once."""
        U, V = self.U, self.V
        m, n = len(U), len(V)
        if small.is_small(m, n):
            packed_sums = small.packed_sums
        else:
            from entrywise.linalg._jit_gain import packed_sums
        a, b = np.triu_indices(U.shape[1])
        if self.by_sum:
            bought = np.stack([np.bincount(rows, v[cols], m) for v in V.T], axis=1)
            s = V.sum(axis=0) - bought
            self.M = s[:, a] * s[:, b]
        else:
            self.M = (V.T @ V)[a, b] - packed_sums(rows, cols, V, m)
        self.N = (U.T @ U)[a, b] - packed_sums(cols, rows, U, n)

    def _count_by_slope(self, rows: Indices, cols: Indices) -> None:
        """Set the sums over open cells, each weighted by the squared slope from its logit to its answer."""
        a, b = np.triu_indices(self.U.shape[1])
        UU, VV = self.U[:, a] * self.U[:, b], self.V[:, a] * self.V[:, b]
        order = np.argsort(rows, kind="stable")
        rows, cols = rows[order], cols[order]
        left, right = self._variance_halves()
        for part in self._row_blocks():
            slope = self._slopes(part, left[part] @ right)
            low, high = np.searchsorted(rows, (part[0], part[-1] + 1))
            slope[rows[low:high] - part[0], cols[low:high]] = 0.0
            if self.by_sum:
                s = slope @ self.V
                self.M[part] = s[:, a] * s[:, b]
            slope **= 2
            if not self.by_sum:
                self.M[part] = slope @ VV
            self.N += slope.T @ UU[part]

    def _slopes(self, rows: Indices, variance: Array, some: Indices | slice = EVERY) -> Array:
        """Return how much an answer moves with its logit, in `some` columns of rows whose logits have these variances."""
        logits = self.logits
        assert logits is not None
        mean = self.U[rows, :-1] @ self.V[some, :-1].T + logits.row[rows][:, None]
        mean += logits.col[some]
        return np.asarray(logits.span * logistic_slope(mean, variance))

    def _noise(
        self, rows: Indices, variance: Array, some: Indices | slice = EVERY
    ) -> float | Array:
        """Return the variance of an answer about what the factors give, in `some` columns of rows."""
        if self.logits is None:
            return self.s2
        return np.asarray(self.logits.span / self._slopes(rows, variance, some))

    def take(self, rows: Indices, cols: Indices) -> None:
        """Let the covariances learn of cells whose answers are still out: a variance needs no value."""
        q = self.U.shape[1]
        a, b = np.triu_indices(q)
        for i, j in zip(rows.tolist(), cols.tolist(), strict=True):
            u, v = self.U[i], self.V[j]
            Cu, Cv = unpacked(self.Cu[i : i + 1], q)[0], unpacked(self.Cv[j : j + 1], q)[0]
            x, z = Cu @ v, Cv @ u
            shared = float(np.sum(Cu[:-1, :-1] * Cv[:-1, :-1]))
            variance = float(v @ x) + float(u @ z) + shared
            d = self._noise_at(i, j, variance) + variance
            self.Cu[i] -= x[a] * x[b] / d
            self.Cv[j] -= z[a] * z[b] / d

    def _noise_at(self, i: int, j: int, variance: float) -> float:
        """Return the variance of one answer about what the factors give."""
        logits = self.logits
        if logits is None:
            return self.s2
        mean = self.U[i, :-1] @ self.V[j, :-1] + logits.row[i] + logits.col[j]
        return 1.0 / float(logistic_slope(np.asarray(mean), np.asarray(variance)))

    def _variance_halves(self) -> tuple[Array, Array]:
        """Return (c, d): the variances of all cells, or of their logits, are ``c @ d``."""
        right = np.ascontiguousarray(col_features(self.V, self.Cv).T)
        return row_features(self.U, self.Cu), right

    def _features(self) -> tuple[Array, Array, Array, Array]:
        """Return (a, b, c, d): the gain times (sigma^2 + variance) of all cells is ``a @ b``, the variance ``c @ d``."""
        own, spread = row_parts(np.arange(len(self.U)), self.U, self.Cu, self.M)
        across = np.hstack([squares(self.V), _sandwich(self.Cv, self.N)]).T
        right = np.ascontiguousarray(col_features(self.V, self.Cv).T)
        return own, np.ascontiguousarray(across), spread, right

    def blocks(self) -> Iterator[tuple[Indices, Array, Array]]:
        """Yield (rows, gains, variances of the expected answers) for blocks of rows; both of shape (len(rows), n)."""
        gain_left, gain_right, var_left, var_right = self._features()
        for rows in self._row_blocks():
            variance = var_left[rows] @ var_right
            gain = (gain_left[rows] @ gain_right) / (self._noise(rows, variance) + variance)
            if self.logits is not None:
                variance *= self._slopes(rows, variance) ** 2
            yield rows, gain, variance

    def variance_without(self, cells: Indices) -> float:
        """Return the sum of the variances of all entries but those of `cells`, which are in order; not for logits."""
        from scipy.sparse import csr_array

        left, right = self._variance_halves()
        m, n = len(left), right.shape[1]
        pointer = np.searchsorted(cells, n * np.arange(m + 1))
        closed = csr_array((np.ones(len(cells)), cells % n, pointer), shape=(m, n))
        total = float(left.sum(axis=0) @ right.sum(axis=1))
        return max(total - float(np.sum(left * (closed @ right.T))), 0.0)

    def open_variance(self, is_open: IsOpen) -> tuple[float, int]:
        """Return the sum of the variances of the expected answers of all open cells, and their number."""
        left, right = self._variance_halves()
        total, count = 0.0, 0
        for rows in self._row_blocks(CACHED):
            free = is_open(rows)
            count += int(np.count_nonzero(free))
            if self.logits is None:
                total += float(np.sum(left[rows] * (free.astype(np.float64) @ right.T)))
                continue
            variance = left[rows] @ right
            variance *= self._slopes(rows, variance) ** 2
            total += float(variance[free].sum())
        return total, count

    def noise(self) -> float | Array:
        """Return the variance of answers about what the factors give: a number, or of shape (m, n) for yes/no answers."""
        if self.logits is None:
            return self.s2
        left, right = self._variance_halves()
        return self._noise(np.arange(len(self.U)), left @ right)

    def _row_blocks(self, cells: int = BLOCK) -> list[Indices]:
        step = max(1, cells // len(self.V))
        return [
            np.arange(start, min(start + step, len(self.U)))
            for start in range(0, len(self.U), step)
        ]

    def pick(
        self, is_open: IsOpen, price: LinePrice, money: float, most: int, slack: float = SLACK
    ) -> tuple[Indices, Indices]:
        """Return the cells to buy with `money`, at most `most`, covariances updated in between.

        Passes go down from level to level of gain per price. In a pass every row that reaches the level is scored anew,
        all of its cells, and buys from the best on down to the level. A level is at least 1 - `slack` of the one before,
        more where less than that would cost the money that is left; columns learn after a pass, and one gives it half
        as many cells as are known of it. 0 is the plain greedy rule.
        """
        if most < 1:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        with one_blas_thread():
            return _Passes(self, is_open, price, money, most, slack).run()


class _Passes:
    """A purchase under way: what is left of its money, and of every row what it may gain for its price at most."""

    def __init__(
        self,
        gains: Gains,
        is_open: IsOpen,
        price: LinePrice,
        money: float,
        most: int,
        slack: float,
    ) -> None:
        m, n = len(gains.U), len(gains.V)
        self.gains, self.is_open, self.price = gains, is_open, price
        self.money, self.most, self.slack = money, most, slack
        self.best = np.full(m, np.inf)
        self.is_small = small.is_small(m, n)
        self.mean_price, self.cheapest = np.ones(m), np.zeros(m)
        self.known = [np.maximum(x, 1) for x in gains.known]
        self.Pv = _sandwich(gains.Cv, gains.N)
        self.quota = np.zeros(n, np.int64)
        self.bits = np.empty((m, -(-n // 8)), np.uint8)
        self.bought: list[tuple[Indices, Indices]] = []  # of each pass, rows in order
        self.trust = TRUST
        self.expected, self.deep = 1.0, np.zeros(m)

    def run(self) -> tuple[Indices, Indices]:
        """Buy until the money is used up, or nothing gains anything."""
        self._pass(np.inf)  # nothing is bought: what rows promise
        ceiling = np.inf
        while self.most > 0:
            self.best[self.cheapest > self.money] = 0.0
            top = min(float(self.best.max()), ceiling)
            if not top > 0.0:
                break
            level = self._next_level(top)
            self._pass(level)
            # where many columns refuse, what they hold back comes first: a pass may reach up again
            refused = np.count_nonzero(self.quota < 0)
            ceiling = level if REFUSING * refused <= len(self.quota) else np.inf
        cells = [np.concatenate(x) for x in zip(*self.bought, strict=True)]
        return cells[0], cells[1]

    def _next_level(self, top: float) -> float:
        """Return the level of the next pass.

        Row i, which knows t_i cells and promises r_i, buys about t_i (r_i / level - 1) cells down to a level.
        """
        level = top
        # rows that promise far more than others are few: they need no pass of their own
        for _ in range(STEPS):
            level *= 1.0 - self.slack
            bill, cells = self._expected(level)
            if bill > SHARE * self.money or cells > SHARE * self.most:
                break
        for _ in range(2):
            if bill <= self.money and cells <= self.most:
                break
            level = 0.5 * (level + min(top, level / (1.0 - self.slack)))
            bill, cells = self._expected(level)
        return level

    def _expected(self, level: float) -> tuple[float, float]:
        """Return what a pass down to a level is expected to cost, and the cells it buys."""
        near = self.best > level
        more = np.maximum(self.trust * self.known[0][near] * (self.best[near] / level - 1.0), 1.0)
        every = len(self.quota)
        self.deep = np.full(len(self.best), LEAST if self.slack > 0.0 else every, np.float64)
        self.deep[near] += DEPTH * more
        self.expected = float(more @ self.mean_price[near])
        return self.expected, float(more.sum())

    def _pass(self, level: float) -> None:
        """Let every row that reaches the level buy down to it; columns learn afterwards."""
        gains, before = self.gains, self.money
        if self.is_small:
            buy_rows, columns_learn = small.buy_rows, small.columns_learn
        else:
            from entrywise.linalg._jit_gain import buy_rows, columns_learn
        self.quota = 1 + np.maximum(self.known[1] - FEW, 0) // 2
        span = 0.0 if gains.logits is None else gains.logits.span
        bought = []
        for rows, parts, gain, variance, unit, noise in self._blocks(level):
            cost = self.price(rows)
            if level == np.inf:
                self.mean_price[rows] = cost.mean(axis=1)
                self.cheapest[rows] = cost.min(axis=1)
            *found, self.money = buy_rows(
                rows, gain, variance, unit, self._open(rows, level == np.inf), cost, noise, span, gains.U, gains.V,
                gains.Cu, gains.M, parts, gains.Cv, self.Pv, level, self.money, self.most, self.quota,
                self.deep, gains.by_sum, self.best,
            )  # fmt: skip
            bought.append(found)
            self.most -= len(found[0])
            if self.most == 0:
                break
        rows, cols, weight, lost = (np.concatenate(x) for x in zip(*bought, strict=True))
        columns_learn(gains.U, gains.Cv, gains.N, self.Pv, rows, cols, weight, lost)
        self.bought.append((rows, cols))
        np.bitwise_and.at(self.bits, (rows, cols >> 3), ~(128 >> (cols & 7)).astype(np.uint8))
        for known, lines in zip(self.known, (rows, cols), strict=True):
            known += np.bincount(lines, minlength=len(known))
        if len(rows):
            ratio = (before - self.money) / max(self.expected, SMALLEST)
            self.trust = min(1.0, max(self.trust * ratio, TRUST / 4))

    def _blocks(
        self, level: float
    ) -> Iterator[
        tuple[Indices, tuple[Array, Array], NDArray[np.float32], NDArray[np.float32], Array, Array]
    ]:
        """Yield rows that reach a level with their halves, gains times (noise + variance), variances, two units, noises.

        Gains and variances are in single precision, of shape (len(rows), n); the arrays are used again.
        """
        gains, rows = self.gains, np.flatnonzero(self.best >= level)
        U, V, Cu, Cv = gains.U, gains.V, gains.Cu, gains.Cv
        if self.is_small:
            own, spread = row_parts(rows, U, Cu, gains.M)
        else:
            from entrywise.linalg import _jit_gain

            own, spread = _jit_gain.row_parts(rows, U, Cu, gains.M)
        gain_left, gain_right, top = self._single(own, np.hstack([squares(V), self.Pv]).T)
        var_left, var_right, unit = self._single(spread, col_features(V, Cv).T)
        step = max(1, CACHED // len(V))
        both = np.empty((2, min(step, len(rows)), len(V)), np.float32)
        noise = np.full((1, 1), gains.s2)
        for start in range(0, len(rows), step):
            part = slice(start, min(start + step, len(rows)))
            gain, variance = both[:, : part.stop - start]
            np.matmul(gain_left[part], gain_right, out=gain)
            np.matmul(var_left[part], var_right, out=variance)
            if gains.logits is not None:
                noise = np.asarray(gains._noise(rows[part], unit * variance.astype(np.float64)))
            halves = own[part], spread[part]
            yield rows[part], halves, gain, variance, np.array([top, unit]), noise

    def _single(self, left: Array, right: Array) -> tuple[Array, Array, float]:
        """Return factors of ``left @ right / unit`` in single precision, whose entries are at most one, and the unit."""
        if self.is_small:
            size = np.maximum(np.abs(left).max(axis=0, initial=0.0), SMALLEST)
            scaled = (left / size).astype(np.float32)
        else:
            from entrywise.linalg import _jit_gain

            size = np.maximum(_jit_gain.largest(left), SMALLEST)
            scaled = _jit_gain.single(left, size)
        right = right * size[:, None]
        unit = max(float(np.abs(right).max(initial=0.0)), SMALLEST)
        return scaled, (right / unit).astype(np.float32), unit

    def _open(self, rows: Indices, first: bool) -> NDArray[np.bool_]:
        """Tell which cells of rows are open and were not bought in an earlier pass; one bit a cell is kept."""
        if first:
            self.bits[rows] = np.packbits(self.is_open(rows), axis=1)
        return np.unpackbits(self.bits[rows], axis=1, count=len(self.quota)).view(np.bool_)


def leverage(X: Array) -> Array:
    """Return the leverage of each row of X, shape (m,); they sum to the rank."""
    G = X.T @ X
    return np.asarray(np.einsum("ia,ab,ib->i", X, np.linalg.pinv(G, hermitian=True), X))


def _sandwich(C: Array, M: Array) -> Array:
    """Return C M C of packed matrices, packed."""
    q = round(np.sqrt(2 * C.shape[1] + 0.25) - 0.5)
    a, b = np.triu_indices(q)
    full = unpacked(C, q)
    return np.asarray((full @ unpacked(M, q) @ full)[:, a, b])


def row_parts(rows: Indices, U: Array, C: Array, M: Array) -> tuple[Array, Array]:
    """Return the halves of some rows of the gains and the variances, (r, 2p) each; as the compiled one does."""
    U, C = U[rows], C[rows]
    return np.hstack([_sandwich(C, M[rows]), squares(U)]), row_features(U, C)
