"""How a study went: money and expected error as time passed, and when the last answer came. Runs no plan."""

from __future__ import annotations

import json
from typing import NamedTuple

import sqlalchemy as sa

from entrywise.study import tallies
from entrywise.study.records import Record
from entrywise.study.schema import facts, steps
from entrywise.study.store import Store

POINTS = 200  # of a curve; a picture shows no more


class Course(NamedTuple):
    """Money spent by time, and the error that the plan expected by money."""

    times: list[float]
    spent: list[float]
    money: list[float]
    errors: list[float]

    @property
    def last(self) -> float | None:
        """When the last answer came."""
        return self.times[-1] if self.times else None


def course(store: Store, record: Record) -> Course:
    """Return how a study went."""
    f, t = facts.c, steps.c
    told = sa.select(f.told_at, f.charged).where(f.study == record.id, f.kind != "known")
    made = sa.select(t.cost, t.report).where(t.study == record.id).order_by(t.step)
    paid, said = store.database.read(
        lambda c: (
            store.database.columns(c, told.order_by(f.told_at)),
            store.database.columns(c, made),
        )
    )
    times, spent, bill = [], [], 0.0
    for at, charged in paid:
        bill += charged
        times.append(at)
        spent.append(bill)
    money, errors, asked = [], [], 0.0
    for cost, report in said:
        error = None if report is None else json.loads(report).get("expected_error")
        if error is not None:
            money.append(asked)
            errors.append(error)
        asked += cost
    return Course(_thinned(times), _thinned(spent), _thinned(money), _thinned(errors))


def _thinned(numbers: list[float]) -> list[float]:
    """Return at most about `POINTS` of the numbers, evenly, the first and the last among them."""
    if len(numbers) <= POINTS:
        return numbers
    last = len(numbers) - 1
    return [numbers[k * last // (POINTS - 1)] for k in range(POINTS)]


def last_answers(store: Store) -> dict[int, float]:
    """Return when the last answer of each study came, by the study's id."""
    return store.database.read(tallies.last_answers)
