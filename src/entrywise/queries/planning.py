"""Plans, and the decorator that makes them.

A batch plan is a generator: it yields a :class:`~entrywise.queries.Batch` and is sent the answers, one
float64 a position. A streaming plan is one pure step: it takes a :class:`~entrywise.queries.Situation` and
returns the next batch, or its result.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, TypeAlias, TypeVar

import numpy as np

from entrywise.exceptions import ParameterError
from entrywise.queries.batch import REPEATS, Batch
from entrywise.queries.checkpoint import Checkpoint
from entrywise.queries.history import History
from entrywise.queries.prices import Prices
from entrywise.queries.situation import Situation
from entrywise.types import Array, has_equals

R = TypeVar("R")

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
    ``by_worker``                 columns are workers: who asks in a study gets the questions of its column
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
    by_worker: bool = False
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
        allowed = situation.allows(batch.rows, batch.cols)
        if batch.arm is not None and not np.all(allowed):  # every plate has its controls
            allowed |= batch.arm == "control"
        if not np.all(allowed):
            raise ParameterError(f"a step of {self.name} asks for lines that were left out")
        if not self.fresh and _asks_twice(batch):
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
    by_worker: bool = False,
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
                by_worker=by_worker,
                _state=_seeded(params),
            )
            _begin(made)
            return made

        make.size, make.symmetric = size, symmetric  # type: ignore[attr-defined]
        make.streaming = streaming  # type: ignore[attr-defined]
        make.by_worker = by_worker  # type: ignore[attr-defined]
        make.__signature__ = public  # type: ignore[attr-defined]
        return make

    return decorate


def _asks_twice(batch: Batch) -> bool:
    """Whether a batch names an entry twice that is not to be repeated."""
    cells = batch.rows * (batch.cols.max(initial=0) + 1)
    cells += batch.cols
    twice = has_equals(cells)
    if twice and batch.arm is not None:
        twice = has_equals(cells[~np.isin(batch.arm, REPEATS)])
    return twice


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
