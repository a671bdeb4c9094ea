"""``entrywise study``: files in, files out, and one line for every mistake."""

from __future__ import annotations

import csv
import gzip
import io
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from entrywise.cli._options import params_of
from entrywise.cli._shared import run_command
from entrywise.cli.app import app
from entrywise.gallery import random_psd
from entrywise.study import Study

NAMES = [f"cpd-{k}" for k in range(12)]
A = random_psd(12, 2, 3)
VALUE = {(a, b): float(A[i, j]) for i, a in enumerate(NAMES) for j, b in enumerate(NAMES)}


class Shell:
    """Runs commands as a shell would: (exit code, stdout, stderr)."""

    def __init__(self, capsys):
        self.capsys = capsys

    def __call__(self, *words, ok=True):
        code = 0
        try:
            run_command(lambda: app([str(w) for w in words], standalone_mode=False))
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = self.capsys.readouterr()
        assert (code == 0) == ok, f"exit code {code}: {err}"
        return out if ok else err


@pytest.fixture
def sh(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Shell(capsys)


@pytest.fixture
def kinase(sh, tmp_path):
    (tmp_path / "compounds.csv").write_text("name,smiles\n" + "".join(f"{n},C\n" for n in NAMES))
    sh("study", "create", "lab.db", "kinase", "--plan", "adaptive-nystrom", "--rows", "compounds.csv", "--rank", "5",
       "--seed", "1", "--budget", "5000", "--price", "entry=1.5")  # fmt: skip
    return sh


def filled(text, **change):
    rows = list(csv.DictReader(io.StringIO(text)))
    for row in rows:
        row["value"] = repr(VALUE[row["row"], row["col"]])
        row.update(change)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


@pytest.mark.slow
def test_a_study_by_files_alone(kinase, tmp_path):
    rounds = 0
    while (
        json.loads(kinase("study", "status", "lab.db", "kinase", "-f", "json"))[0]["state"]
        == "open"
    ):
        todo = kinase("study", "ask", "lab.db", "kinase", "--limit", 7, "--worker", "bench-2")
        path = tmp_path / "done.csv.gz"
        path.write_bytes(gzip.compress(filled(todo).encode()))
        kinase("study", "tell", "lab.db", "kinase", path)
        kinase("study", "tell", "lab.db", "kinase", path)  # twice is harmless
        rounds += 1
        assert rounds < 30
    shown = json.loads(kinase("study", "result", "lab.db", "kinase", "--format", "json"))[0]
    assert (shown["rank"], shown["status"], shown["cost"]) == (2, "finished", 1.5 * 33)
    (tmp_path / "wanted.csv").write_text("row,col\ncpd-3,cpd-7\n")
    printed = kinase("study", "result", "lab.db", "kinase", "--entries", "wanted.csv", "-f", "csv")
    row, col, value = printed.splitlines()[1].split(",")
    assert (row, col) == ("cpd-3", "cpd-7")
    assert float(value) == pytest.approx(VALUE["cpd-3", "cpd-7"])
    assert "largest error" in kinase("study", "certificate", "lab.db", "kinase", "-f", "csv")
    log = list(csv.DictReader(io.StringIO(kinase("study", "log", "lab.db", "kinase", "-f", "csv"))))
    assert {line["worker"] for line in log if line["what"] == "told"} == {"bench-2"}
    every = kinase(
        "study", "result", "lab.db", "kinase", "--all", "--out", "found.npz", "-f", "csv"
    ).splitlines()
    assert len(every) == 1 + 144
    from entrywise.results import PSDFactor

    np.testing.assert_allclose(PSDFactor.load("found.npz").to_dense(), A, atol=1e-12)


def test_partial_files_in_any_order(kinase, tmp_path):
    todo = kinase("study", "ask", "lab.db", "kinase")
    lines = filled(todo).splitlines()
    blank = lines[4].rsplit(",", 1)[0] + ","
    (tmp_path / "part.csv").write_text("\n".join([lines[0], *lines[:4:-1], blank, ""]))
    kinase("study", "tell", "lab.db", "kinase", "part.csv")
    now = json.loads(kinase("study", "status", "lab.db", "kinase", "-f", "json"))[0]
    assert (now["answered"], now["open"]) == (8, 4)
    (tmp_path / "rest.csv").write_text(
        "col;row;value\n" + "".join(f"{n};{n};{VALUE[n, n]}\n" for n in NAMES[:4])
    )
    kinase("study", "tell", "lab.db", "kinase", "rest.csv")  # by entry, semicolons, no ids
    assert json.loads(kinase("study", "status", "lab.db", "kinase", "-f", "json"))[0]["batch"] == 1


BAD = {
    "missing column": ("id,valeu\n0.1,5\n", r"line 1: there must be a column 'value'"),
    "no id": ("name,value\n0.1,5\n", r"line 1: there must be a column 'id'"),
    "unknown label": (
        "row,col,value\ncpd-1,cpd-1,1\ncpd-99,cpd-1,5\n",
        r"line 3: no row is labelled 'cpd-99'",
    ),
    "wrong study": (
        "study,id,value\nother,0.1,4\n",
        r"line 2: this answer belongs to study 'other'",
    ),
    "wrong entry": (
        "id,row,col,value\n0.1,cpd-1,cpd-1,1\n0.2,cpd-5,cpd-5,4\n",
        r"line 3: question 0.2 is entry",
    ),
    "comma in quotes": (
        'id,value\n0.1,"0,5"\n',
        r"line 2: an answer must be a number, with a point",
    ),
    "comma": ("id,value\n0.1,0,5\n", r"line 2 has 3 cells, more cells than the first"),
    "words": ("id,value\n0.2,1\n0.1,high\n", r"line 3: an answer must be a number"),
    "no lease": (
        "id,value,worker\n0.2,1,\n0.1,7.5,stranger\n",
        r"line 3: worker 'stranger' has no lease",
    ),
    "no question": ("id,value\n77.1,7.5\n", r"line 2: study 'kinase' has no question 77.1"),
    "digits": (f"id,value\n0.{'9' * 40},7.5\n", r"line 2: a question's id"),
    "underscore": ("id,value\n0.1,1_000\n", r"line 2: an answer must be a number"),
    "wide digits": ("id,value\n0.1,１\n", r"line 2: an answer must be a number"),
    "true": ("id,value\n0.1,True\n", r"line 2: an answer must be a number"),
    "infinite": ("id,value\n0.1,inf\n", r"line 2: an answer must be finite"),
    "bad id": ("id,value\nseven,7.5\n", r"line 2: a question's id"),
    "twice": ("id,value\n0.1,7.5\n0.1,8\n", r"line 3: question 0.1 is told 7.5 and 8.0"),
    "empty": ("", r"is empty"),
    "no answers": ("id,value\n0.1,\n", r"holds no answer"),
    "value alone": ("id,value\n,5\n", r"line 2: there is a value, but neither"),
}


@pytest.mark.parametrize("mistake", BAD)
def test_bad_files_are_one_line_and_nothing_is_written(kinase, tmp_path, mistake):
    import re

    text, words = BAD[mistake]
    (tmp_path / "bad.csv").write_text(text)
    before = kinase("study", "log", "lab.db", "kinase", "-f", "csv")
    said = kinase("study", "tell", "lab.db", "kinase", "bad.csv", ok=False)
    assert said.startswith("Error: bad.csv")
    assert len(said.strip().splitlines()) == 1
    assert re.search(words, said), said
    assert kinase("study", "log", "lab.db", "kinase", "-f", "csv") == before


def test_a_closed_batch_and_a_closed_study(kinase, tmp_path):
    (tmp_path / "done.csv").write_text(filled(kinase("study", "ask", "lab.db", "kinase")))
    kinase("study", "tell", "lab.db", "kinase", "done.csv")
    (tmp_path / "late.csv").write_text("id,value\n0.0,0.25\n")
    said = kinase("study", "tell", "lab.db", "kinase", "late.csv", ok=False)
    assert "late.csv line 2: question 0.0, entry (cpd-0, cpd-0), was already answered" in said
    assert "study amend ... 0.0 0.25" in said
    kinase("study", "close", "lab.db", "kinase")
    assert "is closed; reopen it to ask" in kinase("study", "ask", "lab.db", "kinase", ok=False)
    (tmp_path / "more.csv").write_text("id,value\n1.0,0.25\n")
    assert "is closed; reopen it to tell" in kinase(
        "study", "tell", "lab.db", "kinase", "more.csv", ok=False
    )
    kinase("study", "reopen", "lab.db", "kinase")
    kinase("study", "tell", "lab.db", "kinase", "more.csv")


@pytest.mark.slow
def test_failed_amend_fork_export_import_release_list(kinase, tmp_path):
    kinase("study", "ask", "lab.db", "kinase", "--limit", 3, "--worker", "w")
    kinase("study", "release", "lab.db", "kinase", "--worker", "w")
    todo = filled(kinase("study", "ask", "lab.db", "kinase")).splitlines()
    todo[2] = todo[2].rsplit(",", 1)[0] + ",failed"
    (tmp_path / "done.csv").write_text("\n".join(todo))
    kinase("study", "tell", "lab.db", "kinase", "done.csv")
    now = json.loads(kinase("study", "status", "lab.db", "kinase", "-f", "json"))[0]
    assert now["failed"] == ["0.1 (cpd-1, cpd-1)"]
    assert "cannot do without them" in now["trouble"]
    (tmp_path / "again.csv").write_text(f"id,value\n0.1,{2 * VALUE['cpd-1', 'cpd-1']}\n")
    kinase("study", "tell", "lab.db", "kinase", "again.csv")
    kinase("study", "amend", "lab.db", "kinase", "cpd-1,cpd-1", repr(VALUE["cpd-1", "cpd-1"]))
    log = kinase("study", "log", "lab.db", "kinase", "-f", "csv")
    assert [x for x in ("failed", "amended", "told") if f",{x}\n" in log] == [
        "failed",
        "amended",
        "told",
    ]
    kinase("study", "export", "lab.db", "kinase", "kinase.zip")
    kinase("study", "import", "other.db", "kinase.zip")
    assert kinase("study", "log", "other.db", "kinase", "-f", "csv") == log
    kinase("study", "fork", "lab.db", "kinase", "kinase-2", "--rank", "1")
    listed = list(csv.DictReader(io.StringIO(kinase("study", "list", "lab.db", "-f", "csv"))))
    assert [(row["name"], row["parent"]) for row in listed] == [
        ("kinase", ""),
        ("kinase-2", "kinase"),
    ]
    for word in ("status", "log", "certificate", "result", "list"):
        words = ["study", word, "lab.db"] + (["kinase"] if word != "list" else [])
        assert "─" in kinase(*words)


@pytest.mark.slow
def test_workers_by_a_function(kinase, tmp_path):
    (tmp_path / "assay_for_tests.py").write_text(
        "from entrywise.gallery import random_psd\nA = random_psd(12, 2, 3)\n"
        "def batch(b):\n    return A[b.rows, b.cols]\ndef one(i, j):\n    return A[i, j]\n"
    )
    kinase("study", "fork", "lab.db", "kinase", "twin")
    kinase("study", "work", "lab.db", "kinase", "--oracle", "assay_for_tests:batch", "--workers", 2)
    kinase(
        "study",
        "work",
        "lab.db",
        "twin",
        "--oracle",
        "assay_for_tests:one",
        "--entry",
        "--by",
        "index",
        "--chunk",
        5,
    )
    a, b = (Study.open("lab.db", name).result() for name in ("kinase", "twin"))
    assert a.factor.tobytes() == b.factor.tobytes()
    assert "module:function" in kinase(
        "study", "work", "lab.db", "kinase", "--oracle", "nonsense", ok=False
    )


def test_known_entries_from_a_file(sh, tmp_path):
    (tmp_path / "names.csv").write_text("name\na\nb\nc\n")
    (tmp_path / "known.csv").write_text("row,col,value\na,a,1\nb,b,2\nc,c,4\n")
    words = (
        "study",
        "create",
        "lab.db",
        "x",
        "--plan",
        "adaptive-nystrom",
        "--rows",
        "names.csv",
        "--known",
    )
    sh(*words, "known.csv")
    assert json.loads(sh("study", "status", "lab.db", "x", "-f", "json"))[0]["batch"] == 1
    (tmp_path / "bad.csv").write_text("row,col,value\na,a,1\nb,z,2\n")
    assert "name the col 'z', which the study does not have" in sh(*words, "bad.csv", ok=False)
    (tmp_path / "twice.csv").write_text("name\na\na\n")
    said = sh(
        "study",
        "create",
        "l.db",
        "x",
        "--plan",
        "adaptive-nystrom",
        "--rows",
        "twice.csv",
        ok=False,
    )
    assert "twice.csv: line 3: label 'a' stands in line 2 already" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("create", "lab.db", "x", "--plan", "nonsense"), "no active method is called 'nonsense'"),
        (
            ("create", "lab.db", "x", "--plan", "adaptive-nystrom", "--n", "4", "--rnak", "2"),
            "rnak",
        ),
        (
            ("create", "lab.db", "x", "--plan", "adaptive-nystrom", "--n", "4", "--price", "entry"),
            "--price must be mode=number",
        ),
        (
            ("create", "lab.db", "x", "--plan", "noisy-cur", "--shape", "8"),
            "--shape must be rows x columns",
        ),
        (
            (
                "create",
                "lab.db",
                "x",
                "--plan",
                "noisy-cur",
                "--shape",
                "8x6",
                "--noise",
                "column=x",
            ),
            "--noise must be name=number",
        ),
        (("create", "lab.db", "x", "--plan", "adaptive-nystrom"), "'n'; it takes n, rank, order"),
        (("status", "no.db", "x"), "there is no database no.db"),
        (("tell", "no.db", "x", "no.csv"), "there is no database no.db"),
        (("import", "lab.db", "no.zip"), "no.zip: no such file"),
    ],
)
def test_mistakes_are_one_line(sh, tmp_path, words, said):
    told = sh("study", *words, ok=False)
    assert said in told
    assert len(told.strip().splitlines()) == 1
    if words[0] == "create":
        assert not (tmp_path / "lab.db").exists()


def test_parameters_are_written_as_forecast_takes_them(sh):
    words = ("study", "create", "lab.db", "--plan", "noisy-cur", "--budget", 60, "--seed", 1)
    sh(
        *words,
        "x",
        "--shape",
        "8x6",
        "--noise",
        "column=.2,entry=.1",
        "--price",
        "column=4,entry=1",
    )
    sh(*words, "y", "--shape", "8,6", "--noise", '{"column": 0.2, "entry": 0.1}', "--price", "column=4", "--price",
       "entry=1")  # fmt: skip
    x, y = (Study.open("lab.db", name) for name in "xy")
    assert (
        x.status()["params"]
        == y.status()["params"]
        == {"shape": [8, 6], "noise": {"column": 0.2, "entry": 0.1}}
    )
    assert x.prices.to_json() == y.prices.to_json()
    assert [q.index for q in x.ask()] == [q.index for q in y.ask()]


@pytest.mark.slow
def test_results_with_a_posterior_print_intervals(sh, tmp_path):
    rng = np.random.default_rng(0)
    truth = np.outer(rng.normal(2, 1, 20), rng.normal(2, 1, 15))
    sh("study", "create", "lab.db", "x", "--plan", "noisy-cur", "--shape", "20x15", "--noise", "column=.3,entry=.1",
       "--price", "column=8,entry=1", "--budget", 150, "--seed", 1)  # fmt: skip
    for _ in range(20):
        todo = sh("study", "ask", "lab.db", "x")
        if len(todo.splitlines()) < 2:
            break
        rows = list(csv.DictReader(io.StringIO(todo)))
        told = "".join(
            f"{r['id']},{truth[int(r['row']), int(r['col'])] + 0.1 * rng.standard_normal()}\n"
            for r in rows
        )
        (tmp_path / "done.csv").write_text("id,value\n" + told)
        sh("study", "tell", "lab.db", "x", "done.csv")
    every = list(
        csv.DictReader(io.StringIO(sh("study", "result", "lab.db", "x", "--all", "-f", "csv")))
    )
    assert len(every) == 300
    inside = [
        float(r["low"]) <= truth[int(r["row"]), int(r["col"])] <= float(r["high"]) for r in every
    ]
    assert np.mean(inside) > 0.7
    (tmp_path / "wanted.csv").write_text("row,col\n3,7\n")
    for level, wider in ((0.5, False), (0.99, True)):
        printed = sh(
            "study",
            "result",
            "lab.db",
            "x",
            "--entries",
            "wanted.csv",
            "--level",
            level,
            "-f",
            "csv",
        )
        r = next(csv.DictReader(io.StringIO(printed)))
        assert float(r["low"]) < float(r["value"]) < float(r["high"])
        assert (float(r["high"]) > float(every[3 * 15 + 7]["high"])) == wider


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3), ("-2", -2), ("1e-3", 0.001), (".5", 0.5), ("1,2,3", [1, 2, 3]), ("0.1,.2", [0.1, 0.2]),
        ("true", True), ("null", None), ('{"a": [1]}', {"a": [1]}), ("greedy", "greedy"), ("a=1,b=2e1", {"a": 1.0, "b": 20.0}),
    ],
)  # fmt: skip
def test_parameters_are_numbers_lists_names_or_json(text, value):
    found = params_of(["--some-thing", text])["some_thing"]
    assert (found, type(found)) == (value, type(value))


def test_status_reads_well_as_a_table_and_as_csv(kinase):
    kinase("study", "ask", "lab.db", "kinase", "--limit", 2, "--worker", "ann")
    table = kinase("study", "status", "lab.db", "kinase")
    assert "worker ann, holds 2, since " in table
    assert "rank 5, n 12" in table
    assert "{" not in table
    row = next(
        csv.DictReader(io.StringIO(kinase("study", "status", "lab.db", "kinase", "-f", "csv")))
    )
    assert json.loads(row["params"]) == {"rank": 5, "n": 12}
    assert json.loads(row["workers"])[0]["worker"] == "ann"


def test_every_command_has_help_with_an_example():
    from entrywise.cli.study_changes import commands

    names = [c.name or c.callback.__name__ for c in commands.registered_commands]
    assert len(names) >= 16
    for command in commands.registered_commands:
        assert "Example: entrywise study" in command.callback.__doc__
    assert CliRunner().invoke(app, ["study", "--help"]).exit_code == 0
