"""Random schedules hold the laws; ``make bench NAME=schedules`` plays thousands of them."""

from __future__ import annotations

import pytest

from entrywise.study.schedules import KINDS, schedule


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))])
def test_a_random_schedule_breaks_no_law(kind, seed):
    happened = schedule("sqlite://", f"{kind}-{seed}", seed, kind)
    assert happened["tell"] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_random_schedule_breaks_no_law_on_either_database(desk, kind):
    happened = schedule(desk.url, f"{desk.prefix}{kind}", 7, kind, events=20)
    assert happened["tell"] > 0
