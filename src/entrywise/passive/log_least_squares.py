r"""Log least squares: the paper's rank-one completion, one graph-Laplacian system.

The logarithm of :math:`A = x y^\top` is a difference of potentials along each known entry, so that the fit is a
graph-Laplacian system, solved in near-linear time. Weighting each equation by its entry makes it minimax
for small disturbances.
"""

from __future__ import annotations

from entrywise.observations import Observations
from entrywise.passive.multiplicative import MultiplicativeFit, RankOne, refuse_empty


def log_least_squares(
    observations: Observations, *, weighted: bool = True, certify: bool = True
) -> RankOne:
    r"""Complete a rank-one matrix by least squares in log space.

    .. math:: \min_{p} \sum_{(i,j) \in \Omega} a_{ij}^2 \, (p_i - p_j - \log |a_{ij}|)^2,
        \qquad \hat A_{ij} = s_i s_j e^{p_i - p_j}

    Parameters
    ----------
    observations : Observations
        Known entries, of any sign. Their noise, where given, divides the weights. Exact zeros are left out.
    weighted : bool
        Weights :math:`a_{ij}^2` (minimax for small disturbances) or all alike.
    certify : bool
        Compute the minimax constant and the expected error.

    Returns
    -------
    RankOne
        As :func:`~entrywise.passive.rank_one` returns it, which goes on from here to the least squared error and
        is better wherever noise is not small.

    Notes
    -----
    Signs are propagated along the spanning tree of the largest entries, the least likely to be flipped by noise, and
    not in the breadth-first order that propagation suggests.

    References
    ----------
    .. [HOS20] Hendrickx, Olshevsky, Saligrama, *Minimax rank-1 matrix factorization*, AISTATS 2020, Algorithm 1.

    Examples
    --------
    >>> nan = float("nan")
    >>> table = Observations.from_dense([[2.0, nan, 4.0], [nan, 9.0, 6.0], [1.0, 3.0, nan]])
    >>> log_least_squares(table).entries([0, 1, 2], [1, 0, 2]).round(9)
    array([6., 3., 2.])
    """
    refuse_empty(observations, "log_least_squares")
    fit = MultiplicativeFit(observations)  # 1
    fit.start(weighted)  # 2, 3  equation (5), and the signs of the exponents
    return fit.result("log least squares", certify)  # 4
