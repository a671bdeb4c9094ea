"""The figures of the rank-one paper, in their quick form."""

from __future__ import annotations

import csv

import pytest

from entrywise.reproduce import rank_one
from entrywise.reproduce.figures import Drawing

pytestmark = pytest.mark.slow


def test_theorem_three_is_drawn_and_holds(tmp_path):
    claims = rank_one.FIGURES["bounds"](Drawing(tmp_path, say=lambda words: None))
    assert all(claim.holds for claim in claims)
    with open(tmp_path / "bounds.csv") as file:
        assert len(list(csv.DictReader(file))) == 6
    assert (tmp_path / "bounds.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["1", "2"])
def test_figures_are_drawn_with_every_method(tmp_path, name, monkeypatch):
    monkeypatch.setattr(rank_one, "QUICK", (60, 1, 0.12))
    claims = rank_one.FIGURES[name](Drawing(tmp_path, say=lambda words: None))
    with open(tmp_path / f"figure{name}.csv") as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} == set(rank_one.STYLES)
    assert {row["panel"] for row in rows} == set("abcd" if name == "1" else "abc")
    assert all(float(row["mean relative error"]) > 0 for row in rows)
    assert {claim.figure[0] for claim in claims} == {name}
    assert all("mean of 50" in claim.theirs and "mean of 1" in claim.ours for claim in claims)


@pytest.mark.parametrize("name", ["4", "5", "sdp"])
def test_what_the_paper_says_of_its_appendix_is_drawn(tmp_path, name, monkeypatch):
    if name == "sdp":
        pytest.importorskip("cvxpy")
    monkeypatch.setattr(rank_one, "QUICK", (40, 1, 0.15))
    claims = rank_one.FIGURES[name](Drawing(tmp_path, say=lambda words: None))
    assert all(claim.found and claim.ours and claim.interval for claim in claims)
    picture = rank_one.PICTURES[name][0]
    assert (tmp_path / picture).stat().st_size > 10_000
