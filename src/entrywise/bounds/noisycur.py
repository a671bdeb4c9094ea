r"""What the noisyCUR paper proves: columns and rows required, the error promised, the budgets compared.

Everything is a function of a few numbers of the matrix (:class:`Traits`), measured on a completed one or assumed.
The constants are large: with s >= 2 d log d rows and d >= r log r columns the theorem says nothing at the budgets at
which the algorithm is used, and :func:`theorem1` then says so (``vacuous``).

References
----------
.. [HGM21] Hu, Gittens, Magdon-Ismail, *NoisyCUR: an algorithm for two-cost budgeted matrix completion*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.queries import Prices
from entrywise.results import Certificate
from entrywise.types import Array

EPSILONS = (1e-4, 0.999, 400)  # first, last and number of those tried for the smallest that holds


@dataclass(frozen=True)
class Traits:
    """Numbers of a matrix on which Theorem 1 depends.

    Parameters
    ----------
    m, n, rank : int
    incoherence : float
        beta: the largest column leverage score is beta r / n.
    condition : float
        Largest over smallest nonzero singular value.
    density : float
        c: at least half of the entries are this large in absolute value.
    norm2 : float
        Squared Frobenius norm.
    smallest : float
        Smallest nonzero singular value.
    """

    m: int
    n: int
    rank: int
    incoherence: float
    condition: float
    density: float
    norm2: float
    smallest: float


def traits(A: Array, rank: int | None = None) -> Traits:
    """Return the traits of a matrix, or of its best approximation of the given rank.

    Examples
    --------
    >>> found = traits(np.ones((6, 4)))
    >>> found.rank, found.incoherence, found.density
    (1, 1.0, 1.0)
    """
    A = np.asarray(A, dtype=np.float64)
    m, n = A.shape
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    r = int(np.sum(s > s[0] * max(m, n) * np.finfo(float).eps)) if s[0] > 0 else 0
    r = r if rank is None else min(rank, r)
    if r == 0:
        return Traits(m, n, 0, 1.0, 1.0, 0.0, 0.0, 0.0)
    leverage = np.sum(Vt[:r] ** 2, axis=0)
    kept = (U[:, :r] * s[:r]) @ Vt[:r]
    beta = round(float(leverage.max()) * n / r, 12)
    density = round(float(np.median(np.abs(kept))), 12)
    return Traits(
        m, n, r, beta, float(s[0] / s[r - 1]), density, float(np.sum(s[:r] ** 2)), float(s[r - 1])
    )


def required_columns(of: Traits, column_noise: float, epsilon: float, delta: float) -> float:
    r"""Return the columns that Theorem 1 asks for.

    .. math:: d \ge \max\Big\{\tfrac{6 + 2\varepsilon}{3 \varepsilon^2} \beta r \log\tfrac r\delta,\
       \tfrac{8 (1 + \delta)^2}{c^2 (1 - \varepsilon) \varepsilon} r \kappa_2^2 \sigma_c^2\Big\}
    """
    _check(epsilon, delta)
    if of.rank == 0:
        return 0.0
    span = (
        (6 + 2 * epsilon) / (3 * epsilon**2) * of.incoherence * of.rank * math.log(of.rank / delta)
    )
    if column_noise == 0:
        return span
    divisor = _square(of.density) * (1 - epsilon) * epsilon
    if divisor == 0:
        return math.inf
    noise = 8 * (1 + delta) ** 2 / divisor * of.rank
    needed = noise * _square(of.condition) * _square(column_noise)
    return math.inf if math.isnan(needed) else max(span, needed)


def required_rows(columns: float, epsilon: float, delta: float) -> float:
    r"""Return the precise rows that Theorem 1 asks for, :math:`\tfrac{6 + 2\varepsilon}{3\varepsilon^2} 2 d \log\tfrac d\delta`."""
    _check(epsilon, delta)
    return (6 + 2 * epsilon) / (3 * epsilon**2) * 2 * columns * math.log(max(columns / delta, 1.0))


def shrinkage(epsilon: float, penalty: float, smallest: float) -> float:
    r"""Return gamma of Corollary 1.

    .. math:: 2 \tfrac{1+\varepsilon}{1-\varepsilon} \Big(\tfrac{\lambda}{(1+\varepsilon) \sigma_d^2 + \lambda}\Big)^2
    """
    if penalty == 0:
        return 0.0
    kept = penalty / ((1 + epsilon) * _square(smallest) + penalty)
    return 2 * (1 + epsilon) / (1 - epsilon) * kept**2


def lemma1(smallest: float, column_noise: float, m: int, delta: float) -> tuple[float, float]:
    r"""Return (epsilon, probability): noisy columns C miss at most :math:`\varepsilon \|A\|_F^2` of the matrix.

    The lemma's condition :math:`\sigma_{\min}(C) \ge 2 (1 + \delta) \sigma_c \sqrt{m / \varepsilon}` solved for epsilon.

    Examples
    --------
    >>> lemma1(smallest=80.0, column_noise=1.0, m=100, delta=0.5)
    (0.140625, 0.999996273346828)
    """
    chance = 1 - math.exp(-m * delta**2 / 2)
    smallest2 = _square(smallest)
    if smallest2 == 0:
        return math.inf, chance
    if math.isinf(smallest2):  # the same quotient, squared last
        return 4 * (1 + delta) ** 2 * m * _square(column_noise / smallest), chance
    return 4 * (1 + delta) ** 2 * _square(column_noise) * m / smallest2, chance


def corollary1(
    missed: float,
    captured: float,
    noise: float,
    missed_sketch: float,
    epsilon: float,
    penalty: float,
    smallest: float,
) -> float:
    r"""Return the bound of Corollary 1 on :math:`\|A - \tilde C X\|_F^2`.

    `missed` and `captured` are the squared norms of A outside and inside the span of the columns, `noise` and
    `missed_sketch` those of the noise and of the part outside after sampling rows.
    """
    gamma = shrinkage(epsilon, penalty, smallest)
    return missed + gamma * captured + 4 / (1 - epsilon) * (noise + missed_sketch)


def theorem1(
    of: Traits,
    columns: int,
    rows: int,
    *,
    noise: dict[str, float],
    penalty: float = 0.0,
    delta: float = 0.05,
) -> Certificate:
    r"""Return the relative squared error that Theorem 1 promises for so many columns and precise rows.

    .. math:: \|A - \bar A\|_F^2 \le \Big(\gamma + \varepsilon + \tfrac{40 \varepsilon}{1 - \varepsilon}\Big) \|A\|_F^2
       + 12 \varepsilon \tfrac{\sigma_e^2}{\sigma_c^2} d\, \sigma_r^2(A)

    at the smallest epsilon for which the theorem's conditions on d and s hold. The value is relative to
    :math:`\|A\|_F^2`; 1 is what the zero matrix achieves, and from there on the bound is vacuous.

    Examples
    --------
    >>> of = traits(np.random.default_rng(0).normal(5, 1, (80, 60)), rank=4)
    >>> theorem1(of, 20, 6, noise={"column": 0.22, "entry": 0.1}).vacuous
    True
    """
    sc, se = _both(noise)
    epsilon = _smallest_epsilon(of, columns, rows, sc, delta)
    checked = [
        f"rank {of.rank}",
        f"incoherence {of.incoherence:.3g}",
        f"condition number {of.condition:.3g}",
    ]
    value, probability = math.inf, 0.0
    if epsilon is None:
        checked.append(
            f"{columns} columns and {rows} rows are fewer than any epsilon below 1 asks for"
        )
    elif sc == 0 and se > 0:
        checked.append("the bound divides by the noise of columns, which is 0")
    elif of.norm2 > 0:
        checked.append(f"columns and rows suffice at epsilon {epsilon:.3g}")
        value = _promised(of, columns, epsilon, sc, se, penalty)
        probability = _probability(of, rows, delta)
    assumes = (
        f"rank {of.rank}",
        f"half of the entries at least {of.density:.3g} in size",
        f"probability at least {max(probability, 0.0):.3g}",
        "columns and rows drawn as in Algorithm 1",
    )
    statement = "squared error relative to the matrix, noisyCUR Theorem 1"
    vacuous = not (value < 1 and probability > 0)
    return Certificate(statement, value, assumes, tuple(checked), vacuous=vacuous)


def _promised(
    of: Traits, columns: int, epsilon: float, sc: float, se: float, penalty: float
) -> float:
    """Return the right-hand side of Theorem 1 over the squared norm; inf where it leaves floating point."""
    smallest = max(0.5 * math.sqrt(max(of.m - of.rank, 0)) - math.sqrt(columns), 0.0) * sc
    value = shrinkage(epsilon, penalty, smallest) + epsilon + 40 * epsilon / (1 - epsilon)
    if se > 0:
        value += 12 * epsilon * _square(se / sc) * columns * _square(of.smallest) / of.norm2
    return math.inf if math.isnan(value) else value


def _probability(of: Traits, rows: int, delta: float) -> float:
    """Return the probability with which Theorem 1 holds, at least."""
    columns_fail = 2 * math.exp(-(of.m - of.rank) * delta**2 / 2)
    rows_fail = math.exp(-rows * of.n / 32)
    return 0.9 - 2 * delta - columns_fail - rows_fail


def budgets(
    of: Traits,
    prices: Prices,
    *,
    noise: dict[str, float],
    epsilon: float = 0.5,
    delta: float = 0.05,
) -> dict[str, float]:
    r"""Return the budgets that the paper compares, in money.

    ``nuclear_norm``: :math:`(m + n) r \log(m + n) p_e`, below which nuclear-norm completion has no theory;
    ``noisy_cur``: :math:`r \log r\, p_c + n r \log r\, p_e`, the order that the paper compares with it, all constants one;
    ``theorem``: what Theorem 1 asks for with its constants.

    Examples
    --------
    >>> of = traits(np.random.default_rng(0).normal(5, 1, (80, 60)), rank=4)
    >>> found = budgets(of, Prices(column=16), noise={"column": 0.22, "entry": 0.1})
    >>> found["noisy_cur"] < found["nuclear_norm"] < found["theorem"]
    True
    """
    zero = np.zeros(1, np.int64)
    column, entry = (float(prices.of(mode, zero, zero)[0]) for mode in ("column", "entry"))
    r = max(of.rank, 1)
    log = max(math.log(r), 1.0)
    d = required_columns(of, _both(noise)[0], epsilon, delta)
    return {
        "nuclear_norm": (of.m + of.n) * r * math.log(of.m + of.n) * entry,
        "noisy_cur": r * log * column + of.n * r * log * entry,
        "theorem": d * column + required_rows(d, epsilon, delta) * of.n * entry,
    }


def _square(x: float) -> float:
    """Return the square, inf where it leaves floating point."""
    try:
        return x**2
    except OverflowError:
        return math.inf


def _both(noise: dict[str, float]) -> tuple[float, float]:
    """Return the noises of columns and entries, or refuse what is no pair of standard deviations."""
    given = [noise.get(mode) for mode in ("column", "entry")] if isinstance(noise, dict) else [None]
    if not all(isinstance(sd, Real) and 0 <= float(sd) < math.inf for sd in given):
        raise ParameterError(
            f"noise must be {{'column': sd, 'entry': sd}}, both finite and not below 0, got {noise!r}"
        )
    column, entry = (float(sd) for sd in given if sd is not None)
    return column, entry


def _smallest_epsilon(
    of: Traits, columns: int, rows: int, column_noise: float, delta: float
) -> float | None:
    """Return the smallest epsilon below 1 at which both conditions of the theorem hold, None when there is none."""
    for e in np.geomspace(*EPSILONS).tolist():
        enough = columns >= required_columns(of, column_noise, e, delta)
        if enough and rows >= required_rows(columns, e, delta):
            return float(e)
    return None


def _check(epsilon: float, delta: float) -> None:
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if not 0 < value < 1:
            raise ParameterError(f"{name} must be above 0 and below 1, got {value}")
