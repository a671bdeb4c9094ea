"""``entrywise study``: questions and answers kept in a database."""

from __future__ import annotations

import enum
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from entrywise.cli._options import Where
from entrywise.cli._shared import Format, FormatOption, emit, named, say
from entrywise.exceptions import ParameterError
from entrywise.fragments import unit_of

if TYPE_CHECKING:
    from entrywise.study import Study

study = typer.Typer(
    name="study",
    help="Ask and tell over weeks, with colleagues: a plan kept in a database (a file, or postgresql://...).",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(help="The study.", metavar="STUDY")]
Worker = Annotated[str | None, typer.Option(help="Who measures.")]
Rows = Annotated[list[str] | None, typer.Option("--row", help="Only this row; * and ? match.")]
Cols = Annotated[list[str] | None, typer.Option("--col", help="Only this column; * and ? match.")]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow-plan", help="module:function of a plan of your own that may run."),
]
PriceWords = Annotated[
    list[str] | None,
    typer.Option(
        help="entry=1.5, column=16; rows:COLUMN or cols:COLUMN of --rows and --cols; or a file (label, price)."
    ),
]
PriceRule = Annotated[
    str | None, typer.Option(help="product or sum, where rows and columns both have prices.")
]


RowFeatures = Annotated[
    str | None,
    typer.Option(help="File of features of the rows: a label, then a column each; or an .npy."),
]
ColFeatures = Annotated[str | None, typer.Option(help="File of features of the columns, likewise.")]


def opened(database: str, name: str, allow: list[str] | None) -> Study:
    """Open a study; plans that the person allows may run, those that the data name may not."""
    from entrywise.cli._study_results import here_first
    from entrywise.study import Study
    from entrywise.study.plans import imported

    if allow:
        here_first()
    return Study.open(database, name, plans={each: imported(each) for each in allow or ()})


@study.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def create(
    context: typer.Context,
    database: Where,
    name: Name,
    plan: Annotated[
        str, typer.Option(help="A method (`entrywise methods active`), or module:function.")
    ],
    rows: Annotated[
        str | None,
        typer.Option(help="File whose first column names the rows (both axes if symmetric)."),
    ] = None,
    cols: Annotated[
        str | None, typer.Option(help="File whose first column names the columns.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed; drawn and recorded when left out.")
    ] = None,
    budget: Annotated[float | None, typer.Option(help="Never exceeded.")] = None,
    price: PriceWords = None,
    price_rule: PriceRule = None,
    currency: Annotated[str | None, typer.Option(help="What prices are in: EUR, minutes.")] = None,
    known: Annotated[
        str | None,
        typer.Option(help="Entries known beforehand: any table that `complete` reads, or a log."),
    ] = None,
    row_features: RowFeatures = None,
    col_features: ColFeatures = None,
) -> None:
    """Make a study. Parameters of the plan are options of their own: --rank 12, --shape 80x60, --noise column=.2,entry=.1.

    Example: entrywise study create lab.db kinase --plan adaptive-nystrom --rows compounds.csv --rank 12 --seed 1
    """
    from entrywise.cli._options import params_of
    from entrywise.cli._study_files import described, known_of, labels_of
    from entrywise.cli._study_prices import hint, quotes
    from entrywise.cli._study_results import here_first
    from entrywise.study import Study

    here_first()
    names, others = labels_of(rows), labels_of(cols)
    both = others if others is not None else names
    params = params_of(context.args) | described(row_features, col_features)
    classes = params.get("classes")
    found = Study.create(
        database,
        name,
        plan=plan,
        params=params,
        seed=seed,
        budget=budget,
        prices=quotes(price or [], price_rule, rows, cols, names, others),
        known=None if known is None else known_of(known, names, both, classes),
        rows=names,
        cols=others,
        currency=currency,
    )
    now = found.status()
    todo = count(now["open"], "question")
    unit = unit_of(currency)
    say(
        f"study {name!r} is {now['state']}: {todo} to ask, {now['held']:g}{unit} held for them, seed {now['seed']}"
    )
    free = hint(price, rows, cols)
    if free is not None:
        say(free)


class QuestionFormat(enum.StrEnum):
    """How questions are printed: as other data, or as a harness takes them."""

    table = "table"
    csv = "csv"
    json = "json"
    lm_eval = "lm-eval"


COLUMNS = (
    *("study", "id", "row", "col", "mode", "price", "unit", "plate", "well", "arm"),
    *("probability", "worker", "until", "value"),
)


@study.command()
def ask(
    database: Where,
    name: Name,
    limit: Annotated[int | None, typer.Option(help="At most so many questions.")] = None,
    worker: Worker = None,
    row: Rows = None,
    col: Cols = None,
    mode: Annotated[str | None, typer.Option(help="Only this instrument.")] = None,
    lease: Annotated[float, typer.Option(help="Seconds until others may ask for the same.")] = 7
    * 86400.0,
    out: Annotated[
        Path | None, typer.Option(help="Write them to this .csv or .xlsx instead of stdout.")
    ] = None,
    allow_plan: Allow = None,
    format: Annotated[
        QuestionFormat,
        typer.Option(
            "--format",
            "-f",
            help="How they are printed on stdout; lm-eval: the documents of one model, for its --samples.",
        ),
    ] = QuestionFormat.csv,
) -> None:
    """Hand out questions: fill in the column `value` (a number, or failed) and tell the file.

    Example: entrywise study ask lab.db kinase --limit 20 --worker bench-2 > todo.csv
    """
    found = opened(database, name, allow_plan)
    if format is QuestionFormat.lm_eval:
        from entrywise.cli._study_logs import ask_samples

        if out is not None or col or mode:
            raise ParameterError("--format lm-eval takes --row, --limit, --worker and --lease")
        ask_samples(found, row, limit=limit, worker=worker, lease=lease)
        return
    questions = found.ask(limit, worker, lease, rows=row, cols=col, mode=mode)
    lines = [
        (
            *(name, q.id, q.row, q.col, q.mode, q.price, q.unit, q.plate, q.well, q.arm),
            *(q.probability, worker, _date(q.until), None),
        )
        for q in questions
    ]
    if out is not None:
        from entrywise.tables import write_table

        write_table(out, COLUMNS, lines)
        say(f"{count(len(lines), 'question')} in {out}: fill in the column value and tell it")
    else:
        emit(COLUMNS, lines, Format(format.value))
    if questions.why is not None:
        wanted = "" if limit is None or not questions else f"{len(questions)} of {limit}: "
        say(f"{wanted or 'nothing to ask: '}{questions.why}")


@study.command()
def tell(
    database: Where,
    name: Name,
    file: Annotated[
        str,
        typer.Argument(
            help="Table with a column value, and id or row and col; - is stdin. Or the log of a harness."
        ),
    ],
    worker: Worker = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="Of a log: lm-eval, inspect, helm, every-eval-ever, alpaca-eval; auto tells it by its content.",
        ),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="Which score of a log, where there are several.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Which row a log is of, where it does not say.")
    ] = None,
    allow_plan: Allow = None,
) -> None:
    """Keep answers: all of the file or nothing; the same file twice is harmless, lines without a value are skipped.

    Example: entrywise study tell lab.db kinase done.csv
    """
    from entrywise.cli._study_files import answers_of
    from entrywise.cli._study_logs import tell_log

    found = opened(database, name, allow_plan)
    if format is None and Path(file).is_dir():
        format = "auto"  # a table is no folder
    if format is not None:
        tell_log(found, file, format, metric=metric, model=model, worker=worker)
        worries(database, found.status())
        return
    if metric is not None or model is not None:
        raise ParameterError("--metric and --model are of a log; say its --format")
    given = answers_of(file, name, worker)
    new = found.tell(given.items, given.workers, blame=given.blame)
    now = found.status()
    say(
        f"{new} of {count(len(given.items), 'answer')} new; the study is {now['state']}, {count(now['open'], 'question')} open"
    )
    worries(database, now)


def worries(database: str, now: dict[str, Any]) -> None:
    """Say what is wrong with a study, and what to type."""
    if now["trouble"]:
        say(now["trouble"], style="yellow")
    for odd in now["implausible"]:
        say(
            f"{odd['id']} ({odd['row']}, {odd['col']}) = {odd['value']:g} is far from the {odd['expected']:.3g} +- "
            f"{odd['deviation']:.2g} that was expected; if it is a slip: "
            f"entrywise study amend {named(database)} {now['name']} {odd['id']} VALUE",
            style="yellow",
        )


@study.command()
def status(database: Where, name: Name, format: FormatOption = Format.table) -> None:
    """Say where a study stands: a sentence, then state, money, who holds what since when, troubles.

    Example: entrywise study status lab.db kinase --format json
    """
    now = opened(database, name, None).status()
    sentence = now.pop("sentence")
    if format is Format.table:
        say(sentence + ".")
        worries(database, now)
    now["created_at"] = _date(now["created_at"])
    now["workers"] = [
        {**w, "since": _date(w["since"]), "until": _date(w["until"])} for w in now["workers"]
    ]
    _one(
        now | {"sentence": sentence} if format is not Format.table else now, format, f"study {name}"
    )


@study.command("list")
def list_(database: Where, format: FormatOption = Format.table) -> None:
    """List the studies of a database.

    Example: entrywise study list lab.db
    """
    from entrywise.study import Store

    found = Store(database, must_exist=True).records()
    rows = [
        (r.name, r.plan, r.state, r.epoch, r.budget, r.currency, r.parent, _date(r.created_at))
        for r in found
    ]
    columns = ("name", "plan", "state", "epoch", "budget", "currency", "parent", "created")
    emit(columns, rows, format)


@study.command()
def log(database: Where, name: Name, format: FormatOption = Format.table) -> None:
    """Print all that was asked and answered, what no longer stands included.

    Example: entrywise study log lab.db kinase --format csv > log.csv
    """
    columns: tuple[str, ...] = ("id", "row", "col", "value", "worker", "told_at", "reason", "what")
    if format is not Format.table:
        columns = (
            "id",
            "row",
            "col",
            "mode",
            "price",
            "arm",
            "probability",
            "value",
            "failed",
            *columns[4:],
        )
    here = opened(database, name, None)
    blank = "" if format is Format.table else None
    lines = (
        {**x, "told_at": _date(x["told_at"]), "value": here.labels.value(x["value"])}
        for x in here.log()
    )
    if format is Format.table:  # a column less
        lines = ({**x, "value": "failed"} if x["failed"] else x for x in lines)
    emit(columns, ([blank if x[c] is None else x[c] for c in columns] for x in lines), format)


@study.command()
def result(
    database: Where,
    name: Name,
    entries: Annotated[
        str | None, typer.Option(help="CSV with columns row, col: print these completed entries.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Print every completed entry.")] = False,
    level: Annotated[
        float,
        typer.Option(
            help="Share of the intervals low to high that should cover the entry, where there are any."
        ),
    ] = 0.9,
    out: Annotated[
        Path | None, typer.Option(help="Save the result (npz), for Result.load.")
    ] = None,
    allow_plan: Allow = None,
    format: FormatOption = Format.table,
) -> None:
    """Print the result, or the best one so far: what it is, what it cost, what is certified.

    Example: entrywise study result lab.db kinase --entries wanted.csv --format csv
    """
    from entrywise.cli._study_results import completed, summary

    here = opened(database, name, allow_plan)
    found = here.result()
    if out is not None:
        found.save(out)
        say(f"the result is in {out}")
    if entries is not None or everything:
        emit(*completed(found, here.labels, entries, level), format)
    else:
        _one(summary(found), format, f"result of {name}")


@study.command()
def certificate(
    database: Where, name: Name, allow_plan: Allow = None, format: FormatOption = Format.table
) -> None:
    """Print what is promised about the result, in numbers, and what that assumes.

    Example: entrywise study certificate lab.db kinase
    """
    found = opened(database, name, allow_plan).result()
    rows = [
        (c.statement, c.value, "; ".join(c.assumes), "; ".join(c.checked), c.vacuous)
        for c in found.certificates
    ]
    emit(("statement", "value", "assumes", "checked", "vacuous"), rows, format)


def _date(seconds: float | None) -> str | None:
    return (
        None
        if seconds is None
        else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    )


def count(number: int, what: str) -> str:
    """Return a number of things in words.

    >>> count(1, "question"), count(2, "batch")
    ('1 question', '2 batches')
    """
    return (
        f"{number} {what}"
        if number == 1
        else f"{number} {what}{'es' if what.endswith('ch') else 's'}"
    )


def _one(found: dict[str, Any], format: Format, title: str) -> None:
    """Print one object: a line a property in tables, one line in CSV, one object in JSON."""
    if format is Format.table:
        emit(("what", "value"), [(k, _words(v)) for k, v in found.items()], format, title=title)
    elif format is Format.csv:
        plain = [json.dumps(v) if isinstance(v, dict | list) else v for v in found.values()]
        emit(tuple(found), [plain], format)
    else:
        emit(tuple(found), [tuple(found.values())], format)


def _words(value: Any) -> Any:
    """Return a value as people write it; nothing is a dash."""
    if value is None or (isinstance(value, list | dict | tuple) and not value):
        return "-"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_words(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        inner = [str(_words(v)) for v in value]
        return ("\n" if any(isinstance(v, dict) for v in value) else ", ").join(inner)
    return value
