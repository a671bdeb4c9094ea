"""Small plans for tests of studies, found there as ``study_plans:name``."""

from __future__ import annotations

import numpy as np

from entrywise.exceptions import Exhausted
from entrywise.queries import Batch, Checkpoint, plan
from entrywise.results import LowRank

SHIFT = 0  # a "newer version" of `drifting` asks otherwise


def _result(values, n, status="finished"):
    return LowRank(np.asarray(values, dtype=float).reshape(n, -1), np.ones((n, 1)), status=status)


@plan(fresh=True)
def repeated(n, *, times=3, rng=None):
    """Measure the diagonal `times` times, then the noisiest entry again."""
    means = np.zeros(n)
    try:
        answers = yield Batch(np.repeat(np.arange(n), times), np.repeat(np.arange(n), times))
        means = answers.reshape(n, times).mean(axis=1)
        k = int(answers.reshape(n, times).std(axis=1).argmax())
        more = yield Batch(
            np.full(2, k),
            np.full(2, k),
            arm=np.array(["again", "again"]),
            probability=np.full(2, 0.5),
        )
        means[k] = more.mean()
    except Exhausted:
        pass
    return _result(means, n)


@plan(tolerates_failed=True)
def tolerant(n):
    """Measure the diagonal, do without what failed."""
    try:
        answers = np.array((yield Batch.diagonal(n)))
    except Exhausted:
        answers = np.zeros(n)
    return _result(np.nan_to_num(answers, nan=-1.0), n)


@plan()
def columns(shape, prices, *, budget=None, rng=None):
    """Buy two whole columns as units, then single entries of a third."""
    m, n = shape
    total = np.zeros(m)
    try:
        total = np.array((yield Batch.whole_columns([0, n - 1], m))).reshape(2, m).sum(axis=0)
        total = total + (yield Batch.column(1, m))
    except Exhausted:
        pass
    return _result(total, m)


@plan()
def staged(n, *, stages=6, rng=None, resume=None):
    """Ask for a random entry a stage, and keep a checkpoint before each."""
    total, first = np.zeros(1), 0
    if resume is not None:
        total, first, rng = (
            resume.arrays["total"].copy(),
            int(resume.arrays["stage"]),
            resume.generator(),
        )
    try:
        for stage in range(first, stages):
            yield Checkpoint({"total": total, "stage": np.array(stage)}, rng)
            i, j = rng.integers(n, size=2)
            total = total + (yield Batch.entries([i, j], [j, i]))
    except Exhausted:
        pass
    return _result(np.full(n, total.sum()), n)


@plan(fresh=True)
def fresh_staged(n, *, stages=6, rng=None, resume=None):
    """Do what `staged` does, with fresh answers each time."""
    return (yield from staged.__wrapped__(n, stages=stages, rng=rng, resume=resume))


@plan(symmetric=True)
def drifting(n):
    """Ask for two columns; a newer version asks for others."""
    try:
        first = yield Batch.column(SHIFT, n)
        second = yield Batch.column(SHIFT + 3, n)
    except Exhausted:
        return _result(np.zeros(n), n)
    return _result(first + second, n)


def no_plan(n):
    """Return something that is no plan."""
    return n


ALLOWED = {  # plans that the tests allow when they open a study
    f"study_plans:{each.__name__}": each
    for each in (repeated, tolerant, columns, staged, fresh_staged, drifting)
}
