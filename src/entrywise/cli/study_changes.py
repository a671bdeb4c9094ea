"""``entrywise study``: what changes a study as a whole, keeps it safe, and works on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from entrywise.cli._options import Where
from entrywise.cli._shared import Format, FormatOption, emit, named, say
from entrywise.cli.study import (
    Allow,
    ColFeatures,
    Cols,
    Name,
    PriceRule,
    PriceWords,
    RowFeatures,
    Rows,
    Worker,
    count,
    opened,
    study,
    worries,
)
from entrywise.exceptions import ParameterError, TellError
from entrywise.fragments import unit_of

commands = study  # all of them, those of entrywise.cli.study included
CHANGES = "When something changes"
SAFE = "Keep it safe"

Answer = Annotated[str, typer.Argument(help="The answer's id, such as 3.10, or row,col.")]
Reason = Annotated[str | None, typer.Option(help="Why; the log keeps it.")]


def _which(answer: str) -> Any:
    """Return an id as it is, and row,col as a pair."""
    from entrywise.study.entries import parse_id

    try:
        parse_id(answer)
    except TellError:
        return tuple(part.strip() for part in answer.split(",", 1))
    return answer


def _now(database: str, found: Any, done: str) -> None:
    """Say what was done and where the study stands."""
    now = found.status()
    out = f", {count(now['leased'], 'question')} out" if now["leased"] else ""
    say(f"{done}; the study is {now['state']}, {count(now['open'], 'question')} open{out}")
    worries(database, now)


@study.command(rich_help_panel=CHANGES)
def amend(
    database: Where,
    name: Name,
    answer: Answer,
    value: Annotated[str, typer.Argument(help="The corrected value, or failed.")],
    worker: Worker = None,
    reason: Reason = None,
    allow_plan: Allow = None,
) -> None:
    """Correct an answer; the plan starts anew with all that was told. The log keeps both values and the reason.

    What people have on the bench stays theirs: its answers are kept and used.

    Example: entrywise study amend lab.db kinase 3.10 0.82 --reason "read in the wrong column"
    """
    found = opened(database, name, allow_plan)
    found.amend(_which(answer), value, worker, reason=reason)
    _now(database, found, "amended")


@study.command(rich_help_panel=CHANGES)
def void(
    database: Where,
    name: Name,
    answer: Answer,
    worker: Worker = None,
    reason: Reason = None,
    allow_plan: Allow = None,
) -> None:
    """Forget an answer, so that it is asked again; what it cost is spent.

    Example: entrywise study void lab.db kinase 3.10
    """
    found = opened(database, name, allow_plan)
    found.void(_which(answer), worker, reason=reason)
    _now(database, found, "forgotten")


@study.command(rich_help_panel=CHANGES)
def extend(
    database: Where,
    name: Name,
    rows: Annotated[
        str | None, typer.Option(help="File whose first column names new rows, or how many.")
    ] = None,
    cols: Annotated[
        str | None, typer.Option(help="File whose first column names new columns, or how many.")
    ] = None,
    budget: Annotated[float | None, typer.Option(help="Money to add.")] = None,
    price: PriceWords = None,
    price_rule: PriceRule = None,
    row_features: RowFeatures = None,
    col_features: ColFeatures = None,
    allow_plan: Allow = None,
) -> None:
    """Add rows, columns or money; what was told counts, and only what is new is asked.

    Where lines have prices of their own, --price gives those of the new ones: a column of --rows or --cols. Where they have
    features, those of the new ones are columns of the same file, or come from --row-features and --col-features.

    Example: entrywise study extend board.db models --rows new-models.csv --budget 60
    """
    from entrywise.cli._study_files import labels_of, new_features
    from entrywise.cli._study_prices import longer
    from entrywise.tables import whole

    found = opened(database, name, allow_plan)
    more: dict[str, Any] = {}
    for axis, given in (("rows", rows), ("cols", cols)):
        if given is not None:
            count = whole(given)
            more[axis] = labels_of(given) if count is None else count
    files = {
        axis[:-1]: given
        for axis, given in (("rows", rows), ("cols", cols))
        if not isinstance(more.get(axis), int)
    }
    more |= new_features(found, files, {"row": row_features, "col": col_features})
    quotes = longer(found.prices.to_json(), price or [], price_rule, rows, cols)
    found.extend(**more, budget=budget, prices=quotes)
    _now(database, found, "extended")


@study.command(rich_help_panel=CHANGES)
def add(
    database: Where,
    name: Name,
    file: Annotated[str, typer.Argument(help="Entries that somebody measured anyway.")],
    allow_plan: Allow = None,
) -> None:
    """Add entries that are known by now: they are used, and cost nothing.

    Example: entrywise study add lab.db kinase literature.csv
    """
    from entrywise.cli._study_files import known_of

    found = opened(database, name, allow_plan)
    labels = found.labels
    number = found.add(known_of(file, labels.rows, labels.cols))
    _now(database, found, f"{count(number, 'known entry')} added".replace("entrys", "entries"))


@study.command(rich_help_panel=CHANGES)
def drop(
    database: Where, name: Name, row: Rows = None, col: Cols = None, allow_plan: Allow = None
) -> None:
    """Ask no more in some rows or columns; what was answered there stays.

    Example: entrywise study drop board.db models --row 'gpt-3*'
    """
    found = opened(database, name, allow_plan)
    found.drop(row, col)
    _now(database, found, "dropped")


@study.command(rich_help_panel=CHANGES)
def change(
    database: Where,
    name: Name,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the plan, such as rank=20.")
    ] = None,
    price: PriceWords = None,
    price_rule: PriceRule = None,
    rows: Annotated[str | None, typer.Option(help="File of all rows, for rows:COLUMN.")] = None,
    cols: Annotated[str | None, typer.Option(help="File of all columns, for cols:COLUMN.")] = None,
    allow_plan: Allow = None,
) -> None:
    """Go on with other parameters or prices; what was told counts.

    Example: entrywise study change lab.db kinase --set rank=20 --price entry=2
    """
    from entrywise.cli._options import params_of
    from entrywise.cli._study_prices import quotes

    odd = next((word for word in set_ or () if not word.partition("=")[1]), None)
    if odd is not None:
        raise ParameterError(f"--set must be name=value, such as rank=20, got {odd!r}")
    if not (set_ or price):
        raise ParameterError("give --set name=value or --price mode=number; none of them was given")
    words = [f"--{word}" for word in set_ or ()]
    found = opened(database, name, allow_plan)
    labels = found.labels
    own = quotes(price or [], price_rule, rows, cols, labels.rows, labels.cols)
    both = None if own is None else found.prices.to_json() | own
    found.change(params_of(words), both)
    _now(database, found, "changed")


@study.command(rich_help_panel=CHANGES)
def renew(database: Where, name: Name, allow_plan: Allow = None) -> None:
    """Go on with this version of the plan, after an upgrade that asks otherwise; what was told counts.

    Example: entrywise study renew lab.db kinase
    """
    found = opened(database, name, allow_plan)
    found.renew()
    _now(database, found, "renewed")


@study.command(rich_help_panel=CHANGES)
def release(database: Where, name: Name, worker: Worker = None) -> None:
    """Give back what a worker holds (or everybody, without --worker), so that others may ask for it.

    Example: entrywise study release lab.db kinase --worker bench-2
    """
    say(f"{count(opened(database, name, None).release(worker), 'question')} released")


@study.command(rich_help_panel=CHANGES)
def close(database: Where, name: Name) -> None:
    """Stop asking and telling; everything stays, `reopen` goes on.

    Example: entrywise study close lab.db kinase
    """
    opened(database, name, None).close()
    say(f"study {name!r} is closed")


@study.command(rich_help_panel=CHANGES)
def reopen(
    database: Where,
    name: Name,
    budget: Annotated[float | None, typer.Option(help="The new budget, in all.")] = None,
    allow_plan: Allow = None,
) -> None:
    """Go on with a closed study, or set the money that a study has in all.

    Example: entrywise study reopen lab.db kinase --budget 8000
    """
    found = opened(database, name, allow_plan)
    found.reopen(budget)
    say(f"study {name!r} is {found.state}")


@study.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    rich_help_panel=CHANGES,
)
def fork(
    context: typer.Context,
    database: Where,
    name: Name,
    new: Annotated[str, typer.Argument(help="Name of the new study.")],
    to: Annotated[str | None, typer.Option(help="Another database for it.")] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed.")] = None,
    budget: Annotated[
        float | None, typer.Option(help="Another budget; what was spent counts.")
    ] = None,
    price: PriceWords = None,
    price_rule: PriceRule = None,
    allow_plan: Allow = None,
) -> None:
    """Start the plan again under a new name, with all that was told; changed parameters are options.

    Example: entrywise study fork lab.db kinase kinase-2 --rank 20
    """
    from entrywise.cli._options import params_of
    from entrywise.cli._study_prices import quotes

    found = opened(database, name, allow_plan)
    labels = found.labels
    made = found.fork(
        new,
        url=to,
        params=params_of(context.args),
        seed=seed,
        budget=budget,
        prices=quotes(price or [], price_rule, None, None, labels.rows, labels.cols),
    )
    now = made.status()
    say(f"study {new!r} is {now['state']}: {count(now['open'], 'question')} to ask")


@study.command(rich_help_panel=SAFE)
def export(
    database: Where,
    name: Name,
    file: Annotated[Path, typer.Argument(help="The zip file to write.")],
) -> None:
    """Write all of a study to one portable file, a zip of CSV and JSON.

    Example: entrywise study export lab.db kinase kinase.zip
    """
    opened(database, name, None).export(file)
    say(f"study {name!r} is in {file}")


@study.command("import", rich_help_panel=SAFE)
def import_(
    database: Where,
    file: Annotated[Path, typer.Argument(help="A file that `study export` wrote.")],
    name: Annotated[str | None, typer.Option(help="Another name for it.")] = None,
) -> None:
    """Rebuild an exported study. The file is checked whole first, and nothing in it is run.

    Example: entrywise study import other.db kinase.zip
    """
    from entrywise.study import Study

    found = Study.load(database, file, name)
    say(f"study {found.name!r} is {found.state}")


@study.command(rich_help_panel=SAFE)
def backup(
    database: Where,
    file: Annotated[Path, typer.Argument(help="The copy to write.")],
) -> None:
    """Copy a database while people work on it; a plain copy of a live file may lose answers.

    Example: entrywise study backup lab.db lab-monday.db
    """
    from entrywise.study import Store

    Store(database, must_exist=True).database.backup(file)
    say(f"all studies of {named(database)} are in {file}")


@study.command(rich_help_panel=SAFE)
def check(
    database: Where, name: Name, allow_plan: Allow = None, format: FormatOption = Format.table
) -> None:
    """See that the database is sound, the money and the counters add up, and the plan asks as the log says.

    Example: entrywise study check lab.db kinase
    """
    found = opened(database, name, allow_plan).check()
    emit(tuple(found), [tuple(found.values())], format)
    say(f"study {name!r} is in order")


@study.command(rich_help_panel=SAFE)
def delete(
    database: Where,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Take a study out of its database, all of it. Export it first: there is no way back.

    Example: entrywise study delete lab.db kinase --yes
    """
    found = opened(database, name, None)
    if not yes:
        raise ParameterError(
            f"study {name!r} has {count(found.status()['answered'], 'answer')}, and deleting it cannot be undone; "
            "export it, then say --yes"
        )
    found.delete()
    say(f"study {name!r} is deleted")


@study.command()
def work(
    database: Where,
    name: Name,
    oracle: Annotated[
        str | None,
        typer.Option(help="module:function, called with a Batch, returning one number a position."),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(help="A command such as 'judge {row} {col}'; its last line is the number."),
    ] = None,
    entry: Annotated[
        bool, typer.Option(help="The function takes one entry (row, col) instead of a Batch.")
    ] = False,
    by: Annotated[str, typer.Option(help="label or index: what entries are called.")] = "label",
    workers: Annotated[int, typer.Option(help="Threads.")] = 1,
    chunk: Annotated[int | None, typer.Option(help="Questions a thread takes at a time.")] = None,
    row: Rows = None,
    col: Cols = None,
    mode: Annotated[str | None, typer.Option(help="Only this instrument.")] = None,
    lease: Annotated[
        float, typer.Option(help="Seconds until others may take over what a dead worker held.")
    ] = 3600.0,
    timeout: Annotated[
        float, typer.Option(help="Seconds after which a command is killed.")
    ] = 600.0,
    retries: Annotated[int, typer.Option(help="Tries after the first, each after a pause.")] = 2,
    on_error: Annotated[
        str, typer.Option(help="return: give questions back; fail: tell them as failed, charged.")
    ] = "return",
    worker: Worker = None,
    allow_plan: Allow = None,
) -> None:
    """Answer questions by a function or a command until the study is finished; on as many machines as you like.

    An exception, a timeout or a non-zero exit is not an answer: the question is tried again, then given back.

    Example: entrywise study work lab.db kinase --command 'judge {row} {col}' --timeout 60
    """
    from entrywise.cli._study_work import answering, watched

    found = opened(database, name, allow_plan)
    call = answering(found, oracle, command, entry=entry, by=by, timeout=timeout, retries=retries)
    how: dict[str, Any] = {"chunk": chunk, "lease": lease, "worker": worker, "on_error": on_error}
    how |= {"rows": row, "cols": col, "mode": mode, "retries": 0 if command else retries}
    done = watched(found, call, workers=workers, **how)
    now = found.status()
    if done.returned:
        say(
            f"{count(done.returned, 'question')} were given back: {done.last_error}", style="yellow"
        )
    say(
        f"study {name!r} is {now['state']}: {count(now['answered'], 'answer')}, "
        f"{now['spent']:g}{unit_of(now['currency'])} spent"
    )
