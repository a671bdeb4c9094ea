"""Inspect with its mock model over one shared study: killed, resumed, nothing run or paid twice, its log and ours agree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="the extra inspect is not installed")

from inspect_ai import Task
from inspect_ai import eval as run_eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
from inspect_ai.solver import solver

from entrywise.exceptions import DataError
from entrywise.formats import load, parted
from entrywise.integrations.inspect import StudyStopping, ask, evaluate, recover
from entrywise.study import Study

pytestmark = pytest.mark.slow

MODELS = ["mockllm/a", "mockllm/b", "mockllm/c"]
SIZE, BUDGET = 10, 18
QUIET = {"display": "none", "log_realtime": False}


def right(model, sample):
    return (len(sample) + ord(model[-1]) + sum(map(ord, sample))) % 3 > 0


@solver
def answering(ran):
    """Answer as `right` says, break on one sample, and note what ran."""

    async def solve(state, generate):
        model, sample = str(state.model), str(state.sample_id)
        with Path(ran).open("a") as file:
            file.write(json.dumps([model, sample, state.epoch]) + "\n")
        if sample == "s3":
            raise RuntimeError("the tool broke")
        state.output.completion = "yes" if right(model, sample) else "no"
        return state

    return solve


def task(ran, epochs=1, **more):
    samples = [Sample(id=f"s{k}", input=f"question {k}", target="yes") for k in range(SIZE)]
    return Task(
        name="quiz",
        dataset=samples,
        solver=answering(str(ran)),
        scorer=match(),
        epochs=epochs,
        **more,
    )


def columns(folder):
    """Return the study's columns as a user gets them: from the log of a first run."""
    run_eval(
        task(folder / "first"), model="mockllm/first", log_dir=str(folder / "first-logs"), fail_on_error=False, **QUIET
    )  # fmt: skip
    return load(folder / "first-logs").cols


def make(folder, **more):
    options = {"params": {"rank": 1, "reserve": 0.0}, "seed": 1, "budget": BUDGET, **more}
    return Study.create(
        str(folder / "lab.db"),
        "board",
        plan="most-informative",
        rows=MODELS,
        cols=columns(folder),
        **options,
    )


def test_the_log_of_inspect_is_read_through_its_dataframe(tmp_path):
    run_eval(
        task(tmp_path / "ran", epochs=2), model="mockllm/a", log_dir=str(tmp_path / "logs"), fail_on_error=False, **QUIET
    )  # fmt: skip
    found = load(tmp_path / "logs")
    assert found.rows == ["mockllm/a"]
    assert len(found) == 2 * SIZE
    assert {cell.repeat for cell in found.cells} == {0, 1}
    for cell in found.cells:
        sample = parted(cell.col)[0].rpartition(":")[2]
        assert cell.value == (None if sample == "s3" else float(right("mockllm/a", sample)))
    (file,) = (tmp_path / "logs").glob("*.eval")
    assert load(file).cells == found.cells
    assert all(cell.usage.seconds is not None for cell in found.cells)


SCRIPT = """
import os, sys
sys.path.insert(0, {tests!r})
import test_inspect as t
from entrywise.study import Study
from entrywise.integrations.inspect import evaluate
left = int(sys.argv[1])
class Mortal(Study):
    def tell(self, *args, **options):
        global left
        found = super().tell(*args, **options)
        left -= 1
        if not left:
            os._exit(9)
        return found
study = Mortal.open({database!r}, "board")
evaluate(study, t.task({ran!r}), t.MODELS, limit=3, log_dir={logs!r}, max_samples=1, **t.QUIET)
"""


def test_three_models_share_a_study_killed_twice_and_resumed(tmp_path):
    study = make(tmp_path)
    ran, logs = tmp_path / "ran", tmp_path / "logs"
    where = {"tests": str(Path(__file__).parent), "database": str(tmp_path / "lab.db")}
    script = SCRIPT.format(**where, ran=str(ran), logs=str(logs))
    for kill in (4, 5, 0):
        done = subprocess.run(
            [sys.executable, "-c", script, str(kill)], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == (9 if kill else 0), done.stderr
    finished = Counter((cell.row, cell.col) for cell in load(logs).cells)
    assert max(finished.values()) == 1, "a sample was run twice"
    started = Counter(tuple(json.loads(line)) for line in ran.read_text().splitlines())
    assert started.total() - len(started) <= 2, (
        "a kill may cost the sample that was under way, and no other"
    )
    now = study.status()
    assert study.finished
    assert now["spent"] == len(finished) <= BUDGET
    told = {
        (line["row"], parted(line["col"])[0].rpartition(":")[2]): line["value"]
        for line in study.log()
        if line["what"] == "told"
    }
    assert told.keys() == {(model, sample) for model, sample, _ in started}
    for (model, sample), value in told.items():
        assert value == (None if sample == "s3" else float(right(model, sample)))


def test_inspects_log_says_what_was_stopped_and_its_scores_are_ours(tmp_path):
    study = make(tmp_path)
    logs = evaluate(
        study, task(tmp_path / "ran"), MODELS, limit=4, log_dir=str(tmp_path / "logs"), **QUIET
    )
    assert study.finished
    stopped = logs[0].results.early_stopping
    assert stopped.manager == "entrywise"
    assert len(stopped.early_stops) == SIZE - 4
    assert all("worth more" in stop.reason for stop in stopped.early_stops)
    assert stopped.metadata["study"] == "board"
    ours = {
        (line["row"], line["col"]): line["value"] for line in study.log() if line["what"] == "told"
    }
    theirs = {(cell.row, cell.col): cell.value for cell in load(tmp_path / "logs").cells}
    assert ours == theirs
    assert {row for row, _ in ours} == set(MODELS)


def test_a_changed_benchmark_is_refused(tmp_path):
    study = make(tmp_path)
    changed = task(tmp_path / "ran")
    changed.dataset[2].input = "another question"
    manager = StudyStopping(study)
    changed.early_stopping = manager
    (log,) = run_eval(changed, model="mockllm/a", log_dir=str(tmp_path / "logs"), **QUIET)
    assert log.status == "error"
    assert "changed" in log.error.message
    assert not (tmp_path / "ran").exists()
    assert study.status()["answered"] == 0


def test_a_study_of_other_columns_is_refused(tmp_path):
    study = Study.create(
        str(tmp_path / "lab.db"), "board", plan="most-informative", rows=MODELS, cols=["x", "y", "z"], budget=3,
        params={"rank": 1, "reserve": 0.0},
    )  # fmt: skip
    other = task(tmp_path / "ran", early_stopping=StudyStopping(study))
    (log,) = run_eval(other, model="mockllm/a", log_dir=str(tmp_path / "logs"), **QUIET)
    assert log.status == "error"
    assert "no column such as" in log.error.message
    assert os.listdir(tmp_path / "logs")


def test_a_list_of_samples_for_the_command_and_the_log_back(tmp_path):
    study = make(tmp_path)
    wanted = ask(study, "mockllm/b", "quiz", limit=3)
    ids = wanted.split(",")
    assert 1 <= len(set(ids)) == len(ids) <= 3
    run_eval(
        task(tmp_path / "ran"), model="mockllm/b", sample_id=ids, log_dir=str(tmp_path / "logs"), fail_on_error=False, **QUIET
    )  # fmt: skip
    assert recover(study, tmp_path / "logs") == (len(ids), len(ids), 0)
    assert recover(study, tmp_path / "logs").new == 0
    with pytest.raises(DataError, match="no column of task"):
        ask(study, "mockllm/b", "other")


def test_an_unknown_letter_is_no_score(tmp_path):
    from entrywise.formats.inspect import scored

    assert [scored(letter, "here") for letter in "CPIN"] == [1.0, 0.5, 0.0, 0.0]
    assert scored(float("nan"), "here") is None
    with pytest.raises(DataError, match="one of C, P, I, N"):
        scored("excellent", "here")
