"""The figures of active PSD completion, in their quick form."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from entrywise.active import literal_stochastic_nystrom
from entrywise.gallery import pair_losses
from entrywise.oracles import BernoulliOracle
from entrywise.play import play
from entrywise.reproduce import active_psd
from entrywise.reproduce.figures import Drawing


@pytest.mark.slow
def test_synthetic_figure(tmp_path):
    said = []
    claims = active_psd.figure_a1(Drawing(tmp_path, say=said.append))
    assert len(claims) == 6
    assert all(c.found and c.theirs and c.ours and c.interval for c in claims)
    paper = [c for c in claims if not c.claim.startswith("(ours)")]
    assert all(c.claim.startswith("S-MCANS (Algorithm 4.1)") for c in paper)
    assert said
    with (tmp_path / "appendix1.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {r["algorithm"] for r in rows} == set(active_psd.COLORS)
    assert all(float(r["error"]) >= -1e-12 for r in rows)
    assert (tmp_path / "appendix1.png").read_bytes().startswith(b"\x89PNG")


def test_passive_completion_finds_an_easy_pair():
    L = pair_losses("synthetic", 20, 1, seed=0)
    for name in ("OptSpace", "soft-impute"):
        i, j = active_psd._choice(name, 20, 40_000, 1, BernoulliOracle(L, rng=0), 0)
        assert i < j
        assert L[i, j] - L[~np.eye(20, dtype=bool)].min() < 0.02


@pytest.mark.filterwarnings("ignore:the theorem")
def test_the_papers_line_is_the_papers_algorithm():
    """Algorithm 4.1 chooses column 0 first and, at any budget here, is still choosing its second one when it ends."""
    L = pair_losses("synthetic", 20, 2, seed=0)
    with pytest.warns(UserWarning, match="the theorem's version needs"):
        plan = literal_stochastic_nystrom(
            20, rank=2, epsilon=active_psd.EPSILON, budget=4000, rng=0
        )
    found = play(plan, BernoulliOracle(L, rng=0), budget=4000)
    assert found.status == "exhausted"
    assert found.pivots.tolist() == [0]
    C = found.factor @ found.factor.T  # the extension of one column: rank one
    assert np.linalg.matrix_rank(C) == 1


def test_films_have_the_groups_the_paper_names(data_folder):
    crowd = active_psd.films("ML-100K", 40, 200, "gender")
    assert crowd.tastes.shape == (2, 40)
    assert crowd.shares.sum() == 1.0
    groups = active_psd._groups("ML-1M", ["1", "2", "3"], "occupation")
    assert set(groups) <= set(active_psd.OCCUPATIONS)
    codes = sorted(code for group in active_psd.OCCUPATIONS.values() for code in group)
    assert codes == list(range(21))
