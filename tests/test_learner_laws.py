"""Every online method of the registry obeys every law of learners."""

from __future__ import annotations

import numpy as np
import pytest

from entrywise import gallery
from entrywise.bounds.binary import graph_kernel
from entrywise.checks import learners
from entrywise.methods import METHODS
from entrywise.online import Doubling, KernelPerceptron, Majority, MatrixWinnow, SymmetricWinnow

ONLINE = [m for m in METHODS if m.room == "online"]
VARIANTS = {
    "slack": MatrixWinnow(1.0, slack=0.1),
    "dense": MatrixWinnow(1.0, slack=0.1, dense=True),
    "fast": MatrixWinnow(2.0),
    "no slack": SymmetricWinnow(0.5, slack=0.0),
    "graph": KernelPerceptron(graph_kernel(np.eye(9, k=1) + np.eye(9, k=-1))),
    "nested": Majority([Majority([MatrixWinnow(), Doubling()]), SymmetricWinnow()], beta=0.8),
}


@pytest.mark.parametrize("law", learners.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("method", ONLINE, ids=lambda m: m.name)
def test_learner(method, law):
    assert method.problem, f"{method.name} must name its problem in the gallery"
    law(method.load()(**method.example), getattr(gallery, method.problem)(0))


@pytest.mark.parametrize("law", learners.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", VARIANTS)
def test_variant(name, law):
    law(VARIANTS[name], gallery.binary_trials(1))


def test_doubling_obeys_across_a_restart():
    """The adversary on two rows and columns forces restarts; older states and copies must agree about them."""
    trials, learner = [], Doubling()
    for t in range(260):
        i, j = t % 2, (t // 2) % 2
        trials.append((i, j, -learner.predict(i, j)))
        learner = learner.learn(*trials[-1])
    assert learner.restarts >= 1
    for law in (
        learners.older_states_live_on,
        learners.saves_and_loads,
        learners.many_is_one_by_one,
    ):
        law(Doubling(), trials)


def test_laws_catch_a_learner_that_breaks_them():
    class Forgetful(MatrixWinnow):
        def learn(self, i, j, y):
            object.__setattr__(self, "trials", self.trials + 1)
            return super().learn(i, j, y)

        def margin(self, i, j):
            return float(np.random.default_rng().random())

    trials = gallery.binary_trials(2)
    for law in (learners.is_frozen, learners.many_is_one_by_one, learners.older_states_live_on):
        with pytest.raises(AssertionError):
            law(Forgetful(), trials)
