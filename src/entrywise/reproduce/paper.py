"""A paper from its first figure to its last: verdicts as they are reached, and the manual's page with its records."""

from __future__ import annotations

import datetime
import importlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType

from entrywise.exceptions import ParameterError
from entrywise.npz import write_whole
from entrywise.reproduce.figures import Drawing, Figure, FigureRecord, read_records, write_records

PAPERS: dict[str, str] = {  # name of the command -> module under entrywise.reproduce
    "active-psd": "active_psd",
    "binary": "binary",
    "leaderboard": "leaderboard",
    "noisycur": "noisycur",
    "rank-one": "rank_one",
    "subspace": "subspace",
}
RECORDS = "claims.json"
Bar = Callable[[str, int, int], None]


def figures_of(paper: str, only: list[str] | None = None) -> dict[str, Figure]:
    """Return the figures of a paper by name, all or only some."""
    figures: dict[str, Figure] = module_of(paper).FIGURES
    for name in only or ():
        if name not in figures:
            raise ParameterError(
                f"figure of {paper} must be one of {', '.join(figures)}, got {name!r}"
            )
    return {name: figures[name] for name in only or figures}


def module_of(paper: str) -> ModuleType:
    """Return the module that draws a paper."""
    if paper not in PAPERS:
        raise ParameterError(f"paper must be one of {', '.join(PAPERS)}, got {paper!r}")
    return importlib.import_module(f"entrywise.reproduce.{PAPERS[paper]}")


def reproduced(
    figures: dict[str, Figure],
    folder: Path,
    *,
    quick: bool,
    repeats: int | None = None,
    again: bool = False,
    say: Callable[[str], None],
    bar: Bar | None = None,
) -> Iterator[FigureRecord]:
    """Yield the record of one figure after the other; those kept in `folder` at this size are not drawn again."""
    from entrywise import __version__

    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        records = read_records(folder / RECORDS)
        old = records.get(name)
        size = (__version__, quick, repeats)
        if not again and old is not None and (old.version, old.quick, old.repeats) == size:
            say(f"figure {name}: kept from {old.date}")
            yield old
            continue
        pieces = folder / "pieces" / f"{name}{'-quick' if quick else ''}.json"
        if again:
            pieces.unlink(missing_ok=True)
        work = Drawing(folder, quick, say, repeats=repeats, kept=pieces, bar=bar)
        try:
            claims = figure(work)
        finally:  # a run that is cut keeps its finished pieces
            work.save()
        records[name] = FigureRecord(
            figure=name,
            about=figure.about,
            date=datetime.date.today().isoformat(),
            version=__version__,
            quick=quick,
            repeats=repeats,
            minutes=work.seconds / 60,
            claims=tuple(claims),
        )
        write_records(folder / RECORDS, records)
        yield records[name]


def write_page(paper: str, drawn: Iterable[FigureRecord], folder: Path, out: Path) -> Path:
    """Write the manual's page of a paper, ``out/PAPER.rst``: figures just drawn, and those that it had before.

    Records and pictures are kept beside the page, in ``out/PAPER``, so that drawing one figure anew leaves the others as they
    were, with their dates and versions, wherever that happens. Pictures of the figures `drawn` come from `folder`.
    A figure of which there is no record is said to be missing.
    """
    module = module_of(paper)
    beside = out / paper
    beside.mkdir(parents=True, exist_ok=True)
    records = read_records(beside / RECORDS)
    for record in drawn:
        for picture in module.PICTURES[record.figure]:
            shutil.copyfile(folder / picture, beside / picture)
        records[record.figure] = record
    records = {name: records[name] for name in module.FIGURES if name in records}
    write_records(beside / RECORDS, records)
    path = out / f"{paper}.rst"
    write_whole(path, ("\n".join(_page(paper, records)) + "\n").encode())
    return path


def _page(paper: str, records: dict[str, FigureRecord]) -> list[str]:
    """Return the lines of a page."""
    module = module_of(paper)
    title = f"The papers, measured: {module.TITLE}"
    lines = [title, "=" * len(title), "", module.REFERENCE, ""]
    command = f"entrywise reproduce {paper} --page docs/papers"
    lines += [f"Written by ``{command}``; nothing below was typed by hand.", ""]
    lines += _example(module.EXAMPLE)
    lines += ["**What was tuned, and on which seeds.** " + module.TUNING, ""]
    lines += [
        "Intervals are of the mean over runs, 95 %. A verdict is *undecided* where its interval contains the bar."
    ]
    for name, figure in module.FIGURES.items():
        heading = f"Figure {name}"
        lines += ["", heading, "-" * len(heading), "", figure.about, ""]
        record = records.get(name)
        if record is None:
            lines += [
                f"Not run in full for this page: it takes about {figure.minutes:.0f} CPU minutes."
            ]
            continue
        lines += [f"{record.date}, version {record.version}, {record.minutes:.1f} CPU minutes."]
        for picture in module.PICTURES[name]:
            lines += ["", f".. image:: {paper}/{picture}", f"   :alt: {figure.about}"]
            lines += ["   :class: card", ""]
        lines += _table(record)
    return lines


def _example(name: str) -> list[str]:
    """Return the gallery's picture of the method on a small problem."""
    return [
        f".. image:: /gallery/images/sphx_glr_{name}_001.png",
        "   :alt: The method on a small problem",
        "   :class: card",
        "",
        f"*The method on a small problem*: :doc:`/gallery/{name}`.",
        "",
    ]


def _table(record: FigureRecord) -> list[str]:
    """Return the claims as a list-table of reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 24 14 14 26 12 10", ""]
    heads = ("claim", "theirs", "ours", "found", "interval", "verdict")
    rows = [heads] + [
        (c.claim, c.theirs or "no experiment", c.ours, c.found, c.interval or "-", c.verdict)
        for c in record.claims
    ]
    for row in rows:
        for k, cell in enumerate(row):
            text = cell.replace("\\", "\\\\").replace("*", "\\*").replace("|", "\\|")
            lines += [f"   {'*' if k == 0 else ' '} - {text.replace('`', chr(39))}"]
    return lines
