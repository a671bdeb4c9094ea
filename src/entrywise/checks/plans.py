"""Laws that every plan obeys.

A law takes a :class:`~entrywise.queries.Plan` and a function that makes a fresh oracle from a seed,
and raises AssertionError with a sentence when the plan breaks it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from entrywise.exceptions import AnswerError, EntrywiseError, ParameterError
from entrywise.observations import Observations
from entrywise.oracles import Oracle
from entrywise.play import play
from entrywise.queries import Batch, Checkpoint, History, Plan, Situation
from entrywise.results import Certificate, Result
from entrywise.run import Run, verify_step

MakeOracle = Callable[[int], Oracle]
Law = Callable[[Plan, MakeOracle], None]


def same_result(a: Result, b: Result) -> bool:
    """Tell whether two results hold the same numbers, bit for bit; money and status aside."""
    return type(a) is type(b) and all(
        f.name in ("status", "cost") or _same(getattr(a, f.name), getattr(b, f.name))
        for f in fields(a)
    )


def _same(x: Any, y: Any) -> bool:
    """Tell whether two values are the same, NaN and the parts of results included."""
    if type(x) is not type(y):
        return False
    if isinstance(x, np.ndarray):
        return np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
    if is_dataclass(x) and not isinstance(x, Certificate):
        return all(_same(getattr(x, f.name), getattr(y, f.name)) for f in fields(x))
    return repr(x) == repr(y)


def _played(plan: Plan, make_oracle: MakeOracle, **extra: Any) -> Run:
    run = Run(plan, **extra)
    play(run, make_oracle(0))
    return run


_WHOLE: WeakKeyDictionary[Plan, tuple[MakeOracle, Run]] = WeakKeyDictionary()


def _whole(plan: Plan, make_oracle: MakeOracle) -> Run:
    """Return a run to its end, which laws look at and none goes on with: it is played once for all of them."""
    known = _WHOLE.get(plan)
    if known is None or known[0] is not make_oracle:
        known = _WHOLE[plan] = (make_oracle, _played(plan, make_oracle))
    return known[1]


def replays(plan: Plan, make_oracle: MakeOracle) -> None:
    """A replay of the log asks the same questions and ends in the same result."""
    run = _whole(plan, make_oracle)
    again = Run.replay(plan, run.log)
    assert again.finished, f"{plan.name}: the replayed run did not finish"
    assert same_result(run.result, again.result), f"{plan.name}: the replay ended in another result"


def is_seeded(plan: Plan, make_oracle: MakeOracle) -> None:
    """Two runs with the same answers ask the same questions, whatever global randomness does."""
    first = _whole(plan, make_oracle)
    np.random.seed(12345)  # noqa: NPY002  a law about global randomness must touch it
    second = _played(plan, make_oracle)
    assert len(first.log) == len(second.log), (
        f"{plan.name}: two runs asked {len(first.log)} and {len(second.log)} batches"
    )
    for number, (a, b) in enumerate(zip(first.log, second.log, strict=True)):
        assert a.batch.same_as(b.batch), f"{plan.name}: batch {number} differs between two runs"
    assert same_result(first.result, second.result), (
        f"{plan.name}: two runs ended in different results"
    )


def leaves_answers_alone(plan: Plan, make_oracle: MakeOracle) -> None:
    """Answers arrive read-only and the plan does with that."""
    if plan.streaming:
        _leaves_situations_alone(plan, make_oracle)
        return
    oracle = make_oracle(0)
    generator = plan.start()
    wanted = next(generator, None)
    while wanted is not None:
        answers: Any = None
        if isinstance(wanted, Batch):
            answers = np.array(oracle(wanted), dtype=np.float64)
            answers.flags.writeable = False
            before = answers.copy()
        try:
            wanted = generator.send(answers)
        except StopIteration:
            wanted = None
        if answers is not None:
            assert np.array_equal(answers, before, equal_nan=True), (
                f"{plan.name} wrote into the answers it was sent"
            )


def _leaves_situations_alone(plan: Plan, make_oracle: MakeOracle) -> None:
    run = _played(plan, make_oracle)
    for number in range(len(run.steps)):
        situation = run.situation(number)
        before = [np.array(getattr(situation.facts, f.name)) for f in fields(History)]
        plan.step(situation)
        after = [getattr(situation.facts, f.name) for f in fields(History)]
        same = all(map(np.array_equal, map(repr, before), map(repr, after)))
        assert same, f"{plan.name} wrote into the facts it was shown"


def returns_when_exhausted(plan: Plan, make_oracle: MakeOracle) -> None:
    """When the money runs out, at whatever batch, a plan returns a result and not an exception."""
    whole = _whole(plan, make_oracle)
    batches = len(whole.log)
    for stop in sorted({0, 1, 2, 3, batches // 2, batches - 1}):
        if not 0 <= stop < batches:
            continue
        oracle, run = make_oracle(0), Run(plan)
        while run.number < stop and not run.finished:
            run.tell(oracle(run.ask()))  # type: ignore[arg-type]
        if not run.finished:
            result = run.exhaust()
            assert isinstance(result, Result), (
                f"{plan.name} returned {type(result).__name__} when the money ran out"
            )
            assert result.status == "exhausted", (
                f"{plan.name}: status must be exhausted, is {result.status}"
            )


def never_overspends(plan: Plan, make_oracle: MakeOracle) -> None:
    """Whatever the budget, what was spent stays within it and equals what the oracle answered."""
    whole = _whole(plan, make_oracle)
    for share in (0.0, 0.1, 0.37, 0.8, 1.0):
        run = _played_for(plan, make_oracle, float(np.floor(whole.ledger.spent * share)))
        if run is None:
            continue
        limit = run.ledger.budget
        assert limit is None or run.ledger.spent <= limit * (1 + 1e-9), (
            f"{plan.name} spent {run.ledger.spent} of {limit}"
        )
        bill = sum(float(run.prices.charges(e.batch).sum()) for e in run.log)
        assert run.result.cost <= bill + 1e-6, (
            f"{plan.name}: cost {run.result.cost} exceeds the bill {bill}"
        )


def _played_for(plan: Plan, make_oracle: MakeOracle, budget: float) -> Run | None:
    """Return a run with another budget; None where the plan itself refuses to plan with so little."""
    if plan.budget is None:
        return _played(plan, make_oracle, budget=budget)
    try:
        return _played(replace(plan, params={**plan.params, "budget": budget}), make_oracle)
    except ParameterError:
        return None


def resumes(plan: Plan, make_oracle: MakeOracle) -> None:
    """From any checkpoint the plan asks the same questions and ends in the same result."""
    if not plan.resumable:
        return
    kept: list[tuple[int, Checkpoint]] = []
    run, oracle = Run(plan), make_oracle(0)
    while not run.finished:
        if run.checkpoint is not None and (not kept or kept[-1][0] != run.checkpoint_at):
            kept.append((run.checkpoint_at, run.checkpoint))
        run.tell(oracle(run.ask()))  # type: ignore[arg-type]
    if run.checkpoint is not None and (not kept or kept[-1][0] != run.checkpoint_at):
        kept.append((run.checkpoint_at, run.checkpoint))
    for at, checkpoint in kept:
        stored = Checkpoint.restore(checkpoint.arrays, checkpoint.rng_state())
        again = Run.replay(plan, run.log[at:], resume=stored)
        assert again.finished, f"{plan.name}: resumed at batch {at}, it did not finish"
        assert same_result(run.result, again.result), (
            f"{plan.name}: resumed at batch {at}, it ended in another result"
        )


def refuses_bad_answers(plan: Plan, make_oracle: MakeOracle) -> None:
    """NaN and infinite answers are refused with the entry named, and nothing is lost."""
    oracle, run = make_oracle(0), Run(plan)
    for number in itertools.count():
        if run.finished or number > 3:
            break
        batch = run.ask()
        assert batch is not None
        good = np.array(oracle(batch), dtype=np.float64)
        for bad in (np.nan, np.inf, -np.inf):
            answers = good.copy()
            answers[len(answers) // 2] = bad
            try:
                run.tell(answers)
            except AnswerError as error:
                words = str(error)
            else:
                raise AssertionError(f"{plan.name} took {bad} for an answer")
            named = f"({batch.rows[len(good) // 2]}, {batch.cols[len(good) // 2]})"
            assert named in words, f"{plan.name}: the refusal must name {named}, says {words}"
        run.tell(good)


def survives_a_failing_oracle(plan: Plan, make_oracle: MakeOracle) -> None:
    """An oracle that raises midway loses nothing: playing the run again asks nothing twice."""
    whole, calls = _whole(plan, make_oracle), 0
    oracle = make_oracle(0)

    def flaky(batch: Batch) -> Any:
        nonlocal calls
        calls += 1
        if calls % 3 == 2:
            raise ConnectionError("the instrument is off")
        return oracle(batch)

    run = Run(plan)
    for _ in range(3 * len(whole.log) + 3):
        try:
            play(run, flaky)
            break
        except ConnectionError as error:
            carried = getattr(error, "run", None)
        assert carried is run, f"{plan.name}: the exception must carry the run"
    assert run.finished, f"{plan.name}: the run did not finish"
    assert run.measured == whole.measured, (
        f"{plan.name} asked {run.measured} entries instead of {whole.measured}"
    )
    assert same_result(run.result, whole.result), (
        f"{plan.name}: the interrupted run ended in another result"
    )


def saves_its_result(plan: Plan, make_oracle: MakeOracle) -> None:
    """The result can be written and read back whole; the keys of its report are names."""
    import tempfile
    from pathlib import Path

    result = _whole(plan, make_oracle).result
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.npz"
        result.save(path)
        back = Result.load(path)
    assert all(key.isidentifier() for key in result.report), f"{plan.name}: {[*result.report]}"
    assert type(back) is type(result), (
        f"{plan.name}: a {type(result).__name__} came back as {type(back).__name__}"
    )
    for f in fields(result):
        x, y = getattr(result, f.name), getattr(back, f.name)
        if isinstance(x, np.ndarray):
            assert np.array_equal(x, y, equal_nan=x.dtype.kind == "f"), (
                f"{plan.name}: {f.name} changed on the way"
            )


def streams_as_it_plays(plan: Plan, make_oracle: MakeOracle) -> None:
    """With every answer there before each step, answers in any order lead to the same questions."""
    if not plan.streaming:
        return
    whole, oracle, run = _whole(plan, make_oracle), make_oracle(0), Run(plan)
    order = np.random.default_rng(0)
    while not run.finished:
        batch = run.ask()
        assert batch is not None
        answers, at = np.asarray(oracle(batch)), run.open
        shuffled = order.permutation(len(at))
        for part in np.array_split(shuffled, min(3, len(at))):
            run.tell(answers[part], at[part])
    assert len(run.steps) == len(whole.steps), (
        f"{plan.name} made {len(run.steps)} steps instead of {len(whole.steps)}"
    )
    for a, b in zip(run.log, whole.log, strict=True):
        assert a.batch.same_as(b.batch), f"{plan.name}: the order of answers changed its questions"
    assert same_result(run.result, whole.result), f"{plan.name} ended in another result"


def streams_in_any_order(plan: Plan, make_oracle: MakeOracle) -> None:
    """Any delivery keeps the budget, asks nothing twice, loses nothing, replays exactly, and ends."""
    if not plan.streaming:
        return
    for seed in range(3):
        _deliver_and_check(plan, make_oracle(0), np.random.default_rng(seed))


def _deliver_and_check(plan: Plan, oracle: Oracle, rng: np.random.Generator) -> None:
    run, answers = Run(plan), Ready(oracle)
    calls = 0
    while not run.finished:
        calls += 1
        assert calls < 10_000, f"{plan.name} does not end"
        rows, cols = _some_lines(plan, rng)
        run.ask(int(rng.integers(1, 20)), rows=rows, cols=cols)
        limit = run.ledger.budget
        held = run.ledger.spent + run.ledger.held
        assert limit is None or held <= limit * (1 + 1e-9), f"{plan.name} holds {held} of {limit}"
        if run.finished:
            break
        some = rng.permutation(run.open)[: rng.integers(0, 12)]
        if len(some) or rng.random() < 0.1:
            run.tell(answers(run, some), some)
    cells = [
        (e.batch.mode, *c) for e in run.log for c in zip(e.batch.rows, e.batch.cols, strict=True)
    ]
    assert plan.fresh or run.measured == len(set(cells)), f"{plan.name} asked an entry twice"
    assert not any(np.isnan(e.answers).any() for e in run.log), f"{plan.name} ended too early"
    again = Run.replay(plan, run.steps)
    assert again.finished, f"{plan.name}: the replayed run did not finish"
    assert same_result(run.result, again.result), f"{plan.name}: the replay ended in another result"
    for step in run.steps[:: max(1, len(run.steps) // 4)]:
        verify_step(plan, run.situation(step.number), step.batch)


class Ready:
    """Answers of an oracle, asked for in the order in which questions came to exist."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle, self.values = oracle, np.zeros(0)

    def __call__(self, run: Run, positions: Any) -> Any:
        """Return the answers at some positions of a streaming run."""
        assert run.batch is not None
        while len(self.values) < len(run.batch):
            new = run.alike(np.arange(len(self.values), len(run.batch)))
            new = new[new - new[0] == np.arange(len(new))]  # up to the next instrument
            self.values = np.concatenate([self.values, np.asarray(self.oracle(run.asked(new)))])
        return self.values[positions]


def _some_lines(plan: Plan, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return a filter as a worker may have one: none, some rows, or some columns."""
    shape = plan.shape
    if shape is None or shape[0] is None or rng.random() < 0.5:
        return None, None
    axis = int(rng.integers(2))
    size = shape[axis] or 1
    lines = rng.choice(size, size=max(1, size // 3), replace=False)
    return (lines, None) if axis == 0 else (None, lines)


def uses_history(plan: Plan, make_oracle: MakeOracle) -> None:
    """What is known costs nothing; a plan that takes history never asks for it, and fits with it."""
    shape = plan.shape
    if shape is None or shape[0] is None or plan.symmetric or plan.fresh:
        return
    m, n = shape[0], shape[1]
    i, j = np.divmod(np.random.default_rng(0).permutation(m * n)[: m * n // 3], n)
    mode = plan.params.get("target") or "entry"
    values = np.asarray(make_oracle(0)(Batch(i, j, mode)), dtype=np.float64)
    known = Observations.from_triplets(i, j, values, (m, n))
    run = _played(plan, make_oracle, known=known)
    there = set(zip(i.tolist(), j.tolist(), strict=True))
    bill = 0.0
    for batch, _ in run.log:
        cells = zip(batch.rows.tolist(), batch.cols.tolist(), strict=True)
        old = np.array([cell in there for cell in cells], dtype=bool)
        free = old if batch.mode == mode else np.zeros(len(batch), bool)
        assert not (plan.history and free.any()), f"{plan.name} asked for what is known"
        bill += float(run.prices.charges(batch, free).sum())
    assert run.result.cost <= bill + 1e-6, f"{plan.name} paid for what was known"
    if plan.streaming:
        with_it = plan.conclude(Situation(facts=History.of(known, mode)))
        without = plan.conclude(Situation())
        assert not same_result(with_it, without), f"{plan.name} does not fit with what is known"


LAWS: tuple[Law, ...] = (
    replays,
    is_seeded,
    leaves_answers_alone,
    returns_when_exhausted,
    never_overspends,
    resumes,
    refuses_bad_answers,
    survives_a_failing_oracle,
    saves_its_result,
    streams_as_it_plays,
    streams_in_any_order,
    uses_history,
)


def check_plan(plan: Plan, make_oracle: MakeOracle, laws: Iterable[Law] = LAWS) -> None:
    """Hold a plan to every law."""
    for law in laws:
        try:
            law(plan, make_oracle)
        except EntrywiseError as error:
            raise AssertionError(f"{plan.name} broke {law.__name__}: {error}") from error
