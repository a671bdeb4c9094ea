"""One codec for arrays: named arrays and plain values in an npz, written whole or not at all, never pickled."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from entrywise.exceptions import DataError

_PLAIN = "__plain__"  # the name under which the plain values stand, as JSON


def pack(
    arrays: Mapping[str, NDArray[Any]],
    plain: Mapping[str, Any] | None = None,
    *,
    compress: bool = True,
) -> bytes:
    """Return `arrays`, and `plain` values beside them, as the bytes of an npz file."""
    named = dict(arrays)
    if plain is not None:
        named[_PLAIN] = np.array(json.dumps(plain, default=_plainly))
    buffer = io.BytesIO()
    write = np.savez_compressed if compress else np.savez
    write(buffer, **named)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack(
    source: str | os.PathLike[str] | bytes, what: str = "arrays"
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the plain values and the arrays of what :func:`pack` made; `what` names it where it cannot be read."""
    name = "the bytes" if isinstance(source, bytes) else str(source)
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        if not zipfile.is_zipfile(file):
            raise ValueError("it is no npz file")
        with np.load(file, allow_pickle=False) as stored:
            arrays = {key: stored[key] for key in stored.files}
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
    """Write arrays and plain values to a file, whole or not at all."""
    write_whole(path, pack(arrays, plain))


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path` whole or not at all."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent or ".", prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
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
