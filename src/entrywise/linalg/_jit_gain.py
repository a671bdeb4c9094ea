"""Compiled greedy buying: one cell after the other, the covariances of its row updated after each.

Symmetric q x q matrices come packed as their upper triangles. Gains only fall, so what a candidate promised when it was
last looked at bounds what it promises now: in a pass only candidates whose bound reaches the level are looked at. A visit of
a row begins with everything about it fresh; then its candidates are taken from the best on, each if it still reaches the
level after those before it. The row's other candidates are taken to have fallen as the last one looked at did. Columns
learn after the pass, each once (one purchase after the other would fetch a column's matrices anew for every cell), and
give few cells to a pass.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

import numpy as np
from numba import njit

from entrywise.linalg.small import LAST


@njit(cache=True, nogil=True)
def packed_sums(index, other, X, size):
    """Return the packed sum of x x' over the observations of each line, shape (size, q (q + 1) / 2)."""
    squares = _squares(X)
    found = np.zeros((size, squares.shape[1]))
    for t in range(len(index)):
        i, j = index[t], other[t]
        for s in range(squares.shape[1]):
            found[i, s] += squares[j, s]
    return found


@njit(cache=True, nogil=True)
def _squares(X):
    """Return the packed x x' of every line, shape (len(X), q (q + 1) / 2)."""
    q = X.shape[1]
    found = np.empty((len(X), q * (q + 1) // 2))
    for i in range(len(X)):
        s = 0
        for a in range(q):
            for b in range(a, q):
                found[i, s] = X[i, a] * X[i, b]
                s += 1
    return found


@njit(cache=True, nogil=True)
def _unpack(packed, i, full, k):
    """Write the packed matrix i into full[k], both halves."""
    s = 0
    for a in range(full.shape[1]):
        for b in range(a, full.shape[1]):
            full[k, a, b] = full[k, b, a] = packed[i, s]
            s += 1


@njit(cache=True, nogil=True)
def _pack(full, k, packed, i):
    """Write the upper half of full[k] into the packed matrix i."""
    s = 0
    for a in range(full.shape[1]):
        for b in range(a, full.shape[1]):
            packed[i, s] = full[k, a, b]
            s += 1


@njit(cache=True, nogil=True)
def _product(C, k, M, l, P, j, T):
    """Write C[k] M[l] C[k] into P[j]; T : (q, q) to work in."""
    q = len(T)
    for a in range(q):
        for b in range(q):
            total = 0.0
            for c in range(q):
                total += C[k, a, c] * M[l, c, b]
            T[a, b] = total
    for a in range(q):
        for b in range(a, q):
            total = 0.0
            for c in range(q):
                total += T[a, c] * C[k, b, c]
            P[j, a, b] = P[j, b, a] = total


@njit(cache=True, nogil=True)
def _times(C, k, X, t, Y, r):
    """Write C[k] X[t] into Y[r]."""
    q = C.shape[1]
    for a in range(q):
        total = 0.0
        for b in range(q):
            total += C[k, a, b] * X[t, b]
        Y[r, a] = total


@njit(cache=True, nogil=True)
def _learn(row, V, j, Y, inverse, lost, fixed):
    """Let a row learn of a purchase in column j, whose x = C v stands in Y[0].

    ``C' = C - x x' / d`` with `inverse` = 1 / d, and M loses `lost` times v v', or nothing where it is `fixed`. So
    ``C' M' C' = C M C - (x w' + w x') / d + c x x'`` with h = M x and w = C h. row : (3, q, q), C, M and C M C; Y : (3, q).
    """
    q = len(row[0])
    _times(row, 1, Y, 0, Y, 1)
    _times(row, 0, Y, 1, Y, 2)
    square, keep = 0.0, 1.0
    for a in range(q):
        square += Y[1, a] * Y[0, a] * inverse**2
        keep -= Y[0, a] * V[j, a] * inverse
    if not fixed:
        square -= lost * keep**2
    for a in range(q):
        x, w, v = Y[0, a], Y[2, a], V[j, a]
        for b in range(q):
            row[0, a, b] -= inverse * x * Y[0, b]
            if not fixed:
                row[1, a, b] -= lost * v * V[j, b]
            row[2, a, b] += x * (Y[0, b] * square - inverse * Y[2, b]) - inverse * w * Y[0, b]


@njit(cache=True, nogil=True)
def _columns_learn(U, C, N, P, rows, cols, inverse, lost, Y, T):
    """Let columns learn of all purchases of a pass: each column once, its purchases in order."""
    n, q = len(C), U.shape[1]
    first = np.zeros(n + 1, np.int64)
    for j in cols:
        first[j + 1] += 1
    for j in range(n):
        first[j + 1] += first[j]
    order, place = np.empty(len(cols), np.int64), first.copy()
    for t in range(len(cols)):
        order[place[cols[t]]] = t
        place[cols[t]] += 1
    for j in range(n):
        for r in range(first[j], first[j + 1]):
            t = order[r]
            i = rows[t]
            _times(C, j, U, i, Y, 0)
            for a in range(q):
                x, u = inverse[t] * Y[0, a], lost[t] * U[i, a]
                for b in range(q):
                    C[j, a, b] -= x * Y[0, b]
                    N[j, a, b] -= u * U[i, b]
        if first[j] < first[j + 1]:
            _product(C, j, N, j, P, j, T)


@njit(cache=True, nogil=True)
def _look(U, i, row, V, Cv, Pv, cols, count, X, halves, form):
    """Fill in designs X (q, L) and halves (4, L): gain and variance of the row, of the column.

    row : (3, q, q), covariance, sum over open cells and gain form of row i; form : (2, q q) to work in.
    """
    q = len(X)
    for t in range(count):
        for a in range(q):
            X[a, t] = V[cols[t], a]
        halves[0, t] = halves[1, t] = 0.0
    for a in range(q):
        for b in range(q):
            form[0, a * q + b] = U[i, a] * U[i, b]
            shared = row[0, a, b] if max(a, b) < q - 1 else 0.0
            form[1, a * q + b] = form[0, a * q + b] + shared
        for b in range(a, q):
            twice = 1.0 if a == b else 2.0
            p, c = twice * row[2, a, b], twice * row[0, a, b]
            for t in range(count):
                w = X[a, t] * X[b, t]
                halves[0, t] += p * w
                halves[1, t] += c * w
    rest = q * q % 4
    for t in range(count):
        j = cols[t]
        g0 = g1 = g2 = g3 = v0 = v1 = v2 = v3 = 0.0
        for k in range(0, q * q - rest, 4):  # four sums at once: none waits for the one before
            g0 += form[0, k] * Pv[j, k]
            g1 += form[0, k + 1] * Pv[j, k + 1]
            g2 += form[0, k + 2] * Pv[j, k + 2]
            g3 += form[0, k + 3] * Pv[j, k + 3]
            v0 += form[1, k] * Cv[j, k]
            v1 += form[1, k + 1] * Cv[j, k + 1]
            v2 += form[1, k + 2] * Cv[j, k + 2]
            v3 += form[1, k + 3] * Cv[j, k + 3]
        for k in range(q * q - rest, q * q):
            g0 += form[0, k] * Pv[j, k]
            v0 += form[1, k] * Cv[j, k]
        halves[2, t] = (g0 + g1) + (g2 + g3)
        halves[3, t] = (v0 + v1) + (v2 + v3)


@njit(cache=True, nogil=True)
def buy_greedily(
    U, V, Cu, Cv, M, N, often, start, cols, noise, weight, price, bound, money, most, by_sum, slack
):  # fmt: skip
    """Pick cells by largest fall of variance per price until `money` or `most` is used up.

    U, V : (m, q), (n, q) designs, last coordinate one. Packed, changed in place: Cu, Cv covariances, M, N sums over open
    cells of v v' and u u'; with `by_sum` M is the outer square of a sum, and stays.
    often : (n,), cells of a column that a pass may take at most.
    start : (m + 1,), cols : (c,), the candidate columns of each row; those that are taken become -1. Of each, (c,), or (1,)
    where all are alike: noise of its answer, weight with which the cell counts in M and N, price.
    bound : (c,), what a candidate gains for its price at most, infinite where nobody knows; changed in place.
    slack : in a pass rows buy down to (1 - slack) of the best rate that any row may have; less as money runs out, so that
    the last of it is spent well. 0 is the plain greedy rule.
    Returns rows and columns in the order in which they were picked.
    """
    (m, q), n, length = U.shape, len(V), np.diff(start).max()
    rows, found = np.empty(most, np.int64), np.empty(most, np.int64)
    inverse, lost = np.empty(most), np.empty(most)
    row, T, Y = np.empty((3, q, q)), np.empty((q, q)), np.empty((3, q))
    col_C, col_N, col_P = np.empty((n, q, q)), np.empty((n, q, q)), np.empty((n, q, q))
    X, form = np.empty((q, length)), np.empty((2, q * q))
    halves, falling = np.empty((4, length)), np.empty(length)
    rates, looked = np.empty(length), np.zeros(length, np.bool_)
    place, here = np.empty(length, np.int64), np.empty(length, np.int64)
    live, times = np.empty(length, np.int64), np.empty(n, np.int64)
    each_price, each_noise = int(len(price) > 1), int(len(noise) > 1)
    each_weight = int(len(weight) > 1)
    for j in range(n):
        _unpack(Cv, j, col_C, j)
        _unpack(N, j, col_N, j)
        _product(col_C, j, col_N, j, col_P, j, T)
    flat_C, flat_P = col_C.reshape(n, q * q), col_P.reshape(n, q * q)
    best, scale = np.zeros(m), np.ones(m)
    for i in range(m):
        for k in range(start[i], start[i + 1]):
            best[i] = max(best[i], bound[k])
    count, all_money = 0, max(money, 1e-300)
    while count < most:
        before, top = count, best.max()
        times[:] = 0
        if not top > 0.0:
            break
        level = (1.0 - slack * max(money / all_money, LAST)) * top
        for i in range(m):
            if best[i] < level or count == most:
                continue
            near, best[i] = 0, 0.0
            for k in range(start[i], start[i + 1]):
                if cols[k] < 0 or price[k * each_price] > money:
                    continue
                if bound[k] * scale[i] >= level:
                    place[near], here[near] = k, cols[k]
                    near += 1
                else:
                    best[i] = max(best[i], bound[k] * scale[i])
            if near == 0:
                continue
            _unpack(Cu, i, row, 0)
            _unpack(M, i, row, 1)
            _product(row, 0, row, 1, row, 2, T)
            _look(U, i, row, V, flat_C, flat_P, here, near, X, halves, form)
            reach = 0
            for t in range(near):
                k = place[t]
                spread = noise[k * each_noise] + halves[1, t] + halves[3, t]
                rates[t] = (halves[0, t] + halves[2, t]) / (spread * price[k * each_price])
                if rates[t] >= level:
                    live[reach], falling[reach] = t, -rates[t]
                    reach += 1
            ratio, bought, other = 1.0, False, best[i]
            for r in np.argsort(falling[:reach], kind="mergesort"):
                t = live[r]
                k, j = place[t], here[t]
                if count == most:
                    break
                if price[k * each_price] > money or times[j] == often[j]:
                    continue
                _times(row, 2, V, j, Y, 1)
                _times(row, 0, V, j, Y, 0)
                gain = spread = 0.0
                for a in range(q):
                    gain += V[j, a] * Y[1, a]
                    spread += V[j, a] * Y[0, a]
                spread = max(spread, 0.0) + noise[k * each_noise] + halves[3, t]
                gain = max(gain, 0.0) + halves[2, t]
                rates[t] = gain / (spread * price[k * each_price])
                ratio = rates[t] / -falling[r]
                looked[t] = True
                if rates[t] < level:
                    continue
                bought = True
                money -= price[k * each_price] * (1.0 - 1e-12)
                rows[count], found[count] = i, j
                cols[k] = -1
                times[j] += 1
                inverse[count], lost[count] = 1.0 / spread, weight[k * each_weight]
                _learn(row, V, j, Y, inverse[count], lost[count], by_sum)
                count += 1
            _pack(row, 0, Cu, i)
            _pack(row, 1, M, i)
            if not bought or slack == 0.0:
                ratio = 1.0
            scale[i] *= ratio  # what was not looked at after a purchase fell about as much
            best[i] = ratio * other
            for t in range(near):
                k = place[t]
                if not looked[t]:
                    rates[t] *= ratio
                looked[t] = False
                bound[k] = rates[t] / scale[i]
                if cols[k] >= 0:
                    best[i] = max(best[i], rates[t])
        new = slice(before, count)
        _columns_learn(U, col_C, col_N, col_P, rows[new], found[new], inverse[new], lost[new], Y, T)
    for j in range(n):
        _pack(col_C, j, Cv, j)
        _pack(col_N, j, N, j)
    return rows[:count], found[:count]
