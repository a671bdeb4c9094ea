"""Advice: every kind of table is called by its name, with a command that runs."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

from entrywise import gallery
from entrywise.apply.advice import advise
from entrywise.cli.app import app


def long(A, mask, names=("compound", "target", "value")):
    lines = [",".join(names)]
    lines += [f"r{i},c{j},{A[i, j]:.6g}" for i, j in np.argwhere(mask)]
    return "\n".join(lines) + "\n"


def wide(A, mask=None):
    cells = np.where(np.ones(A.shape, bool) if mask is None else mask, A, np.nan)
    lines = ["name," + ",".join(f"t{j}" for j in range(A.shape[1]))]
    for i, row in enumerate(cells):
        lines.append(f"m{i}," + ",".join("" if np.isnan(x) else f"{x:.6g}" for x in row))
    return "\n".join(lines) + "\n"


def tables():
    rng = np.random.default_rng(5)
    low = gallery.random_low_rank(40, 30, 2, 0) + 0.1 * rng.standard_normal((40, 30))
    some = rng.random(low.shape) < 0.4
    large = gallery.random_low_rank(300, 200, 1, 1) + 0.1 * rng.standard_normal((300, 200))
    few = rng.random(large.shape) < 0.03
    products = np.outer(*gallery.random_rank_one(40, 30, 0)) * np.exp(
        0.02 * rng.standard_normal((40, 30))
    )
    kernel = gallery.random_psd(25, 4, 0)
    votes = [
        (f"q{i}", f"w{w}", "yes" if rng.random() < 0.7 else "no")
        for i in range(30)
        for w in range(4)
    ]
    games = [rng.permutation(8)[:2] for _ in range(60)]
    readings = [(i, j, "cheap" if (i + j) % 2 else "dear") for i in range(6) for j in range(6)]
    return {
        "sparse": ("sparse", long(large, few)),
        "long": ("table", long(low, some)),
        "wide": ("table", wide(low, some)),
        "ratings": ("levels", long(np.clip(np.round(3 + low), 1, 5), some, ("user", "film", "rating"))),
        "yes_no": ("binary", long((low > 0).astype(float), some)),
        "signs": ("binary", wide(np.where(low > 0, 1.0, -1.0), some)),
        "products": ("products", long(products, some)),
        "kernel": ("kernel", wide(kernel).replace("t", "m")),
        "full": ("complete", wide(low)),
        "crowd": ("crowd", "task,worker,label\n" + "\n".join(map(",".join, votes)) + "\n"),
        "games": ("comparisons", "winner,loser\n" + "\n".join(f"p{a},p{b}" for a, b in games) + "\n"),
        "arena": (
            "comparisons",
            "model_a,model_b,winner\n"
            + "\n".join(f"p{a},p{b},{('model_a', 'model_b', 'tie')[k % 3]}" for k, (a, b) in enumerate(games))
            + "\n",
        ),
        "instruments": (
            "two instruments",
            "row,col,instrument,value\n"
            + "\n".join(f"r{i},c{j},{k},{low[i, j]:.4g}" for i, j, k in readings)
            + "\n",
        ),
    }  # fmt: skip


def odd_tables():
    """Tables as people bring them, made up after the code was written."""
    rng = np.random.default_rng(7)
    seen = [(i, k) for i in range(60) for k in rng.permutation(5)[:3]]
    people = ("Ann", "Bob", "Cy", "Di", "Ed")
    words = rng.choice(["ok", "broken", "unclear"], len(seen))
    verdicts = [
        f"img_{i};{people[k]};{word};{rng.integers(2, 30)}"
        for (i, k), word in zip(seen, words, strict=True)
    ]
    tags = [f"p{i},{people[k]},{word}" for (i, k), word in zip(seen, words, strict=True)]
    games = [(*rng.permutation(9)[:2], rng.choice(["1-0", "0-1", "1/2-1/2"])) for _ in range(80)]
    points = 100 * rng.standard_normal((18, 2))
    far = np.linalg.norm(points[:, None] - points, axis=-1)
    apart = np.triu(rng.random(far.shape) < 0.3, 1)
    cities = wide(far, ~(apart | apart.T)).replace("t", "m").replace("name", "")
    opinion = 4 + rng.standard_normal((80, 1)) + rng.standard_normal((80, 12))
    likert = wide(np.clip(np.round(opinion), 1, 7), rng.random(opinion.shape) < 0.8)
    air = [
        f"2025-01-{d + 1:02}T{h:02}:00,S{k},{20 + 5 * np.sin(h / 4) + 3 * k + rng.standard_normal():.1f}"
        for d in range(5)
        for h in range(0, 24, 3)
        for k in range(6)
        if rng.random() < 0.8
    ]
    return {
        "verdicts": ("crowd", "image_id;annotator;verdict;seconds\n" + "\n".join(verdicts) + "\n"),
        "tags": ("crowd", "photo,person,tag\n" + "\n".join(tags) + "\n"),
        "chess": ("comparisons", "white,black,result\n" + "\n".join(f"P{a},P{b},{x}" for a, b, x in games) + "\n"),
        "distances": ("table", cities),
        "survey": ("levels", likert.replace("name", "respondent_id").replace("\nm", "\n10")),
        "air": ("table", "time,station,pm25\n" + "\n".join(air) + "\n"),
    }  # fmt: skip


TABLES = tables() | odd_tables()
SPARSE = pytest.param("sparse", marks=pytest.mark.slow)  # the largest table takes ten seconds


@pytest.mark.parametrize("name", [SPARSE if name == "sparse" else name for name in TABLES])
def test_a_table_is_called_by_its_name_and_the_command_runs(name, tmp_path, monkeypatch):
    kind, text = TABLES[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my table.csv").write_text(text)
    found = advise("my table.csv")
    assert found.kind == kind, str(found)
    words = shlex.split(found.command.split(" > ")[0])
    assert words[0] == "entrywise"
    if "rehearse" not in words:
        done = CliRunner().invoke(app, words[1:])
        assert done.exit_code == 0, done.output


def test_what_falls_apart_is_named_with_what_would_link_it(tmp_path):
    A = np.full((4, 4), np.nan)
    A[:2, :2] = [[1.5, 2.5], [3.25, 4.0]]
    A[2:, 2:] = [[5.5, 6.0], [7.0, 8.75]]
    (tmp_path / "apart.csv").write_text(wide(np.nan_to_num(A), ~np.isnan(A)))
    found = advise(tmp_path / "apart.csv")
    assert any("would link them" in words and "'m" in words for words in found.missing)


def test_how_to_read_it_is_said_and_said_on(tmp_path):
    rng = np.random.default_rng(0)
    rows = [",".join(f"{x:.0f}" for x in 10 * (i + 1) + rng.standard_normal(4)) for i in range(9)]
    rows[2] = rows[2].rsplit(",", 1)[0] + ","
    lines = [f"C{i},{row}" for i, row in enumerate(rows)]
    file = tmp_path / "years.csv"
    file.write_text("country,2019,2020,2021,2022\n" + "\n".join(lines) + "\n")
    refused = CliRunner().invoke(app, ["advise", str(file)])
    assert "--header yes" in str(refused.exception)
    found = advise(file, header="yes")
    assert found.command.endswith("years.csv --header yes > filled.csv")
    done = CliRunner().invoke(app, ["advise", str(file), "--header", "yes"])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("header", ["auto", "yes"])
def test_years_over_decimal_commas_and_parted_thousands_are_a_table(tmp_path, header):
    rng = np.random.default_rng(3)
    sales = 1000 * rng.gamma(2.0, 1.0, (20, 1)) * (1 + 0.1 * rng.standard_normal((20, 6)))
    lines = ["Filiale;" + ";".join(map(str, range(2018, 2024)))]
    for i, row in enumerate(sales):
        cells = [f"{x:,.1f}".translate(str.maketrans(",.", ".,")) for x in row]
        cells[i % 6] = ""
        lines.append(f"Filiale {i};" + ";".join(cells))
    file = tmp_path / "umsatz.csv"
    file.write_text("\n".join(lines) + "\n")
    found = advise(file, header=header)
    assert found.kind in ("table", "products")
    assert "read 20 x 6, 100 known: Filiale x columns" in found.says[0]
    done = CliRunner().invoke(app, shlex.split(found.command.split(" > ")[0])[1:])
    assert done.exit_code == 0, done.output


@pytest.mark.slow
def test_entries_that_stand_there_twice_are_averaged_and_said_so(tmp_path):
    lines = TABLES["long"][1].splitlines()
    file = tmp_path / "twice.csv"
    file.write_text("\n".join([*lines, lines[1].rsplit(",", 1)[0] + ",0.25"]) + "\n")
    found = advise(file)
    assert "more than once" in found.says[0]
    done = CliRunner().invoke(app, shlex.split(found.command.split(" > ")[0])[1:])
    assert done.exit_code == 0, done.output


def test_a_full_table_under_years_can_be_rehearsed_as_it_was_read(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.integers(10, 99, (12, 6))
    lines = [f"C{i}," + ",".join(map(str, row)) for i, row in enumerate(values)]
    file = tmp_path / "years.csv"
    file.write_text("country,2016,2017,2018,2019,2020,2021\n" + "\n".join(lines) + "\n")
    found = advise(file, header="yes")
    assert found.kind == "complete"
    words = [*shlex.split(found.command)[1:], "--budgets", "50%", "--repeats", "2"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output


def public_tables(folder, data):
    """Public data as people have them in files, chosen when the code was done: (kind, file)."""
    votes = np.load(data / "house_votes_84" / "house_votes_84.npz")["votes"].astype(float)
    board = np.load(data / "alpaca-eval" / "preferences.npz")["preference"][:, :60].astype(float)
    jokes = np.load(data / "jester_1" / "jester1.npz")["ratings_x100"][:80, :60] / 100.0
    pixels = np.load(data / "mnist2500" / "mnist2500.npz")["pixels"][:40] / 255.0
    kernel = np.exp(-0.01 * ((pixels[:, None] - pixels) ** 2).sum(-1))
    air = np.load(data / "beijing_air" / "beijing_air.npz")["values"][:120, :, 0].astype(float)
    kiba = np.load(data / "kiba" / "kiba.npz")
    some = kiba["drug"] < 60
    cells = zip(kiba["drug"][some], kiba["target"][some], kiba["score"][some], strict=True)
    made = {
        "house": ("binary", wide(votes, votes != 0)),
        "alpaca": ("complete", wide(board[:, ~np.isnan(board).any(axis=0)])),
        "jester": ("table", wide(jokes, np.abs(jokes) <= 10)),
        "digits": ("kernel", wide(kernel).replace("t", "m")),
        "air": ("table", wide(air, ~np.isnan(air))),
        "kiba": ("table", "drug,protein,kiba\n" + "".join(f"D{i},P{j},{y:.4f}\n" for i, j, y in cells)),
    }  # fmt: skip
    for name, (kind, text) in made.items():
        (folder / f"{name}.csv").write_text(text)
        yield kind, folder / f"{name}.csv"
    yield "levels", data / "movielens_100k" / "ratings.csv.gz"
    for name in ("rte", "web", "bluebird"):
        yield "crowd", data / "crowdsourcing" / f"{name}_labels.csv.gz"


@pytest.mark.slow
def test_public_tables_are_called_by_their_names(tmp_path, data_folder):
    told = [
        (kind, advise(file).kind, file.name) for kind, file in public_tables(tmp_path, data_folder)
    ]
    assert len(told) == 10
    assert [t for t in told if t[0] != t[1]] == []


def test_the_command_prints_it(tmp_path):
    (tmp_path / "t.csv").write_text(TABLES["long"][1])
    done = CliRunner().invoke(app, ["advise", str(tmp_path / "t.csv"), "--format", "json"])
    assert done.exit_code == 0, done.output
    assert '"next"' in done.stdout
