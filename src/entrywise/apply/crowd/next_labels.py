r"""Which item needs another label, and from whom: where a label is expected to lower the errors most for its price.

An item with posterior q is wrong with chance :math:`1 - \sum_c q_c^2` when its label is drawn from q. A worker who says l with chance
:math:`\theta_{lc}` when c is true lowers that, on average over what it may say, by

.. math:: \sum_l \frac{\sum_c (q_c \theta_{lc})^2}{\sum_c q_c \theta_{lc}} - \sum_c q_c^2,

which is above 0 for every item that is in doubt, even where one label cannot turn the decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from entrywise.apply.crowd.answers import CrowdAnswers, Repeats
from entrywise.apply.crowd.confidence import TOGETHER
from entrywise.apply.crowd.consensus import consensus
from entrywise.apply.crowd.dawid_skene import table_counts
from entrywise.apply.names import Names, flat_names
from entrywise.exceptions import DataError, ParameterError
from entrywise.types import Array, Indices

FIRM = 5.0  # answers that the crowd's pooled table weighs in a worker's, for each true class
LOOK = 4  # times the limit: items, the most doubtful, for which every worker is looked at
USUAL = 0.5  # weight of the only answer of an item, where no item has two
ANYONE = ""  # the worker named where there is no choice


class NextLabels(NamedTuple):
    """Labels to buy next, the most telling first: ``item``, ``worker`` (empty: anyone), and the fall of expected errors per price."""

    item: Names
    worker: Names
    gain: Array


def next_labels(
    items: ArrayLike,
    workers: ArrayLike,
    labels: ArrayLike,
    *,
    limit: int = 50,
    among: ArrayLike | None = None,
    offered: ArrayLike | None = None,
    prices: Mapping[Any, float] | None = None,
    classes: ArrayLike | None = None,
    repeats: Repeats = "refuse",
    gold: Mapping[Any, Any] | None = None,
) -> NextLabels:
    """Return the labels that lower the expected errors most per price.

    Parameters
    ----------
    items, workers, labels : array-like of shape (t,)
        The answers so far, as in :func:`consensus`; so are `classes`, `repeats` and `gold`.
    limit : int
        Labels that can be bought before the next look. An item is named once; again when all were.
    among : array-like, optional
        Items that may be labelled, new ones too; all that were answered unless given.
    offered : array-like, optional
        Workers to choose from, new ones too. Without it the item alone is chosen, for the crowd's usual worker.
        Nobody is asked twice about an item.
    prices : mapping of workers to prices, optional
        1 for who is not named.

    Examples
    --------
    >>> told = [1, 1, 1, 2, 2, 2, 3, 3, 3], list("abc" * 3), list("xxxxyxyyy")
    >>> next_labels(*told, limit=1).item.tolist()
    [2]
    """
    if limit < 1:
        raise ParameterError(f"limit must be at least 1, got {limit}")
    answers = CrowdAnswers.of(items, workers, labels, classes, repeats)
    if answers.shared.any():
        known = {"classes": classes, "repeats": repeats, "gold": gold}
        posterior = consensus(items, workers, labels, **known).probabilities  # type: ignore[arg-type]
    else:  # nobody can be judged yet
        posterior = USUAL * answers.votes + (1.0 - USUAL) / len(answers.classes)
    names, q, votes, place = _asked_about(answers, posterior, among)
    tables, usual = _tables(answers, posterior)
    worth = _worth(q, usual) * _fresh(votes)
    order = np.argsort(-worth, kind="stable")
    if offered is None:
        rounds = np.resize(order, limit)  # again when all were named
        return NextLabels(names[rounds], np.full(limit, ANYONE), worth[rounds])
    some = order[: LOOK * limit]
    who = flat_names(offered, "offered")
    return _with_workers(answers, names, q, votes, place, some, who, tables, usual, prices, limit)


def _asked_about(
    answers: CrowdAnswers, posterior: Array, among: ArrayLike | None
) -> tuple[Names, Array, Array, Indices]:
    """Return the items that may be labelled, their posteriors, their answers, and their places (-1: new)."""
    votes = np.diff(answers.start).astype(np.float64)
    if among is None:
        return answers.items, posterior, votes, np.arange(len(answers.items))
    names = flat_names(among, "among")
    if not len(names):
        raise DataError("among must name an item that may be labelled; it is empty")
    known = {x: i for i, x in enumerate(answers.items.tolist())}
    place = np.array([known.get(x, -1) for x in names.tolist()], np.int64)
    new = place < 0
    q = np.where(new[:, None], posterior.mean(axis=0), posterior[place])
    return names, q, np.where(new, 0.0, votes[place]), place


def _tables(answers: CrowdAnswers, q: Array) -> tuple[Array, Array]:
    """Return chances (W, answer, truth) of every worker, drawn to the crowd's, and the crowd's (answer, truth)."""
    counts = table_counts(answers, q)
    pooled = counts.sum(axis=0) + 1.0 / counts.shape[1]
    usual = pooled / pooled.sum(axis=0)
    tables = counts + FIRM * usual
    return tables / tables.sum(axis=1, keepdims=True), usual


def _worth(q: Array, table: Array) -> Array:
    """Expected fall of the chance of error by one label, for items (n, k) and a table (answer, truth)."""
    joint = q[:, None, :] * table  # (n, answer, truth)
    said = np.maximum(joint.sum(axis=2), 1e-300)
    after = ((joint**2).sum(axis=2) / said).sum(axis=1)
    return np.asarray(np.maximum(after - (q**2).sum(axis=1), 0.0))


def _fresh(votes: Array) -> Array:
    """What one more label tells that those before did not, where they hang together."""
    return np.asarray(1.0 / (1.0 + TOGETHER * votes))


def _with_workers(
    answers: CrowdAnswers,
    names: Names,
    q: Array,
    votes: Array,
    place: Indices,
    some: Indices,
    who: Names,
    tables: Array,
    usual: Array,
    prices: Mapping[Any, float] | None,
    limit: int,
) -> NextLabels:
    """Choose the worker too: the best pairs, an item once."""
    number = {x: w for w, x in enumerate(answers.workers.tolist())}
    at = np.array([number.get(x, -1) for x in who.tolist()], np.int64)
    price = np.array([1.0 if prices is None else prices.get(x, 1.0) for x in who.tolist()])
    if not np.all(np.isfinite(price) & (price > 0)):
        raise ParameterError("prices must be finite and above 0")
    value = np.empty((len(some), len(who)))
    for column, w in enumerate(at):
        table = usual if w < 0 else tables[w]
        value[:, column] = _worth(q[some], table) * _fresh(votes[some]) / price[column]
    asked = {(int(i), int(w)) for i, w in zip(answers.item, answers.worker, strict=True)}
    for row, i in enumerate(place[some].tolist()):
        for column, w in enumerate(at.tolist()):
            if (i, w) in asked:
                value[row, column] = -np.inf
    best = value.argmax(axis=1)
    gain = value[np.arange(len(some)), best]
    chosen = np.argsort(-gain, kind="stable")[:limit]
    chosen = chosen[np.isfinite(gain[chosen])]
    return NextLabels(names[some[chosen]], who[best[chosen]], gain[chosen])
