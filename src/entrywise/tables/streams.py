"""Tables that come line by line and may never end: the header is read once, then each line alone."""

from __future__ import annotations

import csv
from collections.abc import Sequence

from entrywise.exceptions import DataError
from entrywise.layouts import plain_name
from entrywise.tables.table import SEPARATORS, listed

MOST = 1_000_000  # characters of a line


class TableLines:
    """Reads the lines of a table by roles, given its header.

    Parameters
    ----------
    header : str
    roles : sequence of (role, usual names)
        Every role must have a column; the last one's cells may be empty.

    Examples
    --------
    >>> lines = TableLines("user;film;label", [("row", ("row", "user")), ("col", ("film",)), ("label", ("label",))])
    >>> lines.cells("ann;Alien;true")
    ['ann', 'Alien', 'true']
    """

    def __init__(self, header: str, roles: Sequence[tuple[str, Sequence[str]]]) -> None:
        self._mark = max(SEPARATORS, key=header.count)
        names = self._split(header)
        plain = [plain_name(name) for name in names]
        self._places: list[int] = []
        self._roles = [role for role, _ in roles]
        for role, usual in roles:
            place = next((plain.index(name) for name in usual if name in plain), None)
            if place is None or place in self._places:
                raise DataError(
                    f"must be JSON lines, or a table whose header names {', '.join(self._roles)}; "
                    f"none is {role!r} in {listed(names)}"
                )
            self._places.append(place)
        self._width = len(names)

    def cells(self, line: str) -> list[str]:
        """Return the cells of the roles in one line."""
        cells = self._split(line)
        if len(cells) != self._width:
            raise DataError(f"must have {self._width} cells as the header has, got {len(cells)}")
        found = [cells[place] for place in self._places]
        for role, cell in zip(self._roles[:-1], found[:-1], strict=True):
            if not cell:
                raise DataError(f"has no {role}; give one")
        return found

    def _split(self, line: str) -> list[str]:
        if len(line) > MOST:
            raise DataError(f"must have at most {MOST:,} characters, got {len(line):,}")
        try:
            reader = csv.reader(
                [line.rstrip("\r\n")], delimiter=self._mark, skipinitialspace=True, strict=True
            )
            return [cell.strip() for cell in next(reader, [])]
        except csv.Error as error:
            raise DataError(f"cannot be read as a table: {error}") from None
