r"""Matrix bandit exponentiated gradient: learn a subspace by looking at pairs of attributes.

A weight matrix W in the hull of the rank-k projections says which directions matter. Pairs of attributes are
drawn with a bias towards its heavy diagonal, each pair gives an unbiased estimate of E[x x'], and W moves by
an exponentiated step and a projection back.
"""

from __future__ import annotations

import math
from typing import Any, Literal, cast

import numpy as np

from entrywise.bounds.subspace import mbeg_excess, mbeg_minimum
from entrywise.exceptions import Exhausted, ParameterError
from entrywise.linalg.capped import decompose, project
from entrywise.queries import Asking, Batch, Checkpoint, Prices, plan
from entrywise.results import Certificate, Subspace
from entrywise.types import Array, Indices, Seed

Schedule = Literal["practical", "theorem"]
Output = Literal["top", "random"]


@plan(fresh=True)
def bandit_subspace(
    d: int,
    k: int,
    *,
    per_sample: int = 2,
    samples: int | None = None,
    budget: float | None = None,
    prices: Prices | None = None,
    schedule: Schedule = "practical",
    eta: float | None = None,
    alpha: float | None = None,
    updates: int | None = None,
    output: Output | None = None,
    max_square: float | None = None,
    rng: Seed = None,
    resume: Checkpoint | None = None,
) -> Asking[Subspace]:
    r"""Learn a k-dimensional subspace by MBEG, which looks at r / 2 pairs of attributes of each sample.

    .. math:: W \leftarrow \arg\min_{0 \preceq W \preceq I,\ tr W = k} D(W, \exp(\log W + \eta \hat C))

    Parameters
    ----------
    d, k : int
        Attributes of a sample and dimension of the subspace, 1 <= k < d.
    per_sample : int
        Attributes r a sample, even. A pair may name one attribute twice; it is looked at once then.
    samples : int, optional
        Samples m to look at; else as many as `budget` surely pays.
    budget, prices : optional
        Money, and the price of an attribute.
    schedule : {"practical", "theorem"}
        ``theorem`` takes Theorem 7's eta and alpha and renews W after each sample; it needs
        2 d^4 r log(d) / (d + r) samples. ``practical`` takes alpha = 0.3, ten times that eta, and renews W 150 times.
    eta, alpha : float, optional
        Step and share of uniform looking, in place of the schedule's.
    updates : int, optional
        How often W is renewed; each costs one eigendecomposition.
    output : {"top", "random"}, optional
        The k heaviest eigenvectors of the mean W, or one projection drawn from its decomposition (Algorithm 3, the
        default of ``theorem``), whose expectation is the mean W.
    max_square : float, optional
        Largest :math:`\|x\|^2`, by which samples are scaled. ``theorem`` takes 1 as the paper does, ``practical`` the
        mean of :math:`\|x\|^2` found in the first samples.
    rng : int or Generator

    Yields
    ------
    Batch
        Rows are running numbers of fresh samples, columns their attributes.

    Returns
    -------
    Subspace
        Through the origin. ``theorem`` carries Theorem 7 as certificate.

    Notes
    -----
    Drawn literally the estimate is one product out of d^2 at a time; looking at r attributes and using all their
    products (:func:`entrywise.active.subspace`) did better wherever we compared them.

    References
    ----------
    .. [GRES16] Gonen, Rosenbaum, Eldar, Shalev-Shwartz, *Subspace Learning with Partial Information*, JMLR 17, 2016,
       Algorithms 2 and 3, equations (7) and (8), Theorem 7.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.oracles import StreamOracle
    >>> stream = np.random.default_rng(0).standard_normal((4000, 1)) * np.r_[0.6, 0.8, np.zeros(6)]
    >>> found = ew.play(bandit_subspace(8, 1, samples=4000, rng=0), StreamOracle(stream))
    >>> bool(abs(found.components[0, 1]) > 0.7)
    True
    """
    cost = _refuse(
        d, k, per_sample, samples, budget, prices, schedule, eta, alpha, updates, output, max_square
    )
    generator = cast(np.random.Generator, rng)
    m = (
        samples
        if samples is not None
        else int(cast(float, budget) / (per_sample * cost) * (1 + 1e-12))
    )
    literal = schedule == "theorem"
    step = math.sqrt(per_sample * math.log(d) / (2.0 * m * (d + per_sample)))
    uniform = alpha if alpha is not None else (step * d * d if literal else 0.3)
    step = eta if eta is not None else (step if literal else 10.0 * step)
    times = min(m, updates if updates is not None else (m if literal else 150))
    scale = max_square if max_square is not None else (1.0 if literal else 0.0)

    log_W = np.full(d, math.log(k / d)) * np.eye(d)  # W_1 = (k / d) I
    W, mean_W, moments, done, update, largest = (
        np.eye(d) * k / d,
        np.zeros((d, d)),
        np.zeros((d, d)),
        0,
        0,
        0.0,
    )
    looks, squares = 0, 0.0
    if resume is not None:
        kept, generator = resume.arrays, resume.generator()
        log_W, W, mean_W, moments = (np.array(kept[x]) for x in ("log_W", "W", "mean_W", "moments"))
        done, update, looks = (int(kept[x]) for x in ("done", "update", "looks"))
        scale, largest, squares = (float(kept[x]) for x in ("scale", "largest", "squares"))
    status = "finished"
    try:
        while update < times:
            size = (m * (update + 1)) // times - done
            s, q = draw_pairs(
                W, k, uniform, size * per_sample // 2, generator
            )  # size x r/2 pairs, sample by sample
            sample = np.repeat(np.arange(size), per_sample // 2)
            x_s, x_q = yield from _look(done + sample, s, q)
            squares, looks = squares + float(x_s @ x_s + x_q @ x_q), looks + 2 * len(s)
            if scale == 0.0:
                scale = d * squares / looks  # W is still uniform: so are the looks
            p = (1.0 - uniform) * (W[s, s] + W[q, q]) / (2.0 * d * k) + uniform / d**2  # (7)
            estimate = pair_estimate(d, s, q, x_s * x_q / p) * (
                2.0 / per_sample
            )  # (8), summed over samples
            moments += estimate
            largest = max(
                largest, float(np.max(np.abs(np.concatenate([x_s, x_q])), initial=0.0)) ** 2
            )
            mean_W += size * W
            if scale > 0.0 and estimate.any():
                values, V = np.linalg.eigh(log_W + (step / scale) * estimate)
                log_w = project(values, k)
                log_W, W = (V * log_w) @ V.T, (V * np.exp(log_w)) @ V.T
            done, update = done + size, update + 1
            if update % max(1, times // 20) == 0:
                state = {"log_W": log_W, "W": W, "mean_W": mean_W, "moments": moments, "done": done, "update": update,
                        "looks": looks, "scale": scale, "largest": largest, "squares": squares}  # fmt: skip
                yield Checkpoint({name: np.asarray(x) for name, x in state.items()}, generator)
    except Exhausted:
        status = "exhausted"
    choose = output or ("random" if literal else "top")
    V = _components(mean_W / done if done else W, k, choose, generator)
    certificates: tuple[Certificate, ...] = ()
    if literal and eta is None and alpha is None and done == m:
        value = mbeg_excess(d, k, per_sample, m, scale)
        assumes = (f"no sample exceeds |x|^2 = {scale:g}",) + (
            () if choose == "random" else ("output='random'",)
        )
        checked = ("no attribute seen exceeds it",) if largest <= scale else ()
        vacuous = value >= scale or largest > scale
        certificates = (
            Certificate("expected excess loss of the subspace", value, assumes, checked, vacuous),
        )
    report = {"samples": done, "updates": update, "eta": step, "alpha": uniform, "scale": scale}
    return _subspace(V, moments / max(done, 1), certificates, status, report)


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


def _refuse(
    d: int,
    k: int,
    r: int,
    samples: int | None,
    budget: float | None,
    prices: Prices | None,
    schedule: str,
    eta: float | None,
    alpha: float | None,
    updates: int | None,
    output: str | None,
    max_square: float | None,
) -> float:
    """Refuse bad parameters; return the price of the dearest attribute."""
    if d < 2 or not 1 <= k < d:
        raise ParameterError(f"k of bandit_subspace must be in 1..d-1, got k={k} and d={d}")
    if r < 2 or r % 2:
        raise ParameterError(f"per_sample of bandit_subspace must be even and at least 2, got {r}")
    if schedule not in ("practical", "theorem"):
        raise ParameterError(f"schedule must be practical or theorem, got {schedule!r}")
    if output not in (None, "top", "random"):
        raise ParameterError(f"output must be top or random, got {output!r}")
    if samples is None and budget is None:
        raise ParameterError("bandit_subspace must know when to end; give budget or samples")
    if samples is not None and samples < 1:
        raise ParameterError(f"samples must be at least 1, got {samples}")
    for name, value in (("eta", eta), ("max_square", max_square)):
        if value is not None and not (np.isfinite(value) and value > 0):
            raise ParameterError(f"{name} must be finite and above 0, got {value}")
    if alpha is not None and not 0 < alpha <= 1:
        raise ParameterError(f"alpha must be above 0 and at most 1, got {alpha}")
    if updates is not None and updates < 1:
        raise ParameterError(f"updates must be at least 1, got {updates}")
    cost = float((prices or Prices()).of("entry", np.zeros(d, np.int64), np.arange(d)).max())
    m = samples if samples is not None else int(cast(float, budget) / (r * cost) * (1 + 1e-12))
    if m < 1:
        raise ParameterError(
            f"budget must buy at least one sample of {r} attributes, {r * cost:g}; got {budget}"
        )
    if schedule == "theorem" and eta is None and alpha is None and m < mbeg_minimum(d, min(r, d)):
        raise ParameterError(
            f"Theorem 7 needs at least {mbeg_minimum(d, min(r, d))} samples for d={d} and r={r}, got {m}; "
            "take more or schedule='practical'"
        )
    return cost
