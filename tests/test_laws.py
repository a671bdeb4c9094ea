"""Every active method of the registry obeys every law of plans."""

from __future__ import annotations

import functools

import pytest

from entrywise import gallery
from entrywise.checks import plans
from entrywise.methods import METHODS

pytestmark = pytest.mark.filterwarnings("ignore:the theorem")  # what literal S-MCANS costs

ACTIVE = [m for m in METHODS if m.room == "active"]
VARIANTS = [
    ("literal-adaptive-nystrom", {"rank": 2}),
    ("literal-adaptive-nystrom", {"max_error": 0.05}),
    ("adaptive-nystrom", {"order": "random"}),
    ("adaptive-nystrom", {"order": "random", "block": 3}),
    ("adaptive-nystrom", {"order": "gain", "block": 2}),
    ("adaptive-nystrom", {"rank": 0}),
    ("adaptive-nystrom", {"max_error": 0.05}),
    ("adaptive-nystrom", {"noise": 1e-6}),
]


# plans that fit again and again: make quick holds them to two laws, the others to all
LONG = {"most-informative", "top-two", "crowd", "row-scores", "ucb-e", "noisy-cur", "best-pair"}
DAILY = (plans.replays, plans.never_overspends)


def held_to_laws():
    for method in ACTIVE:
        for law in plans.LAWS:
            long = method.name in LONG and law not in DAILY
            marks = pytest.mark.slow if long else ()
            yield pytest.param(method, law, id=f"{method.name}-{law.__name__}", marks=marks)


@pytest.mark.parametrize(("method", "law"), [*held_to_laws()])
def test_plan(method, law):
    assert method.problem, f"{method.name} must name its problem in the gallery"
    law(made(method.name), getattr(gallery, method.problem))


@functools.cache
def made(name):
    """Return one plan for all laws, which play it once."""
    method = next(m for m in ACTIVE if m.name == name)
    return method.load()(**method.example)


@pytest.mark.parametrize("law", plans.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize(("name", "params"), VARIANTS)
def test_variant(name, params, law):
    method = next(m for m in ACTIVE if m.name == name)
    law(method.load()(**{**method.example, **params}), getattr(gallery, method.problem))


def test_laws_catch_a_plan_that_breaks_them():
    import numpy as np

    from entrywise.queries import Batch, plan
    from entrywise.results import LowRank

    @plan()
    def unruly(n):
        answers = yield Batch.diagonal(n)
        noise = np.random.default_rng().random()
        yield Batch.entries(int(noise * 1e6) % n, 0)
        return LowRank(answers[:, None] * noise, np.ones((n, 1)))

    made = unruly(12)
    for law in (plans.replays, plans.is_seeded, plans.returns_when_exhausted):
        with pytest.raises(Exception, match=r".+"):
            law(made, gallery.psd_oracle)
