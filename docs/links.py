"""See that every link inside the built manual leads somewhere: pages, places on pages, pictures, downloads.

python docs/links.py docs/_build/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places that a page offers and what it points at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.targets: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            if name in ("href", "src") and value:
                self.targets.add(value)


def broken(folder: Path) -> list[str]:
    """Return a line for every link of the folder's pages that leads nowhere inside of it."""
    pages = {path: Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for target in sorted(page.targets):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not goal.exists():
                found.append(f"{path.relative_to(folder)}: {target} is not there")
            elif parts.fragment and goal in pages:
                place = unquote(parts.fragment)
                if place not in pages[goal].places:
                    found.append(f"{path.relative_to(folder)}: {target} has no such place")
    return found


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    lines = broken(folder)
    print(*lines, sep="\n", end="\n" if lines else "")
    raise SystemExit(1 if lines else 0)


if __name__ == "__main__":
    main()
