"""Compiled greedy buying: one cell after the other, covariances updated after each.

Symmetric q x q matrices are packed as their upper triangles. Gains only fall, so what a candidate promised when it was
last looked at bounds what it promises now: in a pass only candidates whose bound reaches the level are looked at. A visit of
a row begins with everything about them fresh; then they are taken from the best on, each if it still reaches the
level after those before it (their column's half, trace term included, waits for the next visit). The row's other
candidates are taken to have fallen as the last one looked at did.
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
def _learn(P, x, w, square, inverse):
    """P <- P - (x w' + w x') inverse + square x x', P packed: what :func:`_terms` says of a purchase."""
    s = 0
    for a in range(len(x)):
        for b in range(a, len(x)):
            P[s] += x[a] * x[b] * square - inverse * (x[a] * w[b] + w[a] * x[b])
            s += 1


@njit(cache=True, nogil=True)
def _forms(P, C, v):
    """Return v' P v and v' C v, neither below zero, both matrices packed."""
    gain = variance = 0.0
    s = 0
    for a in range(len(v)):
        for b in range(a, len(v)):
            w = v[a] * v[b] if a == b else 2.0 * v[a] * v[b]
            gain += P[s] * w
            variance += C[s] * w
            s += 1
    return max(gain, 0.0), max(variance, 0.0)


@njit(cache=True, nogil=True)
def _look(u, Cu, Pu, V, Cv, Pv, cols, count, X, row_gain, row_var, col_gain, col_var, form):
    """Fill in the designs X (q, L) and the two halves of gain and variance of `count` columns; form : (2, p)."""
    q = len(X)
    for t in range(count):
        for a in range(q):
            X[a, t] = V[cols[t], a]
        row_gain[t] = 0.0
        row_var[t] = 0.0
    s = 0
    for a in range(q):
        for b in range(a, q):
            twice = 1.0 if a == b else 2.0
            form[0, s] = twice * u[a] * u[b]
            form[1, s] = form[0, s] + (twice * Cu[s] if b < q - 1 else 0.0)
            p, c = twice * Pu[s], twice * Cu[s]
            for t in range(count):
                w = X[a, t] * X[b, t]
                row_gain[t] += p * w
                row_var[t] += c * w
            s += 1
    rest = s % 4
    for t in range(count):
        j = cols[t]
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
def buy_greedily(
    U, V, Cu, Cv, M, N, noise, weight, short, price, bound, money, most, by_sum, slack
):  # fmt: skip
    """Pick cells by largest fall of variance per price until `money` or `most` is used up.

    U, V : (m, q), (n, q) designs, last coordinate one. Packed, changed in place: Cu, Cv covariances, M, N sums over open
    cells of v v' and u u'; with `by_sum` M is the outer square of a sum, and stays.
    short : (m, L) candidate columns, -1 where none; changed in place. Of each, (m, L), or (m, 1) where all of a row are
    alike: price, noise of its answer, weight with which the cell counts in M and N.
    bound : (m, L), what a candidate gains for its price at most, infinite where nobody knows; changed in place.
    slack : in a pass rows buy down to (1 - slack) of the best rate that any row may have; 0 is the plain greedy rule.
    Returns rows and columns in the order in which they were picked.
    """
    (m, q), length = U.shape, short.shape[1]
    rows, cols = np.empty(most, np.int64), np.empty(most, np.int64)
    A, B, T = np.empty((q, q)), np.empty((q, q)), np.empty((q, q))
    X, form = np.empty((q, length)), np.empty((2, Cu.shape[1]))
    row_gain, row_var = np.empty(length), np.empty(length)
    col_gain, col_var = np.empty(length), np.empty(length)
    falling, looked = np.empty(length), np.zeros(length, np.bool_)
    place, here = np.empty(length, np.int64), np.empty(length, np.int64)
    x, h, w = np.empty(q), np.empty(q), np.empty(q)
    Pu, Pv = np.empty(Cu.shape[1]), np.empty(Cv.shape)
    each_price, each_noise = int(price.shape[1] > 1), int(noise.shape[1] > 1)
    each_weight = int(weight.shape[1] > 1)
    for j in range(len(V)):
        _product(Cv[j], N[j], Pv[j], A, B, T)
    best = np.empty(m)
    for i in range(m):
        best[i] = _most(short[i], price[i], bound[i], money)
    count = 0
    while count < most:
        top = best.max()
        if not top > 0.0:
            break
        level = (1.0 - slack) * top
        for i in range(m):
            if best[i] < level or count == most:
                continue
            near = 0
            for t in range(length):
                if short[i, t] >= 0 and bound[i, t] >= level and price[i, t * each_price] <= money:
                    place[near], here[near] = t, short[i, t]
                    near += 1
            _product(Cu[i], M[i], Pu, A, B, T)
            _look(
                U[i],
                Cu[i],
                Pu,
                V,
                Cv,
                Pv,
                here,
                near,
                X,
                row_gain,
                row_var,
                col_gain,
                col_var,
                form,
            )
            for t in range(near):
                k = place[t]
                spread = noise[i, k * each_noise] + row_var[t] + col_var[t]
                rate = (row_gain[t] + col_gain[t]) / (spread * price[i, k * each_price])
                bound[i, k] = rate
                falling[t] = -rate
            ratio, bought = 1.0, False
            for t in np.argsort(falling[:near], kind="mergesort"):
                k, j = place[t], here[t]
                if -falling[t] < level or count == most:
                    break
                if price[i, k * each_price] > money:
                    continue
                gain, spread = _forms(Pu, Cu[i], V[j])
                spread += noise[i, k * each_noise] + col_var[t]
                bound[i, k] = (gain + col_gain[t]) / (spread * price[i, k * each_price])
                ratio = bound[i, k] / -falling[t]
                looked[k] = True
                if bound[i, k] < level:
                    continue
                bought = True
                money -= price[i, k * each_price] * (1.0 - 1e-12)
                rows[count], cols[count] = i, j
                count += 1
                short[i, k] = -1
                inverse, lost = 1.0 / spread, weight[i, k * each_weight]
                square = _terms(Cu[i], M[i], V[j], inverse, 0.0 if by_sum else lost, x, h, w)
                _learn(Pu, x, w, square, inverse)
                _lower(Cu[i], x, inverse)
                if not by_sum:
                    _lower(M[i], V[j], lost)
                square = _terms(Cv[j], N[j], U[i], inverse, lost, x, h, w)
                _learn(Pv[j], x, w, square, inverse)
                _lower(Cv[j], x, inverse)
                _lower(N[j], U[i], lost)
            for k in range(length):  # what was not looked at after a purchase fell about as much
                if bought and slack > 0.0 and not looked[k]:
                    bound[i, k] *= ratio
                looked[k] = False
            best[i] = _most(short[i], price[i], bound[i], money)
    return rows[:count], cols[:count]


@njit(cache=True, nogil=True)
def _most(short, price, bound, money):
    """Return the largest bound of the affordable candidates of a row, 0 where there is none."""
    found = 0.0
    each = int(len(price) > 1)
    for t in range(len(short)):
        if short[t] >= 0 and bound[t] > found and price[t * each] <= money:
            found = bound[t]
    return found
