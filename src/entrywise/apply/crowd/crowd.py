"""A crowd day by day: rows are items, columns workers, and each step asks for the labels that tell most.

The study form of :func:`~entrywise.apply.crowd.next_labels`. Every item gets a first label; then labels go where they are
expected to lower the errors most per price, among the workers who may be asked; it ends when the expected share of wrong
labels is low enough, or the money is spent. One column may be of gold: what stands there is true, and tells how the
confidence in the other labels is to be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from entrywise.apply.crowd.confidence import FEWEST
from entrywise.apply.crowd.consensus import TOLD_BY_GOLD, consensus
from entrywise.apply.crowd.majority_vote import majority_vote
from entrywise.apply.crowd.next_labels import next_labels
from entrywise.exceptions import NotIdentifiable, ParameterError
from entrywise.queries import Batch, History, Prices, Situation, plan
from entrywise.results import Certificate, Result
from entrywise.types import Array, Indices

STEPS = 5  # of steps that go once over the items, where no limit is asked for
ALONE = 0.5  # confidence in labels that no two workers share
GOLD = 40  # items that whoever fills the column of gold is asked for, where no limit is


@dataclass(frozen=True, eq=False, repr=False)
class CrowdLabels(Result):
    """The label of every item, and how sure it is.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        The value that is likeliest to be right, NaN where nobody labelled the item.
    confidence : ndarray of shape (n,)
        Chance that it is; 0 where nobody labelled, 1 where gold says it.
    skill : ndarray of shape (W,)
        Chance that an answer of the worker is right, NaN where it cannot be told.
    classes : tuple of str
        Names of the values 0, 1, ...; empty where a value is its own name.
    """

    labels: Array = field(default_factory=lambda: np.zeros(0))
    confidence: Array = field(default_factory=lambda: np.zeros(0))
    skill: Array = field(default_factory=lambda: np.zeros(0))
    classes: tuple[str, ...] = ()

    def name(self, i: int) -> str:
        """Return the label of item i in words; empty where it has none."""
        value = self.labels[i]
        if np.isnan(value):
            return ""
        return self.classes[int(value)] if self.classes else f"{value:g}"

    @property
    def expected_error(self) -> float:
        """Share of the labels that is expected to be wrong."""
        return float(np.mean(1.0 - self.confidence)) if len(self.confidence) else 1.0


@plan(streaming=True, by_worker=True)
def crowd(
    shape: tuple[int, int],
    prices: Prices | None = None,
    *,
    classes: Sequence[str] | None = None,
    gold: int | None = None,
    budget: float | None = None,
    max_error: float | None = None,
    batch: int | None = None,
    situation: Situation,
) -> Batch | CrowdLabels:
    """Label items by workers, asking for the labels that are expected to lower the errors most per price.

    Parameters
    ----------
    shape : (items, workers)
        A value is a class: its place among `classes`, or any number, the same for the same class.
    prices : Prices, optional
        What a label costs; by worker as a (1, workers) array. All alike when not given.
    classes : sequence of str, optional
        Names of the classes. A study is then told names, and prints names.
    gold : int, optional
        Column of somebody who knows the truth; in a study, its label. It is asked only when that worker asks, for items
        drawn at random; 30 to 50 of them say how far the confidence in all labels can be trusted.
    budget : float, optional
        Money to plan with. Without it every worker may label every item.
    max_error : float, optional
        Stop when the expected share of wrong labels is at most this.
    batch : int, optional
        Labels asked at a time, a fifth of the items when not given; a limit of who asks comes first.

    Returns
    -------
    CrowdLabels
        ``labels``, ``confidence`` and ``skill``; the certificate is the expected share of wrong labels. With ten gold items or
        more the report has ``wrong_labels``, what they say of that share, with the ends of its 95 % interval.

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
    n, workers = _refuse(shape, max_error, batch, classes, gold)
    told = situation.facts[~situation.facts.failed]
    found = _labelled(told, (n, workers), classes, gold)
    if max_error is not None and len(told) and found.expected_error <= max_error:
        return _ended(found, "the expected share of wrong labels is low enough")
    free = _free(situation, (n, workers))
    wanted = situation.limit or batch or max(1, n // STEPS)
    if gold is not None:
        asking = situation.cols is not None and set(situation.cols.tolist()) == {gold}
        checked = free[:, gold].copy()
        free[:, gold] = False
        if asking:
            return _golden(situation, checked, gold, situation.limit or GOLD, found, prices)
        told = told[told.cols != gold]
    seen = np.zeros(n, bool)
    for asked in (situation.facts, situation.pending):
        seen[asked.rows[asked.cols != (-1 if gold is None else gold)]] = True
    rows, cols = _first_labels(free, ~seen, wanted)
    if not len(rows) and len(told):
        rows, cols = _telling(told, free, prices, wanted, classes)
    kept = _affordable(rows, cols, prices, situation.left)
    if len(kept):
        return Batch(rows[kept], cols[kept])
    return _ended(found, "no further label can be asked or paid")


def _golden(
    situation: Situation,
    free: NDArray[np.bool_],
    gold: int,
    wanted: int,
    found: CrowdLabels,
    prices: Prices | None,
) -> Batch | CrowdLabels:
    """Return items drawn at random for the column of gold."""
    order = np.random.default_rng(situation.seed).permutation(len(free))
    rows = order[free[order]][:wanted].astype(np.int64)
    cols = np.full(len(rows), gold, np.int64)
    kept = _affordable(rows, cols, prices, situation.left)
    if len(kept):
        return Batch(rows[kept], cols[kept])
    return _ended(found, "no further label can be asked or paid")


def _refuse(
    shape: tuple[int, int],
    max_error: float | None,
    batch: int | None,
    classes: Sequence[str] | None,
    gold: int | None,
) -> tuple[int, int]:
    if len(tuple(shape)) != 2 or min(shape) < 1:
        raise ParameterError(f"shape of crowd must be (items, workers), both above 0, got {shape}")
    if max_error is not None and not 0 <= max_error < 1:
        raise ParameterError(f"max_error of crowd must be in 0..1, got {max_error}")
    if batch is not None and batch < 1:
        raise ParameterError(f"batch of crowd must be at least 1, got {batch}")
    if classes is not None:
        names = [] if isinstance(classes, str) else list(classes)
        if len(set(names)) < max(2, len(names)):
            raise ParameterError(
                f"classes of crowd must be two names or more, each once, got {classes!r}"
            )
    if gold is not None and not (isinstance(gold, int) and 0 <= gold < shape[1]):
        raise ParameterError(
            f"gold of crowd must be a column, in 0..{shape[1] - 1}, got {gold!r}; "
            "add a column for whoever knows the truth"
        )
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
    told: History,
    free: NDArray[np.bool_],
    prices: Prices | None,
    wanted: int,
    classes: Sequence[str] | None,
) -> tuple[Indices, Indices]:
    """Return the free labels that tell most per price, an item once."""
    nothing = np.zeros(0, np.int64)
    among, offered = (np.flatnonzero(free.any(axis=axis)) for axis in (1, 0))
    if not len(among) or len(np.unique(told.values)) < 2:
        few = among[:wanted]  # one class so far: any label tells as much
        return few, free[few].argmax(axis=1).astype(np.int64) if len(few) else nothing
    costs = None
    if prices is not None:
        of_first = prices.of("entry", np.zeros(len(offered), np.int64), offered)
        costs = dict(zip(offered.tolist(), of_first.tolist(), strict=True))
    said = next_labels(
        told.rows,
        told.cols,
        told.values,
        limit=len(among),
        among=among,
        offered=offered,
        prices=costs,
        classes=_numbers(classes),
        repeats="last",
    )
    i, j = said.item.astype(np.int64), said.worker.astype(np.int64)
    may = free[i, j]
    return i[may][:wanted], j[may][:wanted]


def _numbers(classes: Sequence[str] | None) -> Array | None:
    """Return the values that named classes have."""
    return None if classes is None else np.arange(len(classes), dtype=np.float64)


def _affordable(rows: Indices, cols: Indices, prices: Prices | None, left: float | None) -> Indices:
    """Return the places of the labels that the money pays, the first first."""
    if left is None or not len(rows):
        return np.arange(len(rows))
    price = (prices or Prices(entry=1.0)).of("entry", rows, cols)
    return np.flatnonzero(np.cumsum(price) <= left * (1 + 1e-12))


def _labelled(
    told: History, shape: tuple[int, int], classes: Sequence[str] | None, gold: int | None
) -> CrowdLabels:
    """Return the labels that the answers so far give, those of gold as they are."""
    by_gold = np.zeros(len(told), bool) if gold is None else told.cols == gold
    checked = told[by_gold]
    truth = dict(zip(checked.rows.tolist(), checked.values.tolist(), strict=True))
    found = _by_workers(told[~by_gold], shape, classes, truth)
    labels, confidence = found.labels.copy(), found.confidence.copy()
    labels[checked.rows], confidence[checked.rows] = checked.values, 1.0
    names = () if classes is None else tuple(classes)
    return replace(found, labels=labels, confidence=confidence, classes=names)


def _by_workers(
    told: History,
    shape: tuple[int, int],
    classes: Sequence[str] | None,
    truth: dict[int, float],
) -> CrowdLabels:
    """Return the labels that workers give; the true ones say how they are to be read."""
    labels, confidence = np.full(shape[0], np.nan), np.zeros(shape[0])
    skill = np.full(shape[1], np.nan)
    rows, cols, values = told.rows, told.cols, told.values
    unsure = CrowdLabels(labels=labels, confidence=confidence, skill=skill)
    if not len(rows):
        return unsure
    if len(np.unique(values)) < 2:  # one class so far: nobody can be judged
        labels[rows], confidence[rows] = values, ALONE
        return unsure
    both = {i: value for i, value in truth.items() if np.any(rows == i)}
    known = both if len(both) >= FEWEST else None
    try:
        found = consensus(rows, cols, values, classes=_numbers(classes), repeats="last", gold=known)
    except NotIdentifiable:  # no item has two answers
        items, said, _ = majority_vote(rows, cols, values)
        labels[items.astype(np.int64)] = said.astype(np.float64)
        confidence[items.astype(np.int64)] = ALONE
        return unsure
    at = found.items.astype(np.int64)
    labels[at] = found.labels.astype(np.float64)
    confidence[at] = np.nan_to_num(found.confidence, nan=ALONE)
    skill[found.workers.astype(np.int64)] = found.skill
    about = {k: v for k, v in found.report.items() if k in TOLD_BY_GOLD}
    return CrowdLabels(labels=labels, confidence=confidence, skill=skill, report=about)


def _ended(found: CrowdLabels, reason: str) -> CrowdLabels:
    share = found.expected_error
    assumes = "workers err together no more than the crowds that were studied"
    if found.report:
        assumes = "gold items were drawn at random"
    promise = Certificate(
        "expected share of wrong labels", share, (assumes,), vacuous=share >= ALONE
    )
    report = {**found.report, "expected_error": share, "reason": reason}
    return replace(found, certificates=(promise,), report=report)
