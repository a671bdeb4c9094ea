"""
A study that survives its programs
==================================

Two workers measure the entries of a similarity matrix by turns. Each of them opens the study, takes a few questions,
tells the answers and is gone; one answer is wrong and is corrected later. The study ends as if nothing had happened.
"""

import tempfile
from pathlib import Path

import numpy as np

import entrywise as ew
from entrywise import plot


def run():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((20, 3))
    truth = features @ features.T
    names = [f"compound-{k}" for k in range(20)]

    with tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder, "lab.db"))
        ew.Study.create(database, "similarity", plan="adaptive-nystrom", rows=names, seed=1)
        wrong, turn = None, 0
        while not ew.Study.open(database, "similarity").finished:
            worker = f"bench-{turn % 2}"
            study = ew.Study.open(
                database, "similarity"
            )  # each turn might be another program, on another day
            answers = [(q.id, float(truth[q.index])) for q in study.ask(7, worker)]
            if wrong is None:  # a slip of the pen
                wrong, right = answers[0]
                answers[0] = (wrong, 1.1 * right)
            study.tell(answers, worker)
            if turn == 5:
                study.amend(wrong, right)
            turn += 1
        found = ew.Study.open(database, "similarity").result()
        log = list(ew.Study.open(database, "similarity").log())

    error = np.abs(found.to_dense() - truth).max()
    print(
        f"rank {found.rank} after {turn} turns, {found.cost:.0f} of {20 * 21 // 2} entries bought, largest error {error:.1e}"
    )
    print(
        "corrected:",
        [(line["id"], line["value"], line["what"]) for line in log if line["id"] == wrong],
    )
    asked = [(names.index(line["row"]), names.index(line["col"])) for line in log]
    plot.map(found, tuple(np.array(asked).T))
    return found.rank, error


if __name__ == "__main__":
    run()
