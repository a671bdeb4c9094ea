"""The best pair: by low rank, by halving, by the bandits; exact without noise; simulators of sub-populations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import entrywise as ew
from entrywise import gallery
from entrywise.active import (
    lil_ucb,
    median_elimination,
    sequential_halving,
    stochastic_nystrom,
    successive_elimination,
    uniform_pairs,
)
from entrywise.active.pairs.halving import arms_for, rounds_for
from entrywise.apply.pairs import Population, PopulationOracle, best_pair, population, regret
from entrywise.checks import plans
from entrywise.exceptions import ParameterError
from entrywise.gallery import pair_losses
from entrywise.oracles import BernoulliOracle, MatrixOracle
from entrywise.play import play
from entrywise.run import Run

BANDITS = [sequential_halving, uniform_pairs, successive_elimination, median_elimination, lil_ucb]


@pytest.mark.slow
def test_finds_a_good_pair_where_uniform_sampling_does_not():
    errors = {"ours": [], "naive": []}
    for seed in range(6):
        L = pair_losses("synthetic", 100, 2, seed)
        errors["ours"].append(
            regret(
                L, play(best_pair(100, budget=5000, rng=seed), BernoulliOracle(L, rng=seed)).pair
            )
        )
        errors["naive"].append(
            regret(
                L,
                play(uniform_pairs(100, budget=5000, rng=seed), BernoulliOracle(L, rng=seed)).pair,
            )
        )
    assert np.median(errors["ours"]) <= np.median(errors["naive"]) / 4


@pytest.mark.parametrize("budget", [0, 1, 2, 9, 333, 5000])
@pytest.mark.parametrize("make", [best_pair, sequential_halving, uniform_pairs])
def test_budget_is_spent_to_the_pull(make, budget):
    oracle = BernoulliOracle(pair_losses("bandit", 15, 2), rng=0)
    found = play(make(15, budget=budget, rng=0), oracle)
    assert found.cost == oracle.spent == budget
    i, j = found.pair
    assert 0 <= i < j < 15


@pytest.mark.parametrize("make", BANDITS)
@pytest.mark.parametrize("budget", [0, 3, 50, 400])
@pytest.mark.parametrize("diagonal", [False, True])
def test_bandits_stay_within_any_budget(make, budget, diagonal):
    oracle = BernoulliOracle(pair_losses("bandit", 8, 2), rng=0)
    found = play(make(8, budget=budget, diagonal=diagonal, rng=0), oracle)
    assert found.cost == oracle.spent <= budget
    i, j = found.pair
    assert i <= j < 8
    assert diagonal or i < j


@pytest.mark.parametrize("make", [*BANDITS, best_pair])
def test_an_easy_problem_is_solved(make):
    L = np.full((6, 6), 0.9)
    L[1, 4] = L[4, 1] = 0.02
    found = play(make(6, budget=6000, rng=1), BernoulliOracle(L, rng=2))
    assert found.pair == (1, 4)
    assert found.value < 0.15
    assert found.pulls > 0


@pytest.mark.parametrize("make", BANDITS)
def test_two_items_have_one_pair(make):
    assert play(make(2, budget=10, rng=0), BernoulliOracle(np.full((2, 2), 0.5), rng=0)).pair == (
        0,
        1,
    )


def test_elimination_certifies_what_it_proves():
    L = np.full((4, 4), 0.95)
    L[0, 1] = L[1, 0] = 0.0
    found = play(successive_elimination(4, budget=100_000, rng=0), BernoulliOracle(L, rng=0))
    assert found.cost < 1000
    assert found.certificate is not None
    assert found.pair == (0, 1)
    short = play(successive_elimination(4, budget=20, rng=0), BernoulliOracle(L, rng=0))
    assert short.certificate is None
    assert short.cost == 20
    median = play(
        median_elimination(4, budget=200_000, epsilon=0.5, rng=0), BernoulliOracle(L, rng=0)
    )
    assert median.certificate.value == 0.5
    assert median.pair == (0, 1)
    assert (
        play(
            median_elimination(4, budget=100, epsilon=0.5, rng=0), BernoulliOracle(L, rng=0)
        ).certificate
        is None
    )


def test_lil_ucb_one_by_one_and_heuristic():
    L = np.full((4, 4), 0.9)
    L[2, 3] = L[3, 2] = 0.1
    for extra in ({"batch": 1}, {"heuristic": True}):
        found = play(lil_ucb(4, budget=3000, rng=0, **extra), BernoulliOracle(L, rng=0))
        assert found.pair == (2, 3)
        assert found.cost <= 3000


@given(st.integers(1, 5000), st.integers(1, 3000))
def test_arms_are_as_many_as_can_be_served(total, most):
    arms = arms_for(total, most)
    assert 1 <= arms <= most
    assert arms == 1 or arms * rounds_for(arms) <= total
    assert arms == most or (arms + 1) * rounds_for(arms + 1) > total


@pytest.mark.parametrize("rank", [1, 2, 5])
@pytest.mark.parametrize("allow_same", [False, True])
def test_exact_answers_give_the_exact_pair_in_few_questions(rank, allow_same):
    users = population(60, rank, rng=rank)
    oracle = PopulationOracle(users, exact=True)
    found = play(best_pair(60, noise=0, allow_same=allow_same), oracle)
    L = users.losses.to_dense()
    assert regret(L, found.pair, allow_same) == pytest.approx(0.0, abs=1e-12)
    assert oracle.spent == 60 * (rank + 1) - rank * (rank + 1) // 2 <= (rank + 1) * 60
    assert found.certificate.value < 1e-10
    assert found.value == pytest.approx(L[found.pair], abs=1e-10)


def test_exact_clicks_and_an_early_end():
    users = population(30, 3, rng=0)
    clicks = MatrixOracle(1.0 - users.losses.to_dense())
    found = play(best_pair(30, noise=0, answers="success"), clicks)
    assert regret(users.losses.to_dense(), found.pair) < 1e-12
    short = play(best_pair(30, noise=0), PopulationOracle(users, exact=True), budget=40)
    assert short.status == "exhausted"
    assert short.cost <= 40
    assert short.certificate.vacuous or short.certificate.value > 0
    assert play(best_pair(30, noise=0), PopulationOracle(users, exact=True), budget=3).pair == (
        0,
        1,
    )


def test_clicks_are_losses_turned_round():
    users = population(20, 2, rng=3)
    losses = PopulationOracle(users, rng=1)
    clicks = PopulationOracle(users, rng=1)
    one = play(best_pair(20, budget=3000, rng=0), losses)
    two = play(
        best_pair(20, budget=3000, answers="success", rng=0), lambda batch: 1.0 - clicks(batch)
    )
    assert one.pair == two.pair
    assert one.value == pytest.approx(two.value)
    np.testing.assert_allclose(one.factor, two.factor)


def test_population_answers_with_the_mean_it_says():
    users = Population([0.3, 0.7], [[0.9, 0.2], [0.1, 0.6]])
    L = users.losses.to_dense()
    assert L[0, 1] == pytest.approx(0.3 * 0.1 * 0.8 + 0.7 * 0.9 * 0.4)
    assert L[0, 0] == pytest.approx(0.3 * 0.01 + 0.7 * 0.81)  # two draws of the same user
    oracle = PopulationOracle(users, rng=0)
    for i, j in ((0, 1), (0, 0)):
        batch = ew.Batch(np.full(40_000, i), np.full(40_000, j))
        assert oracle(batch).mean() == pytest.approx(L[i, j], abs=0.01)
    assert np.array_equal(L, np.clip(L, 0, 1))
    assert np.linalg.eigvalsh(L).min() >= -1e-12  # Proposition 5.1


def test_the_diagonal_is_asked_only_when_it_may_be():
    asked = []

    def note(batch):
        asked.append(int(np.sum(batch.rows == batch.cols)))
        return np.zeros(len(batch))

    play(best_pair(12, budget=2000, rng=0), note)
    assert sum(asked) == 0
    asked.clear()
    play(best_pair(12, budget=2000, rng=0, ask_diagonal=True), note)
    assert sum(asked) > 0


@pytest.mark.parametrize("ask", [True, False])
def test_one_item_shown_twice_may_win(ask):
    U = np.full((12, 1), 0.9)
    U[7] = 0.05  # everybody takes item 7
    L = U @ U.T
    rank = (
        4 if ask else 1
    )  # a diagonal that is never asked follows from the others only as far as the rank is known
    plan = best_pair(12, budget=20_000, rank=rank, allow_same=True, ask_diagonal=ask, rng=0)
    assert play(plan, BernoulliOracle(L, rng=0)).pair == (7, 7)
    pair = play(
        best_pair(12, budget=20_000, ask_diagonal=ask, rng=0), BernoulliOracle(L, rng=0)
    ).pair
    assert 7 in pair
    assert pair[0] != pair[1]


@pytest.mark.slow
def test_certificates_cover_the_loss_and_the_runner_up():
    missed, outside, width = 0, 0, []
    for seed in range(40):
        L = pair_losses("bandit", 20, 2, seed)
        found = play(best_pair(20, budget=1500, rng=seed), BernoulliOracle(L, rng=seed))
        loss, behind = found.certificates
        missed += L[found.pair] > loss.value
        low, high = found.report["difference"]
        outside += not low <= L[found.report["runner_up"]] - L[found.pair] <= high
        assert behind.value == max(0.0, -low)
        width.append(behind.value / loss.value)
    assert missed <= 4  # 2 are expected at most
    assert outside <= 5
    assert np.median(width) < 1  # a statement of its own, not the loss again


def test_gaussian_noise():
    L = 50.0 * pair_losses("synthetic", 30, 2, seed=2)
    found = play(
        best_pair(30, budget=20_000, noise=10.0, rng=0), MatrixOracle(L, noise=10.0, rng=1)
    )
    assert regret(L, found.pair) < 2.0
    assert found.certificate.value >= found.value - 10


def test_failed_answers_are_left_out():
    L = pair_losses("synthetic", 20, 2)
    rng = np.random.default_rng(0)

    def often_fails(batch):
        answers = (rng.random(len(batch)) < L[batch.rows, batch.cols]).astype(object)
        answers[rng.random(len(batch)) < 0.3] = None
        return answers

    assert regret(L, play(best_pair(20, budget=8000, rng=0), often_fails).pair) < 0.05


@pytest.mark.parametrize("answers", ["failure", "success"])
def test_resuming_from_every_checkpoint_is_bit_identical(answers):
    L = pair_losses("synthetic", 30, 3)
    plan, oracle = best_pair(30, budget=6000, answers=answers, rng=5), BernoulliOracle(L, rng=3)
    run, kept = Run(plan), {}
    while not run.finished:
        kept[id(run.checkpoint)] = (run.checkpoint, run.checkpoint_at)
        run.tell(oracle(run.ask()))
    assert len(kept) > 8
    for checkpoint, at in kept.values():
        again = Run.replay(plan, run.log[at:], resume=checkpoint).result
        assert (again.pair, again.value, again.pulls) == (
            run.result.pair,
            run.result.value,
            run.result.pulls,
        )
        np.testing.assert_array_equal(again.factor, run.result.factor)
        assert again.certificates == run.result.certificates


def test_results_are_kept_in_files(tmp_path):
    found = play(
        best_pair(10, budget=500, rng=0), BernoulliOracle(pair_losses("bandit", 10, 2), rng=0)
    )
    found.save(tmp_path / "pair.npz")
    again = type(found).load(tmp_path / "pair.npz")
    assert again.pair == found.pair
    assert again.matrix.shape == (10, 10)
    np.testing.assert_array_equal(again.factor, found.factor)


@pytest.mark.slow
def test_a_study_of_pairs_speaks_labels_and_survives(tmp_path):
    names = [f"ad {k}" for k in range(8)]
    L = pair_losses("synthetic", 8, 2, seed=1)
    url = str(tmp_path / "ads.db")
    study = ew.Study.create(url, "pairs", plan="best-pair", budget=300, seed=1, rows=names)
    rng = np.random.default_rng(0)
    for _ in range(10_000):
        todo = study.ask(40)
        if not todo:
            break
        assert todo[0].row in names
        study.tell([(q.id, float(rng.random() < L[q.index])) for q in todo])
        study = ew.Study.open(url, "pairs")
    assert study.finished
    found = study.result()
    assert found.cost == 300
    assert found.pair[0] < found.pair[1] < 8


@pytest.mark.parametrize(
    "params",
    [
        {"n_items": 1, "budget": 5},
        {"n_items": 5},
        {"n_items": 5, "budget": 5, "answers": "clicks"},
        {"n_items": 5, "budget": 5, "rank": 0},
        {"n_items": 5, "noise": 0, "ask_diagonal": False},
        {"n_items": 5, "budget": 5, "delta": 1.0},
    ],
)
def test_bad_parameters_are_refused_at_once(params):
    with pytest.raises(ParameterError):
        best_pair(**params, rng=0)


@pytest.mark.parametrize("make", BANDITS)
def test_bandits_refuse_bad_parameters(make):
    for params in ({"n": 1, "budget": 5}, {"n": 5, "budget": -1}):
        with pytest.raises(ParameterError):
            make(**params, rng=0)


def test_populations_refuse_what_is_none():
    with pytest.raises(ParameterError, match="add up to 1"):
        Population([0.5, 0.4], np.zeros((2, 3)))
    with pytest.raises(ParameterError, match="one share a group"):
        Population([1.0], np.zeros((2, 3)))
    with pytest.raises(ParameterError, match=r"0\.\.1"):
        Population([1.0], [[0.5, 1.5]])


@pytest.mark.slow
@pytest.mark.parametrize("law", plans.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize(
    "made",
    [
        best_pair(12, budget=300, answers="success", rng=0),
        best_pair(12, budget=300, ask_diagonal=True, allow_same=True, rng=0),
        best_pair(12, budget=300, noise=0.5, rng=0),
        stochastic_nystrom(12, rank=2, budget=300, ask_diagonal=False, rng=0),
        lil_ucb(12, budget=300, heuristic=True, diagonal=True, rng=0),
    ],
    ids=["success", "diagonal", "noise", "blind", "lil"],
)
def test_variants_obey_the_laws(made, law):
    law(made, gallery.coin_oracle)


@pytest.mark.parametrize("budget", [1e300, 1e17, float("inf")])
@pytest.mark.parametrize(
    "make",
    [
        sequential_halving,
        successive_elimination,
        median_elimination,
        lil_ucb,
        uniform_pairs,
        best_pair,
    ],
)
def test_budgets_beyond_counting_are_refused(make, budget):
    with pytest.raises(ParameterError, match=r"budget of .* must"):
        make(5, budget=budget, rng=0)


def test_promises_beyond_counting_are_refused():
    with pytest.raises(ParameterError, match="epsilon of median_elimination must be in"):
        median_elimination(5, budget=100, epsilon=1e-300, rng=0)
    with pytest.raises(ParameterError, match="delta of successive_elimination must be in"):
        successive_elimination(5, budget=100, delta=1e-320, rng=0)


def quiet_users(n, seed=0):
    """Two groups who take nearly everything: losses of pairs are products of a few per cent."""
    rng = np.random.default_rng(seed)
    refused = np.exp(rng.uniform(np.log(0.01), np.log(0.4), (2, n)))
    return Population([0.6, 0.4], 1.0 - refused)


@pytest.mark.slow
def test_pairs_that_nobody_refuses_are_told_apart_through_their_items():
    """Asking for good pairs hears only zeros here: rounds on items are played, and do better than halving."""
    users = quiet_users(60)
    L = users.losses.to_dense()
    ours, halved, items = [], [], []
    for seed in range(6):
        run = Run(best_pair(60, budget=6000, rank=2, rng=seed))
        found = ew.play(run, PopulationOracle(users, rng=seed))
        ours.append(regret(L, found.pair))
        plain = sequential_halving(60, budget=6000, rng=seed)
        halved.append(regret(L, ew.play(plain, PopulationOracle(users, rng=seed)).pair))
        items.append(sum(len(batch) for batch, _ in run.log))
    assert items == [6000] * 6
    assert np.mean(ours) < np.mean(halved)


def test_loud_losses_are_asked_for_directly():
    from entrywise.active.nystrom.stochastic import State
    from entrywise.apply.pairs import _Search

    state = State(20, 2, None, False, np.random.default_rng(0))
    search = _Search(state, False)
    assert not search._silent(10_000)  # nothing was answered yet
    i, j = np.triu_indices(20, 1)
    state.tally.add(i, j, np.full(len(i), 0.5))
    assert not search._silent(10_000)
    quiet = State(20, 2, None, False, np.random.default_rng(0))
    quiet.tally.add(i, j, np.full(len(i), 1e-4))
    assert _Search(quiet, False)._silent(10_000)
    exact = State(20, 2, 0.3, False, np.random.default_rng(0))
    exact.tally.add(i, j, np.full(len(i), 1e-4))
    assert not _Search(exact, False)._silent(
        10_000
    )  # other answers than coins have their noise stated


def test_whether_pairs_are_silent_is_asked_once(monkeypatch):
    """Later answers of good items are beside refused partners: judged by them, the rounds on items would end early."""
    from entrywise.apply.pairs import FEWEST, _Search

    asked = []
    monkeypatch.setattr(_Search, "_silent", lambda self, left: not asked.append(left))
    run = Run(best_pair(64, budget=3000, rank=2, rng=0))
    ew.play(run, PopulationOracle(quiet_users(64), rng=0))
    assert len(asked) == 1
    assert run.checkpoint is not None
    assert len(run.checkpoint.arrays["items"]) == FEWEST
