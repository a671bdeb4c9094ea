"""The stories of studies that live, through the command line, on SQLite and PostgreSQL."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from entrywise.cli._shared import run_command
from entrywise.cli.app import app

MODELS = [f"m{k}" for k in range(10)]
TASKS = [f"t{k}" for k in range(8)]
RNG = np.random.default_rng(3)
TRUTH = 6.0 + np.outer(RNG.normal(size=12), RNG.normal(size=12)) + 0.05 * RNG.normal(size=(12, 12))


class Shell:
    """Runs commands as a shell would, and keeps what was said."""

    def __init__(self, capsys, url, prefix):
        self.capsys, self.url, self.prefix, self.said = capsys, url, prefix, ""

    def __call__(self, command, name, *words, ok=True):
        code = 0
        line = ["study", command, self.url, self.prefix + name, *map(str, words)]
        try:
            run_command(lambda: app(line, standalone_mode=False))
        except SystemExit as end:
            code = int(end.code or 0)
        out, self.said = self.capsys.readouterr()
        assert (code == 0) == ok, f"exit code {code}: {self.said}"
        return out

    def rows(self, command, name, *words):
        return list(csv.DictReader(io.StringIO(self(command, name, *words, "-f", "csv"))))

    def status(self, name):
        return json.loads(self("status", name, "-f", "json"))[0]


@pytest.fixture
def sh(capsys, desk, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.csv").write_text(
        "model,price\n" + "".join(f"{m},{1 + k % 3}\n" for k, m in enumerate(MODELS))
    )
    (tmp_path / "tasks.csv").write_text("task,minutes\n" + "".join(f"{t},2\n" for t in TASKS))
    return Shell(capsys, desk.url, desk.prefix)


def truth(row, col):
    return float(TRUTH[int(row[1:]), int(col[1:])])


def told(tmp_path, rows, wrong=None):
    lines = ["id,row,col,worker,value"]
    for k, r in enumerate(rows):
        value = wrong if wrong is not None and k == 0 else truth(r["row"], r["col"])
        lines.append(f"{r['id']},{r['row']},{r['col']},{r['worker']},{value!r}")
    path = tmp_path / "done.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def board(sh, name="board", budget=30, *words):
    sh("create", name, "--plan", "most-informative", "--rows", "models.csv", "--cols", "tasks.csv", "--seed", 1,
       "--budget", budget, *words)  # fmt: skip


def test_a_new_model_among_models_that_are_known(sh, tmp_path):
    known = "model,task,score\n" + "".join(
        f"{m},{t},{truth(m, t)!r}\n" for m in MODELS[:-1] for t in TASKS
    )
    (tmp_path / "history.csv").write_text(known)
    board(sh, "board", 5, "--known", "history.csv")
    assert sh.status("board")["known"] == 72
    asked = sh.rows("ask", "board", "--worker", "ann")
    assert asked
    assert {r["row"] for r in asked} == {"m9"}  # nothing that is known is asked
    sh("tell", "board", told(tmp_path, asked))


@pytest.mark.slow
def test_a_new_model_joins_a_study_that_is_finished(sh, tmp_path):
    board(sh, "board", 10)
    while sh.status("board")["state"] == "open":
        sh("tell", "board", told(tmp_path, sh.rows("ask", "board")))
    (tmp_path / "new.csv").write_text("model\nm10\n")
    sh("extend", "board", "--rows", "new.csv", "--budget", 6)
    now = sh.status("board")
    assert (now["state"], now["epoch"], now["budget"]) == ("open", 1, 16.0)
    asked = sh.rows("ask", "board", "--row", "m10", "--limit", 3)
    assert {r["row"] for r in asked} == {"m10"}
    sh("tell", "board", told(tmp_path, asked))
    assert sh.status("board")["spent"] <= 16.0
    sh("check", "board")


@pytest.mark.slow
def test_somebody_is_on_holiday_with_one_question(sh, tmp_path):
    board(sh)
    away = sh.rows("ask", "board", "--worker", "away", "--limit", 1)
    while asked := sh.rows("ask", "board", "--worker", "ann", "--limit", 10):
        assert away[0]["id"] not in {r["id"] for r in asked}
        sh("tell", "board", told(tmp_path, asked))
    now = sh.status("board")  # all the others had work until the money was out
    assert (now["state"], now["answered"], now["spent"], now["held"]) == ("open", 29, 29.0, 1.0)
    assert [(w["worker"], w["holds"]) for w in now["workers"]] == [("away", 1)]
    assert "away" in sh("status", "board") + sh.said
    sh("tell", "board", told(tmp_path, away))
    now = sh.status("board")
    assert (now["state"], now["answered"], now["held"]) == ("finished", 30, 0.0)


def test_one_model_at_a_time_and_why_fewer_came(sh):
    board(sh)
    asked = sh.rows("ask", "board", "--row", "m0", "--limit", 20, "--worker", "harness")
    assert asked
    assert {r["row"] for r in asked} == {"m0"}
    assert f"{len(asked)} of 20: no more questions fit what you can measure now" in sh.said
    assert {r["row"] for r in sh.rows("ask", "board", "--row", "m[12]", "--limit", 2)} <= {
        "m1",
        "m2",
    }
    sh("ask", "board", "--row", "nobody", ok=False)
    assert "no row is labelled 'nobody'" in sh.said


def test_prices_from_columns_and_small_files(sh, tmp_path):
    board(sh, "rows", 30, "--price", "rows:price", "--currency", "EUR")
    prices = {r["row"]: float(r["price"]) for r in sh.rows("ask", "rows")}
    assert prices == {m: 1.0 + int(m[1:]) % 3 for m in prices}
    assert "EUR" in sh.status("rows")["sentence"]
    board(
        sh,
        "both",
        60,
        "--price",
        "rows:price",
        "--price",
        "cols:minutes",
        "--price-rule",
        "product",
    )
    assert {float(r["price"]) for r in sh.rows("ask", "both")} <= {2.0, 4.0, 6.0}
    (tmp_path / "small.csv").write_text("task,price\n" + "".join(f"{t},3\n" for t in TASKS))
    board(sh, "small", 60, "--price", "small.csv")
    assert {r["price"] for r in sh.rows("ask", "small")} == {"3.0"}
    (tmp_path / "new.csv").write_text("model,price\nm10,7\n")
    sh("extend", "rows", "--rows", "new.csv", ok=False)
    assert "there are prices of entry for 10 rows, and 11 rows with the new ones" in sh.said
    sh("extend", "rows", "--rows", "new.csv", "--price", "rows:price", "--budget", 60)
    assert {r["price"] for r in sh.rows("ask", "rows", "--row", "m10", "--limit", 1)} == {"7.0"}
    (tmp_path / "short.csv").write_text("task,price\nt0,3\n")
    words = ("--rows", "models.csv", "--cols", "tasks.csv", "--budget", 9)
    sh("create", "x", "--plan", "most-informative", *words, "--price", "short.csv", ok=False)
    assert "short.csv has no price of 't1'; 7 of 8 cols are missing" in sh.said
    sh(
        "create",
        "x",
        "--plan",
        "most-informative",
        *words,
        "--price",
        "rows:price",
        "--price",
        "cols:minutes",
        ok=False,
    )
    assert "--price-rule" in sh.said


def test_a_judge_that_takes_names(sh, tmp_path):
    (tmp_path / "judge.py").write_text(
        "import sys\nrow, col = sys.argv[1:]\nassert row[0] == 'm' and col[0] == 't'\n"
        "print('thinking')\nprint(int(row[1:]) + int(col[1:]))\n"
    )
    board(sh, "board", 6)
    import sys

    sh("work", "board", "--command", f"{sys.executable} judge.py {{row}} {{col}}", "--timeout", 30)
    now = sh.status("board")
    assert now["state"] in ("finished", "exhausted")
    assert now["reason"] or now["state"]
    assert all(
        int(r["row"][1:]) + int(r["col"][1:]) == float(r["value"]) for r in sh.rows("log", "board")
    )


@pytest.mark.slow
def test_a_judge_that_breaks_gives_its_questions_back(sh, tmp_path):
    (tmp_path / "bad_judge.py").write_text(
        "def judge(row, col):\n    raise OSError('no quota left')\n"
    )
    board(sh, "board", 6)
    sh("work", "board", "--oracle", "bad_judge:judge", "--entry", "--retries", 1, ok=False)
    assert "the oracle raised OSError: no quota left" in sh.said
    assert "stopped after 3 failures in a row" in sh.said
    now = sh.status("board")
    assert (now["answered"], now["leased"], now["spent"]) == (0, 0, 0.0)
    assert "none out" in now["sentence"]
    import sys

    (tmp_path / "mute.py").write_text("raise SystemExit(3)\n")
    command = f"{sys.executable} mute.py {{row}} {{col}}"
    sh("work", "board", "--command", command, "--timeout", 30, "--retries", 0, ok=False)
    assert "ended with 3: no word; worker" in sh.said
    assert "stopped after 3 failures in a row, and its questions were given back" in sh.said
    assert sh.status("board")["leased"] == 0


@pytest.mark.slow
def test_a_typo_in_last_weeks_file(sh, tmp_path):
    board(sh, "board", 60)
    first = sh.rows("ask", "board", "--worker", "ann", "--limit", 12)
    sh("tell", "board", told(tmp_path, first))
    second = sh.rows("ask", "board", "--worker", "ann", "--limit", 12)
    slip = second[0]
    sh("tell", "board", told(tmp_path, second, wrong=75.0))
    bench = sh.rows("ask", "board", "--worker", "bob", "--limit", 10)
    sh("status", "board")
    sh("amend", "board", slip["id"], truth(slip["row"], slip["col"]))
    assert f"{len(bench)} questions out" in sh.said
    sh("tell", "board", told(tmp_path, bench))  # what was on the bench counts
    assert sh.status("board")["answered"] >= 24 + len(bench)
    values = [r["value"] for r in sh.rows("log", "board") if r["id"] == slip["id"]]
    assert "75.0" in values
    sh("check", "board")


@pytest.mark.slow
def test_voiding_dropping_adding_and_changing(sh, tmp_path):
    board(sh, "board", 40)
    first = sh.rows("ask", "board", "--worker", "ann", "--limit", 10)
    sh("tell", "board", told(tmp_path, first))
    sh("void", "board", first[0]["id"])
    sh("drop", "board", "--row", "m0")
    (tmp_path / "extra.csv").write_text(
        f"row,col,value\nm5,t5,{truth('m5', 't5')!r}\nm6,t6,{truth('m6', 't6')!r}\n"
    )
    sh("add", "board", "extra.csv")
    sh("change", "board", "--price", "entry=2")
    assert sh.status("board")["epoch"] == 4
    asked = sh.rows("ask", "board", "--limit", 10)
    assert "m0" not in {r["row"] for r in asked}
    assert {r["price"] for r in asked} == {"2.0"}
    assert not {("m5", "t5"), ("m6", "t6")} & {(r["row"], r["col"]) for r in asked}
    sh("tell", "board", told(tmp_path, asked))
    sh("check", "board")
    sh("delete", "board", ok=False)
    assert "--yes" in sh.said
    sh("delete", "board", "--yes")


def test_workbooks_go_out_and_come_back(sh, tmp_path):
    pytest.importorskip("xlsxwriter")
    openpyxl = pytest.importorskip("openpyxl")
    board(sh, "board", 20)
    sh("ask", "board", "--limit", 4, "--out", "todo.xlsx")
    book = openpyxl.load_workbook(tmp_path / "todo.xlsx")
    sheet = book.active
    head = [cell.value for cell in sheet[1]]
    for line in sheet.iter_rows(min_row=2):
        row, col = (line[head.index(k)].value for k in ("row", "col"))
        line[head.index("value")].value = truth(row, col)
    book.save(tmp_path / "done.xlsx")
    sh("tell", "board", "done.xlsx")
    assert sh.status("board")["answered"] == 4


def test_who_opened_a_study_before_it_grew_may_tell_its_new_rows(desk):
    from entrywise.study import Study

    study = desk.create(
        "grows", plan="most-informative", rows=MODELS, cols=TASKS, seed=1, budget=60.0
    )
    early = Study.open(desk.url, study.name)
    assert early.labels.rows == MODELS
    study.extend(rows=["m10"], budget=10.0)
    asked = study.ask(2, rows=["m10"])
    assert {q.row for q in asked} == {"m10"}
    assert early.tell([(q.row, q.col, truth(q.row, q.col)) for q in asked]) == len(asked)
    with pytest.raises(ValueError, match="no row is labelled 'm99'"):
        early.tell([("m99", "t0", 1.0)])


def run(sh, *words, ok=True):
    """Run any command, and return what it printed."""
    code = 0
    try:
        run_command(lambda: app([*map(str, words)], standalone_mode=False))
    except SystemExit as end:
        code = int(end.code or 0)
    out, sh.said = sh.capsys.readouterr()
    assert (code == 0) == ok, f"exit code {code}: {sh.said}"
    return out


def leaderboard(sh, name, *words):
    files = ("--rows", "models.csv", "--cols", "tasks.csv", "--seed", 1)
    return run(sh, "leaderboard", "create", sh.url, "--name", sh.prefix + name, *files, *words)


@pytest.mark.slow
def test_all_models_are_judged_and_one_is_new(sh, tmp_path):
    known = "model,task,score\n" + "".join(
        f"{m},{t},{truth(m, t)!r}\n" for m in MODELS[:-1] for t in TASKS
    )
    (tmp_path / "history.csv").write_text(known)
    leaderboard(sh, "board", "--known", "history.csv", "--budget", 6, "--price", "cols:minutes",
                "--currency", "EUR")  # fmt: skip
    assert "6 EUR to spend" in sh.said
    asked = sh.rows("ask", "board")
    assert asked
    assert {r["row"] for r in asked} == {"m9"}  # what is known is not bought again
    assert {r["price"] for r in asked} == {"2.0"}
    sh("tell", "board", told(tmp_path, asked))
    while sh.status("board")["state"] == "open":
        sh("tell", "board", told(tmp_path, sh.rows("ask", "board")))
    board_ = run(sh, "leaderboard", "report", sh.url, "--name", sh.prefix + "board", "-f", "csv")
    scores = {r["model"]: float(r["score"]) for r in csv.DictReader(io.StringIO(board_))}
    means = {m: np.mean([truth(m, t) for t in TASKS]) for m in MODELS}
    for model in MODELS[:-1]:
        assert scores[model] == pytest.approx(means[model], abs=1e-9)
    assert sh.status("board")["spent"] <= 6.0


def test_a_leaderboard_takes_prices_of_its_rows_and_says_so_when_it_does_not(sh, tmp_path):
    leaderboard(sh, "free", "--budget", 30)
    assert "every cell costs 1; models.csv has a column 'price'" in sh.said
    assert "--price rows:price" in sh.said
    leaderboard(sh, "priced", "--budget", 30, "--price", "rows:price")
    prices = {r["row"]: float(r["price"]) for r in sh.rows("ask", "priced")}
    assert prices == {m: 1.0 + int(m[1:]) % 3 for m in prices}
    (tmp_path / "new.csv").write_text("model,price\nm10,7\n")
    add = ("leaderboard", "add", sh.url, "--name", sh.prefix + "priced", "--rows", "new.csv")
    run(sh, *add, "--budget", 20, ok=False)
    assert "price" in sh.said
    run(sh, *add, "--budget", 20, "--price", "rows:price")
    asked = sh.rows("ask", "priced", "--row", "m10", "--limit", 2)
    assert {r["price"] for r in asked} == {"7.0"}


@pytest.mark.slow
def test_a_leaderboard_is_reported_after_its_first_batch_and_shown_as_a_table_at_its_end(
    sh, tmp_path
):
    leaderboard(sh, "board", "--budget", 26)
    sh("tell", "board", told(tmp_path, sh.rows("ask", "board")))
    report = ("leaderboard", "report", sh.url, "--name", sh.prefix + "board")
    early = run(sh, *report)
    assert all(model in early for model in MODELS)
    while sh.status("board")["state"] == "open":
        sh("tell", "board", told(tmp_path, sh.rows("ask", "board")))
    assert sh.status("board")["state"] in ("finished", "exhausted")
    for format in ("table", "csv", "json"):
        assert "26" in sh("result", "board", "-f", format)  # what it cost
        assert "m0" in run(sh, *report, "-f", format)


PLATE = '{"size": 12, "per": "col", "replicates": 2}'


def test_a_robot_runs_one_plate_at_a_time(sh, tmp_path):
    board(sh, "board", 60, "--plate", PLATE)
    robot = sh.rows("ask", "board", "--limit", 7, "--worker", "robot")
    if len(robot) < 7:
        assert f"{len(robot)} of 7: plates are handed out whole, and this plate uses" in sh.said
    hand = sh.rows("ask", "board", "--limit", 1, "--worker", "hand")
    assert len(hand) > 1  # whole, though one was asked for
    more = sh.rows("ask", "board", "--limit", 12, "--worker", "more")
    assert len(more) <= 12
    for asked in (robot, hand, more):
        for number in {r["plate"] for r in asked}:
            plate = [r for r in asked if r["plate"] == number]
            assert len({r["col"] for r in plate}) == 1
            assert [r["well"] for r in plate] == [f"A{k:02}" for k in range(1, len(plate) + 1)]
            rows = [r["row"] for r in plate]
            assert all(rows.count(row) == 2 for row in rows)
    hands = [{r["plate"] for r in asked} for asked in (robot, hand, more)]
    assert len(hands[0]) == len(hands[1]) == 1
    assert len(set.union(*hands)) == sum(map(len, hands))  # no plate is in two hands
    count = len(robot) + len(hand) + len(more)
    assert sh.status("board")["leased"] == count
    for asked in (robot, hand, more):
        sh("tell", "board", told(tmp_path, asked))
    assert sh.status("board")["spent"] == count  # every well is paid
    sh("check", "board")


@pytest.mark.slow
def test_a_robot_that_runs_full_plates_is_given_full_plates(sh, tmp_path):
    board(sh, "board", 48, "--plate", '{"size": 8, "per": "col", "fill": 1.0}')
    targets = []
    for limit, comes in ((8, 8), (20, 16), (8, 8), (8, 8), (8, 8)):
        asked = sh.rows("ask", "board", "--limit", limit, "--worker", "robot")
        assert len(asked) == comes
        assert f"{comes} of {limit}: " in sh.said or comes == limit  # never in silence
        for number in sorted({r["plate"] for r in asked}):
            plate = [r for r in asked if r["plate"] == number]
            assert [r["well"] for r in plate] == [f"A{k:02}" for k in range(1, 9)]
            assert len({r["row"] for r in plate}) == 8
            (target,) = {r["col"] for r in plate}
            targets.append(target)
        sh("tell", "board", told(tmp_path, asked))
    assert len(set(targets)) == len(targets) == 6  # a target each, while some are untouched
    assert sh.status("board")["state"] == "finished"
    assert sh.status("board")["spent"] == 48.0


@pytest.mark.slow
def test_an_implausible_answer_is_kept_and_flagged_with_what_to_type(sh, tmp_path):
    board(sh, "board", 60)
    for _ in range(3):
        sh("tell", "board", told(tmp_path, sh.rows("ask", "board", "--limit", 12)))
    before = sh.status("board")["answered"]
    assert sh.status("board")["implausible"] == []
    asked = sh.rows("ask", "board", "--limit", 6)
    slip = asked[0]
    sh("tell", "board", told(tmp_path, asked, wrong=75.0))
    amend = f"entrywise study amend {sh.url} {sh.prefix}board {slip['id']}"
    assert f"({slip['row']}, {slip['col']}) = 75 is far from" in sh.said
    assert amend in sh.said
    now = sh.status("board")
    assert [odd["id"] for odd in now["implausible"]] == [slip["id"]]
    assert now["answered"] == before + len(asked)  # kept
    sh("status", "board")
    assert amend in sh.said
    sh("amend", "board", slip["id"], 750.0)  # a second slip
    assert f"({slip['row']}, {slip['col']}) = 750 is far from" in sh.said
    sh("amend", "board", slip["id"], truth(slip["row"], slip["col"]))
    assert sh.status("board")["implausible"] == []


@pytest.mark.slow
def test_a_function_that_takes_names_and_a_log_that_is_known_elsewhere(sh, tmp_path):
    (tmp_path / "named_judge.py").write_text(
        "def judge(row, col):\n    assert row[0] == 'm' and col[0] == 't'\n"
        "    return int(row[1:]) + int(col[1:])\n"
    )
    board(sh, "board", 12)
    sh("work", "board", "--oracle", "named_judge:judge", "--entry")
    lines = sh.rows("log", "board")
    assert all(int(r["row"][1:]) + int(r["col"][1:]) == float(r["value"]) for r in lines)
    (tmp_path / "log.csv").write_text(sh("log", "board", "-f", "csv"))
    board(sh, "again", 12, "--known", "log.csv")
    assert sh.status("again")["known"] == len(lines)
    bought = {(r["row"], r["col"]) for r in lines}
    assert not bought & {(r["row"], r["col"]) for r in sh.rows("ask", "again")}


def test_a_reserve_too_small_for_its_intervals_is_said_at_once(sh, tmp_path):
    board(sh, "board", 60, "--reserve", "0.2")
    assert "80 cells are too few for one, leave it out" in sh.said
    (tmp_path / "models.csv").write_text("model\n" + "".join(f"m{k}\n" for k in range(60)))
    (tmp_path / "tasks.csv").write_text("task\n" + "".join(f"t{k}\n" for k in range(40)))
    board(sh, "small", 900, "--reserve", "0.05")
    assert "cells, and its intervals need 100: a share of" in sh.said
    share = sh.said.split("a share of ")[1].split()[0]
    board(sh, "enough", 900, "--reserve", share)
    assert "intervals need" not in sh.said
    board(sh, "poor", 60, "--reserve", "0.05")
    assert "at this share a budget of" in sh.said
