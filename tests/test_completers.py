"""Every passive method that completes a matrix obeys every law of completers."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from entrywise import LowRank, complete, gallery
from entrywise.checks import completers
from entrywise.intervals import conformal
from entrywise.methods import METHODS, get
from entrywise.passive import low_rank, nuclear_norm, soft_impute
from entrywise.results import Subspace

NO_COMPLETERS = tuple(  # they find a subspace and complete nothing
    m.name for m in METHODS if m.problem == "seen_samples"
)
COMPLETERS = [
    pytest.param(partial(m.load(), **m.example), m.problem, id=m.name)
    for m in METHODS
    if m.room == "passive" and m.name not in NO_COMPLETERS
] + [
    pytest.param(partial(low_rank, rank=2), "known_entries", id="low-rank given"),
    pytest.param(soft_impute, "known_entries", id="soft-impute chosen"),
    pytest.param(
        partial(nuclear_norm, max_error=1.0), "known_entries", id="nuclear-norm constrained"
    ),
    pytest.param(conformal, "known_entries", id="conformal"),
    pytest.param(complete, "known_entries", id="complete"),
]


@pytest.mark.parametrize("law", completers.LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize(("completer", "problem"), COMPLETERS)
def test_completer(completer, problem, law):
    law(completer, getattr(gallery, problem)(0))


@pytest.mark.parametrize("name", NO_COMPLETERS)
def test_what_obeys_no_law_of_completers_returns_no_matrix(name):
    method = get(name, "passive")
    found = method.load()(getattr(gallery, method.problem)(0), **method.example)
    assert isinstance(found, Subspace)


def test_laws_catch_a_completer_that_breaks_them():
    def unruly(seen):
        noise = np.random.default_rng().standard_normal((seen.shape[0], 1))
        return LowRank(noise, np.ones((seen.shape[1], 1)))

    seen = gallery.known_entries(0)
    for law in (
        completers.is_repeatable,
        completers.keeps_labels,
        completers.fits_better_than_the_mean,
        completers.says_how,
    ):
        with pytest.raises(AssertionError):
            law(unruly, seen)
