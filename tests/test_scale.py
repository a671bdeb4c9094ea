"""Entries in blocks: written out of core, fitted by any engine to the same bits, taken up again after a death."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import entrywise as ew
from entrywise.exceptions import DataError, ParameterError
from entrywise.linalg import binary
from entrywise.linalg.blocks import BlockBayes, is_blocks
from entrywise.passive import low_rank
from entrywise.passive.low_rank import low_rank_of_blocks
from entrywise.scale import Blocks, write_blocks, writing
from entrywise.scale.engines import Threads, engine_of


def triplets(m=300, n=200, known=9_000, rank=2, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((m, rank)), rng.standard_normal((n, rank))
    key = rng.choice(m * n, known, replace=False)
    i, j = key // n, key % n
    y = (U[i] * V[j]).sum(axis=1) + rng.standard_normal(m)[i] + noise * rng.standard_normal(known)
    return i, j, y


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("blocks")
    i, j, y = triplets()
    frame = pl.DataFrame({"user": [f"u{x}" for x in i], "item": [f"i{x}" for x in j], "score": y})
    frame[:5_000].write_parquet(where / "a.parquet")
    frame[5_000:].write_parquet(where / "b.parquet")
    write_blocks(where / "*.parquet", where / "blocks")
    return where / "blocks"


def assert_same(one, two):
    """Bit for bit: factors, covariances, noise, calibration and report."""
    for name in ("left", "right", "row_offset", "col_offset", "row_counts", "col_counts"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    for side in ("rows", "cols"):
        a, b = getattr(one.posterior, side), getattr(two.posterior, side)
        for name in ("prior_mean", "prior_cov", "cov", "cold_mean"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert one.posterior.noise_variance == two.posterior.noise_variance
    if one.calibration is not None:
        np.testing.assert_array_equal(one.calibration.scores, two.calibration.scores)
    assert one.report == two.report


# writing


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_blocks_hold_what_the_files_hold(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(writing, "SORTED_AT_ONCE", 700)  # several buckets
    monkeypatch.setattr(writing, "READ_AT_ONCE", 500)
    i, j, y = triplets(60, 45, 2000, seed=1)
    rows, cols = [f"row {x}" for x in i], [f"{x:03d}" for x in j]
    frame = pl.DataFrame({"y": y, "a": rows, "b": cols})
    path = tmp_path / f"entries.{kind}"
    frame.write_csv(path) if kind == "csv" else frame.write_parquet(path)
    blocks = write_blocks(path, tmp_path / "blocks", row="a", col="b", value="y")
    seen = blocks.observations()
    expected = {(r, c): v for r, c, v in zip(rows, cols, y, strict=True)}
    assert len(seen) == len(blocks) == 2000
    assert list(blocks.row_labels) == list(dict.fromkeys(rows))  # in order of appearance
    for r, c, v in zip(seen.rows, seen.cols, seen.values, strict=True):
        assert expected[seen.row_labels[r], seen.col_labels[c]] == pytest.approx(
            v, rel=1e-12, abs=1e-12
        )
    # both orders hold the same entries, sorted
    table = {}
    for side in ("rows", "cols"):
        pointer, other = blocks.array(side, "pointer"), np.asarray(blocks.array(side, "other"))
        line = np.repeat(np.arange(len(pointer) - 1), np.diff(pointer))
        key = line * 10_000 + other
        assert np.all(np.diff(key) > 0)
        pair = (line, other) if side == "rows" else (other, line)
        table[side] = sorted(zip(*pair, blocks.array(side, "values").tolist(), strict=True))
    assert table["rows"] == table["cols"]
    dense = np.full(seen.shape, np.nan)
    dense[seen.rows, seen.cols] = seen.values
    assert blocks.offset == pytest.approx(np.nanmean(dense))
    assert blocks.scale == pytest.approx(np.nanstd(dense))
    count, _, _ = seen.components
    assert blocks.report["components"] == count
    assert not list((tmp_path / "blocks").glob(".writing*"))


def test_numbers_may_be_rows_and_columns(tmp_path):
    i, j, y = triplets(50, 40, 900)
    pl.DataFrame({"i": i, "j": j, "y": y}).write_parquet(tmp_path / "e.parquet")
    blocks = write_blocks(tmp_path / "e.parquet", tmp_path / "blocks", labels=False)
    assert blocks.row_labels is None
    assert blocks.shape == (i.max() + 1, j.max() + 1)
    seen = blocks.observations()
    order = np.lexsort((j, i))
    np.testing.assert_array_equal(seen.rows, i[order])
    np.testing.assert_allclose(seen.values, y[order], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("rule", "value"), [("first", 1.0), ("last", 5.0), ("mean", 3.0), ("refuse", None)]
)
def test_duplicates_follow_a_named_rule(tmp_path, rule, value):
    frame = pl.DataFrame({"r": ["a", "b", "a"], "c": ["x", "x", "x"], "v": [1.0, 2.0, 5.0]})
    frame.write_csv(tmp_path / "e.csv")
    if rule == "refuse":
        with pytest.raises(DataError, match=r"entry \(0, 0\) is listed more than once"):
            write_blocks(tmp_path / "e.csv", tmp_path / "blocks")
        assert not list((tmp_path / "blocks").iterdir())
        return
    blocks = write_blocks(tmp_path / "e.csv", tmp_path / "blocks", duplicates=rule)
    assert len(blocks) == 2
    assert blocks.observations().values[0] == pytest.approx(value)


def test_what_cannot_be_written_is_refused_and_what_was_there_stays(tmp_path):
    good = tmp_path / "good.csv"
    pl.DataFrame({"r": ["a", "b"], "c": ["x", "y"], "v": [1.0, 2.0]}).write_csv(good)
    write_blocks(good, tmp_path / "blocks")
    cases = {
        "inf.csv": ("r,c,v\na,x,inf\n", "values must be finite"),
        "two.csv": ("r,c\na,x\n", "an entry is row, column and value"),
        "none.csv": ("r,c,v\n", "at least one known entry"),
        "gap.csv": ("r,c,v\na,x,1\n,y,2\n", "must name its row"),
    }
    for name, (text, words) in cases.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(DataError, match=words):
            write_blocks(tmp_path / name, tmp_path / "blocks")
    assert len(Blocks(tmp_path / "blocks")) == 2
    with pytest.raises(DataError, match="no file is called"):
        write_blocks(tmp_path / "nothing-*.csv", tmp_path / "other")
    with pytest.raises(ParameterError, match="no column is called 'z'"):
        write_blocks(good, tmp_path / "other", row="z")
    with pytest.raises(DataError, match="holds no blocks"):
        Blocks(tmp_path / "nowhere")


# fitting


@pytest.mark.slow
def test_the_result_is_the_same_in_any_number_of_blocks(folder):
    whole = ew.complete(Blocks(folder, blocks=1))
    assert whole.rank == 2
    for count in (2, 7):
        assert_same(whole, ew.complete(Blocks(folder, blocks=count)))
    with ThreadPoolExecutor(3) as pool:
        assert_same(whole, ew.complete(Blocks(folder), engine=pool))


@pytest.mark.slow
def test_processes_come_to_the_same_result(folder):
    from multiprocessing import get_context

    whole = ew.complete(Blocks(folder), rank=2, calibrate=False)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert_same(whole, ew.complete(Blocks(folder), engine=pool, rank=2, calibrate=False))


@pytest.mark.slow
def test_blocks_agree_with_the_fit_in_memory(folder):
    blocks = Blocks(folder)
    assert is_blocks(blocks)
    seen = blocks.observations()
    assert not is_blocks(seen)
    memory, ours = low_rank(seen, 2), low_rank_of_blocks(blocks, 2)
    i, j = np.random.default_rng(0).integers((300, 200), size=(500, 2)).T
    np.testing.assert_allclose(ours.entries(i, j), memory.entries(i, j), atol=1e-10)
    np.testing.assert_allclose(ours.variance(i, j), memory.variance(i, j), rtol=1e-8)
    assert ours.report["evidence"] == pytest.approx(memory.report["evidence"], rel=1e-10)
    memory, ours = ew.complete(seen), ew.complete(blocks)
    assert ours.rank == memory.rank == 2
    np.testing.assert_allclose(ours.entries(i, j), memory.entries(i, j), atol=0.02)
    assert ours.report["held_out_rmse"] == pytest.approx(memory.report["held_out_rmse"], rel=0.05)
    width = [np.mean(f.interval(i, j).high - f.interval(i, j).low) for f in (ours, memory)]
    assert width[0] == pytest.approx(width[1], rel=0.1)


@pytest.mark.slow
def test_levels_are_told_on_blocks(tmp_path):
    i, j, y = triplets(80, 60, 3000)
    stars = np.clip(np.round(y + 3), 1, 5)
    pl.DataFrame({"i": i, "j": j, "y": stars}).write_parquet(tmp_path / "e.parquet")
    blocks = write_blocks(tmp_path / "e.parquet", tmp_path / "blocks", labels=False)
    found = ew.complete(blocks)
    assert found.bounds == (1.0, 5.0)
    np.testing.assert_allclose(found.probability(3, 4).sum(), 1.0)


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    """Yes/no answers -1 and 2 of rank 1 in blocks, as they were, and the probabilities of yes."""
    where = tmp_path_factory.mktemp("votes")
    rng = np.random.default_rng(5)
    eta = 2.0 * np.outer(rng.standard_normal(100), rng.standard_normal(80))
    eta += rng.standard_normal((100, 1)) + 0.5 * rng.standard_normal(80)
    P = 1.0 / (1.0 + np.exp(-eta))
    Y = np.where(rng.random(P.shape) < P, 2.0, -1.0)
    i, j = np.nonzero(rng.random(P.shape) < 0.4)
    frame = pl.DataFrame({"i": i, "j": j, "y": Y[i, j]})
    frame.sample(fraction=1.0, shuffle=True, seed=1).write_parquet(where / "e.parquet")
    write_blocks(where / "e.parquet", where / "blocks", labels=False)
    return where / "blocks", Y, P


@pytest.mark.slow
def test_yes_and_no_on_blocks_agree_with_memory(votes, monkeypatch):
    folder, Y, _ = votes
    blocks = Blocks(folder)
    seen = blocks.observations()
    assert set(np.unique(seen.values)) == {-1.0, 2.0}  # to the last bit
    np.testing.assert_array_equal(seen.values, Y[seen.rows, seen.cols])
    monkeypatch.setattr(binary, "EXACT_MOST", 0)  # average covariances, as on blocks
    memory = low_rank(seen, 1, likelihood="binary")
    ours = low_rank_of_blocks(blocks, 1, likelihood="binary")
    assert ours.report["covariances"] == memory.report["covariances"] == "their average"
    assert ours.report["sweeps"] == memory.report["sweeps"]
    every = np.indices(seen.shape)
    np.testing.assert_allclose(ours.latent(*every), memory.latent(*every), atol=1e-8)
    np.testing.assert_allclose(ours.variance(*every), memory.variance(*every), rtol=1e-6)
    assert ours.bounds == (-1.0, 2.0)


@pytest.mark.slow
def test_yes_and_no_are_the_same_in_any_number_of_blocks(votes):
    folder, _, P = votes
    whole = ew.complete(Blocks(folder, blocks=1))
    assert whole.is_binary
    assert whole.rank == 1
    assert "two-valued answers: fitted as probabilities" in whole.report["reasons"]
    assert whole.report["covariances"] == "their average"
    every = np.indices(P.shape)
    memory = ew.complete(Blocks(folder).observations())  # each line's own covariance
    error = [np.sqrt(np.mean((found.probability(*every) - P) ** 2)) for found in (whole, memory)]
    assert error[0] < 1.03 * error[1] < 0.5 * P.std()
    assert_same(whole, ew.complete(Blocks(folder, blocks=7)))
    with ThreadPoolExecutor(3) as pool:
        again = ew.complete(Blocks(folder), engine=pool)
    assert_same(whole, again)
    np.testing.assert_array_equal(whole.answers.scores, again.answers.scores)
    numbers = ew.complete(Blocks(folder), likelihood="gaussian")
    assert not numbers.is_binary
    truth = np.mean((whole.entries(*every) - (3.0 * P - 1.0)) ** 2)
    assert truth < np.mean((numbers.entries(*every) - (3.0 * P - 1.0)) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("death", [2, 9])
def test_a_fit_of_votes_goes_on_after_its_driver_died(votes, death):
    """Pseudo-answers are mixed with earlier ones: those of the last sweep are there again, dealt into other blocks."""
    folder, _, _ = votes
    whole = ew.complete(Blocks(folder), calibrate=False)
    seen = []

    def die(sweep, noise):
        seen.append(sweep)
        if len(seen) == death:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ew.complete(Blocks(folder, blocks=2), calibrate=False, progress=die)
    again = Blocks(folder, blocks=5)
    assert_same(whole, ew.complete(again, calibrate=False, progress=lambda sweep, noise: None))
    assert not (folder / "work").exists()


def test_votes_of_one_value_are_refused_on_blocks(tmp_path):
    frame = pl.DataFrame({"i": [0, 1, 2], "j": [0, 1, 0], "y": [1.0, 1.0, 1.0]})
    frame.write_parquet(tmp_path / "e.parquet")
    blocks = write_blocks(tmp_path / "e.parquet", tmp_path / "blocks", labels=False)
    with pytest.raises(DataError, match="these blocks have 1 different ones"):
        low_rank_of_blocks(blocks, likelihood="binary")


@pytest.mark.slow
@pytest.mark.parametrize("death", [1, 9])
def test_a_fit_goes_on_after_its_driver_died(folder, death, monkeypatch):
    whole = ew.complete(Blocks(folder))
    seen = []

    def die(sweep, noise):
        seen.append(sweep)
        if len(seen) == death:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ew.complete(Blocks(folder), progress=die)
    made = []
    original = Threads.map

    def counted(self, task, jobs):
        made.append(task.__name__)
        return original(self, task, jobs)

    monkeypatch.setattr(Threads, "map", counted)
    assert_same(whole, ew.complete(Blocks(folder), progress=lambda sweep, noise: None))
    again = made.count("solve_block")
    made.clear()
    assert_same(whole, ew.complete(Blocks(folder)))
    assert again == made.count("solve_block") - 2 * death  # no half sweep was made twice
    assert not (folder / "work").exists()


@pytest.mark.slow
def test_a_growth_that_was_given_up_is_given_up_again_after_a_death(tmp_path, monkeypatch):
    """Sweeps of a fit whose growth or pruning is undone are tried as the last one before a death."""
    i, j, y = triplets(60, 40, 1200, rank=1, noise=1.5, seed=3)
    pl.DataFrame({"i": i, "j": j, "y": y}).write_parquet(tmp_path / "e.parquet")
    write_blocks(tmp_path / "e.parquet", tmp_path / "blocks", labels=False)
    original = BlockBayes.spectrum

    def without_chance(self, k, rng):
        left, right, singular, chance = original(self, min(k, 2), rng)
        return left, right, singular, 0.0 * chance

    monkeypatch.setattr(BlockBayes, "spectrum", without_chance)
    undone = []
    restore = BlockBayes.restore
    monkeypatch.setattr(
        BlockBayes, "restore", lambda self, state: (undone.append(1), restore(self, state))
    )
    blocks = Blocks(tmp_path / "blocks")

    def fit(death=None):
        sweeps = []

        def tick(sweep, noise):
            sweeps.append(sweep)
            if len(sweeps) == death:
                raise KeyboardInterrupt

        try:
            return low_rank_of_blocks(blocks, progress=tick), len(sweeps)
        except KeyboardInterrupt:
            return None, len(sweeps)

    whole, sweeps = fit()
    assert undone
    blocks.clear()
    for death in range(2, sweeps + 1, 4):
        assert fit(death)[0] is None
        assert_same(whole, fit()[0])
        blocks.clear()


def test_what_blocks_cannot_do_is_refused(folder):
    blocks = Blocks(folder)
    cases = [
        ({"exact": True}, "exact=True sends every line's covariance"),
        ({"method": "soft-impute"}, "blocks are completed by low-rank"),
        ({"units": "columns"}, "fitted in one unit"),
        ({"likelihood": "binary"}, "these blocks have many different ones"),
        ({"likelihood": "counts"}, "not fitted as counts"),
        ({"likelihood": "ordinal"}, "few different values"),
        ({"row_features": np.ones((300, 1))}, "take no features"),
        ({"engine": "tcp://nowhere"}, "engine must be None"),
        ({"row_weights": np.ones(300)}, "takes no parameter 'row_weights'"),
        ({"rank": 500}, "rank of low_rank must be in 0..200"),
        ({"bounds": (0.0, 1.0)}, "values must lie in the bounds"),
    ]
    for how, words in cases:
        with pytest.raises((ParameterError, DataError), match=words):
            ew.complete(blocks, **how)
    with pytest.raises(ParameterError, match="engine works on blocks"):
        ew.complete(np.eye(3), engine=ThreadPoolExecutor(1))
    with pytest.raises(ParameterError, match="at least 1"):
        Blocks(folder, blocks=0)
    assert isinstance(engine_of(None), Threads)


@pytest.mark.slow
def test_a_folder_is_completed_from_the_shell(folder, tmp_path):
    from entrywise.cli.app import app

    (tmp_path / "ask.csv").write_text("u3,i4\nu17,i150\n")
    runner = CliRunner()
    said = runner.invoke(app, ["complete", str(folder), "--pairs", str(tmp_path / "ask.csv")])
    assert said.exit_code == 0, said.output
    found = ew.complete(Blocks(folder))
    lines = said.stdout.strip().splitlines()
    assert lines[0] == "row,col,value,low,high"
    i, j = found.row_labels.index("u3"), found.col_labels.index("i4")
    assert float(lines[1].split(",")[2]) == pytest.approx(found.entry(i, j))
    said = runner.invoke(app, ["complete", str(folder)])
    assert said.exit_code == 1


# Dask


@pytest.fixture
def client():
    distributed = pytest.importorskip("distributed")
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": None,
    }
    with (
        distributed.LocalCluster(**options, host="127.0.0.1") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def kill_one(client):
    pid = next(iter(client.run(os.getpid).values()))
    os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_dask_comes_to_the_same_result_when_a_worker_dies(folder, client):
    how = {"rank": 2, "calibrate": False, "max_sweeps": 6}
    whole = ew.complete(Blocks(folder), **how)
    victims = []

    def tick(sweep, noise):
        if sweep == 3 and not victims:  # while the next half sweep is worked on
            victims.append(threading.Timer(0.01, kill_one, [client]))
            victims[0].start()

    blocks = Blocks(folder, blocks=7)
    assert_same(whole, ew.complete(blocks, engine=client, progress=tick, **how))
    assert victims


@pytest.mark.slow
def test_an_oracle_on_dask_answers_all_when_a_worker_dies(client):
    from entrywise.oracles import ExecutorOracle
    from entrywise.queries import Batch

    oracle = ExecutorOracle(
        slowly, client.get_executor(pure=False), timeout=60, retries=10, width=4
    )
    threading.Timer(0.3, kill_one, [client]).start()
    answers = oracle(Batch.block(np.arange(8), np.arange(8)))
    np.testing.assert_array_equal(answers, [8 * i + j for i in range(8) for j in range(8)])


def slowly(i, j):
    time.sleep(0.02)
    if (i + j) % 5 == 0 and np.random.default_rng().random() < 0.3:
        raise OSError("the instrument is busy")
    return float(8 * i + j)


def test_the_manifest_is_plain(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format"] == 1
    assert manifest["chunks"]["rows"][0] == 0
    assert len(manifest["chunks"]["rows"]) == 17


def test_few_different_values_are_counted_over_pieces_and_many_are_not(monkeypatch):
    monkeypatch.setattr(writing, "LOOKED_AT_ONCE", 7)
    stars = np.tile(np.arange(1.0, 6.0), 20)
    sums = writing._Sums()
    for part in np.array_split(stars, 3):
        sums.add(part)
    assert sums.distinct == dict.fromkeys((1.0, 2.0, 3.0, 4.0, 5.0), 20)
    sums.add(np.random.default_rng(0).standard_normal(1000))
    assert sums.distinct is None
    sums.add(stars)
    assert sums.distinct is None
    assert sums.count == 1200
