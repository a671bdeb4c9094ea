"""Beside harnesses and label tools that need not be installed: what they read and write is files."""

from __future__ import annotations

import json

import pytest

from databases import small_board
from entrywise.exceptions import DataError
from entrywise.formats import Annotations, load
from entrywise.integrations import label_studio, lm_eval
from entrywise.study import Study
from test_formats import lm_eval_folder
from test_study_cli import Shell

METRIC = "exact_match,strict-match"
MODELS = ["org/big", "org/small"]
DOCS = range(8)


@pytest.fixture
def sh(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Shell(capsys)


@pytest.fixture
def study(tmp_path):
    """A study of two models over the documents of a first run."""
    lm_eval_folder(tmp_path / "first", "seen", DOCS, [1.0] * 8)
    cols = load(tmp_path / "first", metric=METRIC).cols
    return small_board(str(tmp_path / "lab.db"), "board", budget=10, rows=MODELS, cols=cols)


def score(model, doc):
    return float((doc + len(model)) % 3 == 0)


def run_harness(root, model, samples, date):
    """Do what the harness does with --samples: score the documents named, and no other."""
    docs = json.loads(samples).get("gsm8k_cot", [])
    values = [None if (model, doc) == ("org/big", docs[0]) else score(model, doc) for doc in docs]
    lm_eval_folder(root, model.replace("/", "__"), docs, values, date)
    return dict(zip(docs, values, strict=True))


def test_lm_eval_round_after_round_within_the_budget(study, tmp_path):
    told, seen = 0, {}
    for turn in range(20):
        for model in MODELS:
            samples = lm_eval.ask(study, model, limit=2, worker=model)
            if samples == "{}":
                continue
            out = tmp_path / f"run{turn}"
            values = run_harness(out, model, samples, f"2026-01-{turn + 1:02}T00-00-00.1")
            assert not {(model, doc) for doc in values} & seen.keys()  # nothing is run twice
            seen |= {(model, doc): value for doc, value in values.items()}
            own = out / model.replace("/", "__")
            kept = lm_eval.tell(study, own, metric=METRIC, worker=model)
            assert kept == (len(values), len(values), 0)
            assert lm_eval.tell(study, out, metric=METRIC).new == 0  # harmless
            told += kept.new
        if study.finished:
            break
    assert study.finished
    now = study.status()
    assert told == now["spent"] <= 10
    log = [line for line in study.log() if line["what"] == "told"]
    assert sum(line["failed"] for line in log) == sum(value is None for value in seen.values()) > 0
    for line in log:
        doc = int(str(line["col"]).partition("#")[0].rpartition(":")[2])
        assert line["value"] == seen[line["row"], doc]


def test_lm_eval_refuses_a_changed_benchmark_and_a_strange_model(study, tmp_path):
    asked = lm_eval.ask(study, "org/big", limit=2)
    run_harness(tmp_path / "run", "org/big", asked, "2026-01-01T00-00-00.1")
    with pytest.raises(DataError, match="'other' is no row"):
        lm_eval.tell(study, tmp_path / "run", metric=METRIC, model="other")
    (file,) = (tmp_path / "run").rglob("samples_*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[0]["doc_hash"] = "e" * 64
    file.write_text("\n".join(map(json.dumps, lines)))
    before = study.status()["answered"]
    with pytest.raises(DataError, match="changed"):
        lm_eval.tell(study, tmp_path / "run", metric=METRIC)
    assert study.status()["answered"] == before


def test_lm_eval_leaves_what_was_not_asked(study, tmp_path):
    lm_eval.ask(study, "org/big", limit=1)
    run_harness(
        tmp_path / "run", "org/small", json.dumps({"gsm8k_cot": [7]}), "2026-01-01T00-00-00.1"
    )
    open_ = {(line["row"], line["col"]) for line in study.log()}
    kept = lm_eval.tell(study, tmp_path / "run", metric=METRIC)
    assert kept.others == (not any(row == "org/small" and ":7#" in col for row, col in open_))


def test_lm_eval_needs_columns_that_name_documents(tmp_path):
    study = Study.create(
        str(tmp_path / "lab.db"), "x", plan="most-informative", budget=2, rows=["a", "b"], cols=["x", "y"],
        params={"rank": 1, "reserve": 0.0},
    )  # fmt: skip
    with pytest.raises(DataError, match="no column such as"):
        lm_eval.ask(study, "a")


def test_label_studio_asks_for_the_doubtful_item_first(tmp_path):
    said = Annotations(list("111222333"), list("abc" * 3), list("xxxxyxyyy"))
    items = {name: {"text": f"text of {name}"} for name in "1234"}
    tasks = json.loads(label_studio.next_tasks(said, 3, items=items))
    assert [task["data"]["priority"] for task in tasks] == [1, 2, 3]
    gains = [task["data"]["gain"] for task in tasks]
    assert gains == sorted(gains, reverse=True)
    named = [task["data"]["item"] for task in tasks]
    assert len(set(named)) == 3
    assert named.index("2") < named.index("1") if "1" in named else "2" in named
    assert tasks[0]["data"]["text"] == f"text of {named[0]}"

    tasks[0]["id"] = 77  # as the export numbers it
    part = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": ["y"]}}
    tasks[0]["annotations"] = [{"completed_by": {"email": "d@example.org"}, "result": [part]}]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    back = label_studio.read_annotations(path)
    assert (back.items, back.workers, back.labels) == ([named[0]], ["d@example.org"], ["y"])
    again = Annotations(
        said.items + back.items, said.workers + back.workers, said.labels + back.labels
    )
    assert json.loads(label_studio.next_tasks(again, 1, items=items))


def test_label_studio_without_annotations_says_so(tmp_path):
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{"id": 1, "data": {"text": "x"}, "annotations": []}]))
    with pytest.raises(DataError, match="no annotation yet"):
        label_studio.read_annotations(path)


def test_crowd_next_writes_tasks_and_takes_the_annotations_back(sh, tmp_path):
    said, shown = tmp_path / "said.csv", tmp_path / "items.csv"
    lines = zip("111222333", "abc" * 3, "xxxxyxyyy", strict=True)
    said.write_text("task,worker,label\n" + "".join(f"{','.join(line)}\n" for line in lines))
    shown.write_text("item,text\n1,one\n2,two\n3,three\n")
    words = ("--limit", 2, "--items", shown)
    tasks = json.loads(sh("crowd", "next", said, *words, "--format", "label-studio"))
    listed = sh("crowd", "next", said, *words).splitlines()[1:]
    assert tasks[0]["data"] | {"item": "2", "text": "two", "priority": 1} == tasks[0]["data"]
    assert [task["data"]["item"] for task in tasks] == [line.split(",")[0] for line in listed]

    tasks[0]["id"] = 41  # as the tool numbers it
    part = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": ["x"]}}
    tasks[0]["annotations"] = [
        {"completed_by": {"id": k, "email": f"{k}@example.org"}, "result": [part]} for k in range(3)
    ]
    export = tmp_path / "export.json"
    export.write_text(json.dumps(tasks))
    found = sh("crowd", export, "--classes", "x,y").splitlines()
    assert found[1].startswith("2,x,")
    again = (*words, "--classes", "x,y", "--format", "label-studio")
    assert json.loads(sh("crowd", "next", export, *again))


@pytest.mark.slow
def test_prices_of_a_log_are_those_of_a_study(sh, tmp_path):
    lines = ["row,col,value,repeat,input_tokens,output_tokens,seconds,cost"]
    for model, factor in (("a", 1), ("b", 2)):
        for k in range(4):
            lines.append(f"{model},t:{k},{k % 2},0,{1000 * factor},{100 * (k + 1)},,")
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "tariff.csv").write_text("model,input,output\na,1,10\nb,2,20\n")
    out = ("--price-from-log", "tariff.csv", "--to", "prices", "-o", "price.csv")
    sh("convert", "log.csv", *out)
    sh("convert", "log.csv", "--to", "columns", "-o", "cols.csv")
    (tmp_path / "rows.csv").write_text("model\na\nb\n")
    sh("study", "create", "lab.db", "board", "--plan", "most-informative", "--rows", "rows.csv",
       "--cols", "cols.csv", "--price", "price.csv", "--budget", ".02", "--rank", "1", "--reserve", "0")  # fmt: skip
    for question in Study.open(str(tmp_path / "lab.db"), "board").ask(3):
        k, factor = int(question.col[-1]), 1 + (question.row == "b")
        assert question.price == pytest.approx(factor * (1000 * factor + 10 * 100 * (k + 1)) / 1e6)
    (tmp_path / "tariff.csv").write_text("model,input,output\na,1,10\n")
    assert "price of 'b' is unknown" in sh("convert", "log.csv", *out, ok=False)


def test_study_ask_and_tell_speak_lm_eval(sh, study, tmp_path):
    ask = ("study", "ask", "lab.db", "board", "--format", "lm-eval", "--limit", 2)
    assert "one model" in sh(*ask, ok=False)
    assert "takes --row" in sh(*ask, "--row", "org/small", "--mode", "entry", ok=False)
    samples = sh(*ask, "--row", "org/small", "--worker", "w")
    values = run_harness(tmp_path / "run", "org/small", samples, "2026-01-01T00-00-00.1")
    assert 1 <= len(values) <= 2
    tell = ("study", "tell", "lab.db", "board", tmp_path / "run")
    assert "--metric" in sh(*tell, "--format", "lm-eval", ok=False)  # it has two
    assert study.status()["answered"] == 0
    sh(*tell, "--format", "lm-eval", "--metric", METRIC)
    told = {line["col"]: line["value"] for line in study.log() if line["what"] == "told"}
    assert sorted(told.values()) == sorted(values.values())
    sh(*tell, "--metric", METRIC)  # a folder is a log, told by its content; twice is harmless
    assert study.status()["answered"] == len(values)
    strange = sh(*tell, "--format", "lm-eval", "--metric", METRIC, "--model", "other", ok=False)
    assert "'other' is no row" in strange
    (tmp_path / "done.csv").write_text("row,col,value\n")
    table = ("study", "tell", "lab.db", "board", "done.csv", "--model", "x")
    assert "say its --format" in sh(*table, ok=False)
