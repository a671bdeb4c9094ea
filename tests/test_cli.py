"""The front door, the demo and the kernel command."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from entrywise import PSDFactor


def entrywise(*args, **extra):
    return subprocess.run(
        [sys.executable, "-c", "from entrywise.cli.app import main; main()", *map(str, args)],
        capture_output=True, text=True, check=False, **extra,
    )  # fmt: skip


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


def test_methods_version_and_completion():
    listed = entrywise("methods", "active", "--format", "csv")
    assert "adaptive-nystrom,active," in listed.stdout
    assert entrywise("--version").stdout.strip().count(".") == 2
    assert "complete" in entrywise("--show-completion", "bash").stdout
