"""One row a method: its name, where it lives, its room, its paper, what it guarantees, a small example.

The rows feed the command line, studies, the laws of :mod:`entrywise.checks` and the docs. To add a
method, write its file and add its row.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from entrywise.exceptions import ParameterError
from entrywise.queries import Plan, Prices

Room = Literal["passive", "active", "online"]


@dataclass(frozen=True)
class Method:
    """A method that users can name.

    Parameters
    ----------
    name : str
        What users write, with hyphens.
    home : str
        ``module:function`` under entrywise.
    room : {"passive", "active", "online"}
    paper, guarantee : str
        Where it comes from and what it promises, in a line.
    example : mapping
        Arguments of a small instance, for laws and docs (active, online).
    problem : str
        Name of the function in :mod:`entrywise.gallery` that makes what the example works on from a seed:
        an oracle (active), observations (passive), a list of (i, j, y) trials (online).
    """

    name: str
    home: str
    room: Room
    paper: str
    guarantee: str
    example: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""

    def load(self) -> Any:
        """Return the function or class."""
        module, name = self.home.split(":")
        return getattr(importlib.import_module(f"entrywise.{module}"), name)

    @property
    def summary(self) -> str:
        """First line of its docstring."""
        return (inspect.getdoc(self.load()) or "").split("\n")[0]


METHODS: tuple[Method, ...] = (
    # passive: the entries are given
    Method(
        "low-rank", "passive.low_rank:low_rank", "passive", "Lim, Teh 2007, extended",
        "a posterior variance for every entry; with intervals.conformal, coverage on exchangeable held-out entries",
        {}, "known_entries",
    ),
    Method(
        "soft-impute", "passive.soft_impute:soft_impute", "passive", "Hastie, Mazumder, Lee, Zadeh 2015, Algorithm 3.1",
        "the minimiser of squared error plus nuclear norm", {"penalty": 1.0}, "known_entries",
    ),
    Method(
        "nuclear-norm", "passive.nuclear_norm:nuclear_norm", "passive", "Candès, Plan 2010; Toh, Yun 2010",
        "the minimiser, to a certified duality gap", {"penalty": 1.0}, "known_entries",
    ),
    Method(
        "iterative-svd", "passive.iterative_svd:iterative_svd", "passive", "Troyanskaya et al. 2001",
        "a fixed point of filling and truncating", {"rank": 2}, "known_entries",
    ),
    Method(
        "optspace", "passive.optspace:optspace", "passive", "Keshavan, Montanari, Oh 2010",
        "exact from O(n r log n) entries of an incoherent matrix without noise", {"rank": 2}, "known_entries",
    ),
    Method(
        "alternating-least-squares", "passive.alternating_least_squares:alternating_least_squares", "passive",
        "Zhou, Wilkinson, Schreiber, Pan 2008", "a stationary point of the ridge-penalised squared error",
        {"rank": 2, "penalty": 0.1}, "known_entries",
    ),
    Method(
        "rank-one", "passive.log_least_squares:log_least_squares", "passive", "Hendrickx, Olshevsky, Saligrama 2020, Algorithm 1, refined",
        "minimax for small noise; entries that nothing determines stay NaN", {}, "multiplicative_table",
    ),
    Method(
        "log-least-squares", "passive.log_least_squares:log_least_squares", "passive",
        "Hendrickx, Olshevsky, Saligrama 2020, Algorithm 1", "the same as rank-one", {}, "multiplicative_table",
    ),
    Method(
        "projected-eigenvector", "passive.projected_eigenvector:projected_eigenvector", "passive",
        "Hendrickx, Olshevsky, Saligrama 2020, Algorithm 2", "error polynomial in the disturbance, given bounds on the entries",
        {"low": 0.05, "high": 20.0}, "multiplicative_table",
    ),
    Method(
        "propagation", "passive.propagation:propagation", "passive", "Bonald, Combes 2017",
        "exact without noise: the baseline", {}, "multiplicative_table",
    ),
    Method(
        "alternating-minimization", "passive.alternating_minimization:alternating_minimization", "passive", "Li, Liang, Risteski 2016",
        "a stationary point of the squared error: the baseline", {}, "multiplicative_table",
    ),
    Method(
        "partial-pca", "passive.partial_pca:partial_pca", "passive", "Gonen, Rosenbaum, Eldar, Shalev-Shwartz 2016, Algorithm 1",
        "no bias under masks that do not look at the values; expected excess (d/r) sqrt(k/m) (Corollary 3)",
        {"n_components": 2}, "seen_samples",
    ),
    # active: we choose and pay
    Method(
        "adaptive-nystrom", "active.nystrom.adaptive:adaptive_nystrom", "active", "Bhargava, Ganti, Nowak 2017, Algorithm 3.2",
        "exact for rank r after n (r + 1) - r (r + 1) / 2 entries; the residual diagonal certifies the rest",
        {"n": 12, "rng": 0}, "psd_oracle",
    ),
    Method(
        "stochastic-nystrom", "active.nystrom.stochastic:stochastic_nystrom", "active", "Bhargava, Ganti, Nowak 2017, Algorithm 4.1",
        "spends its budget to the last answer; with epsilon and delta, every entry within epsilon (Theorem 4.3)",
        {"n": 12, "rank": 2, "budget": 600, "rng": 0}, "coin_oracle",
    ),
    Method(
        "noisy-cur", "active.two_cost.noisy_cur:noisy_cur", "active", "Hu, Gittens, Magdon-Ismail 2021, with the split it leaves open",
        "never above its budget; a posterior for every entry; exact from r columns and r entries in the others without noise",
        {"shape": (12, 10), "prices": Prices(column=4), "noise": {"column": 0.2, "entry": 0.05}, "budget": 70, "rng": 0},
        "two_cost_oracle",
    ),
    Method(
        "literal-noisy-cur", "active.two_cost.literal:literal_noisy_cur", "active", "Hu, Gittens, Magdon-Ismail 2021, Algorithm 1",
        "its Theorem 1, vacuous at the budgets at which it is used: the baseline",
        {"shape": (12, 10), "prices": Prices(column=4), "columns": 5, "budget": 70, "rng": 0}, "two_cost_oracle",
    ),
    Method(
        "cur-plus", "active.two_cost.cur_plus:cur_plus", "active", "Xu, Jin, Zhou 2015",
        "exact without noise from O(r log r) columns and rows: the baseline",
        {"shape": (12, 10), "prices": Prices(column=4), "columns": 3, "rank": 2, "budget": 70, "rng": 0}, "two_cost_oracle",
    ),
    Method(
        "two-phase", "active.two_cost.two_phase:two_phase", "active", "Chen, Bhojanapalli, Sanghavi, Ward 2014, Algorithm 1",
        "exact without noise from O((m + n) r log^2 (m + n)) entries, coherent or not: the baseline",
        {"shape": (12, 10), "budget": 70, "rank": 2, "rng": 0}, "two_cost_oracle",
    ),
    Method(
        "split-nuclear-norm", "active.two_cost.split_nuclear_norm:split_nuclear_norm", "active", "Hu, Gittens, Magdon-Ismail 2021, eq. (5)",
        "none: the baseline",
        {"shape": (12, 10), "prices": Prices(column=4), "columns": 5, "noise": {"column": 0.2, "entry": 0.05}, "budget": 70, "rng": 0},
        "two_cost_oracle",
    ),
    Method(
        "best-pair", "apply.pairs:best_pair", "active", "Bhargava, Ganti, Nowak 2017, Section 5",
        "an upper end for the loss of the pair it names; exact after n (r + 1) questions without noise",
        {"n_items": 12, "budget": 600, "rng": 0}, "coin_oracle",
    ),
    Method(
        "sequential-halving", "active.pairs.halving:sequential_halving", "active", "Karnin, Koren, Somekh 2013",
        "the smallest entry with a chance of error that falls exponentially in the budget",
        {"n": 12, "budget": 600, "rng": 0}, "coin_oracle",
    ),
    Method(
        "uniform-pairs", "active.pairs.uniform:uniform_pairs", "active", "Bhargava, Ganti, Nowak 2017, Section 6 (Naive)",
        "none: the baseline", {"n": 12, "budget": 600, "rng": 0}, "coin_oracle",
    ),
    Method(
        "successive-elimination", "active.pairs.elimination:successive_elimination", "active", "Even-Dar, Mannor, Mansour 2006",
        "the smallest entry with probability 1 - delta when it ends before its budget",
        {"n": 12, "budget": 600, "rng": 0}, "coin_oracle",
    ),
    Method(
        "median-elimination", "active.pairs.elimination:median_elimination", "active", "Even-Dar, Mannor, Mansour 2006",
        "a pair within epsilon of the best with probability 1 - delta", {"n": 12, "budget": 600, "rng": 0}, "coin_oracle",
    ),
    Method(
        "lil-ucb", "active.pairs.lil_ucb:lil_ucb", "active", "Jamieson, Malloy, Nowak, Bubeck 2014",
        "the smallest entry with high probability when it stops by itself", {"n": 12, "budget": 600, "rng": 0}, "coin_oracle",
    ),
    Method(
        "subspace", "active.subspaces.subspace:subspace", "active", "Neyman 1934; open question of Gonen et al. 2016, section 4",
        "within a few percent of uniform looking on flat laws, 4 to 40 times less excess where few attributes matter; no bound",
        {"d": 10, "k": 2, "per_sample": 3, "samples": 60, "epochs": 4, "rng": 0}, "stream_oracle",
    ),
    Method(
        "bandit-subspace", "active.subspaces.bandit:bandit_subspace", "active", "Gonen, Rosenbaum, Eldar, Shalev-Shwartz 2016, Algorithm 2",
        "expected excess sqrt(8 k^2 (d + r) log d / (r m)) with schedule=theorem (Theorem 7)",
        {"d": 10, "k": 2, "samples": 120, "updates": 12, "rng": 0}, "stream_oracle",
    ),
    Method(
        "rank-one", "active.rank_one:rank_one", "active", "Hendrickx, Olshevsky, Saligrama 2020; the rule is ours",
        "everything determined after m + n - 1 entries; then the entry of largest leverage",
        {"shape": (8, 6), "extra": 12, "rng": 0}, "multiplicative_oracle",
    ),
    # online: nature chooses
    Method(
        "auto", "online.majority:auto", "online", "Littlestone, Warmuth 1994, over the learners below",
        "at most 2.41 times the mistakes of its best expert, plus 3.48 ln of their number",
        {}, "binary_trials",
    ),
    Method(
        "matrix-winnow", "online.winnow:MatrixWinnow", "online", "Herbster, Pasteris, Pontil 2016, Algorithm 1",
        "at most 3.55 (m + n) log(m + n) / gamma^2 mistakes on labels of margin gamma",
        {"gamma": 0.577}, "binary_trials",
    ),
    Method(
        "doubling", "online.doubling:Doubling", "online", "Herbster, Pasteris, Pontil 2016, Corollary 3.2",
        "at most 12 times the bound of Matrix Winnow at the best rate",
        {}, "binary_trials",
    ),
    Method(
        "symmetric-winnow", "online.symmetric:SymmetricWinnow", "online", "Hazan, Kale, Shalev-Shwartz 2012, without projection",
        "usually the fewest mistakes of a single learner; no bound",
        {}, "binary_trials",
    ),
    Method(
        "hazan", "online.hazan:HazanKaleShalevShwartz", "online", "Hazan, Kale, Shalev-Shwartz 2012, Algorithm 1",
        "regret of order sqrt(max-norm (m + n) log(m + n) T); small sizes",
        {"shape": (8, 9)}, "binary_trials",
    ),
    Method(
        "row-column-majority", "online.row_column:RowColumnMajority", "online", "folklore",
        "none: a baseline", {}, "binary_trials",
    ),
    Method(
        "goldman-warmuth", "online.goldman_warmuth:GoldmanWarmuth", "online", "Goldman, Warmuth 1993",
        "at most k n + m sqrt(3 n log2 k) mistakes on k kinds of rows", {}, "binary_trials",
    ),
    Method(
        "online-factorization", "online.factorization:OnlineFactorization", "online", "folklore: stochastic gradients",
        "none: a baseline", {"rank": 2, "replay": 2}, "binary_trials",
    ),
    Method(
        "most-informative", "active.cells.most_informative:most_informative", "active", "greedy fall of posterior variance per price",
        "with a blind reserve, intervals that stay valid although the rule chose the cells; no bound on the error",
        {"shape": (14, 10), "budget": 90, "rank": 2, "reserve": 0.1, "rng": 0}, "cells_oracle",
    ),
    Method(
        "row-scores", "active.cells.row_scores:row_scores", "active", "Neyman 1934, on common columns and an empirical-Bayes fit",
        "never above its budget; intervals of row means measured to cover on five boards, no bound",
        {"shape": (14, 10), "budget": 90, "rng": 0}, "cells_oracle",
    ),
    Method(
        "top-two", "active.cells.top_two:top_two", "active", "Russo 2016, on row means",
        "names the best row with a posterior probability", {"shape": (14, 10), "budget": 90, "rng": 0}, "cells_oracle",
    ),
    Method(
        "ucb-e", "active.cells.ucb_e:ucb_e", "active", "Audibert, Bubeck, Munos 2010; Zhou et al. 2025",
        "the baseline for naming the best row", {"shape": (14, 10), "budget": 60, "batch": 3, "rng": 0}, "cells_oracle",
    ),
)  # fmt: skip

_BY_NAME = {method.name: method for method in reversed(METHODS)}
_BY_ROOM = {
    (method.room, method.name): method for method in METHODS
}  # rank-one is passive and active


def get(name: str, room: Room | None = None) -> Method:
    """Return the method called `name`, hyphens or underscores."""
    name = name.replace("_", "-")
    found = _BY_NAME.get(name) if room is None else _BY_ROOM.get((room, name))
    if found is None or (room is not None and found.room != room):
        known = [m.name for m in METHODS if room is None or m.room == room]
        raise ParameterError(
            f"no {room or ''} method is called {name!r}; there are {', '.join(known)}".replace(
                "no  ", "no "
            )
        )
    return found


def make_plan(name: str, params: Mapping[str, Any]) -> Plan:
    """Return the plan of an active method, its parameters given as plain values."""
    plan = get(name, "active").load()(**params)
    assert isinstance(plan, Plan)
    return plan
