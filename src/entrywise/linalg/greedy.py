"""Buying greedily: cells by their gain for their price, and what their lines have learned after each.

Rows take turns. Those that promise a level of gain for its price are scored anew, all of their cells by a matrix
product in single precision, and buy from the best on, each cell looked at again in double precision; columns learn
after the turn. What a gain is says :mod:`entrywise.linalg.gain`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from entrywise.linalg import small
from entrywise.linalg.gain import (
    BLOCK,
    CACHED,
    EVERY,
    SMALLEST,
    Gains,
    sandwich,
)
from entrywise.linalg.variational import one_blas_thread
from entrywise.results.posterior import inside, squares
from entrywise.types import Array, Indices

SLACK = 0.55  # a level is at least 1 - this of the one before
PLACES = 16  # of rows, by chance: the first ones show what a level costs, the others follow in three turns
ENDS = np.array([1, 6, 11, 16])
STRIDE = 7  # from level to level: nobody is always the first
SAMPLE = 512  # rows of the turns that spend the rest of the money
LOOKED = 128  # columns that tell what a row promises before anybody has looked at all of it
FEW = 32  # cells known of a column, up to which a turn takes one more; of others half of what they have beyond
SHARE = 1 / 16  # of what is left of the money, that a level is to cost
STEPS = 16  # of slack, down which a level goes at most to find so much
REST = 1 / 8  # of the money, that is spent without turns: those rows buy first that promise most
DEEPER = 0.95  # by which levels of the rest lie lower where there are more rows: one scored anew buys more than a cell
LAST = 1 / 64  # of the money, for which no level is looked for
HALVINGS = 12  # of what lies between two levels, in search of the one that can be paid
BISECTIONS = 4  # up again, where it would cost more than there is
TRUST = 0.2  # of the cells that rows seem to want, what the first level is expected to buy; later ones by what they did
LEAST = 14  # cells of a row that are looked at
DEPTH = 6  # and beside these, so many times what the row is expected to buy
LANES = 8  # numbers that compiled ways take at once: they want rows of so many
REFUSING = 8  # of the columns, one in so many may refuse cells, and levels still go down

LinePrice = Callable[[Indices], Array]


def pick(
    gains: Gains,
    bits: NDArray[np.uint8],
    price: LinePrice,
    money: float,
    most: int,
    slack: float = SLACK,
) -> tuple[Indices, Indices]:
    """Return the cells to buy with `money`, at most `most`, covariances updated in between.

    `bits` tell which cells are open, ``np.packbits(is_open, axis=1)``; those of bought ones are cleared.

    Levels of gain per price go down. At a level rows buy in turns: those that reach it are scored anew, all of
    their cells, and buy from the best on down to the level. A level is at least 1 - `slack` of the one before,
    more where less than that would cost the money that is left; columns learn after a turn, and one gives it half
    as many cells as are known of it. 0 is the plain greedy rule, in small problems: in others the order in which the cells
    of a row are looked at is rough by some per cent, see :class:`_RoughVariance`.
    """
    if most < 1:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    with one_blas_thread():
        return _Turns(gains, bits, price, money, most, slack).run()


class _Product:
    """Features of rows times features of columns, (2p, n) with squares first, in single precision and in a `unit`.

    Scales are powers of two, so that they change no digit, and are set once: what a line has yet to learn only falls.
    """

    def __init__(self, sizes: Array, squares: Array, packed: Array, is_small: bool) -> None:
        """Scale features of rows up to `sizes`, (2p,)."""
        tops = np.concatenate([_sizes(squares), _sizes(packed)])
        self.of_row = 1.0 / _powers(sizes)
        self.unit = float(_powers(float(np.max(tops / self.of_row, initial=0.0))))
        self.of_col = 1.0 / (self.of_row * self.unit)
        self.is_small, p = is_small, squares.shape[1]
        self.right = np.empty((2 * p, len(squares)), np.float32)
        self.right[:p] = (squares * self.of_col[:p]).T
        self.learn(packed)

    def learn(self, packed: Array) -> None:
        """Take the columns' packed matrices anew."""
        p = packed.shape[1]
        if self.is_small:
            self.right[p:] = (packed * self.of_col[p:]).T
            return
        from entrywise.linalg._jit_gain import turned

        turned(packed, self.of_col[p:], self.right[p:])

    def left(self, features: Array) -> NDArray[np.float32]:
        """Return features of some rows, (r, 2p), scaled: ``left @ right * unit`` is the product."""
        return (features * self.of_row).astype(np.float32)


class _RoughVariance:
    r"""Variances of all cells from two numbers a line, in single precision and in a `unit`.

    The row's part of a variance, :math:`\tilde v_j^\top C^u_i \tilde v_j`, is its mean over the columns, :math:`a_i`, times
    that of a row of average shape, :math:`x_j`; the column's part likewise: :math:`a_i x_j + y_i b_j`. It says in what
    order cells are looked at, each then with its own variance; a product of (2p) numbers would take as long as the gains.
    """

    def __init__(self, spread: Array, squares: Array, packed: Array) -> None:
        """Take rows of halves `spread`, (m, 2p), and columns of outer `squares` and `packed` matrices, (n, p) each."""
        p = squares.shape[1]
        mean_of, row_shape = _mean_and_shape(spread[:, :p], squares)
        self.of_col, col_shape = _mean_and_shape(packed, spread[:, p:])
        tops = ((spread[:, :p] @ mean_of).max(), (packed @ self.of_col).max())
        self.unit = float(_powers(max(tops)))
        # what the halves of a row are multiplied by for its two numbers: these times `right` are about the variance
        self.of_row = mean_of / self.unit, col_shape
        self.right = np.empty((2, len(squares)), np.float32)
        self.right[0] = squares @ row_shape
        self.learn(packed)

    def learn(self, packed: Array) -> None:
        """Take the columns' packed matrices anew."""
        self.right[1] = packed @ self.of_col / self.unit


def _mean_and_shape(packed: Array, squares: Array) -> tuple[Array, Array]:
    """Return what matrices are multiplied by for their mean over the other side, and their average over that mean, (p,) each."""
    mean_of = squares.mean(axis=0)
    sizes = np.maximum(packed @ mean_of, SMALLEST)
    return mean_of, (1.0 / sizes) @ packed / len(packed)


def _sizes(X: Array) -> Array:
    """Return the largest size of a number in each column of X."""
    return np.asarray(np.maximum(X.max(axis=0, initial=0.0), -X.min(axis=0, initial=0.0)))


def _powers(sizes: Array | float) -> Array:
    """Return the powers of two next above."""
    return np.asarray(2.0 ** np.ceil(np.log2(np.maximum(sizes, SMALLEST))))


_Pair = tuple[NDArray[np.float32], NDArray[np.float32]]


class _Factors(NamedTuple):
    """What the cells of some rows are scored by, in single precision and in units: (r, k) and (k, n) are to be multiplied."""

    # gains times (noise + variance), and variances
    gain: _Pair
    variance: _Pair
    # of yes/no answers the variances again, never rough: their noise follows from these
    logits: _Pair | None


class _Turns:
    """A purchase under way: what is left of its money, and of every row what it may gain for its price at most."""

    def __init__(
        self,
        gains: Gains,
        bits: NDArray[np.uint8],
        price: LinePrice,
        money: float,
        most: int,
        slack: float,
    ) -> None:
        m, n = len(gains.U), len(gains.V)
        self.gains, self.price = gains, price
        self.money, self.most, self.slack, self.budget = money, most, slack, money
        self.best = np.empty(m)
        self.is_small = small.is_small(m, n)
        self.mean_price, self.cheapest = np.empty(m), np.empty(m)
        self.is_priced_by_row = True
        self.bits = bits
        for rows in gains.row_blocks(BLOCK):
            cost = price(rows)
            self.mean_price[rows], self.cheapest[rows] = cost.mean(axis=1), cost.min(axis=1)
            self.is_priced_by_row &= cost.shape[1] == 1
        self.known = [np.maximum(x, 1) for x in gains.known]
        self.Pu, self.Pv = self._sandwich(gains.Cu, gains.M), self._sandwich(gains.Cv, gains.N)
        self.quota = np.zeros(n, np.int64)
        nothing = np.zeros(0, np.int64)
        self.bought = [(nothing, nothing)]  # of each turn, rows in order
        # to score blocks in, and for what a turn buys: new memory is dear
        self.room = np.empty(max(n, CACHED), np.float32)
        self.basket = np.empty((2, n), np.int64), np.empty((4, n))
        self.trust = TRUST
        empty = ((0, 0), (0, 0 if self.is_small else -gains.U.shape[1] % LANES))
        self.U, self.V = np.pad(gains.U, empty), np.pad(gains.V, empty)
        top, (a, b) = _sizes(gains.U), np.triu_indices(gains.U.shape[1])
        most_square, most_cov = 2.0 * top[a] * top[b], _sizes(gains.Cu)  # or less
        of_cols, self.squares, self.inside = squares(gains.V), squares(gains.U), inside(len(top))
        sizes = np.concatenate([_sizes(self.Pu), most_square])
        self.gain = _Product(sizes, of_cols, self.Pv, self.is_small)
        self.logits = None
        if self.is_small or gains.logits is not None:
            sizes = np.concatenate([most_cov, most_square + 2.0 * most_cov])
            exact = _Product(sizes, of_cols, gains.Cv, self.is_small)
            self.logits = None if gains.logits is None else exact
        self.variance: _Product | _RoughVariance
        if self.is_small:
            self.variance = exact
        else:
            self.variance = _RoughVariance(self._spread(EVERY), of_cols, gains.Cv)
        self.units = np.array([self.gain.unit, self.variance.unit])

    def _sandwich(self, C: Array, M: Array) -> Array:
        """Return C M C of packed matrices, packed."""
        if self.is_small:
            return sandwich(C, M)
        from entrywise.linalg import _jit_gain

        return np.asarray(_jit_gain.sandwich(C, M))

    def run(self) -> tuple[Indices, Indices]:
        """Buy until the money is used up, or nothing gains anything."""
        m = len(self.best)
        self._promise()
        ceiling, place = np.inf, np.random.default_rng(m).integers(PLACES, size=m)
        for number in count():
            self.best[self.cheapest > self.money] = 0.0
            top = min(float(self.best.max()), ceiling)
            if self.most == 0 or not top > 0.0:
                break
            level = self._next_level(top)
            if self.money > REST * self.budget:
                turn = np.searchsorted(ENDS, (place + STRIDE * number) % PLACES, side="right")
            else:
                turn = np.empty(m, np.int64)
                turn[np.argsort(-self.best, kind="stable")] = np.arange(m) // SAMPLE
            for k in range(min(len(ENDS), int(turn.max()) + 1)):
                rows = np.flatnonzero(turn == k)
                demand = self._buy(rows, level)
                level = self._paid(level, demand, np.count_nonzero(turn > k) / max(len(rows), 1))
            # where many columns refuse, what they hold back comes first: a level may lie higher again
            refused = np.count_nonzero(self.quota < 0)
            ceiling = level if REFUSING * refused <= len(self.quota) else np.inf
        cells = [np.concatenate(x) for x in zip(*self.bought, strict=True)]
        return cells[0], cells[1]

    def _promise(self) -> None:
        """Set what rows may gain for their price, as some of the columns tell it; all of them for the plain greedy rule."""
        n = len(self.gains.V)
        every, step = np.arange(n), max(1, n // LOOKED) if self.slack > 0.0 else 1
        for rows in self.gains.row_blocks(BLOCK):
            self.best[rows] = self._promises(rows, every[::step])
        unseen = (self.best <= 0.0) & self.bits.any(axis=1)  # their open cells lie elsewhere
        for rows in np.array_split(np.flatnonzero(unseen), -(-unseen.sum() * n // BLOCK) or 1):
            self.best[rows] = self._promises(rows, every)

    def _promises(self, rows: Indices, some: Indices) -> Array:
        """Return the largest gain for its price of an open cell of each row in `some` columns, 0 where none is open."""
        if not len(rows):
            return np.zeros(0)
        is_open = self.bits[rows][:, some >> 3] >> (7 - (some & 7)).astype(np.uint8) & 1
        price = self.price(rows)
        price = price if price.shape[1] == 1 else price[:, some]
        factors, found = self._factors(rows, some), np.empty(len(rows))
        left, right = factors.variance
        unit = self.units[0] / self.units[1]
        for part, gain, noise in self._blocks(rows, factors, some):
            spread = left[part] @ right + (noise / self.units[1]).astype(np.float32)
            rate = gain * is_open[part] / spread
            cost = price if len(price) == 1 else price[part]
            if cost.shape[1] == 1:  # for all cells of a row: no need to look at each
                found[part] = unit * rate.max(axis=1) / cost[:, 0]
            else:
                found[part] = unit * (rate / cost).max(axis=1)
        return found

    def _next_level(self, top: float) -> float:
        """Return a level below the top that is expected to cost a share of the money, and no more than there is."""
        level, every = top, np.arange(len(self.best))
        # rows that promise far more than others are few: they need no level of their own
        for _ in range(STEPS):
            level *= 1.0 - self.slack
            bill, cells = self._expected(level, every, least=1.0)
            if bill > SHARE * self.money or cells > SHARE * self.most:
                break
        for _ in range(BISECTIONS if self.money > LAST * self.budget else 1):
            bill, cells = self._expected(level, every)
            if bill <= self.money and cells <= self.most:
                break
            level = 0.5 * (level + min(top, level / (1.0 - self.slack)))
        is_rest = LAST * self.budget < self.money <= REST * self.budget
        return DEEPER * level if is_rest and len(every) > SAMPLE and self.slack > 0.0 else level

    def _paid(self, level: float, demand: tuple[Array, Array], times: float) -> float:
        """Return the level down to which so many times a turn's demand, rates and prices, can be paid."""
        if times * demand[1].sum() <= self.money and times * len(demand[0]) <= self.most:
            return level
        rate, price = demand
        low, high = level, float(rate.max())
        for _ in range(HALVINGS):
            middle = np.sqrt(low) * np.sqrt(high)
            above = rate > middle
            count = np.count_nonzero(above)
            if times * (price @ above) > self.money or times * count > self.most:
                low = middle
            else:
                high = middle
        return float(low)

    def _expected(self, level: float, rows: Indices, least: float = 0.0) -> tuple[float, float]:
        """Return what rows are expected to cost down to a level, and the cells.

        Row i, which knows t_i cells and promises r_i, buys about t_i (r_i / level - 1) cells down to a level.
        """
        near = rows[self.best[rows] > level]
        more = self.trust * self.known[0][near] * (self.best[near] / level - 1.0)
        more = np.maximum(more, least)
        return float(more @ self.mean_price[near]), float(more.sum())

    def _buy(self, rows: Indices, level: float) -> tuple[Array, Array]:
        """Let those of the rows that reach a level buy down to it; return the rates and prices of what they bought."""
        expected, before = self._expected(level, rows)[0], self.money
        demand = self._turn(rows[self.best[rows] >= level], level)
        if self.money < before and expected > 0.0:  # how much to expect of a promise
            self.trust *= (before - self.money) / expected
            self.trust = min(1.0, max(self.trust, TRUST / 4))
        return demand

    def _turn(self, rows: Indices, level: float) -> tuple[Array, Array]:
        """Let rows buy down to a level; columns learn afterwards. Return the rates and prices of what was bought."""
        if not len(rows):
            return np.zeros(0), np.zeros(0)
        gains, factors = self.gains, self._factors(rows)
        if self.is_small:
            buy_rows, columns_learn = small.buy_rows, small.columns_learn
        else:
            from entrywise.linalg._jit_gain import buy_rows, columns_learn
        self.quota = 1 + np.maximum(self.known[1] - FEW, 0) // 2
        span = 0.0 if gains.logits is None else gains.logits.span
        deep = (LEAST, DEPTH * self.trust) if self.slack > 0.0 else (len(self.quota), 0.0)
        lines, told, count = *self.basket, 0
        left, right = factors.variance
        for part, gain, noise in self._blocks(rows, factors):
            some, variance = rows[part], (left[part], right)
            price = self.mean_price[some, None] if self.is_priced_by_row else self.price(some)
            lines, told, count, self.money = buy_rows(
                some, gain, variance, self.units, self.bits, price, noise, span, self.squares,
                self.inside, self.V, gains.Cu, self.Pu, gains.Cv, self.Pv, level, self.money, self.most, self.quota,
                self.known[0], deep, gains.by_sum, self.best, (lines, told), count,
            )  # fmt: skip
            if count == self.most:
                break
        self.basket = lines, told
        self.most -= count
        rows, cols = lines[:, :count].copy()
        spread, lost, *demand = told[:, :count]
        columns_learn(self.U, gains.Cv, self.Pv, self.known[1], rows, cols, spread, lost)
        self.gain.learn(self.Pv)
        self.variance.learn(gains.Cv)
        if self.logits is not None:
            self.logits.learn(gains.Cv)
        self.bought.append((rows, cols))
        return demand[0], demand[1]

    def _spread(self, rows: Indices | slice) -> Array:
        """Return the halves of rows of the variances, (r, 2p): their row features."""
        C = self.gains.Cu[rows]
        return np.hstack([C, self.squares[rows] + self.inside * C])

    def _factors(self, rows: Indices, some: Indices | slice = EVERY) -> _Factors:
        """Return what the cells of rows in `some` columns are scored by."""
        gains, variance, logits = self.gains, self.variance, None
        if isinstance(variance, _Product) or self.logits is not None:
            spread = self._spread(rows)
        if isinstance(variance, _Product):
            of_gain = self.gain.left(np.hstack([self.Pu[rows], self.squares[rows]]))
            of_variance = variance.left(spread)
        else:
            from entrywise.linalg._jit_gain import row_factors

            of_gain, of_variance = row_factors(
                rows,
                self.squares,
                self.inside,
                gains.Cu,
                self.Pu,
                self.gain.of_row,
                *variance.of_row,
            )

        def with_cols(left: NDArray[np.float32], of: _Product | _RoughVariance) -> _Pair:
            return left, np.ascontiguousarray(of.right[:, some])

        if self.logits is not None:
            logits = with_cols(self.logits.left(spread), self.logits)
        return _Factors(with_cols(of_gain, self.gain), with_cols(of_variance, variance), logits)

    def _blocks(
        self, rows: Indices, factors: _Factors, some: Indices | slice = EVERY
    ) -> Iterator[tuple[slice, NDArray[np.float32], Array]]:
        """Yield parts of the rows with their gains times (noise + variance), and noises, in `some` columns.

        Gains are in single precision, in the unit of their factors; the array is used again.
        """
        gains, (left, right) = self.gains, factors.gain
        n = right.shape[1]
        step = max(1, CACHED // n)
        room = self.room[: step * n].reshape(step, n)
        noise = np.full((1, 1), gains.s2)
        for start in range(0, len(rows), step):
            part = slice(start, min(start + step, len(rows)))
            gain = np.matmul(left[part], right, out=room[: part.stop - start])
            if factors.logits is not None and self.logits is not None:
                product = factors.logits[0][part] @ factors.logits[1]
                spread = self.logits.unit * product.astype(np.float64)
                noise = np.asarray(gains.answer_noise(rows[part], spread, some))
            yield part, gain, noise
