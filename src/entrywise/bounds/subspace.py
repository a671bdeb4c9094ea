r"""How many samples a subspace needs when only r of d attributes of each are seen.

All from [GRES16]: Corollary 3 and Theorem 4 (attributes seen by chance: d^2 / r^2), Theorem 7 and Theorem 12
(attributes chosen: d / r), and section 3.2, which says when choosing pays. The paper takes
:math:`\|x\|^2 \le 1`; here ``max_square`` is that bound, and errors are in units of variance. The excess of a subspace
is its expected squared distance less that of the best one.

References
----------
.. [GRES16] Gonen, Rosenbaum, Eldar, Shalev-Shwartz, *Subspace Learning with Partial Information*, JMLR 17, 2016.
   The introduction prints d^4 r / (2 (d + r)) in Theorem 7; its proof gives 2 d^4 r / (d + r), used here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.results import Certificate
from entrywise.types import Array


def _check(
    d: float, k: float, r: float, epsilon: float | None = None, max_square: float = 1.0
) -> None:
    if not (d >= 2 and 1 <= k < d):
        raise ParameterError(f"k must be in 1..d-1, got k={k} and d={d}")
    if not 1 < r <= d:
        raise ParameterError(
            f"r must be above 1 and at most d={d}, got {r}; one attribute a sample is not enough"
        )
    if epsilon is not None and not epsilon > 0:
        raise ParameterError(f"epsilon must be above 0, got {epsilon}")
    if not (max_square > 0 and math.isfinite(max_square)):
        raise ParameterError(f"max_square must be finite and above 0, got {max_square}")


def popca_samples(d: int, k: int, r: float, epsilon: float, max_square: float = 1.0) -> int:
    r"""Return samples that suffice for an expected excess of `epsilon` when attributes are seen by chance.

    .. math:: m = \lceil (d / r)^2 k / \epsilon^2 \rceil

    Corollary 3 of [GRES16], for masks with each attribute seen on its own with probability r / d.

    >>> popca_samples(50, 3, 5, 0.1)
    30000
    """
    _check(d, k, r, epsilon, max_square)
    return math.ceil((d / r) ** 2 * k * (max_square / epsilon) ** 2 * (1 - 1e-12))


def popca_excess(d: int, k: int, r: float, samples: float, max_square: float = 1.0) -> float:
    r"""Return the expected excess that Corollary 3 allows after `samples`: (d / r) sqrt(k / m) max_square."""
    _check(d, k, r, None, max_square)
    return max_square * (d / r) * math.sqrt(k / samples) if samples > 0 else math.inf


def popca_certificate(d: int, k: int, r: float, samples: float, max_square: float) -> Certificate:
    """Return Corollary 3 for this stream; vacuous when no subspace could lose as much."""
    value = popca_excess(d, k, max(r, 1.0 + 1e-12), samples, max_square)
    assumes = (
        "each attribute is seen on its own with the same probability",
        f"no sample exceeds |x|^2 = {max_square:g}",
    )
    checked = ("no sample's seen part exceeds it",)
    return Certificate(
        "expected excess loss of the subspace", value, assumes, checked, vacuous=value >= max_square
    )


def lounici_error(C: Array, r: float, samples: float, constant: float = 1.0) -> float:
    r"""Return Lemma 13's bound on :math:`\|\tilde C - C\|_F` for Lounici's estimator from partly seen samples.

    .. math:: \Big( \min_s \sum_{i > s} \lambda_i^2 + c_1\, \lambda_1 \mathrm{tr}(C)\, \frac{d^2}{r^2 m}\, s \log(2 d) \Big)^{1/2}

    Parameters
    ----------
    C : ndarray of shape (d, d)
        The true second moments; the infimum over S is attained at a truncation of C.
    r, samples : float
        Attributes seen of each sample, and how many samples.
    constant : float
        :math:`c_1`, which the paper does not give; 1 flatters the bound.

    Notes
    -----
    The paper says that this is always worse than Lemma 2's :math:`(d / r) / \sqrt m`. That needs
    :math:`\lambda_1 \mathrm{tr}(C)\, s \log(2 d) \ge 1`, which fails where samples are much shorter than the bound 1 on their
    length: Lemma 13 then adapts to their size, and Lemma 2 does not.
    """
    values = np.sort(np.maximum(np.linalg.eigvalsh(C), 0.0))[::-1]
    d = len(values)
    _check(d, 1, r)
    each = constant * values[0] * values.sum() * d**2 / (r**2 * samples) * math.log(2 * d)
    tails = np.concatenate([np.cumsum((values**2)[::-1])[::-1], [0.0]])  # of rank 0, 1, ..., d
    return float(np.sqrt((tails + each * np.arange(d + 1)).min()))


def passive_lower(d: int, k: int, r: float, epsilon: float, max_square: float = 1.0) -> float:
    r"""Return samples below which every passive learner fails on some law, :math:`(d/r)^2 k / (32 \epsilon^2)`.

    Theorems 4, 5 and 11 of [GRES16] with their constants; they need k <= d / 2 and epsilon < max_square / 128, else 0.
    """
    _check(d, k, r, epsilon, max_square)
    e = epsilon / max_square
    return (d / r) ** 2 * k / (32.0 * e * e) if 2 * k <= d and e < 1 / 128 else 0.0


def active_lower(d: int, r: float, epsilon: float, max_square: float = 1.0) -> float:
    r"""Return samples below which every learner, choosing attributes or not, fails on some law (k = 1).

    .. math:: m \ge \frac{d}{16\, r\, \epsilon}

    Theorem 12 of [GRES16] with a constant: under the law that is :math:`e_s` with probability 4 epsilon and else 0,
    m < d / (16 r epsilon) samples show nothing but zeros with probability 3/4 or more, and then half of the
    energy 4 epsilon is lost on average. Needs epsilon <= max_square / 4, else 0.
    """
    _check(d, 1, max(r, 1.0 + 1e-12), epsilon, max_square)
    e = epsilon / max_square
    return d / (16.0 * r * e) if e <= 0.25 else 0.0


def mbeg_minimum(d: int, r: int) -> int:
    r"""Return the fewest samples for which MBEG's parameters are legal, :math:`2 d^4 r \log(d) / (d + r)`.

    >>> mbeg_minimum(8, 2)
    3407
    """
    _check(d, 1, r)
    return math.ceil(2.0 * d**4 * r / (d + r) * math.log(d))


def mbeg_samples(d: int, k: int, r: int, epsilon: float, max_square: float = 1.0) -> int:
    r"""Return samples that suffice for an expected excess of `epsilon` by MBEG.

    .. math:: m = \max\{8 k \tfrac{d + r}{r} \tfrac{k}{\epsilon^2},\ \tfrac{2 d^4 r}{d + r}\} \log d

    Theorem 7 of [GRES16] (even r).
    """
    _check(d, k, r, epsilon, max_square)
    left = 8.0 * k * (d + r) / r * k * (max_square / epsilon) ** 2 * math.log(d)
    return max(math.ceil(left), mbeg_minimum(d, r))


def mbeg_excess(d: int, k: int, r: int, samples: float, max_square: float = 1.0) -> float:
    r"""Return the expected excess of MBEG after `samples`, :math:`\sqrt{8 k^2 (d + r) \log d / (r m)}`.

    Infinite below :func:`mbeg_minimum`, where the theorem says nothing.
    """
    _check(d, k, r, None, max_square)
    if samples < mbeg_minimum(d, r):
        return math.inf
    return max_square * math.sqrt(8.0 * k * k * (d + r) * math.log(d) / (r * samples))


class Comparison(NamedTuple):
    """Section 3.2: whether the bound for chosen attributes beats that for attributes seen by chance."""

    active_is_better: bool  # both conditions hold
    dimension_large: bool  # d^2 / r^2 > 8 k log(d) (d + r) / r
    epsilon_small: bool  # epsilon < sqrt((d + r) k / (2 d^2 r^3 log d))
    linear_price: bool  # epsilon < 2 (d + r) k / (d^2 r): Theorem 7 is linear in d / r
    passive_samples: int
    active_samples: int


def compare(d: int, k: int, r: int, epsilon: float, max_square: float = 1.0) -> Comparison:
    """Return the two conditions of section 3.2 of [GRES16] with both forecasts.

    >>> compare(1000, 1, 2, 1e-4).active_is_better, compare(50, 3, 5, 0.1).active_is_better
    (True, False)
    """
    _check(d, k, r, epsilon, max_square)
    e = epsilon / max_square
    large = (d / r) ** 2 > 8.0 * k * math.log(d) * (d + r) / r
    small = e < math.sqrt((d + r) * k / (2.0 * d**2 * r**3 * math.log(d)))
    return Comparison(
        large and small,
        large,
        small,
        e < 2.0 * (d + r) * k / (d**2 * r),
        popca_samples(d, k, r, epsilon, max_square),
        mbeg_samples(d, k, r, epsilon, max_square),
    )


class Law(NamedTuple):
    """A distribution of samples: ``draw(m, rng)`` gives (m, d) samples, ``moments`` is E[x x'], shape (d, d)."""

    draw: Callable[[int, np.random.Generator], Array]
    moments: Array

    def excess(self, components: Array) -> float:
        """Return by how much the subspace of `components` (k, d) is worse than the best one."""
        k = len(components)
        best = float(np.linalg.eigvalsh(self.moments)[-k:].sum())
        return best - float(np.einsum("kd,de,ke->", components, self.moments, components))


def coins_law(
    d: int, k: int, epsilon: float, rng: np.random.Generator, *, pairs: bool = True
) -> Law:
    r"""Return the hard law of Theorem 5 of [GRES16], k coins of bias 16 epsilon; with `pairs` that of Theorem 4.

    A coin i of k is picked, flipped, and tells between :math:`\pm u_i` and :math:`\pm u_{i+k}`. With `pairs` these are
    :math:`(\pm e_i + e_{i+k}) / \sqrt 2`: one attribute alone says nothing, both must be seen. Otherwise they are a random
    orthonormal set, the law for samples seen whole.
    """
    if not (1 <= k <= d // 2 and 0 < epsilon <= 1 / 16):
        raise ParameterError(
            f"coins need 1 <= k <= d / 2 and 0 < epsilon <= 1/16, got k={k}, d={d}, epsilon={epsilon}"
        )
    bias = rng.choice([-1.0, 1.0], size=k) * 16.0 * epsilon
    if pairs:
        E = np.eye(d)
        U = np.vstack([E[:k] + E[k : 2 * k], -E[:k] + E[k : 2 * k]]) / math.sqrt(2.0)
    else:
        U = np.linalg.qr(rng.standard_normal((d, 2 * k)))[0].T
    chance = np.concatenate([(1.0 + bias) / 2.0, (1.0 - bias) / 2.0]) / k

    def draw(m: int, rng: np.random.Generator) -> Array:
        return np.asarray(
            U[rng.choice(2 * k, size=m, p=chance)] * rng.choice([-1.0, 1.0], size=(m, 1))
        )

    return Law(draw, (U.T * chance) @ U)


def spike_law(d: int, attribute: int, chance: float = 1.0) -> Law:
    """Return the law of Theorem 12 of [GRES16]: e_s with probability `chance`, else 0; chance 1 is section 4's x = e_s."""
    if not (0 <= attribute < d and 0 < chance <= 1):
        raise ParameterError(
            f"attribute must be in 0..{d - 1} and chance above 0 and at most 1, got {attribute}, {chance}"
        )

    def draw(m: int, rng: np.random.Generator) -> Array:
        X = np.zeros((m, d))
        X[:, attribute] = rng.random(m) < chance
        return X

    moments = np.zeros((d, d))
    moments[attribute, attribute] = chance
    return Law(draw, moments)


def diagonals_law(sign: int, alpha: float = math.sqrt(0.5)) -> Law:
    """Return one of the two laws on the plane that one attribute a sample cannot tell apart ([GRES16], Figure 1)."""
    u = alpha * np.array([float(np.sign(sign)), 1.0])

    def draw(m: int, rng: np.random.Generator) -> Array:
        return np.asarray(u * rng.choice([-1.0, 1.0], size=(m, 1)))

    return Law(draw, np.outer(u, u))
