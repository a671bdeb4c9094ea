"""
A cheap biased judge beside a dear truth
========================================

Thirty models, two hundred prompts. A human verdict costs 1, a language model as judge .02, and it likes one of the models.
What is the score of each model by human verdicts, how much does the judge save, and whom does it favour?
"""

import numpy as np

import entrywise as ew
from entrywise import plot
from entrywise.active import row_scores
from entrywise.apply.leaderboard import Bought, judged, scores
from entrywise.oracles import MatrixOracle


def board(seed):
    """Return human verdicts and what the judge says: half as far apart, and .1 more for model 7."""
    rng = np.random.default_rng(seed)
    skill, prompt = rng.standard_normal((30, 2)), rng.standard_normal((2, 200))
    human = 0.6 + 0.08 * rng.standard_normal((30, 1)) + 0.1 * rng.standard_normal((1, 200))
    human = human + 0.08 * skill @ prompt + 0.12 * rng.standard_normal((30, 200))
    judge = 0.3 + 0.5 * human + 0.03 * rng.standard_normal((1, 200))
    judge = judge + 0.05 * rng.standard_normal(human.shape)
    judge[7] += 0.1
    return human, judge


def buy(human, judge, budget):
    """Buy with the judge and without it; return the errors of both, and the scores with the judge."""
    tables = {"human": human, "judge": judge}
    prices = ew.Prices(judge=0.02, human=1.0)
    buying = ew.Run(row_scores(human.shape, prices, budget=budget, target="human", rng=1))
    ew.play(buying, lambda batch: tables[batch.mode][batch.rows, batch.cols])
    found = judged(Bought.from_run(buying), prices=prices, target="human")
    alone = ew.Run(row_scores(human.shape, budget=budget, rng=1))
    plain = scores(ew.play(alone, MatrixOracle(human)), Bought.from_run(alone))
    truth = human.mean(axis=1)
    errors = [float(np.sqrt(np.mean((x.mean - truth) ** 2))) for x in (found, plain)]
    return errors, found


def run():
    human, judge = board(0)
    budgets = np.array([0.04, 0.08, 0.16, 0.32]) * human.size
    errors = []
    for budget in budgets:
        both, found = buy(human, judge, float(budget))
        errors.append(both)
        print(f"{budget:.0f} spent: error {both[0]:.4f} with the judge, {both[1]:.4f} without")
    errors = np.array(errors)
    for line in found.words:
        print(line)

    axes = plot.figure_axes()
    axes.plot(budgets, errors[:, 0], "o-", color=plot.COLOURS["ours"], label="with the judge")
    axes.plot(
        budgets, errors[:, 1], "s--", color=plot.COLOURS["rival"], label="human verdicts alone"
    )
    axes.set(xscale="log", yscale="log", xlabel="money", ylabel="error of the scores")
    axes.minorticks_off()
    axes.set_xticks(budgets, [f"{budget:.0f}" for budget in budgets])
    axes.set_yticks([0.01, 0.02, 0.04], [".01", ".02", ".04"])
    axes.set_title("What a judge saves", loc="left")
    axes.legend(frameon=False)

    rows = found.bias["judge"].rows
    names = [f"model {i}" for i in range(len(human))]
    drawn = plot.scores(rows.offset, rows.low, rows.high, names=names, tier=rows.surely.astype(int))
    drawn.axvline(0.0, color=plot.COLOURS["truth"], linewidth=1)
    drawn.set_title("Whom the judge favours", loc="left")
    drawn.set_xlabel("offset of the judge, on its own scale")
    return errors


if __name__ == "__main__":
    run()
