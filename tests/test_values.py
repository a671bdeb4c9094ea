"""Values at the border: what they accept, what they refuse and in which words."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import entrywise as ew
from entrywise.budget import Ledger
from entrywise.exceptions import DataError, Exhausted, ParameterError
from entrywise.queries import Batch, Checkpoint, plan
from entrywise.results import Result


def test_import_loads_numpy_alone():
    code = (
        "import sys, entrywise as ew; ew.Observations; ew.play; "
        "heavy = {'scipy', 'sklearn', 'numba', 'polars', 'narwhals', 'sqlalchemy', 'typer', 'rich', 'matplotlib'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


HEAVY_FOR_HELP = {  # what --help may not load
    *("scipy", "sklearn", "numba", "polars", "pandas", "narwhals", "pyarrow"),
    *("matplotlib", "sqlalchemy", "alembic", "psycopg", "pooch", "cvxpy"),
    *("fastapi", "uvicorn", "jinja2", "httpx", "mcp", "inspect_ai", "river"),
}


@pytest.mark.parametrize("words", [["--help"], ["study", "--help"], ["leaderboard", "--help"]])
def test_help_loads_nothing_heavy(words):
    code = (
        "import sys; from entrywise.cli.app import app\n"
        f"try: app({words!r})\n"
        "except SystemExit: pass\n"
        f"sys.stderr.write(repr(sorted({HEAVY_FOR_HELP!r} & set(sys.modules))))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr == "[]"
    assert "Usage" in ran.stdout


def test_help_is_grouped_by_who_chooses_and_those_who_pay_see_studies_first():
    from typer.testing import CliRunner

    from entrywise.cli.app import PANELS, app

    text = CliRunner().invoke(app, ["--help"]).output
    places = [text.index(f" {panel} ") for panel, _ in PANELS]
    assert places == sorted(places)
    pay = text.index(" You choose the entries, and pay ")
    assert text[pay:].split("│")[1].split()[0] == "study"
    within = CliRunner().invoke(app, ["study", "--help"]).output
    daily = [within.index(f"│ {word} ") for word in ("create", "ask", "tell", "status", "result")]
    assert daily == sorted(daily)
    assert max(daily) < within.index(" When something changes ") < within.index(" Keep it safe ")


def test_every_promised_name_is_there():
    for name in ew.__all__:
        assert getattr(ew, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        ew.nonsense  # noqa: B018


def test_one_matrix_five_ways():
    X = np.array([[1.0, np.nan, 0.0], [np.nan, 2.0, np.nan]])
    dense = ew.Observations.from_dense(X)
    S = sp.coo_array((dense.values, (dense.rows, dense.cols)), shape=X.shape)
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    long = {"row": ["a", "a", "b"], "col": ["x", "z", "y"], "value": [1.0, 0.0, 2.0]}
    frames = [
        ew.Observations.from_frame(f(long), row_labels=["a", "b"], col_labels=["x", "y", "z"])
        for f in (pd.DataFrame, pl.DataFrame)
    ]
    triplets = ew.Observations.from_triplets(dense.rows, dense.cols, dense.values, X.shape)
    for seen in (dense, ew.Observations.from_sparse(S), triplets, *frames):
        np.testing.assert_array_equal(seen.to_dense(), X)
        assert (len(seen), seen.shape, seen.share) == (3, (2, 3), 0.5)
        assert seen.row_counts.tolist() == [2, 1]
        assert seen.col_counts.tolist() == [1, 1, 1]
        assert seen.components[0] == 2
        np.testing.assert_array_equal(seen.to_csr().toarray(), np.nan_to_num(X))
    assert frames[0].row_labels == ("a", "b")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: ew.Observations.from_triplets([0], [0], [np.nan], (1, 1)),
            r"value 0, entry \(0, 0\), is nan",
        ),
        (lambda: ew.Observations.from_triplets([0], [0], [np.inf], (1, 1)), "must be finite"),
        (
            lambda: ew.Observations.from_triplets([2], [0], [1.0], (2, 1)),
            r"row 2 of observation 0 must be in 0..1",
        ),
        (
            lambda: ew.Observations.from_triplets([0], [-1], [1.0], (2, 1)),
            r"column -1 of observation 0 must be in 0..0",
        ),
        (lambda: ew.Observations.from_triplets([0.5], [0], [1.0]), "rows must be whole numbers"),
        (lambda: ew.Observations.from_triplets([0, 1], [0], [1.0]), "equally long"),
        (lambda: ew.Observations.from_triplets([], [], []), "no observations and no shape"),
        (
            lambda: ew.Observations.from_triplets([0, 0], [1, 1], [1.0, 2.0]),
            r"entry \(0, 1\) is listed 2 times",
        ),
        (
            lambda: ew.Observations.from_triplets([0], [0], [1.0], noise=-1.0),
            "noise is a standard deviation",
        ),
        (
            lambda: ew.Observations.from_triplets([0], [0], [1.0], noise=[1.0, 2.0]),
            "one number or one for each of the 1",
        ),
        (
            lambda: ew.Observations.from_triplets([0], [0], [1.0], row_labels=["a", "a"]),
            "'a' occurs twice",
        ),
        (
            lambda: ew.Observations.from_triplets([0], [0], [1.0], (2, 1), row_labels=["a"]),
            "one label for each of the 2 rows",
        ),
        (lambda: ew.Observations.from_dense([1.0, 2.0]), "two dimensions"),
        (lambda: ew.Observations.from_sparse(np.eye(2)), "takes a scipy sparse matrix"),
    ],
)
def test_bad_observations_are_refused_in_one_sentence(call, words):
    with pytest.raises(DataError, match=words):
        call()


def test_bad_frames_are_refused_with_the_line():
    pl = pytest.importorskip("polars")
    base = {"row": ["a", "b"], "col": ["x", "y"], "value": ["1", "2,5"]}
    with pytest.raises(
        DataError, match="line 2 of column 'value' is '2,5'; values must be numbers"
    ):
        ew.Observations.from_frame(pl.DataFrame(base))
    with pytest.raises(DataError, match="no column 'rating'"):
        ew.Observations.from_frame(pl.DataFrame(base), value="rating")
    with pytest.raises(DataError, match="line 2 of column 'row' has no label"):
        ew.Observations.from_frame(pl.DataFrame({**base, "row": ["a", None], "value": [1, 2]}))
    with pytest.raises(DataError, match="names 'b', which is not among the 1 labels"):
        ew.Observations.from_frame(pl.DataFrame({**base, "value": [1, 2]}), row_labels=["a"])
    kept = ew.Observations.from_frame(
        pl.DataFrame({"row": ["007", "7"], "col": ['"q"', "ü"], "value": [1, 2]})
    )
    assert kept.row_labels == ("007", "7")
    assert kept.col_labels == ('"q"', "ü")


def test_duplicates_are_resolved_by_name():
    args = ([0, 1, 0], [0, 0, 0], [1.0, 5.0, 3.0])
    for rule, value in (("first", 1.0), ("last", 3.0), ("mean", 2.0)):
        seen = ew.Observations.from_triplets(*args, duplicates=rule, noise=0.5)
        assert seen.to_dense().ravel().tolist() == [value, 5.0]
    assert len(ew.Observations.from_triplets(*args, duplicates="keep")) == 3
    mean = ew.Observations.from_triplets(*args, duplicates="mean", noise=0.5)
    np.testing.assert_allclose(mean.noise_array(), [0.5 / np.sqrt(2), 0.5])
    with pytest.raises(ParameterError, match="duplicates must be"):
        ew.Observations.from_triplets(*args, duplicates="median")


def test_the_users_arrays_are_left_alone():
    values = np.array([1.0, 2.0])
    rows = np.array([0, 1])
    seen = ew.Observations.from_triplets(rows, rows, values)
    values[0] = 9.0
    rows[0] = 1
    assert seen.values[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        seen.values[0] = 3.0


def test_kinds_of_matrices_are_seen():
    A = np.array([[2.0, 1.0], [1.0, 2.0]])
    assert ew.Observations.from_dense(A).is_symmetric
    assert not ew.Observations.from_dense(A + [[0, 1], [0, 0]]).is_symmetric
    assert not ew.Observations.from_dense(np.array([[2.0, np.nan], [np.nan, 2.0]])).is_symmetric
    assert ew.Observations.from_dense(A).is_binary
    assert ew.Observations.from_dense(A).is_positive
    assert not ew.Observations.from_dense(A - 1).is_positive


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 3), st.integers(0, 99), st.booleans())
def test_factored_results_agree_with_dense(m, n, k, seed, offsets):
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((m, k)), rng.standard_normal((n, k))
    b, c = rng.standard_normal(m), rng.standard_normal(n)
    found = ew.LowRank(U, V, b, c, 0.7) if offsets else ew.LowRank(U, V)
    dense = U @ V.T + (b[:, None] + c[None, :] + 0.7 if offsets else 0.0)
    np.testing.assert_allclose(found.to_dense(), dense, atol=1e-12)
    np.testing.assert_allclose(found @ np.ones((n, 2)), dense @ np.ones((n, 2)), atol=1e-12)
    np.testing.assert_allclose(found @ np.ones(n), dense.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(found.row(m - 1), dense[m - 1], atol=1e-12)
    np.testing.assert_allclose(found.column(n - 1), dense[:, n - 1], atol=1e-12)
    i, j, values = found.top(min(3, m * n))
    np.testing.assert_allclose(values, np.sort(dense.ravel())[::-1][: min(3, m * n)], atol=1e-12)
    np.testing.assert_allclose(dense[i, j], values, atol=1e-12)
    lowest = found.top(1, largest=False)[2]
    np.testing.assert_allclose(lowest, dense.min(), atol=1e-12)
    with pytest.raises(ParameterError, match=f"row must be in 0..{m - 1}"):
        found.entry(m, 0)
    with pytest.raises(ParameterError, match="k of top"):
        found.top(m * n + 1)


def test_results_are_saved_whole_and_never_pickled(tmp_path):
    found = ew.PSDFactor(
        np.eye(3)[:, :2],
        np.array([0, 1]),
        np.array([0.0, 0.0, 1.0]),
        certificates=(ew.Certificate("largest error of an entry", 1.0, ("PSD",), (), True),),
        cost=9.0,
        report={"columns": 2},
    )
    path = tmp_path / "found.npz"
    found.save(path)
    back = ew.PSDFactor.load(path)
    np.testing.assert_array_equal(back.factor, found.factor)
    assert back.certificates == found.certificates
    assert (back.cost, back.report) == (9.0, {"columns": 2})
    assert "[vacuous: it says nothing on this problem]" in str(back.certificate)
    assert isinstance(Result.load(path), ew.PSDFactor)
    with pytest.raises(DataError, match="holds a PSDFactor, not a LowRank"):
        ew.LowRank.load(path)
    (tmp_path / "bad.npz").write_bytes(b"nonsense")
    with pytest.raises(DataError, match="must hold a result saved by entrywise"):
        Result.load(tmp_path / "bad.npz")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.npz", "found.npz"]


@pytest.mark.parametrize("price", [{}, [], "x", [[1.0], [1.0, 2.0]], [[]]])
def test_a_price_that_is_no_number_is_refused(price):
    with pytest.raises(ParameterError, match="must be a number or an array"):
        ew.Prices(entry=price)
    with pytest.raises(ParameterError, match="must be a number or an array"):
        ew.Prices.from_json({"self": price})


def test_prices_per_cell_row_column_and_function():
    rows, cols = np.array([0, 1, 1]), np.array([0, 0, 2])
    grid = np.arange(1.0, 7.0).reshape(2, 3)
    assert ew.Prices(grid).of("entry", rows, cols).tolist() == [1, 4, 6]
    assert ew.Prices([[1.0], [5.0]]).of("entry", rows, cols).tolist() == [1, 5, 5]
    assert ew.Prices([[1.0, 2.0, 3.0]]).of("entry", rows, cols).tolist() == [1, 1, 3]
    assert ew.Prices(lambda i, j: 1.0 + i + j).of("entry", rows, cols).tolist() == [1, 2, 4]
    batch = Batch.whole_columns([0, 2], 2)
    prices = ew.Prices(column=[[16.0, 16.0, 20.0]])
    assert prices.charges(batch).tolist() == [16, 0, 20, 0]
    assert prices.charges(batch, np.array([True, True, True, False])).tolist() == [0, 0, 0, 20]
    assert ew.Prices.from_json(prices.to_json()).charges(batch).sum() == 36
    for bad, words in ((0, "got 0"), (-1.0, "got -1"), ([[1.0, np.nan]], "got nan")):
        with pytest.raises(
            ParameterError, match=f"price of entry must be finite and above 0, {words}"
        ):
            ew.Prices(bad)
    with pytest.raises(ParameterError, match="no price was given for column"):
        ew.Prices().of("column", rows, cols)
    with pytest.raises(ParameterError, match="is a function, which cannot be stored"):
        ew.Prices(lambda i, j: 1.0).to_json()
    with pytest.raises(ParameterError, match="lies outside"):
        ew.Prices(grid).of("entry", [5], [0])


@given(st.lists(st.floats(0.01, 10), max_size=30), st.floats(0, 50))
def test_a_ledger_never_goes_over(prices, budget):
    ledger = Ledger(budget)
    for price in prices:
        before = (ledger.spent, ledger.held)
        try:
            ledger.hold(price)
        except Exhausted:
            assert (ledger.spent, ledger.held) == before
            assert price > budget - ledger.spent
        else:
            ledger.charge(price)
    assert ledger.spent <= budget * (1 + 1e-9)
    assert ledger.held == 0


def test_ten_tenths_make_one():
    ledger = Ledger(1.0)
    for _ in range(10):
        ledger.hold(0.1)
        ledger.charge(0.1)
    with pytest.raises(
        Exhausted, match=r"the next batch costs 0\.01 and 0 of 1 is left; raise the budget"
    ):
        ledger.hold(0.01)
    with pytest.raises(ParameterError, match="budget must be finite"):
        Ledger(float("nan"))


def test_batches_and_checkpoints():
    assert Batch.block([1, 2], [3, 4]).cols.tolist() == [3, 4, 3, 4]
    assert Batch.columns([5, 6], 2).rows.tolist() == [0, 1, 0, 1]
    assert Batch.diagonal(3).same_as(Batch.entries([0, 1, 2], [0, 1, 2]))
    assert not Batch.diagonal(3).same_as(Batch.whole_columns([0], 3))
    assert Batch.whole_columns([4, 5], 2)[[1, 2]].unit.tolist() == [0, 1]
    with pytest.raises(ParameterError, match="equally long"):
        Batch([1, 2], [1])
    with pytest.raises(ParameterError, match="one value a position"):
        Batch([1], [1], arm=["a", "b"])
    rng = np.random.default_rng(3)
    kept = Checkpoint({"a": np.arange(3)}, rng)
    first = rng.random(4)
    again = Checkpoint.restore(kept.arrays, kept.rng_state())
    np.testing.assert_array_equal(again.generator().random(4), first)
    np.testing.assert_array_equal(again.generator().random(4), first)
    with pytest.raises(ParameterError, match="without a generator"):
        Checkpoint({}).generator()


def test_a_plan_starts_alike_every_time():
    @plan(symmetric=True)
    def draws(n, *, rng=None):
        yield Batch.entries(int(rng.integers(n)), 0)
        return ew.LowRank(np.zeros((n, 1)), np.zeros((n, 1)))

    rng = np.random.default_rng(1)
    made = draws(10**9, rng=rng)
    rng.random(5)
    assert next(made.start()).rows == next(iter(made)).rows
    assert draws(10**9).params["rng"] is not None
    assert made.name == "draws"
    assert made.shape == (10**9, 10**9)
    with pytest.raises(ParameterError, match="keeps no checkpoints"):
        made.start(resume=Checkpoint({}))


def test_observations_are_shown_in_one_line():
    seen = ew.Observations.from_triplets([0, 1], [1, 2], [1.0, 2.0], (2, 3))
    assert repr(seen) == "Observations(2 x 3, 2 known)"
    named = ew.Observations.from_triplets([0], [1], [1.0], row_labels=["a"], col_labels=["x", "y"])
    assert repr(named) == "Observations(1 x 2, 1 known, labelled)"


def test_entries_of_a_matrix_with_more_cells_than_numbers_stay_apart():
    # with n = 2**33, row 2**31 begins at 2**64: the same number as row 0
    rows, cols = [0, 2**31, 2**31], [5, 5, 5]
    shape = (2**33, 2**33)
    apart = ew.Observations.from_triplets(rows[:2], cols[:2], [1.0, 2.0], shape)
    assert apart.values.tolist() == [1.0, 2.0]
    with pytest.raises(DataError, match=r"entry .2147483648, 5. is listed 2 times"):
        ew.Observations.from_triplets(rows, cols, [1.0, 2.0, 3.0], shape)
    merged = ew.Observations.from_triplets(rows, cols, [1.0, 2.0, 4.0], shape, duplicates="mean")
    assert list(zip(merged.rows, merged.values, strict=True)) == [(0, 1.0), (2**31, 3.0)]
    mirrored = ew.Observations.from_triplets([0, 2**31], [2**31, 0], [1.0, 1.0], shape)
    assert mirrored.is_symmetric
    assert not apart.is_symmetric


@given(st.lists(st.floats(-1e308, 1e308), min_size=2, max_size=6))
def test_means_of_repeated_entries_never_overflow(values):
    zeros = np.zeros(len(values), int)
    seen = ew.Observations.from_triplets(
        zeros, zeros, values, (1, 1), duplicates="mean", noise=np.full(len(values), 1e200)
    )
    parts = [x / len(values) for x in values]
    size = max(map(abs, values))
    assert seen.values[0] / max(size, 1.0) == pytest.approx(
        math.fsum(parts) / max(size, 1.0), abs=1e-12
    )
    assert seen.noise_array()[0] == pytest.approx(1e200 / np.sqrt(len(values)))


def test_ordinary_values_have_no_unit_and_extreme_ones_a_power_of_four():
    def unit(*values, noise=None):
        return ew.Observations(
            np.arange(len(values)), [0] * len(values), values, (9, 1), noise
        ).unit

    for ordinary in ((0.0,), (1.0, -1e100), (1e-100, 0.0), (3e-50, 7.0)):
        assert unit(*ordinary) == 1.0
    for size in (1e-140, 1e-101, 1e101, 1e149):
        mantissa, exponent = np.frexp(unit(size, -size / 7))
        assert (mantissa, (exponent - 1) % 2) == (0.5, 0)
        assert 0.25 <= size / unit(size) <= 4.0
    for bad, noise in ((1e151, None), (1e-151, None), (1.0, 1e200)):
        with pytest.raises(DataError, match="change their unit"):
            unit(bad, noise=noise)


def test_large_results_are_mapped_and_read_where_they_are_looked_at(tmp_path, monkeypatch):
    from entrywise import npz

    rng = np.random.default_rng(0)
    i, j = (x.ravel() for x in np.mgrid[:60, :50])
    A = np.outer(rng.standard_normal(60), rng.standard_normal(50))
    seen = ew.Observations.from_triplets(i[::2], j[::2], A[i[::2], j[::2]], A.shape)
    found = ew.complete(seen, "low-rank")
    found.save(tmp_path / "small.npz")
    monkeypatch.setattr(npz, "LARGE", 1)
    monkeypatch.setattr(npz, "MAPPED", 1)
    found.save(tmp_path / "large.npz")
    small = ew.LowRank.load(tmp_path / "small.npz")
    large = ew.LowRank.load(tmp_path / "large.npz")
    assert isinstance(large.posterior.rows.cov, np.memmap)
    assert not isinstance(small.posterior.rows.cov, np.memmap)
    for name in ("left", "right", "row_counts"):
        np.testing.assert_array_equal(getattr(large, name), getattr(small, name))
    np.testing.assert_array_equal(large.variance(i, j), small.variance(i, j))
    np.testing.assert_array_equal(large.interval(i, j).high, small.interval(i, j).high)
    assert large.report == small.report
    large.save(tmp_path / "large.npz")  # over the file that it is mapped from
    np.testing.assert_array_equal(large.left, small.left)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["large.npz", "small.npz"]


def test_factors_of_whole_numbers_give_entries_few_or_many():
    i, j = np.arange(300)[:, None], np.arange(400)[None, :]
    found = ew.LowRank(np.arange(300)[:, None], np.arange(400)[:, None], offset=0.5)
    np.testing.assert_array_equal(found.entries(i, j), i * j + 0.5)  # fetched in parts
    assert found.entry(2, 3) == 6.5
    assert found.entries([2, 3], 4).tolist() == [8.5, 12.5]
