"""Second moments of a block of partly seen samples, as the paper's equation (4) estimates them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from entrywise.exceptions import DataError
from entrywise.linalg.pairs import as_samples
from entrywise.passive.trackers.samples import refuse
from entrywise.types import Array


def dense_samples(samples: Any, rank: int) -> Array:
    """Return samples as an array with NaN where nothing was seen, or refuse them."""
    X = as_samples(samples)
    refuse(X, rank)
    if not isinstance(X, np.ndarray):
        coo = X.tocoo()
        seen = np.full(X.shape, np.nan)
        seen[coo.row, coo.col] = coo.data
        X = seen
    if np.isnan(X).all():
        raise DataError("nothing was seen; give samples with values")
    return X


def block_moments(X: Array, blocks: int) -> Iterator[Array]:
    r"""Yield the unbiased second moments of one block after the other, each of shape (d, d).

    .. math:: \hat C = \frac{1}{p^2} \overline{x x^\top} - \Big(\frac{1}{p^2} - \frac1p\Big) \mathrm{diag}\,\overline{x^2}

    with p the share of attributes seen and zeros elsewhere: equation (4) of [GRES16], also that of [MCJ14].
    """
    p = float(np.mean(~np.isnan(X)))
    for part in np.array_split(np.nan_to_num(X), min(blocks, len(X))):
        C = part.T @ part / len(part) / p**2
        C[np.diag_indices(len(C))] *= p
        yield C
