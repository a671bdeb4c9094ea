"""Streams of labels for the figures of binary matrices, and how often learners are wrong along them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entrywise.bounds.binary import adversary
from entrywise.gallery import bicluster_trials
from entrywise.online import HazanKaleShalevShwartz, Learner

Stream: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
TRIALS = "tab:gray"  # what every trial would be


def mistakes(learner: Learner, stream: Stream) -> int:
    """Return how often a learner is wrong along a stream."""
    return learner.follow(*stream)[1].mistakes


def curve(learner: Learner, stream: Stream) -> NDArray[np.int64]:
    """Return the mistakes so far after each trial."""
    return np.cumsum(learner.follow(*stream)[0] != stream[2])


def forced(learner: Learner, side: int, l: int) -> int:
    """Return the mistakes that the adversary of Theorem 5.4 forces."""
    now = learner

    def predict(i: int, j: int) -> int:
        return now.predict(i, j)

    for i, j, y in adversary(side, side, l, predict):
        now = now.learn(i, j, y)
    return now.mistakes


def stream_of(m: int, n: int, k: int, l: int, noise: float, seed: int) -> Stream:
    """Return the entries of a matrix of biclusters in random order, each once."""
    rows, cols, labels = np.array(bicluster_trials(m, n, k, l, noise, seed), np.int64).T
    return rows, cols, labels


def legend(axis: Any) -> None:
    """Put the legend beside the axes."""
    axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def hazan_of(shape: tuple[int, int]) -> list[Learner]:
    """Return the learner of Hazan et al. at six settings, of which the best is shown."""
    settings = [(rate, norm) for rate in (0.1, 0.3, 1.0) for norm in (2.0, 4.0)]
    return [HazanKaleShalevShwartz(shape, rate, norm) for rate, norm in settings]
