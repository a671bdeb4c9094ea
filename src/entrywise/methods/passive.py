"""Methods of completion: the entries are given."""

from __future__ import annotations

from entrywise.methods.method import Method, of_room

METHODS = of_room(
    "passive",
    Method(
        name="low-rank",
        home="passive.low_rank:low_rank",
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
        paper="Hastie, Mazumder, Lee, Zadeh 2015, Algorithm 3.1",
        guarantee="the minimiser of squared error plus nuclear norm (a convex problem)",
        assumes="a penalty above 0, sweeps until convergence",
        example={"penalty": 1.0},
        problem="known_entries",
    ),
    Method(
        name="nuclear-norm",
        home="passive.nuclear_norm:nuclear_norm",
        paper="Candès, Plan 2010; Toh, Yun 2010",
        guarantee="the minimiser, to a duality gap that is computed and stated (convex duality)",
        assumes="none beyond finite answers",
        example={"penalty": 1.0},
        problem="known_entries",
    ),
    Method(
        name="iterative-svd",
        home="passive.iterative_svd:iterative_svd",
        paper="Troyanskaya et al. 2001",
        guarantee="none: a fixed point of filling and truncating",
        example={"rank": 2},
        problem="known_entries",
    ),
    Method(
        name="optspace",
        home="passive.optspace:optspace",
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
        paper="Zhou, Wilkinson, Schreiber, Pan 2008",
        guarantee="none: a stationary point of the ridge-penalised squared error",
        example={"rank": 2, "penalty": 0.1},
        problem="known_entries",
    ),
    Method(
        name="rank-one",
        home="passive.rank_one:rank_one",
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
        paper="Hendrickx, Olshevsky, Saligrama 2020, Algorithm 2",
        guarantee="error polynomial in the disturbance (Theorem 4, Corollary 2)",
        assumes="known bounds on the entries, connected known entries",
        example={"low": 0.05, "high": 20.0},
        problem="multiplicative_table",
    ),
    Method(
        name="propagation",
        home="passive.propagation:propagation",
        paper="Bonald, Combes 2017",
        guarantee="exact (by construction): the baseline",
        assumes="no noise, connected known entries",
        problem="multiplicative_table",
    ),
    Method(
        name="alternating-minimization",
        home="passive.alternating_minimization:alternating_minimization",
        paper="Li, Liang, Risteski 2016",
        guarantee="none: a stationary point of the squared error, the baseline",
        problem="multiplicative_table",
    ),
    Method(
        name="partial-pca",
        home="passive.partial_pca:partial_pca",
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
        paper="Chi, Eldar, Calderbank 2013, Algorithm 1",
        guarantee="none: a baseline of partial PCA",
        example={"rank": 2},
        problem="seen_samples",
    ),
    Method(
        name="grouse",
        home="passive.trackers.grouse:grouse",
        paper="Balzano, Nowak, Recht 2010",
        guarantee="none: a baseline of partial PCA",
        example={"rank": 2},
        problem="seen_samples",
    ),
    Method(
        name="streaming-pca",
        home="passive.trackers.streaming_pca:streaming_pca",
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
        paper="Warmuth, Kuzmin 2008, on moments of partly seen samples",
        guarantee="none on partly seen samples: its regret bound is for whole ones",
        example={"rank": 2},
        problem="seen_samples",
    ),
    Method(
        name="capped-msg",
        home="passive.trackers.capped_msg:capped_msg",
        paper="Arora, Cotter, Srebro 2013, on moments of partly seen samples",
        guarantee="none: with a cap below d it may stop at a local optimum",
        example={"rank": 2},
        problem="seen_samples",
    ),
    Method(
        name="zero-fill-pca",
        home="passive.trackers.zero_fill_pca:zero_fill_pca",
        paper="folklore",
        guarantee="none: a baseline, biased wherever attributes are seen unevenly",
        example={"rank": 2},
        problem="seen_samples",
    ),
    Method(
        name="impute-pca",
        home="passive.trackers.impute_pca:impute_pca",
        paper="folklore: PCA of completed samples",
        guarantee="none: a baseline",
        example={"rank": 2},
        problem="seen_samples",
    ),
)
