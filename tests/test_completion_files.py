"""Files in: every format, every layout, and one clear line for everything that is wrong with one."""

from __future__ import annotations

import contextlib
import gzip
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import entrywise as ew
from entrywise import metrics, tables
from entrywise.exceptions import DataError, ParameterError
from entrywise.results import Calibration
from entrywise.tables import parquet


def write(folder, name, text):
    path = folder / name
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def test_labels_are_text_whatever_they_look_like(tmp_path):
    path = write(
        tmp_path, "a.csv", 'who,what,value\n007,"a ""b"", c",1\n7,"a ""b"", c",2.5\n7,é,-3e2\n'
    )
    seen = ew.read(path)
    assert seen.row_labels == ("007", "7")
    assert seen.col_labels == ('a "b", c', "é")
    np.testing.assert_array_equal(seen.values, [1.0, 2.5, -300.0])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "row,col,value\nx,p,1\ny,q,2\n"),
        ("a.csv.gz", "row,col,value\nx,p,1\ny,q,2\n"),
        ("a.tsv", "row\tcol\tvalue\nx\tp\t1\ny\tq\t2\n"),
        ("a.txt", "row;col;value\nx;p;1\ny;q;2\n"),
        ("a.csv", "x,p,1\ny,q,2\n"),
        ("a.csv", "\ufeffrow,col,value\r\nx,p,1\r\ny,q,2\r\n"),
        ("a.csv", "when,value,col,row\n9,1,p,x\n8,2,q,y\n"),
        ("a.csv", "row,p,q\nx,1,\ny,NA,2\n"),
        ("a.csv", ",p,q\nx,1,nan\ny,?,2\n"),
    ],
)
def test_one_matrix_in_many_texts(tmp_path, name, text):
    seen = ew.read(write(tmp_path, name, text))
    assert (seen.row_labels, seen.col_labels) == (("x", "y"), ("p", "q"))
    np.testing.assert_array_equal(seen.to_dense(), [[1, np.nan], [np.nan, 2]])


def test_binary_files(tmp_path):
    X = np.array([[1.0, np.nan, 0.0], [np.nan, 2.0, 5.0]])
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "b.npz", anything=X)
    sp.save_npz(
        tmp_path / "c.npz",
        sp.coo_array(([1.0, 0.0, 2.0, 5.0], ([0, 0, 1, 1], [0, 2, 1, 2])), shape=(2, 3)).tocsr(),
    )
    np.savez(
        tmp_path / "d.npz",
        rows=[0, 0, 1, 1],
        cols=[0, 2, 1, 2],
        values=[1.0, 0.0, 2.0, 5.0],
        shape=(2, 3),
    )
    with gzip.open(tmp_path / "e.npy.gz", "wb") as file:
        np.save(file, X)
    pl.DataFrame(
        {"row": ["0", "0", "1", "1"], "col": ["0", "2", "1", "2"], "value": [1.0, 0.0, 2.0, 5.0]}
    ).write_parquet(tmp_path / "f.parquet")
    for name in ("a.npy", "b.npz", "c.npz", "d.npz", "e.npy.gz"):
        np.testing.assert_array_equal(ew.read(tmp_path / name).to_dense(), X)
    assert ew.read(tmp_path / "f.parquet").col_labels == ("0", "2", "1")


def test_columns_by_name_noise_and_wide_without_labels(tmp_path):
    path = write(tmp_path, "a.csv", "a,b,c,d\nx,p,1,.1\ny,q,2,.2\n")
    seen = ew.read(path, row="b", col="a", value="c", noise="d")
    assert seen.row_labels == ("p", "q")
    np.testing.assert_array_equal(seen.noise, [0.1, 0.2])
    plain = ew.read(write(tmp_path, "b.csv", "1,2\n3,\n"), labels="none", header="no")
    assert plain.row_labels is None
    assert plain.shape == (2, 2)
    path = write(tmp_path, "c.csv", "p,q,r\n1,2,\n3,4,5\n")
    assert ew.read(path, labels="none").col_labels == ("p", "q", "r")
    assert ew.read(path, labels="first").row_labels == ("1", "3")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", "row,col,value\n", "no lines"),
        ("a.csv", "row,col,value\nx,p,much\n", "line 2, column 'value': 'much'"),
        ("a.csv", "row,col,value\nx,p,1\ny,p,nan\n", "line 3"),
        ("a.csv", "row,col,value\nx,p,inf\n", "line 2"),
        ("a.csv", "row,col,value\nx,p,\n", "line 2"),
        ("a.csv", "row,col,value\n,p,1\n", "has no label"),
        ("a.csv", "row,col,value\nx,p,1\nx,p,2\n", r"\('x', 'p'\) is listed 2 times"),
        ("a.csv", "row,p,q\nx,1,2\nx,3,\n", "occurs twice"),
        ("a.csv", "row,p,q\nx,1,oh\ny,3,\n", "line 2, column 'q': 'oh'"),
        ("a.csv", "row,p,q\nx,,\ny,,\n", "no known entry"),
        ("a.csv", b"row,col,value\nx,p\xff,1\n", "UTF-8"),
        ("a.csv.gz", "row,col,value\nx,p,1\n", None),
        ("a.npy", b"not numpy", "numpy file"),
        ("a.npz", b"not numpy", "numpy file"),
        ("a.parquet", b"not parquet", "parquet"),
    ],
)
def test_one_clear_line(tmp_path, name, text, words):
    path = write(tmp_path, name, text)
    if words is None:
        path.write_bytes(b"\x1f\x8bbroken")
        words = "gzip"
    with pytest.raises(DataError, match=words) as caught:
        ew.read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_wrong_options(tmp_path):
    path = write(tmp_path, "a.csv", "row,col,value\nx,p,1\n")
    with pytest.raises(ParameterError, match="layout"):
        ew.read(path, layout="tall")
    with pytest.raises(DataError, match="no column 'z'"):
        ew.read(path, value="z")
    with pytest.raises(DataError, match="no column 'z'"):
        ew.read(path, noise="z")
    with pytest.raises(FileNotFoundError):
        ew.read(tmp_path / "absent.csv")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "row|p|q\nx|1|\ny||2\n"),
        ("a.csv", '"row";"p";"q"\n"x";"1,0";""\n"y";"";"2,0"\n'),
        ("a.tsv", "user\tfilm\trating\nx\tp\t1,0\ny\tq\t2,0\n"),
        ("a.csv", "who,what,number\nx,p,1\ny,q,2\n"),
        ("a.csv", "userId,movieId,rating,timestamp\nx,p,1,9\ny,q,2,8\n"),
        ("a.csv", " row , p , q \n x , 1 , \n y , , 2 \n"),
        ("a.csv", "row,p,q,\nx,1,,\ny,,2,\n,,,\n"),
        ("a.csv", "\n\nrow,p,q\n\nx,1,\ny,,2\n"),
    ],
)
def test_dialects(tmp_path, name, text):
    for coding in ("utf-8", "utf-8-sig", "utf-16"):
        seen = ew.read(write(tmp_path, name, text.encode(coding)))
        assert (seen.row_labels, seen.col_labels) == (("x", "y"), ("p", "q"))
        np.testing.assert_array_equal(seen.to_dense(), [[1, np.nan], [np.nan, 2]])


@pytest.mark.parametrize(
    "text",
    [
        "shop;2022;2023\nx;1.200,5;300,0\ny;2.000;\nz;12.345.678,25;0,5\n",
        'shop,2022,2023\nx,"1,200.5",300.0\ny,"2,000",\nz,"12,345,678.25",0.5\n',
    ],
)
def test_parted_thousands_where_a_cell_with_both_marks_says_so(tmp_path, text):
    seen = ew.read(write(tmp_path, "a.csv", text), header="yes")
    assert (seen.row_labels, seen.col_labels) == (("x", "y", "z"), ("2022", "2023"))
    told = [[1200.5, 300.0], [2000.0, np.nan], [12345678.25, 0.5]]
    np.testing.assert_array_equal(seen.to_dense(), told)


def test_numeric_ids_are_labels_not_values(tmp_path):
    """A wide table headed compound, T1, T2, ... was read with its ids as data."""
    path = write(tmp_path, "a.csv", "compound,T1,T2\n51869,0.5,\n51870,,0.7\n")
    seen = ew.read(path)
    assert seen.row_labels == ("51869", "51870")
    assert seen.shape == (2, 2)
    other = write(tmp_path, "b.csv", "molregno,T1,T2\n51869,0.5,\n51870,,0.7\n")
    assert ew.read(other).row_labels == ("51869", "51870")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("885,887\n0.50,0.25\n1.05,NA\n", ("885", "887")),
        ("885\n0.50\n1.05\n", ("885",)),
        ("thing;885;12\nx;0,5;0,2\ny;1,0;\n", ("885", "12")),
        (",2019,2020\nx,0.5,0.2\ny,1.0,\n", ("2019", "2020")),
    ],
)
def test_whole_numbers_over_decimals_with_their_zeros_written_out_are_names(tmp_path, text, names):
    assert ew.read(write(tmp_path, "a.csv", text)).col_labels == names


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("12,0.5,\n13,,0.7\n", ("--labels first", "--labels none")),
        ("p,q,r\n12,5,\n13,,7\n", ("--labels first", "--labels none")),
        ("0,1,2\n.5,.3,\n", ("--header yes", "--header no")),
        ("2019,2020\n.5,.3\n", ("--header yes", "--header no")),
        ("alpha,1,2\nx,3,4\n", ("--header yes", "--header no")),
        ("name,age,score\nann,31,1.5\nbob,27,2.5\n", ("--layout long", "--layout wide")),
        ("1,1,5\n1,2,3\n2,1,4\n", ("--layout long", "--layout wide")),
        ("1,1,5,881\n1,2,3,882\n2,1,4,883\n", ("--layout long", "--layout wide")),
        ("a,b,c\nNA,3975,4.0\nNA,9272,-5.6\n", ("--layout long", "--layout wide")),
        ("a,b,c,time\nNA,3975,4.0,8\nNA,9272,-5.6,9\n", ("--layout long", "--layout wide")),
        ("NA,53.10,-190.64,5.00\n", ("--labels first", "--labels none")),
        ("p,4838,4840\nNA,53.10,5.00\n", ("--labels first", "--labels none")),
        ("NA,-1\n-107.9,-64.2\n181.0,70.3\n", ("--header yes", "--header no")),
        ("id,-0,NA\nx,0.8,2\ny,1,\n", ("--header yes", "--header no")),
        ("885,887\n0.5,0.25\n1.5,2.25\n", ("--header yes", "--header no")),
        ("885,887\n0.5,0.25\n1.0,2.25\n", ("--header yes", "--header no")),
    ],
)
def test_two_readings_are_refused_with_both_options(tmp_path, text, options):
    path = write(tmp_path, "a.csv", text)
    with pytest.raises(DataError) as caught:
        ew.read(path)
    for option in options:
        assert option in str(caught.value)


def test_frames_are_long_only_where_they_say_so():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 8))
    X[rng.random(X.shape) < 0.3] = np.nan
    wide = pd.DataFrame(X, columns=[f"T{j}" for j in range(8)])
    assert ew.complete(wide, "low-rank", rank=0).shape == (50, 8)
    named = wide.set_index(pd.Index([f"c{i}" for i in range(50)]))
    seen = ew.Observations.from_frame(named)
    assert seen.row_labels == tuple(f"c{i}" for i in range(50))
    np.testing.assert_array_equal(seen.to_dense(), X)
    ids = wide.assign(compound=np.arange(9000, 9050))[["compound", *wide.columns]]
    assert ew.Observations.from_frame(ids).row_labels[0] == "9000"
    long = pd.DataFrame({"who": ["a", "a", "b"], "what": [1, 2, 1], "x": [0.5, 1.5, 2.5]})
    assert ew.Observations.from_frame(long).shape == (2, 2)
    pairs = long.set_index(["who", "what"])
    assert ew.Observations.from_frame(pairs).shape == (2, 2)
    unclear = pd.DataFrame({"p": [1, 2], "q": [3, 5], "r": [4.5, 9.5]})
    with pytest.raises(DataError, match="--labels first"):
        ew.Observations.from_frame(unclear)
    assert ew.Observations.from_frame(unclear, layout="wide", labels="none").shape == (2, 3)
    with pytest.raises(ParameterError, match="layout must be"):
        ew.Observations.from_frame(unclear, layout="tall")


@pytest.mark.parametrize(
    "cell", ["１", "1_000", "True", "inf", "9" * 400, "0x10", "1,5", "1e", "--1"]
)
def test_what_is_no_number_is_refused(tmp_path, cell):
    path = write(tmp_path, "a.csv", f'row,col,value\nx,p,"{cell}"\n')
    with pytest.raises(DataError, match="line 2, column 'value'"):
        ew.read(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("row,col,value\nx,p,1\ny,q,2,3\n", "line 3 has 4 cells"),
        ('row,col,value\nx,"p,1\n', "line 2 cannot be read"),
        ("row;col;value\nx;p;1,5\ny;q;1.5\n", "with a point"),
        ("row;col;value\nx;p;1,234\ny;q;5,678\n", "with a point"),
        ("senator,bill,vote\nann,b1,yea\nbob,b1,nay\nann,b2,yea\n", "values are words"),
        ("row;p;q\nx;1.200,5;1.5\ny;2,5;3.5\n", "with a point"),
        ("row;p;q\nx;1.200,5;\ny;2,5;1.20\n", "with a point"),
        ("row;p;q\nx;1.200,5;1,200.5\ny;2,5;3.5\n", "with a point"),
        ("row,p,p\nx,1,2\ny,3,\n", "column labels must be unique"),
        ("user,user,item,rating\na,b,c,1\n", "two columns called 'user'"),
        ("row,p,\nx,1,2\ny,,3\n", "column 3 has no name"),
        ("a;b\n1\n2\n", "line 1 has 2 cells and every other line one"),
    ],
)
def test_tables_that_cannot_be_right_are_refused(tmp_path, text, words):
    with pytest.raises(DataError, match=words):
        ew.read(write(tmp_path, "a.csv", text))


def test_lines_are_counted_as_an_editor_does(tmp_path):
    path = write(tmp_path, "a.csv", 'row,col,value\n\n"two\nlines",p,1\ny,q,oh\n')
    with pytest.raises(DataError, match="line 5, column 'value': 'oh'"):
        ew.read(path)


def test_workbooks_make_round_trips_and_formulas_stay_text(tmp_path):
    path = tmp_path / "a.xlsx"
    tables.write_table(path, ["id", "p", "q"], [["=1+1", 1.5, None], ["007", None, 2]])
    seen = ew.read(path)
    assert seen.row_labels == ("=1+1", "007")
    np.testing.assert_array_equal(seen.to_dense(), [[1.5, np.nan], [np.nan, 2]])
    with zipfile.ZipFile(path) as book:
        assert b"<f>" not in book.read("xl/worksheets/sheet1.xml")
    plain = tmp_path / "a.csv"
    tables.write_table(plain, ["id", "p"], [["=1+1", 1.5]])
    assert plain.read_text() == "id,p\n=1+1,1.5\n"


def test_labels_points_and_roles(tmp_path):
    path = write(tmp_path, "a.tsv", "compound\tprice\n007\t1.5\na b\t2\n")
    labels, table = tables.read_labels(path)
    assert labels == ["007", "a b"]
    np.testing.assert_array_equal(table.column("price").numbers, [1.5, 2])
    with pytest.raises(DataError, match="line 3: label 'x' stands in line 2"):
        tables.read_labels(write(tmp_path, "b.csv", "id\nx\nx\n"))
    points = write(tmp_path, "c.csv", "id;x;y\n7;0,5;1\n8;1,5;2\n")
    np.testing.assert_array_equal(tables.read_points(points), [[0.5, 1], [1.5, 2]])
    facts = tables.read_long(
        write(tmp_path, "d.csv", "annotator|task|answer\nann|1|cat\n"),
        (("item", tables.ITEM), ("worker", tables.WORKER), ("label", tables.LABEL)),
    )
    assert (facts.cells, facts.lines) == ([["1"], ["ann"], ["cat"]], [2])


def test_arena_files(tmp_path):
    text = "model_a,model_b,winner\na,b,model_a\nb,c,tie\nc,a,model_b\na,c,tie (bothbad)\n"
    seen = tables.read_comparisons(write(tmp_path, "a.csv", text))
    assert seen.winners == ["a", "b", "a", "a"]
    assert seen.losers == ["b", "c", "c", "c"]
    assert seen.tied == [False, True, False, True]
    for bad in (
        "model_a,model_b,winner\na,b,a\n",
        "player,opponent,winner\na,b,a\n",
        "home,away\na,b\nc,d\n",
        "winner,loser\ntie,b\n",
    ):
        with pytest.raises(DataError):
            tables.read_comparisons(write(tmp_path, "b.csv", bad))


def test_bombs_and_lies_stop_before_memory_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("entrywise.tables.files.LIMIT", 10_000)
    bomb = write(tmp_path, "a.csv.gz", b"0" * 1_000_000)
    np.savez_compressed(tmp_path / "b.npz", X=np.zeros((1000, 1000)))
    for path in (bomb, tmp_path / "b.npz"):
        with pytest.raises(DataError, match="more than 10,000 bytes"):
            ew.read(path)
    pl.DataFrame({f"c{j}": np.zeros(1000) for j in range(9)}).write_parquet(tmp_path / "c.parquet")
    with pytest.raises(DataError, match="cells, which is refused"):
        ew.read(tmp_path / "c.parquet")
    np.save(tmp_path / "d.npy", np.zeros((4, 4)))
    honest = (tmp_path / "d.npy").read_bytes()
    lie = honest.replace(b"(4, 4), }" + b" " * 12, b"(40000000, 40000000), }"[:21])
    assert lie != honest
    (tmp_path / "d.npy").write_bytes(lie)
    with pytest.raises(DataError, match="numpy file"):
        ew.read(tmp_path / "d.npy")


def test_a_sparse_matrix_that_points_outside_itself_is_refused(tmp_path):
    matrix = sp.csr_array(np.eye(3))
    matrix.indices[1] = 10**6
    sp.save_npz(tmp_path / "a.npz", matrix)
    with pytest.raises(DataError, match="sparse matrix"):
        ew.read(tmp_path / "a.npz")


@pytest.mark.slow
def test_a_short_fuzz():
    """What ``make bench NAME=fuzz`` does, in small: seeds of its own, nothing read wrongly, no traceback."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
    try:
        import fuzz
    finally:
        sys.path.pop(0)
    counts, harm = fuzz.fuzz(inputs=600, commands=14, seed=11, loud=False)
    assert harm == []
    assert sum(counts["text tables"].values()) == 162
    for kind, least in (("text tables", 80), ("tell files", 8), ("streams", 8), ("archives", 1)):
        assert counts[kind][fuzz.EQUAL] >= least


def test_metrics():
    found = ew.LowRank(
        np.ones((4, 1)),
        np.ones((5, 1)),
        calibration=Calibration(np.linspace(0.1, 1.0, 99)),
        row_counts=np.arange(4),
    )
    truth = ew.Observations.from_triplets([0, 1, 2, 3], [0, 1, 2, 3], [1.0, 1.5, 3.0, 1.0], (4, 5))
    assert metrics.rmse(found, truth) == pytest.approx(np.sqrt((0.25 + 4) / 4))
    assert metrics.mae(found, truth) == pytest.approx(2.5 / 4)
    assert metrics.coverage(found, truth, 0.9) == 0.75
    np.testing.assert_array_equal(metrics.coverage_by_count(found, truth, 0.9), [1, 1, 0, 1])
    assert metrics.mean_width(found, truth, 0.9) == pytest.approx(2 * found.calibration.scores[89])
    assert metrics.relative_error(found, 2 * np.ones((4, 5))) == pytest.approx(0.5)
    assert metrics.rmse(np.ones(3), [1.0, np.nan, 2.0]) == pytest.approx(np.sqrt(0.5))
    with pytest.raises(DataError, match="one shape"):
        metrics.mae(np.ones(3), np.ones(4))
    with pytest.raises(DataError, match="not zero"):
        metrics.relative_error(found, np.zeros((4, 5)))


def test_a_parquet_page_that_claims_more_than_it_can_hold_is_refused(tmp_path):
    """Its reader would end the whole process: it asks for 2^61 bytes."""
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": [float(k) for k in range(10)]}).write_parquet(path)
    whole = path.read_bytes()
    assert ew.read(path).shape == (10, 1)
    head, _ = parquet._struct(whole, 4)  # the first page follows the mark PAR1
    (count,) = (head[k][1] for k in (5, 8) if k in head)
    at = whole.index(bytes([2 * count]), 4)  # as Thrift writes it
    damaged = whole[:at] + bytes([2 * 44 - 1]) + whole[at + 1 :]
    path.write_bytes(damaged)
    with pytest.raises(DataError, match="a page claims -44 values"):
        ew.read(path)


@given(at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_whatever_a_parquet_file_says_is_looked_at_without_a_crash(at, byte):
    made = io.BytesIO()
    pl.DataFrame({"a": [0.5, 1.5], "b": ["x", "y"]}).write_parquet(made)
    parquet.refuse_wrong_pages(made.getvalue())  # a whole one passes
    data = bytearray(made.getvalue())
    data[at % len(data)] = byte
    with contextlib.suppress(ValueError):
        parquet.refuse_wrong_pages(bytes(data))
