"""Bounds on mistakes, margin complexity, and the perceptrons they speak of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrywise.bounds.binary import (
    C,
    adversary,
    bad_tasks_bound,
    bicluster_bound,
    cut_sizes,
    doubling_bound,
    goldman_warmuth_bound,
    graph_complexity_bound,
    graph_kernel,
    lower_bound,
    novikoff,
    trace_norm_bound,
    updates_bound,
    winnow_bound,
)
from entrywise.bounds.margin import margin_complexity, task_complexity
from entrywise.exceptions import ParameterError
from entrywise.gallery import bicluster_trials, biclusters
from entrywise.online import GoldmanWarmuth, HazanKaleShalevShwartz, KernelPerceptron, MatrixWinnow

PATH = np.eye(12, k=1) + np.eye(12, k=-1)


def test_theorem_3_1_and_its_corollaries():
    assert pytest.approx(3.5496, abs=1e-4) == C
    assert winnow_bound(200, 0.5, 7) == pytest.approx(C * (200 * math.log(200) * 4 + 7))
    assert doubling_bound(200, 0.5, 7) == pytest.approx(12 * winnow_bound(200, 0.5, 7))
    assert bicluster_bound(100, 100, 5, 9) == pytest.approx(winnow_bound(200, 1 / math.sqrt(5)))
    assert bad_tasks_bound(30, 20, 0.5, 2) == pytest.approx(winnow_bound(50, 0.5, 40))
    assert winnow_bound(0, 0.5) == winnow_bound(1, 0.5) == 0.0


@given(st.floats(0.01, 1.0), st.integers(2, 5000), st.integers(0, 100))
def test_the_sharper_bound_is_never_above_theorem_3_1(gamma, n, violations):
    assert updates_bound(n, gamma, gamma, violations=violations) <= winnow_bound(
        n, gamma, violations
    ) * (1 + 1e-9)


def test_slack_has_a_limit():
    assert math.isfinite(updates_bound(100, 1.0, 1.0, slack=0.16))
    assert updates_bound(100, 1.0, 1.0, slack=0.165) == math.inf
    assert updates_bound(100, 2.0, 1.0) == math.inf  # no rate this large is covered
    assert updates_bound(100, 0.3, 0.9) < updates_bound(100, 0.3, 0.5)


def test_goldman_warmuth_formula():
    assert goldman_warmuth_bound(100, 50, 1) == 50.0
    types = min(10**4 / (2 * math.e) * math.log2(math.e), 100 * math.sqrt(300))
    assert goldman_warmuth_bound(100, 50, 4) == pytest.approx(200 + types)


@pytest.mark.parametrize(
    "call",
    [
        lambda: winnow_bound(10, 0.0),
        lambda: winnow_bound(10, 1.1),
        lambda: bicluster_bound(3, 3, 4, 1),
        lambda: bad_tasks_bound(3, 3, 0.5, 4),
        lambda: goldman_warmuth_bound(3, 3, 0),
        lambda: lower_bound(3, 3, 4),
        lambda: graph_kernel(np.zeros((3, 3))),
        lambda: graph_kernel([[0, -1], [-1, 0]]),
        lambda: margin_complexity([[2]]),
    ],
)
def test_bad_parameters(call):
    with pytest.raises(ParameterError):
        call()


@pytest.mark.parametrize("side", [2, 4])
def test_hadamard_matrices_are_the_worst(side):
    H = np.array([[1.0]])
    while len(H) < side:
        H = np.kron(H, [[1, 1], [1, -1]])
    found = margin_complexity(H)
    assert found.complexity**2 == pytest.approx(side, rel=1e-4)
    assert (found.values * H >= 1.0 - 1e-4).all()


@pytest.mark.parametrize(("k", "l"), [(2, 2), (3, 3), (12, 4)])
def test_biclusters_are_as_simple_as_lemma_5_2_says(k, l):
    U = biclusters(12, 10, k, l, seed=k)
    squared, kernel = task_complexity(U)
    assert squared <= min(k, l) + 1e-4
    assert squared <= trace_norm_bound(U) ** 2
    assert (
        novikoff(kernel + 1e-6 * np.eye(10), margin_complexity(U).values).max() <= squared * 1.01
    )  # Proposition 4.1


def test_margin_complexity_of_a_part_is_no_larger():
    U = biclusters(8, 8, 4, 4, seed=1)
    part = U.copy()
    part[::2, ::2] = 0
    assert margin_complexity(part).complexity <= margin_complexity(U).complexity + 1e-4
    assert margin_complexity(np.zeros((3, 2))).complexity == 1.0


def test_graph_labelings_are_below_the_resistance_bound():
    labelings = np.array([np.where(np.arange(12) < k, 1, -1) for k in (3, 6, 9)])
    assert cut_sizes(PATH, labelings).tolist() == [1.0, 1.0, 1.0]
    bound = graph_complexity_bound(PATH, labelings)
    assert margin_complexity(labelings).complexity ** 2 <= bound
    R = np.linalg.pinv(np.diag(PATH.sum(0)) - PATH).diagonal().max()
    assert bound == pytest.approx((1 + 2 * math.sqrt(R)) ** 2)
    assert (
        novikoff(graph_kernel(PATH), labelings).max() <= (4 + 1 / R) * 2 * R + 1e-9
    )  # the paper's kernel, R doubled


def test_kernel_perceptron_stays_below_novikoff():
    rng = np.random.default_rng(0)
    labelings = np.array(
        [np.where(np.arange(12) < k, 1, -1) * s for k in (2, 5, 6, 10) for s in (1, -1)]
    )
    K = graph_kernel(PATH)
    limit = novikoff(K, labelings)
    for i in range(len(labelings)):
        learner = KernelPerceptron(K)
        for j in rng.integers(12, size=300):
            learner = learner.learn(0, int(j), int(labelings[i, j]))
        assert learner.mistakes <= limit[i] + 1e-9


@pytest.mark.slow
def test_kernel_best_in_hindsight_beats_winnow_that_does_not_know_it():
    trials = bicluster_trials(12, 12, 3, 3, 0.0, seed=3)
    rows, cols, labels = np.array(trials).T
    U = np.zeros((12, 12))
    U[rows, cols] = labels
    _, kernel = task_complexity(U)
    knowing = KernelPerceptron(kernel).follow(rows, cols, labels)[1].mistakes
    assert knowing <= MatrixWinnow(1 / math.sqrt(3)).follow(rows, cols, labels)[1].mistakes


def test_goldman_warmuth_stays_below_its_bound():
    rows, cols, labels = np.array(bicluster_trials(40, 15, 3, 15, 0.0, seed=4)).T
    learner = GoldmanWarmuth().learn_many(rows, cols, labels)
    assert learner.mistakes <= goldman_warmuth_bound(40, 15, 3)


def test_hazan_keeps_its_diagonal_bounded_and_learns():
    rows, cols, labels = np.array(bicluster_trials(14, 14, 2, 2, 0.0, seed=6)).T
    learner = HazanKaleShalevShwartz((14, 14), 0.3, math.sqrt(2)).learn_many(rows, cols, labels)
    assert np.diag(learner._memory._P).max() <= 0.5 * math.sqrt(2) * (1 + 2e-3)
    assert learner.mistakes < 0.35 * len(labels)
    with pytest.raises(ParameterError, match="14 x 14"):
        learner.predict(14, 0)


def test_adversary_labels_fit_l_kinds_of_columns():
    seen = {(i, j): y for i, j, y in adversary(5, 9, 3, lambda i, j: 1 if (i + j) % 2 else -1)}
    assert len(seen) == lower_bound(5, 9, 3) == 15
    assert {j for _, j in seen} == {0, 1, 2}


def test_margin_errors_are_an_upper_bound_that_biclusters_meet():
    """(k, l)-biclusters have margin 1 / sqrt(min(k, l)): no violations up to there, and never more than all labels."""
    from entrywise.bounds.binary import bicluster_bound, data_bound, margin_errors
    from entrywise.gallery import bicluster_trials

    trials = np.array(bicluster_trials(24, 20, 3, 4, 0.0, 1))
    U = np.zeros((24, 20))
    U[trials[:, 0], trials[:, 1]] = trials[:, 2]
    found = margin_errors(U, [0.3, 1 / np.sqrt(3), 0.99])
    assert found[0] == 0
    assert found[1] == 0
    assert found[2] <= U.size
    assert data_bound(U)[0] <= 1.1 * bicluster_bound(24, 20, 3, 4)
    flipped = U.copy()
    flipped[0, 0] *= -1  # one flip: a few violations, not many
    assert 0 < margin_errors(flipped, [1 / np.sqrt(3)])[0] <= 44


def test_margin_errors_count_a_consistent_embedding():
    """The embedding with its own coordinates, built in full: its products have every label's sign."""
    from entrywise.bounds import binary

    rng = np.random.default_rng(0)
    U = rng.choice([-1.0, 1.0], size=(6, 5))
    P, Q = binary._fit_signs(U, 2)
    P, Q = (X / np.linalg.norm(X, axis=1, keepdims=True) for X in (P, Q))
    wrong = np.argwhere(U * (P @ Q.T) <= 0)
    more = np.zeros((6, len(wrong))), np.zeros((5, len(wrong)))
    for c, (i, j) in enumerate(wrong):
        size = np.sqrt(abs(P[i] @ Q[j]) + 1e-6)
        more[0][i, c], more[1][j, c] = size, U[i, j] * size
    left, right = np.hstack([P, more[0]]), np.hstack([Q, more[1]])
    inner = left @ right.T
    lengths = np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1))
    assert (U * inner > 0).all()
    np.testing.assert_allclose(
        binary._consistent_margins(U, (P, Q)), U * inner / lengths, atol=1e-9
    )


def test_the_bounds_of_rivals():
    from entrywise.bounds.binary import regret_bound, rounding_bound

    assert regret_bound(10.0, 50, 50, 100) == pytest.approx(
        2 * np.sqrt(10 * 10 * np.log(100) * 100)
    )
    rows, cols = np.divmod(np.arange(60 * 40), 40)
    found = rounding_bound(1.0, rows, cols)
    assert found == pytest.approx(np.sqrt(60) + np.sqrt(40), rel=0.1)  # of random signs
    assert rounding_bound(1.0, [], []) == 0.0


def test_randomized_rounding_predicts_the_minimax_forecast():
    """Two entries left of 2 x 2: the mean over the other one's coin, by hand."""
    from entrywise.online import RandomizedRounding

    learner = RandomizedRounding((2, 2), trace_norm=2.0, playouts=400)
    learner = learner.learn(0, 0, 1).learn(0, 1, 1)
    norms = {(a, b): np.linalg.norm([[1, 1], [a, b]], 2) for a in (-1.0, 1.0) for b in (-1.0, 1.0)}
    p = np.mean([norms[1.0, b] - norms[-1.0, b] for b in (-1.0, 1.0)])
    assert learner._memory.score(1, 0) == pytest.approx(np.clip(p, -1, 1), abs=0.1)
    known = learner.learn(1, 0, 1)
    assert known.predict(1, 1) == 1  # three of four agree with the constant matrix
    assert known.predict(0, 0) == 1
