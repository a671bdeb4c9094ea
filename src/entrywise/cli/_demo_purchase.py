"""The purchase demo: classifiers by tasks, every cell trained for real, prices in seconds.

Rows are classifiers of scikit-learn, columns the 45 one-against-one tasks of its digits with few training
examples. A tiny pilot times every classifier; its seconds are the quotes. The study buys a share of the whole; then a random
sample of what was not bought is trained as well, to see the true error, and so is a random purchase of the same cost.
"""

from __future__ import annotations

import itertools
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entrywise.cli._shared import Format, emit, say

if TYPE_CHECKING:
    from entrywise.queries import Batch
    from entrywise.types import Array, Indices

TRAIN = 16  # examples of each task


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
        found[f"forest, {trees} trees"] = RandomForestClassifier(trees, random_state=0)
        found[f"extra trees, {trees} trees"] = ExtraTreesClassifier(trees, random_state=0)
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
        import numpy as np
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
        import numpy as np

        return np.array(
            [self.cell(int(i), int(j)) for i, j in zip(batch.rows, batch.cols, strict=True)]
        )

    def quotes(self) -> Array:
        """Return the price of every cell in seconds, from one timed training of every classifier (m, 1)."""
        import numpy as np

        for i in range(len(self._made)):
            self.cell(i, 0)
        found = [max(self.seconds[i, 0], 1e-4) for i in range(len(self._made))]
        self.trained.clear()
        return np.round(np.array(found)[:, None], 5)


@dataclass(frozen=True)
class Bill:
    """What the demo found, in numbers."""

    cells: int
    quoted: float
    really: float
    error: float
    control_error: float
    covered: float
    best: str


def purchase_demo(
    budget: float,
    seed: int,
    database: Path,
    out: Path,
    format: Format,
    models: dict[str, Any] | None = None,
) -> Bill:
    """Buy, complete, check against cells that were not bought, and draw."""
    import numpy as np

    from entrywise.active import most_informative
    from entrywise.apply.leaderboard import Bought, scores
    from entrywise.play import play

    models = models or classifiers()
    tasks = list(itertools.combinations(range(10), 2))
    trainer = Trainer(models, tasks, seed)
    m, n = len(models), len(tasks)
    study = _study(database, trainer, budget, seed)
    now = study.status()
    prices = study.prices
    whole = float(prices.of("entry", np.repeat(np.arange(m), n), np.tile(np.arange(n), m)).sum())
    say(
        f"{m} classifiers x {n} tasks = {m * n} trainings, quoted at {whole:.1f} s; we may spend {now['budget']:.2f} s ({budget:.0%})."
    )
    _work(study, trainer)
    found = study.result()
    bought = Bought.from_log((m, n), study.log(), study.labels.index)
    really = sum(
        trainer.seconds.get((int(i), int(j)), 0.0)
        for i, j in zip(bought.rows, bought.cols, strict=True)
    )
    board = scores(found, bought, 0.9, prices)
    names = list(models)
    rows = [
        (place + 1, names[i], float(board.mean[i]), float(board.low[i]), float(board.high[i]),
         f"{board.best_place[i]}-{board.worst_place[i]}", int((bought.rows == i).sum()))
        for place, i in enumerate(board.order)
    ]  # fmt: skip
    shown = rows if format is not Format.table else [*rows[:8], *rows[-3:]]
    emit(
        ("", "classifier", "accuracy", "low", "high", "place", "cells"),
        shown,
        format,
        title="The leaderboard, 90 % intervals",
    )

    say("checking: training a random sample of the cells that were not bought ...")
    mine = np.zeros((m, n), bool)
    mine[bought.rows, bought.cols] = True
    rng = np.random.default_rng(seed)
    open_cells = np.argwhere(~mine)
    check = open_cells[rng.permutation(len(open_cells))[:150]]
    truth = np.array([trainer.cell(int(i), int(j)) for i, j in check])
    say("and the control: a random purchase (probability 1 / price) of the same cost ...")
    plan = most_informative(
        (m, n),
        prices,
        budget=float(now["budget"]),
        rule="random",
        rank=found.rank,
        rng=seed,
        available=_without(mine.shape, check),
    )
    control = play(plan, trainer)
    error = float(np.sqrt(np.mean((found.entries(*check.T) - truth) ** 2)))
    control_error = float(np.sqrt(np.mean((control.entries(*check.T) - truth) ** 2)))
    interval = found.interval(*check.T, 0.9)
    covered = float(np.mean((interval.low <= truth) & (truth <= interval.high)))
    say(
        f"bought {len(bought)} cells ({len(bought) / (m * n):.0%}), quoted {found.cost:.2f} s, really {really:.2f} s of CPU"
    )
    say(
        f"error on {len(check)} cells not bought: {error:.4f}; random purchase of equal cost: {control_error:.4f}"
    )
    say(
        f"90 % intervals covered {covered:.0%} of them ({found.report.get('intervals', 'conformal, from a blind reserve')})"
    )
    _draw(out, mine, board, names, (found.entries(*check.T), truth, interval))
    say(f"picture: {out.resolve()}")
    say(f"the study is in {database}: entrywise leaderboard report {database} --name {study.name}")
    return Bill(
        len(bought), found.cost, really, error, control_error, covered, names[int(board.order[0])]
    )


def _without(shape: tuple[int, int], cells: Any) -> Any:
    import numpy as np

    allowed = np.ones(shape, bool)
    allowed[cells[:, 0], cells[:, 1]] = False
    return allowed.tolist()


def _study(database: Path, trainer: Trainer, share: float, seed: int) -> Any:
    """Return the unfinished study of an earlier, interrupted demo, or a new one."""
    from entrywise.exceptions import StoreError
    from entrywise.study import Study

    number = 1
    while True:
        name = f"demo-{number}"
        try:
            earlier = Study.open(str(database), name)
        except StoreError:
            break
        now = earlier.status()
        if (
            earlier.state == "open"
            and now["seed"] == seed
            and now["params"]["shape"] == [len(trainer.models), len(trainer.tasks)]
        ):
            say(f"going on with the interrupted study {name} ({now['answered']} cells are there)")
            return earlier
        number += 1
    say("timing every classifier once ...")
    quotes = trainer.quotes()
    budget = round(share * float(quotes.sum()) * len(trainer.tasks), 5)
    return Study.create(
        str(database), name, plan="most-informative",
        params={"goal": "all", "rank": 4, "reserve": 0.2}, seed=seed, budget=budget, prices={"entry": quotes.tolist()},
        rows=list(trainer.models), cols=[f"{a} or {b}" for a, b in trainer.tasks],
    )  # fmt: skip


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
    with Progress(*columns, console=Console(file=sys.stderr)) as bar:
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
    path: Path, mine: Any, board: Any, names: list[str], check: tuple[Array, Array, Any]
) -> None:
    import numpy as np

    from entrywise.reproduce.figures import new_figure, save_figure

    order: Indices = board.order
    figure, ((left, middle, right),) = new_figure(columns=3, width=4.6, height=6.2)
    left.imshow(mine[order], aspect="auto", cmap="Blues", vmin=0, vmax=1.4, interpolation="nearest")
    left.set(xlabel="task", ylabel="classifier, best first", title="cells bought")
    at = np.arange(len(order))
    middle.errorbar(
        board.mean[order], at, xerr=board.mean[order] - board.low[order], fmt="o", ms=3, lw=1
    )
    middle.set_yticks(at, [names[i] for i in order], fontsize=6)
    middle.invert_yaxis()
    middle.set(xlabel="mean accuracy, 90 % interval", title="leaderboard")
    middle.grid(alpha=0.3, axis="x")
    predicted, truth, interval = check
    right.errorbar(
        truth,
        predicted,
        yerr=[predicted - interval.low, interval.high - predicted],
        fmt="o",
        ms=3,
        lw=0.5,
        alpha=0.6,
    )
    low, high = float(min(truth.min(), predicted.min())), float(max(truth.max(), predicted.max()))
    right.plot([low, high], [low, high], color="black", lw=0.8)
    right.set(
        xlabel="true accuracy",
        ylabel="completed, with its interval",
        title="cells not bought, trained to check",
    )
    save_figure(path, figure)
