"""Workers killed with SIGKILL, answers corrected, studies extended, oracles that raise: nothing acknowledged is lost.

Bars: >= 500 strikes over >= 20 studies, batch and streaming plans, both databases; no acknowledged answer lost, none
doubled, never over budget, every finished result bit-identical to an undisturbed run. ``--quick``: 2 studies of each
kind on each database.
"""

from __future__ import annotations

import argparse
import itertools
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
    studies = 2 if options.quick else 14
    rows, found = [], []
    strikes = ("kill", "kill", "correct", "extend")
    with server() as postgres, tempfile.TemporaryDirectory() as folder:
        for k, streaming in itertools.product(range(studies), (False, True)):
            for kind, url in (
                ("sqlite", str(Path(folder, f"lab{k % 3}.db"))),
                ("postgresql", postgres),
            ):
                one = torture(
                    url,
                    f"study-{k}-{streaming}",
                    kills=10,
                    seed=options.seed + k,
                    n=50,
                    rank=6,
                    pause=0.08,
                    raises=0.05,
                    strikes=strikes if k % 2 else ("kill",),
                    streaming=streaming,
                )
                found.append(one)
                harm = (one.lost, one.doubled, one.gave_up, one.identical)
                words = (one.kills, one.epochs, one.acknowledged, *harm, one.cost, one.seconds)
                rows.append((kind, "streaming" if streaming else "batch", k, *words))
                print(*rows[-1], flush=True)
    show(
        "killed studies",
        (
            "database",
            "plan",
            "study",
            "strikes",
            "epochs",
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
    bars.at_least("studies", len(found), 8 if options.quick else 20)
    bars.at_least("strikes", sum(one.kills for one in found), 40 if options.quick else 500)
    bars.at_most("acknowledged answers lost", sum(one.lost for one in found), 0)
    bars.at_most("entries bought twice", sum(one.doubled for one in found), 0)
    bars.at_most("results that differ", sum(not one.unharmed for one in found), 0)
    bars.end()


if __name__ == "__main__":
    main()
