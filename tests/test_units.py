"""Tables whose columns, or rows, are in units of their own: ages beside incomes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entrywise as ew
from commands import entrywise
from entrywise import LowRank, Observations, complete
from entrywise.active import most_informative
from entrywise.active.cells.calibration import row_means
from entrywise.exceptions import ParameterError
from entrywise.passive import low_rank
from entrywise.results.units import Units, apart
from entrywise.web.story import story

SCALE = np.array([10.0, 2e4, 8.0, 12.0, 35.0, 0.1, 4.0, 0.002, 1.0, 300.0])
CENTER = np.array([45.0, 5e4, 170.0, 120.0, 200.0, 0.5, 30.0, 0.01, 0.0, -1e3])


def people(seed, m=150, known=0.75, noise=0.2):
    """People and their ten measures, of which three things are behind: the whole table, and what is known of it."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, 3)) @ rng.standard_normal((3, 10)) / 1.7
    A = (A + noise * rng.standard_normal(A.shape)) * SCALE + CENTER
    return A, np.where(rng.random(A.shape) < known, A, np.nan)


def errors(found, A, X):
    """The error of the gaps, in standard deviations of each column."""
    gaps = np.isnan(X)
    off = np.where(gaps, found.to_dense() - A, 0.0) / A.std(axis=0)
    return np.sqrt((off**2).sum(axis=0) / gaps.sum(axis=0))


@pytest.mark.parametrize("turned", [False, True])
def test_a_table_of_measures_is_completed_in_their_units(turned):
    A, X = people(0)
    found = complete(X.T if turned else X)
    assert found.report["units"] == ("rows" if turned else "columns")
    assert "units of their own" in found.report["reasons"][0]
    found = found.transposed() if turned else found
    assert np.median(errors(found, A, X)) < 0.6
    assert errors(found, A, X).max() < 1.1
    as_one = complete(X, units="one")
    assert errors(as_one, A, X).max() > 2.0  # what it would be: worse than each column's mean


def test_intervals_cover_in_every_unit():
    inside = []
    for seed in range(1, 9):
        A, X = people(seed)
        found = complete(X)
        i, j = np.nonzero(np.isnan(X))
        low, high = found.interval(i, j, 0.9)
        inside.append((j, (low <= A[i, j]) & (A[i, j] <= high)))
    j, held = (np.concatenate(x) for x in zip(*inside, strict=True))
    assert 0.87 < held.mean() < 0.94
    assert min(held[j == k].mean() for k in range(10)) > 0.7


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_unit_of_a_column_does_not_matter(seed, noisy):
    rng = np.random.default_rng(seed)
    _, X = people(seed, m=40)
    s, c = 10.0 ** rng.uniform(-6, 6, 10), 10.0 ** rng.uniform(-3, 3, 10)
    i, j = np.nonzero(~np.isnan(X))
    found = []
    for scale, center in ((np.ones(10), np.zeros(10)), (s, c * s)):
        noise = 0.1 * SCALE[j] * scale[j] if noisy else None
        values = X[i, j] * scale[j] + center[j]
        seen = Observations(i, j, values, X.shape, noise=noise)
        found.append(complete(seen, units="columns", calibrate=False))
    at = np.mgrid[:40, :10]
    for mine, theirs in zip(*(f.interval(*at, 0.9) for f in found), strict=True):
        off = (mine * s + c * s - theirs) / (SCALE * s)
        assert np.abs(off).max() < 1e-4  # of its spread; centers of 1e3 cost digits
    ratio = found[1].deviation(*at, noise=SCALE[9] * s) / (
        found[0].deviation(*at, noise=SCALE[9] * np.ones(10)) * s
    )
    np.testing.assert_allclose(ratio, 1.0, rtol=1e-4)


def test_new_rows_are_folded_in_and_new_columns_are_not():
    A, X = people(3, m=200)
    found = complete(X[:160], units="columns")
    new = found.fold_in(Observations.from_dense(X[160:]))
    assert np.median(errors(new, A[160:], X[160:])) < 0.6
    with pytest.raises(ParameterError, match="units of their own"):
        found.fold_in(Observations.from_dense(X[:160, :2]), axis="columns")


def test_what_is_saved_turned_scaled_or_multiplied_keeps_its_units(tmp_path):
    _, X = people(4, m=60)
    found = complete(X, units="columns")
    found.save(tmp_path / "kept.npz")
    dense = found.to_dense()
    np.testing.assert_array_equal(LowRank.load(tmp_path / "kept.npz").to_dense(), dense)
    np.testing.assert_allclose(found.transposed().to_dense(), dense.T, rtol=1e-12)
    np.testing.assert_allclose(found.scaled(64.0).to_dense(), 64.0 * dense)
    x = np.random.default_rng(0).standard_normal(10)
    np.testing.assert_allclose(found @ x, dense @ x)
    np.testing.assert_allclose(
        np.sqrt(found.scaled(64.0).variance(3, 1)), 64.0 * np.sqrt(found.variance(3, 1))
    )


def test_one_unit_stays_one_unit_bit_for_bit():
    rng = np.random.default_rng(5)
    A = rng.standard_normal((80, 2)) @ rng.standard_normal((2, 40))
    X = np.where(rng.random(A.shape) < 0.4, A + 0.1 * rng.standard_normal(A.shape), np.nan)
    assert apart(Observations.from_dense(X)) < 5
    found, alone = complete(X), complete(X, units="one")
    assert found.units is None
    np.testing.assert_array_equal(found.to_dense(), alone.to_dense())


def test_lines_of_few_values_or_of_one_have_the_usual_scale():
    X = np.full((10, 5), np.nan)
    X[:, 0], X[:, 1] = np.arange(10.0), 100.0 * np.arange(10.0)
    X[:2, 2], X[:, 3] = (1.0, 2.0), 7.0
    units = Units.of(Observations.from_dense(X))
    usual = np.sqrt(units.scale[0] * units.scale[1])
    np.testing.assert_allclose(units.scale[2:], usual)
    np.testing.assert_allclose(units.center[:4], [4.5, 450.0, 1.5, 7.0])
    assert np.isfinite(complete(X, units="columns").to_dense()).all()


def test_products_and_mere_means_are_left_as_they_are():
    rng = np.random.default_rng(2)
    A = np.outer(np.exp(rng.standard_normal(60)), np.exp(1.5 * rng.standard_normal(40)))
    X = np.where(rng.random(A.shape) < 0.3, A * (1 + 0.01 * rng.standard_normal(A.shape)), np.nan)
    assert apart(Observations.from_dense(X)) > 5
    assert complete(X, units="auto").units is None


def test_a_table_of_two_islands_is_put_in_units_though_rank_one_cannot_link_them():
    _, X = people(8, m=160)
    X[:80, 5:], X[80:, :5] = np.nan, np.nan
    found = complete(X)
    assert found.report["components"] == 2
    assert found.report["units"] == "columns"


def test_what_has_no_units_of_its_own_is_refused():
    _, X = people(6, m=40)
    start = low_rank(Observations.from_dense(X))
    for given_ in ({"bounds": (-1e6, 1e6)}, {"method": "soft-impute"}, {"start": start}):
        with pytest.raises(ParameterError, match="without bounds"):
            complete(X, units="columns", **given_)
    with pytest.raises(ParameterError, match="units must be one of"):
        complete(X, units="inches")
    assert complete(X, "low-rank", units="one").units is None
    assert complete(X, start=start).units is None
    assert low_rank(Observations.from_dense(X)).units is None


def test_the_command_says_what_it_did(tmp_path):
    A, X = people(7, m=60)
    path = tmp_path / "people.csv"
    names = [f"m{k}" for k in range(10)]
    lines = [",".join(["id", *names])]
    for i, row in enumerate(X):
        cells = ["" if np.isnan(x) else f"{x:.8g}" for x in row]
        lines.append(",".join([f"p{i}", *cells]))
    path.write_text("\n".join(lines) + "\n")
    code, out, err = entrywise("complete", path)
    assert code == 0
    assert "columns are in units of their own" in err
    assert "in standard deviations of columns" in err
    got = [line.split(",") for line in out.splitlines()[1:]]
    off = [(float(v) - A[int(r[1:]), int(c[1:])]) / SCALE[int(c[1:])] for r, c, v, *_ in got]
    assert np.sqrt(np.mean(np.square(off))) < 0.8
    assert "units" not in entrywise("complete", path, "--units", "one").stderr


def bought(A, **how):
    run = ew.Run(most_informative(A.shape, budget=0.3 * A.size, rng=5, **how))
    asked = []
    while (batch := run.ask()) is not None:
        asked.append(batch)
        run.tell(A[batch.rows, batch.cols])
    return run.result, [(b.rows.tolist(), b.cols.tolist()) for b in asked], asked


def measures(seed=0):
    """Return sixty people with twelve measures, in units over sixteen powers of two; and in one."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 12))
    A += 0.1 * rng.standard_normal(A.shape)
    return A * 2.0 ** rng.integers(-4, 12, size=12), A


def test_what_columns_are_measured_in_does_not_change_what_is_bought():
    A, plain = measures()
    found, cells, asked = bought(A, units="columns", reserve=0.1)
    as_one, alike, _ = bought(plain, units="columns", reserve=0.1)
    assert cells == alike
    scale = A[0] / plain[0]
    np.testing.assert_allclose(found.to_dense(), as_one.to_dense() * scale, rtol=1e-9)
    every = np.arange(60)[:, None], np.arange(12)
    low, high = found.interval(*every, 0.9)
    np.testing.assert_allclose(low, as_one.interval(*every, 0.9).low * scale, rtol=1e-9)
    assert 0.75 < np.mean((low <= A) & (high >= A)) <= 1.0
    last = asked[-1]  # foretold in the units of the answers
    off = np.abs(last.expected - A[last.rows, last.cols]) / last.deviation
    assert np.quantile(off, 0.9) < 4.0
    assert found.report["units"] == "columns"


def test_columns_in_units_of_their_own_are_bought_better_in_them():
    A, _ = measures(1)
    off = {}
    for units in ("columns", "one"):
        found, _, _ = bought(A, units=units)
        off[units] = np.sqrt(np.mean(((found.to_dense() - A) / A.std(axis=0)) ** 2))
    assert off["columns"] < 0.5 * off["one"]
    assert "units='columns' weighs them alike" in found.report["units"]  # of one unit
    turned, _, _ = bought(np.ascontiguousarray(A.T), units="rows")
    errors = (turned.to_dense().T - A) / A.std(axis=0)
    assert np.sqrt(np.mean(errors**2)) < 0.5 * off["one"]


def test_a_purchase_in_units_refuses_what_has_no_common_unit():
    for wrong in (
        {"goal": "scores"},
        {"goal": "best"},
        {"score_error": 0.1},
        {"rule": "committee"},
        {"plate": {"size": 4, "per": "col", "lines": 1}},
        {"likelihood": "binary"},
        {"bounds": (0.0, 1.0)},
    ):
        with pytest.raises(ParameterError, match="units='columns'"):
            ew.Run(most_informative((6, 4), budget=9, units="columns", **wrong)).ask()
    with pytest.raises(ParameterError, match="one, columns, rows, got 'metres'"):
        ew.Run(most_informative((6, 4), budget=9, units="metres")).ask()
    A, _ = measures(2)
    found, _, _ = bought(A, units="columns")
    with pytest.raises(ParameterError, match="columns have their own"):
        row_means(found, np.zeros(0, int), np.zeros(0, int), np.zeros(0))


def test_a_study_keeps_the_units_of_its_columns(tmp_path):
    A, _ = measures(3)
    url = f"sqlite:///{tmp_path / 'lab.db'}"
    params = {"shape": A.shape, "units": "columns"}
    study = ew.Study.create(
        url, "lab", plan="most-informative", params=params, seed=1, budget=200.0
    )
    while todo := study.ask(1000):
        study.tell([(q.row, q.col, float(A[q.row, q.col])) for q in todo])
    again = ew.Study.open(url, "lab").result()
    assert again.units.axis == "columns"
    told = story(study)
    assert told.board is None
    assert "no common mean" in told.missing
    np.testing.assert_array_equal(again.to_dense(), study.result().to_dense())
