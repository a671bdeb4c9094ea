"""SQLite and PostgreSQL obey the laws of stores; every active method can be kept in a study."""

from __future__ import annotations

import pytest

from entrywise import gallery
from entrywise.checks import plans, stores
from entrywise.methods import METHODS
from entrywise.play import play
from entrywise.study import Study


@pytest.mark.parametrize("law", stores.LAWS, ids=lambda law: law.__name__)
def test_store(law, desk):
    law(desk)


LONG = ("lil-ucb", "literal-bandit-subspace")  # thousands of questions
LONG += ("best-pair", "crowd", "most-informative", "noisy-cur", "top-two", "ucb-e")  # many fits


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(m, marks=[pytest.mark.slow] if m.name in LONG else [], id=m.name)
        for m in METHODS
        if m.room == "active"
    ],
)
def test_every_active_method_can_be_kept_in_a_study(method, tmp_path):
    params = dict(method.example)
    own = {
        new: params.pop(old)
        for old, new in (("rng", "seed"), ("budget", "budget"), ("prices", "prices"))
        if old in params
    }
    make_oracle = getattr(gallery, method.problem)
    study = Study.create(
        str(tmp_path / "lab.db"), method.name, plan=method.name, params=params, **own
    )
    found = study.play(make_oracle(0))
    expected = play(
        method.load()(
            **{**method.example, "rng": own["seed"]} if "seed" in own else method.example
        ),
        make_oracle(0),
    )
    again = Study.open(str(tmp_path / "lab.db"), method.name)
    for each in (found, again.result()):
        assert plans.same_result(each, expected)
        assert (each.cost, each.status) == (expected.cost, expected.status)
    assert again.status()["spent"] == pytest.approx(expected.cost)
