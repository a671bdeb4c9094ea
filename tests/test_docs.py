"""Docstrings, examples and pages that cannot rot."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import runpy
import sys
from pathlib import Path

import pytest

import entrywise

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    m.name
    for m in pkgutil.walk_packages(entrywise.__path__, "entrywise.")
    if "migrations" not in m.name and "alembic" not in m.name
)
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


LONG = "entrywise.apply.leaderboard.rehearsal"  # whose example plays many purchases


@pytest.mark.parametrize(
    "name", [pytest.param(m, marks=pytest.mark.slow) if m == LONG else m for m in MODULES]
)
def test_docstring_examples(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} must open with what it does"
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs(path, capsys):
    found = runpy.run_path(str(path))
    assert found["run"]() is not None, f"{path.name}: run() must return something"
    assert found["__doc__"].count("===") >= 1


def test_every_command_has_help_and_an_example():
    import typer

    from entrywise.cli.app import app

    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import cli_page
    finally:
        sys.path.pop(0)
    for name, command in cli_page.commands(typer.main.get_command(app)):
        assert command.help, f"{name} has no help"
        if not hasattr(command, "commands"):
            assert "Example" in command.help, f"the help of {name} must end with an example"


def test_every_method_is_documented_and_loads():
    from entrywise.methods import METHODS

    names = [(m.room, m.name) for m in METHODS]
    assert len(set(names)) == len(names)
    for method in METHODS:
        assert method.load().__doc__, method.name
        assert method.summary, method.name
        assert method.paper, method.name
        assert method.guarantee, method.name


def test_nothing_public_is_missing_from_the_reference(tmp_path):
    import inspect

    from entrywise.methods import METHODS

    sys.path.insert(0, str(ROOT / "docs"))
    try:
        import api_page
    finally:
        sys.path.pop(0)
    shown = [value for pairs in api_page.entries().values() for _, value in pairs]
    known = {id(value) for value in shown}
    assert len(known) == len(shown), "an object stands twice"
    for method in METHODS:
        assert id(method.load()) in known, f"{method.name} is not in the reference"
    rooms = [name for _, names in api_page.ROOMS for name in names]
    for room in rooms:
        module = importlib.import_module(f"entrywise.{room}" if room else "entrywise")
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.isfunction(value) or inspect.isclass(value):
                assert id(value) in known, f"{module.__name__}.{name} is not in the reference"
    listed = {m.removeprefix("entrywise.").split(".")[0] for m in MODULES}
    inner = {
        "answers",
        "compiling",
        "linalg",
        "types",
        "fragments",
        "npz",
        "frames",
        "layouts",
        "gallery",
        "methods",
    }
    faces = {"cli", "reproduce", "web", "integrations", "plot", "scale", "formats", "__main__"}
    assert listed <= {*rooms, *inner, *faces}, "a new room must join docs/api_page.py"
    api_page.write(tmp_path / "api.rst")
    assert "entrywise.active.noisy_cur" in (tmp_path / "api.rst").read_text()


def test_tables_are_drawn_as_they_stand(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import drawn

    lines = drawn.intervals((ROOT / "docs" / "trust.rst").read_text())
    assert len(lines) >= 8  # the table has lost its form otherwise
    assert all(0.8 < share < 1 for *_, shares, _ in lines for share in shares)
    text = (ROOT / "docs" / "peers-measured.txt").read_text()
    tables = drawn.measured(text)
    assert len(tables) == text.count("list-table::")
    assert all(len(errors) > 1 for _, errors in tables)
    assert drawn.trust((ROOT / "docs" / "trust.rst").read_text()).axes
    assert drawn.peers(text).axes


def test_no_address_in_the_pins():
    assert "://" not in (ROOT / "constraints.txt").read_text()


def test_pages_name_only_commands_that_exist():
    import typer

    from entrywise.cli.app import app

    known = set(typer.main.get_command(app).commands)
    pages = [*(ROOT / "docs").glob("*.rst"), *(ROOT / "docs" / "integrations").glob("*.rst")]
    for page in [ROOT / "README.md", *pages]:
        text = page.read_text()
        code = (
            "\n".join(re.findall(r"```.*?```", text, flags=re.S)) if page.suffix == ".md" else text
        )
        indent = r"\s{3,}" if page.suffix == ".rst" else ""
        for word in re.findall(rf"^{indent}(?:\$ )?entrywise ([a-z]+)", code, flags=re.M):
            assert word in known, f"{page.name} names `entrywise {word}`, which does not exist"
