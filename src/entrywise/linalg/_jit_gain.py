"""Compiled greedy buying: one cell after the other, covariances updated after each.

A row's candidates carry the two halves of their gain and of their variance, the row's and the column's. Buying a
cell changes the row's halves of its neighbours by rank-one terms, O(q) a candidate; the column's halves of other
rows are renewed only when such a candidate comes up (they can only have fallen: lazy greedy).
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

import heapq

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _form(A, x):
    s = 0.0
    for a in range(len(x)):
        t = 0.0
        for b in range(len(x)):
            t += A[a, b] * x[b]
        s += t * x[a]
    return s


@njit(cache=True, nogil=True)
def _renew(i, t, j, U, Cu, Cv, N, col_gain, col_var):
    """Renew the column's halves of candidate t of row i after column j has changed."""
    q = U.shape[1]
    x = np.empty(q)
    for a in range(q):
        x[a] = 0.0
        for b in range(q):
            x[a] += Cv[j, a, b] * U[i, b]
    col_gain[i, t] = _form(N[j], x)
    s = 0.0
    for a in range(q):
        s += x[a] * U[i, a]
    for a in range(q - 1):
        for b in range(q - 1):
            s += Cu[i, a, b] * Cv[j, a, b]
    col_var[i, t] = s


@njit(cache=True, nogil=True)
def _best(i, short, price, row_gain, row_var, col_gain, col_var, s2, left):
    """Return (gain per price, place) of row i's best affordable candidate; place -1 if there is none."""
    best, at = 0.0, -1
    for t in range(short.shape[1]):
        if short[i, t] < 0 or price[i, t] > left:
            continue
        gain = (row_gain[i, t] + col_gain[i, t]) / ((s2 + row_var[i, t] + col_var[i, t]) * price[i, t])
        if gain > best:
            best, at = gain, t
    return best, at


@njit(cache=True, nogil=True)
def buy_greedily(
    U, V, Cu, Cv, M, N, s2, short, price, row_gain, row_var, col_gain, col_var, score, money, most, by_sum, rounding
):
    """Pick cells by largest fall of variance per price until `money` or `most` is used up.

    U, V : (m, q), (n, q) designs, last coordinate one. Cu, Cv : covariances, changed in place.
    M : (m, q, q) sums over a row's open cells of v v', or with `by_sum` the outer square of their sum.
    N : (n, q, q) sums over a column's open cells of u u'.
    short : (m, L) candidate columns, -1 where none; price and the four halves : (m, L); score : (m,) best gain of a row.
    Returns rows and columns in the order in which they were picked.
    """
    m, q = U.shape
    rows = np.empty(most, np.int64)
    cols = np.empty(most, np.int64)
    age = np.zeros(short.shape, np.int32)
    version = np.zeros(len(V), np.int32)
    x = np.empty(q)
    w = np.empty(q)
    h = np.empty(q)
    heap = [(-score[i], i) for i in range(m)]
    heapq.heapify(heap)
    count = 0
    while count < most and len(heap) > 0:
        i = heapq.heappop(heap)[1]
        gain, t = _best(i, short, price, row_gain, row_var, col_gain, col_var, s2, money)
        while t >= 0 and age[i, t] != version[short[i, t]]:
            j = short[i, t]
            _renew(i, t, j, U, Cu, Cv, N, col_gain, col_var)
            age[i, t] = version[j]
            gain, t = _best(i, short, price, row_gain, row_var, col_gain, col_var, s2, money)
        if t < 0:
            continue
        if len(heap) > 0 and gain < -heap[0][0]:
            heapq.heappush(heap, (-gain, i))
            continue
        j = short[i, t]
        money -= price[i, t] - rounding * price[i, t]
        rows[count] = i
        cols[count] = j
        count += 1
        short[i, t] = -1
        d = s2 + row_var[i, t] + col_var[i, t]
        # the row: x = Cu v, Cu <- Cu - x x' / d, and the halves of its other candidates by rank-one terms
        for a in range(q):
            x[a] = 0.0
            for b in range(q):
                x[a] += Cu[i, a, b] * V[j, b]
        xv = 0.0
        xMx = 0.0
        for a in range(q):
            h[a] = 0.0
            for b in range(q):
                h[a] += M[i, a, b] * x[b]
            xMx += h[a] * x[a]
            xv += x[a] * V[j, a]
        for a in range(q):
            w[a] = 0.0
            for b in range(q):
                w[a] += Cu[i, a, b] * h[b]
        for s in range(short.shape[1]):
            c = short[i, s]
            if c < 0:
                continue
            y = 0.0
            z = 0.0
            for a in range(q):
                y += x[a] * V[c, a]
                z += w[a] * V[c, a]
            fall = y / d
            g = row_gain[i, s] - 2.0 * fall * z + fall * fall * xMx
            if not by_sum:
                left = y - xv * fall
                g -= left * left
            row_gain[i, s] = max(g, 0.0)
            row_var[i, s] = max(row_var[i, s] - y * fall, 0.0)
        for a in range(q):
            for b in range(q):
                Cu[i, a, b] -= x[a] * x[b] / d
                if not by_sum:
                    M[i, a, b] -= V[j, a] * V[j, b]
        # the column: its other candidates are renewed when they come up
        for a in range(q):
            x[a] = 0.0
            for b in range(q):
                x[a] += Cv[j, a, b] * U[i, b]
        for a in range(q):
            for b in range(q):
                Cv[j, a, b] -= x[a] * x[b] / d
                N[j, a, b] -= U[i, a] * U[i, b]
        version[j] += 1
        heapq.heappush(heap, (-gain, i))
    return rows[:count], cols[:count]
