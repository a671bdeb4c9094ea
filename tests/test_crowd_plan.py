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


@pytest.mark.slow
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


@pytest.mark.slow
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


def opened_with_gold(tmp_path, n=40):
    """Return a study of cats and dogs with five workers and an expert, and the truth and answers behind it."""
    truth, said = answers(n, 5, 6, classes=2)
    people = ["ann", "bob", "cy", "dan", "eve", "expert"]
    study = ew.Study.create(
        str(tmp_path / "labels.db"),
        "pets",
        plan="crowd",
        params={"classes": ["cat", "dog"], "gold": "expert"},
        seed=3,
        rows=[f"item-{k}" for k in range(n)],
        cols=people,
    )
    return study, truth, said


def test_classes_are_told_and_read_by_name(tmp_path):
    study, _, said = opened_with_gold(tmp_path)
    names = ["cat", "dog"]
    todo = study.ask(4, worker="bob")
    study.tell([(q.id, names[int(said[q.index[0], 1])]) for q in todo], worker="bob")
    told = {line["id"]: line["value"] for line in study.log() if line["what"] == "told"}
    for q in todo:
        assert told[q.id] == said[q.index[0], 1]
        assert study.labels.value(told[q.id]) == names[int(told[q.id])]
    more = study.ask(2, worker="ann")
    with pytest.raises(EntrywiseError, match="one of the classes cat, dog"):
        study.tell([(more[0].id, "bird")], worker="ann")
    with pytest.raises(EntrywiseError, match="one of the classes cat, dog"):
        study.tell([(more[0].id, 1.0)], worker="ann")
    study.amend(todo[0].id, "dog")
    result = study.result()
    i = todo[0].index[0]
    assert result.classes == ("cat", "dog")
    assert result.name(i) == "dog"
    result.save(tmp_path / "r.npz")
    assert type(result).load(tmp_path / "r.npz").name(i) == "dog"


@pytest.mark.slow
def test_gold_is_asked_at_random_of_its_own_worker_and_recalibrates(tmp_path):
    study, truth, said = opened_with_gold(tmp_path)
    names = ["cat", "dog"]
    for _ in range(8):
        for k, name in enumerate(["ann", "bob", "cy", "dan", "eve"]):
            todo = study.ask(5, worker=name)
            study.tell([(q.id, names[int(said[q.index[0], k])]) for q in todo], worker=name)
    assert "expert" not in {line["col"] for line in study.log()}
    before = study.result()
    assert "gold_items" not in before.report
    todo = study.ask(16, worker="expert")
    assert len(todo) == 16
    assert {q.col for q in todo} == {"expert"}
    assert sorted(q.index[0] for q in todo) != list(range(16))  # drawn, not the first
    study.tell([(q.id, names[truth[q.index[0]]]) for q in todo], worker="expert")
    after = study.result()
    assert after.report["gold_items"] == 16
    assert (
        after.report["wrong_labels_low"]
        <= after.report["wrong_labels"]
        <= after.report["wrong_labels_high"]
    )
    checked = [q.index[0] for q in todo]
    np.testing.assert_array_equal(after.labels[checked], truth[checked])
    np.testing.assert_array_equal(after.confidence[checked], 1.0)
    others = np.setdiff1d(np.arange(len(truth)), checked)
    np.testing.assert_array_equal(after.labels[others], before.labels[others])
    assert np.isnan(after.skill[5])
    assert after.certificate.assumes == ("gold items were drawn at random",)


def test_known_labels_and_results_by_name_on_the_command_line(tmp_path):
    from typer.testing import CliRunner

    from entrywise.cli.app import app

    (tmp_path / "items.csv").write_text("item\nx\ny\nz\n")
    (tmp_path / "people.csv").write_text("worker\nann\nbob\n")
    known = tmp_path / "known.csv"
    known.write_text("item,worker,label\nx,ann,cat\nx,bob,cat\ny,ann,dog\n")
    base = [str(tmp_path / "l.db"), "pets"]
    files = ["--rows", str(tmp_path / "items.csv"), "--cols", str(tmp_path / "people.csv")]
    how = ["--plan", "crowd", *files, "--classes", "cat,dog", "--known", str(known)]
    run = CliRunner().invoke
    made = run(app, ["study", "create", *base, *how])
    assert made.exit_code == 0, made.output
    shown = run(app, ["study", "result", *base, "--all", "--format", "csv"])
    assert [line.split(",")[:2] for line in shown.stdout.splitlines()] == [
        ["row", "label"],
        ["x", "cat"],
        ["y", "dog"],
        ["z", ""],
    ]
    log = run(app, ["study", "log", *base, "--format", "csv"])
    assert ",cat," in log.stdout
    assert ",dog," in log.stdout
    known.write_text("item,worker,label\nx,ann,bird\n")
    refused = run(app, ["study", "create", str(tmp_path / "o.db"), "o", *how])
    assert refused.exit_code == 1
    assert "line 2: a label must be one of the classes cat, dog" in str(refused.exception)
