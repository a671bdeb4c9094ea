"""The command's front door: registers every command and turns known mistakes into one line."""

from __future__ import annotations

import typer

from entrywise.cli import (
    advise,
    complete,
    convert,
    crowd,
    crowd_next,
    demo,
    forecast,
    kernel,
    leaderboard,
    mcp,
    methods,
    online,
    rank,
    rank_next,
    report,
    reproduce,
    serve,
    study_changes,
    subspace,
    token,
)
from entrywise.cli._file_first import file_first
from entrywise.cli._shared import run_command

app = typer.Typer(
    name="entrywise",
    help="Decide which entries of an unknown matrix are worth paying for, complete the rest, and say how far to trust it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _command in (
    advise.advise,
    complete.complete,
    convert.convert,
    demo.demo,
    forecast.forecast,
    kernel.kernel,
    mcp.mcp,
    methods.methods,
    online.online,
    report.report,
    reproduce.reproduce,
    serve.serve,
    subspace.subspace,
):
    app.command()(_command)
app.add_typer(study_changes.commands)
app.add_typer(leaderboard.leaderboard)
app.add_typer(token.token)
app.add_typer(file_first("crowd", crowd.crowd, next=crowd_next.crowd_next))
app.add_typer(file_first("rank", rank.rank, next=rank_next.rank_next))


def _version(wanted: bool) -> None:
    if wanted:
        from entrywise import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _front(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Decide which entries are worth paying for, complete the rest, and say how far to trust it."""


def main() -> None:
    """Run the command line."""
    code = run_command(lambda: app(prog_name="entrywise", standalone_mode=False))
    if isinstance(code, int) and code:  # what a command ended with on purpose
        raise SystemExit(code)
