"""Workers killed at random points, answers corrected and studies extended meanwhile: what is left of a study.

:func:`torture` runs a study under several processes and strikes: it kills one, corrects an answer and corrects it
back, gives the matrix more lines or the study more money, and lets oracles raise. What it finds afterwards is held
against an undisturbed run.
"""

from __future__ import annotations

import contextlib
import multiprocessing as mp
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from entrywise.active import adaptive_nystrom
from entrywise.exceptions import EntrywiseError
from entrywise.gallery import random_psd
from entrywise.oracles import MatrixOracle
from entrywise.play import play
from entrywise.queries import Batch, Plan, Situation, plan
from entrywise.results import LowRank
from entrywise.study.schema import facts, questions
from entrywise.study.study import Study
from entrywise.study.work import answer
from entrywise.types import Array


@plan(streaming=True)
def scattered(
    shape: tuple[int, int], *, budget: float | None = None, size: int = 5, rng: Any = None,
    situation: Situation,
) -> Batch | LowRank:  # fmt: skip
    """Ask for entries in an order of its own, a few at a time, until the money is gone: for tests of studies."""
    m, n = shape
    facts, out = situation.facts, situation.pending
    order = np.argsort(_scores(situation.seed, m, n), kind="stable")
    rows, cols = order // n, order % n
    taken = np.isin(order, np.concatenate([facts.rows * n + facts.cols, out.rows * n + out.cols]))
    some = np.flatnonzero(~taken & situation.allows(rows, cols))
    count = size if situation.limit is None else situation.limit
    if situation.left is not None:
        count = min(count, int(situation.left + 1e-9))
    if count and len(some):
        some = some[:count]
        return Batch.entries(rows[some], cols[some], expected=np.zeros(len(some)))
    found = np.zeros((m, n))
    good = ~facts.failed
    found[facts.rows[good], facts.cols[good]] = facts.values[good]
    return LowRank(found, np.eye(n))


def _scores(seed: int, m: int, n: int) -> Array:
    """Return a number for each entry that does not depend on the size of the matrix."""
    i, j = np.divmod(np.arange(m * n, dtype=np.uint64), np.uint64(n))
    mixed = (i * np.uint64(0x9E3779B97F4A7C15)) ^ (j * np.uint64(0xC2B2AE3D27D4EB4F))
    mixed = (mixed + np.uint64(seed % 2**63)) * np.uint64(0xD6E8FEB86659FD93)
    return np.asarray((mixed ^ (mixed >> np.uint64(32))).astype(np.float64))


PLANS: dict[str, Callable[..., Plan]] = {"entrywise.study.crash:scattered": scattered}
STREAMING = "entrywise.study.crash:scattered"


@dataclass(frozen=True)
class Outcome:
    """What a disturbed study came to.

    ``lost`` answers were acknowledged and are not there, ``doubled`` entries were bought more than once,
    ``gave_up`` workers ended with an error; ``identical`` says whether the result is that of an undisturbed run, bit
    for bit.
    """

    kills: int
    acknowledged: int
    lost: int
    doubled: int
    gave_up: int
    identical: bool
    cost: float
    expected_cost: float
    seconds: float
    epochs: int = 0
    over: float = 0.0

    @property
    def unharmed(self) -> bool:
        """Whether nothing happened to the study; a correction may have led to questions that it would not ask."""
        harm = self.lost + self.doubled + self.gave_up
        fair = self.cost == self.expected_cost if not self.epochs else self.over <= 0.0
        return not harm and self.identical and fair


def work_and_note(
    url: str,
    name: str,
    worker: str,
    path: str,
    seed: int,
    matrix: Array,
    pause: float,
    raises: float,
) -> None:
    """Ask, measure and tell until the study is finished; note what was acknowledged."""
    oracle, chance = MatrixOracle(matrix), random.Random(seed)
    study = Study.open(url, name, plans=PLANS)
    study.release(worker)  # what we held before we were killed
    with open(path, "a", buffering=1) as notes:
        while not study.finished:
            try:
                leased = study.lease(chance.randint(1, 6), worker, 2.0)
            except EntrywiseError:  # a wrong answer is about to be corrected
                time.sleep(0.05)
                continue
            if leased is None:
                time.sleep(0.01)
                continue
            time.sleep(pause * chance.random())
            if chance.random() < raises:  # the oracle raised: no answer, the questions go back
                study.release(worker)
                continue
            told = answer(oracle, leased)
            with contextlib.suppress(EntrywiseError):
                study.put(told, worker)
            columns = (told.batch, told.position, told.value)
            for batch, position, value in zip(*(c.tolist() for c in columns), strict=True):
                notes.write(f"{batch} {position} {value!r}\n")


def torture(
    url: str,
    name: str,
    *,
    kills: int,
    seed: int,
    workers: int = 4,
    n: int = 60,
    rank: int = 6,
    pause: float = 0.02,
    raises: float = 0.0,
    strikes: Sequence[str] = ("kill",),
    streaming: bool = False,
    strike: Callable[[], None] | None = None,
) -> Outcome:
    """Run a study under `workers` processes, strike `kills` times, and look at what is left.

    `strikes` are drawn from kill (a worker, with SIGKILL), correct and extend; with `strike`, that is called instead.
    """
    chance = random.Random(seed)
    largest = n + sum(s == "extend" for s in strikes) * 10
    matrix = random_psd(largest, rank, seed)
    study, size = _made(url, name, streaming, n, seed), n
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["entrywise.study.crash"])
    start, done, gave_up = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as folder:

        def spawn(k: int) -> Any:
            own = (url, name, f"w{k}", str(Path(folder, f"w{k}")))
            how = (chance.randrange(2**31), matrix, pause, raises)
            process = context.Process(target=work_and_note, args=(*own, *how), daemon=True)
            process.start()
            return process

        crew = [spawn(k) for k in range(workers)]
        try:
            while not study.finished:
                time.sleep(chance.uniform(0.02, 0.3))
                k = chance.randrange(workers)
                what = chance.choice(list(strikes))
                if done < kills and crew[k].is_alive():
                    if strike is not None:
                        if len(list(Path(folder).iterdir())) < workers:
                            continue  # not all of them are at work
                        strike()
                    elif what == "kill":
                        os.kill(crew[k].pid, signal.SIGKILL)
                    elif what == "correct":
                        _correct(study, chance)
                    elif size < largest:
                        _extend(study, streaming)
                        size += 10
                    done += 1
                for k, process in enumerate(crew):
                    if not process.is_alive() and not study.finished:
                        process.join()
                        gave_up += process.exitcode not in (0, -signal.SIGKILL)
                        crew[k] = spawn(k)
        finally:
            for process in crew:
                process.join(20.0)
                if process.is_alive():
                    process.kill()
                    process.join()
        noted = [
            line.split()
            for path in Path(folder).iterdir()
            for line in path.read_text().splitlines()
        ]
    # the last line of a killed worker may be torn
    acknowledged = [(int(a), int(b), float(c)) for a, b, c in (x for x in noted if len(x) == 3)]
    return _outcome(
        study, matrix[:size, :size], acknowledged, done, gave_up, time.monotonic() - start
    )


def _made(url: str, name: str, streaming: bool, n: int, seed: int) -> Study:
    if not streaming:
        return Study.create(url, name, plan="adaptive-nystrom", params={"n": n}, seed=seed)
    size, share = {"shape": [n, n]}, n * n // 8
    return Study.create(
        url, name, plan=STREAMING, params=size, seed=seed, budget=float(share), plans=PLANS
    )


def _correct(study: Study, chance: random.Random) -> None:
    """Make an answer wrong, and right again: an epoch each."""
    told = [line for line in study.log() if line["what"] == "told"]
    if told:
        line = chance.choice(told)
        for value in (line["value"] + 1.0, line["value"]):
            with contextlib.suppress(EntrywiseError):  # kept, but the plan may not believe it
                study.amend(line["id"], value)


def _extend(study: Study, streaming: bool) -> None:
    with contextlib.suppress(EntrywiseError):
        if streaming:
            study.extend(rows=10, cols=10, budget=20.0)
        else:
            study.extend(rows=10)


def _outcome(
    study: Study,
    matrix: Array,
    noted: list[tuple[int, int, float]],
    done: int,
    gave_up: int,
    seconds: float,
) -> Outcome:
    f, q = facts.c, questions.c
    same = (f.study == q.study) & (f.batch == q.batch) & (f.position == q.position)
    record = study.store.record(study.name)
    query = (
        sa.select(f.batch, f.position, f.value, f.charged, q.row, q.col)
        .select_from(facts.join(questions, same))
        .where(f.study == record.id)
    )
    kept = study.store.database.read(lambda c: c.execute(query).all())
    there = {(batch, position, value) for batch, position, value, *_ in kept}
    lost = sum(line not in there for line in noted)
    bought = [_entry(record, row, col) for *_, charged, row, col in kept if charged > 0]
    found = Study.open(study.store, study.name, plans=PLANS).result()
    expected = _expected(record, matrix, found)
    over = 0.0 if record.total is None else found.cost - record.total
    return Outcome(
        kills=done,
        acknowledged=len(noted),
        lost=lost,
        doubled=len(bought) - len(set(bought)),
        gave_up=gave_up,
        identical=_same(found, expected),
        cost=found.cost,
        expected_cost=expected.cost,
        seconds=seconds,
        epochs=record.epoch,
        over=max(over, 0.0),
    )


def _entry(record: Any, row: int, col: int) -> tuple[int, int]:
    return (min(row, col), max(row, col)) if record.symmetric else (row, col)


def _expected(record: Any, matrix: Array, found: Any) -> Any:
    """Return what an undisturbed run comes to."""
    if not record.streaming:
        return play(adaptive_nystrom(len(matrix), rng=record.seed), MatrixOracle(matrix))
    if not record.epoch:
        made = scattered(tuple(matrix.shape), budget=record.total, rng=record.seed)
        return play(made, MatrixOracle(matrix))
    # in a later epoch it goes on from what was bought: every value must be the matrix's own
    values = found.left @ found.right.T
    return LowRank(np.where(values == 0, 0.0, matrix), np.eye(matrix.shape[1]), cost=found.cost)


def _same(found: Any, expected: Any) -> bool:
    if hasattr(found, "factor"):
        same = found.factor.tobytes() == expected.factor.tobytes()
        return bool(same and found.pivots.tolist() == expected.pivots.tolist())
    return bool(np.array_equal(found.left, expected.left))
