"""A drop-in for scikit-learn's Nystroem that chooses its columns and says what they leave unexplained."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import KERNEL_PARAMS, pairwise_kernels
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from entrywise.active.nystrom.adaptive import adaptive_nystrom
from entrywise.exceptions import ParameterError
from entrywise.oracles import KernelOracle, MatrixOracle, Oracle
from entrywise.queries import Batch, Plan
from entrywise.results import PSDFactor
from entrywise.types import Array

BLOCKED = 32  # components from which randomly drawn points are chosen by blocks, an eighth of them at a time
WIDEST = 128  # points of a block: beyond, a block holds several that are alike


class AdaptiveNystroem(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Kernel features from adaptively chosen points, :math:`\phi(x)^\top \phi(y) \approx k(x, y)`.

    Takes scikit-learn's ``Nystroem`` parameters and adds the choice of columns. ``kernel="precomputed"``
    accepts a square kernel with fewer components than points.

    Parameters
    ----------
    kernel : str or callable
        As in ``sklearn.kernel_approximation.Nystroem``; must be positive semidefinite.
    gamma, coef0, degree, kernel_params : of the kernel.
    n_components : int
        Most points to choose; fewer when the kernel's rank is smaller or `max_error` is reached.
    order : {"gain", "random", "greedy"}
        How points are chosen, see :func:`entrywise.active.adaptive_nystrom`: to lower the trace error most (default),
        at random in proportion to what is unexplained, or always the least explained one.
    max_error : float, optional
        Stop when every training entry of the kernel is certified within this.
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    components_ : ndarray of shape (k, n_features)
        The chosen points.
    component_indices_ : ndarray of shape (k,)
        Which training points they are.
    normalization_ : ndarray of shape (k, k)
        Inverse of the Cholesky factor of their kernel.
    max_error_, trace_error_ : float
        Certified errors of the training kernel: largest entry, and trace norm.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((50, 3))
    >>> model = AdaptiveNystroem(n_components=20, gamma=0.1, random_state=0).fit(X)
    >>> model.transform(X).shape, bool(model.max_error_ < 0.1)
    ((50, 20), True)
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: float | None = None,
        coef0: float | None = None,
        degree: float | None = None,
        kernel_params: dict[str, Any] | None = None,
        n_components: int = 100,
        order: str = "gain",
        max_error: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.kernel_params = kernel_params
        self.n_components = n_components
        self.order = order
        self.max_error = max_error
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> AdaptiveNystroem:
        """Choose the points. ``y`` is ignored."""
        self._choose(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Choose the points and return the features of X, shape (n, k), which choosing them has made already.

        The same as ``fit(X).transform(X)`` up to round-off; the array is in Fortran order.
        """
        return self._choose(X).factor

    def _choose(self, X: Any) -> PSDFactor:
        X = validate_data(self, X, dtype=np.float64)
        n = len(X)
        if self.n_components < 1:
            raise ParameterError(f"n_components must be at least 1, got {self.n_components}")
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ParameterError(f"a precomputed kernel must be square, got shape {X.shape}")
        seed = _seed(self.random_state)
        most = min(self.n_components, n)
        plan = adaptive_nystrom(
            n,
            rank=most,
            order=self.order,
            max_error=self.max_error,
            block=_block(self.order, most),
            rng=seed,
        )
        found = _drive(plan, self._oracle(X))
        self.component_indices_ = found.pivots
        self.components_ = X[:, found.pivots].T if self.kernel == "precomputed" else X[found.pivots]
        L = found.factor[found.pivots]  # (k, k), lower triangular
        self.normalization_ = solve_triangular(L, np.eye(len(L)), lower=True)
        self.max_error_, self.trace_error_ = (c.value for c in found.certificates)
        self._n_features_out = found.rank
        return found

    def transform(self, X: Any) -> Array:
        """Return the features of X, shape (n, k); rows of the kernel for a precomputed one."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        if self.kernel == "precomputed":
            K = X[:, self.component_indices_]
        else:
            K = pairwise_kernels(
                X, self.components_, metric=self.kernel, filter_params=True, **self._params()
            )
        return np.asarray(K @ self.normalization_.T)

    def _oracle(self, X: Array) -> Oracle:
        if self.kernel == "precomputed":
            return MatrixOracle(X)
        params = self._params()
        if isinstance(self.kernel, str):
            params = {
                name: value
                for name, value in params.items()
                if name in KERNEL_PARAMS.get(self.kernel, ())
            }
            return KernelOracle(X, self.kernel, **params)
        return KernelOracle(X, lambda A, B: pairwise_kernels(A, B, metric=self.kernel, **params))

    def _params(self) -> dict[str, Any]:
        params = dict(self.kernel_params or {})
        if not callable(self.kernel):
            for name in ("gamma", "coef0", "degree"):
                if getattr(self, name) is not None:
                    params[name] = getattr(self, name)
        return params

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _block(order: str, most: int) -> int | None:
    """Return how many points are chosen at a time, None where one after the other."""
    if order == "greedy" or (order == "random" and most < BLOCKED):
        return None
    return min(max(most // 8, 1), WIDEST)


def _drive(plan: Plan, oracle: Oracle) -> PSDFactor:
    """Play a plan without a ledger or a log: kernel evaluations are free here, memory is not."""
    asking = plan.start()
    try:
        wanted = next(asking)
        while True:
            assert isinstance(wanted, Batch)
            wanted = asking.send(oracle(wanted))
    except StopIteration as stop:
        found: PSDFactor = stop.value
        return found


def _seed(random_state: Any) -> int:
    """Return a seed drawn as scikit-learn would; a Generator, which it does not take, draws too."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return int(check_random_state(random_state).randint(2**31 - 1))
