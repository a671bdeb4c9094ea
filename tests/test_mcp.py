"""Agents: the official client drives the server; the ledger stops one that overspends on purpose."""

from __future__ import annotations

import asyncio
import json
import os
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("mcp.server.mcpserver", reason="the extra mcp is not installed")

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from entrywise.exceptions import ParameterError, StoreError
from entrywise.gallery import random_low_rank
from entrywise.integrations.mcp import READING, WORKING, server
from entrywise.observations import Observations
from entrywise.study import Study

pytestmark = pytest.mark.slow

BUDGET = 9


@pytest.fixture
def database(tmp_path):
    path = str(tmp_path / "lab.db")
    for name in ("board", "secret"):
        Study.create(
            path,
            name,
            plan="most-informative",
            params={"rank": 1, "reserve": 0.0},
            seed=1,
            budget=BUDGET,
            rows=["a", "b", "c"],
            cols=[f"t{k}" for k in range(8)],
        )
    return path


def talk(made, conversation):
    """Let the official client say what `conversation` does."""

    async def both():
        async with Client(made) as client:
            return await conversation(client)

    return asyncio.run(both())


def said(result):
    return json.loads(result.content[0].text) if not result.is_error else result.content[0].text


def test_an_agent_that_overspends_on_purpose_is_stopped_by_the_ledger(database):
    async def greedy(client):
        bought, refused = 0, 0
        for _ in range(30):
            answer = said(await client.call_tool("ask", {"study": "board", "limit": 1000}))
            for question in answer["questions"]:
                done = await client.call_tool(
                    "tell", {"study": "board", "answers": [{"id": question["id"], "value": 0.5}]}
                )
                bought += said(done)["new"]
            forged = [{"id": f"{k}.{k}", "value": 1.0} for k in range(40, 60)]
            refused += (
                await client.call_tool("tell", {"study": "board", "answers": forged})
            ).is_error
        return bought, refused, said(await client.call_tool("status", {"study": "board"}))

    bought, refused, status = talk(server(database), greedy)
    assert bought == status["spent"] == BUDGET
    assert refused == 30
    assert status["state"] in ("finished", "exhausted")


def test_asking_without_answering_holds_no_more_than_the_budget(database):
    async def hoarder(client):
        for _ in range(10):
            await client.call_tool("ask", {"study": "board", "limit": 1000})
        return said(await client.call_tool("status", {"study": "board"}))

    status = talk(server(database), hoarder)
    assert status["spent"] + status["held"] <= BUDGET


def test_report_forecast_and_rehearse(database):
    past = random_low_rank(12, 20, 2, 1)
    names = {"rows": [f"r{i}" for i in range(12)], "cols": [f"c{j}" for j in range(20)]}
    Study.create(
        database,
        "past",
        plan="most-informative",
        params={"rank": 2, "reserve": 0.0},
        budget=1,
        known=Observations.from_dense(past / np.abs(past).max()),
        **names,
    )

    async def conversation(client):
        for _ in range(20):
            answer = said(await client.call_tool("ask", {"study": "board"}))
            if not answer["questions"]:
                break
            answers = [
                {"id": q["id"], "value": float(q["row"] == "b")} for q in answer["questions"]
            ]
            answers[0]["value"] = None  # failed
            await client.call_tool("tell", {"study": "board", "answers": answers})
        report = said(await client.call_tool("report", {"study": "board"}))
        foretold = await client.call_tool(
            "forecast",
            {
                "plan": "noisy-cur", "rows": 80, "cols": 60, "budget": 720,
                "prices": {"column": 16, "entry": 1}, "noise": {"column": 0.22, "entry": 0.1},
            },
        )  # fmt: skip
        rehearsed = await client.call_tool(
            "rehearse", {"study": "past", "budgets": [0.3], "repeats": 2}
        )
        early = await client.call_tool("rehearse", {"study": "secret"})
        return answer, report, foretold, rehearsed, early

    answer, report, foretold, rehearsed, early = talk(server(database), conversation)
    assert answer["why_not_more"]
    assert report["cost"] == BUDGET
    assert {line["row"] for line in report["scores"]} == {"a", "b", "c"}
    assert report["scores"][0]["row"] == "b"
    assert not foretold.is_error
    (scores, order) = rehearsed.structured_content["result"]
    assert (scores["goal"], order["goal"]) == ("scores", "order")
    assert 0 < scores["error"] < 1
    assert early.is_error
    assert "knows nothing yet" in said(early)


def test_roles_and_studies(database):
    async def names(client):
        return [tool.name for tool in (await client.list_tools()).tools]

    assert sorted(talk(server(database), names)) == sorted(WORKING)
    assert sorted(talk(server(database, role="reader"), names)) == sorted(READING)
    assert not {"delete", "void", "amend", "create", "drop"} & set(WORKING)

    async def peek(client):
        listed = await client.call_tool("list_studies", {})
        found = listed.structured_content["result"]
        return found, await client.call_tool("status", {"study": "secret"})

    listed, refused = talk(server(database, studies=["board"]), peek)
    assert [one["name"] for one in listed] == ["board"]
    assert refused.is_error
    assert "not offered" in said(refused)
    with pytest.raises(ParameterError, match="role"):
        server(database, role="owner")
    with pytest.raises(StoreError):
        server(database + ".not")


plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
anything = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "value", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
names = [
    "study",
    "limit",
    "rows",
    "cols",
    "answers",
    "level",
    "plan",
    "prices",
    "noise",
    "budget",
    "rank",
]
arguments = st.dictionaries(st.sampled_from(names), anything | st.just("board"), max_size=6)


@given(
    calls=st.lists(
        st.tuples(st.sampled_from([*WORKING, "delete"]), arguments), min_size=1, max_size=6
    )
)
@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_an_agent_sends_there_is_an_answer_or_a_sentence(database, caplog, calls):
    async def fuzz(client):
        for name, given_ in calls:
            given_ = {"study": "board", **given_}
            result = await client.call_tool(name, given_)
            if result.is_error:
                assert "Traceback" not in result.content[0].text

    talk(server(database), fuzz)
    assert not [line for line in caplog.records if line.exc_info], "a crash is not a refusal"


def test_the_command_speaks_over_stdin_and_stdout(database):
    async def status(client):
        return said(await client.call_tool("status", {"study": "board"}))

    words = ["-m", "entrywise", "mcp", database]
    command = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    assert talk(command, status)["budget"] == BUDGET
