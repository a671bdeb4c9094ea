"""What the pages of a parquet file claim, looked at before a reader asks for memory.

A compiled reader that is told of 2^61 values ends the whole process: no error reaches us. So the numbers in the
footer and in the header of every page are held against the file first. They are written in Thrift's compact form.
"""

from __future__ import annotations

from typing import Any

from entrywise.tables.files import LIMIT

_MAGIC = b"PAR1"
_MOST = LIMIT // 8  # values of a column
_TRUE, _FALSE, _BYTE, _WHOLE, _DOUBLE, _BINARY = 1, 2, 3, (4, 5, 6), 7, 8
_LISTS, _MAP, _STRUCT = (9, 10), 11, 12
_DEEPEST = 32  # structs inside of structs

# the fields that are looked at, by their numbers in the format's definition
_GROUPS, _COLUMNS, _META = 4, 1, 3
_VALUES, _SIZE, _DATA_AT, _DICTIONARY_AT = 5, 7, 9, 11
_UNPACKED, _PACKED, _HEADERS = 2, 3, (5, 7, 8)


def refuse_wrong_pages(data: Any) -> None:
    """Raise ValueError where a parquet file (bytes, or a memory map) promises more than it can hold."""
    if len(data) < 12 or data[:4] != _MAGIC or data[-4:] != _MAGIC:
        raise ValueError("it does not begin and end as a parquet file does")
    size = int.from_bytes(data[-8:-4], "little")
    if size > len(data) - 12:
        raise ValueError(f"its footer of {size:,} bytes is longer than the file")
    try:
        footer, _ = _struct(data, len(data) - 8 - size)
        for group in footer.get(_GROUPS, ()):
            for column in group.get(_COLUMNS, ()):
                _check_column(data, column[_META])
    except (IndexError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("its footer or the head of a page is damaged") from None


def _check_column(data: Any, column: dict[int, Any]) -> None:
    """Walk through the pages of one column of a row group."""
    values = column[_VALUES]
    starts = [column[k] for k in (_DICTIONARY_AT, _DATA_AT) if column.get(k, 0) > 0]
    at = min(starts, default=0)  # nowhere, where there are no lines
    end = at + column[_SIZE]
    if not (0 <= values <= _MOST and at <= end <= len(data)):
        raise ValueError(f"a column claims {values:,} values in bytes {at:,} to {end:,}")
    while at < end:
        page, at = _struct(data, at)
        at += _check_page(page, values, end - at)


def _check_page(page: dict[int, Any], values: int, room: int) -> int:
    """Return how many bytes follow the head of a page."""
    counts = [page[k][1] for k in _HEADERS if k in page]
    packed, unpacked = page[_PACKED], page[_UNPACKED]
    fits = 0 <= packed <= room and 0 <= unpacked <= LIMIT
    if not fits or any(not 0 <= count <= max(values, 0) for count in counts):
        claim = ", ".join(f"{count:,} values" for count in counts) or "no values"
        raise ValueError(f"a page claims {claim} in {packed:,} bytes, {unpacked:,} unpacked")
    return int(packed)


def _varint(data: Any, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found, at
        shift += 7
        if shift > 63:
            raise IndexError("a number of more than ten bytes")


def _signed(data: Any, at: int) -> tuple[int, int]:
    found, at = _varint(data, at)
    return (found >> 1) ^ -(found & 1), at


def _struct(data: Any, at: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """Return the fields of a struct by number, and where it ends."""
    if depth > _DEEPEST:
        raise RecursionError
    found: dict[int, Any] = {}
    number = 0
    while data[at]:
        step, kind = divmod(data[at], 16)
        at += 1
        if step:
            number += step
        else:
            number, at = _signed(data, at)
        found[number], at = _value(data, at, kind, depth)
    return found, at + 1


def _value(data: Any, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (_TRUE, _FALSE):  # said by the kind itself
        return kind == _TRUE, at
    if kind == _BYTE:
        return data[at], at + 1
    if kind in _WHOLE:
        return _signed(data, at)
    if kind == _DOUBLE:
        return None, at + 8
    if kind == _BINARY:
        size, at = _varint(data, at)
        return None, at + size
    if kind in _LISTS:
        return _list(data, at, depth)
    if kind == _MAP:
        return _map(data, at, depth)
    if kind == _STRUCT:
        return _struct(data, at, depth + 1)
    raise KeyError(kind)


def _list(data: Any, at: int, depth: int) -> tuple[list[Any], int]:
    size, kind = divmod(data[at], 16)
    at += 1
    if size == 15:
        size, at = _varint(data, at)
    if size > len(data):
        raise IndexError("a list longer than the file")
    found = []
    for _ in range(size):
        if kind in (_TRUE, _FALSE):  # in a list each takes a byte
            value, at = data[at] == _TRUE, at + 1
        else:
            value, at = _value(data, at, kind, depth)
        found.append(value)
    return found, at


def _map(data: Any, at: int, depth: int) -> tuple[None, int]:
    size, at = _varint(data, at)
    if size > len(data):
        raise IndexError("a map longer than the file")
    if size:
        keys, values = divmod(data[at], 16)
        at += 1
        for _ in range(size):
            _, at = _value(data, at, keys, depth)
            _, at = _value(data, at, values, depth)
    return None, at
