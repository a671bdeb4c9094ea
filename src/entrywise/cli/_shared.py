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


FormatOption = Annotated[
    Format, typer.Option("--format", "-f", help="How data are printed on stdout.")
]


def say(*words: object, style: str | None = None) -> None:
    """Print words for a person, on stderr."""
    from rich.console import Console

    Console(stderr=True, soft_wrap=True, highlight=False).print(*words, style=style)


def emit(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    format: Format,
    *,
    title: str | None = None,
) -> None:
    """Print data on stdout as a table, CSV or JSON (a list of objects)."""
    if format is Format.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_text(x) for x in row] for row in rows)
    elif format is Format.json:
        sys.stdout.write("[")
        for k, row in enumerate(rows):
            text = json.dumps(
                {c: _plain(x) for c, x in zip(columns, row, strict=True)}, ensure_ascii=False
            )
            sys.stdout.write(("," if k else "") + "\n " + text)
        sys.stdout.write("\n]\n")
    else:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(title=title)
        for c in columns:
            table.add_column(c, overflow="fold")
        for row in rows:
            words = (f"{x:.6g}" if isinstance(x, float) else str(x) for x in row)
            table.add_row(*map(Text, words))  # as they are: [low, high] is no markup
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
    """Turn known mistakes into one line on stderr and exit code 1; a traceback means we have a bug.

    Warnings become one line each, and are said once.
    """
    import warnings

    from entrywise.exceptions import EntrywiseError

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
            f"Error: {error.filename}: {(error.strerror or 'cannot be opened').lower()}",
            style="red",
        )
        raise SystemExit(1) from None
    except UnicodeDecodeError as error:
        say(
            f"Error: the file must be UTF-8 text, byte {error.start} is not; convert it",
            style="red",
        )
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        say("Interrupted.", style="red")
        raise SystemExit(130) from None
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(0) from None


def read_points(path: str) -> Any:
    """Return the points of a file, one a row, as a finite float array of shape (n, d)."""
    import numpy as np

    from entrywise.exceptions import DataError

    name = path.lower()
    try:
        if name.endswith((".npy", ".npz")):
            loaded = np.load(path, allow_pickle=False)
            X = loaded[loaded.files[0]] if name.endswith(".npz") else loaded
        else:
            import polars as pl

            if name.endswith(".parquet"):
                frame = pl.read_parquet(path)
            else:
                source: Any = sys.stdin.buffer.read() if path == "-" else path
                frame = pl.read_csv(
                    source, separator="\t" if ".tsv" in name else ",", infer_schema_length=None
                )
                if all(
                    _is_number(c) for c in frame.columns
                ):  # no header: the first line is a point
                    frame = pl.read_csv(
                        source,
                        separator="\t" if ".tsv" in name else ",",
                        has_header=False,
                        infer_schema_length=None,
                    )
            bad = [c for c, kind in frame.schema.items() if not kind.is_numeric()]
            if bad:
                raise DataError(
                    f"{path}: every column must hold numbers, {bad[0]!r} does not; leave it out"
                )
            X = frame.to_numpy()
        X = np.asarray(X, dtype=np.float64)
    except (FileNotFoundError, DataError):
        raise
    except (ValueError, TypeError, OSError) as error:
        raise DataError(f"{path} must hold points, one a row: {error}") from None
    except Exception as error:
        if type(error).__module__.startswith("polars"):
            raise DataError(
                f"{path} must be a table of numbers: {str(error).splitlines()[0]}"
            ) from None
        raise
    if X.ndim != 2 or not X.size:
        raise DataError(f"{path} must hold an (n, d) array of points, got shape {X.shape}")
    bad_at = np.argwhere(~np.isfinite(X))
    if len(bad_at):
        i, j = bad_at[0]
        raise DataError(f"{path}: point {i}, coordinate {j}, is {X[i, j]}; points must be finite")
    return X


def _is_number(text: str) -> bool:
    try:
        float(text.split("_duplicated_")[0])
    except ValueError:
        return False
    return True
