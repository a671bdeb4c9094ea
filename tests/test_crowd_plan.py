"""The plan ``crowd``: labels day by day, who asks gets the questions of its own column."""

from __future__ import annotations

import numpy as np
import pytest

import entrywise as ew
from entrywise.apply.crowd import consensus, crowd
from entrywise.exceptions import EntrywiseError, ParameterError
from entrywise.gallery import crowd_oracle
from entrywise.oracles import MatrixOracle


def answers(n, workers, seed, classes=3):
    """Return the truth and what every worker would say."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, (n, 1))
    right = rng.random((n, workers)) < np.linspace(0.5, 0.95, workers)
    other = (truth + rng.integers(1, classes, (n, workers))) % classes
    return truth.ravel(), np.where(right, truth, other).astype(float)


def test_it_spends_the_budget_and_labels_as_consensus_does():
    truth, said = answers(40, 7, 1)
    run = ew.Run(crowd((40, 7), budget=150))
    found = ew.play(run, MatrixOracle(said))
    assert found.cost == 150
    cells = [
        (int(i), int(j)) for e in run.log for i, j in zip(e.batch.rows, e.batch.cols, strict=True)
    ]
    assert len(set(cells)) == len(cells) == 150
    i, j = np.array(cells).T
    same = consensus(i, j, said[i, j])
    np.testing.assert_array_equal(found.labels[same.items.astype(int)], same.labels.astype(float))
    assert np.mean(found.labels == truth) > 0.75
    assert found.certificate.value == found.expected_error


def test_chosen_labels_beat_labels_at_random():
    chosen, random = [], []
    for seed in range(6):
        truth, said = answers(60, 8, seed)
        chosen.append(
            np.mean(ew.play(crowd((60, 8), budget=200), MatrixOracle(said)).labels == truth)
        )
        rng = np.random.default_rng(seed)
        at = rng.permutation(said.size)[:200]
        found = consensus(at // 8, at % 8, said.ravel()[at])
        labels = np.full(60, np.nan)
        labels[found.items.astype(int)] = found.labels.astype(float)
        random.append(np.mean(labels == truth))
    assert np.mean(chosen) > np.mean(random) + 0.03


def test_it_stops_when_few_labels_are_expected_to_be_wrong():
    _, said = answers(40, 9, 3, classes=2)
    found = ew.play(crowd((40, 9), max_error=0.25), MatrixOracle(said))
    assert found.expected_error <= 0.25
    assert found.cost < 40 * 9
    assert "low enough" in found.report["reason"]


def test_who_asks_is_asked_for_its_own_column(tmp_path):
    truth, said = answers(12, 3, 4, classes=2)
    items, people = [f"item-{k}" for k in range(12)], ["ann", "bob", "cy"]
    study = ew.Study.create(
        str(tmp_path / "labels.db"),
        "birds",
        plan="crowd",
        params={"shape": (12, 3)},
        rows=items,
        cols=people,
    )
    for _ in range(4):
        for k, name in enumerate(people):
            todo = study.ask(3, worker=name)
            assert {q.col for q in todo} <= {name}
            study.tell([(q.id, said[q.index[0], k]) for q in todo], worker=name)
    with pytest.raises(EntrywiseError, match="dora"):
        study.ask(3, worker="dora")
    study.extend(cols=["dora"])
    todo = study.ask(5, worker="dora")
    assert {q.col for q in todo} == {"dora"}
    study.tell([(q.id, float(truth[q.index[0]])) for q in todo], worker="dora")
    assert study.result().labels.shape == (12,)


def test_parameters_are_refused_in_a_sentence():
    for given, words in (
        ({"shape": (0, 3)}, "shape of crowd"),
        ({"shape": (3, 3), "max_error": 2.0}, "max_error of crowd"),
        ({"shape": (3, 3), "batch": 0}, "batch of crowd"),
    ):
        with pytest.raises(ParameterError, match=words):
            crowd(**given)
    assert ew.play(crowd((30, 6)), crowd_oracle()).cost == 180
