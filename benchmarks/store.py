"""How fast studies are kept: writers side by side, asking after a million answers, looking, resuming.

Bars, each within one run:

- 8 processes telling one answer at a time for 30 s on SQLite: no "locked" error; PostgreSQL at least 3 times
  as many answers a second. The worst wait is reported. A commit takes as long as the disk needs, and disks have
  moods: three rounds of 30 s on each database, by turns, and the median of their three ratios counts. The server has its
  settings as installed (``synchronous_commit`` and ``fsync`` are on), SQLite ``synchronous=FULL``.
- ``ask`` with 1,000,000 answers behind it takes at most twice as long as with 10,000.
- ``Study.status`` takes at most twice as long with 100,000 open questions as with 100, and at most twice as long
  after 1,000,000 answers of a streaming plan as after 10,000.
- Resuming an adaptive Nyström study of 250,000 answers takes at most 3 times as long as reading its rows with
  plain SQL.

``--quick`` shortens all of it; ``--only writers|ask|status|resume`` runs one part.
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from _shared import Bars, show
from entrywise.checks.postgres import server
from entrywise.exceptions import Exhausted
from entrywise.oracles import KernelOracle
from entrywise.queries import Batch, plan
from entrywise.results import LowRank
from entrywise.study import Study, Told
from entrywise.study.work import answer

WRITERS = 8


@plan()
def steady(rounds: int, size: int):
    """Ask for `rounds` rows of `size` entries, whatever the answers are."""
    try:
        for k in range(rounds):
            yield Batch.entries(np.full(size, k), np.arange(size))
    except Exhausted:
        pass
    return LowRank(np.zeros((rounds, 1)), np.zeros((size, 1)))


@plan(streaming=True)
def expecting(size: int, *, situation: Any):
    """Ask for `size` entries at once and say what each should be."""
    if situation.step:
        return LowRank(np.zeros((1, 1)), np.zeros((size, 1)))
    wanted = Batch.entries(np.zeros(size, np.int64), np.arange(size))
    return replace(wanted, expected=np.ones(size), deviation=np.ones(size))


PLANS = {"store:steady": steady, "store:expecting": expecting}


def write(url: str, name: str, first: int, last: int, seconds: float, gate: Any, out: Any) -> None:
    """Tell answers first..last one at a time until the time is over."""
    study = Study.open(url, name)
    study.put(Told(np.zeros(1, int), np.array([first]), np.ones(1), np.zeros(1, bool)))
    gate.wait()
    waits, errors, end = [], [], time.perf_counter() + seconds
    for k in range(first + 1, last):
        start = time.perf_counter()
        if start > end:
            break
        try:
            study.put(Told(np.zeros(1, int), np.array([k]), np.ones(1), np.zeros(1, bool)))
        except Exception as error:
            errors.append(str(error))
        waits.append(time.perf_counter() - start)
    out.put((waits, errors))


def writers(url: str, name: str, seconds: float) -> tuple[float, list[float], list[str], int]:
    """Return (seconds, waits, errors, answers kept) of 8 processes that write at once."""
    share = int(1000 * seconds)  # more than anybody tells in that time
    study = Study.create(
        url, name, plan="adaptive-nystrom", params={"n": share * WRITERS, "rank": 1}, seed=1
    )
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["entrywise.study.crash"])
    gate, out = context.Barrier(WRITERS + 1), context.Queue()
    crew = [
        context.Process(
            target=write, args=(url, name, k * share, (k + 1) * share, seconds, gate, out)
        )
        for k in range(WRITERS)
    ]
    for process in crew:
        process.start()
    gate.wait()
    start = time.perf_counter()
    found = [out.get() for _ in crew]
    spent = time.perf_counter() - start
    for process in crew:
        process.join()
    waits = [w for part, _ in found for w in part]
    return (
        spent,
        waits,
        [e for _, part in found for e in part],
        study.status()["answered"] - WRITERS,
    )


def ask_times(
    url: str, sizes: tuple[int, ...], size: int, repeats: int
) -> dict[int, tuple[float, float]]:
    """Return for each number of answers (seconds of a warm ask, seconds of opening and asking)."""
    for total in sizes:
        rounds = total // size
        study = Study.create(
            url,
            f"ask-{total}",
            plan="store:steady",
            params={"rounds": rounds + 1, "size": size},
            plans=PLANS,
        )
        for _ in range(rounds):
            leased = study.lease(None, "loader")
            values = np.arange(size, dtype=float)
            study.put(
                Told(np.full(size, leased.batch), leased.positions, values, np.zeros(size, bool)),
                "loader",
            )
        assert study.status()["answered"] == total
    warm: dict[int, list[float]] = {total: [] for total in sizes}
    cold: dict[int, list[float]] = {total: [] for total in sizes}
    opened = {total: Study.open(url, f"ask-{total}", plans=PLANS) for total in sizes}
    for _ in range(repeats):
        for total in sizes:
            start = time.perf_counter()
            assert len(opened[total].ask(20, "w")) == 20
            warm[total].append(time.perf_counter() - start)
            start = time.perf_counter()
            assert len(Study.open(url, f"ask-{total}", plans=PLANS).ask(20, "w")) == 20
            cold[total].append(time.perf_counter() - start)
    return {
        total: (statistics.median(warm[total]), statistics.median(cold[total])) for total in sizes
    }


def status_times(studies: dict[int, Study], repeats: int) -> dict[int, float]:
    """Return the median seconds of a look at each study, by turns."""
    took: dict[int, list[float]] = {size: [] for size in studies}
    for _ in range(repeats):
        for size, study in studies.items():
            start = time.perf_counter()
            study.status()
            took[size].append(time.perf_counter() - start)
    return {size: statistics.median(times) for size, times in took.items()}


def with_open(url: str, size: int) -> Study:
    """Return a study with so many open questions, of which a hundred are out."""
    study = Study.create(
        url,
        f"open-{size}",
        plan="store:steady",
        params={"rounds": 1, "size": size},
        plans=PLANS,
    )
    study.lease(100, "w")
    return study


def with_answers(url: str, size: int) -> Study:
    """Return a study of a streaming plan with so many answers, a hundredth of a percent of them implausible."""
    study = Study.create(
        url, f"answers-{size}", plan="store:expecting", params={"size": size + 100}, plans=PLANS
    )
    values = np.ones(size)
    values[::10_000] = 100.0
    told = Told(np.zeros(size, int), np.arange(size), values, np.zeros(size, bool))
    study.put(told)
    now = study.status()
    assert now["answered"] == size
    assert now["implausible"]
    return study


READ = """SELECT q.batch, q.position, q."row", q.col, q.mode, q.price, a.value, a.failed, a.worker, a.told_at, a.kind
FROM questions q JOIN facts a ON a.study = q.study AND a.batch = q.batch AND a.position = q.position
WHERE q.study = {} ORDER BY q.batch, q.position"""


def plain_read(url: str, study: int) -> int:
    """Read all questions with their answers through the bare driver."""
    if "://" in url:
        import psycopg

        with psycopg.connect(url) as connection:
            return len(connection.execute(READ.format(study)).fetchall())
    import sqlite3

    connection = sqlite3.connect(url)
    try:
        return len(connection.execute(READ.format(study)).fetchall())
    finally:
        connection.close()


def resume_times(url: str, n: int, columns: int, repeats: int) -> tuple[int, float, float]:
    """Return (answers, seconds of resuming, seconds of plain SQL) for an open adaptive Nyström study."""
    points = np.random.default_rng(7).standard_normal((n, 20))
    study = Study.create(
        url, "resume", plan="adaptive-nystrom", params={"n": n, "rank": columns + 5}, seed=1
    )
    oracle = KernelOracle(points)
    while study.status()["batch"] < columns + 1:
        study.put(answer(oracle, study.lease()))
    if (
        "://" in url
    ):  # without statistics the plain query below would compare all rows with all rows
        study.store.database.write(lambda c: c.exec_driver_sql("ANALYZE questions; ANALYZE facts"))
    answered = 0
    resumed, plain = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        answered = plain_read(url, study._record.id)
        plain.append(time.perf_counter() - start)
        start = time.perf_counter()
        found = Study.open(url, "resume").result()
        resumed.append(time.perf_counter() - start)
        assert found.rank == columns
    return answered, min(resumed), min(plain)


def compare_writers(urls: dict[str, str], quick: bool, bars: Bars) -> None:
    rows: list[tuple[Any, ...]] = []
    rate: dict[str, list[float]] = {kind: [] for kind in urls}
    failures, missing = dict.fromkeys(urls, 0), dict.fromkeys(urls, 0)
    for k in range(3):
        for kind, url in urls.items():
            spent, waits, errors, kept = writers(url, f"writers-{k}", 2.0 if quick else 30.0)
            waits.sort()
            rate[kind].append(len(waits) / spent)
            at = [waits[int(q * (len(waits) - 1))] * 1e3 for q in (0.5, 0.99, 1.0)]
            rows.append((k, kind, rate[kind][-1], len(waits), kept, len(errors), *at))
            failures[kind] += len(errors)
            missing[kind] += len(waits) - kept
    head = (
        "round",
        "database",
        "answers/s",
        "acknowledged",
        "kept",
        "errors",
        "median ms",
        "99% ms",
        "worst ms",
    )
    show(f"{WRITERS} processes telling one answer at a time", head, rows)
    for kind in urls:
        bars.at_most(f"{kind}: errors while writing", failures[kind], 0)
        bars.at_most(f"{kind}: acknowledged answers missing", missing[kind], 0)
    ratios = [post / lite for post, lite in zip(rate["postgresql"], rate["sqlite"], strict=True)]
    bars.at_least("postgresql / sqlite, answers a second", statistics.median(ratios), 3.0)


def compare_asks(urls: dict[str, str], quick: bool, bars: Bars) -> None:
    rows = []
    few, many = sizes = (10_000, 100_000 if quick else 1_000_000)
    for kind, url in urls.items():
        found = ask_times(url, sizes, 10_000, 20 if quick else 60)
        rows += [(kind, total, warm * 1e3, cold * 1e3) for total, (warm, cold) in found.items()]
        ratios = [found[many][k] / found[few][k] for k in (0, 1)]
        bars.at_most(f"{kind}: ask at {many:,} / at {few:,} answers", ratios[0], 2.0)
        bars.at_most(f"{kind}: open and ask, the same", ratios[1], 2.0)
    show(
        "asking for 20 questions", ("database", "answers before", "ask ms", "open and ask ms"), rows
    )


def compare_looks(urls: dict[str, str], quick: bool, bars: Bars) -> None:
    rows = []
    repeats = 50 if quick else 200
    for kind, url in urls.items():
        for what, make, few, many in (
            ("open questions", with_open, 100, 100_000),
            ("answers", with_answers, 10_000, 100_000 if quick else 1_000_000),
        ):
            found = status_times({size: make(url, size) for size in (few, many)}, repeats)
            rows += [(kind, what, size, seconds * 1e3) for size, seconds in found.items()]
            ratio = found[many] / found[few]
            bars.at_most(f"{kind}: status at {many:,} / at {few:,} {what}", ratio, 2.0)
    show("looking where a study stands", ("database", "what", "how many", "status ms"), rows)


def compare_resumes(urls: dict[str, str], quick: bool, bars: Bars) -> None:
    rows = []
    for kind, url in urls.items():
        answered, resumed, plain = resume_times(url, *((1000, 24) if quick else (5000, 49)), 3)
        rows.append((kind, answered, resumed, plain))
        bars.at_most(f"{kind}: resuming {answered:,} answers / plain SQL", resumed / plain, 3.0)
    show("resuming adaptive Nyström", ("database", "answers", "resume s", "plain SQL s"), rows)


PARTS = {
    "writers": compare_writers,
    "ask": compare_asks,
    "status": compare_looks,
    "resume": compare_resumes,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=tuple(PARTS))
    options = parser.parse_args()
    bars = Bars()
    with server() as postgres, tempfile.TemporaryDirectory() as folder:
        urls = {"sqlite": str(Path(folder, "lab.db")), "postgresql": postgres}
        for name, compare in PARTS.items():
            if options.only in (None, name):
                compare(urls, options.quick, bars)
    bars.end()


if __name__ == "__main__":
    main()
