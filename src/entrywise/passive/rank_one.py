r"""Rank one: a table of products from any entries that link its rows and columns.

Least squares in log space (:func:`~entrywise.passive.log_least_squares`) is the start. A Gauss-Newton refinement
in the original space, the same kind of graph-Laplacian system, then minimises the squared error itself and lets
zeros and wrong signs have their say.
"""

from __future__ import annotations

from entrywise.observations import Observations
from entrywise.passive.multiplicative import MultiplicativeFit, RankOne, refuse_empty
from entrywise.passive.noise_law import follow_residuals


def rank_one(observations: Observations, *, certify: bool = True) -> RankOne:
    r"""Complete a rank-one matrix by least squares, started in log space.

    .. math:: \min_{x, y} \sum_{(i,j) \in \Omega} (a_{ij} - x_i y_j)^2 / \sigma_{ij}^2

    Parameters
    ----------
    observations : Observations
        Known entries, of any sign. Their noise, where given, divides the weights. Without it the residuals tell how
        noise grows with the entries (of one size, of counts, proportional, multiplicative), and the weights follow;
        ``report["noise_law"]`` says which.
    certify : bool
        Compute the minimax constant and the expected error.

    Returns
    -------
    RankOne
        ``entries`` and ``interval`` are NaN where no chain of known entries links row and column. The first
        certificate is the minimax constant: largest error per disturbance, which no method improves. The report
        counts zeros, entries whose sign contradicts the fit, and components, with the ``connect`` entries
        that would link them. Lines that long chains of entries put beyond what numbers hold, ``too_far``, are NaN.

    Notes
    -----
    A few Laplacian solves lead from the logarithms to the minimum. Exact zeros count there; the logarithms must leave
    them out. A row or column that is known to be zero wherever it is known is estimated as zero.

    Where disturbances are larger than most entries no consistent method is good, and bounds on the entries are worth more:
    with three rows and columns known of 1000 x 1000, entries in 1/10..10 and disturbances of up to 5,
    :func:`~entrywise.passive.projected_eigenvector` errs by 1.25 where this errs by 3.03 (``reproduce rank-one --figure 1``).

    References
    ----------
    .. [HOS20] Hendrickx, Olshevsky, Saligrama, *Minimax rank-1 matrix factorization*, AISTATS 2020, Algorithm 1;
       the refinement is ours.

    Examples
    --------
    >>> nan = float("nan")
    >>> table = Observations.from_dense([[2.0, nan, 4.0], [nan, 9.0, 6.0], [1.0, 3.0, nan]])
    >>> found = rank_one(table)
    >>> found.to_dense().round(9)
    array([[2., 6., 4.],
           [3., 9., 6.],
           [1., 3., 2.]])
    >>> round(found.certificate.value, 3)  # how much noise can grow on these very entries
    2.286
    """
    refuse_empty(observations, "rank_one")
    fit = MultiplicativeFit(observations)
    fit.start(rough=True)
    fit.refine()
    follow_residuals(fit)
    return fit.result("log least squares, refined", certify)
