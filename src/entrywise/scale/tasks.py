"""What workers do: open a block's chunks from the folder, compute, and leave large arrays in files.

A task is a function of one plain dictionary and of files that never change under their name, so it can be made again
anywhere: a worker that dies costs time and nothing else. Files are written under another name and then renamed.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from entrywise.linalg.binary import regressed, sites_of
from entrywise.linalg.blocks import solve_chunk
from entrywise.linalg.variational import designs
from entrywise.results.levels import expected_log, logistic_mean
from entrywise.types import Array, Indices

Chunk = tuple[Indices, NDArray[np.int32], Array]  # pointer from 0, other, values


def save(path: str | Path, array: NDArray[Any]) -> None:
    """Write an array whole or not at all."""
    with _renamed(Path(path)) as file:
        np.save(file, array, allow_pickle=False)


def save_plain(path: str | Path, plain: dict[str, Any]) -> None:
    """Write plain values whole or not at all."""
    with _renamed(Path(path)) as file:
        file.write(json.dumps(plain).encode())


@contextmanager
def _renamed(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that gets its name when it is whole.

    Nothing waits for the disk: what a power failure takes is fitted again, and a process that dies takes nothing.
    """
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    with open(unfinished, "wb") as file:
        yield file
    os.replace(unfinished, path)


def stacked(files: tuple[str, ...]) -> Array:
    """Return the arrays of some files, one below the other."""
    return np.concatenate([np.load(file, allow_pickle=False) for file in files])


@lru_cache(maxsize=4)
def _stacked(files: tuple[str, ...]) -> Array:
    return stacked(files)


@lru_cache(maxsize=2)
def _designs(files: tuple[str, ...]) -> tuple[Array, Array]:
    return designs(_stacked(files))


@lru_cache(maxsize=4)
def _side(folder: str, side: str) -> tuple[Any, Any, Any]:
    """Return pointer, other and values of a side, mapped: shared, so that they count as files and not as memory.

    Nobody writes into them. Where the files may not be written the mapping is private, and counts as memory that it could use.
    """
    parts = [f"{folder}/{side}.{part}.npy" for part in ("pointer", "other", "values")]
    mode: Any = "r+" if all(os.access(part, os.W_OK) for part in parts) else "c"
    found = [np.load(part, mmap_mode=mode, allow_pickle=False) for part in parts]
    return found[0], found[1], found[2]


@lru_cache(maxsize=4)
def _positions(path: str) -> Indices:
    return np.asarray(np.load(path, allow_pickle=False), np.int64)


def chunk(folder: str, side: str, start: int, stop: int, out: str | None) -> Chunk:
    """Return lines start..stop-1 of a side, without the entries at the positions in the file `out`."""
    pointer, other, values = _side(folder, side)
    first, last = int(pointer[start]), int(pointer[stop])
    bounds = np.array(pointer[start : stop + 1]) - first
    across, known = np.asarray(other[first:last]), np.asarray(values[first:last])
    if out is not None:
        positions = _positions(out)
        a, b = np.searchsorted(positions, [first, last])
        if b > a:
            gone = positions[a:b] - first
            bounds = bounds - np.searchsorted(gone, bounds)
            across, known = np.delete(across, gone), np.delete(known, gone)
    return bounds, across, known


def solve_block(job: dict[str, Any]) -> Array:
    """Solve the lines of a block, leave their means (and covariances) in files, return the sums of each chunk."""
    fixed = _designs(tuple(job["fixed"]))
    means, covs, sums = [], [], []
    keep = job["cov"] is not None
    for (start, stop), sites in zip(job["chunks"], job["sites"], strict=True):
        pointer, other, values = chunk(job["folder"], job["side"], start, stop, job["out"])
        spread = np.zeros(0)
        if sites is not None:
            values, spread = regressed(np.load(sites, allow_pickle=False), job["offset"])
        mean, cov, total = solve_chunk(pointer, other, values, spread, fixed, job["normal"], keep)
        means.append(mean)
        covs.append(cov)
        sums.append(total)
    save(job["mean"], np.concatenate(means))
    if job["cov"] is not None:
        save(job["cov"], np.concatenate(covs))
    return np.array(sums)


def multiply_block(job: dict[str, Any]) -> None:
    """Multiply the residuals of a block's lines by a matrix and leave the product in a file."""
    from entrywise.linalg._jit_blocks import residual_product

    own, other = (_stacked(tuple(files)) for files in job["means"])
    own_scale, other_scale, V = (_stacked((job[name],)) for name in ("own", "other", "by"))
    found = []
    for (start, stop), rest in zip(job["chunks"], job["rests"], strict=True):
        pointer, across, values = chunk(job["folder"], job["side"], start, stop, job["out"])
        if rest is not None:
            values = np.load(rest, allow_pickle=False)
        product = np.empty((stop - start, V.shape[1]))
        residual_product(
            pointer, across, values, own[start:stop], other, own_scale[start:stop], other_scale,
            start, job["side"] == "rows", np.uint64(job["seed"]), V, product,
        )  # fmt: skip
        found.append(product)
    save(job["product"], np.concatenate(found))


def _logits(job: dict[str, Any], start: int, stop: int) -> tuple[Array, Array, Array]:
    """Return means and variances of the logits of a chunk's answers, and which of them are yes (1)."""
    from entrywise.linalg._jit_blocks import logits

    pointer, across, values = chunk(job["folder"], job["side"], start, stop, job["out"])
    own, other = (_stacked(tuple(files)) for files in job["means"])
    own_share, other_share = (_stacked((file,)) for file in job["shares"])
    m, v = np.empty(len(values)), np.empty(len(values))
    logits(
        pointer, across, own[start:stop], other, own_share[start:stop], other_share,
        job["offset"], job["both"], m, v,
    )  # fmt: skip
    return m, v, (values > 0).astype(np.float64)  # about their mean, the higher answer is above 0


def renew_block(job: dict[str, Any]) -> Array:
    """Leave the pseudo-answers of a block's chunks in files, mixed with the old ones; return the weights' sum of each."""
    found = []
    for (start, stop), old, new in zip(job["chunks"], job["old"], job["new"], strict=True):
        before = None if old is None else np.load(old, allow_pickle=False)
        sites, weight = sites_of(*_logits(job, start, stop), before)
        save(new, sites)
        found.append(weight)
    return np.array(found)


def leave_block(job: dict[str, Any]) -> None:
    """Leave what the probabilities leave of the answers of a block's chunks in files."""
    for (start, stop), file in zip(job["chunks"], job["new"], strict=True):
        m, v, yes = _logits(job, start, stop)
        save(file, (yes - logistic_mean(m, v)) * job["unit"])


def expect_block(job: dict[str, Any]) -> Array:
    """Return the expected log-likelihood of every so manieth answer of a block, summed over each chunk."""
    found = []
    pointer = _side(job["folder"], "rows")[0]
    for start, stop in job["chunks"]:
        first = int(pointer[start])
        if job["out"] is not None:
            first -= int(np.searchsorted(_positions(job["out"]), first))
        some = slice(-first % job["step"], None, job["step"])
        m, v, yes = _logits(job, start, stop)
        found.append(expected_log(m[some], v[some], yes[some]))
    return np.array(found)


def draw_block(job: dict[str, Any]) -> tuple[NDArray[np.uint64], Indices, Indices, Array, Indices]:
    """Return hash, row, column, value and position of the entries of a block whose hash is below a limit."""
    from entrywise.linalg._jit_blocks import hashes

    parts = []
    for start, stop in job["chunks"]:
        pointer, other, values = chunk(job["folder"], "rows", start, stop, None)
        found = np.empty(len(other), np.uint64)
        hashes(pointer, other, start, np.uint64(job["seed"]), found)
        at = np.flatnonzero(found < np.uint64(job["limit"]))
        rows = start + np.searchsorted(pointer, at, side="right") - 1
        first = int(_side(job["folder"], "rows")[0][start])
        parts.append((found[at], rows, other[at].astype(np.int64), values[at], at + first))
    columns = zip(*parts, strict=True)
    joined = tuple(np.concatenate(column) for column in columns)
    return joined[0], joined[1], joined[2], joined[3], joined[4]
