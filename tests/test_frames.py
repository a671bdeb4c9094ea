"""Frames of pandas and polars in and out wherever a table is taken or given; scikit-learn's random_state beside our rng."""

from __future__ import annotations

import numpy as np
import pytest

import entrywise as ew
from databases import small_board
from entrywise.apply.crowd import consensus, next_labels
from entrywise.apply.leaderboard import Bought, scores
from entrywise.apply.ranking import rank
from entrywise.estimators import AdaptiveNystroem, LowRankImputer, PartialPCA, SoftImputer
from entrywise.exceptions import DataError, ParameterError
from entrywise.frames import make_frame
from entrywise.gallery import random_low_rank

BACKENDS = ["polars", "pandas"]
ROWS, COLS = [f"r{i}" for i in range(8)], [f"c{j}" for j in range(6)]
A = random_low_rank(8, 6, 1, 0)


def cells(frame):
    """Return a long frame as a dictionary."""
    columns = [np.asarray(frame[name]).tolist() for name in ("row", "col", "value")]
    return {(row, col): value for row, col, value in zip(*columns, strict=True)}


@pytest.fixture(params=BACKENDS)
def backend(request):
    pytest.importorskip(request.param)
    return request.param


@pytest.fixture
def table(backend):
    """Half of a matrix, long."""
    half = [(i, j) for i in range(8) for j in range(6) if (i + j) % 2 or j < 2]
    names = {"row": [ROWS[i] for i, _ in half], "col": [COLS[j] for _, j in half]}
    return make_frame(names | {"value": [float(A[i, j]) for i, j in half]}, backend)


def test_observations_make_the_round_trip(table, backend):
    seen = ew.Observations.from_frame(table)
    again = seen.to_frame(backend)
    assert type(again) is type(table)
    assert cells(again) == cells(table)
    noisy = ew.Observations.from_triplets([0, 1], [1, 0], [1.0, 2.0], (2, 2), noise=0.5)
    frame = noisy.to_frame(backend)
    assert np.asarray(frame["noise"]).tolist() == [0.5, 0.5]
    assert cells(frame) == {(0, 1): 1.0, (1, 0): 2.0}


def test_a_frame_is_completed_into_a_frame(table, backend):
    found = ew.complete(table, random_state=3)
    filled = found.to_frame(level=0.9, backend=backend)
    assert len(filled) == 48
    assert cells(filled).keys() == {(row, col) for row in ROWS for col in COLS}
    low, high = (np.asarray(filled[name]) for name in ("low", "high"))
    assert np.all(low <= high)
    some = found.to_frame([0, 3], [1, 2], backend=backend)
    assert cells(some) == {
        (found.row_labels[i], found.col_labels[j]): found.entry(i, j) for i, j in ((0, 1), (3, 2))
    }
    row = found.to_frame(rows=[2], backend=backend)
    assert len(row) == 6


def test_a_study_takes_and_gives_frames(table, backend, lab):
    study = small_board(lab, budget=6, rows=ROWS, cols=COLS, known=table)
    asked = study.ask(4)
    todo = asked.to_frame(backend)
    assert np.asarray(todo["id"]).tolist() == [question.id for question in asked]
    assert study.tell(todo) == 0  # nothing is filled in yet
    done = {"id": [q.id for q in asked], "value": [float(A[q.index]) for q in asked]}
    done["value"][-1] = float("nan")
    assert study.tell(make_frame(done, backend)) == len(asked) - 1
    last = {"row": [asked[-1].row], "col": [asked[-1].col], "value": [1.5]}
    assert study.tell(make_frame(last, backend)) == 1
    with pytest.raises(DataError, match="id or row and col"):
        study.tell(make_frame({"value": [1.0]}, backend))
    unknown = next(
        (row, col)
        for row in ROWS
        for col in COLS
        if all((x["row"], x["col"]) != (row, col) for x in study.log())
    )
    more = {"row": [unknown[0]], "col": [unknown[1]], "value": [9.0]}
    assert study.add(make_frame(more, backend)) == 1
    module = pytest.importorskip(backend)
    log = module.DataFrame(list(study.log()))
    assert len(log) == len(list(study.log()))


def test_boards_crowds_and_rankings_give_frames(backend):
    rng = np.random.default_rng(0)
    seen = ew.Observations.from_dense(np.where(rng.random(A.shape) < 0.7, A, np.nan))
    board = scores(None, Bought.from_table(seen))
    frame = board.to_frame(ROWS, backend)
    assert np.asarray(frame["row"]).tolist() == [ROWS[i] for i in board.order]
    assert np.asarray(frame["score"]).tolist() == board.mean[board.order].tolist()

    said = {"item": list("111222333"), "worker": list("abc" * 3), "label": list("xxxxyxyyy")}
    given = make_frame(said, backend)
    found = consensus(given["item"], given["worker"], given["label"])
    items, workers = found.to_frame(backend=backend), found.to_frame("workers", backend)
    assert np.asarray(items["label"]).tolist() == found.labels.tolist() == ["x", "x", "y"]
    assert np.asarray(workers["skill"]).tolist() == found.skill.tolist()
    assert len(next_labels(given["item"], given["worker"], given["label"], limit=2).item) == 2

    games = make_frame({"winner": list("aabac"), "loser": list("bccba")}, backend)
    ranking = rank(games["winner"], games["loser"])
    frame = ranking.to_frame(backend=backend)
    assert np.asarray(frame["item"]).tolist() == ranking.items.tolist()
    assert np.all(np.asarray(frame["low"]) < np.asarray(frame["high"]))


def test_another_backend_is_refused():
    with pytest.raises(ParameterError, match="polars, pandas, pyarrow"):
        make_frame({"x": [1]}, "excel")


@pytest.mark.parametrize(
    "estimator",
    [LowRankImputer(), SoftImputer(penalty=0.1), PartialPCA(2), AdaptiveNystroem(n_components=3)],
    ids=lambda each: type(each).__name__,
)
def test_estimators_give_frames_where_they_are_asked_to(estimator, backend):
    X = np.random.default_rng(0).standard_normal((40, 4))
    frame = make_frame({f"x{k}": X[:, k] for k in range(4)}, backend)
    plain = estimator.fit(frame).transform(frame)
    shown = estimator.set_output(transform=backend).transform(frame)
    assert type(shown) is type(frame)
    assert list(shown.columns) == list(estimator.get_feature_names_out())
    np.testing.assert_allclose(np.asarray(shown), plain)


@pytest.mark.slow
def test_random_state_is_an_int_a_state_a_generator_or_nothing():
    X = np.random.default_rng(0).standard_normal((30, 4))
    X[X > 1.2] = np.nan
    whole = np.nan_to_num(X)
    for fresh in (
        lambda: 5,
        lambda: np.random.RandomState(5),
        lambda: np.random.default_rng(5),
    ):
        for make, data in (
            (lambda seed: LowRankImputer(random_state=seed), X),
            (lambda seed: SoftImputer(random_state=seed), X),
            (lambda seed: AdaptiveNystroem(n_components=5, random_state=seed), whole),
        ):
            one, two = (make(fresh()).fit_transform(data) for _ in range(2))
            np.testing.assert_array_equal(one, two)
        one, two = (ew.complete(X, random_state=fresh()).to_dense() for _ in range(2))
        np.testing.assert_array_equal(one, two)
    LowRankImputer(random_state=None).fit(X)
    by_rng, by_state = ew.complete(X, rng=7), ew.complete(X, random_state=7)
    np.testing.assert_array_equal(by_rng.to_dense(), by_state.to_dense())
