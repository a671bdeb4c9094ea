r"""Mistake bounds for binary matrices, as functions: a forecast before the stream, a certificate during it.

N = m + n everywhere, logarithms are natural, and gamma is a margin in (0, 1]: 1 / (margin complexity) when every
label is to be right with that margin.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator

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


def regret_bound(trace_norm: float, m: int, n: int, trials: int) -> float:
    r"""Regret of Hazan, Kale, Shalev-Shwartz in absolute loss, :math:`2\sqrt{\|U\|_1 (m+n)^{1/2} \log(m+n)\, T}`.

    Their Corollary 7 as [HPP16] quote it in Section 3, with `trace_norm` :math:`\|U\|_1` and predictions in [-1, 1]: the
    loss of a wrong sign is 2, so that half of it bounds the expected mistakes of a prediction that is rounded at random.
    """
    return 2.0 * math.sqrt(trace_norm * math.sqrt(m + n) * math.log(m + n) * trials)


def rounding_bound(
    trace_norm: float, rows: ArrayLike, cols: ArrayLike, draws: int = 20, seed: int = 0
) -> float:
    r"""Regret of Cesa-Bianchi and Shamir in absolute loss.

    .. math:: \|U\|_1\, \mathbb E_\sigma \big\|\sum_t \sigma_t E_{i_t j_t}\big\|

    The Rademacher complexity, over the entries that come, of matrices of trace norm at most :math:`\|U\|_1`; the spectral norm
    of random signs is averaged over `draws`. About :math:`\|U\|_1 (\sqrt m + \sqrt n)` when every entry comes, the
    :math:`\tilde O(\|U\|_1 \sqrt n)` of [HPP16], Section 3. Half of it bounds expected mistakes, as in :func:`regret_bound`.

    References
    ----------
    .. [CS11] Cesa-Bianchi, Shamir, *Efficient online learning via randomized rounding*, NIPS 2011: against a
       class of static experts the minimax forecaster's regret is the Rademacher complexity of the class.
    """
    i, j = np.asarray(rows, np.int64), np.asarray(cols, np.int64)
    if not len(i):
        return 0.0
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        G = np.zeros((int(i.max()) + 1, int(j.max()) + 1))
        np.add.at(G, (i, j), rng.choice([-1.0, 1.0], size=len(i)))
        found.append(float(np.linalg.norm(G, 2)))
    return trace_norm * float(np.mean(found))


def margin_errors(U: ArrayLike, gammas: ArrayLike, ranks: Iterable[int] = range(1, 9)) -> Array:
    r"""Return upper bounds on :math:`\mathrm{merr}(S, \gamma)` of equation (2), from the labels themselves.

    Parameters
    ----------
    U : array of shape (m, n)
        Labels -1 and +1, 0 where unknown.
    gammas : array of shape (g,)
    ranks : iterable of int
        Embeddings tried, by their dimension; for each gamma the best of them counts.

    Returns
    -------
    ndarray of shape (g,)
        Labels on which an embedding that is consistent with all of them has a margin below gamma: an upper bound, since
        equation (2) takes the best of all embeddings.

    Notes
    -----
    Low-rank fits give the embeddings, and so do groups of rows or columns that are alike: with k groups of columns each
    row votes once a group, and the margin is :math:`1 / \sqrt k`, as for biclusters in Section 5. Where a label is wrong in
    an embedding, its row and its column get a coordinate of their own that makes it right and lengthens both, so that
    every embedding is consistent before margins are counted.
    """
    U = np.asarray(U, dtype=np.float64)
    known = U != 0
    gammas = np.atleast_1d(np.asarray(gammas, np.float64))
    best = np.full(len(gammas), float(known.sum()))
    for rank in ranks:
        if rank > min(U.shape):
            break
        P, Q = _fit_signs(U, rank)
        tried = [(P, Q), _grouped(U, Q, rank), _grouped(U.T, P, rank)[::-1]]
        for embedding in tried:
            margins = _consistent_margins(U, embedding)[known]
            best = np.minimum(best, [(margins < g * (1 - 1e-9)).sum() for g in gammas])
    return best


def data_bound(U: ArrayLike, gammas: ArrayLike | None = None) -> tuple[float, float]:
    """Return Theorem 3.1's bound for these labels, and the rate gamma at which it is smallest.

    Violations are bounded by :func:`margin_errors`, so that nothing about the matrix has to be known.
    """
    U = np.asarray(U, dtype=np.float64)
    rates = np.linspace(0.05, 1.0, 39) if gammas is None else np.atleast_1d(gammas)
    errors = margin_errors(U, rates)
    bounds = [
        winnow_bound(sum(U.shape), float(g), float(e)) for g, e in zip(rates, errors, strict=True)
    ]
    k = int(np.argmin(bounds))
    return bounds[k], float(rates[k])


ROUNDS = 30  # of the fit behind an embedding: more change no count by more than a label or two


def _fit_signs(U: Array, rank: int) -> tuple[Array, Array]:
    """Return P (m, rank) and Q (n, rank) whose products have the labels' signs where they can."""
    known = U != 0
    F = np.zeros(U.shape)
    for _ in range(ROUNDS):
        X = np.where(known, U * np.maximum(U * F, 1.0), F)
        A, s, Bt = np.linalg.svd(X, full_matrices=False)
        P, Q = A[:, :rank] * np.sqrt(s[:rank]), Bt[:rank].T * np.sqrt(s[:rank])
        F = P @ Q.T
    return P, Q


def _grouped(U: Array, Q: Array, count: int) -> tuple[Array, Array]:
    """Return the embedding by groups of columns: who belongs where, and how each row votes in each group."""
    from scipy.cluster.vq import kmeans2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a group may stay empty
        group = kmeans2(Q, count, minit="++", seed=0)[1]
    member = np.eye(count)[group]  # (n, groups)
    votes = np.where(U @ member >= 0, 1.0, -1.0)
    return votes, member


def _consistent_margins(U: Array, embedding: tuple[Array, Array]) -> Array:
    """Return the margin of every label after wrong ones got a coordinate of their own, shape (m, n)."""
    P, Q = embedding
    P = P / np.maximum(np.linalg.norm(P, axis=1, keepdims=True), 1e-300)
    Q = Q / np.maximum(np.linalg.norm(Q, axis=1, keepdims=True), 1e-300)
    inner = P @ Q.T
    wrong = (U != 0) & (U * inner <= 0)
    patch = np.where(wrong, np.abs(inner) + 1e-6, 0.0)  # c^2 of the own coordinate
    rows, cols = 1.0 + patch.sum(axis=1), 1.0 + patch.sum(axis=0)
    return np.asarray(U * (inner + U * patch) / np.sqrt(np.outer(rows, cols)))


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
