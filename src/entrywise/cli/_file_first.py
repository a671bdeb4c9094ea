"""Groups of commands whose first word may be a file: ``entrywise rank games.csv`` beside ``entrywise rank next games.csv``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup

DEFAULT = "file"  # the command that is meant when the first word is none


class FileFirst(TyperGroup):
    """A group that takes its `DEFAULT` command where no command is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command before a word that is no command, an option, or nothing."""
        if not args or args[0] not in self.commands:
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


def file_first(
    name: str, default: Callable[..., None], **others: Callable[..., None]
) -> typer.Typer:
    """Return the group `name` of a default command, whose help it shows, and of others."""
    group = typer.Typer(name=name, cls=FileFirst, help=default.__doc__)
    group.command(DEFAULT, hidden=True)(default)
    for other, command in others.items():
        group.command(other)(command)
    return group
