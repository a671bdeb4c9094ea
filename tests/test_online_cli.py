"""``entrywise online``: lines in, predictions out, bad lines, the journal, and a kill."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from entrywise.cli._votes import summary
from entrywise.cli.app import app
from entrywise.estimators import BinaryStream
from entrywise.exceptions import DataError, ParameterError, StoreError
from entrywise.gallery import bicluster_trials

VOTES = [
    {"row": f"u{i}", "col": f"i{j}", "label": y > 0}
    for i, j, y in bicluster_trials(9, 8, 3, 3, 0.05, seed=8)
]

ENTRYWISE = [sys.executable, "-c", "from entrywise.cli.app import main; main()"]


def text(votes):
    return "".join(json.dumps(v) + "\n" for v in votes)


def run(*args, **extra):
    return CliRunner().invoke(app, ["online", *map(str, args)], **extra)


def wanted(votes, learner="auto"):
    return BinaryStream(learner).follow(votes, [v["label"] for v in votes]).tolist()


def test_a_line_out_for_a_line_in(tmp_path):
    path = tmp_path / "votes.jsonl"
    path.write_text(text(VOTES))
    done = run(path)
    assert done.exit_code == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [x["prediction"] for x in lines] == wanted(VOTES)
    assert all(
        x["mistake"] == (x["prediction"] != v["label"]) for x, v in zip(lines, VOTES, strict=True)
    )
    mistakes = sum(x["mistake"] for x in lines)
    assert f"{mistakes} mistakes in {len(VOTES)} labels, 9 rows x 8 columns" in done.stderr


def test_stdin_gzip_and_formats(tmp_path):
    path = tmp_path / "votes.jsonl.gz"
    path.write_bytes(gzip.compress(text(VOTES[:20]).encode()))
    table = run(path, "--format", "csv", "--learner", "matrix-winnow", "--param", "gamma=1")
    assert table.stdout.splitlines()[0] == "row,col,prediction,label,mistake"
    piped = run("-", "--learner", "matrix-winnow", "--param", "gamma=1", input=text(VOTES[:20]))
    said = [json.loads(line)["prediction"] for line in piped.stdout.splitlines()]
    assert [line.split(",")[2] for line in table.stdout.splitlines()[1:]] == [
        str(x).lower() for x in said
    ]
    assert "Predictions" in run("-", "--format", "table", input=text(VOTES[:3])).stdout
    assert "bound" in piped.stderr


def test_lines_without_a_label_are_predicted_only():
    asked = [{"row": "u0", "col": "i0"}, *VOTES[:5], {"row": "u0", "col": "i0", "label": None}]
    done = run("-", input=text(asked))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 7
    assert "mistake" not in lines[0]
    assert "5 labels" in done.stderr


def test_other_names_for_the_labels():
    votes = [{**v, "label": "pass" if v["label"] else "fail"} for v in VOTES[:30]]
    done = run("-", "--labels", "pass,fail", input=text(votes))
    assert [json.loads(line)["prediction"] for line in done.stdout.splitlines()] == wanted(
        VOTES[:30]
    )
    with pytest.raises(ParameterError, match="two different labels"):
        run("-", "--labels", "pass", input="", catch_exceptions=False)


BAD = [
    ('{"row": "a", "col"', "must be JSON"),
    ('["a", "b", true]', 'with "row" and "col"'),
    ('{"row": -1, "col": 0, "label": true}', "not below 0, got -1"),
    ('{"row": "a", "col": "b", "label": "maybe"}', "true or false"),
    ('{"row": "a", "col": "b", "label": 2}', "true or false"),
    ('{"row": null, "col": "b", "label": 1}', "row must be"),
]


@pytest.mark.parametrize(("line", "words"), BAD)
def test_bad_lines_are_named_and_left_out_or_stop_the_stream(line, words):
    stream = text(VOTES[:3]) + line + "\n" + text(VOTES[3:6])
    done = run("-", input=stream)
    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == 6
    assert "stdin line 4: " in done.stderr
    assert words in done.stderr.replace("\n", " ")
    assert "1 bad lines were left out" in done.stderr
    with pytest.raises(DataError, match="stdin line 4"):
        run("-", "--strict", input=stream, catch_exceptions=False)


def test_what_came_before_the_end_of_a_stream_is_answered_and_kept(tmp_path):
    """A bad line with --strict, a compressed file that was cut, bytes that are not text: never the lines before."""
    votes, journal = tmp_path / "votes.jsonl", tmp_path / "votes.log"
    votes.write_text(text(VOTES[:30]) + "{broken\n" + text(VOTES[30:]))
    done = run(votes, "--strict", "--journal", journal)
    assert done.exit_code != 0
    assert len(done.stdout.splitlines()) == 30
    assert journal.read_text() == text(VOTES[:30])
    assert run(votes, "--strict", "--format", "table").stdout.count("u") >= 30

    whole = gzip.compress(text(VOTES).encode(), mtime=0)
    cut = tmp_path / "votes.jsonl.gz"
    cut.write_bytes(whole[: len(whole) * 3 // 4])
    with pytest.raises(DataError, match=r"the input breaks off after line \d+"):
        run(cut, "--journal", tmp_path / "cut.log", catch_exceptions=False)
    kept = (tmp_path / "cut.log").read_text()
    assert kept
    assert text(VOTES).startswith(kept)

    votes.write_bytes(
        text(VOTES[:3]).encode()
        + b'{"row": "\xff", "col": 1, "label": 1}\n'
        + text(VOTES[3:5]).encode()
    )
    done = run(votes)
    assert len(done.stdout.splitlines()) == 5
    assert "line 4: must be UTF-8 text, byte 9 is not; left out" in done.stderr.replace("\n", " ")


def test_a_snapshot_knows_which_labels_of_the_journal_it_holds(tmp_path):
    """Made without the journal, then killed with it: the journal's labels are learnt again, all of them."""
    snapshot, journal = tmp_path / "state.npz", tmp_path / "votes.log"
    run("-", "--snapshot", snapshot, input=text(VOTES[:30]))
    journal.write_text(text(VOTES[30:45]))  # what a killed run left
    done = run("-", "--snapshot", snapshot, "--journal", journal, input=text(VOTES[45:50]))
    assert "15 labels learnt again" in done.stderr
    assert [json.loads(line)["prediction"] for line in done.stdout.splitlines()] == wanted(
        VOTES[:50]
    )[45:]
    done = run("-", "--snapshot", snapshot, "--journal", journal, input=text(VOTES[50:60]))
    assert "0 labels learnt again" in done.stderr
    assert [json.loads(line)["prediction"] for line in done.stdout.splitlines()] == wanted(
        VOTES[:60]
    )[50:]


def test_numbers_may_be_written_without_a_zero():
    done = run("-", "--learner", "matrix-winnow", "--param", "gamma=.5", input=text(VOTES[:9]))
    assert done.exit_code == 0
    assert "if some embedding separates all labels with margin 0.5" in done.stderr.replace(
        "\n", " "
    )


def test_a_bound_that_was_broken_says_so():
    lines = "".join(f'{{"row": 0, "col": 0, "label": {k % 2}}}\n' for k in range(400))
    done = run("-", "--learner", "matrix-winnow", "--param", "gamma=1", input=lines)
    assert "so none does" in done.stderr.replace("\n", " ")


def test_a_third_label_is_named():
    lines = "".join(
        f'{{"row": {k}, "col": 0, "label": {y}}}\n' for k, y in enumerate((1, -1, 0, -1, 1))
    )
    done = run("-", input=lines)
    assert len(done.stdout.splitlines()) == 4
    assert "line 3: a stream has two labels, this is a third: 0 beside -1" in done.stderr.replace(
        "\n", " "
    )


@pytest.mark.parametrize("name", ["9" * 5000, "[" * 100_000, '"\\ud800"'])
def test_lines_that_break_a_reader_are_left_out(name):
    done = run("-", input=f'{{"row": {name}, "col": 0, "label": 1}}\n' + text(VOTES[:2]))
    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == 2
    assert "stdin line 1: " in done.stderr


def test_contradictory_repeats_are_counted_and_reported():
    votes = [VOTES[0], {**VOTES[0], "label": not VOTES[0]["label"]}, VOTES[1], VOTES[1]]
    done = run("-", input=text(votes))
    assert "2 labels of entries that had one before, 1 of them contradictory" in done.stderr


def test_journal_and_snapshot_bring_everything_back(tmp_path):
    journal, snapshot = tmp_path / "votes.log", tmp_path / "state.npz"
    whole = wanted(VOTES)
    first = run("-", "--journal", journal, "--snapshot", snapshot, input=text(VOTES[:30]))
    assert journal.read_text() == text(VOTES[:30])
    second = run("-", "--journal", journal, "--snapshot", snapshot, input=text(VOTES[30:40]))
    assert "a state after 30 labels" in second.stderr
    with journal.open("a") as file:
        file.write('{"row": "u1", "co')  # cut short by a kill
    third = run("-", "--journal", journal, input=text(VOTES[40:]))
    assert "cut short" in third.stderr
    assert "40 labels learnt again" in third.stderr
    with pytest.raises(ParameterError, match="made by --learner auto"):
        run("-", "--snapshot", snapshot, "--learner", "doubling", input="", catch_exceptions=False)
    said = [
        json.loads(x)["prediction"]
        for done in (first, second, third)
        for x in done.stdout.splitlines()
    ]
    assert said == whole
    assert journal.read_text() == text(VOTES)


def test_resume_does_not_append_twice(tmp_path):
    journal, path = tmp_path / "votes.log", tmp_path / "votes.jsonl"
    run("-", "--journal", journal, input=text(VOTES[:25]))
    path.write_text(text(VOTES))
    done = run(path, "--journal", journal, "--resume")
    assert [json.loads(line)["prediction"] for line in done.stdout.splitlines()] == wanted(VOTES)
    assert journal.read_text() == text(VOTES)
    path.write_text(text(VOTES[5:]))
    with pytest.raises(StoreError, match="label 1 of"):
        run(path, "--journal", journal, "--resume", catch_exceptions=False)
    with pytest.raises(ParameterError, match="goes with --journal"):
        run(path, "--resume", catch_exceptions=False)


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 17])
def test_a_kill_loses_no_answered_label(tmp_path, after):
    journal = tmp_path / "votes.log"
    command = [*ENTRYWISE, "online", "-", "--learner", "matrix-winnow", "--journal", str(journal)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    answered = []
    process.stdin.write(text(VOTES))
    process.stdin.flush()
    for _ in range(after):
        answered.append(json.loads(process.stdout.readline())["prediction"])
    process.kill()
    process.wait()
    kept = [json.loads(line) for line in journal.read_text().splitlines() if line.endswith("}")]
    assert len(kept) >= after
    assert kept == VOTES[: len(kept)]
    again = run(
        "-", "--learner", "matrix-winnow", "--journal", journal, input=text(VOTES[len(kept) :])
    )
    assert again.exit_code == 0
    rest = [json.loads(line)["prediction"] for line in again.stdout.splitlines()]
    whole = wanted(VOTES, "matrix-winnow")
    assert answered == whole[:after]
    assert rest == whole[len(kept) :]
    assert journal.read_text() == text(VOTES)


def test_two_processes_do_not_share_a_journal(tmp_path):
    from entrywise.cli._votes import Journal

    held = Journal(tmp_path / "votes.log", print)
    with pytest.raises(StoreError, match="in use"):
        Journal(tmp_path / "votes.log", print)
    held.close()
    Journal(tmp_path / "votes.log", print).close()


def test_one_sentence_and_exit_code_1(tmp_path):
    command = [*ENTRYWISE, "online", str(tmp_path / "missing.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no such file" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_a_table_is_a_stream_too(tmp_path, mark):
    path = tmp_path / "votes.csv"
    lines = [mark.join(("user", "item", "label"))]
    lines += [mark.join((v["row"], v["col"], str(v["label"]).lower())) for v in VOTES]
    path.write_text("\n".join([*lines, mark.join(("u0", "i0", ""))]) + "\n")
    done = run(path)
    assert done.exit_code == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [x["prediction"] for x in found[:-1]] == wanted(VOTES)
    assert "mistake" not in found[-1]


def test_a_stream_of_bad_lines_is_stopped_early():
    lines = "".join(f"u{k},i{k},maybe\n" for k in range(3000))
    done = run("-", input="row,col,label\n" + lines)
    assert done.exit_code == 1
    assert len(done.stderr.splitlines()) <= 30
    assert "after 10 other bad lines; --skip leaves out more" in str(done.exception)
    none = run("-", input="alpha,beta\n" + lines)
    assert none.exit_code == 1
    assert "stdin line 1: must be JSON lines, or a table" in str(none.exception)
    more = run("-", "--skip", "3000", input="row,col,label\n" + lines)
    assert more.exit_code == 0
    assert "3,000 bad lines were left out" in more.stderr


@pytest.mark.slow
def test_a_bound_that_says_nothing_says_so_and_the_regret_is_told():
    few, many = BinaryStream(), BinaryStream()
    rng = np.random.default_rng(0)
    for k in range(60):
        few.learn_one({"row": k, "col": k % 7}, bool(rng.random() < 0.5))
    assert "says nothing here, being not below the number of labels" in summary(few)
    assert "its best single learner" in summary(few)
    for k in range(1500):
        many.learn_one({"row": k % 30, "col": k // 30 % 10}, bool((k % 2) ^ (k // 30 % 2)))
    assert "says nothing" not in summary(many)
    assert many.state.report["regret"] == many.mistakes - many.state.losses.min()
