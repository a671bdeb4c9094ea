"""Draw tables of the manual as pictures when it is built: what intervals promised and kept, errors beside peers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from entrywise import plot
from entrywise.plot.style import quiet

RANGE = re.compile(r"^\.(\d+)-\.(\d+)$")  # promised: .88-.92
SHARE = re.compile(r"\.(\d{3})")  # measured: .896, .892 (.003)
ERROR = re.compile(r"\(\.(\d{3})\)")
LARGEST = 4.0  # times our error; what is beyond stands at the edge


def write(docs: Path) -> None:
    """Draw ``trust.png`` and ``peers.png`` into the folder of the manual, from its own tables."""
    plot.save(docs / "trust.png", trust((docs / "trust.rst").read_text()))
    plot.save(docs / "peers.png", peers((docs / "peers-measured.txt").read_text()))


def trust(text: str) -> Any:
    """Return how often 90 % intervals held, a line a statement, on the range that counts as kept."""
    lines = intervals(text)
    canvas, ax = _axes([name for name, *_ in lines])
    for y, (_, promised, held, error) in enumerate(lines):
        ends = (held[0] - 2 * error, held[-1] + 2 * error)
        ax.hlines(y, *promised, color=plot.COLOURS["faint"], linewidth=11)
        ax.hlines(y, *ends, color=plot.COLOURS["ours"], alpha=0.5)
        ax.scatter(held, [y] * len(held), s=22, color=plot.COLOURS["ours"], zorder=3)
    ax.axvline(0.9, color=plot.COLOURS["truth"], linestyle="--", linewidth=1)
    quiet(ax, "How often 90 % intervals held", "share that held; grey: what counts as kept")
    return canvas


def peers(text: str) -> Any:
    """Return the errors of other packages over ours, a line a problem."""
    tables = measured(text)
    canvas, ax = _axes([title for title, _ in tables])
    for y, (_, errors) in enumerate(tables):
        ratios = [min(error / errors[0], LARGEST) for error in errors[1:]]
        ax.scatter(ratios, [y] * len(ratios), s=26, color=plot.COLOURS["rival"], zorder=3)
        ax.scatter([1.0], [y], s=46, color=plot.COLOURS["ours"], zorder=2)
    quiet(
        ax,
        "Error of other packages over ours",
        f"times our error, at most {LARGEST:g} drawn; left of blue they are better",
    )
    return canvas


def _axes(names: list[str]) -> tuple[Any, Any]:
    canvas, axes = plot.figure(width=7.5, height=0.34 * len(names) + 1.3)
    ax = axes[0, 0]
    ax.set_yticks(range(len(names)), names, fontsize=9)
    ax.invert_yaxis()
    return canvas, ax


def intervals(text: str) -> list[tuple[str, tuple[float, float], list[float], float]]:
    """Return name, range promised, what held and its standard error of each line about 90 % intervals."""
    found = []
    above = ""
    for line in text.splitlines():
        cells = re.split(r"\s{2,}", line.strip())
        if len(cells) != 4:
            continue
        name, promised, said, _ = cells
        above, name = _names(above, name)
        bar = RANGE.match(promised)
        if bar is None or "90 % intervals" not in f"{above} {name}" or "50 %" in name:
            continue
        error = ERROR.search(said)
        shares = sorted(int(digits) / 1000 for digits in SHARE.findall(said.split("(")[0]))
        ends = (float(f".{bar[1]}"), float(f".{bar[2]}"))
        name = name.replace("90 % intervals of the truth, ", "").replace("90 % intervals, ", "")
        found.append((name, ends, shares, int(error[1]) / 1000 if error else 0.0))
    return [line for line in found if line[1][0] < 0.9 < line[1][1]]


def _names(above: str, name: str) -> tuple[str, str]:
    """Return what a line continues, and its whole name."""
    if not name.startswith("\\"):
        plain = name.replace("``", "")
        return plain, plain
    rest = name.lstrip("\\ ")
    return above, f"{above.split(',')[0]}, {rest}"


def measured(text: str) -> list[tuple[str, list[float]]]:
    """Return the title of each table of peers and its errors, ours first."""
    found = []
    for part in text.split(".. list-table:: ")[1:]:
        title = re.split(r"[:,] ", part.splitlines()[0])[0]
        rows = re.findall(r"^   \* - .*\n     - (\S*)", part, flags=re.M)
        errors = [float(cell) for cell in rows if re.fullmatch(r"[\d.]+", cell)]
        found.append((title, errors))
    return found
