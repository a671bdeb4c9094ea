"""Compiled greedy buying: one cell after the other, covariances updated after each.

Symmetric q x q matrices are packed as their upper triangles. Rows are visited while their best gain can still reach the
level of the pass; a visit begins with everything about the row fresh, and buying a cell changes its other candidates by
rank-one terms, O(q) each (their column's half, trace term included, waits for the next visit). Gains only fall, so a row
that was below the level stays there.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def packed_sums(index, other, X, size):
    """Return the packed sum of x x' over the observations of each line, shape (size, q (q + 1) / 2)."""
    q = X.shape[1]
    found = np.zeros((size, q * (q + 1) // 2))
    for t in range(len(index)):
        i, j, s = index[t], other[t], 0
        for a in range(q):
            for b in range(a, q):
                found[i, s] += X[j, a] * X[j, b]
                s += 1
    return found


@njit(cache=True, nogil=True)
def _product(C, M, P, A, B, T):
    """Write C M C into P, all three packed; A, B, T : (q, q) to work in."""
    q, s = len(A), 0
    for a in range(q):
        for b in range(a, q):
            A[a, b] = A[b, a] = C[s]
            B[a, b] = B[b, a] = M[s]
            s += 1
    for a in range(q):
        for c in range(q):
            T[a, c] = 0.0
        for b in range(q):
            for c in range(q):
                T[a, c] += A[a, b] * B[b, c]
    s = 0
    for a in range(q):
        for c in range(a, q):
            P[s] = 0.0
            for b in range(q):
                P[s] += T[a, b] * A[c, b]
            s += 1


@njit(cache=True, nogil=True)
def _times(C, x, y):
    """Write C x into y, C packed."""
    s = 0
    for a in range(len(x)):
        y[a] = 0.0
    for a in range(len(x)):
        y[a] += C[s] * x[a]
        s += 1
        for b in range(a + 1, len(x)):
            y[a] += C[s] * x[b]
            y[b] += C[s] * x[a]
            s += 1


@njit(cache=True, nogil=True)
def _lower(A, x, times):
    """A <- A - times x x', A packed."""
    s = 0
    for a in range(len(x)):
        y = times * x[a]
        for b in range(a, len(x)):
            A[s] -= y * x[b]
            s += 1


@njit(cache=True, nogil=True)
def _terms(C, M, v, inverse, lost, x, h, w):
    """Fill in x = C v and w = C M x and return c, so that buying a cell of design v turns P = C M C into P'.

    ``P' = P - (x w' + w x') / d + c x x'`` with ``inverse`` = 1 / d; M loses `lost` times v v'. h : (q,) to work in.
    """
    _times(C, v, x)
    _times(M, x, h)
    _times(C, h, w)
    square, keep = 0.0, 1.0
    for a in range(len(x)):
        square += h[a] * x[a] * inverse**2
        keep -= x[a] * v[a] * inverse
    return square - lost * keep**2


@njit(cache=True, nogil=True)
def _look(u, Cu, Pu, V, Cv, Pv, short, X, row_gain, row_var, col_gain, col_var, form):
    """Fill in the designs X (q, L) and the two halves of gain and variance of a row's candidates; form : (2, p)."""
    q, length = X.shape
    for t in range(length):
        j = max(short[t], 0)
        for a in range(q):
            X[a, t] = V[j, a]
        row_gain[t] = 0.0
        row_var[t] = 0.0
    s = 0
    for a in range(q):
        for b in range(a, q):
            twice = 1.0 if a == b else 2.0
            form[0, s] = twice * u[a] * u[b]
            form[1, s] = form[0, s] + (twice * Cu[s] if b < q - 1 else 0.0)
            p, c = twice * Pu[s], twice * Cu[s]
            for t in range(length):
                w = X[a, t] * X[b, t]
                row_gain[t] += p * w
                row_var[t] += c * w
            s += 1
    rest = s % 4
    for t in range(length):
        j = max(short[t], 0)
        g0 = g1 = g2 = g3 = v0 = v1 = v2 = v3 = 0.0
        for k in range(
            0, s - rest, 4
        ):  # four sums at once: without them each addition waits for the one before
            g0 += form[0, k] * Pv[j, k]
            g1 += form[0, k + 1] * Pv[j, k + 1]
            g2 += form[0, k + 2] * Pv[j, k + 2]
            g3 += form[0, k + 3] * Pv[j, k + 3]
            v0 += form[1, k] * Cv[j, k]
            v1 += form[1, k + 1] * Cv[j, k + 1]
            v2 += form[1, k + 2] * Cv[j, k + 2]
            v3 += form[1, k + 3] * Cv[j, k + 3]
        for k in range(s - rest, s):
            g0 += form[0, k] * Pv[j, k]
            v0 += form[1, k] * Cv[j, k]
        col_gain[t] = (g0 + g1) + (g2 + g3)
        col_var[t] = (v0 + v1) + (v2 + v3)


@njit(cache=True, nogil=True)
def _best(short, price, row_gain, row_var, col_gain, col_var, noise, left, rate):
    """Return (gain per price, place) of the best affordable candidate; place -1 if there is none."""
    for t in range(len(short)):
        spread = noise[t] + row_var[t] + col_var[t]
        rate[t] = (row_gain[t] + col_gain[t]) / (spread * price[t])
    best, at = 0.0, -1
    for t in range(len(short)):
        if rate[t] > best and short[t] >= 0 and price[t] <= left:
            best, at = rate[t], t
    return best, at


@njit(cache=True, nogil=True)
def buy_greedily(
    U, V, Cu, Cv, M, N, noise, weight, short, price, money, most, by_sum, slack
):  # fmt: skip
    """Pick cells by largest fall of variance per price until `money` or `most` is used up.

    U, V : (m, q), (n, q) designs, last coordinate one. Packed, changed in place: Cu, Cv covariances, M, N sums over open
    cells of v v' and u u'; with `by_sum` M is the outer square of a sum, and stays.
    short : (m, L) candidate columns, -1 where none; changed in place. Of each, (m, L): price, noise of its answer, weight
    with which the cell counts in M and N.
    slack : in a pass rows buy down to (1 - slack) of the best rate that any row may have; 0 is the plain greedy rule.
    Returns rows and columns in the order in which they were picked.
    """
    (m, q), length = U.shape, short.shape[1]
    rows, cols = np.empty(most, np.int64), np.empty(most, np.int64)
    A, B, T = np.empty((q, q)), np.empty((q, q)), np.empty((q, q))
    X, form = np.empty((q, length)), np.empty((2, Cu.shape[1]))
    row_gain, row_var = np.empty(length), np.empty(length)
    col_gain, col_var = np.empty(length), np.empty(length)
    y, z, rate = np.empty(length), np.empty(length), np.empty(length)
    x, h, w = np.empty(q), np.empty(q), np.empty(q)
    Pu, Pv = np.empty(Cu.shape[1]), np.empty(Cv.shape)
    for j in range(len(V)):
        _product(Cv[j], N[j], Pv[j], A, B, T)
    best = np.full(m, np.inf)
    level, count = np.inf, 0
    while count < most:
        for i in range(m):
            if best[i] < level or best[i] == 0.0:
                continue
            _product(Cu[i], M[i], Pu, A, B, T)
            _look(
                U[i], Cu[i], Pu, V, Cv, Pv, short[i], X, row_gain, row_var, col_gain, col_var, form
            )
            best[i], at = _best(
                short[i], price[i], row_gain, row_var, col_gain, col_var, noise[i], money, rate
            )
            while at >= 0 and best[i] >= level and count < most:
                j = short[i, at]
                money -= price[i, at] * (1.0 - 1e-12)
                rows[count], cols[count] = i, j
                count += 1
                short[i, at] = -1
                inverse = 1.0 / (noise[i, at] + row_var[at] + col_var[at])
                lost = weight[i, at]
                # the row, d the variance of the answer: Cu <- Cu - x x' / d, and its other candidates by rank-one terms
                square = _terms(Cu[i], M[i], V[j], inverse, 0.0 if by_sum else lost, x, h, w)
                y[:] = 0.0
                z[:] = 0.0
                for a in range(q):
                    for t in range(length):
                        y[t] += x[a] * X[a, t]
                        z[t] += w[a] * X[a, t]
                for t in range(length):
                    row_gain[t] = max(
                        row_gain[t] + y[t] * (square * y[t] - 2.0 * inverse * z[t]), 0.0
                    )
                    row_var[t] = max(row_var[t] - y[t] * y[t] * inverse, 0.0)
                _lower(Cu[i], x, inverse)
                if not by_sum:
                    _lower(M[i], V[j], lost)
                # the column, for rows that are visited later: the same terms, on Pv
                square = _terms(Cv[j], N[j], U[i], inverse, lost, x, h, w)
                s = 0
                for a in range(q):
                    for b in range(a, q):
                        Pv[j, s] += x[a] * x[b] * square - inverse * (x[a] * w[b] + w[a] * x[b])
                        s += 1
                _lower(Cv[j], x, inverse)
                _lower(N[j], U[i], lost)
                best[i], at = _best(
                    short[i], price[i], row_gain, row_var, col_gain, col_var, noise[i], money, rate
                )
        top = best.max()
        if top == 0.0:
            break
        level = (1.0 - slack) * top
    return rows[:count], cols[:count]
