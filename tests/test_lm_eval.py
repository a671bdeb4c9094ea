"""The real lm-evaluation-harness, where it is installed: a study chooses its documents and takes its scores."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("lm_eval", reason="lm-eval is not installed")

from databases import small_board
from entrywise.formats import load
from entrywise.integrations import lm_eval

pytestmark = pytest.mark.slow

TASK = """task: quiz
dataset_path: json
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: answer
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
"""


def harness(root, out, *words):
    """Run the harness with its dummy model over a task of our own, without a network."""
    tasks = root / "tasks"
    tasks.mkdir(exist_ok=True)
    (tasks / "quiz.yaml").write_text(TASK.format(data=root / "data.jsonl"))
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(root / "cache")}
    command = [
        sys.executable,
        "-m",
        "lm_eval",
        "--model",
        "dummy",
        "--tasks",
        "quiz",
        "--include_path",
        str(tasks),
    ]
    done = subprocess.run(
        [*command, "--log_samples", "--output_path", str(out), *words],
        capture_output=True, text=True, timeout=500, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_study_chooses_the_documents_and_takes_the_scores(tmp_path, lab):
    docs = [{"question": f"What is {k}?", "choices": ["a", "b"], "answer": k % 2} for k in range(8)]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, docs)))
    harness(tmp_path, tmp_path / "first")
    cols = load(tmp_path / "first").cols
    study = small_board(lab, "board", budget=6, rows=["small", "big"], cols=cols)
    samples = lm_eval.ask(study, "small", limit=3)
    wanted = json.loads(samples)["quiz"]
    assert 1 <= len(wanted) <= 3
    harness(tmp_path, tmp_path / "small", "--samples", samples)
    found = load(tmp_path / "small", model="small")
    assert len(found) == len(wanted)  # the harness ran these, and no other
    kept = lm_eval.tell(study, tmp_path / "small", model="small")
    assert kept == (len(wanted), len(wanted), 0)
    told = {line["col"]: line["value"] for line in study.log() if line["what"] == "told"}
    assert told == {cell.col: cell.value for cell in found.cells}
