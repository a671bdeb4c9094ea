"""Answers, kept in factors: ``Result``, ``LowRank``, ``PSDFactor``, ``Subspace``, ``Certificate``, ``Interval``.

No result holds an m x n array; :meth:`LowRank.to_dense` makes one only when asked. Every result says
what it cost, how it ended, and what is promised (:class:`Certificate`).
"""

from __future__ import annotations

import abc
import importlib
import io
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise import posterior
from entrywise.exceptions import DataError, ParameterError
from entrywise.queries import Array, Indices

if TYPE_CHECKING:
    from entrywise.observations import Observations


class Interval(NamedTuple):
    """Lower and upper ends, one each an entry asked."""

    low: Array
    high: Array


@dataclass(frozen=True)
class Certificate:
    """What is promised about a result, in numbers for this very problem.

    Parameters
    ----------
    statement : str
        What `value` bounds, in a sentence.
    value : float
        The number.
    assumes : tuple of str
        What must be true for the statement to hold.
    checked : tuple of str
        Which of these were tested on the data.
    vacuous : bool
        Whether the number says nothing (larger than the trivial bound).
    """

    statement: str
    value: float
    assumes: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    vacuous: bool = False

    def __str__(self) -> str:
        words = f"{self.statement}: {self.value:.6g}"
        if self.assumes:
            words += f" (assuming {'; '.join(self.assumes)})"
        return words + (" [vacuous]" if self.vacuous else "")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Result:
    """What every answer carries.

    ``cost`` is the money spent, ``status`` is ``finished``, ``exhausted`` (the money ran out) or
    ``stopped``, ``report`` says in words and numbers how the answer came about.
    """

    certificates: tuple[Certificate, ...] = ()
    cost: float = 0.0
    status: str = "finished"
    report: Mapping[str, Any] = field(default_factory=dict)

    _kinds: ClassVar[dict[str, type[Result]]] = {}

    def __init_subclass__(cls, **extra: Any) -> None:
        super().__init_subclass__(**extra)
        Result._kinds[cls.__name__] = cls

    def __repr__(self) -> str:
        """Name, shape and rank, status, cost and the first certificate: a line, not the arrays."""
        rank = getattr(self, "rank", None)
        words = [" x ".join(map(str, getattr(self, "shape", ()))), "" if rank is None else f"rank {rank}"]
        words = [*filter(None, words), self.status, f"cost {self.cost:g}", *map(str, self.certificates[:1])]
        return f"{type(self).__name__}({', '.join(words)})"

    @property
    def certificate(self) -> Certificate | None:
        """The first certificate, if there is one."""
        return self.certificates[0] if self.certificates else None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to an npz file, whole or not at all; nothing is pickled."""
        arrays: dict[str, NDArray[Any]] = {}
        plain: dict[str, Any] = {"kind": type(self).__name__, "home": type(self).__module__}
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, np.ndarray):
                arrays[f.name] = value
            elif f.name == "certificates":
                plain[f.name] = [vars(c) for c in value]
            else:
                plain[f.name] = value
        buffer = io.BytesIO()
        text = json.dumps(plain, default=_plain)
        np.savez_compressed(buffer, __plain__=np.array(text), **arrays)  # type: ignore[arg-type]
        write_whole(path, buffer.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the result that :meth:`save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as file:
                plain = json.loads(str(file["__plain__"]))
                found = {name: file[name] for name in file.files if name != "__plain__"}
        except (KeyError, ValueError, OSError) as error:
            raise DataError(f"{path} must be a result saved by entrywise: {error}") from None
        home = str(plain.pop("home", ""))
        if plain["kind"] not in Result._kinds and home.startswith("entrywise."):
            importlib.import_module(home)  # a result that lives beside its method
        kind = Result._kinds.get(plain.pop("kind"), Result)
        if not issubclass(kind, cls):
            raise DataError(f"{path} holds a {kind.__name__}, not a {cls.__name__}; load it with {kind.__name__}.load")
        known = {f.name: f for f in fields(kind)}
        plain["certificates"] = tuple(
            Certificate(c["statement"], c["value"], tuple(c["assumes"]), tuple(c["checked"]), c["vacuous"])
            for c in plain["certificates"]
        )
        for name, value in plain.items():
            if isinstance(value, list):
                plain[name] = tuple(value)
        return kind(**{k: v for k, v in (plain | found).items() if k in known})


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path` whole or not at all."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent or ".", prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _plain(value: Any) -> Any:
    """Return a JSON form of numpy scalars, tuples and small arrays."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Matrix(Result, abc.ABC):
    """A completed matrix, kept in factors; :class:`LowRank` and :class:`PSDFactor` fill it in."""

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, int]:
        """Shape (m, n) of the matrix."""

    @property
    @abc.abstractmethod
    def rank(self) -> int:
        """Number of components."""

    @abc.abstractmethod
    def entries(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the completed entries at (rows, cols), shapes broadcast."""

    def _where(self, rows: ArrayLike, cols: ArrayLike) -> tuple[Indices, Indices]:
        i, j = np.broadcast_arrays(np.asarray(rows, np.int64), np.asarray(cols, np.int64))
        for name, index, size in (("row", i, self.shape[0]), ("column", j, self.shape[1])):
            if index.size and (index.min() < 0 or index.max() >= size):
                bad = int(index.min() if index.min() < 0 else index.max())
                raise ParameterError(f"{name} must be in 0..{size - 1}, got {bad}")
        return i, j

    def entry(self, i: int, j: int) -> float:
        """Return one completed entry."""
        return float(self.entries(i, j))

    def row(self, i: int) -> Array:
        """Return row i, shape (n,)."""
        return self.entries(i, np.arange(self.shape[1]))

    def column(self, j: int) -> Array:
        """Return column j, shape (m,)."""
        return self.entries(np.arange(self.shape[0]), j)

    def to_dense(self) -> Array:
        """Return the whole matrix as an array of shape (m, n)."""
        return np.asarray(self @ np.eye(self.shape[1]))

    @abc.abstractmethod
    def __matmul__(self, x: ArrayLike) -> Array: ...

    def top(self, k: int, largest: bool = True) -> tuple[Indices, Indices, Array]:
        """Return (rows, cols, values) of the k largest (or smallest) entries, found block by block."""
        m, n = self.shape
        if not 1 <= k <= m * n:
            raise ParameterError(f"k of top must be in 1..{m * n}, got {k}")
        sign = 1.0 if largest else -1.0
        step = max(1, 2**22 // n)
        rows, cols, values = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
        for start in range(0, m, step):
            i = np.arange(start, min(start + step, m))
            block = sign * self.entries(i[:, None], np.arange(n)[None, :])
            flat = block.ravel()
            best = np.argpartition(-flat, min(k, len(flat)) - 1)[:k] if k < len(flat) else np.arange(len(flat))
            rows = np.r_[rows, i[best // n]]
            cols = np.r_[cols, best % n]
            values = np.r_[values, flat[best]]
            keep = np.lexsort((cols, rows, -values))[:k]
            rows, cols, values = rows[keep], cols[keep], values[keep]
        return rows, cols, sign * values


@dataclass(frozen=True, eq=False, repr=False)
class LowRank(Matrix):
    r"""A completed matrix :math:`\hat A = U V^\top + b 1^\top + 1 c^\top + \mu`, kept in factors.

    Parameters
    ----------
    left : ndarray of shape (m, k)
    right : ndarray of shape (n, k)
    row_offset : ndarray of shape (m,), optional
    col_offset : ndarray of shape (n,), optional
    offset : float
    row_cov, col_cov : ndarray of shape (m, q, q) and (n, q, q), optional
        Posterior covariance of each row's :math:`(u_i, b_i)` and each column's :math:`(v_j, c_j)`,
        q = k + 1, the bias last.
    noise_variance : float
        Variance of a new measurement about the entry.
    lack_variance : float
        Variance of the entries about the factors (lack of fit), where it can be told from noise.
    row_prior_mean, row_prior_cov, col_prior_mean, col_prior_cov : ndarray of shape (q,) and (q, q), optional
        What a row or column looks like before anything of it is known; :meth:`fold_in` starts from it.
    row_counts, col_counts : ndarray of int64 of shape (m,) and (n,), optional
        Observations the fit had of each line; where it is 0 the line's entries are the prior's, not the data's.
    scores : ndarray of shape (c,), optional
        Sorted conformal scores of held-out entries; see :mod:`entrywise.intervals`.
    count_edges, count_factors : ndarray of shape (g - 1,) and (g,), optional
        By how much the deviations of rows with few, more, ... observations are corrected, and where the groups part.
    row_labels, col_labels : tuple of str, optional

    Examples
    --------
    >>> found = LowRank(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]]))
    >>> found.entry(1, 0), found.shape, found.rank
    (6.0, (2, 2), 1)
    """

    left: Array
    right: Array
    row_offset: Array | None = None
    col_offset: Array | None = None
    offset: float = 0.0
    row_cov: Array | None = None
    col_cov: Array | None = None
    noise_variance: float = 0.0
    lack_variance: float = 0.0
    row_prior_mean: Array | None = None
    row_prior_cov: Array | None = None
    col_prior_mean: Array | None = None
    col_prior_cov: Array | None = None
    row_counts: Indices | None = None
    col_counts: Indices | None = None
    scores: Array | None = None
    count_edges: Array | None = None
    count_factors: Array | None = None
    row_labels: tuple[str, ...] | None = None
    col_labels: tuple[str, ...] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (m, n) of the matrix."""
        return len(self.left), len(self.right)

    @property
    def rank(self) -> int:
        """Number of components, offsets not counted."""
        return int(self.left.shape[1])

    def entries(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the completed entries at (rows, cols), shapes broadcast."""
        i, j = self._where(rows, cols)
        found = np.einsum("...k,...k->...", self.left[i], self.right[j]) + self.offset
        if self.row_offset is not None:
            found = found + self.row_offset[i]
        if self.col_offset is not None:
            found = found + self.col_offset[j]
        return np.asarray(found)

    def variance(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        r"""Return the posterior variance of the entries at (rows, cols), shapes broadcast.

        .. math:: \tilde v^\top C^u \tilde v + \tilde u^\top C^v \tilde u + \mathrm{tr}(C^u C^v),
           \qquad \tilde v = (v, 1), \ \tilde u = (u, 1)

        with the trace over the k components. Neither noise nor lack of fit is in it.
        """
        if self.row_cov is None or self.col_cov is None:
            raise ParameterError("variance needs row_cov and col_cov; fit with low_rank, which keeps them")
        i, j = self._where(rows, cols)
        return posterior.entry_variance(self.left, self.right, self.row_cov, self.col_cov, i, j)

    def _all_variances(self) -> Array:
        """Return :meth:`variance` of every entry by matrix products, shape (m, n); zeros without a posterior."""
        (m, n), k = self.shape, self.rank
        if self.row_cov is None or self.col_cov is None:
            return np.zeros((m, n))
        sides = []
        for factor, cov in ((self.left, self.row_cov), (self.right, self.col_cov)):
            x = np.column_stack([factor, np.ones(len(factor))])
            sides.append(((x[:, :, None] * x[:, None, :]).reshape(len(x), -1), cov))
        (gg, Cu), (aa, Cv) = sides
        found = Cu.reshape(m, -1) @ aa.T + gg @ Cv.reshape(n, -1).T
        found += Cu[:, :k, :k].reshape(m, -1) @ Cv[:, :k, :k].reshape(n, -1).T
        return np.asarray(np.maximum(found, 0.0))

    def interval(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        level: float = 0.9,
        of: Literal["answer", "truth"] = "answer",
        noise: ArrayLike | None = None,
    ) -> Interval:
        """Return intervals for the entries at (rows, cols), shapes broadcast.

        Parameters
        ----------
        level : float
            Share of the intervals that should cover, above 0 and below 1.
        of : {"answer", "truth"}
            ``answer`` covers a new measurement of the entry, ``truth`` the entry itself.
        noise : float or array, optional
            Standard deviation of the instrument that will answer; else that of the fit.

        With held-out ``scores`` the width is their conformal quantile times the entry's own standard deviation
        (one width for all when there is no posterior); without them, or when there are too few for the level, it is
        Gaussian. Conformal intervals are for answers; those of the truth are only widened by as much as the
        scores exceed the Gaussian.
        """
        if not 0 < level < 1:
            raise ParameterError(f"level of interval must be above 0 and below 1, got {level}")
        if of not in ("answer", "truth"):
            raise ParameterError(f"of must be 'answer' or 'truth', got {of!r}")
        if self.row_cov is None and self.scores is None:
            raise ParameterError(
                "this result has no uncertainty; complete with low_rank, or calibrate it with entrywise.intervals.conformal"
            )
        middle = self.entries(rows, cols)
        width = self.deviation(rows, cols, of, noise) * posterior.factor(self.scores, level, of == "truth")
        return Interval(middle - width, middle + width)

    def deviation(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        of: Literal["answer", "truth"] = "answer",
        noise: ArrayLike | None = None,
    ) -> Array:
        """Return the standard deviation of an answer (or of the true entry) about the completed entry.

        Ones when the result has no posterior: conformal scores are then plain residuals. Corrected for rows with few
        observations where held-out entries showed the need.
        """
        i, j = self._where(rows, cols)
        factor: Array = np.ones(i.shape)
        if self.count_edges is not None and self.count_factors is not None and self.row_counts is not None:
            factor = np.asarray(self.count_factors[np.searchsorted(self.count_edges, self.row_counts[i], side="right")])
        if self.row_cov is None:
            return factor
        spread = self.variance(i, j) + self.lack_variance
        if of == "answer":
            spread = spread + (self.noise_variance if noise is None else np.asarray(noise, np.float64) ** 2)
        return np.asarray(np.sqrt(spread) * factor)

    def fold_in(self, observations: Observations, axis: Literal["rows", "columns"] = "rows") -> LowRank:
        """Return new rows (or columns) completed from their own observations, without refitting.

        Parameters
        ----------
        observations : Observations
            Of shape (r, n): r new rows over the columns of this matrix; (m, c) for new columns. Where both have
            labels on the shared axis they are matched by label.

        Returns
        -------
        LowRank
            The new lines alone, shape (r, n) or (m, c), with their posterior; this result is left as it is.
        """
        if axis not in ("rows", "columns"):
            raise ParameterError(f"axis of fold_in must be 'rows' or 'columns', got {axis!r}")
        by_row = axis == "rows"
        mine, theirs = (
            (self.col_labels, observations.col_labels) if by_row else (self.row_labels, observations.row_labels)
        )
        new, shared = (observations.rows, observations.cols) if by_row else (observations.cols, observations.rows)
        size = self.shape[1 if by_row else 0]
        if mine is not None and theirs is not None and mine != theirs:
            code = posterior.lookup(theirs, mine, "column" if by_row else "row")
            shared = code[shared]
        elif observations.shape[1 if by_row else 0] != size:
            what = f"(new rows, {size})" if by_row else f"({size}, new columns)"
            raise DataError(f"observations to fold in must have shape {what}, got {observations.shape}")
        factor, bias, cov, prior_mean, prior_cov = (
            (self.right, self.col_offset, self.col_cov, self.row_prior_mean, self.row_prior_cov)
            if by_row
            else (self.left, self.row_offset, self.row_cov, self.col_prior_mean, self.col_prior_cov)
        )
        if prior_mean is None or prior_cov is None:
            raise ParameterError("this result cannot fold in: it keeps no prior; complete with low_rank or soft_impute")
        lines = observations.shape[0 if by_row else 1]
        order = np.argsort(new, kind="stable")
        j = shared[order]
        residual = observations.values[order] - self.offset - (0.0 if bias is None else bias[j])
        spread = (
            np.full(len(j), self.noise_variance)
            if observations.noise is None
            else observations.noise_array()[order] ** 2
        )
        spread = np.maximum(spread + self.lack_variance, 1e-300)
        pointer = np.searchsorted(new[order], np.arange(lines + 1))
        mean, new_cov = posterior.fold(pointer, j, residual, spread, factor, cov, prior_mean, prior_cov)
        changed = (
            ("left", "row_offset", "row_cov", "row_counts", "row_labels")
            if by_row
            else ("right", "col_offset", "col_cov", "col_counts", "col_labels")
        )
        values = (
            np.ascontiguousarray(mean[:, :-1]),
            mean[:, -1].copy(),
            None if cov is None else new_cov,
            np.diff(pointer),
            observations.row_labels if by_row else observations.col_labels,
        )
        new_fields: dict[str, Any] = dict(zip(changed, values, strict=True))
        return replace(self, **new_fields, report={"method": "fold-in", "lines": lines})

    def locate(self, rows: Sequence[str], cols: Sequence[str]) -> tuple[Indices, Indices]:
        """Return the indices of labelled entries; a label that is not there is refused."""
        found = []
        for axis, asked, labels in (("row", rows, self.row_labels), ("column", cols, self.col_labels)):
            if labels is None:
                raise ParameterError(f"the {axis}s of this result have no labels; ask by index")
            found.append(posterior.lookup(asked, labels, axis))
        return found[0], found[1]

    def __matmul__(self, x: ArrayLike) -> Array:
        X = np.asarray(x, dtype=np.float64)
        found = self.left @ (self.right.T @ X) + self.offset * X.sum(axis=0)
        if self.row_offset is not None:
            found = found + (np.multiply.outer(self.row_offset, X.sum(axis=0)))
        if self.col_offset is not None:
            found = found + self.col_offset @ X
        return np.asarray(found)


@dataclass(frozen=True, eq=False, repr=False)
class Corrected(LowRank):
    r"""A low-rank matrix corrected where entries were seen: what the factors do not explain of them is kept.

    An entry is :math:`u_i \cdot v_j` plus lack of fit of variance :math:`t^2`; seen as y with noise variance
    :math:`s^2` it becomes :math:`f + \frac{t^2}{t^2 + s^2} (y - f)`, f what the factors say. Make one with :meth:`of`.

    Parameters
    ----------
    seen : ndarray of int64 of shape (t,)
        Entries that were seen, as ``row * n + col``, in order.
    shift, seen_variance : ndarray of shape (t,)
        What is added to the factors there, and the variance of the true entry about the sum.
    """

    seen: Indices = field(default_factory=lambda: np.zeros(0, np.int64))
    shift: Array = field(default_factory=lambda: np.zeros(0))
    seen_variance: Array = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, found: LowRank, observations: Observations) -> Corrected:
        """Return `found` corrected at its observations, which must carry their noise and list no entry twice."""
        n = found.shape[1]
        at = observations.rows * n + observations.cols
        order = np.argsort(at, kind="stable")
        i, j = observations.rows[order], observations.cols[order]
        s2 = observations.noise_array()[order] ** 2
        t2 = found.lack_variance
        keep = s2 / np.maximum(t2 + s2, 1e-300)  # share of the factors in the corrected entry
        if 5 * len(i) > found.shape[0] * n:  # many: matrix products over the whole are faster than picking entries
            fitted, own = found.to_dense()[i, j], found._all_variances()[i, j]
        else:
            fitted, own = found.entries(i, j), found.variance(i, j) if found.row_cov is not None else np.zeros(len(i))
        shift = (1.0 - keep) * (observations.values[order] - fitted)
        fields_of = {f.name: getattr(found, f.name) for f in fields(found)}
        return cls(**fields_of | {"seen": at[order], "shift": shift, "seen_variance": keep**2 * own + keep * t2})

    def plain(self) -> LowRank:
        """Return the factors alone."""
        return LowRank(**{f.name: getattr(self, f.name) for f in fields(LowRank)})

    def _look_up(self, i: Indices, j: Indices) -> tuple[NDArray[np.bool_], Indices]:
        flat = i * self.shape[1] + j
        at = np.minimum(np.searchsorted(self.seen, flat), max(len(self.seen) - 1, 0))
        return (self.seen[at] == flat if len(self.seen) else np.zeros(flat.shape, bool)), at

    def entries(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the completed entries at (rows, cols), shapes broadcast."""
        found = np.array(super().entries(rows, cols))
        hit, at = self._look_up(*self._where(rows, cols))
        found[hit] += self.shift[at[hit]]
        return found

    def deviation(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        of: Literal["answer", "truth"] = "answer",
        noise: ArrayLike | None = None,
    ) -> Array:
        """Return the standard deviation of an answer (or of the true entry) about the completed entry."""
        spread = np.array(super().deviation(rows, cols, of, noise))
        i, j = self._where(rows, cols)
        hit, at = self._look_up(i, j)
        if self.row_cov is not None and hit.any():
            added: Any = 0.0
            if of == "answer":
                added = (
                    self.noise_variance
                    if noise is None
                    else np.broadcast_to(np.asarray(noise, float), i.shape)[hit] ** 2
                )
            spread[hit] = np.sqrt(self.seen_variance[at[hit]] + added)
        return spread

    def fold_in(self, observations: Observations, axis: Literal["rows", "columns"] = "rows") -> LowRank:
        """Return new rows (or columns) completed from their own observations; see :meth:`LowRank.fold_in`."""
        return self.plain().fold_in(observations, axis)

    def __matmul__(self, x: ArrayLike) -> Array:
        found = np.array(super().__matmul__(x))
        i, j = np.divmod(self.seen, self.shape[1])
        X = np.asarray(x, dtype=np.float64)
        np.add.at(found, i, (self.shift * X[j].T).T)
        return found


@dataclass(frozen=True, eq=False, repr=False)
class PSDFactor(Matrix):
    r"""A positive semidefinite matrix :math:`\hat A = F F^\top` of side n.

    Parameters
    ----------
    factor : ndarray of shape (n, k)
    pivots : ndarray of int64 of shape (k,)
        Columns that were asked, in the order in which they were chosen.
    residual : ndarray of shape (n,), optional
        Diagonal of what the factor leaves unexplained; NaN where the diagonal was not asked.
    """

    factor: Array
    pivots: Indices = field(default_factory=lambda: np.zeros(0, np.int64))
    residual: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (n, n) of the matrix."""
        return (len(self.factor),) * 2

    @property
    def rank(self) -> int:
        """Number of columns of the factor."""
        return int(self.factor.shape[1])

    def entries(self, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the completed entries at (rows, cols), shapes broadcast."""
        i, j = self._where(rows, cols)
        return np.asarray(np.einsum("...k,...k->...", self.factor[i], self.factor[j]))

    def __matmul__(self, x: ArrayLike) -> Array:
        return np.asarray(self.factor @ (self.factor.T @ np.asarray(x, dtype=np.float64)))


@dataclass(frozen=True, eq=False, repr=False)
class Subspace(Result):
    r"""A k-dimensional subspace of :math:`R^d` near which samples lie, with the spectrum it was taken from.

    Parameters
    ----------
    components : ndarray of shape (k, d)
        Orthonormal rows, strongest first; the largest loading of each is positive.
    explained_variance : ndarray of shape (k,)
        Variance (second moment, when no mean was taken out) along each component.
    mean : ndarray of shape (d,)
        What is subtracted before projecting; zeros when samples were not centred.
    spectrum : ndarray of shape (d,)
        All eigenvalues, largest first.

    Examples
    --------
    >>> line = Subspace(np.array([[0.6, 0.8]]), np.array([4.0]), np.zeros(2), np.array([4.0, 1.0]))
    >>> line.transform([[3.0, 4.0], [3.0, np.nan]]).round(3).tolist()
    [[5.0], [3.462]]
    >>> round(line.captured(np.diag([0.0, 1.0])), 2)
    0.64
    """

    components: Array
    explained_variance: Array
    mean: Array
    spectrum: Array

    @property
    def k(self) -> int:
        """Dimension of the subspace."""
        return int(self.components.shape[0])

    @property
    def d(self) -> int:
        """Attributes of a sample."""
        return int(self.components.shape[1])

    @property
    def explained_variance_ratio(self) -> Array:
        """Share of all variance along each component."""
        total = float(self.spectrum.sum())
        return self.explained_variance / total if total > 0 else np.zeros(self.k)

    @property
    def noise_variance(self) -> float:
        """Mean variance along the directions left out."""
        rest = self.spectrum[self.k :]
        return float(rest.mean()) if len(rest) else 0.0

    def projection(self) -> Array:
        """Return the projection onto the subspace, shape (d, d)."""
        return np.asarray(self.components.T @ self.components)

    def captured(self, covariance: ArrayLike) -> float:
        """Return the share of the best k-dimensional energy of `covariance` that the subspace captures."""
        C = np.asarray(covariance, dtype=np.float64)
        best = float(np.linalg.eigvalsh(C)[-self.k :].sum())
        return float(np.einsum("kd,de,ke->", self.components, C, self.components)) / best if best > 0 else 1.0

    def transform(self, X: Any) -> Array:
        r"""Return the scores of partly seen samples, shape (n, k); NaN, or what is not stored, was not seen.

        With :math:`V` the components, o the attributes seen, :math:`\Lambda` their variances and
        :math:`\sigma^2` the noise variance, the score is the regularised least squares fit

        .. math:: z = \Lambda (\sigma^2 I + V_o V_o^\top (\Lambda - \sigma^2 I))^{-1} V_o (x_o - \mu_o),

        the conditional mean of the plain projection under a Gaussian with this spectrum: a sample seen whole
        gets :math:`V (x - \mu)`, one of which nothing was seen gets 0.
        """
        V, k = self.components, self.k
        centred, seen, whole = self._centred(X)
        b = np.asarray(centred @ V.T)  # (n, k)
        part = np.flatnonzero(~whole)
        if not len(part):
            return b
        scale = float(self.explained_variance.max(initial=0.0))
        if scale <= 0:
            b[part] = 0.0
            return b
        noise = max(self.noise_variance, 1e-8 * scale) / scale  # round-off must not be fitted
        variance = np.maximum(self.explained_variance / scale, noise)
        outer = (V.T[:, :, None] * V.T[:, None, :]).reshape(self.d, k * k)
        for start in range(0, len(part), max(1, 2**22 // (k * k))):
            i = part[start : start + max(1, 2**22 // (k * k))]
            G = np.asarray(seen[i] @ outer).reshape(len(i), k, k)
            G = G * (variance - noise) + noise * np.eye(k)
            b[i] = variance * np.linalg.solve(G, b[i][:, :, None])[:, :, 0]
        return b

    def _centred(self, X: Any) -> tuple[Any, Any, NDArray[np.bool_]]:
        """Return the seen attributes less their mean, where they are seen, and which samples are seen whole."""
        if not hasattr(X, "tocsr"):
            X = np.ma.filled(np.ma.asarray(X).astype(float), np.nan) if np.ma.isMA(X) else np.asarray(X, float)
        if X.ndim != 2 or X.shape[1] != self.d:
            raise DataError(f"samples must be an array with one row a sample and {self.d} columns, got {X.shape}")
        if isinstance(X, np.ndarray):
            known = ~np.isnan(X)
            return np.where(known, X - self.mean, 0.0), known.astype(np.float64), np.asarray(known.all(axis=1))
        centred = X.tocsr().astype(np.float64, copy=True)
        seen = centred.copy()
        seen.data = np.ones_like(centred.data)
        centred.data -= self.mean[centred.indices]
        return centred, seen, np.diff(centred.indptr) == self.d

    def inverse_transform(self, scores: ArrayLike) -> Array:
        """Return the samples that scores stand for, shape (n, d)."""
        return np.asarray(np.asarray(scores, dtype=np.float64) @ self.components + self.mean)
