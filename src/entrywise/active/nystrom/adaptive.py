"""Adaptive Nyström completion of positive semidefinite matrices.

The diagonal tells how much of each column the chosen ones leave unexplained. We ask for the least
explained column, subtract its part, and stop when nothing is left: rank r, n (r + 1) - r (r + 1) / 2
entries. Nothing of size n x n is ever made: n r numbers, n r^2 operations.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from entrywise.active.nystrom.certificate import FAR, certified, verified
from entrywise.exceptions import Exhausted, NotPSD, ParameterError
from entrywise.linalg.schur import IMPOSSIBLE, Schur, largest_gains, rejection_cholesky
from entrywise.queries import Asking, Batch, plan
from entrywise.results import PSDFactor
from entrywise.types import Array, Indices, Seed, generator

Order = Literal["greedy", "random", "gain"]

ROOM = 64  # columns for which room is made at first when the rank is not known
BLOCK = 16  # columns at a time with order "gain", where none are asked for
CANDIDATES = 4  # of "gain" for each column taken: fewer choose worse, more ask more
SAMPLED = 500  # rows on which their gains are compared; 1000 chose no better


@plan(symmetric=True)
def adaptive_nystrom(
    n: int,
    *,
    rank: int | None = None,
    order: Order = "greedy",
    max_error: float | None = None,
    trace_error: float | None = None,
    block: int | None = None,
    noise: float = 0.0,
    verify: int = 0,
    rng: Seed = None,
) -> Asking[PSDFactor]:
    r"""Complete an unknown PSD matrix :math:`A` by asking for a few of its columns.

    .. math:: A \approx C W^{-1} C^\top = F F^\top, \qquad C = A_{:,P},\ W = A_{P,P}

    Parameters
    ----------
    n : int
        Side of the matrix.
    rank : int, optional
        Largest number of columns to ask for. Fewer are asked when the residual vanishes.
    order : {"greedy", "random", "gain"}
        ``greedy`` asks for the column with the largest residual: smallest max-norm error, rank found
        exactly. ``random`` draws it in proportion to the residual (randomly pivoted Cholesky): good for
        the trace norm, robust against outliers. ``gain`` draws four candidates so for each column and
        takes those that lower the trace most on a sample of 500 rows: least trace-norm error, for
        up to 2000 more entries a column; where entries are cheap.
    max_error : float, optional
        Stop when every entry is within this: columns are kept while their residual exceeds it. The certificate adds
        what round-off and noise may hide.
    trace_error : float, optional
        Stop when the residual's trace is below this share of the trace.
    block : int, optional
        With ``random``: columns proposed at a time; the accelerated form, same law, several times faster.
        With ``gain``: columns taken at a time, 16 by default.
    noise : float
        Standard deviation of the answers. A residual that noise alone may leave counts as explained.
    verify : int
        Random entries among those never asked that are asked at the end, to test what cannot be seen otherwise: that the
        matrix is positive semidefinite. With 20 of them right, at most 14 % of the rest are wrong, at 95 %.
    rng : int or Generator
        For ``random`` and ``verify``.

    Yields
    ------
    Batch
        The diagonal first, then columns, then the entries of ``verify``.

    Returns
    -------
    PSDFactor
        ``factor`` of shape (n, k), the k ``pivots`` and the ``residual`` diagonal. Certificates: largest error of
        an entry, and trace-norm error, with margins for round-off and noise; with ``verify`` the share of unasked entries
        that may be beyond the first. ``report`` tells the ``margin``, the ``lowest_residual`` and how many were ``clipped``
        although neither round-off nor noise explains them: then the matrix is not PSD, and the certificates are vacuous.

    Notes
    -----
    The paper goes through the columns as they come, :func:`~entrywise.active.literal_adaptive_nystrom`. Its test
    ``sigma_min > 0`` keeps every column in floating point; ours compares the residual with
    ``10 (k + 10) eps max(diag A)``. Damage in entries that were never asked cannot be seen without ``verify``.

    References
    ----------
    .. [BGN17] Bhargava, Ganti, Nowak, *Active Positive Semidefinite Matrix Completion*, AISTATS 2017,
       Algorithm 3.2 and Theorem 3.2. ``max_error`` is an answer to its open sigma_thresh.
    .. [CETW24] Chen, Epperly, Tropp, Webber, *Randomly pivoted Cholesky*, 2024; blocks: Epperly, Tropp,
       Webber, *Embrace rejection*, 2024.
    .. [FGK11] Farahat, Ghodsi, Kamel, *A novel greedy algorithm for Nyström approximation*, AISTATS 2011; ``gain`` is
       its criterion for the trace norm, on samples of rows and columns.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.gallery import random_psd
    >>> from entrywise.oracles import MatrixOracle
    >>> found = ew.play(adaptive_nystrom(100), MatrixOracle(random_psd(100, 4)))
    >>> found.rank, int(found.cost), found.certificate.value < 1e-12
    (4, 490, True)
    """
    refuse(n, rank, max_error, trace_error, noise, "adaptive_nystrom")
    if verify < 0:
        raise ParameterError(f"verify must not be below 0, got {verify}")
    if order not in ("greedy", "random", "gain"):
        raise ParameterError(f"order must be greedy, random or gain, got {order!r}")
    if block is not None and (block < 1 or order == "greedy"):
        raise ParameterError(
            f"block goes with order='random' or 'gain' and must be at least 1, got block={block}, order={order!r}"
        )
    draws = generator(rng)
    most = n if rank is None else rank
    state = Schur(np.full(n, np.nan), noise=noise)
    status, checked = "finished", None
    try:
        if most > 0:
            diagonal = diagonal_of((yield Batch.diagonal(n)), noise)  # 4  all at once
            state = Schur(diagonal, ROOM if rank is None else most, noise)
        trace = float(state.residual.sum())
        while state.rank < most and not _done(state, trace, max_error, trace_error):  # 9
            if order == "gain":
                yield from _best_block(state, min(block or BLOCK, most - state.rank), draws)
            elif block is None:
                p = _pivot(state, order, draws)  # 5, 6  the least explained column
                state.take(p, (yield Batch.column(p, n)))  # 7
            else:
                yield from _random_block(state, min(block, most - state.rank), draws)
        if verify:
            checked = yield from verified(state, verify, draws)
    except Exhausted:
        status = "exhausted"
    return certified(state, status, checked)  # 13


def _random_block(state: Schur, size: int, rng: np.random.Generator) -> Asking[None]:
    """Propose columns in proportion to their residual, keep what rejection keeps, eliminate at once."""
    picked = rng.permutation(_drawn(state, size, rng))
    H = yield from _residual_among(state, picked)
    yield from _take(state, picked[rejection_cholesky(H, rng)])


def _best_block(state: Schur, size: int, rng: np.random.Generator) -> Asking[None]:
    """Draw candidates in proportion to their residual and eliminate those that lower the trace most on a sample."""
    n = len(state.residual)
    picked = _drawn(state, CANDIDATES * size, rng)
    others = np.delete(np.arange(n), picked)
    sample = np.sort(rng.permutation(others)[:SAMPLED])
    H = yield from _residual_among(state, picked)
    G = np.zeros((len(picked), len(sample)))
    if G.size:
        G[:] = (yield Batch.block(picked, sample)).reshape(G.shape)
        G -= state.F[:, picked].T @ state.F[:, sample]
    stands_for = len(others) / max(len(sample), 1)
    kept = picked[largest_gains(H, G, stands_for, size)]
    if not len(kept):  # round-off hides every gain: the largest residual is as good as any
        kept = np.array([np.argmax(state.residual)])
    yield from _take(state, kept)


def _drawn(state: Schur, size: int, rng: np.random.Generator) -> Indices:
    """Return at most `size` columns, drawn in proportion to their residual, each once and in order."""
    n, d = len(state.residual), state.residual
    drawn = np.searchsorted(np.cumsum(d), rng.random(size) * d.sum(), side="right")
    picked = np.unique(drawn.clip(0, n - 1))
    return np.asarray(picked[d[picked] > 0])


def _residual_among(state: Schur, picked: Indices) -> Asking[Array]:
    """Return the residual block of some columns, shape (b, b); what is below the diagonal is not asked."""
    a, b = np.triu_indices(len(picked), 1)
    H = np.diag(state.residual[picked])
    if len(a):
        F = state.F[:, picked]
        H[a, b] = yield Batch.entries(picked[a], picked[b])
        H[a, b] -= (F.T @ F)[a, b]
        H[b, a] = H[a, b]
    return H


def _take(state: Schur, kept: Indices) -> Asking[None]:
    n = len(state.residual)
    columns = yield Batch.columns(kept, n)
    state.take_block(kept, columns.reshape(len(kept), n))


def _pivot(state: Schur, order: Order, rng: np.random.Generator) -> int:
    d = state.residual
    if state.noise > 0:  # what noise alone may leave is no reason to ask
        d = np.maximum(d - FAR * state.reach(), 0.0)
    if order == "greedy":
        return int(np.argmax(d))
    total = np.cumsum(d)
    return int(min(np.searchsorted(total, rng.random() * total[-1], side="right"), len(d) - 1))


def _done(state: Schur, trace: float, max_error: float | None, trace_error: float | None) -> bool:
    """Tell whether what is left is round-off, noise, or within what was asked."""
    d = state.residual
    if max_error is not None and d.max() <= max_error:
        return True
    if trace_error is not None and d.sum() <= trace_error * trace:
        return True
    floor = 10 * (state.rank + 10) * state.round_off  # of k eliminations, measured
    if state.noise > 0:
        return bool(np.all(d <= floor + FAR * state.reach()))
    return bool(d.max() <= floor)


def diagonal_of(values: Array, noise: float, first: int = 0) -> Array:
    """Return the diagonal, refusing what no PSD matrix has on it."""
    c = int(np.argmin(values))
    if values[c] < -IMPOSSIBLE * noise:
        raise NotPSD(
            f"the diagonal of a PSD matrix must not be negative, entry ({first + c}, {first + c}) is "
            f"{values[c]:g}; check it"
        )
    return np.maximum(values, 0.0)


def refuse(
    n: int,
    rank: int | None,
    max_error: float | None,
    trace_error: float | None,
    noise: float,
    who: str,
) -> None:
    """Refuse parameters outside their domain."""
    if n < 1:
        raise ParameterError(f"n of {who} must be at least 1, got {n}")
    if rank is not None and not 0 <= rank <= n:
        raise ParameterError(f"rank of {who} must be in 0..{n}, got {rank}")
    for name, value in (("max_error", max_error), ("trace_error", trace_error), ("noise", noise)):
        if value is not None and not (np.isfinite(value) and value >= 0):
            raise ParameterError(f"{name} must be finite and not below 0, got {value}")
