"""``entrywise token``: who may do what through the service."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from entrywise.cli._options import Where
from entrywise.cli._shared import Format, FormatOption, emit, say

token = typer.Typer(
    name="token",
    help="Let people and programs in through the service: tokens with a role, that expire.",
    no_args_is_help=True,
)


@token.command()
def create(
    database: Where,
    role: Annotated[str, typer.Option(help="reader, worker or owner.")],
    study: Annotated[str | None, typer.Option(help="For this study alone; else for all.")] = None,
    days: Annotated[float, typer.Option(help="Until it expires.")] = 30.0,
    title: Annotated[str, typer.Option(help="Whose it is.")] = "",
) -> None:
    """Make a token and print it, once: the database keeps its hash.

    Example: entrywise token create lab.db --study kinase --role worker --days 30
    """
    from entrywise.study import Store, tokens

    store = Store(database, must_exist=True)
    secret, made = tokens.create(store, role, study=study, days=days, title=title)
    typer.echo(secret)
    say(f"token {made.id}: {made.title}, until {_date(made.expires_at)}; it is not shown again")


@token.command("list")
def list_(database: Where, format: FormatOption = Format.table) -> None:
    """List tokens: what they allow, until when; never the tokens themselves.

    Example: entrywise token list lab.db
    """
    from entrywise.study import Store, tokens

    rows = [
        (t.id, t.title, t.role, t.study, _date(t.expires_at), _date(t.revoked_at))
        for t in tokens.listed(Store(database, must_exist=True))
    ]
    emit(("id", "title", "role", "study", "expires", "revoked"), rows, format)


@token.command()
def revoke(database: Where, id: Annotated[int, typer.Argument(help="Its number.")]) -> None:
    """Make a token useless at once.

    Example: entrywise token revoke lab.db 3
    """
    from entrywise.study import Store, tokens

    tokens.revoke(Store(database, must_exist=True), id)
    say(f"token {id} is revoked")


def _date(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
