"""MBEG as its paper writes it, to compare with: Theorem 7's step and share, W renewed after each sample."""

from __future__ import annotations

from entrywise.active.subspaces.bandit import (
    BanditSetting,
    BanditState,
    Output,
    learn,
    samples_for,
    theorem_step,
)
from entrywise.bounds.subspace import mbeg_excess, mbeg_minimum
from entrywise.exceptions import ParameterError
from entrywise.queries import Asking, Checkpoint, Prices, plan
from entrywise.results import Certificate, Subspace
from entrywise.types import Seed, generator


@plan(fresh=True)
def literal_bandit_subspace(
    d: int,
    prices: Prices | None = None,
    *,
    rank: int,
    per_sample: int = 2,
    samples: int | None = None,
    budget: float | None = None,
    eta: float | None = None,
    alpha: float | None = None,
    updates: int | None = None,
    output: Output = "random",
    max_square: float = 1.0,
    rng: Seed = None,
    resume: Checkpoint | None = None,
) -> Asking[Subspace]:
    r"""Learn a k-dimensional subspace by MBEG as printed, with the excess that its theorem promises.

    .. math:: \eta = \sqrt{\frac{r \log d}{2 m (d + r)}}, \qquad \alpha = \eta d^2

    Parameters
    ----------
    d, prices, rank, per_sample, samples, budget, rng
        As of :func:`~entrywise.active.bandit_subspace`; it needs 2 d^4 r log(d) / (d + r) samples.
    eta, alpha : float, optional
        In place of the theorem's, whose promise then falls away.
    updates : int, optional
        Renew W only so often: one eigendecomposition each, instead of one a sample.
    output : {"random", "top"}
        One projection drawn from the decomposition of the mean W (Algorithm 3), for which the theorem holds, or the k
        heaviest eigenvectors.
    max_square : float
        Largest :math:`\|x\|^2`, by which samples are scaled; the paper's is 1.

    Returns
    -------
    Subspace
        Through the origin; Theorem 7 is its certificate.

    References
    ----------
    .. [GRES16] Gonen, Rosenbaum, Eldar, Shalev-Shwartz, *Subspace Learning with Partial Information*, JMLR 17, 2016,
       Algorithms 2 and 3, equations (7) and (8), Theorem 7.
    """
    m = samples_for(d, prices, rank, per_sample, samples, budget, "literal_bandit_subspace")
    step = theorem_step(d, per_sample, m)
    as_printed = eta is None and alpha is None
    least = mbeg_minimum(d, min(per_sample, d))
    if as_printed and m < least:
        raise ParameterError(
            f"Theorem 7 needs at least {least} samples for d={d} and r={per_sample}, got {m}; "
            "take more, or bandit_subspace"
        )
    setting = BanditSetting(
        d=d,
        k=rank,
        r=per_sample,
        m=m,
        eta=step if eta is None else eta,
        alpha=step * d * d if alpha is None else alpha,
        updates=m if updates is None else min(m, updates),
        output=output,
    )
    setting.refuse(max_square)
    state = BanditState(setting, max_square, generator(rng))
    if resume is not None:
        state.restore(resume)
    status = yield from learn(state)
    proved = as_printed and state.done == m
    return state.result(status, (_theorem(state),) if proved else ())


def _theorem(state: BanditState) -> Certificate:
    """Return Theorem 7 as a certificate."""
    at, scale = state.setting, state.scale
    value = mbeg_excess(at.d, at.k, at.r, at.m, scale)
    assumes: tuple[str, ...] = (f"no sample exceeds |x|^2 = {scale:g}",)
    if at.output != "random":
        assumes = (*assumes, "output='random'")
    return Certificate(
        "expected excess loss of the subspace",
        value,
        assumes,
        ("no attribute seen exceeds it",) if state.largest <= scale else (),
        vacuous=value >= scale or state.largest > scale,
    )
