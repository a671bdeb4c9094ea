"""One fit under way on blocks: half sweeps and products dealt to an engine, means in files, a journal to go on from."""

from __future__ import annotations

import json
import shutil
import uuid
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from entrywise.linalg.blocks import BlockLogits, HeldOut
from entrywise.scale.tasks import (
    expect_block,
    leave_block,
    multiply_block,
    renew_block,
    save,
    save_plain,
    solve_block,
    stacked,
)
from entrywise.types import Array, Indices

if TYPE_CHECKING:
    from entrywise.scale.blocks import Blocks

JOURNAL = "journal.json"
SIDES = ("rows", "cols")


class Workshop:
    """Where a fit is made: a folder beside the blocks with the means of the last sweep and the journal.

    After each sweep the journal is written whole, then files of earlier sweeps go. A fit with other parameters under
    the same name begins anew.
    """

    def __init__(
        self, blocks: Blocks, name: str, params: dict[str, Any], out: HeldOut | None
    ) -> None:
        self.blocks = blocks
        self.folder = Path(blocks.folder) / "work" / name
        self.key = {**params, "written": blocks.manifest["written"]}
        self._serial = 0
        self._token = uuid.uuid4().hex[:8]  # no file of another fit has the name of one of these
        self._records: list[dict[str, Any]] = []
        self._recalled = 0
        self._last: dict[str, list[str]] = {}
        self._stored: dict[str, tuple[Array, list[str]]] = {}
        self._sites: dict[str, list[str]] = {}  # pseudo-answers of yes/no answers, a file a chunk
        self._rests: dict[str, list[str]] = {}  # what probabilities leave of them
        self._offset = 0.0
        self._open()
        self._out: dict[str, str | None] = {"rows": None, "cols": None}
        self._positions: dict[str, Indices] = {}
        if out is not None:
            self._leave_out("rows", out.by_row)
            self._leave_out("cols", out.by_col)

    def _open(self) -> None:
        """Take the journal up where there is one of the same fit, else begin."""
        try:
            found = json.loads((self.folder / JOURNAL).read_text())
        except (OSError, ValueError):
            found = {}
        files = [
            file
            for part in ("last", "sites")
            for side in SIDES
            for file in found.get(part, {}).get(side, [])
        ]
        whole = found.get("key") == self.key and all(Path(file).exists() for file in files)
        if not whole:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            return
        self._records, self._last = found["records"], found["last"]
        self._sites = found["sites"]

    def _leave_out(self, side: str, positions: Indices) -> None:
        self._positions[side] = np.sort(positions)
        number = zlib.crc32(self._positions[side].tobytes())
        path = self.folder / f"out-{side}-{number}.npy"
        save(path, self._positions[side])
        self._out[side] = str(path)

    def pointers(self) -> tuple[Indices, Indices]:
        """Return where each row's, and each column's, entries begin, without those left out."""
        found = []
        for side in SIDES:
            pointer = np.array(self.blocks.array(side, "pointer"))
            if side in self._positions:
                pointer -= np.searchsorted(self._positions[side], pointer)
            found.append(pointer)
        return found[0], found[1]

    def solve(
        self, rows: bool, fixed: Array, normal: dict[str, Any], keep: bool
    ) -> tuple[Array, Array, Array]:
        """Return means, covariances (when kept) and sums, one row a chunk, of a side with the other fixed."""
        own, other = SIDES if rows else SIDES[::-1]
        files = self._files(other, fixed)
        jobs = []
        name = self._name(own)
        for b, (chunks, sites) in enumerate(self._dealt(own, self._sites)):
            stem = str(self.folder / f"{name}-{b}")
            job = self._job(own, chunks) | {"fixed": files, "normal": normal}
            job |= {"sites": sites, "offset": self._offset}
            jobs.append(job | {"mean": f"{stem}.npy", "cov": f"{stem}-cov.npy" if keep else None})
        sums = np.concatenate(self.blocks.engine_at_work.map(solve_block, jobs))
        means = [job["mean"] for job in jobs]
        mean = stacked(tuple(means))
        self._stored[own] = (mean, means)
        q = mean.shape[1]
        cov: Array = np.zeros((0, q, q))
        if keep:
            cov = self._assembled(own, [job["cov"] for job in jobs], (len(mean), q, q))
        return mean, cov, sums

    def renew(self, rows: bool, logits: BlockLogits) -> Array:
        """Make the pseudo-answers of a side anew, which is solved with them from then on; return the weights' sum a chunk."""
        side = SIDES[0 if rows else 1]
        given = self._given(side, logits)
        jobs: list[dict[str, Any]] = []
        fresh: list[str] = []
        for chunks, old in self._dealt(side, self._sites):
            new = self._chunk_files(side, len(chunks))
            jobs.append(self._job(side, chunks) | given | {"old": old, "new": new})
            fresh += new
        weights = np.concatenate(self.blocks.engine_at_work.map(renew_block, jobs))
        self._sites[side], self._offset = fresh, logits.offset
        return weights

    def expect(self, logits: BlockLogits, step: int) -> Array:
        """Return the expected log-likelihood of every `step`-th answer by row, summed a chunk."""
        given = self._given("rows", logits) | {"step": step}
        jobs = [self._job("rows", chunks) | given for chunks in self.blocks.deal("rows")]
        return np.concatenate(self.blocks.engine_at_work.map(expect_block, jobs))

    def leave(self, logits: BlockLogits, unit: float) -> None:
        """Let products be with what the probabilities leave of yes/no answers, times `unit`."""
        jobs: list[dict[str, Any]] = []
        for side in SIDES:
            given = self._given(side, logits) | {"unit": unit}
            self._rests[side] = []
            for chunks in self.blocks.deal(side):
                new = self._chunk_files(side, len(chunks))
                jobs.append(self._job(side, chunks) | given | {"new": new})
                self._rests[side] += new
        self.blocks.engine_at_work.map(leave_block, jobs)

    def _given(self, side: str, logits: BlockLogits) -> dict[str, Any]:
        """Return where the means and shares of logits are, those of `side` first."""
        order = (0, 1) if side == "rows" else (1, 0)
        shares = []
        for k in order:
            shares.append(str(self.folder / f"{self._name('share')}.npy"))
            save(shares[-1], logits.shares[k])
        means = [self._files(SIDES[k], logits.means[k]) for k in order]
        return {"means": means, "shares": shares, "both": logits.both, "offset": logits.offset}

    def _chunk_files(self, side: str, count: int) -> list[str]:
        """Return names of files for so many chunks."""
        return [str(self.folder / f"{self._name(side)}.npy") for _ in range(count)]

    def _dealt(
        self, side: str, files: dict[str, list[str]]
    ) -> Iterator[tuple[list[tuple[int, int]], list[Any]]]:
        """Yield the chunks of each block with their files, None where there are none."""
        at = 0
        for chunks in self.blocks.deal(side):
            mine: list[Any] = files.get(side, [])[at : at + len(chunks)]
            yield chunks, mine or [None] * len(chunks)
            at += len(chunks)

    def _name(self, what: str) -> str:
        self._serial += 1
        return f"m-{self._token}-{self._serial}-{what}"

    def _job(self, side: str, chunks: list[tuple[int, int]]) -> dict[str, Any]:
        return {"folder": self.blocks.data, "side": side, "chunks": chunks, "out": self._out[side]}

    def _files(self, side: str, mean: Array) -> list[str]:
        """Return the files that hold these means, written now unless the last half sweep left them."""
        stored = self._stored.get(side)
        if stored is not None and stored[0] is mean:
            return stored[1]
        path = str(self.folder / f"{self._name(side)}.npy")
        save(path, mean)
        self._stored[side] = (mean, [path])
        return [path]

    def _assembled(self, side: str, files: list[str], shape: tuple[int, ...]) -> Array:
        """Return the covariances of all blocks as one array, mapped from a file that is gone when nobody uses it."""
        path = self.folder / f"cov-{side}.npy"
        path.unlink(missing_ok=True)
        found: Array = np.lib.format.open_memmap(path, "w+", np.float64, shape)
        start = 0
        for file in files:
            part = np.load(file, mmap_mode="r", allow_pickle=False)
            found[start : start + len(part)] = part
            start += len(part)
            Path(file).unlink()
        return found

    def multiply(
        self,
        rows: bool,
        means: tuple[Array, Array],
        scales: tuple[Array, Array],
        V: Array,
        seed: int,
    ) -> Array:
        """Return the scaled residuals, or their transpose where not `rows`, times V."""
        own, other = (0, 1) if rows else (1, 0)
        side = SIDES[own]
        files = [self._files(SIDES[k], means[k]) for k in (own, other)]
        stem = self._name("product")
        given = {"own": scales[own], "other": scales[other], "by": V}
        paths = {name: str(self.folder / f"{stem}-{name}.npy") for name in given}
        for name, array in given.items():
            save(paths[name], np.ascontiguousarray(array))
        jobs = []
        for b, (chunks, rests) in enumerate(self._dealt(side, self._rests)):
            product = str(self.folder / f"{stem}-{b}.npy")
            job = self._job(side, chunks) | paths
            job |= {"means": files, "seed": seed, "rests": rests}
            jobs.append(job | {"product": product})
        self.blocks.engine_at_work.map(multiply_block, jobs)
        products = [job["product"] for job in jobs]
        found = stacked(tuple(products))
        for path in (*paths.values(), *products):
            Path(path).unlink(missing_ok=True)
        return found

    def recall(self, kind: str) -> dict[str, Any] | None:
        """Return the next record of the journal, None when all was recalled."""
        if self.awake():
            return None
        found = self._records[self._recalled]
        if found["kind"] != kind:
            raise RuntimeError(f"the journal in {self.folder} has {found['kind']}, not {kind}")
        self._recalled += 1
        return found

    def awake(self) -> bool:
        """Tell whether all records were recalled."""
        return self._recalled == len(self._records)

    def record(self, kind: str, plain: dict[str, Any]) -> None:
        """Write a record down; a sweep's with where its means are, a spectrum's once the next sweep is made."""
        self._records.append({"kind": kind, **plain})
        self._recalled = len(self._records)
        if kind != "sweep":
            return
        self._last = {side: self._stored[side][1] for side in SIDES}
        journal = {
            "key": self.key,
            "last": self._last,
            "sites": self._sites,
            "records": self._records,
        }
        save_plain(self.folder / JOURNAL, journal)
        self._tidy()

    def _tidy(self) -> None:
        """Delete the means of earlier sweeps."""
        kept = (*self._last.values(), *self._sites.values())
        in_use = {Path(file).name for files in kept for file in files}
        for path in self.folder.glob("m-*.npy"):
            if path.name not in in_use:
                path.unlink(missing_ok=True)

    def means(self) -> tuple[Array, Array]:
        """Return the means of rows and columns as of the last record."""
        for side in SIDES:
            files = self._last[side]
            self._stored[side] = (stacked(tuple(files)), files)
        return self._stored["rows"][0], self._stored["cols"][0]

    def keep(self, number: int, plain: dict[str, Any], means: tuple[Array, Array]) -> None:
        """Store a state under a number."""
        for side, mean in zip(SIDES, means, strict=True):
            save(self.folder / f"kept-{number}-{side}.npy", mean)
        save_plain(self.folder / f"kept-{number}.json", plain)

    def kept(self, number: int) -> tuple[dict[str, Any], tuple[Array, Array]]:
        """Return the state stored under a number."""
        plain = json.loads((self.folder / f"kept-{number}.json").read_text())
        paths = [self.folder / f"kept-{number}-{side}.npy" for side in SIDES]
        rows, cols = (np.load(path, allow_pickle=False) for path in paths)
        return plain, (rows, cols)
