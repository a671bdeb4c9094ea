"""What we say of our own error, counted on fresh problems: promised against measured, one table.

``make bench NAME=trust`` (all, long), ``ARGS="--only nystrom"`` for a part, ``--quick`` for fewer problems, ``--seed`` for
others. A case fails
when its figure is more than two standard errors outside its bar. Real sets need ENTRYWISE_DATA.
"""

from __future__ import annotations

import argparse
import warnings

from _trust import SEED, Claims
from _trust_completion import imputers, truths
from _trust_forecast import forecasts
from _trust_nystrom import nystrom
from _trust_rank_one import tables
from _trust_stopping import races
from _trust_votes import crowds, labels_next, pairs_next, ranks

SECTIONS = {
    "rank": ranks,
    "rank-next": pairs_next,
    "crowd": crowds,
    "crowd-next": labels_next,
    "nystrom": nystrom,
    "rank-one": tables,
    "truth": truths,
    "imputers": imputers,
    "forecast": forecasts,
    "races": races,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer problems")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--seed", type=int, default=SEED, help="of the problems")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    claims = Claims(quick=args.quick, seed=args.seed)
    for name in args.only:
        SECTIONS[name](claims)
    claims.end()


if __name__ == "__main__":
    main()
