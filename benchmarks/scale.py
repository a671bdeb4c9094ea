"""Blocks: the same bits on Dask as in one process, what a sweep costs there, and entries larger than memory.

make bench NAME=scale [ARGS="--quick --only same --runs 20"]
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import shutil
import signal
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import polars as pl

import entrywise as ew
from _shared import Bars, in_child, show, wall
from entrywise.oracles import ExecutorOracle
from entrywise.passive.low_rank import low_rank_of_blocks
from entrywise.queries import Batch
from entrywise.scale import Blocks, write_blocks

SECTIONS = ("same", "oracle", "sweep", "large")
PIECE = 2_000_000
LIMIT = 1_300_000_000  # of private memory, asked for or used; imports and polars' threads take .5 GB of it


def make(path, m, n, known, rank, seed):
    """Write entries of a rank-`rank` matrix with noise, piece by piece; duplicates are rare and averaged later."""
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((m, rank)), rng.standard_normal((n, rank))
    path.mkdir(parents=True)
    for number, start in enumerate(range(0, known, PIECE)):
        size = min(PIECE, known - start)
        i, j = rng.integers(m, size=size), rng.integers(n, size=size)
        y = np.einsum("tk,tk->t", U[i], V[j]) + 0.3 * rng.standard_normal(size)
        frame = pl.DataFrame({"i": i.astype(np.int32), "j": j.astype(np.int32), "y": y})
        frame.write_parquet(path / f"{number:04d}.parquet", compression="uncompressed")


def written(folder, m, n, known, rank=3, seed=0):
    make(folder / "entries", m, n, known, rank, seed)
    pattern = folder / "entries" / "*.parquet"
    return write_blocks(pattern, folder / "blocks", labels=False, duplicates="mean")


class Cluster:
    """Two local workers; a cluster that does not bring a killed one back is replaced."""

    def __init__(self):
        self._start()

    def _start(self):
        from distributed import Client, LocalCluster

        options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        options |= {"memory_limit": 0, "silence_logs": logging.CRITICAL}
        self.made = LocalCluster(**options, host="127.0.0.1")
        self.client = Client(self.made)

    def whole(self):
        """Return a client with both workers there."""
        try:
            self.client.wait_for_workers(2, timeout=60)
        except TimeoutError:
            self.close()
            self._start()
        return self.client

    def close(self):
        """End the workers."""
        self.client.close()
        self.made.close()


def kill_one(client):
    pids = list(client.run(os.getpid).values())
    os.kill(pids[0], signal.SIGKILL)


def digest(found):
    parts = (found.left, found.right, found.row_offset, found.posterior.rows.cov)
    return tuple(np.ascontiguousarray(part).tobytes() for part in parts)


def same(bars, folder, quick, runs):
    """Fit a million entries by Dask in 1, 2, 4 and 7 blocks, a worker killed in mid-task each time."""
    known = 100_000 if quick else 1_000_000
    blocks = written(folder, 20_000, 5_000, known)
    how = {"rank": 3, "calibrate": False, "max_sweeps": 8}
    whole = digest(ew.complete(blocks, **how))
    equal, killed, rows = 0, 0, []
    with closing(Cluster()) as cluster:
        for run in range(runs):
            client = cluster.whole()
            count = (1, 2, 4, 7)[run % 4]
            timers = []

            def tick(sweep, noise, timers=timers, client=client):
                if sweep == 3:
                    timers.append(threading.Timer(0.02, kill_one, [client]))
                    timers[0].start()

            seconds, found = wall(
                lambda b=count, t=tick, c=client: ew.complete(
                    Blocks(blocks.folder, blocks=b), engine=c, progress=t, **how
                )
            )
            killed += len(timers)
            equal += digest(found) == whole
            rows.append((run, count, seconds, digest(found) == whole))
    show(f"{known} entries, two Dask workers, one killed", ("run", "blocks", "s", "same"), rows)
    bars.at_least("runs with the bits of one process", equal, runs)
    bars.at_least("workers killed", killed, runs)


def measured(i, j):
    time.sleep(0.005)
    if np.random.default_rng().random() < 0.1:
        raise OSError("busy")
    return float(1000 * i + j)


def oracle(bars, folder, quick, runs):
    """Answer 100 questions by Dask, a tenth raising, a worker killed in the middle.

    An answer that dies with its worker and raises when it is made again is never given by Dask: the timeout ends it.
    """
    answered = 0
    expected = [1000.0 * i + j for i in range(10) for j in range(10)]
    with closing(Cluster()) as cluster:
        for _ in range(runs):
            client = cluster.whole()
            executor = client.get_executor(pure=False)
            asked = ExecutorOracle(measured, executor, timeout=10, retries=5, width=8)
            threading.Timer(0.15, kill_one, [client]).start()
            seconds, answers = wall(lambda a=asked: a(Batch.block(np.arange(10), np.arange(10))))
            answered += np.array_equal(answers, expected)
            print(f"{seconds:.1f} s, {answered} runs answered", flush=True)
    bars.at_least("runs of the oracle with every answer", answered, runs)


class Bytes:
    """What the driver sends and gets through Dask, by the client's own pickles."""

    def __init__(self, client):
        self.client, self.total = client, 0

    def nthreads(self):
        """As the client's."""
        return self.client.nthreads()

    def map(self, task, jobs, **how):
        """As the client's, counted."""
        import pickle

        self.total += sum(len(pickle.dumps(job)) for job in jobs)
        return self.client.map(task, jobs, **how)

    def gather(self, futures):
        """As the client's, counted."""
        import pickle

        found = self.client.gather(futures)
        self.total += len(pickle.dumps(found))
        return found


class Peak:
    """Watches this process: the most bytes of its own, and those with the pages of mapped files that it touched.

    Pages of a mapped file are the system's to drop: its own are what no file holds (RssAnon, and RssShmem of memory shared with
    others). The system keeps no peak of these, so they are looked at every 5 ms.
    """

    def __init__(self):
        self.own = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        while True:
            status = self._status()
            self.own = max(self.own, status["RssAnon"] + status["RssShmem"])
            time.sleep(0.005)

    @staticmethod
    def _status():
        with open("/proc/self/status") as file:  # getrusage would tell the parent's, too
            lines = dict(line.split(":", 1) for line in file)
        names = ("RssAnon", "RssShmem", "VmHWM")
        return {name: int(lines[name].split()[0]) * 1024 for name in names}

    def read(self):
        """Return (bytes of its own, bytes with mapped files), both at their peaks."""
        return self.own, self._status()["VmHWM"]


def watched(dask_worker):
    dask_worker.peak = Peak()


def peak_of(dask_worker):
    return dask_worker.peak.read()


def sweep(bars, folder, quick, runs):
    """Time a sweep at rank 10 in one process with two threads and by two workers, in one run, in turn."""
    known = 500_000 if quick else 20_000_000
    blocks = written(folder, 20_000 if quick else 200_000, 20_000, known, rank=10)
    times: dict[str, list[float]] = {"one process": [], "Dask": []}
    with closing(Cluster()) as cluster:
        client = cluster.whole()
        client.run(watched)
        counted = Bytes(client)
        for name, engine in (("one process", None), ("Dask", counted)):
            last = [0.0]

            def tick(sweep, noise, last=last, name=name):
                now = time.perf_counter()
                if (
                    sweep > 4
                ):  # the first sweeps have no components, the third waits for their start
                    times[name].append(now - last[0])
                last[0] = now

            fit = low_rank_of_blocks(blocks.on(engine), 10, max_sweeps=10, tol=0.0, progress=tick)
            blocks.clear()
            if name == "one process":
                whole = digest(fit)
            else:
                bars.at_least(
                    f"{known} entries: Dask has the bits of one process", digest(fit) == whole, 1
                )
        before = counted.total
        low_rank_of_blocks(blocks.on(counted), 0, max_sweeps=3, tol=0.0)
        own, mapped = (max(peaks) for peaks in zip(*client.run(peak_of).values(), strict=True))
        through = (counted.total - before) / 4  # three sweeps and the last one
    rows = [(name, min(t), float(np.median(t))) for name, t in times.items()]
    show(f"{known} entries, rank 10: a sweep", ("", "fastest s", "median s"), rows)
    ratio = np.median(times["Dask"]) / np.median(times["one process"])
    bars.at_most("a sweep on Dask / one process with two threads, wall", ratio, 1.25)
    bars.at_most("MB a sweep through Dask", through / 1e6, 1.0)
    print(f"a worker at its peak, touched pages of mapped files included: {mapped / 1e9:.2f} GB")
    bars.at_most("GB of a worker's own at its peak", own / 1e9, 1.0)


def _limited(call, *args):
    """Return (CPU s, wall s, bytes of its own, with files, what the call returns) under a limit of private memory."""
    peak = Peak()
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    started, begun = time.process_time(), time.perf_counter()
    found = call(*args)
    return time.process_time() - started, time.perf_counter() - begun, *peak.read(), found


def _ingested(folder):
    pattern = f"{folder}/entries/*.parquet"
    return len(write_blocks(pattern, f"{folder}/blocks", labels=False, duplicates="mean"))


def _fitted(folder):
    found = ew.complete(Blocks(f"{folder}/blocks"), rank=2, max_sweeps=6)
    return found.report["held_out_rmse"]


def large(bars, folder, quick, runs):
    """Ingest and complete entries that are larger than the memory that either process may use."""
    known = 2_000_000 if quick else 100_000_000
    make(folder / "entries", known // 200, known // 2000, known, 2, 0)
    size = sum(path.stat().st_size for path in (folder / "entries").iterdir())
    *ingest, count = in_child(_limited, _ingested, str(folder))[2]
    *fit, error = in_child(_limited, _fitted, str(folder))[2]
    disk = sum(path.stat().st_size for path in (folder / "blocks").rglob("*") if path.is_file())
    columns = ("", "CPU s", "wall s", "own GB", "with mapped files GB")
    rows = [
        (name, cpu, wall, own / 1e9, mapped / 1e9)
        for name, (cpu, wall, own, mapped) in (("ingest", ingest), ("fit", fit))
    ]
    title = f"{count:,} entries, {size / 1e9:.2f} GB; limit {LIMIT / 1e9} GB; blocks {disk / 1e9:.2f} GB"
    show(title, columns, rows)
    bars.at_least("input / memory limit", size / LIMIT, 0.0 if quick else 1.0)
    bars.at_most("held-out error (noise .3)", error, 0.35)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--only", choices=SECTIONS, action="append")
    parser.add_argument("--runs", type=int, default=20, help="with a killed worker")
    given = parser.parse_args()
    bars = Bars()
    for name in given.only or SECTIONS:
        folder = Path(tempfile.mkdtemp(prefix="entrywise-scale-"))
        try:
            globals()[name](bars, folder, given.quick, given.runs)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    bars.end()


if __name__ == "__main__":
    main()
