"""The noisyCUR figures in a small form: files are written and every claim has a verdict."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from entrywise.reproduce import noisycur
from entrywise.reproduce._noisycur import (
    LOW_HIGH,
    METHODS,
    Contest,
    both_errors,
    contests,
    cur_plus_settings,
    error,
    jester,
    movielens,
    overlay,
    played,
    synthetic,
)
from entrywise.reproduce.figures import Drawing


def small(rank=2):
    return synthetic(30, 24, rank)


@pytest.mark.slow
def test_panels_draw_every_method_and_judge_the_claims(tmp_path):
    said = []
    work = Drawing(tmp_path, say=said.append)
    claims = noisycur._panels("2", work, contests("synthetic", small(), 2), 2, "their size")
    assert {c.figure for c in claims} == {"2"}
    assert len(claims) == 8
    assert all(c.found and c.interval and c.theirs == "their size" for c in claims)
    assert {c.ours for c in claims} == {"30 x 24, 2 runs"}
    with (tmp_path / "figure2.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {r["method"] for r in rows} == {*noisycur.STYLE, "noisy_cur, automatic"} - {
        "Chen, not centred"
    }
    assert (tmp_path / "figure2.png").stat().st_size > 10_000
    assert said


@pytest.mark.slow
def test_figure_one_goes_over_budgets(tmp_path, monkeypatch):
    monkeypatch.setattr(noisycur, "synthetic", small)
    claims = noisycur.figure1(Drawing(tmp_path, say=lambda words: None))
    assert len(claims) == 3
    with (tmp_path / "figure1.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len({r["budget"] for r in rows}) == 3
    assert (tmp_path / "figure1.png").stat().st_size > 10_000


def test_the_papers_settings():
    low, high = contests("synthetic", synthetic(), 4)
    A = low.matrix(0)
    assert A.shape == (80, 60)
    assert np.linalg.matrix_rank(A) == 4
    assert low.budget(A) == pytest.approx(720)
    assert low.prices(80).modes["column"] == 16
    assert low.column_noise**2 == pytest.approx(0.05)
    assert high.entry_noise**2 == pytest.approx(0.04)
    assert set(LOW_HIGH) == {"synthetic", "jester", "movielens"}


def test_overlay_puts_in_what_was_bought_precisely():
    c = contests("synthetic", small(), 2)[0]
    A = c.matrix(0)
    _, run = played(c, noisycur_literal(c, A), A, 0)
    X = overlay(run, np.zeros(A.shape))
    assert 0 < np.count_nonzero(X) <= len(run.log[-1].batch)
    assert error(A, A) == 0


def test_a_row_costs_no_more_than_its_entries():
    tall = Contest("tall", lambda seed: np.ones((720, 10)), 1.0, 0.1, 0.11, 3)
    assert "row" not in tall.prices(720, 10).modes  # bought as ten precise entries
    assert tall.prices(80, 60).modes["row"] == 16
    A = synthetic(200, 20, 3)(0)
    c = Contest("tall", lambda seed: A, 0.5, 0.05, 0.3, 3)
    settings = cur_plus_settings(c, A, (3, 6))
    assert {d for d, _ in settings} == {3, 6}
    assert len({rows for d, rows in settings if d == 3}) == 3
    for setting in settings:
        _, run = played(c, METHODS["CUR+"](c, A, 0, setting), A, 0)
        bill = sum(c.prices(*A.shape).charges(batch).sum() for batch, _ in run.log)
        assert bill <= c.budget(A) * (1 + 1e-12)


def test_rivals_get_the_entries_that_they_measured():
    A = np.random.default_rng(0).standard_normal((40, 30))  # of no rank at all
    c = Contest("full rank", lambda seed: A, 0.5, 0.01, 0.4, 3)
    for method, setting in (("literal_noisy_cur", 8), ("CUR+", (4, 6)), ("NNa", (1.0, 1.0, True))):
        published, put_in = both_errors(c, method, setting, A, 0)
        assert put_in < published


@pytest.mark.slow
@pytest.mark.parametrize("name", ["timing", "coherence"])
def test_what_the_paper_says_in_words_is_drawn(tmp_path, name):
    claims = noisycur.FIGURES[name](Drawing(tmp_path, say=lambda words: None))
    assert len(claims) == 2
    assert all(c.theirs and c.ours and c.found for c in claims)
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def noisycur_literal(c, A):
    from entrywise.active import literal_noisy_cur

    return literal_noisy_cur(A.shape, c.prices(len(A)), columns=4, budget=c.budget(A), rng=0)


def test_data_sets_have_the_papers_shapes(data_folder):
    assert jester().shape == (7200, 100)
    assert np.abs(jester(50)).max() <= 10
    completed = movielens(movies=60)
    assert completed.shape == (60, 943)
    assert np.all(np.isfinite(completed))
