"""How values are written on the command line: shapes, numbers by name, a plan's parameters, prices."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from entrywise.exceptions import ParameterError
from entrywise.tables import whole

_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"

Where = Annotated[
    str,
    typer.Argument(
        help="The database: a file, or postgresql://user@host/name.", metavar="DATABASE"
    ),
]


def shape_of(text: str) -> tuple[int, int]:
    """Return (m, n) from ``80x60`` or ``80,60``.

    >>> shape_of("80x60")
    (80, 60)
    """
    sides = [whole(part.strip()) for part in text.lower().replace("x", ",").split(",")]
    if len(sides) != 2 or None in sides:
        raise ParameterError(f"--shape must be rows x columns, such as 80x60, got {text!r}")
    return sides[0], sides[1]  # type: ignore[return-value]


def numbers(text: str, option: str) -> dict[str, float]:
    """Return numbers by name from ``column=16,entry=1``.

    >>> numbers("column=16,entry=1", "price")
    {'column': 16.0, 'entry': 1.0}
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = (word.strip() for word in part.partition("="))
        if not name or not re.fullmatch(_NUMBER, value):
            raise ParameterError(
                f"--{option} must be name=number, such as column=16,entry=1, got {part!r}"
            )
        if name in found:
            raise ParameterError(f"--{option} names {name!r} twice; give one number")
        found[name] = float(value)
    return found


def prices_of(words: Sequence[str]) -> dict[str, float] | None:
    """Return prices from ``mode=number``, one or several in a word; None when there is none.

    >>> prices_of(["entry=1", "column=16"]) == prices_of(["entry=1,column=16"])
    True
    """
    return numbers(",".join(words), "price") if words else None


def params_of(words: Sequence[str]) -> dict[str, Any]:
    """Return a plan's parameters from options such as ``--rank 12``, ``--shape 30x40`` or ``--exact``.

    >>> params_of(["--rank", "12", "--shape", "30x40", "--max-error=.1", "--exact"])
    {'rank': 12, 'shape': [30, 40], 'max_error': 0.1, 'exact': True}
    >>> params_of(["--noise", "column=.2,entry=.1"])
    {'noise': {'column': 0.2, 'entry': 0.1}}
    >>> params_of(["--plate", "96,per=row"])
    {'plate': {'size': 96, 'per': 'row'}}
    """
    found: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or len(word) < 3:
            raise ParameterError(f"a plan's parameter is an option such as --rank 12, got {word!r}")
        name, given, value = word[2:].partition("=")
        if not given:
            value = rest.pop(0) if rest and not rest[0].startswith("--") else "true"
        found[name.replace("-", "_")] = _value(name, value)
    return found


def _plate(text: str) -> dict[str, Any]:
    """Return what a plate holds from ``96`` (wells) or ``size=96,per=row,replicates=2``."""
    pairs = [part.partition("=")[::2] for part in text.split(",")]
    if pairs[0][1] == "":
        pairs[0] = ("size", pairs[0][0])
    return {name.strip(): _value(name, value.strip()) for name, value in pairs}


def _value(option: str, text: str) -> Any:
    """Return a shape, numbers by name, a number, a list of them, JSON, or else the text itself."""
    if option == "shape" and not text.startswith("["):
        return list(shape_of(text))
    if option == "classes" and not text.startswith("["):
        return [name.strip() for name in text.split(",")]
    if option == "plate" and not text.startswith("{"):
        return _plate(text)
    if re.match(r"[A-Za-z_]\w*=", text):
        return numbers(text, option)
    if re.fullmatch(f"{_NUMBER}(,{_NUMBER})*", text):
        each = [
            int(part) if re.fullmatch(r"[+-]?[0-9]{1,18}", part) else float(part)
            for part in text.split(",")
        ]
        return each if "," in text else each[0]
    try:
        return json.loads(text)
    except ValueError:
        return text
