"""entrywise forecast: what a budget will buy, said before anything is spent."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from entrywise.active import noisy_cur
from entrywise.active.two_cost.forecast import FORECASTS, Forecast, forecast
from entrywise.cli._options import numbers, shape_of
from entrywise.cli.app import app
from entrywise.exceptions import ParameterError
from entrywise.methods import METHODS
from entrywise.observations import Observations
from entrywise.oracles import TwoCostOracle
from entrywise.play import play
from entrywise.queries import Prices

SETTING = {
    "shape": (80, 60),
    "prices": Prices(column=16),
    "noise": {"column": 0.22, "entry": 0.1},
    "budget": 720.0,
}
ARGS = [
    "forecast",
    "noisy-cur",
    "--shape",
    "80x60",
    "--price",
    "column=16,entry=1",
    "--noise",
    "column=.22,entry=.1",
]


def test_every_forecast_is_of_a_plan_and_takes_underscores():
    active = {m.name for m in METHODS if m.room == "active"}
    assert set(FORECASTS) <= active
    assert forecast("noisy_cur", **SETTING) == forecast("noisy-cur", **SETTING)


def test_money_adds_up_and_more_of_it_helps():
    found, richer = (forecast("noisy-cur", **SETTING | {"budget": b}) for b in (720.0, 800.0))
    assert isinstance(found, Forecast)
    for row, more in zip(found.rows, richer.rows, strict=True):
        values = dict(zip(found.columns, row, strict=True))
        assert 720 - 16 < values["columns"] * 16 + values["entries"] <= 720
        assert values["per_unit"] > 0
        assert more[found.columns.index("error")] < values["error"]
    assert [row[0] for row in found.rows] == [2, 4, 8]


def test_a_marginal_value_is_about_what_the_next_money_brings():
    few, more = (
        forecast("noisy-cur", rank=3, **SETTING | {"budget": b}).rows[0] for b in (720.0, 760.0)
    )
    at = {name: k for k, name in enumerate(forecast("noisy-cur", **SETTING).columns)}
    assert few[at["per_unit"]] == pytest.approx(
        (few[at["error"]] - more[at["error"]]) / 40, rel=0.3
    )


@pytest.mark.parametrize("format", ["table", "csv", "json"])
def test_command(format):
    result = CliRunner().invoke(app, [*ARGS, "--budget", "720", "--rank", "4", "--format", format])
    assert result.exit_code == 0, result.output
    if format == "csv":
        rows = list(csv.DictReader(io.StringIO(result.stdout)))
        assert int(rows[0]["columns"]) * 16 + int(rows[0]["entries"]) <= 720
    elif format == "json":
        assert json.loads(result.stdout)[0]["rank"] == 4
    assert "Assuming" in result.stderr
    assert "per_unit: by how much" in result.stderr


@pytest.mark.slow
def test_a_warning_is_one_line_said_once(tmp_path):
    noise = ["--noise", "column=.02,entry=.1"]
    study = [
        "study",
        "create",
        str(tmp_path / "lab.db"),
        "one",
        "--plan",
        "noisy-cur",
        "--shape",
        "80x60",
    ]
    for args in ([*ARGS[:-2], *noise], [*study, "--price", "column=16,entry=1", *noise]):
        done = subprocess.run(
            [sys.executable, "-m", "entrywise", *args, "--budget", "720"],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("Warning: noise of columns (0.02) is below") == 1
        assert "UserWarning" not in done.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"noise": {"column": 0.2}}, "must know both noises"),
        ({"rank": 61}, "rank of a forecast must be in 1..60"),
        ({"signal": 0.0}, "signal of a forecast"),
        ({"signal": 1e300}, "signal of a forecast must be between 1e-100 and 1e100"),
        ({"noise": 1e120}, "noise of column must be between 1e-100 and 1e100"),
        ({"noise": 1e300}, "noise of column must be between 1e-150"),
        ({"prices": Prices(column=99)}, "must not cost more"),
        ({"budget": 0.0}, "budget of noisy_cur"),
    ],
)
def test_bad_settings_are_refused(change, words):
    with pytest.raises(ParameterError, match=words):
        forecast("noisy-cur", **SETTING | change)


def test_words_that_cannot_be_read():
    with pytest.raises(ParameterError, match="there is a forecast for noisy-cur"):
        forecast("adaptive-nystrom", **SETTING)
    with pytest.raises(ParameterError, match="--shape must be"):
        shape_of("80")
    with pytest.raises(ParameterError, match="--price must be name=number"):
        numbers("column:16", "price")
    assert shape_of("7,3") == (7, 3)


def power_law(shape, exponent, rng):
    v = np.arange(1.0, min(shape) + 1) ** (-2 * exponent)
    left = rng.standard_normal((shape[0], len(v))) * np.sqrt(v / v.sum())
    return left @ rng.standard_normal((shape[1], len(v))).T


@pytest.mark.slow
def test_a_pilot_makes_the_forecast_a_range_with_the_tail():
    """An exact rank forecasts far too little error on a power-law spectrum."""
    rng = np.random.default_rng(5)
    shape, noise, prices = (30, 25), {"column": 0.3, "entry": 0.1}, Prices(column=8, entry=1)
    A = power_law(shape, 0.8, rng)
    seen = np.where(rng.random(shape) < 0.3, A + 0.1 * rng.standard_normal(shape), np.nan)
    setting = {"shape": shape, "prices": prices, "noise": noise, "budget": 200.0}
    found = forecast("noisy-cur", **setting, pilot=Observations.from_dense(seen), rng=1)
    told = dict(zip(found.columns, found.rows[0], strict=True))
    assert told["low"] < told["error"] < told["high"]
    assert told["tail"] > 0.1
    oracle = TwoCostOracle(A, entry_noise=0.1, column_noise=0.3, rng=2)
    result = play(noisy_cur(shape, prices, noise=noise, budget=200.0, rng=2), oracle)
    error = np.sqrt(np.mean((result.to_dense() - A) ** 2))
    assert told["low"] <= error <= told["high"]
    exact = forecast("noisy-cur", **setting, rank=max(1, told["components"]))
    assert exact.rows[0][exact.columns.index("error")] < error
    again = forecast("noisy-cur", **setting, pilot=Observations.from_dense(seen), rng=1)
    assert again == found
    assert "lower end" in exact.assumes
