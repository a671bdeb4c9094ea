"""The purchase demo: classifiers by tasks, every cell trained for real on one thread, prices in seconds.

Rows are classifiers of scikit-learn, columns the 45 one-against-one tasks of its digits with few training examples. A part of
the classifiers is a past board, trained whole. We rehearse on it what budgets would buy; then new classifiers
come, a study buys a share of their cells against the past board, and at last everything is trained to check.
"""

from __future__ import annotations

import itertools
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from entrywise.cli._shared import Format, emit, say
from entrywise.compiling import NOTICE
from entrywise.exceptions import StoreError

if TYPE_CHECKING:
    from entrywise.apply.leaderboard import Scores
    from entrywise.queries import Batch
    from entrywise.types import Array, Indices

TRAIN = 24  # examples of each task
NEW = 0.35  # share of the classifiers that are new
AGAIN = 10  # other ways to choose the new ones, to see that the result is no accident
REHEARSED = (0.1, 0.2, 0.3)  # budgets tried on the past board


def classifiers() -> dict[str, Any]:
    """Return 41 configurations of ten algorithms by name."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    found: dict[str, Any] = {}
    for k in (1, 2, 3, 5, 7):
        found[f"{k} neighbours"] = KNeighborsClassifier(k)
    for depth in (1, 2, 3, 5, None):
        found[f"tree, depth {depth or 'any'}"] = DecisionTreeClassifier(
            max_depth=depth, random_state=0
        )
    for c in (0.001, 0.01, 0.1, 1.0, 10.0):
        found[f"logistic, C {c:g}"] = LogisticRegression(C=c, max_iter=200)
    for gamma, c in itertools.product((0.02, 0.1, 0.5), (0.1, 1.0, 10.0)):
        found[f"rbf svm, gamma {gamma:g}, C {c:g}"] = SVC(gamma=gamma, C=c)
    for c in (0.01, 1.0):
        found[f"linear svm, C {c:g}"] = SVC(kernel="linear", C=c)
    for alpha in (0.1, 1.0, 10.0, 100.0):
        found[f"ridge, alpha {alpha:g}"] = RidgeClassifier(alpha)
    for trees in (2, 5, 15):
        found[f"forest, {trees} trees"] = RandomForestClassifier(trees, random_state=0, n_jobs=1)
        found[f"extra trees, {trees} trees"] = ExtraTreesClassifier(trees, random_state=0, n_jobs=1)
    for smoothing in (1e-9, 1e-2, 1e-1):
        found[f"naive Bayes, smoothing {smoothing:g}"] = GaussianNB(var_smoothing=smoothing)
    found["discriminant, shrunk"] = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
    found["perceptron"] = Perceptron(random_state=0)
    return found


@dataclass
class Trainer:
    """The oracle: trains classifier i on task j and answers with its accuracy. A cell is trained once."""

    models: dict[str, Any]
    tasks: list[tuple[int, int]]
    seed: int
    trained: dict[tuple[int, int], float] = field(default_factory=dict)
    seconds: dict[tuple[int, int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        from sklearn.datasets import load_digits

        digits = load_digits()
        self._X, self._y = digits.data / 16.0, digits.target
        self._made = list(self.models.values())

    def cell(self, i: int, j: int) -> float:
        """Return the accuracy of classifier i on task j."""
        from sklearn.base import clone

        if (i, j) not in self.trained:
            rng = np.random.default_rng([self.seed, j])
            rows = rng.permutation(np.flatnonzero(np.isin(self._y, self.tasks[j])))
            half = [rows[self._y[rows] == digit][: TRAIN // 2] for digit in self.tasks[j]]
            train = np.concatenate(half)
            test = np.setdiff1d(rows, train)
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = clone(self._made[i]).fit(self._X[train], self._y[train])
                accuracy = float(model.score(self._X[test], self._y[test]))
            self.seconds[i, j] = time.process_time() - start
            self.trained[i, j] = accuracy
        return self.trained[i, j]

    def __call__(self, batch: Batch) -> Array:

        return np.array(
            [self.cell(int(i), int(j)) for i, j in zip(batch.rows, batch.cols, strict=True)]
        )

    def table(self, rows: Indices) -> Array:
        """Return some rows trained on every task, shape (len(rows), n)."""
        columns = range(len(self.tasks))
        return np.array([[self.cell(int(i), j) for j in columns] for i in rows])

    def quotes(self) -> Array:
        """Return the price of every cell in seconds: the median of three timed trainings of each classifier, (m, 1)."""
        timed = []
        for i in range(len(self._made)):
            times = []
            for j in (0, len(self.tasks) // 2, len(self.tasks) - 1):
                self.cell(i, j)
                times.append(self.seconds[i, j])
            timed.append(max(float(np.median(times)), 1e-4))
        self.trained.clear()
        return np.round(np.array(timed)[:, None], 5)


@dataclass(frozen=True)
class Bill:
    """What the demo found, in numbers; ``ratios`` are errors over the naive one for the same money, other new rows each."""

    cells: int
    quoted: float
    really: float
    error: float
    naive: float
    covered: float
    ratios: tuple[float, ...]
    coverage: tuple[float, ...]

    @property
    def verdict(self) -> str:
        """What the ratios say, in a sentence: a win only where there is one."""
        mean, spread = float(np.mean(self.ratios)), float(np.std(self.ratios, ddof=1))
        wins = sum(x < 1 for x in self.ratios)
        told = f"error {mean:.2f} +- {spread:.2f} of the naive one (better in {wins} of {len(self.ratios)})"
        if mean + 2 * spread / np.sqrt(len(self.ratios)) < 1:
            return f"{told}: choosing paid"
        return f"{told}: choosing did not pay here"


def purchase_demo(
    budget: float,
    seed: int,
    database: Path,
    out: Path,
    format: Format,
    models: dict[str, Any] | None = None,
) -> Bill:
    """Rehearse on a past board, buy cells of new classifiers, check against the truth, and draw."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # one thread each: quotes are then true
        return _demo(budget, seed, database, out, format, models or classifiers())


def _demo(
    budget: float, seed: int, database: Path, out: Path, format: Format, models: dict[str, Any]
) -> Bill:

    from entrywise.apply.leaderboard import Bought, scores, verdict

    tasks = list(itertools.combinations(range(10), 2))
    trainer = Trainer(models, tasks, seed)
    names = list(models)
    m, n = len(names), len(tasks)
    new = _new_ones(m, seed)
    old = np.setdiff1d(np.arange(m), new)
    say(f"the past: {len(old)} classifiers trained on all {n} tasks ({len(old) * n} trainings) ...")
    past = trainer.table(old)
    _rehearse(past, format)
    say(
        f"now {len(new)} new classifiers come; we may spend {budget:.0%} of what training them on all tasks would cost"
    )
    study = _study(database, trainer, past, old, budget, seed)
    _work(study, trainer)
    bought = Bought.from_log((m, n), study.log(), study.labels.index)
    board = scores(study.result(), bought, 0.9, study.prices, bounds=(0.0, 1.0))
    _print(board, names, new, format)
    say(verdict(board, bought, names, study.prices))
    say("checking: everything is trained ...")
    whole = trainer.table(np.arange(m))
    bill = _bill(board, bought, whole, new, trainer, budget)
    say(
        f"bought {bill.cells} cells of {len(new) * n}, quoted {bill.quoted:.2f} s, really {bill.really:.2f} s of CPU"
    )
    say(
        f"error of the new scores {bill.error:.4f}; naive (as many random tasks, raw means) {bill.naive:.4f}; "
        f"intervals held for {bill.covered:.0%}"
    )
    say(
        f"with other classifiers as the new ones: {bill.verdict}; intervals held for {np.mean(bill.coverage):.0%}"
    )
    _draw(out, bought, board, names, whole, new, bill)
    say(f"picture: {out.resolve()}")
    say(f"the study is in {database}: entrywise leaderboard report {database} --name {study.name}")
    return bill


def _new_ones(m: int, seed: int) -> Indices:
    """Return which of m rows are new."""
    return np.sort(np.random.default_rng([seed, 1]).permutation(m)[: max(1, round(NEW * m))])


def _rehearse(past: Array, format: Format) -> None:
    """Print what budgets would have bought of the past board."""
    from entrywise.apply.leaderboard import rehearse
    from entrywise.observations import Observations

    told = rehearse(Observations.from_dense(past), REHEARSED, goals=("scores",), repeats=4)
    if format is Format.table:
        rows = [
            (
                f"{x.share:.0%}",
                f"{x.error:.4f}",
                f"{x.naive:.4f}",
                f"{x.covered:.0%}",
                f"{x.separated:.0%}",
            )
            for x in told.lines
        ]
        columns = ("budget", "error", "naive error", "covered", "pairs told apart")
        emit(columns, rows, format, title="Rehearsal on the past board")
    say(f"rehearsal: {told.advice}")


def _print(board: Scores, names: list[str], new: Indices, format: Format) -> None:
    """Print the new classifiers with their places among all; all of them unless on a terminal."""
    rows = []
    for i in board.order:
        if i in new:
            numbers = (f"{board.mean[i]:.4f}", f"{board.low[i]:.4f}", f"{board.high[i]:.4f}")
            places = f"{board.best_place[i]}-{board.worst_place[i]}"
            cells = int(board.cells[i])
            rows.append(
                (names[i], *numbers, int(board.tier[i]), places, cells, f"{board.spent[i]:.3f}")
            )
    emit(
        ("new classifier", "accuracy", "low", "high", "tier", "places", "cells", "seconds"),
        rows,
        format,
        title=f"New classifiers among all {len(names)}, 90 % intervals",
    )


def _bill(
    board: Scores, bought: Any, whole: Array, new: Indices, trainer: Trainer, share: float
) -> Bill:
    """Compare with the truth; then again with other classifiers as the new ones, which costs nothing any more."""
    truth = whole.mean(axis=1)
    mine = ~bought.known
    where = zip(bought.rows[mine].tolist(), bought.cols[mine].tolist(), strict=True)
    ratios, coverage = [], []
    for k in range(AGAIN):
        ratio, covered = _once_more(whole, share, 1000 * (trainer.seed + 1) + k)
        ratios.append(ratio)
        coverage.append(covered)
    return Bill(
        cells=int(mine.sum()),
        quoted=bought.spent,
        really=sum(trainer.seconds.get(cell, 0.0) for cell in where),
        error=float(np.sqrt(np.mean((board.mean - truth)[new] ** 2))),
        naive=_naive(whole[new], share),
        covered=float(np.mean(((board.low <= truth) & (truth <= board.high))[new])),
        ratios=tuple(ratios),
        coverage=tuple(coverage),
    )


def _once_more(whole: Array, share: float, seed: int) -> tuple[float, float]:
    """Return error over the naive one, and coverage, of one purchase with other new rows."""
    from entrywise.active import row_scores
    from entrywise.apply.leaderboard import Bought, scores
    from entrywise.observations import Observations
    from entrywise.oracles import MatrixOracle
    from entrywise.play import play
    from entrywise.run import Run

    new = _new_ones(len(whole), seed)
    table = whole.copy()
    table[new] = np.nan
    budget = float(int(share * len(new) * whole.shape[1]))
    plan = row_scores(whole.shape, budget=budget, rng=seed)
    run = Run(plan, known=Observations.from_dense(table))
    fit = play(run, MatrixOracle(whole))
    board = scores(fit, Bought.from_run(run), bounds=(0.0, 1.0))
    truth = whole.mean(axis=1)
    error = float(np.sqrt(np.mean((board.mean - truth)[new] ** 2)))
    inside = (board.low <= truth) & (truth <= board.high)
    return error / _naive(whole[new], share), float(np.mean(inside[new]))


def _naive(rows: Array, share: float) -> float:
    """Return the exact error of raw means over as many random tasks."""
    from entrywise.apply.leaderboard.rehearsal import naive_error

    return naive_error(rows, np.ones(rows.shape, bool), share)


def _study(
    database: Path, trainer: Trainer, past: Array, old: Indices, share: float, seed: int
) -> Any:
    """Return the unfinished study of an earlier, interrupted demo, or a new one."""
    from entrywise.observations import Observations
    from entrywise.study import Study

    number = 1
    while True:
        name = f"demo-{number}"
        try:
            earlier = Study.open(str(database), name)
        except StoreError:
            break
        now = earlier.status()
        same = now["params"]["shape"] == [len(trainer.models), len(trainer.tasks)]
        if earlier.state == "open" and now["seed"] == seed and same:
            say(f"going on with the interrupted study {name} ({now['answered']} cells are there)")
            return earlier
        number += 1
    say("timing every classifier ...")
    quotes = trainer.quotes()
    m, n = len(trainer.models), len(trainer.tasks)
    table = np.full((m, n), np.nan)
    table[old] = past
    new = np.setdiff1d(np.arange(m), old)
    return Study.create(
        str(database),
        name,
        plan="row-scores",
        seed=seed,
        budget=round(share * float(quotes[new].sum()) * n, 5),
        prices={"entry": quotes.tolist()},
        known=Observations.from_dense(table),
        rows=list(trainer.models),
        cols=[f"{a} or {b}" for a, b in trainer.tasks],
    )


def _work(study: Any, trainer: Trainer) -> None:
    """Answer the study's questions with a bar; an interruption leaves it where it is."""
    import sys

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    budget = float(study.status()["budget"])
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[money]}"),
        TimeElapsedColumn(),
    )
    with NOTICE.unsaid(), Progress(*columns, console=Console(file=sys.stderr)) as bar:
        task = bar.add_task("training", total=budget, money="")
        try:
            while not study.finished:
                questions = study.ask(64, worker="demo", lease=600.0)
                if not questions:
                    break
                study.tell([(q, trainer.cell(*q.index)) for q in questions], worker="demo")
                spent = float(study.status()["spent"])
                bar.update(task, completed=spent, money=f"{spent:.2f} of {budget:.2f} s")
        except KeyboardInterrupt:
            study.release("demo")
            say("interrupted: run the same command again to go on")
            raise


def _draw(
    path: Path, bought: Any, board: Scores, names: list[str], whole: Array, new: Indices, bill: Bill
) -> None:

    from entrywise import plot
    from entrywise.plot.style import quiet

    figure, ((left, middle, right),) = plot.figure(columns=3, width=5.2, height=6.0)
    picture = np.zeros((*whole.shape, 3)) + 0.93
    colours = {True: (0.72, 0.72, 0.72), False: (0.0, 0.45, 0.70)}
    for known in (True, False):
        at = bought.known == known
        picture[bought.rows[at], bought.cols[at]] = colours[known]
    order = board.order
    left.imshow(picture[order], aspect="auto", interpolation="nearest")
    left.set_yticks([])
    quiet(
        left,
        "Grey: known before. Blue: bought. Pale: never trained",
        "task",
        "classifier, best first",
    )
    left.grid(visible=False)
    truth = whole.mean(axis=1)
    plot.scores(
        board.mean[new],
        board.low[new],
        board.high[new],
        names=[names[i] for i in new],
        tier=board.tier[new],
        truth=truth[new],
        ax=middle,
    )
    quiet(
        middle,
        "New classifiers: score, 90 % interval, tier by colour",
        "mean accuracy over all tasks",
    )
    right.axhline(1.0, color=plot.COLOURS["rival"], label="naive: random tasks, same money")
    turns = np.arange(1, len(bill.ratios) + 1)
    right.scatter(turns, bill.ratios, color=plot.COLOURS["ours"], label="ours")
    right.axhline(
        float(np.mean(bill.ratios)), color=plot.COLOURS["ours"], linestyle="--", linewidth=1
    )
    right.set_ylim(0, 1.1 * max(1.0, *bill.ratios))
    right.legend(frameon=False, loc="lower right")
    quiet(
        right,
        "Error for the same money, ten other choices of new ones",
        "choice",
        "error / naive error",
    )
    plot.save(path, figure)
