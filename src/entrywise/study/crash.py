"""Kill workers at random and see that nothing is lost: for tests, benchmarks, and your own store.

Worker processes ask, measure and tell; they note an answer in a file of their own once the store has
acknowledged it. They are killed with SIGKILL at random moments and started again; or something else strikes, such
as a restart of the server, which they have to survive.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from entrywise.active import adaptive_nystrom
from entrywise.gallery import random_psd
from entrywise.oracles import MatrixOracle
from entrywise.play import play
from entrywise.study.schema import answers, questions
from entrywise.study.study import Study
from entrywise.study.work import answer
from entrywise.types import Array


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

    @property
    def unharmed(self) -> bool:
        """Whether nothing happened to the study."""
        harm = self.lost + self.doubled + self.gave_up
        return not harm and self.identical and self.cost == self.expected_cost


def work_and_note(
    url: str, name: str, worker: str, path: str, seed: int, matrix: Array, pause: float
) -> None:
    """Ask, measure and tell until the study is finished; note what was acknowledged."""
    oracle, chance = MatrixOracle(matrix), random.Random(seed)
    study = Study.open(url, name)
    study.release(worker)  # what we held before we were killed
    with open(path, "a", buffering=1) as notes:
        while not study.finished:
            leased = study.lease(chance.randint(1, 6), worker, 2.0)
            if leased is None:
                time.sleep(0.01)
                continue
            time.sleep(pause * chance.random())
            told = answer(oracle, leased)
            study.put(told, worker)
            lines = zip(
                told.batch.tolist(), told.position.tolist(), told.value.tolist(), strict=True
            )
            notes.write(
                "".join(f"{batch} {position} {value!r}\n" for batch, position, value in lines)
            )


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
    strike: Callable[[], None] | None = None,
) -> Outcome:
    """Run a study under `workers` processes, kill one of them `kills` times, and look at what is left.

    With `strike`, that is called `kills` times instead.
    """
    matrix = random_psd(n, rank, seed)
    expected = play(adaptive_nystrom(n, rng=seed), MatrixOracle(matrix))
    study = Study.create(url, name, plan="adaptive-nystrom", params={"n": n}, seed=seed)
    chance = random.Random(seed)
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(["entrywise.study.crash"])
    start, done, gave_up = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as folder:

        def spawn(k: int) -> Any:
            args = (
                url,
                name,
                f"w{k}",
                str(Path(folder, f"w{k}")),
                chance.randrange(2**31),
                matrix,
                pause,
            )
            process = context.Process(target=work_and_note, args=args, daemon=True)
            process.start()
            return process

        crew = [spawn(k) for k in range(workers)]
        try:
            while not study.finished:
                time.sleep(chance.uniform(0.02, 0.3))
                k = chance.randrange(workers)
                if done < kills and crew[k].is_alive():
                    if strike is None:
                        os.kill(crew[k].pid, signal.SIGKILL)
                    elif len(list(Path(folder).iterdir())) == workers:  # all of them are at work
                        strike()
                    else:
                        continue
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
    noted = [
        line for line in noted if len(line) == 3
    ]  # the last line of a killed worker may be torn
    a, q = answers.c, questions.c
    same = (a.study == q.study) & (a.batch == q.batch) & (a.position == q.position)
    query = (
        sa.select(a.batch, a.position, a.value, q.row, q.col)
        .select_from(answers.join(questions, same))
        .where(a.study == study.store.record(name).id, a.source == "told")
    )
    kept = study.store.database.read(lambda c: c.execute(query).all())
    there = {(batch, position): value for batch, position, value, _, _ in kept}
    lost = sum(
        there.get((int(batch), int(position))) != float(value) for batch, position, value in noted
    )
    entries = [(min(row, col), max(row, col)) for _, _, _, row, col in kept]
    found = Study.open(url, name).result()
    equal = (
        found.factor.tobytes() == expected.factor.tobytes()
        and found.pivots.tolist() == expected.pivots.tolist()
    )
    return Outcome(
        done, len(noted), lost, len(entries) - len(set(entries)), gave_up, equal, found.cost, expected.cost,
        time.monotonic() - start,
    )  # fmt: skip
