"""Files in: every format, every layout, and one clear line for everything that is wrong with one."""

from __future__ import annotations

import gzip

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

import entrywise as ew
from entrywise import metrics
from entrywise.exceptions import DataError, ParameterError
from entrywise.results import Calibration


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
