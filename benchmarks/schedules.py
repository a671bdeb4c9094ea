"""Random schedules of people, latencies, lapses, kills and changes: no law of studies is broken.

Bars: thousands of schedules on SQLite and hundreds on PostgreSQL (``--count``), 0 laws broken. Seeds are printed where
one is; ``--first`` plays on from another seed. ``--quick``: 20 and 10 of each kind.
"""

from __future__ import annotations

import argparse
import traceback
from collections import Counter

from _shared import Bars, show
from entrywise.checks.postgres import server
from entrywise.study.schedules import KINDS, schedule
from entrywise.study.store import Store

MEMORY = "sqlite://"


SHARED = 20  # schedules that share a database in memory: its statements are prepared once
FITS = 0.2  # schedules of a plan that fits a model at each step, for one of the others
SERVER = 0.12  # schedules on PostgreSQL for one on SQLite


def play_all(url: str, kind: str, seeds: range) -> tuple[Counter[str], list[int]]:
    """Return what happened in all schedules, and the seeds of those that broke a law."""
    happened: Counter[str] = Counter()
    broken = []
    place: str | Store = url
    for k, seed in enumerate(seeds):
        if url == MEMORY and k % SHARED == 0:
            place = Store(url)
        try:
            happened.update(schedule(place, f"{kind}-{seed}", seed, kind))
        except Exception:
            broken.append(seed)
            print(f"seed {seed} of {kind} on {url}:\n{traceback.format_exc()}", flush=True)
        if (k + 1) % 50 == 0:
            print(f"{kind} on {url}: {k + 1} schedules, {len(broken)} broken", flush=True)
    return happened, broken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--count", type=int, default=1000, help="schedules of each kind on SQLite")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), help="one of them alone")
    options = parser.parse_args()
    count = 20 if options.quick else options.count
    rows, broken = [], 0
    with server(fsync="off") as postgres:  # nobody pulls the plug here
        for title, url, share in (("sqlite", MEMORY, 1.0), ("postgresql", postgres, SERVER)):
            if options.database not in (None, title):
                continue
            for kind in KINDS:
                some = max(10, round(share * count * (FITS if kind == "informative" else 1.0)))
                found, bad = play_all(url, kind, range(options.first, options.first + some))
                broken += len(bad)
                words = [found[k] for k in ("ask", "tell", "change", "epochs", "kill")]
                rows.append((title, kind, some, *words, len(bad)))
    head = (
        "database",
        "kind",
        "schedules",
        "asks",
        "tells",
        "changes",
        "epochs",
        "kills",
        "broken",
    )
    show("random schedules", head, rows)
    bars = Bars()
    bars.at_most("schedules that broke a law", broken, 0)
    bars.end()


if __name__ == "__main__":
    main()
