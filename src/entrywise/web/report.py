"""A study as one HTML file that a person can read without us: for a mail or a wiki."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import numpy as np

from entrywise import __version__, fragments
from entrywise.exceptions import ParameterError
from entrywise.fragments import Html, element, label, paragraph, section, unit_of
from entrywise.methods import get
from entrywise.results import Matrix
from entrywise.study import Study
from entrywise.study.cells import BOUGHT, FAILED, KNOWN, Cells
from entrywise.web import story as stories
from entrywise.web.story import LEVEL, Story, entries, has_intervals

_ROLE = re.compile(r":\w+:`([^`]*)`")  # markup of docstrings
SHOWN = 40  # rows of a picture or a table of the answer
CARRIED = 20_000  # entries that the file carries along as CSV
WIDEST = 1200  # pixels of a map
SCALE = (  # from low to high; readable without colour vision, on light and on dark
    (13, 8, 135),
    (126, 3, 168),
    (204, 71, 120),
    (248, 149, 64),
    (240, 249, 33),
)


def report(study: Study, level: float = LEVEL) -> str:
    """Return the report of a study: one file, nothing outside of it is needed.

    What was asked, what it cost, the answer with intervals, who is surely better where rows are scored, how far to
    trust it, and what to do next.
    """
    told = stories.story(study, level)
    return written(told, stories.all_cells(study, told), level)


def written(told: Story, cells: Cells | None, level: float = LEVEL) -> str:
    """Return the report of what is told of a study."""
    body = element(
        "main",
        element("h1", label(told.record.name)),
        lead(told),
        glance(told),
        asked(told, cells),
        cost(told),
        answer(told, cells, level),
        *([better(told, level)] if told.board is not None else []),
        trust(told),
        todo(told),
    )
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    foot = element("footer", f"Made by entrywise {__version__} on {made}.")
    return fragments.document(f"{told.record.name} – entrywise", body, foot, style=style())


def style() -> str:
    """Return the stylesheet that the page and the report share."""
    return files("entrywise.web").joinpath("static/entrywise.css").read_text(encoding="utf-8")


def date(seconds: float | None) -> str:
    """Return a time as people write it, UTC."""
    if seconds is None:
        return "–"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def lead(told: Story) -> Html:
    """Return the study in a sentence or two, what matters first."""
    stands = paragraph(told.now["sentence"] + ".", class_="lead")
    if told.board is None or not told.ranks:
        return stands
    first = [label(told.labels.row(i)) for i in stories.best_rows(told)]
    count = len(told.board.mean)
    if len(first) == 1:
        words: list[object] = [first[0], f" is surely the best of {count}."]
    else:
        words = [f"The best of {count} is one of {len(first)} that cannot be told apart yet: "]
        words += [*_listed(first, 3), "."]
    return fragments.joined((paragraph(*words, class_="lead"), stands))


def glance(told: Story) -> Html:
    """Return the figures that matter most, large."""
    now, known = told.now, told.savings
    unit = unit_of(now["currency"])
    facts: dict[str, tuple[object, object]] = {}
    limit = "no limit was set"
    if now["budget"]:
        limit = f"{now['spent'] / now['budget']:.0%} of {now['budget']:,.6g}{unit}"
    facts["Spent"] = (f"{now['spent']:,.6g}{unit}", limit)
    if told.shape is not None:
        m, n = told.shape
        measured = (now["answered"] + now["known"]) / (m * n)
        facts["Measured"] = (f"{measured:.1%}", f"of {m * n:,} entries")
    if told.board is not None and told.ranks:
        first = len(stories.best_rows(told))
        rows = f"of {len(told.board.mean)} rows"
        facts["May be the best"] = (f"{first}", rows)
    if known is not None and not known.reason:
        range_ = f"{known.low:.2f} to {known.high:.2f}, of buying at random"
        facts["Error, for the same money"] = (f"× {known.ratio:.2f}", range_)
    elif now["expected_error"] is not None:
        facts["Expected error"] = (f"{now['expected_error']:.3g}", "of a cell, in the mean")
    return fragments.tiles(facts)


def _listed(names: list[Html], most: int) -> list[object]:
    """Return names one after the other, and how many more there are."""
    found: list[object] = []
    for k, name in enumerate(names[:most]):
        found += [", " if k else "", name]
    if len(names) > most:
        found.append(f" and {len(names) - most} more")
    return found


def asked(told: Story, cells: Cells | None) -> Html:
    """Return what was asked: the matrix, the method, its parameters."""
    record, now = told.record, told.now
    facts: dict[str, object] = {}
    if told.shape is not None:
        m, n = told.shape
        facts["Matrix"] = f"{m:,} rows × {n:,} columns, {m * n:,} entries"
    facts["Method"] = fragments.joined((element("code", record.plan), " – ", _about(record.plan)))
    facts["Parameters"] = _params(now["params"])
    facts["Began"] = date(record.created_at) + " UTC"
    facts["Last answer"] = date(told.course.last) + " UTC"
    if now["known"]:
        facts["Known beforehand"] = f"{now['known']:,} entries"
    answered = f"{now['answered']:,} entries"
    if told.shape is not None:
        answered += f" ({now['answered'] / (told.shape[0] * told.shape[1]):.1%} of all)"
    facts["Measured"] = answered
    changes = [e for e in told.epochs if e["epoch"]]
    if changes:
        facts["Changed since"] = "; ".join(f"{e['change']} ({date(e['made_at'])})" for e in changes)
    return section("What was asked", fragments.pairs(facts), map_picture(told, cells), id="asked")


def _about(plan: str) -> str:
    try:
        return _ROLE.sub(r"\1", get(plan, "active").summary)
    except ParameterError:
        return "a plan of one's own"


def _params(params: Any) -> str:
    def plain(value: Any) -> str:
        words = str(value)
        return words if len(words) < 60 else words[:57] + "…"

    shown = [f"{k} = {plain(v)}" for k, v in params.items() if v is not None]
    return ", ".join(shown) or "–"


def cost(told: Story) -> Html:
    """Return what it cost: spent, held, left, and the error that money bought."""
    now = told.now
    unit = unit_of(now["currency"])
    pieces: list[Html] = []
    if now["budget"]:
        words = f"{now['spent']:,.6g} of {now['budget']:,.6g}{unit} spent"
        pieces.append(fragments.meter(now["spent"] / now["budget"], words))
    else:
        pieces.append(paragraph(f"{now['spent']:,.6g}{unit} spent; no limit was set."))
    if now["held"]:
        pieces.append(paragraph(f"{now['held']:,.6g}{unit} more are held for questions that wait."))
    pieces += error_curve(told, unit)
    return section("What it cost", *pieces, id="cost")


def error_curve(told: Story, unit: str) -> list[Html]:
    """Return the picture of error against money, and what buying without a rule would have reached."""
    found: list[Html] = []
    line = told.course
    if len(line.money) > 1:
        found.append(element("h3", "The error that the plan expected, as money was spent"))
        found.append(
            fragments.curves(
                {"expected error of a cell": (line.money, line.errors)},
                x_title=f"spent{unit}",
                y_title="error",
                title="Expected error against money",
            )
        )
    if told.savings is not None:
        if not told.savings.reason:
            found += _beside_random(told, unit)
        found.append(paragraph(f"Beside buying without a rule: {told.savings.words}."))
    return found


def _beside_random(told: Story, unit: str) -> list[Html]:
    """Return the picture of our error beside that of cells bought at random."""
    known, spent = told.savings, told.now["spent"]
    assert known is not None
    whole = spent / known.bought
    most = min(max(2.0 * spent, told.now["budget"] or 0.0), 0.95 * whole)
    money = [spent / 3 + (most - spent / 3) * k / 60 for k in range(61)]
    errors = [known.naive(x / whole) for x in money]
    naive = known.naive(known.bought)
    ours = (spent, known.error, naive * known.low, naive * known.high)
    drawn = fragments.curves(
        {"cells bought at random, raw means": (money, errors)},
        points={"this study, 80 % sure": ours},
        x_title=f"spent{unit}",
        y_title="error of a score",
        title="Error of the scores against money, beside buying at random",
    )
    return [element("h3", "The error of the scores, beside buying at random"), drawn]


def answer(told: Story, cells: Cells | None, level: float) -> Html:
    """Return the answer: scores or entries, with their intervals."""
    found = told.result
    if found is None:
        return section("The answer", paragraph(f"There is none yet: {told.missing}."), id="answer")
    rows = [] if told.board is None else board(told, level)
    if told.missing:
        rows.append(paragraph(told.missing + ".", class_="quiet"))
    if isinstance(found, Matrix):
        whole = matrix_answer(told, cells, level)
    else:
        whole = [fragments.pairs(_plain(found))]
    if told.board is not None and not told.ranks:
        rows = [*whole, element("h3", "Means of the rows"), *rows]
    else:
        rows += whole
    return section("The answer", *rows, id="answer")


def _plain(found: Any) -> dict[str, object]:
    facts: dict[str, object] = {"Kind": type(found).__name__, "Status": found.status}
    for name in ("shape", "rank", "pair"):
        if hasattr(found, name):
            facts[name.capitalize()] = str(getattr(found, name))
    return facts | {str(k).replace("_", " "): str(v) for k, v in found.report.items()}


def board(told: Story, level: float) -> list[Html]:
    """Return the scores as a picture and a table."""
    found = told.board
    assert found is not None
    order = [int(i) for i in found.order]
    names = [str(told.labels.row(i)) for i in order]
    top = order[:SHOWN]
    drawn = fragments.intervals(
        names[:SHOWN],
        [float(found.mean[i]) for i in top],
        [float(found.low[i]) for i in top],
        [float(found.high[i]) for i in top],
        groups=[int(found.tier[i]) - 1 for i in top],
        title=f"Scores with their {level:.0%} intervals, the best on top",
        x_title=f"score, with its {level:.0%} interval",
    )
    rows = [
        (
            label(name),
            *fragments.figures(*(float(x[i]) for x in (found.mean, found.low, found.high))),
            int(found.tier[i]),
            places(found, i),
            int(found.cells[i]),
            float(found.spent[i]),
        )
        for name, i in zip(names, order, strict=True)
    ]
    columns = ("row", "score", "low", "high", "tier", "place", "cells", "spent")
    said = (
        "A score is the mean of a row over all columns: measured entries as they are, the others completed. "
        f"Intervals ({level:.0%}): {found.how}. Colours are tiers: inside a tier nobody is "
        "surely better than anybody; the next begins with a row that is surely worse than one of the tier before."
    )
    listed = fragments.table(columns, rows)
    if len(rows) > SHOWN:
        words = f"All {len(rows)} rows"
        listed = element("details", element("summary", words), listed)
    return [drawn, paragraph(said, class_="quiet"), listed]


def places(found: Any, i: int) -> fragments.Written:
    """Return the places that a row may take."""
    best, worst = int(found.best_place[i]), int(found.worst_place[i])
    return fragments.Written(best if best == worst else f"{best}–{worst}")


def matrix_answer(told: Story, cells: Cells | None, level: float) -> list[Html]:
    """Return the completed entries that say most, and all of them to save where they are few."""
    found: Any = told.result
    m, n = found.shape
    pieces: list[Html] = [element("h3", "Completed entries")]
    sure = has_intervals(found)
    words = f"{m:,} × {n:,}, rank {found.rank}"
    if found.rank == 0:
        words += " (the means of rows and columns tell all that is known)"
    if not sure:
        words += "; without intervals."
    elif found.interval_of == "truth":
        words += f"; {level:.0%} intervals of the entry itself."
    else:
        words += f"; {level:.0%} intervals of a new answer (the noise is not known apart from lack of fit)."
    pieces.append(paragraph(words, class_="quiet"))
    if cells is None:
        return pieces
    open_ = np.ones((m, n), bool)
    seen = np.isin(cells.states, (KNOWN, BOUGHT))
    open_[cells.rows[seen], cells.cols[seen]] = False
    rows, cols = np.nonzero(np.triu(open_) if told.record.symmetric else open_)
    if len(rows):
        values = np.concatenate(
            [
                found.entries(rows[k : k + CARRIED], cols[k : k + CARRIED])
                for k in range(0, len(rows), CARRIED)
            ]
        )
        top = np.argsort(-values, kind="stable")[:10]
        listed = list(_lines(told, rows[top], cols[top], level))
        columns = ("row", "column", "value", "low", "high") if sure else ("row", "column", "value")
        title = f"The largest of {len(rows):,} entries that were not measured"
        pieces.append(
            fragments.table(
                columns,
                [(label(a), label(b), *fragments.figures(*x)) for a, b, *x in listed],
                caption=title,
            )
        )
    if m * n <= CARRIED:
        pieces.append(paragraph(_saved(told, m, n, level)))
    return pieces


def _lines(told: Story, rows: Any, cols: Any, level: float) -> Iterator[tuple[Any, ...]]:
    values, low, high = entries(told.result, rows, cols, level)
    ends = [] if low is None or high is None else [low, high]
    for i, j, *numbers in zip(rows, cols, values, *ends, strict=True):
        yield told.labels.row(int(i)), told.labels.col(int(j)), *(float(x) for x in numbers)


def _saved(told: Story, m: int, n: int, level: float) -> Html:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["row", "col", "value", "low", "high"][: 5 if has_intervals(told.result) else 3]
    )
    rows, cols = np.divmod(np.arange(m * n), n)
    writer.writerows(_lines(told, rows, cols, level))
    data = text.getvalue().encode()
    return fragments.download("completed.csv", "text/csv", data, "Save all entries (CSV)")


def better(told: Story, level: float) -> Html:
    """Return who is surely better than whom."""
    found = told.board
    assert found is not None
    first = stories.best_rows(told)
    rows = len(found.mean)
    said = [
        f"Of the pairs called apart, few are wrong: at most {1 - level:.0%} of them are expected to be."
    ]
    listed = []
    for i in [int(i) for i in found.order][:SHOWN]:
        above = int(found.best_place[i]) - 1
        below = rows - int(found.worst_place[i])
        listed.append((label(told.labels.row(i)), places(found, i), below, above))
    columns = ("row", "place", "surely better than", "surely worse than")
    names = [label(told.labels.row(i)) for i in first]
    return section(
        "Who is surely better",
        paragraph("May be the best: ", *_listed(names, 10), "."),
        paragraph(*said, class_="quiet"),
        element(
            "details",
            element("summary", "How many each is surely better than"),
            fragments.table(columns, listed),
        ),
        id="better",
    )


def trust(told: Story) -> Html:
    """Return how far to trust the answer: certificates, what they assume, what looked odd."""
    pieces: list[object] = []
    found = told.result
    if found is None or not found.certificates:
        pieces.append(paragraph("Nothing is certified yet."))
    else:
        for c in found.certificates:
            pieces.append(certificate(c))
        words = found.report.get("intervals")
        if words:
            pieces.append(paragraph(f"Intervals: {words}."))
    odd = told.now["implausible"]
    if odd:
        rows = [
            (
                *(x["id"], label(x["row"]), label(x["col"]), x["value"]),
                *fragments.figures(x["expected"], x["expected"] - x["deviation"])[:1],
                fragments.Written(f"{x['deviation']:.2g}"),
            )
            for x in odd
        ]
        columns = ("id", "row", "column", "told", "expected", "give or take")
        title = "Answers far from what was expected; they count as they are"
        pieces.append(fragments.table(columns, rows, caption=title))
    if told.now["trouble"]:
        pieces.append(paragraph(told.now["trouble"], class_="alarm"))
    return section("How far to trust it", *pieces, id="trust")


def certificate(found: Any) -> Html:
    """Return a certificate in words."""
    words: list[object] = [element("strong", f"{found.statement}: {found.value:.3g}.")]
    if found.vacuous:
        words.append(" This bound says nothing: it is larger than the trivial one.")
    if found.assumes:
        words.append(f" It assumes: {'; '.join(found.assumes)}.")
    if found.checked:
        words.append(f" Checked on the data: {'; '.join(found.checked)}.")
    return paragraph(*words)


def todo(told: Story) -> Html:
    """Return what to do next."""
    lines = [element("li", words) for words in stories.advice(told)]
    return section("What to do next", element("ul", *lines), id="next")


# the map


def map_picture(told: Story, cells: Cells | None) -> Html:
    """Return the matrix as a picture: what was measured in its colour, the rest as completed, paler."""
    if cells is None or told.shape is None or not len(cells.states):
        return Html("")
    m, n = told.shape
    if max(m, n) > WIDEST:
        return Html("")
    order = np.arange(m) if told.board is None else np.asarray(told.board.order)
    values = np.full((m, n), np.nan)
    if isinstance(told.result, Matrix):
        values = np.asarray(told.result.to_dense(), np.float64)
    seen = np.zeros((m, n), bool)
    good = np.isin(cells.states, (KNOWN, BOUGHT))
    seen[cells.rows[good], cells.cols[good]] = True
    values[cells.rows[good], cells.cols[good]] = cells.values[good]
    colours = shaded(values)
    colours[~seen] = (0.35 * colours[~seen] + 0.65 * 128).astype(np.uint8)
    bad = cells.states == FAILED
    colours[cells.rows[bad], cells.cols[bad]] = 0
    low, high = _ends(values)
    larger = max(1, 640 // max(m, n))
    drawn = np.repeat(np.repeat(colours[order], larger, 0), larger, 1)
    words = (
        f"Map of {m} rows and {n} columns; measured entries in full colour, completed ones paler"
    )
    image = fragments.picture(drawn.tobytes(), drawn.shape[1], drawn.shape[0], words)
    sorted_ = "rows from the best to the worst" if told.board is not None else "rows as given"
    ends = fragments.figures(low, high)
    scale = element("p", ends[0], element("i"), ends[1], class_="scale")
    said = f"{words}; {sorted_}."
    if bad.any():
        said += " Black: the measurement failed."
    return fragments.joined((image, scale, paragraph(said, class_="quiet")))


def _ends(values: Any) -> tuple[float, float]:
    """Return the values of the first and the last colour: nearly all lie between them, and a wild row does not."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0.0, 1.0
    low, first, third, high = np.quantile(finite, (0.01, 0.25, 0.75, 0.99))
    reach = fragments.FAR * (third - first) or np.inf
    return float(max(low, first - reach)), float(min(high, third + reach))


def shaded(values: Any) -> Any:
    """Return the colours of values, shape (m, n, 3); grey where there is none."""
    low, high = _ends(values)
    part = np.clip((values - low) / ((high - low) or 1.0), 0.0, 1.0)
    stops = np.linspace(0.0, 1.0, len(SCALE))
    known = np.nan_to_num(part)
    colours = np.stack([np.interp(known, stops, [c[k] for c in SCALE]) for k in range(3)], axis=-1)
    colours[~np.isfinite(values)] = 128
    return colours.astype(np.uint8)
