"""The kernel perceptron, one task a row: what one could do if a good kernel between the columns were known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.exceptions import ParameterError
from entrywise.online._learner import Learner, Replayed
from entrywise.types import Array


class _Dual(Replayed):
    def __init__(self, kernel: Array) -> None:
        super().__init__()
        self.kernel = kernel
        self._score: dict[int, Array] = {}

    def fresh(self) -> _Dual:
        return _Dual(self.kernel)

    def score(self, i: int, j: int) -> float:
        if j >= len(self.kernel):
            raise ParameterError(
                f"column must be in 0..{len(self.kernel) - 1}, the kernel's, got {j}"
            )
        return float(self._score[i][j]) if i in self._score else 0.0

    def absorb(self, i: int, j: int, y: int) -> None:
        if (self.score(i, j) >= 0.0) != (y > 0):
            self._score[i] = self._score.get(i, 0.0) + y * self.kernel[j]


@dataclass(frozen=True, eq=False)
class KernelPerceptron(Learner):
    """Predict each row by a perceptron of its own over columns that a known kernel compares.

    Parameters
    ----------
    kernel : array of shape (n, n)
        PSD, between columns: :func:`entrywise.bounds.binary.graph_kernel` of a known graph, the kernel of
        :func:`entrywise.bounds.margin.margin_complexity` (best in hindsight), or any other.

    Notes
    -----
    Novikoff's bound on row i is :math:`U_i K^{-1} U_i^\\top \\max_j K_{jj}` (:func:`entrywise.bounds.binary.novikoff`).

    Examples
    --------
    >>> KernelPerceptron(np.ones((3, 3))).learn(0, 0, -1).predict(0, 2)
    -1
    """

    kernel: ArrayLike

    def _refuse(self) -> None:
        K = np.array(self.kernel, dtype=np.float64)
        square = K.ndim == 2 and K.shape[0] == K.shape[1]
        if not square or not np.allclose(K, K.T) or not np.isfinite(K).all():
            raise ParameterError(f"kernel must be a finite symmetric matrix, got shape {K.shape}")
        K.flags.writeable = False
        object.__setattr__(self, "kernel", K)

    def _empty(self) -> _Dual:
        return _Dual(np.asarray(self.kernel))

    @property
    def params(self) -> dict[str, Any]:
        """The parameters it was made with, the kernel apart."""
        return {}

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return (plain values, arrays) from which this state is made again."""
        plain, arrays = super().state()
        return plain, {**arrays, "kernel": np.asarray(self.kernel)}

    @classmethod
    def _restore(cls, plain: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        return super()._restore({**plain, "params": {"kernel": arrays["kernel"]}}, arrays)
