"""Numbers as people write them, and nothing else: ``1_000``, ``１``, ``True`` and ``inf`` are text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from entrywise.types import Array

GAPS = frozenset(("", "na", "nan", "n/a", "#n/a", "<na>", "null", "none", "?", "."))
_SIGNS = frozenset("0123456789+-.eE")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_EITHER = re.compile(r"[+-]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_WHOLE = re.compile(r"[0-9]{1,18}")  # below 2**63
_PARTED = r"[+-]?(?:[0-9]+|[1-9][0-9]{0,2}(?:%s[0-9]{3})+)(?:%s[0-9]*)?"


@dataclass(frozen=True)
class Marks:
    """How numbers are written: the mark of decimals, and the one that parts thousands, if any does.

    >>> Marks(",", ".").plain("1.200,5")
    '1200.5'
    """

    decimal: str = "."
    thousands: str = ""

    def plain(self, text: str) -> str:
        """Return a number with a point and nothing else; empty where its thousands are parted otherwise."""
        if self.thousands:
            text = text.replace(self.thousands, "") if self.fits(text) else ""
        return text.replace(self.decimal, ".")

    def fits(self, text: str) -> bool:
        """Return whether a text is a number with these marks, thousands parted or not."""
        pattern = _PARTED % (re.escape(self.thousands), re.escape(self.decimal))
        return re.fullmatch(pattern, text) is not None


POINT, COMMA = Marks(), Marks(",")
PARTED = (Marks(",", "."), Marks(".", ","))  # 1.200,5 and 1,200.5


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


def numbers(cells: Sequence[str], marks: Marks = POINT) -> tuple[Array, int | None]:
    """Return a column of numbers, NaN at gaps, and the place of the first cell that is neither, or None."""
    gaps = {text for text in set(cells) if is_gap(text)}
    body = [text for text in cells if text not in gaps] if gaps else list(cells)
    if marks != POINT:
        body = [marks.plain(text) for text in body]
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
    places = [k for k, text in enumerate(cells) if text not in gaps]
    return found, next(k for k, text in zip(places, body, strict=True) if number(text) is None)


def is_number_with_comma(text: str) -> bool:
    """Return whether a text is a number in which a comma stands for a point, or parts thousands."""
    return "," in text and (_EITHER.fullmatch(text) is not None or is_parted(text))


def is_parted(text: str) -> bool:
    """Return whether a text is a number with both marks, one for decimals and one that parts thousands."""
    return "," in text and "." in text and any(marks.fits(text) for marks in PARTED)


def marks_of(columns: Sequence[Sequence[str]], comma: bool = True) -> Marks | None:
    """Return how the numbers of a table are written; None where that is not clear.

    A cell with both marks (1.200,5) says which of them parts thousands. Without such a cell, not clear are tables
    with commas and points both, and those whose commas may all part thousands (1,234). `comma` says whether a comma
    alone may stand for a point; where it parts the cells of the file it does not.
    """
    bodies = [[text for text in set(cells) if not is_gap(text)] for cells in columns]
    parted = [marks for marks in PARTED if any(_is_parted_by(marks, body) for body in bodies)]
    if parted:
        fit = all(
            all(map(parted[0].fits, body)) or not all(map(_EITHER.fullmatch, body))
            for body in bodies
        )
        return parted[0] if fit and len(parted) == 1 else None
    return _comma_or_point(bodies) if comma else POINT


def _is_parted_by(marks: Marks, body: Sequence[str]) -> bool:
    """Return whether a column is of numbers with these marks, and one of them has both."""
    both = any(marks.decimal in text and marks.thousands in text for text in body)
    return both and all(map(marks.fits, body))


def _comma_or_point(bodies: Sequence[Sequence[str]]) -> Marks | None:
    point = comma = clear = False
    for body in bodies:
        if not all(_EITHER.fullmatch(text) for text in body):
            continue
        point = point or any("." in text for text in body)
        with_comma = [text for text in body if "," in text]
        comma = comma or bool(with_comma)
        clear = clear or any(not _THOUSANDS.fullmatch(text) for text in with_comma)
    if not comma:
        return POINT
    return COMMA if clear and not point else None
