"""The table of methods: every row loads, lies in a file of its name, and stored names find their way."""

from __future__ import annotations

import importlib
import inspect

import pytest

from entrywise.exceptions import ParameterError
from entrywise.methods import METHODS, get, make_plan, renamed
from entrywise.methods.renamed import MOVED, RENAMED


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


def test_a_guarantee_says_what_it_assumes():
    for method in METHODS:
        proved = not method.guarantee.startswith("none")
        assert not proved or method.assumes, f"{method.name}: {method.guarantee}"


def test_lil_ucb_does_not_meet_its_analysis():
    """Its analysis needs delta < log(1 + epsilon) / e; epsilon is .01, or 0 in the heuristic form."""
    import math

    delta = inspect.signature(get("lil-ucb").load()).parameters["delta"].default
    assert delta > math.log(1.01) / math.e
    assert get("lil-ucb").guarantee.startswith("none")


def test_partial_pca_is_biased_as_its_row_says():
    """60 samples that show 3 of 12 attributes: the mean of many estimates against the truth, off the diagonal."""
    import numpy as np

    from entrywise.linalg.pairs import PairSums
    from entrywise.passive.partial_pca import covariance, limit

    d, r, m, runs = 12, 3, 60, 1500
    rng = np.random.default_rng(0)
    A = rng.standard_normal((d, 2)) + 1.0
    C = A @ A.T + 0.2 * np.eye(d)
    root = np.linalg.cholesky(C)
    off = ~np.eye(d, dtype=bool)
    means = {name: np.zeros((d, d)) for name in ("pairwise", "limited", "exactly")}
    for _ in range(runs):
        X = rng.standard_normal((m, d)) @ root.T
        seen = np.where(np.argsort(rng.random(X.shape), axis=1) < r, X, np.nan)
        sums = PairSums(d, False).add(seen)
        plain = covariance(sums, center=False)
        means["pairwise"] += plain / runs
        means["limited"] += limit(plain) / runs
        means["exactly"] += covariance(sums, center=False, mask="exactly") / runs

    def bias(name):
        return float(np.linalg.norm((means[name] - C)[off]) / np.linalg.norm(C[off]))

    never = (1 - r * (r - 1) / (d * (d - 1))) ** m  # a pair is never seen together
    assert bias("pairwise") == pytest.approx(never, abs=0.025)
    assert bias("limited") > 2 * never
    assert bias("exactly") < 0.03


def test_corollary_3_is_issued_only_where_it_is_proved():
    import numpy as np

    from entrywise.passive import partial_pca

    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 6)) / 10
    X[rng.random(X.shape) < 0.5] = np.nan
    proved = {
        "center": False,
        "mask": "bernoulli",
        "per_sample": 3.0,
        "repair": "none",
        "max_square": 1.0,
    }
    assert partial_pca(X, 2, **proved).certificates
    for other in ({"repair": "soft"}, {"mask": "pairwise"}, {"per_sample": np.full(6, 0.5)}):
        assert not partial_pca(X, 2, **{**proved, **other}).certificates


@pytest.mark.filterwarnings("ignore:the theorem")
def test_literal_s_mcans_promises_nothing_where_it_estimated_its_constants():
    from entrywise.oracles import FunctionOracle
    from entrywise.play import play

    plan = get("literal-stochastic-nystrom").load()
    coins = FunctionOracle(lambda i, j: 0.5)  # every answer at its mean: the constants are small
    given = plan(4, rank=1, epsilon=0.9, theta=0.02, rng=0)
    estimated = plan(4, rank=1, epsilon=0.95, delta=0.5, rng=0)
    assert play(given, coins).certificates
    found = play(estimated, coins)
    assert found.status == "finished"
    assert not found.certificates
