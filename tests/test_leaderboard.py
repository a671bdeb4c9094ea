"""The purchase demo on a reduced grid, and the leaderboard command."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from commands import entrywise
from entrywise.cli._demo_purchase import Trainer, classifiers, purchase_demo
from entrywise.cli._shared import Format
from entrywise.study import Study


@pytest.mark.slow
def test_the_demo_pays_for_exactly_what_it_trains(tmp_path, capsys, monkeypatch):
    from entrywise.cli import _demo_purchase

    monkeypatch.setattr(_demo_purchase, "AGAIN", 2)
    models = dict(list(classifiers().items())[:10])
    database = tmp_path / "demo.db"
    bill = purchase_demo(0.3, 3, database, tmp_path / "demo.png", Format.csv, models)
    capsys.readouterr()
    study = Study.open(str(database), "demo-1")
    log = [line for line in study.log() if line["what"] == "told"]
    assert len(log) == bill.cells
    cells = {study.labels.index(line["row"], line["col"]) for line in log}
    assert len(cells) == len(log)  # nothing trained twice for the study
    assert sum(line["price"] for line in log) == pytest.approx(bill.quoted)
    assert bill.quoted <= study.status()["budget"] * (1 + 1e-9)
    tasks = [(a, b) for a in range(10) for b in range(a + 1, 10)]
    trainer = Trainer(models, tasks, 3)
    for line in log[:: max(1, len(log) // 15)]:  # the answers are what training gives
        assert trainer.cell(*study.labels.index(line["row"], line["col"])) == pytest.approx(
            line["value"], abs=1e-12
        )
    assert 0 < bill.error < 0.2
    assert bill.really > 0
    assert len(bill.ratios) == 2
    assert "of the naive one" in bill.verdict
    assert (tmp_path / "demo.png").stat().st_size > 10_000


def test_there_are_forty_configurations_of_at_least_eight_algorithms():
    models = classifiers()
    assert len(models) >= 40
    assert len({type(m) for m in models.values()}) >= 8


@pytest.mark.slow
def test_an_interrupted_demo_goes_on(tmp_path, capsys, monkeypatch):
    from entrywise.cli import _demo_purchase

    monkeypatch.setattr(_demo_purchase, "AGAIN", 2)
    models = dict(list(classifiers().items())[:6])
    database, real, calls = tmp_path / "demo.db", Trainer.cell, []

    def pulled(self, i, j):
        calls.append((i, j))
        if len(calls) == 4 * 45 + 6 * 3 + 20:  # the past, the quotes, a part of the purchase
            raise KeyboardInterrupt
        return real(self, i, j)

    monkeypatch.setattr(Trainer, "cell", pulled)
    with pytest.raises(KeyboardInterrupt):
        purchase_demo(0.5, 1, database, tmp_path / "demo.png", Format.csv, models)
    kept = Study.open(str(database), "demo-1").status()["answered"]
    monkeypatch.setattr(Trainer, "cell", real)
    bill = purchase_demo(0.5, 1, database, tmp_path / "demo.png", Format.csv, models)
    assert bill.cells >= kept
    assert "going on with the interrupted study" in capsys.readouterr().err


@pytest.mark.slow
def test_a_leaderboard_from_the_shell(tmp_path):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((8, 20)) + np.arange(8)[:, None]
    (tmp_path / "models.csv").write_text("model\n" + "".join(f"m{i}\n" for i in range(8)))
    (tmp_path / "tasks.csv").write_text("task\n" + "".join(f"t{j}\n" for j in range(20)))
    made = entrywise(
        "leaderboard",
        "create",
        "s.db",
        "--rows",
        "models.csv",
        "--cols",
        "tasks.csv",
        "--budget",
        80,
        "--seed",
        1,
        cwd=tmp_path,
    )
    assert made.returncode == 0, made.stderr
    early = entrywise("leaderboard", "report", "s.db", cwd=tmp_path)
    assert early.returncode == 1
    assert "nothing was bought yet" in early.stderr
    study = Study.open(str(tmp_path / "s.db"), "leaderboard")
    while not study.finished:
        study.tell([(q, A[q.index]) for q in study.ask(50)])
    done = entrywise(
        "leaderboard", "report", "s.db", "--format", "csv", "--plot", "p.png", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert [r["model"] for r in rows[:2]] == ["m7", "m6"]
    assert all(float(r["low"]) <= float(r["score"]) <= float(r["high"]) for r in rows)
    assert "m7 is surely better than" in done.stderr
    assert "of naive scores for the same money" in done.stderr
    assert set(rows[0]) == {"model", "score", "low", "high", "tier", "best_place", "worst_place", "cells", "spent"}  # fmt: skip
    (tmp_path / "new.csv").write_text("model\nm8\n")
    added = entrywise(
        "leaderboard", "add", "s.db", "--rows", "new.csv", "--budget", 10, cwd=tmp_path
    )
    assert added.returncode == 0, added.stderr
    study = Study.open(str(tmp_path / "s.db"), "leaderboard")
    extended = np.vstack([A, A[7:] + 1.0])
    while not study.finished:
        study.tell([(q, extended[q.index]) for q in study.ask(50)])
    again = entrywise("leaderboard", "report", "s.db", "--format", "json", cwd=tmp_path)
    assert json.loads(again.stdout)[0]["model"] == "m8"
    assert (tmp_path / "p.png").exists()
    (tmp_path / "prices.csv").write_text("row,col,price\nm0,t0,2\n")
    bad = entrywise(
        "leaderboard",
        "create",
        "t.db",
        "--rows",
        "models.csv",
        "--cols",
        "tasks.csv",
        "--budget",
        9,
        "--price",
        "prices.csv",
        cwd=tmp_path,
    )
    assert bad.returncode == 1
    assert "prices.csv has no price of ('m0', 't1'); 159 entries are missing" in bad.stderr


@pytest.mark.slow
def test_the_best_row_from_the_shell(tmp_path):
    A = np.random.default_rng(2).standard_normal((5, 12)) + 2.0 * np.arange(5)[:, None]
    for name, count in (("rows", 5), ("cols", 12)):
        (tmp_path / f"{name}.csv").write_text(
            "name\n" + "".join(f"{name}{k}\n" for k in range(count))
        )
    made = entrywise(
        "leaderboard",
        "create",
        "b.db",
        "--rows",
        "rows.csv",
        "--cols",
        "cols.csv",
        "--budget",
        30,
        "--goal",
        "best",
        "--rank",
        1,
        cwd=tmp_path,
    )
    assert made.returncode == 0, made.stderr
    study = Study.open(str(tmp_path / "b.db"), "leaderboard")
    while not study.finished:
        study.tell([(q, A[q.index]) for q in study.ask()])
    done = entrywise("leaderboard", "report", "b.db", "--format", "json", cwd=tmp_path)
    assert "best: rows4" in done.stderr
    assert json.loads(done.stdout)[0]["model"] == "rows4"


@pytest.mark.slow
def test_any_table_is_reported_and_rehearsed(tmp_path):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((12, 30)) + np.arange(12)[:, None]
    A[3, 2:] = np.nan
    A[5, ::2] = np.nan
    lines = [",".join(["model", *(f"t{j}" for j in range(30))])]
    for i, row in enumerate(A):
        lines.append(",".join([f"m{i}", *("" if np.isnan(x) else f"{x:.4f}" for x in row)]))
    (tmp_path / "results.csv").write_text("\n".join(lines) + "\n")
    done = entrywise("leaderboard", "report", "results.csv", "--format", "csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert next(iter(csv.DictReader(done.stdout.splitlines())))["model"] == "m11"
    assert "rests on fewer than 5 cells: m3" in done.stderr
    told = entrywise(
        "leaderboard", "rehearse", "results.csv", "--budgets", "20%,40%", "--repeats", 2, "--format", "csv", cwd=tmp_path,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert [x["share"] for x in csv.DictReader(told.stdout.splitlines())] == ["0.2", "0.4"] * 2
    bad = entrywise("leaderboard", "rehearse", "results.csv", "--budgets", "much", cwd=tmp_path)
    assert bad.returncode == 1
    assert "budgets must be shares such as 5%,10%" in bad.stderr


@pytest.mark.slow
def test_figures_are_redrawn_quickly(tmp_path, data_folder):
    from entrywise.reproduce.figures import Drawing
    from entrywise.reproduce.leaderboard import FIGURES

    claims = FIGURES["coverage"](Drawing(tmp_path, say=lambda words: None))
    assert len(claims) == 3
    assert {p.name for p in tmp_path.iterdir()} == {"coverage.png", "coverage.csv"}
    assert set(FIGURES) == {"spend", "best", "coverage"}


@pytest.mark.slow
def test_ucb_e_names_the_best_row_in_both_forms():
    import entrywise as ew
    from entrywise.active import ucb_e
    from entrywise.oracles import MatrixOracle

    A = np.random.default_rng(3).standard_normal((8, 40)) + 2.0 * np.arange(8)[:, None]
    for extra in ({}, {"low_rank": True, "warm_up": 0.2}):
        found = ew.play(ucb_e(A.shape, budget=120, rng=1, **extra), MatrixOracle(A))
        assert found.report["best"] == 7
        assert found.cost <= 120
    with pytest.raises(ValueError, match="batch and rank must be 1 or more"):
        ucb_e((3, 3), budget=3, batch=0)
