"""Workers killed with SIGKILL at random points, on SQLite and on PostgreSQL: nothing acknowledged is lost.

Bars: >= 200 kills over >= 20 studies, both databases; no acknowledged answer lost, none doubled, every finished
result bit-identical to an undisturbed run. ``--quick``: 2 studies on each database.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from _shared import Bars, show
from entrywise.checks.postgres import server
from entrywise.study.crash import torture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="2 studies on each database instead of 11"
    )
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    studies = 2 if options.quick else 11
    rows, found = [], []
    with server() as postgres, tempfile.TemporaryDirectory() as folder:
        for k in range(studies):
            for kind, url in (
                ("sqlite", str(Path(folder, f"lab{k % 3}.db"))),
                ("postgresql", postgres),
            ):
                one = torture(
                    url, f"study-{k}", kills=10, seed=options.seed + k, n=60, rank=6, pause=0.08
                )
                found.append(one)
                harm = (one.lost, one.doubled, one.gave_up, one.identical)
                words = (one.kills, one.acknowledged, *harm, one.cost, one.seconds)
                rows.append((kind, k, *words))
                print(*rows[-1], flush=True)
    show(
        "killed studies",
        (
            "database",
            "study",
            "kills",
            "acknowledged",
            "lost",
            "doubled",
            "gave up",
            "identical",
            "cost",
            "s",
        ),
        rows,
    )
    bars = Bars()
    bars.at_least("studies", len(found), 4 if options.quick else 20)
    bars.at_least("kills", sum(one.kills for one in found), 20 if options.quick else 200)
    bars.at_most("acknowledged answers lost", sum(one.lost for one in found), 0)
    bars.at_most("entries bought twice", sum(one.doubled for one in found), 0)
    bars.at_most("results that differ", sum(not one.unharmed for one in found), 0)
    bars.end()


if __name__ == "__main__":
    main()
