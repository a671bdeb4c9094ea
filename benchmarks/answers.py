"""Answers as they are, beside what treats them as plain numbers: log-loss, cold lines, bounds, levels, coverage by line.

make bench NAME=answers                          everything but the large fits and the IRT peer
make bench NAME=answers ARGS="--quick"           two seeds of each
make bench NAME=answers ARGS="--irt PYTHON"      also girth's 2PL and 1PL, in a Python that has girth (pip install girth==0.8.0)
make bench NAME=answers ARGS="--cmfrec PYTHON"   also cmfrec with the same features, in a Python that has it and pandas
make bench NAME=answers ARGS="--large"           also 2,000 x 5,000 and 11,785 x 36,259 yes/no answers
make bench NAME=answers ARGS="--only binary,lines"
make bench NAME=answers ARGS="--first 97000"     with other seeds than those of this file
make bench NAME=answers ARGS="--only features --case zoo"   of yes/no answers or features, the data so called
"""

from __future__ import annotations

import argparse
import gzip
import io
import subprocess
import tempfile
import time

import numpy as np

from _shared import Bars, cpu, in_child, show

FIRST = 95_000  # ten seeds from here on: never used for tuning
SHARES = {  # the settings of binary answers and the share known in each
    "senate": (0.05, 0.15, 0.40),
    "house": (0.15, 0.40),
    "alpaca": (0.05, 0.15, 0.40),
    "synthetic": (0.15, 0.40),
}
CLIPS = (
    0.001,
    0.003,
    0.01,
    0.03,
    0.1,
)  # least probability a Gaussian fit is taken to mean; its best is chosen
COVER = (0.885, 0.915)

GIRTH = """
import resource, sys, time
import numpy as np
import girth
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]), int(sys.argv[2])))
file = np.load(sys.argv[1])
NONE = -99999                                      # girth's mark of no answer
Y = np.full(file["shape"], NONE, int)
Y[file["i"], file["j"]] = file["y"]
yes, no = (Y == 1).sum(axis=0), (Y == 0).sum(axis=0)
usable = (yes > 0) & (no > 0)                     # it fits no item with one answer alone
share = (yes + 1) / (yes + no + 2)
known = Y != NONE
R = np.where(known, Y - share, 0.0)[:, usable]
flipped = np.linalg.svd(R, full_matrices=False)[2][0] < 0   # it wants items of one direction
data = np.where(known[:, usable] & flipped, 1 - Y[:, usable], Y[:, usable]).T   # items x persons
best = np.inf
for fit in (girth.twopl_mml, girth.onepl_mml):   # at its best: the better model, at the better of its clips
    start = time.process_time()
    found = fit(data)
    b = found["Difficulty"]
    a = np.broadcast_to(found["Discrimination"], b.shape)
    ability = found["Ability"] if "Ability" in found else girth.ability_eap(data, b, a)
    print(fit.__name__, "seconds", time.process_time() - start)
    P = np.tile(share, (len(Y), 1))
    fitted = 1 / (1 + np.exp(-a * (ability[:, None] - b)))
    P[:, usable] = np.where(flipped, 1 - fitted, fitted)
    for clip in map(float, sys.argv[3:]):
        p = np.clip(np.nan_to_num(P[file["ti"], file["tj"]], nan=0.5), clip, 1 - clip)
        best = min(best, -np.mean(np.where(file["ty"] == 1, np.log(p), np.log(1 - p))))
print("loss", best)
"""


CMFREC = """
import itertools, sys
import numpy as np
import pandas as pd
from cmfrec import CMF
file = np.load(sys.argv[1])
X = pd.DataFrame({"UserId": file["i"], "ItemId": file["j"], "Rating": file["y"]})
sides = {}
for name, key, F in (("U", "UserId", file["F"]), ("I", "ItemId", file["G"])):
    if F.shape[1]:
        frame = pd.DataFrame(F, columns=[f"f{k}" for k in range(F.shape[1])])
        frame.insert(0, key, np.arange(len(F)))
        sides[name] = frame
for rank, penalty, weight in itertools.product((5, 20), (1.0, 10.0, 50.0), (0.5, 5.0)):
    model = CMF(k=rank, lambda_=penalty, w_user=weight, w_item=weight, nthreads=1, verbose=False)
    model.fit(X, **sides)
    off = np.asarray(model.predict(file["ti"], file["tj"]), float) - file["ty"]
    error = np.sqrt(np.mean(off**2))
    print(error if np.isfinite(error) else np.inf)
"""


def yes_or_no(name, seed):
    """Return (rows, cols, answers 0 or 1, shape)."""
    from entrywise import datasets

    if name == "synthetic":
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 150))
        A += 0.5 * rng.standard_normal((200, 1))
        Y = (rng.random(A.shape) < 1 / (1 + np.exp(-A))).astype(float)
        i, j = np.nonzero(Y >= 0)
        return i, j, Y[i, j], Y.shape
    if name == "alpaca":
        seen = datasets.alpaca_eval()
        return seen.rows, seen.cols, (seen.values - 1 > 0.5).astype(float), seen.shape
    seen = datasets.votes(name)
    return seen.rows, seen.cols, (seen.values > 0).astype(float), seen.shape


def log_loss(p, y):
    return float(-np.mean(np.where(y == 1, np.log(p), np.log(1 - p))))


def split(seen, share, seed, kind="random"):
    """Return what is known and what is not: entries at random, or whole rows or columns hidden with this share."""
    rng = np.random.default_rng(seed)
    if kind == "random":
        known = rng.random(len(seen)) < share
    elif kind == "rows":
        known = (rng.random(seen.shape[0]) >= share)[seen.rows]
    else:
        known = (rng.random(seen.shape[1]) >= share)[seen.cols]
    return seen.take(known), seen.take(~known)


def rmse(found, held):
    return float(np.sqrt(np.mean((found.entries(held.rows, held.cols) - held.values) ** 2)))


def binary(bars, seeds, python, case=""):
    from entrywise import Observations
    from entrywise.passive import low_rank

    rows, costs, against = [], [], []
    for name, shares in SHARES.items():
        for share in shares if case in name else ():
            found = []
            for seed in seeds:
                i, j, y, shape = yes_or_no(name, seed)
                kept, held = split(Observations(i, j, y, shape), share, seed)
                slow, plain = cpu(lambda kept=kept: low_rank(kept))
                fast, logit = cpu(lambda kept=kept: low_rank(kept, likelihood="binary"))
                guess = plain.entries(held.rows, held.cols)
                best = min(log_loss(np.clip(guess, c, 1 - c), held.values) for c in CLIPS)
                own = log_loss(logit.probability(held.rows, held.cols), held.values)
                costs.append(fast / slow)
                theirs = girth(python, kept, held) if python and seed == seeds[0] else None
                if theirs is not None:
                    against.append((name, share, own / theirs[0], fast, theirs[1]))
                found.append((own, best, plain.rank, logit.rank, fast / slow))
            means = np.mean(found, axis=0)
            gains = np.array([own / best - 1 for own, best, *_ in found])
            gain, error = float(gains.mean()), float(gains.std(ddof=1) / len(gains) ** 0.5)
            told = f"{100 * gain:+.2f} % (s.e. {100 * error:.2f})"
            rows.append((name, share, *map(float, means), told))
            print(*rows[-1], flush=True)
            bars.at_most(
                f"log-loss, {name} {share:.0%}: change from the clipped Gaussian", gain, 0.005
            )
            if name == "senate" and share >= 0.15:
                bars.at_most(f"log-loss, {name} {share:.0%}: change", gain, -0.015)
            if name == "alpaca" and share == 0.40:
                bars.at_most(f"log-loss, {name} {share:.0%}: change", gain, -0.06)
    show(
        f"held-out log-loss of yes/no answers, {len(seeds)} seeds",
        (
            "data",
            "known",
            "binary",
            "Gaussian at its best clip",
            "its rank",
            "rank",
            "CPU ratio",
            "",
        ),
        rows,
    )
    bars.at_most("CPU of a yes/no fit / a Gaussian one, worst", max(costs), 15)
    if against:
        show(
            "girth, the better of 2PL and 1PL",
            ("data", "known", "log-loss ratio", "our CPU s", "CPU s of its 2PL"),
            against,
        )
        bars.at_most("log-loss / girth 2PL, worst set", max(a[2] for a in against), 1.01)
        bars.at_most("log-loss / girth 2PL, mean", float(np.mean([a[2] for a in against])), 1.0)


def girth(python, kept, held, limit=1200.0):
    """Return (log-loss, CPU seconds of the 2PL) of girth's 2PL or 1PL, the better one at its best clip; None when time is over."""
    words = peer(python, GIRTH, str(int(limit)), *map(str, CLIPS), **arrays_of(kept, held))
    if words is None:
        return None
    return float(words[words.index("loss") + 1]), float(words[words.index("seconds") + 1])


def cmfrec(python, kept, held, F, G):
    """Return the errors of cmfrec with side information over a grid of 12."""
    from entrywise.results import Features

    sides = []
    for given, labels, lines in zip((F, G), (kept.row_labels, kept.col_labels), kept.shape, strict=True):  # fmt: skip
        coded = np.zeros((lines, 0))
        if given is not None:
            coded = Features.of(given, labels, lines, "line")[1]
        sides.append(coded)
    words = peer(python, CMFREC, F=sides[0], G=sides[1], **arrays_of(kept, held))
    return np.full(12, np.nan) if words is None else np.array(words, float)


def arrays_of(kept, held):
    """Return what is known and what is asked, as arrays."""
    return {
        "shape": np.array(kept.shape), "i": kept.rows, "j": kept.cols, "y": kept.values,
        "ti": held.rows, "tj": held.cols, "ty": held.values,
    }  # fmt: skip


def peer(python, script, *words, **arrays):
    """Return what a script prints in another Python, word by word; None when it fails or its time is over."""
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        np.savez(file.name, **arrays)
        command = [python, "-c", script, file.name, *words]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print("peer:", (done.stderr.strip().splitlines() or ["its time is over"])[-1], flush=True)
        return None
    return done.stdout.split()


def made_answers(m, n, known, seed):
    """Return yes/no answers of rank 2: rows, columns, answers, their probabilities; the first 20,000 are for testing."""
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((m, 2)), rng.standard_normal((n, 2))
    b, c = rng.standard_normal(m), rng.standard_normal(n)
    at = np.unique(rng.integers(m * n, size=known + 20_000))
    at = rng.permutation(at)
    i, j = at // n, at % n
    eta = np.einsum("tk,tk->t", U[i], V[j]) + b[i] + c[j]
    p = 1 / (1 + np.exp(-eta))
    return i, j, (rng.random(len(p)) < p).astype(float), p


def many_answers(m, n, known, seed):
    """Fit yes/no answers of rank 2, in a child; return (wall seconds, log-loss, that of the true probabilities)."""

    from entrywise import Observations
    from entrywise.passive import low_rank

    i, j, y, p = made_answers(m, n, known, seed)
    tiny = Observations(i[:500] % 20, j[:500] % 20, y[:500], (20, 20))
    low_rank(tiny, 1, likelihood="binary", max_sweeps=2)  # compiles
    start, worked = time.perf_counter(), time.process_time()
    found = low_rank(Observations(i[20_000:], j[20_000:], y[20_000:], (m, n)), likelihood="binary")
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    own = log_loss(found.probability(i[:20_000], j[:20_000]), y[:20_000])
    truth = log_loss(p[:20_000], y[:20_000])
    return seconds, own, truth, found.rank, found.report["sweeps"], worked


def large(bars, seed, python):
    rows = []
    for m, n, known in ((2000, 5000, 1_000_000), (11_785, 36_259, 4_273_000)):
        _, peak, found = in_child(many_answers, m, n, known, seed)
        rows.append((f"{m} x {n}", known, found[0], peak / 2**30, *found[1:]))
        print(*rows[-1], flush=True)
    show(
        "many yes/no answers",
        ("shape", "known", "wall s", "GB", "log-loss", "of the truth", "rank", "sweeps", "CPU s"),
        rows,
    )
    if python:
        against_girth(bars, seed, python, rows[0][-1])
    bars.at_most("11,785 x 36,259 with 1 % known: minutes", rows[-1][2] / 60, 10)
    bars.at_most("11,785 x 36,259 with 1 % known: GB", rows[-1][3], 8)


def against_girth(bars, seed, python, seconds):
    """Let girth fit the same 2,000 x 5,000 answers, for at most 20 times our CPU time."""
    from entrywise import Observations

    i, j, y, _ = made_answers(2000, 5000, 1_000_000, seed)
    seen = Observations(i, j, y, (2000, 5000))
    test = np.arange(len(seen)) < 20_000
    limit = 20.0 * seconds + 1.0
    found = girth(python, seen.take(~test), seen.take(test), limit)
    ratio = limit / seconds if found is None else found[1] / seconds
    bars.at_least("girth 2PL / ours at 2,000 x 5,000, CPU, at least", ratio, 20)


def films():
    """Return MovieLens-100K with age, sex and occupation of users, genres and year of films."""
    import polars as pl

    from entrywise import datasets

    def table(name):
        path = datasets.local(f"movielens_100k/{name}.csv.gz")
        with gzip.open(str(path)) as file:
            return pl.read_csv(io.BytesIO(file.read()), infer_schema_length=5000)

    year = pl.col("release_date").str.slice(-4).cast(pl.Int64, strict=False).alias("year")
    items = table("items").with_columns(year).drop("title", "release_date")
    return datasets.movielens_100k(), table("users").drop("zip"), items


def animals():
    """Return the traits of the zoo and, for the rows, type and legs."""
    import polars as pl

    from entrywise import datasets

    path = datasets.local("zoo/zoo.npz")
    with np.load(str(path)) as file:
        columns = {"animal": file["animal"].tolist(), "type": file["type"].tolist()}
        frame = pl.DataFrame({**columns, "legs": file["legs"].astype(float)})
    return datasets.zoo(), frame, None


def kinases():
    """Return the KIBA affinities, a row a target, and the targets' similarity."""
    from entrywise import datasets

    seen, similarity = datasets.kiba()
    return seen.transposed(), similarity, None


def as_before(found):
    """Return a plain fit whose lines never seen are the unweighted prior's, as they were before weights."""
    from dataclasses import replace

    rows, cols = found.posterior.rows, found.posterior.cols
    left, right = (
        np.where(counts[:, None] == 0, lines.prior_mean, np.column_stack([factor, offset]))
        for counts, lines, factor, offset in (
            (found.row_counts, rows, found.left, found.row_offset),
            (found.col_counts, cols, found.right, found.col_offset),
        )
    )
    return replace(
        found,
        left=left[:, :-1],
        row_offset=left[:, -1],
        right=right[:, :-1],
        col_offset=right[:, -1],
    )


def ceiling(told, kept, held, G):
    """Return the least error over a grid of forests and boosted trees from features to what films are like.

    The films' factors and biases are those of the fit with features; trees learn them with films weighed by their ratings, and
    stand alone or beside what the fit says of a film. The best is chosen by the test error: what these features can tell.
    """
    from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor
    from sklearn.multioutput import MultiOutputRegressor

    from entrywise.results import Features

    X = Features.of(G, kept.col_labels, kept.shape[1], "column")[1]
    lines = np.column_stack([told.right, told.col_offset])
    users = np.column_stack([told.left, np.ones(len(told.left))])
    warm = kept.col_counts > 0
    grid = [ExtraTreesRegressor(300, min_samples_leaf=leaf, max_features=0.4, random_state=0) for leaf in (6, 12, 25)]  # fmt: skip
    for depth, count in ((2, 60), (3, 60), (3, 150)):
        boosted = GradientBoostingRegressor(
            max_depth=depth, n_estimators=count, learning_rate=0.05, subsample=0.7,
            min_samples_leaf=8, max_features=0.4, random_state=0,
        )  # fmt: skip
        grid.append(MultiOutputRegressor(boosted))
    rest = held.values - told.offset - told.row_offset[held.rows]
    errors = [rmse(told, held)]
    for model in grid:
        model.fit(X[warm], lines[warm], sample_weight=kept.col_counts[warm])
        foretold = model.predict(X)
        for guess in (foretold, 0.5 * (foretold + lines)):
            off = rest - np.einsum("tk,tk->t", users[held.rows], guess[held.cols])
            errors.append(float(np.sqrt(np.mean(off**2))))
    return min(errors)


def features(bars, seeds, python=None, case=""):
    from entrywise import complete
    from entrywise.passive import low_rank

    zoo, kiba, ml = animals(), kinases(), films()
    cases = (
        ("zoo, cold rows", zoo, "rows", 0.2, 0.70),
        ("zoo, 40 % known", zoo, "random", 0.4, 0.86),
        ("KIBA, cold targets", kiba, "rows", 0.2, 0.88),
        ("ML-100K, cold items", ml, "cols", 0.2, 0.93),
        ("ML-100K, 80 % known", ml, "random", 0.8, 0.997),
    )
    cases = [some for some in cases if case in some[0]]
    rows, reached = [], []
    for name, (seen, F, G), kind, share, bar in cases:
        found = []
        for seed in seeds:
            kept, held = split(seen, share, seed, kind)
            plain = low_rank(kept)
            told = low_rank(kept, row_features=F, col_features=G)
            theirs = np.full(12, np.nan)
            if python and (name.startswith("zoo") or seed in seeds[:3]):
                theirs = cmfrec(python, kept, held, F, G)
            errors = (rmse(told, held), rmse(plain, held), rmse(as_before(plain), held))
            found.append((*errors, *theirs))
            if name == "ML-100K, cold items" and seed in seeds[:5]:
                reached.append((errors[0] / errors[1], ceiling(told, kept, held, G) / errors[1]))
        own, now, before, *peers = np.array(found).T
        ratio, earlier = own / now, float((own / before).mean())
        error = float(ratio.std(ddof=1) / np.sqrt(len(ratio)))
        means = [float(x.mean()) for x in (own, now, before, ratio)]
        each = each_error = one = float("nan")
        if python:
            played = ~np.isnan(peers[0])
            peers = np.array(peers)[:, played]  # (12, splits)
            ratios = own[played] / peers.min(axis=0)
            each, each_error = float(ratios.mean()), float(ratios.std(ddof=1) / len(ratios) ** 0.5)
            one = float(np.mean(own[played] / peers[peers.mean(axis=1).argmin()]))
        rows.append((name, *means, error, earlier, each, each_error, one))
        print(*rows[-1], flush=True)
        if python:
            bars.at_most(
                f"features, {name}: RMSE / cmfrec's best of 12, each split's own", each, 1.0
            )
            bars.at_most(f"features, {name}: RMSE / cmfrec's best of 12 over all splits", one, 1.0)
        bars.at_most(f"features, {name}: RMSE / plain", float(ratio.mean()), bar)
        bars.at_most(f"features, {name}: RMSE / plain, cold lines unweighted", earlier, bar)
        bars.at_most(f"features, {name}: ratio + 2 s.e.", float(ratio.mean()) + 2 * error, 1.0)
    show(
        f"RMSE with features, {len(seeds)} splits (plain: lines never seen weighted by counts; before: not)",
        (
            "case",
            "features",
            "plain",
            "plain before",
            "ratio to plain",
            "s.e.",
            "ratio to before",
            "to cmfrec's best of each split",
            "s.e.",
            "to its best over all",
        ),
        rows,
    )
    if reached:
        show(
            f"ML-100K, cold items, {len(reached)} splits: RMSE / plain",
            ("ours", "trees from the same features, the best of each split by its test error"),
            [tuple(map(float, np.mean(reached, axis=0)))],
        )
    rows = []
    for name, (seen, *_), kind, share, _ in cases:
        found = []
        for seed in seeds[:3]:
            kept, held = split(seen, share, seed, kind)
            rng = np.random.default_rng(seed)
            noise = [rng.standard_normal((size, 20)) for size in seen.shape]
            told = low_rank(kept, row_features=noise[0], col_features=noise[1])
            found.append(rmse(told, held) / rmse(low_rank(kept), held))
        rows.append((name, float(np.mean(found))))
        bars.at_most(f"20 features of noise a side, {name}: RMSE / plain", rows[-1][1], 1.005)
    show("features of pure noise, 3 splits", ("case", "ratio"), rows)
    rows = []
    for name, (seen, F, G), kind, share, _ in [some for some in cases if "cold" in some[0]]:
        covers = []
        for seed in seeds[:5]:
            kept, held = split(seen, share, seed, kind)
            told = complete(kept, likelihood="gaussian", bounds=(-np.inf, np.inf), row_features=F, col_features=G)  # fmt: skip
            low, high = told.interval(held.rows, held.cols, 0.9)
            covers.append(float(np.mean((low <= held.values) & (held.values <= high))))
        rows.append((name, float(np.mean(covers)), min(covers), max(covers)))
        bars.at_least(f"cold 90 % intervals, {name}: cover", rows[-1][1], 0.87)
        bars.at_most(f"cold 90 % intervals, {name}: cover", rows[-1][1], 0.93)
    show("90 % intervals of cold lines", ("case", "cover", "least", "most"), rows)


def covered(found, held, level=0.9):
    """Return coverage, mean width, and the share of rows with 50 held entries or more that cover below .8."""
    low, high = found.interval(held.rows, held.cols, level)
    inside = (low <= held.values) & (held.values <= high)
    m = found.shape[0]
    counts, hits = np.bincount(held.rows, minlength=m), np.bincount(held.rows, inside, m)
    many = counts >= 50
    poor = hits[many] < 0.8 * counts[many]
    return (
        float(inside.mean()),
        float(np.mean(high - low)),
        float(poor.mean()) if many.any() else 0.0,
    )


def bounds(bars, seeds):
    from entrywise import complete, datasets

    rows = []
    cases = (
        ("alpaca", datasets.alpaca_eval(), (1, 2), 0.28),
        ("senate", datasets.votes("senate"), (-1, 1), 0.35),
    )
    for name, seen, ends, bar in cases:
        found = []
        for seed in seeds:
            kept, held = split(seen, 0.5, seed)
            free = complete(kept, likelihood="gaussian", bounds=(-np.inf, np.inf))
            kept_in = complete(kept, likelihood="gaussian", bounds=ends)
            a, b = covered(free, held), covered(kept_in, held)
            found.append((b[1] / a[1] - 1, b[0] - a[0], b[0]))
        change, apart, cover = np.mean(found, axis=0)
        rows.append((name, f"{100 * change:.1f} %", float(apart), float(cover)))
        bars.at_most(f"bounds, {name}: change of width", float(change), -bar)
        bars.at_most(f"bounds, {name}: change of coverage", abs(float(apart)), 0.002)
    show("90 % intervals clipped to the range", ("data", "width", "coverage", "cover"), rows)


def levels(bars, seeds):
    from scipy.special import ndtr

    from entrywise import Observations, complete, datasets
    from entrywise.passive import low_rank

    jokes = datasets.jester(complete_rows=True)
    few = jokes.rows < 2000
    in_five = np.clip(np.floor((jokes.values[few] + 10) / 4), 0, 4) + 1
    jester = Observations(jokes.rows[few], jokes.cols[few], in_five, (2000, 100))
    rows = []
    cases = (
        ("Jester in 5 levels", jester, 0.2),
        ("Jester in 5 levels", jester, 0.6),
        ("ML-100K", datasets.movielens_100k(), 0.3),
        ("ML-100K", datasets.movielens_100k(), 0.8),
    )
    for name, seen, share in cases:
        found = []
        for seed in seeds:
            kept, held = split(seen, share, seed)
            own, plain = complete(kept, likelihood="ordinal"), low_rank(kept)
            at = np.arange(len(held))
            came = held.values.astype(int) - 1
            middle = plain.entries(held.rows, held.cols)
            spread = plain.deviation(held.rows, held.cols)
            below = ndtr((np.arange(1.5, 5) - middle[:, None]) / spread[:, None])
            even = np.diff(below, axis=1, prepend=0.0, append=1.0)[at, came]
            score = own.probability(held.rows, held.cols)[at, came]
            sets = own.levels(held.rows, held.cols, 0.9)
            found.append((-np.log(score).mean(), -np.log(even).mean(), sets[at, came].mean(), sets.sum(axis=1).mean()))  # fmt: skip
        score, even, cover, size = map(float, np.mean(found, axis=0))
        rows.append((name, share, score, even, f"{100 * (score / even - 1):.2f} %", cover, size))
        print(*rows[-1], flush=True)
        bars.at_most(f"levels, {name} {share:.0%}: change of log score", score / even - 1, -0.008)
        bars.at_least(f"levels, {name} {share:.0%}: sets cover", cover, 0.88)
        bars.at_most(f"levels, {name} {share:.0%}: sets cover", cover, 0.92)
    show(
        "levels against cuts at halves",
        ("data", "known", "log score", "cuts at halves", "", "90 % sets cover", "their size"),
        rows,
    )


def family(name, seed):
    """Return (known, held) of a real set or a made one of the interval benchmark."""
    from entrywise import Observations, datasets

    rng = np.random.default_rng(seed)
    real = {
        "AlpacaEval": (datasets.alpaca_eval, 0.5),
        "KIBA": (lambda: datasets.kiba()[0], 0.5),
        "Oboe": (lambda: datasets.oboe()[0], 0.4),
    }
    if name in real:
        make, share = real[name]
        return split(make(), share, seed)
    m, n = 200, 150
    A = rng.standard_normal((m, 2)) @ rng.standard_normal((2, n))
    if name == "even noise":
        A = A + 0.5 * rng.standard_normal((m, n))
    elif name == "noisy rows":
        A = A + 0.3 * np.exp(0.7 * rng.standard_normal((m, 1))) * rng.standard_normal((m, n))
    elif name == "heavy tails":
        A = A + 0.3 * rng.standard_t(3, (m, n))
    else:  # curved
        u, v = 3 * rng.random(m), 3 * rng.random(n)
        A = np.sin(2 * u[:, None] + v) + 0.5 * np.cos(u[:, None] * v)
        A = A + 0.1 * rng.standard_normal((m, n))
    i, j = np.nonzero(np.ones((m, n)))
    return split(Observations(i, j, A[i, j], (m, n)), 0.4, seed)


def lines(bars, seeds):
    from entrywise import intervals

    rows = []
    names = ("AlpacaEval", "KIBA", "Oboe", "even noise", "noisy rows", "heavy tails", "curved")
    narrower = intervals.NARROWER
    for name in names:
        found = []
        for seed in seeds:
            kept, held = family(name, seed)
            own = covered(intervals.conformal(kept, rng=seed), held)
            intervals.NARROWER = 0.0  # no scales of lines: as it was
            before = covered(intervals.conformal(kept, rng=seed), held)
            intervals.NARROWER = narrower
            found.append((*own, *before))
        means = [float(x) for x in np.mean(found, axis=0)]
        rows.append((name, *means, means[1] / means[4]))
        print(*rows[-1], flush=True)
        bars.at_least(f"lines, {name}: cover", means[0], COVER[0])
        bars.at_most(f"lines, {name}: cover", means[0], COVER[1])
        bars.at_most(f"lines, {name}: width / before", means[1] / means[4], 1.0)
        if name in names[:3]:
            bars.at_most(f"lines, {name}: rows below .8 / before", means[2] / means[5], 0.5)
    show(
        f"90 % intervals by row, {len(seeds)} seeds",
        (
            "data",
            "cover",
            "width",
            "rows < .8",
            "cover before",
            "width before",
            "rows < .8 before",
            "width ratio",
        ),
        rows,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--irt", help="a Python that has girth")
    parser.add_argument("--cmfrec", help="a Python that has cmfrec and pandas")
    parser.add_argument("--first", type=int, default=FIRST, help="the first of the seeds")
    parser.add_argument("--case", default="", help="words in the names of the data")
    parser.add_argument("--only", default="binary,features,bounds,levels,lines")
    options = parser.parse_args()
    bars = Bars()
    seeds = range(options.first, options.first + (2 if options.quick else 10))
    chosen = options.only.split(",")
    if "binary" in chosen:
        binary(bars, seeds, options.irt, options.case)
    if "features" in chosen:
        features(bars, seeds, options.cmfrec, options.case)
    if "bounds" in chosen:
        bounds(bars, seeds)
    if "levels" in chosen:
        levels(bars, seeds)
    if "lines" in chosen:
        lines(bars, seeds)
    if options.large:
        large(bars, options.first, options.irt)
    bars.end()


if __name__ == "__main__":
    main()
