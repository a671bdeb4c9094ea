"""``entrywise complete FOLDER``: entries kept in blocks, fitted here or by a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from entrywise.exceptions import ParameterError


@contextmanager
def engine_at(address: str | None) -> Iterator[Any]:
    """Yield a client of the scheduler at this address, None without one."""
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise ParameterError("--engine needs Dask; install entrywise[scale]") from None
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise ParameterError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        yield client


def refuse_for_folders(given: dict[str, Any]) -> None:
    """Refuse options that only files in memory have; `given` are their values where they were set."""
    for name, value in given.items():
        if value:
            raise ParameterError(f"{name} does not go with a folder of blocks; leave it out")
