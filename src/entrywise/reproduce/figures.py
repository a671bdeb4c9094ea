"""What every reproduction shares: claims with their verdicts, work that can be cut and resumed, files written whole."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from entrywise import plot
from entrywise.npz import write_whole
from entrywise.tables import write_table

Key = TypeVar("Key", bound=Hashable)
LEVEL = 0.95  # of the intervals in claim tables
FLUSH = 2.0  # seconds of work that a cut may lose


@dataclass(frozen=True)
class Claim:
    """What is claimed, how large the experiment was there and here, what was found, and the verdict.

    Parameters
    ----------
    figure, claim, found : str
        Where, what, and the numbers. A claim of this project, and not of the paper, begins with "(ours)".
    holds : bool or None
        None: the interval contains the bar, or there is nothing to judge.
    theirs, ours : str
        Size and repeats of the paper's experiment and of this one.
    interval : str
        The interval on which the verdict rests; empty where a theorem is checked run by run.
    """

    figure: str
    claim: str
    found: str
    holds: bool | None
    theirs: str = ""
    ours: str = ""
    interval: str = ""

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return {True: "holds", False: "does not hold", None: "undecided"}[self.holds]


class Drawing:
    """A figure under way: where it writes, how large it is, and what an earlier run left of it.

    Parameters
    ----------
    folder : Path
        For pictures and tables.
    quick : bool
        Small sizes and few runs: a look, not a result.
    say : callable
        Takes words for a person.
    repeats : int, optional
        Runs of each experiment, in place of the figure's own number.
    kept : Path, optional
        File in which finished pieces are kept, so that a run that was cut goes on where it stopped.
    bar : callable, optional
        Takes (words, pieces done, pieces in all).

    Examples
    --------
    >>> work = Drawing(Path("."), say=lambda words: None)
    >>> work.each("squares", [1, 2, 3], lambda k: k * k)
    {1: 1, 2: 4, 3: 9}
    """

    def __init__(
        self,
        folder: Path,
        quick: bool = True,
        say: Callable[[str], None] = print,
        *,
        repeats: int | None = None,
        kept: Path | None = None,
        bar: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self.folder, self.quick, self.say = folder, quick, say
        self._repeats, self._kept, self._bar = repeats, kept, bar
        self._pieces: dict[str, Any] = {}
        self._saved = time.monotonic()
        self._begun, self._before = time.process_time(), 0.0
        if kept is not None and kept.exists():
            stored = json.loads(kept.read_text(encoding="utf-8"))
            if stored.get("of") == self._of:
                self._pieces = stored["pieces"]
                self._before = float(stored["seconds"])

    @property
    def _of(self) -> dict[str, Any]:
        """Pieces of another version or of another size are not used."""
        from entrywise import __version__

        return {"version": __version__, "quick": self.quick}

    @property
    def seconds(self) -> float:
        """CPU seconds that the pieces took, those of runs that were cut included."""
        return self._before + time.process_time() - self._begun

    def runs(self, quick: int, full: int) -> int:
        """Return how often an experiment is repeated."""
        return self._repeats or (quick if self.quick else full)

    def each(self, what: str, keys: Iterable[Key], make: Callable[[Key], Any]) -> dict[Key, Any]:
        """Return ``make(key)`` for every key; what an earlier run made is not made again.

        Values are numbers, strings, lists and dictionaries of them; arrays come back as lists.
        """
        wanted = list(keys)
        found: dict[Key, Any] = {}
        for done, key in enumerate(wanted):
            if self._bar is not None:
                self._bar(what, done, len(wanted))
            found[key] = self._piece(f"{what}: {key}", lambda key=key: make(key))  # type: ignore[misc]
        if self._bar is not None:
            self._bar(what, len(wanted), len(wanted))
        return found

    def _piece(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._pieces:
            self._pieces[name] = _plain(make())
            if time.monotonic() - self._saved > FLUSH:
                self.save()
        return self._pieces[name]

    def csv(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write a table of the figure."""
        write_table(self.folder / name, columns, rows)

    def picture(self, name: str, figure: Any) -> None:
        """Write a picture of the figure."""
        plot.save(self.folder / name, figure)

    def save(self) -> None:
        """Write the finished pieces."""
        if self._kept is not None:
            self._kept.parent.mkdir(parents=True, exist_ok=True)
            kept = {"of": self._of, "seconds": self.seconds, "pieces": self._pieces}
            text = json.dumps(kept)
            write_whole(self._kept, text.encode())
            self._saved = time.monotonic()


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value


@dataclass(frozen=True)
class Figure:
    """A figure: the function that draws it and returns its claims, and a guess of its CPU minutes in full."""

    draw: Callable[[Drawing], list[Claim]]
    minutes: float

    def __call__(self, work: Drawing) -> list[Claim]:
        """Draw it."""
        return self.draw(work)

    @property
    def about(self) -> str:
        """First line of its docstring."""
        return (self.draw.__doc__ or "").split("\n")[0]


@dataclass(frozen=True)
class Gap:
    """Mean difference of two methods over the same runs, with its interval."""

    middle: float
    low: float
    high: float
    ratio: bool = False

    @property
    def below(self) -> bool | None:
        """Whether the first is below the second: None while the interval says neither."""
        bar = 1.0 if self.ratio else 0.0
        if self.high < bar:
            return True
        return False if self.low > bar else None

    def __str__(self) -> str:
        if not math.isfinite(self.low):
            return "one run: none"
        what = "ratio" if self.ratio else "difference"
        return f"{what} {self.middle:.3g} [{self.low:.3g}, {self.high:.3g}]"


def gap(first: ArrayLike, second: ArrayLike, *, ratio: bool = False) -> Gap:
    """Compare paired runs: the mean of first - second, or the geometric mean of first / second, and a t interval.

    >>> gap([1.0, 2.0, 3.0], [2.0, 4.0, 6.0], ratio=True).below
    True
    """
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    d = np.log(a / b) if ratio else a - b
    middle, low, high = mean_interval(d)
    if ratio:
        middle, low, high = math.exp(middle), math.exp(low), math.exp(high)
    return Gap(middle, low, high, ratio)


def mean_interval(values: ArrayLike) -> tuple[float, float, float]:
    """Return the mean of independent runs and the ends of its t interval; infinite for one run."""
    from scipy.special import stdtrit

    x = np.asarray(values, np.float64)
    middle = float(x.mean())
    if len(x) < 2:
        return middle, -math.inf, math.inf
    half = float(stdtrit(len(x) - 1, 0.5 + LEVEL / 2)) * float(x.std(ddof=1)) / math.sqrt(len(x))
    return middle, middle - half, middle + half


def new_panel(width: float = 5.0, height: float = 3.8) -> tuple[Any, Any]:
    """Return a matplotlib figure and its only axes."""
    figure, axes = plot.figure(width=width, height=height)
    return figure, axes[0, 0]


@dataclass(frozen=True)
class FigureRecord:
    """The claims of one figure as they were reached: when, by which version, at what cost."""

    figure: str
    about: str
    date: str
    version: str
    quick: bool
    repeats: int | None
    minutes: float
    claims: tuple[Claim, ...]


def read_records(path: Path) -> dict[str, FigureRecord]:
    """Return the records of a folder by figure, empty where there is none."""
    if not path.exists():
        return {}
    stored = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: FigureRecord(**{**one, "claims": tuple(Claim(**claim) for claim in one["claims"])})
        for name, one in stored.items()
    }


def write_records(path: Path, records: dict[str, FigureRecord]) -> None:
    """Keep the records of a folder."""
    plain = {name: _plain(asdict(record)) for name, record in records.items()}
    text = json.dumps(plain, indent=1)
    write_whole(path, text.encode())
