"""Pieces of HTML, what notebooks show, and the report of a study in one file."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import zlib
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import entrywise as ew
from entrywise import fragments
from entrywise.apply.leaderboard import Bought, scores
from entrywise.gallery import random_psd
from entrywise.study import Store, Study
from entrywise.web.report import report

NASTY = ["<script>alert(1)</script>", "CC(=O)O&c1", "שלום", '"><img src=x onerror=y>', "💊", "a'b"]


class Reader(HTMLParser):
    """Reads a page: its elements, their attributes, its text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def board():
    """A study that scores rows, half bought."""
    rng = np.random.default_rng(0)
    A = np.add.outer(np.arange(6.0), rng.standard_normal(12)) + 0.1 * rng.standard_normal((6, 12))
    study = Study.create(
        Store("sqlite://"),
        "models & <tasks>",
        plan="most-informative",
        params={"goal": "scores", "rank": 2},
        seed=0,
        budget=50,
        rows=NASTY,
        cols=[f"task {k}" for k in range(12)],
        currency="EUR",
    )
    while study.status()["spent"] < 40 and (asked := study.ask(8, worker="w")):
        study.tell([(q.id, float(A[q.index])) for q in asked])
    return study


@given(st.text())
def test_text_is_text_wherever_it_enters(words):
    pieces = [
        fragments.element("p", words, title=words),
        fragments.table([words], [[words]], caption=words),
        fragments.pairs({words: words}),
        fragments.card(words, {words: words}),
        fragments.intervals([words], [0.0], [-1.0], [1.0], title=words),
        fragments.meter(0.5, words),
        fragments.tiles({words: (words, words)}),
        fragments.curves({words: ([0, 1], [1, 2])}, x_title=words, y_title=words, title=words),
        fragments.label(words),
    ]
    plain = [
        fragments.element("p", "x", title="x"),
        fragments.table(["x"], [["x"]], caption="x"),
        fragments.pairs({"x": "x"}),
        fragments.card("x", {"x": "x"}),
        fragments.intervals(["x"], [0.0], [-1.0], [1.0], title="x"),
        fragments.meter(0.5, "x"),
        fragments.tiles({"x": ("x", "x")}),
        fragments.curves({"x": ([0, 1], [1, 2])}, x_title="x", y_title="x", title="x"),
        fragments.label("x"),
    ]
    for piece, same in zip(pieces, plain, strict=True):
        assert Reader(piece).tags == Reader(same).tags


def test_one_wild_answer_does_not_stretch_a_picture():
    usual = [(1.0, 0.8, 1.2), (1.1, 0.9, 1.3), (1.2, 1.0, 1.4), (0.9, 0.7, 1.1)]

    def drawn(lines):
        mean, low, high = zip(*lines, strict=True)
        return str(fragments.intervals(list("pqrst"[: len(lines)]), mean, low, high, title="x"))

    def ticks(picture):
        return re.findall(r">([-0-9.e+]+)</text>", picture.split("chart narrow")[0])

    plain, wild = drawn(usual), drawn([*usual, (500.0, -900.0, 1900.0)])
    assert "arrows go on" not in plain
    assert "arrows go on" in wild
    assert ticks(plain) == [t for t in ticks(wild) if float(t) < 2]
    assert wild.count("<path") == 4  # both ends, in both sizes
    assert wild.count(">500</text>") == 2  # its value is written
    assert "t: 500 (" in wild


def test_a_picture_holds_its_pixels():
    pixels = bytes(range(18))
    made = fragments.png(pixels, 3, 2)
    start = made.index(b"IDAT") + 4
    size = int.from_bytes(made[start - 8 : start - 4], "big")
    assert zlib.decompress(made[start : start + size]) == b"\0" + pixels[:9] + b"\0" + pixels[9:]


def test_notebooks_show_values(board):
    found = board.result()
    seen = ew.Observations.from_dense([[1.0, np.nan], [2.0, 3.0]])
    shape = (6, 12)
    bought = Bought.from_log(shape, board.log(), board.labels.index)
    for value, word in [
        (board, "most-informative"),
        (found, "6 x 12"),
        (seen, "75.0%"),
        (scores(found, bought), "place"),
    ]:
        shown = Reader(value._repr_html_())
        assert word in " ".join(shown.text)
        assert "script" not in shown.tags


def test_the_report_says_what_a_reader_needs(board):
    page = report(board)
    shown = Reader(page)
    words = " ".join(shown.text)
    for title in (
        "What was asked",
        "What it cost",
        "The answer",
        "Who is surely better",
        "How far to trust it",
        "What to do next",
    ):
        assert title in words
    found = board.result()
    assert f"{board.status()['spent']:,.6g} of 50 EUR spent" in words
    for label in NASTY:
        assert label in words
    bought = Bought.from_log((6, 12), board.log(), board.labels.index)
    best = scores(found, bought, prices=board.prices)
    top = int(best.order[0])
    ends = (float(x[top]) for x in (best.mean, best.low, best.high))
    assert " ".join(fragments.figures(*ends)) in words
    assert found.certificate.statement in words
    assert len(page) < 3_000_000


def test_the_report_needs_nothing_outside_of_it(board):
    shown = Reader(report(board))
    assert not {"script", "iframe", "object", "link"} & set(shown.tags)
    for name, value in shown.attributes:
        assert not name.startswith("on")
        if name in ("src", "href"):
            assert value.startswith("data:")
    assert "url(" not in report(board)


def test_the_report_carries_every_entry_as_the_command_prints_it(board):
    page = report(board)
    data = re.search(r'href="data:text/csv;base64,([^"]+)"', page)[1]
    lines = base64.b64decode(data).decode().splitlines()
    assert lines[0] == "row,col,value,low,high"
    assert len(lines) == 1 + 6 * 12
    low, high = board.result().interval([5], [11], 0.9)
    assert lines[-1].endswith(f"{float(low[0])!r},{float(high[0])!r}")


@pytest.mark.slow
def test_a_report_of_a_kernel_and_of_a_study_without_answers(tmp_path):
    A = random_psd(5, 2, np.random.default_rng(0))
    study = Study.create(str(tmp_path / "lab.db"), "k",
                         plan="adaptive-nystrom", params={"n": 5}, seed=1)  # fmt: skip
    assert "What to do next" in report(study)
    while asked := study.ask(5):
        study.tell([(q.id, float(A[q.index])) for q in asked])
    run = [sys.executable, "-m", "entrywise", "report", str(tmp_path / "lab.db"), "k"]
    made = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert made.startswith("<!doctype html>")
    assert f"{study.certificate.value:.3g}" in made
