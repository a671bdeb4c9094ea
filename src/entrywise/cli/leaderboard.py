"""``entrywise leaderboard``: a study of models by tasks, and what it says so far."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from entrywise.cli._shared import Format, FormatOption, emit, say

leaderboard = typer.Typer(
    name="leaderboard",
    help="Score rows (models) over columns (tasks) by buying only the cells that tell most.",
    no_args_is_help=True,
)

Where = Annotated[
    str,
    typer.Argument(
        help="The database: a file, or postgresql://user@host/name.", metavar="DATABASE"
    ),
]
Name = Annotated[str, typer.Option(help="What the study is called.")]


@leaderboard.command()
def create(
    database: Where,
    rows: Annotated[str, typer.Option(help="CSV whose first column names the rows (models).")],
    cols: Annotated[str, typer.Option(help="CSV whose first column names the columns (tasks).")],
    budget: Annotated[float, typer.Option(help="Money to spend; never exceeded.")],
    goal: Annotated[
        str, typer.Option(help="all (every cell), scores (row means) or best (the best row).")
    ] = "scores",
    price: Annotated[
        str | None,
        typer.Option(help="CSV with columns row, col, price; every cell costs 1 when left out."),
    ] = None,
    rank: Annotated[int, typer.Option(help="Components of the fit.")] = 6,
    reserve: Annotated[
        float, typer.Option(help="Share of the money for the blind reserve behind the intervals.")
    ] = 0.15,
    seed: Annotated[
        int | None, typer.Option(help="Seed; drawn and recorded when left out.")
    ] = None,
    known: Annotated[
        str | None, typer.Option(help="CSV of cells known beforehand: row, col, value.")
    ] = None,
    name: Name = "leaderboard",
) -> None:
    """Start a leaderboard; then use `entrywise study ask` and `tell` on it, from as many machines as you like.

    Example: entrywise leaderboard create scores.db --rows models.csv --cols tasks.csv --budget 500 --goal best
    """
    from entrywise.study import Study
    from entrywise.tables import read_labels

    (models, _), (tasks, _) = read_labels(rows), read_labels(cols)
    params: dict[str, Any] = {
        "goal": goal,
        "rank": min(rank, len(models), len(tasks)),
        "reserve": reserve,
    }
    study = Study.create(
        database,
        name,
        plan="most-informative",
        params=params,
        seed=seed,
        budget=budget,
        prices=None if price is None else _prices(price, models, tasks),
        known=None if known is None else _cells(known, models, tasks, "value"),
        rows=models,
        cols=tasks,
    )
    now = study.status()
    cells = len(models) * len(tasks)
    say(
        f"{len(models)} rows x {len(tasks)} columns, {cells} cells; {now['open']} to measure first, "
        f"{now['reserved']:g} reserved of {budget:g}"
    )
    say(f"next: entrywise study ask {database} {name} > todo.csv")


@leaderboard.command()
def report(
    database: Where,
    name: Name = "leaderboard",
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.9,
    plot: Annotated[
        Path | None, typer.Option(help="Write a picture of the scores here (PNG).")
    ] = None,
    format: FormatOption = Format.table,
) -> None:
    """Print the scores with intervals, the places each row may take, and on stderr what the money has bought.

    Example: entrywise leaderboard report scores.db --level 0.95
    """
    from entrywise.apply.leaderboard import Bought, next_money, savings, scores
    from entrywise.study import Study

    study = Study.open(database, name)
    shape, now = _shape(study), study.status()
    bought = Bought.from_log(shape, study.log(), study.labels.index)
    found = study.result()
    board = scores(found, bought, level, study.prices)
    rows = [
        (str(study.labels.row(int(i))), float(board.mean[i]), float(board.low[i]), float(board.high[i]),
         f"{board.best_place[i]}-{board.worst_place[i]}", int((bought.rows == i).sum()))
        for i in board.order
    ]  # fmt: skip
    emit(
        ("row", "score", "low", "high", "place", "cells"),
        rows,
        format,
        title=f"{name}: {level:.0%} intervals",
    )
    share = len(bought) / (shape[0] * shape[1])
    say(
        f"{len(bought)} of {shape[0] * shape[1]} cells ({share:.1%}) for {now['spent']:g} of {now['budget']:g}; {now['state']}"
    )
    if found.report.get("confidence"):
        say(
            f"best: {rows_label(study, found.report['best'])}, with posterior probability {found.report['confidence']:.2f}"
        )
    say(f"intervals: {found.report.get('intervals', 'conformal, from a blind reserve')}")
    compared = savings(found, bought)
    say(f"against random buying at equal cost: {savings_words(compared)}")
    more = next_money(found, bought, 0.1 * float(now["budget"]), study.prices)
    say(
        f"the next 10 % of the budget ({more.money:g}) would buy {more.cells} cells; expected error {more.now:.4g} -> {more.then:.4g}"
    )
    if plot is not None:
        draw_scores(plot, [r[0] for r in rows], board, compared)
        say(f"picture: {plot.resolve()}")


def rows_label(study: Any, i: int) -> str:
    """Return what row i is called."""
    return str(study.labels.row(int(i)))


def savings_words(compared: Any) -> str:
    """Return the savings curve in words: error at each spend, and when the rule had what random buying reached."""
    if not compared.spend:
        return str(compared.reason)
    curve = "; ".join(
        f"{spend:g}: {rule:.4g} beside {random:.4g}"
        for spend, rule, random in zip(
            compared.spend, compared.rule_error, compared.random_error, strict=True
        )
    )
    ratio, doubt = compared.rule_error[-1] / compared.random_error[-1], compared.doubt[-1]
    curve += f"; at the end {ratio:.2f} of random buying's error ({ratio / doubt:.2f} to {ratio * doubt:.2f})"
    if compared.enough is None:
        return f"{curve}; the rule never reached what random buying did"
    if not compared.surely:
        return f"{curve}: too few cells to say that the rule is better"
    share = 1 - compared.enough / compared.spend[-1]
    return f"{curve}; what random buying reached with {compared.spend[-1]:g} the rule had with {compared.enough:.3g} (saved {share:.0%})"


def draw_scores(path: Path, names: list[str], board: Any, compared: Any) -> None:
    """Draw the scores with their intervals, best on top, and beside them the savings curve where there is one."""
    import numpy as np

    from entrywise.reproduce.figures import new_figure, save_figure

    order = board.order
    panels = 2 if compared.spend else 1
    figure, (axes,) = new_figure(
        columns=panels, width=6.5 if panels == 1 else 5.5, height=max(3, 0.22 * len(names) + 1)
    )
    axis = axes[0]
    at = np.arange(len(order))
    half = board.mean[order] - board.low[order]
    axis.errorbar(board.mean[order], at, xerr=half, fmt="o", ms=3, lw=1, color="tab:blue")
    axis.set_yticks(at, names, fontsize=7)
    axis.invert_yaxis()
    axis.set_xlabel("score, with its interval")
    axis.grid(alpha=0.3, axis="x")
    if compared.spend:
        axes[1].plot(
            compared.spend, compared.random_error, "s--", color="tab:gray", ms=4, label="at random"
        )
        axes[1].plot(
            compared.spend, compared.rule_error, "o-", color="tab:blue", ms=4, label="by rule"
        )
        rule, doubt = np.array(compared.rule_error), np.array(compared.doubt)
        axes[1].fill_between(
            compared.spend, rule / doubt, rule * doubt, color="tab:blue", alpha=0.15, lw=0
        )
        axes[1].set(xlabel="spend", ylabel="error on the reserve", ylim=(0, None), title="savings")
        axes[1].legend()
        axes[1].grid(alpha=0.3)
    save_figure(path, figure)


def _shape(study: Any) -> tuple[int, int]:
    from entrywise.exceptions import ParameterError

    record = study.store.record(study.name)
    if (
        record.n_rows is None
        or record.n_cols is None
        or record.plan not in ("most-informative", "top-two")
    ):
        raise ParameterError(
            f"study {study.name!r} runs {record.plan}; a leaderboard needs most-informative or top-two"
        )
    return int(record.n_rows), int(record.n_cols)


def _prices(path: str, rows: list[str], cols: list[str]) -> Any:
    """Return the price of every cell from a file of row, col, price."""
    import numpy as np

    from entrywise.exceptions import DataError
    from entrywise.queries import Prices

    table = _cells(path, rows, cols, "price").to_dense()
    missing = np.argwhere(np.isnan(table))
    if len(missing):
        i, j = missing[0]
        raise DataError(
            f"{path} must price every cell, ({rows[i]!r}, {cols[j]!r}) has none; add it"
        )
    return Prices(table)


def _cells(path: str, rows: list[str], cols: list[str], name: str) -> Any:
    """Return the cells in a file of row, col and the column `name`; a stranger is refused with its line."""
    from entrywise.observations import Observations
    from entrywise.tables import number, read_long

    roles = [(role, (role,)) for role in ("row", "col", name)]
    facts = read_long(path, roles, ("row", "col", name))
    places = [{label: k for k, label in enumerate(axis)} for axis in (rows, cols)]
    found = []
    for line, row, col, text in zip(facts.lines, *facts.cells, strict=True):
        for axis, known, label in (("row", places[0], row), ("column", places[1], col)):
            if label not in known:
                raise facts.table.error(f"line {line}: no {axis} is called {label!r}")
        value = number(text)
        if value is None:
            raise facts.table.error(f"line {line}: {name} must be a number, got {text!r}")
        found.append((places[0][row], places[1][col], value))
    i, j, values = zip(*found, strict=True)
    return Observations.from_triplets(i, j, values, (len(rows), len(cols)))
