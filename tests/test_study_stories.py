"""Random stories: whatever is told, mistold, failed, repeated, corrected and reopened, the study ends as it should."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entrywise.active import adaptive_nystrom
from entrywise.checks.plans import same_result
from entrywise.exceptions import NotPSD
from entrywise.gallery import random_psd
from entrywise.oracles import MatrixOracle
from entrywise.play import play
from entrywise.study import Store, Study

N = 6


@pytest.mark.slow
@settings(max_examples=20)
@given(seed=st.integers(0, 2**31), share_wrong=st.sampled_from([0.0, 0.15, 0.5]))
def test_every_story_ends_in_the_result_of_play(seed, share_wrong):
    rng = np.random.default_rng(seed)
    A = random_psd(N, int(rng.integers(0, N + 1)), rng)
    store = Store("sqlite://")
    study = Study.create(store, "story", plan="adaptive-nystrom", params={"n": N}, seed=1)
    wrong: dict[str, float] = {}
    told: list[tuple[str, float]] = []
    for _ in range(400):
        if study.finished and not wrong:
            break
        what = rng.choice(["tell", "again", "reopen", "release", "fail", "amend", "amend"])
        with contextlib.suppress(
            NotPSD
        ):  # wrong answers may contradict each other; they are kept all the same
            if what == "tell":
                for q in rng.permutation(
                    np.array(study.ask(int(rng.integers(1, 5))), dtype=object)
                ):
                    right = float(A[q.index])
                    value = right
                    if rng.random() < share_wrong:
                        value = right + float(rng.standard_normal())
                        wrong[q.id] = right
                    told.append((q.id, value))
                    study.tell([(q.id, value)])
            elif what == "again" and told:
                seen = dict(told)
                again = [key for key in seen if key not in wrong]
                study.tell([(key, seen[key]) for key in again[-2:]])
            elif what == "reopen":
                study = Study.open(store, "story")
            elif what == "release":
                study.release()
            elif what == "fail" and (asked := study.ask(1)):
                study.tell([(asked[0].id, "failed")])
            elif what == "amend" and wrong:
                key = str(rng.choice(sorted(wrong)))
                right = wrong.pop(key)
                told.append((key, right))
                study.amend(key, right)
    found = study.result()
    expected = play(adaptive_nystrom(N, rng=1), MatrixOracle(A))
    assert study.status()["state"] == "finished"
    assert same_result(found, expected)
    standing = [line for line in study.log() if line["what"] == "told"]
    assert found.cost == len(standing) == study.status()["spent"] == study.status()["answered"]
    entries = [tuple(sorted((line["row"], line["col"]))) for line in standing]
    assert len(set(entries)) == len(entries)  # nothing was bought twice
    assert found.cost >= expected.cost
