"""Studies as tables of version 0002 and archives of format 1 held them, turned into those of today.

There a correction went back to a batch and withdrew what was asked after it (``dead`` batches); here every change
begins an epoch. A study that was never corrected becomes epoch 0 as it stands. One that was begins epoch 1, in which
its plan starts again with all that was told. The same goes for a plan that streams by now.

This file belongs to the migration 0003 and changes no more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Rows = list[dict[str, Any]]
Key = tuple[int, int]


def converted(
    study: Mapping[str, Any], tables: Mapping[str, Sequence[Mapping[str, Any]]], streams: bool
) -> dict[str, Rows]:
    """Return the rows of today's tables for one study; `streams` says whether its plan streams by now."""
    return _Conversion(study, tables, streams).rows()


class _Conversion:
    def __init__(
        self,
        study: Mapping[str, Any],
        tables: Mapping[str, Sequence[Mapping[str, Any]]],
        streams: bool,
    ) -> None:
        self.study, self.tables, self.streams = study, tables, streams
        self.dead = {b["number"] for b in tables["batches"] if b["dead"]}
        self.anew = bool(self.dead) or (streams and bool(tables["batches"]))
        self.next = int(study["next_batch"])
        self.ended = study["state"] in ("finished", "exhausted")
        self.told = [a for a in tables["answers"] if a["source"] == "told"]
        self.memory = [a for a in tables["answers"] if a["source"] == "memory"]
        self.asked = {(q["batch"], q["position"]): q for q in tables["questions"]}

    def rows(self) -> dict[str, Rows]:
        memory = {(a["batch"], a["position"]) for a in self.memory}
        own = {key: q for key, q in self.asked.items() if key not in memory}
        answered = {(a["batch"], a["position"]) for a in self.told}
        found: dict[str, Rows] = {"questions": [], "facts": [], "wants": [], "pending": []}
        self._known(found)
        for n, key in enumerate(sorted(own)):
            found["questions"].append(self._question(own[key], n + 1))
        turns = self._retired(found)
        for a in self.told:
            found["facts"].append(self._answer(a, turns.get((a["batch"], a["position"]), 0)))
        for a in self.memory:
            found["wants"].append(self._want(a))
        queue = {(p["batch"], p["position"]): p for p in self.tables["pending"]}
        for key in sorted(set(own) - answered):
            waits = self._pending(own[key], queue.get(key), turns.get(key, 0))
            found["pending"].append(waits)
            if waits["leased_until"] < 0 and self.anew:
                found["facts"].append(self._withdrawn(waits))
        found["steps"] = [self._step(b) for b in self.tables["batches"]]
        if self.ended and not self.anew:
            found["steps"].append(self._end())
        found["epochs"] = self._epochs()
        found["labels"] = [dict(row) for row in self.tables["labels"]]
        found["studies"] = [self._study(found)]
        return found

    def _known(self, found: dict[str, Rows]) -> None:
        seen: set[tuple[Any, ...]] = set()
        for k in self.tables["known"]:
            cell = (k["mode"], k["row"], k["col"])
            name = {"batch": -1, "position": k["position"]}
            again = 0 if cell not in seen else -1 - k["position"]
            seen.add(cell)
            entry = {"row": k["row"], "col": k["col"], "mode": k["mode"]}
            found["questions"].append(name | entry | {"repeat": again, "price": 0.0})
            found["facts"].append(
                name | _fact("known", k["value"], self.study["created_at"], seen=0)
            )

    def _question(self, q: Mapping[str, Any], number: int) -> dict[str, Any]:
        names = ("batch", "position", "row", "col", "mode", "unit", "price", "arm", "probability")
        return {name: q[name] for name in names} | {"repeat": number}

    def _retired(self, found: dict[str, Rows]) -> dict[Key, int]:
        """Add what no longer stands, and return the turn of the answer that does."""
        turns: dict[Key, int] = {}
        later = []
        for r in self.tables["retired"]:
            key = (r["batch"], r["position"])
            if r["reason"] == "repeat":
                later.append(r)
                continue
            kind = "answer" if r["reason"] == "amended" else "failed"
            fact = _fact(kind, r["value"], r["told_at"], seen=-1, turn=turns.get(key, 0))
            fact |= {"failed": bool(r["failed"]), "worker": r["worker"]}
            found["facts"].append({"batch": key[0], "position": key[1]} | fact)
            turns[key] = turns.get(key, 0) + 1
        after: dict[Key, int] = {}
        for r in later:
            key = (r["batch"], r["position"])
            turn = after[key] = max(after.get(key, turns.get(key, 0)) + 1, 1)
            fact = _fact("repeat", r["value"], r["told_at"], seen=-1, turn=turn)
            found["facts"].append(
                {"batch": key[0], "position": key[1]} | fact | {"worker": r["worker"]}
            )
        return turns

    def _answer(self, a: Mapping[str, Any], turn: int) -> dict[str, Any]:
        key = (a["batch"], a["position"])
        kind = "answer" if turn == 0 else self._kind(key)
        fact = _fact(kind, a["value"], a["told_at"], seen=self._seen(a["batch"]), turn=turn)
        fact |= {"failed": bool(a["failed"]), "worker": a["worker"]}
        price = float(self.asked[key]["price"])
        return {"batch": key[0], "position": key[1]} | fact | {"charged": price}

    def _kind(self, key: Key) -> str:
        """A correction is an amendment, unless all that went before it were failures."""
        reasons = {
            r["reason"] for r in self.tables["retired"] if (r["batch"], r["position"]) == key
        }
        return "amend" if "amended" in reasons else "answer"

    def _seen(self, batch: int) -> int | None:
        if self.anew:
            return None  # the first step of the epoch to come sees all of it
        open_ = batch == self.next - 1 and not self.ended
        return None if open_ else batch + 1

    def _withdrawn(self, waits: dict[str, Any]) -> dict[str, Any]:
        """Return the fact that a question was withdrawn: without it the plan would wait for its answer for ever."""
        turn = waits.get("turn", 0)
        waits["turn"] = turn + 1
        fact = _fact("withdrawn", None, self.study["created_at"], seen=self.next, turn=turn)
        return {"batch": waits["batch"], "position": waits["position"]} | fact

    def _want(self, a: Mapping[str, Any]) -> dict[str, Any]:
        q = self.asked[a["batch"], a["position"]]
        return {
            "step": a["batch"],
            "position": a["position"],
            "row": q["row"],
            "col": q["col"],
            "value": a["value"],
            "given": True,
            "arm": q["arm"],
            "probability": q["probability"],
        }

    def _pending(
        self, q: Mapping[str, Any], queued: Mapping[str, Any] | None, turn: int
    ) -> dict[str, Any]:
        names = ("batch", "position", "row", "col", "mode", "unit", "price")
        held = queued is not None and (not self.anew or queued["leased_until"] > 1.0)
        lease: dict[str, Any] = {"worker": None, "holders": None, "failed": False}
        if queued is not None:
            lease = {k: queued[k] for k in ("holders", "failed")}
            lease["worker"] = queued["worker"] if held else None
        until = float(queued["leased_until"]) if held and queued is not None else -1.0
        row = {name: q[name] for name in names} | lease
        return row | {"step": q["batch"], "leased_until": until, "turn": turn}

    def _step(self, b: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "step": b["number"],
            "epoch": 0,
            "mode": b["mode"],
            "size": b["size"],
            "asked": b["wanted"],
            "digest": b["digest"],
            "cost": b["cost"],
            "left": None,
            "version": b["version"],
            "asked_at": b["asked_at"],
        }

    def _end(self) -> dict[str, Any]:
        return {
            "step": self.next,
            "epoch": 0,
            "mode": "",
            "size": 0,
            "asked": 0,
            "digest": "",
            "cost": 0.0,
            # a plan whose money ran out finds none at that step when it is replayed
            "left": 0.0 if self.study["state"] == "exhausted" else None,
            "ended": self.study["state"],
            "version": "",
            "asked_at": self.study["created_at"],
        }

    def _epochs(self) -> Rows:
        first = {
            "epoch": 0,
            "first_step": 0,
            "params": _text(self.study["params"]),
            "prices": None if self.study["prices"] is None else _text(self.study["prices"]),
            "total": self.study["budget"],
            "change": "create",
            "versions": _text(self.study["versions"]),
            "made_at": self.study["created_at"],
        }
        if not self.anew:
            return [first]
        again = {"epoch": 1, "first_step": self.next, "change": "renew"}
        return [first, first | again]

    def _study(self, found: dict[str, Rows]) -> dict[str, Any]:
        s = self.study
        paid = sum(f.get("charged", 0.0) for f in found["facts"])
        held = sum(p["price"] for p in found["pending"] if p["leased_until"] >= 0)
        withdrawn = sum(p["leased_until"] < 0 for p in found["pending"])
        after = self.next + (self.ended and not self.anew)
        flags = ("symmetric", "fresh", "tolerates_failed")
        same = ("name", "plan", "seed", "n_rows", "n_cols", "trouble", "cursor", "parent")
        state = "open" if self.anew and self.ended else s["state"]
        current = self.next if self.anew else after - 1
        return {
            **{k: bool(s[k]) for k in flags},
            **{k: s[k] for k in same},
            "history": False,
            "streaming": self.streams and self.anew,
            "total": s["budget"],
            "committed": float(s["sunk"]) + paid + held,
            "state": state,
            "epoch": int(self.anew),
            "first_step": self.next if self.anew else 0,
            "current": 0 if self.streams and self.anew else current,
            "next_step": after,
            "asked": len([q for q in found["questions"] if q["batch"] >= 0]),
            "withdrawn": withdrawn,
            "given": len(self.tables["known"]),
            "stepper_until": 0.0,
            "created_at": s["created_at"],
        }


def _fact(
    kind: str, value: float | None, at: float, seen: int | None, turn: int = 0
) -> dict[str, Any]:
    return {
        "turn": turn,
        "kind": kind,
        "value": value,
        "failed": False,
        "told_at": at,
        "charged": 0.0,
        "epoch": 0,
        "seen": seen,
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
