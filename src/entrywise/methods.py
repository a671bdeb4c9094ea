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
        Where it comes from and what it promises, in a line, with the theorem that says so. "none" begins the line of a
        method without a proof.
    assumes : str
        What the guarantee needs to hold.
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
    assumes: str = ""
    example: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""

    def load(self) -> Any:
        """Return the function or class."""
        module, name = self.home.split(":")
        return getattr(importlib.import_module(f"entrywise.{module}"), name)

    @property
    def kind(self) -> str:
        """How an active method asks: ``streaming`` (nobody waits) or ``batch``; empty for the other rooms."""
        if self.room != "active":
            return ""
        return "streaming" if getattr(self.load(), "streaming", False) else "batch"

    @property
    def summary(self) -> str:
        """First line of its docstring."""
        return (inspect.getdoc(self.load()) or "").split("\n")[0]


METHODS: tuple[Method, ...] = (
    # passive: the entries are given
    Method(
        name="low-rank",
        home="passive.low_rank:low_rank",
        room="passive",
        paper="Lim, Teh 2007, extended",
        guarantee=(
            "none proved; a posterior variance for every entry, and with intervals.conformal "
            "coverage at its level (split conformal prediction)"
        ),
        assumes="held-out entries exchangeable with those to be predicted",
        problem="known_entries",
    ),
    Method(
        name="soft-impute",
        home="passive.soft_impute:soft_impute",
        room="passive",
        paper="Hastie, Mazumder, Lee, Zadeh 2015, Algorithm 3.1",
        guarantee="the minimiser of squared error plus nuclear norm (a convex problem)",
        assumes="a penalty above 0, sweeps until convergence",
        example={"penalty": 1.0},
        problem="known_entries",
    ),
    Method(
        name="nuclear-norm",
        home="passive.nuclear_norm:nuclear_norm",
        room="passive",
        paper="Candès, Plan 2010; Toh, Yun 2010",
        guarantee="the minimiser, to a duality gap that is computed and stated (convex duality)",
        assumes="none beyond finite answers",
        example={"penalty": 1.0},
        problem="known_entries",
    ),
    Method(
        name="iterative-svd",
        home="passive.iterative_svd:iterative_svd",
        room="passive",
        paper="Troyanskaya et al. 2001",
        guarantee="none: a fixed point of filling and truncating",
        example={"rank": 2},
        problem="known_entries",
    ),
    Method(
        name="optspace",
        home="passive.optspace:optspace",
        room="passive",
        paper="Keshavan, Montanari, Oh 2010",
        guarantee=(
            "exact from O(n r log n) entries (Theorem 1.2 of the paper, for its own trimming "
            "and stopping)"
        ),
        assumes="no noise, uniformly drawn entries, an incoherent matrix of bounded condition",
        example={"rank": 2},
        problem="known_entries",
    ),
    Method(
        name="alternating-least-squares",
        home="passive.alternating_least_squares:alternating_least_squares",
        room="passive",
        paper="Zhou, Wilkinson, Schreiber, Pan 2008",
        guarantee="none: a stationary point of the ridge-penalised squared error",
        example={"rank": 2, "penalty": 0.1},
        problem="known_entries",
    ),
    Method(
        name="rank-one",
        home="passive.rank_one:rank_one",
        room="passive",
        paper="Hendrickx, Olshevsky, Saligrama 2020, Algorithm 1, refined",
        guarantee=(
            "none proved for the refinement; the minimax constant of Theorems 1 and 2 as "
            "certificate; entries that nothing determines stay NaN"
        ),
        assumes="a positive table of rank one, disturbances small to first order",
        problem="multiplicative_table",
    ),
    Method(
        name="log-least-squares",
        home="passive.log_least_squares:log_least_squares",
        room="passive",
        paper="Hendrickx, Olshevsky, Saligrama 2020, Algorithm 1",
        guarantee=(
            "squared error at most lambda_max(K L^+) |Delta|^2 to first order, and no method "
            "does better (Theorems 1 and 2)"
        ),
        assumes="a positive table of rank one, connected known entries, small disturbances",
        problem="multiplicative_table",
    ),
    Method(
        name="projected-eigenvector",
        home="passive.projected_eigenvector:projected_eigenvector",
        room="passive",
        paper="Hendrickx, Olshevsky, Saligrama 2020, Algorithm 2",
        guarantee="error polynomial in the disturbance (Theorem 4, Corollary 2)",
        assumes="known bounds on the entries, connected known entries",
        example={"low": 0.05, "high": 20.0},
        problem="multiplicative_table",
    ),
    Method(
        name="propagation",
        home="passive.propagation:propagation",
        room="passive",
        paper="Bonald, Combes 2017",
        guarantee="exact (by construction): the baseline",
        assumes="no noise, connected known entries",
        problem="multiplicative_table",
    ),
    Method(
        name="alternating-minimization",
        home="passive.alternating_minimization:alternating_minimization",
        room="passive",
        paper="Li, Liang, Risteski 2016",
        guarantee="none: a stationary point of the squared error, the baseline",
        problem="multiplicative_table",
    ),
    Method(
        name="partial-pca",
        home="passive.partial_pca:partial_pca",
        room="passive",
        paper="Gonen, Rosenbaum, Eldar, Shalev-Shwartz 2016, Algorithm 1",
        guarantee=(
            "expected excess (d/r) sqrt(k/m) (Corollary 3) with mask='bernoulli', center=False, "
            "repair='none'; the default has no bound, and a bias from pairs never seen together "
            "and from its repair"
        ),
        assumes="each attribute seen on its own with the same chance, |x| <= 1",
        example={"rank": 2},
        problem="seen_samples",
    ),
    Method(
        name="petrels",
        home="passive.trackers.petrels:petrels",
        room="passive",
        paper="Chi, Eldar, Calderbank 2013, Algorithm 1",
        guarantee="none: a baseline of partial PCA",
        example={"rank": 2},
        problem="seen_samples",
    ),
    Method(
        name="grouse",
        home="passive.trackers.grouse:grouse",
        room="passive",
        paper="Balzano, Nowak, Recht 2010",
        guarantee="none: a baseline of partial PCA",
        example={"rank": 2},
        problem="seen_samples",
    ),
    Method(
        name="streaming-pca",
        home="passive.trackers.streaming_pca:streaming_pca",
        room="passive",
        paper="Mitliagkas, Caramanis, Jain 2014, Algorithm 1",
        guarantee=(
            "the subspace within epsilon after enough samples (the paper's theorem): a baseline"
        ),
        assumes="Gaussian samples of a spiked covariance, each attribute seen with the same chance",
        example={"rank": 2},
        problem="seen_samples",
    ),
    Method(
        name="online-pca",
        home="passive.trackers.online_pca:online_pca",
        room="passive",
        paper="Warmuth, Kuzmin 2008, on moments of partly seen samples",
        guarantee="none on partly seen samples: its regret bound is for whole ones",
        example={"rank": 2},
        problem="seen_samples",
    ),
    Method(
        name="capped-msg",
        home="passive.trackers.capped_msg:capped_msg",
        room="passive",
        paper="Arora, Cotter, Srebro 2013, on moments of partly seen samples",
        guarantee="none: with a cap below d it may stop at a local optimum",
        example={"rank": 2},
        problem="seen_samples",
    ),
    Method(
        name="zero-fill-pca",
        home="passive.trackers.zero_fill_pca:zero_fill_pca",
        room="passive",
        paper="folklore",
        guarantee="none: a baseline, biased wherever attributes are seen unevenly",
        example={"rank": 2},
        problem="seen_samples",
    ),
    Method(
        name="impute-pca",
        home="passive.trackers.impute_pca:impute_pca",
        room="passive",
        paper="folklore: PCA of completed samples",
        guarantee="none: a baseline",
        example={"rank": 2},
        problem="seen_samples",
    ),
    # active: we choose and pay
    Method(
        name="adaptive-nystrom",
        home="active.nystrom.adaptive:adaptive_nystrom",
        room="active",
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
        room="active",
        paper="Bhargava, Ganti, Nowak 2017, Algorithm 3.2",
        guarantee="exact for rank r after n (r + 1) - r (r + 1) / 2 entries (Theorem 3.2)",
        assumes="a PSD matrix, exact answers",
        example={"n": 12},
        problem="psd_oracle",
    ),
    Method(
        name="stochastic-nystrom",
        home="active.nystrom.stochastic:stochastic_nystrom",
        room="active",
        paper="Bhargava, Ganti, Nowak 2017, Algorithm 4.1, made to end",
        guarantee="none: spends its budget to the last answer",
        example={"n": 12, "rank": 2, "budget": 600, "rng": 0},
        problem="coin_oracle",
    ),
    Method(
        name="literal-stochastic-nystrom",
        home="active.nystrom.literal_stochastic:literal_stochastic_nystrom",
        room="active",
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
        room="active",
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
        room="active",
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
        room="active",
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
        room="active",
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
        room="active",
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
        room="active",
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
        room="active",
        paper="Dawid, Skene 1979, with the labels that tell most next",
        guarantee="none proved: the expected share of wrong labels, tempered by how crowds err together",
        example={"shape": (30, 6), "budget": 100},
        problem="crowd_oracle",
    ),
    Method(
        name="sequential-halving",
        home="active.pairs.halving:sequential_halving",
        room="active",
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
        room="active",
        paper="Bhargava, Ganti, Nowak 2017, Section 6 (Naive)",
        guarantee="none: the baseline",
        example={"n": 12, "budget": 600, "rng": 0},
        problem="coin_oracle",
    ),
    Method(
        name="successive-elimination",
        home="active.pairs.elimination:successive_elimination",
        room="active",
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
        room="active",
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
        room="active",
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
        room="active",
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
        room="active",
        paper="Gonen, Rosenbaum, Eldar, Shalev-Shwartz 2016, Algorithm 2, with larger steps",
        guarantee="none: the baseline",
        example={"d": 10, "rank": 2, "samples": 120, "updates": 12, "rng": 0},
        problem="stream_oracle",
    ),
    Method(
        name="literal-bandit-subspace",
        home="active.subspaces.literal_bandit:literal_bandit_subspace",
        room="active",
        paper="Gonen, Rosenbaum, Eldar, Shalev-Shwartz 2016, Algorithm 2",
        guarantee="expected excess sqrt(8 k^2 (d + r) log d / (r m)) (Theorem 7)",
        assumes="|x| <= 1, r even, m at least 2 d^4 r log(d) / (d + r)",
        example={"d": 3, "rank": 1, "samples": 180, "rng": 0},
        problem="stream_oracle",
    ),
    Method(
        name="rank-one",
        home="active.rank_one:rank_one",
        room="active",
        paper="Hendrickx, Olshevsky, Saligrama 2020; the rule is ours",
        guarantee=(
            "everything determined after m + n - 1 entries (a spanning tree); then the entry of "
            "largest leverage, without a bound"
        ),
        assumes="no entry of the table is zero",
        example={"shape": (8, 6), "extra": 12, "rng": 0},
        problem="multiplicative_oracle",
    ),
    # online: nature chooses
    Method(
        name="auto",
        home="online.majority:auto",
        room="online",
        paper="Littlestone, Warmuth 1994, over the learners below",
        guarantee=(
            "at most 2.41 times the mistakes of its best expert, plus 3.48 ln of their number "
            "(weighted majority, beta = 1/2)"
        ),
        assumes="none",
        problem="binary_trials",
    ),
    Method(
        name="matrix-winnow",
        home="online.winnow:MatrixWinnow",
        room="online",
        paper="Herbster, Pasteris, Pontil 2016, Algorithm 1",
        guarantee=(
            "at most 3.55 ((m + n) log(m + n) / gamma^2 + violations) mistakes at rate gamma "
            "(Theorem 3.1)"
        ),
        assumes="violations counted by equation (2); none for slack > 0 or gamma > 1",
        example={"gamma": 0.577},
        problem="binary_trials",
    ),
    Method(
        name="doubling",
        home="online.doubling:Doubling",
        room="online",
        paper="Herbster, Pasteris, Pontil 2016, Corollary 3.2",
        guarantee="at most 12 times the bound of Matrix Winnow at the best rate (Corollary 3.2)",
        assumes="as Theorem 3.1",
        problem="binary_trials",
    ),
    Method(
        name="symmetric-winnow",
        home="online.symmetric:SymmetricWinnow",
        room="online",
        paper="Hazan, Kale, Shalev-Shwartz 2012, without projection",
        guarantee="none: usually the fewest mistakes of a single learner, measured",
        problem="binary_trials",
    ),
    Method(
        name="hazan",
        home="online.hazan:HazanKaleShalevShwartz",
        room="online",
        paper="Hazan, Kale, Shalev-Shwartz 2012, Algorithm 1",
        guarantee=(
            "regret 2 sqrt(|U|_1 sqrt(m + n) log(m + n) T) in absolute loss (Corollary 7 of the "
            "paper) at its tuned rate; small sizes"
        ),
        assumes="rate and max-norm tuned to the comparator and T; predictions not rounded to signs",
        example={"shape": (8, 9)},
        problem="binary_trials",
    ),
    Method(
        name="randomized-rounding",
        home="online.randomized_rounding:RandomizedRounding",
        room="online",
        paper="Cesa-Bianchi, Shamir 2011",
        guarantee=(
            "regret |U|_1 E|signs| in absolute loss (their minimax analysis), of order |U|_1 "
            "sqrt(n); small sizes"
        ),
        assumes=(
            "every entry comes once and the set of them is known; predictions rounded at "
            "random, not to the sign"
        ),
        example={"shape": (8, 9)},
        problem="binary_trials",
    ),
    Method(
        name="kernel-perceptron",
        home="online.kernel_perceptron:KernelPerceptron",
        room="online",
        paper="Herbster, Pasteris, Pontil 2016, Section 4; Novikoff 1962",
        guarantee=(
            "at most U_i K^-1 U_i' max K_jj mistakes on row i (Novikoff; bounds.binary.novikoff)"
        ),
        assumes="a PSD kernel that is known beforehand, labels without noise",
        example={"kernel": tuple(tuple(1.0 + (i == j) for j in range(9)) for i in range(9))},
        problem="binary_trials",
    ),
    Method(
        name="row-column-majority",
        home="online.row_column:RowColumnMajority",
        room="online",
        paper="folklore",
        guarantee="none: a baseline",
        problem="binary_trials",
    ),
    Method(
        name="goldman-warmuth",
        home="online.goldman_warmuth:GoldmanWarmuth",
        room="online",
        paper="Goldman, Warmuth 1993",
        guarantee=(
            "none for this rule: k n + m sqrt(3 n log2 k) is for weights that also rise where "
            "rows agree"
        ),
        problem="binary_trials",
    ),
    Method(
        name="online-factorization",
        home="online.factorization:OnlineFactorization",
        room="online",
        paper="folklore: stochastic gradients",
        guarantee="none: a baseline",
        example={"rank": 2, "replay": 2},
        problem="binary_trials",
    ),
    Method(
        name="refitted-low-rank",
        home="online.refitted:RefittedLowRank",
        room="online",
        paper="the low-rank completion of this library, fitted again as labels grow",
        guarantee="none: best of the experts of auto where labels are many and noisy",
        problem="binary_trials",
    ),
    Method(
        name="most-informative",
        home="active.cells.most_informative:most_informative",
        room="active",
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
        room="active",
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
        room="active",
        paper="Russo 2016, on row means",
        guarantee="none: names the best row with a posterior probability under its model",
        example={"shape": (14, 10), "budget": 90, "rng": 0},
        problem="cells_oracle",
    ),
    Method(
        name="ucb-e",
        home="active.cells.ucb_e:ucb_e",
        room="active",
        paper="Audibert, Bubeck, Munos 2010; Zhou et al. 2025",
        guarantee="none with its default exploration: the baseline for naming the best row",
        example={"shape": (14, 10), "budget": 60, "batch": 3, "rng": 0},
        problem="cells_oracle",
    ),
)

# Stored studies speak the words of their day. MOVED: a plan that was chosen by a parameter of another one, with the
# value that chose it (ANY: whatever is not None). RENAMED: parameters as they are called now, None where they went.
ANY: Any = object()
MOVED: Mapping[tuple[str, str, Any], str] = {
    ("adaptive-nystrom", "order", "given"): "literal-adaptive-nystrom",
    ("stochastic-nystrom", "epsilon", ANY): "literal-stochastic-nystrom",
    ("bandit-subspace", "schedule", "theorem"): "literal-bandit-subspace",
}
RENAMED: Mapping[str, Mapping[str, str | None]] = {
    "literal-adaptive-nystrom": {"order": None, "block": None, "rng": None},
    "literal-stochastic-nystrom": {"noise": None, "ask_diagonal": None},
    "stochastic-nystrom": {"epsilon": None, "delta": None, "theta": None},
    "subspace": {"k": "rank", "epochs": "rounds"},
    "bandit-subspace": {"k": "rank", "schedule": None},
    "literal-bandit-subspace": {"k": "rank", "schedule": None},
}

_BY_NAME = {method.name: method for method in reversed(METHODS)}
_BY_ROOM = {(method.room, method.name): method for method in METHODS}  # rank-one is in two


def get(name: str, room: Room | None = None) -> Method:
    """Return the method called `name`, hyphens or underscores."""
    name = name.replace("_", "-")
    found = _BY_NAME.get(name) if room is None else _BY_ROOM.get((room, name))
    if found is None:
        known = ", ".join(m.name for m in METHODS if room in (None, m.room))
        kind = "method" if room is None else f"{room} method"
        raise ParameterError(f"no {kind} is called {name!r}; there are {known}")
    return found


def make_plan(name: str, params: Mapping[str, Any]) -> Plan:
    """Return the plan of an active method, its parameters given as plain values."""
    plan = get(name, "active").load()(**params)
    assert isinstance(plan, Plan)
    return plan


def renamed(plan: str, params: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name and the parameters of a plan that an earlier version stored, as this one calls them.

    What needs no other word comes back as it is, so that it may be applied to anything, any number of times.

    >>> renamed("subspace", {"d": 10, "k": 2, "epochs": 4})
    ('subspace', {'d': 10, 'rank': 2, 'rounds': 4})
    >>> renamed("stochastic-nystrom", {"n": 9, "rank": 2, "epsilon": 0.1})
    ('literal-stochastic-nystrom', {'n': 9, 'rank': 2, 'epsilon': 0.1})
    """
    name = plan.replace("_", "-")
    for (old, parameter, value), new in MOVED.items():
        given = params.get(parameter)
        chosen = given is not None and (value is ANY or given == value)
        if name == old and chosen:
            name = new
    words = RENAMED.get(name)
    if words is None:
        return plan, dict(params)
    takes = inspect.signature(get(name, "active").load()).parameters
    found = {}
    for key, value in params.items():
        now = words.get(key, key)
        if now is None:
            continue
        left_open = value is None and now in takes and takes[now].default is not None
        if not left_open:  # what nobody chose has a default of its own now
            found[now] = value
    return name, found
