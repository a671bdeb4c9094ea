"""A newcomer's first call: wall seconds of whole commands in fresh processes, cold and once more.

make bench NAME=first [ARGS="--only complete"]

Cold: no byte code of any package, no compiled loop. Quick starts and the demo run with byte code and an empty cache of
compiled loops, then once more with what the first run left there: the difference is what compiling took, nothing where
nothing was left. Seconds of this machine; the bars are those of a quiet one with two cores.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from _shared import Bars, show, wall

TURNS = 3  # of each, the fastest counts


def table(folder):
    """Write 100 x 20 cells, a third of them missing."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((100, 3)) @ rng.standard_normal((3, 20))
    A += 0.1 * rng.standard_normal(A.shape)
    lines = ["row,col,value"]
    lines += [f"r{i},c{j},{A[i, j]:.4f}" for i, j in np.argwhere(rng.random(A.shape) < 2 / 3)]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")


def run(words, folder, env, script=None):
    """Run a command to its end; return its wall seconds."""
    seconds, done = wall(
        lambda: subprocess.run(
            words, cwd=folder, env=env, input=script, capture_output=True, text=True, timeout=1800
        )
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed: {done.stderr[-2000:]}")
    return seconds


def complete(bars):
    """Time ``entrywise complete`` cold and warm."""
    words = [sys.executable, "-m", "entrywise", "complete", "table.csv"]
    found = []
    for _ in range(TURNS):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            table(folder)
            caches = {"PYTHONPYCACHEPREFIX": name + "/code", "NUMBA_CACHE_DIR": name + "/loops"}
            env = os.environ | caches | {"PYTHONDONTWRITEBYTECODE": ""}
            found.append([run(words, folder, env) for _ in range(2)])
            assert not (folder / "loops").exists(), "something was compiled"
    cold, warm = np.min(found, axis=0)
    bars.at_most("entrywise complete of 100 x 20, cold: wall s", float(cold), 4.0)
    bars.at_most("entrywise complete of 100 x 20, warm: wall s", float(warm), 2.0)


def starts():
    """Return the README's quick starts by name, as lists of (language, block), and how each language is run."""
    path = Path(__file__).parent.parent / "tests" / "test_front_door.py"
    spec = importlib.util.spec_from_file_location("front_door", path)
    door = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(door)
    found = {name: [b for b in x if b[0] in door.RUN] for name, x in door.quick_starts().items()}
    return found | {"make demo": [("sh", "entrywise demo")]}, door


def quick_starts(bars):
    """Time the quick starts and the demo with and without compiled loops at hand."""
    found, door = starts()
    rows = []
    for name, blocks in found.items():
        times = []
        with tempfile.TemporaryDirectory() as cache_name:
            loops = Path(cache_name) / "loops"
            for turn in ("byte code", "first", "second"):
                with tempfile.TemporaryDirectory() as work:
                    folder = Path(work)
                    cache = folder / "loops" if turn == "byte code" else loops
                    env = door.environment(folder) | {"NUMBA_CACHE_DIR": str(cache)}
                    env["PYTHONDONTWRITEBYTECODE"] = ""
                    times.append(
                        sum(run(door.RUN[kind], folder, env, text) for kind, text in blocks)
                    )
            _, first, second = times
            share = max(0.0, 1.0 - second / first) if loops.exists() else 0.0
        rows.append((name, first, second, share))
        bars.at_most(f"{name}: share of compiling", share, 0.1)
    show("quick starts, wall s", ("", "first", "once more", "share of compiling"), rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["complete", "starts"])
    args = parser.parse_args()
    bars = Bars()
    if args.only in (None, "complete"):
        complete(bars)
    if args.only in (None, "starts"):
        quick_starts(bars)
    bars.end()


if __name__ == "__main__":
    main()
