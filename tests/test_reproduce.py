"""What every reproduction shares: verdicts on intervals, work that goes on where it stopped, pages from what was kept."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from entrywise.cli.app import app
from entrywise.exceptions import ParameterError
from entrywise.reproduce import paper
from entrywise.reproduce.figures import Claim, Drawing, Figure, gap, mean_interval

PAPERS = sorted(paper.PAPERS)


def test_a_gap_is_judged_by_its_interval():
    rng = np.random.default_rng(0)
    b = rng.uniform(1.0, 2.0, 30)
    assert gap(b - 0.5, b).below is True
    assert gap(b + 0.5, b).below is False
    assert gap(b + rng.standard_normal(30), b).below is None
    assert gap(0.9 * b, b, ratio=True).middle == pytest.approx(0.9)
    assert gap([1.0], [2.0]).below is None
    assert str(gap([1.0], [2.0])) == "one run: none"


def test_the_interval_of_a_mean_is_students():
    from scipy.stats import t

    x = np.array([1.0, 2.0, 4.0, 7.0])
    low, high = t.interval(0.95, 3, loc=x.mean(), scale=x.std(ddof=1) / 2.0)
    assert mean_interval(x) == pytest.approx((3.5, low, high))


def test_work_that_is_cut_goes_on_where_it_stopped(tmp_path):
    made = []

    def make(key):
        if key == 3 and 3 not in made:
            made.append(3)
            raise KeyboardInterrupt
        made.append(key)
        return {"square": np.float64(key**2), "line": np.arange(key)}

    kept = tmp_path / "pieces.json"
    work = Drawing(tmp_path, kept=kept)
    with pytest.raises(KeyboardInterrupt):
        work.each("squares", range(5), make)
    work.save()
    again = Drawing(tmp_path, kept=kept)
    found = again.each("squares", range(5), make)
    assert made == [0, 1, 2, 3, 3, 4]
    assert found[4] == {"square": 16.0, "line": [0, 1, 2, 3]}
    other = Drawing(tmp_path, quick=False, kept=kept)  # another size: nothing of it is used
    other.each("squares", [0], make)
    assert made[-1] == 0


@pytest.fixture
def tiny(monkeypatch):
    """A paper of two figures, the second of which can be made to fail."""
    import entrywise.reproduce.rank_one as module

    drawn, broken = [], []

    def first(work):
        """The first figure."""
        drawn.append("a")
        (work.folder / "a.png").write_bytes(b"\x89PNG")
        size = ("50 runs", f"{work.runs(2, 10)} runs")
        return [Claim("a", "it holds", "1 < 2", np.True_, *size, "ratio 0.5 [0.4, 0.6]")]

    def second(work):
        """The second figure."""
        found = work.each("pieces", range(3), lambda k: drawn.append(f"b{k}"))
        if broken:
            raise KeyboardInterrupt
        return [Claim("b", "open | *star*", str(len(found)), None)]

    monkeypatch.setattr(module, "FIGURES", {"a": Figure(first, 1.0), "b": Figure(second, 2.0)})
    monkeypatch.setattr(module, "PICTURES", {"a": ["a.png"], "b": []})
    return drawn, broken


def run(*args):
    return CliRunner(env={"COLUMNS": "300"}).invoke(app, ["reproduce", *map(str, args)])


def test_verdicts_appear_and_a_quick_look_has_none(tiny, tmp_path):
    look = run("rank-one", "--quick", "--out", tmp_path, "--format", "csv")
    assert look.exit_code == 0, look.output
    rows = list(csv.DictReader(look.stdout.splitlines()))
    assert set(rows[0]) == {"figure", "claim", "ours", "found"}
    assert "holds" not in look.stdout.replace("it holds", "")
    full = run("rank-one", "--out", tmp_path, "--format", "csv")
    rows = list(csv.DictReader(full.stdout.splitlines()))
    assert [row["verdict"] for row in rows] == ["holds", "undecided"]
    assert (rows[0]["theirs"], rows[0]["ours"]) == ("50 runs", "10 runs")
    assert "about 3 min" in full.stderr
    assert "a: it holds: holds" in full.stderr


def test_figures_that_were_reached_are_kept(tiny, tmp_path):
    drawn, broken = tiny
    broken.append(True)
    assert run("rank-one", "--out", tmp_path).exit_code == 130
    assert drawn == ["a", "b0", "b1", "b2"]
    broken.clear()
    assert run("rank-one", "--out", tmp_path).exit_code == 0
    assert drawn == ["a", "b0", "b1", "b2"]  # nothing twice
    run("rank-one", "--out", tmp_path, "--figure", "a", "--again")
    assert drawn[-1] == "a"
    run("rank-one", "--out", tmp_path, "--figure", "a", "--repeats", 4)
    kept = json.loads((tmp_path / "rank-one" / "claims.json").read_text())
    assert kept["a"]["repeats"] == 4
    assert kept["a"]["claims"][0]["ours"] == "4 runs"


def test_a_page_keeps_its_records_beside_it(tiny, tmp_path):
    drawn, _ = tiny
    pages = tmp_path / "pages"
    empty = paper.write_page("rank-one", [], tmp_path, pages).read_text()
    assert empty.count("Not run in full") == 2
    done = run("rank-one", "--out", tmp_path / "here", "--figure", "a", "--page", pages)
    assert done.exit_code == 0, done.output
    page = (pages / "rank-one.rst").read_text()
    assert "ratio 0.5 [0.4, 0.6]" in page
    assert "version 0.1.0" in page
    assert page.count("Not run in full") == 1  # figure b
    assert (pages / "rank-one" / "a.png").exists()
    first = json.loads((pages / "rank-one" / "claims.json").read_text())["a"]
    count = len(drawn)
    run("rank-one", "--out", tmp_path / "elsewhere", "--figure", "b", "--page", pages)
    page = (pages / "rank-one.rst").read_text()
    assert "open \\| \\*star\\*" in page
    assert "ratio 0.5 [0.4, 0.6]" in page  # of figure a, which was not drawn again
    assert drawn[count:] == ["b0", "b1", "b2"]
    assert json.loads((pages / "rank-one" / "claims.json").read_text())["a"] == first


def test_a_quick_look_has_no_page(tiny, tmp_path):
    done = run("rank-one", "--quick", "--out", tmp_path, "--page", tmp_path)
    assert done.exit_code != 0
    assert "a quick look has no page" in str(done.exception)


@pytest.mark.parametrize("name", PAPERS)
def test_the_manuals_pages_are_those_of_their_records(name, tmp_path):
    pages = Path(__file__).parents[1] / "docs" / "papers"
    if not (pages / name / paper.RECORDS).exists():
        pytest.skip("no page of it in the manual")
    (tmp_path / name).mkdir()
    shutil.copyfile(pages / name / paper.RECORDS, tmp_path / name / paper.RECORDS)
    written = paper.write_page(name, [], tmp_path, tmp_path)
    assert written.read_text() == (pages / f"{name}.rst").read_text()
    records = json.loads((pages / name / paper.RECORDS).read_text())
    pictures = [p for figure in records for p in paper.module_of(name).PICTURES[figure]]
    assert {p.name for p in (pages / name).glob("*.png")} == set(pictures)


@pytest.mark.parametrize("name", PAPERS)
def test_every_paper_says_what_it_tuned_and_which_pictures_it_draws(name):
    module = paper.module_of(name)
    assert module.TITLE
    assert module.REFERENCE
    assert len(module.TUNING) > 60
    assert set(module.PICTURES) == set(module.FIGURES)
    assert all(figure.about and figure.minutes > 0 for figure in module.FIGURES.values())


def test_an_unknown_figure_is_refused():
    with pytest.raises(ParameterError, match="figure of binary must be one of"):
        paper.figures_of("binary", ["7"])
    with pytest.raises(ParameterError, match="paper must be one of"):
        paper.figures_of("nothing")
