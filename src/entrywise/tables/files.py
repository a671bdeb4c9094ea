"""Bytes, text and arrays of a file, whatever it claims to be: sizes are checked before memory is asked for.

Whatever a library raises over a broken file becomes one :class:`~entrywise.exceptions.DataError`; nothing is
unpickled, and what is compressed may unpack to :data:`LIMIT` bytes and no more.
"""

from __future__ import annotations

import io
import math
import os
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.exceptions import DataError

LIMIT = 2**30  # bytes that a compressed file may unpack to: 1 GiB, some 50 million entries
_STEP = 2**20  # bytes unpacked at a time
_GZIP = b"\x1f\x8b"
_KINDS = "biufSU"  # numbers and text; never objects, which would have to be unpickled


@contextmanager
def boundary(path: str, what: str) -> Iterator[None]:
    """Turn whatever is raised inside into a DataError of one sentence: `path` must be `what`.

    Files that cannot be opened and our own errors pass; an interruption and a lack of memory do too.
    """
    try:
        yield
    except (DataError, FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of a compiled reader is no Exception
        lines = str(error).strip().splitlines() or [type(error).__name__]
        words = lines[0][:200].rstrip(".?!")
        raise DataError(f"{path} must be {what}: {words}; is it whole? write it anew") from None


def contents(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a file, unpacked where they are gzip; ``-`` is stdin."""
    name = os.fspath(path)
    if name == "-":
        data = sys.stdin.buffer.read()
    else:
        data = Path(name).read_bytes()
    if name.lower().endswith(".gz") or data[:2] == _GZIP:
        return _gunzip(name, data)
    return data


def text_of(path: str | os.PathLike[str]) -> str:
    """Return the text of a file: UTF-8, or UTF-16 where it opens with that mark."""
    name, data = os.fspath(path), contents(path)
    coding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(coding)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name}: must be UTF-8 text, byte {error.start} is not; save it as UTF-8"
        ) from None


def ending(path: str | os.PathLike[str]) -> str:
    """Return the ending of a file name, without a last ``.gz``: ``.csv``, ``.parquet``, ..."""
    return Path(os.fspath(path).lower().removesuffix(".gz")).suffix


def arrays_of(path: str | os.PathLike[str]) -> NDArray[Any] | dict[str, NDArray[Any]]:
    """Return the array of an ``.npy`` file, or those of an ``.npz`` file by name."""
    name = os.fspath(path)
    with boundary(name, "a numpy file without pickles"):
        data = contents(name)
        if data[:2] == b"PK":
            return _members(name, data)
        return _array(name, data)


def check_zip(path: str, data: bytes) -> zipfile.ZipFile:
    """Return the zip archive in `data`, refusing one that would unpack to more than :data:`LIMIT`."""
    archive = zipfile.ZipFile(io.BytesIO(data))
    total = sum(member.file_size for member in archive.infolist())
    if total > max(LIMIT, len(data)):
        raise DataError(_too_large(path))
    return archive


def _too_large(path: str) -> str:
    return f"{path}: unpacks to more than {LIMIT:,} bytes, which is refused; unpack it yourself"


def _gunzip(path: str, data: bytes) -> bytes:
    parts: list[bytes] = []
    size = 0
    with boundary(path, "a gzip file"):
        while data:  # one member after another
            unpacker = zlib.decompressobj(wbits=31)
            rest = data
            while not unpacker.eof:
                part = unpacker.decompress(rest, _STEP)
                rest = unpacker.unconsumed_tail
                size += len(part)
                if size > LIMIT:
                    raise DataError(_too_large(path))
                if not part and not rest and not unpacker.eof:
                    raise DataError(
                        f"{path} must be a gzip file: it breaks off; is it whole? write it anew"
                    )
                parts.append(part)
            data = unpacker.unused_data.lstrip(b"\0")
    return b"".join(parts)


def _members(path: str, data: bytes) -> dict[str, NDArray[Any]]:
    found = {}
    with check_zip(path, data) as archive:
        for member in archive.infolist():
            key = member.filename.removesuffix(".npy")
            with archive.open(member) as file:
                unpacked = file.read(member.file_size + 1)
            found[key] = _array(f"{path}, array {key!r},", unpacked)
    return found


def _array(path: str, data: bytes) -> NDArray[Any]:
    """Return the array of ``.npy`` bytes; its header must agree with the number of bytes."""
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, by_column, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        raise DataError(f"{path} must be a numpy file of version 1 or 2, got {version}")
    if dtype.kind not in _KINDS or dtype.itemsize == 0:
        raise DataError(f"{path} must be a numpy file without pickles, of numbers, got {dtype}")
    if any(side < 0 for side in shape):
        raise DataError(f"{path} must be a numpy file, its shape is {shape}")
    count, start = math.prod(shape), file.tell()
    if count * dtype.itemsize != len(data) - start:
        raise DataError(
            f"{path} must be a whole numpy file: its header promises {count:,} values, "
            f"it holds {(len(data) - start) // dtype.itemsize:,}"
        )
    flat = np.frombuffer(data, dtype, count, start)
    return flat.reshape(shape, order="F" if by_column else "C")
