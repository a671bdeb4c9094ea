"""Entries in a folder: sorted by row and by column, in chunks of lines that engines work on."""

from __future__ import annotations

import itertools
import json
import shutil
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from entrywise.answers import levels_among
from entrywise.exceptions import DataError, ParameterError
from entrywise.linalg.blocks import HeldOut
from entrywise.observations import Observations
from entrywise.scale.engines import engine_of
from entrywise.scale.tasks import draw_block
from entrywise.scale.workshop import Workshop
from entrywise.types import Array, Indices

FORMAT = 1
MANIFEST = "manifest.json"
MORE = 1.2  # entries drawn for each that is wanted, so that hardly ever too few come


@dataclass(frozen=True)
class Blocks:
    """Known entries that :func:`write_blocks` wrote into a folder, for :func:`entrywise.complete`.

    Parameters
    ----------
    folder : path
        Every worker must see it under this name.
    blocks : int, optional
        Into how many blocks the chunks are dealt; by default as suits the engine. The result does not depend on it.
    engine : None, Executor or dask Client
        ``ew.complete(blocks, engine=)`` sets it.
    """

    folder: str | Path
    blocks: int | None = None
    engine: Any = None

    def __post_init__(self) -> None:
        if self.blocks is not None and self.blocks < 1:
            raise ParameterError(f"blocks must be at least 1, got {self.blocks}")
        object.__setattr__(self, "folder", str(Path(self.folder).resolve()))
        _ = self.manifest

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What the folder says of itself."""
        path = Path(self.folder) / MANIFEST
        try:
            found: dict[str, Any] = json.loads(path.read_text())
        except (OSError, ValueError):
            raise DataError(
                f"{self.folder} holds no blocks; write them with entrywise.scale.write_blocks"
            ) from None
        if found.get("format") != FORMAT:
            raise DataError(
                f"{self.folder} holds blocks of format {found.get('format')}, not {FORMAT}; write them again"
            )
        return found

    @property
    def data(self) -> str:
        """Where the arrays are: a folder of their own, so that files never change under their name."""
        return f"{self.folder}/{self.manifest['written']}"

    def __len__(self) -> int:
        return int(self.manifest["known"])

    def __repr__(self) -> str:
        m, n = self.shape
        return f"Blocks({self.folder!r}: {m} x {n}, {len(self)} known)"

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (m, n) of the matrix."""
        m, n = self.manifest["shape"]
        return m, n

    @property
    def offset(self) -> float:
        """Mean of the values; they are kept about it."""
        return float(self.manifest["offset"])

    @property
    def scale(self) -> float:
        """Standard deviation of the values; they are kept in this unit."""
        return float(self.manifest["scale"])

    @property
    def range(self) -> tuple[float, float]:
        """Least and greatest value."""
        return self.manifest["low"], self.manifest["high"]

    @property
    def distinct(self) -> Array | None:
        """The different values in order, where they are few."""
        found = self.manifest["distinct"]
        return None if found is None else np.array(found)

    @property
    def levels(self) -> Array | None:
        """The different values, where they are few and each is used."""
        if self.distinct is None:
            return None
        return levels_among(self.distinct, np.array(self.manifest["counts"]))

    @property
    def report(self) -> dict[str, Any]:
        """Sizes, known share, components, lines with nothing known."""
        m, n = self.shape
        found = {name: self.manifest[name] for name in ("components", "empty_rows", "empty_cols")}
        return {"shape": (m, n), "known": len(self), "share": len(self) / (m * n), **found}

    @cached_property
    def row_labels(self) -> tuple[str, ...] | None:
        """Labels of the rows, None where they are numbers."""
        return self._labels("rows")

    @cached_property
    def col_labels(self) -> tuple[str, ...] | None:
        """Labels of the columns, None where they are numbers."""
        return self._labels("cols")

    def _labels(self, side: str) -> tuple[str, ...] | None:
        path = Path(self.data) / f"{side}.labels.parquet"
        if not path.exists():
            return None
        import polars as pl

        return tuple(pl.read_parquet(path)["label"].to_list())

    def on(self, engine: Any) -> Blocks:
        """Return the same entries, worked on by an engine."""
        return self if engine is None else replace(self, engine=engine)

    @cached_property
    def engine_at_work(self) -> Any:
        """The engine, wrapped."""
        return engine_of(self.engine)

    def deal(self, side: str) -> list[list[tuple[int, int]]]:
        """Return the chunks of a side, as (first line, line after the last), dealt into blocks."""
        bounds = self.manifest["chunks"][side]
        chunks = list(itertools.pairwise(bounds))
        wanted = self.blocks or self.engine_at_work.blocks
        ends = np.linspace(0, len(chunks), min(wanted, len(chunks)) + 1).round().astype(int)
        return [chunks[a:b] for a, b in itertools.pairwise(ends)]

    def array(self, side: str, part: str) -> Any:
        """Return ``pointer``, ``other`` or ``values`` of a side, mapped."""
        path = Path(self.data) / f"{side}.{part}.npy"
        return np.load(path, mmap_mode="r", allow_pickle=False)

    def observations(self) -> Observations:
        """Return all entries in memory, sorted by row."""
        pointer = self.array("rows", "pointer")
        rows = np.repeat(np.arange(self.shape[0]), np.diff(pointer))
        values = self._restored(np.asarray(self.array("rows", "values")))
        return Observations.from_triplets(
            rows,
            np.asarray(self.array("rows", "other"), np.int64),
            values,
            self.shape,
            duplicates="keep",
            row_labels=self.row_labels,
            col_labels=self.col_labels,
        )

    def held_out(self, count: int, seed: int) -> HeldOut:
        """Return `count` entries with the least hashes of (row, column, seed)."""
        share = min(1.0, (MORE * count + 100) / len(self))
        while True:
            limit = min(int(share * 2**64), 2**64 - 1)
            jobs = [
                {"folder": self.data, "chunks": chunks, "seed": seed, "limit": limit}
                for chunks in self.deal("rows")
            ]
            parts = zip(*self.engine_at_work.map(draw_block, jobs), strict=True)
            hashed, rows, cols, values, by_row = (np.concatenate(part) for part in parts)
            if len(rows) >= count or share == 1.0:
                break
            share = min(1.0, 2.0 * share)
        first = np.lexsort((by_row, hashed))[:count]
        rows, cols, by_row = rows[first], cols[first], by_row[first]
        values = self._restored(values[first])
        return HeldOut(rows, cols, values, by_row, self._by_col(rows, cols))

    def _restored(self, kept: Array) -> Array:
        """Return values as they were written, from as they are kept; few different ones to the last bit."""
        values = kept * self.scale + self.offset
        if self.distinct is None or len(self.distinct) < 2:
            return np.asarray(values)
        between = 0.5 * (self.distinct[1:] + self.distinct[:-1])
        return np.asarray(self.distinct[np.searchsorted(between, values)])

    def _by_col(self, rows: Indices, cols: Indices) -> Indices:
        """Return where entries stand in the order by column; rows are in order within a column."""
        pointer, other = self.array("cols", "pointer"), self.array("cols", "other")
        found = np.empty(len(rows), np.int64)
        for t, (i, j) in enumerate(zip(rows.tolist(), cols.tolist(), strict=True)):
            a, b = int(pointer[j]), int(pointer[j + 1])
            found[t] = a + np.searchsorted(other[a:b], i)
        return found

    def workshop(self, name: str, params: dict[str, Any], out: HeldOut | None) -> Workshop:
        """Return where a fit to the entries without `out` is made; it goes on if it was begun."""
        return Workshop(self, name, params, out)

    def clear(self) -> None:
        """Forget fits that are done or were broken off."""
        shutil.rmtree(Path(self.folder) / "work", ignore_errors=True)
