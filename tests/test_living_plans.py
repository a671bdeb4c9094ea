"""Plans that live: pending cells, the reserve that belongs to its cells, history, plates, sample numbers."""

from __future__ import annotations

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import entrywise as ew
from entrywise.active import most_informative, rank_one, subspace, top_two
from entrywise.active.cells import purchase as purchase_module
from entrywise.active.cells.plates import PlateFormat, without_plate_effects
from entrywise.active.cells.purchase import Purchase, see_purchase
from entrywise.active.cells.reserve import reserve_cells, uniform_of
from entrywise.active.pairs import sequential_halving, successive_elimination
from entrywise.exceptions import ParameterError
from entrywise.gallery import random_low_rank
from entrywise.linalg import small
from entrywise.linalg.gain import Gains
from entrywise.linalg.joint_gain import JointGains
from entrywise.oracles import BernoulliOracle, MatrixOracle
from entrywise.passive import low_rank
from entrywise.queries import Batch, History, Situation
from entrywise.run import Run
from entrywise.study import Study
from entrywise.study.schema import pending as pending_table
from entrywise.types import distinct, has_equals


def purchase(shape, budget, seed=0, **known):
    situation = Situation(left=budget, **known)
    return see_purchase(shape, None, budget, None, np.random.default_rng(seed), situation)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**9), count=st.integers(0, 40))
def test_a_step_sees_each_cell_as_what_it_was_asked_for(seed, count):
    rng = np.random.default_rng(seed)
    arms = ["reserve", "control", "start", "greedy", "rest", "", "s", "contrôle"]
    cells = rng.permutation(9 * 7)[:count]
    i, j = np.divmod(cells, 7)
    arm = rng.choice(arms, count)
    value = np.where(rng.random(count) < 0.2, np.nan, rng.random(count))
    known = rng.random(count) < 0.2
    price = np.where(rng.random(count) < 0.2, np.nan, rng.random(count))
    told = rng.random(count) < 0.7
    facts = History(
        *(x[told] for x in (i, j, value)), arm=arm[told], known=known[told], price=price[told]
    )
    pending = History(
        *(x[~told] for x in (i, j, np.full(count, np.nan))), arm=arm[~told], price=price[~told]
    )
    state = purchase((9, 7), 100.0, facts=facts, pending=pending)
    lines = list(zip(cells.tolist(), arm.tolist(), np.isnan(value), known, told, strict=True))
    reserved = {c for c, a, _, k, t in lines if a == "reserve" and not (k and t)}
    controls = {c for c, a, *_ in lines if a == "control"}
    failed = {c for c, _, f, _, t in lines if f and t}
    answered = {c for c, *_, t in lines if t}
    everything = set(cells.tolist())
    assert state.reserved.tolist() == sorted(reserved)
    assert state.hidden.tolist() == sorted((reserved & answered) - failed)
    assert sorted(state.out.tolist()) == sorted(everything - answered - reserved - controls)
    assert state.taken.tolist() == sorted(everything - controls - reserved | (reserved & failed))
    fitted = answered - reserved - controls - failed
    assert sorted((state.rows * 7 + state.cols).tolist()) == sorted(fitted)
    assert np.isclose(state.started, np.nansum(price[arm == "start"]))


@given(st.lists(st.integers(-3, 5) | st.integers(2**32 - 2, 2**32 + 2), max_size=12))
def test_numbers_in_order_are_distinct(numbers):
    index = np.array(numbers, np.int64)
    assert distinct(index).dtype == np.int64
    assert distinct(index).tolist() == sorted(set(numbers))
    assert has_equals(index) == (len(set(numbers)) < len(numbers))


@pytest.mark.parametrize("is_large", [False, True])
@given(st.lists(st.integers(0, 199), max_size=30), st.lists(st.integers(0, 199), max_size=30))
def test_lists_of_cells_are_put_in_order_and_looked_up(is_large, some, others):
    state = Purchase((10, 20), ew.Prices(), 9.0, None, np.random.default_rng(0))
    every = [np.array(x, np.int64) for x in (some, others)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small, "SMALL", -1 if is_large else 10_000)
        patch.setattr(purchase_module, "SPARSE", 10**9)
        state.taken = state._in_order(every[0])
        assert state.taken.tolist() == sorted(set(some))
        assert state.with_taken(every[1]).taken.tolist() == sorted({*some, *others})
        firsts = [k for k, x in enumerate(others) if x not in some and x not in others[:k]]
        assert state._first_open(every[1]).tolist() == firsts
        open_ = np.ones(200, bool)
        open_[some + others] = False
        bits = np.packbits(open_.reshape(10, 20), axis=1)
        np.testing.assert_array_equal(state.open_bits(but=every[1]), bits)
        beyond = np.array([-3, 200, 777])  # no cells of this matrix
        state.taken = state._in_order(every[0], beyond)
        assert state.taken.tolist() == sorted({*some, *beyond.tolist()})
        assert state._first_open(every[1]).tolist() == firsts
        if is_large:
            np.testing.assert_array_equal(state.open_bits(but=every[1]), bits)


def test_what_is_out_lowers_variances_as_if_it_were_known():
    A = random_low_rank(12, 9, 2, 4)
    rng = np.random.default_rng(2)
    i, j = np.nonzero(rng.random(A.shape) < 0.5)
    fit = low_rank(ew.Observations.from_triplets(i, j, A[i, j], A.shape), 2)
    gains = Gains.of(fit, i, j)
    Cu, Cv = fit.posterior.rows.cov.copy(), fit.posterior.cols.cov.copy()
    U, V = (np.column_stack([x, np.ones(len(x))]) for x in (fit.left, fit.right))
    out = [(0, 0), (0, 3), (5, 3)]
    gains.take(*np.array(out).T)
    for r, c in out:  # the update by its definition
        d = gains.s2 + V[c] @ Cu[r] @ V[c] + U[r] @ Cv[c] @ U[r]
        d += np.trace(Cu[r][:-1, :-1] @ Cv[c][:-1, :-1])
        x, z = Cu[r] @ V[c], Cv[c] @ U[r]
        Cu[r] -= np.outer(x, x) / d
        Cv[c] -= np.outer(z, z) / d
    a, b = np.triu_indices(3)
    np.testing.assert_allclose(gains.Cu, Cu[:, a, b], atol=1e-12)
    np.testing.assert_allclose(gains.Cv, Cv[:, a, b], atol=1e-12)


def full(packed_, q=3):
    C = np.zeros((q, q))
    C[np.triu_indices(q)] = packed_
    return C + C.T - np.diag(np.diag(C))


@pytest.mark.parametrize("axis", [0, 1])
def test_the_cells_of_a_plate_are_counted_together(axis):
    A = random_low_rank(12, 9, 2, 4)
    seen = np.random.default_rng(2).random(A.shape) < 0.5
    seen[:, 3] = seen[5] = False  # a column and a row of which nothing is known
    i, j = np.nonzero(seen)
    gains = Gains.of(low_rank(ew.Observations.from_triplets(i, j, A[i, j], A.shape), 2), i, j)
    is_open = ~seen if axis else ~seen.T
    joint = JointGains(gains, axis)
    value, cost, score = joint.best(is_open, np.ones(is_open.shape), 4)
    sides = (gains.U, gains.Cu, gains.M), (gains.V, gains.Cv, gains.N)
    (X, Cx, Mx), (Y, Cy, My) = sides if axis else sides[::-1]
    for line in range(is_open.shape[1]):  # the formulas of the module by their definition
        few = np.flatnonzero(is_open[:, line])
        few = few[np.argsort(-score[few, line])][:4]
        C, y = full(Cy[line]), Y[line]
        noise = [gains.s2 + y @ full(Cx[k]) @ y + np.sum((full(Cx[k]) * C)[:2, :2]) for k in few]
        told = sum(np.outer(X[k], X[k]) / d for k, d in zip(few, noise, strict=True))
        after = np.linalg.inv(np.linalg.inv(C) + told)
        S = np.outer(y, y) + C - after
        expect = np.trace(full(My[line]) @ (C - after))
        for k in few:
            K = full(Cx[k])
            spread = np.trace(K @ S) + X[k] @ after @ X[k] + np.sum((K * after)[:2, :2])
            expect += np.trace(K @ full(Mx[k]) @ K @ S) / (gains.s2 + spread)
        assert (value[line], cost[line]) == (pytest.approx(expect, rel=1e-8), len(few))
    new = 3 if axis else 5
    left = full(Cy[new]).copy()
    some = np.flatnonzero(is_open[:, new])[:4]
    rows = [full(Cx[k]) for k in some]
    joint.take(some, new)
    for before, now in [
        (left, full(Cy[new])),
        *((r, full(Cx[k])) for r, k in zip(rows, some, strict=True)),
    ]:
        assert np.linalg.eigvalsh(now).min() > 0  # still a covariance
        assert np.linalg.eigvalsh(before - now).min() > -1e-12  # and nowhere a larger one
    less, _, _ = joint.best(is_open, np.ones(is_open.shape), 4)
    assert less[new] < 0.5 * value[new]  # on the bench: a second plate of it says little


def test_full_plates_go_to_lines_that_nobody_measured_first():
    A = random_low_rank(40, 12, 2, 3)
    plate = {"size": 16, "per": "col", "fill": 1.0}
    run = Run(most_informative(A.shape, budget=160.0, rank=2, plate=plate, rng=0))
    ew.play(run, MatrixOracle(A))
    told = run.facts
    assert [np.sum(told.plate == k) for k in np.unique(told.plate)] == [16] * 10
    assert len(np.unique(told.cols)) == 10


def test_the_number_of_a_cell_is_uniform_and_its_own():
    i, j = np.divmod(np.arange(200 * 100), 100)
    u = uniform_of(7, i, j)
    assert np.array_equal(u[:50], uniform_of(7, i[:50], j[:50]))
    assert not np.any(u == uniform_of(8, i, j))
    assert len(np.unique(u)) == len(u)
    counts = np.histogram(u, bins=20, range=(0, 1))[0]
    assert np.sum((counts - 1000) ** 2 / 1000) < 43.8  # chi-squared, 19 degrees, p = .001
    grid = u.reshape(200, 100)
    for lag in ((0, 1), (1, 0), (1, 1)):
        moved = np.roll(grid, lag, axis=(0, 1))
        assert abs(np.corrcoef(grid.ravel(), moved.ravel())[0, 1]) < 0.03


@settings(max_examples=40)
@given(seed=st.integers(0, 10**9), more=st.integers(0, 20), money=st.floats(1.0, 3.0))
def test_a_reserve_grows_with_a_study_and_loses_no_cell(seed, more, money):
    small, small_chance = reserve_cells(purchase((30, 20), 300.0), 0.1, seed)
    large, chance = reserve_cells(purchase((30 + more, 20), 300.0 * money), 0.1, seed)
    if np.all(chance >= small_chance.max(initial=0.0)) and len(large) < 0.11 * 300.0 * money:
        assert set(small.tolist()) <= set(large.tolist())
    known = History([0], [3], [1.0], known=[True])
    assert 3 not in reserve_cells(purchase((30, 20), 300.0, facts=known), 0.5, seed)[0]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**9), kind=st.sampled_from(["one", "row", "column", "each"]))
def test_a_reserve_is_drawn_as_cell_by_cell(seed, kind):
    """Against the rule itself: chances from the prices of all cells in order, one number a cell."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 12)), int(rng.integers(1, 12))
    shape = {"one": (), "row": (m, 1), "column": (1, n), "each": (m, n)}[kind]
    price = np.round(rng.lognormal(0, 1, shape), 1) + 0.1
    mask = rng.random((m, n)) < 0.9
    mask[0, 0] = True
    state = Purchase((m, n), ew.Prices(price), 0.5 * m * n, mask, rng)
    state.known = np.unique(rng.integers(m * n, size=3))
    cells, chance = reserve_cells(state, 0.3, seed)
    free = mask.copy()
    free.ravel()[state.known] = False
    every = np.broadcast_to(price, (m, n))
    money, c = 0.15 * m * n, 0.0
    for root in np.sort(np.sqrt(every[free])):  # the largest c at which the reserve is paid
        capped = every[free] <= root**2 * (1 - 1e-12)
        c = (money - 0.2 * every[free][capped].sum()) / np.sqrt(every[free][~capped]).sum()
        if c <= 0.2 * root:
            break
        c = 0.2 * root
    p = np.where(free, np.minimum(0.2, c / np.sqrt(every)), 0.0).ravel()
    i, j = np.divmod(np.arange(m * n), n)
    wanted = np.flatnonzero(uniform_of(seed, i, j) < p)
    bill = float(every.ravel()[wanted].sum())
    if abs(bill - 1.2 * money) < 1e-9:
        return  # round-off decides whether the last cell is paid
    if bill < 1.2 * money:
        np.testing.assert_array_equal(cells, wanted)
        np.testing.assert_allclose(chance, p[wanted], rtol=1e-12)
    else:
        assert set(cells.tolist()) < set(wanted.tolist())


def test_a_reserve_costs_what_it_should_whatever_the_prices():
    rng = np.random.default_rng(0)
    price = rng.lognormal(0, 2, (60, 50))
    costs = []
    for seed in range(200):
        state = Purchase((60, 50), ew.Prices(price), 2000.0, None, rng)
        cells, chance = reserve_cells(state, 0.15, seed)
        assert np.all(uniform_of(seed, cells // 50, cells % 50) < chance)
        assert np.all(chance <= 0.2)
        costs.append(price.ravel()[cells].sum())
    assert np.mean(costs) == pytest.approx(300.0, rel=0.1)
    assert max(costs) <= 360.0


def test_a_pending_reserve_cell_that_is_wanted_is_promoted():
    plan = most_informative((6, 5), budget=60.0, reserve=0.3, rank=1, rng=1)
    run = Run(plan)
    first = run.ask()
    assert set(first.arm) == {"reserve"}
    late = run.open[:1]  # one of the reserve stays out all the time
    A = random_low_rank(6, 5, 1, 3)
    while not run.finished:
        run.ask(30)
        if run.finished:
            break
        at = np.setdiff1d(run.open, late)
        if not len(at):
            at = run.open
        run.tell(A[run.batch.rows[at], run.batch.cols[at]], at)
    cell = (int(first.rows[0]), int(first.cols[0]))
    told = run.facts
    here = (told.rows == cell[0]) & (told.cols == cell[1])
    assert here.sum() == 1
    assert told.arm[here][0] != "reserve"  # the rule wanted it before its answer came
    assert len(told) == 30
    assert run.result.cost == 30


def test_known_history_is_fitted_and_a_new_row_asks_only_what_is_new():
    A = random_low_rank(20, 30, 2, 5)
    i, j = np.nonzero(np.ones((19, 30)))
    known = ew.Observations.from_triplets(i, j, A[i, j], A.shape)
    run = Run(most_informative(A.shape, budget=12.0, rank=2, rng=0), known=known)
    found = ew.play(run, MatrixOracle(A))
    told = run.facts
    assert set(told.rows.tolist()) == {19}
    assert len(told) == found.cost == 12
    assert found.report["known"] == 19 * 30
    rest = np.setdiff1d(np.arange(30), told.cols)
    np.testing.assert_allclose(found.entries(19, rest), A[19, rest], atol=0.05)


@pytest.mark.slow
def test_history_makes_top_two_and_rank_one_ask_less():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((10, 60)) + np.arange(10)[:, None]
    i, j = np.nonzero(rng.random(A.shape) < 0.5)
    known = ew.Observations.from_triplets(i, j, A[i, j], A.shape)
    plan = top_two(A.shape, budget=120, confidence=0.95, rng=0)
    found = ew.play(plan, MatrixOracle(A), known=known)
    alone = ew.play(plan, MatrixOracle(A))
    assert found.report["best"] == alone.report["best"] == 9
    assert found.cost < alone.cost
    B = np.outer(np.arange(1.0, 7.0), np.arange(2.0, 7.0))
    known = ew.Observations.from_triplets(np.arange(6), np.zeros(6, int), B[:, 0], B.shape)
    found = ew.play(rank_one(B.shape, extra=0, rng=0), MatrixOracle(B), known=known)
    assert found.cost == 4
    np.testing.assert_allclose(found.to_dense(), B)


def test_numbers_of_samples_go_on_after_those_that_are_known():
    X = np.random.default_rng(0).standard_normal((400, 6)) * np.r_[3.0, 2.0, 1.0, 1.0, 1.0, 1.0]
    i, j = np.nonzero(np.ones((100, 6)))
    known = ew.Observations.from_triplets(i, j, X[i, j], (100, 6))
    run = Run(subspace(6, rank=2, per_sample=3, samples=50, rng=0), known=known)
    found = ew.play(run, MatrixOracle(X))
    told = run.facts
    assert (told.rows.min(), told.rows.max()) == (100, 149)
    assert found.report["samples"] == 150


@pytest.mark.parametrize("maker", [sequential_halving, successive_elimination])
def test_pairs_begin_with_what_is_known(maker):
    L = np.full((6, 6), 0.6)
    L[1, 4] = L[4, 1] = 0.4
    i, j = np.triu_indices(6, 1)
    coins = BernoulliOracle(L, rng=0)
    rows, cols = np.repeat(i, 400), np.repeat(j, 400)
    known = History(rows, cols, coins(Batch(rows, cols)), known=np.ones(len(rows), bool))
    run = Run(maker(6, budget=60, rng=0), history=known)
    found = ew.play(run, BernoulliOracle(L, rng=1))
    assert found.pair == (1, 4)
    assert found.pulls > 400
    assert found.cost <= 60


@pytest.mark.slow
@settings(max_examples=12, phases=[Phase.generate])
@given(
    size=st.integers(4, 12),
    per=st.sampled_from(["row", "col"]),
    lines=st.integers(1, 3),
    replicates=st.integers(1, 2),
    controls=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 9)), max_size=2, unique=True),
    seed=st.integers(0, 99),
    limit=st.sampled_from([None, 6]),
)
def test_plates_never_break_a_constraint(size, per, lines, replicates, controls, seed, limit):
    plate = {
        "size": size,
        "per": per,
        "lines": lines,
        "replicates": replicates,
        "controls": [list(c) for c in controls],
    }
    A = random_low_rank(12, 10, 2, 3)
    try:
        plan = most_informative(A.shape, budget=60.0, rank=2, plate=plate, rng=seed)
    except ParameterError:
        assert (size - len(controls)) // replicates < 1
        return
    run, rng = Run(plan), np.random.default_rng(seed)
    while not run.finished:
        rows = rng.choice(12, 5, replace=False) if limit else None
        run.ask(limit, rows=rows)
        if run.finished:
            break
        at = rng.permutation(run.open)[: rng.integers(1, 9)]
        run.tell(A[run.batch.rows[at], run.batch.cols[at]], at)
    told = run.facts
    assert run.result.cost == len(told) <= 60
    for number in np.unique(told.plate):
        here = told[told.plate == number]
        cells = here[(here.arm != "control") & (here.arm != "replicate")]
        again = here[here.arm == "replicate"]
        assert len(here) <= size
        along = cells.cols if per == "col" else cells.rows
        assert len(np.unique(along)) <= lines
        assert np.sum(here.arm == "control") == len(controls)
        assert len(again) == (replicates - 1) * len(cells)
    once = told[(told.arm != "control") & (told.arm != "replicate")]
    assert len({*zip(once.rows.tolist(), once.cols.tolist(), strict=True)}) == len(once)
    wells = [set(e.batch.well[e.batch.plate == p]) for e in run.log for p in set(e.batch.plate)]
    assert sum(map(len, wells)) == len(told)


@pytest.mark.slow
@settings(max_examples=8, phases=[Phase.generate])
@given(
    seed=st.integers(0, 2**31),
    size=st.integers(4, 12),
    per=st.sampled_from(["row", "col"]),
    asks=st.lists(st.tuples(st.integers(1, 15), st.booleans(), st.booleans()), max_size=6),
)
def test_a_study_hands_out_plates_whole(seed, size, per, asks):
    plate = {"size": size, "per": per, "replicates": 2}
    study = Study.create(
        "sqlite://",
        "plates",
        plan="most-informative",
        params={"shape": [9, 8], "plate": plate},
        seed=seed,
        budget=60.0,
    )
    holders: dict[tuple[str, int], set[str]] = {}
    for k, (limit, filtered, told) in enumerate(asks):
        rows = [0, 1, 2, 3] if filtered else None
        asked = study.ask(limit, f"w{k}", rows=rows)
        plates = {(q.id.split(".")[0], q.plate) for q in asked}
        assert len(asked) <= limit or len(plates) == 1
        assert rows is None or all(q.index[0] in rows for q in asked)
        for q in asked:
            holders.setdefault((q.id.split(".")[0], q.plate), set()).add(f"w{k}")
        if told:
            study.tell([(q.id, float(sum(q.index))) for q in asked], f"w{k}")
    assert all(len(who) == 1 for who in holders.values())
    p = pending_table.c
    query = sa.select(p.batch, p.plate, p.leased_until)
    left = study.store.database.read(lambda c: c.execute(query).all())
    free = {(str(batch), plate) for batch, plate, until in left if until <= 0}
    assert not free & set(holders)  # nothing of a plate is left behind


@pytest.mark.slow
def test_controls_tell_the_effect_of_a_plate_and_are_not_bought():
    rng = np.random.default_rng(1)
    A = random_low_rank(40, 12, 2, 3)
    shift = rng.normal(0, 2.0, 100)
    controls = [[0, 0], [1, 0], [2, 0], [3, 0]]
    plate = {"size": 16, "per": "col", "controls": controls}
    errors = []
    for effects in (without_plate_effects, None):
        plan = most_informative(A.shape, budget=400.0, rank=2, plate=plate, rng=0)
        run = Run(plan)
        while not run.finished:
            batch = run.ask()
            noise = 0.05 * rng.standard_normal(len(batch))
            run.tell(A[batch.rows, batch.cols] + shift[batch.plate] + noise)
        found = run.result
        if effects is None:
            told = run.facts
            told = told[told.arm != "control"]
            seen = ew.Observations.from_triplets(
                told.rows, told.cols, told.values, A.shape, duplicates="mean"
            )
            found = low_rank(seen, 2)
        off = found.to_dense() - A
        errors.append(np.sqrt(np.mean((off - off.mean()) ** 2)))
    assert errors[0] < 0.5 * errors[1]
    assert found.shape == (40, 12)


def test_names_of_wells_and_bad_plates():
    form = PlateFormat.of({"size": 96}, (9, 9))
    assert [form.well(k) for k in (0, 11, 12, 95)] == ["A01", "A12", "B01", "H12"]
    assert PlateFormat.of({"size": 1536}, (9, 9)).well(1535) == "AF48"
    for bad, words in (
        ({}, "a size at least"),
        ({"size": 8, "shape": 3}, "a plate has"),
        ({"size": 0}, "size of a plate must be"),
        ({"size": 8, "per": "cell"}, "row or col"),
        ({"size": 8, "fill": 2}, "fill of a plate"),
        ({"size": 8, "controls": [[9, 0]]}, "must lie inside"),
        ({"size": 2, "controls": [[0, 0], [1, 1]]}, "make it larger"),
    ):
        with pytest.raises(ParameterError, match=words):
            most_informative((9, 9), budget=9.0, plate=bad)
    with pytest.raises(ParameterError, match="without a reserve"):
        most_informative((9, 9), budget=9.0, plate={"size": 8}, reserve=0.1)


def test_questions_say_what_is_expected():
    A = random_low_rank(20, 15, 2, 3)
    run = Run(most_informative(A.shape, budget=200.0, rank=2, rng=0))
    found = ew.play(run, MatrixOracle(A, 0.1, 0))
    batch = run.log[-1].batch
    off = (run.log[-1].answers - batch.expected) / batch.deviation
    assert np.mean(np.abs(off) < 3) > 0.9
    errors = [e.batch.report["expected_error"] for e in run.log if e.batch.report]
    assert errors[-1] < errors[0]
    assert "money left" in found.report["reason"]
