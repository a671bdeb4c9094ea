"""One row a method: its name, where it lives, its room, its paper, what it guarantees, a small example.

The rows feed the command line, studies, the laws of :mod:`entrywise.checks` and the docs. To add a
method, write its file and add its row.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from entrywise.exceptions import ParameterError
from entrywise.queries import Plan

Room = Literal["passive", "active", "online"]


@dataclass(frozen=True)
class Method:
    """A method that users can name.

    Parameters
    ----------
    name : str
        What users write, with hyphens.
    home : str
        ``module:function`` under entrywise.
    room : {"passive", "active", "online"}
    paper, guarantee : str
        Where it comes from and what it promises, in a line.
    example : mapping
        Arguments of a small instance, for laws and docs (active, online).
    problem : str
        Name of the function in :mod:`entrywise.gallery` that makes what the example works on from a seed:
        an oracle (active), observations (passive), a list of (i, j, y) trials (online).
    """

    name: str
    home: str
    room: Room
    paper: str
    guarantee: str
    example: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""

    def load(self) -> Any:
        """Return the function or class."""
        module, name = self.home.split(":")
        return getattr(importlib.import_module(f"entrywise.{module}"), name)

    @property
    def summary(self) -> str:
        """First line of its docstring."""
        return (inspect.getdoc(self.load()) or "").split("\n")[0]


METHODS: tuple[Method, ...] = (
    # active: we choose and pay
    Method(
        "adaptive-nystrom", "active.mcans:adaptive_nystrom", "active", "Bhargava, Ganti, Nowak 2017, Algorithm 3.2",
        "exact for rank r after n (r + 1) - r (r + 1) / 2 entries; the residual diagonal certifies the rest",
        {"n": 12, "rng": 0}, "psd_oracle",
    ),
    Method(
        "stochastic-nystrom", "active.smcans:stochastic_nystrom", "active", "Bhargava, Ganti, Nowak 2017, Algorithm 4.1",
        "spends its budget to the last answer; with epsilon and delta, every entry within epsilon (Theorem 4.3)",
        {"n": 12, "rank": 2, "budget": 600, "rng": 0}, "coin_oracle",
    ),
    Method(
        "best-pair", "apply.pairs:best_pair", "active", "Bhargava, Ganti, Nowak 2017, Section 5",
        "an upper end for the loss of the pair it names; exact after n (r + 1) questions without noise",
        {"n_items": 12, "budget": 600, "rng": 0}, "coin_oracle",
    ),
    Method(
        "sequential-halving", "active.halving:sequential_halving", "active", "Karnin, Koren, Somekh 2013",
        "the smallest entry with a chance of error that falls exponentially in the budget",
        {"n": 12, "budget": 600, "rng": 0}, "coin_oracle",
    ),
    Method(
        "uniform-pairs", "active.naive:uniform_pairs", "active", "Bhargava, Ganti, Nowak 2017, Section 6 (Naive)",
        "none: the baseline", {"n": 12, "budget": 600, "rng": 0}, "coin_oracle",
    ),
    Method(
        "successive-elimination", "active.elimination:successive_elimination", "active", "Even-Dar, Mannor, Mansour 2006",
        "the smallest entry with probability 1 - delta when it ends before its budget",
        {"n": 12, "budget": 600, "rng": 0}, "coin_oracle",
    ),
    Method(
        "median-elimination", "active.elimination:median_elimination", "active", "Even-Dar, Mannor, Mansour 2006",
        "a pair within epsilon of the best with probability 1 - delta", {"n": 12, "budget": 600, "rng": 0}, "coin_oracle",
    ),
    Method(
        "lil-ucb", "active.lilucb:lil_ucb", "active", "Jamieson, Malloy, Nowak, Bubeck 2014",
        "the smallest entry with high probability when it stops by itself", {"n": 12, "budget": 600, "rng": 0}, "coin_oracle",
    ),
    Method(
        "subspace", "active.neyman:subspace", "active", "Neyman 1934; open question of Gonen et al. 2016, section 4",
        "never worse than uniform looking in our measurements, far better where few attributes matter; no bound",
        {"d": 10, "k": 2, "per_sample": 3, "samples": 60, "epochs": 4, "rng": 0}, "stream_oracle",
    ),
    Method(
        "bandit-subspace", "active.mbeg:bandit_subspace", "active", "Gonen, Rosenbaum, Eldar, Shalev-Shwartz 2016, Algorithm 2",
        "expected excess sqrt(8 k^2 (d + r) log d / (r m)) with schedule=theorem (Theorem 7)",
        {"d": 10, "k": 2, "samples": 120, "updates": 12, "rng": 0}, "stream_oracle",
    ),
)  # fmt: skip

_BY_NAME = {method.name: method for method in METHODS}


def get(name: str, room: Room | None = None) -> Method:
    """Return the method called `name`, hyphens or underscores."""
    found = _BY_NAME.get(name.replace("_", "-"))
    if found is None or (room is not None and found.room != room):
        known = [m.name for m in METHODS if room is None or m.room == room]
        raise ParameterError(
            f"no {room or ''} method is called {name!r}; there are {', '.join(known)}".replace("no  ", "no ")
        )
    return found


def make_plan(name: str, params: Mapping[str, Any]) -> Plan:
    """Return the plan of an active method, its parameters given as plain values."""
    plan = get(name, "active").load()(**params)
    assert isinstance(plan, Plan)
    return plan
