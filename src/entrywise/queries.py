"""What may be asked and what it costs: ``Batch``, ``Prices``, ``Plan``, ``Checkpoint``.

A batch plan is a generator: it yields a :class:`Batch` and is sent the answers, one float64 a
position. A streaming plan is one pure step: it takes a :class:`Situation` and returns the next
batch, or its result. The :func:`plan` decorator turns either function into a maker of frozen
:class:`Plan` values that can be started any number of times, always alike.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from entrywise.exceptions import ParameterError
from entrywise.observations import Observations
from entrywise.types import Array, Indices

R = TypeVar("R")


# what a batch may say of each of its positions
_OPTIONAL: Mapping[str, type] = {
    "unit": np.int64,
    "arm": np.str_,
    "probability": np.float64,
    "expected": np.float64,
    "deviation": np.float64,
    "plate": np.int64,
    "well": np.str_,
}
REPEATS = (
    "control",
    "replicate",
)  # arms that measure an entry once more, whatever was asked before


@dataclass(frozen=True, eq=False)
class Batch:
    """Entries wanted next, as a flat list of measurements.

    Parameters
    ----------
    rows, cols : ndarray of int64 of shape (b,)
        0-based positions. An entry listed k times is measured k times.
    mode : str
        The instrument that measures them; it has its own price.
    unit : ndarray of int64 of shape (b,), optional
        Positions with the same unit are bought together and charged once (a whole column, say).
    arm : ndarray of str of shape (b,), optional
        Which rule wanted the entry (greedy, explore, reserve, ...).
    probability : ndarray of shape (b,), optional
        Probability with which the rule drew the entry.
    expected, deviation : ndarray of shape (b,), optional
        What the plan expects as the answer, and the standard deviation of that guess.
    plate : ndarray of int64 of shape (b,), optional
        Positions on the same plate are measured together; each is paid by itself.
    well : ndarray of str of shape (b,), optional
        Where on its plate a position is measured: A01, ..., H12.
    report : mapping
        A few plain numbers and words about the moment of asking; stored with the step.
    """

    rows: Indices
    cols: Indices
    mode: str = "entry"
    unit: Indices | None = None
    arm: NDArray[np.str_] | None = None
    probability: Array | None = None
    expected: Array | None = None
    deviation: Array | None = None
    plate: Indices | None = None
    well: NDArray[np.str_] | None = None
    report: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows, cols = (np.asarray(x, dtype=np.int64) for x in (self.rows, self.cols))
        if rows.ndim != 1 or rows.shape != cols.shape:
            raise ParameterError(
                f"rows and cols of a Batch must be flat and equally long, got {rows.shape} and {cols.shape}"
            )
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "cols", cols)
        for name, dtype in _OPTIONAL.items():
            given = getattr(self, name)
            if given is None:
                continue
            given = np.asarray(given, dtype=dtype)
            if given.shape != rows.shape:
                raise ParameterError(
                    f"{name} of a Batch must have one value a position, "
                    f"got {given.shape} for {len(rows)}"
                )
            object.__setattr__(self, name, given)

    @classmethod
    def empty(cls, **extra: Any) -> Batch:
        """Return a batch that asks for nothing."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), **extra)

    @classmethod
    def entries(cls, rows: ArrayLike, cols: ArrayLike, **extra: Any) -> Batch:
        """Return a batch of single entries."""
        return cls(
            np.atleast_1d(np.asarray(rows, np.int64)),
            np.atleast_1d(np.asarray(cols, np.int64)),
            **extra,
        )

    @classmethod
    def diagonal(cls, n: int) -> Batch:
        """Return the n diagonal entries."""
        return cls(np.arange(n), np.arange(n))

    @classmethod
    def column(cls, j: int, n: int) -> Batch:
        """Return the n entries of column j, each charged as an entry."""
        return cls(np.arange(n), np.broadcast_to(np.int64(j), (n,)))

    @classmethod
    def columns(cls, cols: Iterable[int], n: int) -> Batch:
        """Return the entries of several columns, one column after the other, each charged as an entry."""
        cols = np.asarray(list(cols), np.int64)
        return cls(np.tile(np.arange(n), len(cols)), np.repeat(cols, n))

    @classmethod
    def whole_columns(cls, cols: Iterable[int], m: int, mode: str = "column") -> Batch:
        """Return whole columns as units: m positions each, charged once under `mode`."""
        cols = np.asarray(list(cols), np.int64)
        return cls(
            np.tile(np.arange(m), len(cols)),
            np.repeat(cols, m),
            mode,
            unit=np.repeat(np.arange(len(cols)), m),
        )

    @classmethod
    def block(cls, rows: ArrayLike, cols: ArrayLike) -> Batch:
        """Return all pairs of rows x cols, row by row."""
        rows, cols = np.asarray(rows, np.int64), np.asarray(cols, np.int64)
        return cls(np.repeat(rows, len(cols)), np.tile(cols, len(rows)))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, positions: Any) -> Batch:
        """Return the batch at some positions only."""
        given = {name: getattr(self, name) for name in _OPTIONAL}
        picked = {name: x[positions] for name, x in given.items() if x is not None}
        return Batch(
            self.rows[positions], self.cols[positions], self.mode, report=self.report, **picked
        )

    def same_as(self, other: Batch) -> bool:
        """Tell whether two batches ask for the same measurements in the same order."""
        units = self.unit is None and other.unit is None
        if self.unit is not None and other.unit is not None:
            units = np.array_equal(self.unit, other.unit)
        return (
            self.mode == other.mode
            and units
            and np.array_equal(self.rows, other.rows)
            and np.array_equal(self.cols, other.cols)
        )


Price: TypeAlias = float | Array | Callable[[Indices, Indices], ArrayLike]


@dataclass(frozen=True, init=False)
class Prices:
    """Quotes, fixed before asking: what one unit costs in each mode.

    A price is a number, anything that broadcasts to (m, n) ((m, 1) per row, (1, n) per column), or
    a function ``f(rows, cols)``. A unit of several positions is charged once, at its first position.

    >>> Prices(column=16).of("column", [0], [3])
    array([16.])
    """

    modes: Mapping[str, Price]

    def __init__(self, entry: Any = 1.0, column: Any = None, **others: Any) -> None:
        given = {"entry": entry, "column": column, **others}
        modes: dict[str, Price] = {}
        for mode, price in given.items():
            if price is None:
                continue
            if callable(price):
                modes[mode] = price
                continue
            array = np.asarray(price, dtype=np.float64)
            if array.ndim > 2 or not np.all(np.isfinite(array)) or not np.all(array > 0):
                what = array.ravel()[~(np.isfinite(array) & (array > 0)).ravel()][:1]
                raise ParameterError(
                    f"the price of {mode} must be finite and above 0, got {float(what[0]) if len(what) else array.shape}"
                )
            modes[mode] = float(array) if array.ndim == 0 else array
        object.__setattr__(self, "modes", modes)

    def of(self, mode: str, rows: ArrayLike, cols: ArrayLike) -> Array:
        """Return the price of a unit at each position, shape (b,)."""
        if mode not in self.modes:
            raise ParameterError(
                f"no price was given for {mode}; prices are known for {', '.join(self.modes)}: add {mode}="
            )
        rows, cols = np.asarray(rows, np.int64), np.asarray(cols, np.int64)
        price = self.modes[mode]
        if callable(price):
            found = np.broadcast_to(np.asarray(price(rows, cols), dtype=np.float64), rows.shape)
            if not np.all(np.isfinite(found) & (found > 0)):
                raise ParameterError(
                    f"the price of {mode} must be finite and above 0, its function gave {found.min()}"
                )
            return found
        if isinstance(price, float):
            return np.full(rows.shape, price)
        grid = price.reshape(1, -1) if price.ndim == 1 else price
        i = rows if grid.shape[0] > 1 else np.zeros_like(rows)
        j = cols if grid.shape[1] > 1 else np.zeros_like(cols)
        if len(rows) and (i.max() >= grid.shape[0] or j.max() >= grid.shape[1]):
            raise ParameterError(
                f"prices of {mode} have shape {price.shape}, entry ({rows.max()}, {cols.max()}) lies outside"
            )
        return np.asarray(grid[i, j])

    def charges(self, batch: Batch, free: NDArray[np.bool_] | None = None) -> Array:
        """Return what each position of `batch` adds to the bill, shape (b,).

        A unit is charged at its first position that is not `free`, and not at all when there is none.
        """
        price = self.of(batch.mode, batch.rows, batch.cols)
        if batch.unit is None:
            return price if free is None else np.where(free, 0.0, price)
        order = np.arange(len(batch)) if free is None else np.argsort(free, kind="stable")
        _, first = np.unique(batch.unit[order], return_index=True)
        first = order[first]  # each unit's first position that is not free, if it has one
        if free is not None:
            first = first[~free[first]]
        bill = np.zeros(len(batch))
        bill[first] = price[first]
        return bill

    def to_json(self) -> dict[str, Any]:
        """Return the prices as plain JSON; prices given by a function cannot be written down."""
        for mode, price in self.modes.items():
            if callable(price):
                raise ParameterError(
                    f"the price of {mode} is a function, which cannot be stored; give a number or an array"
                )
        return {
            mode: price.tolist() if isinstance(price, np.ndarray) else price
            for mode, price in self.modes.items()
        }

    @classmethod
    def from_json(cls, modes: Mapping[str, Any]) -> Prices:
        """Return the prices that :meth:`to_json` wrote."""
        return cls(**{"entry": None, **modes})


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A place to resume a long plan: arrays, and the generator's state as it was."""

    arrays: Mapping[str, NDArray[Any]]
    rng: np.random.Generator | None = None

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "arrays", {name: np.array(array) for name, array in self.arrays.items()}
        )
        object.__setattr__(self, "rng", copy.deepcopy(self.rng))

    def generator(self) -> np.random.Generator:
        """Return a copy of the generator, in the state in which it was kept."""
        if self.rng is None:
            raise ParameterError(
                "this checkpoint was kept without a generator; yield Checkpoint(arrays, rng)"
            )
        return copy.deepcopy(self.rng)

    def rng_state(self) -> dict[str, Any] | None:
        """Return the generator's state as plain JSON."""
        return None if self.rng is None else dict(self.rng.bit_generator.state)

    @classmethod
    def restore(
        cls, arrays: Mapping[str, NDArray[Any]], rng_state: Mapping[str, Any] | None
    ) -> Checkpoint:
        """Return the checkpoint whose arrays and :meth:`rng_state` were stored."""
        if rng_state is None:
            return cls(arrays)
        bits = getattr(np.random, str(rng_state["bit_generator"]))()
        bits.state = dict(rng_state)
        return cls(arrays, np.random.Generator(bits))


# kind of each column of a history, and what stands in it where nothing was given
_COLUMNS: Mapping[str, tuple[type, Any]] = {
    "rows": (np.int64, None),
    "cols": (np.int64, None),
    "values": (np.float64, None),
    "mode": (np.str_, "entry"),
    "arm": (np.str_, ""),
    "unit": (np.int64, -1),
    "epoch": (np.int64, 0),
    "noise": (np.float64, np.nan),
    "probability": (np.float64, np.nan),
    "price": (np.float64, np.nan),
    "known": (np.bool_, False),
    "plate": (np.int64, -1),
}
_FILLED: Any = None


@dataclass(frozen=True, eq=False)
class History:
    """What is known, was told, or is still out: a table with one row a measurement, by columns.

    Parameters
    ----------
    rows, cols : ndarray of int64 of shape (t,)
    values : ndarray of shape (t,)
        NaN where the measurement failed, or where it has not come yet.
    mode, arm : ndarray of str of shape (t,)
        The instrument; the rule that wanted the entry, "" where none is named.
    unit, plate, epoch : ndarray of int64 of shape (t,)
        What was bought together and what was measured together (-1: alone); the epoch of a study in
        which it was told.
    noise, probability, price : ndarray of shape (t,)
        Standard deviation, chance with which it was drawn, what was charged; NaN where nobody said.
    known : ndarray of bool of shape (t,)
        Known beforehand: neither bought nor part of a reserve. The others were told.

    Only ``rows``, ``cols`` and ``values`` must be given; the rest is filled in.
    """

    rows: Indices
    cols: Indices
    values: Array
    mode: NDArray[np.str_] = _FILLED
    arm: NDArray[np.str_] = _FILLED
    unit: Indices = _FILLED
    epoch: Indices = _FILLED
    noise: Array = _FILLED
    probability: Array = _FILLED
    price: Array = _FILLED
    known: NDArray[np.bool_] = _FILLED
    plate: Indices = _FILLED

    def __post_init__(self) -> None:
        size = np.atleast_1d(np.asarray(self.rows)).shape
        for name, (kind, otherwise) in _COLUMNS.items():
            given = getattr(self, name)
            column = np.full(size, otherwise) if given is None else np.atleast_1d(given)
            column = np.array(column, dtype=kind)
            if column.shape != size:
                raise ParameterError(
                    f"{name} of a history must have shape {size}, got {column.shape}"
                )
            column.flags.writeable = False
            object.__setattr__(self, name, column)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: Any) -> History:
        """Return some of its rows, by a mask, indices or a slice."""
        return History(**{f.name: getattr(self, f.name)[at] for f in fields(self)})

    def __add__(self, other: History) -> History:
        """Return the rows of both, one after the other."""
        both = {
            f.name: np.concatenate([getattr(self, f.name), getattr(other, f.name)])
            for f in fields(self)
        }
        return History(**both)

    @classmethod
    def empty(cls) -> History:
        """Return a table without rows."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))

    @classmethod
    def of(cls, known: Observations) -> History:
        """Return observations as entries known beforehand, which cost nothing."""
        return cls(
            known.rows,
            known.cols,
            known.values,
            noise=known.noise_array(default=np.nan),
            price=np.zeros(len(known)),
            known=np.ones(len(known), bool),
        )

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Where there is no value."""
        return np.isnan(self.values)


@dataclass(frozen=True, eq=False)
class Situation:
    """All that one step of a streaming plan may look at.

    Parameters
    ----------
    step, epoch : int
        Number of the step, through the whole study; epoch of the study.
    facts : History
        What is known and what was told, in the order in which it was asked (known first).
    pending : History
        What was asked and has no answer yet; its values are NaN.
    left : float, optional
        Money that is neither spent nor held by what is pending; None where there is no budget.
    rows, cols : ndarray of int64, optional
        The only lines that this step may ask for; None: all.
    limit : int, optional
        The most cells that this step may ask for.
    dropped_rows, dropped_cols : ndarray of int64, optional
        Lines that no step asks for any more; what is known of them stays.
    seed : int
        The plan's seed, for what must not change from step to step; :meth:`Plan.step` sets it.
    """

    step: int = 0
    epoch: int = 0
    facts: History = field(default_factory=History.empty)
    pending: History = field(default_factory=History.empty)
    left: float | None = None
    rows: Indices | None = None
    cols: Indices | None = None
    limit: int | None = None
    dropped_rows: Indices | None = None
    dropped_cols: Indices | None = None
    seed: int = 0

    @property
    def filtered(self) -> bool:
        """Whether this step may ask for some lines only."""
        return self.rows is not None or self.cols is not None

    def allows(self, rows: Indices, cols: Indices) -> NDArray[np.bool_]:
        """Tell which entries the filter lets through and nobody dropped."""
        found = np.ones(len(rows), dtype=bool)
        for index, allowed in ((rows, self.rows), (cols, self.cols)):
            if allowed is not None:
                found &= np.isin(index, allowed)
        for index, dropped in ((rows, self.dropped_rows), (cols, self.dropped_cols)):
            if dropped is not None:
                found &= ~np.isin(index, dropped)
        return found


Asking: TypeAlias = Generator[Batch | Checkpoint, Array, R]


@dataclass(frozen=True, eq=False)
class Plan:
    """An active algorithm with its parameters, ready to start any number of times, always alike.

    ``params`` are the arguments as given, defaults filled in; ``size`` names the first of them, which
    says how large the matrix is.

    ============================  ==================================================================
    ``symmetric``                 (i, j) and (j, i) are one entry
    ``fresh``                     a new measurement is wanted each time an entry is asked
    ``tolerates_failed``          it is sent NaN where a measurement failed
    ``history``                   it fits with what is known from its first step
    ``streaming``                 a step is a function of a :class:`Situation`; nobody waits
    ``resumable``                 it keeps checkpoints
    ============================  ==================================================================
    """

    name: str
    function: Callable[..., Any]
    params: Mapping[str, Any]
    size: str = "shape"
    symmetric: bool = False
    fresh: bool = False
    tolerates_failed: bool = False
    history: bool = False
    streaming: bool = False
    resumable: bool = False
    _state: np.random.Generator | None = field(default=None, repr=False)

    @property
    def budget(self) -> float | None:
        """What the plan was told to plan with, if anything."""
        return self.params.get("budget")

    @property
    def prices(self) -> Prices | None:
        """The prices the plan was given, if any."""
        return self.params.get("prices")

    @property
    def shape(self) -> tuple[int | None, int] | None:
        """Shape of the unknown matrix, told by the plan's first parameter.

        A pair (m, n), or a number: the side of a symmetric matrix, the attributes of fresh samples (None, d).
        """
        size = self.params.get(self.size)
        if isinstance(size, int | np.integer) and not isinstance(size, bool):
            return (int(size) if self.symmetric else None, int(size))
        if isinstance(size, tuple | list) and len(size) == 2:
            return (size[0], size[1])
        return None

    @property
    def seed(self) -> int:
        """The seed as a number; of a plan that was given a Generator, one drawn from a copy of it."""
        given = self.params.get("rng")
        if isinstance(given, int | np.integer):
            return int(given)
        if self._state is None:
            return 0
        return int(copy.deepcopy(self._state).integers(2**63))

    def start(
        self,
        resume: Checkpoint | None = None,
        history: History | None = None,
        epoch: int = 0,
        left: float | None = None,
    ) -> Asking[Any]:
        """Return a new generator, at the beginning or at a checkpoint.

        A plan that takes `history` draws in epoch e > 0 from (seed, e) and plans with the money
        `left`; one that does not starts as ever, from the seed itself with all of its budget, and
        finds again in memory what it asks again.
        """
        if self.streaming:
            raise ParameterError(f"{self.name} is a streaming plan; it is not started, call step()")
        fresh_draw = self.history and epoch > 0
        params = self._drawing([self.seed, epoch] if fresh_draw else None)
        if self.history:
            params["history"] = History.empty() if history is None else history
            if epoch > 0 and left is not None and "budget" in params:
                params["budget"] = left
        if resume is not None:
            if not self.resumable:
                raise ParameterError(
                    f"{self.name} keeps no checkpoints; start it from the beginning"
                )
            params["resume"] = resume
        asking: Asking[Any] = self.function(**params)
        return asking

    def _drawing(self, seed: list[int] | None) -> dict[str, Any]:
        """Return the parameters with a generator of their own, of the plan's seed when none is named."""
        params = dict(self.params)
        if "rng" in params and seed is not None:
            params["rng"] = np.random.default_rng(seed)
        elif "rng" in params:
            params["rng"] = copy.deepcopy(self._state)
        return params

    def __iter__(self) -> Asking[Any]:
        return self.start()

    def step(self, situation: Situation) -> Any:
        """Return what a streaming plan does next: a Batch of what it wants, or its Result.

        A pure function: the same situation gives the same answer, drawn from (seed, step). A batch
        that is empty asks for nothing now. The plan ends only when nothing is pending and no line is
        left out: a result that comes earlier becomes an empty batch.
        """
        if not self.streaming:
            raise ParameterError(f"{self.name} is a batch plan; it has no steps, call start()")
        params = self._drawing([self.seed, situation.step])
        found = self.function(**params, situation=replace(situation, seed=self.seed))
        if isinstance(found, Batch):
            return self._checked(found, situation)
        if len(situation.pending) or situation.filtered:
            return Batch.empty()
        return found

    def _checked(self, batch: Batch, situation: Situation) -> Batch:
        """Refuse what a step may not ask for."""
        if situation.limit is not None and len(batch) > situation.limit:
            raise ParameterError(
                f"a step of {self.name} may ask for {situation.limit} entries, it asks for {len(batch)}"
            )
        cells = (
            batch if batch.arm is None else batch[batch.arm != "control"]
        )  # every plate has these
        if not np.all(situation.allows(cells.rows, cells.cols)):
            raise ParameterError(f"a step of {self.name} asks for lines that were left out")
        once = batch if batch.arm is None else batch[~np.isin(batch.arm, REPEATS)]
        entries = {*zip(once.rows.tolist(), once.cols.tolist(), strict=True)}
        if not self.fresh and len(entries) < len(once):
            raise ParameterError(f"a step of {self.name} asks for an entry twice")
        if not len(batch) and not len(situation.pending) and not situation.filtered:
            raise ParameterError(
                f"{self.name} must ask or end when nothing is pending, it did neither"
            )
        return batch

    def conclude(self, situation: Situation) -> Any:
        """Return the best result of a streaming plan so far: it ends as if the money were spent."""
        ended = replace(
            situation, pending=History.empty(), left=0.0, rows=None, cols=None, limit=None
        )
        found = self.step(ended)
        if isinstance(found, Batch):
            raise ParameterError(
                f"{self.name} must return its best result when the money runs out, but it asked again"
            )
        return replace(found, status="exhausted")


_HIDDEN = ("resume", "history", "situation")  # keywords that a plan is sent, not given


def plan(
    *,
    symmetric: bool = False,
    fresh: bool = False,
    tolerates_failed: bool = False,
    history: bool = False,
    streaming: bool = False,
    name: str | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Plan]]:
    """Make a generator function, or a step function with ``streaming=True``, return a :class:`Plan`.

    A generator function with ``history=True`` has a keyword ``history``, one that keeps checkpoints a
    keyword ``resume``, a step function a keyword ``situation``; users do not see these. A streaming
    plan has history and tolerates failed answers.

    The plan is begun once when it is made, a generator up to its first question, a step with no money:
    bad parameters are refused there and not later. An ``rng`` given as a Generator is copied; None is
    replaced by a fresh seed.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Plan]:
        signature = inspect.signature(function)
        shown = [p for p in signature.parameters.values() if p.name not in _HIDDEN]
        public = signature.replace(parameters=shown, return_annotation=Plan)
        size = next(iter(public.parameters), "")

        @functools.wraps(function)
        def make(*args: Any, **kwargs: Any) -> Plan:
            try:
                bound = public.bind(*args, **kwargs)
            except TypeError as error:
                raise ParameterError(
                    f"{function.__name__}: {error}; it takes {', '.join(public.parameters)}"
                ) from None
            bound.apply_defaults()
            params = dict(bound.arguments)
            _refuse_kinds(function.__name__, params, public.parameters)
            made = Plan(
                (name or function.__name__).replace("_", "-"),
                function,
                params,
                size=size,
                symmetric=symmetric,
                fresh=fresh,
                tolerates_failed=tolerates_failed or streaming,
                history=history or streaming,
                streaming=streaming,
                resumable="resume" in signature.parameters,
                _state=_seeded(params),
            )
            _begin(made)
            return made

        make.size, make.symmetric = size, symmetric  # type: ignore[attr-defined]
        make.streaming = streaming  # type: ignore[attr-defined]
        make.__signature__ = public  # type: ignore[attr-defined]
        return make

    return decorate


def _begin(made: Plan) -> None:
    """Let a plan look at its parameters."""
    if made.streaming:
        made.step(Situation(left=0.0))
        return
    first = made.start()
    next(first, None)
    first.close()


def _refuse_kinds(
    name: str, params: Mapping[str, Any], declared: Mapping[str, inspect.Parameter]
) -> None:
    """Refuse words where whole numbers or numbers are declared."""
    kinds = {"int": (int | np.integer, "a whole number"), "float": (Real, "a number")}
    for key, value in params.items():
        annotation = str(declared[key].annotation).removesuffix(" | None")
        if value is None or annotation not in kinds:
            continue
        kind, words = kinds[annotation]
        if isinstance(value, bool) or not isinstance(value, kind):
            raise ParameterError(f"{key} of {name} must be {words}, got {value!r}")


def _seeded(params: dict[str, Any]) -> np.random.Generator | None:
    """Return the generator to start from, if the plan draws; a fresh seed is noted in `params`."""
    if "rng" not in params:
        return None
    if params["rng"] is None:
        params["rng"] = int(np.random.SeedSequence().generate_state(1)[0])
    if not isinstance(params["rng"], int | np.integer | np.random.Generator):
        raise ParameterError(f"rng must be an int or a numpy Generator, got {params['rng']!r}")
    return copy.deepcopy(np.random.default_rng(params["rng"]))
