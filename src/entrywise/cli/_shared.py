"""What every command shares: ``--format``, one-line errors, data on stdout and words on stderr."""

from __future__ import annotations

import csv
import enum
import json
import math
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, TypeVar

import typer

from entrywise.exceptions import EntrywiseError, ParameterError

T = TypeVar("T")
_TURNING = frozenset(
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)  # turn the order of what follows


class Format(enum.StrEnum):
    """How data are printed."""

    table = "table"
    csv = "csv"
    json = "json"


FormatOption = Annotated[
    Format, typer.Option("--format", "-f", help="How data are printed on stdout.")
]
LayoutOption = Annotated[
    str, typer.Option(help="auto, long (one entry a line) or wide (one row a line).")
]
LabelsOption = Annotated[
    str, typer.Option(help="Whether the first column of a wide table is: auto, first or none.")
]
DuplicatesOption = Annotated[str, typer.Option(help="refuse, first, last, mean or keep.")]
HeaderOption = Annotated[
    str, typer.Option(help="Whether the first line names the columns: auto, yes or no.")
]


def shown(text: object) -> str:
    """Return a text as a terminal may safely show it: control characters are written out, not sent.

    >>> shown("red \\x1b[31m")
    'red \\\\x1b[31m'
    """
    return "".join(_visible(character) for character in str(text))


def _visible(character: str) -> str:
    hidden = unicodedata.category(character) in ("Cc", "Cs") or character in _TURNING
    return repr(character)[1:-1] if hidden else character


LONGEST_WORD = 30  # longer words of a table may be broken


def named(database: str) -> str:
    """Return how a database is called in a message: a path as it is, a URL without a password."""
    from entrywise.study.database import masked

    return masked(database) if "://" in database else database


def say(*words: object, style: str | None = None) -> None:
    """Print words for a person, on stderr; nothing in them is markup."""
    from rich.console import Console
    from rich.text import Text

    text = Text(" ".join(shown(word) for word in words))
    Console(stderr=True, soft_wrap=True, highlight=False).print(text, style=style)


def emit(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    format: Format,
    *,
    title: str | None = None,
) -> None:
    """Print data on stdout as a table, CSV or JSON (a list of objects).

    CSV and JSON carry texts as they are, since files make round trips; on a terminal control characters are shown.
    """
    if format is Format.csv:
        _emit_csv(columns, rows)
    elif format is Format.json:
        _emit_json(columns, rows)
    else:
        _emit_table(columns, rows, title)


def _emit_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    seen = shown if sys.stdout.isatty() else str
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([seen(column) for column in columns])
    writer.writerows([seen(_text(x)) for x in row] for row in rows)


def _emit_json(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    on_terminal = sys.stdout.isatty()
    sys.stdout.write("[")
    for k, row in enumerate(rows):
        record = {column: _plain(x) for column, x in zip(columns, row, strict=True)}
        text = json.dumps(record, ensure_ascii=on_terminal)
        sys.stdout.write(("," if k else "") + "\n " + text)
    sys.stdout.write("\n]\n")


def _emit_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None) -> None:
    """Print a table in which no number and no name of a column is broken; longer texts fold at words."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    lines = [[_cell(x) for x in row] for row in _measured(columns, rows)]
    heading = None if title is None else Text(shown(title))
    table = Table(
        title=heading, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
    )
    console = Console(highlight=False)
    widths = _widths(columns, lines, console.width)
    for k, column in enumerate(columns):
        numbers = all(isinstance(row[k], _Number) for row in lines)
        table.add_column(
            Text(shown(column)), justify="right" if numbers else "left", no_wrap=numbers,
            width=widths[k], overflow="fold",
        )  # fmt: skip
    for line in lines:
        table.add_row(*map(Text, line))
    console.width = max(console.width, sum(widths) + _AROUND * (len(widths) + 1))
    console.print(table)


def _measured(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[list[Any]]:
    """Yield rows with the digits that are known: a number before its low and high has those of the interval."""
    from entrywise.fragments import figures

    first = [k - 1 for k in range(1, len(columns) - 1) if tuple(columns[k : k + 2]) == _ENDS]
    for row in rows:
        line = list(row)
        for k in first:
            numbers = line[k : k + 3]
            if all(isinstance(x, float) and math.isfinite(x) for x in numbers):
                line[k : k + 3] = map(_Number, figures(*numbers))
        yield line


_ENDS = ("low", "high")
_AROUND = 2  # blanks beside a column


def _widths(columns: Sequence[str], lines: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return the width of each column: the widest are narrowed first, and none below its longest word."""
    from rich.cells import cell_len

    least, widths = [], []
    for k, column in enumerate(columns):
        cells = [row[k] for row in lines]
        longest = max((cell_len(word) for cell in cells for word in cell.split()), default=1)
        least.append(max(cell_len(column), min(longest, LONGEST_WORD)))
        whole = max((cell_len(part) for cell in cells for part in cell.split("\n")), default=1)
        widths.append(max(whole, least[-1]))
    room -= _AROUND * (len(columns) + 1)
    while sum(widths) > room:
        spare = [w if w > low else 0 for w, low in zip(widths, least, strict=True)]
        if not any(spare):
            break
        widths[spare.index(max(spare))] -= 1
    return widths


class _Number(str):
    """A number as it is shown."""


def _cell(x: Any) -> str:
    if isinstance(x, _Number):
        return x
    if isinstance(x, bool) or not isinstance(x, int | float):
        return shown("" if x is None else x)
    return _Number(f"{x:.4g}" if isinstance(x, float) else str(x))


def _text(x: Any) -> str:
    return repr(float(x)) if isinstance(x, float) else ("" if x is None else str(x))


def _plain(x: Any) -> Any:
    if hasattr(x, "item"):
        x = x.item()
    return None if isinstance(x, float) and x != x else x


def run_command(call: Callable[[], T]) -> T:
    """Turn known mistakes into one line on stderr and exit code 1; a traceback means we have a bug.

    Warnings become one line each, and are said once.
    """
    import warnings

    said = set()

    def warn(message: Warning | str, *where: object, **how: object) -> None:
        if str(message) not in said:
            said.add(str(message))
            say(f"Warning: {message}.")

    try:
        with warnings.catch_warnings():
            warnings.showwarning = warn
            return call()
    except EntrywiseError as error:
        say(f"Error: {error}", style="red")
        raise SystemExit(1) from None
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        say(
            f"Error: {error.filename}: {(error.strerror or 'cannot be opened').lower()}; "
            "name one that can be read",
            style="red",
        )
        raise SystemExit(1) from None
    except UnicodeDecodeError as error:
        say(
            f"Error: the file must be UTF-8 text, byte {error.start} is not; save it as UTF-8",
            style="red",
        )
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        say("Interrupted.", style="red")
        raise SystemExit(130) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(0) from None
    except Exception as error:
        if not hasattr(error, "format_message"):  # what typer raises for words it does not know
            raise
        _say_usage(error)
        raise SystemExit(2) from None


def _say_usage(error: Any) -> None:
    """Say in one line what is wrong with the words of a command."""
    context = getattr(error, "ctx", None)
    words = error.format_message().strip().removesuffix(".").replace("Value error, ", "")
    if not words:  # a command without words has shown its help
        return
    words = words.split(", unable to parse")[0]
    given: list[Any] = getattr(error.__cause__, "errors", list)()
    if given and repr(given[0].get("input")) not in words:
        words += f", got {given[0].get('input')!r}"
    path = "" if context is None else " ".join(context.command_path.split()[1:])
    command = f"entrywise {path}".strip()
    say(f"Error: {words}; see {command} -h", style="red")


def bounds_of(text: str | None) -> tuple[float, float] | None:
    """Return the ends of a range written as ``1,5``."""
    from entrywise.tables import number

    if text is None:
        return None
    ends = [number(part.strip()) for part in text.split(",")]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        raise ParameterError(f"--bounds must be two numbers, such as 1,5, got {text!r}")
    return ends[0], ends[1]
