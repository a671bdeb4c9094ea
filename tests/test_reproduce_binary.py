"""The quick form of the reproduction of the binary mistake bounds."""

from __future__ import annotations

import csv

import pytest

pytest.importorskip("matplotlib")

from entrywise.reproduce.binary import FIGURES
from entrywise.reproduce.figures import Drawing

SLOW = pytest.param("comparison", marks=pytest.mark.slow)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["noise", "graphs", "sizes", "biclusters", SLOW])
def test_quick_figure(name, tmp_path):
    claims = FIGURES[name](Drawing(tmp_path, say=lambda words: None))
    assert all(c.ours for c in claims)
    assert claims
    assert all(
        c.holds is not False
        for c in claims
        if "<=" in c.claim
        or "the adversary forces" in c.claim
        or "below twice its bound" in c.claim
    )
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / f"{name}.csv").open() as file:
        assert len(list(csv.reader(file))) > 2


@pytest.mark.slow
def test_votes(tmp_path, data_folder, monkeypatch):
    monkeypatch.setenv("ENTRYWISE_DATA", str(data_folder))
    claims = FIGURES["votes"](Drawing(tmp_path, say=lambda words: None))
    assert len(claims) == 3
    assert (tmp_path / "votes.png").exists()


def test_votes_without_data(tmp_path, monkeypatch):
    monkeypatch.setenv("ENTRYWISE_DATA", str(tmp_path / "nowhere"))
    said = []
    assert FIGURES["votes"](Drawing(tmp_path, say=said.append)) == []
    assert "ENTRYWISE_DATA" in said[0]
