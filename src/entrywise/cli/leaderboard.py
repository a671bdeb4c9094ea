"""``entrywise leaderboard``: models by tasks, bought as a study; what it says so far; what a budget would buy."""

from __future__ import annotations

from dataclasses import astuple, fields
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from entrywise.cli._judged import Reported, named_file, report_judged
from entrywise.cli._options import Where
from entrywise.cli._shared import (
    DuplicatesOption,
    Format,
    FormatOption,
    HeaderOption,
    LabelsOption,
    LayoutOption,
    bounds_of,
    emit,
    named,
    say,
)
from entrywise.cli.study import count
from entrywise.fragments import unit_of

leaderboard = typer.Typer(
    name="leaderboard",
    help="Score rows (models) over columns (tasks) by buying only the cells that tell most.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Option(help="What the study is called.")]
Level = Annotated[float, typer.Option(help="Of the intervals and of what is called sure.")]
PriceFile = Annotated[
    str | None,
    typer.Option(help="File with columns row, col, price, or label, price; 1 when left out."),
]
PriceWords = Annotated[
    list[str] | None,
    typer.Option(help="rows:COLUMN or cols:COLUMN of --rows and --cols, or a file; 1 without."),
]
PriceRule = Annotated[
    str | None, typer.Option(help="product or sum, where rows and columns both have prices.")
]

Likelihood = Annotated[
    str,
    typer.Option(
        help="What answers are: gaussian (numbers), binary (yes/no), auto (as they look)."
    ),
]
Bounds = Annotated[
    str | None, typer.Option(help="Range of the answers, such as 0,1; scores stay inside.")
]
RowFeatures = Annotated[
    str | None, typer.Option(help="File of features of the rows: a label, then a column each.")
]
ColFeatures = Annotated[str | None, typer.Option(help="File of features of the columns, likewise.")]

PLANS = {
    "scores": "row-scores",
    "order": "row-scores",
    "best": "top-two",
    "all": "most-informative",
}


@leaderboard.command()
def create(
    database: Where,
    rows: Annotated[str, typer.Option(help="CSV whose first column names the rows (models).")],
    cols: Annotated[str, typer.Option(help="CSV whose first column names the columns (tasks).")],
    budget: Annotated[float, typer.Option(help="Money to spend; never exceeded.")],
    goal: Annotated[
        str,
        typer.Option(
            help="scores (row means), order (who is better), best (the best row) or all (every cell)."
        ),
    ] = "scores",
    instrument: Annotated[
        list[str] | None,
        typer.Option(
            help="An instrument and its price a cell, such as judge:0.02; may be repeated."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The instrument whose answers count; the others are judges.")
    ] = None,
    price: PriceWords = None,
    price_rule: PriceRule = None,
    currency: Annotated[str | None, typer.Option(help="What prices are in: EUR, minutes.")] = None,
    rank: Annotated[
        int | None, typer.Option(help="Components of the fit; chosen when left out.")
    ] = None,
    reserve: Annotated[
        float,
        typer.Option(
            help="Goal all: share of the money for the blind reserve behind the intervals."
        ),
    ] = 0.15,
    seed: Annotated[
        int | None, typer.Option(help="Seed; drawn and recorded when left out.")
    ] = None,
    known: Annotated[
        list[str] | None,
        typer.Option(
            help="Cells known beforehand: any table that `complete` reads, or a log; of a judge as judge=FILE."
        ),
    ] = None,
    likelihood: Likelihood = "gaussian",
    bounds: Bounds = None,
    row_features: RowFeatures = None,
    col_features: ColFeatures = None,
    name: Name = "leaderboard",
) -> None:
    """Start a leaderboard; then use `entrywise study ask` and `tell` on it, from as many machines as you like.

    With --instrument and --target cheap judges are asked beside the instrument that counts, as far as they are worth it.

    Example: entrywise leaderboard create scores.db --rows models.csv --cols tasks.csv --budget 500 --goal order
    """
    from entrywise.cli._study_files import described
    from entrywise.cli._study_prices import hint, quotes
    from entrywise.exceptions import ParameterError
    from entrywise.study import Study
    from entrywise.tables import read_labels

    if goal not in PLANS:
        raise ParameterError(f"--goal must be {', '.join(PLANS)}, got {goal!r}")
    (models, _), (tasks, _) = read_labels(rows), read_labels(cols)
    params: dict[str, Any] = {} if goal == "best" else {"goal": goal}
    if rank is not None:
        params["rank"] = min(rank, len(models), len(tasks))
    if goal == "all":
        params["reserve"] = reserve
    if likelihood != "gaussian":
        params["likelihood"] = likelihood
    params |= described(row_features, col_features)
    if bounds is not None:
        params["bounds"] = bounds_of(bounds)
    prices: Any = _instruments(instrument, target, goal, price)
    if target is not None:
        params["target"] = target
    else:
        prices = quotes(price or [], price_rule, rows, cols, models, tasks)
    study = Study.create(
        database,
        name,
        plan=PLANS[goal],
        params=params,
        seed=seed,
        budget=budget,
        prices=prices,
        known=_known(known or [], target, models, tasks),
        rows=models,
        cols=tasks,
        currency=currency,
    )
    cells, money = len(models) * len(tasks), f"{budget:g}{unit_of(currency)}"
    say(f"{len(models)} rows x {len(tasks)} columns, {cells} cells, {money} to spend")
    free = hint(price, rows, cols)
    if free is not None:
        say(free)
    say(f"next: entrywise study ask {named(database)} {study.name} > todo.csv")


@leaderboard.command()
def add(
    database: Where,
    rows: Annotated[str, typer.Option(help="CSV whose first column names the new rows (models).")],
    budget: Annotated[float, typer.Option(help="Money for them, beside what is left.")],
    price: Annotated[
        list[str] | None,
        typer.Option(
            help="Where calls have prices: rows:COLUMN of --rows, or a file with those of the new rows."
        ),
    ] = None,
    name: Name = "leaderboard",
) -> None:
    """Add new rows to a leaderboard: they are scored against all that is known.

    Where rows have features, those of the new ones are columns of the same file.

    Example: entrywise leaderboard add scores.db --rows new.csv --budget 60
    """
    from entrywise.cli._study_files import new_features
    from entrywise.cli._study_prices import longer
    from entrywise.study import Study
    from entrywise.tables import read_labels

    fresh, _ = read_labels(rows)
    study = Study.open(database, name)
    quotes = longer(study.prices.to_json(), price or [], None, rows, None)
    features = new_features(study, {"row": rows}, {})
    study.extend(rows=fresh, budget=budget, prices=quotes, **features)
    unit = unit_of(study.store.record(name).currency)
    say(f"{count(len(fresh), 'row')} added with {budget:g}{unit} to spend")
    say(f"next: entrywise study ask {named(database)} {name} > todo.csv")


@leaderboard.command()
def report(
    source: Annotated[
        str,
        typer.Argument(
            help="The database of a study, or any table with gaps (.csv, .parquet, ...).",
            metavar="DATABASE|TABLE",
        ),
    ],
    name: Name = "leaderboard",
    level: Level = 0.9,
    promise: Annotated[
        str,
        typer.Option(
            help="pairs: few of the pairs called apart are wrong; all: not one of them is."
        ),
    ] = "pairs",
    likelihood: Likelihood = "gaussian",
    bounds: Bounds = None,
    row_features: RowFeatures = None,
    col_features: ColFeatures = None,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            help="What a cheap judge said of cells: a table, or name=FILE; may be repeated."
        ),
    ] = None,
    bias: Annotated[
        bool, typer.Option(help="With judges: print their bias by row instead of the scores.")
    ] = False,
    groups: Annotated[
        str | None,
        typer.Option(help="With judges: CSV of column, group, for the bias by group (on stderr)."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Intervals are for the mean over these columns, or over others of which they are a sample; "
            "sample where every cell is known.",
            metavar="these|sample",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Write a picture of the scores here (PNG).")
    ] = None,
    format: FormatOption = Format.table,
) -> None:
    """Print scores with intervals, tiers and places; on stderr what may be concluded and what the money has bought.

    What answers are, and features of lines, are said here of a table; a study knows its own.

    Example: entrywise leaderboard report results.csv --level 0.95
    """
    from entrywise.apply.leaderboard import verdict
    from entrywise.exceptions import ParameterError

    model = {"likelihood": likelihood, "row_features": row_features, "col_features": col_features}
    given = _given(source, name, bool(judge), model)
    asked: dict[str, Any] = {
        "level": level,
        "promise": promise,
        "bounds": bounds_of(bounds) or given.bounds,
    }
    if judge or given.bought.judges:
        told = report_judged(
            source, judge or [], given, groups=groups, bias=bias, format=format, **asked
        )
    elif bias or groups:
        raise ParameterError(
            "--bias and --groups need what a judge said; give --judge FILE, or tell the study its answers first"
        )
    else:
        told = _report_scores(given, columns=columns, format=format, **asked)
    say(verdict(told.board, told.bought, told.names, given.quotes, given.currency))
    for line in (*given.words, *told.words):
        say(line)
    if plot is not None:
        from entrywise.plot import save, scores

        board = told.board
        axes = scores(board.mean, board.low, board.high, names=list(told.names), tier=board.tier)
        save(plot, axes)
        say(f"picture: {plot.resolve()}")


@leaderboard.command()
def rehearse(
    table: Annotated[
        str, typer.Argument(help="A past board, complete or with gaps (.csv, .parquet, ...).")
    ],
    budgets: Annotated[
        str, typer.Option(help="Shares of the whole cost to try.")
    ] = "2%,5%,10%,20%",
    goal: Annotated[str, typer.Option(help="scores, order or both.")] = "both",
    price: PriceFile = None,
    repeats: Annotated[int, typer.Option(min=2, help="Purchases for each budget.")] = 10,
    level: Level = 0.9,
    likelihood: Likelihood = "gaussian",
    bounds: Bounds = None,
    row_features: RowFeatures = None,
    col_features: ColFeatures = None,
    seed: Annotated[int, typer.Option(help="Of the first purchase.")] = 0,
    layout: LayoutOption = "auto",
    labels: LabelsOption = "auto",
    header: HeaderOption = "auto",
    duplicates: DuplicatesOption = "refuse",
    format: FormatOption = Format.table,
) -> None:
    """Print what each budget would have bought on your own data, beside naive scores; on stderr what to do.

    Example: entrywise leaderboard rehearse history.csv --budgets 2%,5%,10%,20%
    """
    from entrywise.apply.leaderboard import rehearse as play_through
    from entrywise.cli._study_prices import quotes
    from entrywise.queries import Prices
    from entrywise.tables import read_entries

    how: dict[str, Any] = {"layout": layout, "labels": labels, "header": header}
    past = read_entries(table, duplicates=duplicates, **how).observations  # type: ignore[arg-type]
    names = [_labels(past.row_labels, past.shape[0]), _labels(past.col_labels, past.shape[1])]
    told = play_through(
        past,
        _shares(budgets),
        goals=("scores", "order") if goal == "both" else (goal,),
        prices=None if price is None else Prices(**quotes([price], None, None, None, *names) or {}),
        level=level,
        likelihood=likelihood,
        bounds=bounds_of(bounds),
        repeats=repeats,
        rng=seed,
        **_features_of(past, row_features, col_features),
    )
    title = f"{past.shape[0]} rows x {past.shape[1]} columns, {repeats} purchases each"
    if format is Format.table:
        columns = ["goal", "budget", "error", "band", "naive", "ratio", "held", "apart", "false"]
        lines: list[tuple[Any, ...]] = [
            (
                *(x.goal, f"{x.share:.3g}", f"{x.error:.3g}", f"{x.low:.2g}-{x.high:.2g}"),
                *(f"{x.naive:.3g}", f"{x.ratio:.2f}"),
                *(f"{y:.0%}" for y in (x.covered, x.separated, x.false)),
            )
            for x in told.lines
        ]
    else:
        columns = [x.name for x in fields(told.lines[0])]
        lines = [astuple(x) for x in told.lines]
    emit(columns, lines, format, title=title)
    say(
        "error of scores, its band for one purchase; naive: the same columns for all, raw means, same money; "
        "held: intervals; apart: pairs of rows; false: of these"
    )
    say(told.advice)


def _instruments(
    words: list[str] | None, target: str | None, goal: str, price: list[str] | None
) -> Any:
    """Return the prices of instruments, or refuse them."""
    from entrywise.exceptions import ParameterError
    from entrywise.queries import Prices
    from entrywise.tables import number

    if not words and target is None:
        return None
    if not words or target is None:
        raise ParameterError("--instrument and --target go together; give both or neither")
    if goal != "scores" or price:
        raise ParameterError(
            "instruments are for goal scores, each with one price, without --price"
        )
    found: dict[str, float] = {}
    for word in words:
        name, _, cost = word.rpartition(":")
        amount = number(cost)
        if amount is None:
            raise ParameterError(
                f"--instrument must be name:price, such as judge:0.02, got {word!r}"
            )
        found[name] = amount
        if not name.isidentifier():
            raise ParameterError(f"an instrument must be one word, got {name!r} in {word!r}")
    if target not in found:
        raise ParameterError(f"target must be one of {', '.join(found)}, got {target!r}")
    return Prices(**{"entry": None, **found})


def _known(
    words: list[str], target: str | None, models: list[str], tasks: list[str]
) -> dict[str, Any] | None:
    """Return cells known beforehand by instrument."""
    from entrywise.cli._study_files import known_of

    found = {}
    for word in words:
        name, path = named_file(word, target or "entry")
        found[name] = known_of(path, models, tasks)
    return found or None


def _report_scores(
    given: _Given,
    columns: str | None,
    level: float,
    promise: str,
    bounds: tuple[float, float] | None,
    format: Format,
) -> Reported:
    """Print the scores of what was bought; return what else there is to say."""
    from entrywise.answers import range_of
    from entrywise.apply.leaderboard import savings, scores

    bought, names, words = given.bought, given.names, []
    if columns is None and bought.is_complete:
        columns = "sample"
        words.append(
            "every cell is known: the columns count as a sample of others (--columns these if they are all)"
        )
    board = scores(
        given.fit,
        bought,
        level,
        given.quotes,
        bounds=range_of(bought.values, bounds),
        promise=promise,  # type: ignore[arg-type]
        columns=columns or "these",  # type: ignore[arg-type]
    )
    _print(board, names, level, format)
    words.append(f"intervals: {board.how}")
    light = [names[i] for i in board.order if board.light[i]]
    if light:
        more = " ..." if len(light) > 10 else ""
        words.append(f"rests on fewer than 5 cells: {', '.join(light[:10])}{more}")
    if not bought.known.all() and "table" not in bought.arms:
        words.append(savings(board, bought, given.quotes).words)
    return Reported(board, bought, tuple(names), tuple(words))


def _print(board: Any, names: list[str], level: float, format: Format) -> None:
    """Print a line a row, the best first; places as a range on the terminal."""
    from entrywise.fragments import figures

    columns = [
        "model",
        "score",
        "low",
        "high",
        "tier",
        "best_place",
        "worst_place",
        "cells",
        "spent",
    ]
    lines = []
    for i in board.order:
        numbers = (float(board.mean[i]), float(board.low[i]), float(board.high[i]))
        places = (int(board.best_place[i]), int(board.worst_place[i]))
        rest = (int(board.cells[i]), float(board.spent[i]))
        lines.append((names[i], *numbers, int(board.tier[i]), *places, *rest))
    if format is Format.table:
        columns = ["model", "score", f"{level:.0%} from", "to", "tier", "places", "cells", "spent"]
        lines = [
            (x[0], *figures(*x[1:4]), x[4], f"{x[5]}-{x[6]}", x[7], f"{x[8]:.4g}") for x in lines
        ]
    emit(columns, lines, format)


class _Given(NamedTuple):
    """What a report is about."""

    fit: Any
    bought: Any
    names: list[str]
    cols: list[str]
    words: list[str]
    prices: Any = None
    target: str | None = None
    bounds: tuple[float, float] | None = None
    currency: str | None = None

    @property
    def quotes(self) -> Any:
        """Prices of the instrument whose answers count."""
        return self.prices if self.target is None else self.prices.of_instrument(self.target)


def _given(source: str, name: str, with_files: bool, said: dict[str, Any]) -> _Given:
    """Return what a study or a table holds.

    `with_files` where judges speak in tables of their own; what is `said` of answers and lines goes with a table.
    """
    from entrywise.exceptions import ParameterError

    modelled = said != {"likelihood": "gaussian", "row_features": None, "col_features": None}
    if not _is_study(source):
        if with_files and modelled:
            raise ParameterError("--judge takes numbers without features; leave them out")
        return _of_table(source, with_files, said)
    if with_files:
        raise ParameterError(
            "--judge goes with a table; a study knows its judges by its own answers"
        )
    if modelled:
        raise ParameterError(
            "--likelihood and features go with a table; a study keeps those it was created with"
        )
    return _of_study(source, name)


def _of_study(database: str, name: str) -> _Given:
    """Return fit, purchase, names, prices and words of a study."""
    from entrywise.active.cells.answer_model import AnswerModel
    from entrywise.apply.leaderboard import Bought
    from entrywise.exceptions import ParameterError
    from entrywise.study import Study

    study = Study.open(database, name)
    now = study.status()
    if now["plan"] not in PLANS.values():
        raise ParameterError(
            f"study {name!r} runs {now['plan']}; a leaderboard needs {', '.join(sorted(set(PLANS.values())))}"
        )
    m, n = (int(x) for x in now["params"]["shape"])
    available, target, bounds = (
        now["params"].get(word) for word in ("available", "target", "bounds")
    )
    model = AnswerModel.of_plan((m, n), study.store.record(study.name).params)
    bought = Bought.from_log(
        (m, n), study.log(), study.labels.index, available=available, target=target, model=model
    )
    fit = study.result()
    names = [str(study.labels.row(i)) for i in range(m)]
    cols = [str(study.labels.col(j)) for j in range(n)]
    share = len(bought) / (m * n)
    of = "" if target is None else f" of {target}"
    money = f"{now['spent']:g} of {now['budget']:g}{unit_of(now['currency'])}"
    words = [f"{len(bought)} of {m * n} cells{of} ({share:.1%}) for {money}; {now['state']}"]
    if fit.report.get("best") is not None:
        best, sure = names[int(fit.report["best"])], float(fit.report["confidence"])
        words.append(f"best: {best}, with probability {sure:.2f}")
    currency = now["currency"]
    return _Given(fit, bought, names, cols, words, study.prices, target, bounds, currency)


def _of_table(path: str, with_files: bool, said: dict[str, Any]) -> _Given:
    """Return a partly filled table as a purchase, with names and words."""
    from entrywise.active.cells.answer_model import AnswerModel
    from entrywise.apply.leaderboard import Bought
    from entrywise.tables import read_entries

    table = read_entries(path).observations
    m, n = table.shape
    names = _labels(table.row_labels, m)
    rest = "; the others are completed" if len(table) < m * n else ""
    words = [f"{len(table)} of {m * n} cells are there ({len(table) / (m * n):.1%}){rest}"]
    if with_files:  # of how many cells depends on the judges' tables, too
        words = [f"{len(table)} cells of the dear instrument are there; the others are completed"]
    cols = _labels(table.col_labels, n)
    features = _features_of(table, said["row_features"], said["col_features"])
    model = AnswerModel.of((m, n), said["likelihood"], **features)
    return _Given(None, Bought.from_table(table, model), names, cols, words)


def _features_of(table: Any, row_features: str | None, col_features: str | None) -> dict[str, Any]:
    """Return the features in files of the lines of a table, in their order."""
    from entrywise.results.kept_features import keep_features
    from entrywise.tables import read_features

    sides = (
        ("row", row_features, table.row_labels, table.shape[0]),
        ("col", col_features, table.col_labels, table.shape[1]),
    )
    return {
        f"{side}_features": keep_features(read_features(path), labels, lines, side)
        for side, path, labels, lines in sides
        if path is not None
    }


def _is_study(source: str) -> bool:
    """Tell a database from a table: an address, or a file that begins as SQLite's do."""
    from entrywise.exceptions import DataError

    path = Path(source)
    if "://" in source:
        return True
    if not path.is_file():
        if path.suffix in (".db", ".sqlite", ""):
            return True
        raise DataError(f"{source}: no such file; give a table, or the database of a study")
    with path.open("rb") as file:
        return file.read(15) == b"SQLite format 3"


def _labels(labels: Any, count: int) -> list[str]:
    return [str(k) for k in range(count)] if labels is None else list(labels)


def _shares(text: str) -> tuple[float, ...]:
    from entrywise.exceptions import ParameterError
    from entrywise.tables import number

    found = []
    for word in text.split(","):
        percent = word.strip().endswith("%")
        share = number(word.strip().removesuffix("%"))
        if share is None:
            raise ParameterError(f"budgets must be shares such as 5%,10%, got {word!r}")
        found.append(share / 100 if percent else share)
    return tuple(found)
