"""Which entries next: gains against dense algebra, purchases, reserves, winners, leaderboards."""

from __future__ import annotations

import numpy as np
import pytest

import entrywise as ew
from entrywise.active import most_informative, top_two
from entrywise.active.cells import purchase
from entrywise.active.cells.calibration import row_means
from entrywise.active.cells.purchase import Purchase
from entrywise.apply.leaderboard import Bought, scores
from entrywise.exceptions import ParameterError
from entrywise.gallery import random_low_rank
from entrywise.linalg import small
from entrywise.linalg.gain import Gains, foretold_at, leverage
from entrywise.linalg.greedy import _RoughVariance, pick
from entrywise.oracles import FunctionOracle, MatrixOracle
from entrywise.passive import low_rank
from entrywise.results.posterior import col_features, row_features


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(2)
    A = random_low_rank(12, 9, 2, 4)
    known = rng.random(A.shape) < 0.5
    i, j = np.nonzero(known)
    seen = ew.Observations.from_triplets(i, j, A[i, j] + 0.1 * rng.standard_normal(len(i)), A.shape)
    return low_rank(seen, 2), seen, known


class Dense:
    """The state of a fit with whole matrices."""

    def __init__(self, fit):
        ones = np.ones((max(fit.shape), 1))
        self.U, self.V = (
            np.hstack([fit.left, ones[: fit.shape[0]]]),
            np.hstack([fit.right, ones[: fit.shape[1]]]),
        )
        self.Cu, self.Cv = fit.posterior.rows.cov.copy(), fit.posterior.cols.cov.copy()
        self.s2 = fit.noise_variance + fit.lack_variance


def dense_gain(g, i, j, open_, by_sum):
    """The fall of total variance by the definition: update both covariances, sum over the open cells of row and column."""
    d = (
        g.s2
        + g.V[j] @ g.Cu[i] @ g.V[j]
        + g.U[i] @ g.Cv[j] @ g.U[i]
        + np.trace(g.Cu[i][:-1, :-1] @ g.Cv[j][:-1, :-1])
    )
    x, z = g.Cu[i] @ g.V[j], g.Cv[j] @ g.U[i]
    along = [g.V[c] @ x for c in np.flatnonzero(open_[i])]
    row = sum(along) ** 2 if by_sum else sum(y * y for y in along)
    column = sum((g.U[r] @ z) ** 2 for r in np.flatnonzero(open_[:, j]))
    return (row + column) / d


@pytest.mark.parametrize("by_sum", [False, True])
def test_gains_equal_their_definition(fitted, by_sum):
    fit, seen, known = fitted
    g = Gains.of(fit, seen.rows, seen.cols, by_sum=by_sum)
    ((rows, gain, variance),) = g.blocks()
    np.testing.assert_allclose(
        variance, fit.variance(rows[:, None], np.arange(9)[None]), rtol=1e-10
    )
    for i in range(12):
        for j in range(9):
            assert gain[i, j] == pytest.approx(
                dense_gain(Dense(fit), i, j, ~known, by_sum), rel=1e-8
            )


@pytest.mark.parametrize("by_sum", [False, True])
@pytest.mark.parametrize("priced", [False, True])
@pytest.mark.parametrize("slack", [0.0, 0.1])
def test_fast_picks_equal_a_slow_greedy(fitted, by_sum, priced, slack):
    fit, seen, known = fitted
    price = (
        np.random.default_rng(1).uniform(0.5, 2.0, known.shape) if priced else np.ones(known.shape)
    )
    fast = Gains.of(fit, seen.rows, seen.cols, by_sum=by_sum)
    slow = Dense(fit)
    bits = np.packbits(~known, axis=1)
    i, j = pick(fast, bits, lambda rows: price[rows], 8.0, 100, slack=slack)
    open_, money = ~known, 8.0
    fixed_sums = open_.copy()
    for a, b in zip(i, j, strict=True):
        rates = np.full(known.shape, -1.0)
        for r, c in np.argwhere(open_):
            if price[r, c] <= money + 1e-9:
                counted = fixed_sums.copy() if by_sum else open_
                if by_sum:
                    counted = np.where(np.arange(12)[:, None] == r, fixed_sums, open_)
                rates[r, c] = dense_gain(slow, r, c, counted, by_sum) / price[r, c]
        assert rates[a, b] >= (1 - slack) * rates.max() * (1 - 1e-6)
        d = slow.s2 + slow.V[b] @ slow.Cu[a] @ slow.V[b] + slow.U[a] @ slow.Cv[b] @ slow.U[a]
        d += np.trace(slow.Cu[a][:-1, :-1] @ slow.Cv[b][:-1, :-1])
        x, z = slow.Cu[a] @ slow.V[b], slow.Cv[b] @ slow.U[a]
        slow.Cu[a] -= np.outer(x, x) / d
        slow.Cv[b] -= np.outer(z, z) / d
        open_[a, b] = False
        money -= price[a, b]
    assert len(i) >= 4
    assert money >= -1e-9


@pytest.mark.parametrize("most", [10_000, -1])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_variances_of_open_cells_are_what_closed_ones_leave(fitted, share, most, monkeypatch):
    monkeypatch.setattr(small, "SMALL", most)  # numpy's way, and the compiled one
    fit, seen, known = fitted
    gains = Gains.of(fit, seen.rows, seen.cols)
    is_open = np.random.default_rng(2).random(known.shape) >= share
    exact, count = gains.open_variance(lambda rows: is_open[rows])
    assert count == is_open.sum()
    found = gains.variance_without(np.flatnonzero(~is_open))
    assert found == pytest.approx(exact, rel=1e-9, abs=1e-12)


def test_leverage_sums_to_the_rank():
    X = np.random.default_rng(0).standard_normal((30, 4))
    assert leverage(X).sum() == pytest.approx(4.0)


def numbers(rough, features):
    """Return the two numbers of rows, as a product in double precision."""
    p = features.shape[1] // 2
    own, shared = rough.of_row
    return np.stack([features[:, :p] @ own, features[:, p:] @ shared], axis=1)


@pytest.mark.parametrize("scale", [1e-120, 1.0, 1e120])
def test_rough_variances_have_the_means_of_the_exact_ones(fitted, scale):
    fit, seen, _ = fitted
    gains = Gains.of(fit, seen.rows, seen.cols)
    gains.Cu, gains.Cv = scale * gains.Cu, scale * gains.Cv
    U, V = np.sqrt(scale) * gains.U, np.sqrt(scale) * gains.V
    rows, cols = row_features(U, gains.Cu), col_features(V, gains.Cv)
    p = gains.Cu.shape[1]
    rough = _RoughVariance(rows, cols[:, :p], cols[:, p:])
    left = numbers(rough, rows)
    exact = np.stack([rows[:, :p] @ cols[:, :p].T, rows[:, p:] @ cols[:, p:].T])
    about = rough.unit * np.stack([np.outer(left[:, k], rough.right[k]) for k in (0, 1)])
    assert (about > 0.0).all()
    # of the row's part the mean of every row, of the column's part that of every column
    np.testing.assert_allclose(about[0].mean(axis=1), exact[0].mean(axis=1), rtol=1e-5)
    np.testing.assert_allclose(about[1].mean(axis=0), exact[1].mean(axis=0), rtol=1e-5)
    alike = np.outer(np.arange(1.0, 13.0), gains.Cu[0])  # matrices that differ in size alone
    rough = _RoughVariance(np.hstack([alike, rows[:, p:]]), cols[:, :p], cols[:, p:])
    left = numbers(rough, np.hstack([alike, rows[:, p:]]))
    first = np.outer(left[:, 0], rough.right[0])
    np.testing.assert_allclose(rough.unit * first, alike @ cols[:, :p].T, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one", "row", "cell", "skewed"])
def test_an_order_by_rough_variances_buys_as_much(kind, monkeypatch):
    rng = np.random.default_rng(21)
    m, n = 160, 120
    A = random_low_rank(m, n, 3, seed=5)
    weight = rng.lognormal(0.0, 0.8, m) if kind == "skewed" else np.ones(m)
    known = rng.random((m, n)) < np.minimum(0.15 * weight / weight.mean(), 1.0)[:, None]
    size = {"row": (m, 1), "cell": (m, n)}.get(kind, (1, 1))
    price = rng.lognormal(0.0, 1.0, size) if kind in ("row", "cell") else np.ones(size)
    table = np.where(known, A + 0.3 * rng.standard_normal(A.shape), np.nan)
    fit = low_rank(ew.Observations.from_dense(table), rank=3)
    left = []
    for largest in (small.SMALL, m * n):  # compiled, by rough variances, and plain, by exact ones
        monkeypatch.setattr(small, "SMALL", largest)
        gains = Gains.of(fit, *np.nonzero(known))
        of_rows = lambda rows: price[rows] if len(price) > 1 else price  # noqa: E731
        i, j = pick(gains, np.packbits(~known, axis=1), of_rows, 0.1 * known.sum(), m * n)
        is_open = ~known
        is_open[i, j] = False
        left.append(gains.open_variance(lambda rows, x=is_open: x[rows])[0])
    assert left[0] <= 1.005 * left[1]


@pytest.mark.slow
def test_what_is_foretold_of_many_entries_is_what_the_fit_says():
    rng = np.random.default_rng(4)
    A, known = random_low_rank(150, 90, 3, seed=1), rng.random((150, 90)) < 0.2
    fit = low_rank(ew.Observations.from_dense(np.where(known, A, np.nan)), rank=3)
    i, j = rng.integers(150, size=2000), rng.integers(90, size=2000)
    mean, found = foretold_at(fit, i, j)
    np.testing.assert_allclose(mean, fit.latent(i, j), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(fit.answered(mean, i, j), fit.entries(i, j), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found, fit.variance(i, j), rtol=1e-10)
    before = found.copy()
    for of in ("answer", "truth"):
        known_variance = fit.deviation(i, j, of, variance=found)
        np.testing.assert_allclose(known_variance, fit.deviation(i, j, of), rtol=1e-10)
    np.testing.assert_array_equal(found, before)
    assert foretold_at(fit, i[:900], j[:900]) is None


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 3])
def test_rows_are_found_whose_open_cells_lie_anywhere(columns):
    rng = np.random.default_rng(6)
    A, known = random_low_rank(60, 700, 2, seed=3), rng.random((60, 700)) < 0.1
    fit = low_rank(ew.Observations.from_dense(np.where(known, A, np.nan)), rank=2)
    is_open = np.zeros(known.shape, bool)
    for i in range(60):  # a few cells of each row, or of a column that was asked for
        j = [1] if columns == 1 else rng.choice(np.flatnonzero(~known[i]), columns, replace=False)
        is_open[i, j] = True
    is_open &= ~known
    gains = Gains.of(fit, *np.nonzero(known))
    bits = np.packbits(is_open, axis=1)
    i, j = pick(gains, bits, lambda rows: np.ones((1, 1)), 1000.0, 1000)
    assert is_open[i, j].all()
    assert len(i) == is_open.sum()
    assert not bits.any()  # what was bought is closed


@pytest.mark.parametrize(
    "rule", ["gain", "random", "uniform", "balanced", "leverage", "variance", "committee"]
)
@pytest.mark.parametrize("priced", [False, True])
def test_every_rule_spends_within_its_budget_and_asks_nothing_twice(rule, priced):
    A = random_low_rank(15, 12, 2, 3)
    price = np.random.default_rng(5).lognormal(0, 1, A.shape) if priced else np.ones(A.shape)
    available = np.random.default_rng(6).random(A.shape) < 0.8
    asked = []
    oracle = FunctionOracle(lambda i, j: asked.append((i, j)) or A[i, j])
    budget = 0.5 * price.sum()
    found = ew.play(
        most_informative(
            A.shape, ew.Prices(price), budget=budget, rule=rule, rank=2, available=available, rng=1
        ),
        oracle,
    )
    assert len(set(asked)) == len(asked)
    assert all(available[i, j] for i, j in asked)
    assert found.cost == pytest.approx(sum(price[i, j] for i, j in asked))
    assert 0.8 * budget < found.cost <= budget * (1 + 1e-9)


@pytest.mark.slow
def test_the_rule_beats_random_buying_where_there_is_something_to_learn():
    rng = np.random.default_rng(11)
    U = rng.standard_normal((60, 3)) * np.where(np.arange(60) < 8, 5.0, 0.5)[:, None]
    A = U @ rng.standard_normal((3, 50))
    error = {}
    for rule in ("gain", "random"):
        off = []
        for seed in range(4):
            plan = most_informative(A.shape, budget=900, rule=rule, rank=3, rng=seed)
            off.append(
                np.sqrt(np.mean((ew.play(plan, MatrixOracle(A, 0.1, seed)).to_dense() - A) ** 2))
            )
        error[rule] = np.mean(off)
    assert error["gain"] < 0.8 * error["random"]


def test_failed_measurements_are_paid_and_left_alone():
    A = random_low_rank(12, 10, 2, 3)
    asked = []

    def measure(i, j):
        asked.append((i, j))
        return None if (i + j) % 7 == 0 else A[i, j]

    found = ew.play(most_informative(A.shape, budget=100, rank=2, rng=0), FunctionOracle(measure))
    assert len(asked) == len(set(asked)) == found.cost == 100


@pytest.mark.slow
def test_a_blind_reserve_covers_what_was_not_bought():
    rng = np.random.default_rng(3)
    inside, total = 0, 0
    for seed in range(6):
        A = random_low_rank(60, 50, 3, 40 + seed) + 0.3 * rng.standard_normal((60, 50))
        run = ew.Run(most_informative(A.shape, budget=1200, rank=3, reserve=0.2, rng=seed))
        found = ew.play(run, MatrixOracle(A))
        told = run.facts
        bought = np.zeros(A.shape, bool)
        bought[told.rows, told.cols] = True
        assert bought.sum() == len(told)  # nothing was asked twice
        assert {"reserve", "start", "explore"} <= set(told.arm.tolist())
        assert np.all((told.probability > 0) & (told.probability <= 1))
        wants = sum(len(e.batch) for e in run.log)
        assert wants > len(told)  # some of the reserve was handed over
        assert found.report["hidden"] == np.sum(told.arm == "reserve")
        i, j = np.nonzero(~bought)
        interval = found.interval(i, j, 0.9)
        inside += int(np.sum((interval.low <= A[i, j]) & (A[i, j] <= interval.high)))
        total += len(i)
        assert "hidden" in found.certificate.checked[0]
        covered = found.report["reserve_covered"]
        assert f"covered {covered:.2f} of it" in found.certificate.checked[1]
    assert 0.87 < inside / total < 0.93


def test_a_small_reserve_promises_nothing():
    A = random_low_rank(15, 12, 2, 3)
    found = ew.play(
        most_informative(A.shape, budget=90, rank=2, reserve=0.2, rng=0), MatrixOracle(A)
    )
    assert "fewer than 100" in found.report["intervals"]
    assert "the rule's choices do not matter" in found.certificate.assumes
    assert found.certificate.statement == "share of the reserve that 90 % intervals covered"
    assert found.certificate.value == found.report["reserve_covered"]


def test_without_a_reserve_the_certificate_says_that_nothing_was_tested():
    A = random_low_rank(15, 12, 2, 3)
    plan = most_informative(A.shape, budget=90, rank=2, reserve=0.0, rng=0)
    found = ew.play(plan, MatrixOracle(A))
    assert found.certificate.vacuous
    assert "nothing has tested" in found.certificate.statement


def test_row_means_agree_with_the_dense_posterior(fitted):
    fit, seen, known = fitted
    mean, variance = row_means(fit, seen.rows, seen.cols, seen.values)
    full = np.where(known, seen.to_dense(), fit.to_dense())
    np.testing.assert_allclose(mean, full.mean(axis=1), rtol=1e-10)
    U, V = np.column_stack([fit.left, np.ones(12)]), np.column_stack([fit.right, np.ones(9)])
    for i in range(12):
        open_ = np.flatnonzero(~known[i])
        s = V[open_].sum(axis=0)
        expect = s @ fit.posterior.rows.cov[i] @ s + sum(
            U[i] @ fit.posterior.cols.cov[j] @ U[i] for j in open_
        )
        expect += len(open_) * (fit.noise_variance + fit.lack_variance)
        assert variance[i] == pytest.approx(expect / 81, rel=1e-8)


@pytest.mark.slow
def test_top_two_finds_the_best_row_and_stops_when_sure():
    rng = np.random.default_rng(1)
    right = 0
    for seed in range(10):
        A = rng.standard_normal((20, 100)) + 0.5 * rng.standard_normal((20, 1))
        found = ew.play(
            most_informative(A.shape, budget=600, goal="best", rank=1, rng=seed), MatrixOracle(A)
        )
        right += found.report["best"] == int(A.mean(axis=1).argmax())
    assert right >= 8
    easy = rng.standard_normal((20, 100)) + np.arange(20)[:, None]
    found = ew.play(top_two(easy.shape, budget=2000, confidence=0.95, rng=0), MatrixOracle(easy))
    assert found.report["best"] == 19
    assert found.cost < 1000  # sure at any time against each of 19 others
    assert found.certificate.value >= 0.95


def test_leaderboards_order_rows_and_say_what_is_sure():
    rng = np.random.default_rng(8)
    A = rng.standard_normal((12, 80)) + np.repeat([0.0, 3.0], 6)[:, None]
    run = ew.Run(most_informative(A.shape, budget=480, goal="scores", rank=2, reserve=0.3, rng=3))
    found = ew.play(run, MatrixOracle(A))
    bought = Bought.from_run(run)
    assert len(bought) == 480
    board = scores(found, bought)
    assert set(board.order[:6]) == set(range(6, 12))
    assert np.all(board.best_place <= board.worst_place)
    assert np.all(board.worst_place[6:] <= 6)
    assert np.all(board.best_place[:6] >= 7)
    assert np.mean((board.low <= A.mean(axis=1)) & (A.mean(axis=1) <= board.high)) > 0.7


@pytest.mark.slow
def test_it_stops_when_enough_is_known():
    A = random_low_rank(30, 25, 2, 4)
    whole = ew.play(most_informative(A.shape, budget=600, rank=2, rng=3), MatrixOracle(A, 0.05, 1))
    known = most_informative(A.shape, budget=600, rank=2, score_error=0.5, rng=3)
    assert ew.play(known, MatrixOracle(A, 0.05, 1)).cost < whole.cost
    saturated = most_informative(A.shape, budget=600, rank=2, least_gain=0.05, rng=3)
    assert ew.play(saturated, MatrixOracle(A, 0.05, 1)).cost < whole.cost
    with pytest.raises(ParameterError, match="score_error must not be below 0"):
        most_informative(A.shape, budget=600, score_error=-1.0)


def test_draws_follow_their_weights():
    counts = np.zeros(20)
    weight = np.arange(1.0, 21.0)
    chances = []
    for seed in range(3000):
        state = Purchase((4, 5), ew.Prices(), 100.0, None, np.random.default_rng(seed))
        cells, chance = state.draw(lambda rows: weight.reshape(4, 5)[rows], 5.0)
        assert len(cells) == 5
        counts[cells] += 1
        chances.append(np.sum(1.0 / chance))
    assert np.corrcoef(counts, weight)[0, 1] > 0.97
    assert np.mean(chances) == pytest.approx(20, rel=0.05)  # one over probability counts the cells


@pytest.mark.parametrize("by", ["row", "column"])
@pytest.mark.parametrize("taken", [0, 500])
def test_draws_by_the_prices_of_lines_follow_one_over_the_price(by, taken):
    """Drawn by arrivals alone; where these do not pay out the money, the others go on waiting."""
    price = np.repeat([0.5, 1.0, 2.0, 4.0], 10)
    grid = price[:, None] if by == "row" else price[None, :]
    closed = np.sort(np.random.default_rng(1).choice(1600, taken, replace=False))
    counts, worth, alone = np.zeros(1600), [], 0
    for seed in range(500):
        state = Purchase((40, 40), ew.Prices(grid), 1e4, None, np.random.default_rng(seed))
        state.taken = closed
        early = state._arrivals(60.0, None)
        assert early is not None
        early[0].first()
        alone += np.isfinite(early[0].limit)
        cells, chance = state.draw(None, 60.0)
        assert len(np.unique(cells)) == len(cells)
        assert not np.isin(cells, closed).any()
        assert 50.0 < state.price_of(cells).sum() <= 60.0
        counts[cells] += 1
        worth.append(np.sum(1.0 / chance))
    assert 100 < alone < 500  # both ways were taken
    assert np.mean(worth) == pytest.approx(1600 - taken, rel=0.02)
    grouped = counts.reshape(40, 40).sum(axis=int(by == "row")).reshape(4, 10).sum(axis=1)
    free = np.ones(1600)
    free[closed] = 0.0
    each = free.reshape(40, 40).sum(axis=int(by == "row")).reshape(4, 10).sum(axis=1)
    rate = grouped / each / 500
    until = -np.log1p(-rate) * [
        0.5,
        1.0,
        2.0,
        4.0,
    ]  # the same for all: chances are 1 - exp(-time / price)
    np.testing.assert_allclose(until, until.mean(), rtol=0.07)


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"goal": "most"}, "goal must be all, scores or best, got 'most'"),
        ({"rule": "guess"}, "rule must be gain, random"),
        ({"budget": -1.0}, "budget must be finite and not below 0, got -1"),
        ({"reserve": 1.0}, "reserve must be in 0..1"),
        ({"growth": 1.0}, "growth must be above 1"),
        ({"shape": (0, 3)}, "shape must be two numbers above 0"),
        ({"available": np.zeros((3, 3))}, "available must say for each"),
    ],
)
def test_bad_parameters_are_refused_at_once(extra, words):
    with pytest.raises(ParameterError, match=words):
        most_informative(**{"shape": (4, 4), "budget": 5.0, **extra})


@pytest.mark.parametrize("budget", [0.0, 1.0, 3.0])
def test_a_tiny_budget_still_gives_an_answer(budget):
    found = ew.play(most_informative((5, 4), budget=budget, rng=0), MatrixOracle(np.ones((5, 4))))
    assert found.cost <= budget
    assert found.shape == (5, 4)


@pytest.mark.parametrize("kind", ["row", "column", "flat list", "each", "one"])
def test_prices_of_rows_are_those_of_their_cells(kind):
    from entrywise.active.cells.purchase import Purchase

    rng = np.random.default_rng(0)
    shape = {"row": (7, 1), "column": (1, 5), "flat list": (5,), "each": (7, 5), "one": ()}[kind]
    prices = ew.Prices(entry=1.0 + rng.random(shape))
    state = Purchase((7, 5), prices, 10.0, None, rng)
    i, j = (x.ravel() for x in np.mgrid[:7, :5])
    each = prices.of("entry", i, j).reshape(7, 5)
    rows = np.array([1, 2, 5])
    np.testing.assert_array_equal(state.price(rows), each[rows])
    assert state.cheapest() == each.min()


def test_a_reserve_is_drawn_once_and_anew_when_what_it_follows_from_changes():
    from entrywise.active.cells import reserve
    from entrywise.active.cells.purchase import Purchase

    def drawn(prices, budget=200.0, seed=5, available=None):
        state = Purchase((40, 30), prices, budget, available, np.random.default_rng(0))
        found = reserve.reserve_cells(state, 0.2, seed)
        for got, expected in zip(found, reserve._drawn(state, 0.2 * budget, seed), strict=True):
            np.testing.assert_array_equal(got, expected)
        return found

    by_row = ew.Prices(entry=np.linspace(1, 3, 40)[:, None])
    first = drawn(by_row)
    assert drawn(by_row)[0] is first[0]
    half = np.arange(1200).reshape(40, 30) % 2 == 0
    others = [
        drawn(ew.Prices()),
        drawn(by_row, 150.0),
        drawn(by_row, seed=6),
        drawn(by_row, available=half),
    ]
    others.append(drawn(ew.Prices(entry=lambda rows, cols: 1.0 + rows)))
    assert all(not np.array_equal(first[0], cells) for cells, _ in others)
    assert len(reserve._REMEMBERED) <= reserve.MOST_REMEMBERED


def test_balanced_buying_is_balanced_inside_a_batch():
    """Counts of rows, and of columns, stay together whatever the size of a batch."""
    import entrywise as ew
    from entrywise.active import most_informative
    from entrywise.oracles import MatrixOracle
    from entrywise.run import Run

    A = np.random.default_rng(0).standard_normal((30, 20))
    run = Run(most_informative(A.shape, budget=240, rule="balanced", reserve=0.0, rng=1))
    ew.play(run, MatrixOracle(A))
    bought = (
        np.concatenate([batch.rows for batch, _ in run.log]),
        np.concatenate([batch.cols for batch, _ in run.log]),
    )
    for line, size in zip(bought, A.shape, strict=True):
        counts = np.bincount(line, minlength=size)
        assert counts.max() - counts.min() <= 2  # the first cells are drawn to connect the table


@pytest.mark.parametrize("most", [None, 0, 7])
def test_the_queue_of_a_draw_is_cut_without_losing_its_head(monkeypatch, most):
    monkeypatch.setattr(purchase, "BLOCK", 10)
    rng = np.random.default_rng(3)
    cells, times = np.arange(300), rng.random(300)
    weights, prices = rng.random(300), rng.lognormal(0.0, 2.0, 300)
    queue = purchase._Queue(20.0, most)
    for part in np.array_split(np.arange(300), 20):
        queue.add(cells[part], times[part], weights[part], prices[part])
    order = np.argsort(times)
    paid = int(np.sum(np.cumsum(prices[order]) <= 20.0))
    count = (paid if most is None else min(paid, most)) + 1
    found = queue.first()
    for mine, all_ in zip(found, (cells, times, weights), strict=True):
        np.testing.assert_array_equal(mine, all_[order[:count]])
