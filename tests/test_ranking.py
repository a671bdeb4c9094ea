"""Ranking from comparisons: dense referees, gauges, what cannot be compared, bad input, the command."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from typer.testing import CliRunner

from entrywise.apply.ranking import Ranking, deviations, rank
from entrywise.cli.app import app
from entrywise.exceptions import DataError, NotIdentifiable, ParameterError


def games(seed, n, t, spread=1.0):
    """Return (winners, losers, scores) of t random games."""
    rng = np.random.default_rng(seed)
    s = rng.normal(0, spread, n)
    a = rng.integers(0, n, t)
    b = (a + rng.integers(1, n, t)) % n
    won = rng.random(t) < 1 / (1 + np.exp(s[b] - s[a]))
    return np.where(won, a, b), np.where(won, b, a), s


def referee(winners, losers, n, prior):
    """Dense maximum likelihood by a general optimiser."""
    pairs = {(min(a, b), max(a, b)) for a, b in zip(winners, losers, strict=True)}
    w = np.array([*winners, *(a for a, _ in pairs), *(b for _, b in pairs)])
    l = np.array([*losers, *(b for _, b in pairs), *(a for a, _ in pairs)])
    c = np.r_[np.ones(len(winners)), np.full(2 * len(pairs), prior)]

    def loss(s):
        d = s[w] - s[l]
        p = 1 / (1 + np.exp(d))
        gradient = np.bincount(l, c * p, n) - np.bincount(w, c * p, n)
        return float((c * np.logaddexp(0, -d)).sum()), gradient

    s = minimize(loss, np.zeros(n), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    return s - s.mean()


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(3, 12), st.sampled_from([0.05, 0.5]))
def test_newton_equals_a_general_optimiser(seed, n, prior):
    won, lost, _ = games(seed, n, 8 * n)
    found = rank(won, lost, prior=prior)
    names = np.sort(found.items)
    assume(found.report["components"] == 1)
    code = {x: k for k, x in enumerate(names.tolist())}
    want = referee(
        [code[x] for x in won.tolist()], [code[x] for x in lost.tolist()], len(names), prior
    )
    got = found.score[np.argsort(found.items)]
    np.testing.assert_allclose(got, want, atol=1e-5)


def test_spectral_equals_the_null_vector():
    won, lost, _ = games(3, 12, 200)
    found = rank(won, lost, method="spectral", prior=0.2)
    n = 12
    rate = np.zeros((n, n))
    np.add.at(rate, (lost, won), 1.0)  # the walk goes from loser to winner
    met = (rate + rate.T) > 0
    rate += 0.2 * met
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


def test_deviations_equal_the_pseudo_inverse_and_cover():
    covered = []
    for seed in range(12):
        won, lost, s = games(seed, 25, 900)
        found = rank(won, lost, prior=0.01)
        low, high = found.interval(0.95)
        true = s[found.items] - s.mean()
        covered.append(np.mean((low <= true) & (true <= high)))
    assert 0.91 <= np.mean(covered) <= 0.99
    n = len(found.items)
    L = np.zeros((n, n))
    for a, b, w in zip(found.left, found.right, found.weight, strict=True):
        L[a, a] += w
        L[b, b] += w
        L[a, b] -= w
        L[b, a] -= w
    np.testing.assert_allclose(found.deviation, np.sqrt(np.diag(np.linalg.pinv(L))), rtol=1e-8)


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
        rank(["a", "a", "b", "c"], ["b", "c", "c", "b"], prior=0)
    found = rank(["a", "a", "b", "c"], ["b", "c", "c", "b"])
    assert found.items[0] == "a"
    assert np.all(np.isfinite(found.score))
    assert found.report["never lost"] == 1


def test_without_a_prior_two_players_have_the_log_odds():
    found = rank(["a", "b"], ["b", "a"], counts=[3, 1], prior=0)
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
        np.r_[a, a + 1], np.r_[a + 1, a], counts=np.r_[np.full(n - 1, 3.0), np.ones(n - 1)], prior=0
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
        ((["a"], ["b"]), {"method": "elo"}, ParameterError, "method must be"),
        (
            (["a", "b", "c"], ["b", "c", "a"]),
            {"prior": 0, "method": "spectral"},
            ParameterError,
            "prior above 0",
        ),
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
    run = CliRunner().invoke(app, ["rank", str(file), "--prior", "0"])
    assert run.exit_code == 1
    assert "no chain of wins" in str(run.exception)
    run = CliRunner().invoke(app, ["rank", str(file), "--level", "7"])
    assert "--level must be" in str(run.exception)
