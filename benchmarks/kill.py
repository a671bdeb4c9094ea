"""Workers killed with SIGKILL, answers corrected, studies extended, oracles that raise: nothing acknowledged is lost.

Every method that a study can keep, and two studies of thousands of questions, on both databases.

Bars: >= 500 kills over all plans; no acknowledged answer lost, none doubled, never over budget, every finished result
bit-identical to an undisturbed run (to a replay of its log elsewhere, where the order of answers matters).
Every other study is also corrected and extended, those in between by an odd ``--seed``.
``--quick``: three methods and one large study of each kind; ``--only METHOD`` strikes one.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from _shared import Bars, show
from entrywise.checks.postgres import server
from entrywise.methods import METHODS
from entrywise.study.crash import torture
from entrywise.study.subjects import Subject, nystrom, registered, stream

KILLS = 12  # strikes at a study; three in five are kills where answers are corrected meanwhile
STRIKES = ("kill", "kill", "kill", "correct", "extend")
CREW, CHUNK, BETWEEN = (
    4,
    3.5,
    0.16,
)  # workers, questions at a time, seconds between strikes, on average
LARGE = 4  # studies of thousands of questions, of each kind, on each database


def subjects(options: argparse.Namespace) -> Iterator[tuple[str, Subject, int]]:
    """Go through what is struck: (name, subject, about how many questions it asks)."""
    names = [m.name for m in METHODS if m.room == "active"]
    if options.quick:
        names = ["noisy-cur", "most-informative", "subspace"]
    for name in names:
        subject = registered(name, options.seed)
        yield name, subject, int(subject.options.get("budget", 100))
    for k in range(1 if options.quick else LARGE):
        yield f"nystrom of 50 ({k})", nystrom(50, 6, options.seed + k), 330
        yield f"stream of 50 ({k})", stream(50, 6, options.seed + k), 310


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", metavar="METHOD")
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    rows, found = [], []
    with server() as postgres, tempfile.TemporaryDirectory() as folder:
        bases = (("sqlite", str(Path(folder, "lab.db"))), ("postgresql", postgres))
        for k, (title, subject, size) in enumerate(subjects(options)):
            if options.only not in (None, title):
                continue
            for kind, url in bases:
                one = torture(
                    url,
                    title,
                    subject,
                    kills=KILLS,
                    seed=options.seed + k,
                    workers=CREW,
                    # so long that the study lives through its strikes
                    pause=2.0 * KILLS * BETWEEN * CREW * CHUNK / size,
                    raises=0.05,
                    strikes=STRIKES if (k + options.seed) % 2 else ("kill",),
                )
                found.append(one)
                harm = (one.lost, one.doubled, one.gave_up, one.over, one.identical)
                struck = (one.strikes, one.kills, one.raised, one.epochs, one.acknowledged)
                rows.append((kind, title, *struck, *harm, one.cost, one.seconds))
                print(*rows[-1], flush=True)
    head = ("database", "study", "strikes", "kills", "raised", "epochs", "acknowledged", "lost")
    show("killed studies", (*head, "doubled", "gave up", "over", "identical", "cost", "s"), rows)
    bars = Bars()
    whole = not options.quick and not options.only
    bars.at_least("kills", sum(one.kills for one in found), 500 if whole else 20)
    bars.at_least("exceptions of oracles", sum(one.raised for one in found), 50 if whole else 1)
    bars.at_least("epochs by amendments", sum(one.epochs for one in found), 50 if whole else 1)
    bars.at_most("acknowledged answers lost", sum(one.lost for one in found), 0)
    bars.at_most("entries bought twice", sum(one.doubled for one in found), 0)
    bars.at_most("studies over budget", sum(one.over > 0 for one in found), 0)
    bars.at_most("studies that differ or were harmed", sum(not one.unharmed for one in found), 0)
    bars.end()


if __name__ == "__main__":
    main()
