"""Yes/no answers and features in what is bought: gains and row means against dense algebra, plans, studies, imputers."""

from __future__ import annotations

import csv
import json

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit

import entrywise as ew
from entrywise.active import most_informative, row_scores, top_two
from entrywise.active.cells.answer_model import AnswerModel
from entrywise.active.cells.calibration import row_means
from entrywise.active.cells.designs import greedy_columns
from entrywise.active.cells.left_out import FOLDS, folds_within_rows, left_out_residuals
from entrywise.apply.leaderboard import Bought, rehearse, scores
from entrywise.exceptions import DataError, ParameterError
from entrywise.linalg.gain import Gains
from entrywise.linalg.greedy import pick
from entrywise.oracles import MatrixOracle
from entrywise.passive import low_rank
from entrywise.results.kept_features import extend_features, in_words, keep_features, open_features


def votes(m, n, seed, size=1.5):
    """Probabilities of rank 1 with biases, and yes/no answers drawn from them."""
    rng = np.random.default_rng(seed)
    A = size * np.outer(rng.standard_normal(m), rng.standard_normal(n))
    P = expit(A + rng.standard_normal((m, 1)) + 0.5 * rng.standard_normal(n))
    return P, (rng.random(P.shape) < P).astype(float)


@pytest.fixture(scope="module")
def fitted():
    _, Y = votes(12, 9, 3)
    known = np.random.default_rng(4).random(Y.shape) < 0.5
    i, j = np.nonzero(known)
    seen = ew.Observations.from_triplets(i, j, 3.0 * Y[i, j] - 1.0, Y.shape)  # answers -1 and 2
    return low_rank(seen, 2, likelihood="binary"), seen, known


class Dense:
    """A fit of yes/no answers with whole matrices."""

    def __init__(self, fit):
        m, n = fit.shape
        self.U = np.column_stack([fit.left, np.ones(m)])
        self.V = np.column_stack([fit.right, np.ones(n)])
        self.Cu, self.Cv = fit.posterior.rows.cov.copy(), fit.posterior.cols.cov.copy()
        self.mean = fit.latent(*np.indices(fit.shape))

    def variance(self, i, j):
        shared = np.trace(self.Cu[i][:-1, :-1] @ self.Cv[j][:-1, :-1])
        return self.V[j] @ self.Cu[i] @ self.V[j] + self.U[i] @ self.Cv[j] @ self.U[i] + shared

    def slope(self, i, j):
        """The mean of sigma' under the logit's normal, by quadrature."""
        x, w = np.polynomial.hermite_e.hermegauss(60)
        y = expit(self.mean[i, j] + np.sqrt(self.variance(i, j)) * x)
        return float((w / w.sum()) @ (y * (1.0 - y)))

    def slopes(self):
        m, n = self.mean.shape
        return np.array([[self.slope(i, j) for j in range(n)] for i in range(m)])


def dense_gain(g, w, i, j, open_, by_sum):
    """The fall of the variance of expected answers: learn of (i, j), sum over the open cells of its row and column."""
    d = 1.0 / w[i, j] + g.variance(i, j)
    x, z = g.Cu[i] @ g.V[j], g.Cv[j] @ g.U[i]
    along = [3.0 * w[i, c] * (g.V[c] @ x) for c in np.flatnonzero(open_[i])]
    row = sum(along) ** 2 if by_sum else sum(y * y for y in along)
    column = sum((3.0 * w[r, j] * (g.U[r] @ z)) ** 2 for r in np.flatnonzero(open_[:, j]))
    return (row + column) / d


@pytest.mark.parametrize("by_sum", [False, True])
def test_gains_of_yes_and_no_equal_their_definition(fitted, by_sum):
    fit, seen, known = fitted
    gains = Gains.of(fit, seen.rows, seen.cols, by_sum=by_sum)
    ((_, gain, variance),) = gains.blocks()
    g = Dense(fit)
    w = g.slopes()
    for i, j in np.argwhere(~known):
        assert gain[i, j] == pytest.approx(dense_gain(g, w, i, j, ~known, by_sum), rel=2e-3)
        assert variance[i, j] == pytest.approx((3.0 * w[i, j]) ** 2 * g.variance(i, j), rel=2e-3)


@pytest.mark.parametrize("by_sum", [False, True])
def test_cells_are_picked_as_a_slow_greedy_rule_does(fitted, by_sum):
    fit, seen, known = fitted
    price = np.random.default_rng(1).uniform(0.5, 2.0, known.shape)
    gains = Gains.of(fit, seen.rows, seen.cols, by_sum=by_sum)
    bits = np.packbits(~known, axis=1)
    rows, cols = pick(gains, bits, lambda r: price[r], 8.0, 100, slack=0.0)
    slow, open_, money = Dense(fit), ~known, 8.0
    w, first = slow.slopes(), (~known).copy()  # noise stays what it was before the batch
    for a, b in zip(rows, cols, strict=True):
        rates = np.full(known.shape, -1.0)
        for r, c in np.argwhere(open_):
            if price[r, c] <= money + 1e-9:
                counted = np.where(np.arange(12)[:, None] == r, first, open_) if by_sum else open_
                rates[r, c] = dense_gain(slow, w, r, c, counted, by_sum) / price[r, c]
        assert rates[a, b] >= 0.995 * rates.max()
        d = 1.0 / w[a, b] + slow.variance(a, b)
        x, z = slow.Cu[a] @ slow.V[b], slow.Cv[b] @ slow.U[a]
        slow.Cu[a] -= np.outer(x, x) / d
        slow.Cv[b] -= np.outer(z, z) / d
        open_[a, b] = False
        money -= price[a, b]
    assert len(rows) >= 4


def test_what_is_out_is_known_to_the_covariances(fitted):
    fit, seen, _ = fitted
    gains, g = Gains.of(fit, seen.rows, seen.cols), Dense(fit)
    gains.take(np.array([2]), np.array([5]))
    x = g.Cu[2] @ g.V[5]
    after = g.Cu[2] - np.outer(x, x) / (1.0 / g.slope(2, 5) + g.variance(2, 5))
    a, b = np.triu_indices(len(after))
    np.testing.assert_allclose(gains.Cu[2], after[a, b], rtol=1e-3)


@pytest.mark.slow
def test_row_means_of_yes_and_no_are_those_of_draws(fitted):
    fit, seen, known = fitted
    mean, variance = row_means(fit, seen.rows, seen.cols, seen.values)
    full = np.where(known, seen.to_dense(), fit.to_dense())
    np.testing.assert_allclose(mean, full.mean(axis=1), rtol=1e-10)
    rng, g, draws = np.random.default_rng(0), Dense(fit), []
    for _ in range(4000):  # factors from the posterior, answers from the probabilities
        U = np.array(
            [rng.multivariate_normal(u, C) for u, C in zip(_means(fit, 0), g.Cu, strict=True)]
        )
        V = np.array(
            [rng.multivariate_normal(v, C) for v, C in zip(_means(fit, 1), g.Cv, strict=True)]
        )
        eta = fit.offset + U[:, :-1] @ V[:, :-1].T + U[:, -1:] + V[:, -1]
        answers = -1.0 + 3.0 * (rng.random(eta.shape) < expit(eta))
        draws.append(np.where(known, full, answers).mean(axis=1))
    np.testing.assert_allclose(mean, np.mean(draws, axis=0), atol=0.03)
    np.testing.assert_allclose(np.sqrt(variance), np.std(draws, axis=0), rtol=0.12)


def _means(fit, axis):
    sides = ((fit.left, fit.row_offset), (fit.right, fit.col_offset))
    return np.column_stack(sides[axis])


def test_columns_for_a_new_row_are_those_of_least_variance():
    _, Y = votes(60, 12, 5)
    fit = low_rank(ew.Observations.from_dense(Y), 1, likelihood="binary")
    best = greedy_columns(fit, np.ones(12, bool), np.ones(12), 1.0)[0]
    V = np.column_stack([fit.right, np.ones(12)])
    C = fit.posterior.rows.prior_cov
    prior = fit.posterior.rows.prior_mean
    eta = fit.offset + V @ prior + fit.col_offset
    w = np.array([_slope(e, v @ C @ v) for e, v in zip(eta, V, strict=True)])
    rest = []
    for j in range(12):  # the variance of the sum of the others, once j is known
        x = C @ V[j]
        after = C - np.outer(x, x) / (V[j] @ x + 1.0 / w[j])
        s = (w[:, None] * V).sum(axis=0) - w[j] * V[j]
        rest.append(s @ after @ s + w.sum() - w[j])
    assert rest[best] <= 1.02 * min(rest)


def _slope(mean, variance):
    x, w = np.polynomial.hermite_e.hermegauss(60)
    y = expit(mean + np.sqrt(variance) * x)
    return float((w / w.sum()) @ (y * (1.0 - y)))


@pytest.mark.slow
def test_a_purchase_of_votes_speaks_in_probabilities_and_its_sets_cover():
    _, Y = votes(40, 30, 6)
    plan = most_informative(
        Y.shape, budget=700, rank=1, likelihood="auto", reserve=0.3, growth=1.5, rng=0
    )
    run = ew.Run(plan)
    found = ew.play(run, MatrixOracle(Y))
    assert found.is_binary
    assert found.bounds == (0.0, 1.0)
    assert "the reserve was drawn first" in found.certificate.checked[0]
    i, j = np.nonzero(np.ones(Y.shape, bool))
    assert np.all((found.entries(i, j) > 0) & (found.entries(i, j) < 1))
    open_ = np.ones(Y.shape, bool)
    open_[run.facts.rows, run.facts.cols] = False
    i, j = np.nonzero(open_)
    inside = found.levels(i, j, 0.9)[np.arange(len(i)), Y[i, j].astype(int)]
    assert 0.84 < inside.mean() < 0.97


def test_numbers_stay_numbers_and_three_values_are_refused_by_name():
    A = np.add.outer(np.arange(8.0), np.arange(6.0))
    found = ew.play(most_informative(A.shape, budget=30, likelihood="auto", rng=0), MatrixOracle(A))
    assert not found.is_binary
    with pytest.raises(DataError, match="two values"):
        ew.play(most_informative(A.shape, budget=30, likelihood="binary", rng=0), MatrixOracle(A))
    with pytest.raises(ParameterError, match="likelihood of a plan"):
        most_informative((3, 3), budget=1, likelihood="poisson")
    with pytest.raises(ParameterError, match="bounds must be"):
        row_scores((3, 3), budget=1, bounds=(1, 0))
    with pytest.raises(DataError, match="lie in the bounds"):
        ew.play(most_informative(A.shape, budget=30, bounds=(0, 3), rng=0), MatrixOracle(A))


def test_bounds_clip_the_intervals_of_a_purchase():
    P, _ = votes(20, 15, 2)
    found = ew.play(
        most_informative(P.shape, budget=120, bounds=(0, 1), rank=1, rng=0), MatrixOracle(P)
    )
    low, high = found.interval(*np.indices(P.shape), 0.99)
    assert low.min() >= 0.0
    assert high.max() <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("plan", [top_two, row_scores])
def test_the_best_row_and_the_scores_of_yes_and_no(plan):
    _, Y = votes(10, 60, 8)
    Y[4] = (np.random.default_rng(0).random(60) < 0.97).astype(float)
    found = ew.play(
        plan(Y.shape, budget=240, likelihood="binary", bounds=(0, 1), rng=0), MatrixOracle(Y)
    )
    assert found.is_binary
    assert int(np.argmax(found.to_dense().mean(axis=1))) == 4


def described(m, n, seed):
    """A matrix whose rows follow from two features, a gap in one of them, and the features."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((m, 2))
    A = F @ rng.standard_normal((2, n)) + 0.1 * rng.standard_normal((m, n))
    F[1, 0] = np.nan
    return A, F


@pytest.mark.slow
@pytest.mark.parametrize("plan", [most_informative, row_scores])
def test_rows_that_cannot_be_bought_follow_from_their_features(plan):
    A, F = described(40, 15, 1)
    may = np.ones(A.shape, bool)
    may[30:] = False
    error = []
    for features in (None, F):
        made = plan(A.shape, budget=300, rank=2, available=may, row_features=features, rng=3)
        found = ew.play(made, MatrixOracle(A))
        error.append(np.sqrt(np.mean((found.to_dense() - A)[30:] ** 2)))
    assert error[1] < 0.5 * error[0]


@pytest.mark.slow
def test_scores_rest_on_fits_with_the_features_of_the_lines():
    A, F = described(60, 15, 1)
    A = A + 2.0 * F[:, 1:]
    rng = np.random.default_rng(2)
    known = rng.random(A.shape) < 0.2
    known[:, 0] |= ~known.any(axis=1)  # a cell of every row at least
    seen = ew.Observations.from_dense(np.where(known, A, np.nan))
    model = AnswerModel.of(A.shape, row_features=F)
    board = scores(None, Bought.from_table(seen, model))
    plain = scores(None, Bought.from_table(seen))
    truth = A.mean(axis=1)
    assert np.mean((board.mean - truth) ** 2) < 0.5 * np.mean((plain.mean - truth) ** 2)
    assert np.mean(board.high - board.low) < 0.7 * np.mean(plain.high - plain.low)
    assert np.mean((board.low <= truth) & (truth <= board.high)) >= 0.85
    fit = low_rank(seen, row_features=F)
    fold = folds_within_rows(seen.rows, FOLDS, np.random.default_rng(0))
    left = left_out_residuals(seen, fit.rank, model=model)
    for f in range(FOLDS):  # no fit without the features, none with the cell it judges
        out = fold == f
        part = low_rank(seen.take(~out), fit.rank, row_features=F)
        np.testing.assert_allclose(
            left[out], seen.values[out] - part.entries(seen.rows[out], seen.cols[out])
        )
    assert "without the features" in scores(fit, Bought.from_table(seen)).how
    assert "without the features" not in board.how


@pytest.mark.slow
def test_rows_never_seen_are_scored_by_their_features():
    """Their intervals are as wide as hidden rows are off: they cover, and say more than how rows differ."""
    inside, width, spread = [], [], []
    for seed in range(6):
        A, F = described(60, 15, 100 + seed)
        A = A + 2.0 * F[:, 1:] + 0.5 * np.random.default_rng(seed).standard_normal((60, 1))
        known = np.random.default_rng(seed).random(A.shape) < 0.4
        known[40:] = False
        seen = ew.Observations.from_dense(np.where(known, A, np.nan))
        board = scores(None, Bought.from_table(seen, AnswerModel.of(A.shape, row_features=F)))
        truth = A.mean(axis=1)
        inside.append((board.low <= truth)[40:] & (truth <= board.high)[40:])
        width.append(board.high[40] - board.low[40])
        spread.append(2 * 1.645 * np.std(truth[:40]))
    assert np.mean(width) < 0.5 * np.mean(spread)
    assert 0.8 <= np.mean(inside) <= 0.97  # of 120 rows


def test_a_report_of_a_table_takes_features(tmp_path):
    from typer.testing import CliRunner

    from entrywise.cli.app import app

    A, F = described(20, 10, 5)
    known = np.random.default_rng(0).random(A.shape) < 0.3
    known[:, 0] = True
    lines = ["," + ",".join(f"c{j}" for j in range(10))]
    for i in range(20):
        cells = [str(x) if there else "" for x, there in zip(A[i], known[i], strict=True)]
        lines.append(f"r{i}," + ",".join(cells))
    (tmp_path / "board.csv").write_text("\n".join(lines) + "\n")
    order = np.random.default_rng(1).permutation(20)  # matched by label
    told = [f"r{i},{'' if np.isnan(F[i, 0]) else F[i, 0]},{F[i, 1]}" for i in order]
    (tmp_path / "rows.csv").write_text("row,one,two\n" + "\n".join(told) + "\n")

    def report(*words):
        words = ["leaderboard", "report", str(tmp_path / "board.csv"), "--format", "csv", *words]
        return CliRunner().invoke(app, words)

    done = report("--row-features", str(tmp_path / "rows.csv"))
    assert done.exit_code == 0, done.output
    shown = {x["model"]: float(x["score"]) for x in csv.DictReader(done.stdout.splitlines())}
    seen = ew.Observations.from_dense(np.where(known, A, np.nan))
    frame = pl.DataFrame({"one": F[:, 0], "two": F[:, 1]}).with_columns(pl.all().fill_nan(None))
    board = scores(None, Bought.from_table(seen, AnswerModel.of(A.shape, row_features=frame)))
    np.testing.assert_allclose([shown[f"r{i}"] for i in range(20)], board.mean, rtol=1e-6)
    refused = report("--row-features", str(tmp_path / "rows.csv"), "--judge", "judge.csv")
    assert refused.exit_code == 1
    assert "--judge takes numbers without features" in str(refused.exception)


@pytest.mark.slow
def test_a_rehearsal_takes_the_likelihood():
    _, Y = votes(15, 40, 9)
    seen = ew.Observations.from_dense(Y)
    told = rehearse(seen, (0.4,), goals=("scores",), repeats=2, likelihood="binary", bounds=(0, 1))
    assert 0 < told.lines[0].error < 0.2


def test_features_are_kept_as_json_and_grow():
    import polars as pl

    frame = pl.DataFrame({"name": ["b", "a"], "size": [2.0, None], "kind": ["x", "y"]})
    kept = keep_features(frame, ("a", "b", "c"), 3, "row")
    assert kept == {"columns": {"size": [None, 2.0, None], "kind": ["y", "x", None]}}
    more = pl.DataFrame({"name": ["d"], "kind": ["y"], "other": [1]})
    longer = extend_features(kept, more, ("d", "e"), 2, "row")
    assert longer["columns"]["kind"] == ["y", "x", None, "y", None]
    assert longer["columns"]["size"] == [None, 2.0, None, None, None]
    assert in_words(longer) == "5 lines: size, kind"
    wrong = pl.DataFrame({"name": ["d"], "size": ["large"]})
    with pytest.raises(DataError, match="'size' of the features holds numbers"):
        extend_features(kept, wrong, ("d",), 1, "row")
    array = keep_features(np.eye(2, 3), None, 2, "row")
    np.testing.assert_array_equal(open_features(array), np.eye(2, 3))
    grown = open_features(extend_features(array, [[1, 2, 3]], None, 1, "row"))
    np.testing.assert_array_equal(grown[2], [1, 2, 3])
    kernel = keep_features(np.eye(2), None, 2, "row")
    with pytest.raises(DataError, match="similarity"):
        extend_features(kernel, None, None, 1, "row")
    assert len(open_features(extend_features(kernel, np.eye(3), None, 1, "row"))) == 3


def test_sparse_features_are_kept_and_grow():
    from scipy.sparse import csr_array

    X = csr_array(np.eye(3, 70_000))
    kept = keep_features(X, None, 3, "row")
    longer = open_features(extend_features(kept, None, None, 1, "row"))
    assert longer.shape == (4, 70_000)
    assert abs(longer[:3] - X).sum() == 0


@pytest.fixture
def tables(tmp_path):
    A, F = described(24, 10, 4)
    with open(tmp_path / "rows.csv", "w") as file:
        file.write("name,one,two\n")
        for k, (x, y) in enumerate(F[:20]):
            file.write(f"r{k},{'' if np.isnan(x) else x},{y}\n")
    with open(tmp_path / "new.csv", "w") as file:
        file.write("name,two,one\n")
        for k, (x, y) in enumerate(F[20:], 20):
            file.write(f"r{k},{y},{x}\n")
    (tmp_path / "cols.csv").write_text("name\n" + "".join(f"c{k}\n" for k in range(10)))
    return A, F, tmp_path


def answer(study, A, most):
    """Answer up to so many questions."""
    told = 0
    while told < most:
        asked = study.ask(most - told)
        if not asked:
            return
        told += study.tell([(q.id, float(A[q.index])) for q in asked])


@pytest.mark.slow
def test_a_study_keeps_features_and_takes_those_of_new_rows(tables):
    from typer.testing import CliRunner

    from entrywise.cli.app import app

    A, F, folder = tables
    db = str(folder / "a.db")

    def call(*words):
        done = CliRunner().invoke(app, [str(w) for w in words])
        assert done.exit_code == 0, done.output
        return done.output

    call(
        *(
            "study",
            "create",
            db,
            "s",
            "--plan",
            "most-informative",
            "--seed",
            "1",
            "--budget",
            "90",
        ),
        *("--rows", folder / "rows.csv", "--cols", folder / "cols.csv", "--rank", "2"),
        *("--row-features", folder / "rows.csv", "--bounds=-20,20"),
    )
    study = ew.Study.open(db, "s")
    answer(study, A, 60)
    call("study", "extend", db, "s", "--rows", folder / "new.csv", "--budget", "1")
    study = ew.Study.open(db, "s")
    kept = study.store.record("s").params["row_features"]
    np.testing.assert_allclose(kept["columns"]["two"], F[:, 1])
    assert study.status()["params"]["row_features"] == "24 lines: one, two"
    found = study.result()
    assert found.bounds == (-20.0, 20.0)
    off = found.to_dense()[20:] - A[20:]  # nothing of these rows was told
    assert np.sqrt(np.mean(off**2)) < 0.7 * A.std()
    study.export(folder / "s.zip")
    again = ew.Study.load(str(folder / "b.db"), folder / "s.zip")
    np.testing.assert_array_equal(again.result().to_dense(), found.to_dense())
    forked = study.fork("t", params={"row_features": None})
    assert forked.result().row_features is None
    study.check()


@pytest.mark.slow
def test_a_leaderboard_of_votes_with_features(tmp_path):
    from typer.testing import CliRunner

    from entrywise.cli.app import app

    with open(tmp_path / "models.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["model", "family"])
        table.writerows([f"m{k}", "ab"[k % 2]] for k in range(10))
    (tmp_path / "tasks.csv").write_text("task\n" + "".join(f"t{k}\n" for k in range(8)))
    (tmp_path / "new.csv").write_text("model,family\nn0,a\n")
    db = str(tmp_path / "b.db")
    words = ["leaderboard", "create", db, "--rows", str(tmp_path / "models.csv")]
    words += ["--cols", str(tmp_path / "tasks.csv"), "--budget", "50", "--seed", "0"]
    words += ["--row-features", str(tmp_path / "models.csv"), "--likelihood", "binary"]
    done = CliRunner().invoke(app, [*words, "--bounds", "0,1", "--currency", "EUR"])
    assert done.exit_code == 0, done.output
    study = ew.Study.open(db, "leaderboard")
    Y = np.zeros((11, 8))
    Y[::2] = 1.0
    Y[0, 0] = 0.0
    answer(study, Y, 50)
    add = ["leaderboard", "add", db, "--rows", str(tmp_path / "new.csv"), "--budget", "1"]
    done = CliRunner().invoke(app, add)
    assert "added with 1 EUR to spend" in done.stderr
    study = ew.Study.open(db, "leaderboard")
    found = study.result()
    assert found.is_binary
    assert found.probability(10, np.arange(8)).min() > 0.5  # its family says yes
    done = CliRunner().invoke(app, ["leaderboard", "report", db, "--format", "json"])
    assert "of 51 EUR" in done.stderr
    lines = json.loads(done.stdout)
    ends = [line[key] for line in lines for key in ("score", "low", "high")]
    assert min(ends) >= 0.0  # the study knows its bounds
    assert max(ends) <= 1.0


def test_new_votes_are_folded_in_with_their_features(tmp_path):
    rng = np.random.default_rng(0)
    F = rng.standard_normal((300, 1))
    eta = 2.0 * F @ rng.standard_normal((1, 25)) + 0.5 * rng.standard_normal(25)
    Y = (rng.random(eta.shape) < expit(eta)).astype(float)
    seen = ew.Observations.from_dense(np.where(rng.random(Y.shape) < 0.5, Y, np.nan)[:250])
    fit = low_rank(seen, likelihood="binary", row_features=F[:250])
    none = ew.Observations(np.zeros(0, int), np.zeros(0, int), np.zeros(0), (50, 25))
    folded = fit.fold_in(none, features=F[250:])
    guess = folded.probability(*np.indices((50, 25)))
    error = np.sqrt(np.mean((guess - expit(eta[250:])) ** 2))
    assert error < 0.5 * np.std(expit(eta[250:]))
    some = ew.Observations.from_dense(np.where(rng.random((50, 25)) < 0.3, Y[250:], np.nan))
    both = fit.fold_in(some, features=F[250:]).probability(*np.indices((50, 25)))
    alone = fit.fold_in(some).probability(*np.indices((50, 25)))
    true = expit(eta[250:])
    assert np.mean((both - true) ** 2) < np.mean((alone - true) ** 2)
    np.testing.assert_allclose(logit(guess[:3, :3]), logit(folded.entries(*np.indices((3, 3)))))
