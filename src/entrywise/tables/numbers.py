"""Numbers as people write them, and nothing else: ``1_000``, ``１``, ``True`` and ``inf`` are text."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from entrywise.types import Array

GAPS = frozenset(("", "na", "nan", "n/a", "#n/a", "<na>", "null", "none", "?", "."))
_SIGNS = frozenset("0123456789+-.eE")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_EITHER = re.compile(r"[+-]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_WHOLE = re.compile(r"[0-9]{1,18}")  # below 2**63


def number(text: str) -> float | None:
    """Return a finite number, or None where the text is none.

    >>> number("-1.5e2"), number("1_000"), number("inf")
    (-150.0, None, None)
    """
    if not _NUMBER.fullmatch(text):
        return None
    found = float(text)
    return found if np.isfinite(found) else None


def whole(text: str) -> int | None:
    """Return a number 0, 1, 2, ... of at most 18 digits, or None where the text is none.

    >>> whole("12"), whole("-1"), whole("9" * 30)
    (12, None, None)
    """
    return int(text) if _WHOLE.fullmatch(text) else None


def is_gap(text: str) -> bool:
    """Return whether a cell says that nothing is known: empty, NA, NaN, null, ``?``, ..."""
    return text.lower() in GAPS


def numbers(cells: Sequence[str], comma: bool = False) -> tuple[Array, int | None]:
    """Return a column of numbers, NaN at gaps, and the place of the first cell that is neither, or None.

    `comma` says that decimals are written with a comma.
    """
    gaps = {text for text in set(cells) if is_gap(text)}
    body = [text for text in cells if text not in gaps] if gaps else list(cells)
    if comma:
        body = [text.replace(",", ".") for text in body]
    found = np.full(len(cells), np.nan)
    if not body:
        return found, None
    if set("".join(body)) <= _SIGNS:
        try:
            values = np.array(body, dtype=np.float64)
        except ValueError:
            values = np.array([np.inf])
        if np.all(np.isfinite(values)):
            if gaps:
                found[np.fromiter((text not in gaps for text in cells), bool, len(cells))] = values
                return found, None
            return values, None
    bad = next(text for text in body if number(text) is None)
    if comma:
        return found, next(k for k, text in enumerate(cells) if text.replace(",", ".") == bad)
    return found, cells.index(bad)


def is_number_with_comma(text: str) -> bool:
    """Return whether a text is a number in which a comma stands for a point, or parts thousands."""
    return "," in text and _EITHER.fullmatch(text) is not None


def decimal_comma(columns: Sequence[Sequence[str]]) -> bool | None:
    """Return whether numbers are written with a decimal comma; None where that is not clear.

    Not clear are tables with commas and points both, and those whose commas may all part thousands (1,234).
    """
    point = comma = clear = False
    for cells in columns:
        body = [text for text in set(cells) if not is_gap(text)]
        if not all(_EITHER.fullmatch(text) for text in body):
            continue
        point = point or any("." in text for text in body)
        with_comma = [text for text in body if "," in text]
        comma = comma or bool(with_comma)
        clear = clear or any(not _THOUSANDS.fullmatch(text) for text in with_comma)
    if not comma:
        return False
    return True if clear and not point else None
