"""A server of the Model Context Protocol over the studies of a database: what an agent may do, and no more.

The ledger holds the budget whatever the agent does: a question that cannot be paid is not handed out. A reader may look, a worker
may also ask and tell; nothing here creates, changes or deletes a study. Needs the extra ``mcp``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from entrywise import __version__
from entrywise.active.cells.answer_model import AnswerModel
from entrywise.active.two_cost.forecast import forecast as foretell
from entrywise.apply.leaderboard import Bought, judged, rehearse, scores
from entrywise.apply.leaderboard.rehearsal import BUDGETS
from entrywise.exceptions import DataError, EntrywiseError, ParameterError
from entrywise.observations import Observations
from entrywise.queries import Prices
from entrywise.results import LowRank
from entrywise.results.result import refuse_level
from entrywise.study import Store, Study

Role = Literal["reader", "worker"]
MOST = 1000  # questions or answers in one call
LEASE = 3600.0  # seconds that an agent holds a question
PURCHASES = 50  # that one rehearsal may play
_ABOUT = (
    "Studies decide which entries of an unknown matrix are worth paying for. Ask for questions, measure them, tell the answers "
    "by id (null for a measurement that failed), until nothing is asked; then report. The budget is enforced by the ledger."
)


@dataclass
class Measured:
    """An answer: the id of the question and the number measured, null where the measurement failed."""

    id: str
    value: float | None


class Tools:
    """What the server offers, as plain functions."""

    def __init__(self, database: str, worker: str = "agent", studies: list[str] | None = None):
        self.store = Store(database, must_exist=True)
        self.worker = worker
        self.studies = studies

    def _open(self, name: str) -> Study:
        if self.studies is not None and name not in self.studies:
            raise ParameterError(
                f"study {name!r} is not offered; there are {', '.join(self.studies)}"
            )
        return Study.open(self.store, name)

    def list_studies(self) -> list[dict[str, Any]]:
        """List the studies: name, plan, state, budget."""
        offered = [
            r for r in self.store.records() if self.studies is None or r.name in self.studies
        ]
        found = [
            {"name": r.name, "plan": r.plan, "state": r.state, "budget": r.budget} for r in offered
        ]
        return [plain(one) for one in found]

    def status(self, study: str) -> dict[str, Any]:
        """Say where a study stands: state, questions open and out, money spent, held and left, and one sentence."""
        return plain(self._open(study).status())  # type: ignore[no-any-return]

    def ask(
        self,
        study: str,
        limit: int = 10,
        rows: list[str] | None = None,
        cols: list[str] | None = None,
    ) -> dict[str, Any]:
        """Hand out at most `limit` questions (id, row, col, price), held for an hour; rows and cols say which you can measure."""
        if not 1 <= limit <= MOST:
            raise ParameterError(f"limit must be in 1..{MOST}, got {limit}")
        asked = self._open(study).ask(limit, self.worker, LEASE, rows=rows, cols=cols)
        found = [
            {"id": q.id, "row": q.row, "col": q.col, "mode": q.mode, "price": q.price}
            for q in asked
        ]
        return {"questions": plain(found), "why_not_more": asked.why}

    def tell(self, study: str, answers: list[Measured]) -> dict[str, Any]:
        """Keep answers by the id of their question, all of them or none; the same answer twice is harmless."""
        if not 1 <= len(answers) <= MOST:
            raise ParameterError(f"tell 1..{MOST} answers at once, got {len(answers)}")
        held = self._open(study)
        new = held.tell([(answer.id, answer.value) for answer in answers], self.worker)
        now = held.status()
        return {"new": new, "state": now["state"], "sentence": now["sentence"]}

    def report(self, study: str, level: float = 0.9) -> dict[str, Any]:
        """Return the result so far: its cost, what is promised about it and, for a table, each row's mean with its interval."""
        refuse_level(level)
        held = self._open(study)
        found = held.result()
        promised = [
            {"statement": c.statement, "value": c.value, "assumes": c.assumes}
            for c in found.certificates
        ]
        return {
            "status": found.status,
            "cost": found.cost,
            "promised": plain(promised),
            "scores": _scores(held, found, level),
        }

    def forecast(
        self,
        plan: str,
        rows: int,
        cols: int,
        prices: dict[str, float],
        noise: dict[str, float],
        budget: float,
        rank: int | None = None,
    ) -> list[dict[str, Any]]:
        """Say what a budget would buy before anything is spent; plan noisy-cur has a forecast: prices and noise of column and entry."""
        modes = Prices(**{"entry": None, **prices})
        told = foretell(
            plan, shape=(rows, cols), prices=modes, noise=noise, budget=budget, rank=rank, signal=1.0
        )  # fmt: skip
        return [plain(dict(zip(told.columns, line, strict=True))) for line in told.rows]

    def rehearse(
        self, study: str, budgets: list[float] | None = None, repeats: int = 5
    ) -> list[dict[str, Any]]:
        """Say what each budget, a share of the whole cost, would have bought of the table that a study knows by now."""
        shares = list(BUDGETS) if budgets is None else budgets
        if not 1 <= len(shares) * repeats <= PURCHASES:
            raise ParameterError(f"budgets times repeats must be in 1..{PURCHASES}")
        held = self._open(study)
        told = rehearse(_known(held), shares, prices=held.prices, repeats=repeats)
        return [plain(asdict(line) | {"ratio": line.ratio}) for line in told.lines]


READING = ("list_studies", "status", "report", "forecast", "rehearse")
WORKING = (*READING, "ask", "tell")


def _scores(study: Study, found: Any, level: float) -> list[dict[str, Any]]:
    """Return the score of every row, best first, where the result is a table with intervals."""
    if not isinstance(found, LowRank) or not study.status()["answered"]:
        return []
    params, prices = study.store.record(study.name).params, study.prices
    target, model = params.get("target"), AnswerModel.of_plan(found.shape, params)
    bought = Bought.from_log(
        found.shape, study.log(), study.labels.index, target=target, model=model
    )
    if target is not None:
        prices = prices.of_instrument(target)
    board = judged(bought, level=level) if bought.judges else scores(found, bought, level, prices)
    return [
        plain(
            {
                "row": study.labels.row(int(i)),
                "score": board.mean[i],
                "low": board.low[i],
                "high": board.high[i],
                "tier": board.tier[i],
                "best_place": board.best_place[i],
                "worst_place": board.worst_place[i],
            }
        )
        for i in board.order
    ]


def _known(study: Study) -> Observations:
    """Return what a study knows: told and given, repeats by their mean."""
    lines = [x for x in study.log() if x["what"] in ("told", "known") and not x["failed"]]
    if not lines:
        raise DataError(f"study {study.name!r} knows nothing yet; ask, measure and tell first")
    at = np.array([study.labels.index(x["row"], x["col"]) for x in lines], np.int64)
    shape = (study.labels.n_rows, study.labels.n_cols)
    return Observations.from_triplets(
        at[:, 0],
        at[:, 1],
        [x["value"] for x in lines],
        None if None in shape else shape,  # type: ignore[arg-type]
        duplicates="mean",
    )


def plain(value: Any) -> Any:
    """Return a value as JSON can carry it: numbers of numpy as Python's, what is not finite as None."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def server(
    database: str,
    *,
    role: Role = "worker",
    worker: str = "agent",
    studies: list[str] | None = None,
) -> Any:
    """Return the server, to be run over stdin and stdout: ``server("lab.db").run()``."""
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError:
        raise ParameterError(
            "serving agents needs an extra; pip install 'entrywise[mcp]'"
        ) from None
    if role not in ("reader", "worker"):
        raise ParameterError(f"role must be reader or worker, got {role!r}")
    tools = Tools(database, worker, studies)
    found = MCPServer("entrywise", version=__version__, instructions=_ABOUT, log_level="WARNING")
    for name in READING if role == "reader" else WORKING:
        found.add_tool(_spoken(getattr(tools, name)), name=name)
    return found


def _spoken(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Turn our errors into what an agent reads: one sentence."""
    from mcp.server.mcpserver.exceptions import ToolError

    @functools.wraps(tool)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return tool(*args, **options)
        except EntrywiseError as error:
            raise ToolError(str(error)) from None

    return call
