"""``entrywise forecast``: what a budget will buy, before anything is spent."""

from __future__ import annotations

from typing import Annotated

import typer

from entrywise.cli._options import numbers, shape_of
from entrywise.cli._shared import Format, FormatOption, emit, say


def forecast(
    plan: Annotated[str, typer.Argument(help="Name of the plan; noisy-cur has a forecast.")],
    shape: Annotated[str, typer.Option(help="Rows and columns of the matrix, such as 80x60.")],
    price: Annotated[str, typer.Option(help="Price of each mode, such as column=16,entry=1.")],
    noise: Annotated[
        str, typer.Option(help="Standard deviation of each mode, such as column=0.22,entry=0.1.")
    ],
    budget: Annotated[float, typer.Option(help="Money in all.")],
    rank: Annotated[
        int | None, typer.Option(help="Rank of the matrix; otherwise 2, 4 and 8 are shown.")
    ] = None,
    signal: Annotated[
        float,
        typer.Option(
            help="Standard deviation of the entries about the mean of their row; sets the scale of error."
        ),
    ] = 1.0,
    pilot: Annotated[
        str | None,
        typer.Option(
            help="Entries measured before, here or on a board like it: a table or long file. Its spectrum replaces --rank "
            "and --signal, and the error is a range."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the rehearsals that a pilot makes possible.")] = 0,
    format: FormatOption = Format.table,
) -> None:
    """Say how a budget would be split, the error to expect, and what one more unit of money is worth.

    Example: entrywise forecast noisy-cur --shape 80x60 --price column=16,entry=1 --noise column=.22,entry=.1 --budget 720
    """
    from entrywise.active.two_cost.forecast import forecast as foretell
    from entrywise.formats import read
    from entrywise.queries import Prices

    prices = Prices(**{"entry": None, **numbers(price, "price")})
    noises = numbers(noise, "noise")
    found = foretell(
        plan,
        shape=shape_of(shape),
        prices=prices,
        noise=noises,
        budget=budget,
        rank=rank,
        signal=signal,
        pilot=None if pilot is None else read(pilot),
        rng=seed,
    )
    emit(found.columns, found.rows, format, title=f"{plan}: what {budget:g} buys")
    if found.legend:
        say(f"{found.legend}.")
    say(f"Assuming {found.assumes}.")
