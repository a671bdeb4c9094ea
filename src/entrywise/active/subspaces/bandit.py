r"""Matrix bandit exponentiated gradient: learn a subspace by looking at pairs of attributes.

A weight matrix W in the hull of the rank-k projections says which directions matter. Pairs of attributes are
drawn with a bias towards its heavy diagonal, each pair gives an unbiased estimate of E[x x'], and W moves by
an exponentiated step and a projection back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from entrywise.active.subspaces.looks import SLACK, cost_of_looks, refuse_long_rounds
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.linalg.capped import decompose, project
from entrywise.queries import Asking, Batch, Checkpoint, Prices, plan
from entrywise.results import Certificate, Subspace
from entrywise.types import Array, Indices, Seed, generator

Output = Literal["top", "random"]

FASTER = 10.0  # steps so many times the theorem's, which its worst case makes small
UNIFORM = 0.3  # share of uniform looking; the theorem's falls with m and starves rare attributes
UPDATES = 150  # renewals of W, one eigendecomposition each: more change nothing that we could see
CHECKPOINTS = 20  # places to resume


@plan(fresh=True)
def bandit_subspace(
    d: int,
    prices: Prices | None = None,
    *,
    rank: int,
    per_sample: int = 2,
    samples: int | None = None,
    budget: float | None = None,
    eta: float | None = None,
    alpha: float = UNIFORM,
    updates: int = UPDATES,
    output: Output = "top",
    max_square: float | None = None,
    rng: Seed = None,
    resume: Checkpoint | None = None,
) -> Asking[Subspace]:
    r"""Learn a k-dimensional subspace by MBEG, which looks at r / 2 pairs of attributes of each sample.

    .. math:: W \leftarrow \arg\min_{0 \preceq W \preceq I,\ tr W = k} D(W, \exp(\log W + \eta \hat C))

    Parameters
    ----------
    d : int
        Attributes of a sample.
    prices : Prices, optional
        Of an attribute; the budget is planned with the dearest.
    rank : int
        Dimension k of the subspace, 1 <= k < d.
    per_sample : int
        Attributes r a sample, even. A pair may name one attribute twice; it is looked at once then.
    samples : int, optional
        Samples m to look at; else as many as `budget` surely pays.
    budget : float, optional
        Money to spend on attributes.
    eta : float, optional
        Step; ten times Theorem 7's when not given.
    alpha : float
        Share of uniform looking.
    updates : int
        How often W is renewed, at most once a sample; each costs one eigendecomposition.
    output : {"top", "random"}
        The k heaviest eigenvectors of the mean W, or one projection drawn from its decomposition (Algorithm 3),
        whose expectation is the mean W.
    max_square : float, optional
        Largest :math:`\|x\|^2`, by which samples are scaled; the mean of :math:`\|x\|^2` found in the first samples when
        not given.
    rng : int or Generator

    Yields
    ------
    Batch
        Rows are running numbers of fresh samples, columns their attributes.

    Returns
    -------
    Subspace
        Through the origin.

    Notes
    -----
    The paper's own step, share and renewals, with its theorem, are
    :func:`~entrywise.active.literal_bandit_subspace`. Drawn so the estimate is one product out of d^2 at a time; looking
    at r attributes and using all their products (:func:`entrywise.active.subspace`) did better wherever we
    compared them.

    References
    ----------
    .. [GRES16] Gonen, Rosenbaum, Eldar, Shalev-Shwartz, *Subspace Learning with Partial Information*, JMLR 17, 2016,
       Algorithms 2 and 3, equations (7) and (8), Theorem 7.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.oracles import StreamOracle
    >>> stream = np.random.default_rng(0).standard_normal((4000, 1)) * np.r_[0.6, 0.8, np.zeros(6)]
    >>> found = ew.play(bandit_subspace(8, rank=1, samples=4000, rng=0), StreamOracle(stream))
    >>> bool(abs(found.components[0, 1]) > 0.7)
    True
    """
    m = samples_for(d, prices, rank, per_sample, samples, budget, "bandit_subspace")
    step = FASTER * theorem_step(d, per_sample, m) if eta is None else eta
    setting = BanditSetting(d, rank, per_sample, m, step, alpha, min(m, updates), output)
    setting.refuse(max_square)
    state = BanditState(setting, max_square or 0.0, generator(rng))
    if resume is not None:
        state.restore(resume)
    status = yield from learn(state)
    return state.result(status)


@dataclass(frozen=True)
class BanditSetting:
    """What MBEG is told: d, k, r, m, eta, alpha of the paper, how often W is renewed, what is returned."""

    d: int
    k: int
    r: int
    m: int
    eta: float
    alpha: float
    updates: int
    output: Output

    def refuse(self, max_square: float | None) -> None:
        """Refuse parameters outside their domain."""
        if self.output not in ("top", "random"):
            raise ParameterError(f"output must be top or random, got {self.output!r}")
        for name, value in (("eta", self.eta), ("max_square", max_square)):
            if value is not None and not (np.isfinite(value) and value > 0):
                raise ParameterError(f"{name} must be finite and above 0, got {value}")
        if not 0 < self.alpha <= 1:
            raise ParameterError(f"alpha must be above 0 and at most 1, got {self.alpha}")
        if self.updates < 1:
            raise ParameterError(f"updates must be at least 1, got {self.updates}")
        refuse_long_rounds(self.m * self.r / self.updates, "updates")


def theorem_step(d: int, r: int, m: int) -> float:
    """Return the eta of Algorithm 2, sqrt(r log d / (2 m (d + r)))."""
    return math.sqrt(r * math.log(d) / (2.0 * m * (d + r)))


def samples_for(
    d: int,
    prices: Prices | None,
    rank: int,
    per_sample: int,
    samples: int | None,
    budget: float | None,
    who: str,
) -> int:
    """Refuse bad parameters; return the samples to look at, as many as the budget surely pays."""
    if per_sample < 2 or per_sample % 2:
        raise ParameterError(f"per_sample of {who} must be even and at least 2, got {per_sample}")
    cost = cost_of_looks(d, prices, rank, per_sample, samples, budget, who)
    if samples is not None or budget is None:
        return int(samples or 0)
    dearest = per_sample * float(cost.max())
    m = int(budget / dearest * SLACK)
    if m < 1:
        raise ParameterError(
            f"budget must buy at least one sample of {per_sample} attributes, {dearest:g}; got {budget}"
        )
    return m


class BanditState:
    """Where MBEG stands: W and its logarithm, what was summed up, how far it came."""

    def __init__(self, setting: BanditSetting, scale: float, rng: np.random.Generator) -> None:
        d, k = setting.d, setting.k
        self.setting, self.scale, self.rng = setting, scale, rng
        self.log_W = np.full(d, math.log(k / d)) * np.eye(d)
        self.W = np.eye(d) * k / d  # 1
        self.mean_W, self.moments = np.zeros((d, d)), np.zeros((d, d))
        self.done = self.update = self.looks = 0
        self.squares = self.largest = 0.0

    def checkpoint(self) -> Checkpoint:
        """Return everything that is needed to go on from here."""
        names = (*ARRAYS, *COUNTS, *NUMBERS)
        return Checkpoint({name: np.asarray(getattr(self, name)) for name in names}, self.rng)

    def restore(self, kept: Checkpoint) -> None:
        """Take what :meth:`checkpoint` kept."""
        self.rng = kept.generator()
        for name in ARRAYS:
            setattr(self, name, np.array(kept.arrays[name]))
        for name in COUNTS:
            setattr(self, name, int(kept.arrays[name]))
        for name in NUMBERS:
            setattr(self, name, float(kept.arrays[name]))

    def take(self, size: int, s: Indices, q: Indices, x_s: Array, x_q: Array) -> None:
        """Learn from the pairs (s, q) that were seen in `size` samples."""
        at = self.setting
        self.squares += float(x_s @ x_s + x_q @ x_q)
        self.looks += 2 * len(s)
        if self.scale == 0.0:
            self.scale = at.d * self.squares / self.looks  # W is still uniform: so are the looks
        heavy = (1.0 - at.alpha) * (self.W[s, s] + self.W[q, q]) / (2.0 * at.d * at.k)
        p = heavy + at.alpha / at.d**2  # 5  equation (7)
        estimate = pair_estimate(at.d, s, q, x_s * x_q / p) * (2.0 / at.r)  # 7, 9  equation (8)
        self.moments += estimate
        seen = np.concatenate([x_s, x_q])
        self.largest = max(self.largest, float(np.max(np.abs(seen), initial=0.0)) ** 2)
        self.mean_W += size * self.W
        if self.scale > 0.0 and estimate.any():
            values, V = np.linalg.eigh(self.log_W + (at.eta / self.scale) * estimate)  # 10
            log_w = project(values, at.k)  # 11
            self.log_W, self.W = (V * log_w) @ V.T, (V * np.exp(log_w)) @ V.T
        self.done += size
        self.update += 1

    def result(self, status: str, certificates: tuple[Certificate, ...] = ()) -> Subspace:
        """Return the subspace of the mean W."""
        at = self.setting
        mean = self.mean_W / self.done if self.done else self.W  # 13
        V = _components(mean, at.k, at.output, self.rng)  # 14, 15
        report = {
            "samples": self.done,
            "updates": self.update,
            "eta": at.eta,
            "alpha": at.alpha,
            "scale": self.scale,
        }
        return _subspace(V, self.moments / max(self.done, 1), certificates, status, report)


ARRAYS = ("log_W", "W", "mean_W", "moments")
COUNTS = ("done", "update", "looks")
NUMBERS = ("scale", "largest", "squares")


def learn(state: BanditState) -> Asking[str]:
    """Go through the samples; return how it ended. The paper numbers no lines: they are counted as printed."""
    at = state.setting
    try:
        while state.update < at.updates:  # 2
            size = (at.m * (state.update + 1)) // at.updates - state.done
            pairs = size * at.r // 2
            s, q = draw_pairs(state.W, at.k, at.alpha, pairs, state.rng)  # 3, 4, 5
            sample = np.repeat(np.arange(size), at.r // 2)
            x_s, x_q = yield from _look(state.done + sample, s, q)  # 6
            state.take(size, s, q, x_s, x_q)  # 7 to 11
            if state.update % max(1, at.updates // CHECKPOINTS) == 0:
                yield state.checkpoint()
    except Exhausted:
        return "exhausted"
    return "finished"


def draw_pairs(
    W: Array, k: int, alpha: float, n: int, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Draw n pairs (s, q) by equation (7), which is a mixture of independent draws: no table of d^2 is made."""
    d = len(W)
    heavy = np.cumsum(np.maximum(np.diagonal(W), 0.0))
    a = np.minimum(np.searchsorted(heavy, rng.random(n) * heavy[-1], side="right"), d - 1)
    b, c = rng.integers(d, size=n), rng.integers(d, size=n)
    coin, swap = rng.random(n), rng.random(n) < 0.5
    first = np.where(coin < alpha, c, a)
    return np.where(swap, b, first), np.where(swap, first, b)


def pair_estimate(d: int, s: Indices, q: Indices, values: Array) -> Array:
    """Return the sum of v (E_sq + E_qs) / 2 over pairs, shape (d, d); a pair (s, s) adds v once to the diagonal."""
    half = np.bincount(s * d + q, weights=0.5 * values, minlength=d * d).reshape(d, d)
    return np.asarray(half + half.T)


def _look(rows: Indices, s: Indices, q: Indices) -> Asking[tuple[Array, Array]]:
    """Look at both attributes of each pair, each attribute of a sample once."""
    d = int(max(s.max(), q.max())) + 1 if len(s) else 1
    key = np.concatenate([rows * d + s, rows * d + q])
    wanted, where = np.unique(key, return_inverse=True)
    answers = yield Batch.entries(wanted // d, wanted % d)
    found = np.array(answers)[where]
    return found[: len(s)], found[len(s) :]


def _components(W: Array, k: int, output: Output, rng: np.random.Generator) -> Array:
    if output == "top":
        return np.ascontiguousarray(np.linalg.eigh(W)[1][:, ::-1][:, :k].T)
    chances, members, V = decompose(W, k)
    return np.ascontiguousarray(V[:, members[rng.choice(len(chances), p=chances)]].T)


def _subspace(
    V: Array,
    moments: Array,
    certificates: tuple[Certificate, ...],
    status: str,
    report: dict[str, Any],
) -> Subspace:
    """Return the result with the variance that the estimates show along its components."""
    k, d = V.shape
    variance = np.maximum(np.einsum("kd,de,ke->k", V, moments, V), 0.0)
    order = np.argsort(-variance, kind="stable")
    V, variance = V[order], variance[order]
    sign = np.where(V[np.arange(k), np.abs(V).argmax(axis=1)] < 0, -1.0, 1.0)
    rest = max(float(np.trace(moments)) - float(variance.sum()), 0.0) / (d - k)
    spectrum = np.concatenate([variance, np.full(d - k, min(rest, float(variance[-1])))])
    return Subspace(
        V * sign[:, None],
        variance,
        np.zeros(d),
        spectrum,
        certificates=certificates,
        status=status,
        report=report,
    )
