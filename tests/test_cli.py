"""The front door, the demo and the kernel command."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from commands import entrywise
from entrywise import PSDFactor


@pytest.mark.slow
def test_the_demo_shows_what_it_promises(tmp_path):
    done = entrywise(
        "demo", "kernel", "--columns", 20, "--format", "json", "--out", tmp_path / "demo.png"
    )
    assert done.returncode == 0, done.stderr
    rows = {row["rule"]: row for row in json.loads(done.stdout)}
    greedy, random = rows["adaptive (greedy)"], rows["random columns"]
    assert greedy["entries asked"] == random["entries asked"] == 1797 * 21 - 210
    for row in rows.values():
        assert row["certified max error"] == pytest.approx(row["true max error"], rel=1e-6)
    assert greedy["true max error"] < random["true max error"]
    assert (tmp_path / "demo.png").stat().st_size > 10_000
    assert "picture:" in done.stderr


def test_kernel_writes_factors(tmp_path):
    X = np.random.default_rng(0).standard_normal((60, 2))
    np.save(tmp_path / "p.npy", X)
    np.savetxt(tmp_path / "p.csv", X, delimiter=",", header="x,y", comments="")
    for name in ("p.npy", "p.csv"):
        done = entrywise(
            "kernel", tmp_path / name, "--max-error", 0.05, "--gamma", 0.5, "--format", "json"
        )
        assert done.returncode == 0, done.stderr
        row = json.loads(done.stdout)[0]
        found = PSDFactor.load(row["factor"])
        K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))
        assert np.abs(K - found.to_dense()).max() <= 0.05 + 1e-6
        assert row["entries"] == found.cost
    stdin = entrywise(
        "kernel",
        "-",
        "--rank",
        3,
        "--format",
        "csv",
        input=(tmp_path / "p.csv").read_text(),
        cwd=tmp_path,
    )
    assert stdin.stdout.splitlines()[1].startswith("60,3,")
    exhausted = entrywise("kernel", tmp_path / "p.npy", "--budget", 200, "--format", "json")
    assert json.loads(exhausted.stdout)[0]["status"] == "exhausted"
    assert json.loads(exhausted.stdout)[0]["entries"] <= 200


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["kernel", "{}/p.csv"], "one of --rank, --max-error and --budget"),
        (["kernel", "{}/none.npy", "--rank", "2"], "no such file"),
        (["kernel", "{}/p.csv", "--rank", "9"], "--rank must be in 0..2"),
        (["kernel", "{}/p.csv", "--rank", "1", "--kernel", "best"], "kernel must be one of rbf"),
        (["kernel", "{}/p.csv", "--rank", "1", "--kernel", "precomputed"], "must be square"),
        (["kernel", "{}/t.csv", "--rank", "1"], "every column must hold numbers, 'y' does not"),
        (["kernel", "{}/e.csv", "--rank", "1"], "empty"),
        (["kernel", "{}/nan.npy", "--rank", "1"], "point 0, coordinate 1, is nan"),
        (["methods", "elsewhere"], "room must be passive, active, online"),
        (["reproduce", "nothing"], "paper must be one of"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_1(tmp_path, args, words):
    (tmp_path / "p.csv").write_text("x,y,z\n1,2,3\n4,5,6\n")
    (tmp_path / "t.csv").write_text("x,y\n1,a\n")
    (tmp_path / "e.csv").write_text("")
    np.save(tmp_path / "nan.npy", np.array([[0.0, np.nan]]))
    before = sorted(p.name for p in tmp_path.iterdir())
    done = entrywise(*(a.format(tmp_path) for a in args), cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert words in done.stderr
    assert done.stdout == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == before


@pytest.mark.slow
def test_a_process_of_its_own_ends_the_same_way():
    command = [sys.executable, "-m", "entrywise", "methods", "elsewhere"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == entrywise("methods", "elsewhere").stderr


def test_methods_version_and_completion(monkeypatch):
    listed = entrywise("methods", "active", "--format", "csv")
    assert "adaptive-nystrom,active," in listed.stdout
    assert entrywise("--version").stdout.strip().count(".") == 2
    # which shell stands above the tests is not theirs to say
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "bash"))
    assert "complete" in entrywise("--show-completion").stdout


def test_user_text_is_never_markup_and_control_characters_are_shown(tmp_path):
    (tmp_path / "g.csv").write_text(
        "winner,loser\nc1cc[nH]c1,[/x]\n[bold]a,\x1b[31mred\n[/x],\x1b[31mred\n"
    )
    wide = {"COLUMNS": "200"}
    done = entrywise("rank", tmp_path / "g.csv", "--format", "table", env=wide)
    assert done.returncode == 0, done.stderr
    for label in ("c1cc[nH]c1", "[/x]", "[bold]a", r"\x1b[31mred"):
        assert label in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    plain = entrywise("rank", tmp_path / "g.csv", "--format", "csv")
    assert "\x1b[31mred" in plain.stdout  # a file makes round trips as it is
    missing = entrywise("rank", tmp_path / "[red]no[/x].csv")
    assert "[red]no[/x].csv: no such file" in missing.stderr
    assert missing.returncode == 1


@pytest.mark.parametrize(
    ("text", "winner"),
    [
        ("model_a,model_b,winner\na,b,model_a\na,b,tie\nb,a,model_b\nb,c,tie (bothbad)\n", "a"),
        ("model_a;model_b;winner\nb;a;model_b\nb;a;model_b\n", "a"),
    ],
)
def test_rank_reads_arena_files(tmp_path, text, winner):
    (tmp_path / "battles.csv").write_text(text)
    done = entrywise("rank", tmp_path / "battles.csv", "--format", "json")
    assert done.returncode == 0, done.stderr
    items = [row["item"] for row in json.loads(done.stdout)]
    assert items[0] == winner
    assert not any("tie" in item or "model" in item for item in items)


@pytest.mark.parametrize("text", ["[/x]", "１x2", "1_0x3", "1" * 40 + "x2", "80"])
def test_shapes_are_two_plain_numbers(text):
    from entrywise.cli._options import shape_of
    from entrywise.exceptions import ParameterError

    with pytest.raises(ParameterError, match="--shape must be"):
        shape_of(text)


def test_one_table_in_many_dialects_through_the_commands(tmp_path):
    """Semicolons worked in complete and failed in subspace; a workbook is read where a CSV is."""
    from entrywise.tables import write_table

    rng = np.random.default_rng(0)
    lines = [[*row] for row in np.round(rng.standard_normal((12, 3)), 3).tolist()]
    write_table(tmp_path / "a.csv", ["x", "y", "z"], lines)
    write_table(tmp_path / "a.xlsx", ["x", "y", "z"], lines)
    text = (tmp_path / "a.csv").read_text()
    (tmp_path / "b.csv").write_text(text.replace(",", ";").replace(".", ","))
    (tmp_path / "c.tsv").write_text(text.replace(",", "\t"))
    for command in (("subspace", "-k", 1, "-f", "csv"), ("kernel", "--rank", 2, "-f", "csv")):
        said = set()
        for name in ("a.csv", "a.xlsx", "b.csv", "c.tsv"):
            out = ("--out", tmp_path / "out.npz")
            done = entrywise(command[0], tmp_path / name, *command[1:], *out)
            assert done.returncode == 0, done.stderr
            said.add(done.stdout)
        assert len(said) == 1


@pytest.mark.parametrize("columns", [80, 100, 132])
def test_no_word_of_a_table_is_broken_or_cut(columns):
    from typer.testing import CliRunner

    from entrywise.cli.app import app
    from entrywise.methods import METHODS

    shown = CliRunner(env={"COLUMNS": str(columns)}).invoke(app, ["methods", "active"]).output
    printed = shown.split()
    for method in METHODS:
        if method.room == "active":
            assert set(f"{method.paper} {method.guarantee}".split()) <= set(printed), method.name
