"""Propagation: follow the known entries from one row on, dividing as you go.

Exact without noise, and the yardstick that better methods are measured with: errors multiply along the way.
"""

from __future__ import annotations

import numpy as np

from entrywise.exceptions import NotIdentifiable
from entrywise.observations import Observations
from entrywise.passive.log_least_squares import Fit
from entrywise.passive.rank_one import RankOne


def propagation(observations: Observations) -> RankOne:
    """Complete a rank-one matrix by walking breadth-first over its known entries.

    Each row or column is determined by the first known entry that reaches it; all other entries are ignored.
    Zeros cannot be passed.

    References
    ----------
    .. [BC17] Bonald, Combes, *A minimax optimal algorithm for crowdsourcing*, NIPS 2017; compared with in
       Hendrickx, Olshevsky, Saligrama, AISTATS 2020.

    Examples
    --------
    >>> nan = float("nan")
    >>> propagation(Observations.from_dense([[1.0, -2.0], [3.0, nan]])).to_dense()
    array([[ 1., -2.],
           [ 3., -6.]])
    """
    from entrywise.linalg import _jit_laplacian as jit

    live = observations.take(observations.values != 0)
    if not len(live):
        raise NotIdentifiable(
            "propagation needs at least one known entry that is not zero; observe one"
        )
    m, n = observations.shape
    i, j = live.rows, m + live.cols
    nodes, parent, edge = jit.tree_order(m + n, i, j, np.arange(len(live)))
    fit = Fit(observations)
    p = jit.walk(nodes, parent, edge, i, np.log(np.abs(live.values) / fit.scale))
    sign = 1.0 - 2.0 * (
        np.rint(jit.walk(nodes, parent, edge, i, (live.values < 0).astype(np.float64))) % 2
    )
    _, row_of, col_of = live.components
    linked = np.zeros(m + n, bool)
    linked[i] = linked[j] = True
    with np.errstate(over="ignore"):
        z = np.where(linked, sign * np.exp(np.r_[p[:m], -p[m:]]), np.nan)
    fit.x, fit.y, fit.row_of, fit.col_of = z[:m], z[m:], row_of.copy(), col_of.copy()
    return fit.result("propagation", certify=False)
