"""Plans: we choose the entries, and pay."""

from __future__ import annotations

from entrywise.methods.method import Method, of_room
from entrywise.queries import Prices

METHODS = of_room(
    "active",
    Method(
        name="adaptive-nystrom",
        home="active.nystrom.adaptive:adaptive_nystrom",
        paper="Bhargava, Ganti, Nowak 2017, Algorithm 3.2, the least explained column first",
        guarantee=(
            "exact for rank r after n (r + 1) - r (r + 1) / 2 entries (Theorem 3.2, any order); "
            "the residual diagonal bounds every entry of the rest"
        ),
        assumes="a PSD matrix, exact answers",
        example={"n": 12, "rng": 0},
        problem="psd_oracle",
    ),
    Method(
        name="literal-adaptive-nystrom",
        home="active.nystrom.literal_adaptive:literal_adaptive_nystrom",
        paper="Bhargava, Ganti, Nowak 2017, Algorithm 3.2",
        guarantee="exact for rank r after n (r + 1) - r (r + 1) / 2 entries (Theorem 3.2)",
        assumes="a PSD matrix, exact answers",
        example={"n": 12},
        problem="psd_oracle",
    ),
    Method(
        name="stochastic-nystrom",
        home="active.nystrom.stochastic:stochastic_nystrom",
        paper="Bhargava, Ganti, Nowak 2017, Algorithm 4.1, made to end",
        guarantee="none: spends its budget to the last answer",
        example={"n": 12, "rank": 2, "budget": 600, "rng": 0},
        problem="coin_oracle",
    ),
    Method(
        name="literal-stochastic-nystrom",
        home="active.nystrom.literal_stochastic:literal_stochastic_nystrom",
        paper="Bhargava, Ganti, Nowak 2017, Algorithm 4.1",
        guarantee=(
            "every entry within epsilon with probability 1 - delta (Theorem 4.3), at millions "
            "of answers; nothing where theta is estimated or the budget ends it"
        ),
        assumes="a PSD matrix of this rank, independent coins, theta given and at least C1 and C2",
        example={"n": 12, "rank": 1, "epsilon": 0.9, "theta": 0.02, "rng": 0},
        problem="coin_oracle",
    ),
    Method(
        name="noisy-cur",
        home="active.two_cost.noisy_cur:noisy_cur",
        paper="Hu, Gittens, Magdon-Ismail 2021, with the split it leaves open",
        guarantee=(
            "none proved for the error; never above its budget; exact without noise from r "
            "columns and r entries in the others (linear algebra)"
        ),
        assumes="for exactness: rank r, columns that span it",
        example={
            "shape": (12, 10),
            "prices": Prices(column=4),
            "noise": {"column": 0.2, "entry": 0.05},
            "budget": 70,
            "rng": 0,
        },
        problem="two_cost_oracle",
    ),
    Method(
        name="literal-noisy-cur",
        home="active.two_cost.literal:literal_noisy_cur",
        paper="Hu, Gittens, Magdon-Ismail 2021, Algorithm 1",
        guarantee="its Theorem 1, vacuous at the budgets at which it is used: the baseline",
        assumes="beta-incoherent columns, dense entries, s >= 2 d log d rows",
        example={
            "shape": (12, 10),
            "prices": Prices(column=4),
            "columns": 5,
            "budget": 70,
            "rng": 0,
        },
        problem="two_cost_oracle",
    ),
    Method(
        name="cur-plus",
        home="active.two_cost.cur_plus:cur_plus",
        paper="Xu, Jin, Zhou 2015",
        guarantee="exact from O(r log r) columns and rows (the paper's main theorem): the baseline",
        assumes="no noise, incoherence, known rank",
        example={
            "shape": (12, 10),
            "prices": Prices(column=4),
            "columns": 3,
            "rank": 2,
            "budget": 70,
            "rng": 0,
        },
        problem="two_cost_oracle",
    ),
    Method(
        name="two-phase",
        home="active.two_cost.two_phase:two_phase",
        paper="Chen, Bhojanapalli, Sanghavi, Ward 2014, Algorithm 1",
        guarantee=(
            "exact from O((m + n) r log^2 (m + n)) entries, coherent or not (the paper's main "
            "theorem, for known leverages): the baseline"
        ),
        assumes="no noise, leverage scores known; here they are estimated",
        example={"shape": (12, 10), "budget": 70, "rank": 2, "rng": 0},
        problem="two_cost_oracle",
    ),
    Method(
        name="split-nuclear-norm",
        home="active.two_cost.split_nuclear_norm:split_nuclear_norm",
        paper="Hu, Gittens, Magdon-Ismail 2021, eq. (5)",
        guarantee="none: the baseline",
        example={
            "shape": (12, 10),
            "prices": Prices(column=4),
            "columns": 5,
            "noise": {"column": 0.2, "entry": 0.05},
            "budget": 70,
            "rng": 0,
        },
        problem="two_cost_oracle",
    ),
    Method(
        name="best-pair",
        home="apply.pairs:best_pair",
        paper="Bhargava, Ganti, Nowak 2017, Section 5",
        guarantee=(
            "an upper end for the loss of the pair it names (Clopper and Pearson, on answers "
            "after the last choice); exact after n (r + 1) questions with noise=0 (Theorem 3.2)"
        ),
        assumes="independent coins; for exactness a PSD matrix and exact answers",
        example={"n_items": 12, "budget": 600, "rng": 0},
        problem="coin_oracle",
    ),
    Method(
        name="crowd",
        home="apply.crowd.crowd:crowd",
        paper="Dawid, Skene 1979, with the labels that tell most next",
        guarantee="none proved: the expected share of wrong labels, tempered by how crowds err together",
        example={"shape": (30, 6), "budget": 100},
        problem="crowd_oracle",
    ),
    Method(
        name="sequential-halving",
        home="active.pairs.halving:sequential_halving",
        paper="Karnin, Koren, Somekh 2013",
        guarantee=(
            "the smallest entry but for a chance that falls exponentially in the budget "
            "(Theorem 4.1 of the paper, for fresh answers each round; earlier ones are kept "
            "here)"
        ),
        assumes="independent bounded answers, every pair served in every round",
        example={"n": 12, "budget": 600, "rng": 0},
        problem="coin_oracle",
    ),
    Method(
        name="uniform-pairs",
        home="active.pairs.uniform:uniform_pairs",
        paper="Bhargava, Ganti, Nowak 2017, Section 6 (Naive)",
        guarantee="none: the baseline",
        example={"n": 12, "budget": 600, "rng": 0},
        problem="coin_oracle",
    ),
    Method(
        name="successive-elimination",
        home="active.pairs.elimination:successive_elimination",
        paper="Even-Dar, Mannor, Mansour 2006",
        guarantee=(
            "the smallest entry with probability 1 - delta when it ends before its budget "
            "(Theorem 8 of the paper)"
        ),
        assumes="independent answers in 0..1",
        example={"n": 12, "budget": 600, "rng": 0},
        problem="coin_oracle",
    ),
    Method(
        name="median-elimination",
        home="active.pairs.elimination:median_elimination",
        paper="Even-Dar, Mannor, Mansour 2006",
        guarantee=(
            "a pair within epsilon of the best with probability 1 - delta (Theorem 10 of the "
            "paper) when it ends before its budget"
        ),
        assumes="independent answers in 0..1",
        example={"n": 12, "budget": 600, "rng": 0},
        problem="coin_oracle",
    ),
    Method(
        name="lil-ucb",
        home="active.pairs.lil_ucb:lil_ucb",
        paper="Jamieson, Malloy, Nowak, Bubeck 2014",
        guarantee=(
            "none with its constants: the paper's analysis needs delta < log(1 + epsilon) / e = "
            ".0037 and single pulls, the default is .005 in batches"
        ),
        example={"n": 12, "budget": 600, "rng": 0},
        problem="coin_oracle",
    ),
    Method(
        name="subspace",
        home="active.subspaces.subspace:subspace",
        paper="Neyman 1934; open question of Gonen et al. 2016, section 4",
        guarantee=(
            "none: within a few percent of uniform looking on flat laws, 4 to 40 times less "
            "excess where few attributes matter, measured"
        ),
        example={"d": 10, "rank": 2, "per_sample": 3, "samples": 60, "rounds": 4, "rng": 0},
        problem="stream_oracle",
    ),
    Method(
        name="bandit-subspace",
        home="active.subspaces.bandit:bandit_subspace",
        paper="Gonen, Rosenbaum, Eldar, Shalev-Shwartz 2016, Algorithm 2, with larger steps",
        guarantee="none: the baseline",
        example={"d": 10, "rank": 2, "samples": 120, "updates": 12, "rng": 0},
        problem="stream_oracle",
    ),
    Method(
        name="literal-bandit-subspace",
        home="active.subspaces.literal_bandit:literal_bandit_subspace",
        paper="Gonen, Rosenbaum, Eldar, Shalev-Shwartz 2016, Algorithm 2",
        guarantee="expected excess sqrt(8 k^2 (d + r) log d / (r m)) (Theorem 7)",
        assumes="|x| <= 1, r even, m at least 2 d^4 r log(d) / (d + r)",
        example={"d": 3, "rank": 1, "samples": 180, "rng": 0},
        problem="stream_oracle",
    ),
    Method(
        name="rank-one",
        home="active.rank_one:rank_one",
        paper="Hendrickx, Olshevsky, Saligrama 2020; the rule is ours",
        guarantee=(
            "everything determined after m + n - 1 entries (a spanning tree); then the entry of "
            "largest leverage, without a bound"
        ),
        assumes="no entry of the table is zero",
        example={"shape": (8, 6), "extra": 12, "rng": 0},
        problem="multiplicative_oracle",
    ),
    Method(
        name="most-informative",
        home="active.cells.most_informative:most_informative",
        paper="greedy fall of posterior variance per price",
        guarantee=(
            "none on the error; with a blind reserve, intervals that stay valid although the "
            "rule chose the cells (split conformal prediction)"
        ),
        assumes="the reserve is drawn at random before anything is seen",
        example={"shape": (14, 10), "budget": 90, "rank": 2, "reserve": 0.1, "rng": 0},
        problem="cells_oracle",
    ),
    Method(
        name="row-scores",
        home="active.cells.row_scores:row_scores",
        paper="Neyman 1934, on common columns and an empirical-Bayes fit",
        guarantee=(
            "none: never above its budget; intervals of row means measured to cover on five boards"
        ),
        example={"shape": (14, 10), "budget": 90, "rng": 0},
        problem="cells_oracle",
    ),
    Method(
        name="top-two",
        home="active.cells.top_two:top_two",
        paper="Russo 2016, on row means",
        guarantee="none: names the best row with a posterior probability under its model",
        example={"shape": (14, 10), "budget": 90, "rng": 0},
        problem="cells_oracle",
    ),
    Method(
        name="ucb-e",
        home="active.cells.ucb_e:ucb_e",
        paper="Audibert, Bubeck, Munos 2010; Zhou et al. 2025",
        guarantee="none with its default exploration: the baseline for naming the best row",
        example={"shape": (14, 10), "budget": 60, "batch": 3, "rng": 0},
        problem="cells_oracle",
    ),
)
