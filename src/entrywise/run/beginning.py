"""What a run begins with: its plan, its prices, what is known, and what it remembers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from entrywise.exceptions import AnswerError, ParameterError
from entrywise.observations import Observations
from entrywise.queries import Batch, History, Plan, Prices
from entrywise.run.memory import Memory, Stock
from entrywise.types import Array

Known: TypeAlias = Observations | Mapping[str, Observations]


def refuse_twice(plan: Plan, budget: float | None, prices: Prices | None) -> None:
    """Refuse what is no plan, and money and prices that are given twice and differ."""
    if not isinstance(plan, Plan):
        raise ParameterError(
            f"a run takes a plan, got {type(plan).__name__}; call the plan function with its parameters"
        )
    if budget is not None and plan.budget is not None and budget != plan.budget:
        raise ParameterError(
            f"the budget is {budget:g} here and {plan.budget:g} in {plan.name}; give it once"
        )
    if prices is not None and plan.prices is not None and prices is not plan.prices:
        raise ParameterError(f"prices were given here and in {plan.name}; give them once")


def priced(plan: Plan, prices: Prices | None) -> Plan:
    """Return a streaming plan that knows the prices of its run: it keeps to the money by itself."""
    if plan.streaming and prices is not None and "prices" in plan.params:
        return replace(plan, params={**plan.params, "prices": prices})
    return plan


def known_table(plan: Plan, known: Known | None, history: History | None) -> History:
    """Return what is known as one table, or refuse it."""
    table = History.empty() if history is None else history
    parts = [_given(plan, mode, seen) for mode, seen in by_mode(plan.params, known).items()]
    return sum(parts, History.empty()) + table


def by_mode(params: Mapping[str, Any], known: Known | None) -> Mapping[str, Observations]:
    """Return what is known by instrument; without names it belongs to the target."""
    if known is None:
        return {}
    if isinstance(known, Observations):
        return {params.get("target") or "entry": known}
    return known


def _given(plan: Plan, mode: str, known: Observations) -> History:
    shape = plan.shape
    if shape is not None and any(
        s is not None and s != k for s, k in zip(shape, known.shape, strict=True)
    ):
        raise ParameterError(
            f"known entries have shape {known.shape}, {plan.name} is about {shape}; they must agree"
        )
    if plan.symmetric:
        refuse_asymmetry(known)
    return History.of(known, mode)


def memory_of(plan: Plan, history: History) -> Memory:
    """Return a memory that holds what is known; a plan that takes history as repeats needs none."""
    memory = Stock(plan.symmetric) if plan.fresh and not plan.history else Memory(plan.symmetric)
    if not (plan.fresh and plan.history):
        fill_memory(memory, history, failed=plan.tolerates_failed)
    return memory


def fill_memory(memory: Memory, history: History, failed: bool) -> None:
    """Remember a table; with `failed` also which measurements failed."""
    for mode in np.unique(history.mode).tolist():
        some = history[history.mode == mode]
        memory.add(mode, some.rows, some.cols, some.values, failed=failed)


def refuse_asymmetry(known: Observations) -> None:
    """Refuse known entries (i, j) and (j, i) that differ."""
    n = known.shape[1]
    key = np.minimum(known.rows, known.cols) * n + np.maximum(known.rows, known.cols)
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(np.diff(key[order]) == 0)
    a, b = order[same], order[same + 1]
    scale = np.abs(known.values).max(initial=0.0)
    off = np.flatnonzero(np.abs(known.values[a] - known.values[b]) > 1e-8 * scale)
    if len(off):
        a, b = a[off[0]], b[off[0]]
        raise AnswerError(
            f"entries ({known.rows[a]}, {known.cols[a]}) = {known.values[a]:g} and ({known.rows[b]}, {known.cols[b]}) = "
            f"{known.values[b]:g} must be equal in a symmetric matrix; mend one"
        )


def told_table(prices: Prices, batch: Batch, answers: Array) -> History:
    """Return a batch and its answers as a table."""
    given = {name: getattr(batch, name) for name in ("unit", "arm", "probability", "plate")}
    return History(
        batch.rows,
        batch.cols,
        answers,
        mode=np.full(len(batch), batch.mode),
        price=prices.charges(batch),
        **given,
    )
