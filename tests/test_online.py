"""Matrix Winnow and its family against the literal algorithm: dense eigendecompositions, line by line."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entrywise.bounds.binary import adversary
from entrywise.exceptions import DataError, ParameterError
from entrywise.gallery import bicluster_trials
from entrywise.linalg import _jit_ends
from entrywise.linalg.lanczos import GrowingExponential
from entrywise.observations import Observations
from entrywise.online import (
    Doubling,
    Learner,
    Majority,
    MatrixWinnow,
    OnlineFactorization,
    RefittedLowRank,
    RowColumnMajority,
    SymmetricWinnow,
    auto,
    majority,
)
from entrywise.passive import low_rank


def exp(S):
    eigenvalues, V = np.linalg.eigh(S)
    return (V * np.exp(eigenvalues)) @ V.T


def literal(m, n, trials, gamma, slack=0.0, tie=1e-9):
    """Algorithm 1 as printed: W whole, one eigendecomposition an update; a tie within 1e-9 is a tie."""
    log_W = math.log(1.0 / (m + n)) * np.eye(m + n)
    W = np.eye(m + n) / (m + n)
    predictions = []
    for i, j, y in trials:
        x = np.zeros(m + n)
        x[i] = x[m + j] = math.sqrt(0.5)
        q = x @ W @ x * (m + n)
        predictions.append(1 if q >= 1.0 - tie else -1)
        if predictions[-1] != y or y * (q - 1.0) < slack - tie:
            log_W += gamma * y * np.outer(x, x)
            W = exp(log_W)
    return np.array(predictions), log_W - math.log(1.0 / (m + n)) * np.eye(m + n)


def literal_symmetric(m, n, trials, gamma, slack, tie=1e-12):
    """f from the whole exponential; paths of ten edges give f = 1e-10, so a tie is narrow."""
    B = np.zeros((m, n))
    E = np.eye(m + n)
    predictions = []
    for i, j, y in trials:
        f = 2.0 * E[i, m + j] / (E[i, i] + E[m + j, m + j])
        predictions.append(1 if f >= -tie else -1)
        if predictions[-1] != y or y * f < slack - tie:
            B[i, j] += gamma * y
            E = exp(np.block([[np.zeros((m, m)), B], [B.T, np.zeros((n, n))]]))
    return np.array(predictions)


CONFIGURATIONS = [  # m, n, k, l, gamma, noise
    (30, 30, 2, 2, 0.25, 0.0),
    (30, 30, 3, 3, 0.577, 0.0),
    (30, 45, 4, 3, 1.0, 0.1),
    (45, 30, 2, 5, 2.0, 0.0),
    (50, 50, 3, 3, 1.0, 0.0),
    (40, 60, 5, 5, 0.447, 0.2),
]


@pytest.mark.parametrize(("m", "n", "k", "l", "gamma", "noise"), CONFIGURATIONS)
def test_same_mistakes_as_the_literal_algorithm(m, n, k, l, gamma, noise):
    trials = bicluster_trials(m, n, k, l, noise, seed=m + n + k)[:1200]
    rows, cols, labels = np.array(trials).T
    wanted, _ = literal(m, n, trials, gamma)
    found, learner = MatrixWinnow(gamma).follow(rows, cols, labels)
    np.testing.assert_array_equal(found, wanted)
    assert learner.mistakes == (wanted != labels).sum()
    assert learner.work["mean_steps"] <= 3.0
    assert learner.work["max_steps"] <= 10


@pytest.mark.parametrize("slack", [0.05, 0.1, 0.5])
def test_slack_same_as_literal(slack):
    trials = bicluster_trials(25, 20, 3, 3, 0.05, seed=1)
    rows, cols, labels = np.array(trials).T
    wanted, _ = literal(25, 20, trials, 1.0, slack)
    found, learner = MatrixWinnow(1.0, slack=slack).follow(rows, cols, labels)
    np.testing.assert_array_equal(found, wanted)
    assert learner.updates > learner.mistakes


@pytest.mark.parametrize(
    ("gamma", "slack", "noise"), [(1.0, 0.2, 0.0), (0.5, 0.0, 0.1), (2.0, 0.4, 0.0)]
)
def test_symmetric_same_as_literal(gamma, slack, noise):
    trials = bicluster_trials(25, 30, 3, 4, noise, seed=2)
    rows, cols, labels = np.array(trials).T
    found, _ = SymmetricWinnow(gamma, slack).follow(rows, cols, labels)
    np.testing.assert_array_equal(found, literal_symmetric(25, 30, trials, gamma, slack))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gamma", "slack", "noise"), [(0.5, 0.0, 0.2), (2.0, 0.0, 0.1), (1.0, 0.1, 0.0)]
)
def test_dense_same_as_lanczos_and_does_not_drift(gamma, slack, noise):
    rows, cols, labels = np.array(bicluster_trials(30, 25, 4, 4, noise, seed=9)).T
    wanted, sparse = MatrixWinnow(gamma, slack).follow(rows, cols, labels)
    found, learner = MatrixWinnow(gamma, slack, dense=True).follow(rows, cols, labels)
    np.testing.assert_array_equal(found, wanted)
    E = learner._memory.exponential._E
    np.testing.assert_allclose(E, exp(sparse._memory.exponential.dense()), atol=1e-11 * E.max())


def test_margins_are_the_quadratic_forms():
    m, n = 12, 9
    trials = bicluster_trials(m, n, 3, 3, 0.1, seed=3)
    rows, cols, labels = np.array(trials).T
    _, S = literal(m, n, trials, 1.0)
    learner = MatrixWinnow(1.0).learn_many(rows, cols, labels)
    E = exp(S)
    for i, j, _ in trials[:30]:
        q = 0.5 * (E[i, i] + E[m + j, m + j]) + E[i, m + j]
        assert learner.margin(i, j) == pytest.approx(q - 1.0, abs=1e-9)
    assert learner.margin(99, 0) == pytest.approx(0.5 * (1.0 + E[m, m]) - 1.0, abs=1e-9)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.3, 1.0, 2.0]), st.booleans())
@settings(max_examples=25)
def test_trace_stays_below_golden_thompson(seed, gamma, symmetric):
    """Also against the adversary that makes every prediction wrong."""
    rng = np.random.default_rng(seed)
    learner = SymmetricWinnow(gamma, 0.0) if symmetric else MatrixWinnow(gamma)
    for _ in range(60):
        i, j = (int(x) for x in rng.integers(5, size=2))
        learner = learner.learn(i, j, -learner.predict(i, j))
    exponential = learner._memory.exponential
    eigenvalues = np.linalg.eigvalsh(exponential.dense())
    unused = exponential.n_vertices - exponential.n_active
    assert np.exp(eigenvalues).sum() - unused <= exponential.trace_bound * (1 + 1e-9)


@given(
    st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 2.0, 6.0]), st.booleans(), st.booleans()
)
@settings(max_examples=40)
def test_the_spectrum_lies_between_the_ends(seed, gamma, symmetric, wrong):
    """At every trial, also against the adversary, after a copy, and from a log that does not know the ends."""
    rng = np.random.default_rng(seed)
    m, n, slack = int(rng.integers(1, 9)), int(rng.integers(1, 9)), float(rng.choice([0.0, 0.3]))
    learner = SymmetricWinnow(gamma, slack) if symmetric else MatrixWinnow(gamma, slack)
    for _ in range(40):
        i, j = int(rng.integers(m)), int(rng.integers(n))
        learner = learner.learn(i, j, -learner.predict(i, j) if wrong else int(rng.choice([-1, 1])))
        exponential = learner._memory.exponential
        eigenvalues = np.linalg.eigvalsh(exponential.dense())
        low, high = exponential.ends
        assert low <= eigenvalues[0] <= eigenvalues[-1] <= high
        assert low <= 0.0 <= high
    log = exponential.log()
    bare = GrowingExponential(gamma, symmetric=symmetric, margin=slack)
    bare.replay({k: v for k, v in log.items() if k != "end"})
    for again in (exponential.copy(len(log["u"])), bare):
        low, high = again.ends
        assert low <= eigenvalues[0] <= eigenvalues[-1] <= high
        us, vs = (
            x.ravel().astype(np.int64)
            for x in np.meshgrid(np.unique(log["u"]), np.unique(log["v"]))
        )
        np.testing.assert_array_equal(again.signs(us, vs), exponential.signs(us, vs))


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=40)
def test_a_factorization_tells_what_the_largest_eigenvalue_does(seed, symmetric):
    """Edges that cancelled, separate parts and stars included: positive definite just above, not just below."""
    rng = np.random.default_rng(seed)
    rows, cols = 2 + np.arange(int(rng.integers(1, 7))), 12 + np.arange(int(rng.integers(1, 7)))
    k = int(rng.integers(1, 30))
    ys = rng.choice(np.array([-1, 1], np.int8), k)
    grown = GrowingExponential(0.7, symmetric=symmetric)
    log = {"u": rng.choice(rows, k), "v": rng.choice(cols, k), "y": ys, "delta": np.full(k, 1e3)}
    grown.replay(log)
    touched, place = np.zeros(len(grown._count), np.int32), np.zeros(len(grown._count), np.int32)
    size, first = _jit_ends.halves(
        touched, len(grown._count), place, grown._start, grown._count, grown._pool
    )
    assert size == grown.n_active
    assert 2 * first <= size
    used = np.sort(touched[:size]) - 2
    top = np.linalg.eigvalsh(grown.dense()[np.ix_(used, used)])[-1]
    scale = grown.gamma * (1.0 if symmetric else 0.5)
    graph = (grown._start, grown._count, grown._net, grown._pool, grown._weight)
    C = np.zeros((first, first))
    assert _jit_ends.below(top + 1e-6, scale, symmetric, touched, size, first, place, *graph, C)
    assert not _jit_ends.below(top - 1e-6, scale, symmetric, touched, size, first, place, *graph, C)
    high = grown.ends[1]
    lower = _jit_ends.tightened(high, scale, symmetric, touched, size, first, place, *graph)
    assert max(top, 0.0) <= lower <= high + 1e-8
    assert lower - max(top, 0.0) <= high / 2**_jit_ends.ATTEMPTS + 1e-8


@pytest.mark.parametrize("learner", [MatrixWinnow(2.0), SymmetricWinnow(1.0, 0.2), Doubling()])
def test_bounds_depend_on_what_was_learnt_alone(learner):
    """Tightened many times: in one batch, in pieces with predictions between them, and from the log."""
    rows, cols, labels = np.array(bicluster_trials(30, 25, 4, 4, 0.1, seed=6)).T
    whole = learner.learn_many(rows, cols, labels)
    pieces = learner
    for part in np.array_split(np.arange(len(rows)), 7):
        pieces = pieces.learn_many(rows[part], cols[part], labels[part])
        pieces.predict_many(rows[:100], cols[:100])
    exponential = whole._memory.exponential
    assert pieces._memory.exponential.ends == exponential.ends
    assert exponential.copy(exponential.events).ends == exponential.ends
    eigenvalues = np.linalg.eigvalsh(exponential.dense())
    assert exponential.ends[0] <= eigenvalues[0] <= eigenvalues[-1] <= exponential.ends[1]


def test_always_wrong_adversary_keeps_the_largest_eigenvalue_small():
    learner, rng = MatrixWinnow(1.0), np.random.default_rng(0)
    for _ in range(1500):
        i, j = (int(x) for x in rng.integers(30, size=2))
        learner = learner.learn(i, j, -learner.predict(i, j))
    assert learner.mistakes == 1500
    exponential = learner._memory.exponential
    eigenvalues = np.linalg.eigvalsh(exponential.dense())
    assert np.log(np.exp(eigenvalues).sum()) <= np.log(exponential.trace_bound)
    assert eigenvalues[-1] < 3.0


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_sizes_and_names_do_not_matter(seed):
    """Rows and columns may be numbered by anything: 60 x 60 or 5000 x 7000, the predictions are the same."""
    rng = np.random.default_rng(seed)
    rows, cols, labels = np.array(bicluster_trials(12, 10, 3, 3, 0.1, seed=seed)).T
    far_rows, far_cols = rng.permutation(5000)[:12], rng.permutation(10**12 - np.arange(7000))[:10]
    for learner in (MatrixWinnow(1.0), SymmetricWinnow()):
        near, _ = learner.follow(rows, cols, labels)
        far, _ = learner.follow(far_rows[rows], far_cols[cols], labels)
        np.testing.assert_array_equal(near, far)


def test_ties_go_to_plus_one():
    learner = MatrixWinnow(1.0)
    assert learner.predict(3, 4) == 1
    learner = learner.learn(0, 0, -1)
    assert learner.predict(5, 5) == 1  # knows nothing of either
    cancelled = learner.learn(0, 0, 1)  # one up, one down: S is 0 again
    assert cancelled.updates == 2
    assert cancelled.margin(0, 0) == 0.0
    assert cancelled.predict(0, 0) == 1


def test_symmetric_does_not_stop_before_its_ball_joins_row_and_column():
    """A path of seven edges links row 0 and column 3: f is 0 for the first Lanczos steps, not after."""
    learner = SymmetricWinnow(1.0, slack=0.99)
    path = [(0, 0, 1), (1, 0, -1), (1, 1, 1), (2, 1, 1), (2, 2, 1), (3, 2, 1), (3, 3, 1)]
    learner = learner.learn_many(*np.array(path).T)
    assert learner.predict(0, 3) == -1
    assert -0.1 < learner.margin(0, 3) < 0.0


def test_doubling_restarts_where_the_corollary_says():
    c = 1.0 / (3.0 - math.e)
    learner = Doubling()
    wanted = math.ceil(2 * c * 4 * math.log(4) * 2)  # N = 4 rows and columns seen, kappa^2 = 2
    for t in range(wanted):
        assert learner.restarts == 0, t
        i, j = t % 2, (t // 2) % 2
        learner = learner.learn(i, j, -learner.predict(i, j))
    assert learner.restarts == 1
    assert learner.gamma == pytest.approx(0.5)
    assert learner.predict(0, 0) == 1
    assert learner.mistakes == wanted


def test_doubling_is_winnow_until_it_restarts():
    rows, cols, labels = np.array(bicluster_trials(20, 20, 3, 3, 0.0, seed=5)).T
    found, _ = Doubling().follow(rows, cols, labels)
    wanted, _ = MatrixWinnow(math.sqrt(0.5)).follow(rows, cols, labels)
    np.testing.assert_array_equal(found, wanted)


def test_theorem_5_4_adversary_forces_l_m_mistakes():
    m, n, l = 12, 10, 3
    box = [MatrixWinnow(0.577)]
    seen = np.zeros((m, n))
    for i, j, y in adversary(m, n, l, lambda i, j: box[0].predict(i, j)):
        seen[i, j] = y
        box[0] = box[0].learn(i, j, y)
    assert box[0].mistakes == l * m
    assert np.count_nonzero(seen.any(axis=0)) == l  # l column types suffice


def test_mistakes_stay_below_the_theorem():
    rows, cols, labels = np.array(bicluster_trials(30, 30, 2, 3, 0.0, seed=6)).T
    learner = MatrixWinnow(1 / math.sqrt(2)).learn_many(rows, cols, labels)
    assert learner.mistakes <= learner.bound() < learner.bound(0.6)
    assert learner.bound(0.2) == math.inf  # this rate proves nothing at so small a margin
    report = learner.report
    assert (report["rows"], report["columns"], report["bound_is_vacuous"]) == (30, 30, True)


def test_majority_is_as_good_as_its_bound_and_near_its_best():
    rows, cols, labels = np.array(bicluster_trials(40, 40, 4, 4, 0.0, seed=7)).T
    learner = auto().learn_many(rows, cols, labels)
    assert learner.mistakes <= learner.bound()
    assert learner.mistakes <= 1.3 * learner.losses.min()
    assert learner.best.mistakes == learner.losses.min()
    assert len(learner.report["mistakes_of"]) == len(learner.experts)


def noisy_trials(m, T, seed, noise=0.3):
    rng = np.random.default_rng(seed)
    u, v = rng.choice([-1, 1], m), rng.choice([-1, 1], m)
    rows, cols = rng.integers(m, size=(2, T))
    flip = np.where(rng.random(T) < noise, -1, 1)
    return rows, cols, u[rows] * v[cols] * flip


@pytest.mark.slow
def test_an_expert_without_hope_sleeps_and_the_bound_holds(monkeypatch):
    """Weights against the account written out trial by trial: a sleeper says what the majority says."""
    monkeypatch.setattr(majority, "HEAVY", 50)
    rows, cols, labels = noisy_trials(40, 4 * majority.LOOK, 3, noise=0.2)
    dear = MatrixWinnow(0.001)  # so slow that it sees rows and columns alone, where nothing is
    learner = Majority([RefittedLowRank(), dear])
    predictions, after = learner.follow(rows, cols, labels)
    assert after.awake.tolist() == [True, False]
    assert after.experts[1].trials < len(labels)
    asleep = after.experts[1].trials
    assert asleep % majority.LOOK == 0
    wrong = predictions != labels
    assert after.losses[0] == after.experts[0].mistakes
    assert after.losses[1] == after.experts[1].mistakes + wrong[asleep:].sum()
    assert after.mistakes <= after.bound()
    assert after.report["asleep"] == ["MatrixWinnow(gamma=0.001, slack=0, dense=False)"]
    alone = RefittedLowRank().follow(rows, cols, labels)[0]
    np.testing.assert_array_equal(predictions[asleep:], alone[asleep:])


@pytest.mark.slow
def test_sleep_does_not_depend_on_how_a_stream_is_cut(monkeypatch, tmp_path):
    monkeypatch.setattr(majority, "HEAVY", 50)
    rows, cols, labels = noisy_trials(40, 2 * majority.LOOK + 100, 4, noise=0.1)
    learner = Majority([RefittedLowRank(), MatrixWinnow(0.001)])
    whole, after = learner.follow(rows, cols, labels)
    found, state = [], learner
    for first in range(0, len(labels), 333):
        part = slice(first, first + 333)
        some, state = state.follow(rows[part], cols[part], labels[part])
        state.save(tmp_path / "state.npz")
        state = Majority.load(tmp_path / "state.npz")
        found.append(some)
    np.testing.assert_array_equal(np.concatenate(found), whole)
    assert (state.mistakes, state.awake.tolist()) == (after.mistakes, [True, False])


def test_light_experts_never_sleep():
    rows, cols, labels = noisy_trials(20, 2 * majority.LOOK, 5)
    worst = Majority([RefittedLowRank(), OnlineFactorization(1, rate=8.0)])
    assert worst.learn_many(rows, cols, labels).awake.all()


def test_a_refit_is_the_completion_of_the_labels_before_it():
    rows, cols, labels = noisy_trials(20, 300, 6, noise=0.1)
    predictions, _ = RefittedLowRank(growth=2.0).follow(rows, cols, labels)
    assert (predictions[:64] == 1).all()
    i, j = ([list(dict.fromkeys(x)).index(y) for y in x] for x in (rows.tolist(), cols.tolist()))
    i, j = np.array(i), np.array(j)
    for first, last in ((64, 128), (128, 256), (256, 300)):
        m, n = i[:first].max() + 2, j[:first].max() + 2  # the last line stands for those not seen
        y = labels[:first].astype(float)
        seen = Observations.from_triplets(
            i[:first], j[:first], y, (m, n), noise=0.0, duplicates="keep"
        )
        fit = low_rank(seen, max_rank=10, max_sweeps=20)
        wanted = fit.entries(np.minimum(i[first:last], m - 1), np.minimum(j[first:last], n - 1))
        np.testing.assert_array_equal(predictions[first:last], np.where(wanted >= 0, 1, -1))


def test_refits_take_labels_all_alike_and_lines_never_seen():
    learner = RefittedLowRank().learn_many([0] * 80, list(range(80)), [-1] * 80)
    assert learner.predict(5, 500) == -1


def test_row_and_column_majority():
    learner = RowColumnMajority().learn_many([0, 0, 0, 1], [0, 1, 2, 0], [1, 1, -1, -1])
    assert learner.predict(0, 9) == 1
    assert learner.predict(1, 9) == -1
    assert learner.predict(9, 9) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: MatrixWinnow(0.0),
        lambda: MatrixWinnow(float("nan")),
        lambda: MatrixWinnow(0.5, -1.0),
        lambda: SymmetricWinnow(slack=1.0),
        lambda: Majority([]),
        lambda: Majority([3]),
        lambda: Majority([MatrixWinnow()], beta=2.0),
    ],
)
def test_bad_parameters(make):
    with pytest.raises(ParameterError):
        make()


@pytest.mark.parametrize(
    ("i", "j", "y", "words"),
    [
        (-1, 0, 1, "row must be"),
        (0, -3, 1, "column must be"),
        (0, 0, 0, "label"),
        (0, 0, 2, "label"),
        (0.5, 0, 1, "row"),
        ("a", 0, 1, "row"),
    ],
)
def test_bad_trials(i, j, y, words):
    with pytest.raises(ParameterError, match=words):
        MatrixWinnow().learn(i, j, y)
    with pytest.raises(ParameterError):
        auto().follow([0, i], [0, j], [1, y])


def test_bad_streams_and_files(tmp_path):
    with pytest.raises(ParameterError, match="equally long"):
        MatrixWinnow().follow([0, 1], [0, 1], [1])
    (tmp_path / "no.npz").write_bytes(b"not an archive")
    with pytest.raises(DataError, match="must hold a learner"):
        Learner.load(tmp_path / "no.npz")
    MatrixWinnow().save(tmp_path / "yes.npz")
    with pytest.raises(DataError, match="holds a MatrixWinnow"):
        SymmetricWinnow.load(tmp_path / "yes.npz")


def test_an_empty_stream_changes_nothing():
    for learner in (MatrixWinnow(), auto()):
        predictions, after = learner.follow([], [], [])
        assert predictions.shape == (0,)
        assert after.trials == 0
