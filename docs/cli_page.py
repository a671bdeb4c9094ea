"""Write the pages of commands and methods from the program itself, so that they cannot disagree."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any


def commands(command: Any, name: str = "entrywise") -> list[tuple[str, Any]]:
    """Return (full name, command) of every command, sub-commands after their group."""
    found = [(name, command)]
    for child, sub in sorted(getattr(command, "commands", {}).items()):
        if not sub.hidden:  # the command meant when none is named: its help is its group's
            found += commands(sub, f"{name} {child}")
    return found


def help_text(full_name: str) -> str:
    """Return what ``--help`` prints, without colours or borders."""
    from typer.testing import CliRunner

    from entrywise.cli.app import app

    os.environ["COLUMNS"] = "100"
    text = CliRunner().invoke(app, [*full_name.split()[1:], "--help"], prog_name="entrywise").output
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    lines = [line.rstrip() for line in text.splitlines()]
    return "\n".join(lines).strip("\n")


def write(path: Path) -> None:
    """Write the command-line page."""
    import typer

    from entrywise.cli.app import app

    parts = ["The command line", "================", "", "This page is made from ``--help``.", ""]
    for name, _ in commands(typer.main.get_command(app)):
        parts += [name, "-" * len(name), "", ".. code-block:: text", ""]
        parts += ["    " + line if line else "" for line in help_text(name).splitlines()]
        parts.append("")
    _write(path, parts)


def write_methods(path: Path) -> None:
    """Write the page that lists every method."""
    from entrywise.methods import METHODS

    parts = ["Methods", "=======", "", "This page is made from :mod:`entrywise.methods`.", ""]
    for room, words in (
        ("passive", "The entries are given"),
        ("active", "We choose and pay"),
        ("online", "Nature chooses"),
    ):
        parts += [words, "-" * len(words), ""]
        for m in METHODS:
            if m.room == room:
                module, function = m.home.split(":")
                head = f"**{m.name}** (``entrywise.{module}.{function}``)"
                needs = f" Assumes: {m.assumes}." if m.assumes else ""
                promise = f"    *{m.paper}.* Guarantee: {m.guarantee}.{needs}"
                promise = promise.replace("|", r"\|")  # bars of a norm are not markup
                parts += [head, f"    {m.summary}", "", promise, ""]
    _write(path, parts)


def _write(path: Path, parts: list[str]) -> None:
    text = "\n".join(parts) + "\n"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
