"""The table of methods: every row loads, lies in a file of its name, and stored names find their way."""

from __future__ import annotations

import importlib
import inspect

import pytest

from entrywise.exceptions import ParameterError
from entrywise.methods import METHODS, MOVED, RENAMED, get, make_plan, renamed


@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{m.room} {m.name}")
def test_every_row_is_found_under_its_public_name(method):
    module, name = method.home.split(":")
    importlib.import_module(
        f"entrywise.{module}"
    )  # the module first: it must not hide the function
    assert inspect.getdoc(method.load())
    home = importlib.import_module(f"entrywise.{module.split('.')[0]}")
    if hasattr(home, "__all__") and name in home.__all__:
        assert getattr(home, name) is method.load()
    assert get(method.name, method.room) is method


def test_an_unknown_method_is_refused_with_the_list():
    with pytest.raises(
        ParameterError, match=r"no active method is called 'nothing'; there are .*noisy-cur"
    ):
        get("nothing", "active")
    with pytest.raises(ParameterError, match="no method is called"):
        get("nothing")


STORED = [
    (
        "adaptive-nystrom",
        {"n": 9, "rank": 3, "order": "given", "block": None, "noise": 0.0, "rng": 4},
        "literal-adaptive-nystrom",
        {"n": 9, "rank": 3, "noise": 0.0},
    ),
    (
        "adaptive_nystrom",
        {"n": 9, "order": "random", "block": 2, "rng": 4},
        "adaptive_nystrom",
        {"n": 9, "order": "random", "block": 2, "rng": 4},
    ),
    (
        "stochastic-nystrom",
        {
            "n": 9,
            "rank": 2,
            "epsilon": 0.5,
            "delta": 0.1,
            "theta": 0.2,
            "noise": None,
            "ask_diagonal": True,
        },
        "literal-stochastic-nystrom",
        {"n": 9, "rank": 2, "epsilon": 0.5, "delta": 0.1, "theta": 0.2},
    ),
    (
        "stochastic-nystrom",
        {
            "n": 9,
            "rank": 2,
            "budget": 90,
            "epsilon": None,
            "delta": 0.05,
            "theta": None,
            "noise": None,
        },
        "stochastic-nystrom",
        {"n": 9, "rank": 2, "budget": 90, "noise": None},
    ),
    (
        "subspace",
        {"d": 6, "k": 2, "samples": 40, "epochs": 3, "budget": None},
        "subspace",
        {"d": 6, "rank": 2, "samples": 40, "rounds": 3, "budget": None},
    ),
    (
        "bandit-subspace",
        {"d": 6, "k": 2, "samples": 40, "schedule": "practical", "alpha": None, "output": None},
        "bandit-subspace",
        {"d": 6, "rank": 2, "samples": 40},
    ),
    (
        "bandit-subspace",
        {
            "d": 3,
            "k": 1,
            "samples": 200,
            "schedule": "theorem",
            "output": "top",
            "max_square": None,
        },
        "literal-bandit-subspace",
        {"d": 3, "rank": 1, "samples": 200, "output": "top"},
    ),
]


@pytest.mark.filterwarnings("ignore:the theorem")
@pytest.mark.parametrize(("plan", "params", "new", "now"), STORED)
def test_what_earlier_versions_stored_is_read_with_the_words_of_today(plan, params, new, now):
    before = dict(params)
    assert renamed(plan, params) == (new, now)
    assert params == before
    assert renamed(new, now) == (new, now)  # again, and nothing changes
    assert make_plan(new, now).name == new.replace("_", "-")


@pytest.mark.parametrize("method", [m for m in METHODS if m.room == "active"], ids=lambda m: m.name)
def test_what_is_stored_today_stays_as_it_is(method):
    assert renamed(method.name, method.example) == (method.name, dict(method.example))


def test_new_words_are_parameters_and_old_ones_are_not():
    for plan, words in RENAMED.items():
        takes = inspect.signature(get(plan, "active").load()).parameters
        assert not words.keys() & takes.keys()
        assert {new for new in words.values() if new} <= takes.keys()
    assert set(MOVED.values()) <= {m.name for m in METHODS}


def test_a_plan_of_ones_own_is_left_alone():
    assert renamed("mine:plan", {"k": 3}) == ("mine:plan", {"k": 3})


@pytest.mark.parametrize("method", [m for m in METHODS if m.room == "active"], ids=lambda m: m.name)
def test_prices_come_second(method):
    names = list(inspect.signature(method.load()).parameters)
    assert "prices" not in names or names.index("prices") == 1


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_the_command_keeps_mathematics(form):
    from typer.testing import CliRunner

    from entrywise.cli.app import app

    shown = CliRunner(env={"COLUMNS": "400"}).invoke(app, ["methods", "passive", "--format", form])
    assert shown.exit_code == 0
    assert "all lie in [low, high], through a Markov chain" in shown.stdout
    assert ":math:" not in shown.stdout
    assert "`" not in shown.stdout
