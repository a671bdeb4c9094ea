"""Draw the picture of the front page, docs/_static/demo.png: what ``entrywise demo`` draws, seed 0.

python docs/picture.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

PICTURE = Path(__file__).parent / "_static" / "demo.png"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "demo.db"
        words = ["demo", "--seed", "0", "--database", str(database), "--out", str(PICTURE)]
        subprocess.run([sys.executable, "-m", "entrywise", *words], check=True)


if __name__ == "__main__":
    main()
