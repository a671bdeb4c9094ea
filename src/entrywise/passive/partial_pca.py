r"""Principal components of samples of which only some attributes are seen.

Every sample that shows two attributes tells something about their product. Averaging each product over
the samples that show it gives the covariance without bias, whatever the mask, as long as the mask does
not look at the values and every pair is seen together; its leading eigenvectors span the subspace. Only sums are kept: one pass,
r (r + 1) / 2 additions a sample, merged across machines by adding.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from entrywise.bounds.subspace import popca_certificate
from entrywise.exceptions import DataError, NotIdentifiable, ParameterError
from entrywise.linalg.pairs import PairSums, as_samples
from entrywise.results import Certificate, Subspace
from entrywise.types import Array

Mask = Literal["pairwise", "bernoulli", "exactly", "replacement"]
Repair = Literal["soft", "clip", "none"]


def partial_pca(
    samples: Any,
    rank: int,
    *,
    center: bool = True,
    mask: Mask = "pairwise",
    per_sample: float | ArrayLike | None = None,
    repair: Repair = "soft",
    weights: ArrayLike | None = None,
    max_square: float | None = None,
) -> Subspace:
    r"""Return the leading principal components of partly seen samples.

    .. math:: \hat C_{ij} = \frac{1}{N_{ij}} \sum_{t:\, i, j \text{ seen}} x_{ti} x_{tj}

    Parameters
    ----------
    samples : Observations, array (NaN = not seen), masked array, scipy sparse matrix, or PairSums
        One sample a row. Entries stored in a sparse matrix, zeros included, are what was seen.
    rank : int
        Dimension k of the subspace, 1 <= k < d.
    center : bool
        Take the mean of each attribute out (PCA's habit). False finds the subspace through the origin
        with the least expected squared distance, as the paper does.
    mask : {"pairwise", "bernoulli", "exactly", "replacement"}
        How attributes came to be seen. ``pairwise`` divides each product by how often its pair was seen
        and is right under any mask that does not look at the values, for pairs that were seen together. The others divide by the chance
        of being seen: ``bernoulli`` is the paper's equation (4), each attribute on its own with
        probability p; ``exactly`` r attributes drawn without replacement; ``replacement`` r drawn with.
    per_sample : float or ndarray of shape (d,), optional
        For the three: r, the attributes drawn a sample (p = r / d), or for ``bernoulli`` one probability
        an attribute. ``exactly`` finds r in the data.
    repair : {"soft", "clip", "none"}
        Pairs seen rarely give covariances that no variances allow, and eigenvalues below zero. ``soft`` and ``clip`` first
        cut each covariance at :math:`|C_{ij}| \le \sqrt{C_{ii} C_{jj}}`, whose variances are seen far more often. ``soft`` then
        lowers all eigenvalues by half the size of the lowest and clips at zero (Lounici's estimator with
        :math:`\lambda = |\lambda_{min}|`), ``clip`` only clips. ``none`` leaves the unbiased estimate as it is: the paper's.
    weights : array-like of shape (n,), optional
        Each counts as that many repetitions of its sample.
    max_square : float, optional
        Largest possible :math:`\|x\|^2`; with it, ``center=False``, ``mask="bernoulli"`` with one number `per_sample`, and
        ``repair="none"``, the result carries Corollary 3 as certificate. Its proof covers no other mask and no repair.

    Returns
    -------
    Subspace
        ``components`` (k, d), ``explained_variance``, ``mean``, ``spectrum``; the report counts samples, those
        with fewer than two attributes, and pairs never seen together (their covariance is taken as 0).

    Notes
    -----
    The default has less error than the unbiased estimate, and a bias: pairs never seen together count as 0, and the repair
    moves the rest. On 60 samples that show 3 of 12 attributes the mean of the repaired covariances is a quarter too small off
    the diagonal, without repair 6 % (the share of pairs never seen together); ``mask="exactly"`` with ``repair="none"`` has no
    bias.

    With means the sum of products about the means is divided by
    :math:`N_{ij} (1 - 1/N_{ii} - 1/N_{jj} + N_{ij} / (N_{ii} N_{jj}))`, which makes it unbiased; on complete data that
    is n - 1 and the result is that of ordinary PCA. Equation (4) used on masks of exactly r attributes would
    shrink covariances by (r - 1) d / (r (d - 1)): one half at r = 2. One attribute a sample never
    identifies a subspace ([GRES16], Figure 1).

    References
    ----------
    .. [GRES16] Gonen, Rosenbaum, Eldar, Shalev-Shwartz, *Subspace Learning with Partial Information*, JMLR 17,
       2016, Algorithm 1, equation (4), Lemma 13.
    .. [L14] Lounici, *High-dimensional covariance matrix estimation with missing observations*, Bernoulli 20, 2014.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((4000, 2)) @ rng.standard_normal((2, 8))
    >>> X[rng.random(X.shape) < 0.6] = np.nan
    >>> found = partial_pca(X, 2)
    >>> found.components.shape, bool(found.explained_variance_ratio.sum() > 0.95)
    ((2, 8), True)
    """
    if isinstance(samples, PairSums):
        if weights is not None:
            raise ParameterError("weights belong to samples; give them when the sums are made")
        sums = samples
    else:
        X = as_samples(samples)
        sums = PairSums(X.shape[1], centered=center).add(X, weights)  # "for i = 1 to m do"
    return from_sums(
        sums,
        rank,
        center=center,
        mask=mask,
        per_sample=per_sample,
        repair=repair,
        max_square=max_square,
    )


def from_sums(
    sums: PairSums,
    rank: int,
    *,
    center: bool = True,
    mask: Mask = "pairwise",
    per_sample: float | ArrayLike | None = None,
    repair: Repair = "soft",
    max_square: float | None = None,
) -> Subspace:
    """Return the components that the sums of a stream give; see :func:`partial_pca`."""
    d, k = sums.d, rank
    if not (isinstance(k, int | np.integer) and 1 <= k < d):
        raise ParameterError(
            f"rank must be in 1..{d - 1} for {d} attributes, got {k}; {d} span everything"
        )
    if repair not in ("soft", "clip", "none"):
        raise ParameterError(f"repair must be soft, clip or none, got {repair!r}")
    check_seen(sums)
    if center and sums.samples <= 1:
        raise DataError("one sample has no variance; give at least two, or center=False")
    C = covariance(sums, center=center, mask=mask, per_sample=per_sample)  # equation (4)
    N = sums.counts()
    center_ = sums.means() if center else np.zeros(d)
    found = from_covariance(C, k, center_, repair)  # "Compute the eigendecomposition"
    if center and not found.spectrum[0] > 0:
        raise DataError(
            "every attribute is constant, so there is no direction to find; give samples that vary, or center=False"
        )
    seen = float(np.diagonal(N).sum()) / sums.samples
    missing = int(np.sum(np.triu(N == 0, 1)))
    report = {
        "samples": sums.rows,
        "samples_with_fewer_than_two_attributes": sums.short,
        "attributes_a_sample": seen,
        "pairs_never_seen_together": missing,
    }
    certificates: tuple[Certificate, ...] = ()
    if max_square is not None and not center:
        if sums.largest > max_square * (1 + 1e-9):
            raise ParameterError(
                f"max_square must bound every sample's sum of squares, got {max_square:g} where {sums.largest:g} was seen"
            )
        if _proved(mask, per_sample, repair):
            certificates = (popca_certificate(d, k, seen, sums.samples, max_square),)
    return replace(found, certificates=certificates, report=report)


def _proved(mask: Mask, per_sample: float | ArrayLike | None, repair: Repair) -> bool:
    """Whether Corollary 3 covers an estimate: equation (4) as printed, every attribute seen with the same chance."""
    return (
        mask == "bernoulli"
        and (per_sample is None or np.ndim(per_sample) == 0)
        and repair == "none"
    )


def covariance(
    sums: PairSums,
    *,
    center: bool = True,
    mask: Mask = "pairwise",
    per_sample: float | ArrayLike | None = None,
) -> Array:
    """Return the unbiased estimate of the covariance (second moments without `center`), shape (d, d).

    Pairs never seen together get 0. It is symmetric, and may have eigenvalues below zero.
    """
    N = sums.counts()
    if mask == "pairwise":
        if not center:
            return sums.products() / np.where(N > 0, N, 1.0)
        n = np.maximum(np.diagonal(N), 1.0)
        degrees = N * (1.0 - 1.0 / n[:, None] - 1.0 / n + N / np.outer(n, n))
        known = degrees > 1e-9 * np.maximum(N, 1.0)
        return np.where(known, sums.about(sums.means()) / np.where(known, degrees, 1.0), 0.0)
    chance = inclusion(sums, mask, per_sample)
    expected = sums.samples * chance
    total = sums.about(sums.means()) if center else sums.products()
    return total / np.where(expected > 0, expected, 1.0)


def inclusion(sums: PairSums, mask: Mask, per_sample: float | ArrayLike | None) -> Array:
    """Return the chance that a sample shows both attributes of each pair, shape (d, d)."""
    d = sums.d
    if mask not in ("bernoulli", "exactly", "replacement"):
        raise ParameterError(
            f"mask must be pairwise, bernoulli, exactly or replacement, got {mask!r}"
        )
    if per_sample is None:
        if mask != "exactly":
            raise ParameterError(f"mask {mask} needs per_sample, the attributes drawn a sample")
        per_sample = float(np.trace(sums.T[:, :, 1])) / max(sums.samples, 1.0)
        if abs(per_sample - round(per_sample)) > 1e-9 * d:
            raise ParameterError(
                f"samples show {per_sample:g} attributes on average, not exactly r; use mask='pairwise'"
            )
    r = np.asarray(per_sample, dtype=np.float64)
    if mask == "bernoulli":
        p = np.broadcast_to(r / d if r.ndim == 0 else r, (d,))
        if not np.all((p > 0) & (p <= 1)):
            raise ParameterError(
                f"probabilities of being seen must be above 0 and at most 1, got {p.min():g}..{p.max():g}"
            )
        both = np.outer(p, p)
        np.fill_diagonal(both, p)
        return both
    if r.ndim != 0 or not 1 <= r <= (d if mask == "exactly" else np.inf):
        raise ParameterError(
            f"per_sample of mask {mask} must be one number of attributes, got {per_sample}"
        )
    if mask == "exactly":
        one, two = r / d, r * (r - 1.0) / (d * max(d - 1.0, 1.0))
    else:
        one, two = (
            1.0 - (1.0 - 1.0 / d) ** r,
            1.0 - 2.0 * (1.0 - 1.0 / d) ** r + (1.0 - 2.0 / d) ** r,
        )
    both = np.full((d, d), float(two))
    np.fill_diagonal(both, float(one))
    return both


def limit(C: Array) -> Array:
    """Return C with each covariance cut at the product of the two standard deviations."""
    sd = np.sqrt(np.maximum(np.diagonal(C), 0.0))
    most = np.outer(sd, sd)
    return np.clip(C, -most, most)


def from_covariance(C: Array, k: int, mean: Array, repair: Repair = "soft") -> Subspace:
    """Return the k leading eigenvectors of a symmetric matrix, repaired as :func:`partial_pca` says."""
    values, vectors = np.linalg.eigh(C if repair == "none" else limit(C))
    values, V = values[::-1], vectors[:, ::-1][:, :k].T
    if repair == "soft":
        values = np.maximum(values - 0.5 * max(-float(values[-1]), 0.0), 0.0)
    elif repair == "clip":
        values = np.maximum(values, 0.0)
    top = np.abs(V).argmax(axis=1)
    sign = np.where(V[np.arange(k), top] < 0, -1.0, 1.0)
    return Subspace(
        np.ascontiguousarray(V * sign[:, None]), values[:k].copy(), np.array(mean), values.copy()
    )


def check_seen(sums: PairSums) -> None:
    """Refuse sums that identify nothing, with the reason."""
    if sums.rows == 0 or sums.samples <= 0:
        raise DataError("there are no samples; give at least two")
    counts = np.diagonal(sums.T[:, :, 1])
    never = np.flatnonzero(counts == 0)
    if len(never):
        more = f" ({len(never)} such attributes)" if len(never) > 1 else ""
        raise NotIdentifiable(
            f"attribute {never[0]} was never seen{more}; observe it or leave it out"
        )
    if not np.any(np.triu(sums.T[:, :, 1], 1) > 0):
        raise NotIdentifiable(
            f"no sample shows two attributes ({sums.short} of {sums.rows} show fewer); one attribute a sample cannot "
            "tell directions apart, observe pairs"
        )
