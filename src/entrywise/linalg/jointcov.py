"""Variance of the entries of a factored matrix when the errors of rows and columns are not independent.

A variational posterior treats the two factors as independent and so understates how far an entry may be off.
Here the whole curvature of the log posterior at the fit is inverted (Laplace, Gauss-Newton), one side eliminated.
"""

from __future__ import annotations

import numpy as np

from entrywise.types import Array


def joint_cost(m: int, n: int, q: int) -> float:
    """Return about how many operations :func:`joint_variance` takes for an m x n matrix and q unknowns a line."""
    m, n = max(m, n), min(m, n)
    return float(m * q * (n * q) ** 2 + (n * q) ** 3 + m * n * n * (n + q * q))


def joint_variance(U: Array, V: Array, W: Array, row_prior: Array, col_prior: Array) -> Array:
    r"""Return the variance of every entry :math:`u_i \cdot v_j + b_i + c_j`, shape (m, n).

    Parameters
    ----------
    U, V : ndarray of shape (m, k) and (n, k)
        The factors at the fit; a bias a line is implied.
    W : ndarray of shape (m, n)
        Precision of what is known of each entry; 0 where nothing is.
    row_prior, col_prior : ndarray of shape (k + 1, k + 1)
        Prior covariances of :math:`(u_i, b_i)` and :math:`(v_j, c_j)`.

    Notes
    -----
    With :math:`a_j = (v_j, 1)`, :math:`g_i = (u_i, 1)`, :math:`H_i = \sum_j w_{ij} a_j a_j^\top + S_U^{-1}`,
    :math:`T_i = A H_i^{-1} A^\top \mathrm{diag}(w_i)` and :math:`\Gamma_i = (I \otimes g_i^\top) \Sigma (I \otimes g_i)`,
    :math:`\Sigma` the joint covariance of all columns, the variance is the diagonal of
    :math:`A H_i^{-1} A^\top + (I - T_i) \Gamma_i (I - T_i)^\top`, plus the product term
    :math:`\mathrm{tr}(C^u_i C^v_j)`.
    """
    if len(V) > len(U):
        return joint_variance(V, U, W.T, col_prior, row_prior).T
    (m, k), n = U.shape, len(V)
    q = k + 1
    A, G = np.column_stack([V, np.ones(n)]), np.column_stack([U, np.ones(m)])
    PU, PV = _precision(row_prior), _precision(col_prior)
    AA = (A[:, :, None] * A[:, None, :]).reshape(n, q * q)
    H = np.linalg.inv((W @ AA).reshape(m, q, q) + PU)  # (m, q, q)
    GG = (G[:, :, None] * G[:, None, :]).reshape(m, q * q)
    S = np.zeros((n, q, n, q))
    S[np.arange(n), :, np.arange(n), :] = (W.T @ GG).reshape(n, q, q) + PV
    S = S.reshape(n * q, n * q)
    step = max(1, int(2**23 // (n * q * q)))
    for start in range(0, m, step):  # eliminate the rows
        part = slice(start, start + step)
        root = np.linalg.cholesky(H[part])
        B = np.einsum("ilp,jl,ij->ipj", root, A, W[part])  # (rows, q, n)
        Z = np.einsum("ipj,ia->jaip", B, G[part]).reshape(n * q, -1)
        S -= Z @ Z.T
    Sigma = np.linalg.inv(0.5 * (S + S.T))
    blocks = Sigma.reshape(n, q, n, q)
    own = blocks[np.arange(n), :, np.arange(n), :]  # (n, q, q)
    found = np.empty((m, n))
    eye = np.eye(n)
    for i in range(m):
        AH = A @ H[i]  # (n, q)
        T = (AH @ A.T) * W[i]
        gamma = ((blocks.reshape(-1, q) @ G[i]).reshape(n, q, n) * G[i][None, :, None]).sum(axis=1)
        R = eye - T
        M = AH.T * W[i]
        Cu = H[i] + M @ gamma @ M.T
        product = np.einsum("ab,jab->j", Cu[:k, :k], own[:, :k, :k])
        found[i] = np.einsum("ja,ja->j", AH, A) + np.einsum("jl,jl->j", R @ gamma, R) + product
    return np.maximum(found, 0.0)


def _precision(prior: Array) -> Array:
    """Return the inverse of a prior covariance, directions without variance kept finite."""
    floor = 1e-9 * max(float(np.trace(prior)) / len(prior), 1e-300)
    return np.asarray(np.linalg.inv(prior + floor * np.eye(len(prior))))
