"""ew.complete and ``entrywise complete``: the choice of method, its reasons, the cells printed, the words said."""

from __future__ import annotations

import csv
import io
import json
import sys

import numpy as np
import polars as pl
import pytest
from scipy.sparse import coo_array

import entrywise as ew
from entrywise.cli.app import main
from entrywise.exceptions import DataError, ParameterError


@pytest.fixture
def call(monkeypatch, capsys):
    """Run the command line; return (exit code, stdout, stderr)."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["entrywise", *map(str, words)])
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def ratings(tmp_path):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 12)) + 3.0
    lines = ["user,film,rating"]
    for i, j in zip(*np.nonzero(rng.random(A.shape) < 0.6), strict=True):
        lines.append(f"u{i:02},f{j:02},{A[i, j] + 0.1 * rng.standard_normal():.6f}")
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join(lines) + "\n")
    return path, A


def test_every_unknown_cell_with_its_interval(call, ratings):
    path, A = ratings
    code, out, err = call("complete", path, "--level", "0.9")
    assert code == 0
    lines = list(csv.DictReader(io.StringIO(out)))
    seen = ew.read(path)
    assert len(lines) == 40 * 12 - len(seen)
    inside = [
        float(x["low"]) <= A[int(x["row"][1:]), int(x["col"][1:])] <= float(x["high"])
        for x in lines
    ]
    assert np.mean(inside) > 0.8
    assert "40 x 12" in err
    assert "low-rank, rank 2" in err
    assert "held-out error" in err


def test_the_table_itself_with_its_gaps_filled(call, tmp_path):
    rng = np.random.default_rng(1)
    A = 10 + rng.standard_normal((8, 1)) + rng.standard_normal((1, 5))
    gaps = rng.random(A.shape) < 0.2
    lines = ["shop,mon,tue,wed,thu,fri"]
    for i, row in enumerate(A):
        cells = ["" if gaps[i, j] else f"{x:.2f}" for j, x in enumerate(row)]
        lines.append(f"s{i}," + ",".join(cells))
    path = tmp_path / "sales.csv"
    path.write_text("\n".join(lines) + "\nnever,,,,,\n")
    code, out, _ = call("complete", path, "--wide", "--quiet")
    assert code == 0
    header, *rows, last = csv.reader(io.StringIO(out))
    assert header == ["shop", "mon", "tue", "wed", "thu", "fri"]
    assert [row[0] for row in rows] == [f"s{i}" for i in range(8)]
    filled = np.array([row[1:] for row in rows], float)
    np.testing.assert_array_equal(filled[~gaps], A[~gaps].round(2))
    assert np.abs(filled - A)[gaps].max() < 1.0
    assert last == ["never", "", "", "", "", ""]
    code, _, err = call("complete", path, "--wide", "--top", "2")
    assert code == 1
    assert "at most one of" in err


@pytest.mark.slow
def test_pairs_top_json_and_saving(call, ratings, tmp_path):
    path, _ = ratings
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("user,film\nu00,f01\nu05,f11\n")
    code, out, err = call(
        "complete",
        path,
        "--pairs",
        pairs,
        "--format",
        "json",
        "--quiet",
        "--save",
        tmp_path / "m.npz",
    )
    assert (code, err) == (0, "")
    assert [(x["row"], x["col"]) for x in json.loads(out)] == [("u00", "f01"), ("u05", "f11")]
    kept = ew.LowRank.load(tmp_path / "m.npz")
    i, j = kept.locate(["u00"], ["f01"])
    assert float(kept.entries(i, j)[0]) == json.loads(out)[0]["value"]
    code, out, _ = call("complete", path, "--top", 2, "-q")
    lines = list(csv.DictReader(io.StringIO(out)))
    first = [float(x["value"]) for x in lines if x["row"] == "u00"]
    assert len(first) <= 2
    assert first == sorted(first, reverse=True)


def test_new_rows_are_folded_in(call, ratings, tmp_path):
    path, _ = ratings
    new = tmp_path / "new.csv"
    new.write_text("user,film,rating\nz9,f01,2\nz9,f03,4\n")
    code, out, _ = call("complete", path, "--new", new, "-q")
    lines = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert {x["row"] for x in lines} == {"z9"}
    assert len(lines) == 10


def test_lines_with_nothing_known_are_left_empty(call, tmp_path):
    rng = np.random.default_rng(1)
    A = np.outer(rng.random(12) + 1, rng.random(8) + 1)
    lines = [",".join(["row", *(f"c{j}" for j in range(8))])]
    for i in range(12):
        lines.append(
            ",".join(
                [
                    f"r{i}",
                    *(
                        "" if i == 3 or j == 5 or (i + j) % 4 == 0 else f"{A[i, j]}"
                        for j in range(8)
                    ),
                ]
            )
        )
    path = tmp_path / "wide.csv"
    path.write_text("\n".join(lines) + "\n")
    code, out, err = call("complete", path, "--method", "low-rank")
    assert code == 0
    assert "nothing is known of 1 rows and 1 columns" in err
    for x in csv.DictReader(io.StringIO(out)):
        empty = x["row"] == "r3" or x["col"] == "c5"
        assert (x["value"] == "") == empty


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--level", "1"], "--level"),
        (["--rank", "99"], "rank of low_rank must be in 0..12"),
        (["--all", "--top", "2"], "at most one"),
        (["--top", "0"], "--top"),
        (["--method", "magic"], "magic"),
        (["--method", "iterative-svd"], "needs rank"),
        (["--method", "optspace", "--value", "nope"], "no column 'nope'"),
        (["--pairs", "{pairs}"], "no column of the table is called 'f99'"),
    ],
)
def test_mistakes_are_one_line(call, ratings, tmp_path, words, said):
    path, _ = ratings
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("u00,f01\nu00,f99\n")
    code, out, err = call("complete", path, *(w.format(pairs=pairs) for w in words))
    assert (code, out) == (1, "")
    assert said in err
    assert err.startswith("Error: ")
    assert len(err.strip().splitlines()) == 1


def test_too_many_cells_are_named_not_poured_out(call, tmp_path, monkeypatch):
    import entrywise.cli.complete as command

    monkeypatch.setattr(command, "MOST", 3)
    path = tmp_path / "a.csv"
    path.write_text("row,col,value\n" + "".join(f"r{i},c{i % 3},{i}\n" for i in range(6)))
    code, out, err = call("complete", path)
    assert (code, out) == (1, "")
    assert "--top" in err
    assert call("complete", path, "--all", "-q")[0] == 0


def test_auto_takes_rank_one_where_it_fits_better():
    rng = np.random.default_rng(2)
    A = np.outer(np.exp(rng.standard_normal(40)), np.exp(rng.standard_normal(30)))
    X = np.where(rng.random(A.shape) < 0.2, A * (1 + 0.01 * rng.standard_normal(A.shape)), np.nan)
    found = ew.complete(X)
    assert found.report["method"] == "rank-one"
    assert "rank one fits better" in found.report["reasons"][0]
    known = np.isfinite(found.to_dense())
    assert np.median(np.abs(found.to_dense() / A - 1)[known]) < 0.02


def test_auto_keeps_low_rank_and_reports():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((60, 4)) @ rng.standard_normal((4, 50))
    X = np.where(rng.random(A.shape) < 0.5, A + 0.1 * rng.standard_normal(A.shape), np.nan)
    found = ew.complete(X)
    r = found.report
    assert (r["method"], r["rank"], r["shape"]) == ("low-rank", 4, (60, 50))
    assert r["components"] == 1
    assert r["held_out_rmse"] < 0.3 < r["bias_rmse"]
    assert "conformal" in r["interval"]
    assert r["hints"] == []
    plain = ew.complete(X, calibrate=False)
    assert plain.calibration is None


@pytest.mark.slow
def test_hints_name_the_better_command():
    rng = np.random.default_rng(4)
    signs = np.where(rng.random((20, 20)) < 0.5, 1.0, -1.0)
    assert any("entrywise online" in h for h in ew.complete(signs, "low-rank").report["hints"])
    B = rng.standard_normal((15, 3))
    assert any("entrywise kernel" in h for h in ew.complete(B @ B.T, "low-rank").report["hints"])
    assert any("same" in h for h in ew.complete(np.full((4, 3), 2.0)).report["hints"])
    assert any("one row" in h for h in ew.complete([[1.0, np.nan, 2.0]]).report["hints"])


def test_what_people_have_is_taken():
    i, j, y = [0, 0, 1, 1, 2], [0, 1, 0, 1, 1], [1.0, 2.0, 2.0, 4.0, 6.0]
    dense = np.full((3, 2), np.nan)
    dense[i, j] = y
    frame = pl.DataFrame(
        {"row": ["a", "a", "b", "b", "c"], "col": ["p", "q", "p", "q", "q"], "value": y}
    )
    for given in (
        dense,
        coo_array((y, (i, j)), shape=(3, 2)),
        frame,
        frame.to_pandas(),
        ew.Observations.from_dense(dense),
    ):
        assert ew.complete(given, "low-rank", rank=0).shape == (3, 2)
    with pytest.raises(DataError, match="observations must be"):
        ew.complete("ratings")
    with pytest.raises(ParameterError, match="takes no parameter 'depth'"):
        ew.complete(dense, "low-rank", depth=3)
    with pytest.raises(DataError, match="at least one known entry"):
        ew.complete(np.full((2, 2), np.nan))


def test_named_methods_bring_conformal_intervals():
    rng = np.random.default_rng(5)
    A = rng.standard_normal((40, 2)) @ rng.standard_normal((2, 30))
    X = np.where(rng.random(A.shape) < 0.6, A + 0.1 * rng.standard_normal(A.shape), np.nan)
    found = ew.complete(X, "iterative-svd", rank=2)
    assert found.report["method"] == "iterative-svd"
    low, high = found.interval(0, np.arange(30))
    assert np.mean((low <= A[0]) & (A[0] <= high)) > 0.6


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_pairs_in_every_dialect(call, ratings, tmp_path, mark):
    path, _ = ratings
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(f"user{mark}film\nu00{mark}f01\n")
    code, out, _ = call("complete", path, "--pairs", pairs, "-q")
    assert code == 0
    assert out.splitlines()[1].startswith("u00,f01,")


def test_what_was_understood_is_said_and_what_is_not_is_refused(call, tmp_path):
    rng = np.random.default_rng(0)
    lines = ["compound,T1,T2,T3"]
    for k in range(20):
        cells = [f"{x:.3f}" if rng.random() < 0.7 else "" for x in rng.standard_normal(3)]
        lines.append(",".join([str(5000 + 7 * k), *cells]))
    path = tmp_path / "wide.csv"
    path.write_text("\n".join(lines) + "\n")
    code, out, err = call("complete", path)
    assert code == 0
    assert "read 20 x 3, " in err
    assert ": compound x columns" in err
    assert out.splitlines()[1].startswith("50")
    path.write_text("\n".join(lines[1:]) + "\n")
    code, out, err = call("complete", path)
    assert (code, out) == (1, "")
    assert "--labels first or --labels none" in err
    code, _, err = call("complete", path, "--labels", "first")
    assert code == 0
    assert "read 20 x 3, " in err


@pytest.mark.slow
def test_features_bounds_and_likelihood(call, tmp_path):
    """Rows that only the features name are completed; intervals stay in the bounds; yes/no answers are probabilities."""
    rng = np.random.default_rng(0)
    kind = np.array(["a", "b"])[rng.integers(2, size=24)]
    cells = [(u, k) for u in range(22) for k in range(15) if rng.random() < 0.7]
    rate = [3 + 1.5 * (kind[u] == "a") * (-1) ** k + 0.4 * rng.standard_normal() for u, k in cells]
    known = [f"u{u},f{k},{np.clip(r, 1, 5):.3f}" for (u, k), r in zip(cells, rate, strict=True)]
    (tmp_path / "r.csv").write_text("\n".join(["user,film,rating", *known]))
    lines = [f"u{u},{kind[u]},{'' if u % 5 else u}" for u in range(24)]
    (tmp_path / "u.csv").write_text("\n".join(["user,kind,age", *lines]))
    base = ["complete", str(tmp_path / "r.csv"), "--row-features", str(tmp_path / "u.csv")]
    _, out, err = call(*base, "--bounds", "1,5", "--level", "0.99")
    found = [line.split(",") for line in out.splitlines()[1:]]
    new = [line for line in found if line[0] in ("u22", "u23")]
    assert len(new) == 30
    assert all(1 <= float(line[3]) <= float(line[4]) <= 5 for line in found)
    for line in new:
        sign = (kind[int(line[0][1:])] == "a") * (-1) ** int(line[1][1:])
        assert abs(float(line[2]) - (3 + 1.5 * sign)) < 0.8
    assert "no interval leaves it" in err
    code, _, err = call(*base, "--bounds", "1")
    assert code == 1
    assert "--bounds must be two numbers, such as 1,5, got '1'" in err
    votes = [f"u{u},f{k},{int(r > 3)}" for (u, k), r in zip(cells, rate, strict=True)]
    (tmp_path / "v.csv").write_text("\n".join(["user,film,vote", *votes]))
    _, out, err = call("complete", tmp_path / "v.csv")
    assert "fitted as probabilities" in err
    assert all(0 <= float(line.split(",")[2]) <= 1 for line in out.splitlines()[1:])
