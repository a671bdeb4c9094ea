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


@pytest.mark.parametrize("name", MODULES)
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


def test_no_address_in_the_pins():
    assert "://" not in (ROOT / "constraints.txt").read_text()


def test_pages_name_only_commands_that_exist():
    import typer

    from entrywise.cli.app import app

    known = set(typer.main.get_command(app).commands)
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.rst")]:
        text = page.read_text()
        code = (
            "\n".join(re.findall(r"```.*?```", text, flags=re.S)) if page.suffix == ".md" else text
        )
        indent = r"\s{3,}" if page.suffix == ".rst" else ""
        for word in re.findall(rf"^{indent}(?:\$ )?entrywise ([a-z]+)", code, flags=re.M):
            assert word in known, f"{page.name} names `entrywise {word}`, which does not exist"
