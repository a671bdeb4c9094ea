"""Laws that every online learner obeys.

A law takes a fresh :class:`~entrywise.online.Learner` and a list of trials (i, j, y), and raises AssertionError with a
sentence when the learner breaks it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from entrywise.online import Learner

Trial: TypeAlias = tuple[int, int, int]
Law: TypeAlias = Callable[[Learner, Sequence[Trial]], None]


def _arrays(
    trials: Sequence[Trial],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    rows, cols, labels = np.array(trials, np.int64).T
    return rows, cols, labels


def _picture(learner: Learner, trials: Sequence[Trial]) -> NDArray[np.float64]:
    """What a state says about every entry of the trials: predictions and margins."""
    said = [(learner.predict(i, j), learner.margin(i, j)) for i, j, _ in trials]
    return np.array(said)


def is_frozen(learner: Learner, trials: Sequence[Trial]) -> None:
    """No attribute of a state can be set, and learning leaves the state as it was."""
    for name in ("trials", "mistakes"):
        try:
            setattr(learner, name, 7)
        except (FrozenInstanceError, AttributeError):
            continue
        raise AssertionError(f"{type(learner).__name__}: {name} can be set; states are values")
    before = _picture(learner, trials), learner.trials, learner.mistakes
    learner.learn_many(*_arrays(trials))
    after = _picture(learner, trials), learner.trials, learner.mistakes
    assert before[1:] == after[1:], (
        f"{type(learner).__name__}: learning changed the counts of the older state"
    )
    assert np.array_equal(before[0], after[0]), (
        f"{type(learner).__name__}: learning changed the older state"
    )


def is_deterministic(learner: Learner, trials: Sequence[Trial]) -> None:
    """Two runs over the same trials agree, whatever global randomness does."""
    first, a = learner.follow(*_arrays(trials))
    np.random.seed(4321)  # noqa: NPY002  a law about global randomness must touch it
    second, b = learner.follow(*_arrays(trials))
    assert np.array_equal(first, second), (
        f"{type(learner).__name__}: two runs predicted differently"
    )
    assert a.mistakes == b.mistakes, f"{type(learner).__name__}: two runs counted differently"


def predicts_purely(learner: Learner, trials: Sequence[Trial]) -> None:
    """Predicting, in any order and however often, changes nothing that is learnt or predicted later."""
    straight, _ = learner.follow(*_arrays(trials))
    state, found = learner, []
    for t, (i, j, y) in enumerate(trials):
        state.predict(*trials[-t - 1][:2])
        state.predict_many([i, i], [j, trials[0][1]])
        state.margin(i, j)
        found.append(state.predict(i, j))
        assert state.predict(i, j) == found[-1], (
            f"{type(learner).__name__}: a second look predicted differently"
        )
        state = state.learn(i, j, y)
    assert found == straight.tolist(), (
        f"{type(learner).__name__}: looking changed what was predicted later"
    )


def many_is_one_by_one(learner: Learner, trials: Sequence[Trial]) -> None:
    """A batch and the same trials one by one give the same predictions, counts and state."""
    rows, cols, labels = _arrays(trials)
    together, batch = learner.follow(rows, cols, labels)
    state, found = learner, []
    for i, j, y in trials:
        found.append(state.predict(i, j))
        state = state.learn(i, j, y)
    assert found == together.tolist(), f"{type(learner).__name__}: a batch predicted differently"
    assert (state.trials, state.mistakes) == (batch.trials, batch.mistakes), (
        f"{type(learner).__name__}: counts differ"
    )
    assert np.array_equal(_picture(state, trials), _picture(batch, trials)), (
        f"{type(learner).__name__}: states differ"
    )
    wanted = [batch.predict(i, j) for i, j, _ in trials]
    assert batch.predict_many(rows, cols).tolist() == wanted, (
        f"{type(learner).__name__}: predict_many is not predict"
    )


def older_states_live_on(learner: Learner, trials: Sequence[Trial]) -> None:
    """Learning from an older state copies it: two futures of one state do not meet."""
    half = len(trials) // 2
    middle = learner.learn_many(*_arrays(trials[:half]))
    wanted = _picture(middle, trials)
    one = middle.learn_many(*_arrays(trials[half:]))
    kept = _picture(one, trials)
    other = middle.learn_many(*_arrays([(i, j, -y) for i, j, y in trials[half:]]))
    assert np.allclose(_picture(middle, trials), wanted, rtol=1e-9, atol=1e-12), (
        f"{type(learner).__name__}: an older state was changed by what came after it"
    )
    assert np.array_equal(_picture(one, trials), kept), (
        f"{type(learner).__name__}: another future changed this one"
    )
    alone = learner.learn_many(*_arrays(trials[:half])).learn_many(
        *_arrays([(i, j, -y) for i, j, y in trials[half:]])
    )
    assert other.mistakes == alone.mistakes, (
        f"{type(learner).__name__}: a future from an older state is another"
    )
    assert np.allclose(_picture(other, trials), _picture(alone, trials), rtol=1e-9, atol=1e-12), (
        f"{type(learner).__name__}: a future from an older state is another"
    )


def saves_and_loads(learner: Learner, trials: Sequence[Trial]) -> None:
    """A saved state comes back whole: same kind, counts and predictions, and it learns on alike."""
    half = len(trials) // 2
    state = learner.learn_many(*_arrays(trials[:half]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learner.npz"
        state.save(path)
        back = Learner.load(path)
        older = learner  # the shared memory went on; what is saved is this state
        older.save(path)
        begun = Learner.load(path)
    assert type(back) is type(state), (
        f"{type(learner).__name__}: came back as {type(back).__name__}"
    )
    assert (back.trials, back.mistakes) == (state.trials, state.mistakes), (
        f"{type(learner).__name__}: counts were lost"
    )
    assert np.allclose(_picture(back, trials), _picture(state, trials), rtol=1e-9, atol=1e-12), (
        f"{type(learner).__name__}: the loaded state predicts differently"
    )
    rest = _arrays(trials[half:])
    assert np.array_equal(back.follow(*rest)[0], state.follow(*rest)[0]), (
        f"{type(learner).__name__}: the loaded state learns differently"
    )
    assert begun.trials == 0, (
        f"{type(learner).__name__}: a state without trials came back with some"
    )
    assert np.array_equal(begun.follow(*_arrays(trials))[0], learner.follow(*_arrays(trials))[0]), (
        f"{type(learner).__name__}: the first state came back different"
    )


def counts_mistakes(learner: Learner, trials: Sequence[Trial]) -> None:
    """``mistakes`` and ``trials`` are what the predictions say, and ``report`` says so too."""
    predictions, state = learner.follow(*_arrays(trials))
    wrong = int((predictions != _arrays(trials)[2]).sum())
    assert (state.trials, state.mistakes) == (len(trials), wrong), (
        f"{type(learner).__name__}: counts are off"
    )
    assert state.report["mistakes"] == wrong, (
        f"{type(learner).__name__}: the report says another number of mistakes"
    )
    assert all(key.isidentifier() for key in state.report), (
        f"{type(learner).__name__}: keys of a report are names, got {[*state.report]}"
    )
    assert set(np.unique(predictions)) <= {-1, 1}, (
        f"{type(learner).__name__}: predictions must be -1 or +1"
    )


LAWS: tuple[Law, ...] = (
    is_frozen,
    is_deterministic,
    predicts_purely,
    many_is_one_by_one,
    older_states_live_on,
    saves_and_loads,
    counts_mistakes,
)
