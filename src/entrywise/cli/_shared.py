"""What every command shares: ``--format``, one-line errors, data on stdout and words on stderr."""

from __future__ import annotations

import csv
import enum
import io
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

T = TypeVar("T")


class Format(enum.StrEnum):
    """How data are printed."""

    table = "table"
    csv = "csv"
    json = "json"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How data are printed on stdout.")]


def say(*words: object, style: str | None = None) -> None:
    """Print words for a person, on stderr."""
    from rich.console import Console

    Console(stderr=True, soft_wrap=True, highlight=False).print(*words, style=style)


def emit(columns: Sequence[str], rows: Iterable[Sequence[Any]], format: Format, *, title: str | None = None) -> None:
    """Print data on stdout as a table, CSV or JSON (a list of objects)."""
    if format is Format.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_text(x) for x in row] for row in rows)
    elif format is Format.json:
        sys.stdout.write("[")
        for k, row in enumerate(rows):
            text = json.dumps({c: _plain(x) for c, x in zip(columns, row, strict=True)}, ensure_ascii=False)
            sys.stdout.write(("," if k else "") + "\n " + text)
        sys.stdout.write("\n]\n")
    else:
        from rich.console import Console
        from rich.table import Table

        table = Table(title=title)
        for c in columns:
            table.add_column(c, overflow="fold")
        for row in rows:
            table.add_row(*(f"{x:.6g}" if isinstance(x, float) else str(x) for x in row))
        Console(highlight=False).print(table)


def _text(x: Any) -> str:
    return repr(float(x)) if isinstance(x, float) else ("" if x is None else str(x))


def _plain(x: Any) -> Any:
    if hasattr(x, "item"):
        x = x.item()
    return None if isinstance(x, float) and x != x else x


def open_text(path: str) -> io.TextIOBase:
    """Open a text file for reading; ``-`` is stdin."""
    return sys.stdin if path == "-" else Path(path).open(encoding="utf-8", newline="")  # type: ignore[return-value]


def run_command(call: Callable[[], T]) -> T:
    """Turn known mistakes into one line on stderr and exit code 1; a traceback means we have a bug."""
    from entrywise.exceptions import EntrywiseError

    try:
        return call()
    except EntrywiseError as error:
        say(f"Error: {error}", style="red")
        raise SystemExit(1) from None
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        say(f"Error: {error.filename}: {(error.strerror or 'cannot be opened').lower()}", style="red")
        raise SystemExit(1) from None
    except UnicodeDecodeError as error:
        say(f"Error: the file must be UTF-8 text, byte {error.start} is not; convert it", style="red")
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        say("Interrupted.", style="red")
        raise SystemExit(130) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(0) from None
