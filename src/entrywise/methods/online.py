"""Learners: nature chooses; predict, then learn."""

from __future__ import annotations

from entrywise.methods.method import Method, of_room

METHODS = of_room(
    "online",
    Method(
        name="auto",
        home="online.majority:auto",
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
        paper="Herbster, Pasteris, Pontil 2016, Corollary 3.2",
        guarantee="at most 12 times the bound of Matrix Winnow at the best rate (Corollary 3.2)",
        assumes="as Theorem 3.1",
        problem="binary_trials",
    ),
    Method(
        name="symmetric-winnow",
        home="online.symmetric:SymmetricWinnow",
        paper="Hazan, Kale, Shalev-Shwartz 2012, without projection",
        guarantee="none: usually the fewest mistakes of a single learner, measured",
        problem="binary_trials",
    ),
    Method(
        name="hazan",
        home="online.hazan:HazanKaleShalevShwartz",
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
        paper="folklore",
        guarantee="none: a baseline",
        problem="binary_trials",
    ),
    Method(
        name="goldman-warmuth",
        home="online.goldman_warmuth:GoldmanWarmuth",
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
        paper="folklore: stochastic gradients",
        guarantee="none: a baseline",
        example={"rank": 2, "replay": 2},
        problem="binary_trials",
    ),
    Method(
        name="refitted-low-rank",
        home="online.refitted_low_rank:RefittedLowRank",
        paper="the low-rank completion of this library, fitted again as labels grow",
        guarantee="none: best of the experts of auto where labels are many and noisy",
        problem="binary_trials",
    ),
)
