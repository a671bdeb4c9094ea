"""The noisyCUR figures in a small form: files are written and every claim has a verdict."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from entrywise.reproduce import noisycur
from entrywise.reproduce._noisycur import (
    LOW_HIGH,
    contests,
    error,
    jester,
    movielens,
    overlay,
    played,
    synthetic,
)


def small(rank=2):
    return synthetic(30, 24, rank)


@pytest.mark.slow
def test_panels_draw_every_method_and_judge_the_claims(tmp_path):
    said = []
    claims = noisycur._panels(
        "2", tmp_path, True, said.append, contests("synthetic", small(), 2), range(1)
    )
    assert {c.figure for c in claims} == {"2"}
    assert len(claims) == 8
    assert all(c.holds is not None and c.found for c in claims)
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
    claims = noisycur.figure1(tmp_path, True, lambda words: None)
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


def noisycur_literal(c, A):
    from entrywise.active import literal_noisy_cur

    return literal_noisy_cur(A.shape, c.prices(len(A)), columns=4, budget=c.budget(A), rng=0)


def test_data_sets_have_the_papers_shapes(data_folder):
    assert jester().shape == (7200, 100)
    assert np.abs(jester(50)).max() <= 10
    completed = movielens(movies=60)
    assert completed.shape == (60, 943)
    assert np.all(np.isfinite(completed))
