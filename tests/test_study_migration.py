"""Databases and archives of an earlier version open and go on: they are made here by that version itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

import study_plans
from entrywise.active import adaptive_nystrom
from entrywise.checks.plans import same_result
from entrywise.gallery import random_psd
from entrywise.oracles import MatrixOracle
from entrywise.play import play
from entrywise.study import Study
from entrywise.study.database import OURS

pytestmark = pytest.mark.slow
BEFORE = (
    "08939a1"  # the last commit whose tables are of version 0002 and whose archives of format 1
)
HERE = Path(__file__).parent
A = random_psd(9, 3, 5)
B = np.random.default_rng(0).normal(5.0, 1.0, (14, 10))

SCRIPT = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[3])
from entrywise.exceptions import EntrywiseError
from entrywise.study import Study

url, folder = sys.argv[1:3]
A, B = np.load(folder + "/A.npy"), np.load(folder + "/B.npy")
NYSTROM = {"plan": "adaptive-nystrom", "params": {"n": 9}, "seed": 1}

def fill(study, matrix, limit=None, worker=None):
    asked = study.ask(limit, worker)
    study.tell([(q.id, matrix[q.index]) for q in asked], worker)
    return asked

def oracle(matrix):
    return lambda batch: matrix[batch.rows, batch.cols]

names = [f"c{k}" for k in range(9)]
begun = Study.create(url, "begun", plan="adaptive-nystrom", rows=names, seed=1, budget=40.0)
fill(begun, A)
fill(begun, A, 3)
begun.ask(2, "ann")
done = Study.create(url, "done", **NYSTROM)
done.play(oracle(A))
done.fork("forked")
poor = Study.create(url, "poor", budget=12.0, **NYSTROM)
poor.play(oracle(A))
wrong = Study.create(url, "wrong", **NYSTROM)
first = fill(wrong, A)
fill(wrong, A, 4)
wrong.amend(first[3].id, 1.01 * A[first[3].index])
wrong.amend(first[3].id, A[first[3].index])
failed = Study.create(url, "failed", **NYSTROM)
failed.tell([(q.id, None if k == 2 else A[q.index]) for k, q in enumerate(failed.ask())])
cells = Study.create(
    url, "cells", plan="most-informative", params={"shape": [14, 10]}, seed=3, budget=60.0
)
fill(cells, B)
fill(cells, B, 2)
repeated = Study.create(url, "repeated", plan="study_plans:repeated", params={"n": 4}, seed=0)
repeated.tell([(q.id, float(k)) for k, q in enumerate(repeated.ask())])
for study in (begun, done, wrong, cells):
    study.export(f"{folder}/{study.name}.zip")
"""


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """The source of the earlier version, a folder for its files, and how to run it."""
    folder = tmp_path_factory.mktemp("earlier")
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed, so the earlier version cannot be made")
    made = subprocess.run(
        [git, "-C", HERE.parent, "archive", "-o", folder / "old.tar", BEFORE, "src"],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"the history of this copy does not hold {BEFORE}, the earlier version")
    shutil.unpack_archive(folder / "old.tar", folder, filter="data")
    np.save(folder / "A.npy", A)
    np.save(folder / "B.npy", B)
    (folder / "script.py").write_text(SCRIPT)

    def run(url):
        known = {**os.environ, "PYTHONPATH": f"{folder / 'src'}", "NUMBA_CACHE_DIR": str(folder)}
        told = subprocess.run(
            [sys.executable, folder / "script.py", url, folder, HERE],
            capture_output=True, text=True, env=known, check=False,
        )  # fmt: skip
        assert told.returncode == 0, told.stderr
        return folder

    return run


def goes_on(url, suffix=""):
    """See that every study of the earlier version opens and ends as it should."""
    expected = play(adaptive_nystrom(9, rng=1), MatrixOracle(A))

    def open_(name):
        return Study.open(url, name + suffix, plans=study_plans.ALLOWED)

    begun = open_("begun")
    now = begun.status()
    assert (now["state"], now["answered"], now["leased"]) == ("open", 12, 2)
    assert begun.labels.row(3) == "c3"
    held = [line for line in begun.log() if line["what"] == "leased"]
    begun.tell(
        [(line["row"], line["col"], A[int(line["row"][1]), int(line["col"][1])]) for line in held],
        "ann",
    )
    assert same_result(begun.play(MatrixOracle(A)), expected)
    assert begun.result().cost == expected.cost
    begun.check()
    done = open_("done")
    assert done.finished
    assert same_result(done.result(), expected)
    wrong = open_("wrong")
    found = wrong.play(MatrixOracle(A))
    assert same_result(found, expected)
    assert wrong.status()["spent"] == found.cost
    cells = open_("cells")
    assert cells.status()["answered"] > 2
    found = cells.play(MatrixOracle(B))
    assert found.cost <= 60.0
    cells.check()


def test_a_database_of_the_earlier_version_goes_on(earlier, tmp_path):
    url = str(tmp_path / "lab.db")
    earlier(url)
    goes_on(url)
    expected = play(adaptive_nystrom(9, rng=1), MatrixOracle(A))
    forked = Study.open(url, "forked")
    assert forked.finished
    assert same_result(forked.result(), expected)
    assert forked.result().cost == expected.cost
    poor = Study.open(url, "poor")
    assert (poor.state, poor.result().status) == ("exhausted", "exhausted")
    poor.extend(budget=100.0)
    assert same_result(poor.play(MatrixOracle(A)), expected)
    failed = Study.open(url, "failed")
    assert failed.status()["failed"] == ["0.2 (2, 2)"]
    assert same_result(failed.play(MatrixOracle(A)), expected)
    repeated = Study.open(url, "repeated", plans=study_plans.ALLOWED)
    repeated.play(lambda batch: np.full(len(batch), 3.0))
    assert 3.0 in repeated.result().left[:, 0]  # the noisiest row, by round-off, was measured again
    with sa.create_engine(f"sqlite:///{url}").connect() as connection:
        assert connection.exec_driver_sql("PRAGMA application_id").scalar() == OURS


def test_a_database_of_the_earlier_version_goes_on_in_postgresql(earlier, own_server):
    earlier(own_server.url)
    goes_on(own_server.url)


def test_archives_of_the_earlier_version_are_imported(earlier, desk, tmp_path):
    folder = earlier(str(tmp_path / "old.db"))
    for name in ("begun", "done", "wrong", "cells"):
        Study.load(desk.url, folder / f"{name}.zip", f"{name}-{desk.prefix}")
    goes_on(desk.url, f"-{desk.prefix}")
