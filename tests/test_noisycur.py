"""noisy_cur and its rivals: exact recovery, the budget to the cent, both ends of it, failed answers, bad input, intervals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entrywise as ew
from entrywise import gallery
from entrywise.active import cur_plus, literal_noisy_cur, noisy_cur, split_nuclear_norm, two_phase
from entrywise.active.two_cost.split_nuclear_norm import least_nuclear_norm
from entrywise.checks import plans
from entrywise.exceptions import AnswerError, ParameterError
from entrywise.gallery import random_low_rank
from entrywise.oracles import MatrixOracle, TwoCostOracle
from entrywise.queries import Prices
from entrywise.reproduce._noisycur import contests, error, played, synthetic
from entrywise.results import Corrected, Lines, LowRank, Posterior
from entrywise.run import Run

NOISE = {"column": 0.2, "entry": 0.05}


def oracle_for(A, seed=0, noise=NOISE):
    return TwoCostOracle(A, entry_noise=noise["entry"], column_noise=noise["column"], rng=seed)


# exact recovery


@pytest.mark.parametrize(("m", "n", "rank"), [(30, 20, 3), (20, 30, 5), (9, 4, 1), (50, 8, 8)])
def test_exact_instruments_and_r_columns_with_r_cells_recover_the_matrix(m, n, rank):
    A = random_low_rank(m, n, rank, 1)
    prices = Prices(column=m / 4)
    budget = rank * m / 4 + rank * (n - rank)
    oracle = oracle_for(A, noise={"column": 0.0, "entry": 0.0})
    found = ew.play(noisy_cur((m, n), prices, noise=0.0, budget=budget, rank=rank, rng=0), oracle)
    np.testing.assert_allclose(found.to_dense(), A, atol=1e-10 * np.abs(A).max())
    assert found.cost <= budget
    assert (found.report["columns"], found.report["cells"]) == (rank, rank * (n - rank))


def test_exact_instruments_find_the_rank_and_leave_the_rest_of_the_money():
    A = random_low_rank(40, 30, 4, 2)
    oracle = oracle_for(A, noise={"column": 0.0, "entry": 0.0})
    found = ew.play(noisy_cur((40, 30), Prices(column=10), noise=0.0, budget=600, rng=0), oracle)
    np.testing.assert_allclose(found.to_dense(), A, atol=1e-10 * np.abs(A).max())
    assert found.rank == 4
    assert (
        found.cost == 5 * 10 + 5 * 25
    )  # one column and one cell a column more than needed, to check
    assert found.certificate is not None
    assert found.certificate.checked


@pytest.mark.slow
def test_exact_instruments_of_a_matrix_without_low_rank_fall_back_to_the_fit():
    A = np.random.default_rng(0).standard_normal((20, 12)) + 5
    oracle = oracle_for(A, noise={"column": 0.0, "entry": 0.0})
    found = ew.play(noisy_cur((20, 12), Prices(column=5), noise=0.0, budget=50, rng=0), oracle)
    assert found.report["estimator"] == "bayes"
    assert error(found.to_dense(), A) < 0.25
    assert found.cost <= 50


@pytest.mark.slow
def test_scale_does_not_matter():
    A = random_low_rank(30, 24, 2, 3)
    errors = []
    for scale in (1e-9, 1.0, 1e9):
        noise = {k: v * scale for k, v in NOISE.items()}
        plan = noisy_cur((30, 24), Prices(column=6), noise=noise, budget=240, rng=0)
        errors.append(
            error(ew.play(plan, oracle_for(A * scale, noise=noise)).to_dense(), A * scale)
        )
    np.testing.assert_allclose(errors, errors[0], rtol=1e-4)


# money


@pytest.mark.slow
@given(
    m=st.integers(2, 14), n=st.integers(2, 12), share=st.floats(0.02, 1.6), alpha=st.floats(0.05, 1.0),
    ratio=st.floats(1.0, 50.0), unknown=st.booleans(), seed=st.integers(0, 50),
)  # fmt: skip
def test_never_overspends_and_leaves_less_than_an_entry(m, n, share, alpha, ratio, unknown, seed):
    A = random_low_rank(m, n, min(2, m, n), seed)
    budget = max(share * m * n, 1.0)
    noise = {"column": 0.2 * ratio**0.5, "entry": 0.2}
    prices = Prices(column=max(alpha * m, 0.01))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        plan = noisy_cur((m, n), prices, noise=None if unknown else noise, budget=budget, rng=seed)
        run = Run(plan)
        found = ew.play(run, oracle_for(A, seed, noise))
    assert found.cost <= budget * (1 + 1e-9)
    bought = {
        (int(i), int(j))
        for b, _ in run.log
        if b.mode == "entry"
        for i, j in zip(b.rows, b.cols, strict=True)
    }
    assert len(bought) == m * n or budget - found.cost < 1.0 + 1e-6
    assert np.all(np.isfinite(found.to_dense()))


def test_a_budget_below_one_column_buys_entries_alone():
    A = random_low_rank(40, 30, 2, 0)
    found = ew.play(
        noisy_cur((40, 30), Prices(column=39), noise=NOISE, budget=38, rng=0), oracle_for(A)
    )
    assert (found.report["columns"], found.report["cells"], found.cost) == (0, 38, 38.0)


def test_every_column_affordable_buys_them_all_and_the_rest_in_entries():
    A = random_low_rank(40, 30, 2, 0)
    found = ew.play(
        noisy_cur((40, 30), Prices(column=1), noise=NOISE, budget=500, rng=0), oracle_for(A)
    )
    assert (found.report["columns"], found.report["cells"], found.cost) == (30, 470, 500.0)


def test_a_budget_beyond_everything_buys_every_entry_once():
    A = random_low_rank(12, 10, 2, 0)
    found = ew.play(
        noisy_cur((12, 10), Prices(column=3), noise=NOISE, budget=1000, rng=0), oracle_for(A)
    )
    assert found.report["cells"] == 120
    assert error(found.to_dense(), A) < 0.06


def test_prices_for_each_column_and_entry():
    rng = np.random.default_rng(0)
    A = random_low_rank(30, 20, 2, 0)
    prices = Prices(entry=rng.uniform(0.5, 2.0, (30, 20)), column=rng.uniform(4, 9, (1, 20)))
    found = ew.play(noisy_cur((30, 20), prices, noise=NOISE, budget=150, rng=0), oracle_for(A))
    assert 145 < found.cost <= 150 * (1 + 1e-9)
    assert error(found.to_dense(), A) < 0.4


@pytest.mark.slow
def test_known_entries_are_free_and_fitted_from_the_start():
    A = random_low_rank(30, 20, 2, 0)
    known = ew.Observations.from_triplets(*np.nonzero(np.ones((30, 4))), A[:, :4].ravel(), (30, 20))
    plan = noisy_cur((30, 20), Prices(column=8), noise=NOISE, budget=120, rng=0)
    run = Run(plan, known=known)
    found, alone = ew.play(run, oracle_for(A)), ew.play(plan, oracle_for(A))
    entries = [e.batch for e in run.log if e.batch.mode == "entry"]
    assert all(np.all(batch.cols >= 4) for batch in entries)
    assert found.cost == alone.cost == 120.0
    assert error(found.to_dense(), A) < 0.8 * error(alone.to_dense(), A)


# what comes back


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1], ids=["low noise", "high noise"])
def test_beats_the_literal_algorithm_at_its_best_on_the_papers_matrices(which):
    c = contests("synthetic", synthetic(), 4)[which]
    seeds = range(4)
    ours, literal = [], {d: [] for d in (14, 18, 22, 26)}
    for seed in seeds:
        A = c.matrix(seed)
        common = {"shape": A.shape, "prices": c.prices(80), "budget": c.budget(A), "rng": seed}
        ours.append(error(played(c, noisy_cur(noise=c.noise, **common), A, seed)[0].to_dense(), A))
        for d, kept in literal.items():
            kept.append(
                error(played(c, literal_noisy_cur(columns=d, **common), A, seed)[0].to_dense(), A)
            )
    assert np.mean(ours) < 0.8 * min(np.mean(kept) for kept in literal.values())


@pytest.mark.slow
def test_intervals_cover_entries_that_were_not_seen():
    c = contests("synthetic", synthetic(), 4)[0]
    inside, count = 0, 0
    for seed in range(6):
        A = c.matrix(seed)
        plan = noisy_cur(A.shape, c.prices(80), noise=c.noise, budget=c.budget(A), rng=seed)
        found, run = played(c, plan, A, seed)
        unseen = np.ones(A.shape, bool)
        for batch, _ in run.log:
            unseen[batch.rows, batch.cols] = False
        low, high = found.interval(*np.nonzero(unseen), 0.9, of="truth")
        inside += int(np.sum((low <= A[unseen]) & (A[unseen] <= high)))
        count += int(unseen.sum())
    assert 0.84 < inside / count < 0.96


@pytest.mark.slow
def test_unknown_noise_is_found_from_repeats():
    A = random_low_rank(60, 40, 2, 5)
    noise = {"column": 0.5, "entry": 0.1}
    found = ew.play(
        noisy_cur((60, 40), Prices(column=12), budget=700, rng=0), oracle_for(A, 1, noise)
    )
    assert found.report["column_noise"] == pytest.approx(0.5, rel=0.3)
    assert found.report["entry_noise"] == pytest.approx(0.1, rel=0.5)
    assert found.cost <= 700
    bought = found.report["columns"] + found.report["columns_repeated"]
    assert found.report["columns_repeated"] == 1
    assert found.cost == 12 * bought + found.report["cells"]
    assert error(found.to_dense(), A) < 0.25


def blocks(price, budget=900, rank=None, fails=()):
    """Return the rows and columns of each batch of entries but the last, and the columns bought."""
    A = random_low_rank(80, 60, 3, 2)
    noise = {"column": 0.5, "entry": 0.05}
    run = Run(
        noisy_cur((80, 60), Prices(column=price), noise=noise, budget=budget, rank=rank, rng=3)
    )
    oracle = oracle_for(A, 1, noise)
    shapes = []
    while (batch := run.ask()) is not None:
        answers = np.array(oracle(batch))
        if len(shapes) in fails:
            answers = [None] * len(batch)
        if batch.mode == "entry":
            shapes.append(
                (len(set(batch.rows.tolist())), len(set(batch.cols.tolist())), len(batch))
            )
        run.tell(answers)
    return shapes[:-1], run.result.report["columns"]


@pytest.mark.slow
def test_a_block_of_entries_tells_the_rank_where_columns_are_dear():
    shapes, columns = blocks(40.0)
    assert shapes[1:] == [
        (4, 4, 16),
        (5, 5, 9),
        (7, 7, 24),
    ]  # after the first few entries, and no larger
    assert columns < 5
    assert len(blocks(8.0)[0]) == 1  # cheap columns tell it themselves
    assert len(blocks(40.0, rank=3)[0]) == 1  # nothing to find out
    assert blocks(40.0, fails=(1, 2))[0][1:3] == shapes[1:3]  # failed answers are left out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "rank", "prices", "noise", "budget", "seeds", "most"),
    [  # where a first fit ended in a poor optimum, at three to five times the error
        ((100, 50), 6, 50.53, (0.2642, 0.04963), 1149.5, (9627, 11), 0.12),
        ((80, 60), 3, 29.35, (0.5563, 0.09883), 601.7, (9236, 1), 0.2),
    ],
)
def test_poor_optima_are_left(shape, rank, prices, noise, budget, seeds, most):
    rng = np.random.default_rng(seeds)
    A = (
        rng.standard_normal((shape[0], rank))
        @ rng.standard_normal((rank, shape[1]))
        / np.sqrt(rank)
    )
    told = dict(zip(("column", "entry"), noise, strict=True))
    plan = noisy_cur(
        shape, Prices(column=prices), noise=told, budget=budget, rng=1000 * seeds[0] + seeds[1]
    )
    found = ew.play(plan, TwoCostOracle(A, column_noise=noise[0], entry_noise=noise[1], rng=rng))
    assert np.sqrt(np.mean((found.to_dense() - A) ** 2)) < most


def test_noise_that_was_only_assumed_is_not_reported():
    found = ew.play(
        noisy_cur((6, 5), Prices(column=5), budget=4, rng=0),
        oracle_for(random_low_rank(6, 5, 1, 0)),
    )
    assert found.report["column_noise"] is None
    assert found.report["entry_noise"] is None


def test_what_no_low_rank_matrix_explains_is_kept_where_it_was_seen():
    rng = np.random.default_rng(0)
    A = random_low_rank(200, 40, 2, 0) + 1.5 * rng.standard_normal((200, 40))
    noise = {"column": 0.3, "entry": 0.05}
    found = ew.play(
        noisy_cur((200, 40), Prices(column=40), noise=noise, budget=1600, rng=0),
        oracle_for(A, 1, noise),
    )
    assert isinstance(found, Corrected)
    assert found.report["lack_of_fit"] == pytest.approx(1.5, rel=0.15)
    i, j = np.divmod(found.seen, 40)
    assert np.sqrt(np.mean((found.entries(i, j) - A[i, j]) ** 2)) < 0.32
    assert np.sqrt(np.mean((found.plain().entries(i, j) - A[i, j]) ** 2)) > 1.0
    assert (
        found.deviation(i, j, of="truth").max()
        < 0.5
        < found.plain().deviation(i, j, of="truth").min()
    )


def test_failed_answers_are_left_out():
    A = random_low_rank(40, 30, 2, 0)
    inner, rng = oracle_for(A), np.random.default_rng(3)

    def flaky(batch):
        return [None if rng.random() < 0.1 else y for y in inner(batch)]

    plan = noisy_cur((40, 30), Prices(column=8), noise=NOISE, budget=400, rng=0)
    assert error(ew.play(plan, flaky).to_dense(), A) < 0.3
    literal = literal_noisy_cur((40, 30), Prices(column=8), columns=12, budget=400, rng=0)
    assert np.all(np.isfinite(ew.play(literal, flaky).to_dense()))


def test_when_every_answer_fails_the_result_is_zero():
    plan = noisy_cur((12, 10), Prices(column=3), noise=NOISE, budget=60, rng=0)
    found = ew.play(plan, lambda batch: [None] * len(batch))
    assert np.all(found.to_dense() == 0)


@pytest.mark.parametrize("value", [0.0, 7.5])
def test_a_constant_matrix(value):
    plan = noisy_cur((20, 10), Prices(column=5), noise=0.0, budget=80, rng=0)
    found = ew.play(plan, MatrixOracle(np.full((20, 10), value)))
    np.testing.assert_allclose(found.to_dense(), value, atol=1e-9)


@pytest.mark.parametrize("shape", [(1, 8), (8, 1), (1, 1), (2, 2)])
def test_the_smallest_shapes(shape):
    A = random_low_rank(*shape, 1, 0) + 2
    found = ew.play(
        noisy_cur(shape, Prices(column=shape[0] / 2), noise=NOISE, budget=6, rng=0), oracle_for(A)
    )
    assert found.shape == shape
    assert np.all(np.isfinite(found.to_dense()))


@pytest.mark.slow
def test_the_modes_are_visible_in_what_is_asked():
    run = Run(noisy_cur((40, 30), Prices(column=8), noise=NOISE, budget=300, rng=0))
    oracle, modes = oracle_for(random_low_rank(40, 30, 2, 0)), []
    while not run.finished:
        modes.append(run.ask().mode)
        run.tell(oracle(run.ask()))
    assert "column" in modes
    assert modes[-1] == "entry"


# the literal algorithm and the rivals


def test_literal_carries_the_theorem_and_says_that_it_is_vacuous():
    plan = literal_noisy_cur((40, 30), Prices(column=8), columns=10, noise=NOISE, budget=300, rng=0)
    found = ew.play(plan, oracle_for(random_low_rank(40, 30, 2, 0)))
    assert found.certificate is not None
    assert "Theorem 1" in found.certificate.statement
    assert found.certificate.vacuous


def test_literal_without_columns_takes_the_forecast():
    found = ew.play(
        literal_noisy_cur((40, 30), Prices(column=8), noise=NOISE, budget=300, rng=0),
        oracle_for(random_low_rank(40, 30, 2, 0)),
    )
    assert 1 <= found.report["columns"] <= 33


def test_literal_solves_the_ridge_problem_it_states():
    A = random_low_rank(40, 30, 3, 0)
    run = Run(
        literal_noisy_cur((40, 30), Prices(column=8), columns=9, budget=300, penalty=0.7, rng=0)
    )
    found = ew.play(run, oracle_for(A))
    (columns, c), (rows, y) = run.log
    C = c.reshape(9, 40).T
    U = np.linalg.svd(C, full_matrices=False)[0]
    p = 0.5 * (U**2).sum(axis=1) / 9 + 0.5 / 40
    I = rows.rows.reshape(-1, 30)[:, 0]
    scale = 1 / np.sqrt(len(I) * p[I])
    SC, SY = scale[:, None] * C[I], scale[:, None] * y.reshape(-1, 30)
    X = np.linalg.solve(SC.T @ SC + 0.7 * np.eye(9), SC.T @ SY)
    np.testing.assert_allclose(found.to_dense(), C @ X, atol=1e-10)
    assert len(I) == (300 - 9 * 8) // 30
    assert columns.mode == "column"


def test_code_variant_overwrites_the_precise_rows():
    A = random_low_rank(40, 30, 3, 0)
    run = Run(
        literal_noisy_cur((40, 30), Prices(column=8), columns=9, budget=300, variant="code", rng=0)
    )
    found = ew.play(run, oracle_for(A))
    (columns, _), (rows, y) = run.log
    J, I = columns.cols[::40], rows.rows[::30]
    np.testing.assert_array_equal(found.left[I], y.reshape(-1, 30)[:, J])
    assert len(set(J)) == 9
    assert len(set(I)) == len(I)


def test_cur_plus_is_exact_without_noise_and_buys_rows_whole_where_they_have_a_price():
    A = random_low_rank(40, 30, 3, 4)
    oracle = TwoCostOracle(A, entry_noise=0.0, column_noise=0.0, row_noise=0.0, rng=0)
    plan = cur_plus((40, 30), Prices(column=8, row=8), columns=5, rank=3, budget=200, rng=0)
    run = Run(plan)
    found = ew.play(run, oracle)
    np.testing.assert_allclose(found.to_dense(), A, atol=1e-9)
    assert [b.mode for b, _ in run.log] == ["column", "row", "entry"]
    assert found.cost == 200


@pytest.mark.parametrize("axis", [0, 1], ids=["rows", "columns"])
def test_two_phase_looks_more_at_heavy_lines_and_uses_both_phases(axis):
    A = np.ones((60, 40))
    A[(3, slice(None)) if axis == 0 else (slice(None), 3)] = 30.0
    run = Run(two_phase((60, 40), budget=800, rank=1, rng=0))
    found = ew.play(run, MatrixOracle(A))
    first, second = (b for b, _ in run.log)
    assert len(first) == len(second) == 400
    assert not {*zip(first.rows, first.cols, strict=True)} & {
        *zip(second.rows, second.cols, strict=True)
    }
    heavy, again = (np.mean((b.rows if axis == 0 else b.cols) == 3) for b in (first, second))
    assert again > 3 * heavy > 0
    assert found.report["cells"] == 800


def test_split_nuclear_norm_meets_both_constraints_and_nothing_smaller_does():
    rng = np.random.default_rng(0)
    Y = random_low_rank(14, 10, 2, 0) + 0.1 * rng.standard_normal((14, 10))
    of = rng.integers(0, 3, Y.shape).astype(np.int8)
    radius = [0.8, 0.3]
    U, V, _ = least_nuclear_norm(Y, of, radius, 4000)
    Z = U @ V.T
    for mark, r in zip((1, 2), radius, strict=True):
        assert np.linalg.norm((Z - Y)[of == mark]) <= r * 1.01
    cvxpy = pytest.importorskip("cvxpy")
    X = cvxpy.Variable(Y.shape)
    bounds = [
        cvxpy.norm(cvxpy.multiply(of == k + 1, X - Y), "fro") <= r for k, r in enumerate(radius)
    ]
    best = cvxpy.Problem(cvxpy.Minimize(cvxpy.normNuc(X)), bounds).solve(solver="SCS", eps=1e-6)
    assert np.linalg.norm(Z, "nuc") == pytest.approx(best, rel=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("law", plans.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize(
    "extra",
    [
        {"noise": None},
        {"noise": 0.0},
        {"columns": 0},
        {"rank": 2},
    ],
    ids=["unknown noise", "no noise", "entries only", "rank given"],
)
def test_variants_obey_the_laws(extra, law):
    given_ = {
        "shape": (12, 10),
        "prices": Prices(column=4),
        "noise": NOISE,
        "budget": 70,
        "rng": 0,
    } | extra
    law(noisy_cur(**given_), gallery.two_cost_oracle)


# bad input, one clear line each


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"prices": Prices(column=41)}, "must not cost more than its 40 entries"),
        ({"prices": Prices()}, "needs a price for column"),
        ({"prices": {"column": 3}}, "must be Prices"),
        ({"budget": 0.5, "prices": Prices(column=2)}, "must pay for one entry"),
        ({"budget": -3}, "budget of noisy_cur must be finite and above 0"),
        ({"budget": float("nan")}, "budget of noisy_cur must be finite"),
        ({"noise": {"column": -1.0}}, "noise of column is a standard deviation"),
        ({"noise": {"colum": 1.0}}, "keys column and entry"),
        ({"shape": (0, 3)}, "two numbers above 0"),
        ({"shape": 5}, "must be two numbers"),
        ({"columns": 31}, "columns of noisy_cur must be in 0..30"),
        ({"rank": 31}, "rank of noisy_cur must be in 0..30"),
        ({"noise": 1e300}, "noise of column must be between 1e-150 and 1e\\+150"),
        ({"noise": {"entry": 5e-324}}, "noise of entry must be between 1e-150 and 1e\\+150"),
        ({"budget": 1e300}, "budget of noisy_cur must be between 1e-100 and 1e100"),
        ({"prices": Prices(column=1e300, entry=1e300)}, "price of column must be between"),
    ],
)
def test_bad_input_is_refused_in_one_line(change, words):
    given_ = {
        "shape": (40, 30),
        "prices": Prices(column=8),
        "noise": NOISE,
        "budget": 300,
        "rng": 0,
    } | change
    with pytest.raises(ParameterError, match=words) as caught:
        noisy_cur(**given_)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("price", [0.0, -2.0, float("inf")])
def test_prices_must_be_above_zero(price):
    with pytest.raises(ParameterError, match="price of column must be finite and above 0"):
        Prices(column=price)


def test_columns_more_precise_than_entries_are_allowed_with_a_warning():
    with pytest.warns(UserWarning, match="columns dominate"):
        plan = noisy_cur(
            (40, 30), Prices(column=8), noise={"column": 0.05, "entry": 0.2}, budget=300, rng=0
        )
    A = random_low_rank(40, 30, 2, 0)
    with pytest.warns(UserWarning, match="columns dominate"):
        found = ew.play(plan, oracle_for(A, noise={"column": 0.05, "entry": 0.2}))
    assert found.report["columns"] >= 28


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: literal_noisy_cur((40, 30), p, columns=37, budget=300), "one row of 30 entries"),
        (
            lambda p: literal_noisy_cur((40, 30), p, columns=5, budget=300, penalty=0.0),
            "penalty must be",
        ),
        (
            lambda p: cur_plus((40, 30), p, columns=3, rank=4, budget=300),
            "rank of cur_plus must be in 1..3",
        ),
        (
            lambda p: cur_plus((40, 30), p, columns=20, rank=4, budget=300),
            "must pay for 20 columns and 20 rows",
        ),
        (lambda p: two_phase((40, 30), p, rank=2, budget=0.5), "must pay for one entry"),
        (
            lambda p: split_nuclear_norm((40, 30), p, columns=3, noise=None, budget=300),
            "must know both noises",
        ),
        (
            lambda p: literal_noisy_cur((40, 30), p, budget=30),
            "one column and one row",
        ),
        (
            lambda p: noisy_cur((40, 30), p, budget="200"),
            "budget of noisy_cur must be a number, got '200'",
        ),
        (
            lambda p: noisy_cur((40, 30), p, noise={"column": "low"}, budget=200),
            "standard deviation.* got 'low'",
        ),
    ],
)
def test_rivals_refuse_bad_input(make, words):
    with pytest.raises(ParameterError, match=words):
        make(Prices(column=8))


def test_corrected_results_agree_with_themselves_and_survive_saving(tmp_path):
    rng = np.random.default_rng(0)
    flat = Lines.point(np.zeros(3), np.eye(3))
    found = LowRank(
        rng.standard_normal((6, 2)),
        rng.standard_normal((5, 2)),
        np.ones(6),
        np.arange(5.0),
        posterior=Posterior(flat, flat, lack_variance=0.4),
    )
    seen = ew.Observations.from_triplets(
        [5, 0, 3], [1, 4, 2], [9.0, 8.0, 7.0], (6, 5), noise=np.array([0.0, 0.2, 5.0])
    )
    fixed = Corrected.of(found, seen)
    i, j = np.indices((6, 5))
    np.testing.assert_allclose(fixed.to_dense(), fixed.entries(i, j))
    np.testing.assert_allclose(fixed @ np.arange(5.0), fixed.to_dense() @ np.arange(5.0))
    assert fixed.entry(5, 1) == pytest.approx(9.0)
    share = 0.4 / (0.4 + 0.04)
    assert fixed.entry(0, 4) == pytest.approx(share * 8.0 + (1 - share) * found.entry(0, 4))
    assert fixed.entry(2, 2) == found.entry(2, 2)
    fixed.save(tmp_path / "found.npz")
    back = ew.LowRank.load(tmp_path / "found.npz")
    np.testing.assert_array_equal(back.to_dense(), fixed.to_dense())


# exact instruments, and both ends of the money


@pytest.mark.parametrize(
    ("m", "n", "rank", "price", "budget", "columns", "proven"),
    [
        (100, 50, 20, 10.0, 500.0, 50, True),  # every column costs less than 20 cells
        (10, 10, 10, 2.0, 20.0, 10, True),  # full rank
        (
            80,
            60,
            4,
            16.0,
            288.0,
            4,
            False,
        ),  # r columns and r cells in every other, to the last unit
        (30, 20, 1, 6.0, 25.0, 1, False),
        (80, 60, 4, 16.0, 600.0, 5, True),
    ],
)
def test_exact_instruments_recover_whatever_the_money_allows(
    m, n, rank, price, budget, columns, proven
):
    A = random_low_rank(m, n, rank, seed=3)
    plan = noisy_cur(
        (m, n), ew.Prices(column=price), noise={"column": 0.0, "entry": 0.0}, budget=budget, rng=1
    )
    found = ew.play(plan, TwoCostOracle(A, entry_noise=0.0, column_noise=0.0))
    np.testing.assert_allclose(found.to_dense(), A, atol=1e-10 * np.abs(A).max())
    assert found.report["columns"] == columns
    assert found.report["rank_proven"] is proven
    assert len(found.certificates) == proven  # what nothing proves is not promised
    assert found.cost <= budget


@pytest.mark.slow
@pytest.mark.parametrize("columns", [None, 50])
def test_the_pilot_does_not_cost_a_column_where_all_can_be_paid(columns):
    A = random_low_rank(100, 50, 20, seed=3)
    noise = {"column": 0.02, "entry": 0.01}
    plan = noisy_cur(A.shape, ew.Prices(column=10), noise=noise, budget=500, columns=columns, rng=0)
    found = ew.play(plan, TwoCostOracle(A, entry_noise=0.01, column_noise=0.02, rng=0))
    assert found.report["columns"] == 50
    assert np.linalg.norm(found.to_dense() - A) < 0.03 * np.linalg.norm(A)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.filterwarnings("ignore:noise of columns")
def test_exact_columns_beside_noisy_entries():
    A = random_low_rank(40, 30, 3, seed=3)
    plan = noisy_cur(
        A.shape, ew.Prices(column=8), noise={"column": 0.0, "entry": 0.1}, budget=240, rng=0
    )
    found = ew.play(plan, TwoCostOracle(A, entry_noise=0.1, column_noise=0.0, rng=0))
    np.testing.assert_allclose(found.to_dense(), A, atol=1e-6)


def test_one_measurement_promises_nothing():
    plan = noisy_cur(
        (80, 60), ew.Prices(column=16), noise={"column": 0.2, "entry": 0.1}, budget=1, rng=0
    )
    found = ew.play(
        plan, TwoCostOracle(random_low_rank(80, 60, 3), entry_noise=0.1, column_noise=0.2, rng=0)
    )
    assert found.certificates == ()


@pytest.mark.parametrize("extra", [{"rank": 2.5}, {"columns": 3.5}, {"rank": True}])
def test_ranks_and_columns_are_whole_numbers(extra):
    with pytest.raises(ParameterError, match="must be a whole number"):
        noisy_cur((80, 60), ew.Prices(column=16), noise=0.1, budget=720, **extra)


# extremes: a finite result, or one sentence

EXTREME = (0.0, 5e-324, 1e-310, 1e-300, 1e-150, 1e-90, 1.0, 1e30, 1e90, 1e150, 1e300, 1.7e308)
SMALL_PLANS = {
    "noisy_cur": lambda: noisy_cur((8, 6), Prices(column=3), noise=NOISE, budget=30, rng=0),
    "noise unknown": lambda: noisy_cur((8, 6), Prices(column=3), budget=30, rng=0),
    "no noise": lambda: noisy_cur((8, 6), Prices(column=3), noise=0.0, budget=30, rng=0),
    "literal": lambda: literal_noisy_cur(
        (8, 6), Prices(column=3), columns=3, noise=NOISE, budget=30, rng=0
    ),
    "cur_plus": lambda: cur_plus((8, 6), Prices(column=3), columns=2, rank=1, budget=40, rng=0),
    "two_phase": lambda: two_phase((8, 6), budget=30, rank=2, rng=0),
    "split": lambda: split_nuclear_norm(
        (8, 6), Prices(column=3), columns=3, noise=NOISE, budget=30, rng=0
    ),
}


def finite_or_one_sentence(plan, oracle):
    """Return the completed matrix, finite; None where the plan refuses its answers in one line."""
    try:
        found = ew.play(plan, oracle)
    except AnswerError as error:
        words = str(error)
    else:
        words = ""
    if words:
        assert "\n" not in words
        return None
    X = found.to_dense()
    assert np.all(np.isfinite(X))
    return X


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SMALL_PLANS)
@settings(max_examples=15)
@given(
    scale=st.sampled_from(EXTREME),
    odd=st.none() | st.sampled_from(EXTREME),
    sign=st.sampled_from([-1.0, 1.0]),
    at=st.integers(0, 47),
    seed=st.integers(0, 9),
)
def test_no_answer_is_too_odd(name, scale, odd, sign, at, seed):
    A = np.tanh(random_low_rank(8, 6, 2, seed)) * scale
    if odd is not None:
        A.ravel()[at] = sign * odd
    finite_or_one_sentence(SMALL_PLANS[name](), MatrixOracle(A))


@pytest.mark.parametrize("name", ["literal", "cur_plus", "two_phase", "split"])
@pytest.mark.parametrize("power", [-1000, 900])
def test_rivals_know_no_units_at_the_ends_of_floating_point(name, power):
    A = random_low_rank(8, 6, 1, 3)
    unit = 2.0**power
    quiet = {"noise": {"column": 0.0, "entry": 0.0}}
    make = {
        "literal": lambda: literal_noisy_cur((8, 6), Prices(column=3), columns=3, budget=30, rng=0),
        "split": lambda: split_nuclear_norm(
            (8, 6), Prices(column=3), columns=3, budget=30, rng=0, **quiet
        ),
    }.get(name, SMALL_PLANS[name])
    far = ew.play(make(), MatrixOracle(A * unit)).to_dense() / unit
    near = ew.play(make(), MatrixOracle(A)).to_dense()
    np.testing.assert_allclose(far, near, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [None, 0.0, 0.1])
@pytest.mark.parametrize("power", [-490, -40, 40, 490])
def test_noisy_cur_and_its_intervals_know_no_units(noise, power):
    A, unit = random_low_rank(20, 15, 2, 0), 2.0**power
    found = []
    for size in (1.0, unit):
        sd = {mode: 0.0 if noise == 0.0 else x * size for mode, x in NOISE.items()}
        told = sd if noise else noise
        plan = noisy_cur((20, 15), Prices(column=5), noise=told, budget=100, rng=0)
        fit = ew.play(plan, oracle_for(A * size, noise=sd))
        ends = [fit.interval([0, 3], [0, 4], 0.9, of="truth")] if noise != 0.0 else []
        found.append(np.concatenate([np.ravel(x) / size for x in (fit.to_dense(), *ends)]))
        assert found[-1][:300] == pytest.approx(A.ravel(), abs=1.0)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6)


def test_one_odd_answer_of_noisy_cur_is_named_and_nothing_is_kept_of_its_batch():
    A = random_low_rank(8, 6, 2, 0)
    A[2, 3] = -1e300
    with pytest.raises(AnswerError, match=r"entry \(2, 3\) is -1e\+300; correct it, or count in"):
        ew.play(SMALL_PLANS["noisy_cur"](), MatrixOracle(A))
    A[2, 3] = 1e30
    assert finite_or_one_sentence(SMALL_PLANS["noise unknown"](), MatrixOracle(A)) is not None
    assert finite_or_one_sentence(SMALL_PLANS["no noise"](), MatrixOracle(A)) is not None


def test_answers_far_below_the_noise_are_nothing_and_without_a_noise_they_are_refused():
    A = random_low_rank(8, 6, 2, 0) * 1e-300
    assert not finite_or_one_sentence(SMALL_PLANS["noisy_cur"](), MatrixOracle(A)).any()
    with pytest.raises(AnswerError, match="must be 0 or reach 1e-150"):
        ew.play(SMALL_PLANS["no noise"](), MatrixOracle(A))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:noise of columns")
@settings(max_examples=20)
@given(
    column=st.sampled_from([None, 0.0, 1e-100, 1e-30, 1.0, 1e30, 1e100]),
    entry=st.sampled_from([None, 0.0, 1e-100, 1e-30, 1.0, 1e30, 1e100]),
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_noises_may_be_as_far_apart_as_can_be(column, entry):
    noise = {"column": column, "entry": entry}
    plan = noisy_cur((8, 6), Prices(column=3), noise=noise, budget=30, rng=0)
    finite_or_one_sentence(plan, MatrixOracle(random_low_rank(8, 6, 2, 0)))


@pytest.mark.parametrize("budget", [1e12, 1e99])
def test_budgets_beyond_everything_neither_hang_nor_fill_the_memory(budget):
    A = random_low_rank(8, 6, 2, 0)
    found = ew.play(
        noisy_cur((8, 6), Prices(column=3), noise=NOISE, budget=budget, rng=0), oracle_for(A)
    )
    assert found.report["cells"] == 48
    with pytest.raises(ParameterError, match="must pay for at most 1e\\+08 entries"):
        literal_noisy_cur((8, 6), Prices(column=3), columns=3, budget=budget, rng=0)


@pytest.mark.parametrize("price", [1e-99, 1e-13, 1e97])
def test_the_unit_of_money_does_not_matter(price):
    A = random_low_rank(12, 10, 2, 0)
    costs = []
    for unit in (1.0, price):
        prices = Prices(column=3 * unit, entry=unit)
        plan = noisy_cur((12, 10), prices, noise=NOISE, budget=60 * unit, rng=0)
        costs.append(ew.play(plan, oracle_for(A)).cost / unit)
    assert costs[1] == pytest.approx(costs[0], abs=1.0)
    assert costs[1] <= 60 * (1 + 1e-9)
