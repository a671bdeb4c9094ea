"""Pieces of HTML as strings, for notebooks, the page and the report. Standard library only.

Whatever is not :class:`Html` already is text: it is escaped where it enters, so that a label such as ``<script>``
is shown and never run.
"""

from __future__ import annotations

import base64
import html
import math
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

VOID = {"br", "circle", "img", "input", "line", "link", "meta", "path", "rect"}
LONGEST = 28  # characters of a label beside a bar; the whole stands in its title
SHADES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")  # as in entrywise.plot


def unit_of(currency: str | None) -> str:
    """Return a currency as it stands after an amount; empty where there is none.

    >>> f"20{unit_of('EUR')}", f"20{unit_of(None)}"
    ('20 EUR', '20')
    """
    return f" {currency}" if currency else ""


class Html(str):
    """Text that is HTML already; templates take it as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def escaped(value: object) -> Html:
    """Return a value as HTML: pieces of HTML as they are, anything else as text.

    >>> escaped("<b>"), escaped(Html("<b>"))
    ('&lt;b&gt;', '<b>')
    """
    return value if isinstance(value, Html) else Html(html.escape(str(value)))


def joined(pieces: Iterable[object]) -> Html:
    """Return pieces one after the other."""
    return Html("".join(escaped(piece) for piece in pieces))


def element(tag: str, *content: object, **attributes: object) -> Html:
    """Return an element; attributes that are None or False are left out, ``class_`` is class.

    >>> element("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    words = [tag]
    for name, value in attributes.items():
        name = name.rstrip("_").replace("_", "-")
        if value is True:
            words.append(name)
        elif value is not None and value is not False:
            words.append(f'{name}="{html.escape(str(value))}"')
    if tag in VOID:
        return Html(f"<{' '.join(words)}>" if tag not in _DRAWN else f"<{' '.join(words)}/>")
    return Html(f"<{' '.join(words)}>{joined(content)}</{tag}>")


_DRAWN = {"circle", "line", "path", "rect"}


def label(name: object) -> Html:
    """Return a label as text that keeps its own direction, whatever its script."""
    return element("bdi", name)


class Written(str):
    """A number that is written already; it stands right in a table."""

    __slots__ = ()


def number(value: object) -> str:
    """Return a number as people read it, a dash where there is none.

    >>> number(1234.5678), number(None), number(3)
    ('1,234.57', '–', '3')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6g}"
    return str(value)


def figures(*values: float) -> tuple[Written, ...]:
    """Return a value and the ends of its interval with the digits that are known: two of the interval's width.

    >>> figures(1.87147, 1.39427, 2.34866), figures(1234.5, 1100.2, 1368.8)
    (('1.87', '1.39', '2.35'), ('1,234', '1,100', '1,369'))
    """
    width = max(values) - min(values)
    if not (width > 0 and math.isfinite(width)):
        return tuple(Written(number(value)) for value in values)
    places = 1 - math.floor(math.log10(width))
    if places > 6:  # as many zeros are hard to read
        return tuple(Written(f"{value:.3g}") for value in values)
    return tuple(Written(f"{value:,.{max(places, 0)}f}") for value in values)


def table(
    columns: Sequence[object], rows: Iterable[Sequence[object]], *, caption: object = None
) -> Html:
    """Return a table whose numbers stand right; on a narrow page a row's name stands above its other cells."""
    lines = [[_cell(x) for x in row] for row in rows]
    right = [bool(lines) and _NUMBER in lines[0][k] for k in range(len(columns))]
    head = joined(
        element("th", name, scope="col", class_="number" if right[k] else None)
        for k, name in enumerate(columns)
    )
    body = joined(element("tr", joined(line)) for line in lines)
    title = "" if caption is None else element("caption", caption)
    top, rest = element("thead", element("tr", head)), element("tbody", body)
    whole = element("table", title, top, rest, class_="figures")
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label="table")


_NUMBER = 'class="number"'


def _cell(value: object) -> Html:
    if isinstance(value, Written):
        return element("td", str(value), class_="number")
    if isinstance(value, bool):
        return element("td", "yes" if value else "no")
    if isinstance(value, int | float) or value is None:
        return element("td", number(value), class_="number")
    return element("td", value)


def pairs(facts: Mapping[str, object]) -> Html:
    """Return names and what they are, as a list."""
    lines = [joined((element("dt", k), element("dd", _said(v)))) for k, v in facts.items()]
    return element("dl", joined(lines))


def _said(value: object) -> object:
    return value if isinstance(value, str) else number(value)


def tiles(facts: Mapping[str, tuple[object, object]]) -> Html:
    """Return what matters at a glance: for each name a figure, large, and what it means."""
    made = [
        element(
            "div",
            element("dt", name),
            element("dd", element("strong", figure), element("span", words)),
        )
        for name, (figure, words) in facts.items()
    ]
    return element("dl", *made, class_="tiles")


def paragraph(*words: object, **attributes: object) -> Html:
    """Return a paragraph."""
    return element("p", *words, **attributes)


def section(title: str, *content: object, id: str | None = None) -> Html:
    """Return a part of a page under its title."""
    return element("section", element("h2", title), *content, id=id)


def meter(share: float, words: str) -> Html:
    """Return a bar that is full by `share`, with what it says in words."""
    part = min(max(share, 0.0), 1.0)
    bar = _svg(
        100,
        6,
        element("rect", width=100, height=6, class_="track"),
        element("rect", width=f"{100 * part:.2f}", height=6, class_="full"),
        class_="meter",
        preserveAspectRatio="none",
        aria_label=words,
    )
    return element("div", bar, element("span", words), class_="metered")


# notebooks


def card(title: object, facts: Mapping[str, object], *more: object) -> Html:
    """Return what a notebook shows of a value: its name, a few facts, perhaps more."""
    rows = [
        element(
            "tr",
            element("th", k, style="text-align:left"),
            element("td", _said(v), style="text-align:left"),
        )
        for k, v in facts.items()
    ]
    name = element("strong", title)
    return element("div", name, element("table", element("tbody", joined(rows))), *more)


# pictures


def _svg(width: float, height: float, *content: object, **attributes: Any) -> Html:
    return element(
        "svg",
        *content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        **attributes,
    )


class Frame(NamedTuple):
    """The sizes of a picture, in pixels where it is shown as large as it is drawn."""

    name: str
    width: float
    left: float  # beside a curve: its numbers; beside a bar: its label
    ticks: int


WIDE = Frame("wide", 900.0, 230.0, 6)
NARROW = Frame("narrow", 350.0, 10.0, 3)  # a telephone: labels stand above their bars
AXIS = 40.0  # numbers and title below a picture
FAR = 3.0  # times the middle half of all ends: what lies farther beyond it is cut at the edge


def intervals(
    names: Sequence[str],
    mean: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    *,
    groups: Sequence[int] | None = None,
    title: str,
    x_title: str = "",
) -> Html:
    """Return values with their intervals as a picture, a line each, from top to bottom."""
    lines = list(zip(names, mean, low, high, groups or [0] * len(names), strict=True))
    return _fitting(lambda frame: _bars(lines, frame, title, x_title))


def _shade(k: int) -> dict[str, str]:
    """Return the attributes of what is drawn in a colour; the stylesheet lightens it on dark."""
    return {"color": SHADES[k % len(SHADES)], "class_": f"shade{k % len(SHADES)}"}


def _bars(
    lines: list[tuple[str, float, float, float, int]], frame: Frame, title: str, x_title: str
) -> Html:
    lows, highs = [line[2] for line in lines], [line[3] for line in lines]
    least, most = _usual([*lows, *highs])
    if min(lows) < least or max(highs) > most:
        x_title += "; arrows go on"
    left, right, top = frame.left, frame.width - 20.0, 8.0
    above = 16.0 if frame is NARROW else 0.0  # room for the label
    row = 20.0 + above
    bottom = top + row * len(lines)

    def x(value: float) -> float:
        part = (min(max(value, least), most) - least) / ((most - least) or 1.0)
        return round(left + part * (right - left), 2)

    drawn = [
        joined(
            (
                element("line", x1=x(t), x2=x(t), y1=top, y2=bottom, class_="grid"),
                element("text", f"{t:g}", x=x(t), y=bottom + 14, text_anchor="middle"),
            )
        )
        for t in _ticks(least, most, frame.ticks)
    ]
    middle = (left + right) / 2
    drawn.append(element("text", x_title, x=middle, y=bottom + 32, text_anchor="middle"))
    for k, (name, mean, low, high, group) in enumerate(lines):
        y = top + row * k + above + 10.0
        ends = {"x1": x(low), "x2": x(high), "y1": y, "y2": y}
        value, *around = figures(mean, low, high)
        place = {"x": left - 10, "y": y + 4, "text_anchor": "end"}
        if above:
            place = {"x": left, "y": y - 9, "text_anchor": "start"}
        drawn.append(
            element(
                "g",
                element("title", f"{name}: {value} ({' to '.join(around)})"),
                element("text", short(name, 44 if above else LONGEST), **place),
                element("line", **ends, stroke="currentColor", stroke_width=5, stroke_opacity=0.45),
                _arrow(left, y, -1) if low < least else "",
                _arrow(right, y, 1) if high > most else "",
                _beyond(x(mean), y, value, 1 if mean > most else -1)
                if not least <= mean <= most
                else element("circle", cx=x(mean), cy=y, r=3.6, fill="currentColor"),
                **_shade(group),
            )
        )
    return _svg(frame.width, bottom + AXIS, *drawn, class_=f"chart {frame.name}", aria_label=title)


def _usual(ends: Sequence[float]) -> tuple[float, float]:
    """Return the range of an axis for intervals: all of their ends but those far beyond most.

    >>> _usual([1, 2, 2, 3, 2, 4, 1, 500])
    (1, 4)
    """
    ordered = sorted(ends)
    low, high = ordered[len(ends) // 4], ordered[3 * len(ends) // 4]
    reach = FAR * (high - low) or math.inf
    inside = [end for end in ordered if low - reach <= end <= high + reach]
    return inside[0], inside[-1]


def _arrow(x: float, y: float, way: int) -> Html:
    """Return the head of an arrow at the edge of a picture."""
    foot = x - 8 * way
    return element("path", d=f"M{x:g} {y:g} L{foot:g} {y - 6:g} V{y + 6:g} Z", fill="currentColor")


def _beyond(x: float, y: float, value: str, way: int) -> Html:
    """Return a value that lies beyond the edge of a picture, in figures."""
    where = {"x": x - 14 * way, "y": y + 4, "text_anchor": "end" if way > 0 else "start"}
    return element("text", value, class_="key", fill="currentColor", **where)


def _fitting(draw: Callable[[Frame], Html]) -> Html:
    """Return a picture twice, for a desk and for a telephone; the stylesheet shows the one that fits."""
    return element("div", draw(WIDE), draw(NARROW), class_="picture")


def short(name: str, most: int = LONGEST) -> str:
    """Return a label that fits beside a bar."""
    return name if len(name) <= most else name[: most - 1] + "…"


def curves(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    x_title: str,
    y_title: str,
    title: str,
    points: Mapping[str, tuple[float, float, float, float]] | None = None,
) -> Html:
    """Return curves as a picture: for each name, x and y; and points, each x, y and the ends of its interval."""
    marks = points or {}
    return _fitting(lambda frame: _plot(lines, marks, frame, (x_title, y_title, title)))


def _plot(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    marks: Mapping[str, tuple[float, float, float, float]],
    frame: Frame,
    titles: tuple[str, str, str],
) -> Html:
    xs = [x for line in lines.values() for x in line[0]] + [mark[0] for mark in marks.values()]
    ys = [y for line in lines.values() for y in line[1]] + [mark[3] for mark in marks.values()]
    x_least, x_most = min(xs), max(xs)
    y_most = max(ys) or 1.0
    left, right, top, bottom = 56.0, frame.width - 20.0, 28.0, 220.0
    x_title, y_title, title = titles

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - x_least) / ((x_most - x_least) or 1.0)
        up = y / y_most
        return round(left + across * (right - left), 1), round(bottom - up * (bottom - top), 1)

    drawn = []
    for t in _ticks(0.0, y_most):
        y = at(x_least, t)[1]
        drawn.append(element("line", x1=left, x2=right, y1=y, y2=y, class_="grid"))
        drawn.append(element("text", f"{t:g}", x=left - 8, y=y + 4, text_anchor="end"))
    for t in _ticks(x_least, x_most, frame.ticks):
        x = at(t, 0.0)[0]
        drawn.append(element("text", f"{t:,g}", x=x, y=bottom + 16, text_anchor="middle"))
    middle = (left + right) / 2
    drawn.append(element("text", x_title, x=middle, y=bottom + 34, text_anchor="middle"))
    drawn.append(element("text", y_title, x=left, y=top - 12, text_anchor="start"))
    for k, (line_x, line_y) in enumerate(lines.values()):
        path = "M" + " L".join(
            f"{x:g} {y:g}" for x, y in (at(*pair) for pair in zip(line_x, line_y, strict=True))
        )
        look = {"fill": "none", "stroke": "currentColor", "stroke_width": 2} | _shade(k)
        drawn.append(element("path", d=path, stroke_dasharray="6 4" if k else None, **look))
    for k, (x, y, low, high) in enumerate(marks.values(), len(lines)):
        (across, up), (_, foot), (_, head) = at(x, y), at(x, low), at(x, high)
        ends = {"x1": across, "x2": across, "y1": foot, "y2": head}
        bar = element("line", **ends, stroke="currentColor", stroke_width=5, stroke_opacity=0.45)
        dot = element("circle", cx=across, cy=up, r=4.5, fill="currentColor")
        drawn.append(element("g", bar, dot, **_shade(k)))
    for k, name in enumerate([*lines, *marks]):
        where = {"x": right, "y": top + 10 + 16 * k, "text_anchor": "end"}
        key = element("text", name, fill="currentColor", class_="key", **where)
        drawn.append(element("g", key, **_shade(k)))
    height = bottom + AXIS + 2.0
    return _svg(frame.width, height, *drawn, class_=f"chart {frame.name}", aria_label=title)


def _ticks(least: float, most: float, count: int = 5) -> list[float]:
    """Return round numbers between two others.

    >>> _ticks(0, 10)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    width = (most - least) / count
    if not (width > 0 and math.isfinite(width)):
        return [least]
    unit = 10.0 ** math.floor(math.log10(width))
    step = next((m * unit for m in (1, 2, 5, 10) if m * unit >= width * (1 - 1e-9)), 10 * unit)
    first = math.ceil(least / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(most / step + 1e-9) + 1)]


def png(pixels: bytes, width: int, height: int) -> bytes:
    """Return an RGB picture (3 bytes a pixel, row by row) as a PNG file."""
    lines = b"".join(b"\0" + pixels[3 * width * k : 3 * width * (k + 1)] for k in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


def picture(pixels: bytes, width: int, height: int, words: str) -> Html:
    """Return an RGB picture as an image that needs no other file."""
    data = base64.b64encode(png(pixels, width, height)).decode()
    return element("img", src=f"data:image/png;base64,{data}", alt=words, class_="map")


def download(name: str, kind: str, data: bytes, words: str) -> Html:
    """Return a link that saves data which the page carries in itself."""
    text = base64.b64encode(data).decode()
    return element("a", words, href=f"data:{kind};base64,{text}", download=name)


def document(title: str, *body: object, style: str = "") -> Html:
    """Return a whole page in one file."""
    head = joined(
        (
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("title", title),
            element("style", Html(style)),
        )
    )
    whole = element("html", element("head", head), element("body", *body), lang="en")
    return Html(f"<!doctype html>\n{whole}\n")
