r"""Points placed by their distances to landmarks, read off the asked columns of a radial kernel.

A kernel :math:`K_{ij} = c\, e^{-\gamma d_{ij}^2}` tells more than its Nyström completion keeps: the logarithm of an asked
entry is a squared distance. Distances to the landmarks, the points whose columns were asked, place every point in
the flat space that the landmarks span. No entry is asked for that, and the completed diagonal is not used.
"""

from __future__ import annotations

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.results import PSDFactor
from entrywise.types import Array


def radial_coordinates(found: PSDFactor, *, rtol: float = 1e-6) -> Array:
    r"""Return points in Euclidean space, shape (n, at most k - 1), from the k columns asked of a radial kernel.

    .. math:: y_i = -\tfrac12 \Lambda^{-1/2} V^\top (\delta_i - \bar\delta), \qquad
              \delta_{ip} = \log K_{pp} - \log K_{ip} = \gamma d_{ip}^2

    with :math:`V \Lambda V^\top` the centred Gram matrix of the landmarks. Squared distances are in units of
    :math:`1 / \gamma`. Between a point and a landmark they are exact up to the point's distance from the landmarks' span,
    which is dropped.

    Parameters
    ----------
    found : PSDFactor
        What :func:`~entrywise.active.adaptive_nystrom` returned for an RBF kernel, or for any kernel whose logarithm is
        minus a squared distance (Laplacian kernels too). Entries must be exact: noise is blown up by the logarithm.
    rtol : float
        Directions in which the landmarks spread less than this share of their widest are dropped.

    References
    ----------
    .. [ST04] de Silva, Tenenbaum, *Sparse multidimensional scaling using landmark points*, 2004.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.active import adaptive_nystrom
    >>> from entrywise.oracles import KernelOracle
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> made = radial_coordinates(ew.play(adaptive_nystrom(50, rank=6), KernelOracle(X, "rbf", gamma=0.1)))
    >>> Y = made / np.sqrt(0.1)
    >>> Y.shape, bool(np.isclose(np.linalg.norm(Y[3] - Y[40]), np.linalg.norm(X[3] - X[40])))
    ((50, 3), True)
    """
    if len(found.pivots) < 2:
        raise ParameterError(
            f"distances to at least 2 landmarks are needed, {len(found.pivots)} columns were asked"
        )
    C = found.factor @ found.factor[found.pivots].T  # (n, k): the columns that were asked
    top = C[found.pivots, np.arange(len(found.pivots))]
    if not (np.all(C > 0) and np.ptp(top) <= 1e-6 * top.max()):
        raise ParameterError(
            f"a radial kernel must be above 0 with one value on its diagonal, got entries down to {C.min():.3g} and a "
            f"diagonal of {top.min():.3g} to {top.max():.3g}; use the completed kernel itself"
        )
    delta = np.maximum(np.log(top) - np.log(C), 0.0)
    inner = delta[found.pivots]
    mean = inner.mean(axis=0)
    values, vectors = np.linalg.eigh(-0.5 * (inner - mean - mean[:, None] + mean.mean()))
    kept = values > rtol * max(float(values[-1]), 1e-300)
    return np.asarray(-0.5 * (delta - mean) @ (vectors[:, kept] / np.sqrt(values[kept])))[:, ::-1]
