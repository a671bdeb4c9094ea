r"""Mistake bounds for binary matrices, as functions: a forecast before the stream, a certificate during it.

N = m + n everywhere, logarithms are natural, and gamma is a margin in (0, 1]: 1 / (margin complexity) when every
label is to be right with that margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from entrywise.exceptions import ParameterError
from entrywise.types import Array

C = 1.0 / (3.0 - math.e)  # 3.5496...


def winnow_bound(n: int, gamma: float, violations: float = 0.0) -> float:
    r"""Theorem 3.1: mistakes of Matrix Winnow run at rate gamma, :math:`c\,[N \log N / \gamma^2 + \mathrm{merr}]`.

    Parameters
    ----------
    n : int
        N, rows plus columns (seen so far, when they appear over time).
    gamma : float
        Learning rate in (0, 1].
    violations : float
        merr, trials on which the best embedding has a margin below gamma.

    References
    ----------
    .. [HPP16] Herbster, Pasteris, Pontil, *Mistake Bounds for Binary Matrix Completion*, NIPS 2016.

    Examples
    --------
    >>> round(winnow_bound(200, 1 / 2**0.5))  # 100 x 100, 2 x 2 biclusters
    7523
    """
    _refuse(n, gamma)
    return C * (_n_log_n(n) / gamma**2 + violations)


def updates_bound(
    n: int, rate: float, margin: float, slack: float = 0.0, violations: float = 0.0
) -> float:
    r"""Updates, hence mistakes, of Matrix Winnow at any rate when the labels have this margin.

    The proof of Theorem 3.1 without its last rounding: an update at margin :math:`\mu` moves the relative entropy by
    :math:`p/N`,

    .. math:: p = \min\{\gamma(1+\mu) - (e^\gamma - 1)(1+d),\ (1 - e^{-\gamma})(1-d) - \gamma(1-\mu)\},

    a violation moves it back by at most the same with :math:`\mu = 0`; ``inf`` when p is not positive. With
    :math:`\mu = \gamma`, d = 0, it is at most :func:`winnow_bound`.

    Parameters
    ----------
    n : int
        N, rows plus columns.
    rate, margin : float
        Learning rate of the algorithm and margin of the embedding it is compared with.
    slack : float
        d: entries right by less than this are learnt too.
    violations : float
        Updates at which the embedding misses the margin.
    """
    _refuse(n, margin)

    def progress(margin: float) -> float:
        up = rate * (1.0 + margin) - math.expm1(rate) * (1.0 + slack)
        down = -math.expm1(-rate) * (1.0 - slack) - rate * (1.0 - margin)
        return min(up, down)

    forward, back = progress(margin), progress(0.0)
    if forward <= 0.0:
        return math.inf
    return violations + (_n_log_n(n) + violations * max(0.0, -back)) / forward


def doubling_bound(n: int, gamma: float, violations: float = 0.0) -> float:
    r"""Corollary 3.2: mistakes of the doubling algorithm, :math:`12 c\,[N \log N / \gamma^2 + \mathrm{merr}]`, any gamma."""
    return 12.0 * winnow_bound(n, gamma, violations)


def bicluster_bound(m: int, n: int, k: int, l: int, violations: float = 0.0) -> float:
    r"""Corollary 5.3: Theorem 3.1 at :math:`\gamma^2 = 1/\min(k, l)` for an m x n matrix of k x l biclusters."""
    if not (1 <= k <= m and 1 <= l <= n):
        raise ParameterError(f"k and l must be in 1..{m} and 1..{n}, got {k} and {l}")
    return winnow_bound(m + n, 1.0 / math.sqrt(min(k, l)), violations)


def bad_tasks_bound(m: int, n: int, gamma: float, bad: int) -> float:
    r"""Section 4: Theorem 3.1 when all but `bad` of the m rows have margin gamma; every entry of a bad row may violate it."""
    if not 0 <= bad <= m:
        raise ParameterError(f"bad must be in 0..{m}, got {bad}")
    return winnow_bound(m + n, gamma, bad * n)


def goldman_warmuth_bound(m: int, n: int, k: int) -> float:
    r"""Mistakes of weighted majority over row types: :math:`kn + \min(\frac{m^2}{2e}\log_2 e,\ m\sqrt{3 n \log_2 k})`.

    For k row types and no restriction on the columns; Goldman and Warmuth 1993, as quoted in [HPP16], Section 5.
    """
    if not 1 <= k <= m:
        raise ParameterError(f"k must be in 1..{m}, got {k}")
    return k * n + min(m**2 / (2 * math.e) * math.log2(math.e), m * math.sqrt(3 * n * math.log2(k)))


def trace_norm_bound(U: ArrayLike) -> float:
    r"""Inequality (4): margin complexity of a sign matrix, :math:`\mathrm{mc}(U) \le 3 \|U\|_1^{1/3}`, trace norm."""
    return float(3.0 * np.linalg.norm(np.asarray(U, dtype=np.float64), "nuc") ** (1.0 / 3.0))


def lower_bound(m: int, n: int, l: int) -> int:
    r"""Theorem 5.4: every algorithm can be forced to l m mistakes at margin complexity :math:`\sqrt l`."""
    if not 1 <= l <= n:
        raise ParameterError(f"l must be in 1..{n}, got {l}")
    return l * m


def adversary(
    m: int, n: int, l: int, predict: Callable[[int, int], int]
) -> Iterator[tuple[int, int, int]]:
    """Theorem 5.4's adversary: yield l m trials (i, j, y), each label the opposite of what `predict` says.

    The labels are those of an (m, l)-biclustered matrix, so the sequence has margin complexity at most sqrt(l).
    `predict` is asked right before each trial is yielded: let it speak for the learner as it is then.

    Examples
    --------
    >>> sum(y == -1 for _, _, y in adversary(3, 4, 2, lambda i, j: 1))
    6
    """
    lower_bound(m, n, l)
    for i in range(m):
        for j in range(l):  # one column of each type: every tile of an m x l table is labelled once
            yield i, j, -predict(i, j)


def graph_kernel(adjacency: ArrayLike) -> Array:
    r"""Return the kernel :math:`K = L^+ + R 11^\top`, :math:`R = \max_j L^+_{jj}`, of a connected graph's vertices."""
    A = np.asarray(adjacency, dtype=np.float64)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or not np.array_equal(A, A.T) or (A < 0).any():
        raise ParameterError(
            f"adjacency must be a symmetric matrix without negative weights, got shape {A.shape}"
        )
    L = np.diag(A.sum(axis=0)) - A
    eigenvalues = np.linalg.eigvalsh(L)
    if len(A) > 1 and eigenvalues[1] <= 1e-10 * max(1.0, eigenvalues[-1]):
        raise ParameterError("the graph must be connected; take one component at a time")
    plus = np.linalg.pinv(L, hermitian=True)
    return np.asarray(plus + np.diag(plus).max())


def cut_sizes(adjacency: ArrayLike, labelings: ArrayLike) -> Array:
    """Return the weight of the edges that each row of `labelings` (m, n), -1/+1, cuts."""
    A, U = np.asarray(adjacency, np.float64), np.asarray(labelings, np.float64)
    L = np.diag(A.sum(axis=0)) - A
    return np.asarray(np.einsum("ij,jk,ik->i", U, L, U) / 4.0)


def graph_complexity_bound(adjacency: ArrayLike, labelings: ArrayLike) -> float:
    r"""Section 4: margin complexity squared of labelings of a graph, :math:`\max_i (1 + 2 \sqrt{\Phi_i R})^2`.

    :math:`\Phi_i` is the cut of labeling i and R the largest diagonal entry of :math:`L^+`.

    Notes
    -----
    The paper prints :math:`(4 \Phi_i + 1/R) R`, but its kernel :math:`L^+ + R 11^\top` has 2 R on the diagonal, which doubles
    that. With :math:`L^+ + c\,11^\top` the bound is :math:`(4 \Phi + 1/c)(R + c)`; ours takes the best c.
    """
    R = float(np.diag(graph_kernel(adjacency)).max() / 2.0)
    return float((1.0 + 2.0 * np.sqrt(cut_sizes(adjacency, labelings).max() * R)) ** 2)


def novikoff(kernel: ArrayLike, labelings: ArrayLike) -> Array:
    r"""Return the perceptron's bound on each row, :math:`U_i K^{-1} U_i^\top \max_j K_{jj}`: an upper bound on mc^2."""
    K, U = np.asarray(kernel, np.float64), np.asarray(labelings, np.float64)
    solved = np.linalg.lstsq(K, U.T, rcond=None)[0]
    return np.asarray(np.einsum("ij,ji->i", U, solved) * np.diag(K).max())


def _n_log_n(n: int) -> float:
    return n * math.log(n) if n > 1 else 0.0


def _refuse(n: int, gamma: float) -> None:
    if n < 0:
        raise ParameterError(f"n must not be below 0, got {n}")
    if not 0.0 < gamma <= 1.0:
        raise ParameterError(f"gamma must be a margin in (0, 1], got {gamma}")
