"""What changes a study as a whole: making, forking, and the epochs that everything else begins.

An epoch starts the plan anew with everything told so far as history. The transaction that begins one withdraws
what is queued, keeps what is out, and runs no plan.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from entrywise.active.cells.calibration import reserve_advice
from entrywise.exceptions import ParameterError, StoreError, TellError
from entrywise.observations import Observations
from entrywise.queries import History, Prices
from entrywise.results.kept_features import extend_features
from entrywise.run import Known, by_mode, refuse_asymmetry
from entrywise.study import past, plans
from entrywise.study.entries import Labels, failed_because, number, parse_id, title
from entrywise.study.leases import WITHDRAWN, withdraw
from entrywise.study.plans import Maker
from entrywise.study.records import Advance, Epoch, Key, Record
from entrywise.study.schema import FREE, GIVEN, facts, pending, questions, studies, tokens
from entrywise.study.steps import Steps
from entrywise.study.store import Store

_OWN = ("rng", "budget", "prices", "resume", "history", "situation")


@dataclass(frozen=True)
class Said:
    """A fact that a change adds about a question that is there."""

    key: Key
    kind: str
    value: float | None = None
    failed: bool = False
    noise: float | None = None
    worker: str | None = None
    price: float = 0.0  # at which a voided question is asked again
    reason: str | None = None


@dataclass(frozen=True)
class Change:
    """What is otherwise in the next epoch."""

    epoch: Epoch
    n_rows: int | None
    n_cols: int | None
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    known: History = field(default_factory=History.empty)
    said: Sequence[Said] = ()
    flags: Mapping[str, Any] = field(default_factory=dict)


# making one


def create(
    url: str | Store,
    name: str,
    plan: str,
    maker: Maker,
    params: Mapping[str, Any],
    seed: int | None,
    budget: float | None,
    prices: Prices | Mapping[str, Any] | None,
    known: Known | None,
    rows: Sequence[str] | None,
    cols: Sequence[str] | None,
    currency: str | None,
) -> Store:
    """Make a new study and its first questions; a database is touched once all of that is in order."""
    _refuse_own(params)
    if budget is not None and not (math.isfinite(budget) and budget >= 0):
        raise ParameterError(f"budget (--budget) must be finite and not below 0, got {budget:g}")
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    others = plans.plain(plans.without_features(params))
    full, labels = plans.sized(plan, maker(plan), others, rows, cols)
    full |= plans.features_of(params, labels, full.get("shape") or (None, None))
    record = Record(
        name=name,
        plan=plan,
        seed=int(seed),
        params=full,
        prices=_quotes(prices),
        total=None if budget is None else float(budget),
        currency=currency,
    )
    return begin(url, record, maker, labels, known)


def begin(
    url: str | Store,
    record: Record,
    maker: Maker,
    labels: Mapping[str, list[str]],
    known: Known | past.Past | None,
    change: str = "create",
) -> Store:
    """Work out the first questions of a study and keep it, with what is known."""
    if not record.name or "\n" in record.name:
        raise ParameterError(f"a study's name must be one line of text, got {record.name!r}")
    plan = plans.make(record, maker)
    shape = plan.shape or (None, None)
    if plan.symmetric and ("row" in labels) != ("col" in labels):
        both = labels.get("row") or labels["col"]
        labels = {"row": both, "col": both}
    record = replace(
        record,
        **_flags(plan),
        n_rows=shape[0],
        n_cols=shape[1],
        total=record.total if record.total is not None else plan.budget,
        versions=plans.versions(),
    )
    names = Labels(labels.get("row"), labels.get("col"), *shape)
    if not isinstance(known, past.Past):
        known = past.given(_known(record, known, names))
    record = replace(record, given=int((known.batch == GIVEN).sum()))
    made = Steps(None, maker).first(record, known)
    _warn_of_reserve(record, made)
    store = Store.of(url)
    record = replace(record, created_at=store.now())
    epoch = Epoch(record.params, record.prices, record.total, change, record.dropped)
    store.create(record, epoch, labels, known, made)
    return store


def _warn_of_reserve(record: Record, made: Advance) -> None:
    """Warn where the blind reserve that is asked first will be too small for the intervals that it is for."""
    share = record.params.get("reserve")
    if not isinstance(share, float) or not 0 < share < 1 or not made.steps:
        return
    first = made.steps[0].batch
    if first is None or first.arm is None or first.probability is None or record.budget is None:
        return
    chance = first.probability[first.arm == "reserve"]
    cells = (record.n_rows or 0) * (record.n_cols or 0) - record.given
    words = reserve_advice(chance, share, record.budget, cells)
    if words is not None:
        warnings.warn(words, stacklevel=5)


def _flags(plan: Any) -> dict[str, Any]:
    names = ("symmetric", "fresh", "tolerates_failed", "history", "streaming")
    return {name: bool(getattr(plan, name)) for name in names}


def _refuse_own(params: Mapping[str, Any]) -> None:
    for own in _OWN:
        if own in params:
            word = "seed" if own == "rng" else own
            raise ParameterError(
                f"{own} is not a parameter of a study's plan; give {word} beside params"
            )


def _plain(
    params: Mapping[str, Any], labels: Mapping[str, Sequence[str]], record: Record
) -> dict[str, Any]:
    """Return other parameters of a study as it keeps them."""
    features = plans.features_of(params, labels, (record.n_rows, record.n_cols))
    return plans.plain(plans.without_features(params)) | features


def _quotes(prices: Prices | Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if prices is None:
        return None
    return (prices if isinstance(prices, Prices) else Prices.from_json(prices)).to_json()


def _known(record: Record, known: Known | None, names: Labels) -> History:
    """Return known entries of all instruments as one table."""
    parts = []
    for mode, seen in by_mode(record.params, known).items():
        table = _known_by(record, seen, names)
        parts.append(replace(table, mode=np.full(len(table), mode)))
    return sum(parts, History.empty())


def _known_by(record: Record, seen: Observations, names: Labels) -> History:
    """Return known entries as a table, labels translated, sizes and symmetry checked."""
    if record.fresh and not record.history:
        raise ParameterError(
            f"{record.plan} wants fresh answers each time; known entries cannot serve it, leave them out"
        )
    for count, size in zip(seen.shape, (record.n_rows, record.n_cols), strict=True):
        if size is not None and count > size:
            raise ParameterError(
                f"known entries have shape {seen.shape}, the study's is {record.n_rows, record.n_cols}"
            )
    rows, cols = seen.rows, seen.cols
    for axis, own in (("row", names.rows), ("col", names.cols)):
        given = seen.row_labels if axis == "row" else seen.col_labels
        if own is None or given is None or tuple(own) == given:
            continue
        code = {label: k for k, label in enumerate(own)}
        missing = next((label for label in given if label not in code), None)
        if missing is not None:
            raise ParameterError(
                f"known entries name the {axis} {missing!r}, which the study does not have; "
                f"leave it out, or add it to --{axis}s"
            )
        into = np.array([code[label] for label in given], np.int64)
        rows, cols = (into[rows], cols) if axis == "row" else (rows, into[cols])
    whole = (record.n_rows or int(rows.max(initial=0)) + 1, record.n_cols or 1)
    noise = seen.noise_array(default=np.nan)
    if record.symmetric:
        refuse_asymmetry(Observations(rows, cols, seen.values, whole))
        _, first = np.unique(_pairs(rows, cols), return_index=True)  # (i, j) and (j, i) are one
        first.sort()
        rows, cols, noise = rows[first], cols[first], noise[first]
        return _given(rows, cols, seen.values[first], noise)
    return _given(rows, cols, seen.values, noise)


def _pairs(rows: Any, cols: Any) -> Any:
    return (np.minimum(rows, cols) << 31) | np.maximum(rows, cols)


def _given(rows: Any, cols: Any, values: Any, noise: Any = None) -> History:
    known = np.ones(len(rows), dtype=bool)
    return History(rows, cols, values, noise=noise, price=np.zeros(len(rows)), known=known)


def fork(
    store: Store,
    name: str,
    new: str,
    maker: Maker,
    *,
    url: str | Store | None = None,
    params: Mapping[str, Any] | None = None,
    seed: int | None = None,
    budget: float | None = None,
    prices: Prices | Mapping[str, Any] | None = None,
) -> Store:
    """Start the plan again under a new name with all that was told; what it cost counts, what is out stays behind."""
    record = store.record(name)
    _refuse_own(params or {})
    labels = store.labels(record.id)
    told = past.read(store.database, record)
    there = told.state == past.ANSWERED
    copied = past.Past(
        told.batch[there], told.position[there], told.told, told.state[there], unseen=[]
    )
    begun = Record(
        name=new,
        plan=record.plan,
        seed=record.seed if seed is None else int(seed),
        params={**record.params, **_plain(params or {}, labels, record)},
        prices=record.prices if prices is None else _quotes(prices),
        dropped=record.dropped,
        currency=record.currency,
        total=record.total if budget is None else float(budget),
        committed=float(copied.table.price.sum()),
        first_step=record.next_step,
        next_step=record.next_step,
        asked=int((copied.batch != GIVEN).sum()),
        parent=name,
    )
    return begin(store if url is None else url, begun, maker, labels, copied, "fork")


# beginning an epoch


def _begin_epoch(store: Store, name: str, edit: Callable[[Record], Change]) -> Record:
    """Change a study, if it still stands where it was looked at; look again otherwise."""
    while True:
        record = store.record(name)
        change = edit(record)
        if store.database.write(lambda c: _write(store, c, record, change)):  # noqa: B023
            return record


def _write(store: Store, connection: Connection, record: Record, change: Change) -> bool:
    """Withdraw what is queued and begin the epoch; what is out stays out."""
    s, p = studies.c, pending.c
    if not store.swap(connection, record, {"cursor": record.cursor + 1}):
        return False
    now = store.database.now(connection)
    queued = (p.study == record.id, FREE, p.leased_until <= now)
    withdraw(connection, store.database, record.id, now, *queued)
    query = sa.select(s.committed, s.withdrawn, s.cursor).where(s.id == record.id)
    committed, withdrawn, cursor = connection.execute(query).one()
    total = change.epoch.total
    if total is not None and record.total != total and total < committed * (1 - 1e-12):
        raise ParameterError(
            f"{committed:g} is spent or held for open questions; the budget must be at least that, got {total:g}"
        )
    begun = replace(
        record,
        **change.flags,
        committed=committed,
        withdrawn=withdrawn,
        epoch=record.epoch + 1,
        first_step=record.next_step,
        total=total,
        n_rows=change.n_rows,
        n_cols=change.n_cols,
        given=record.given + len(change.known),
        versions=plans.versions(),
    )
    begun = replace(begun, current=0 if begun.streaming else begun.next_step)
    store.add_epoch(connection, record.id, begun, change.epoch)
    old = {"row": record.n_rows or 0, "col": record.n_cols or 0}
    store.add_labels(connection, record.id, change.labels, old)
    _add_known(store, connection, begun, change.known)
    added = _add_said(store, connection, begun, change.said, now)
    moved = {
        "cursor": cursor + 1,
        "epoch": begun.epoch,
        "first_step": begun.first_step,
        "current": begun.current,
        "total": begun.total,
        "n_rows": begun.n_rows,
        "n_cols": begun.n_cols,
        "given": begun.given,
        "withdrawn": withdrawn + added,
        "state": "open",
        "reason": None,
        "trouble": None,
        "stepper": None,
        "stepper_until": 0.0,
        **change.flags,
    }
    connection.execute(sa.update(studies).where(s.id == record.id).values(**moved))
    return True


def _add_known(store: Store, connection: Connection, begun: Record, known: History) -> None:
    if not len(known):
        return
    table = past.given(known)
    first = begun.given - len(known)
    moved = replace(table, position=table.position + first)
    repeat = begun.asked + begun.given if begun.fresh else 0
    record = replace(begun, fresh=False) if not repeat else begun
    store.add_past(connection, begun.id, record, moved)


def _add_said(
    store: Store, connection: Connection, begun: Record, said: Sequence[Said], now: float
) -> int:
    """Add facts about questions that are there; return how many questions lost their answer."""
    f, p, q = facts.c, pending.c, questions.c
    lost = 0
    for fact in said:
        here = (f.study == begun.id, f.batch == fact.key[0], f.position == fact.key[1])
        last = connection.execute(sa.select(sa.func.max(f.turn)).where(*here)).scalar()
        turn = 0 if last is None else last + 1
        row = {
            "study": begun.id,
            "batch": fact.key[0],
            "position": fact.key[1],
            "turn": turn,
            "kind": fact.kind,
            "value": fact.value,
            "failed": fact.failed,
            "noise": fact.noise,
            "worker": fact.worker,
            "told_at": now,
            "charged": 0.0,
            "epoch": begun.epoch,
            "seen": begun.next_step,
            "reason": fact.reason,
        }
        connection.execute(sa.insert(facts).values(**row))
        waiting = (p.study == begun.id, p.batch == fact.key[0], p.position == fact.key[1])
        moved = sa.update(pending).where(*waiting).values(turn=turn + 1)
        there = connection.execute(moved).rowcount
        if fact.kind == "void" and not there:
            asked = (q.study == begun.id, q.batch == fact.key[0], q.position == fact.key[1])
            columns = (q.batch, q.position, q.row, q.col, q.mode, q.unit, q.plate)
            entry = connection.execute(sa.select(*columns).where(*asked)).one()._asdict()
            lease = {"step": -1, "leased_until": WITHDRAWN, "failed": False, "turn": turn + 1}
            lease |= {"study": begun.id, "price": fact.price}
            lease |= {"holders": _holders(connection, here)}
            connection.execute(sa.insert(pending).values(**entry, **lease))
            lost += 1
    return lost


def _holders(connection: Connection, here: tuple[Any, ...]) -> str | None:
    """Return everyone who ever held a question that was answered, a line each."""
    f = facts.c
    found: list[str] = []
    for worker, holders in connection.execute(sa.select(f.worker, f.holders).where(*here)):
        found += [worker] if worker is not None else []
        found += [] if holders is None else holders.split("\n")
    return "\n".join(dict.fromkeys(found)) or None


def _same(record: Record, change: str, **other: Any) -> Change:
    """Return an epoch like the present one, but for what is given."""
    epoch = Epoch(
        params=other.pop("params", record.params),
        prices=other.pop("prices", record.prices),
        total=other.pop("total", record.total),
        change=change,
        dropped=other.pop("dropped", record.dropped),
    )
    shape = {"n_rows": record.n_rows, "n_cols": record.n_cols}
    return Change(epoch, **(shape | other))


def _try(record: Record, change: Change, maker: Maker) -> Change:
    """Make the plan of the next epoch, so that what it refuses is refused before anything is written."""
    epoch = change.epoch
    tried = replace(record, params=epoch.params, prices=epoch.prices, total=epoch.total)
    plan = plans.make(tried, maker)
    shape = plan.shape or (None, None)
    return replace(change, n_rows=shape[0], n_cols=shape[1], flags=_flags(plan))


def close(store: Store, name: str) -> None:
    """Stop asking and telling."""
    while True:
        record = store.record(name)
        if record.state != "open":
            raise StoreError(f"study {name!r} is {record.state}; only an open one can be closed")
        if _set_state(store, record, "closed"):
            return


def _set_state(store: Store, record: Record, state: str) -> bool:
    change = {"cursor": record.cursor + 1, "trouble": None, "state": state}
    return store.database.write(lambda c: store.swap(c, record, change))


def reopen(store: Store, name: str, maker: Maker, budget: float | None) -> None:
    """Go on with a closed study, or set the money that a study has in all."""
    if budget is not None:
        _refuse_money(budget)

        def edit(record: Record) -> Change:
            return _try(record, _same(record, "reopen", total=float(budget)), maker)

        _begin_epoch(store, name, edit)
        return
    while True:
        record = store.record(name)
        if record.state == "exhausted":
            raise ParameterError(
                f"the money of study {name!r} ran out; reopen it with a larger budget"
            )
        if record.state != "closed":
            raise StoreError(f"study {name!r} is {record.state}; only a closed one can be reopened")
        if _set_state(store, record, "open"):
            return


def _refuse_money(budget: float) -> None:
    if not (math.isfinite(budget) and budget >= 0):
        raise ParameterError(f"budget (--budget) must be finite and not below 0, got {budget:g}")


def extend(
    store: Store,
    name: str,
    maker: Maker,
    rows: Sequence[str] | int | None,
    cols: Sequence[str] | int | None,
    budget: float | None,
    prices: Prices | Mapping[str, Any] | None,
    features: Mapping[str, Any] | None = None,
) -> None:
    """Add rows, columns and money to a study; `features` are those of the new lines, by axis."""
    if rows is None and cols is None and budget is None:
        raise ParameterError("extend a study by rows, columns or a budget; none of them was given")
    if budget is not None:
        _refuse_money(budget)

    def edit(record: Record) -> Change:
        if budget is not None and record.total is None:
            raise ParameterError(
                f"study {name!r} has no budget, so it needs no more; set one with reopen(budget=)"
            )
        total = record.total if budget is None else (record.total or 0.0) + budget
        params, labels = _grown(store, record, maker, rows, cols, features or {})
        quotes = record.prices if prices is None else _quotes(prices)
        change = _same(record, "extend", total=total, params=params, prices=quotes, labels=labels)
        _refuse_short(change)
        return _try(record, change, maker)

    _begin_epoch(store, name, edit)


def _grown(
    store: Store,
    record: Record,
    maker: Maker,
    rows: Sequence[str] | int | None,
    cols: Sequence[str] | int | None,
    features: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return (parameters with the new size and the features of new lines, new labels by axis)."""
    params = dict(record.params)
    there = store.labels(record.id)
    made = maker(record.plan)
    size = getattr(made, "size", "shape")
    new: dict[str, list[str]] = {}
    more = {"row": 0, "col": 0}
    for axis, given in (("row", rows), ("col", cols)):
        if given is None:
            continue
        if isinstance(given, int):
            if axis in there:
                raise ParameterError(
                    f"the {axis}s of this study have labels; give those of the new ones: --{axis}s FILE"
                )
            more[axis] = given
            continue
        if axis not in there:
            raise ParameterError(
                f"the {axis}s of this study have no labels; say how many are new instead"
            )
        new[axis] = plans.unique([*there[axis], *given], axis)[len(there[axis]) :]
        more[axis] = len(new[axis])
    if record.symmetric and new:
        both = new.get("row") or new["col"]
        new, more = {"row": both, "col": both}, {"row": len(both), "col": len(both)}
    if size == "shape":
        m, n = params[size]
        params[size] = [m + more["row"], n + more["col"]]
        if params.get("available") is not None:
            wider = [[*line, *([True] * more["col"])] for line in params["available"]]
            width = n + more["col"]
            params["available"] = wider + [[True] * width for _ in range(more["row"])]
        params |= _longer_features(params, features, new, more)
    else:
        if not record.symmetric and more["row"]:
            raise ParameterError(f"the rows of {record.plan} come to exist as they are asked for")
        params[size] += more["col"] or more["row"]
    return params, new


def _longer_features(
    params: Mapping[str, Any],
    given: Mapping[str, Any],
    labels: Mapping[str, Sequence[str]],
    more: Mapping[str, int],
) -> dict[str, Any]:
    """Return the features of all lines, old and new."""
    found = {}
    for name, axis in zip(plans.FEATURES, ("row", "col"), strict=True):
        if params.get(name) is None:
            if given.get(axis) is not None:
                raise ParameterError(
                    f"the {axis}s of this study have no features; set those of all lines with change({name}=)"
                )
            continue
        if more[axis]:
            found[name] = extend_features(
                params[name], given.get(axis), labels.get(axis), more[axis], axis
            )
    return found


def _refuse_short(change: Change) -> None:
    """Refuse prices that do not reach the new lines."""
    params = change.epoch.params
    shape = params.get("shape", (params.get("n"),) * 2)
    for mode, quotes in (change.epoch.prices or {}).items():
        if not isinstance(quotes, list):
            continue
        grid = np.atleast_2d(np.asarray(quotes, np.float64))
        for count, size, axis in zip(grid.shape, shape, ("rows", "columns"), strict=True):
            if size is not None and count not in (1, size):
                raise ParameterError(
                    f"there are prices of {mode} for {count} {axis}, and {size} {axis} with the new ones; "
                    "give those of the new ones (--price rows:COLUMN, cols:COLUMN or a file)"
                )


def drop(store: Store, name: str, maker: Maker, rows: Sequence[int], cols: Sequence[int]) -> None:
    """Ask no more in some rows and columns; what was answered there stays."""

    def edit(record: Record) -> Change:
        if record.streaming:
            old = record.dropped or {}
            dropped = {
                "rows": sorted({*old.get("rows", []), *rows}),
                "cols": sorted({*old.get("cols", []), *cols}),
            }
            return _same(record, "drop", dropped=dropped)
        if "available" not in plans.parameters(maker(record.plan)):
            raise ParameterError(
                f"{record.plan} cannot do without a line of its matrix; fork the study without it"
            )
        m, n = record.n_rows or 0, record.n_cols or 0
        open_ = np.array(record.params.get("available") or np.ones((m, n)), dtype=bool)
        open_[list(rows), :] = False
        open_[:, list(cols)] = False
        params = {**record.params, "available": open_.tolist()}
        return _try(record, _same(record, "drop", params=params), maker)

    _begin_epoch(store, name, edit)


def set_params(
    store: Store,
    name: str,
    maker: Maker,
    params: Mapping[str, Any],
    prices: Prices | Mapping[str, Any] | None,
) -> None:
    """Go on with other parameters or prices."""
    _refuse_own(params)

    def edit(record: Record) -> Change:
        size = getattr(maker(record.plan), "size", "shape")
        if size in params and list(np.atleast_1d(params[size])) != list(
            np.atleast_1d(record.params[size])
        ):
            raise ParameterError(f"{size} is the size of the study; extend it instead")
        both = {**record.params, **_plain(params, store.labels(record.id), record)}
        quotes = record.prices if prices is None else _quotes(prices)
        return _try(record, _same(record, "change", params=both, prices=quotes), maker)

    _begin_epoch(store, name, edit)


def renew(store: Store, name: str, maker: Maker) -> None:
    """Begin an epoch with this version of the plan."""

    def edit(record: Record) -> Change:
        return _try(record, _same(record, "renew"), maker)

    _begin_epoch(store, name, edit)


def add(store: Store, name: str, labels: Labels, seen: Known) -> int:
    """Add entries that somebody measured anyway, as known; return how many."""

    def edit(record: Record) -> Change:
        table = _known(replace(record, fresh=False), seen, labels)
        if record.fresh:
            return _same(record, "add", known=table)
        there = _questions_at(store, record, table)
        new = np.array([key is None for key in there], dtype=bool)
        said = [
            Said(key, "known", value=float(table.values[k]), noise=_number(table.noise[k]))
            for k, key in enumerate(there)
            if key is not None
        ]
        return _same(record, "add", known=table[new], said=said)

    _begin_epoch(store, name, edit)
    return len(seen) if isinstance(seen, Observations) else sum(map(len, seen.values()))


def _number(x: float) -> float | None:
    return None if np.isnan(x) else float(x)


def _questions_at(store: Store, record: Record, table: History) -> list[Key | None]:
    """Return the question that stands for each entry, where there is one."""
    if record.params.get("target") is not None:
        return _questions_by_mode(store, record, table)
    entries = list(zip(table.rows.tolist(), table.cols.tolist(), strict=True))
    found = []
    for match, last in store.tells.find(record, entries):
        found.append(match[0] if match else last)
    return found


def _questions_by_mode(store: Store, record: Record, table: History) -> list[Key | None]:
    """Return the last question of each entry by its own instrument."""
    q = questions.c
    query = sa.select(q.mode, q.row, q.col, q.batch, q.position).where(q.study == record.id)
    query = query.order_by(q.batch, q.position)
    asked = store.database.read(lambda c: c.execute(query).all())
    there = {(x[0], int(x[1]), int(x[2])): (int(x[3]), int(x[4])) for x in asked}
    entries = zip(table.mode.tolist(), table.rows.tolist(), table.cols.tolist(), strict=True)
    return [there.get(entry) for entry in entries]


def amend(
    store: Store,
    name: str,
    labels: Labels,
    answer: Any,
    value: Any,
    worker: str | None,
    reason: str | None = None,
) -> None:
    """Correct an answer: a new fact, and an epoch that knows it; the log keeps both, and why."""
    new, why = number(value), _words(reason) or failed_because(value)

    def edit(record: Record) -> Change:
        _refuse_closed(record, "amend")
        if math.isnan(new) and not record.tolerates_failed:
            raise TellError(f"{record.plan} cannot do without an answer; amend it to a number")
        key = _which(store, record, labels, answer)
        _refuse_unanswered(store, record, key, "amend")
        said = Said(
            key,
            "amend",
            value=_number(new),
            failed=math.isnan(new),
            worker=worker,
            reason=why,
        )
        return _same(record, "amend", said=[said])

    _begin_epoch(store, name, edit)


def void(
    store: Store,
    name: str,
    labels: Labels,
    answer: Any,
    worker: str | None,
    reason: str | None = None,
) -> None:
    """Forget an answer, so that it is asked again; the log keeps it, and why."""
    why = _words(reason)

    def edit(record: Record) -> Change:
        _refuse_closed(record, "void an answer")
        key = _which(store, record, labels, answer)
        _refuse_unanswered(store, record, key, "void")
        i, j, mode = _entry(store, record, key)
        quotes = plans.prices_of(record) or Prices()
        price = float(quotes.of(mode, [i], [j])[0]) if mode in quotes.modes else 0.0
        said = Said(key, "void", worker=worker, price=price, reason=why)
        return _same(record, "void", said=[said])

    _begin_epoch(store, name, edit)


def _words(reason: str | None) -> str | None:
    """Return a reason without spaces around it; None where nothing is said."""
    return (reason or "").strip() or None


def _refuse_closed(record: Record, what: str) -> None:
    if record.state == "closed":
        raise StoreError(f"study {record.name!r} is closed; reopen it to {what}")


def _entry(store: Store, record: Record, key: Key) -> tuple[int, int, str]:
    q = questions.c
    here = (q.study == record.id, q.batch == key[0], q.position == key[1])
    query = sa.select(q.row, q.col, q.mode).where(*here)
    row = store.database.read(lambda c: c.execute(query).one())
    return int(row[0]), int(row[1]), str(row[2])


def _refuse_unanswered(store: Store, record: Record, key: Key, what: str) -> None:
    f = facts.c
    here = (f.study == record.id, f.batch == key[0], f.position == key[1])
    kinds = sa.select(f.kind).where(*here).order_by(f.turn)
    answered = False
    for kind in store.database.read(lambda c: c.execute(kinds).scalars().all()):
        if kind in ("answer", "known", "amend", "void"):
            answered = kind != "void"
    if not answered:
        raise TellError(f"question {title(key)} has no answer to {what}; tell one")


def _which(store: Store, record: Record, labels: Labels, answer: Any) -> Key:
    """Return the question that an id or an entry means."""
    answer = getattr(answer, "id", answer)
    if isinstance(answer, str):
        at = parse_id(answer)
        found = store.tells.resolve(record.id, at)
        if found is not None:
            return found
        entry = store.tells.entries_of(record.id, [at]).get(at)  # memory answered it
        if entry is None:
            raise TellError(
                f"study {record.name!r} has no question {answer}; study log shows those it has"
            )
    else:
        try:
            row, col = answer
        except (TypeError, ValueError):
            words = " ".join(map(str, answer)) if isinstance(answer, tuple) else answer
            raise TellError(
                f"an answer is named by its id such as '3.10', or by its row and column, got {words!r}"
            ) from None
        entry = labels.index(row, col)
    return _only(store, record, labels, entry)


def _only(store: Store, record: Record, labels: Labels, entry: Key) -> Key:
    """Return the one answered question of an entry; refuse where there are several."""
    q, f = questions.c, facts.c
    ways = {entry, entry[::-1]} if record.symmetric else {entry}
    same = (f.study == q.study) & (f.batch == q.batch) & (f.position == q.position)
    found: set[Key] = set()
    for i, j in ways:
        query = (
            sa.select(q.batch, q.position)
            .select_from(questions.join(facts, same))
            .where(q.study == record.id, q.row == i, q.col == j, f.kind.in_(("answer", "known")))
        )
        rows = store.database.read(partial(_every, query))
        found |= {(int(b), int(k)) for b, k in rows}
    if not found:
        raise TellError(f"entry {labels.name(*entry)} was not answered; there is nothing to amend")
    if len(found) > 1:
        several = ", ".join(title(key) for key in sorted(found)[:5])
        raise TellError(
            f"entry {labels.name(*entry)} was measured repeatedly ({several}); name the answer by its id"
        )
    return found.pop()


def delete(store: Store, name: str) -> None:
    """Take a study out of its database, all of it."""
    from entrywise.study.schema import metadata

    record = store.record(name)

    def clear(connection: Connection) -> None:
        connection.execute(sa.delete(tokens).where(tokens.c.study == record.name))
        for table in metadata.tables.values():
            if "study" in table.columns and table is not tokens:  # tokens name their study
                connection.execute(sa.delete(table).where(table.c.study == record.id))
        connection.execute(sa.delete(studies).where(studies.c.id == record.id))

    store.database.write(clear)


def out_with(store: Store, record: Record) -> int:
    """Return how many questions people hold."""
    p = pending.c

    def count(connection: Connection) -> int:
        now = store.database.now(connection)
        query = sa.select(sa.func.count()).where(p.study == record.id, p.leased_until > now)
        return int(connection.execute(query).scalar_one())

    return store.database.read(count)


def _every(query: sa.Select[Any], connection: Connection) -> list[Any]:
    return list(connection.execute(query).all())
