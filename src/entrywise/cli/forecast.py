"""``entrywise forecast``: what a budget will buy, before anything is spent."""

from __future__ import annotations

from typing import Annotated

import typer

from entrywise.cli._shared import Format, FormatOption, emit, say


def forecast(
    plan: Annotated[str, typer.Argument(help="Name of the plan; noisy-cur has a forecast.")],
    shape: Annotated[str, typer.Option(help="Rows and columns of the matrix, such as 80x60.")],
    price: Annotated[str, typer.Option(help="Price of each mode, such as column=16,entry=1.")],
    noise: Annotated[str, typer.Option(help="Standard deviation of each mode, such as column=0.22,entry=0.1.")],
    budget: Annotated[float, typer.Option(help="Money in all.")],
    rank: Annotated[int | None, typer.Option(help="Rank of the matrix; otherwise 2, 4 and 8 are shown.")] = None,
    signal: Annotated[
        float,
        typer.Option(help="Standard deviation of the entries about the mean of their row; sets the scale of error."),
    ] = 1.0,
    format: FormatOption = Format.table,
) -> None:
    """Say how a budget would be split, the error to expect, and what one more unit of money is worth.

    Example: entrywise forecast noisy-cur --shape 80x60 --price column=16,entry=1 --noise column=.22,entry=.1 --budget 720
    """
    from entrywise.active.forecast import forecast as foretell
    from entrywise.queries import Prices

    prices = Prices(**{"entry": None, **numbers(price, "price")})
    noises = numbers(noise, "noise")
    found = foretell(
        plan, shape=shape_of(shape), prices=prices, noise=noises, budget=budget, rank=rank, signal=signal
    )  # fmt: skip
    emit(found.columns, found.rows, format, title=f"{plan}: what {budget:g} buys")
    say(f"Assuming {found.assumes}.")


def shape_of(text: str) -> tuple[int, int]:
    """Return (m, n) from ``80x60`` or ``80,60``.

    >>> shape_of("80x60")
    (80, 60)
    """
    from entrywise.exceptions import ParameterError

    parts = text.lower().replace("x", ",").split(",")
    try:
        m, n = (int(part) for part in parts)
    except ValueError:
        raise ParameterError(f"--shape must be rows x columns, such as 80x60, got {text!r}") from None
    return m, n


def numbers(text: str, option: str) -> dict[str, float]:
    """Return numbers by name from ``column=16,entry=1``.

    >>> numbers("column=16,entry=1", "price")
    {'column': 16.0, 'entry': 1.0}
    """
    from entrywise.exceptions import ParameterError

    found = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise ParameterError(f"--{option} must be name=number, such as column=16,entry=1, got {part!r}") from None
    return found
