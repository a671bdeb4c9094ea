"""Adaptive Nyström against dense algebra: queries, ranks, certificates, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import entrywise as ew
from entrywise.active import adaptive_nystrom, literal_adaptive_nystrom
from entrywise.active.nystrom.certificate import _pairs
from entrywise.exceptions import NotPSD, ParameterError
from entrywise.gallery import block_kernel, outliers, random_psd
from entrywise.linalg.schur import Schur, largest_gains, rejection_cholesky
from entrywise.oracles import FunctionOracle, KernelOracle, MatrixOracle


def unknown_rank(K, r):
    return K * (r + 1) - r * (r + 1) // 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("K", "r", "unknown", "known"), [(1000, 10, 10945, 9955), (5000, 50, 253725, 248775)]
)
def test_given_order_asks_exactly_the_papers_queries(K, r, unknown, known):
    rng = np.random.default_rng(7)
    truth = ew.PSDFactor(rng.standard_normal((K, r)))
    scale = float((truth.factor**2).sum(axis=1).max())
    for params, queries in (({}, unknown), ({"rank": r}, known)):
        oracle = MatrixOracle(truth)
        found = ew.play(literal_adaptive_nystrom(K, **params), oracle)
        assert oracle.spent == found.cost == queries
        assert found.rank == r
        i, j = rng.integers(K, size=(2, 200_000))
        assert np.abs(found.entries(i, j) - truth.entries(i, j)).max() <= 1e-12 * scale


@pytest.mark.parametrize("rank", [0, 1, 12])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_a_bound_of_round_off_stands_for_margins_that_are_nothing(monkeypatch, rank, scale):
    X = np.random.default_rng(rank).standard_normal((60, 8))
    A = scale * KernelOracle(X, gamma=0.1).block(np.arange(60), np.arange(60))
    state = Schur(np.diag(A))
    if rank:
        state.take_block(np.arange(rank), A[:rank])
    quick = state.margins(0.05)
    monkeypatch.setattr("entrywise.linalg.schur.NEGLIGIBLE", -1.0)
    exact = state.margins(0.05)
    assert np.all(exact <= quick)
    assert quick.max() <= 1e-9 * state.residual.mean()
    # what is explained to round-off is told column by column
    monkeypatch.undo()
    state.residual[:] = 0.0
    np.testing.assert_array_equal(state.margins(0.05), exact)


def ordered(n, order, *, seed=0, **params):
    """The plan that takes columns in this order; as they are given, it is the paper's."""
    if order == "given":
        return literal_adaptive_nystrom(n, **params)
    return adaptive_nystrom(n, order=order, rng=seed, **params)


def families(r, n, seed):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n, r))
    yield "gaussian", F @ F.T, r
    yield "condition 1e10", random_psd(n, r, seed, 1e10), r
    twice = np.repeat(F[: n // 2], 2, axis=0)[:n]
    yield "duplicates", twice @ twice.T, min(r, len(np.unique(twice, axis=0)))
    zero = F.copy()
    zero[0] = 0
    yield "zero first column", zero @ zero.T, r
    yield (
        "scaled rows",
        (F * np.geomspace(1, 1e-3, n)[:, None]) @ (F * np.geomspace(1, 1e-3, n)[:, None]).T,
        r,
    )
    sizes = np.full(r, n // r)
    sizes[: n - sizes.sum()] += 1
    yield "0/1 blocks", block_kernel(tuple(sizes), seed), r
    yield "tiny scale", 1e-30 * (F @ F.T), r
    yield "rank 0", np.zeros((n, n)), 0


@pytest.mark.slow
@pytest.mark.parametrize("r", [3, 20, 100])
@pytest.mark.parametrize("seed", [101, 102, 103])
def test_greedy_finds_the_rank_of_every_family(r, seed):
    n = 300
    for name, A, rank in families(r, n, seed):
        oracle = MatrixOracle(A)
        found = ew.play(adaptive_nystrom(n), oracle)
        assert found.rank == rank, name
        assert oracle.spent == unknown_rank(n, rank), name
        assert np.abs(found.to_dense() - A).max() <= 1e-13 * max(np.abs(A).max(), 1e-300), name


@given(
    n=st.integers(1, 25),
    r=st.integers(0, 25),
    k=st.integers(0, 25),
    order=st.sampled_from(["greedy", "random", "gain", "given"]),
    block=st.sampled_from([None, 1, 4]),
    scale=st.sampled_from([1e-200, 1e-8, 1.0, 1e12]),
    seed=st.integers(0, 10**6),
)
def test_the_certificate_equals_the_dense_residual(n, r, k, order, block, scale, seed):
    A = scale * random_psd(n, min(r, n), seed, 1e4)
    rank = min(k, n)
    block = block if order in ("random", "gain") else None
    oracle = MatrixOracle(A)
    plan = ordered(n, order, rank=rank, seed=seed, **({"block": block} if block else {}))
    found = ew.play(plan, oracle)
    left = A - found.to_dense()
    assert found.rank <= min(rank, max(r, 0)) or found.rank <= n
    if order == "gain":
        assert oracle.spent <= n * (n + 1) / 2
    else:
        assert oracle.spent <= unknown_rank(n, rank) + (block or 0) ** 2 * (rank + 1)
    if np.isfinite(found.certificate.value):
        tolerance = 1e-10 * np.abs(A).max()
        assert abs(found.certificate.value - np.abs(left).max()) <= tolerance
        assert abs(found.certificates[1].value - np.linalg.norm(left, "nuc")) <= n * tolerance


@given(
    eps=st.floats(1e-6, 2.0),
    seed=st.integers(0, 10**6),
    order=st.sampled_from(["greedy", "random", "gain", "given"]),
)
def test_max_error_is_never_exceeded(eps, seed, order):
    X = np.random.default_rng(seed).standard_normal((40, 3))
    oracle = KernelOracle(X, "rbf", gamma=0.3)
    found = ew.play(ordered(40, order, max_error=eps, seed=seed), oracle)
    K = oracle.block(np.arange(40), np.arange(40))
    assert np.abs(K - found.to_dense()).max() <= eps + 1e-12
    assert found.certificate.value <= eps


def test_trace_error_stops_early():
    X = outliers(200, seed=1)
    oracle = KernelOracle(X, "rbf", gamma=0.05)
    found = ew.play(adaptive_nystrom(200, trace_error=0.05, order="random", rng=3), oracle)
    K = oracle.block(np.arange(200), np.arange(200))
    assert np.trace(K - found.to_dense()) <= 0.05 * np.trace(K)
    assert found.rank < 60


def test_a_stated_noise_keeps_the_rank():
    rng = np.random.default_rng(5)
    for seed in range(5):
        F = rng.standard_normal((100, 4))
        A = F @ F.T
        E = 1e-9 * rng.standard_normal(A.shape)
        noisy = MatrixOracle(A + (E + E.T) / np.sqrt(2))
        for order in ("greedy", "given", "random"):
            found = ew.play(ordered(100, order, noise=1e-9, seed=seed), noisy)
            assert found.rank == 4
            assert np.abs(found.to_dense() - A).max() < 1e-6


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.diag([1.0, -1.0, 1.0]), r"entry \(1, 1\) is -1"),
        (
            np.array([[1.0, 2.0, 0], [2.0, 1.0, 0], [0, 0, 1.0]]),
            r"entry \(1, 0\) is too large for a PSD matrix",
        ),
    ],
)
@pytest.mark.parametrize("order", ["greedy", "given"])
def test_what_is_not_psd_is_refused_with_the_entry_named(matrix, words, order):
    with pytest.raises(NotPSD, match=words):
        ew.play(ordered(3, order), MatrixOracle(matrix))


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"n": 0}, "n of adaptive_nystrom must be at least 1, got 0"),
        ({"n": 5, "rank": 6}, r"rank of adaptive_nystrom must be in 0..5, got 6"),
        ({"n": 5, "order": "best"}, "order must be greedy, random or gain, got 'best'"),
        ({"n": 5, "max_error": -1.0}, "max_error must be finite and not below 0, got -1.0"),
        ({"n": 5, "noise": float("nan")}, "noise must be finite"),
        ({"n": 5, "block": 4}, "block goes with order='random'"),
        ({"n": 5, "ranks": 4}, "unexpected keyword argument 'ranks'"),
        ({"n": 5, "rng": "x"}, "rng must be an int or a numpy Generator"),
    ],
)
def test_bad_parameters_are_refused_at_once(args, words):
    with pytest.raises(ParameterError, match=words):
        adaptive_nystrom(**args)


def test_asked_entries_come_once_and_symmetric():
    asked = []
    A = random_psd(30, 5, 3)
    oracle = FunctionOracle(lambda i, j: asked.append((min(i, j), max(i, j))) or A[i, j])
    ew.play(adaptive_nystrom(30), oracle)
    assert len(asked) == len(set(asked)) == unknown_rank(30, 5)


def test_the_budget_gives_the_best_result_so_far():
    A = random_psd(50, 6, 3)
    found = ew.play(adaptive_nystrom(50), MatrixOracle(A), budget=200)
    assert found.status == "exhausted"
    assert found.rank == 3
    assert np.abs(A - found.to_dense()).max() == pytest.approx(found.certificate.value)


def test_rejection_keeps_independent_proposals_and_drops_repeats():
    rng = np.random.default_rng(0)
    assert rejection_cholesky(np.eye(4), rng).tolist() == [0, 1, 2, 3]
    assert rejection_cholesky(np.ones((4, 4)), rng).tolist() == [0]


def test_blocks_equal_columns_one_by_one():
    A = random_psd(40, 12, 9)
    one, many = Schur(np.diag(A)), Schur(np.diag(A), noise=1e-9)
    for p in (3, 7, 20):
        one.take(p, A[:, p].copy())
    many.take_block(np.array([3, 7, 20]), A[[3, 7, 20]])
    np.testing.assert_allclose(one.F, many.F, atol=1e-13)
    np.testing.assert_allclose(one.residual, many.residual, atol=1e-13)
    np.testing.assert_allclose(
        many._weights[:3],
        np.linalg.solve(A[np.ix_([3, 7, 20], [3, 7, 20])], A[[3, 7, 20]]),
        atol=1e-10,
    )


@pytest.mark.parametrize("order", ["greedy", "random", "gain", "given"])
@pytest.mark.parametrize("scale", [2.0**1000, 2.0**-1000, 2.0**-1050])
def test_extreme_scales_change_nothing_but_the_scale(order, scale):
    F = np.round(np.random.default_rng(2).standard_normal((12, 3)) * 8)
    A = F @ F.T  # whole numbers: exact at every scale
    found = ew.play(ordered(12, order), MatrixOracle(scale * A))
    assert found.rank == 3
    np.testing.assert_allclose(found.to_dense() / scale, A, atol=1e-6 * A.max())


@pytest.mark.parametrize("noise", [1e300, 1e-300])
def test_extreme_noise_ends_in_a_finite_answer(noise):
    A = random_psd(12, 3)
    found = ew.play(adaptive_nystrom(12, noise=noise), MatrixOracle(A))
    assert np.isfinite(found.to_dense()).all()


def test_gains_are_those_of_the_dense_residual():
    rng = np.random.default_rng(3)
    S = random_psd(40, 25, 5, 100.0)
    picked = rng.permutation(40)[:12]
    others = np.delete(np.arange(40), picked)
    found = picked[largest_gains(S[np.ix_(picked, picked)], S[np.ix_(picked, others)], 1.0, 5)]
    left = S.copy()
    for p in found:
        gain = np.array(
            [(left[:, c] ** 2).sum() / left[c, c] if left[c, c] > 1e-9 else 0 for c in picked]
        )
        assert p == picked[gain.argmax()]
        before = np.trace(left)
        left -= np.outer(left[:, p], left[p]) / left[p, p]
        assert before - np.trace(left) == pytest.approx(gain.max())


@pytest.mark.parametrize("kind", ["normal", "outliers", "clusters"])
def test_gain_leaves_less_than_uniform_columns(kind):
    rng = np.random.default_rng(8)
    X = {
        "normal": rng.standard_normal((900, 20)),
        "outliers": outliers(900, 0.1, seed=2),
        "clusters": rng.standard_normal((900, 8))
        + 4 * rng.standard_normal((15, 8))[rng.integers(15, size=900)],
    }[kind]
    K = KernelOracle(X, gamma=0.03).block(np.arange(900), np.arange(900))
    plan = adaptive_nystrom(900, rank=60, order="gain", block=8, rng=1)
    ours = ew.play(plan, MatrixOracle(K)).certificates[1].value
    uniform = []
    for seed in range(5):
        pivots = np.random.default_rng(seed).permutation(900)[:60]
        C = K[:, pivots]
        explained = C @ np.linalg.pinv(K[np.ix_(pivots, pivots)], rcond=1e-12) @ C.T
        uniform.append(np.trace(K) - np.trace(explained))
    assert ours < min(uniform)


def test_kernel_columns_in_part_are_those_of_the_whole():
    from entrywise.queries import Batch

    X = np.random.default_rng(0).standard_normal((60, 3))
    for kernel in ("rbf", "linear"):
        oracle = KernelOracle(X, kernel)
        K = oracle.block(np.arange(60), np.arange(60))
        whole = oracle(Batch.columns([7, 3, 50], 60)).reshape(3, 60)
        np.testing.assert_allclose(whole, K[[7, 3, 50]], rtol=1e-12)
        mask = np.random.default_rng(1).random(180) < 0.97
        some = Batch.columns([7, 3, 50], 60)[mask]
        np.testing.assert_allclose(oracle(some), whole.ravel()[mask], rtol=1e-12)
        few = Batch.columns([7, 3, 50], 60)[np.random.default_rng(2).random(180) < 0.4]
        np.testing.assert_allclose(oracle(few), K[few.rows, few.cols], rtol=1e-12)


def near_singular(n, seed):
    """A matrix whose first two columns are nearly the same: the given order divides by nearly nothing."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n, 6))
    F[1] = F[0] + 1e-5 * rng.standard_normal(6)
    return F @ F.T


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("order", ["greedy", "random", "given"])
def test_the_certificate_holds_where_round_off_is_magnified(order, seed):
    A = near_singular(60, seed)
    found = ew.play(ordered(60, order, seed=seed), MatrixOracle(A))
    error = np.abs(found.to_dense() - A).max()
    assert error <= found.certificate.value
    if order == "greedy":
        assert found.certificate.value <= 1e-11
    assert found.report["clipped"] == 0


@pytest.mark.parametrize("order", ["greedy", "random", "given"])
def test_the_certificate_holds_with_noise(order):
    beyond = 0
    for seed in range(12):
        rng = np.random.default_rng([3, seed])
        A = random_psd(50, 4, seed)
        E = np.triu(rng.normal(0, 1e-3, A.shape))
        seen = MatrixOracle(A + E + np.triu(E, 1).T)
        found = ew.play(ordered(50, order, seed=seed, noise=1e-3), seen)
        beyond += np.abs(found.to_dense() - A).max() > found.certificate.value
        assert "95%" in found.certificate.assumes[1]
    assert beyond <= 2


def test_what_was_clipped_is_told_and_the_certificate_says_nothing_then():
    A = block_kernel(np.full(5, 8))
    A = A + 0.5 * np.eye(40)
    A[30, 31] = A[31, 30] = 1.5 + 1e-9  # more than a PSD matrix with this diagonal can hold
    found = ew.play(adaptive_nystrom(40), MatrixOracle(A))
    assert found.report["lowest_residual"] < -1e-10
    assert found.report["clipped"] == 1
    assert found.certificate.vacuous
    assert "not positive semidefinite" in found.certificate.checked[0]


def damaged(n, seed):
    """A PSD matrix with a tenth of its entries changed, the diagonal and three columns left."""
    rng = np.random.default_rng(seed)
    A = np.ones((n, n))
    i, j = rng.integers(3, n, (2, n * n // 5))
    A[i, j] = A[j, i] = 0.2
    np.fill_diagonal(A, 1.0)
    return A


def test_verifying_finds_damage_that_no_column_shows():
    A = damaged(60, 1)
    silent = ew.play(adaptive_nystrom(60, rng=0), MatrixOracle(A))
    assert silent.certificate.assumes[0] == "positive semidefinite, not checked on 1711 entries"
    assert silent.certificate.value < 1e-12 < np.abs(silent.to_dense() - A).max()
    found = ew.play(adaptive_nystrom(60, rng=0, verify=20), MatrixOracle(A))
    assert found.cost == silent.cost + 20
    assert found.certificate.vacuous
    assert found.certificate.value == pytest.approx(0.8)
    assert found.certificates[2].value > 0.2


def test_verifying_a_sound_matrix_excludes_a_share_of_wrong_entries():
    found = ew.play(adaptive_nystrom(50, verify=20, rng=1), MatrixOracle(random_psd(50, 4)))
    share = found.certificates[2]
    assert share.value == pytest.approx(1 - 0.05 ** (1 / 20))
    assert not found.certificate.vacuous
    small = ew.play(adaptive_nystrom(6, verify=50, rng=1), MatrixOracle(random_psd(6, 3)))
    assert small.cost == 6 * 7 // 2  # all that was left, and no more
    with pytest.raises(ParameterError, match="verify"):
        ew.play(adaptive_nystrom(6, verify=-1), MatrixOracle(random_psd(6, 3)))


@given(n=st.integers(0, 40), count=st.integers(0, 60), seed=st.integers(0, 99))
def test_pairs_are_drawn_once_each(n, count, seed):
    a, b = _pairs(n, count, np.random.default_rng(seed))
    assert len(set(zip(a.tolist(), b.tolist(), strict=True))) == min(count, n * (n - 1) // 2)
    assert np.all((a >= 0) & (a < b) & (b < max(n, 1)))
