"""
A table of measures, each in its own unit
=========================================

150 people and eight measures, a quarter of the table missing. Taken as one matrix, incomes of tens of thousands drown
doses of hundredths; ``ew.complete`` sees that the columns are in units of their own, fits them in standard deviations,
and answers in their units again.
"""

import numpy as np

import entrywise as ew
from entrywise import plot

NAMES = ("age", "income", "height", "pulse", "lipids", "score", "hours", "dose")
SCALE = np.array([10.0, 20_000.0, 8.0, 12.0, 35.0, 0.1, 4.0, 0.002])
CENTER = np.array([45.0, 50_000.0, 170.0, 120.0, 200.0, 0.5, 30.0, 0.01])


def run():
    rng = np.random.default_rng(3)
    table = rng.standard_normal((150, 3)) @ rng.standard_normal((3, len(NAMES))) / 1.7
    table = (table + 0.2 * rng.standard_normal(table.shape)) * SCALE + CENTER
    missing = rng.random(table.shape) < 0.25
    seen = ew.Observations.from_dense(np.where(missing, np.nan, table))

    found = ew.complete(seen)
    print("; ".join(found.report["reasons"]))
    i, j = np.nonzero(missing)
    low, high = found.interval(i, j, 0.9)
    print(f"{np.mean((low <= table[i, j]) & (table[i, j] <= high)):.1%} of the gaps lie in theirs")

    errors = {
        "as one matrix": off(ew.complete(seen, units="one"), table, missing),
        "in units of their own": off(found, table, missing),
    }
    draw(errors)
    return errors


def off(found, table, missing):
    """Return the error of the gaps of each column, in its standard deviations."""
    squares = np.where(missing, found.to_dense() - table, 0.0) ** 2
    return np.sqrt(squares.sum(axis=0) / missing.sum(axis=0)) / table.std(axis=0)


def draw(errors):
    """Draw the errors of both ways, and that of a column's mean."""
    axes = plot.figure_axes()
    looks = (("rival", -0.2), ("ours", 0.2))
    for (name, values), (colour, shift) in zip(errors.items(), looks, strict=True):
        at = np.arange(len(NAMES)) + shift
        axes.bar(at, values, width=0.38, color=plot.COLOURS[colour], label=name)
    axes.axhline(1.0, color=plot.COLOURS["truth"], linestyle="--", label="the mean of the column")
    axes.set_xticks(range(len(NAMES)), NAMES)
    axes.set_ylabel("error of the gaps, standard deviations")
    axes.legend(frameon=False, loc="upper right")


if __name__ == "__main__":
    run()
