"""Files of the field: written here after their documentation, told by content, read into cells, labels and games."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entrywise as ew
from entrywise.exceptions import DataError, ParameterError
from entrywise.formats import (
    KNOWN,
    Annotations,
    Cell,
    ScoredCells,
    Usage,
    load,
    parted,
    priced,
    quotes,
    read_tariffs,
    same_content,
    written,
)
from entrywise.tables import Comparisons

DATE = "2026-01-21T03-44-18.458309"


def as_lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def lm_eval_folder(root, model="org__small", docs=(0, 1, 2), values=(1.0, 0.0, None), date=DATE):
    """Write what `lm_eval --log_samples --output_path` leaves: a folder a model, a file a task."""
    folder = root / model
    folder.mkdir(parents=True, exist_ok=True)
    records = [
        {
            "doc_id": doc,
            "doc": {"question": f"What is {doc}?"},
            "target": str(doc),
            "arguments": {"gen_args_0": {"arg_0": f"Q: {doc}", "arg_1": {}}},
            "resps": [["x"]],
            "filtered_resps": ["x"],
            "filter": filter_,
            "metrics": ["exact_match"],
            "doc_hash": f"{doc:064x}"[::-1],
            "prompt_hash": "p",
            "target_hash": "t",
            "exact_match": value if filter_ == "strict-match" else 1.0,
        }
        for filter_ in ("strict-match", "flexible-extract")
        for doc, value in zip(docs, values, strict=True)
    ]
    (folder / f"samples_gsm8k_cot_{date}.jsonl").write_text(as_lines(records))
    (folder / f"results_{date}.json").write_text(
        json.dumps({"model_name": model.replace("__", "/")})
    )
    return folder


def eee_record(model="org/small", sample="s1", score=1.0, **more):
    return {
        "schema_version": "0.3.0",
        "evaluation_id": "gsm8k/org/1",
        "model_id": model,
        "evaluation_name": "gsm8k",
        "sample_id": sample,
        "sample_hash": f"hash of {sample}",
        "interaction_type": "single_turn",
        "input": {"raw": "2 + 2", "reference": ["4"]},
        "output": {"raw": ["4"]},
        "answer_attribution": [],
        "evaluation": {"score": score, "is_correct": score == 1.0},
        **more,
    }


def stat(name, value, count=1):
    total = 0 if value is None else value * count
    return {
        "name": {"name": name, "split": "test"},
        "count": 0 if value is None else count,
        "sum": total,
    }


def helm_run(root):
    """Write what `helm-run` leaves of a run."""
    folder = root / "mmlu:subject=anatomy,method=joint,model=openai_gpt2"
    folder.mkdir(parents=True)
    stats = [
        {
            "instance_id": f"id{k}",
            "train_trial_index": trial,
            "stats": [
                stat("exact_match", value),
                stat("num_prompt_tokens", 100),
                stat("num_output_tokens", 5),
                stat("inference_runtime", 0.25),
            ],
        }
        for trial in (0, 1)
        for k, value in ((7, 1.0), (8, None))
    ]
    (folder / "per_instance_stats.json").write_text(json.dumps(stats))
    spec = {"name": folder.name, "adapter_spec": {"model": "openai/gpt2"}}
    (folder / "run_spec.json").write_text(json.dumps(spec))
    instances = [
        {"id": f"id{k}", "input": {"text": f"Q{k}"}, "references": [], "split": "test"}
        for k in (7, 8)
    ]
    (folder / "instances.json").write_text(json.dumps(instances))
    return folder


# harnesses


def test_lm_eval_folder_with_two_filters(tmp_path):
    lm_eval_folder(tmp_path)
    lm_eval_folder(tmp_path, "org__big", values=(1.0, 1.0, 0.0))
    with pytest.raises(
        DataError, match=r"several of metric: 'exact_match,strict-match', 'exact_match,flexible"
    ):
        load(tmp_path)
    found = load(tmp_path, metric="exact_match,strict-match")
    assert found.rows == ["org/big", "org/small"]
    assert [parted(col)[0] for col in found.cols] == [f"gsm8k_cot:{k}" for k in range(3)]
    assert all(parted(col)[1] for col in found.cols)
    assert found.failed == 1
    seen = ew.read(tmp_path, metric="exact_match,strict-match")
    assert seen.shape == (2, 3)
    assert len(seen) == 5  # the failed sample is unknown, not 0
    assert sorted(seen.values.tolist()) == [0.0, 0.0, 1.0, 1.0, 1.0]


def test_lm_eval_takes_the_folder_where_no_results_say_the_model(tmp_path):
    folder = lm_eval_folder(tmp_path)
    (folder / f"results_{DATE}.json").unlink()
    metric = "exact_match,strict-match"
    assert load(folder, metric=metric).rows == ["org/small"]
    assert load(folder, metric=metric, model="mine").rows == ["mine"]
    lm_eval_folder(tmp_path, "org__big")
    with pytest.raises(DataError, match="several rows"):
        load(tmp_path, metric=metric, model="mine")


def test_a_second_run_is_a_repeat_and_a_changed_benchmark_is_refused(tmp_path):
    lm_eval_folder(tmp_path)
    lm_eval_folder(tmp_path, docs=(0,), values=(0.0,), date="2026-02-01T00-00-00.1")
    metric = "exact_match,strict-match"
    found = load(tmp_path, metric=metric)
    assert [cell.repeat for cell in found.cells if ":0#" in cell.col] == [0, 1]
    with pytest.raises(DataError, match="entry"):
        ew.read(tmp_path, metric=metric)
    assert len(ew.read(tmp_path, metric=metric, duplicates="mean")) == 2
    folder = lm_eval_folder(tmp_path, "other", docs=(0, 1, 2))
    file = folder / f"samples_gsm8k_cot_{DATE}.jsonl"
    file.write_text(file.read_text().replace(f"{1:064x}"[::-1], "f" * 64))
    with pytest.raises(DataError, match="content of sample 'gsm8k_cot:1' changed"):
        load(tmp_path, metric=metric)


def test_lm_eval_samples_must_keep_their_name(tmp_path):
    folder = lm_eval_folder(tmp_path)
    (folder / f"samples_gsm8k_cot_{DATE}.jsonl").rename(folder / "mine.jsonl")
    with pytest.raises(DataError, match="must be called samples_TASK_DATE"):
        load(folder / "mine.jsonl")


def test_every_eval_ever(tmp_path):
    path = tmp_path / "x_samples.jsonl"
    tokens = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
    records = [
        eee_record(token_usage=tokens, performance={"latency_ms": 500}),
        eee_record(sample="s2", score=0.0, error="timeout"),
        eee_record(model="org/big"),
        eee_record(model="org/big"),
    ]
    path.write_text(as_lines(records))
    found = load(path)
    assert found.rows == ["org/small", "org/big"]
    assert found.cells[0].usage == Usage(10, 3, 0.5)
    assert found.cells[1].value is None
    assert [cell.repeat for cell in found.cells] == [0, 0, 0, 1]


def test_every_eval_ever_with_two_metrics_asks_which(tmp_path):
    path = tmp_path / "x_samples.jsonl"
    path.write_text(
        as_lines(
            [
                eee_record(evaluation_result_id=name, score=y)
                for name, y in (("em", 1.0), ("f1", 0.5))
            ]
        )
    )
    with pytest.raises(DataError, match="several metrics, 'em' and 'f1'"):
        load(path)
    assert [cell.value for cell in load(path, metric="f1").cells] == [0.5]


def test_helm(tmp_path):
    helm_run(tmp_path)
    with pytest.raises(DataError, match="'exact_match', 'inference_runtime'"):
        load(tmp_path)
    found = load(tmp_path, metric="exact_match")
    assert found.rows == ["openai/gpt2"]
    assert [parted(col)[0] for col in found.cols] == [
        "mmlu:subject=anatomy,method=joint:id7",
        "mmlu:subject=anatomy,method=joint:id8",
    ]
    assert [(cell.value, cell.repeat) for cell in found.cells] == [
        (1.0, 0),
        (None, 0),
        (1.0, 1),
        (None, 1),
    ]
    assert found.cells[0].usage == Usage(100, 5, 0.25)


def test_alpaca_eval(tmp_path):
    path = tmp_path / "annotations.json"
    pairs = [("a", 1.0), ("b", 2), ("c", 1.75), ("d", None)]
    records = [
        {
            "instruction": text,
            "output_1": "x",
            "generator_1": "gpt4_turbo",
            "output_2": "y",
            "generator_2": "mine",
            "annotator": "judge",
            "preference": preference,
        }
        for text, preference in pairs
    ]
    path.write_text(json.dumps(records))
    found = load(path)
    assert found.rows == ["mine"]
    assert [cell.value for cell in found.cells] == [0.0, 1.0, 0.75, None]
    records[0]["generator_1"] = "other"
    path.write_text(json.dumps(records))
    with pytest.raises(DataError, match="several references"):
        load(path)
    records[0]["preference"] = 3
    path.write_text(json.dumps(records))
    with pytest.raises(DataError, match="from 1 to 2"):
        load(path, metric="other")


# arenas and label tools

BATTLES = [
    ("a", "b", "model_a"),
    ("b", "c", "model_b"),
    ("a", "c", "tie"),
    ("a", "c", "tie (bothbad)"),
]


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
def test_arena(tmp_path, kind):
    path = tmp_path / f"battles.{kind}"
    names = ("model_a", "model_b", "winner")
    records = [dict(zip(names, battle, strict=True)) for battle in BATTLES]
    texts = {
        "csv": "\n".join(map(",".join, [names, *BATTLES])),
        "json": json.dumps(records),
        "jsonl": as_lines(records),
    }
    path.write_text(texts[kind])
    found = load(path)
    assert isinstance(found, Comparisons)
    assert found.tied == [False, False, True, True]
    assert found.winners[:2] == ["a", "c"]
    with pytest.raises(DataError, match=r"who beat whom|not a finite number|holds"):
        ew.read(path)


def test_arena_never_guesses_the_winner(tmp_path):
    path = tmp_path / "battles.json"
    path.write_text(json.dumps([{"model_a": "a", "model_b": "b", "winner": "a"}]))
    with pytest.raises(DataError, match="must name one of two other columns"):
        load(path)


def label_studio_tasks():
    def annotation(by, choice, **more):
        part = {
            "from_name": "sentiment",
            "to_name": "text",
            "type": "choices",
            "value": {"choices": [choice]},
        }
        return {"id": 1, "completed_by": by, "result": [part], "was_cancelled": False, **more}

    return [
        {
            "id": 12,
            "data": {"text": "fine"},
            "annotations": [
                annotation(3, "good"),
                annotation({"id": 4, "email": "ada@example.org"}, "bad"),
                annotation(5, "bad", was_cancelled=True),
            ],
        },
        {"id": 13, "data": {"text": "bad"}, "annotations": []},
    ]


def test_label_studio(tmp_path):
    path = tmp_path / "export.json"
    path.write_text(json.dumps(label_studio_tasks()))
    found = load(path)
    assert (found.items, found.workers) == (["12", "12"], ["3", "ada@example.org"])
    assert found.labels == ["good", "bad"]
    with pytest.raises(DataError, match="who gave which label"):
        ew.read(path)


def test_label_studio_refuses_two_labels_in_one(tmp_path):
    tasks = label_studio_tasks()
    tasks[0]["annotations"][0]["result"][0]["value"]["choices"].append("bad")
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    with pytest.raises(DataError, match="one label"):
        load(path)


def test_cleanlab_needs_its_name(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",ann,bob\nx1,0,\nx2,1,0\n")
    found = load(path, "cleanlab")
    assert list(zip(found.items, found.workers, found.labels, strict=True)) == [
        ("x1", "ann", "0"), ("x2", "ann", "1"), ("x2", "bob", "0"),
    ]  # fmt: skip
    path.write_text("ann,bob\n0,\n1,0\n")
    assert load(path, "cleanlab").items == ["0", "1", "1"]


names = st.text(
    st.characters(categories=("L", "N"), include_characters=" -_.@/'"), min_size=1, max_size=8
)
texts = names.map(str.strip).filter(
    lambda s: s and s.lower() not in ("na", "nan", "null", "none", ".")
)
answers = st.dictionaries(st.tuples(texts, texts), texts, min_size=1, max_size=12)


@pytest.mark.parametrize("format", ["crowd-kit", "cleanlab", "label-studio"])
@given(said=answers)
@settings(deadline=None, max_examples=40)
def test_labels_make_the_round_trip(tmp_path_factory, format, said):
    names_of = {
        plain for _, worker in said for plain in (worker.lower().replace("_", " ").strip(),)
    }
    if format == "cleanlab" and names_of & {"item", "task"}:
        return
    given_ = Annotations(
        [item for item, _ in said], [worker for _, worker in said], list(said.values())
    )
    path = tmp_path_factory.mktemp("x") / ("x.json" if format == "label-studio" else "x.csv")
    path.write_text(written(given_, format))
    found = load(path, format)
    again = dict(zip(zip(found.items, found.workers, strict=True), found.labels, strict=True))
    assert again == said


@given(
    games=st.lists(
        st.tuples(texts, texts, st.booleans()).filter(lambda g: g[0] != g[1]),
        min_size=1,
        max_size=9,
    )
)
@settings(deadline=None, max_examples=40)
def test_battles_make_the_round_trip(tmp_path_factory, games):
    held = Comparisons(*map(list, zip(*games, strict=True)))
    path = tmp_path_factory.mktemp("x") / "x.csv"
    path.write_text(written(held, "arena"))
    found = load(path)
    assert (found.winners, found.losers, found.tied) == (held.winners, held.losers, held.tied)


values = st.none() | st.floats(-1e6, 1e6)


amounts = st.none() | st.floats(0, 1e9)


@given(
    cells=st.lists(
        st.tuples(texts, texts, values, st.builds(Usage, amounts, amounts, amounts), amounts),
        min_size=1,
        max_size=12,
    )
)
@settings(deadline=None, max_examples=40)
def test_cells_make_the_round_trip(tmp_path_factory, cells):
    held = ScoredCells(
        tuple(
            Cell(row, col, value, repeat=k, usage=usage, cost=cost)
            for k, (row, col, value, usage, cost) in enumerate(cells)
        )
    )
    path = tmp_path_factory.mktemp("x") / "x.csv"
    path.write_text(written(held, "csv"))
    assert load(path).cells == held.cells


@given(
    cells=st.dictionaries(
        st.tuples(texts, texts), st.floats(-1e6, 1e6), min_size=1, max_size=12
    )
)  # fmt: skip
@settings(deadline=None, max_examples=40)
def test_wide_tables_make_the_round_trip(tmp_path_factory, cells):
    held = ScoredCells(tuple(Cell(row, col, y) for (row, col), y in cells.items()))
    path = tmp_path_factory.mktemp("x") / "x.csv"
    path.write_text(written(held, "wide"))
    seen = ew.read(path, layout="wide", labels="first", header="yes")
    found = {
        (seen.row_labels[i], seen.col_labels[j]): y
        for i, j, y in zip(seen.rows, seen.cols, seen.values, strict=True)
    }
    assert found == cells


# telling, refusing


def test_what_is_not_recognised_is_refused_with_what_we_know(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('[{"something": "else"}]')
    with pytest.raises(DataError, match="none of the formats we know") as caught:
        load(path)
    assert all(known.name in str(caught.value) for known in KNOWN)
    with pytest.raises(DataError, match="none of the formats we know"):
        ew.read(path)
    with pytest.raises(DataError, match="none of the formats we know"):
        load(tmp_path)
    with pytest.raises(ParameterError, match="format must be"):
        load(path, "mine")


@pytest.mark.slow
@given(text=st.text(max_size=60) | st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(
            ["doc_id", "filter", "metrics", "data", "annotations", "model_a", "model_b", "winner", "stats",
             "instance_id", "train_trial_index", "version", "status", "eval", "task", "result", "id", "value"]
        ),
        inner, max_size=5),
    max_leaves=12,
).map(json.dumps))  # fmt: skip
@settings(deadline=None, max_examples=150)
def test_whatever_a_file_holds_it_is_read_or_refused_in_a_sentence(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("x") / "x.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with suppress(DataError):  # and nothing else
        load(path)


def test_json_does_not_come_on_stdin():
    with pytest.raises(DataError, match="give lm-eval as a file"):
        load("-", "lm-eval")


def test_a_broken_line_is_named(tmp_path):
    path = tmp_path / "x_samples.jsonl"
    path.write_text(as_lines([eee_record()]) + '{"model_id": \n')
    with pytest.raises(DataError, match="line 2"):
        load(path)


def test_known_columns_keep_their_labels():
    cells = ScoredCells(
        (Cell("m", "t:1#" + "a" * 12, 1.0), Cell("m", "t:2#" + "b" * 12, 1.0)), "log"
    )
    kept = same_content(cells, ["t:1", "t:2#" + "b" * 12])
    assert kept.cols == ["t:1", "t:2#" + "b" * 12]
    with pytest.raises(DataError, match="changed"):
        same_content(cells, ["t:2#" + "c" * 12])


# prices


def cells_with(*usages):
    each = (Cell("m", f"t:{k}", 1.0, usage=usage) for k, usage in enumerate(usages))
    return ScoredCells(tuple(each), "log")


def test_prices_from_tokens_and_seconds(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("model,input,output\nm,2,10\n")
    held = priced(cells_with(Usage(1e6, 1e5, 4.0), Usage(5e5, 0, 2.0)), read_tariffs(path))
    np.testing.assert_allclose([cell.cost for cell in held.cells], [3.0, 1.0])
    assert [cell.cost for cell in priced(held, None).cells] == [4.0, 2.0]


def test_an_unknown_price_is_an_error(tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("model,input,output\nother,2,10\n")
    with pytest.raises(DataError, match="price of 'm' is unknown"):
        priced(cells_with(Usage(1, 1, 1)), read_tariffs(path))
    with pytest.raises(DataError, match="does not say the seconds"):
        priced(cells_with(Usage(1, 1, None)), None)
    path.write_text("model,input\nm,2\n")
    with pytest.raises(DataError, match="both columns"):
        read_tariffs(path)
    with pytest.raises(DataError, match="say what cells cost"):
        quotes(cells_with(Usage(1, 1, 1)))


def test_quotes_cover_every_cell():
    a = (
        Cell("m", "t:0", 1.0, cost=2.0),
        Cell("m", "t:1", 1.0, cost=4.0),
        Cell("k", "t:0", 1.0, cost=1.0),
    )
    assert quotes(ScoredCells(a)) == [
        ("m", "t:0", 2.0),
        ("m", "t:1", 4.0),
        ("k", "t:0", 1.0),
        ("k", "t:1", 1.0),
    ]


# the command


def command(*words):
    done = subprocess.run(
        [sys.executable, "-m", "entrywise", *words], capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout, done.stderr


def test_convert_writes_what_study_and_leaderboard_take(tmp_path):
    helm_run(tmp_path)
    code, out, err = command(
        "convert", str(tmp_path), "--metric", "exact_match", "--to", "csv", "--price-from-log", "seconds"
    )  # fmt: skip
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0].startswith("row,col,value,repeat")
    assert lines[2].split(",")[-6] == "failed" or ",failed," in lines[2]
    assert lines[1].endswith(",0.25")
    assert "2 failed" in err


def test_convert_refuses_in_one_line(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("[{}]")
    code, out, err = command("convert", str(path), "--to", "csv")
    assert (code, out) == (1, "")
    assert "none of the formats" in err
    assert "Traceback" not in err
