"""Crowd labels and skills: kernels against dense referees, laws of the answer, edges, bad input, the command."""

from __future__ import annotations

import gzip
import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma
from typer.testing import CliRunner

from entrywise.apply.crowd import (
    Consensus,
    agreement_skills,
    consensus,
    majority_vote,
    next_labels,
)
from entrywise.apply.crowd import dawid_skene as ds
from entrywise.apply.crowd.agreement import agreement, rank_one_skills
from entrywise.apply.crowd.answers import CrowdAnswers
from entrywise.apply.crowd.choice import choose, keeps_names
from entrywise.apply.crowd.confidence import weakened, wrong_labels
from entrywise.cli.app import app
from entrywise.exceptions import DataError, NotIdentifiable, ParameterError
from entrywise.linalg import _jit_crowd as jit


def crowd(
    seed, n=300, skills=(0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.15), votes=5, k=2, shares=None
):
    """Return (items, workers, labels, truth) of a made one-coin crowd."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(k, n, p=shares)
    worker = np.argsort(rng.random((n, len(skills))), axis=1)[:, :votes].ravel()
    item = np.repeat(np.arange(n), votes)
    right = rng.random(len(item)) < np.asarray(skills)[worker]
    wrong = (truth[item] + rng.integers(1, k, len(item))) % k
    return item, worker, np.where(right, truth[item], wrong), truth


def dense(answers: CrowdAnswers, prior, table):
    """Referee of one step: posterior and expected (worker, answer, truth) counts, entry by entry."""
    n, k = answers.votes.shape
    q = np.zeros((n, k))
    counts = np.zeros((len(answers.workers), k, k))
    for i in range(n):
        score = np.array(prior, float)
        for t in range(answers.start[i], answers.start[i + 1]):
            score += table[answers.worker[t], answers.label[t]]
        q[i] = np.exp(score - score.max()) / np.exp(score - score.max()).sum()
        for t in range(answers.start[i], answers.start[i + 1]):
            counts[answers.worker[t], answers.label[t]] += q[i]
    return q, counts


@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_step_equals_the_dense_referee(k):
    item, worker, label, _ = crowd(1, n=40, k=k)
    answers = CrowdAnswers.of(item, worker, label, classes=np.arange(k))
    rng = np.random.default_rng(2)
    W = len(answers.workers)
    table = np.log(rng.dirichlet(np.ones(k), (W, k)).transpose(0, 2, 1))
    prior = np.log(rng.dirichlet(np.ones(k)))
    q, counts = answers.votes.copy(), np.empty((W, k, k))
    ds.table_step(answers, prior, table, q, counts)
    want_q, want_counts = dense(answers, prior, table)
    np.testing.assert_allclose(q, want_q, atol=1e-12)
    np.testing.assert_allclose(counts, want_counts, atol=1e-10)

    gain = rng.normal(1, 1, W)
    q, hits = answers.votes.copy(), np.empty(W)
    ds.coin_step(answers, prior, gain, q, hits)
    want_q, want_counts = dense(answers, prior, np.eye(k)[None] * gain[:, None, None])
    np.testing.assert_allclose(q, want_q, atol=1e-12)
    np.testing.assert_allclose(hits, np.einsum("wcc->w", want_counts), atol=1e-10)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("fit", [ds.fit_coin, ds.fit_full])
def test_jumps_end_where_plain_steps_end(k, fit, monkeypatch):
    item, worker, label, _ = crowd(8, n=400, k=k)
    answers = CrowdAnswers.of(item, worker, label)
    fast = fit(answers, shares=True, tol=1e-9, most=4000)

    def plain(step, x, valid, tol, most, reach=1.0):
        change, steps = np.inf, 0
        while change >= tol and steps < most:
            (x, change), steps = step(x), steps + 1
        return x, steps

    monkeypatch.setattr(ds, "climb", plain)
    slow = fit(answers, shares=True, tol=1e-9, most=4000)
    assert fast.iterations <= slow.iterations
    np.testing.assert_allclose(fast.q, slow.q, atol=1e-4)
    assert fast.evidence == pytest.approx(slow.evidence, abs=1e-3)


def test_classes_that_were_exchanged_are_noticed():
    item, worker, label, _ = crowd(5, n=200, k=3)
    answers = CrowdAnswers.of(item, worker, label)
    fit = ds.fit_full(answers, shares=False)
    assert keeps_names(answers, fit)
    assert not keeps_names(answers, replace(fit, counts=fit.counts[:, :, [1, 0, 2]]))
    assert keeps_names(answers, ds.fit_vote(answers))


def test_free_shares_that_give_every_item_to_one_class_are_noticed():
    item, worker, label, _ = crowd(6, n=200, k=3)
    answers = CrowdAnswers.of(item, worker, label)
    fit = ds.fit_coin(answers, shares=True)
    assert keeps_names(answers, fit)
    one = np.zeros_like(fit.q)
    one[:, 1] = 1.0
    assert not keeps_names(answers, replace(fit, q=one))


@pytest.mark.parametrize("losers", [1, 2])
def test_a_model_that_loses_the_names_of_classes_is_not_chosen(monkeypatch, losers):
    item, worker, label, truth = crowd(7, n=300, k=3)
    answers = CrowdAnswers.of(item, worker, label)
    asked = []

    def lost(answers, fit):
        asked.append(fit.name)
        return len(asked) > losers

    monkeypatch.setattr("entrywise.apply.crowd.choice.keeps_names", lost)
    found, evidence = choose(answers)
    assert len(asked) == losers + 1
    assert found.name == asked[-1]
    assert set(asked) <= set(evidence)
    assert np.mean(answers.classes[found.q.argmax(axis=1)] == truth[answers.items]) > 0.7


@given(st.integers(2, 5), st.floats(0.05, 3.0), st.integers(0, 10_000))
def test_weakened_odds(k, power, seed):
    q = np.random.default_rng(seed).dirichlet(np.full(k, 0.3), 20)
    found = weakened(q, power)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    before, after = np.sort(q, axis=1), np.sort(found, axis=1)
    if power <= 1:  # the likeliest stays so, and is told less surely
        assert np.all(found.argmax(axis=1) == q.argmax(axis=1))
        assert np.all(after[:, -1] <= before[:, -1] + 1e-12)
    best = q.argmax(axis=1)
    second = np.argsort(q, axis=1)[:, -2]
    at = np.arange(len(q))
    want = (q[at, best] / np.maximum(q[at, second], 1e-300)) ** power
    got = found[at, best] / np.maximum(found[at, second], 1e-300)
    ok = q[at, second] > 1e-60
    np.testing.assert_allclose(got[ok], want[ok], rtol=1e-9)
    others = [np.setdiff1d(np.arange(k), (b, s)) for b, s in zip(best, second, strict=True)]
    for i, rest in enumerate(others):
        np.testing.assert_array_equal(found[i, rest], q[i, rest])


def test_a_goal_out_of_reach_ends_a_fit_and_a_fit_can_go_on():
    item, worker, label, _ = crowd(9, n=200)
    answers = CrowdAnswers.of(item, worker, label)
    whole = ds.fit_full(answers, shares=False, tol=1e-8, most=2000)
    assert ds.fit_full(answers, shares=False, tol=1e-8, goal=whole.evidence + 1e6).iterations == 3
    coarse = ds.fit_full(answers, shares=False, tol=1e-2)
    again = ds.fit_full(answers, coarse, shares=False, tol=1e-8, most=2000)
    assert coarse.iterations < whole.iterations
    assert again.evidence == pytest.approx(whole.evidence, abs=1e-3)


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=30),
    st.sampled_from([1, 10**7]),
)
def test_patterns_are_the_distinct_rows(rows, scale):
    votes = scale * np.array(rows)
    found, inverse, many = ds._patterns(votes)
    np.testing.assert_array_equal(found[inverse], votes)
    assert len(np.unique(found, axis=0)) == len(found)
    np.testing.assert_array_equal(many, np.bincount(inverse))


def test_left_out_equals_the_posterior_without_that_answer():
    item, worker, label, _ = crowd(3, n=12, k=3)
    answers = CrowdAnswers.of(item, worker, label)
    rng = np.random.default_rng(0)
    table = np.log(rng.dirichlet(np.ones(3), (len(answers.workers), 3)).transpose(0, 2, 1)).copy()
    prior, odds = np.log(np.array([0.2, 0.3, 0.5])), np.empty((len(answers), 3))
    jit.left_out(answers.start, answers.worker, answers.label, prior, table, False, odds)
    t = 7
    others = [
        s
        for s in range(answers.start[answers.item[t]], answers.start[answers.item[t] + 1])
        if s != t
    ]
    score = prior + sum(table[answers.worker[s], answers.label[s]] for s in others)
    np.testing.assert_allclose(odds[t], score - score.max(), atol=1e-12)


@given(st.floats(1e-3, 1e6))
def test_digamma(x):
    assert jit._digamma(x) == pytest.approx(digamma(x), rel=1e-10, abs=1e-10)


def test_agreement_counts_equal_the_double_loop():
    item, worker, label, _ = crowd(4, n=60, k=3, votes=4)
    found = agreement(CrowdAnswers.of(item, worker, label))
    names = CrowdAnswers.of(item, worker, label).workers
    for i, j, shared, value in zip(*found, strict=True):
        one = {x: y for x, w, y in zip(item, worker, label, strict=True) if w == names[i]}
        two = {x: y for x, w, y in zip(item, worker, label, strict=True) if w == names[j]}
        both = one.keys() & two.keys()
        assert shared == len(both)
        assert value == pytest.approx((3 * np.mean([one[x] == two[x] for x in both]) - 1) / 2)


@pytest.mark.parametrize("k", [2, 4])
def test_rank_one_skills_find_the_chances_and_the_adversary(k):
    skills = np.array([0.9, 0.85, 0.8, 0.75, 0.7, 0.9, 0.8, 0.1])
    item, worker, label, _ = crowd(5, n=4000, skills=skills, k=k)
    who, found = agreement_skills(item, worker, label, shrink=0)
    want = ((k * skills - 1) / (k - 1))[who]
    assert np.abs(found - want).max() < 0.08
    assert np.all(np.sign(found) == np.sign(want))


def test_skills_that_agreement_does_not_determine_are_not_invented():
    # ann and bob share items with each other alone, cat with nobody; dan, eve, flo form a triangle
    rows = [
        ("1", "ann", "x"),
        ("1", "bob", "x"),
        ("2", "ann", "y"),
        ("2", "bob", "x"),
        ("3", "cat", "x"),
    ]
    rows += [(i, w, "x" if i < "c" else "y") for i in "abcd" for w in ("dan", "eve", "flo")]
    found = consensus(*zip(*rows, strict=True))
    by = dict(zip(found.workers.tolist(), found.skill.tolist(), strict=True))
    assert np.isnan([by["ann"], by["bob"], by["cat"]]).all()
    assert not np.isnan([by["dan"], by["eve"], by["flo"]]).any()
    sure = dict(zip(found.items.tolist(), found.confidence.tolist(), strict=True))
    assert np.isnan([sure["1"], sure["2"], sure["3"]]).all()
    assert sure["a"] > 0.5
    assert found.report["components"] == 2
    assert found.report["workers_sharing_no_item"] == 1
    assert (
        dict(zip(found.workers.tolist(), found.kinds.tolist(), strict=True))["cat"]
        == "not comparable"
    )


@pytest.mark.parametrize("seed", range(3))
def test_it_beats_the_vote_where_skills_differ(seed):
    item, worker, label, truth = crowd(seed, n=600, skills=[0.95] * 6 + [0.5] * 6)
    found = consensus(item, worker, label)
    _, vote, _ = majority_vote(item, worker, label)
    assert np.mean(found.labels == truth) >= np.mean(vote == truth) + 0.03
    assert found.report["model"].startswith("one-coin")


@pytest.mark.parametrize(("k", "shares"), [(2, None), (2, [0.85, 0.15]), (3, None)])
def test_few_answers_a_worker_do_not_fall_below_the_vote(k, shares):
    rng = np.random.default_rng(7)
    gains = []
    for seed in range(6):
        item, worker, label, truth = crowd(
            seed, n=300, skills=rng.beta(5, 2, 90), votes=3, k=k, shares=shares
        )
        found = consensus(item, worker, label)
        assert "dawid-skene" not in found.report["model"]
        votes = CrowdAnswers.of(item, worker, label).votes
        shared = [p >= p.max(axis=1, keepdims=True) - 1e-9 for p in (found.probabilities, votes)]
        right = [np.mean((s / s.sum(axis=1, keepdims=True))[np.arange(300), truth]) for s in shared]
        gains.append(right[0] - right[1])
    assert np.mean(gains) >= -0.005


def test_classes_with_different_errors_need_confusion_matrices():
    rng = np.random.default_rng(0)
    n, W = 400, 20
    truth, lean = rng.integers(0, 2, n), rng.uniform(-1, 1, W)
    chance = np.clip(
        np.column_stack([0.75 + 0.25 * lean, 0.75 - 0.25 * lean]), 0.02, 0.98
    )  # right on class 0, on 1
    item, worker = np.repeat(np.arange(n), W), np.tile(np.arange(W), n)
    right = rng.random(n * W) < chance[worker, truth[item]]
    found = consensus(item, worker, np.where(right, truth[item], 1 - truth[item]))
    assert found.report["model"].startswith("dawid-skene")
    assert np.mean(found.labels == truth) > 0.99


def test_kinds_name_the_adversary_and_the_coin():
    item, worker, label, _ = crowd(11, n=1500, skills=[0.9, 0.9, 0.85, 0.8, 0.8, 0.85, 0.5, 0.1])
    found = consensus(item, worker, label)
    kinds = dict(zip(found.workers.tolist(), found.kinds.tolist(), strict=True))
    assert kinds[6] == "coin"
    assert kinds[7] == "adversarial"
    assert all(kinds[w] == "reliable" for w in range(6))


def test_skill_intervals_cover():
    covered = []
    for seed in range(6):
        rng = np.random.default_rng(100 + seed)
        skills = rng.beta(5, 2, 40)
        item, worker, label, _ = crowd(seed, n=600, skills=skills)
        found = consensus(item, worker, label)
        low, high = found.interval(0.95)
        covered.append(np.mean((low <= skills[found.workers]) & (skills[found.workers] <= high)))
    assert 0.90 <= np.mean(covered) <= 1.0


def test_confidence_says_less_than_its_own_model_and_gold_sets_it_right():
    """Workers here err independently, which is not taken for granted; gold items show that they do."""
    sure, right, checked = [], [], []
    for seed in range(5):
        item, worker, label, truth = crowd(
            seed, n=800, skills=np.random.default_rng(seed).beta(4, 2, 60), votes=4
        )
        found = consensus(item, worker, label)
        sure.append(found.confidence)
        right.append(found.labels == truth)
        gold = {i: int(truth[i]) for i in range(60)}
        again = consensus(item, worker, label, gold=gold)
        np.testing.assert_array_equal(again.labels, found.labels)
        checked.append(again.confidence)
        wrong = np.mean(found.labels != truth)
        assert abs(again.report["wrong_labels"] - wrong) < 0.12
    assert np.mean(right) - 0.1 < np.mean(sure) < np.mean(right)
    assert np.mean(checked) == pytest.approx(np.mean(right), abs=0.03)


def test_the_share_of_wrong_labels_lies_in_its_interval():
    """However wrong the confidence is: here it is turned upside down for half of the items."""
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(300):
        sure = rng.uniform(0.5, 1.0, 2000)
        right = rng.random(2000) < np.where(np.arange(2000) % 2, sure, 1.2 - sure)
        some = rng.choice(2000, 50, replace=False)
        told = wrong_labels(sure[some], right[some], sure)
        inside.append(told.low <= 1 - right.mean() <= told.high)
    assert 0.91 <= np.mean(inside) <= 0.98


def test_a_coin_is_not_called_reliable_and_few_answers_are_no_verdict():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 400)
    good = [np.where(rng.random(400) < 0.85, truth, 1 - truth) for _ in range(5)]
    coin = rng.integers(0, 2, 400)
    item = np.r_[np.tile(np.arange(400), 6), np.arange(10)]
    worker = np.r_[np.repeat([*"abcde", "coin"], 400), np.repeat("new", 10)]
    label = np.r_[np.concatenate(good), coin, truth[:10] ^ (np.arange(10) % 4 == 0)]
    found = consensus(item, worker, label)
    kinds = dict(zip(found.workers.tolist(), found.kinds.tolist(), strict=True))
    assert kinds["coin"] == "coin"
    assert kinds["new"] == "unclear"
    assert all(kinds[w] == "reliable" for w in "abcde")


@pytest.mark.parametrize("seed", range(3))
def test_next_labels_ask_where_doubt_is_and_whom_it_helps(seed):
    item, worker, label, _ = crowd(seed, n=120, votes=3)
    found = consensus(item, worker, label)
    told = next_labels(item, worker, label, limit=10)
    assert len(set(told.item.tolist())) == 10
    assert set(told.worker.tolist()) == {""}
    assert np.all(np.diff(told.gain) <= 1e-12)
    doubt = dict(zip(found.items.tolist(), found.confidence.tolist(), strict=True))
    assert np.mean([doubt[x] for x in told.item.tolist()]) < np.mean(found.confidence)
    told = next_labels(item, worker, label, limit=10, offered=[0, 6, 7])
    asked = set(zip(item.tolist(), worker.tolist(), strict=True))
    chosen = set(zip(told.item.tolist(), told.worker.tolist(), strict=True))
    assert not asked & chosen
    assert (
        told.worker == 6
    ).mean() < 0.5  # right half of the time: asked only where nobody else is left
    dear = next_labels(item, worker, label, limit=10, offered=[0, 1], prices={0: 1000.0})
    assert (dear.worker == 1).mean() > 0.5


def test_next_labels_know_new_items_and_refuse():
    item, worker, label, _ = crowd(0, n=60)
    told = next_labels(item, worker, label, limit=3, among=[1000, 1001, 1002, 0])
    assert set(told.item.tolist()) == {1000, 1001, 1002}
    assert len(next_labels(item, worker, label, limit=100).item) == 100
    alone = next_labels([1, 2, 3], list("abc"), list("xyx"), limit=2)  # no item has two answers yet
    assert len(set(alone.item.tolist())) == 2
    with pytest.raises(ParameterError, match="limit must be"):
        next_labels(item, worker, label, limit=0)
    with pytest.raises(DataError, match="among must name"):
        next_labels(item, worker, label, among=[])
    with pytest.raises(ParameterError, match="prices must be"):
        next_labels(item, worker, label, offered=[0], prices={0: 0.0})
    with pytest.raises(DataError, match="gold must hold 10 items"):
        consensus(item, worker, label, gold={0: 1})


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_order_and_names_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    item, worker, label, _ = crowd(seed, n=60)
    plain = consensus(item, worker, label)
    order = rng.permutation(len(item))
    new_name, new_class = rng.permutation(8), np.array(["yes", "no"])
    again = consensus(item[order], new_name[worker][order], new_class[label][order])
    assert again.report["model"] == plain.report["model"]
    one = dict(
        zip(
            plain.items.tolist(),
            zip(plain.labels.tolist(), plain.confidence, strict=True),
            strict=True,
        )
    )
    two = dict(
        zip(
            again.items.tolist(),
            zip(again.labels.tolist(), again.confidence, strict=True),
            strict=True,
        )
    )
    for i, (said, sure) in one.items():
        assert two[i][1] == pytest.approx(sure, abs=2e-3)
        if sure > 0.51:
            assert two[i][0] == new_class[said]


def test_leaves_arrays_alone_and_repeats_itself():
    item, worker, label, _ = crowd(1)
    before = item.copy(), worker.copy(), label.copy()
    one, two = consensus(item, worker, label), consensus(item, worker, label)
    for a, b in zip(before, (item, worker, label), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.probabilities, two.probabilities)
    np.testing.assert_array_equal(one.skill, two.skill)


@pytest.mark.parametrize("model", ["vote", "one-coin", "dawid-skene"])
@pytest.mark.parametrize("shares", ["equal", "free", "auto"])
def test_every_model_can_be_asked_for(model, shares):
    item, worker, label, truth = crowd(2, k=3)
    found = consensus(item, worker, label, model=model, shares=shares)
    assert found.report["model"].startswith(model)
    assert np.mean(found.labels == truth) > 0.7
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0)


def test_text_is_never_parsed_and_results_can_be_kept(tmp_path):
    found = consensus(
        ["01", "1", "01", "1", "01", "1"], list("aabbcc"), ["07", "7", "07", "7", "07", "7"]
    )
    assert found.items.tolist() == ["01", "1"]
    assert found.labels.tolist() == ["07", "7"]
    found.save(tmp_path / "found.npz")
    again = Consensus.load(tmp_path / "found.npz")
    assert again.labels.tolist() == ["07", "7"]
    np.testing.assert_array_equal(again.interval(0.9).low, found.interval(0.9).low)


def test_ties_go_to_the_class_chosen_most():
    _, label, share = majority_vote([1, 1, 2, 2, 3], list("ababa"), ["x", "y", "y", "x", "y"])
    assert label.tolist() == ["y", "y", "y"]
    assert share.tolist() == [0.5, 0.5, 1.0]


def test_unanimous_answers_with_named_classes():
    found = consensus([1, 1, 1, 2, 2, 2], list("abcabc"), ["x"] * 6, classes=["x", "y"])
    assert found.labels.tolist() == ["x", "x"]
    assert np.all((found.confidence > 0.5) & (found.confidence < 1.0))


@pytest.mark.parametrize(
    ("columns", "extra", "error", "words"),
    [
        (
            ([1, 2], ["a", "a"], ["x", "y"]),
            {},
            NotIdentifiable,
            "no item was answered by two workers",
        ),
        (([1, 1], ["a", "b"], ["x", "x"]), {}, DataError, "two classes or more"),
        (([], [], []), {}, DataError, "no answers"),
        (([1, 1], ["a"], ["x", "y"]), {}, DataError, "equally long"),
        (([1, 1, 1], ["a", "a", "b"], ["x", "y", "x"]), {}, DataError, "more than once"),
        (([1, 1], ["a", None], ["x", "y"]), {}, DataError, "must not be missing, number 1 is"),
        (([1.0, float("nan")], ["a", "b"], ["x", "y"]), {}, DataError, "must not be missing"),
        (([1, 1], ["a", "b"], ["x", "y"]), {"classes": ["x", "z"]}, DataError, "'y' is not"),
        (
            ([1, 1], ["a", "b"], ["x", "y"]),
            {"classes": ["x", "y", "x"]},
            ParameterError,
            "once each",
        ),
        (([1, 1], ["a", "b"], ["x", "y"]), {"model": "magic"}, ParameterError, "model must be"),
        (([1, 1], ["a", "b"], ["x", "y"]), {"shares": "some"}, ParameterError, "shares must be"),
        (([1, 1], ["a", "b"], ["x", "y"]), {"repeats": "all"}, ParameterError, "repeats must be"),
        (([[1], [1]], ["a", "b"], ["x", "y"]), {}, DataError, "one flat list"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(columns, extra, error, words):
    with pytest.raises(error, match=words):
        consensus(*columns, **extra)


def test_repeats_first_last_keep():
    columns = ([1, 1, 1, 1], ["a", "a", "b", "c"], ["x", "y", "y", "y"])
    assert majority_vote(*columns, repeats="first")[2][0] == pytest.approx(2 / 3)
    assert majority_vote(*columns, repeats="last")[2][0] == 1.0
    assert majority_vote(*columns, repeats="keep")[2][0] == 0.75


def test_bad_levels():
    found = consensus(*crowd(0, n=30)[:3])
    with pytest.raises(ParameterError, match="level must be above 0"):
        found.interval(1.0)
    with pytest.raises(ParameterError, match="shrink must be"):
        agreement_skills([1, 1], ["a", "b"], ["x", "y"], shrink=-1)


def test_crowded_items_are_compared_on_a_part():
    rng = np.random.default_rng(0)
    item, worker = np.repeat(np.arange(5), 300), np.tile(np.arange(300), 5)
    answers = CrowdAnswers.of(item, worker, rng.integers(0, 2, 1500))
    assert len(agreement(answers).i) <= 5 * 60 * 59 / 2
    assert len(rank_one_skills(answers, 20.0).skill) == 300


@pytest.mark.parametrize(
    ("name", "bar"), [("bluebird", 11.61), ("rte", 7.75), ("dog", 16.24), ("product", 6.53)]
)
def test_real_sets(data_folder, name, bar):
    def table(kind):
        with gzip.open(data_folder / "crowdsourcing" / f"{name}_{kind}.csv.gz", "rt") as file:
            return np.loadtxt(file, delimiter=",", skiprows=1, dtype=np.int64)

    answers, gold = table("labels"), table("truth")
    found = consensus(*answers.T)
    said = dict(zip(found.items.tolist(), found.labels.tolist(), strict=True))
    error = 100 * np.mean([said[i] != c for i, c in gold.tolist() if i in said])
    assert error <= bar  # crowd-kit's Dawid-Skene plus 0.5 point


def write(path, rows, header="item,worker,label"):
    text = header + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return str(path)


def test_command_prints_labels_and_skills(tmp_path):
    item, worker, label, truth = crowd(0, n=80, skills=[0.95, 0.9, 0.9, 0.85, 0.5, 0.1])
    answers = write(tmp_path / "labels.csv.gz", zip(item, worker, label, strict=True))
    gold = write(tmp_path / "gold.csv", enumerate(truth), "item,truth")
    run = CliRunner().invoke(app, ["crowd", answers, "--truth", gold])
    assert run.exit_code == 0
    lines = run.stdout.splitlines()
    assert lines[0] == "item,label,confidence"
    assert len(lines) == 81
    assert "Error against" in run.stderr
    assert "majority vote" in run.stderr
    run = CliRunner().invoke(
        app, ["crowd", answers, "--workers", "--level", "0.9", "--format", "json", "--quiet"]
    )
    rows = json.loads(run.stdout)
    assert run.stderr == ""
    assert {row["worker"] for row in rows} == set("012345")
    assert all(row["low"] <= row["skill"] <= row["high"] for row in rows)
    assert next(row for row in rows if row["worker"] == "5")["kind"] == "adversarial"


def test_command_takes_other_names_and_keeps_the_result(tmp_path):
    rows = [(w, i, "cat" if i < 3 else "dog") for i in range(6) for w in "abc"]
    answers = write(tmp_path / "labels.csv", rows, "annotator,task,answer")
    run = CliRunner().invoke(app, ["crowd", answers, "--save", str(tmp_path / "kept.npz")])
    assert "item is 'task', worker is 'annotator', label is 'answer'" in run.stderr
    assert run.stdout.splitlines()[1].startswith("0,cat,")
    assert Consensus.load(tmp_path / "kept.npz").items.tolist() == list("012345")
    run = CliRunner().invoke(app, ["crowd", answers, "--item", "answer", "--label", "task"])
    assert run.exit_code == 1  # every worker then answers 'cat' three times


def test_names_that_say_nothing_of_items_and_workers_are_refused(tmp_path):
    rows = [(w, i, "cat" if i < 3 else "dog") for i in range(6) for w in "abc"]
    answers = write(tmp_path / "labels.csv", rows, "chap,thing,kind")
    run = CliRunner().invoke(app, ["crowd", answers])
    assert "not clear from 'chap', 'thing', 'kind'; say --item" in str(run.exception)
    named = ["--item", "thing", "--worker", "chap", "--label", "kind"]
    run = CliRunner().invoke(app, ["crowd", answers, *named, "--workers", "--format", "table"])
    assert "6 items, 3 workers" in run.stderr


@pytest.mark.parametrize(
    ("rows", "options", "words"),
    [
        ([(1, "a", "x"), (2, "a", "y")], [], "no item was answered by two workers"),
        ([(1, "a", "x"), (1, "b", "x")], [], "--classes"),
        ([(1, "a", "x"), (1, "a", "y"), (1, "b", "y")], [], "--repeats"),
        ([(1, "a", "x"), (1, "", "y")], [], "line 3 has no worker"),
        ([], [], "has a header but no lines"),
        ([(1, "a", "x"), (1, "b", "y")], ["--level", "2"], "--level must be"),
        ([(1, "a", "x"), (1, "b", "y")], ["--item", "id"], "has no column 'id'"),
    ],
)
def test_command_refuses_in_one_line(tmp_path, rows, options, words):
    answers = write(tmp_path / "labels.csv", rows)
    run = CliRunner().invoke(app, ["crowd", answers, *options])
    assert run.exit_code == 1
    assert words in str(run.exception)


@pytest.mark.parametrize(
    "text",
    [
        "img,ann,cat\nimg,bob,cat\nimg,eve,dog\n",
        "7,1,1\r\n7,2,1\r\n7,3,0\r\n",
        "7;1;1\n7;2;1\n7;3;0\n",
    ],
)
def test_command_takes_a_table_without_a_header(tmp_path, text):
    (tmp_path / "labels.csv").write_text(text)
    run = CliRunner().invoke(app, ["crowd", str(tmp_path / "labels.csv")])
    assert "1 items, 3 workers, 3 answers" in run.stderr
    assert "item is 'column 1'" in run.stderr


def test_command_refuses_a_ragged_table(tmp_path):
    (tmp_path / "labels.csv").write_text("item,worker,label\n1,a,x\n1,b,x,y\n")
    assert "more cells than the first" in str(
        CliRunner().invoke(app, ["crowd", str(tmp_path / "labels.csv")]).exception
    )


def test_command_tells_what_the_truth_cannot(tmp_path):
    rows = [(i, w, "x" if i % 2 else "y") for i in range(6) for w in "abc"]
    answers = write(tmp_path / "labels.csv", rows)
    gold = write(tmp_path / "gold.csv", [(0, "y"), (1, "z"), (77, "x")], "item,gold")
    run = CliRunner().invoke(app, ["crowd", answers, "--truth", gold])
    assert "50.00 % of 2 items" in run.stderr
    assert "1 items of" in run.stderr
    assert "'z' was never given" in run.stderr
    other = write(tmp_path / "other.csv", [("q", "x")], "item,gold")
    assert (
        "no error can be told"
        in CliRunner().invoke(app, ["crowd", answers, "--truth", other]).stderr
    )
    twice = write(tmp_path / "twice.csv", [(0, "x"), (0, "y")], "item,gold")
    assert "must have one truth" in str(
        CliRunner().invoke(app, ["crowd", answers, "--truth", twice]).exception
    )


def test_next_labels_and_gold_from_the_shell(tmp_path):
    item, worker, label, truth = crowd(1, n=80, votes=3)
    rows = [
        f"i{i},w{w},{'yes' if x else 'no'}" for i, w, x in zip(item, worker, label, strict=True)
    ]
    (tmp_path / "labels.csv").write_text("\n".join(["item,worker,label", *rows]))
    said = [f"i{i},{'yes' if truth[i] else 'no'}" for i in range(30)]
    (tmp_path / "gold.csv").write_text("\n".join(["item,truth", *said]))
    (tmp_path / "pool.csv").write_text("worker,price\nw0,1\nw1,2.5\nfresh,1\n")
    (tmp_path / "more.csv").write_text("item\ni3\nnew-1\nnew-2\n")
    labels, gold = str(tmp_path / "labels.csv"), str(tmp_path / "gold.csv")
    run = CliRunner().invoke(app, ["crowd", labels, "--gold", gold])
    assert run.exit_code == 0, run.output
    assert "By 30 gold items" in run.stderr
    run = CliRunner().invoke(app, ["crowd", "next", labels, "--limit", "5"])
    assert run.exit_code == 0, run.output
    assert run.stdout.splitlines()[0] == "item,worker,gain"
    assert len(run.stdout.splitlines()) == 6
    pool = ["--workers", str(tmp_path / "pool.csv"), "--items", str(tmp_path / "more.csv")]
    run = CliRunner().invoke(app, ["crowd", "next", labels, "--limit", "5", *pool])
    named = [line.split(",") for line in run.stdout.splitlines()[1:]]
    assert {x for x, _, _ in named} <= {"i3", "new-1", "new-2"}
    assert {w for _, w, _ in named} <= {"w0", "w1", "fresh"}


def test_very_many_pairs_are_thinned_to_a_start_that_ends_in_the_same_labels(monkeypatch):
    from entrywise.apply.crowd.agreement import agreement, rank_one_skills
    from entrywise.apply.crowd.answers import CrowdAnswers

    where = sys.modules["entrywise.apply.crowd.agreement"]
    rng = np.random.default_rng(4)
    n, W, v = 3000, 60, 5
    worker = np.argsort(rng.random((n, W)), axis=1)[:, :v].ravel()
    item = np.repeat(np.arange(n), v)
    chance, truth = np.where(rng.random(W) < 0.15, 0.3, rng.beta(8, 3, W)), rng.integers(2, size=n)
    label = np.where(rng.random(n * v) < chance[worker], truth[item], 1 - truth[item])
    item, worker, label = np.r_[item, 0, 1, 2], np.r_[worker, 60, 60, 60], np.r_[label, 0, 1, 0]
    whole = consensus(item, worker, label)
    answers = CrowdAnswers.of(item, worker, label)
    pairs = agreement(answers)
    monkeypatch.setattr(where, "TOO_MANY", 10_000)
    some = agreement(answers, thin=True)
    assert some.shared.sum() < 0.3 * pairs.shared.sum()
    seldom = np.flatnonzero(answers.workers == 60)[0]
    met = [((x.i == seldom) | (x.j == seldom)) for x in (pairs, some)]
    assert (
        pairs.shared[met[0]].sum() == some.shared[met[1]].sum()
    )  # who answered seldom loses nothing
    np.testing.assert_array_equal(agreement(answers).shared, pairs.shared)  # a final answer has all
    near = rank_one_skills(answers, 20.0, exact=False).skill
    far = rank_one_skills(answers, 20.0).skill
    assert np.corrcoef(near, far)[0, 1] > 0.7  # noisy, and of the same signs and order
    thinned = consensus(item, worker, label)
    np.testing.assert_array_equal(thinned.labels, whole.labels)
    np.testing.assert_allclose(thinned.skill, whole.skill, atol=1e-3)
