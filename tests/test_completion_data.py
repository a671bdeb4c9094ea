"""Real data: the loaders, and completion on MovieLens-100K, where the data are at hand."""

from __future__ import annotations

import http.server
import io
import threading
import zipfile
from functools import partial

import numpy as np
import pytest

from entrywise import datasets, metrics
from entrywise.exceptions import DataError
from entrywise.intervals import conformal


@pytest.mark.parametrize(
    ("load", "shape", "known"),
    [
        (datasets.movielens_100k, (943, 1682), 100_000),
        (datasets.movielens_1m, (6040, 3449), 999_714),
        (datasets.jester, (24983, 100), 1_810_455),
        (lambda: datasets.jester(complete_rows=True), (7200, 100), 720_000),
        (lambda: datasets.oboe()[0], (418, 219), 418 * 219),
        (lambda: datasets.kiba()[0], (2111, 229), 118_254),
        (datasets.alpaca_eval, (58, 805), None),
        (lambda: datasets.votes("house"), (435, 16), 435 * 16 - 392),
        (lambda: datasets.votes("senate"), (102, 672), 42_458 + 23_036),
        (datasets.zoo, (101, 15), 101 * 15),
        (lambda: datasets.crowd("bluebird")[0], (108, 39), 4212),
    ],
)
def test_what_the_loaders_give(data_folder, load, shape, known):
    seen = load()
    assert seen.shape == shape
    assert known is None or len(seen) == known
    assert np.all(np.isfinite(seen.values))


def test_arrays_beside_the_matrices(data_folder):
    assert datasets.oboe()[1].shape == (418, 219)
    assert np.linalg.eigvalsh(datasets.kiba()[1]).min() > 0
    assert datasets.beijing_air().shape == (35064, 12)
    assert datasets.mnist2500()[0].shape == (2500, 784)
    assert np.mean(datasets.crowd("rte")[1] >= 0) == 1.0
    with pytest.raises(DataError, match="variable"):
        datasets.beijing_air("snow")


def test_a_changed_file_is_refused(tmp_path, monkeypatch):
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "zoo.npz").write_bytes(b"something else")
    monkeypatch.setenv("ENTRYWISE_DATA", str(tmp_path))
    with pytest.raises(DataError, match="sha256"):
        datasets.zoo()
    with pytest.raises(DataError, match="ENTRYWISE_DATA"):
        datasets.kiba()
    with pytest.raises(DataError, match="download=True"):
        datasets.movielens_100k()


@pytest.mark.slow
def test_the_publishers_archive_is_fetched_and_checked(tmp_path, monkeypatch):
    import hashlib

    pytest.importorskip("requests", reason="pooch fetches with requests")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("ml-100k/u.data", "1\t5\t3\t88\n2\t5\t4\t89\n2\t7\t1\t90\n")
    (tmp_path / "ml-100k.zip").write_bytes(archive.getvalue())
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "log_message", lambda *a: None)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("ENTRYWISE_DATA", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    try:
        url = f"http://127.0.0.1:{server.server_port}/ml-100k.zip"
        good = "md5:" + hashlib.md5(archive.getvalue()).hexdigest()
        monkeypatch.setattr(datasets, "PUBLISHED", {"movielens_100k": (url, "md5:" + "0" * 32)})
        with pytest.raises(DataError, match="cannot be had"):
            datasets.movielens_100k(download=True)
        monkeypatch.setattr(datasets, "PUBLISHED", {"movielens_100k": (url, good)})
        seen = datasets.movielens_100k(download=True)
    finally:
        server.shutdown()
        server.server_close()
    assert seen.row_labels == ("1", "2")
    assert seen.col_labels == ("5", "7")
    np.testing.assert_array_equal(seen.to_dense(), [[3, np.nan], [4, 1]])


@pytest.mark.slow
def test_movielens_error_and_coverage(data_folder):
    kept, held = datasets.movielens_100k().split(0.1, np.random.default_rng(123))
    found = conformal(kept, most=5000)
    assert metrics.rmse(found, held) < 0.91
    assert 0.88 < metrics.coverage(found, held) < 0.92
    assert metrics.coverage_by_count(found, held)[0] > 0.86
