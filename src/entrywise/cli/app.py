"""The command's front door: registers every command and turns known mistakes into one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup

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

# Commands by who chooses the entries; those who pay find studies first.
FIRST = "Start here"
PAY = "You choose the entries, and pay"
GIVEN = "The entries are given"
COME = "They come one by one"
MORE = "More"
PANELS: tuple[tuple[str, tuple[Callable[..., None] | typer.Typer, ...]], ...] = (
    (FIRST, (demo.demo, advise.advise)),
    (
        PAY,
        (
            study_changes.commands,
            leaderboard.leaderboard,
            forecast.forecast,
            kernel.kernel,
            serve.serve,
            report.report,
            token.token,
            mcp.mcp,
        ),
    ),
    (
        GIVEN,
        (
            complete.complete,
            file_first("crowd", crowd.crowd, next=crowd_next.crowd_next),
            file_first("rank", rank.rank, next=rank_next.rank_next),
            subspace.subspace,
        ),
    ),
    (COME, (online.online,)),
    (MORE, (methods.methods, convert.convert, reproduce.reproduce)),
)


BRIEF = {  # a line each, so that the front page is one screen
    "demo": "See it work: buy a few cells of a leaderboard, check the rest.",
    "advise": "What is this table, and what should I type next?",
    "study": "Ask and tell over weeks, with colleagues, in one database.",
    "leaderboard": "Score models over tasks from the cells that tell most.",
    "forecast": "How to split a budget over two instruments, and the error.",
    "kernel": "A kernel matrix from a few columns, with certified error.",
    "serve": "The page for people and the interface for programs.",
    "report": "A study as one HTML file, for a mail or a wiki.",
    "token": "Let people and programs in through the service.",
    "mcp": "Let an agent work on studies, within their budgets.",
    "complete": "Fill the gaps of a table, each value with its interval.",
    "crowd": "The label of every item from who said what.",
    "rank": "Rank items from who beat whom, with intervals.",
    "subspace": "Principal components of samples seen in part.",
    "online": "Predict each entry of a stream before it is seen.",
    "methods": "Every method with its paper, guarantee and assumptions.",
    "convert": "Read what other tools write, and write what they read.",
    "reproduce": "Redraw the figures of a paper, with claims and findings.",
}


class InOrder(TyperGroup):
    """A group that lists its commands in the order of `PANELS`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, panel by panel."""
        places = {_called(command): k for k, command in enumerate(_every_command())}
        return sorted(self.commands, key=lambda name: places[name])


def _every_command() -> list[Callable[..., None] | typer.Typer]:
    return [command for _, commands in PANELS for command in commands]


def _called(command: Callable[..., None] | typer.Typer) -> str:
    """Return the word that a user types."""
    return str(command.info.name if isinstance(command, typer.Typer) else command.__name__)


app = typer.Typer(
    name="entrywise",
    cls=InOrder,
    help="Decide which entries of an unknown matrix are worth paying for, complete the rest, and say how far to trust it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _panel, _commands in PANELS:
    for _command in _commands:
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, rich_help_panel=_panel, short_help=BRIEF[_called(_command)])
        else:
            app.command(rich_help_panel=_panel, short_help=BRIEF[_called(_command)])(_command)


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
