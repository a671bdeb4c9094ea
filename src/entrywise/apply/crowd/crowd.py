"""A crowd day by day: rows are items, columns workers, and each step asks for the labels that tell most.

The study form of :func:`~entrywise.apply.crowd.next_labels`. Every item gets a first label; then labels go where they are
expected to lower the errors most per price, among the workers who may be asked; it ends when the expected share of wrong
labels is low enough, or the money is spent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from entrywise.apply.crowd.consensus import consensus
from entrywise.apply.crowd.majority_vote import majority_vote
from entrywise.apply.crowd.next_labels import next_labels
from entrywise.exceptions import NotIdentifiable, ParameterError
from entrywise.queries import Batch, Prices, Situation, plan
from entrywise.results import Certificate, Result
from entrywise.types import Array, Indices

STEPS = 5  # of steps that go once over the items, where no limit is asked for
ALONE = 0.5  # confidence in labels that no two workers share


@dataclass(frozen=True, eq=False, repr=False)
class CrowdLabels(Result):
    """The label of every item, and how sure it is.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        The value that is likeliest to be right, NaN where nobody labelled the item.
    confidence : ndarray of shape (n,)
        Chance that it is; 0 where nobody labelled.
    skill : ndarray of shape (W,)
        Chance that an answer of the worker is right, NaN where it cannot be told.
    """

    labels: Array = field(default_factory=lambda: np.zeros(0))
    confidence: Array = field(default_factory=lambda: np.zeros(0))
    skill: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def expected_error(self) -> float:
        """Share of the labels that is expected to be wrong."""
        return float(np.mean(1.0 - self.confidence)) if len(self.confidence) else 1.0


@plan(streaming=True, by_worker=True)
def crowd(
    shape: tuple[int, int],
    prices: Prices | None = None,
    *,
    budget: float | None = None,
    max_error: float | None = None,
    batch: int | None = None,
    situation: Situation,
) -> Batch | CrowdLabels:
    """Label items by workers, asking for the labels that are expected to lower the errors most per price.

    Parameters
    ----------
    shape : (items, workers)
        A value is a class: any number, the same for the same class.
    prices : Prices, optional
        What a label costs; by worker as a (1, workers) array. All alike when not given.
    budget : float, optional
        Money to plan with. Without it every worker may label every item.
    max_error : float, optional
        Stop when the expected share of wrong labels is at most this.
    batch : int, optional
        Labels asked at a time, a fifth of the items when not given; a limit of who asks comes first.

    Returns
    -------
    CrowdLabels
        ``labels``, ``confidence`` and ``skill``; the certificate is the expected share of wrong labels.

    Notes
    -----
    In a study, ``ask(worker="ann")`` asks for labels of the column ``ann`` alone: who asks is who will answer. Items and workers
    are added with ``study extend``.

    Examples
    --------
    >>> import entrywise as ew
    >>> from entrywise.gallery import crowd_oracle
    >>> found = ew.play(crowd((30, 6), budget=90), crowd_oracle())
    >>> int(found.cost), found.labels.shape, found.status
    (90, (30,), 'finished')
    """
    n, workers = _refuse(shape, max_error, batch)
    told = situation.facts[~situation.facts.failed]
    found = _labelled(told.rows, told.cols, told.values, (n, workers))
    if max_error is not None and len(told) and found.expected_error <= max_error:
        return _ended(found, "the expected share of wrong labels is low enough")
    free = _free(situation, (n, workers))
    wanted = situation.limit or batch or max(1, n // STEPS)
    seen = np.zeros(n, bool)
    seen[situation.facts.rows] = seen[situation.pending.rows] = True
    rows, cols = _first_labels(free, ~seen, wanted)
    if not len(rows) and len(told):
        rows, cols = _telling(told.rows, told.cols, told.values, free, prices, wanted)
    kept = _affordable(rows, cols, prices, situation.left)
    if len(kept):
        return Batch(rows[kept], cols[kept])
    return _ended(found, "no further label can be asked or paid")


def _refuse(shape: tuple[int, int], max_error: float | None, batch: int | None) -> tuple[int, int]:
    if len(tuple(shape)) != 2 or min(shape) < 1:
        raise ParameterError(f"shape of crowd must be (items, workers), both above 0, got {shape}")
    if max_error is not None and not 0 <= max_error < 1:
        raise ParameterError(f"max_error of crowd must be in 0..1, got {max_error}")
    if batch is not None and batch < 1:
        raise ParameterError(f"batch of crowd must be at least 1, got {batch}")
    return int(shape[0]), int(shape[1])


def _free(situation: Situation, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which labels may be asked: neither asked before nor left out."""
    i, j = (k.ravel() for k in np.indices(shape))
    free = situation.allows(i, j).reshape(shape)
    for asked in (situation.facts, situation.pending):
        free[asked.rows, asked.cols] = False
    return free


def _first_labels(
    free: NDArray[np.bool_], new: NDArray[np.bool_], wanted: int
) -> tuple[Indices, Indices]:
    """Return a label for each item that has none, workers in turn."""
    rows = np.flatnonzero(new & free.any(axis=1))[:wanted]
    cols = [int(np.roll(free[i], -int(i)).argmax() + i) % free.shape[1] for i in rows]
    return rows, np.array(cols, np.int64)


def _telling(
    rows: Indices,
    cols: Indices,
    values: Array,
    free: NDArray[np.bool_],
    prices: Prices | None,
    wanted: int,
) -> tuple[Indices, Indices]:
    """Return the free labels that tell most per price, an item once."""
    nothing = np.zeros(0, np.int64)
    among, offered = (np.flatnonzero(free.any(axis=axis)) for axis in (1, 0))
    if not len(among) or len(np.unique(values)) < 2:
        few = among[:wanted]  # one class so far: any label tells as much
        return few, free[few].argmax(axis=1) if len(few) else nothing
    costs = None
    if prices is not None:
        of_first = prices.of("entry", np.zeros(len(offered), np.int64), offered)
        costs = dict(zip(offered.tolist(), of_first.tolist(), strict=True))
    said = next_labels(
        rows,
        cols,
        values,
        limit=len(among),
        among=among,
        offered=offered,
        prices=costs,
        repeats="last",
    )
    i, j = said.item.astype(np.int64), said.worker.astype(np.int64)
    may = free[i, j]
    return i[may][:wanted], j[may][:wanted]


def _affordable(rows: Indices, cols: Indices, prices: Prices | None, left: float | None) -> Indices:
    """Return the places of the labels that the money pays, the first first."""
    if left is None or not len(rows):
        return np.arange(len(rows))
    price = (prices or Prices(entry=1.0)).of("entry", rows, cols)
    return np.flatnonzero(np.cumsum(price) <= left * (1 + 1e-12))


def _labelled(rows: Indices, cols: Indices, values: Array, shape: tuple[int, int]) -> CrowdLabels:
    """Return the labels that the answers so far give."""
    labels, confidence = np.full(shape[0], np.nan), np.zeros(shape[0])
    skill = np.full(shape[1], np.nan)
    if not len(rows):
        return CrowdLabels(labels=labels, confidence=confidence, skill=skill)
    unsure = CrowdLabels(labels=labels, confidence=confidence, skill=skill)
    if len(np.unique(values)) < 2:  # one class so far: nobody can be judged
        labels[rows], confidence[rows] = values, ALONE
        return unsure
    try:
        found = consensus(rows, cols, values, repeats="last")
    except NotIdentifiable:  # no item has two answers
        items, said, _ = majority_vote(rows, cols, values)
        labels[items.astype(np.int64)] = said.astype(np.float64)
        confidence[items.astype(np.int64)] = ALONE
        return unsure
    at = found.items.astype(np.int64)
    labels[at] = found.labels.astype(np.float64)
    confidence[at] = np.nan_to_num(found.confidence, nan=ALONE)
    skill[found.workers.astype(np.int64)] = found.skill
    return CrowdLabels(labels=labels, confidence=confidence, skill=skill)


def _ended(found: CrowdLabels, reason: str) -> CrowdLabels:
    share = found.expected_error
    promise = Certificate(
        "expected share of wrong labels",
        share,
        ("workers err together no more than the crowds that were studied",),
        vacuous=share >= ALONE,
    )
    return CrowdLabels(
        labels=found.labels,
        confidence=found.confidence,
        skill=found.skill,
        certificates=(promise,),
        report={"expected_error": share, "reason": reason},
    )
