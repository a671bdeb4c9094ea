"""Workers killed at random points lose nothing; ``make bench NAME=kill`` does it hundreds of times."""

from __future__ import annotations

import pytest

from entrywise.study.crash import torture
from entrywise.study.subjects import stream


@pytest.mark.slow
def test_killed_workers_lose_nothing(desk):
    found = torture(
        desk.url, desk.prefix + "crash", kills=4, seed=11, workers=4, n=50, rank=4, pause=0.15
    )
    assert found.kills >= 1
    assert found.acknowledged > 0
    assert (found.lost, found.doubled, found.gave_up) == (0, 0, 0)
    assert found.identical
    assert found.cost == found.expected_cost


@pytest.mark.slow
def test_a_streaming_study_outlives_kills_corrections_extensions_and_oracles_that_raise(desk):
    found = torture(
        desk.url,
        desk.prefix + "stream",
        stream(24, 2, seed=12),
        kills=6,
        seed=12,
        workers=3,
        pause=0.15,
        raises=0.3,
        strikes=("kill", "correct", "extend"),
    )
    assert found.strikes >= 3
    assert found.raised >= 1
    assert found.acknowledged > 0
    assert found.unharmed
