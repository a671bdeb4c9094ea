"""The quick form of benchmarks/trust.py: what is said of our own error, counted on a few problems."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
from _trust import Claims
from _trust_completion import truths
from _trust_nystrom import nystrom
from _trust_rank_one import tables
from _trust_stopping import pairs
from _trust_votes import made_crowds


@pytest.mark.slow
@pytest.mark.parametrize("section", [nystrom, tables, truths, pairs])
def test_what_is_promised_holds_on_a_few_problems(section):
    claims = Claims(quick=True)
    section(claims)
    assert claims.rows
    assert not claims.failed


@pytest.mark.slow
def test_confidence_in_made_crowds_holds_but_where_the_manual_says_that_it_does_not():
    claims = Claims(quick=True)
    made_crowds(claims)
    assert len(claims.rows) >= 20
    beyond = ("20 % of items fool most workers", "without gold: independent")
    assert [words for words in claims.failed if not any(x in words for x in beyond)] == []


def test_a_figure_fails_when_it_is_more_than_two_standard_errors_outside():
    claims = Claims()
    claims.share("s", "covers", [0.8, 0.82] * 50, 0.88, 0.92)
    claims.share("s", "few problems", [0.0, 1.0], 0.88, 0.92)
    claims.figure("s", "none may break", 1, 100, high=0)
    claims.figure("s", "told", 7.0, 3)
    assert [row[-1] for row in claims.rows] == ["MISSED", "met", "MISSED", "told"]
    assert len(claims.failed) == 2
