"""Write entries into blocks, out of core: text labels become numbers, entries are sorted by row and by column.

polars reads and codes in a stream; then entries go to buckets of lines that fit into memory, and each bucket is sorted by
itself. DuckDB took a third less memory and a third more time for 50 million rows with two million text labels.
"""

from __future__ import annotations

import glob
import json
import math
import mmap
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from entrywise.answers import MOST_ASKED
from entrywise.exceptions import DataError, ParameterError
from entrywise.npz import write_whole
from entrywise.scale.blocks import FORMAT, MANIFEST, Blocks
from entrywise.tables.files import boundary
from entrywise.tables.parquet import refuse_wrong_pages
from entrywise.types import Array, Indices

ENTRY = np.dtype([("line", np.int32), ("other", np.int32), ("value", np.float64)])
READ_AT_ONCE = 2_000_000  # entries of a piece
SORTED_AT_ONCE = 3_000_000  # entries of a bucket: 48 MB, and five times that while it is sorted
LOOKED_AT_ONCE = 100_000  # values among which the different ones are counted
CHUNK = 1_000_000  # entries of a chunk; at least
FEWEST_CHUNKS = 16
MOST_LINES = 2**31 - 1  # a line's number has 32 bits
DUPLICATES = ("refuse", "first", "last", "mean")


def write_blocks(
    files: str | Path | Iterable[str | Path],
    folder: str | Path,
    *,
    row: str | None = None,
    col: str | None = None,
    value: str | None = None,
    labels: bool = True,
    duplicates: str = "refuse",
) -> Blocks:
    """Write CSV or parquet files, larger than memory, as blocks into a folder and return them.

    Parameters
    ----------
    files : path, pattern (``"ratings-*.parquet"``) or several
        One entry a line: row, column, value, in this order unless their columns are named. All of one kind.
    folder : path
        Blocks that are there are replaced once the new ones are whole.
    labels : bool
        Rows and columns are text, numbered in order of appearance; False: they are numbers from 0.
    duplicates : {"refuse", "first", "last", "mean"}
        What to do with an entry listed more than once.

    Notes
    -----
    Values are kept about their mean in units of their standard deviation, so that fits need no copy of them.
    Labels and counts of lines must fit into memory, entries need not. The folder takes 24 bytes an entry, and 32 more
    while it is written.
    """
    import polars as pl

    if duplicates not in DUPLICATES:
        raise ParameterError(
            f"duplicates must be one of {', '.join(DUPLICATES)}, got {duplicates!r}"
        )
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = f"blocks-{uuid.uuid4().hex[:12]}"
    data = target / written
    data.mkdir()
    try:
        with tempfile.TemporaryDirectory(dir=target, prefix=".writing-") as scratch:
            entries = _scan(_paths(files), (row, col, value), labels)
            sizes: list[int] = []
            if labels:
                entries, sizes = _coded(entries, data)
            coded = Path(scratch) / "entries.parquet"
            entries.sink_parquet(coded, compression="lz4")
            manifest = _sorted(pl.scan_parquet(coded), sizes, data, Path(scratch), duplicates)
        manifest |= {"format": FORMAT, "written": written}
        write_whole(target / MANIFEST, json.dumps(manifest).encode())
    except BaseException:
        shutil.rmtree(data, ignore_errors=True)
        raise
    for old in target.glob("blocks-*"):
        if old.name != written:
            shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(target / "work", ignore_errors=True)
    return Blocks(target)


def _paths(files: str | Path | Iterable[str | Path]) -> list[str]:
    given = [files] if isinstance(files, str | Path) else list(files)
    found = [path for one in given for path in sorted(glob.glob(str(one)))]
    if not found:
        raise DataError(
            f"no file is called {', '.join(map(str, given))}; name CSV or parquet files"
        )
    return found


def _refuse_wrong_pages(paths: list[str]) -> None:
    for path in paths:
        with (
            boundary(path, "a parquet file"),
            open(path, "rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            refuse_wrong_pages(data)


def _scan(paths: list[str], names: tuple[str | None, ...], labels: bool) -> Any:
    """Return a lazy frame with columns i, j, v; i and j as text where there are labels."""
    import polars as pl

    kinds = {Path(path).name.removesuffix(".gz").rsplit(".", 1)[-1] for path in paths}
    if kinds == {"parquet"}:
        _refuse_wrong_pages(paths)
        frame = pl.scan_parquet(paths)
        columns = frame.collect_schema().names()
    elif kinds <= {"csv", "tsv", "txt"}:
        separator = "\t" if kinds == {"tsv"} else ","
        columns = pl.scan_csv(paths[0], separator=separator).collect_schema().names()
        text = dict.fromkeys(columns, pl.String)
        frame = pl.scan_csv(paths, separator=separator, schema_overrides=text)
    else:
        raise DataError(
            f"blocks are written from .csv or .parquet files, got {', '.join(sorted(kinds))}"
        )
    if len(columns) < 3:
        raise DataError(f"an entry is row, column and value; {paths[0]} has columns {columns}")
    picked = [given or columns[k] for k, given in enumerate(names)]
    unknown = [name for name in picked if name not in columns]
    if unknown:
        raise ParameterError(f"no column is called {unknown[0]!r}; there are {', '.join(columns)}")
    line = pl.String if labels else pl.Int64
    return frame.select(
        pl.col(picked[0]).cast(line).alias("i"),
        pl.col(picked[1]).cast(line).alias("j"),
        pl.col(picked[2]).cast(pl.Float64).alias("v"),
    )


def _coded(entries: Any, data: Path) -> tuple[Any, list[int]]:
    """Return the frame with numbers for labels, in order of appearance, and write the labels."""
    import polars as pl

    sizes = []
    for name, side in (("i", "rows"), ("j", "cols")):
        first = entries.select(pl.col(name).alias("label")).with_row_index("at")
        labels = first.group_by("label").agg(pl.col("at").min()).sort("at").select("label")
        labels = labels.collect(engine="streaming")
        if labels["label"].null_count():
            raise DataError(f"every entry must name its {side[:3]}, one has none; leave it out")
        labels.write_parquet(data / f"{side}.labels.parquet")
        sizes.append(len(labels))
        numbers = labels.with_row_index(f"{name}_number").lazy()
        entries = entries.join(
            numbers, left_on=name, right_on="label", how="left", maintain_order="left"
        )
    numbered = [pl.col(f"{name}_number").cast(pl.Int64).alias(name) for name in ("i", "j")]
    return entries.select(*numbered, "v"), sizes


@dataclass
class _Sums:
    """What is learned of the values in one pass, piece by piece."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # about the mean
    low: float = math.inf
    high: float = -math.inf
    distinct: dict[float, int] | None = field(default_factory=dict)

    def add(self, values: Array) -> None:
        """Take a piece in."""
        size, mean = len(values), float(values.mean())
        total = self.count + size
        gap = mean - self.mean
        self.squares += float(((values - mean) ** 2).sum()) + gap**2 * self.count * size / total
        self.mean += gap * size / total
        self.count = total
        self.low, self.high = (
            min(self.low, float(values.min())),
            max(self.high, float(values.max())),
        )
        if self.distinct is not None:
            self._count(values)

    def _count(self, values: Array) -> None:
        """Count the different values, as long as they are few."""
        found = self.distinct or {}
        for start in range(0, len(values), LOOKED_AT_ONCE):
            part = np.unique(values[start : start + LOOKED_AT_ONCE], return_counts=True)
            for x, times in zip(*(side[:MOST_ASKED].tolist() for side in part), strict=True):
                found[x] = found.get(x, 0) + times
            if len(part[0]) > MOST_ASKED or len(found) > MOST_ASKED:
                self.distinct = None
                return
        self.distinct = found


def _sorted(
    entries: Any, sizes: Sequence[int], data: Path, scratch: Path, duplicates: str
) -> dict[str, Any]:
    """Sort entries by row, resolve duplicates, sort by column; write the arrays and return the manifest."""
    counts, shape = _counted(entries, sizes)
    buckets = _buckets(counts)
    _deal_out(_pieces(entries), buckets, scratch, "rows")
    rows = _Writer(data, "rows", scratch, len(buckets) - 1)
    sums, parent = _Sums(), np.arange(sum(shape) + 1)
    parent[-1] = shape[0]  # where the columns begin; see unite
    for b in range(len(buckets) - 1):
        part = _resolved(rows.sorted_bucket(b), duplicates)
        if len(part):
            _unite(parent, part)
            sums.add(part["value"])
            rows.append(part)
    scale = math.sqrt(sums.squares / max(sums.count, 1))
    constant = not scale > 1e-14 * max(abs(sums.mean), 1e-300)
    scale = max(abs(sums.mean), 1.0) if constant else scale
    row_pointer = rows.finish(shape[0], sums.mean, scale)
    col_counts = np.zeros(shape[1], np.int64)
    for part in _turned(data, row_pointer):
        col_counts += np.bincount(part["line"], minlength=shape[1])
    buckets = _buckets(col_counts)
    _deal_out(_turned(data, row_pointer), buckets, scratch, "cols")
    cols = _Writer(data, "cols", scratch, len(buckets) - 1)
    for b in range(len(buckets) - 1):
        cols.append(cols.sorted_bucket(b))
    col_pointer = cols.finish(shape[1], 0.0, 1.0)
    distinct = None if sums.distinct is None else dict(sorted(sums.distinct.items()))
    return {
        "shape": list(shape),
        "known": sums.count,
        "offset": sums.mean,
        "scale": scale,
        "low": sums.low,
        "high": sums.high,
        "distinct": None if distinct is None else list(distinct),
        "counts": None if distinct is None else list(distinct.values()),
        "components": _components(parent, np.diff(row_pointer), np.diff(col_pointer)),
        "empty_rows": int(np.sum(np.diff(row_pointer) == 0)),
        "empty_cols": int(np.sum(np.diff(col_pointer) == 0)),
        "chunks": {"rows": _chunk_bounds(row_pointer), "cols": _chunk_bounds(col_pointer)},
    }


def _pieces(entries: Any) -> Iterator[NDArray[np.void]]:
    """Yield the entries, some at a time, checked."""
    start = 0
    while True:
        part = entries.slice(start, READ_AT_ONCE).collect()
        if not len(part):
            return
        if any(part[name].null_count() for name in ("i", "j", "v")):
            raise DataError("every entry needs a row, a column and a number; one lacks some")
        found = np.empty(len(part), ENTRY)
        lines = [part[name].to_numpy() for name in ("i", "j")]
        low, high = (int(f(lines)) for f in (np.min, np.max))
        if low < 0 or high > MOST_LINES:
            raise DataError(
                f"rows and columns must be in 0..{MOST_LINES}, got {low if low < 0 else high}"
            )
        found["line"], found["other"] = lines
        found["value"] = part["v"].to_numpy()
        bad = np.flatnonzero(~np.isfinite(found["value"]))
        if len(bad):
            k = int(bad[0])
            raise DataError(
                f"values must be finite, entry {start + k + 1} is {found['value'][k]}; leave it out"
            )
        yield found
        start += len(part)


def _counted(entries: Any, sizes: Sequence[int]) -> tuple[Indices, tuple[int, int]]:
    """Return the entries of each row, and the shape."""
    counts = np.zeros(sizes[0] if sizes else 0, np.int64)
    n = sizes[1] if sizes else 0
    total = 0
    for part in _pieces(entries):
        more = np.bincount(part["line"], minlength=len(counts))
        more[: len(counts)] += counts
        counts, n = more, max(n, int(part["other"].max()) + 1)
        total += len(part)
    if not total:
        raise DataError("blocks need at least one known entry, got none")
    return counts, (len(counts), n)


def _buckets(counts: Indices) -> Indices:
    """Return line bounds of buckets that hold about as many entries as can be sorted at once; a long line stays whole."""
    ends = np.cumsum(counts)
    wanted = np.arange(SORTED_AT_ONCE, int(ends[-1]) if len(ends) else 0, SORTED_AT_ONCE)
    inner = np.searchsorted(ends, wanted) + 1
    return np.unique(np.concatenate([[0], inner, [len(counts)]]))


def _deal_out(
    pieces: Iterable[NDArray[np.void]], buckets: Indices, scratch: Path, side: str
) -> None:
    """Append each entry to the file of its bucket, keeping their order."""
    paths = [scratch / f"{side}-{b}" for b in range(len(buckets) - 1)]
    for path in paths:
        path.touch()
    for part in pieces:
        of = np.searchsorted(buckets, part["line"], side="right") - 1
        order = np.argsort(of, kind="stable")
        ends = np.cumsum(np.bincount(of, minlength=len(paths)))
        part = part[order]
        for path, group in zip(paths, np.split(part, ends[:-1]), strict=True):
            if len(group):
                with open(path, "ab") as file:
                    group.tofile(file)


class _Writer:
    """Appends sorted entries to the arrays of a side."""

    def __init__(self, data: Path, side: str, scratch: Path, buckets: int) -> None:
        self.data, self.side, self.scratch = data, side, scratch
        self._raw = {name: scratch / f"{side}.{name}" for name in ("other", "value")}
        self._lines: list[tuple[Indices, Indices]] = []
        for path in self._raw.values():
            path.touch()

    def sorted_bucket(self, b: int) -> NDArray[np.void]:
        """Return a bucket's entries by line, then by the other axis; equal ones in the order they came."""
        path = self.scratch / f"{self.side}-{b}"
        part = np.fromfile(path, ENTRY)
        path.unlink()
        key = (part["line"].astype(np.int64) << 32) | part["other"]
        return part[np.argsort(key, kind="stable")]

    def append(self, part: NDArray[np.void]) -> None:
        """Add entries behind those that are there."""
        for name, path in self._raw.items():
            with open(path, "ab") as file:
                np.ascontiguousarray(part[name]).tofile(file)
        lines, first = np.unique(part["line"], return_index=True)
        self._lines.append((lines, np.diff(np.append(first, len(part)))))

    def finish(self, size: int, offset: float, scale: float) -> Indices:
        """Write the arrays as npy files, values about the offset in units of the scale, and return the pointer."""
        counts = np.zeros(size, np.int64)
        for lines, times in self._lines:
            counts[lines] += times
        pointer = np.concatenate([[0], np.cumsum(counts)])
        np.save(self.data / f"{self.side}.pointer.npy", pointer)
        for name, kind in (("other", np.int32), ("value", np.float64)):
            plural = "values" if name == "value" else name
            path = self.data / f"{self.side}.{plural}.npy"
            found = np.lib.format.open_memmap(path, "w+", kind, (int(pointer[-1]),))
            with open(self._raw[name], "rb") as file:
                for start in range(0, len(found), READ_AT_ONCE):
                    piece: Any = np.fromfile(file, kind, READ_AT_ONCE)
                    if name == "value":
                        piece = (piece - offset) / scale
                    found[start : start + len(piece)] = piece
            found.flush()
            self._raw[name].unlink()
        return pointer


def _resolved(part: NDArray[np.void], duplicates: str) -> NDArray[np.void]:
    """Return sorted entries each once, or refuse."""
    same = (np.diff(part["line"]) == 0) & (np.diff(part["other"]) == 0)
    if not same.any():
        return part
    if duplicates == "refuse":
        k = int(np.flatnonzero(same)[0])
        i, j = int(part["line"][k]), int(part["other"][k])
        raise DataError(
            f"entry ({i}, {j}) is listed more than once; say duplicates='mean', 'first' or 'last', or keep one"
        )
    first = np.flatnonzero(np.append(True, ~same))
    last = np.append(first[1:], len(part)) - 1
    if duplicates == "last":
        return np.asarray(part[last])
    found: NDArray[np.void] = part[first]
    if duplicates == "mean":
        found["value"] = np.add.reduceat(part["value"], first) / (last - first + 1)
    return found


def _turned(data: Path, pointer: Indices) -> Iterator[NDArray[np.void]]:
    """Yield the entries sorted by row as entries of columns, some at a time."""
    other = np.load(data / "rows.other.npy", mmap_mode="r")
    values = np.load(data / "rows.values.npy", mmap_mode="r")
    for start in range(0, len(other), READ_AT_ONCE):
        stop = min(start + READ_AT_ONCE, len(other))
        found = np.empty(stop - start, ENTRY)
        found["line"] = other[start:stop]
        found["other"] = np.searchsorted(pointer, np.arange(start, stop), side="right") - 1
        found["value"] = values[start:stop]
        yield found


def _unite(parent: Indices, part: NDArray[np.void]) -> None:
    from entrywise.linalg._jit_blocks import unite

    unite(parent, np.ascontiguousarray(part["line"]), np.ascontiguousarray(part["other"]))


def _components(parent: Indices, row_counts: Indices, col_counts: Indices) -> int:
    """Return how many connected components the known entries have."""
    linked = np.concatenate([row_counts, col_counts]) > 0
    roots = parent[:-1] == np.arange(len(parent) - 1)
    return int(np.sum(roots & linked))


def _chunk_bounds(pointer: Indices) -> list[int]:
    """Return line bounds of chunks that share the entries out evenly; they follow from the entries alone."""
    total, lines = int(pointer[-1]), len(pointer) - 1
    wanted = max(FEWEST_CHUNKS, -(-total // CHUNK))
    inner = np.searchsorted(pointer, np.linspace(0, total, wanted + 1)[1:-1])
    return sorted({0, *inner.tolist(), lines})
