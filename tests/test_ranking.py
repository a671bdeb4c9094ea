"""Ranking from comparisons: dense referees, gauges, what cannot be compared, bad input, the command."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import stdtrit
from typer.testing import CliRunner

from entrywise.apply.ranking import Ranking, bradley_terry, deviations, next_pairs, rank
from entrywise.cli.app import app
from entrywise.exceptions import DataError, NotIdentifiable, ParameterError

next_pairs_module = importlib.import_module("entrywise.apply.ranking.next_pairs")


def games(seed, n, t, spread=1.0):
    """Return (winners, losers, scores) of t random games."""
    rng = np.random.default_rng(seed)
    s = rng.normal(0, spread, n)
    a = rng.integers(0, n, t)
    b = (a + rng.integers(1, n, t)) % n
    won = rng.random(t) < 1 / (1 + np.exp(s[b] - s[a]))
    return np.where(won, a, b), np.where(won, b, a), s


def maximum(winners, losers, n):
    """Dense maximum likelihood by a general optimiser."""

    def loss(s):
        d = s[winners] - s[losers]
        p = 1 / (1 + np.exp(d))
        gradient = np.bincount(losers, p, n) - np.bincount(winners, p, n)
        return float(np.logaddexp(0, -d).sum()), gradient

    s = minimize(loss, np.zeros(n), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    return s - s.mean()


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(3, 12))
def test_newton_equals_a_general_optimiser(seed, n):
    won, lost, _ = games(seed, n, 12 * n, 0.7)
    try:
        found = rank(won, lost, prior=None)
    except NotIdentifiable:
        assume(False)
    assume(found.report["components"] == 1 and len(found.items) == n)
    np.testing.assert_allclose(
        found.score[np.argsort(found.items)], maximum(won, lost, n), atol=1e-5
    )


def moments_by_sampling(won, lost, n, spread, draws=400_000):
    """Referee of the posterior: means and deviations by weighting draws of the prior."""
    s = np.random.default_rng(0).normal(0, spread, (draws, n))
    s -= s.mean(axis=1, keepdims=True)
    log = -np.logaddexp(0, s[:, lost] - s[:, won]).sum(axis=1)
    w = np.exp(log - log.max())
    w /= w.sum()
    mean = w @ s
    return mean, np.sqrt(w @ (s - mean) ** 2)


@pytest.mark.parametrize("seed", range(4))
def test_the_posterior_is_that_of_the_model(seed):
    won, lost, _ = games(seed, 4, 14)
    found = rank(won, lost, prior=1.2)
    at = np.argsort(found.items)
    mean, deviation = moments_by_sampling(won, lost, 4, 1.2)
    np.testing.assert_allclose(found.score[at], mean, atol=0.05)
    np.testing.assert_allclose(found.deviation[at], deviation, rtol=0.06)


@pytest.mark.parametrize(("n", "t", "spread"), [(30, 600, 1.0), (100, 1000, 2.0), (60, 1200, 4.0)])
def test_scores_are_neither_too_far_apart_nor_too_sure(n, t, spread):
    """The quick form of benchmarks/trust.py."""
    covered, along, size = [], 0.0, 0.0
    for seed in range(1800 // n):
        won, lost, s = games([n, seed], n, t, spread)
        found = rank(won, lost)
        true = s[found.items] - s[found.items].mean()
        low, high = found.interval(0.9)
        covered.append(np.mean((low <= true) & (true <= high)))
        along, size = along + found.score @ true, size + found.score @ found.score
    error = np.std(covered) / np.sqrt(len(covered))
    assert 0.88 - 3 * error <= np.mean(covered) <= 0.92 + 3 * error
    assert 0.93 <= along / size <= 1.07


def test_many_items_are_fitted_as_few_are(monkeypatch):
    won, lost, _ = games(3, 200, 3000)
    one = rank(won, lost)
    monkeypatch.setattr(bradley_terry, "DENSE", 10)
    two = rank(won, lost)
    assert two.spread == pytest.approx(one.spread, rel=0.02)
    by_name = dict(zip(two.items.tolist(), two.score.tolist(), strict=True))
    np.testing.assert_allclose([by_name[x] for x in one.items.tolist()], one.score, atol=0.05)


def test_games_of_a_pair_that_hang_together_widen_the_errors():
    """Eight games of a pair that all go one way tell no more than one."""
    covered = {"games": [], "pairs": []}
    for seed in range(20):
        won, lost, s = games([5, seed], 30, 900)
        for errors, kept in covered.items():
            found = rank(won, lost, counts=np.full(900, 8.0), errors=errors, prior=1.0)
            true = s[found.items] - s[found.items].mean()
            low, high = found.interval(0.9)
            kept.append(np.mean((low <= true) & (true <= high)))
    assert np.mean(covered["games"]) < 0.6
    assert 0.85 < np.mean(covered["pairs"]) < 0.97


def test_davidson_finds_scores_and_the_weight_of_ties():
    rng = np.random.default_rng(4)
    n, t, nu = 12, 9000, 0.8
    s = rng.normal(0, 1, n)
    a = rng.integers(0, n, t)
    b = (a + rng.integers(1, n, t)) % n
    d = s[a] - s[b]
    total = np.exp(d / 2) + np.exp(-d / 2) + nu
    u = rng.random(t) * total
    first, tied = u < np.exp(d / 2), u > total - nu
    won, lost = np.where(first | tied, a, b), np.where(first | tied, b, a)
    found = rank(won, lost, tied=tied, ties="davidson")
    assert found.report["weight_of_ties"] == pytest.approx(nu, rel=0.1)
    true = s[found.items] - s.mean()
    low, high = found.interval(0.99)
    assert np.mean((low <= true) & (true <= high)) >= 0.9
    likely = rank(won, lost, tied=tied, ties="davidson", prior=None)
    np.testing.assert_allclose(likely.score, found.score, atol=0.1)
    half = rank(won, lost, tied=tied)
    assert half.report["weight_of_ties"] == 0
    assert (
        np.abs(half.score).mean() < np.abs(found.score).mean()
    )  # half a win each way draws together


def test_spectral_equals_the_null_vector():
    won, lost, _ = games(3, 12, 200)
    found = rank(won, lost, method="spectral")
    n = 12
    rate = np.zeros((n, n))
    np.add.at(rate, (lost, won), 1.0)  # the walk goes from loser to winner
    met = (rate + rate.T) > 0
    rate += 0.1 * met
    Q = rate - np.diag(rate.sum(axis=1))
    pi = np.linalg.svd(Q.T)[2][-1]
    want = np.log(np.abs(pi))
    np.testing.assert_allclose(found.score[np.argsort(found.items)], want - want.mean(), atol=1e-9)


@pytest.mark.parametrize("method", ["bradley-terry", "spectral"])
def test_both_methods_find_the_order(method):
    won, lost, s = games(0, 30, 6000)
    found = rank(won, lost, method=method)
    assert np.corrcoef(s[found.items], found.score)[0, 1] > 0.98
    assert np.all(np.diff(found.score) <= 0)


@pytest.mark.parametrize("prior", [None, "auto", 0.3])
def test_deviations_and_differences_equal_the_pseudo_inverse(prior):
    won, lost, _ = games(1, 25, 900)
    found = rank(won, lost, prior=prior)
    n = len(found.items)
    L = np.zeros((n, n))
    for a, b, w in zip(found.left, found.right, found.weight, strict=True):
        L[a, a] += w
        L[b, b] += w
        L[a, b] -= w
        L[b, a] -= w
    C = np.linalg.pinv(L + (np.eye(n) - 1 / n) * found.spread**-2.0)
    np.testing.assert_allclose(found.deviation, np.sqrt(np.diag(C)), rtol=1e-8)
    _, low, high = found.compare(found.items[0], found.items[4], 0.9)
    logit = np.log([low / (1 - low), high / (1 - high)])
    z = stdtrit(n - 1, 0.95) if prior == "auto" else 1.6448536
    width = 2 * z * np.sqrt(C[0, 0] + C[4, 4] - 2 * C[0, 4])
    assert np.diff(logit)[0] == pytest.approx(width, rel=1e-6)


def test_sampled_deviations_are_near(monkeypatch):
    won, lost, _ = games(1, 60, 1500)
    exact = rank(won, lost).deviation
    monkeypatch.setattr(deviations, "DENSE", 10)
    sampled = rank(won, lost).deviation
    assert np.mean(np.abs(sampled / exact - 1)) < 0.1


def test_what_was_never_compared_is_ranked_apart():
    found = rank(["a", "b", "c", "x"], ["b", "c", "a", "y"])
    assert found.component.tolist() == [0, 0, 0, 1, 1]
    assert found.score[:3].tolist() == pytest.approx([0, 0, 0], abs=1e-8)
    assert found.items[3:].tolist() == ["x", "y"]
    assert found.report["components"] == 2
    with pytest.raises(NotIdentifiable, match="no chain of comparisons links 'a' to 'x'"):
        found.compare("a", "x")


def test_unbeaten_items_need_a_prior():
    with pytest.raises(NotIdentifiable, match=r"no chain of wins leads from '.' back to '.'"):
        rank(["a", "a", "b", "c"], ["b", "c", "c", "b"], prior=None)
    found = rank(["a", "a", "b", "c"], ["b", "c", "c", "b"])
    assert found.items[0] == "a"
    assert np.all(np.isfinite(found.score))
    assert found.report["never_lost"] == 1


def test_without_a_prior_two_players_have_the_log_odds():
    found = rank(["a", "b"], ["b", "a"], counts=[3, 1], prior=None)
    assert found.score[0] - found.score[1] == pytest.approx(np.log(3), abs=1e-9)
    chance, low, high = found.compare("a", "b")
    assert chance == pytest.approx(0.75)
    spread = 1.96 * np.sqrt(1 / (4 * 0.75 * 0.25))
    assert low == pytest.approx(1 / (1 + np.exp(-np.log(3) + spread)), abs=1e-4)
    assert high == pytest.approx(1 / (1 + np.exp(-np.log(3) - spread)), abs=1e-4)
    assert found.compare("a", "a")[0] == 0.5


def test_ties_are_half_wins_and_counts_add_up():
    one = rank(["a", "b", "b"], ["b", "a", "c"], counts=[0.5, 0.5, 2])
    two = rank(["a", "b", "b", "b"], ["b", "a", "c", "c"], counts=[0.5, 0.5, 1, 1])
    np.testing.assert_allclose(one.score, two.score, atol=1e-9)


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_order_and_names_do_not_matter(seed):
    won, lost, _ = games(seed, 8, 60)
    rng = np.random.default_rng(seed)
    order, name = rng.permutation(60), rng.permutation(8)
    one, two = rank(won, lost), rank(name[won][order], name[lost][order])
    scores = dict(zip(two.items.tolist(), two.score.tolist(), strict=True))
    for x, s in zip(one.items.tolist(), one.score.tolist(), strict=True):
        assert scores[int(name[x])] == pytest.approx(s, abs=1e-6)


def test_a_long_chain_is_solved_exactly():
    n = 3000  # each beats the next 3 to 1: scores fall by log 3 a step
    a = np.arange(n - 1)
    found = rank(
        np.r_[a, a + 1],
        np.r_[a + 1, a],
        counts=np.r_[np.full(n - 1, 3.0), np.ones(n - 1)],
        prior=None,
    )
    np.testing.assert_array_equal(found.items, np.arange(n))
    np.testing.assert_allclose(np.diff(found.score), -np.log(3), atol=1e-7)


def test_results_can_be_kept(tmp_path):
    found = rank(["a", "b", "c"], ["b", "c", "a"])
    found.save(tmp_path / "ranking.npz")
    again = Ranking.load(tmp_path / "ranking.npz")
    assert again.items.tolist() == found.items.tolist()
    np.testing.assert_array_equal(again.interval().low, found.interval().low)


@pytest.mark.parametrize(
    ("columns", "extra", "error", "words"),
    [
        (([], []), {}, DataError, "no comparisons"),
        ((["a"], ["b", "c"]), {}, DataError, "equally long"),
        ((["a"], ["a"]), {}, DataError, "compared with another"),
        ((["a", None], ["b", "c"]), {}, DataError, "must not be missing"),
        ((["a"], ["b"]), {"counts": [-1]}, DataError, "counts must be"),
        ((["a"], ["b"]), {"counts": [0]}, DataError, "all counts are 0"),
        ((["a"], ["b"]), {"prior": -1}, ParameterError, "prior must be"),
        ((["a"], ["b"]), {"prior": 0}, ParameterError, "prior must be"),
        ((["a"], ["b"]), {"prior": "none"}, ParameterError, "prior must be"),
        ((["a"], ["b"]), {"ties": "whole"}, ParameterError, "ties must be half or davidson"),
        ((["a"], ["b"]), {"errors": "all"}, ParameterError, "errors must be games or pairs"),
        ((["a"], ["b"]), {"tied": [1]}, DataError, "tied must be one true or false"),
        ((["a"], ["b"]), {"method": "elo"}, ParameterError, "method must be"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(columns, extra, error, words):
    with pytest.raises(error, match=words):
        rank(*columns, **extra)


def test_bad_questions():
    found = rank(["a"], ["b"])
    with pytest.raises(ParameterError, match="one of the 2 items"):
        found.compare("a", "z")
    with pytest.raises(ParameterError, match="level must be"):
        found.interval(0)
    with pytest.raises(NotIdentifiable, match="spectral method tells no errors"):
        rank(["a", "b"], ["b", "a"], method="spectral").interval()


def test_next_pairs_lower_the_goal_most():
    """The first pair named is the one that a full look at every pair would choose."""
    won, lost, _ = games(2, 9, 60)
    found = rank(won, lost)
    n = len(found.items)
    L = np.zeros((n, n))
    np.subtract.at(L, (found.left, found.right), found.weight)
    L += L.T
    L -= np.diag(L.sum(axis=1))
    P = np.eye(n) - 1 / n

    def covariance(H):
        return np.linalg.pinv(H + P / found.spread**2)

    C = covariance(L)
    for goal in ("all", 3):
        sd = np.sqrt(np.maximum(np.add.outer(C.diagonal(), C.diagonal()) - 2 * C, 1e-30))
        gap = np.subtract.outer(found.score, found.score)
        K = np.exp(-0.5 * (gap / sd) ** 2) / sd
        if goal != "all":
            inside = np.arange(n) < goal
            K = K * (inside[:, None] != inside[None, :])
        values = {}
        for a in range(n):
            for b in range(a + 1, n):
                e = np.zeros(n)
                e[a], e[b] = 1, -1
                R = e @ C @ e
                p = 1 / (1 + np.exp(-(e @ found.score) / np.sqrt(1 + np.pi * R / 8)))
                after = covariance(L + p * (1 - p) * np.outer(e, e))
                D = C - after
                fall = np.add.outer(D.diagonal(), D.diagonal()) - 2 * D
                values[a, b] = np.triu(K * fall, 1).sum()
        best = max(values, key=values.get)
        first, second, chance, gain = next_pairs(found, 5, goal=goal)
        assert (first[0], second[0]) == (found.items[best[0]], found.items[best[1]])
        assert len(first) == 5
        assert np.all((chance >= 0.5) & (gain > 0) & (gain < 1))


def test_next_pairs_join_what_was_never_compared(monkeypatch):
    found = rank(["a", "b", "c", "x", "p"], ["b", "c", "a", "y", "q"])
    first, second, _, gain = next_pairs(found, 3)
    part = dict(zip(found.items.tolist(), found.component.tolist(), strict=True))
    met = {frozenset((part[a], part[b])) for a, b in zip(first[:2], second[:2], strict=True)}
    assert met == {frozenset((0, 1)), frozenset((0, 2))}
    assert gain[:2].min() > 0
    won, lost, _ = games(2, 40, 300)
    found = rank(won, lost)
    monkeypatch.setattr(next_pairs_module, "DENSE", 10)
    first, second, _, gain = next_pairs(found, 30, goal=5)
    assert len(first) == 30
    order = {x: k for k, x in enumerate(found.items.tolist())}
    assert all((order[a] < 5) != (order[b] < 5) for a, b in zip(first, second, strict=True))


def test_next_pairs_refuse():
    found = rank(["a", "b", "c"], ["b", "c", "a"])
    with pytest.raises(ParameterError, match="limit must be"):
        next_pairs(found, 0)
    with pytest.raises(ParameterError, match="goal must be all or a number"):
        next_pairs(found, goal=3)
    with pytest.raises(NotIdentifiable, match="needs a posterior"):
        next_pairs(rank(["a", "b"], ["b", "a"], prior=None))


def test_command(tmp_path):
    file = tmp_path / "games.csv"
    file.write_text("better,worse\nann,bob\nann,bob\nbob,ann\nxyz,uvw\n")
    run = CliRunner().invoke(app, ["rank", str(file)])
    assert run.exit_code == 0
    lines = run.stdout.splitlines()
    assert lines[0] == "rank,item,score,low,high,wins,losses,component"
    assert lines[1].startswith("1,ann,")
    assert lines[3].startswith("1,xyz,")
    assert "2 components" in run.stderr
    assert "winner is 'better'" in run.stderr
    run = CliRunner().invoke(app, ["rank", str(file), "--prior", "none"])
    assert run.exit_code == 1
    assert "no chain of wins" in str(run.exception)
    run = CliRunner().invoke(app, ["rank", str(file), "--level", "7"])
    assert "--level must be" in str(run.exception)
    run = CliRunner().invoke(app, ["rank", str(file), "--method", "spectral"])
    assert run.stdout.splitlines()[1].split(",")[3:5] == ["", ""]


def test_next_pairs_from_the_shell(tmp_path):
    file = tmp_path / "games.csv"
    file.write_text("winner,loser\nann,bob\nann,bob\nbob,ann\nbob,cat\nxyz,uvw\n")
    run = CliRunner().invoke(app, ["rank", "next", str(file), "--limit", "3"])
    assert run.exit_code == 0, run.output
    lines = run.stdout.splitlines()
    assert lines[0] == "first,second,chance,gain"
    assert len(lines) == 4
    assert {"xyz", "uvw"} & set(lines[1].split(",")[:2])  # the two parts are joined first
    run = CliRunner().invoke(app, ["rank", "next", str(file), "--goal", "best"])
    assert "--goal must be all or a number" in str(run.exception)
    assert "entrywise rank next" in CliRunner().invoke(app, ["rank", "--help"]).output
