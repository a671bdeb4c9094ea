"""Look at every page of the built manual in Chromium, wide and narrow, light and dark; say what is wrong with it.

python docs/look.py docs/_build/html            prints what runs out of its page, pictures that lack, placeholders
python docs/look.py docs/_build/html photos     and keeps a photograph of the top of each page in that folder
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

WIDTHS, SCHEMES = (390, 1280), ("light", "dark")
TALLEST = 2600  # pixels of a photograph
LOOK = """() => {
  const root = document.documentElement, width = root.clientWidth, wrong = [];
  if (root.scrollWidth > width) wrong.push(`the page is ${root.scrollWidth} wide`);
  const scrolls = e => e && e !== document.body &&
    (["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  for (const e of (document.querySelector("article") || document.body).querySelectorAll("*")) {
    const box = e.getBoundingClientRect();
    if (box.width && box.right > width + 1 && !scrolls(e.parentElement))
      wrong.push(`${e.tagName.toLowerCase()} ends at ${Math.round(box.right)}: ${e.textContent.slice(0, 40)}`);
    if (e.tagName === "IMG" && !e.naturalWidth) wrong.push(`no picture ${e.getAttribute("src")}`);
    if (e.tagName === "IMG" && /no_image|placeholder/.test(e.src)) wrong.push(`placeholder ${e.getAttribute("src")}`);
  }
  if (document.querySelector(".problematic, .system-message")) wrong.push("a message of Sphinx");
  return wrong;
}"""


def looks(folder: Path, photographs: Path | None) -> Iterator[str]:
    """Yield a line for whatever is wrong on a page."""
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for width in WIDTHS:
            for scheme in SCHEMES:
                view: Any = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
                page = browser.new_page(**view)
                page.route("http*://**", lambda route: route.abort())  # nothing from outside
                for path in sorted(folder.rglob("*.html")):
                    name = str(path.relative_to(folder)).removesuffix(".html")
                    page.goto(path.as_uri(), wait_until="load")
                    for words in page.evaluate(LOOK)[:5]:
                        yield f"{name}, {width} px, {scheme}: {words}"
                    if photographs is not None and not name.startswith("_modules"):
                        file = photographs / f"{name.replace('/', '-')}-{width}-{scheme}.png"
                        photograph(page, file, width)
                page.close()
        browser.close()


def photograph(page: Any, path: Path, width: int) -> None:
    """Keep the top of a page."""
    height = min(page.evaluate("document.documentElement.scrollHeight"), TALLEST)
    clip = {"x": 0, "y": 0, "width": width, "height": height}
    page.screenshot(path=path, full_page=True, clip=clip)


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    photographs = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    if photographs is not None:
        photographs.mkdir(parents=True, exist_ok=True)
    count = 0
    for line in looks(folder, photographs):
        print(line)
        count += 1
    pages = len(list(folder.rglob("*.html")))
    print(f"{pages} pages, {len(WIDTHS)} widths, {len(SCHEMES)} schemes: {count} wrong")
    raise SystemExit(1 if count else 0)


if __name__ == "__main__":
    main()
