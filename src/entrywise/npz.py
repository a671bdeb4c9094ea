"""One codec for arrays: named arrays and plain values in an npz, written whole or not at all, never pickled."""

from __future__ import annotations

import io
import json
import os
import struct
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import IO, Any, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from entrywise.exceptions import DataError

LARGE = 1 << 28  # bytes of arrays from which a file is not compressed
MAPPED = 1 << 20  # bytes from which an array is mapped
_HEADERS: Any = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_PLAIN = "__plain__"  # the name under which the plain values stand, as JSON


def pack(
    arrays: Mapping[str, NDArray[Any]],
    plain: Mapping[str, Any] | None = None,
    *,
    compress: bool = True,
) -> bytes:
    """Return `arrays`, and `plain` values beside them, as the bytes of an npz file."""
    buffer = io.BytesIO()
    write = np.savez_compressed if compress else np.savez
    write(buffer, **_named(arrays, plain))
    return buffer.getvalue()


def _named(arrays: Mapping[str, NDArray[Any]], plain: Mapping[str, Any] | None) -> dict[str, Any]:
    named: dict[str, Any] = dict(arrays)
    if plain is not None:
        named[_PLAIN] = np.array(json.dumps(plain, default=_plainly))
    return named


def unpack(
    source: str | os.PathLike[str] | bytes, what: str = "arrays"
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the plain values and the arrays of what :func:`pack` made; `what` names it where it cannot be read.

    Large arrays of a file that were not compressed are mapped, to be read where they are looked at.
    """
    name = "the bytes" if isinstance(source, bytes) else str(source)
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        if not zipfile.is_zipfile(file):
            raise ValueError("it is no npz file")
        with np.load(file, allow_pickle=False) as stored:
            mapped = {} if isinstance(source, bytes) else _mapped(source)
            arrays = {key: mapped[key] if key in mapped else stored[key] for key in stored.files}
        plain = json.loads(str(arrays.pop(_PLAIN, "{}")))
    except Exception as error:  # a broken zip, header or text raises almost anything
        if not isinstance(source, bytes):
            os.stat(source)  # a file that is not there says so itself
        reason = str(error) or type(error).__name__
        raise DataError(f"{name} must hold {what} saved by entrywise: {reason}") from None
    if not isinstance(plain, dict):
        raise DataError(
            f"{name} must hold {what} saved by entrywise: its plain values are no mapping"
        )
    return plain, arrays


def save(
    path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], plain: Mapping[str, Any]
) -> None:
    """Write arrays and plain values to a file, whole or not at all; many of them as they are, so that they can be mapped."""
    if sum(array.nbytes for array in arrays.values()) < LARGE:
        write_whole(path, pack(arrays, plain))
        return
    with _whole(path) as file:
        np.savez(file, **_named(arrays, plain))


def _mapped(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Return the large arrays of an npz file that were not compressed, mapped for reading."""
    found: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        for info in archive.infolist():
            if info.compress_type != zipfile.ZIP_STORED or info.file_size < MAPPED:
                continue
            file.seek(
                info.header_offset + 26
            )  # of the local header: 30 bytes, a name, an extra field
            lengths = struct.unpack("<HH", file.read(4))
            file.seek(sum(lengths), os.SEEK_CUR)
            version = np.lib.format.read_magic(file)
            read = _HEADERS.get(version)
            if read is None:
                continue
            shape, fortran, kind = read(file)
            if not kind.hasobject:
                order: Any = "F" if fortran else "C"
                name = info.filename.removesuffix(".npy")
                found[name] = np.memmap(path, kind, "r", file.tell(), shape, order)
    return found


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path` whole or not at all."""
    with _whole(path) as file:
        file.write(data)


@contextmanager
def _whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Yield a file that gets its name once it is on the disk."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent or ".", prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return the fields of a dataclass under their names, those of nested dataclasses under dotted ones; None is left out."""
    found: dict[str, Any] = {}
    for f in fields(value):
        name, part = prefix + f.name, getattr(value, f.name)
        if is_dataclass(part):
            found |= flatten(part, name + ".")
        elif part is not None:
            found[name] = part
    return found


def rebuild(kind: type[Any], named: Mapping[str, Any], what: str = "the arrays") -> Any:
    """Return the dataclass of which :func:`flatten` gave the named values; a name without a field is refused."""
    own = {name: value for name, value in named.items() if "." not in name}
    nested: dict[str, dict[str, Any]] = {}
    for name, value in named.items():
        head, dot, rest = name.partition(".")
        if dot:
            nested.setdefault(head, {})[rest] = value
    strange = sorted((own.keys() | nested.keys()) - {f.name for f in fields(kind)})
    if strange:
        raise DataError(
            f"{what} must come from this version of entrywise: a {kind.__name__} has no {strange[0]!r}; make them again"
        )
    for head, parts in nested.items():
        type_ = get_type_hints(kind)[head]  # a dataclass, or one of several: Posterior | None
        inner = next(t for t in (type_, *get_args(type_)) if is_dataclass(t))
        own[head] = rebuild(inner, parts, what)  # type: ignore[arg-type]
    return kind(**own)


def _plainly(value: Any) -> Any:
    """Return a JSON form of numpy scalars, tuples and small arrays."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)
