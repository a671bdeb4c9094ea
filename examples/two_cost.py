"""
Two instruments, one budget
===========================

An automatic judge scores every answer of a model at once, noisily; a human scores one answer at a time, well. We have money for
15 % of what human scores of everything would cost, and a column of automatic ones costs as much as 16 human ones.
"""

import numpy as np

import entrywise as ew
from entrywise import plot
from entrywise.active import literal_noisy_cur, noisy_cur
from entrywise.active.two_cost.forecast import forecast
from entrywise.oracles import TwoCostOracle


def run():
    """Return the error of the automatic split and of the paper's algorithm at its forecast split, in percent."""
    rng = np.random.default_rng(3)
    answers, models = 80, 60
    scores = 5 + rng.standard_normal((answers, 3)) @ rng.standard_normal((3, models)) / 3
    prices, noise, budget = ew.Prices(column=16, entry=1), {"column": 0.22, "entry": 0.1}, 720

    expected = forecast(
        "noisy-cur",
        shape=scores.shape,
        prices=prices,
        noise=noise,
        budget=budget,
        rank=3,
        signal=0.58,
    )
    print(dict(zip(expected.columns, expected.rows[0], strict=True)))

    errors = []
    for plan in (
        noisy_cur(scores.shape, prices, noise=noise, budget=budget, rng=0),
        literal_noisy_cur(scores.shape, prices, columns=expected.rows[0][1], budget=budget, rng=0),
    ):
        oracle = TwoCostOracle(
            scores, column_noise=noise["column"], entry_noise=noise["entry"], rng=1
        )
        found = ew.play(plan, oracle)
        errors.append(
            100 * float(np.linalg.norm(found.to_dense() - scores) / np.linalg.norm(scores))
        )
        print(
            f"{plan.name}: {found.report['columns']} columns, {found.cost:g} spent, error {errors[-1]:.2f} %"
        )

    found = ew.play(noisy_cur(scores.shape, prices, noise=noise, budget=budget, rng=0), oracle)
    low, high = found.interval(np.arange(5), 7, 0.9, of="truth")
    for k in range(5):
        print(f"answer {k} of model 7: {low[k]:.2f} to {high[k]:.2f}, in truth {scores[k, 7]:.2f}")
    columns = 16.0 * found.report["columns"]
    plot.split({"noisy columns": columns, "precise entries": found.cost - columns}, budget=budget)
    everything = found.interval(
        np.arange(answers)[:, None], np.arange(models)[None, :], 0.9, of="truth"
    )
    plot.intervals(*everything, scores)
    assert errors[0] < errors[1]
    return errors


if __name__ == "__main__":
    run()
