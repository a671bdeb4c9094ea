"""The numbers of the two-cost family in one table: what each is, and how it was set.

Three kinds of origin occur. *First version*: there from the first version of the plan, not tuned since.
*Development*: came with a later change, by hand, while looking at scenarios of ``benchmarks/noisycur.py`` other than
those on which its bars are measured (it lists the seeds that were looked at); no search over values is recorded.
*Measured*: read off from many fits. Numbers that only guard against round-off stand at the end.
"""

from __future__ import annotations

# money: what buys the first look (buying.py)
ENTRY_PILOT_SHARE = (
    0.02  # of the money, for single entries that show the signal's size; first version
)
ENTRY_PILOT_MOST = 24  # entries of it; first version
ENTRY_PILOT_LEAST = 8  # entries without which their variance says too little; first version
REPEATED_LEAST = 5  # the same where each is measured twice, to learn the noise; first version
ENTRY_PILOT_PART = (
    4  # the pilot is left out where it would take more than one part in so many; first version
)
COLUMN_PILOT_SHARE = 0.08  # of the money, for the first columns; first version
COLUMN_PILOT_MOST = (
    10  # of them: scenarios 1000-1013 showed that the first columns took too much; development
)
ENOUGH_COLUMNS = (
    8  # columns that tell the rank; fewer may leave it to a block of entries; development
)
FEW_COLUMNS_FIRST = 4  # columns bought first where eight are dear but many are likely wanted, or the noise is unknown; first version
DEAR_SHARE = (
    0.15  # of the money, beyond which these four are not bought only to learn the rank; development
)
BLIND_SHARE = 0.5  # of the money, that the first columns may take where nothing else shows the noise; first version
DIFFERENCES = 30  # repeated measurements from which an unknown column noise is taken; first version
ASSUMED_RATIO = (
    10.0  # noise variance of columns over entries, while the latter is unknown; first version
)
BLOCK_SHARE = 0.1  # of the money, that a block of entries may take; development
BLOCK_SIDES = (4, 5, 7, 9, 12)  # rows and columns of the block, as it grows; development
NEARLY_THERE = (
    4  # a last step of at most one part in so many of the columns held is made whole; development
)

# the closed form (risk.py)
BIAS = 0.5  # directions more than there are at which it agrees with real fits on average; measured
SCATTER = 42.0  # over sqrt(m n): directions more or less over which real fits scatter about that; measured
MOST_SCATTER = 0.8  # directions; the scatter of tiny matrices is cut here; development
OVERLAP = 0.3  # where the fixed point starts; any start above 0 leads to it; first version
FIXED_POINT_ROUNDS = 200  # most rounds; first version
FIXED_POINT_TOL = 1e-6  # change of the overlaps at which it stands; first version
NEAR_SPLITS = 64  # splits tried one by one beyond the columns held; first version
FAR_SPLITS = 97  # splits tried over the whole range, evenly; first version

# the rank (ranks.py)
DRAWS = 128  # matrices simulated for each rank; development
TAILS = 8.0  # degrees of freedom of the likelihood: real factors are not Gaussian; development
UNLIKELY = 0.01  # probability below which a rank is left out; development
LEAST_TRIED = 8  # ranks that are tried, or twice the lines seen where that is more; development
MANY_LINES = 16  # lines beyond which the directions seen are the rank, or nearly; development
NEARLY_ALL = (
    0.4  # share of the lines beyond which one direction more than seen is possible; development
)
MANY_COLUMNS = 24  # columns of which not all can be directions of a low-rank matrix; first version
MOST_DIRECTIONS = 0.8  # share of them above which the matrix is not of low rank; first version
ABOVE_NOISE = (
    1.02  # times the largest singular value of pure noise, sqrt(m) + sqrt(d); first version
)
WEAKEST_SIGNAL = 1e-3  # of the spread seen, where noise seems to explain all of it; first version
ASSUMED_RANK = 4  # before anything was seen; that of the paper's experiments; first version
ASSUMED_SIGNAL = 4.0  # times the larger noise variance, before anything was seen; first version

# the fit (fit.py)
MOST_COMPONENTS = 20  # that a fit is given; first version
SPARE_COMPONENTS = 2  # beyond those that the columns show; too many shrink away; first version
FEW_COLUMNS = 12  # columns from which on their own directions are taken as the rank; development
FIT_SWEEPS = 100  # most sweeps of the fit; first version
TOL_FEW, TOL_MANY = (
    1e-4,
    3e-3,
)  # of the fit, below and from FEW_COLUMNS on (loosened from 1e-3 for speed); development
NEGLIGIBLE = 0.02  # lack of fit over noise variance below which seen entries are left to the factors; development
FEW_ENTRIES = 20_000  # entries up to which a suspect fit is started again: it costs up to eight fits; development
SUSPECT = (
    0.1  # lack of fit over noise variance above which a fit may be a poor optimum; development
)
CLEAR_GAIN = 2.0  # nats of evidence by which another fit must be better; development
# how a suspect fit is started again: components more (None: one more, grown in what the fit left), and the seed by which
# some entries are left out at the start (0: none); development
AGAIN = ((None, 0), (1, 0), (-1, 0), (2, 0), (0, 1), (0, 2), (0, 3), (None, 0))
THINNED = 0.2  # share of the entries that is left out then; development
WHOLE = 0.5  # share of a column known from which on its coefficients shape the prior of the others; first version
FIRST_BIAS = 0.01  # variance of the biases over that of the entries, at the start; first version
FIRST_LACK = 0.3  # lack of fit over the variance of the entries at the start: it falls, past poor optima; development
CERTAIN = 1e-6  # covariance of the start over its prior; first version
JOINT_LIMIT = 6e9  # operations of the joint posterior, some seconds; rows and columns are independent beyond; first version
MOST_WIDENING = (
    100.0  # factor by which calibration widens a column's covariance at most; first version
)
NO_CARE = 1e3  # sizes of answers, up or down from one, whose joint posterior needs no other unit
FEW_SEEN = (
    8  # entries below which their spread, and so every error, is anybody's guess; development
)
ERROR_POINTS = 20_000  # entries over which the posterior error is averaged; first version

# the paper's algorithm and the rivals
PENALTIES = (
    1e-7,
    10.0,
    500,
)  # first, last and number tried, over the largest squared singular value; development
TRAITS_LIMIT = (
    2_000_000  # entries up to which the traits for Theorem 1 are measured, by an SVD; development
)
MOST_DRAWN = (
    100_000_000  # entries of the literal algorithm's one batch of rows: 0.8 GB of answers; a guard
)
DENSE_SIDE = (
    300  # smaller side beyond which two_phase solves a given penalty from factors; development
)
NUCLEAR_GAP = 1e-5  # relative duality gap of two_phase's nuclear norm; first version
LEAST_RATE = 1e-12  # of the largest leverage score: every entry may be drawn; first version
SPLIT_STEP = (
    0.1  # Douglas-Rachford step over the largest singular value; first version of that plan
)
SPLIT_TOL = 1e-4  # change over the size of the data at which it stands; first version of that plan

# round-off
CENT = 1e-12  # relative (and absolute) overspending that is round-off of sums of prices
CELL = 1e-9  # added before a quotient of money and price is rounded down
PRICE_POINTS = 100_000  # entries over which prices of their own are averaged
EXACT = 1e-12  # of the signal: what is left of the noise of exact instruments
SAME_SPAN = (
    1e-11  # singular value over the largest below which a column is no new direction, answers exact
)
AGREES = 1e-7  # difference over the largest answer below which exact cells agree with exact columns
TINY = 1e-300  # instead of 0 where one divides
