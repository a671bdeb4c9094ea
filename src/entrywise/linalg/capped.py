r"""The hull of the rank-k projections, :math:`\{0 \preceq W \preceq I,\ tr W = k\}`: projecting onto it, taking it apart.

Both act on eigenvalues; [WK08] Warmuth, Kuzmin, *Randomized online PCA algorithms*, JMLR 9, 2008.
"""

from __future__ import annotations

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.types import Array, Indices


def project(log_u: Array, k: int) -> Array:
    r"""Return the log-eigenvalues of the matrix in the hull nearest to U in quantum relative entropy.

    .. math:: w_i = \min(1, c\, u_i), \qquad \sum_i w_i = k

    Parameters
    ----------
    log_u : ndarray of shape (d,)
        Logarithms of the eigenvalues of U, in any order; they may be huge.

    Examples
    --------
    >>> np.exp(project(np.log([8.0, 1.0, 1.0]), 2)).round(3).tolist()
    [1.0, 0.5, 0.5]
    """
    d = len(log_u)
    if not 1 <= k <= d:
        raise ParameterError(f"k must be in 1..{d}, got {k}")
    order = np.argsort(-log_u, kind="stable")
    u = log_u[order]
    # log of the sum of the d - t smallest, from the small end so that nothing is lost
    tail = np.logaddexp.accumulate(u[::-1])[::-1]
    w = np.zeros(d)
    for t in range(k):  # t eigenvalues are capped at one
        shift = np.log(k - t) - tail[t]
        if u[t] + shift <= 0.0:
            w[order[t:]] = u[t:] + shift
            return w
    raise ParameterError("no eigenvalue is finite; take a smaller step")


def decompose(W: Array, k: int) -> tuple[Array, list[Indices], Array]:
    r"""Write W as a convex combination of at most d rank-k projections (Algorithm 3, [WK08]).

    .. math:: W = \sum_j \beta_j V_{J_j} V_{J_j}^\top

    Returns
    -------
    beta : ndarray of shape (t,), t <= d
        Chances, adding up to one.
    members : list of t arrays of shape (k,)
        Columns of V that span each projection.
    V : ndarray of shape (d, d)
        Eigenvectors of W.
    """
    values, V = np.linalg.eigh(W)
    d = len(values)
    lam = np.clip(values, 0.0, 1.0)
    lam /= lam.sum()  # the paper's lambda: adds up to one, at most 1/k each
    beta: list[float] = []
    members: list[Indices] = []
    for _ in range(d):
        left = float(lam.sum())
        if left <= 1e-13:
            break
        J = np.argsort(-lam, kind="stable")[:k]
        out = np.ones(d, dtype=bool)
        out[J] = False
        smallest = float(lam[J].min())
        largest = float(lam[out].max()) if out.any() else 0.0
        b = min(k * smallest, left - k * largest)
        if b <= 1e-15:  # round-off: those at the cap are all there is
            break
        lam[J] -= b / k
        lam[lam < 1e-15] = 0.0
        beta.append(b)
        members.append(np.sort(J))
    chances = np.array(beta)
    return chances / chances.sum(), members, V
