"""Whatever fits the schema of the service, or does not, is answered as the schema says; the server never fails."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress

import pytest

pytest.importorskip("fastapi", reason="the service needs entrywise[web]")
pytest.importorskip("schemathesis", reason="the schema is tested by schemathesis")

import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks as openapi

from databases import small_board
from entrywise.study import Store
from entrywise.web import guard
from entrywise.web.app import create_app

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("ENTRYWISE_SCHEMA_EXAMPLES", "8"))  # of each operation and mode
NEVER_ENDS = "/events$"  # a stream of news, tested by itself
HOST = "http://localhost:8642"


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    store = Store(str(tmp_path_factory.mktemp("schema") / "lab.db"))
    study = small_board(store)
    study.tell([(question.id, 1.0) for question in study.ask(5)])
    found = create_app(store)
    yield found
    found.state.background.close()


@pytest.fixture(scope="module")
def session(app):
    """The headers of an owner's browser: a session that no request can take away, as it could a token."""
    client = TestClient(app, base_url=HOST)
    page = client.get(f"/enter?link={app.state.door.link()}").text
    csrf = page.split('name="csrf" content="')[1].split('"')[0]
    cookie = f"{guard.COOKIE}={client.cookies[guard.COOKIE]}"
    return {"host": "localhost", guard.CSRF: csrf, "cookie": cookie}


CHECKS = [
    schemathesis.checks.not_a_server_error,
    openapi.status_code_conformance,
    openapi.content_type_conformance,
    openapi.response_schema_conformance,
    openapi.response_headers_conformance,
]


def sharpen(case):
    """Let half of the requests speak of what is there, so that they come further than the door."""
    name = (case.path_parameters or {}).get("name")
    if name is not None and len(str(name)) % 2:
        case.path_parameters = {**case.path_parameters, "name": "s"}
    body = case.body
    if isinstance(body, dict) and len(str(body)) % 2:
        real = {"plan": "most-informative", "role": "worker", "study": "s"}
        case.body = body | {key: value for key, value in real.items() if key in body}
        if isinstance(body.get("id"), list):
            case.body["id"] = [f"{k}.{k % 3}" for k in range(len(body["id"]))]
        for axis, labels in (("row", "abc"), ("col", "uvwxy")):
            if isinstance(body.get(axis), list):
                case.body[axis] = [labels[k % 3] for k in range(len(body[axis]))]


def test_every_answer_is_one_that_the_schema_tells(app, session):
    schema = schemathesis.openapi.from_asgi(
        "/api/v1/openapi.json", app, headers={"host": "localhost"}
    )
    tried = Counter()

    def probe(operation, mode):
        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a request is small as it is
        )
        def ask(case):
            sharpen(case)
            answer = case.call_and_validate(headers=dict(session), checks=CHECKS)
            tried[answer.status_code] += 1

        with suppress(Unsatisfiable):  # what takes nothing can be asked in one way only
            ask()

    for found in schema.exclude(path_regex=NEVER_ENDS).get_all_operations():
        for mode in GenerationMode:
            probe(found.ok(), mode)
    print(tried)
    assert tried.total() >= EXAMPLES
    assert {200, 201, 404, 422} <= tried.keys()
