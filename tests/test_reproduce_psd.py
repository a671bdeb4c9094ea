"""The figures of active PSD completion, in their quick form."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from entrywise.gallery import pair_losses
from entrywise.oracles import BernoulliOracle
from entrywise.reproduce import active_psd


@pytest.mark.slow
def test_synthetic_figure(tmp_path):
    said = []
    claims = active_psd.figure_a1(tmp_path, True, said.append)
    assert len(claims) == 5
    assert all(c.holds is not None and c.found for c in claims)
    assert said
    with (tmp_path / "appendix1.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {r["algorithm"] for r in rows} == set(active_psd.COLORS)
    assert all(float(r["error"]) >= -1e-12 for r in rows)
    assert (tmp_path / "appendix1.png").read_bytes().startswith(b"\x89PNG")


def test_passive_completion_finds_an_easy_pair():
    L = pair_losses("synthetic", 20, 1, seed=0)
    i, j = active_psd._lrmc(20, 40_000, BernoulliOracle(L, rng=0), 1, 0)
    assert i < j
    assert L[i, j] - L[~np.eye(20, dtype=bool)].min() < 0.02


def test_films_have_the_groups_the_paper_names(data_folder):
    crowd = active_psd.films("ML-100K", 40, 200, "gender")
    assert crowd.tastes.shape == (2, 40)
    assert crowd.shares.sum() == 1.0
    groups = active_psd._groups("ML-1M", ["1", "2", "3"], "occupation")
    assert set(groups) <= set(active_psd.OCCUPATIONS)
    codes = sorted(code for group in active_psd.OCCUPATIONS.values() for code in group)
    assert codes == list(range(21))
