"""MCANS as its paper writes it, to compare with: columns as they come, its lines in the margin.

For work, take :func:`~entrywise.active.adaptive_nystrom`.
"""

from __future__ import annotations

import math

import numpy as np

from entrywise.active.nystrom.adaptive import diagonal_of, refuse
from entrywise.active.nystrom.certificate import FAR, certified
from entrywise.exceptions import Exhausted
from entrywise.linalg.schur import Schur
from entrywise.queries import Asking, Batch, plan
from entrywise.results import PSDFactor


@plan(symmetric=True)
def literal_adaptive_nystrom(
    n: int,
    *,
    rank: int | None = None,
    max_error: float | None = None,
    trace_error: float | None = None,
    noise: float = 0.0,
) -> Asking[PSDFactor]:
    r"""Complete an unknown PSD matrix by MCANS as printed: columns in the order in which they come.

    .. math:: c \in \mathcal C \iff \sigma_{\min}(L_{\mathcal C \cup \{c\}}) > 0, \qquad \hat L = C W^{-1} C^\top

    Parameters
    ----------
    n : int
        Side K of the matrix.
    rank : int, optional
        The paper's r, at which it stops; without it every diagonal entry is asked, in one batch.
    max_error : float, optional
        The paper's open sigma_thresh: a column is kept while its residual exceeds it.
    trace_error : float, optional
        Stop when the residual's trace is below this share of the trace.
    noise : float
        Standard deviation of the answers. A residual that noise alone may leave counts as explained.

    Yields
    ------
    Batch
        The diagonal, as far as needed, and the columns that pass the test: exactly the paper's queries.

    Returns
    -------
    PSDFactor
        As of :func:`~entrywise.active.adaptive_nystrom`.

    Notes
    -----
    ``sigma_min > 0`` keeps every column in floating point; the residual of the diagonal is compared with
    ``64 eps sqrt(n) (k + 1) max(diag A)`` instead. The first column is tested like the others, so that a zero column
    does not end in a singular W.

    References
    ----------
    .. [BGN17] Bhargava, Ganti, Nowak, *Active Positive Semidefinite Matrix Completion*, AISTATS 2017,
       Algorithm 3.2 and Theorem 3.2.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.gallery import random_psd
    >>> from entrywise.oracles import MatrixOracle
    >>> found = ew.play(literal_adaptive_nystrom(100), MatrixOracle(random_psd(100, 4)))
    >>> found.pivots.tolist(), int(found.cost)
    ([0, 1, 2, 3], 490)
    """
    refuse(n, rank, max_error, trace_error, noise, "literal_adaptive_nystrom")
    most = n if rank is None else rank
    state = Schur(np.full(n, np.nan), noise=noise)
    status, trace = "finished", np.inf
    try:
        if rank is None:  # every diagonal entry is asked sooner or later: the same queries
            state.residual[:] = diagonal_of((yield Batch.diagonal(n)), noise)
            state.scale = float(state.residual.max())
            trace = float(state.residual.sum())
        for c in range(n):  # 3
            if state.rank >= most:  # 9
                break  # 10
            if np.isnan(state.residual[c]):
                value = diagonal_of((yield Batch.entries(c, c)), noise, c)[0]  # 4
                state.left_at(c, float(value))
            if trace_error is not None and state.residual.sum() <= trace_error * trace:
                break
            if state.residual[c] > _floor(state, c, max_error):  # 5
                state.take(c, (yield Batch.column(c, n)))  # 6, 7
    except Exhausted:
        status = "exhausted"
    return certified(state, status)  # 13


def _floor(state: Schur, c: int, max_error: float | None) -> float:
    """Return the residual below which a column counts as explained."""
    floor = max_error
    if floor is None:  # round-off of k eliminations in any order, measured
        floor = 64 * math.sqrt(len(state.residual)) * (state.rank + 1) * state.round_off
    if state.noise > 0:
        floor = floor + FAR * float(state.reach()[c])
    return floor
