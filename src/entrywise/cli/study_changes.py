"""``entrywise study``: what changes a study as a whole, and workers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from entrywise.cli._shared import say
from entrywise.cli.study import Name, Where, Worker, count, study

commands = study  # all of them, those of entrywise.cli.study included


@study.command()
def amend(
    database: Where,
    name: Name,
    answer: Annotated[str, typer.Argument(help="The answer's id, such as 3.10, or row,col.")],
    value: Annotated[str, typer.Argument(help="The corrected value, or failed.")],
    worker: Worker = None,
) -> None:
    """Correct an answer; the plan goes back to its batch and works on from there. The log keeps both.

    Example: entrywise study amend lab.db kinase 3.10 0.82
    """
    from entrywise.exceptions import TellError
    from entrywise.study import Study
    from entrywise.study.entries import parse_id

    found = Study.open(database, name)
    which: Any = answer
    try:
        parse_id(answer)
    except TellError:
        which = tuple(part.strip() for part in answer.split(",", 1))
    found.amend(which, value, worker)
    now = found.status()
    gone = count(now["withdrawn"], "batch")
    say(
        f"amended; the study is {now['state']}, {count(now['open'], 'question')} open, {gone} withdrawn in all"
    )


@study.command()
def release(database: Where, name: Name, worker: Worker = None) -> None:
    """Give back what a worker holds (or everybody, without --worker), so that others may ask for it.

    Example: entrywise study release lab.db kinase --worker bench-2
    """
    from entrywise.study import Study

    say(f"{count(Study.open(database, name).release(worker), 'question')} released")


@study.command()
def close(database: Where, name: Name) -> None:
    """Stop asking and telling; everything stays, `reopen` goes on.

    Example: entrywise study close lab.db kinase
    """
    from entrywise.study import Study

    Study.open(database, name).close()
    say(f"study {name!r} is closed")


@study.command()
def reopen(
    database: Where,
    name: Name,
    budget: Annotated[float | None, typer.Option(help="The new budget, in all.")] = None,
) -> None:
    """Go on with a closed study, or give more money to one whose money ran out.

    Example: entrywise study reopen lab.db kinase --budget 8000
    """
    from entrywise.study import Study

    found = Study.open(database, name)
    found.reopen(budget)
    say(f"study {name!r} is {found.state}")


@study.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
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
    price: Annotated[
        list[str] | None, typer.Option(help="Price of each mode, such as column=16,entry=1.")
    ] = None,
) -> None:
    """Start the plan again under a new name, with all answers as memory; changed parameters are options.

    Example: entrywise study fork lab.db kinase kinase-2 --rank 20
    """
    from entrywise.cli._options import params_of, prices_of
    from entrywise.study import Study

    found = Study.open(database, name)
    made = found.fork(
        new,
        url=to,
        params=params_of(context.args),
        seed=seed,
        budget=budget,
        prices=prices_of(price or []),
    )
    now = made.status()
    say(f"study {new!r} is {now['state']}: {count(now['open'], 'question')} to ask")


@study.command()
def export(
    database: Where,
    name: Name,
    file: Annotated[Path, typer.Argument(help="The zip file to write.")],
) -> None:
    """Write all of a study to one portable file, a zip of CSV and JSON.

    Example: entrywise study export lab.db kinase kinase.zip
    """
    from entrywise.study import Study

    Study.open(database, name).export(file)
    say(f"study {name!r} is in {file}")


@study.command("import")
def import_(
    database: Where,
    file: Annotated[Path, typer.Argument(help="A file that `study export` wrote.")],
    name: Annotated[str | None, typer.Option(help="Another name for it.")] = None,
) -> None:
    """Rebuild an exported study.

    Example: entrywise study import other.db kinase.zip
    """
    from entrywise.study import Study

    found = Study.load(database, file, name)
    say(f"study {found.name!r} is {found.state}")


@study.command()
def work(
    database: Where,
    name: Name,
    oracle: Annotated[
        str,
        typer.Option(help="module:function, called with a Batch, returning one number a position."),
    ],
    entry: Annotated[
        bool, typer.Option(help="The function takes one entry (i, j) instead of a Batch.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Threads.")] = 1,
    chunk: Annotated[int | None, typer.Option(help="Questions a thread takes at a time.")] = None,
    lease: Annotated[
        float, typer.Option(help="Seconds until others may take over what a dead worker held.")
    ] = 3600.0,
    worker: Worker = None,
) -> None:
    """Answer questions by a function until the study is finished; run it on as many machines as you like.

    Example: entrywise study work lab.db kinase --oracle assay:measure --workers 4
    """
    from entrywise.cli._study_results import function_at
    from entrywise.oracles import FunctionOracle
    from entrywise.study import Study

    call = function_at(oracle)
    found = Study.open(database, name)
    found.run(
        FunctionOracle(call) if entry else call,
        workers=workers,
        chunk=chunk,
        lease=lease,
        worker=worker,
    )
    now = found.status()
    say(
        f"study {name!r} is {now['state']}: {count(now['answered'], 'answer')}, {now['spent']:g} spent"
    )
