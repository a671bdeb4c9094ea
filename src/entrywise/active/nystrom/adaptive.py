"""Adaptive Nyström completion of positive semidefinite matrices.

The diagonal tells how much of each column the chosen ones leave unexplained. We ask for the least
explained column, subtract its part, and stop when nothing is left: rank r, n (r + 1) - r (r + 1) / 2
entries. Nothing of size n x n is ever made: n r numbers, n r^2 operations.
"""

from __future__ import annotations

from typing import Literal, cast

import numpy as np

from entrywise.exceptions import Exhausted, NotPSD, ParameterError
from entrywise.linalg.schur import EPS, Schur, rejection_cholesky
from entrywise.queries import Asking, Batch, plan
from entrywise.results import Certificate, PSDFactor
from entrywise.types import Array, Seed

Order = Literal["greedy", "given", "random"]


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
    order : {"greedy", "given", "random"}
        ``greedy`` asks for the column with the largest residual: smallest max-norm error, rank found
        exactly. ``random`` draws it in proportion to the residual (randomly pivoted Cholesky): best for
        the trace norm, robust against outliers. ``given`` goes through the columns as they come: the
        paper's MCANS, exactly its queries.
    max_error : float, optional
        Stop when every entry is certified within this: columns are kept while their residual exceeds it.
    trace_error : float, optional
        Stop when the residual's trace is below this share of the trace.
    block : int, optional
        With ``random``: columns proposed at a time; the accelerated form, same law, several times faster.
    noise : float
        Standard deviation of the answers. A residual that noise alone may leave counts as explained.
    rng : int or Generator
        For ``random``.

    Yields
    ------
    Batch
        The diagonal first (``given`` with a rank: only as far as needed), then columns.

    Returns
    -------
    PSDFactor
        ``factor`` of shape (n, k), the k ``pivots`` and the ``residual`` diagonal. Certificates: largest error of
        an entry, and trace-norm error; both exact for PSD matrices and exact answers.

    Notes
    -----
    The paper's test ``sigma_min > 0`` keeps every column in floating point; ours compares the residual
    with ``10 (k + 10) eps max(diag A)`` (``given``: ``64 eps sqrt(n) (k + 1) max(diag A)``). The first column
    is tested like the others, so that a zero column does not end in a singular W. Damage in entries that
    were never asked cannot be seen.

    References
    ----------
    .. [BGN17] Bhargava, Ganti, Nowak, *Active Positive Semidefinite Matrix Completion*, AISTATS 2017,
       Algorithm 3.2 and Theorem 3.2. ``max_error`` is an answer to its open sigma_thresh.
    .. [CETW24] Chen, Epperly, Tropp, Webber, *Randomly pivoted Cholesky*, 2024; blocks: Epperly, Tropp,
       Webber, *Embrace rejection*, 2024.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.gallery import random_psd
    >>> from entrywise.oracles import MatrixOracle
    >>> found = ew.play(adaptive_nystrom(100), MatrixOracle(random_psd(100, 4)))
    >>> found.rank, int(found.cost), found.certificate.value < 1e-12
    (4, 490, True)
    """
    _refuse(n, rank, order, max_error, trace_error, block, noise)
    generator = cast(np.random.Generator, rng)
    most = n if rank is None else rank
    state = Schur(np.full(n, np.nan), noise=noise)
    try:
        if order == "given":
            yield from _given(state, most, rank is None, max_error, trace_error)
        elif most > 0:
            state = Schur(
                _diagonal((yield Batch.diagonal(n)), noise),
                min(most, 64 if rank is None else most),
                noise,
            )
            trace = float(state.residual.sum())
            while state.rank < most and not _done(state, trace, max_error, trace_error):
                if block is None:
                    p = _pivot(state, order, generator)
                    state.take(p, (yield Batch.column(p, n)))  # 7
                else:
                    yield from _random_block(state, min(block, most - state.rank), generator)
        status = "finished"
    except Exhausted:
        status = "exhausted"
    return _result(state, status)  # 13


def _given(
    state: Schur, most: int, all_diagonal: bool, max_error: float | None, trace_error: float | None
) -> Asking[None]:
    """Go through the columns as they come: the paper's loop, its lines in the margin."""
    n = len(state.residual)
    trace = np.inf
    if (
        all_diagonal and most > 0
    ):  # every diagonal entry is asked sooner or later: the same queries, in one batch
        state.residual[:] = _diagonal((yield Batch.diagonal(n)), state.noise)
        state.scale = float(state.residual.max())
        trace = float(state.residual.sum())
    for c in range(n):  # 3
        if state.rank >= most:  # 9
            return
        if np.isnan(state.residual[c]):
            value = _diagonal((yield Batch.entries(c, c)), state.noise, c)[0]  # 4
            state.left_at(c, float(value))
        if trace_error is not None and state.residual.sum() <= trace_error * trace:
            return
        floor = (
            64 * EPS * np.sqrt(n) * (state.rank + 1) * state.scale
            if max_error is None
            else max_error
        )
        if state.residual[c] > floor + 4.0 * state.reach()[c] * (state.noise > 0):  # 5
            state.take(c, (yield Batch.column(c, n)))  # 6, 7


def _random_block(state: Schur, size: int, rng: np.random.Generator) -> Asking[None]:
    """Propose columns in proportion to their residual, keep what rejection keeps, eliminate at once."""
    n, d = len(state.residual), state.residual
    picked = np.unique(
        np.searchsorted(np.cumsum(d), rng.random(size) * d.sum(), side="right").clip(0, n - 1)
    )
    picked = rng.permutation(picked[d[picked] > 0])
    a, b = np.triu_indices(len(picked), 1)
    H = np.diag(d[picked])
    if len(a):
        F = state.F[:, picked]
        H[a, b] = yield Batch.entries(picked[a], picked[b])
        H[a, b] -= (F.T @ F)[a, b]
        H[b, a] = H[a, b]
    kept = picked[rejection_cholesky(H, rng)]
    columns = yield Batch.columns(kept, n)
    state.take_block(kept, columns.reshape(len(kept), n))


def _pivot(state: Schur, order: Order, rng: np.random.Generator) -> int:
    d = state.residual
    if state.noise > 0:  # what noise alone may leave is no reason to ask
        d = np.maximum(d - 4.0 * state.reach(), 0.0)
    if order == "greedy":
        return int(np.argmax(d))  # 5
    total = np.cumsum(d)
    return int(min(np.searchsorted(total, rng.random() * total[-1], side="right"), len(d) - 1))


def _done(state: Schur, trace: float, max_error: float | None, trace_error: float | None) -> bool:
    """Tell whether what is left is round-off, noise, or within what was asked."""
    d = state.residual
    floor = 10 * (state.rank + 10) * EPS * state.scale
    if max_error is not None and d.max() <= max_error:
        return True
    if trace_error is not None and d.sum() <= trace_error * trace:
        return True
    return (
        bool(np.all(d <= floor + 4.0 * state.reach()))
        if state.noise > 0
        else bool(d.max() <= floor)
    )


def _diagonal(values: Array, noise: float, first: int = 0) -> Array:
    """Return the diagonal, refusing what no PSD matrix has on it."""
    c = int(np.argmin(values))
    if values[c] < -8.0 * noise:
        raise NotPSD(
            f"the diagonal of a PSD matrix must not be negative, entry ({first + c}, {first + c}) is {values[c]:g}; check it"
        )
    return np.maximum(values, 0.0)


def _result(state: Schur, status: str) -> PSDFactor:
    known = ~np.isnan(state.residual)
    assumes = (
        "the matrix is positive semidefinite",
        "the answers are exact" if state.noise == 0 else f"noise of {state.noise:g}",
    )
    checked = ("no residual fell below zero on the entries asked",)
    largest = float(state.residual.max()) if known.all() else np.inf
    total = float(state.residual.sum()) if known.all() else np.inf
    certificates = (
        Certificate(
            "largest error of an entry",
            largest,
            assumes,
            checked,
            vacuous=largest >= state.scale > 0,
        ),
        Certificate("trace-norm error", total, assumes, checked, vacuous=not np.isfinite(total)),
    )
    report = {"columns": state.rank, "diagonal known": int(known.sum())}
    return PSDFactor(
        state.factor(),
        np.array(state.pivots, np.int64),
        state.residual,
        certificates=certificates,
        status=status,
        report=report,
    )


def _refuse(
    n: int,
    rank: int | None,
    order: str,
    max_error: float | None,
    trace_error: float | None,
    block: int | None,
    noise: float,
) -> None:
    if n < 1:
        raise ParameterError(f"n of adaptive_nystrom must be at least 1, got {n}")
    if rank is not None and not 0 <= rank <= n:
        raise ParameterError(f"rank of adaptive_nystrom must be in 0..{n}, got {rank}")
    if order not in ("greedy", "given", "random"):
        raise ParameterError(f"order must be greedy, given or random, got {order!r}")
    for name, value in (("max_error", max_error), ("trace_error", trace_error), ("noise", noise)):
        if value is not None and not (np.isfinite(value) and value >= 0):
            raise ParameterError(f"{name} must be finite and not below 0, got {value}")
    if block is not None and (block < 1 or order != "random"):
        raise ParameterError(
            f"block goes with order='random' and must be at least 1, got block={block}, order={order!r}"
        )
