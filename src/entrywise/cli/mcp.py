"""``entrywise mcp``: studies for agents, over the Model Context Protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from entrywise.cli._options import Where


def mcp(
    database: Where,
    role: Annotated[
        str, typer.Option(help="reader (may look) or worker (may also ask and tell).")
    ] = "worker",
    worker: Annotated[str, typer.Option(help="Who holds the questions.")] = "agent",
    study: Annotated[
        list[str] | None, typer.Option(help="Offer this study only; may be said again.")
    ] = None,
) -> None:
    """Serve studies to an agent over stdin and stdout: list_studies, status, ask, tell, report, forecast, rehearse.

    The ledger holds the budget whatever the agent does; nothing can be created, changed or deleted.

    Example: entrywise mcp lab.db --study kinase
    """
    from entrywise.integrations.mcp import server

    server(database, role=role, worker=worker, studies=study).run()  # type: ignore[arg-type]
