"""Logs of the field, comparisons, features, tariffs, saved results and journals, generated and damaged."""

from __future__ import annotations

import functools
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import entrywise as ew
from _fuzzing import (
    EQUAL,
    ODD,
    OTHER,
    WRONG,
    Outcome,
    damage,
    dialect,
    table,
    texts,
    tried,
)
from entrywise.formats import load, read_tariffs
from entrywise.tables import read_comparisons, read_features

DATE = "2026-01-21T03-44-18.458309"
VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1e308,
    2.5,
    "",
    "x",
    [],
    {},
    [1],
    {"a": 1},
    "nan",
    10**40,
)


# Logs


def lm_eval(rng: np.random.Generator, folder: Path) -> tuple[Path, list[Any], list[Any]]:
    scores = _scores(rng)
    lines = [
        {
            "doc_id": k,
            "doc": {"question": f"What is {k}?"},
            "target": str(k),
            "arguments": {"gen_args_0": {"arg_0": f"Q: {k}", "arg_1": {}}},
            "resps": [["x"]],
            "filtered_resps": ["x"],
            "filter": "none",
            "metrics": ["acc"],
            "doc_hash": f"{k:064x}",
            "prompt_hash": "p",
            "target_hash": "t",
            "acc": score,
        }
        for k, score in enumerate(scores)
    ]
    home = folder / "org__small"
    home.mkdir(exist_ok=True)
    return home / f"samples_gsm8k_{DATE}.jsonl", lines, scores


def every_eval_ever(rng: np.random.Generator, folder: Path) -> tuple[Path, list[Any], list[Any]]:
    scores = _scores(rng)
    lines = [
        {
            "schema_version": "0.3.0",
            "evaluation_id": "gsm8k/org/1",
            "model_id": "org/small",
            "evaluation_name": "gsm8k",
            "sample_id": f"s{k}",
            "sample_hash": f"hash {k}",
            "interaction_type": "single_turn",
            "input": {"raw": "2 + 2", "reference": ["4"]},
            "output": {"raw": ["4"]},
            "answer_attribution": [],
            "evaluation": {"score": score, "is_correct": score == 1.0},
        }
        for k, score in enumerate(scores)
    ]
    return folder / "x_samples.jsonl", lines, scores


def alpaca_eval(rng: np.random.Generator, folder: Path) -> tuple[Path, list[Any], list[Any]]:
    scores = _scores(rng)
    lines = [
        {
            "instruction": f"do {k}",
            "output_1": "x",
            "generator_1": "gpt4_turbo",
            "output_2": "y",
            "generator_2": "mine",
            "annotator": "judge",
            "preference": 1.0 + score,
        }
        for k, score in enumerate(scores)
    ]
    return folder / "annotations.json", lines, scores


def arena(rng: np.random.Generator, folder: Path) -> tuple[Path, list[Any], list[Any]]:
    ends = ["model_a", "model_b", "tie", "tie (bothbad)"]
    wins = [ends[int(k)] for k in rng.integers(4, size=int(rng.integers(1, 9)))]
    lines = [{"model_a": f"a{k}", "model_b": f"b{k}", "winner": w} for k, w in enumerate(wins)]
    want = [
        (f"b{k}", f"a{k}", False) if w == "model_b" else (f"a{k}", f"b{k}", w.startswith("tie"))
        for k, w in enumerate(wins)
    ]
    return folder / "battles.json", lines, want


def label_studio(rng: np.random.Generator, folder: Path) -> tuple[Path, list[Any], list[Any]]:
    lines, want = [], []
    for k in range(int(rng.integers(1, 6))):
        choice = ["good", "bad", "[/x]"][int(rng.integers(3))]
        part = {"from_name": "s", "to_name": "t", "type": "choices", "value": {"choices": [choice]}}
        by = {"id": 1, "completed_by": k % 3, "result": [part], "was_cancelled": False}
        lines.append({"id": k, "data": {"text": "x"}, "annotations": [by]})
        want.append((str(k), str(k % 3), choice))
    return folder / "export.json", lines, want


def _scores(rng: np.random.Generator) -> list[float]:
    return [float(x) for x in rng.integers(2, size=int(rng.integers(1, 8)))]


LOGS = (lm_eval, every_eval_ever, alpaca_eval, arena, label_studio)


def changed(rng: np.random.Generator, found: Any) -> Any:
    """Return a document with one of its parts another, or gone."""
    if isinstance(found, dict) and found and rng.random() < 0.9:
        key = list(found)[int(rng.integers(len(found)))]
        if rng.random() < 0.15:
            return {k: v for k, v in found.items() if k != key}
        return {**found, key: changed(rng, found[key])}
    if isinstance(found, list) and found and rng.random() < 0.9:
        at = int(rng.integers(len(found)))
        return [*found[:at], changed(rng, found[at]), *found[at + 1 :]]
    return VALUES[int(rng.integers(len(VALUES)))]


def field_logs(rng: np.random.Generator, folder: Path) -> Outcome:
    """What harnesses, arenas and label tools write."""
    path, lines, want = LOGS[int(rng.integers(len(LOGS)))](rng, folder)
    chance = rng.random()
    body: Any = changed(rng, lines) if chance < 0.5 else lines
    if path.suffix == ".jsonl" and isinstance(body, list):
        text = "".join(json.dumps(line) + "\n" for line in body)
    else:
        text = json.dumps(body)
    data = text.encode()
    hurt = chance < 0.7
    path.write_bytes(damage(rng, data) if 0.5 <= chance < 0.7 else data)
    held, outcome = tried(lambda: load(path))
    if outcome is not None:
        if not hurt:
            return Outcome(WRONG, f"refused a whole {path.name}: {outcome.words}")
        return outcome
    found = _held(held)
    if hurt:
        return Outcome(OTHER)
    return Outcome(EQUAL) if found == want else Outcome(WRONG, f"{text[:400]}\n read {found}")


def _held(held: Any) -> list[Any]:
    """Return what a file holds in the form of the generators."""
    if hasattr(held, "cells"):
        return [cell.value for cell in held.cells]
    if hasattr(held, "winners"):
        return list(zip(held.winners, held.losers, held.tied, strict=True))
    return list(zip(held.items, held.workers, held.labels, strict=True))


# Comparisons, features, tariffs


def comparison_files(rng: np.random.Generator, folder: Path) -> Outcome:
    """Who beat whom, by two columns or by the side that won."""
    names = [name for name in texts(rng, 6) if name.lower() not in ("tie", "na")]
    games = [rng.permutation(len(names))[:2].tolist() for _ in range(int(rng.integers(1, 20)))]
    lines: list[list[Any]]
    if rng.random() < 0.5:
        head = ["winner", "loser"] if rng.random() < 0.7 else ["loser", "winner"]
        order = [head.index("winner"), head.index("loser")]
        cells = [[names[a], names[b]] for a, b in games]
        lines = [head, *([pair[order.index(0)], pair[order.index(1)]] for pair in cells)]
        want = [(names[a], names[b], False) for a, b in games]
    else:
        ends = [("model_a", "model_b", "tie")[int(k)] for k in rng.integers(3, size=len(games))]
        lines = [["model_a", "model_b", "winner"]]
        lines += [[names[a], names[b], end] for (a, b), end in zip(games, ends, strict=True)]
        want = [
            (names[b], names[a], False) if end == "model_b" else (names[a], names[b], end == "tie")
            for (a, b), end in zip(games, ends, strict=True)
        ]
    path, hurt = _file(rng, folder, lines, decimals=0)
    found, outcome = tried(lambda: read_comparisons(path))
    if outcome is not None or hurt:
        return outcome or Outcome(OTHER)
    return _same(list(zip(found.winners, found.losers, found.tied, strict=True)), want, path)


def feature_files(rng: np.random.Generator, folder: Path) -> Outcome:
    """Features of lines, and tariffs of models."""
    names = texts(rng, int(rng.integers(2, 8)))
    numbers = np.round(rng.uniform(0, 9, (len(names), 2)), 2)
    tariff = rng.random() < 0.5
    head = ["model", "input", "output"] if tariff else ["name", "size", "kind"]
    kinds = [["red", "blue", "green"][int(k)] for k in rng.integers(3, size=len(names))]
    lines: list[list[Any]] = [head]
    for k, name in enumerate(names):
        last = float(numbers[k, 1]) if tariff else kinds[k]
        lines.append([name, float(numbers[k, 0]), last])
    path, hurt = _file(rng, folder, lines, decimals=2)
    if tariff:
        read, outcome = tried(lambda: read_tariffs(path))
        if outcome is not None or hurt:
            return outcome or Outcome(OTHER)
        want = {name: tuple(numbers[k].tolist()) for k, name in enumerate(names)}
        return _same({name: (t.input, t.output) for name, t in read.items()}, want, path)
    read, outcome = tried(lambda: read_features(path))
    if outcome is not None or hurt:
        return outcome or Outcome(OTHER)
    size, kind = read.columns
    got = (list(read.labels), np.asarray(size.numbers).tolist(), list(kind.texts or []))
    return _same(got, (names, numbers[:, 0].tolist(), kinds), path)


def _file(
    rng: np.random.Generator, folder: Path, lines: list[list[Any]], decimals: int
) -> tuple[Path, bool]:
    name, data = dialect(rng, replace(table(rng), decimals=decimals), lines)
    hurt = bool(rng.random() < 0.3)
    path = folder / name
    path.write_bytes(damage(rng, data) if hurt else data)
    return path, hurt


def _same(found: Any, want: Any, path: Path) -> Outcome:
    if found == want:
        return Outcome(EQUAL)
    return Outcome(WRONG, f"{path.read_bytes()[:500]!r}\n read {found}")


# What we write ourselves


@functools.cache
def saved() -> bytes:
    """Return the bytes of a saved completion."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((12, 9)) < 0.7, rng.normal(size=(12, 9)), np.nan)
    found = ew.complete(ew.Observations.from_dense(X), method="soft-impute")
    with tempfile.TemporaryDirectory() as folder:
        found.save(Path(folder, "x.npz"))
        return Path(folder, "x.npz").read_bytes()


def saved_files(rng: np.random.Generator, folder: Path) -> Outcome:
    """Saved results and journals of streams, damaged: as they were, or refused."""
    if rng.random() < 0.5:
        path = folder / "found.npz"
        path.write_bytes(damage(rng, saved()))
        found, outcome = tried(lambda: ew.LowRank.load(path))
        if outcome is not None:
            return outcome
        right = ew.LowRank.load(saved())
        same = np.array_equal(found.left, right.left) and np.array_equal(found.right, right.right)
        return Outcome(EQUAL) if same else Outcome(WRONG, "a damaged result was loaded")
    from entrywise.cli._votes import Journal

    votes = [{"row": f"u{k % 3}", "col": ODD[k % len(ODD)], "label": bool(k % 2)} for k in range(9)]
    path = folder / "journal.jsonl"
    text = "".join(json.dumps(vote) + "\n" for vote in votes)
    path.write_bytes(damage(rng, text.encode()))

    def look() -> int:
        journal = Journal(path, lambda words: None)
        try:
            return len(journal.votes)
        finally:
            journal.close()

    _, outcome = tried(look)
    return outcome or Outcome(OTHER)
