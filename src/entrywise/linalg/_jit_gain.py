"""Compiled greedy buying: one cell after the other, covariances updated after each."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
from __future__ import annotations

import heapq

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _sandwich(C, M, out):
    """Write C M C into `out`; all symmetric (q, q)."""
    q = len(C)
    for a in range(q):
        for b in range(q):
            s = 0.0
            for c in range(q):
                t = 0.0
                for d in range(q):
                    t += M[c, d] * C[d, b]
                s += C[a, c] * t
            out[a, b] = s


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
def _best(i, U, V, Cu, Cv, Q, P, s2, short, price, left):
    """Return (gain per price, place in the shortlist) of row i's best affordable candidate; place -1 if none."""
    k = U.shape[1] - 1
    best, at = -1.0, -1
    for t in range(short.shape[1]):
        j = short[i, t]
        if j < 0 or price[i, t] > left:
            continue
        var = _form(Cu[i], V[j]) + _form(Cv[j], U[i])
        for a in range(k):
            for b in range(k):
                var += Cu[i, a, b] * Cv[j, a, b]
        gain = (_form(Q, V[j]) + _form(P[j], U[i])) / (s2 + var) / price[i, t]
        if gain > best:
            best, at = gain, t
    return best, at


@njit(cache=True, nogil=True)
def buy_greedily(U, V, Cu, Cv, M, N, P, s2, short, price, score, money, most, by_sum):
    """Pick cells by largest fall of variance per price until `money` or `most` is used up.

    U, V : (m, q), (n, q) designs, last coordinate one. Cu, Cv : covariances, changed in place.
    M : (m, q, q) sums over a row's open cells of v v', or with `by_sum` of the outer square of their sum.
    N : (n, q, q) sums over a column's open cells of u u'; P : Cv N Cv.
    short : (m, L) candidate columns, -1 where none; price : (m, L); score : (m,) best gain of each row.
    Scores are upper bounds that are renewed when a row comes up (lazy greedy).
    Returns rows and columns in the order in which they were picked.
    """
    m, q = U.shape
    rows = np.empty(most, np.int64)
    cols = np.empty(most, np.int64)
    Q = np.empty((q, q))
    x = np.empty(q)
    heap = [(-score[i], i) for i in range(m)]
    heapq.heapify(heap)
    count = 0
    while count < most and len(heap) > 0:
        i = heapq.heappop(heap)[1]
        _sandwich(Cu[i], M[i], Q)
        gain, t = _best(i, U, V, Cu, Cv, Q, P, s2, short, price, money)
        if t < 0 or gain <= 0.0:
            continue
        if len(heap) > 0 and gain < -heap[0][0]:
            heapq.heappush(heap, (-gain, i))
            continue
        j = short[i, t]
        money -= price[i, t]
        rows[count] = i
        cols[count] = j
        count += 1
        short[i, t] = -1
        k = q - 1
        var = s2 + _form(Cu[i], V[j]) + _form(Cv[j], U[i])
        for a in range(k):
            for b in range(k):
                var += Cu[i, a, b] * Cv[j, a, b]
        for a in range(q):
            x[a] = 0.0
            for b in range(q):
                x[a] += Cu[i, a, b] * V[j, b]
        for a in range(q):
            for b in range(q):
                Cu[i, a, b] -= x[a] * x[b] / var
                if not by_sum:
                    M[i, a, b] -= V[j, a] * V[j, b]
        for a in range(q):
            x[a] = 0.0
            for b in range(q):
                x[a] += Cv[j, a, b] * U[i, b]
        for a in range(q):
            for b in range(q):
                Cv[j, a, b] -= x[a] * x[b] / var
                N[j, a, b] -= U[i, a] * U[i, b]
        _sandwich(Cv[j], N[j], P[j])
        heapq.heappush(heap, (-gain, i))
    return rows[:count], cols[:count]
