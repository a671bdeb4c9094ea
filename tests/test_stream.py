"""BinaryStream: names instead of indices, river's convention, with and without river."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

from entrywise.estimators import BinaryStream
from entrywise.exceptions import DataError, ParameterError
from entrywise.gallery import bicluster_trials
from entrywise.online import auto

TRIALS = bicluster_trials(9, 8, 3, 3, 0.05, seed=4)
NAMED = [({"row": f"user-{i}", "col": f"item-{j}", "weather": 3.5}, y > 0) for i, j, y in TRIALS]


def test_same_as_the_learner():
    model, learner = BinaryStream(), auto()
    for (x, y), (i, j, sign) in zip(NAMED, TRIALS, strict=True):
        assert model.predict_one(x) == (learner.predict(i, j) > 0)
        model.learn_one(x, y)
        learner = learner.learn(i, j, sign)
    assert (model.mistakes, model.trials) == (learner.mistakes, len(TRIALS))
    assert len(model.rows) == 9
    assert set(model.cols) == {f"item-{j}" for j in range(8)}


def test_follow_is_one_by_one():
    one, many = BinaryStream("symmetric-winnow"), BinaryStream("symmetric-winnow")
    found = []
    for x, y in NAMED:
        found.append(one.predict_one(x))
        one.learn_one(x, y)
    assert many.follow([x for x, _ in NAMED], [y for _, y in NAMED]).tolist() == found
    assert many.predict([x for x, _ in NAMED]).tolist() == [one.predict_one(x) for x, _ in NAMED]


def test_shares_agree_with_predictions():
    model = BinaryStream("matrix-winnow", {"gamma": 1.0})
    for x, y in NAMED:
        share = model.predict_proba_one(x)
        assert sum(share.values()) == pytest.approx(1.0)
        assert (share[True] >= 0.5) == model.predict_one(x)
        model.learn_one(x, y)


def test_save_and_load(tmp_path):
    model = BinaryStream("goldman-warmuth")
    model.follow(*zip(*NAMED[:40], strict=True))
    model.save(tmp_path / "stream.npz")
    back = BinaryStream.load(tmp_path / "stream.npz")
    assert (back.trials, back.mistakes, back.rows) == (40, model.mistakes, model.rows)
    rest = list(zip(*NAMED[40:], strict=True))
    assert back.follow(*rest).tolist() == model.follow(*rest).tolist()
    (tmp_path / "no.npz").write_bytes(b"PK nothing")
    with pytest.raises(DataError, match="must hold a stream"):
        BinaryStream.load(tmp_path / "no.npz")


@pytest.mark.parametrize(
    "name", ["auto", "doubling", "row-column-majority", "goldman-warmuth", "online-factorization"]
)
def test_copies_and_pickles_are_independent(name):
    model = BinaryStream(name)
    model.follow(*zip(*NAMED[:30], strict=True))
    twins = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    before = [model.predict_one(x) for x, _ in NAMED]
    for twin in twins:
        twin.follow(*zip(*NAMED[30:], strict=True))
        assert [model.predict_one(x) for x, _ in NAMED] == before
    assert twins[0].mistakes == twins[1].mistakes


@pytest.mark.parametrize("y", ["yes", 2, None, 0.5, float("nan")])
def test_labels_of_more_than_two_values_are_refused(y):
    model = BinaryStream()
    with pytest.raises(DataError, match="true or false"):
        model.learn_one({"row": "a", "col": "b"}, y)
    assert (model.trials, model.rows) == (0, ())


def test_rows_below_zero_are_refused():
    with pytest.raises(DataError, match="not below 0"):
        BinaryStream().predict_one({"row": -1, "col": 0})
    with pytest.raises(DataError, match="row must be"):
        BinaryStream().learn_one({"row": [1], "col": 0}, True)


def test_unknown_learner_and_settings_are_refused():
    with pytest.raises(ParameterError, match="no online method"):
        BinaryStream("adaptive-nystrom")
    with pytest.raises(ParameterError, match="settings of matrix-winnow"):
        BinaryStream("matrix-winnow", {"rate": 3})


@pytest.mark.slow
def test_river_checks():
    """Every check of river; those over data get its own data sets, whose features name no row and no column."""
    river = pytest.importorskip("river")
    from river import checks, evaluate, metrics

    model = BinaryStream()
    names = []
    for check in checks.yield_checks(model):
        names.append(check.__name__)
        if check.__name__ in (
            "check_bounded_memory_growth",
            "check_init_has_default_params_for_tests",
        ):
            continue  # a record of mistakes grows with them
        check(model.clone())
    assert len(names) > 20
    found = evaluate.progressive_val_score(NAMED, BinaryStream(), metrics.Accuracy())
    assert found.get() > 0.5
    assert river.__version__


@pytest.mark.slow
def test_works_without_river():
    code = (
        "import sys; sys.modules['river'] = None; sys.modules['river.base'] = None\n"
        "from entrywise.estimators import BinaryStream\n"
        "m = BinaryStream('matrix-winnow'); m.learn_one({'row': 'a', 'col': 'b'}, False)\n"
        "assert BinaryStream.__mro__[1] is object\n"
        "print(m.predict_one({'row': 'a', 'col': 'b'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_numpy_labels_are_fine():
    model = BinaryStream()
    model.learn_one({"row": np.int64(3), "col": "3"}, np.bool_(True))
    model.learn_one({"row": "3", "col": 3}, np.int8(-1))
    assert (model.rows, model.cols, model.trials) == (("3",), ("3",), 2)
