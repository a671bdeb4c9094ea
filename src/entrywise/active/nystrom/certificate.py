r"""What a partial Cholesky factor promises: its residual diagonal, with margins, and a check that assumes nothing.

For exact answers of a PSD matrix the largest residual on the diagonal bounds the error of every entry and their sum
the trace norm. Round-off and noise reach the residual through the weights of the pivots,
:math:`x_i = (1, -w_i)`: :meth:`~entrywise.linalg.schur.Schur.margins`. That the matrix is positive semidefinite at all
cannot be seen from the entries asked; a few random ones among the rest can tell, at a price.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from entrywise.bounds.active_psd import coin_upper
from entrywise.linalg.schur import Schur
from entrywise.queries import Asking, Batch
from entrywise.results import Certificate, PSDFactor
from entrywise.types import Array, Indices

FAR = 4.0  # standard deviations of noise that an answer may be away
CHANCE = 0.05  # that noise exceeds its margin somewhere, or that a share of wrong entries hides


class Checked(NamedTuple):
    """Entries asked to verify: how far the completed ones are from the answers."""

    rows: Indices
    cols: Indices
    away: Array


def verified(state: Schur, count: int, rng: np.random.Generator) -> Asking[Checked]:
    """Ask for `count` random entries that no column held, all of them when there are fewer."""
    left = np.setdiff1d(np.arange(len(state.residual)), state.pivots)
    a, b = _pairs(len(left), count, rng)
    i, j = left[a], left[b]
    if not len(i):
        return Checked(i, j, np.zeros(0))
    answers = yield Batch.entries(i, j)
    F = state.F
    return Checked(i, j, np.abs(answers - np.einsum("kn,kn->n", F[:, i], F[:, j])))


def certified(state: Schur, status: str, checked: Checked | None = None) -> PSDFactor:
    """Return the factor with what its residual diagonal, its margins and the entries checked certify."""
    margin = state.margins(CHANCE)
    largest, total = _errors(state, margin)
    wrong = 0
    if checked is not None:
        allowed = largest + FAR * state.noise
        wrong = int(np.count_nonzero(checked.away > allowed))
        largest = max(largest, float(checked.away.max(initial=0.0)) if wrong else 0.0)
    facts = {
        "assumes": _assumed(state, checked),
        "checked": _tested(state, checked, wrong),
    }
    broken = bool(state.clipped) or wrong > 0
    nothing = largest >= state.scale > 0
    certificates = (
        Certificate("largest error of an entry", largest, vacuous=nothing or broken, **facts),
        Certificate("trace-norm error", total, vacuous=broken or np.isinf(total), **facts),
    )
    if checked is not None:
        certificates += (_share(len(checked.away), wrong),)
    return PSDFactor(
        state.factor(),
        np.array(state.pivots, np.int64),
        state.residual,
        certificates=certificates,
        status=status,
        report={
            "columns": state.rank,
            "diagonal_known": int(np.count_nonzero(~np.isnan(state.residual))),
            "margin": float(margin.max(initial=0.0)),
            "lowest_residual": state.lowest,
            "clipped": len(state.clipped),
        },
    )


def _errors(state: Schur, margin: Array) -> tuple[float, float]:
    """Return bounds of the largest error of an entry and of the trace norm."""
    d = state.residual
    if np.isnan(d).any():
        return np.inf, np.inf
    if state.rank == 0 and state.noise == 0:  # nothing was subtracted, nothing rounded
        return float(d.max()), float(d.sum())
    largest = (d + margin).max() + margin.max()
    # errors in k columns make a matrix of rank 2 k, whose trace norm its Frobenius norm bounds
    total = d.sum() + (2.0 + np.sqrt(2.0 * state.rank)) * margin.sum()
    return float(largest), float(total)


def _assumed(state: Schur, checked: Checked | None) -> tuple[str, ...]:
    n, k = len(state.residual), state.rank
    unseen = (n - k) * (n - k - 1) // 2 - (0 if checked is None else len(checked.away))
    psd = f"positive semidefinite, not checked on {unseen} entries"
    if state.noise == 0:
        return psd, "the answers are exact to round-off"
    return (
        psd,
        f"independent normal noise of {state.noise:g}; true for {1 - CHANCE:.0%} of such runs",
    )


def _tested(state: Schur, checked: Checked | None, wrong: int) -> tuple[str, ...]:
    if state.clipped:
        c, left = min(state.clipped.items(), key=lambda item: item[1])
        words = f"not positive semidefinite: the residual of column {c} fell to {left:.3g}"
    else:
        words = "no residual fell below zero by more than round-off and noise, on the entries asked"
    if checked is None:
        return (words,)
    return words, f"{wrong} of {len(checked.away)} random unasked entries beyond the stated error"


def _share(count: int, wrong: int) -> Certificate:
    """Return how many of the entries never asked may be beyond the stated error."""
    share = float(coin_upper(wrong, count, CHANCE))
    return Certificate(
        f"share of unasked entries beyond the stated error, at {1 - CHANCE:.0%}",
        share,
        assumes=(f"{count} entries drawn at random",),
        checked=(f"{wrong} of them beyond",),
        vacuous=share >= 1.0,
    )


def _pairs(n: int, count: int, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Draw `count` of the n (n - 1) / 2 pairs a < b, each at most once."""
    every = n * (n - 1) // 2
    drawn = rng.choice(every, size=min(count, every), replace=False, shuffle=False)
    # pair number t of row b holds b (b - 1) / 2 + a, a < b
    b = ((1.0 + np.sqrt(1.0 + 8.0 * drawn)) // 2).astype(np.int64)
    b -= b * (b - 1) // 2 > drawn
    b += (b + 1) * b // 2 <= drawn
    return drawn - b * (b - 1) // 2, b
