"""Empirical-Bayes low-rank completion: no penalty to search, a variance for every entry.

Rows and columns have Gaussian priors that are learned from the data along with the noise; the posterior
covariance of one side enters the normal equations of the other, so thin rows are shrunk and crowded
ones are not. Components are added as long as the residuals hold more than chance would put there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from entrywise.exceptions import DataError, ParameterError
from entrywise.linalg import binary
from entrywise.linalg.binary import BinaryBayes
from entrywise.linalg.blocks import BlockBayes, BlockBinary, BlockEntries, HeldOut
from entrywise.linalg.variational import EmpiricalBayes, Side, one_blas_thread
from entrywise.observations import Observations
from entrywise.results import Features, Levels, Lines, LowRank, Posterior
from entrywise.results.low_rank import log_counts
from entrywise.types import Array, Seed, generator

FLOOR = (
    1e-10  # least lack of fit, relative to the variance of the values: noiseless data stay solvable
)
CONSTANT = 1e-14  # values that spread by a smaller share of their mean are one value
SMALLEST = 1e-300
GROWN_AT_ONCE = 12  # components looked for in one spectrum of the residuals
GROWING_SWEEPS = 5  # sweeps after each growth
LOOSE = 5.0  # nats that the evidence may fall by for a component of lines with features (set on the zoo, seeds 132000-132015)
ROUND_OFF = 1e-7  # singular values below it are round-off of noiseless data, not structure
NOTHING = 1e-3  # a component varying by less than this share of the noise is left out if the evidence agrees
REPEATS = 10  # measurements beyond the first of their entry from which the noise is told
LONGER = 2  # sweeps of a yes/no fit for each of the others': 32 to 60 as a rule, 113 at worst
LITTLE = 0.05  # as is the weakest one, below this share


def low_rank(
    observations: Observations,
    rank: int | None = None,
    *,
    max_rank: int = 30,
    start: LowRank | None = None,
    row_weights: Array | None = None,
    likelihood: Literal["gaussian", "binary", "counts"] = "gaussian",
    row_features: Any = None,
    col_features: Any = None,
    rng: Seed = 0,
    exact: bool = False,
    tol: float = 1e-3,
    max_sweeps: int = 60,
    progress: Callable[[int, float], None] | None = None,
) -> LowRank:
    r"""Return the low-rank matrix behind noisy known entries, with the variance of every completed entry.

    .. math::
       y_{ij} = \mu + b_i + c_j + u_i^\top v_j + e_{ij}, \quad e_{ij} \sim N(0, s_{ij}^2 + t^2), \quad
       (u_i, b_i) \sim N(m_U, S_U), \quad (v_j, c_j) \sim N(m_V, S_V)

    fitted by variational EM, one block at a time: with :math:`w_{ij} = 1/(s_{ij}^2 + t^2)` the posterior of
    :math:`u_i` has precision :math:`\sum_j w_{ij}(v_j v_j^\top + C^v_j) + S_U^{-1}`; then the priors follow
    from the posterior moments and :math:`t^2` from the expected squares. Sparse throughout: memory is
    O(entries + (m + n) q^2), q = k + 1.

    Parameters
    ----------
    observations : Observations
        Entries may be listed more than once (``duplicates="keep"``). ``noise`` is the instrument's standard
        deviation :math:`s_{ij}`, one for all or one each. None when unknown: then entries listed more than once tell
        it, and without these :math:`t^2` is noise and lack of fit together.
    rank : int, optional
        Components besides the biases, 0..min(m, n). None: components are added, up to `max_rank`, whose singular value
        in the residuals exceeds the largest after their signs are drawn anew, as long as the evidence (its
        variational bound) rises; weak ones that it rises without are left out again.
    start : LowRank, optional
        An earlier fit of the same shape to start from (its rank is kept unless `rank` is given); for a few
        more entries, two or three sweeps are then enough.
    row_weights : ndarray of shape (m,), optional
        How many rows alike each row stands for, above 0; one each by default.
    likelihood : {"gaussian", "binary", "counts"}
        ``binary``: answers have two values and :math:`\mu + b_i + c_j + u_i^\top v_j` is the logit of the higher one,
        fitted by a Gaussian of least Kullback-Leibler divergence: sweeps on pseudo-answers, each with its own noise. Every
        line's own covariance is used (`exact`), up to a million answers and without features; averages beyond. Up to as many
        all logits are multiplied with one number near 1, the report's ``slope``, by which they foretell answers left out.
        ``counts``: log1p of the answers is fitted; entries and intervals are counts again.
    row_features, col_features : frame, array or sparse matrix, optional
        Features of the lines, by label or in order, or an (m, m) similarity of the rows; see
        :class:`~entrywise.results.Features`. A line's prior mean is then :math:`m_U + W^\top f_i`, W learned with one
        ridge penalty a side, so that lines with few or no entries are drawn to what their features say.
    rng : int or Generator
        Draws the start of the subspace iterations and the signs; same seed, same result.
    exact : bool
        Let every line's own covariance enter the other side's equations instead of their average. Better where lines are
        known very unequally, as when some columns are seen whole and others in a few cells; k^2 more work an entry.
    tol, max_sweeps : float, int
        Stop when :math:`t^2` changes by less than this share in one sweep, or after so many. With yes/no answers: when
        the evidence changes by less than a fiftieth of `tol` an answer, or after twice as many.
    progress : callable, optional
        Called with (sweep, noise standard deviation) after each sweep.

    Returns
    -------
    LowRank
        ``left``/``row_offset`` and ``right``/``col_offset`` are posterior means; ``posterior`` has the covariances of
        :math:`(u_i, b_i)` and :math:`(v_j, c_j)`, the bias last, the learned priors, and the noise: ``noise_variance``
        is :math:`s^2` (its mean) and ``lack_variance`` :math:`t^2`, or, when the noise was unknown, :math:`t^2` and 0.
        ``variance(rows, cols)`` is the posterior variance of entries. Lines with nothing known get the mean of the others,
        weighted by their counts, and what their features say; ``row_counts`` and ``col_counts`` tell which. The report's
        ``evidence`` is the variational bound on the log-likelihood, by which fits of the same entries compare.

    References
    ----------
    .. [LT07] Lim, Teh, *Variational Bayesian approach to movie rating prediction*, KDD Cup 2007; here with
       biases, full prior covariances, known noise beside lack of fit, and the rank chosen.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40))
    >>> i, j = np.nonzero(rng.random(A.shape) < 0.5)
    >>> found = low_rank(Observations.from_triplets(i, j, A[i, j] + 0.1 * rng.standard_normal(len(i)), A.shape))
    >>> found.rank, round(float(np.sqrt(found.noise_variance)), 2)
    (2, 0.1)
    """
    draws = generator(rng)
    limits = Limits(max_rank, max_sweeps, tol, progress)
    _check(observations, rank, limits, start)
    if start is not None:
        draws = np.random.default_rng(draws.integers(2**63))
    if likelihood == "counts":
        observations = _logarithms(observations)
    values = None
    fit: EmpiricalBayes
    if likelihood == "gaussian" and observations.noise is None:
        observations = _with_noise_of_repeats(observations)
    if likelihood == "binary":
        values = two_values(observations.values)
        fit, offset, scale = _prepare_binary(observations, values)
        limits = replace(limits, max_sweeps=LONGER * max_sweeps)
    else:
        fit, offset, scale = _prepare(observations, start)
        fit.exact = exact
    if row_weights is not None:
        fit.rows.times = _weights(row_weights, observations.shape[0])
    coded = (
        _described(row_features, observations.row_labels, fit.rows, "row"),
        _described(col_features, observations.col_labels, fit.cols, "column"),
    )
    fit.exact = fit.exact and coded == (None, None)
    wanted = start.rank if rank is None and start is not None else rank
    strengths, sweeps = ascend(fit, wanted, limits, draws, scale, started=start is not None)
    found = _result(fit, observations, offset, scale, strengths, sweeps)
    found = replace(found, row_features=coded[0], col_features=coded[1])
    if likelihood == "counts":
        evidence = found.report["evidence"] - float(observations.values.sum())  # of the counts
        report = {**found.report, "likelihood": "counts, as log1p", "evidence": evidence}
        return replace(found, logarithm=True, bounds=(0.0, np.inf), report=report)
    if values is None:
        return found
    if len(observations) <= binary.EXACT_MOST:
        found = _sloped(found, observations, values, fit.rows.times)
    return _as_answers(found, values, fit.exact)


def low_rank_of_blocks(
    blocks: BlockEntries,
    rank: int | None = None,
    *,
    max_rank: int = 30,
    start: LowRank | None = None,
    out: HeldOut | None = None,
    likelihood: Literal["gaussian", "binary"] = "gaussian",
    rng: Seed = 0,
    tol: float = 1e-3,
    max_sweeps: int = 60,
    progress: Callable[[int, float], None] | None = None,
) -> LowRank:
    """Return the fit of :func:`low_rank` to entries kept in blocks, without those that are held `out`.

    The same fit from the same sums, whatever the number of blocks and whoever works on them. Beside :func:`low_rank`:
    values are centred and scaled once, before any are held out; the signs of chance are hashed from rows and columns; and
    lines enter each other's equations by their average covariance, with yes/no answers, too. Covariances of the result
    may be mapped from files.
    """
    most_sweeps = LONGER * max_sweeps if likelihood == "binary" else max_sweeps
    limits = Limits(max_rank, most_sweeps, tol, progress)
    limits.check(blocks.shape, rank)
    draws = generator(rng)
    params = {
        "rank": rank,
        "likelihood": likelihood,
        "max_rank": max_rank,
        "tol": tol,
        "max_sweeps": max_sweeps,
        "rng": str(draws.bit_generator.state),
        "start": None if start is None else repr(start.posterior and start.posterior.lack_variance),
    }
    name = "all" if out is None else f"without-{len(out.rows)}-{int(out.by_row.sum())}"
    values = _two_values_of(blocks) if likelihood == "binary" else None
    work = blocks.workshop(f"{name}-{likelihood}-rank-{rank}", params, out)
    fit: BlockBayes
    if values is None:
        fit, offset, scale = BlockBayes.of_blocks(work, FLOOR), blocks.offset, blocks.scale
    else:
        answers = BlockBinary.of_block_answers(work, _share_of_yes(blocks, values, out))
        if start is not None:
            answers.offset = start.offset
        fit, offset, scale = answers, answers.offset, 1.0
    if start is not None:
        _start_blocks(fit, start, scale)
    strengths, sweeps = ascend(fit, rank, limits, draws, scale, started=start is not None)
    found = _result(fit, blocks, offset, scale, strengths, sweeps)
    return found if values is None else _as_answers(found, values, fit.exact)


def _two_values_of(blocks: BlockEntries) -> Array:
    """Return the two values of yes/no answers in blocks, the lower first."""
    if blocks.distinct is None or len(blocks.distinct) != 2:
        many = "many" if blocks.distinct is None else len(blocks.distinct)
        raise DataError(
            f"likelihood='binary' needs answers of two values; these blocks have {many} different ones"
        )
    return blocks.distinct


def _share_of_yes(blocks: BlockEntries, values: Array, out: HeldOut | None) -> float:
    """Return the share of yes among the answers that are not held out, as if one more of each had come."""
    low, high = values
    yes, count = round((blocks.offset - low) / (high - low) * len(blocks)), len(blocks)
    if out is not None:
        yes, count = yes - int(np.sum(out.values == high)), count - len(out.values)
    return float((yes + 1.0) / (count + 2.0))


def _start_blocks(fit: BlockBayes, start: LowRank, scale: float) -> None:
    """Start from an earlier fit of the same blocks; of the covariances only their average is needed."""
    if start.posterior is None:
        raise ParameterError("start must be a result of low_rank; this one has no posterior")
    unit = _unit(start.rank, scale)
    square = np.outer(unit, unit)
    posterior = start.posterior
    for side, factor, bias, lines in (
        (fit.rows, start.left, start.row_offset, posterior.rows),
        (fit.cols, start.right, start.col_offset, posterior.cols),
    ):
        _take_over(side, factor, bias, replace(lines, cov=lines.cov[:0]), unit)
        side.average = np.asarray(lines.cov.mean(axis=0) / square)
    fit.t2 = max(posterior.answer_variance / scale**2, fit.floor)
    fit.sleep()


@dataclass(frozen=True)
class Limits:
    """How far a fit may go: components, sweeps, the change below which it ends; and who is told of each sweep."""

    max_rank: int
    max_sweeps: int
    tol: float
    progress: Callable[[int, float], None] | None = None

    def check(self, shape: tuple[int, int], rank: int | None) -> None:
        """Refuse limits that are none, and a rank that a matrix of this shape cannot have."""
        m, n = shape
        if rank is not None and not 0 <= rank <= min(m, n):
            raise ParameterError(
                f"rank of low_rank must be in 0..{min(m, n)} for a {m} x {n} matrix, got {rank}"
            )
        if self.max_rank < 0 or self.max_sweeps < 1 or not self.tol >= 0:
            raise ParameterError(
                "max_rank must be 0 or more, max_sweeps 1 or more and tol 0 or more, "
                f"got {self.max_rank}, {self.max_sweeps} and {self.tol}"
            )


def ascend(
    fit: EmpiricalBayes,
    wanted: int | None,
    limits: Limits,
    rng: np.random.Generator,
    scale: float,
    *,
    started: bool,
) -> tuple[Array, int]:
    """Sweep, grow to `wanted` components (None: as many as stand out) and end; return their strengths.

    `fit` is at its start, or, when `started`, at an earlier fit; one of its units is `scale` of the data's. The second
    value is the number of sweeps made.
    """
    done = 0
    most = min(fit.rows.size, fit.cols.size, limits.max_rank)

    def sweep(count: int) -> None:
        nonlocal done
        for _ in range(min(count, limits.max_sweeps - done)):
            change = fit.sweep()
            done += 1
            if limits.progress is not None:
                limits.progress(done, scale * float(np.sqrt(fit.t2)))
            if change < limits.tol:
                break

    with one_blas_thread():
        if not started:
            sweep(2)  # biases first
        if wanted is None:
            _grow(fit, most, rng, lambda: sweep(GROWING_SWEEPS))
        elif wanted > fit.rank and fit.known > 1:
            fit.grow(*fit.spectrum(wanted - fit.rank, rng)[:2])
        sweep(limits.max_sweeps)
        if wanted is None:
            _prune(fit)
        fit.sweep(keep=True)
        return fit.balance(last=True), done + 1


def _grow(
    fit: EmpiricalBayes, most: int, rng: np.random.Generator, sweep: Callable[[], None]
) -> None:
    """Add the components that stand out of chance, as long as the evidence rises.

    Features tell of components that are too weak to stand out by answers alone: there one more is tried, and kept though
    the evidence, a lower bound which each component makes looser, falls a little.
    """
    described = fit.rows.features is not None or fit.cols.features is not None
    least, loose = (1, LOOSE) if described else (0, 0.0)
    while fit.rank < most:
        before, evidence = fit.state(), fit.evidence
        left, right, singular, chance = fit.spectrum(min(most - fit.rank, GROWN_AT_ONCE), rng)
        count = max(int(np.sum(singular > max(chance[0], ROUND_OFF))), least)
        if count == 0:
            return
        fit.grow(left[:, :count], right[:, :count])
        sweep()
        if fit.evidence <= evidence - loose:
            fit.restore(before)
            return


def _prune(fit: EmpiricalBayes) -> None:
    """Leave out components that came in by chance: far below the noise, and the evidence rises without them."""
    while fit.rank > 0:
        sizes = fit.balance()
        noiseless = (
            fit.t2 <= 2.0 * fit.floor
        )  # what is left is round-off: any size below it is none
        little = 1.0 if noiseless else LITTLE
        weak = int(np.sum(sizes < NOTHING * fit.t2)) or int(sizes[-1] < little * fit.t2)
        if not weak:
            return
        before, evidence = fit.state(), fit.evidence
        fit.drop(weak)
        for _ in range(3):
            fit.sweep()
        if fit.evidence < evidence:
            fit.restore(before)
            return


def _logarithms(seen: Observations) -> Observations:
    """Return log1p of counts, with their noise on that scale."""
    values = log_counts(seen.values)
    noise = None if seen.noise is None else seen.noise_array() / (1.0 + seen.values)
    return replace(seen, values=values, noise=noise)


def two_values(values: Array) -> Array:
    """Return the two values of yes/no answers, the lower first; 0 and 1 where there is but one of them."""
    found = np.unique(values)
    if len(found) == 1 and found[0] in (0.0, 1.0):
        return np.array([0.0, 1.0])
    if len(found) != 2:
        raise DataError(
            f"likelihood='binary' needs answers of two values, got {len(found)} different ones"
        )
    return found


def _prepare_binary(seen: Observations, values: Array) -> tuple[BinaryBayes, float, float]:
    yes = (seen.values == values[1]).astype(np.float64)
    fit = BinaryBayes.of_answers(seen.rows, seen.cols, yes, seen.shape)
    return fit, fit.offset, 1.0


def _with_noise_of_repeats(seen: Observations) -> Observations:
    """Return the observations with the noise that entries listed more than once show, where these are enough."""
    if not seen.has_repeats:
        return seen
    _, cell, count = np.unique(
        seen.rows * seen.shape[1] + seen.cols, return_inverse=True, return_counts=True
    )
    degrees = len(seen) - len(count)
    if degrees < REPEATS:
        return seen
    mean = np.bincount(cell, seen.values) / count
    squares = float(np.sum((seen.values - mean[cell]) ** 2))
    return replace(seen, noise=float(np.sqrt(squares / degrees)))


def _described(
    given: Any, labels: tuple[str, ...] | None, side: Side, name: str
) -> Features | None:
    """Let the features of the lines of a side enter its prior; return how they are encoded."""
    if given is None:
        return None
    found = given
    if not isinstance(given, tuple):
        found = Features.of(given, labels, side.size, name)
    coded: Features = found[0]
    side.describe(found[1])
    return coded


def _sloped(found: LowRank, seen: Observations, values: Array, row_times: Array) -> LowRank:
    """Return the fit of yes/no answers with its logits multiplied so that they foretell answers left out."""
    posterior = found.posterior
    if posterior is None:
        return found
    part = slice(None, None, -(-len(seen) // binary.SAMPLED))
    i, j = seen.rows[part], seen.cols[part]
    yes = (seen.values[part] == values[1]).astype(np.float64)
    times = row_times[i] if len(row_times) else np.ones(len(i))
    shares = posterior.variance_parts(found.left, found.right, i, j)
    m, v = binary.left_out(found.latent(i, j), *shares, yes)
    by = binary.slope(m, v, yes, len(seen) / len(i) * times)
    strengths = [by**2 * size for size in found.report["component_variances"]]
    report = {**found.report, "component_variances": strengths, "slope": by}
    return replace(found.scaled(by), report=report)


def _as_answers(found: LowRank, values: Array, exact: bool) -> LowRank:
    """Return the fit of the logit as one of the answers."""
    posterior = replace(found.posterior, noise_variance=0.0) if found.posterior else None
    covariances = "each line's own" if exact else "their average"
    report = {**found.report, "likelihood": "binary", "covariances": covariances, "noise": None}
    return replace(
        found,
        posterior=posterior,
        answers=Levels(values),
        bounds=(float(values[0]), float(values[1])),
        report=report,
    )


def _check(seen: Observations, rank: int | None, limits: Limits, start: LowRank | None) -> None:
    limits.check(seen.shape, rank)
    if not len(seen):
        raise DataError("low_rank needs at least one known entry, got none")
    _ = seen.unit  # refuses what has no variance; anything else is standardised
    if start is not None:
        _check_start(start, seen.shape, rank)


def _check_start(start: LowRank, shape: tuple[int, int], rank: int | None) -> None:
    if start.shape != shape:
        raise ParameterError(
            f"start must have the shape {shape} of the observations, got {start.shape}"
        )
    if not start.has_variance:
        raise ParameterError("start must be a result of low_rank; this one has no posterior")
    if rank is not None and start.rank > rank:
        raise ParameterError(
            f"start has rank {start.rank}, above the rank {rank} asked for; start from a smaller fit"
        )


def _weights(row_weights: Array, m: int) -> Array:
    found = np.array(row_weights, np.float64)
    if found.shape != (m,) or not np.all(np.isfinite(found) & (found > 0)):
        raise ParameterError(f"row_weights must be {m} finite numbers above 0, one a row")
    return found


def _prepare(seen: Observations, start: LowRank | None) -> tuple[EmpiricalBayes, float, float]:
    """Return the state in units of the data's standard deviation, with the offset and the unit."""
    offset = float(seen.values.mean()) if start is None else start.offset
    scale = float(seen.values.std())
    if not scale > CONSTANT * max(abs(offset), SMALLEST):
        scale = max(abs(offset), 1.0)
    variance = np.zeros(0)
    if seen.noise is not None:
        variance = np.broadcast_to((seen.noise / scale) ** 2, (len(seen),)).copy()
    values = (seen.values - offset) / scale
    fit = EmpiricalBayes.of(seen.rows, seen.cols, values, variance, seen.shape, FLOOR)
    if start is not None and start.posterior is not None:
        unit = _unit(start.rank, scale)
        _take_over(fit.rows, start.left, start.row_offset, start.posterior.rows, unit)
        _take_over(fit.cols, start.right, start.col_offset, start.posterior.cols, unit)
        t2 = start.posterior.answer_variance
        if seen.noise is not None:
            t2 = start.lack_variance
        fit.t2 = max(t2 / scale**2, fit.floor)
    return fit, offset, scale


def _unit(k: int, scale: float) -> Array:
    """Return the units of a line's k components and bias when values have the unit `scale`."""
    return np.asarray(np.r_[np.full(k, np.sqrt(scale)), scale])


def _take_over(side: Side, factor: Array, bias: Array | None, lines: Lines, unit: Array) -> None:
    """Start a side from an earlier fit, in units of the values."""
    square = np.outer(unit, unit)
    offsets = np.zeros(len(factor)) if bias is None else bias
    side.mean = np.ascontiguousarray(np.column_stack([factor, offsets]) / unit)
    side.cov = lines.cov / square
    if len(side.cov):
        side.average = side.cov.mean(axis=0)
    side.prior_mean, side.prior_cov = lines.prior_mean / unit, lines.prior_cov / square


def _result(
    fit: EmpiricalBayes,
    seen: Observations | BlockEntries,
    offset: float,
    scale: float,
    strengths: Array,
    sweeps: int,
) -> LowRank:
    """Return the fit in the units of the data."""
    k = fit.rank
    unit = _unit(k, scale)
    t2 = fit.t2 * scale**2
    known = isinstance(seen, Observations) and seen.noise is not None
    instrument = t2
    if isinstance(seen, Observations) and known:
        instrument = float(np.mean(seen.noise_array() ** 2))
    posterior = Posterior(
        rows=_lines(fit.rows, unit),
        cols=_lines(fit.cols, unit),
        noise_variance=instrument,
        lack_variance=t2 if known else 0.0,
        noise_told=known,
    )
    report = {
        "method": "low-rank",
        "rank": k,
        "sweeps": sweeps,
        "noise": float(np.sqrt(instrument)),
        "lack_of_fit": float(np.sqrt(t2)) if known else None,
        "component_variances": (strengths * scale**2).tolist(),
        "evidence": fit.evidence - fit.known * float(np.log(scale)),
    }
    left, right = (_means(side) * unit for side in (fit.rows, fit.cols))
    return LowRank(
        left=left[:, :k],
        right=right[:, :k],
        row_offset=left[:, k].copy(),
        col_offset=right[:, k].copy(),
        offset=offset,
        row_counts=fit.rows.counts,
        col_counts=fit.cols.counts,
        posterior=posterior,
        row_labels=seen.row_labels,
        col_labels=seen.col_labels,
        report=report,
    )


def _means(side: Side) -> Array:
    """Return the means of the lines; where nothing is known, the others' weighted by their observations."""
    cold = side.counts == 0
    if not cold.any():
        return side.mean
    found = side.mean.copy()
    found[cold] = side.cold_mean()
    if side.features is not None:
        found[cold] += side.features.values[cold] @ side.features.weights
    return found


def _lines(side: Side, unit: Array) -> Lines:
    """Return one side's posterior in the units of the data; its covariances are changed in place."""
    square = np.outer(unit, unit)
    side.cov *= square
    return Lines(
        prior_mean=side.prior_mean * unit,
        prior_cov=side.prior_cov * square,
        cov=side.cov,
        weights=None if side.features is None else side.features.weights * unit,
        cold_mean=side.cold_mean() * unit,
    )
