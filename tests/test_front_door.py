"""The front door: every command and snippet of the README and of the quick starts runs as printed, and prints what is shown.

Runs against whatever ``entrywise`` is installed, so that ``make wheel`` can try the wheel with it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
STARTS = sorted((ROOT / "docs" / "start").glob("*.rst"))
JOBS = ROOT / "docs" / "jobs.rst"
RUN = {"sh": ["bash", "-euo", "pipefail"], "python": [sys.executable, "-"]}
SHOWN = "text"  # what a reader sees after the block before it
NUMBER = r"[-+]?\d[\d.,:T-]*%?"


def fenced(text):
    """Yield (language, block) of Markdown."""
    for match in re.finditer(r"^```(\w*)\n(.*?)^```", text, flags=re.M | re.S):
        yield match[1], match[2]


def directives(text):
    """Yield (language, block) of reStructuredText's code blocks."""
    pattern = r"^( *)\.\. code-block:: (\w+)\n((?:\n|\1 {3}.*\n)+)"
    for match in re.finditer(pattern, text + "\n", flags=re.M):
        lines = match[3].strip("\n").splitlines()
        indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
        yield match[2], "\n".join(line[indent:] for line in lines) + "\n"


def quick_starts():
    """Return the README's quick starts by their heading."""
    text = (ROOT / "README.md").read_text()
    parts = re.split(r"^### ", text.split("\n## Quick starts")[1].split("\n## ")[0], flags=re.M)
    return {part.splitlines()[0]: list(fenced(part)) for part in parts[1:]}


def jobs():
    """Return the jobs of the manual by their heading."""
    text = JOBS.read_text()
    parts = re.split(r"^(\d\. .+)\n-+$", text, flags=re.M)
    return {
        name: list(directives(part)) for name, part in zip(parts[1::2], parts[2::2], strict=True)
    }


def commands(block):
    """Return the command lines of a shell block, files written by it left out."""
    without_files = re.sub(r"<<'(\w+)'.*?^\1$", "", block, flags=re.M | re.S)
    joined = without_files.replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]


def environment(folder):
    """Return an environment in which ``entrywise`` and ``python`` are those of this interpreter."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for name, words in (("entrywise", "-m entrywise "), ("python", "")):
        script = bin_folder / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        script.chmod(0o755)
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "MPLBACKEND": "agg"}


def masked(text):
    """Return a text without its numbers, blanks and rules."""
    return re.sub(r"[\s\u2500]+", " ", re.sub(NUMBER, "#", text)).strip()


def walk(blocks, folder):
    """Run blocks in order in one folder; yield (language, block, everything printed so far)."""
    variables = environment(folder)
    here = folder / "here"
    here.mkdir()
    printed = ""
    for language, block in blocks:
        if language in RUN:
            ran = subprocess.run(
                RUN[language], input=block, cwd=here, env=variables,
                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600,
            )  # fmt: skip
            assert ran.returncode == 0, f"{block}\n{ran.stdout}"
            printed += ran.stdout
        yield language, block, printed


def follow(blocks, folder):
    """Run all blocks and see that what is shown is printed, but for its numbers."""
    ran = 0
    for language, block, printed in walk(blocks, folder):
        ran += language in RUN
        if language == SHOWN:
            whole = masked(printed)
            for line in block.splitlines():
                if line.strip() != "...":
                    assert masked(line) in whole, f"{line!r} is not printed:\n{printed}"
    assert ran > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", quick_starts())
def test_quick_start_of_the_readme(name, tmp_path):
    follow(quick_starts()[name], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", STARTS, ids=lambda page: page.stem)
def test_quick_start_of_the_manual(page, tmp_path):
    follow(list(directives(page.read_text())), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", jobs())
def test_job(name, tmp_path):
    blocks = jobs()[name]
    count = sum(len(commands(block)) for language, block in blocks if language == "sh")
    assert 0 < count <= 10, "a job takes at most ten commands"
    follow(blocks, tmp_path)


REFERENCE = {
    "sg_execution_times",  # written by the gallery
    "index",
    "api",
    "cli",
    "methods",
    "changelog",
    "data",
    "rooms",
    "idea",
    "jobs",
    "trust",
    "scale-runs",  # a part of scale
}
ANSWERS = (  # every page for users says what one sees, how far to trust it, and what can go wrong
    r"^(What do I see|What you see|Who chooses the entries\?)$",
    r"^How far (can I|to) trust it.*$",
    r"^What can go wrong.*$",
)


def test_every_page_answers_the_four_questions():
    folders = (ROOT / "docs", ROOT / "docs" / "start", ROOT / "docs" / "integrations")
    pages = [page for folder in folders for page in folder.glob("*.rst")]
    for page in pages:
        if page.stem not in REFERENCE:
            text = page.read_text()
            assert re.search(r"code-block::|``entrywise |::$", text, flags=re.M), page.name
            for answer in ANSWERS:
                assert re.search(answer, text, flags=re.M), f"{page.name} has no {answer}"


def test_the_readme_opens_with_a_sentence_a_picture_and_two_commands():
    text = (ROOT / "README.md").read_text()
    head = text.split("\n## ")[0]
    picture = re.search(r"!\[[^]]+\]\((\S+)\)", head)
    assert (ROOT / picture[1]).stat().st_size < 200_000
    assert "make demo" in head
    assert "make test" in head
    starts = quick_starts()
    assert len(starts) == 3
    for name, blocks in starts.items():
        lines = sum(block.count("\n") for _, block in blocks)
        assert lines <= 40, f"{name} must fit one screen, has {lines} lines"


def test_links_of_the_built_manual_are_followed(tmp_path):
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        from links import broken
    finally:
        sys.path.pop(0)
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="b.html#there">b</a><a href="#here">a</a>'
    )
    (tmp_path / "b.html").write_text('<h1 id="there"><a href="https://example.org/x">out</a>')
    assert broken(tmp_path) == []
    (tmp_path / "b.html").write_text('<h1 id="elsewhere"><img src="no.png">')
    assert broken(tmp_path) == [
        "a.html: b.html#there has no such place",
        "b.html: no.png is not there",
    ]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "RELEASING.md"]
)
def test_links_inside_the_repository_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (ROOT / target).exists(), f"{page.name} links to {target}"


def test_the_help_is_one_screen_a_line_a_command():
    from typer.testing import CliRunner

    from entrywise.cli.app import BRIEF, app

    shown = (
        CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"}).stdout
    )
    lines = shown.rstrip().splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= 80
    for name, words in BRIEF.items():
        assert any(f" {name} " in line and words in line for line in lines), name
