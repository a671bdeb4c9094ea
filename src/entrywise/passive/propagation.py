"""Propagation: follow the known entries from one row on, dividing as you go.

Exact without noise, and the yardstick that better methods are measured with: errors multiply along the way.
"""

from __future__ import annotations

import numpy as np

from entrywise.exceptions import NotIdentifiable
from entrywise.observations import Observations
from entrywise.passive.multiplicative import MultiplicativeFit, RankOne


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

    if not np.any(observations.values):
        raise NotIdentifiable(
            "propagation needs at least one known entry that is not zero; observe one"
        )
    fit = MultiplicativeFit(observations)
    live = fit.seen.take(fit.seen.values != 0)
    m, n = live.shape
    i, j = live.rows, m + live.cols
    nodes, parent, edge = jit.tree_order(m + n, i, j, np.arange(len(live)))
    p = jit.walk(nodes, parent, edge, i, np.log(np.abs(live.values) / fit.scale))
    flips = jit.walk(nodes, parent, edge, i, (live.values < 0).astype(np.float64))
    sign = 1.0 - 2.0 * (np.rint(flips) % 2)
    z = fit.from_logarithms(p, sign)
    _, row_of, col_of = live.components
    fit.place(z, live.rows, live.cols, row_of, col_of)
    return fit.result("propagation", certify=False)
