"""Write the page of changes from CHANGELOG.md, so that they are told once."""

from __future__ import annotations

import re
from pathlib import Path


def write(source: Path, path: Path) -> None:
    """Write the changelog as reStructuredText."""
    lines = ["Changes", "=======", ""]
    for line in source.read_text().splitlines()[1:]:
        if line.startswith("## "):
            lines += [line[3:], "-" * len(line[3:])]
        else:
            lines.append(re.sub(r"`([^`]+)`", r"``\1``", line))
    text = "\n".join(lines) + "\n"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
