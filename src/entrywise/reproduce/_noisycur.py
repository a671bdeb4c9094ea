"""The contest of the noisyCUR paper: its data sets, and every method with the settings it is tried at."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from entrywise.active import cur_plus, literal_noisy_cur, noisy_cur, split_nuclear_norm, two_phase
from entrywise.exceptions import DataError
from entrywise.observations import Observations
from entrywise.oracles import TwoCostOracle
from entrywise.passive.iterative_svd import iterative_svd
from entrywise.play import play
from entrywise.queries import Plan, Prices
from entrywise.run import Run
from entrywise.types import Array

SMALL = (
    10_000  # entries up to which nuclear norms are solved to the end and their penalty is searched
)


@dataclass(frozen=True, eq=False)
class Contest:
    """One panel: a matrix for every seed, the noises, the budget share, and the authors' hard-coded penalty if any."""

    name: str
    matrix: Callable[[int], Array]
    column_noise: float
    entry_noise: float
    share: float
    rank: int
    alpha: float = 0.2
    code_penalty: float | None = None

    @property
    def noise(self) -> dict[str, float]:
        """Standard deviations of the two instruments."""
        return {"column": self.column_noise, "entry": self.entry_noise}

    def prices(self, m: int, n: int = 0) -> Prices:
        """Prices of a column and an entry, and of a noisy row (for CUR+) where it is cheaper than its entries.

        The authors' program prices a row like a column. On a tall matrix that is more than its n precise entries cost,
        and a row is then bought as those.
        """
        line = self.alpha * max(m, n)
        return (
            Prices(column=self.alpha * m, row=line) if line < n else Prices(column=self.alpha * m)
        )

    def budget(self, A: Array) -> float:
        """Money in all."""
        return self.share * A.size

    def most_columns(self, A: Array) -> int:
        """Columns that leave money for at least one precise row."""
        left = self.budget(A) - A.shape[1]
        return int(min(A.shape[1], left / (self.alpha * A.shape[0])))


def synthetic(m: int = 80, n: int = 60, rank: int = 4) -> Callable[[int], Array]:
    """Return the paper's incoherent matrices: the best approximation of rank 4 of N(5, 1) entries."""

    def make(seed: int) -> Array:
        A = np.random.default_rng(seed).normal(5.0, 1.0, (m, n))
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        return np.asarray((U[:, :rank] * s[:rank]) @ Vt[:rank])

    return make


def _folder() -> Path:
    folder = os.environ.get("ENTRYWISE_DATA")
    if not folder or not Path(folder).is_dir():
        raise DataError(
            "ENTRYWISE_DATA must name the folder of data sets; set it, or leave this figure out"
        )
    return Path(folder)


def jester(users: int | None = None) -> Array:
    """Return the users who rated all 100 Jester jokes, shape (7200, 100), or the first `users` of them."""
    raw = np.load(_folder() / "jester_1" / "jester1.npz")["ratings_x100"]
    full = raw[(raw != -32768).all(axis=1)] / 100.0
    return np.asarray(full[:users], dtype=np.float64)


def movielens(rank: int = 10, movies: int | None = None) -> Array:
    """Return MovieLens-100K, movies x users, completed by iterative SVD; or the `movies` most rated ones."""
    import gzip

    with gzip.open(_folder() / "movielens_100k" / "ratings.csv.gz", "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1, usecols=(0, 1, 2))
    users, items = table[:, 0].astype(np.int64) - 1, table[:, 1].astype(np.int64) - 1
    values = table[:, 2]
    if movies is not None:
        top = np.sort(np.argsort(-np.bincount(items), kind="stable")[:movies])
        keep = np.isin(items, top)
        users, items, values = users[keep], np.searchsorted(top, items[keep]), values[keep]
    seen = Observations.from_triplets(
        items, users, values, (int(items.max()) + 1, int(users.max()) + 1)
    )
    return iterative_svd(seen, rank, max_sweeps=100).to_dense()


def error(X: Array, A: Array) -> float:
    """Return the relative Frobenius error."""
    return float(np.linalg.norm(X - A) / np.linalg.norm(A))


def overlay(run: Run, X: Array) -> Array:
    """Return X with every entry that was bought precisely put in as it was measured."""
    X = np.array(X)
    for batch, answers in run.log:
        if batch.mode == "entry":
            X[batch.rows, batch.cols] = answers
    return X


def played(contest: Contest, plan: Plan, A: Array, seed: int) -> tuple[Any, Run]:
    """Return the result of a plan and its run; every method meets the same seeds of the instruments' noise."""
    oracle = TwoCostOracle(
        A,
        entry_noise=contest.entry_noise,
        column_noise=contest.column_noise,
        row_noise=contest.column_noise,
        rng=np.random.default_rng([seed, 1]),
    )
    run = Run(plan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return play(run, oracle), run


Method = Callable[[Contest, Array, int, Any], Plan]


def _common(c: Contest, A: Array, seed: int) -> dict[str, Any]:
    return {"shape": A.shape, "prices": c.prices(*A.shape), "budget": c.budget(A), "rng": seed}


def _literal(c: Contest, A: Array, seed: int, d: int) -> Plan:
    return literal_noisy_cur(columns=d, **_common(c, A, seed))


def _code(c: Contest, A: Array, seed: int, d: int) -> Plan:
    return literal_noisy_cur(
        columns=d, variant="code", penalty=c.code_penalty, **_common(c, A, seed)
    )


def _cur_plus(c: Contest, A: Array, seed: int, setting: tuple[int, int]) -> Plan:
    columns, rows = setting
    rank = min(c.rank, columns, rows)
    return cur_plus(columns=columns, rows=rows, rank=rank, **_common(c, A, seed))


def cur_plus_settings(c: Contest, A: Array, columns: Iterable[int]) -> list[tuple[int, int]]:
    """Return (columns, rows) for CUR+: with each number of columns, rows for a quarter, a half and all of the rest."""
    m, n = A.shape
    prices = c.prices(m, n)
    row = prices.modes.get("row", float(n))
    assert isinstance(row, float)
    found = set()
    for d in columns:
        left = c.budget(A) - d * c.alpha * m
        most = int(min(left / row, m))
        found |= {(d, max(1, int(share * most))) for share in (0.25, 0.5, 1.0) if most >= 1}
    return sorted(found)


def _split(c: Contest, A: Array, seed: int, setting: tuple[int, float, bool]) -> Plan:
    d, factor, center = setting
    sweeps = 300 if A.size <= SMALL else 50
    given = _common(c, A, seed)
    return split_nuclear_norm(
        columns=d,
        noise=c.noise,
        factors=(factor, factor),
        center=center,
        max_sweeps=sweeps,
        **given,
    )


def _ours(c: Contest, A: Array, seed: int, d: int | None) -> Plan:
    return noisy_cur(noise=c.noise, columns=d, **_common(c, A, seed))


def _entries(c: Contest, A: Array, seed: int, setting: tuple[float, float | None, bool]) -> Plan:
    share, penalty, center = setting
    given = _common(c, A, seed)
    sweeps = 2000 if A.size <= SMALL else 100
    return two_phase(
        share=share, rank=c.rank, penalty=penalty, center=center, max_sweeps=sweeps, **given
    )


METHODS: dict[str, Method] = {
    "literal_noisy_cur": _literal,
    "literal_noisy_cur, authors' code": _code,
    "CUR+": _cur_plus,
    "NNs": _split,
    "NNa": _entries,
    "Chen": _entries,
    "noisy_cur": _ours,
}


def column_grid(c: Contest, A: Array, count: int, least: int = 2) -> list[int]:
    """Return numbers of columns from `least` to the most that leave a precise row."""
    return sorted({int(d) for d in np.linspace(least, max(least, c.most_columns(A)), count)})


def both_errors(c: Contest, method: str, setting: Any, A: Array, seed: int) -> tuple[float, float]:
    """Return the error of a method as published, and with the entries that it measured precisely put in."""
    found, run = played(c, METHODS[method](c, A, seed, setting), A, seed)
    X = found.to_dense()
    return error(X, A), error(overlay(run, X), A)


def errors(
    c: Contest,
    method: str,
    settings: Iterable[Any],
    seeds: Iterable[int],
    say: Callable[[str], None] | None = None,
) -> dict[Any, Array]:
    """Return the error of a method at each setting, one number a seed."""
    found: dict[Any, list[float]] = {}
    wanted = list(settings)
    for seed in seeds:
        A = c.matrix(seed)
        for setting in wanted:
            found.setdefault(setting, []).append(both_errors(c, method, setting, A, seed)[0])
        if say is not None:
            say(f"{c.name}: {method}, seed {seed}")
    return {setting: np.array(values) for setting, values in found.items()}


# variances of columns and entries in the low and in the high panel, and the penalty of the authors' program
LOW_HIGH = {
    "synthetic": ((0.05, 0.01, 0.00145), (0.2, 0.04, 2.15)),
    "jester": ((2.0, 0.04, None), (12.5, 0.25, None)),
    "movielens": ((0.06, 0.003, None), (0.65, 0.0225, None)),
}
SHARES = {"synthetic": 0.15, "jester": 0.11, "movielens": 0.106}  # budgets of the paper


def contests(data: str, matrix: Callable[[int], Array], rank: int) -> tuple[Contest, Contest]:
    """Return the paper's low-noise and high-noise panels of a data set."""
    low, high = (
        Contest(
            name=f"{data}, {word} noise",
            matrix=matrix,
            column_noise=float(np.sqrt(sc2)),
            entry_noise=float(np.sqrt(se2)),
            share=SHARES[data],
            rank=rank,
            code_penalty=penalty,
        )
        for word, (sc2, se2, penalty) in zip(("low", "high"), LOW_HIGH[data], strict=True)
    )
    return low, high
