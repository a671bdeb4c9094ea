"""One codec for arrays: named arrays and plain values in an npz, written whole or not at all, never pickled."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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


def _plainly(value: Any) -> Any:
    """Return a JSON form of numpy scalars, tuples and small arrays."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)
