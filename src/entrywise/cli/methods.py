"""``entrywise methods``: every method, its room, paper, guarantee and what that assumes."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from entrywise.cli._shared import Format, FormatOption, emit
from entrywise.exceptions import ParameterError


def plain(words: str) -> str:
    """Return a sentence of a docstring without the marks of its language.

    >>> plain("Complete :math:`A` by :func:`~entrywise.active.subspace`, ``r`` a sample.")
    'Complete A by entrywise.active.subspace, r a sample.'
    """
    return re.sub(r"(?::\w+:)?`{1,2}~?([^`]*)`{1,2}", r"\1", words)


def methods(
    room: Annotated[
        str | None, typer.Argument(help="Only one room: passive, active or online.")
    ] = None,
    format: FormatOption = Format.table,
) -> None:
    """List every method with its room, paper and guarantee, and what the guarantee assumes.

    Example: entrywise methods active --format csv
    """
    from entrywise.methods import METHODS

    rooms = ("passive", "active", "online")
    if room is not None and room not in rooms:
        raise ParameterError(f"room must be {', '.join(rooms)}, got {room!r}")
    rows = [
        (m.name, m.room, m.kind, plain(m.summary), m.paper, m.guarantee, m.assumes)
        for m in METHODS
        if room in (None, m.room)
    ]
    emit(
        ("name", "room", "kind", "what", "paper", "guarantee", "assumes"),
        rows,
        format,
        title="Methods",
    )
