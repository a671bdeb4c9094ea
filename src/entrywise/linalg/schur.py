r"""Partial Cholesky factors of a PSD matrix whose columns arrive one by one, or block by block.

With the rows of F the Cholesky columns found so far, :math:`A \approx F^\top F`, what is left is the
Schur complement :math:`S = A - F^\top F`. Its diagonal d is known once the diagonal of A is, costs
O(n) a column to keep, and for PSD A bounds everything: :math:`\max_{ij} |S_{ij}| = \max d` and
:math:`\|S\|_* = \sum d`. What round-off and noise add to this, :meth:`Schur.margins` tells.
"""

from __future__ import annotations

import numpy as np

from entrywise.exceptions import NotPSD
from entrywise.types import Array, Indices

EPS = float(np.finfo(np.float64).eps)
TINIEST = float(np.finfo(np.float64).smallest_subnormal)
NEGATIVE = 1e-8  # a residual below -NEGATIVE * max diagonal is no round-off
DEPENDENT = 1e-6  # share of its residual below which a candidate is left to a later block: round-off grows by its inverse
IMPOSSIBLE = 8.0  # standard deviations of noise that no answer is away
AT_ONCE = 4096  # columns whose weights are held at a time
CLIPPED = 10.0  # of (k + 10) roundings: what k eliminations may leave below zero, measured
NEGLIGIBLE = 1e-9  # share of the mean residual that a bound of round-off may add to it
ROUNDINGS = 2.0  # of |x|^2 eps scale; 600 matrices in three orders each needed 1 at most


class Schur:
    """What some columns of a PSD matrix leave unexplained.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        Of the matrix; NaN where it is not known yet.
    capacity : int
        Columns for which room is made at once.
    noise : float
        Standard deviation of the answers. When above zero the weights with which pivots explain each
        column are kept too (n k numbers more), since they say how far noise reaches the residual.
    """

    def __init__(self, diagonal: Array, capacity: int = 16, noise: float = 0.0) -> None:
        self.residual = np.array(diagonal, dtype=np.float64)
        n = len(self.residual)
        self.scale = float(np.nanmax(np.abs(self.residual), initial=0.0))
        self.noise = noise
        self.lowest = 0.0  # the most negative residual before it was clipped
        self.clipped: dict[int, float] = {}  # those that neither round-off nor noise explains
        self.pivots: list[int] = []
        self._rows = np.empty((max(1, min(capacity, n)), n))
        self._weights = np.empty((self._rows.shape[0], n)) if noise > 0 else None

    @property
    def rank(self) -> int:
        """Columns taken so far."""
        return len(self.pivots)

    @property
    def round_off(self) -> float:
        """Size of one rounding of the largest entry; never below the smallest number there is."""
        return max(EPS * self.scale, TINIEST)

    @property
    def F(self) -> Array:
        """Cholesky columns as rows, shape (k, n)."""
        return self._rows[: self.rank]

    def factor(self) -> Array:
        """Return F transposed, shape (n, k), without room to spare."""
        rows = self.F if self.rank == len(self._rows) else self.F.copy()
        return rows.T

    def left_at(self, c: int, value: float) -> float:
        """Take the diagonal entry c and return its residual."""
        f = self.F[:, c]
        self.scale = max(self.scale, abs(value))
        self.residual[c] = value - f @ f
        return float(self.residual[c])

    def reach(self) -> Array:
        """Return the standard deviation that noise gives each residual, shape (n,).

        The residual at c is x' A x with x = (1, -w), w the weights of the pivots; independent errors
        of size s in a symmetric A move it by about sqrt(2) s |x|^2.
        """
        if self._weights is None:
            return np.zeros(len(self.residual))
        return np.asarray(np.sqrt(2.0) * self.noise * self._spread(self._weights[: self.rank]))

    def margins(self, chance: float, columns: Indices | None = None) -> Array:
        r"""Return by how much round-off and noise may have moved the residual of each column, shape (n,).

        With E the errors of the answers and of rounding, the residual of (i, j) is
        :math:`x_i^\top (A + E) x_j`, so that both its diagonal and every entry move by about
        :math:`|x_i| |x_j|` times the size of one error. All n^2 entries stay within their margins with
        probability 1 - `chance`. Where a bound of round-off, the same for all columns, is nothing beside what is left, it is told
        instead: it takes k^3 operations, not n k^2.
        """
        n, k = len(self.residual), self.rank
        if columns is None and self.noise == 0:
            most = (ROUNDINGS * self._widest() + k) * self.round_off
            if most <= NEGLIGIBLE * float(self.residual.mean()):
                return np.full(n, most)
        of = np.arange(n) if columns is None else columns
        parts = np.array_split(of, -(-len(of) // AT_ONCE) or 1)
        spread = np.concatenate([self._spread(self._weights_of(part)) for part in parts])
        spread[np.isin(of, self.pivots)] = 1.0  # asked whole: only the answer's own error is left
        far = np.sqrt(2.0 * np.log(2.0 * n * n / chance))  # of a normal, for the largest of n^2
        return np.asarray(
            (ROUNDINGS * spread + k) * self.round_off + far * self.noise * np.sqrt(2.0) * spread
        )

    def _weights_of(self, columns: Indices) -> Array:
        """Return the weights w with which the pivots explain these columns, shape (k, columns)."""
        if self._weights is not None:
            return self._weights[: self.rank, columns]
        if not self.rank:
            return self.F[:, columns]
        return _solved(self.F[:, self.pivots], self.F[:, columns])

    def _widest(self) -> float:
        r"""Return a bound of |x|^2 over all columns: :math:`|w_c|^2 = |L^{-T} f_c|^2 \le \|L^{-1}\|_F^2 A_{cc}`."""
        if not self.rank:
            return 1.0
        inverse = _solved(self.F[:, self.pivots], np.eye(self.rank))
        inverse *= np.sqrt(self.scale)  # before the squares, which would overflow at tiny scales
        return 1.0 + float((inverse * inverse).sum())

    @staticmethod
    def _spread(W: Array) -> Array:
        """Return |x|^2 of x = (1, -w)."""
        return np.asarray(1.0 + np.einsum("kn,kn->n", W, W))

    def take(self, p: int, column: Array) -> None:
        """Eliminate column p, given whole."""
        self.take_block(np.array([p]), column[None, :])

    def take_block(self, pivots: Indices, columns: Array) -> None:
        """Eliminate several columns at once, given whole as a (b, n) array, one a row."""
        k, b = self.rank, len(pivots)
        self._make_room(k + b)
        new = self._rows[k : k + b]
        if k:
            np.matmul(self.F[:, pivots].T, self.F, out=new)
            np.subtract(columns, new, out=new)
        else:
            new[:] = columns
        block = new[:, pivots]
        try:
            L = np.asarray(np.linalg.cholesky(0.5 * (block + block.T)), np.float64)
        except np.linalg.LinAlgError:
            worst = int(pivots[np.argmin(np.diag(block))])
            raise NotPSD(
                f"the answers at {pivots.tolist()} make no PSD matrix (entry ({worst}, {worst})); check them, or state noise="
            ) from None
        if b == 1:
            new /= L[0, 0]
        else:
            from scipy.linalg.blas import dtrsm

            new[:] = dtrsm(
                1.0, L, new.T, side=1, lower=1, trans_a=1, overwrite_b=1
            ).T  # L^-1 new, in place
        if self._weights is not None:
            G = _solved(L.T, new)  # (b, n) new weights
            old = self._weights[:k]
            old -= old[:, pivots] @ G
            self._weights[k : k + b] = G
        self.residual -= np.einsum("bn,bn->n", new, new)
        self.residual[pivots] = 0.0
        self.pivots.extend(int(p) for p in pivots)
        self._refuse_negative()

    def _refuse_negative(self) -> None:
        with np.errstate(invalid="ignore"):
            limit = NEGATIVE / EPS * self.round_off + IMPOSSIBLE * self.reach()
            low = np.flatnonzero(self.residual < -CLIPPED * (self.rank + CLIPPED) * self.round_off)
        if len(low):  # nearly dependent columns magnify round-off, which is no fault of the matrix
            self.lowest = min(self.lowest, float(self.residual[low].min()))
            low = low[self.residual[low] < -self.margins(NEGATIVE, low)]
            self.clipped |= {int(c): float(self.residual[c]) for c in low}
            low = low[self.residual[low] < -np.broadcast_to(limit, self.residual.shape)[low]]
        if len(low):
            c, p = int(low[np.argmin(self.residual[low])]), self.pivots[-1]
            raise NotPSD(
                f"entry ({c}, {p}) is too large for a PSD matrix: it leaves {self.residual[c]:.3g} on the diagonal at {c}; "
                "check the answers, or state their noise="
            )
        np.maximum(self.residual, 0.0, out=self.residual)  # round-off; NaN stays

    def _make_room(self, k: int) -> None:
        have, n = self._rows.shape
        if k <= have:
            return
        size = min(max(k, 2 * have), n)
        for name in ("_rows", "_weights"):
            old = getattr(self, name)
            if old is not None:
                grown = np.empty((size, n))
                grown[: self.rank] = old[: self.rank]
                setattr(self, name, grown)


def _solved(R: Array, B: Array) -> Array:
    """Return R^-1 B of an upper triangular R."""
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(R, B, check_finite=False))


def rejection_cholesky(H: Array, rng: np.random.Generator) -> Indices:
    """Return which of b proposals randomly pivoted Cholesky would accept, given their residual block.

    Proposals are taken in order and proposal i stays with probability (its residual now) / (its
    residual when it was proposed): Epperly, Tropp and Webber 2024, Algorithm 2.2.
    """
    H = H.copy()
    proposed = np.diag(H).copy()
    kept = []
    u = rng.random(len(H))
    for i in range(len(H)):
        if u[i] * proposed[i] < H[i, i] and H[i, i] > 100 * EPS * proposed[i]:
            kept.append(i)
            H[i:, i:] -= np.outer(H[i:, i], H[i, i:] / H[i, i])
    return np.array(kept, dtype=np.int64)


def largest_gains(H: Array, G: Array, weight: float, count: int) -> Indices:
    r"""Return which of c columns, taken one after the other, lower the trace of the residual most.

    Eliminating column p of a residual S lowers its trace by :math:`\|S_{:,p}\|^2 / S_{pp}`. The norm is taken over the
    candidates' own rows and over a sample of the others, each of which stands for `weight` rows.

    Parameters
    ----------
    H : ndarray of shape (c, c)
        The residual among the candidates.
    G : ndarray of shape (c, s)
        The residual between the candidates and the sample.
    """
    c = len(H)
    unit = max(float(np.diag(H).max(initial=0.0)), TINIEST)  # squares of huge entries overflow
    S = np.hstack([H, np.sqrt(weight) * G]) / unit  # (c, c + s); never changed
    eliminated = np.empty((min(count, c), S.shape[1]))
    first = np.diag(S).copy()
    left, squares = first.copy(), np.einsum("cs,cs->c", S, S)
    kept: list[int] = []
    for k in range(len(eliminated)):
        open_ = left > DEPENDENT * first
        gain = np.divide(squares, left, out=np.zeros(c), where=open_)
        i = int(np.argmax(gain))
        if not gain[i] > 0:
            break
        before = eliminated[:k]
        g = (S[i] - before[:, i] @ before) / np.sqrt(left[i])
        h = g[:c]
        products = S @ g - before[:, :c].T @ (before @ g)
        squares = np.maximum(squares - 2.0 * h * products + h**2 * (g @ g), 0.0)
        left = left - h**2
        left[i] = 0.0
        eliminated[k] = g
        kept.append(i)
    return np.array(kept, dtype=np.int64)
