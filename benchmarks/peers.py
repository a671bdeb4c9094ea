"""entrywise beside the packages that people would take instead: same data, time, error, calibration.

make bench NAME=peers                        all parts; the page docs/peers-measured.txt is written anew
make bench NAME=peers ARGS="--only crowd"    one part, printed only

A package that is not installed, or that fails, is named with its reason. CPU seconds of one thread, in one process,
on a warm start (what compiles is run once before, on the same data: small problems take other roads). Seeds were
fixed before the first run.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import platform
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from _shared import cpu, show

warnings.filterwarnings("ignore")
SEED = 80_216
PAGE = Path(__file__).parent.parent / "docs" / "peers-measured.txt"
PACKAGES = ("cmfrec", "scikit-learn", "gcimpute", "crowd-kit", "choix", "evalica", "girth")
GLAD_LABELS = 5_000  # crowd-kit's GLAD takes a minute beyond
NONE = -99999  # girth's mark of no answer


@dataclass(frozen=True)
class Line:
    """What one method did: error (in the part's unit), CPU seconds, what it says of its own error."""

    name: str
    error: float
    seconds: float
    trust: str


def attempt(name: str, call: Callable[[], Line]) -> Line:
    """Return what a peer did, or why it did nothing."""
    try:
        return call()
    except ImportError as error:
        return Line(name, np.nan, np.nan, f"not installed ({error.name})")
    except Exception as error:
        return Line(name, np.nan, np.nan, f"{type(error).__name__}: {str(error)[:60]}")


def rmse(guess: Any, truth: Any) -> float:
    return float(np.sqrt(np.mean((np.asarray(guess) - truth) ** 2)))


def held_by(low: Any, high: Any, truth: Any) -> str:
    return f"90 % intervals hold {np.mean((low <= truth) & (truth <= high)):.1%}"


# --- a table with gaps -----------------------------------------------------------------------------------------------


def movielens() -> tuple[str, list[Line]]:
    """MovieLens-100K, a tenth of the ratings held out."""
    from entrywise import datasets

    kept, held = datasets.movielens_100k().split(0.1, np.random.default_rng(SEED))
    lines = [ours_completed(kept, held)]
    for penalty in (10.0, None):
        name = "cmfrec, its defaults" if penalty is None else "cmfrec, k 10, lambda 10"
        lines.append(attempt(name, lambda n=name, p=penalty: cmfrec(n, kept, held, p)))
    lines += imputers(kept, held, iterative=False)
    return "MovieLens-100K: 943 x 1,682, 90,000 ratings known, RMSE of 10,000 others", lines


def jester() -> tuple[str, list[Line]]:
    """Jester, 500 users who rated all 100 jokes, a third known."""
    import entrywise as ew
    from entrywise import datasets

    full = datasets.jester(complete_rows=True).to_dense()
    rng = np.random.default_rng(SEED)
    part = ew.Observations.from_dense(full[rng.permutation(len(full))[:500]])
    kept, held = part.split(2 / 3, rng)
    lines = [ours_completed(kept, held)]
    lines.append(attempt("gcimpute", lambda: gcimpute(kept, held)))
    lines.append(
        attempt("cmfrec, its defaults", lambda: cmfrec("cmfrec, its defaults", kept, held, None))
    )
    lines += imputers(kept, held, iterative=True)
    return "Jester: 500 x 100, a third of the ratings known, RMSE of the others", lines


def ours_completed(kept: Any, held: Any) -> Line:
    import entrywise as ew

    ew.complete(kept)  # compile
    seconds, found = cpu(lambda: ew.complete(kept))
    low, high = found.interval(held.rows, held.cols, 0.9)
    guess = found.entries(held.rows, held.cols)
    return Line("entrywise", rmse(guess, held.values), seconds, held_by(low, high, held.values))


def cmfrec(name: str, kept: Any, held: Any, penalty: float | None) -> Line:
    import pandas as pd
    from cmfrec import CMF

    frame = pd.DataFrame({"UserId": kept.rows, "ItemId": kept.cols, "Rating": kept.values})
    given = {} if penalty is None else {"k": 10, "lambda_": penalty}
    model = CMF(nthreads=1, verbose=False, **given)
    seconds, _ = cpu(lambda: model.fit(frame))
    guess = np.nan_to_num(model.predict(held.rows, held.cols), nan=kept.values.mean())
    return Line(name, rmse(guess, held.values), seconds, "says nothing")


def gcimpute(kept: Any, held: Any) -> Line:
    from gcimpute.gaussian_copula import GaussianCopula

    X = kept.to_dense()
    model = GaussianCopula()
    seconds, filled = cpu(lambda: model.fit_transform(X))
    ends = model.get_confidence_interval(alpha=0.9)
    low, high = (np.asarray(ends[side])[held.rows, held.cols] for side in ("lower", "upper"))
    guess = np.asarray(filled)[held.rows, held.cols]
    return Line("gcimpute", rmse(guess, held.values), seconds, held_by(low, high, held.values))


def imputers(kept: Any, held: Any, iterative: bool) -> list[Line]:
    """Return scikit-learn's imputers; the iterative one takes hours where there are many columns."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

    X = kept.to_dense()
    models = [
        SimpleImputer(keep_empty_features=True),
        KNNImputer(n_neighbors=20, keep_empty_features=True),
    ]
    if iterative:
        models.append(IterativeImputer(max_iter=5, random_state=0))
    lines = []
    for model in models:
        seconds, filled = cpu(lambda m=model: m.fit_transform(X))
        guess = filled[held.rows, held.cols]
        name = f"scikit-learn {type(model).__name__}"
        lines.append(Line(name, rmse(guess, held.values), seconds, "says nothing"))
    if not iterative:
        lines.append(
            Line(
                "scikit-learn IterativeImputer",
                np.nan,
                np.nan,
                "not run: a regression for each of 1,682 columns",
            )
        )
    return lines


# --- labels of a crowd -----------------------------------------------------------------------------------------------


def crowd(name: str) -> tuple[str, list[Line]]:
    """One public set of labels with gold."""
    import pandas as pd

    from entrywise import datasets
    from entrywise.apply.crowd import consensus

    seen, gold = datasets.crowd(name)
    item, worker, label = seen.rows, seen.cols, seen.values.astype(int)
    answered = np.unique(item)
    checked = answered[gold[answered] >= 0]
    consensus(item, worker, label)  # compile
    seconds, found = cpu(lambda: consensus(item, worker, label))
    labels = pd.Series(found.labels, index=found.items)[checked]
    sure = pd.Series(found.confidence, index=found.items)[checked]
    right = labels.to_numpy() == gold[checked]
    lines = [Line("entrywise", 100 * np.mean(~right), seconds, calibration(sure.to_numpy(), right))]
    frame = pd.DataFrame({"task": item, "worker": worker, "label": label})
    peers = ["MajorityVote", "DawidSkene", "OneCoinDawidSkene"]
    if len(item) < GLAD_LABELS:
        peers.append("GLAD")
    for peer in peers:
        lines.append(attempt(f"crowd-kit {peer}", lambda p=peer: crowdkit(p, frame, checked, gold)))
    title = f"{name}: {len(answered):,} items, {len(np.unique(worker)):,} workers, {len(item):,} labels; wrong labels in %"
    return title, lines


def crowdkit(name: str, frame: Any, checked: Any, gold: Any) -> Line:
    import crowdkit.aggregation as peers

    model = getattr(peers, name)()
    seconds, said = cpu(lambda: model.fit_predict(frame))
    right = said[checked].to_numpy() == gold[checked]
    table = getattr(model, "probas_", None)
    if table is None:
        return Line(f"crowd-kit {name}", 100 * np.mean(~right), seconds, "says nothing")
    sure = table.max(axis=1)[checked].to_numpy()
    return Line(f"crowd-kit {name}", 100 * np.mean(~right), seconds, calibration(sure, right))


def calibration(sure: Any, right: Any, bins: int = 10) -> str:
    """Return what was said and what was right, and their mean distance over bins of equal size."""
    known = np.isfinite(sure)
    sure, right = sure[known], right[known]
    order = np.argsort(sure, kind="stable")
    parts = np.array_split(order, bins)
    apart = [len(p) * abs(sure[p].mean() - right[p].mean()) for p in parts if len(p)]
    return f"said {sure.mean():.3f}, right {right.mean():.3f}, calibration error {sum(apart) / len(sure):.3f}"


# --- comparisons -----------------------------------------------------------------------------------------------------


def ranking() -> tuple[str, list[Line]]:
    """Games of the Bradley-Terry model: the truth is known.

    Items that never won or never lost are left out with their games: without a prior they have no finite score, and
    spoil those of the others.
    """
    n, t, spread = 100, 4000, 2.0
    rng = np.random.default_rng(SEED)
    truth = rng.normal(0, spread, n)
    a = rng.integers(0, n, t)
    b = (a + rng.integers(1, n, t)) % n
    a_won = rng.random(t) < 1 / (1 + np.exp(truth[b] - truth[a]))
    won, lost = np.where(a_won, a, b), np.where(a_won, b, a)
    counted = np.intersect1d(won, lost)
    while not (keep := np.isin(won, counted) & np.isin(lost, counted)).all():
        won, lost = won[keep], lost[keep]
        counted = np.intersect1d(won, lost)
    won, lost = np.searchsorted(counted, won), np.searchsorted(counted, lost)
    truth = truth[counted] - truth[counted].mean()
    lines = [ours_ranked(won, lost, truth)]
    lines.append(attempt("choix opt_pairwise", lambda: choix(won, lost, truth)))
    for draws in (0, 200):
        name = f"evalica, bootstrap of {draws}" if draws else "evalica bradley_terry"
        lines.append(attempt(name, lambda m=name, d=draws: evalica(m, won, lost, truth, d)))
    title = f"Ranking: {len(counted)} items, {len(won):,} games, spread of the log odds 2 (made); RMSE of the log odds"
    return title, lines


def ours_ranked(won: Any, lost: Any, truth: Any) -> Line:
    from entrywise.apply.ranking import rank

    rank(won, lost)  # compile
    seconds, found = cpu(lambda: rank(won, lost))
    place = np.argsort(np.asarray(found.items))
    score = found.score[place]
    low, high = (end[place] - score.mean() for end in found.interval(0.9))
    held = held_by(low, high, truth)
    return Line("entrywise", rmse(score - score.mean(), truth), seconds, held)


def choix(won: Any, lost: Any, truth: Any) -> Line:
    import choix as peer

    games = list(zip(won.tolist(), lost.tolist(), strict=True))
    seconds, score = cpu(lambda: peer.opt_pairwise(len(truth), games, alpha=0.01))
    return Line("choix opt_pairwise", rmse(score - score.mean(), truth), seconds, "says nothing")


def evalica(name: str, won: Any, lost: Any, truth: Any, draws: int) -> Line:
    import evalica as peer

    def log_odds(at: Any) -> Any:
        wins = [peer.Winner.X] * len(at)
        found = peer.bradley_terry(won[at].tolist(), lost[at].tolist(), wins)
        score = np.full(len(truth), np.nan)
        score[np.asarray(found.scores.index, int)] = np.log(found.scores.to_numpy())
        return score - np.nanmean(score)

    seconds, score = cpu(lambda: log_odds(np.arange(len(won))))
    if not draws:
        return Line(name, rmse(score, truth), seconds, "says nothing by itself")
    rng = np.random.default_rng(SEED)
    again = [rng.integers(0, len(won), len(won)) for _ in range(draws)]
    seconds, drawn = cpu(lambda: [log_odds(at) for at in again])
    low, high = np.nanquantile(drawn, (0.05, 0.95), axis=0)
    return Line(name, rmse(score, truth), seconds, held_by(low, high, truth))


# --- yes/no answers --------------------------------------------------------------------------------------------------


def votes() -> tuple[str, list[Line]]:
    """House votes of 1984, two fifths known."""
    import entrywise as ew
    from entrywise import datasets

    seen = datasets.votes("house")
    seen = ew.Observations.from_triplets(
        seen.rows, seen.cols, (seen.values > 0).astype(float), seen.shape
    )
    kept, held = seen.split(0.6, np.random.default_rng(SEED))
    ew.complete(kept)  # compile
    seconds, found = cpu(lambda: ew.complete(kept))
    p = found.probability(held.rows, held.cols)
    lines = [
        Line("entrywise", log_loss(p, held.values), seconds, calibration(*sided(p, held.values)))
    ]
    lines.append(attempt("girth twopl_mml", lambda: girth(kept, held)))
    return "House votes of 1984: 435 x 16, two fifths known; log-loss of the others", lines


def girth(kept: Any, held: Any) -> Line:
    """Its 2PL model; items are turned to one direction first, which it wants."""
    import girth as peer

    Y = np.full(kept.shape, NONE, int)
    Y[kept.rows, kept.cols] = kept.values
    known = Y != NONE
    share = ((Y == 1).sum(axis=0) + 1) / (known.sum(axis=0) + 2)
    residual = np.where(known, Y - share, 0.0)
    turned = np.linalg.svd(residual, full_matrices=False)[2][0] < 0
    data = np.where(known & turned, 1 - Y, Y).T  # items x persons
    peer.twopl_mml(data)  # compile
    seconds, found = cpu(lambda: peer.twopl_mml(data))
    a, b, ability = found["Discrimination"], found["Difficulty"], found["Ability"]
    fitted = 1 / (1 + np.exp(-a * (ability[:, None] - b)))
    chance = np.where(turned, 1 - fitted, fitted)[held.rows, held.cols]
    p = np.clip(np.nan_to_num(chance, nan=0.5), 1e-3, 1 - 1e-3)
    return Line(
        "girth twopl_mml", log_loss(p, held.values), seconds, calibration(*sided(p, held.values))
    )


def log_loss(p: Any, y: Any) -> float:
    return float(-np.mean(np.where(y == 1, np.log(p), np.log(1 - p))))


def sided(p: Any, y: Any) -> tuple[Any, Any]:
    """Return how sure the likelier answer is, and whether it was the answer."""
    return np.maximum(p, 1 - p), (p > 0.5) == (y == 1)


# --- kernels ---------------------------------------------------------------------------------------------------------


def kernels() -> tuple[str, list[Line]]:
    """An RBF kernel of the digits from 100 of its columns."""
    from sklearn.datasets import load_digits
    from sklearn.kernel_approximation import Nystroem
    from sklearn.metrics.pairwise import rbf_kernel

    from entrywise.estimators import AdaptiveNystroem

    X = load_digits().data / 16
    gamma = 0.1
    K = rbf_kernel(X, gamma=gamma)
    lines = []
    for name, make in (
        ("entrywise AdaptiveNystroem", AdaptiveNystroem),
        ("scikit-learn Nystroem", Nystroem),
    ):
        errors, times, told = [], [], "says nothing"
        for seed in range(5):
            model = make(kernel="rbf", gamma=gamma, n_components=100, random_state=SEED + seed)
            model.fit(X).transform(X)  # compile
            seconds, Z = cpu(lambda m=model: m.fit(X).transform(X))
            errors.append(float(np.linalg.norm(K - Z @ Z.T) / np.linalg.norm(K)))
            times.append(seconds)
            if hasattr(model, "max_error_"):
                largest = float(np.abs(K - Z @ Z.T).max())
                told = f"largest error {largest:.3f}, certified {model.max_error_:.3f}"
        lines.append(Line(name, float(np.mean(errors)), float(np.mean(times)), told))
    return "RBF kernel of 1,797 digits from 100 columns, 5 seeds; relative Frobenius error", lines


PARTS: dict[str, tuple[Callable[[], tuple[str, list[Line]]], ...]] = {
    "table": (movielens, jester),
    "crowd": tuple(lambda n=n: crowd(n) for n in ("rte", "bluebird", "web", "product")),
    "ranking": (ranking,),
    "votes": (votes,),
    "kernel": (kernels,),
}


def cells(lines: list[Line]) -> list[tuple[str, str, str, str]]:
    """Return a row a method: name, error, CPU time as a multiple of ours, trust; the best error is marked."""
    best = np.nanmin([line.error for line in lines])
    ours = lines[0].seconds
    rows = []
    for line in lines:
        error = "" if np.isnan(line.error) else f"{line.error:.3g}"
        mark = " (best)" if error and line.error <= best * 1.0005 else ""
        time = "" if np.isnan(line.seconds) else times(line.seconds / ours)
        rows.append((line.name, error + mark, time, line.trust))
    return rows


def times(ratio: float) -> str:
    """Return a ratio by two digits, never as a power of ten."""
    return f"{float(f'{ratio:.2g}'):g}"


COLUMNS = ("method", "error", "CPU time, ours = 1", "what it says of its own error")


def page(found: list[tuple[str, list[Line]]]) -> str:
    """Return the tables as reStructuredText, with date and versions."""
    versions = [f"{name} {version(name)}" for name in ("entrywise", "numpy", "scipy", *PACKAGES)]
    today = datetime.date.today().isoformat()
    head = f"Measured on {today} with Python {platform.python_version()}, {', '.join(versions)}."
    parts = [head, ""]
    for title, lines in found:
        parts += [f".. list-table:: {title}", "   :header-rows: 1", "   :widths: 28 14 14 44", ""]
        for row in (COLUMNS, *cells(lines)):
            parts += [
                f"   {'* -' if k == 0 else '  -'} {cell}".rstrip() for k, cell in enumerate(row)
            ]
        parts.append("")
    return "\n".join(parts)


def version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def main() -> None:
    from threadpoolctl import threadpool_limits

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=tuple(PARTS))
    only = parser.parse_args().only
    found = []
    with threadpool_limits(1):
        for name in [only] if only else PARTS:
            for part in PARTS[name]:
                found.append(part())
                show(found[-1][0], COLUMNS, cells(found[-1][1]))
    if only is None:
        PAGE.write_text(page(found))
        print(f"written: {PAGE.name}")


if __name__ == "__main__":
    main()
